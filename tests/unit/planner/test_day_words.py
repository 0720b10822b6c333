"""Days in words: which day they mean in the need's zone, what is told back, and where there is a doubt."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from berth.planner.choose import make_plan
from berth.planner.day_words import MONTHS, WEEKDAYS, day_words
from berth.planner.guide import QUESTIONS, complaint, understood
from berth.planner.local_dates import day_end, day_start
from berth.planner.need import Need
from berth.planner.need_file import NeedError, read_need
from berth.planner.need_times import read_end
from berth.planner.wording import plan_text

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)  # a Tuesday, 04:00 in New York
NEW_YORK = ZoneInfo("America/New_York")
TEXT = """\
name = "p5en-1207"
type = "p5en.48xlarge"
count = 2
duration = "5d..9d"
target = "instances"
regions = ["us-east-2"]
time_zone = "America/New_York"
"""
# Zones whose clocks change by an hour, by half an hour, at midnight, or never.
ZONES = (
    "America/New_York", "Europe/Berlin", "America/Havana", "Asia/Beirut", "America/Asuncion",
    "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Auckland", "Africa/Cairo", "UTC",
)  # fmt: skip
MINUTES = int((datetime(2029, 12, 30, tzinfo=UTC) - NOW).total_seconds() // 60)
NOWS = st.integers(-MINUTES, MINUTES).map(lambda minutes: NOW + timedelta(minutes=minutes))


def read(**keys: str) -> Need:
    """The need with further keys, read at NOW."""
    return read_need(written(keys), "need.toml", NOW)


def draft(**keys: str) -> Need:
    """The same where no clock is known yet."""
    return read_need(written(keys), "need.toml", None)


def written(keys: dict[str, str]) -> str:
    """The need file with further keys."""
    return TEXT + "".join(f'{key} = "{value}"\n' for key, value in keys.items())


def refused(**keys: str) -> str:
    """What is said about a need that cannot be."""
    with pytest.raises(NeedError) as found:
        read(**keys)
    return "\n".join(found.value.lines())


def told(need: Need) -> str:
    """The head of the plan's text, without its line breaks."""
    text = plan_text(make_plan(need, [], [], NOW), "")
    assert max(map(len, text.splitlines())) <= 80
    return " ".join(text.split("\n\n")[0].split())


@pytest.mark.parametrize(
    ("text", "day", "at", "other"),
    [
        ("today", date(2026, 12, 1), None, None),
        ("Tomorrow 08:15", date(2026, 12, 2), time(8, 15), None),
        ("Monday", date(2026, 12, 7), None, None),
        ("from monday", date(2026, 12, 7), None, None),
        ("next Monday", date(2026, 12, 7), None, None),
        ("fri", date(2026, 12, 4), None, None),
        ("this friday", date(2026, 12, 4), None, None),
        ("next friday 09:00", date(2026, 12, 4), time(9), date(2026, 12, 11)),
        ("tuesday", date(2026, 12, 1), None, date(2026, 12, 8)),
        ("tuesday at 09:00", date(2026, 12, 1), time(9), date(2026, 12, 8)),
        ("tuesday 03:00", date(2026, 12, 8), time(3), None),
        ("next tuesday", date(2026, 12, 8), None, None),
        ("mon 7 dec", date(2026, 12, 7), None, None),
        ("Mon, 7 December 9:30", date(2026, 12, 7), time(9, 30), None),
        ("monday 2026-12-07 10:00", date(2026, 12, 7), time(10), None),
        ("mon dec 7", date(2026, 12, 7), None, None),
        ("December 7, 2026", date(2026, 12, 7), None, None),
        ("until 5 March", date(2027, 3, 5), None, None),
        ("30 November", date(2027, 11, 30), None, None),
        ("29 Feb", date(2028, 2, 29), None, None),
        ("5 March 2028 14:00", date(2028, 3, 5), time(14), None),
        ("2027-01-02", date(2027, 1, 2), None, None),
    ],
)
def test_days_as_people_write_them(text: str, day: date, at: time | None, other: date | None) -> None:
    """The first that comes; another day only where somebody else might mean it."""
    said = day_words(text)
    assert said is not None
    meant = said.meant(NEW_YORK, NOW)
    assert (meant.day, meant.at, meant.other) == (day, at, other)


@pytest.mark.parametrize("text", ["2027-01-02T10:00Z", "2027-01-02 10:00", "soon", "mo", "friday-ish", ""])
def test_what_names_no_day_is_left_to_others(text: str) -> None:
    """Instants, and words that are not known."""
    assert day_words(text) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("31 February", "there is no 31 February"),
        ("31 Feb 2027", "there is no 31 February in 2027"),
        ("2027-13-01", "there is no 1 month 13 in 2027"),
        ("5 Juvember", "'juvember' is not the name of a month"),
        ("friday 24:00", "24:00 is no time of day; there are 0:00 to 23:59"),
        ("tue 7 dec", "7 December 2026 is a Monday, not a Tuesday"),
        ("monday 2027-12-07", "7 December 2027 is a Tuesday, not a Monday"),
        ("mon 30 nov", "30 November 2027 is a Tuesday, not a Monday"),
    ],
)
def test_a_day_that_is_none_is_refused_with_the_reason(text: str, said: str) -> None:
    """A date beside a weekday is checked, never quietly moved."""
    assert said in refused(earliest_start=text)


