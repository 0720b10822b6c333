"""Reading needs: what is right comes through whole, what is wrong is told with line and key."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner.launch import Launch
from berth.planner.local_dates import day_end, day_start, read_instant
from berth.planner.need import Deployment, Need
from berth.planner.need_file import NeedError, need_from_flags, read_need
from berth.planner.queries import training_plan_queries
from berth.terms.money import Money
from berth.terms.settings import SettingsError
from berth.terms.ways import Target

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
GOOD = """\
name = "eval-1"
instance_type = "ml.trn1.32xlarge"
count = 1
duration = "24h"
target = "endpoint"
regions = ["us-east-1"]
"""


def read(text: str, **flags: str | list[str]) -> Need:
    """A need read at NOW."""
    return read_need(text, "need.toml", NOW, flags)


def complaint(text: str, **flags: str | list[str]) -> str:
    """What is said about a need that cannot be."""
    with pytest.raises(SettingsError) as found:
        read(text, **flags)
    return "\n".join(found.value.lines())


def test_a_whole_need_is_read_and_survives_json() -> None:
    """Every key of the reference, at once."""
    need = read(
        GOOD
        + """\
zone_ids = ["use1-az6"]
start = 2026-12-02T11:30:00Z
budget = "1,500.50 USD"
account = "1111-2222-3333"
utilisation = 0.6
time_zone = "Europe/Berlin"
[deployment]
image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/digits:1"
data = "model"
role = "arn:aws:iam::111122223333:role/serve"
startup_timeout = "10 min"
endpoint = "digits"
[deployment.environment]
WORKERS = "2"
"""
    )
    assert need == Need(
        name="eval-1",
        instance_type="ml.trn1.32xlarge",
        count=1,
        duration=timedelta(hours=24),
        target=Target.ENDPOINT,
        regions=("us-east-1",),
        zone_ids=("use1-az6",),
        start=datetime(2026, 12, 2, 11, 30, tzinfo=UTC),
        budget=Money(Decimal("1500.50")),
        account="111122223333",
        utilisation=Decimal("0.6"),
        time_zone="Europe/Berlin",
        deployment=Deployment(
            image="111122223333.dkr.ecr.us-east-1.amazonaws.com/digits:1",
            data="model",
            role="arn:aws:iam::111122223333:role/serve",
            environment=(("WORKERS", "2"),),
            startup_timeout=timedelta(minutes=10),
            endpoint_name="digits",
        ),
    )
    assert Need.from_json(need.to_json()) == need


# What is put in place of a line of GOOD (or added), and what must be said about it.
WRONG = [
    ('duration = "24h"', 'duration = "1096d"', "need.toml:4: duration: must be from 1 h to 1,095 days"),
    ("count = 1", "count = 0", "need.toml:3: count: must be a whole number from 1 to 1000"),
    ("count = 1", "coutn = 1", "need.toml:3: coutn: unknown key (did you mean count?); known here:"),
    ("trn1.32xlarge", "trn1.31xlarge", "near: ml.trn1.32xlarge"),
    ('"ml.trn1', '"trn1', "SageMaker calls it 'ml.trn1.32xlarge'"),
    ('"endpoint"', '"enpoint"', "'enpoint' is not one of instances, training-job"),
    ('"endpoint"', '"instances"', "EC2 calls it 'trn1.32xlarge'"),
    ('"eval-1"', '"Eval 1"', "need.toml:1: name: 'Eval 1' is not valid: lower-case letters"),
    ('"eval-1"', '"../../etc"', "is not valid"),
    ('"eval-1"', '"' + "a" * 41 + '"', "at most 40"),
    ('"us-east-1"', '"us-east-1; rm"', "is not valid here"),
    ("count = 1", "start = 2026-11-30T11:30:00Z", "2026-11-30 11:30Z is past; it is 2026-12-01 09:00Z"),
    ("count = 1", "start = 2026-12-02T11:30:00", "names no time zone; write it in UTC"),
    ("count = 1", "start = 2026-12-02", "must be an instant with a time of day"),
    ("count = 1", 'latest_end = "2026-12-05"', 'a day needs a zone: add time_zone = "Europe/Berlin"'),
    ("count = 1", 'latest_end = "2026-12-01T20:00Z"', "leaves 11 h after the earliest start"),
    ("count = 1", 'time_zone = "Berlin"', "write an IANA name like Europe/Berlin"),
    ("count = 1", 'zone_ids = ["us-east-1a"]', "write ids like use1-az6"),
    ("count = 1", 'budget = "lots"', "not an amount of money"),
    ("count = 1", "budget = 0", "must be more than zero"),
    ("count = 1", 'budget = "228,77"', "write it like 228.77 or 1,146.17"),
    ("count = 1", "budget = 1e999999999", "must be below 1,000,000,000,000"),
    ("count = 1", 'count = "1"', 'must be a whole number from 1 to 1000, not "1"'),
    ("count = 1", "acount = 1", "unknown key (did you mean"),
    ("count = 1", "start = 9999-12-31T23:59:59-14:00", "outside the years 1 to 9999"),
    ("count = 1", "earliest_start = 9999-12-31T23:59:59Z", "is after the year 2999"),
    ("count = 1", "time_zone = 'UTC'\nlatest_end = 9999-12-31", "is the last day that there is"),
    ('duration = "24h"', 'duration = "99999999999d"', "longer than 100 years"),
    ("count = 1", "utilisation = 60", "must be over 0 and at most 1"),
    ("count = 1", "account = 111122223333", "must be text in quotes"),
    ("count = 1", "count = [", "not TOML"),
    ('name = "eval-1"', "", "name is missing; write it there or use --name"),
    ("count = 1", "[deployment]\nrole = 'x'", "write either model"),
    ("count = 1", "[deployment]\nimage = 'x'", "role is missing"),
    ("count = 1", "[deployment]\nmodel = 'm'\ndata = 'x'", "leave out data"),
    ("count = 1", "[deployment]\nmodel = 'm'\nstartup_timeout = '2h'", "from 60 s to 1 h"),
]  # fmt: skip


EC2 = """\
name = "block-1"
instance_type = "p5.48xlarge"
count = 3
duration = "24h"
target = "instances"
"""


def test_a_need_of_instances_is_read_whole() -> None:
    """Platform, tags, launch section; any count, since what is sold is each way's own matter."""
    need = read(
        EC2
        + """\
platform = "Ubuntu Pro"
[tags]
team = "a"
[launch]
template = "lt-0123456789abcdef0"
template_version = "$Latest"
image = "ami-0123456789abcdef0"
role = "gpu-node"
subnet = "subnet-0123456789abcdef0"
"""
    )
    assert (need.platform, need.tags, need.count) == ("Ubuntu Pro", (("team", "a"),), 3)
    assert need.launch == Launch(
        "lt-0123456789abcdef0", "$Latest", "ami-0123456789abcdef0", "gpu-node", "subnet-0123456789abcdef0"
    )
    assert Need.from_json(need.to_json()) == need


