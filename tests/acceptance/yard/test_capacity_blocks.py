"""Capacity Blocks as boto3 meets them: search, purchase, describe, states by the clock, refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError

from berth.yard.testing.process import YardProcess

from .conftest import refused

BLOCKS = Path(__file__).parents[2] / "unit" / "yard" / "blocks.toml"
YARD = {"fleet": BLOCKS}
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
DAY = timedelta(days=1)
ID = r"^cb-[0-9a-f]{17}$"


@pytest.fixture(scope="module")
def client(shared: YardProcess) -> Any:
    """One client of the shared yard: making one costs more than most tests."""
    return shared.clients.ec2


def offers(client: Any, **more: Any) -> list[dict[str, Any]]:
    """Offerings for one p5.48xlarge for 24 h, unless told otherwise."""
    asked = {"InstanceType": "p5.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 24}
    found: list[dict[str, Any]] = client.describe_capacity_block_offerings(**{**asked, **more})[
        "CapacityBlockOfferings"
    ]
    return found


def wanted(offer: dict[str, Any]) -> dict[str, str]:
    """What a purchase of that offering sends."""
    return {"CapacityBlockOfferingId": offer["CapacityBlockOfferingId"], "InstancePlatform": "Linux/UNIX"}


def buy(client: Any, offer: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Buy that offering or the first; the reservation."""
    offer = offer or offers(client)[0]
    bought: dict[str, Any] = client.purchase_capacity_block(
        **{"CapacityBlockOfferingId": offer["CapacityBlockOfferingId"], "InstancePlatform": "Linux/UNIX"}
        | more
    )["CapacityReservation"]
    return bought


def reservations(client: Any, **filters: str) -> list[dict[str, Any]]:
    """All pages of DescribeCapacityReservations with these filters."""
    wanted = [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()]
    pages = client.get_paginator("describe_capacity_reservations").paginate(
        Filters=wanted, PaginationConfig={"PageSize": 2}
    )
    return [one for page in pages for one in page["CapacityReservations"]]


def tagged(key: str, value: str, kind: str = "capacity-reservation") -> dict[str, Any]:
    """TagSpecifications with one tag."""
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value}]}]}


# -- search ----------------------------------------------------------------------------------------------
def test_an_offering_has_what_aws_shows_and_no_more(client: Any) -> None:
    """Zone name but no zone id; hours and minutes; the fee as text with cents."""
    (first, second, *_) = offers(client, StartDateRange=NOW + DAY)
    assert set(first) == {
        "CapacityBlockOfferingId", "InstanceType", "AvailabilityZone", "InstanceCount", "StartDate",
        "EndDate", "CapacityBlockDurationHours", "CapacityBlockDurationMinutes", "UpfrontFee", "CurrencyCode",
        "Tenancy", "ZoneType",
    }  # fmt: skip
    assert first["StartDate"] == datetime(2026, 12, 2, 11, 30, tzinfo=UTC)
    assert (first["UpfrontFee"], first["CurrencyCode"], first["Tenancy"]) == ("1146.17", "USD", "default")
    assert (first["CapacityBlockDurationHours"], first["CapacityBlockDurationMinutes"]) == (24, 0)
    assert first["ZoneType"] == "availability-zone"
    assert second["StartDate"] > first["StartDate"]


def test_a_search_finds_at_most_six_and_pages_hold_as_many_as_asked(client: Any) -> None:
    """The paginator's pages together are the one answer."""
    whole = [one["StartDate"] for one in offers(client)]
    assert len(whole) == 6
    pages = list(
        client.get_paginator("describe_capacity_block_offerings").paginate(
            InstanceType="p5.48xlarge", InstanceCount=1, CapacityDurationHours=24,
            PaginationConfig={"PageSize": 4},
        )
    )  # fmt: skip
    assert [len(page["CapacityBlockOfferings"]) for page in pages] == [4, 2]
    assert [one["StartDate"] for page in pages for one in page["CapacityBlockOfferings"]] == whole


