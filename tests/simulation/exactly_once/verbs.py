"""The verbs as the command line runs them, without its options: each takes a counter and a need's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from types import MappingProxyType

from berth.cli.buy import buy_choice, recalled, say
from berth.cli.buy_pieces import Asked, buy_pieces, say_pieces
from berth.cli.clean import clean_order
from berth.cli.deploy import bought, deploy_order, what_to_deploy
from berth.cli.desks import Counter
from berth.cli.extend import extended, say_extended, settled_extensions
from berth.cli.launch import launch_order, say_launched, what_to_launch
from berth.cli.named import order_named, whole_named
from berth.cli.pieces import show_whole
from berth.cli.show import _show_one
from berth.cli.standing import settled
from berth.orders.extensions.wish import Wish as Longer
from berth.orders.extensions.wish import read_wish
from berth.planner.best.combination import Combination, Mix, Piece
from berth.planner.cost import cost_of
from berth.planner.launch import Launch
from berth.planner.need import Deployment, Need
from berth.planner.offers import Offer, PlaceAnswer, Query
from berth.planner.plan import Choice, Plan
from berth.planner.platforms import LINUX
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target, Way
from berth.yard.services.ec2.images import own_images

from .botocore_half import REGION, URL
from .client_half import Verb

CAP = Money.parse("9000")


@cache
def linux_image() -> str:
    """The id of one of the yard's own images."""
    kinds = (image for image in own_images(REGION) if image.get("PlatformDetails") == LINUX)
    return str(next(kinds)["ImageId"])


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted: a training plan to serve in, or a Capacity Block to run instances in.

    `number` counts the offers that the search shows: which of them is chosen. `after` None: as early as may
    be. `tags` are the need's own. `pieces` are so many offers from there on, bought as one order.
    """

    name: str
    way: Way
    hours: int = 24
    number: int = 0
    after: datetime | None = None
    before: datetime | None = None
    tags: tuple[tuple[str, str], ...] = ()
    pieces: int = 1

    @property
    def need(self) -> Need:
        """The need, as a file would say it."""
        block = self.way is Way.CAPACITY_BLOCK
        return Need(
            name=self.name,
            instance_type="p5.48xlarge" if block else "ml.trn1.32xlarge",
            count=1,
            duration=timedelta(hours=self.hours),
            target=Target.INSTANCES if block else Target.ENDPOINT,
            regions=(REGION,),
            deployment=None if block else Deployment(
                image="rehearsal/echo:1", role="arn:aws:iam::123456789012:role/serving"
            ),
            launch=Launch(image=linux_image()) if block else None,
            tags=self.tags,
        )  # fmt: skip

    @property
    def query(self) -> Query:
        """The question to the search API."""
        need = self.need
        return Query(
            way=self.way, region=REGION, instance_type=need.instance_type, count=1,
            duration_hours=self.hours, target=need.target, start_after=self.after, end_before=self.before,
            platform=need.platform if self.way is Way.CAPACITY_BLOCK else "",
        )  # fmt: skip


def plan_for(wish: Wish, seen: dict[Way, PlaceAnswer] | None = None) -> Verb:
    """`berth plan` for one wish: ask the search, keep the plan with the one offer that is wanted.

    `seen` holds what the search answered before, by way; it is used again, and added to.
    """

    def plan(at: Counter, need: str) -> int:
        known = {} if seen is None else seen
        answer = known.get(wish.way) or at.desk_of(wish.way, REGION).shop.search(wish.query)
        offers = [offer for offer in answer.offers if offer.fee is not None]
        if not offers:
            raise BerthError(ExitCode.NO_CAPACITY, f"no offer: {answer.detail or answer.outcome}")
        known[wish.way] = answer
        chosen = [offers[(wish.number + more) % len(offers)] for more in range(wish.pieces)]
        choices = tuple(
            Choice(number, offer, cost_of(offer, None, None, None), (), ())
            for number, offer in enumerate(chosen, start=1)
        )
        made = Plan(
            need=wish.need, made_at=at.door.clock.now(), account=at.account, rehearsal=URL,
            answers=(answer,), choices=choices,
            rejected=(), pay_as_you_go=(), verdicts=(), incomplete=not answer.is_complete,
            combination=_together(chosen) if wish.pieces > 1 else None,
        )  # fmt: skip
        at.journal.remember_plan(at.account, need, made.to_json(), made.made_at)
        return ExitCode.DONE

    return plan


def _together(offers: Sequence[Offer]) -> Combination:
    """The offers as the best combination; what is proven of it plays no part here."""
    pieces, total = [], Money.from_micros(0, "USD")
    for number, offer in enumerate(offers, start=1):
        assert offer.fee is not None
        total += offer.fee
        windows = tuple(part.window for part in offer.segments)
        zone = offer.segments[0].zone_id
        pieces.append(
            Piece(
                number, offer.way, offer.instance_type, offer.region, zone, offer.offering_id, windows,
                offer.usable, offer.count, offer.count, offer.fee,
            )
        )  # fmt: skip
    nothing = Decimal(0)
    mix = Mix(tuple(pieces), total, (offers[0].paid_window,), nothing, None, None)
    return Combination(offers[0].instance_type, mix, None)


def buying_all(accept_other: bool) -> Verb:
    """`berth buy NEED#best --yes --max ... --unconfirmed`, with `--accept-other` or without."""
    asked = Asked(CAP, yes=True, unconfirmed=True, accept_other=accept_other)

    def buy_all(at: Counter, need: str) -> int:
        say_pieces(at, buy_pieces(at, recalled(at, need), asked))
        return ExitCode.DONE

    return buy_all


buy_all = buying_all(False)


def buy(at: Counter, need: str) -> int:
    """`berth buy NEED#1 --yes --max ...`."""
    purchase = buy_choice(at, recalled(at, need), 1, cap=CAP, yes=True)
    say(at, purchase)
    return ExitCode.DONE


def show(at: Counter, need: str) -> int:
    """`berth show NEED --history`."""
    whole = whole_named(at, need)
    if whole is not None:
        return show_whole(at, whole, wait=False, history=True)
    order = settled_extensions(at, settled(at, order_named(at, need), wait=False), wait=False)
    return _show_one(at, order, history=True)


def deploy(at: Counter, need: str) -> int:
    """`berth deploy NEED`."""
    order, seen = bought(at, order_named(at, need), wait=False)
    deploy_order(at, order, seen, what_to_deploy(order, model=None, image=None, data=None, role=None))
    return ExitCode.DONE


def launch(at: Counter, need: str) -> int:
    """`berth launch NEED`."""
    order, seen = bought(at, order_named(at, need), wait=False)
    say_launched(at, order, launch_order(at, order, seen, what_to_launch(order)))
    return ExitCode.DONE


def extending(longer: Longer) -> Verb:
    """`berth extend NAME --yes --max ...` as far as `longer` says."""

    def extend(at: Counter, need: str) -> int:
        say_extended(at, extended(at, need, longer, cap=CAP, yes=True))
        return ExitCode.DONE

    return extend


extend = extending(read_wish("1d", None, None, None))
"""`berth extend NAME --by 1d --yes --max ...`."""


def clean(at: Counter, need: str) -> int:
    """`berth clean NEED`."""
    return clean_order(at, order_named(at, need))


WORK: Mapping[Way, Verb] = MappingProxyType({Way.TRAINING_PLAN: deploy, Way.CAPACITY_BLOCK: launch})
"""The verb that puts something into what was bought."""
