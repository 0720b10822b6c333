"""The text of a plan: 80 columns, with every figure that a reader must be able to see."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from berth.planner.best.wording import explained
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.framework.wording import terms_text
from berth.planner.need_words import how_long
from berth.planner.offers import Offer, PlaceOutcome, Query
from berth.planner.part import Level, TypeCount
from berth.planner.table import table
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way

HEADER = """\
REHEARSAL  yard 127.0.0.1:4599, its clock Tue 2026-12-01 09:00Z. Stock is made
up, fees follow list rates; nothing can be charged."""

PICTURE = """\
REHEARSAL  yard 127.0.0.1:4599, its clock Tue 2026-12-01 09:00Z. Stock is made
up, fees follow list rates; nothing can be charged.
Need   eval-1: 1 x ml.trn1.32xlarge (16 Trainium), endpoint, 24 h, us-east-1,
       start fixed Wed 2026-12-02 11:30Z (12:30 Berlin)       1 of 1 place asked

BEST   eval-1#1  training plan  $228.77 now, no refund, no cancel
  why  the start is fixed, and of the ways that can host an endpoint only a plan
       promises it (on-demand may say no on the day)
  pays from 8 h 02 min of serving: 34 % of the 23 h 30 min you can use
  care endpoint can be created only once Active: start-up eats paid time.
       AWS takes the instance from 11:00Z, 30 min before the paid end.
  use  0 h ▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇████ 23:30  on-demand: 0 to $669.68
#  WAY            PLACE     WINDOW UTC              USABLE     TOTAL USD  /ACC-H
1  training-plan  use1-az6  Wed 2 11:30-Thu 3 11:30  23:30        228.77   0.608
-  sagemaker-od   us-east-1 on the day, no promise   23:30    669.68 [1]   1.781
NO capacity-block   EC2 only, cannot serve an endpoint
NO on-demand, spot, odcr   EC2 only
                  LAUNCHES   BUYS       PAID             CANCEL   ENDS
   sagemaker-od   SageMaker  nobody     by the second    any time on delete
   training-plan  you        you, once  all at purchase  no       taken early
