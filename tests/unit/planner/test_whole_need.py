"""The need, whole: types and accelerators, counts, parts, profile, range and goal, tolerances, own rates."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.facts.general_types import general_type, general_type_names, stand_ins
from berth.planner.need import Goal, Need, Subnet
from berth.planner.need_file import FLAGS, NeedError, need_from_flags, read_need
from berth.planner.part import Accelerators, Layer, Level, TypeCount, check_count, instance_time, layers
from berth.terms.durations import read_range
from berth.terms.money import Money
from berth.terms.ways import Target, Way

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
BASE = 'name = "n"\nduration = "4d"\ntarget = "instances"\n'


def read(text: str, **flags: Any) -> Need:
    """The need of BASE and `text`."""
    return read_need(BASE + text, "need.toml", NOW, flags)


def complaint(text: str, **flags: Any) -> str:
    """Everything said against it."""
    with pytest.raises(NeedError) as refused:
        read(text, **flags)
    return "\n".join(refused.value.lines())


WHOLE = """\
type = ["p5en.48xlarge", "p5e.48xlarge"]
count = 2
count_wanted = 4
goal = "longest"
budget = "30000 USD"
gap_at_most = "0h"
checkpoint_every = "1h"
retryable = false
utilisation = 0.6
startup = "20min"
same_zone = true
not_ways = ["odcr", "sagemaker-on-demand"]
[[subnets]]
zone_id = "use1-az4"
id = "subnet-0123abcd"
[[subnets]]
zone_id = "use1-az6"
[rates]
edp_percent = 7.5
[rates.savings_plan]
"p5en.48xlarge" = "41.2 USD"
"""


def test_every_key_comes_through_and_survives_json() -> None:
    """Types with their counts, range, goal, tolerances, subnets, rates; and the same after JSON."""
    need = read_need(BASE.replace("4d", "5d..9d") + WHOLE, "need.toml", NOW)
    assert need.types == (TypeCount("p5en.48xlarge", 2, 4), TypeCount("p5e.48xlarge", 2, 4))
    assert (need.duration, need.duration_at_most, need.goal) == (5 * DAY, 9 * DAY, Goal.LONGEST)
    assert (need.gap_at_most, need.checkpoint_every, need.startup) == (0 * DAY, HOUR, timedelta(minutes=20))
    assert (need.interruptible, need.retryable, need.utilisation) == (True, False, Decimal("0.6"))
    assert need.subnets == (Subnet("use1-az4", "subnet-0123abcd"), Subnet("use1-az6"))
    assert need.subnet_zones == ("use1-az4", "use1-az6")
    assert need.same_zone is True
    assert set(Way) - set(need.ways) == {Way.ODCR, Way.SAGEMAKER_ON_DEMAND}
    assert need.rates is not None
    assert need.rates.edp_percent == Decimal("7.5")
    assert need.rates.savings_rate("ml.p5en.48xlarge") == Money(Decimal("41.2"))
    assert need.rates.savings_rate("p5.48xlarge") is None
    assert Need.from_json(json.loads(json.dumps(need.to_json()))) == need


def test_what_is_not_said_is_not_guessed() -> None:
    """None throughout: nobody said it, and no default stands in its place."""
    need = read('type = "p5.48xlarge"')
    said = (need.longest, need.gap_at_most, need.interruptible, need.checkpoint_every, need.retryable)
    assert said == (None,) * 5
    assert (need.startup, need.utilisation, need.rates) == (None, None, None)
    assert (need.subnets, need.beside, need.profile) == ((), (), ())
    assert (need.ways, need.same_zone) == ((), None)
    assert need.types == (TypeCount("p5.48xlarge", 1, 1),)


def test_plans_of_the_first_releases_are_still_read() -> None:
    """A journal holds needs without any of the newer members: each is what its absence meant."""
    now = read('type = "p5.48xlarge"\ncount = 3').to_json()
    old = {key: now[key] for key in (
        "name", "instance_type", "count", "duration_s", "target", "regions", "zone_ids", "start",
        "earliest_start", "latest_end", "budget", "account", "utilisation", "time_zone", "deployment",
    )}  # fmt: skip
    assert Need.from_json(old) == read('type = "p5.48xlarge"\ncount = 3')


def test_the_older_word_for_the_type_is_still_read() -> None:
    """`instance_type` of earlier files; a typed --type stands over it, as over accelerators."""
    assert read('instance_type = "p5.48xlarge"') == read('type = "p5.48xlarge"')
    assert read('instance_type = "p5.48xlarge"', type=["p4d.24xlarge"]).instance_type == "p4d.24xlarge"
    assert read('type = "p5.48xlarge"\ncount = 2', type=["p4d.24xlarge"]).count == 2
    assert read('accelerators = "H100:8"', type="p4d.24xlarge").types[0].instance_type == "p4d.24xlarge"


# -- accelerators ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("asked", "target", "types"),
    [
        ('{kind = "H200", count = 16}', "instances", ["2 p5e.48xlarge", "2 p5en.48xlarge"]),
        ('"H200:16:80"', "instances", ["2 p5e.48xlarge", "2 p5en.48xlarge"]),
        ('"H100:8"', "instances", ["1 p5.48xlarge", "8 p5.4xlarge"]),
        ('"H100:12"', "instances", ["12 p5.4xlarge", "2 p5.48xlarge"]),
        ('"H100:24"', "hyperpod-cluster", ["4 ml.p5.48xlarge", "32 ml.p5.4xlarge"]),
        ('{kind = ["B200", "B300"], count = 8}', "instances", ["1 p6-b200.48xlarge", "1 p6-b300.48xlarge"]),
        ('{kind = ["A100"], count = 8, least_memory_gib = 80}', "instances", ["1 p4de.24xlarge"]),
    ],
)
def test_accelerators_become_types_with_their_own_counts(asked: str, target: str, types: list[str]) -> None:
    """The fewest accelerators too many first, then the fewest machines; powers of two for plans."""
    need = read_need(BASE.replace("instances", target) + f"accelerators = {asked}", "need.toml", NOW)
    assert [f"{t.count} {t.instance_type}" for t in need.types] == types
    assert need.accelerators is not None
    assert Need.from_json(need.to_json()) == need


def test_l4_is_no_l40s_and_the_wanted_count_is_derived_too() -> None:
    """The name is taken whole, or as the first words of a longer one."""
    names = {t.instance_type for t in read('accelerators = "L4:8"').types}
    assert {name.split(".")[0] for name in names} == {"g6"}
    need = read('accelerators = {kind = "H200", count = 8, count_wanted = 16}')
    assert need.types[0] == TypeCount("p5e.48xlarge", 1, 2)


# -- what cannot be ----------------------------------------------------------------------------------------
WRONG = [
    ("", "need.toml:1: type is missing; write it there or use --type (or name accelerators)"),
    ('type = "p5.48xlarge"\naccelerators = "H100:8"', "type says already what it may be"),
    ('type = ["p5.48xlarge", "p5.48xlarge"]', "p5.48xlarge is named twice"),
    ("type = []", "must be a type in quotes"),
    ('type = ["p5.48xlarge", "p5.49xlarge"]', "'p5.49xlarge' is not a known accelerated instance type"),
    ('type = "p5.48xlarge"\ncount = 4\ncount_wanted = 2', "must be the least count of 4 or more, not 2"),
    ('type = "p5.48xlarge"\ncount = -3', "must be a whole number from 1 to 1000, not -3"),
    ('type = "p5.48xlarge"\ncount = 2147483647', "must be a whole number from 1 to 1000, not 2147483647"),
    ('type = "p5.48xlarge"\ncount_wanted = 1001', "count_wanted: must be a whole number from 1 to 1000"),
    ('type = "p5.48xlarge"\ncont_wanted = 2', "unknown key (did you mean count_wanted?)"),
    ('type = "p5.48xlarge"\ninteruptible = true', "unknown key (did you mean interruptible?)"),
    ('type = "p5.48xlarge"\ngap_atmost = "0h"', "unknown key (did you mean gap_at_most?)"),
    ('accelerators = "H200"', 'or "H200:16"'),
    ('accelerators = "H201:16"', "no type has 'H201'; near: "),
    ('accelerators = "H200:16:200"', "no H200 has 200 GiB; the most is 141"),
    ('accelerators = "H200:0"', "count of accelerators must be a whole number from 1"),
    ('accelerators = {kind = "H200", cuont = 16}', "unknown key cuont"),
    ('accelerators = "H200:16"\ncount = 2', "accelerators say how many: leave out count"),
    ('type = "p5.48xlarge"\ngoal = "longest"', 'there is one: write a range like "5d..9d"'),
    ('type = "p5.48xlarge"\ngoal = "longest"', "the longest that the budget pays needs a budget"),
    ('type = "p5.48xlarge"\ncheckpoint_every = "1h"\ninterruptible = false', "leave out one of them"),
    ('type = "p5.48xlarge"\nstartup = "5d"', "takes all of the 4 d: nothing would be left to use"),
    ('type = "p5.48xlarge"\nsubnet_zones = ["us-east-1a"]', "is no zone id; write ids like use1-az6"),
    ('type = "p5.48xlarge"\nsubnet_zones = ["use1-az1"]\n[[subnets]]\nzone_id = "use1-az2"', "leave out one"),
    ('type = "p5.48xlarge"\nways = ["on demand"]', "need.toml:5: ways: 'on demand' is no way; there are"),
    ('type = "p5.48xlarge"\nways = []', "names no way, so nothing could be had"),
    ('type = "p5.48xlarge"\nways = ["spot"]\nnot_ways = ["odcr"]', "ways says already which are allowed"),
    (f'type = "p5.48xlarge"\nnot_ways = {json.dumps(list(Way))}', "leaves no way at all"),
    ('type = "p5.48xlarge"\nsame_zone = "yes"', "must be true or false"),
    ('type = "p5.48xlarge"\n[rates]\nedp_percent = 100', "must be over 0 and under 100 per cent"),
    ('type = "p5.48xlarge"\n[rates]', "is empty: write edp_percent"),
    ('type = "p5.48xlarge"\n[rates.savings_plan]\n"p5.48xlarge" = 0', "must be more than zero"),
    ('type = "p5.48xlarge"\nprofile = [{from = "0h", count = 2}]', "one level is a count"),
    ('type = "p5.48xlarge"\nprofile = [{from = "1h", count = 2}, {from = "2h", count = 3}]', "from 0h"),
    ('type = "p5.48xlarge"\nprofile = [{from = "0h", count = 2}, {from = "2h", count = 2}]', "another count"),
    ('type = "p5.48xlarge"\nprofile = [{from = "0h", count = 2}, {from = "4d", count = 3}]', "not within"),
    ('type = "p5.48xlarge"\nprofile = [{from = "0h", count = 2}, {from = "2h", count = 1001}]', "1 to 1000"),
    ('type = "p5.48xlarge"\ncount = 2\nprofile = [{from = "0h", count = 2}, {from = "2h", count = 4}]',
     "the profile says how many: leave out count"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[w[1][:40] for w in WRONG])
def test_what_cannot_be_says_what_would_be_right(text: str, said: str) -> None:
    """Each contradiction, each unknown key with the nearest word."""
    assert said in complaint(text)


@pytest.mark.parametrize(
    ("range_text", "said"),
    [
        ("9d..5d", "from 9 d to 5 d is the wrong way round"),
        ("5d..", "not a range of durations"),
        ("..9d", "not a range of durations"),
        ("5d..9y", "not a duration"),
        ("10min..9d", "must be from 1 h to 1,095 days, not 10 min"),
    ],
)
def test_a_bad_range_is_refused(range_text: str, said: str) -> None:
    """Both ends count, the right way round."""
    with pytest.raises(NeedError) as refused:
        read_need(BASE.replace("4d", range_text) + 'type = "p5.48xlarge"', "need.toml", NOW)
    assert said in str(refused.value)


def test_a_range_may_say_its_unit_once() -> None:
    """`60..100 h`; and a range of one length is that length."""
    assert read_range("60..100 h") == (60 * HOUR, 100 * HOUR)
    assert read_range("5d..9d") == (5 * DAY, 9 * DAY)
    assert not read('type = "p5.48xlarge"', duration="3d..3d").is_range


@pytest.mark.parametrize("count", [0, -1, 1001, 2147483647, 10**30, True, "2", None, 1.0])
def test_the_same_refusal_on_every_path(count: Any) -> None:
    """Field fault 57: file, flag, value, remembered plan and profile refuse alike."""
    with pytest.raises(ValueError, match="must be a whole number from 1 to 1000") as refused:
        check_count(count)
    if isinstance(count, bool) or not isinstance(count, int):
        return
    said = str(refused.value)
    need = read('type = "p5.48xlarge"')
    with pytest.raises(ValueError, match="must be a whole number from 1 to 1000"):
        Need.from_json({**need.to_json(), "count": count})
    assert said in complaint('type = "p5.48xlarge"', count=str(count))
    if count < 10**15:
        assert said in complaint(f'type = "p5.48xlarge"\ncount = {count}')
        levels = f'[{{from = "0h", count = 1}}, {{from = "2h", count = {count}}}]'
        assert said in complaint(f'type = "p5.48xlarge"\nprofile = {levels}')


def test_each_plain_key_has_its_flag() -> None:
    """Typed or written, the need is the same."""
    flags: dict[str, Any] = {
        "name": "n", "type": ["p5en.48xlarge", "p5e.48xlarge"], "count": "2", "count_wanted": "4",
        "duration": "5d..9d", "goal": "cheapest-hour", "target": "instances", "regions": ["us-east-1"],
        "zone_ids": ["use1-az4"], "subnet_zones": ["use1-az4"], "earliest_start": "tomorrow",
        "latest_end": "20 December", "gap_at_most": "0h", "interruptible": "yes", "checkpoint_every": "1h",
        "retryable": "no", "startup": "20min", "budget": "30000", "account": "111122223333",
        "utilisation": "0.6", "time_zone": "Europe/Berlin", "platform": "Ubuntu Pro",
        "same_zone": "yes", "not_ways": ["spot", "odcr"],
    }  # fmt: skip
    assert set(flags) | {"accelerators", "start", "ways"} == set(FLAGS)
    written = "\n".join(
        f"{key} = {value if key in {'count', 'count_wanted'} else json.dumps(value)}"
        for key, value in flags.items()
        if key not in {"interruptible", "retryable", "same_zone"}
    )
    text = written + "\ninterruptible = true\nretryable = false\nsame_zone = true\n"
    assert need_from_flags(flags, NOW) == read_need(text, "need.toml", NOW)


# -- parts -------------------------------------------------------------------------------------------------
PARTS = """\
[[parts]]
name = "head"
type = "c7g.2xlarge"
[[parts]]
name = "nodes"
type = "p5.48xlarge"
count = 8
[[parts]]
name = "serve"
accelerators = "Trainium:16"
target = "endpoint"
"""


def test_parts_are_one_planned_and_the_others_beside() -> None:
    """Field fault 42: the CPU head is launched beside what is held; another held part is its own need."""
    need = read(PARTS)
    assert (need.part_name, need.instance_type, need.count) == ("nodes", "p5.48xlarge", 8)
    assert [(p.name, p.reserve, p.target) for p in need.parts] == [
        ("nodes", True, Target.INSTANCES),
        ("head", False, Target.INSTANCES),
        ("serve", True, Target.ENDPOINT),
    ]
    serve = need.alone(need.parts[2])
    assert (serve.name, serve.target, serve.beside) == ("n-serve", Target.ENDPOINT, ())
    assert serve.types[0] == TypeCount("ml.trn1.32xlarge", 1, 1)
    assert serve.types[-1] == TypeCount("ml.trn1.2xlarge", 16, 16)
    assert need.alone(need.parts[0]).name == "n"
    assert Need.from_json(json.loads(json.dumps(need.to_json()))) == need


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "head"', 'name = "nodes"', "two parts are called nodes"),
        ('name = "head"\n', "", "name is missing"),
        ('type = "c7g.2xlarge"', 'type = "c7g"', "is not a known accelerated instance type"),
        ('type = "c7g.2xlarge"', 'type = "c7g.2xlarge"\nreserve = true', "not a known accelerated"),
        ('type = "c7g.2xlarge"', 'type = "c7g.2xlarge"\ncoun = 2', "unknown key (did you mean count?)"),
        ("count = 8", "count = 0", "need.toml:10: parts.2.count: must be a whole number from 1"),
        ("[[parts]]", "count = 2\n[[parts]]", "each of the [[parts]] says its own"),
    ],
)  # fmt: skip
def test_a_bad_part_says_what_would_be_right(old: str, new: str, said: str) -> None:
    """Line and key of the part; the head's type needs no table unless it is to be held."""
    assert said in complaint(PARTS.replace(old, new, 1))


