"""What an approval is bound to, and who counts as another identity."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.orders.approval_book import ask, find, state_of, take
from berth.orders.approvals import (
    ApprovalRequest,
    is_among,
    is_same_identity,
    not_approver,
    not_covered,
    principal,
    request_from,
    what_is_bought,
)
from berth.orders.order import Approval
from berth.orders.spending import ApprovalRule, Cap, Per, Rules
from berth.orders.spending_gate import Gate, NotApproved, check_spending, proposal_of
from berth.orders.wording import order_json, order_lines
from berth.planner.need import Need
from berth.terms.money import Money
from berth.terms.outcomes import BerthError
from berth.terms.ways import Target

from .fake_aws import KEY

LEAD = "arn:aws:iam::444455556666:user/lead"
ME = "arn:aws:sts::111122223333:assumed-role/planner/ada"
RULES = Rules("rules.toml", approval=ApprovalRule((Money(Decimal(100)),), (LEAD,)))
GATE = Gate(RULES, ME, ME)


def request(world: Any, **changes: Any) -> ApprovalRequest:
    """A request for the approved offer."""
    now = world.clock.now()
    made = ApprovalRequest(
        "aws", KEY, what_is_bought(world.approved), world.approved.fee, ME, now + timedelta(hours=1), now
    )
    return replace(made, **changes)


def test_the_hash_is_over_everything_that_counts(world: Any) -> None:
    """Another account, need, sequence, offer, amount, currency, requester, realm or end is another hash."""
    first = request(world)
    what = dict(first.what)
    part = what["parts"][0]
    others = [
        replace(first, realm="127.0.0.1:1"),
        replace(first, key=replace(KEY, account="444455556666")),
        replace(first, key=replace(KEY, need="other")),
        replace(first, key=replace(KEY, sequence=2)),
        replace(first, amount=Money(Decimal("228.78"))),
        replace(first, amount=Money(first.amount.amount, "EUR")),
        replace(first, requester=LEAD),
        replace(first, expires_at=first.expires_at + timedelta(seconds=1)),
        *(replace(first, what={**what, name: "x"}) for name in what),
        *(replace(first, what={**what, "parts": [{**part, name: "x"}]}) for name in part),
    ]
    assert len({first.hash, *(other.hash for other in others)}) == len(others) + 1
    assert replace(first, asked_at=first.asked_at + timedelta(days=1)).hash == first.hash
    assert first.header == f"{first.hash} 228.77 USD"


def test_a_request_comes_back_as_it_went(world: Any) -> None:
    """Through JSON, with the same hash."""
    first = request(world)
    again = request_from(json.loads(json.dumps(first.document())), first.asked_at)
    assert again == first
    assert again.hash == first.hash


@pytest.mark.parametrize("extra", ["approval", "approved", "approver", "note"])
def test_a_request_with_more_in_it_is_none(world: Any, extra: str) -> None:
    """Field fault 6: a request that carries its approval is no request."""
    with pytest.raises(ValueError, match=f"unknown: {extra}"):
        request_from({**request(world).document(), extra: True}, world.clock.now())


def test_what_a_request_covers(world: Any) -> None:
    """The same offer at the same or a lower fee, until it ends; nothing dearer, nothing else."""
    first, now = request(world), world.clock.now()
    cheaper, dearer = Money(Decimal("228.76")), Money(Decimal("228.78"))
    assert not_covered(first, first.what, first.amount, now) == ""
    assert not_covered(first, first.what, cheaper, now) == ""
    assert not_covered(first, first.what, dearer, now) == "the price rose: 228.77 USD to 228.78 USD"
    assert "it is for" in not_covered(first, first.what, Money(Decimal(1), "EUR"), now)
    assert "another offer" in not_covered(first, {**first.what, "count": 2}, first.amount, now)
    assert "it ended" in not_covered(first, first.what, first.amount, first.expires_at)


def test_an_offer_that_starts_at_once_may_start_half_an_hour_later(world: Any) -> None:
    """As with every purchase; later than that, or with another end, it is another offer."""
    world.aws.starts_at_once = True
    first = request(world, what=what_is_bought(world.aws.offer()))
    for minutes, covered in ((0, True), (30, True), (31, False)):
        world.clock.at = first.asked_at + timedelta(minutes=minutes)
        fresh = what_is_bought(world.aws.offer())
        assert (not_covered(first, fresh, first.amount, first.asked_at) == "") is covered
    moved = dict(first.what)
    moved["parts"] = [{**moved["parts"][0], "end": "2027-03-09T11:30:00Z"}]
    assert not_covered(first, moved, first.amount, first.asked_at) == "it is for another offer"


@pytest.mark.parametrize(
    ("arn", "who"),
    [
        ("arn:aws:sts::111122223333:assumed-role/lead/ada", "arn:aws:iam::111122223333:role/lead"),
        ("arn:aws:iam::111122223333:role/a/b/lead", "arn:aws:iam::111122223333:role/lead"),
        ("arn:aws:iam::111122223333:user/ops/ada", "arn:aws:iam::111122223333:user/ops/ada"),
        ("arn:aws:iam::111122223333:root", "arn:aws:iam::111122223333:root"),
        ("arn:aws-cn:iam::111122223333:user/ada", "arn:aws-cn:iam::111122223333:user/ada"),
        ("arn:aws:sts::111122223333:federated-user/ada", None),
        ("arn:aws:sts::111122223333:assumed-role/", None),
        ("arn:aws:iam::111122223333:user/", None),
        ("", None),
    ],
)
def test_the_identity_behind_an_arn(arn: str, who: str | None) -> None:
    """A session is its role; what a user can make up at will is nobody."""
    assert principal(arn) == who


def test_two_sessions_of_one_role_are_one_identity() -> None:
    """Whoever may assume the role names the session; another account's role of the name is another."""
    one = "arn:aws:sts::111122223333:assumed-role/lead/ada"
    assert is_same_identity(one, one.replace("ada", "bob"))
    assert is_same_identity(one, "arn:aws:iam::111122223333:role/team/lead")
    assert not is_same_identity(one, one.replace("111122223333", "444455556666"))
    assert not is_same_identity(one, one.replace("lead", "other"))
    assert is_same_identity(one, "unknown"), "what is not known counts as the same"


