"""The best combination as lines of 80 columns, in the style of the plan's text."""

from __future__ import annotations

from datetime import timedelta

from berth.facts.instance_types import instance_type
from berth.facts.regions import in_local_zone
from berth.planner.best.changes import Kind as ChangeKind
from berth.planner.best.combination import (
    Combination,
    Evidence,
    IfQuota,
    Mix,
    NeededChange,
    OtherMix,
    Piece,
)
from berth.planner.best.others import Kind
from berth.planner.need import Need
from berth.planner.phrases import HANG, WIDTH, hours_minutes, hung, label, money_text, window_text, wrapped
from berth.terms.durations import spoken
from berth.terms.text import plain
from berth.terms.window import Window

_ROW = "{:<3}{:<16}{:<15}{:<24}{:>6}{:>16}"
_DIFFERS = {
    Kind.PROMISED: "all of it promised",
    Kind.ONE_PIECE: "one offer alone",
    Kind.SAME_ZONE: "in one zone",
    Kind.EARLIER: "done earlier",
    Kind.WANTED: "with the wanted counts",
    Kind.OTHER_PLACE: "elsewhere",
}
_CHANGED = {
    ChangeKind.BUDGET: "a budget of",
    ChangeKind.END: "a latest end of",
    ChangeKind.START: "a start at",
    ChangeKind.ZONES: "allowing",
    ChangeKind.COUNT: "a least count of",
    ChangeKind.GAP: "a gap of",
    ChangeKind.DURATION: "a duration of",
}


def combination_lines(
    combination: Combination, need: Need, *, leads: bool = True, explain: bool = False
) -> list[str]:
    """The block that tells of a combination. `leads`: it is the plan's answer (see `Plan.mix_leads`).
    `explain` adds what is proven and what was not compared.
    """
    if combination.trouble:
        return hung(f"not looked for: {combination.trouble}. Single offers are ranked all the same", "MIX")
    best, evidence, supposed = combination.best, combination.evidence, combination.if_quota
    lines: list[str] = []
    if best is not None and evidence is not None:
        head = f"{'BEST' if leads else 'MIX':<{HANG}}{need.handle_of_mix}"
        lines += _best_lines(best, evidence, combination.instance_type, head)
        lines += _quota_lines(combination)
        for other in combination.others:
            lines += hung(_other(other), "  or")
    elif supposed is None or combination.changes:
        lines += _nothing_lines(combination)
    if combination.left_out:
        said = "nothing that can be counted on was seen for it"
        lines += hung(f"without {', '.join(combination.left_out)}: {said}", "  care")
    if supposed is not None:
        lines += _supposed_lines(supposed)
    return _cares_once(lines) + (_explained(combination) if explain else [])


def _cares_once(lines: list[str]) -> list[str]:
    """Cares that follow each other, under one word."""
    told, last = [], ""
    for line in lines:
        word = line[:HANG].strip()
        told.append(f"{'':<{HANG}}{line[HANG:]}" if word == last == "care" else line)
        last = word or last
    return told


def _quota_lines(combination: Combination) -> list[str]:
    """What the hours take of the account's quotas, and what hours alone would cost."""
    lines = [line for one in combination.quotas for line in hung(f"takes {one.sentence}", "  care")]
    if combination.by_the_hour is not None:
        alone = f"by the hour alone it would cost {money_text(combination.by_the_hour)}"
        lines += hung(f"{alone}, and on the day it may be refused", "  care")
    return lines


def _supposed_lines(supposed: IfQuota) -> list[str]:
    """A mix that depends on a quota: never mistaken for one that can be had."""
    mix = supposed.mix
    needs = "; ".join(need.sentence for need in supposed.needs)
    told = f"if your quota allows {needs}: {_made_of(mix)}, {money_text(mix.total)} in all"
    return hung(told, "IF") + _rows(mix)