def test_the_name_of_a_part_that_is_bought_by_itself_is_no_longer_than_a_name() -> None:
    """Orders are called after it; a part that is only launched needs no such name."""
    long = BASE.replace('name = "n"', f'name = "{"n" * 36}"') + PARTS
    with pytest.raises(NeedError, match="names what is bought for serve, and is longer than 40"):
        read_need(long, "need.toml", NOW)
    read_need(long.partition('[[parts]]\nname = "serve"')[0], "need.toml", NOW)


def test_parts_of_which_none_is_held_are_no_need() -> None:
    """On-demand is asked on the day: there is nothing to plan."""
    assert "none is held ahead" in complaint('[[parts]]\nname = "head"\ntype = "c7g.2xlarge"\n')


def test_stand_ins_run_the_same_work() -> None:
    """Same architecture and vCPUs, as much memory or more; unknown types have none."""
    assert stand_ins("c7g.2xlarge") == ("c8g.2xlarge", "c6g.2xlarge")
    assert stand_ins("x9.huge") == ()
    for name in general_type_names():
        wanted = general_type(name)
        assert wanted is not None
        for other in map(general_type, stand_ins(name)):
            assert other is not None
            assert (other.architecture, other.vcpus) == (wanted.architecture, wanted.vcpus)
            assert other.memory_gib >= wanted.memory_gib


