"""EC2's filters, pages and tags, over stored reservations."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.services.ec2.filters import always, one, passes, with_tags

from .bench import Bench

FLEET = load_fleet(Path(__file__).with_name("blocks.toml").read_text("utf-8"), "blocks.toml")
STATES = ("active", "scheduled", "expired", "payment-failed")
TYPES = ("p5.48xlarge", "p5.4xlarge")
FACETS = with_tags({"state": one("State"), "flag": one("Flag"), "when": one("When"), "kind": always("k")})


class Listing(Bench):
    """A yard with reservations written straight into the store."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, FLEET)

    def fill(self, many: int, first: int = 0) -> None:
        """Reservations number `first` to `first + many`; states, types and tags repeat."""

        def work(tx: Any) -> None:
            for number in range(first, first + many):
                name = f"cr-{number:017x}"
                tx.insert(
                    "capacity_reservations",
                    reservation_id=name, arn=f"arn/{name}", reservation_type="capacity-block",
                    block_id=f"cb-{number:017x}", account_id=self.account.account_id, region="us-east-1",
                    status=STATES[number % 4], instance_type=TYPES[number % 2], platform="Linux/UNIX",
                    count=1,
                    pool="use1-az1/p5.48xlarge", zone_id="use1-az1", start_us=0, end_us=number,
                    fee_micros=0, currency="USD", offering_id="cb-0", created_us=0,
                )  # fmt: skip
                tx.run(
                    "INSERT INTO ec2_tags VALUES (?, 'n', ?, ?, 'us-east-1', 'capacity-reservation', 0)",
                    name, str(number % 10), self.account.account_id,
                )  # fmt: skip

        self.do(work)

    def describe(self, **params: Any) -> Any:
        """DescribeCapacityReservations."""
        return self.call("DescribeCapacityReservations", service="ec2", **params)

    def walk(self, size: int, name: str = "DescribeCapacityReservations", **params: Any) -> list[list[Any]]:
        """All pages."""
        member = {"DescribeCapacityReservations": "CapacityReservations", "DescribeTags": "Tags"}[name]
        pages = []
        token: dict[str, str] = {}
        while True:
            answer = self.call(name, service="ec2", MaxResults=size, **params, **token)
            pages.append(answer[member])
            if "NextToken" not in answer:
                return pages
            token = {"NextToken": answer["NextToken"]}


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Forty reservations, which no test changes."""
    found = Listing(tmp_path_factory.mktemp("l") / "y")
    found.fill(40)
    yield found
    found.close()


def names(found: Any) -> list[int]:
    """The numbers of described reservations."""
    return [int(one["CapacityReservationId"][3:], 16) for one in found]


def filtered(**wanted: list[str]) -> list[dict[str, Any]]:
    """Filters; an underscore in a name stands for a dash."""
    return [{"Name": name.replace("_", "-"), "Values": values} for name, values in wanted.items()]


def refusal(listing: Listing, name: str = "DescribeCapacityReservations", **params: Any) -> str:
    """The code with which a call is refused."""
    with pytest.raises(ServiceError) as refused:
        listing.call(name, service="ec2", **params)
    return refused.value.code


# -- pages -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 7, 20, 39, 40, 41, 1000])
def test_pages_together_are_the_whole_list_in_order(listing: Listing, size: int) -> None:
    """Each full but the last, nothing twice, nothing missing."""
    pages = listing.walk(size)
    assert [number for page in pages for number in names(page)] == list(range(40))
    assert all(len(page) == size for page in pages[:-1])


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 45),
    states=st.sets(st.sampled_from(STATES), max_size=3),
    digits=st.sets(st.integers(0, 9), max_size=4),
    wild=st.booleans(),
)
def test_pages_with_filters_are_the_filtered_list(
    listing: Listing, size: int, states: set[str], digits: set[int], wild: bool
) -> None:
    """Whether a value is looked up in the store or, for a wildcard, compared afterwards is all the same."""
    filters = []
    if states:
        filters += filtered(state=[f"{state}*" if wild else state for state in states])
    if digits:
        filters.append(
            {"Name": "tag:n", "Values": [f"?{'*' if wild else ''}" if wild else str(d) for d in digits]}
        )
    expected = [
        n
        for n in range(40)
        if (not states or STATES[n % 4] in states) and (not digits or wild or n % 10 in digits)
    ]
    pages = listing.walk(size, Filters=filters)
    assert [number for page in pages for number in names(page)] == expected


def test_a_row_that_comes_in_between_two_pages_shifts_nothing(tmp_path: Path) -> None:
    """A page goes on behind the last row that was shown."""
    listing = Listing(tmp_path / "y")
    listing.fill(4)
    first = listing.describe(MaxResults=2)
    listing.fill(3, first=4)
    second = listing.describe(MaxResults=2, NextToken=first["NextToken"])
    assert names(first["CapacityReservations"] + second["CapacityReservations"]) == [0, 1, 2, 3]
    listing.close()


def test_a_token_is_good_for_one_question_only(listing: Listing) -> None:
    """Made up, of other filters, of another operation: InvalidNextToken."""
    token = listing.describe(MaxResults=2)["NextToken"]
    for params in (
        {"NextToken": "nonsense"},
        {"NextToken": token[:-4]},
        {"NextToken": token, "Filters": filtered(state=["active"])},
    ):
        assert refusal(listing, **params) == "InvalidNextToken"
    assert refusal(listing, "DescribeCapacityBlocks", NextToken=token) == "InvalidNextToken"
    assert refusal(listing, "DescribeTags", NextToken=token) == "InvalidNextToken"


def test_ids_and_a_page_size_do_not_go_together(listing: Listing) -> None:
    """As EC2 documents."""
    ids = [f"cr-{3:017x}", f"cr-{1:017x}", f"cr-{3:017x}"]
    assert names(listing.describe(CapacityReservationIds=ids)["CapacityReservations"]) == [1, 3]
    both = {"CapacityReservationIds": ids, "MaxResults": 5}
    assert refusal(listing, **both) == "InvalidParameterCombination"
    assert refusal(listing, CapacityReservationIds=["cr-1"]) == "InvalidCapacityReservationId.Malformed"
    missing = {"CapacityReservationIds": [ids[0], f"cr-{99:017x}"]}
    assert refusal(listing, **missing) == "InvalidCapacityReservationId.NotFound"
    blocks = {"CapacityBlockIds": ["cb-nonsense"]}
    for name in ("DescribeCapacityBlocks", "DescribeCapacityBlockStatus"):
        assert refusal(listing, name, **blocks) == "InvalidCapacityBlockId.NotFound"


def test_a_page_costs_the_same_with_more_stored(tmp_path: Path) -> None:
    """SQLite takes as many steps for a page of 100 among 4,000 as among 400, also with filters."""
    listing = Listing(tmp_path / "y")

    def steps(**params: Any) -> int:
        """SQLite's own steps."""
        count = [0]
        connection = listing.opened.reader._connection

        def tick() -> int:
            count[0] += 1
            return 0

        connection.set_progress_handler(tick, 1)
        size = {} if "CapacityReservationIds" in params else {"MaxResults": 100}
        listing.describe(**size, **params)
        connection.set_progress_handler(None, 0)
        return count[0]

    some = [f"cr-{number:017x}" for number in (1, 7, 200)]
    kinds: list[dict[str, Any]] = [
        {},
        {"Filters": filtered(state=["active"])},
        {"Filters": filtered(state=["active", "no-such"], instance_type=["p5.48xlarge"])},
        {"Filters": [{"Name": "tag:rare", "Values": ["a", "b"]}]},
        {"CapacityReservationIds": some},
    ]
    listing.fill(400)
    tags = [{"Key": "rare", "Value": "a"}]
    listing.call("CreateTags", service="ec2", Resources=some, Tags=tags)
    before = [steps(**kind) for kind in kinds]
    listing.fill(3600, first=400)
    after = [steps(**kind) for kind in kinds]
    assert after == pytest.approx(before, rel=0.1)
    listing.close()