def test_from_monday_is_told_with_its_date_and_when_blocks_begin() -> None:
    """The words, the date, the local time of the first instant, and that of the blocks' own start."""
    need = read(earliest_start="Monday")
    assert need.earliest_start == datetime(2026, 12, 7, 5, tzinfo=UTC)
    assert '"from Monday" = Mon 7 Dec 00:00 New York; blocks start 11:30Z = 06:30.' in told(need)
    assert Need.from_json(need.to_json()) == need


def test_a_bound_in_words_is_read_after_the_other_bound() -> None:
    """From next Monday until Friday: the Friday after it; from 30 December until 5 January: of next year."""
    need = read(earliest_start="next monday", latest_end="until fri")
    assert need.latest_end == datetime(2026, 12, 12, 5, tzinfo=UTC)
    assert '"until fri" = to the end of Fri 11 Dec, New York.' in told(need)
    over = read(earliest_start="30 December", latest_end="5 January")
    assert over.latest_end == datetime(2027, 1, 6, 5, tzinfo=UTC)
    assert '"until 5 January" = to the end of Tue 5 Jan 2027, New York.' in told(over)


def test_a_doubt_is_told_with_what_to_write() -> None:
    """Two readings of `next friday`, and of today's own name; what has begun is from now on."""
    said = told(read(earliest_start="next friday 09:00"))
    assert '"from next friday 09:00" = Fri 4 Dec 09:00 New York; if Fri 11 Dec is meant, write ' in said
    assert "write 2026-12-11 09:00; blocks start 11:30Z = 06:30." in said
    need = read(earliest_start="tuesday")
    assert need.earliest_start == NOW
    assert (
        '"from tuesday" = from now on, Tue 1 Dec, New York; if Tue 8 Dec is meant, write 2026-12-08'
        in told(need)
    )


def test_where_the_clocks_change_meanwhile_both_hours_are_told() -> None:
    """Saturday's block starts at 06:30 in New York; Sunday's, after the change of 14 March, at 07:30."""
    now = datetime(2027, 3, 10, 12, tzinfo=UTC)
    keys = {"earliest_start": "sat", "latest_end": "sunday"}
    text = written(keys).replace('"5d..9d"', '"24h"')
    need = read_need(text.replace('"sunday"', '"monday"'), "need.toml", now)
    said = " ".join(plan_text(make_plan(need, [], [], now), "").split())
    assert (
        '"from sat" = Sat 13 Mar 00:00 New York; blocks start 11:30Z = 06:30, 07:30 once the clocks' in said
    )
    before = read_need(text, "need.toml", now)  # only Saturday's block ends by then
    assert "once the clocks" not in plan_text(make_plan(before, [], [], now), "")


def test_a_fixed_start_takes_a_weekday_with_its_time_only() -> None:
    """A start without a time of day is none."""
    need = read(start="friday 06:30")
    assert need.start == datetime(2026, 12, 4, 11, 30, tzinfo=UTC)
    assert '"friday 06:30" = Fri 4 Dec 06:30 New York.' in told(need)
    assert "must be an instant with a time of day" in refused(start="friday")


def test_a_need_with_dates_and_instants_tells_no_reading() -> None:
    """What says its year moves with nothing."""
    assert read(earliest_start="2026-12-07", latest_end="2026-12-20T10:00Z").readings == ()


def test_without_a_zone_or_a_clock() -> None:
    """No zone: refused. The clock not known yet: form and dates are checked, what moves is left open."""
    with pytest.raises(NeedError, match="a day needs a zone"):
        read_need(TEXT.replace("time_zone", "#") + 'earliest_start = "monday"\n', "need.toml", NOW)
    open_yet = draft(earliest_start="30 December", latest_end="5 January")
    assert (open_yet.earliest_start, open_yet.latest_end, open_yet.readings) == (None, None, ())
    assert draft(earliest_start="2020-01-01").earliest_start == datetime(2020, 1, 1, 5, tzinfo=UTC)
    with pytest.raises(NeedError, match="no 31 February"):
        draft(earliest_start="31 February")
    with pytest.raises(NeedError, match="is fixed already"):
        draft(start="friday 09:00", latest_end="saturday")


def test_the_nights_on_which_clocks_change() -> None:
    """On such a Sunday 02:30 does not exist, or happens twice: refused; the day itself is 23 or 25 h long."""
    for now, at, what, hours in (
        (datetime(2027, 3, 10, tzinfo=UTC), "02:30", "does not exist", 23),
        (datetime(2026, 10, 28, tzinfo=UTC), "01:30", "happens twice", 25),
    ):
        with pytest.raises(ValueError, match=what):
            read_end(f"sunday {at}", NEW_YORK, now)
        (saturday, _), (sunday, _) = (read_end(day, NEW_YORK, now) for day in ("saturday", "sunday"))
        assert sunday - saturday == timedelta(hours=hours)