@pytest.mark.parametrize(
    ("pattern", "arn", "among"),
    [
        ("arn:aws:iam::111122223333:role/lead", "arn:aws:sts::111122223333:assumed-role/lead/x", True),
        ("arn:aws:iam::111122223333:role/a/lead", "arn:aws:sts::111122223333:assumed-role/lead/x", True),
        ("arn:aws:iam::111122223333:role/lead*", "arn:aws:sts::111122223333:assumed-role/lead-2/x", True),
        ("arn:aws:iam::111122223333:role/lead", "arn:aws:sts::111122223333:assumed-role/lead-2/x", False),
        ("arn:aws:iam::111122223333:role/lead", "arn:aws:sts::444455556666:assumed-role/lead/x", False),
        ("arn:aws:iam::111122223333:user/ops/*", "arn:aws:iam::111122223333:user/ops/ada", True),
        ("arn:aws:iam::111122223333:user/o.s/*", "arn:aws:iam::111122223333:user/ops/ada", False),
        ("arn:aws:iam::111122223333:user/*", "arn:aws:sts::111122223333:federated-user/ada", False),
    ],
)
def test_who_the_rules_name(pattern: str, arn: str, among: bool) -> None:
    """A star stands for any characters, everything else for itself."""
    assert is_among(arn, (pattern,)) is among


def test_who_may_not_approve() -> None:
    """Whoever asks or pays, whoever the rules do not name, whoever could be made up."""
    assert not_approver(LEAD, (LEAD,), (ME,)) == ""
    assert "asks or pays" in not_approver(LEAD, (LEAD,), (ME, LEAD))
    assert "not among" in not_approver(LEAD, ("arn:aws:iam::1:user/x",), (ME,))
    assert "made up" in not_approver("arn:aws:sts::111122223333:federated-user/x", (LEAD,), (ME,))