# -- the count over time -----------------------------------------------------------------------------------
def test_a_profile_is_cut_level_by_level() -> None:
    """2, and 8 from 48 h on: 2 for all, 6 for the rest. What falls again is cut where it falls."""
    profile = (Level(0 * HOUR, 2), Level(48 * HOUR, 8))
    assert layers(profile, 96 * HOUR) == (Layer(2, 0 * HOUR, 96 * HOUR), Layer(6, 48 * HOUR, 96 * HOUR))
    hill = (Level(0 * HOUR, 1), Level(24 * HOUR, 4), Level(48 * HOUR, 1))
    assert layers(hill, 72 * HOUR) == (Layer(1, 0 * HOUR, 72 * HOUR), Layer(3, 24 * HOUR, 48 * HOUR))
    assert layers((), 72 * HOUR) == ()
    need = read('type = "p5.48xlarge"\nprofile = [{from = "0h", count = 2}, {from = "48h", count = 8}]')
    assert (need.count, need.profile) == (8, profile)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 12))
def test_layers_add_up_to_the_profile(counts: list[int], hours: int) -> None:
    """At every hour the layers that hold then make the count of the profile then."""
    steps = [c for n, c in enumerate(counts) if n == 0 or c != counts[n - 1]]
    profile = tuple(Level(n * HOUR, count) for n, count in enumerate(steps))
    cut = layers(profile, hours * HOUR)
    for hour in range(hours):
        at = hour * HOUR
        wanted = [level.count for level in profile if level.offset <= at][-1]
        assert sum(layer.count for layer in cut if layer.begin <= at < layer.end) == wanted
    span = hours * HOUR
    held = ((layer.count, min(layer.end, span) - layer.begin) for layer in cut if layer.begin < span)
    assert instance_time(profile, span) == sum((count * each for count, each in held), 0 * HOUR)


def test_accelerators_are_a_value_of_their_own() -> None:
    """What the types were derived from stays in the need, with the memory as written."""
    need = read('accelerators = {kind = "H200", count = 16, least_memory_gib = 80.5}')
    assert need.accelerators == Accelerators(("H200",), 16, Decimal("80.5"))


def test_the_ways_of_a_need_are_those_of_its_parts_that_are_held() -> None:
    """What is launched beside is had on demand, whatever the rest may be had by."""
    parts = (
        '[[parts]]\nname = "nodes"\ntype = "p5.48xlarge"\n[[parts]]\nname = "eval"\ntype = "p4d.24xlarge"\n'
    )
    need = read('ways = ["capacity-block"]\n' + parts + '[[parts]]\nname = "head"\ntype = "c7g.2xlarge"\n')
    found = {part.name: need.alone(part).ways for part in need.parts}
    assert found == {"nodes": (Way.CAPACITY_BLOCK,), "eval": (Way.CAPACITY_BLOCK,), "head": ()}