def _best_lines(best: Mix, evidence: Evidence, kind: str, head: str) -> list[str]:
    offers = f"{evidence.seen} {'offer' if evidence.seen == 1 else 'offers'}"
    lines = wrapped(f"{head}  {_made_of(best)}  {money_text(best.total)} in all", HANG)
    told = f"best of the {offers} seen, for {hours_minutes(best.usable)} of use"
    if best.per_accelerator_hour is not None:
        told += f", {best.per_accelerator_hour.amount:,.3f}/{_acc(kind)}"
    lines += hung(f"{told}: {_proven(evidence)}", "  why")
    lines.append(_ROW.format("", "WAY", "PLACE", "PAID UTC", "COUNT", "TOTAL").rstrip())
    lines += _rows(best)
    if any(not p.promised for p in best.pieces):
        lines += hung("what is paid by the hour may be refused on the day", "  care")
    if len(best.running) > 1:
        pauses = [b.start - a.end for a, b in zip(best.running, best.running[1:], strict=False)]
        off = spoken(sum(pauses, timedelta()))
        times = "once" if len(pauses) == 1 else f"{len(pauses)} times"
        lines += hung(f"it pauses {times}, {off} in all: checkpoint", "  care")
    if best.beyond_one_search:
        said = (
            f"{best.beyond_one_search} at once in one zone are more than a search can be asked for: nothing"
        )
        lines += hung(f"{said} confirms that all are there, and each purchase searches again", "  care")
    for zone in dict.fromkeys(
        p.zone_id for p in best.pieces if p.promised and in_local_zone(p.region, p.zone_id)
    ):
        said = f"{plain(zone or '', 20)} is a Local Zone: opt in to it and have a subnet there first"
        lines += hung(said, "  care")
    return lines + _bought_cares(sum(p.promised for p in best.pieces))


def _bought_cares(bought: int) -> list[str]:
    if bought > 1:
        said = "each purchase is one of its own, without refund or cancel: should one fail, what was bought "
        return hung(f"{said}before it stays", "  care")
    return hung("what is bought can neither be cancelled nor given back", "  care") if bought else []


def _made_of(best: Mix) -> str:
    """`2 purchases together`, `1 purchase, the rest on-demand`."""
    bought = sum(piece.promised for piece in best.pieces)
    metered = list(dict.fromkeys(label(piece.way) for piece in best.pieces if not piece.promised))
    if not bought:
        return f"nothing to buy, {' and '.join(metered)} alone"
    told = f"{bought} {'purchase' if bought == 1 else 'purchases'}"
    if metered:
        return f"{told}, the rest {' and '.join(metered)}"
    return told if bought == 1 else f"{told} together"


def _rows(mix: Mix) -> list[str]:
    """A row for each piece; of several types each says its own."""
    several = len({piece.instance_type for piece in mix.pieces}) > 1
    letters = zip("abcdefghijklmnopqrstuvwxyz" * 9, mix.pieces, strict=False)
    return [line for letter, piece in letters for line in _piece_lines(letter, piece, several=several)]


def _piece_lines(letter: str, piece: Piece, *, several: bool) -> list[str]:
    count = str(piece.count) if piece.count == piece.of else f"{piece.count} of {piece.of}"
    where = plain(piece.zone_id or piece.region, 16)
    windows = [window_text(w, fixed=False) for w in piece.paid]
    cost = money_text(piece.cost)
    lines = [_ROW.format(letter, label(piece.way), where, windows[0], count, cost).rstrip()]
    if len(lines[0]) > WIDTH:  # a large sum in a currency that is written out has a line of its own
        lines = [
            _ROW.format(letter, label(piece.way), where, windows[0], count, "").rstrip(),
            f"{cost:>{WIDTH}}",
        ]
    lines += [_ROW.format("", "", "", window, "", "").rstrip() for window in windows[1:]]
    kind = plain(piece.instance_type, 40) if several else ""
    name = "  ".join(filter(None, (plain(piece.offering_id or "", 60 - len(kind)), kind)))
    return lines + ([f"{'':<3}{name}"] if name else [])


def _acc(kind: str) -> str:
    known = instance_type(kind)
    return "GPU-h" if known is not None and known.vendor == "NVIDIA" else "acc-h"


def _proven(evidence: Evidence) -> str:
    if evidence.optimal:
        return "no combination of what was seen costs less; that is proven"
    above = f"at most {evidence.gap * 100:.2f} % dearer than any combination of what was seen can be"
    return f"{above} (bound {money_text(evidence.bound)})"