# -- filters ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("state", ["active"], True),
        ("state", ["act*"], True),
        ("state", ["a?tive"], True),
        ("state", ["Active"], False),
        ("state", [], False),
        ("state", ["scheduled", "active"], True),
        ("state", ["[a]ctive"], False),
        ("state", ["a\\*"], False),
        ("tag:team", ["a*b"], True),
        ("tag:team", ["a\\*b"], True),
        ("tag:team", ["axb"], False),
        ("tag-key", ["te*"], True),
        ("tag-key", ["team2"], False),
        ("tag:other", ["*"], False),
        ("flag", ["true"], True),
        ("when", ["2026-12-01T11:30:00Z"], True),
        ("when", ["2026-12-01T11:30:00.000Z"], True),
        ("when", ["2026-12-0?T*"], True),
        ("kind", ["k"], True),
        ("state", ["*ve*"], True),
        ("state", ["a*t*v*"], True),
        ("state", ["a*t*x*"], False),
    ],
)
def test_wildcards_case_tags_and_instants(name: str, values: list[str], expected: bool) -> None:
    """Values are ORed; star and question mark are wildcards unless escaped; brackets are no pattern."""
    shape = {
        "State": "active", "Flag": True, "When": datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
        "Tags": [{"Key": "team", "Value": "a*b"}],
    }  # fmt: skip
    assert passes(shape, [{"Name": name, "Values": values}], FACETS) is expected