def test_a_fleet_may_show_hundreds_over_several_pages(make_yard: Any, tmp_path: Path) -> None:
    """230 offerings over 3 pages, each id whole and good."""
    fleet, text = tmp_path / "many.toml", BLOCKS.read_text()
    text = text.replace("[engine]", "[blocks]\nofferings_max = 230\n\n[engine]")
    fleet.write_text(text.replace("use1-az2 = 4, use1-atl2", "use1-az2 = 4, use1-az3 = 4, use1-atl2"))
    client = make_yard(fleet=fleet).clients.ec2
    pages = list(
        client.get_paginator("describe_capacity_block_offerings").paginate(
            InstanceType="p5.48xlarge", InstanceCount=1, CapacityDurationHours=24, AllAvailabilityZones=True
        )
    )
    found = [one for page in pages for one in page["CapacityBlockOfferings"]]
    assert [len(page["CapacityBlockOfferings"]) for page in pages] == [100, 100, 30]
    assert len({one["CapacityBlockOfferingId"] for one in found}) == 230
    last = [one for one in found if one["ZoneType"] == "availability-zone"][-1]
    assert buy(client, last)["State"] == "payment-pending"


def test_local_zones_are_seen_when_opted_in_or_asked_for(make_yard: Any) -> None:
    """Bought only after the opt-in; DescribeAvailabilityZones tells which."""
    client = make_yard(fleet=BLOCKS).clients.ec2
    local = "us-east-1-atl-2a"
    assert local not in {one["AvailabilityZone"] for one in offers(client)}
    assert local not in {
        zone["ZoneName"] for zone in client.describe_availability_zones()["AvailabilityZones"]
    }
    shown = [one for one in offers(client, AllAvailabilityZones=True) if one["AvailabilityZone"] == local]
    assert {one["ZoneType"] for one in shown} == {"local-zone"}
    assert refused(client.purchase_capacity_block, **wanted(shown[-1])).code == "OptInRequired"
    group = "us-east-1-atl-2"
    assert client.modify_availability_zone_group(GroupName=group, OptInStatus="opted-in")["Return"] is True
    assert local in {one["AvailabilityZone"] for one in offers(client)}
    zones = {zone["ZoneName"]: zone for zone in client.describe_availability_zones()["AvailabilityZones"]}
    assert (zones[local]["OptInStatus"], zones[local]["GroupName"]) == ("opted-in", group)
    assert buy(client, shown[-1])["AvailabilityZone"] == local
    out = {"GroupName": group, "OptInStatus": "not-opted-in"}
    assert refused(client.modify_availability_zone_group, **out).code == "UnsupportedOperation"
    nowhere = {"GroupName": "us-east-1-xyz-1", "OptInStatus": "opted-in"}
    assert refused(client.modify_availability_zone_group, **nowhere).code == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ({"CapacityDurationHours": 17 * 24}, "InvalidParameterValue", "duration is not valid"),
        ({"StartDateRange": NOW - DAY}, "InvalidParameterValue", "start date is not valid"),
        ({"InstanceType": "m5.large"}, "InvalidParameterValue", "'m5.large' is not supported"),
        ({"InstanceCount": 65}, "InvalidParameterValue", "count is not valid"),
        ({"InstanceType": "p4d.24xlarge"}, "CapacityBlockDescribeLimitExceeded", "existing service limits"),
        ({"UltraserverType": "u-trn2x64"}, "UnauthorizedOperation", "EC2 UltraServer"),
        (
            {"InstanceTypePreferences": [{"InstanceType": "p5.4xlarge"}]}, "InvalidParameterCombination",
            "cannot be used",
        ),
        ({"NextToken": "made-up"}, "InvalidNextToken", "begin again"),
        ({"DryRun": True}, "DryRunOperation", "would have succeeded"),
    ],
)  # fmt: skip
def test_searches_that_are_refused(client: Any, asked: dict[str, Any], code: str, words: str) -> None:
    """Each with AWS's code, and its words where they are known."""
    query = {"InstanceType": "p5.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 24, **asked}
    error = refused(client.describe_capacity_block_offerings, **query)
    assert error.code == code
    assert words in error.message


# -- buy -------------------------------------------------------------------------------------------------
def test_a_purchase_answers_with_the_pending_reservation_and_its_block(
    shared: YardProcess, client: Any
) -> None:
    """Zero counts, the two aws: tags, ours; the block object with tags of its own."""
    offer = offers(client, InstanceCount=2, StartDateRange=NOW + 20 * DAY)[0]
    specifications = [
        *tagged("order", "1")["TagSpecifications"],
        *tagged("b", "2", "capacity-block")["TagSpecifications"],
    ]
    answer = client.purchase_capacity_block(
        CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Ubuntu Pro",
        TagSpecifications=specifications,
    )  # fmt: skip
    bought, (block,) = answer["CapacityReservation"], answer["CapacityBlocks"]
    zones = client.describe_availability_zones()["AvailabilityZones"]
    assert {zone["ZoneName"]: zone["ZoneId"] for zone in zones}[offer["AvailabilityZone"]] == bought[
        "AvailabilityZoneId"
    ]
    expected = {
        "State": "payment-pending", "TotalInstanceCount": 0, "AvailableInstanceCount": 0,
        "Tenancy": "default",
        "InstanceType": "p5.48xlarge", "InstancePlatform": "Ubuntu Pro", "ReservationType": "capacity-block",
        "EndDateType": "limited", "InstanceMatchCriteria": "targeted", "StartDate": offer["StartDate"],
        "EndDate": offer["EndDate"], "AvailabilityZone": offer["AvailabilityZone"],
        "CapacityBlockId": block["CapacityBlockId"], "CreateDate": shared.clock.now,
    }  # fmt: skip
    assert {name: bought[name] for name in expected} == expected
    assert {tag["Key"]: tag["Value"] for tag in bought["Tags"]} == {
        "aws:ec2capacityreservation:incrementalRequestedQuantity": "2",
        "aws:ec2capacityreservation:capacityReservationType": "capacity-block",
        "order": "1",
    }
    assert bought["CapacityReservationArn"].endswith(
        f":capacity-reservation/{bought['CapacityReservationId']}"
    )
    assert block["CapacityReservationIds"] == [bought["CapacityReservationId"]]
    assert (block["State"], block["Tags"]) == ("payment-pending", [{"Key": "b", "Value": "2"}])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"InstancePlatform": "Windows"}, "InvalidParameterValue"),
        ({"CapacityBlockOfferingId": "cb-nonsense"}, "InvalidCapacityBlockOfferingIdMalformed"),
        ({"CapacityBlockOfferingId": "cbr-0123456789abcdef0"}, "InvalidCapacityBlockOfferingIdMalformed"),
        ({"CapacityBlockOfferingId": "cb-0123456789abcdef0"}, "InvalidCapacityBlockOfferingIdNotFound"),
        (tagged("k", "v", "instance"), "InvalidParameterValue"),
        (tagged("aws:k", "v"), "InvalidParameterValue"),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_purchases_that_are_refused(client: Any, changed: dict[str, Any], code: str) -> None:
    """Each with its code, and nothing is bought."""
    before = len(reservations(client))
    assert refused(client.purchase_capacity_block, **{**wanted(offers(client)[-1]), **changed}).code == code
    assert len(reservations(client)) == before