BUY    berth buy eval-1#1 --max 228.77       asks, re-reads the fee, buys once
[1] 28.497/h hosting, seen 2025-01-26 (22 months old), Region assumed"""

Make = Callable[..., Any]
Rates = tuple[HourlyRate, ...]


def test_the_picture_of_the_docs(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """One Trainium instance for a day: fee, usable hours, break-even, hourly price, on-demand beside it."""
    plan = make_plan(a_need(), [an_answer(an_offer())], rates, now)
    assert plan_text(plan, HEADER) == PICTURE


def test_no_line_is_wider_than_80_columns(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """Long Regions, large sums, refusals with long reasons and hostile text stay inside the page."""
    regions = ("us-east-1", "ap-southeast-2", "ap-northeast-3")
    need = a_need(regions=regions, start=None, count=64, utilisation=Decimal("0.5"))
    offers = [
        an_offer("1234567.89", days=182, count=64),
        an_offer(None, count=64, zone=None),
        an_offer("9", days=2, count=64, parts=((0, 1), (4, 5)), targets=("training-job", "\x1b[31mred")),
    ]
    refused = an_answer(
        region="ap-southeast-2", outcome="no-quota", detail="ResourceLimitExceeded: " + "limit " * 40
    )
    text = plan_text(make_plan(need, [an_answer(*offers), refused], rates, now), HEADER)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "\x1b" not in text
    assert "INCOMPLETE, 1 of 2 regions searched: ap-southeast-2 no quota" in " ".join(text.split())
    assert max(map(len, terms_text(make_plan(need, [], rates, now).verdicts).splitlines())) <= 80


def test_long_zone_ids_keep_their_columns(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """A zone id of any length is told apart from the window, within 80 columns."""
    offers = [
        an_offer("1234567.89", count=64, zone="use1-abcd12-az12"),
        an_offer("1234568.89", count=64, zone="never-heard-of", offering_id="tpo-2"),
    ]
    need = a_need(count=64, start=None)
    lines = plan_text(make_plan(need, [an_answer(*offers)], rates, now), HEADER).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    for zone in ("use1-abcd12-az12", "never-heard-of"):
        assert any(f"{zone} " in f"{line} " for line in lines), "\n".join(lines)


def test_a_region_that_is_none_is_told_with_those_near(a_need: Make, an_answer: Make, now: datetime) -> None:
    """A mistyped Region reads like a refusal of the credentials: the text says what it may mean."""
    refused = an_answer(region="us-east-1a", outcome="not-allowed", detail="AuthFailure")
    text = plan_text(make_plan(a_need(regions=("us-east-1a",)), [refused], (), now), HEADER)
    assert "us-east-1a is no known Region; near: us-east-1" in text
    known = an_answer(region="us-east-1", outcome="not-allowed", detail="AuthFailure")
    assert "no known Region" not in plan_text(make_plan(a_need(), [known], (), now), HEADER)


def test_what_never_pays_says_so(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """Nothing assumes that a reservation is cheaper."""
    text = plan_text(make_plan(a_need(), [an_answer(an_offer("700.00"))], rates, now), HEADER)
    never = (
        "IT SAVES NOTHING: 29.167/h against 28.497/h on demand [1]. Used to the last usable minute it costs "
        "$30.32 MORE than on-demand. You buy the date."
    )
    assert never in " ".join(text.split())


def test_a_place_without_a_price_is_unknown_not_cheap(
    a_need: Make, an_offer: Make, an_answer: Make, now: datetime
) -> None:
    """Without a list price neither break-even nor total is made up (promise 3)."""
    unknown = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", None)
    text = plan_text(make_plan(a_need(), [an_answer(an_offer())], [unknown], now), HEADER)
    assert "pays is not known: no on-demand price of us-east-1" in text
    assert "unknown [1] unknown" in text
    assert "[1] no hosting price of us-east-1 is known: not cheap, unknown" in text


def test_nothing_that_fits_is_told_with_reasons(
    a_need: Make,
    an_offer: Make,
    an_answer: Make,
    rates: Rates,
    now: datetime,
    start: datetime,
) -> None:
    """An offer that was seen and does not fit says why, and nothing is there to buy."""
    late = an_offer(starts=start + timedelta(days=1))
    text = plan_text(make_plan(a_need(), [an_answer(late)], rates, now), HEADER)
    assert "NONE   1 offer seen, none fits" in text
    assert "starts 24 h after the fixed start" in text
    assert "berth buy" not in text


def test_local_time_names_the_day_where_it_differs(
    a_need: Make, an_offer: Make, an_answer: Make, now: datetime
) -> None:
    """11:30Z on Wednesday is Thursday in Auckland, and the text says so."""
    plan = make_plan(a_need(time_zone="Pacific/Auckland"), [an_answer(an_offer())], [], now)
    assert "(Thu 00:30 Auckland)" in plan_text(plan, HEADER)


def test_ways_in_full_name_rule_source_and_terms(a_need: Make, now: datetime) -> None:
    """For each way: who launches, who buys, when one pays, cancel, end (field fault 70)."""
    text = terms_text(make_plan(a_need(target=Target.ENDPOINT), [], [], now).verdicts)
    for way in Way:
        assert way.value in text
    assert text.count("  launch ") == text.count("  buys ") == text.count("  paid ") == len(Way)
    assert text.count("  cancel ") == text.count("  end ") == len(Way)
    assert "who-manages-the-machines" in text


def test_every_outcome_has_its_words(a_need: Make, an_answer: Make, rates: Rates, now: datetime) -> None:
    """A place that gave no offers is named with what it said."""
    for outcome in PlaceOutcome:
        answer = an_answer(outcome=outcome.value)
        plan = make_plan(a_need(), [answer], rates, now)
        assert plan.incomplete is not answer.is_complete
        assert "NONE" in plan_text(plan, HEADER)


def test_a_place_whose_offers_are_none_is_told_as_it_is(
    a_need: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """An answer that says offers and holds none, beside one that failed: `0 offers`, no crash."""
    answers = [an_answer(outcome="offers"), an_answer(region="us-east-2", outcome="failed")]
    plan = make_plan(a_need(), answers, rates, now)
    assert "us-east-1 0 offers" in " ".join(plan_text(plan, HEADER).split())


def test_a_range_names_the_unit_of_both_ends(a_need: Make) -> None:
    """The lower end leaves its unit out only where both are said in that one unit."""
    spans = (timedelta(hours=25), timedelta(hours=121))
    odd = a_need(start=None, duration=spans[0], longest=spans[1])
    assert how_long(odd).startswith("25 h to 5 d 1 h,")
    even = a_need(start=None, duration=timedelta(hours=25), longest=timedelta(hours=30))
    assert how_long(even).startswith("25 to 30 h,")


def test_large_sums_in_another_currency_stay_inside_the_page(
    a_need: Make, an_offer: Make, an_answer: Make, now: datetime
) -> None:
    """A total with its currency beside it takes a line of its own where the row would be too wide."""
    mixed = [
        an_offer("228.77", offering_id="tpo-1"),
        replace(
            an_offer(offering_id="tpo-2", zone="use1-abcd12-az12"), fee=Money(Decimal("1234567.89"), "EUR")
        ),
    ]
    dear = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "ap-southeast-2", "hosting", Money(Decimal(123_456)))
    need = a_need(start=None, regions=("us-east-1", "ap-southeast-2"))
    text = plan_text(make_plan(need, [an_answer(*mixed)], [dear], now), HEADER)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "1,234,567.89" in text
    assert "TOTAL EUR" in text
    assert " USD [1]" in text


def test_more_than_an_account_may_hold_is_not_told_how_to_split(a_need: Make, now: datetime) -> None:
    """Fifteen blocks of 64 are no advice where 256 are the end."""
    many = a_need(instance_type="p5.48xlarge", count=1000, target=Target.INSTANCES)
    assert "SPLIT" not in plan_text(make_plan(many, [], [], now), HEADER)
    some = a_need(instance_type="p5.48xlarge", count=100, target=Target.INSTANCES)
    assert "SPLIT" in plan_text(make_plan(some, [], [], now), HEADER)


def test_the_command_that_buys_names_the_profile_that_asked(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """Without it another account would look for the plan; a long one goes on as a shell reads."""
    plan = make_plan(a_need(), [an_answer(an_offer())], rates, now)
    assert "\nBUY    berth buy eval-1#1 --max 228.77 --profile buyer\n" in plan_text(plan, HEADER, "buyer")
    long = make_plan(a_need(name="a" * 40), [an_answer(an_offer())], rates, now)
    said = plan_text(long, HEADER, "a team's buyer")
    command = said[said.index("berth buy ") :].split("\n       asks, ")[0]
    assert command.count("\\\n") == 2
    assert shlex.split(command.replace("\\\n", " ")) == [
        "berth", "buy", f"{'a' * 40}#1", "--max", "228.77", "--profile", "a team's buyer",
    ]  # fmt: skip


def test_nothing_seen_proves_nothing() -> None:
    """Without a first choice no mix is "not cheaper" than it."""
    assert (
        explained(None, compared=False)
        == "PROOF  nothing is proven: nothing that fits at a known price was seen"
    )
    assert explained(None) == "PROOF  no mix of what was seen is cheaper than the first choice"


def test_prices_by_the_hour_name_their_type_where_nothing_is_on_sale(a_need: Make, now: datetime) -> None:
    """Several types would do: the lines are of the one that is liked best, and say so."""
    need = a_need(alternatives=(TypeCount("ml.p5.48xlarge", 2, 2),))
    rate = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(Decimal(10)), live=True)
    rows = table(make_plan(need, [], (rate,), now))
    assert rows[1] == "   1 x ml.trn1.32xlarge:"
    assert rows[2].startswith("-  sagemaker-od")
    assert "   1 x ml.trn1.32xlarge:" not in table(make_plan(a_need(), [], (rate,), now))


def test_hours_of_a_changing_count_are_those_that_run(
    a_need: Make, an_offer: Make, an_answer: Make, now: datetime
) -> None:
    """One machine, and four from 12 h on: hours on demand cost what runs; an offer that is dearer says so."""
    profile = (Level(timedelta(0), 1), Level(timedelta(hours=12), 4))
    need = a_need(count=4, profile=profile)
    offer = an_offer("900.00", count=4)
    rate = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(Decimal(10)), live=True)
    plan = make_plan(need, [an_answer(offer)], (rate,), now)
    (line,) = plan.pay_as_you_go
    assert line.total == Money(Decimal(580))  # 12 h x 1 + 11.5 h x 4 = 58 hours; 4 all through were 94
    assert line.per_accelerator_hour == Money(Decimal("0.625"))
    told = " ".join(plan_text(plan, "").split())
    assert "come to $580.00 [1], $320.00 less. You buy the date." in told
    cheap = make_plan(need, [an_answer(an_offer("500.00", count=4))], (rate,), now)
    assert "SAVES NOTHING" not in plan_text(cheap, "")


RHEL = "Red Hat Enterprise Linux"


def test_where_no_total_is_known_the_lower_fee_comes_first(
    a_need: Make, an_offer: Make, an_answer: Make, now: datetime
) -> None:
    """An operating system fee that nobody names leaves each total unknown, not what is known of it."""

    def block(name: str, fee: str, hours_earlier: int) -> Offer:
        asked = Query(
            Way.CAPACITY_BLOCK, "us-east-1", "p5.48xlarge", 1, 24, Target.INSTANCES, None, None, RHEL
        )
        return an_offer(  # type: ignore[no-any-return]
            fee,
            starts=now + timedelta(hours=10 - hours_earlier),
            way=Way.CAPACITY_BLOCK,
            offering_id=name,
            instance_type="p5.48xlarge",
            targets=("instances",),
            query=asked,
        )

    need = a_need(target=Target.INSTANCES, instance_type="p5.48xlarge", start=None, platform=RHEL)
    answer = replace(
        an_answer(block("cb-dear", "1240.00", 2), block("cb-cheap", "1146.17", 0)), way=Way.CAPACITY_BLOCK
    )
    made = make_plan(need, [answer], [], now)
    assert [c.cost.total for c in made.choices] == [None, None]
    assert [c.offer.offering_id for c in made.choices] == ["cb-cheap", "cb-dear"]