WRONG_EC2 = [
    ('instance_type = "ml.p5.48xlarge"', "EC2 calls it 'p5.48xlarge'"),
    ('platform = "linux"', "need.toml:6: platform: 'linux' is not one of Linux/UNIX"),
    ("[launch]\nrole = 'x'", "write a template, or an image to launch from"),
    ("[launch]\nimage = 'ubuntu'", "need.toml:7: launch.image: 'ubuntu' is not valid: an image id"),
    ("[launch]\nimage = 'ami-01234567'\ntemplate_version = '1'", "names a version of no template"),
    ("[launch]\ntemplate = 'x y'", "a launch template's id or name"),
    ("[launch]\ntemplate = 'node'\nsubnet = 'use1-az4'", "like subnet-0123abcd"),
    ("[tags]\n'aws:x' = 'y'", "tags that begin with aws: are AWS's own"),
    ("[tags]\nteam = 1", "must be text in quotes"),
]


@pytest.mark.parametrize(("new", "said"), WRONG_EC2, ids=[w[0][:40] for w in WRONG_EC2])
def test_a_bad_need_of_instances_says_what_would_be_right(new: str, said: str) -> None:
    """What concerns instances alone."""
    lines = [line for line in EC2.splitlines() if not line.startswith(new.split(" = ", maxsplit=1)[0] + " =")]
    assert said in complaint("\n".join(lines) + "\n" + new)


def test_what_concerns_instances_is_no_matter_of_sagemaker() -> None:
    """Platform and launch are refused for an endpoint, with what would be right."""
    assert "is for target instances" in complaint(GOOD + 'platform = "Ubuntu Pro"')
    assert "endpoint needs [deployment]" in complaint(GOOD + "[launch]\nimage = 'ami-01234567'")


@pytest.mark.parametrize(("old", "new", "said"), WRONG, ids=[w[1][:40] for w in WRONG])
def test_bad_input_says_what_where_and_what_would_be_right(old: str, new: str, said: str) -> None:
    """Malformed, unknown, out of range, in the past, without zone, for the wrong target."""
    lines = [line for line in GOOD.splitlines() if line != old or not new.startswith("[")]
    text = "\n".join(lines) + "\n" + new if new.startswith("[") else GOOD.replace(old, new)
    assert said in complaint(text)


def test_everything_wrong_is_told_at_once() -> None:
    """Two faults, two lines, in the order of the file."""
    said = complaint(GOOD.replace("count = 1", "count = 1001").replace("24h", "2000d")).splitlines()
    assert [line.split(": ")[0] for line in said] == ["need.toml:3", "need.toml:4"]


def test_seventeen_days_are_valid_for_a_plan() -> None:
    """Plans are sold by whole days up to 182; the steps of blocks are not theirs."""
    assert read(GOOD.replace("24h", "17 days")).duration == timedelta(days=17)