def test_filters_are_anded_and_no_pattern_takes_long() -> None:
    """A value of sixty stars over a long text is settled, where naive matching would take years."""
    shape = {"State": "a" * 250}
    assert not passes(shape, filtered(state=["a*"], kind=["x"]), FACETS)
    begun = time.process_time()
    assert not passes(shape, filtered(state=["*a" * 60 + "b"]), FACETS)
    assert time.process_time() - begun < 20


def test_unknown_and_too_many_filters_are_refused(listing: Listing) -> None:
    """InvalidParameterValue names the filter; more than 50 filters or 200 values are too many."""
    assert refusal(listing, Filters=filtered(colour=["red"])) == "InvalidParameterValue"
    assert refusal(listing, Filters=filtered(state=["x"]) * 51) == "FilterLimitExceeded"
    assert refusal(listing, Filters=filtered(state=["x"] * 201)) == "FilterLimitExceeded"
    only = {"Filters": filtered(state=["ok"])}
    assert refusal(listing, "DescribeCapacityBlockStatus", **only) == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("wanted", "many"),
    [
        ({"instance_type": ["p5.4xlarge"]}, 20),
        ({"reservation_type": ["capacity-block"]}, 40),
        ({"reservation_type": ["default"]}, 0),
        ({"tenancy": ["default"]}, 40),
        ({"tenancy": ["dedicated"]}, 0),
        ({"instance_platform": ["Linux/UNIX"]}, 40),
        ({"end_date_type": ["limited"]}, 40),
        ({"instance_match_criteria": ["targeted"]}, 40),
        ({"interruptible": ["true"]}, 0),
        ({"outpost_arn": ["*"]}, 0),
        ({"placement_group_arn": ["*"]}, 0),
        ({"start_date": ["1970*"]}, 40),
        ({"tag:n": ["3"]}, 4),
        ({"tag_key": ["n"]}, 40),
        ({"state": ["active"], "instance_type": ["p5.48xlarge"], "tag:n": ["0", "4"]}, 4),
    ],
)
def test_every_filter_of_reservations(listing: Listing, wanted: dict[str, list[str]], many: int) -> None:
    """The documented ones, reservation-type of the user guide, and tags."""
    assert len(listing.describe(Filters=filtered(**wanted))["CapacityReservations"]) == many


def test_a_rehearsal_that_lags_refuses_the_unconfirmed_tag_filter(listing: Listing) -> None:
    """reservation-type and state go on working; what was written within the lag is not seen."""
    lag = timedelta(minutes=5)
    tagged = [{"Name": "tag:n", "Values": ["1"]}]
    assert refusal(listing, Filters=tagged, lag=lag) == "InvalidParameterValue"
    assert refusal(listing, Filters=filtered(tag_key=["n"]), lag=lag) == "InvalidParameterValue"
    seen = listing.describe(Filters=filtered(reservation_type=["capacity-block"], state=["active"]), lag=lag)
    assert len(seen["CapacityReservations"]) == 10


def test_a_tag_that_many_carry_finds_them_all(tmp_path: Path) -> None:
    """Few resources with a tag are looked up one by one, many are met in order: the answer is the same."""
    listing = Listing(tmp_path / "y")
    listing.fill(1300)
    wanted = [{"Name": "tag:n", "Values": ["0", "1", "2", "3", "4"]}]
    pages = listing.walk(400, Filters=wanted)
    assert [number for page in pages for number in names(page)] == [n for n in range(1300) if n % 10 < 5]
    listing.close()


# -- tags ------------------------------------------------------------------------------------------------
def test_a_tag_set_within_the_lag_is_not_seen_yet(tmp_path: Path) -> None:
    """Neither with its resource nor in DescribeTags; the older ones are."""
    listing = Listing(tmp_path / "y")
    listing.fill(1)
    resource = f"cr-{0:017x}"
    listing.call("CreateTags", service="ec2", Resources=[resource], Tags=[{"Key": "new", "Value": "1"}])
    listing.advance(minutes=4)
    for lag, keys in ((timedelta(minutes=5), ["n"]), (timedelta(minutes=3), ["n", "new"])):
        (found,) = listing.describe(lag=lag)["CapacityReservations"]
        assert [tag["Key"] for tag in found["Tags"]] == keys
        tags = listing.call("DescribeTags", service="ec2", lag=lag)["Tags"]
        assert [tag["Key"] for tag in tags] == keys
    listing.close()


