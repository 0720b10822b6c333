"""The questions that lead a newcomer to a need file. Pure: which comes next, and what an answer means.

What may be answered is what the need file's reader takes: an answer is tried in a file of its own, so guide
and file refuse the same things in the same words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.planner.day_words import day_words
from berth.planner.need import Goal, Need
from berth.planner.need_file import NeedError, read_need
from berth.terms.ways import Target, Way

Answers = Mapping[str, str]
"""What was typed, by key of the need file, in the order of asking; '' for what was left out."""


def _always(answers: Answers) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `example` and `explain` are for the person; `default` is taken for an empty answer.

    An empty default leaves the key out of the file, unless the question is `needed`. `applies` says whether
    the answers so far make it worth asking.
    """

    key: str
    text: str
    example: str
    explain: str
    default: str = ""
    needed: bool = False
    applies: Callable[[Answers], bool] = _always


def _on_ec2(answers: Answers) -> bool:
    return answers.get("target") == Target.INSTANCES


def _is_range(answers: Answers) -> bool:
    return ".." in answers.get("duration", "")


def _by_type(answers: Answers) -> bool:
    return bool(answers.get("type"))


def _may_move(answers: Answers) -> bool:
    return not answers.get("start")


def _several_together(answers: Answers) -> bool:
    together = answers.get("target") not in {Target.ENDPOINT, Target.STUDIO_APPS}
    return together and (answers.get("count", "") != "1" or bool(answers.get("count_wanted")))


QUESTIONS = (
    Question(
        "target", "What will run?", "endpoint",
        "instances: machines of your own on EC2. training-job, hyperpod-cluster, endpoint, studio-apps: "
        "SageMaker manages the machines. This decides which ways to get them exist at all.",
        Target.INSTANCES.value, needed=True,
    ),
    Question(
        "name", "What is it called?", "eval-1",
        "Lower-case letters, digits and hyphens, at most 40. Orders and names on AWS derive from it.",
        "first-need", needed=True,
    ),
    Question(
        "type", "Which type of machine? Several with commas; Enter to name accelerators instead.",
        "p5.48xlarge, or ml.trn1.32xlarge for SageMaker",
        "AWS's name of the hardware, with ml. for SageMaker. The more types would do, the more there is to "
        "choose from. If you know the GPU only, press Enter.",
    ),
    Question(
        "accelerators", "Which accelerators, and how many?", "H200:16, or H100:8:80 for 80 GiB each",
        "Kind and number, and the least memory of each if that matters. All types that have them are asked, "
        "each with the number of machines that is enough.",
        needed=True, applies=lambda answers: not _by_type(answers),
    ),
    Question(
        "count", "How many machines at least?", "2",
        "Fewer are of no use. One Capacity Block holds 64 at most, more become several; training plans are "
        "sold in 1, 2, 4, 8, 16, 32 and 64.",
        "1", needed=True, applies=_by_type,
    ),
    Question(
        "count_wanted", "And how many at best? Enter: no more than that.", "4",
        "Offers for as many are preferred, offers for fewer are shown as well.", applies=_by_type,
    ),
    Question(
        "duration", "For how long?", "24h, 7d, or a range: 5d..9d",
        "The time to hold and to pay. AWS takes the machines back 30 or 60 minutes earlier. Capacity Blocks "
        "last 1 to 14 days, then whole weeks. A range finds more than one length does.",
        "1d", needed=True,
    ),
    Question(
        "goal", "Which length of the range is best?", "shortest",
        "shortest: the least that meets the need. longest: as long as the budget pays. cheapest-hour: where "
        "a usable hour costs least.",
        Goal.SHORTEST.value, needed=True, applies=_is_range,
    ),
    Question(
        "budget", "How much may it cost in all? Enter: no limit.", "5000 USD",
        "What costs more is shown and not chosen. Blocks and plans are paid at once and never refunded.",
    ),
    Question(
        "time_zone", "In which time zone do you plan?", "Europe/Berlin",
        "An IANA name. Days begin and end there; AWS's own times are UTC and are shown beside.",
        "UTC", needed=True,
    ),
    Question(
        "start", "Is the start fixed? Then when; Enter if it may move.", "2026-12-02 12:30",
        "A fixed start needs a promise, and only reservations promise. Blocks and plans begin at 11:30 UTC, "
        "or at once.",
    ),
    Question(
        "earliest_start", "Not before which day?", "Monday, tomorrow, or 5 March",
        "A day, or an instant like `next friday 09:00`. `today` means from now on; a weekday is written as "
        "its date.", "today", needed=True, applies=_may_move,
    ),
    Question(
        "latest_end", "Over by the end of which day? Enter: any.", "Friday, or 5 March",
        "That day counts whole, until its midnight in your time zone.", applies=_may_move,
    ),
    Question(
        "regions", "In which Regions? With commas; Enter: that of your AWS configuration.",
        "us-east-1, us-west-2",
        "More Regions find more. Data that has to be moved between them costs extra.",
    ),
    Question(
        "subnet_zones", "In which zones do you have subnets? Zone ids, with commas; Enter: not said.",
        "use1-az4, use1-az6",
        "Offers elsewhere are marked `needs a subnet`. Ids, not names: us-east-1a is another zone in every "
        "account.",
        applies=_on_ec2,
    ),
    Question(
        "same_zone", "Must all of it be in one zone? Enter: as it is usual.", "yes, or no",
        "Usual is one zone for several machines that work together: their traffic stays there. With `no` "
        "more can be combined.",
        applies=_several_together,
    ),
    Question(
        "not_ways", "Which ways must not be used? With commas; Enter: none.", "on-demand, spot",
        f"{', '.join(Way)}. What you leave out is neither asked nor combined; every other way is judged.",
    ),
    Question(
        "interruptible", "Does the work survive two minutes' notice?", "yes, or no",
        "If so Spot is worth a look: much cheaper, and it may end at any time. Enter: you do not know.",
        applies=_on_ec2,
    ),
    Question(
        "checkpoint_every", "How often does it save what it has done?", "1h",
        "At most that much work is lost when it is interrupted. Enter: you do not know.",
        applies=lambda answers: answers.get("interruptible") == "yes",
    ),
    Question(
        "utilisation", "In which share of the time will something run?", "0.6",
        "Reserved time is paid used or idle, so this decides whether it is cheaper than on-demand. Enter: "
        "you do not know, and nothing is guessed.",
    ),
    Question(
        "startup", "How long until a machine works, from its start?", "20min",
        "Images, models, caches: it is paid and nothing runs. Enter: you do not know.",
    ),
)  # fmt: skip
_LISTS = {"type", "regions", "subnet_zones", "not_ways"}
_NUMBERS = {"count", "count_wanted", "utilisation"}
_YES_NO = {"interruptible", "same_zone"}