def test_flags_win_over_the_file_and_are_named_when_wrong() -> None:
    """A flag replaces the file's value, also a wrong one; its own fault is told by its name."""
    assert read(GOOD.replace("count = 1", "count = 3"), count="4").count == 4
    assert complaint(GOOD, count="1001").startswith("--count: must be a whole number from 1 to 1000")
    assert complaint(GOOD, earliest_start="yesterday").startswith("--from: ")
    with pytest.raises(NeedError, match="no need file"):
        need_from_flags({"count": "1"}, NOW)


def test_flags_alone_make_the_same_need_as_the_file() -> None:
    """Flags and file say the same in the same words."""
    flags: dict[str, str | list[str]] = {
        "name": "eval-1", "instance_type": "ml.trn1.32xlarge", "count": "1", "duration": "24h",
        "target": "endpoint", "regions": ["us-east-1"],
    }  # fmt: skip
    assert need_from_flags(flags, NOW) == read(GOOD)


def test_today_is_not_in_the_past_and_the_last_day_counts() -> None:
    """Field fault 52: clock 02:10Z on 2 March is 1 March in Los Angeles; "today" to "5 March" there."""
    now = datetime(2027, 3, 2, 2, 10, tzinfo=UTC)
    text = GOOD + 'time_zone = "America/Los_Angeles"\nearliest_start = "today"\nlatest_end = "5 March"\n'
    need = read_need(text, "need.toml", now)
    assert need.earliest_start is not None
    assert need.earliest_start >= now
    assert need.latest_end == datetime(2027, 3, 6, 8, tzinfo=UTC)
    (query,) = training_plan_queries(need, need.regions, now)
    assert query.start_after is None or query.start_after >= now
    assert query.end_before is not None
    assert query.end_before >= datetime(2027, 3, 5, 11, 30, tzinfo=UTC), "a plan ending that day is found"


def test_a_toml_date_is_a_day_too() -> None:
    """`latest_end = 2026-12-05` without quotes counts the whole day."""
    need = read(GOOD + 'time_zone = "Europe/Berlin"\nlatest_end = 2026-12-05\n')
    assert need.latest_end == datetime(2026, 12, 5, 23, tzinfo=UTC)
    assert "is over" in complaint(GOOD + 'time_zone = "Europe/Berlin"\nearliest_start = 2026-11-30\n')


# Zones whose clocks change by an hour, by half an hour, at midnight, or never.
ZONES = (
    "America/Los_Angeles", "Europe/Berlin", "America/Havana", "Asia/Beirut", "America/Asuncion",
    "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Auckland", "Africa/Cairo", "UTC",
)  # fmt: skip
DAYS = st.dates(date(2023, 1, 1), date(2029, 12, 30))


@settings(deadline=None, max_examples=300)
@given(DAYS, st.sampled_from(ZONES))
def test_a_day_begins_at_its_first_instant_and_ends_where_the_next_begins(day: date, name: str) -> None:
    """Also on the nights of clock change, also where they change at midnight."""
    zone = ZoneInfo(name)
    begin, end = day_start(day, zone), day_end(day, zone)
    moment = timedelta(microseconds=1)
    assert begin.astimezone(zone).date() == day
    assert (begin - moment).astimezone(zone).date() == day - timedelta(days=1)
    assert (end - moment).astimezone(zone).date() == day
    assert timedelta(hours=22) < end - begin < timedelta(hours=26)


@settings(deadline=None, max_examples=300)
@given(DAYS, st.times(), st.sampled_from(ZONES))
def test_a_local_time_is_read_as_itself_or_refused(day: date, at: time, name: str) -> None:
    """A time without offset comes back as the same wall time; skipped and doubled ones are refused."""
    zone, naive = ZoneInfo(name), datetime.combine(day, at)
    offsets = {naive.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)}
    if len(offsets) > 1:
        with pytest.raises(ValueError, match="the clocks change"):
            read_instant(naive, zone)
        return
    instant = read_instant(naive, zone)
    assert instant.astimezone(zone).replace(tzinfo=None) == naive


def test_the_nights_of_clock_change_in_berlin() -> None:
    """02:30 does not exist in March and exists twice in October."""
    zone = ZoneInfo("Europe/Berlin")
    with pytest.raises(ValueError, match="does not exist"):
        read_instant("2027-03-28T02:30", zone)
    with pytest.raises(ValueError, match="happens twice"):
        read_instant("2026-10-25T02:30", zone)
    assert day_end(date(2026, 10, 25), zone) - day_start(date(2026, 10, 25), zone) == timedelta(hours=25)


@pytest.mark.parametrize("key", ["earliest_start", "latest_end"])
def test_where_a_day_would_do_the_complaint_says_so(key: str) -> None:
    """`soon` is neither a day nor an instant; what may stand there are both."""
    assert "or a day like Monday" in complaint(GOOD + f'time_zone = "UTC"\n{key} = "soon"\n')
    assert "a day like" not in complaint(GOOD + 'time_zone = "UTC"\nstart = "soon"\n')
    assert "a day like" not in complaint(GOOD + f'{key} = "2026-12-05T10:00"\n')