def test_tags_are_put_changed_listed_and_taken_off(tmp_path: Path) -> None:
    """By key, by key and value, all of a person's at once; the yard's own stay."""
    listing = Listing(tmp_path / "y")
    listing.fill(2)
    ids = [f"cr-{0:017x}", f"cb-{1:017x}"]
    ec2 = lambda name, **params: listing.call(name, service="ec2", **params)  # noqa: E731
    ec2("CreateTags", Resources=ids, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b"}])
    ec2("CreateTags", Resources=ids[:1], Tags=[{"Key": "a", "Value": "2"}])
    found = {
        (tag["ResourceId"], tag["ResourceType"], tag["Key"]): tag["Value"]
        for tag in ec2("DescribeTags")["Tags"]
    }
    assert found == {
        (ids[0], "capacity-reservation", "a"): "2", (ids[0], "capacity-reservation", "b"): "",
        (ids[0], "capacity-reservation", "n"): "0", (f"cr-{1:017x}", "capacity-reservation", "n"): "1",
        (ids[1], "capacity-block", "a"): "1", (ids[1], "capacity-block", "b"): "",
    }  # fmt: skip
    pages = listing.walk(1, "DescribeTags")
    assert [len(page) for page in pages] == [1] * 6
    for wanted, many in (
        (filtered(key=["a"]), 2), (filtered(value=["2"]), 1), (filtered(resource_id=[ids[1]]), 2),
        (filtered(resource_type=["capacity-block"]), 2), ([{"Name": "tag:a", "Values": ["1"]}], 1),
        ([{"Name": "tag:b", "Values": ["1"]}], 0),
    ):  # fmt: skip
        assert len(ec2("DescribeTags", Filters=wanted)["Tags"]) == many, wanted
    ec2(
        "DeleteTags",
        Resources=ids,
        Tags=[{"Key": "a", "Value": "2"}, {"Key": "n", "Value": ""}, {"Key": "zzz"}],
    )
    assert [tag["Value"] for tag in ec2("DescribeTags", Filters=filtered(key=["a"]))["Tags"]] == ["1"]
    ec2("DeleteTags", Resources=ids[:1])
    assert [tag["Key"] for tag in ec2("DescribeTags", Filters=filtered(resource_id=ids[:1]))["Tags"]] == []
    listing.close()


def test_tags_that_are_not_allowed_are_refused_and_nothing_is_put(tmp_path: Path) -> None:
    """Reserved, empty, too long, twice, too many; an id of nobody's, of another's, of no kind."""
    listing = Listing(tmp_path / "y")
    listing.fill(1)
    there = [f"cr-{0:017x}"]
    for tags, code in (
        ([{"Key": "aws:x", "Value": ""}], "InvalidParameterValue"),
        ([{"Key": "AWS:x"}], "InvalidParameterValue"),
        ([{"Key": ""}], "InvalidParameterValue"), ([{"Key": "k" * 129}], "InvalidParameterValue"),
        ([{"Key": "k", "Value": "v" * 257}], "InvalidParameterValue"),
        ([{"Key": "k"}, {"Key": "k"}], "InvalidParameterValue"),
        ([{"Key": str(n)} for n in range(51)], "TagLimitExceeded"),
        ([{"Key": str(n)} for n in range(50)], "TagLimitExceeded"),  # with the one that is there
    ):  # fmt: skip
        assert refusal(listing, "CreateTags", Resources=there, Tags=tags) == code
    one = [{"Key": "k", "Value": "v"}]
    for ids, code in (
        ([there[0], f"cr-{5:017x}"], "InvalidCapacityReservationId.NotFound"), (["x-1"], "InvalidID"),
        (["cb-1"], "InvalidCapacityBlockId.NotFound"), ([], "InvalidParameterValue"),
        (there * 1001, "InvalidParameterValue"),
    ):  # fmt: skip
        assert refusal(listing, "CreateTags", Resources=ids, Tags=one) == code
        assert refusal(listing, "DeleteTags", Resources=ids) == code
    foreign = {"account": listing.add_account("other"), "Resources": there, "Tags": one}
    assert refusal(listing, "CreateTags", **foreign) == "InvalidCapacityReservationId.NotFound"
    assert refusal(listing, "DeleteTags", Resources=there, Tags=[{"Key": "aws:x"}]) == "InvalidParameterValue"
    for name in ("CreateTags", "DeleteTags"):
        assert refusal(listing, name, Resources=there, Tags=one, DryRun=True) == "DryRunOperation"
    assert len(listing.call("DescribeTags", service="ec2")["Tags"]) == 1
    listing.close()
