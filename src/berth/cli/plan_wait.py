"""`berth plan --wait-until`: ask again until something fits, tell once, never buy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from berth.aws.refusals import CALL_ERRORS, refusal_of
from berth.cli.asking import Aloud, ask_places, open_kept
from berth.cli.needs import TypedNeed
from berth.cli.output import Output
from berth.cli.who import enter
from berth.planner.need_times import read_end
from berth.planner.phrases import exact_amount, money_text, window_text, wrapped
from berth.sources.history import History
from berth.sources.keeping import TROUBLES
from berth.sources.survey import block_paces
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.window import Window
from berth.watch.again import Waited, ask_until
from berth.watch.notices import Channel, InDoubt, Notice, NotTold, channels

if TYPE_CHECKING:
    from berth.aws.session import Door
    from berth.planner.best.combination import Mix
    from berth.planner.need import Need
    from berth.planner.offers import PlaceAnswer
    from berth.planner.plan import Choice, Plan
    from berth.sources.keeping import Kept

SCHEMA = "berth.wait/1"


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed: until when, the most that it may cost in all ('' for no limit), whom to tell."""

    until: str
    most: str
    notify: tuple[str, ...] = ()

    def limit(self) -> Money | None:
        """The most that it may cost. Raises BerthError (usage)."""
        try:
            limit = Money.parse(self.most) if self.most else None
        except ValueError as problem:
            raise BerthError(ExitCode.USAGE, f"--max-total: {problem}") from None
        if limit is not None and limit.amount <= 0:
            raise BerthError(ExitCode.USAGE, "--max-total: must be more than zero")
        return limit

    def end(self, need: Need, now: datetime) -> tuple[datetime, str]:
        """Until when, a day counts whole, in the need's zone; and how words were read ('' for none).

        Raises BerthError (usage).
        """
        try:
            end, reading = read_end(self.until, need.zone, now)
        except ValueError as problem:
            raise BerthError(ExitCode.USAGE, f"--wait-until: {problem}") from None
        told = reading and need.zone and reading.text(need.zone, now.astimezone(need.zone).year)
        return end, f"waiting: {told}" if told else ""

    def digest(self, typed: TypedNeed) -> str:
        """What the wait is known by: the same command again is the same wait, whoever is told."""
        flags = sorted((key, str(value)) for key, value in typed.flags.items())
        return sha256(repr((typed.text, flags, self.until, self.most)).encode()).hexdigest()[:32]


def wait_for_offer(
    output: Output,
    typed: TypedNeed,
    wish: Wish,
    *,
    profile: str | None,
    local_zones: bool,
    remember: Callable[[Door, Need, Plan], None],
) -> tuple[Door, Waited | None]:
    """Wait as `wish` says. None: the same command found something before, and it is told of again nowhere.

    Raises BerthError: no capacity when the date came and every place had answered, incomplete when not.
    """
    told = channels(wish.notify)
    most = wish.limit()
    door = enter(output, profile=profile, regions=typed.draft().regions)
    need = replace(typed.read(door.clock.now()), regions=door.regions)
    until, told_until = wish.end(need, door.clock.now())
    if told_until:
        output.talk(told_until)
    kept = open_kept(output, door)
    try:
        history = kept.history
        if history is None:
            raise BerthError(
                ExitCode.INTERNAL_ERROR,
                "without its history a wait could tell the same thing twice",
                "free what is full or in the way, or name another folder in BERTH_HOME",
            )
        teller = _Teller(output, history, wish.digest(typed), told)
        before = teller.found_before()
        if before is not None:
            teller.tell(before)
            return door, None
        asking = _Asking(output, door, need, kept, local_zones=local_zones, most=most)
        waited = ask_until(asking, most, until, door.clock, hopeless)
        remember(door, need, waited.plan)
        if not waited.nothing:
            teller.keep(door.clock.now(), _said(need, waited))
        return door, waited
    finally:
        kept.close()


def hopeless(plan: Plan) -> bool:
    """Whether no round can change it: nobody can be asked, or every place refuses the caller."""
    from berth.planner.choose import only_outcome
    from berth.planner.offers import PlaceOutcome

    return not plan.answers or only_outcome(plan) is PlaceOutcome.NOT_ALLOWED


def _said(need: Need, waited: Waited) -> str:
    """What is told: one line with the price, the place, the time, and the command that buys."""
    reuse = waited.plan.reuse
    if waited.mix is not None:
        return _said_of_mix(need, waited.mix)
    if waited.found is None:
        assert reuse is not None
        return f"{need.name}: {reuse.owned.id} is yours already and covers it; nothing has to be bought"
    choice = waited.found
    where = f"{choice.offer.region} {', '.join(choice.offer.zones)}"
    when = window_text(choice.offer.paid_window, fixed=False)
    fee = choice.cost.fee
    command = f"berth buy {need.handle(choice.number)}"
    if fee is not None and fee.currency == "USD":
        command += f" --max {exact_amount(fee)}"
    return (
        f"{need.name}: {choice.offer.count} x {choice.offer.instance_type}, {where}, {when} UTC, "
        f"{money_text(choice.cost.total)} in all. Nothing was bought; it may be gone soon: {command}"
    )


def _said_of_mix(need: Need, mix: Mix) -> str:
    """The same of several purchases that together cover the need."""
    bought = sum(piece.promised for piece in mix.pieces)
    start, end = mix.running[0].start, mix.running[-1].end
    together = f"{bought} {'purchase' if bought == 1 else 'purchases'} together"
    when = window_text(Window(start, end), fixed=False)
    return (
        f"{need.name}: {together}, work runs {when} UTC, {money_text(mix.total)} in all. "
        f"Nothing was bought; it may be gone soon: berth buy {need.handle_of_mix}"
    )