def test_offerings_grow_old(make_yard: Any) -> None:
    """Twenty minutes for a start at once, an hour for a scheduled one: then they have expired."""
    yard = make_yard(fleet=BLOCKS)
    client = yard.clients.ec2
    found = offers(client)
    at_once = next(one for one in found if one["StartDate"] == NOW + timedelta(minutes=30))
    later = next(one for one in found if one["StartDate"].minute == 30 and one["StartDate"] > NOW + DAY)
    yard.clock.advance(minutes=19)
    assert buy(client, at_once)["State"] == "payment-pending"
    yard.clock.advance(minutes=1)
    for minutes, offer in ((0, at_once), (40, later)):
        yard.clock.advance(minutes=minutes)
        assert (
            refused(client.purchase_capacity_block, **wanted(offer)).code
            == "InvalidCapacityBlockOfferingIdExpired"
        )


def test_an_offer_of_one_account_or_region_is_nobody_elses(make_yard: Any) -> None:
    """Two accounts, two Regions: unknown ids, separate lists, zone names of their own."""
    yard = make_yard(fleet=BLOCKS)
    yard.account("colleague")
    mine, theirs, west = (
        yard.clients.ec2,
        yard.clients_of("colleague").ec2,
        yard.clients("ec2", region="us-west-2"),
    )
    offer = offers(mine)[-1]
    for client in (theirs, west):
        assert (
            refused(client.purchase_capacity_block, **wanted(offer)).code
            == "InvalidCapacityBlockOfferingIdNotFound"
        )
    bought = buy(mine, offer)["CapacityReservationId"]
    assert reservations(theirs) == reservations(west) == []
    there = {"CapacityReservationIds": [bought]}
    assert (
        refused(theirs.describe_capacity_reservations, **there).code
        == "InvalidCapacityReservationId.NotFound"
    )
    tag = {"Resources": [bought], "Tags": [{"Key": "k", "Value": "v"}]}
    assert refused(theirs.create_tags, **tag).code == "InvalidCapacityReservationId.NotFound"
    names = {
        zone["ZoneId"]: zone["ZoneName"] for zone in theirs.describe_availability_zones()["AvailabilityZones"]
    }
    ours = {
        zone["ZoneId"]: zone["ZoneName"] for zone in mine.describe_availability_zones()["AvailabilityZones"]
    }
    assert names.keys() == ours.keys()