# -- the journal's part ------------------------------------------------------------------------------------
def check(world: Any, gate: Gate = GATE) -> None:
    """Ask the gate about the approved offer."""
    check_spending(
        gate, world.journal.ledger(), proposal_of(KEY, Approval(world.approved)), world.clock.now()
    )


def test_asked_twice_is_one_request_and_one_alarm(world: Any) -> None:
    """The same request stands; a dearer one is new and told aloud; a cheaper one is covered."""
    proposal = proposal_of(KEY, Approval(world.approved))
    first = ask(world.journal, GATE, proposal, world.clock.now())
    world.clock.advance(minutes=1)
    again = ask(world.journal, GATE, proposal, world.clock.now())
    assert (first.alarm, again.alarm) == (True, False)
    assert again.request.hash == first.request.hash
    dearer = replace(proposal, spend=replace(proposal.spend, amount=Money(Decimal(300))))
    assert ask(world.journal, GATE, dearer, world.clock.now()).alarm
    assert [event.kind for event in world.journal.events(KEY)] == ["approval asked", "alarm"] * 2


def test_an_approval_opens_the_gate_for_this_and_no_more(world: Any) -> None:
    """Approved it passes; dearer, ended, paid by the approver or by changed rules it does not."""
    asked = ask(world.journal, GATE, proposal_of(KEY, Approval(world.approved)), world.clock.now()).request
    with pytest.raises(NotApproved, match="nobody has approved it"):
        check(world)
    take(world.journal, RULES, asked, LEAD, world.clock.now())
    check(world)
    with pytest.raises(NotApproved, match="is the identity that asks or pays"):
        check(world, replace(GATE, payer=LEAD))
    others = ApprovalRule((Money(Decimal(100)),), ("arn:aws:iam::1:user/x",))
    with pytest.raises(NotApproved, match="not among the approvers"):
        check(world, replace(GATE, rules=replace(RULES, approval=others)))
    world.approved = replace(world.approved, fee=Money(Decimal("228.78")))
    with pytest.raises(NotApproved, match="the price rose"):
        check(world)
    world.approved = replace(world.approved, fee=Money(Decimal("228.77")))
    world.clock.at = asked.expires_at
    with pytest.raises(NotApproved, match="it ended"):
        check(world)


def test_taking_is_refused_where_it_must_be(world: Any) -> None:
    """The requester's own word, a stranger's, one without rules, one too late; taken twice is once."""
    journal, now = world.journal, world.clock.now()
    asked = ask(journal, GATE, proposal_of(KEY, Approval(world.approved)), now).request
    refused = [(RULES, ME), (RULES, "arn:aws:iam::444455556666:user/other"), (None, LEAD), (Rules("r"), LEAD)]
    for rules, who in refused:
        with pytest.raises(BerthError):
            take(journal, rules, asked, who, now)
    with pytest.raises(BerthError, match="ended"):
        take(journal, RULES, asked, LEAD, asked.expires_at)
    assert journal.ledger().given(asked) == ()
    take(journal, RULES, asked, LEAD, now)
    take(journal, RULES, asked, LEAD, now + timedelta(minutes=1))
    assert [one.at for one in journal.ledger().given(asked)] == [now]
    assert state_of(asked, journal.ledger().given(asked), RULES, now) == "approved"


def test_a_request_is_found_by_its_first_digits(world: Any) -> None:
    """Eight at least, and no guess between two."""
    asked = ask(world.journal, GATE, proposal_of(KEY, Approval(world.approved)), world.clock.now()).request
    assert find(world.journal, asked.hash[:8].upper()) == asked
    for text in (asked.hash[:7], "", "0" * 64):
        with pytest.raises(BerthError, match="no request for approval"):
            find(world.journal, text)