class _Asking:
    """The rounds of one wait (see `berth.watch.again.Rounds`)."""

    def __init__(
        self, output: Output, door: Door, need: Need, kept: Kept, *, local_zones: bool, most: Money | None
    ) -> None:
        self._output = output
        self._door = door
        self._need = need
        self._kept = kept
        self._local_zones = local_zones
        self._most = most
        self._paces = block_paces(door, kept)
        self._listener = _Measuring(output, door)
        self._stood = False
        self._silent = False

    def ask(self) -> Plan:
        """One round, with the buckets as the last one left them."""
        from berth.planner.best.of_plan import with_combination

        seen = ask_places(
            self._output, self._door, self._need,
            local_zones=self._local_zones, kept=self._kept, paces=self._paces, listener=self._listener,
        )  # fmt: skip
        return with_combination(seen, most=self._most, promised=True)

    def least_s(self) -> float:
        """The least time that the round took inside the buckets."""
        return self._listener.least_s

    def hear_clock(self) -> None:
        """A yard tells its clock with every answer; this is the cheapest question.

        One that does not answer may be starting again: that is said once, and the wait goes on.
        """
        if not self._door.clock.is_simulated:
            return
        try:
            self._door.reader("sts", self._door.regions[0]).get_caller_identity()
        except CALL_ERRORS as problem:
            if not self._silent:
                self._output.talk(f"the yard does not tell its clock: {refusal_of(problem)}; waiting on")
            self._silent = True
        else:
            self._silent = False

    def told(self, number: int, plan: Plan, found: Choice | Mix | None, due: datetime | None) -> None:
        """One line a round: what was asked, the best that was seen, when the next begins."""
        from berth.planner.choose import places_asked

        asked, places = places_asked(plan)
        best = next((choice.cost.total for choice in plan.choices if choice.cost.total is not None), None)
        seen = "something fits" if found else f"best {money_text(best)}, over the limit" if best else "none"
        after = f"; next at {iso(due.replace(microsecond=0))}" if due else ""
        self._output.talk(
            f"{iso(self._door.clock.now().replace(microsecond=0))}  round {number}: "
            f"{asked} of {places} answered, {seen}{after}"
        )

    def standing(self) -> None:
        """The yard's clock does not move by itself; said once a wait."""
        if self._stood:
            return
        self._stood = True
        self._output.talk(
            f"the yard's clock stands still at {iso(self._door.clock.now())}; move it: "
            "berth yard clock advance 5m"
        )


class _Measuring(Aloud):
    """Says nothing of single places, and remembers how long a round takes at least."""

    def __init__(self, output: Output, door: Door) -> None:
        super().__init__(output, door.clock, len(door.regions))
        self.least_s = 0.0

    def begins(self, questions: int, seconds: float) -> None:
        """Announce a long round, the first time."""
        if not self.least_s:
            super().begins(questions, seconds)
        self.least_s = max(self.least_s, seconds)

    def told(self, answer: PlaceAnswer, so_far: Plan | None) -> None:
        """Not said: a line a round is enough."""


class _Teller:
    """Tells what a wait found, each channel once, whatever dies meanwhile."""

    def __init__(self, output: Output, history: History, wait: str, told: Sequence[Channel]) -> None:
        self._output = output
        self._history = history
        self._wait = wait
        self._channels = told

    def found_before(self) -> str | None:
        """What the same command found before; None while it has not."""
        found = self._history.found(self._wait)
        if found is None:
            return None
        at, said = found
        told = f"found {iso(at.replace(microsecond=0))}, told once: {said}"
        self._output.answer("\n".join(wrapped(told, hang=2)))
        self._output.document({"schema": SCHEMA, "found": True, "before": True, "at": iso(at), "said": said})
        return said

    def keep(self, at: datetime, said: str) -> None:
        """Write down what was found, then tell it."""
        try:
            self._history.keep_found(self._wait, at, said)
        except TROUBLES as problem:
            raise BerthError(
                ExitCode.INTERNAL_ERROR, f"something fits, and it cannot be written down: {problem}; {said}"
            ) from None
        self._output.talk(f"{self._output.bell()}{said}")
        self.tell(said)

    def tell(self, said: str) -> None:
        """Tell each channel that has not been told. One that was being told when we died counts as told."""
        for channel in self._channels:
            if self._history.telling(self._wait, channel.key) not in {None, "refused"}:
                continue
            self._history.keep_telling(self._wait, channel.key, "telling")
            try:
                channel.tell(Notice("Berth: something fits", said))
            except NotTold as problem:
                self._history.keep_telling(self._wait, channel.key, "refused")
                self._output.talk(
                    f"warning: {channel.shown} was not told ({problem}); the same command again tries again"
                )
                continue
            except InDoubt as problem:
                self._output.talk(f"warning: whether {channel.shown} was told is not known ({problem})")
            self._history.keep_telling(self._wait, channel.key, "told")


def not_found(waited: Waited, wish: Wish) -> BerthError:
    """How a wait ends that found nothing: no capacity when all places answered in the last round."""
    from berth.cli.plan_ends import next_of_unanswered
    from berth.planner.choose import unanswered

    limit = f" for {wish.most} or less" if wish.most else ""
    if unanswered(waited.plan):
        return BerthError(
            ExitCode.INCOMPLETE,
            f"nothing fitted{limit} until {wish.until}, and not every place answered in the last round",
            next_of_unanswered(waited.plan),
        )
    return BerthError(
        ExitCode.NO_CAPACITY,
        f"nothing fitted{limit} until {wish.until}; every place answered (rounds: {waited.rounds})",
        "widen the need, raise --max-total, or wait longer",
    )