def next_question(answers: Answers) -> Question | None:
    """The first question that applies and has no answer yet; None when all is known."""
    return next((q for q in QUESTIONS if q.key not in answers and q.applies(answers)), None)


def taken(question: Question, typed: str) -> str:
    """The answer that `typed` means: the default where nothing was typed."""
    return typed.strip() or question.default


def complaint(question: Question, answer: str, answers: Answers, now: datetime | None) -> str:
    """What is wrong with `answer`, in one sentence; '' when it is good.

    `now` decides what is past; None: the clock that counts is not known here.
    """
    if not answer:
        return "this one has to be answered" if _has_to_be(question, answers) else ""
    if question.key in _YES_NO and answer not in {"yes", "no"}:
        return "write yes or no"
    try:
        read_need(_whole({**answers, question.key: answer}), "answers", now)
    except NeedError as wrong:
        return next((c.message for c in wrong.complaints if c.key.split(".")[0] == question.key), "")
    except ValueError as wrong:
        return str(wrong)
    return ""


def understood(question: Question, answer: str, answers: Answers, now: datetime | None) -> tuple[str, str]:
    """What is written for a good `answer`, and how it was read where it is a day in words ('' where not).

    A weekday is written as its date: a file is read on other days too, and then it would be another one.
    """
    try:
        need = read_need(_whole({**answers, question.key: answer}), "answers", now)
    except ValueError:  # about answers that are still to come
        return answer, ""
    said, words = day_words(answer), [r for r in need.readings if r.key == question.key]
    if said is None or now is None or need.zone is None or not words:
        return answer, ""
    local = words[0].instant.astimezone(need.zone)
    told = words[0].text(need.zone, now.astimezone(need.zone).year)
    if said.weekday is None:
        return answer, told
    if not words[0].whole_day:
        return f"{local:%Y-%m-%d %H:%M}", told
    last = (words[0].instant - timedelta(seconds=1)).astimezone(need.zone)
    return (last if question.key == "latest_end" else local).date().isoformat(), told


def _has_to_be(question: Question, answers: Answers) -> bool:
    unbounded = question.key == "budget" and answers.get("goal") == Goal.LONGEST
    return question.needed or unbounded


def need_toml(answers: Answers) -> str:
    """The need file that the answers make, its name first; what was left out is not in it."""
    named = sorted(answers.items(), key=lambda answered: answered[0] != "name")
    lines = [f"{key} = {_toml(key, answer)}" for key, answer in named if answer]
    return "\n".join(lines) + "\n" if lines else ""


def need_of(answers: Answers, now: datetime | None) -> Need:
    """The need that the answers make. Raises NeedError, which whole answers do not."""
    return read_need(need_toml(answers), "answers", now)


def _whole(answers: Answers) -> str:
    """A file of the answers so far, in which what is not asked yet does not stand in the way."""
    standing = {"name": "draft", "duration": "1d", "target": Target.INSTANCES.value}
    if not answers.get("type") and not answers.get("accelerators"):
        standing["accelerators"] = "H100:8"
    if answers.get("goal") == Goal.LONGEST:
        standing["budget"] = "1 USD"
    return need_toml({**standing, **{key: answer for key, answer in answers.items() if answer}})


def _toml(key: str, answer: str) -> str:
    if key in _LISTS:
        items = [item.strip() for item in answer.split(",") if item.strip()]
        return json.dumps(items[0] if key == "type" and len(items) == 1 else items)
    if key in _YES_NO:
        return "true" if answer == "yes" else "false"
    if key in _NUMBERS and _is_number(answer):
        return answer
    return json.dumps(answer, ensure_ascii=False)


def _is_number(text: str) -> bool:
    whole, dot, part = text.partition(".")
    digits = whole.isascii() and whole.isdecimal() and (whole == "0" or not whole.startswith("0"))
    return digits and (not dot or (part.isascii() and part.isdecimal()))