def test_realms_share_no_approval(world: Any) -> None:
    """What was approved in a rehearsal is not there for AWS."""
    from berth.orders.journal import open_journal

    asked = ask(world.journal, GATE, proposal_of(KEY, Approval(world.approved)), world.clock.now()).request
    take(world.journal, RULES, asked, LEAD, world.clock.now())
    yard = open_journal(world.place, "127.0.0.1:4599")
    assert yard.ledger().requests() == ()
    assert yard.ledger().given(asked) == ()
    yard.close()


def test_the_purchase_itself_asks_the_gate(shopper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule in the way stops the intent: no row, no paid call, nothing spent; without it all of it."""
    rules = Rules("rules.toml", caps=(Cap(Per.ORDER, Money(Decimal(100))),))
    plain_desk = shopper.desk
    monkeypatch.setattr(shopper, "desk", lambda: replace(plain_desk(), gate=Gate(rules, ME, ME)))
    with pytest.raises(BerthError, match="would go over the cap per order"):
        shopper.buy()
    assert shopper.journal.order(KEY) is None
    assert shopper.aws.ledger == []
    monkeypatch.setattr(shopper, "desk", plain_desk)
    assert shopper.buy().order.state == "bought"


def test_an_offer_that_moves_on_raises_no_second_alarm(world: Any) -> None:
    """Starting at once, it is another offer after half an hour: asked anew, told once unless dearer."""
    world.aws.starts_at_once = True
    world.approved = world.aws.offer()
    first = ask(world.journal, GATE, proposal_of(KEY, Approval(world.approved)), world.clock.now())
    world.clock.advance(minutes=45)
    world.approved = world.aws.offer()
    later = ask(world.journal, GATE, proposal_of(KEY, Approval(world.approved)), world.clock.now())
    assert later.request.hash != first.request.hash
    assert later.request.amount < first.request.amount
    assert (first.alarm, later.alarm) == (True, False)


def test_an_extension_is_approved_for_itself(world: Any) -> None:
    """The purchase's approval says nothing of an extension, and its request silences no alarm of it."""
    bought = proposal_of(KEY, Approval(world.approved))
    asked = ask(world.journal, GATE, bought, world.clock.now()).request
    take(world.journal, RULES, asked, LEAD, world.clock.now())
    longer = replace(bought, what={"kind": "extension", "reservation": "cr-1", "end": "2027-03-10T11:30:00Z"})
    with pytest.raises(NotApproved, match="nobody has approved it"):
        check_spending(GATE, world.journal.ledger(), longer, world.clock.now())
    assert ask(world.journal, GATE, longer, world.clock.now()).alarm


def test_tags_go_along_whatever_is_bought(shopper: Any, needed: dict[str, Any]) -> None:
    """The need's tags are in the paid call beside our marks, in the order, and the journal knows the team."""
    order = shopper.buy(need=needed).order
    request = shopper.aws.shop.request(order)
    listed = request.get("Tags") or request["TagSpecifications"][0]["Tags"]
    tags = {tag["Key"]: tag["Value"] for tag in listed}
    assert (tags["team"], tags["cost-centre"]) == ("red", "4711")
    assert tags["berth:order"] == KEY.mark
    assert order_json(order, None)["tags"] == {"team": "red", "cost-centre": "4711"}
    assert "tags     cost-centre=4711, team=red" in order_lines(order, None, shopper.clock.now())
    (spent,) = shopper.journal.ledger().booked(None, KEY.mark)
    assert (spent.team, spent.amount, spent.order) == ("red", order.attempt.fee, KEY.mark)


@pytest.fixture
def needed(shopper: Any) -> dict[str, Any]:
    """A need with tags, as a plan keeps it."""
    need = Need(
        name=KEY.need,
        instance_type=shopper.approved.instance_type,
        count=1,
        duration=timedelta(hours=24),
        target=Target(shopper.approved.target),
        regions=("us-east-1",),
        tags=(("cost-centre", "4711"), ("team", "red")),
    )
    return need.to_json()