def test_limits_over_all_blocks(make_yard: Any) -> None:
    """64 a block, 256 over all of them in every Region, then refused as a limit."""
    yard = make_yard(fleet=BLOCKS)
    west = yard.clients("ec2", region="us-west-2")
    for _ in range(3):
        buy(west, offers(west, InstanceCount=64)[0])
    buy(west, offers(west, InstanceCount=60)[0])
    east = yard.clients.ec2
    error = refused(east.purchase_capacity_block, **wanted(offers(east, InstanceCount=5)[0]))
    assert (error.code, "256" in error.message) == ("InstanceLimitExceeded", True)
    assert buy(east, offers(east, InstanceCount=4)[0])["State"] == "payment-pending"


# -- look ------------------------------------------------------------------------------------------------
def test_a_block_is_followed_through_all_describe_calls(make_yard: Any) -> None:
    """State and counts in reservations, blocks and statuses, at each turn of the clock; one fee."""
    yard = make_yard(fleet=BLOCKS)
    client = yard.clients.ec2
    bought = buy(client, offers(client, InstanceCount=3)[0], **tagged("order", "7"))
    name, block = bought["CapacityReservationId"], bought["CapacityBlockId"]
    seen = []
    for instant in (NOW, NOW + timedelta(minutes=5), bought["StartDate"], bought["EndDate"]):
        if instant > NOW:
            yard.clock.set(instant)
        (one,) = reservations(client, **{"tag:order": "7"}, reservation_type="capacity-block")
        (other,) = client.describe_capacity_blocks(CapacityBlockIds=[block])["CapacityBlocks"]
        (status,) = client.describe_capacity_block_status()["CapacityBlockStatuses"]
        assert (one["CapacityReservationId"], other["State"]) == (name, one["State"])
        assert len(reservations(client, state="active")) == (one["State"] == "active")
        (inside,) = status["CapacityReservationStatuses"]
        assert inside["CapacityReservationId"] == name
        seen.append(
            (
                one["State"],
                one["TotalInstanceCount"],
                one["AvailableInstanceCount"],
                status["TotalAvailableCapacity"],
            )
        )
    assert seen == [
        ("payment-pending", 0, 0, 0), ("scheduled", 0, 0, 0), ("active", 3, 3, 3), ("expired", 3, 0, 0),
    ]  # fmt: skip
    assert [entry["amount"] for entry in yard.ledger] == [str(float(offers_fee(bought)))]
    for filters in (
        [{"Name": "tags", "Values": ["order"]}],
        [{"Name": "ultraserver-type", "Values": ["ultraservers"]}],
    ):
        assert client.describe_capacity_blocks(Filters=filters)["CapacityBlocks"] == []
    assert (
        len(
            client.describe_capacity_blocks(Filters=[{"Name": "state", "Values": ["expired"]}])[
                "CapacityBlocks"
            ]
        )
        == 1
    )