def _other(other: OtherMix) -> str:
    differs = _DIFFERS.get(Kind(other.kind)) if other.kind in set(Kind) else other.kind
    if other.way is not None:
        differs = f"without {label(other.way)}"
    if other.kind == Kind.OTHER_PLACE:
        places = {piece.zone_id or piece.region for piece in other.mix.pieces if piece.promised}
        differs = f"elsewhere, {plain(', '.join(sorted(places)), 60)}"
    return f"{money_text(other.mix.total)} {differs}: {', '.join(_trades(other)) or 'at the same price'}"


def _trades(other: OtherMix) -> list[str]:
    told = []
    if other.dearer.amount:
        by = money_text(type(other.dearer)(abs(other.dearer.amount), other.dearer.currency))
        told.append(f"{by} {'dearer' if other.dearer.amount > 0 else 'cheaper'}")
    if other.later:
        told.append(f"{spoken(abs(other.later))} {'later' if other.later > timedelta(0) else 'earlier'}")
    told += _number(other.places, "place", "places")
    told += _number(other.pieces, "piece", "pieces")
    if other.unpromised:
        more = "more" if other.unpromised > 0 else "fewer"
        told.append(f"{abs(other.unpromised):,.1f} instance-hours {more} without promise")
    if other.wanted > 0:
        told.append(f"{other.wanted:,.1f} instance-hours more of what is wanted")
    return told


def _number(difference: int, one: str, many: str) -> list[str]:
    if not difference:
        return []
    noun = one if abs(difference) == 1 else many
    return [f"{abs(difference)} {noun} {'more' if difference > 0 else 'fewer'}"]


# -- nothing fits ------------------------------------------------------------------------------------------
def _nothing_lines(combination: Combination) -> list[str]:
    proof = "" if combination.settled else ", as far as was looked"
    lines = hung(f"nothing that was seen fits, alone or together{proof}", "MIX")
    if not combination.changes:
        return lines + hung("no single change of the need would help either", "  if")
    return lines + [line for change in combination.changes for line in hung(_change(change), "  if")]


def _change(change: NeededChange) -> str:
    words = _CHANGED.get(ChangeKind(change.kind)) if change.kind in set(ChangeKind) else change.kind
    pieces = len(change.mix.pieces)
    noun = "piece" if pieces == 1 else "pieces"
    return f"{words} {change.value}: {money_text(change.mix.total)} in {pieces} {noun}, {_span(change.mix)}"


def _span(mix: Mix) -> str:
    return window_text(Window(mix.running[0].start, mix.running[-1].end), fixed=False)


def explained(combination: Combination | None, *, compared: bool = True) -> str:
    """What is proven about a combination, and what was not compared. None: no mix beats the first choice.

    `compared`: whether there is a first choice whose total is known.
    """
    if combination is None and not compared:
        return "\n".join(hung("nothing is proven: nothing that fits at a known price was seen", "PROOF"))
    if combination is None:
        return "\n".join(hung("no mix of what was seen is cheaper than the first choice", "PROOF"))
    if combination.best is None and combination.if_quota is not None:
        return "\n".join(hung("no mix that can be counted on is cheaper than the first choice", "PROOF"))
    told = _explained(combination)
    if not told:
        return "\n".join(hung("nothing is proven: no combination was looked for", "PROOF"))
    return "\n".join(["PROOF  of the combination above", *told])


# -- proof -------------------------------------------------------------------------------------------------
def _explained(combination: Combination) -> list[str]:
    lines = _evidence_lines(combination.evidence) if combination.evidence else []
    for name, reason in combination.refused:
        lines += hung(f"{plain(name, 60)} {reason}", "  not")
    return lines


def _evidence_lines(evidence: Evidence) -> list[str]:
    how = "the linear program alone gave whole numbers"
    if not evidence.whole:
        how = f"{evidence.nodes} {'node' if evidence.nodes == 1 else 'nodes'} searched"
    noun = "start and place" if evidence.scenes == 1 else "starts and places"
    looked = f"{evidence.scenes} {noun} looked at"
    if evidence.left_out:
        looked += f", {evidence.left_out} left out"
    bound = f"bound {money_text(evidence.bound)}, gap {evidence.gap * 100:.2f} %"
    return hung(f"{bound}; {looked}; {how}", "  how")