@settings(deadline=None, max_examples=300)
@given(NOWS, st.sampled_from(ZONES), st.integers(0, 6), st.sampled_from(["", "this ", "next "]))
def test_a_weekday_is_the_first_that_comes(now: datetime, name: str, number: int, lead: str) -> None:
    """Within a week of today, on that weekday, across years and clock changes; `next` is never today."""
    zone = ZoneInfo(name)
    said = day_words(lead + WEEKDAYS[number][: 3 + number % 4])
    assert said is not None
    meant = said.meant(zone, now)
    today = now.astimezone(zone).date()
    assert meant.day.weekday() == number
    assert timedelta(days=lead == "next ") <= meant.day - today <= timedelta(days=7 if lead == "next " else 6)
    assert meant.other is None or meant.other == meant.day + timedelta(days=7)
    if lead != "next ":
        assert (meant.other is not None) == (meant.day == today), "only today's own name is in doubt"
    end, reading = read_end(lead + WEEKDAYS[number], zone, now)
    assert reading is not None
    assert (reading.instant, reading.other) == (end, meant.other)
    assert end == day_end(meant.day, zone) > day_start(meant.day, zone)
    assert (end - timedelta(microseconds=1)).astimezone(zone).date() == meant.day


@settings(deadline=None, max_examples=300)
@given(NOWS, st.sampled_from(ZONES), st.integers(0, 6), st.times())
def test_a_weekday_with_a_time_is_the_first_that_is_not_over(
    now: datetime, name: str, number: int, at: time
) -> None:
    """It comes back as that wall time, less than eight days off; skipped and doubled times are refused."""
    zone, at = ZoneInfo(name), at.replace(second=0, microsecond=0)
    text, today = f"{WEEKDAYS[number]} {at:%H:%M}", now.astimezone(zone).date()
    same = datetime.combine(today + timedelta(days=(number - today.weekday()) % 7), at, tzinfo=zone)
    if same.utcoffset() != same.replace(fold=1).utcoffset():
        with pytest.raises(ValueError, match="the clocks change"):
            read_end(text, zone, now)
        return
    later = same + timedelta(days=7)
    assume(later.utcoffset() == later.replace(fold=1).utcoffset())
    instant, _ = read_end(text, zone, now)
    local = instant.astimezone(zone)
    assert (local.weekday(), local.time()) == (number, at)
    assert now <= instant <= now + timedelta(days=7, hours=3)


@settings(deadline=None, max_examples=300)
@given(NOWS, st.sampled_from(ZONES), st.dates(date(2024, 1, 1), date(2024, 12, 31)), st.booleans())
def test_a_date_without_a_year_is_the_next_and_its_weekday_must_agree(
    now: datetime, name: str, some: date, beside: bool
) -> None:
    """Never before today, at most a year ahead but for 29 February."""
    zone, today = ZoneInfo(name), now.astimezone(ZoneInfo(name)).date()
    text = f"{some.day} {MONTHS[some.month - 1]}"
    said = day_words(text)
    assert said is not None
    day = said.meant(zone, now).day
    assert (day.day, day.month) == (some.day, some.month)
    assert day >= today
    leap = (some.day, some.month) == (29, 2)
    assert leap or day - today <= timedelta(days=366)
    weekday = WEEKDAYS[(day.weekday() + (not beside)) % 7]
    dated = day_words(f"{weekday[:3]} {text}")
    assert dated is not None
    if beside:
        assert dated.meant(zone, now).day == day
    else:
        with pytest.raises(ValueError, match=f"not a {weekday.title()}"):
            dated.meant(zone, now)


@pytest.mark.parametrize(
    ("key", "answer", "written", "said"),
    [
        ("earliest_start", "monday", "2026-12-07", '"from monday" = Mon 7 Dec 00:00 New York'),
        (
            "earliest_start",
            "next friday 09:00",
            "2026-12-04 09:00",
            "if Fri 11 Dec is meant, write 2026-12-11",
        ),
        ("latest_end", "sunday", "2026-12-06", '"until sunday" = to the end of Sun 6 Dec, New York'),
        ("earliest_start", "today", "today", '"from today" = from now on, Tue 1 Dec, New York'),
        ("latest_end", "20 December", "20 December", "to the end of Sun 20 Dec"),
        ("start", "2026-12-02 12:30", "2026-12-02 12:30", ""),
        ("count", "2", "2", ""),
    ],
)
def test_the_guide_tells_how_it_reads_a_day_and_writes_a_weekdays_date(
    key: str, answer: str, written: str, said: str
) -> None:
    """The file is read on other days too; what the yard's clock decides is left as it was typed."""
    asked = next(q for q in QUESTIONS if q.key == key)
    answers = {"target": "instances", "type": "p5.48xlarge", "time_zone": "America/New_York"}
    assert complaint(asked, answer, answers, NOW) == ""
    found, told_back = understood(asked, answer, answers, NOW)
    assert found == written
    assert said in told_back
    assert bool(said) == bool(told_back)
    assert understood(asked, answer, answers, None) == (answer, "")