def offers_fee(bought: dict[str, Any]) -> float:
    """Rate x 3 x hours of the block."""
    hours = (bought["EndDate"] - bought["StartDate"]) / timedelta(hours=1)
    return round(47.757 * 3 * hours + 1e-9, 2)


def test_paginators_of_all_three_lists(make_yard: Any) -> None:
    """Pages of two over five seeded blocks."""
    yard = make_yard(fleet=BLOCKS)
    ids = [
        yard.seed.block(region="us-west-2", tags={"n": str(n)})["capacity_reservation_id"] for n in range(5)
    ]
    client = yard.clients("ec2", region="us-west-2")
    assert [one["CapacityReservationId"] for one in reservations(client)] == ids
    for operation, member in (
        ("describe_capacity_blocks", "CapacityBlocks"),
        ("describe_capacity_block_status", "CapacityBlockStatuses"),
        ("describe_tags", "Tags"),
    ):  # fmt: skip
        pages = list(client.get_paginator(operation).paginate(PaginationConfig={"PageSize": 2}))
        assert [len(page[member]) for page in pages] == ([2, 2, 1] if member != "Tags" else [2] * 7 + [1])
    ended = yard.seed.block(state="expired", region="us-west-2", start=NOW - 3 * DAY, duration="48h")
    assert [one["CapacityReservationId"] for one in reservations(client, state="expired")] == [
        ended["capacity_reservation_id"]
    ]


# -- faults ----------------------------------------------------------------------------------------------
def test_stock_boto3_buys_several_blocks_on_lost_replies(make_yard: Any) -> None:
    """The line is cut after every commit: default retries send again, and every one of them is paid."""
    yard = make_yard(fleet=BLOCKS)
    client = yard.clients.ec2
    offer = offers(client, StartDateRange=NOW + DAY)[0]
    yard.fault("lost-reply", "PurchaseCapacityBlock", times=None)
    with pytest.raises(ConnectionClosedError):
        buy(client, offer)
    yard.clear_faults()
    bought = reservations(client)
    calls = yard.log_of("PurchaseCapacityBlock")
    assert len(bought) == len(calls) > 1
    assert len({call["invocation_id"] for call in calls}) == 1
    yard.clock.advance(minutes=6)
    assert [entry["amount"] for entry in yard.ledger] == ["1146.17"] * len(bought)


def test_what_went_wrong_after_the_commit_is_bought_once_by_who_does_not_resend(
    shared: YardProcess, client: Any
) -> None:
    """One attempt: an outcome that is not known, and exactly one block, found by its tag."""
    once = shared.clients("ec2", retries={"total_max_attempts": 1}, read_timeout=5)
    for kind, amount in (("lost-reply", ""), ("error-after-commit", ""), ("stall", "0.2")):
        offer = offers(client)[-1]
        shared.fault(kind, "PurchaseCapacityBlock", amount=amount)
        with pytest.raises((BotoCoreError, ClientError), match=r"Connection|InternalFailure"):
            buy(once, offer, **tagged("order", kind))
        assert len(reservations(client, **{"tag:order": kind})) == 1


def test_gone_throttled_dearer_unpaid(make_yard: Any) -> None:
    """The faults that meet a purchase: each its code, nothing bought by the refused."""
    yard = make_yard(fleet=BLOCKS)
    client = yard.clients("ec2", retries={"total_max_attempts": 1})
    offer = offers(client, StartDateRange=NOW + DAY)[0]
    yard.fault("gone", "PurchaseCapacityBlock")
    assert (
        refused(client.purchase_capacity_block, **wanted(offer)).code
        == "InvalidCapacityBlockOfferingIdExpired"
    )
    yard.fault("throttle", "PurchaseCapacityBlock")
    throttled = refused(client.purchase_capacity_block, **wanted(offer))
    assert (throttled.code, throttled.status) == ("RequestLimitExceeded", 503)
    yard.fault("price-change", "DescribeCapacityBlockOfferings", times=None, amount="1.15")
    assert (
        refused(client.purchase_capacity_block, **wanted(offer)).code
        == "InvalidCapacityBlockOfferingIdExpired"
    )
    dearer = offers(client, StartDateRange=NOW + DAY)[0]
    assert (offer["UpfrontFee"], dearer["UpfrontFee"]) == ("1146.17", "1318.09")
    buy(client, dearer)
    yard.fault("payment-failure", "PurchaseCapacityBlock")
    failed = buy(client, dearer)["CapacityReservationId"]
    yard.clock.advance(minutes=5)
    states = {one["CapacityReservationId"]: one["State"] for one in reservations(client)}
    assert states.pop(failed) == "payment-failed"
    assert list(states.values()) == ["scheduled"]
    assert [entry["amount"] for entry in yard.ledger] == ["1318.09"]


def test_writes_are_seen_late_when_told_so(make_yard: Any) -> None:
    """A block bought now shows up minutes later, in an older state; its tags cannot be filtered by then."""
    yard = make_yard(fleet=BLOCKS)
    client = yard.clients.ec2
    yard.fault("lag", "Describe*", times=None, amount="5")
    name = buy(client, offers(client, StartDateRange=NOW + DAY)[0], **tagged("o", "1"))[
        "CapacityReservationId"
    ]
    tag_filter = {"Filters": [{"Name": "tag:o", "Values": ["1"]}]}
    for minutes, expected in ((0, []), (4, []), (2, ["payment-pending"]), (5, ["scheduled"])):
        if minutes:
            yard.clock.advance(minutes=minutes)
        assert [one["State"] for one in reservations(client)] == expected
        assert [one["State"] for one in client.describe_capacity_blocks()["CapacityBlocks"]] == expected
    assert refused(client.describe_capacity_reservations, **tag_filter).code == "InvalidParameterValue"
    yard.clear_faults()
    (found,) = client.describe_capacity_reservations(**tag_filter)["CapacityReservations"]
    assert found["CapacityReservationId"] == name


def test_answers_may_lack_members_and_hold_unknown_values(shared: YardProcess, client: Any) -> None:
    """The purchase still answers with its id; states that no model knows come through."""
    shared.fault(
        "absent-members", "PurchaseCapacityBlock", amount="Tags,EndDateType,CapacityBlocks,ReservationType"
    )
    bought = buy(client)
    assert not {"Tags", "EndDateType", "ReservationType"} & bought.keys()
    shared.fault("unknown-values", "DescribeCapacityReservations", times=None, amount="State")
    assert {one["State"] for one in reservations(client)} == {"never-heard-of"}
    assert bought["CapacityReservationId"].startswith("cr-")


def test_the_rehearsal_fleet_throttles_the_search_as_aws_does(make_yard: Any) -> None:
    """Ten searches at once, the eleventh is refused; another Region has a bucket of its own."""
    yard = make_yard()
    client = yard.clients("ec2", retries={"total_max_attempts": 1})
    for _ in range(10):
        offers(client)
    asked = {"InstanceType": "p5.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 24}
    assert refused(client.describe_capacity_block_offerings, **asked).code == "RequestLimitExceeded"
    assert offers(yard.clients("ec2", region="us-west-2", retries={"total_max_attempts": 1})) != []
