"""What a raw client bought is adopted, used and cleaned up; what is left is told until nothing is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from berth.terms.instants import iso, parse_instant

NEED = """
name = "lab"
instance_type = "p5.48xlarge"
count = 1
duration = "24h"
target = "instances"
regions = ["us-east-1"]
[tags]
team = "a"
[launch]
image = "{image}"
"""
SERVED = """
name = "served"
instance_type = "ml.trn1.32xlarge"
count = 1
duration = "24h"
target = "endpoint"
regions = ["us-east-1"]
[deployment]
image = "rehearsal/echo:1"
role = "arn:aws:iam::123456789012:role/serving"
"""

numbers = count(1)


class Elsewhere:
    """The command line of one account, and the raw client with which somebody buys beside it."""

    def __init__(self, berth: Any, account: str) -> None:
        self.berth = berth
        self.yard = berth.yard
        self.clients = self.yard.clients_of(account)
        self.id: str = self.clients.sts.get_caller_identity()["Account"]

    def __call__(self, *words: str) -> Any:
        """Run `berth WORDS`."""
        return self.berth(*words)

    def block(self, **tags: str) -> tuple[str, str]:
        """Buy a block with boto3 alone, as a console would: its `cr-...`, and what was paid for it."""
        ec2 = self.clients.ec2
        offers = ec2.describe_capacity_block_offerings(
            InstanceType="p5.48xlarge", InstanceCount=1, CapacityDurationHours=24,
            StartDateRange=self.yard.clock.now + timedelta(hours=20),
        )["CapacityBlockOfferings"]  # fmt: skip
        marks = [{"Key": key, "Value": value} for key, value in tags.items()]
        specification = [{"ResourceType": "capacity-reservation", "Tags": marks}] if marks else []
        bought = ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offers[0]["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX",
            TagSpecifications=specification,
        )["CapacityReservation"]  # fmt: skip
        return bought["CapacityReservationId"], offers[0]["UpfrontFee"]

    def training_plan(self, name: str) -> str:
        """Buy a training plan for endpoints with boto3 alone; its ARN."""
        offer = self.clients.sagemaker.search_training_plan_offerings(
            InstanceType="ml.trn1.32xlarge", InstanceCount=1, DurationHours=24, TargetResources=["endpoint"]
        )["TrainingPlanOfferings"][0]
        arn: str = self.clients.sagemaker.create_training_plan(
            TrainingPlanName=name, TrainingPlanOfferingId=offer["TrainingPlanOfferingId"]
        )["TrainingPlanArn"]
        return arn

    def tags(self, reservation: str) -> dict[str, str]:
        """Tags of a block."""
        (shown,) = self.clients.ec2.describe_capacity_reservations(CapacityReservationIds=[reservation])[
            "CapacityReservations"
        ]
        return {tag["Key"]: tag["Value"] for tag in shown["Tags"]}

    def file(self, text: str) -> str:
        """Write a need file; its path."""
        path = self.berth.folder / "need.toml"
        image = self.clients.ec2.describe_images(
            Filters=[{"Name": "platform-details", "Values": ["Linux/UNIX"]}]
        )["Images"][0]["ImageId"]
        path.write_text(text.replace("{image}", image))
        return str(path)

    def reach(self, name: str, share: float = 0.25) -> None:
        """Move the yard's clock into the order's window, so far as a share of it."""
        window = self("show", name, "--json").json["offer"]["segments"][0]
        start, end = (parse_instant(window[edge]) for edge in ("start", "end"))
        self.yard.clock.set(max(start + (end - start) * share, self.yard.clock.now))


@pytest.fixture
def elsewhere(house: Any, at_yard: Callable[..., Any]) -> Iterator[Elsewhere]:
    """An account of its own for each test."""
    name = f"account-{next(numbers)}"
    house.account(name)
    yield Elsewhere(at_yard(house, name), name)
    house.clear_faults()


def test_a_block_bought_elsewhere_is_adopted_launched_into_and_cleaned(elsewhere: Elsewhere) -> None:
    """Nothing is paid; its mark and fee are on it; launch, show, leave and clean work as for one bought here,
    and after a quarter of the window three quarters of the fee are told as unused (field fault 4)."""
    block, fee = elsewhere.block()
    sold = len(elsewhere.yard.ledger)
    adopted = elsewhere("adopt", block, "--as", elsewhere.file(NEED), "--paid", fee, "--json")
    assert adopted.code == 0, adopted.err
    assert adopted.json["schema"] == "berth.adopt/1"
    assert adopted.json["money"]["amount"]["amount"] == fee
    assert len(elsewhere.yard.ledger) <= sold + 1  # the client's own purchase, once it is paid
    assert elsewhere.tags(block)["berth:order"] == f"{elsewhere.id}/lab/1"
    assert elsewhere.tags(block)["berth:fee"] == f"{fee} USD"
    elsewhere.reach("lab")
    launched = elsewhere("launch", "lab", "--json")
    assert launched.code == 0, launched.err
    running = elsewhere("leave", "--json", "--region", "us-east-1")
    assert running.code == 32
    assert [one["block"] for one in running.json["instances"]] == [block]
    (paid,) = running.json["paid"]
    assert Decimal(paid["unused"]["amount"]) == pytest.approx(Decimal(fee) * 3 / 4, abs=Decimal("0.02"))
    elsewhere("clean", "lab")
    elsewhere.yard.clock.advance(minutes=15)
    assert elsewhere("clean", "lab").code == 31
    left = elsewhere("leave", "--region", "us-east-1")
    assert left.code == 31
    assert f"{block} (active), order lab: paid until" in " ".join(left.out.split())
    assert "nothing runs" in left.err
    elsewhere.reach("lab", 1.01)
    elsewhere.yard.clock.advance(minutes=1)
    done = elsewhere("leave", "--region", "us-east-1")
    assert (done.code, done.out) == (0, "nothing is left; 1 Region looked at\n")


def test_a_training_plan_keeps_its_own_name(elsewhere: Elsewhere) -> None:
    """Named by its ARN, adopted with the fee that AWS shows, deployed into, cleaned."""
    arn = elsewhere.training_plan("From-the-Console")
    file = elsewhere.file(SERVED.replace("123456789012", elsewhere.id))
    adopted = elsewhere("adopt", arn, "--as", file, "--json")
    assert adopted.code == 0, adopted.err
    assert adopted.json["training_plan"] == "From-the-Console"
    tags = elsewhere.clients.sagemaker.list_tags(ResourceArn=arn)["Tags"]
    assert {"Key": "berth:order", "Value": f"{elsewhere.id}/served/1"} in tags
    elsewhere.reach("served", 0.1)
    deployed = elsewhere("deploy", "served")
    assert deployed.code == 0, deployed.err
    left = elsewhere("leave", "--json", "--region", "us-east-1")
    assert left.code == 32, left.err
    assert len(left.json["endpoints"]) == 1
    assert elsewhere("clean", "served").code == 31
    (held,) = elsewhere("ls", "--json", "--region", "us-east-1").json["reservations"]
    assert (held["id"], held["order"]) == ("From-the-Console", "served")


def test_what_is_unknown_of_the_fee_is_asked_for_and_not_taken_for_nothing(elsewhere: Elsewhere) -> None:
    """A block's fee is shown to nobody; a plan's is, and another amount is refused."""
    block, _ = elsewhere.block()
    unpaid = elsewhere("adopt", block, "--as", "lab")
    assert (unpaid.code, unpaid.money) == (15, "nothing was spent")
    assert "--paid AMOUNT" in unpaid.err
    assert "berth:order" not in elsewhere.tags(block)
    elsewhere.training_plan("p")
    assert elsewhere("adopt", "p", "--as", "plan", "--paid", "1.00").code == 20
    assert elsewhere("show", "--json").json["orders"] == []


def test_what_is_another_order_is_not_adopted_again(elsewhere: Elsewhere) -> None:
    """Running it again says so; another name is refused, and so is an order's name that is taken."""
    block, fee = elsewhere.block()
    assert elsewhere("adopt", block, "--as", "lab", "--paid", fee).code == 0
    again = elsewhere("adopt", block, "--as", "lab", "--paid", fee)
    assert (again.code, "adopted already" in again.err) == (0, True)
    other = elsewhere("adopt", block, "--as", "other", "--paid", fee)
    assert (other.code, "is order lab already" in other.err) == (20, True)
    second, fee = elsewhere.block()
    taken = elsewhere("adopt", second, "--as", "lab", "--paid", fee)
    assert taken.code == 20
    assert f"next: berth adopt {second} --as lab/2" in taken.err
    assert elsewhere("adopt", second, "--as", "lab/2", "--paid", fee).code == 0


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ({"berth:order": "111122223333/theirs/1"}, "carries the mark of another order"),
        ({"team": "b"}, "team=b"),
    ],
)
def test_what_carries_anothers_mark_is_refused_unless_said_so(
    elsewhere: Elsewhere, tags: dict[str, str], why: str
) -> None:
    """A colleague's order, or a team's tag; the need's own team is no other."""
    block, fee = elsewhere.block(**tags)
    refused = elsewhere("adopt", block, "--as", "lab", "--paid", fee)
    assert (refused.code, why in refused.err) == (15, True)
    assert elsewhere("adopt", block, "--as", "lab", "--paid", fee, "--take-over").code == 0
    assert elsewhere.tags(block)["berth:order"] == f"{elsewhere.id}/lab/1"


def test_without_a_tag_only_this_journal_knows(elsewhere: Elsewhere) -> None:
    """Which it says; everything works on it all the same. The team's tag of the need is no obstacle."""
    block, fee = elsewhere.block(team="a")
    adopted = elsewhere("adopt", block, "--as", elsewhere.file(NEED), "--paid", fee, "--no-tag")
    assert adopted.code == 0, adopted.err
    assert "another journal does not see" in adopted.err
    assert elsewhere.tags(block).get("berth:order") is None
    assert elsewhere("show", "lab", "--json").json["seen"]["name"] == block


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("cb-0123456789abcdef0", "wanted is its reservation, whose id begins with cr-"),
        ("cr-0123456789abcdef0", "shows no Capacity Block cr-0123456789abcdef0"),
        ("no-such-plan", "shows no training plan no-such-plan"),
        ("cr-nonsense", "names no reservation"),
        ("arn:aws:ec2:us-east-1:999999999999:capacity-reservation/cr-0123456789abcdef0", "us-east-1"),
    ],
)
def test_what_names_nothing_is_corrected_in_a_line(elsewhere: Elsewhere, named: str, said: str) -> None:
    """A block's own id where its reservation's belongs most of all (field fault 70), for launch too."""
    ended = elsewhere("adopt", named, "--as", "lab", "--paid", "1")
    assert ended.code in {20, 13}
    assert said in ended.err
    if named.startswith("cb-"):
        assert said in elsewhere("launch", "lab", "--block", named).err


def test_what_is_over_is_not_adopted(elsewhere: Elsewhere) -> None:
    """Expired or failed: there is nothing to have."""
    block, fee = elsewhere.block()
    (shown,) = elsewhere.clients.ec2.describe_capacity_reservations(CapacityReservationIds=[block])[
        "CapacityReservations"
    ]
    elsewhere.yard.clock.set(shown["EndDate"] + timedelta(minutes=1))
    ended = elsewhere("adopt", block, "--as", "lab", "--paid", fee)
    assert ended.code == 20
    assert "nothing to adopt" in ended.err
    assert iso(shown["EndDate"]) in ended.err


def test_leaving_tells_requests_in_doubt_and_regions_that_are_silent(elsewhere: Elsewhere) -> None:
    """An order whose paid call got no answer comes first; a quota request is waited for; unread is told."""
    service_quotas = elsewhere.clients("service-quotas")
    listed = service_quotas.list_service_quotas(ServiceCode="ec2")["Quotas"]
    code = next(one["QuotaCode"] for one in listed if one["QuotaCode"] == "L-417A185B")
    service_quotas.request_service_quota_increase(ServiceCode="ec2", QuotaCode=code, DesiredValue=5000)
    waiting = elsewhere("leave", "--json", "--region", "us-east-1")
    assert (waiting.code, waiting.json["quota_requests"][0]["desired"]) == (32, 5000.0)
    elsewhere.berth("plan", elsewhere.file(NEED))
    elsewhere.yard.fault("lost-reply", "PurchaseCapacityBlock")
    elsewhere.yard.fault("lag", "DescribeCapacityReservations", times=None, amount="5")
    assert elsewhere("buy", "lab#1", "--yes", "--max", "9000").code == 40
    doubt = elsewhere("leave", "--region", "us-east-1")
    assert doubt.code == 40
    assert "In doubt" in doubt.out
    elsewhere.yard.fault("throttle", "ListEndpoints", times=None)
    unread = elsewhere("leave", "--json", "--region", "us-east-1")
    assert unread.json["unread"][0]["region"] == "us-east-1"


def missing(journal: Path, patch: pytest.MonkeyPatch) -> None:
    """The folder is gone, and its journal with it."""
    journal.rename(journal.with_name("elsewhere.sqlite"))


def newer(journal: Path, patch: pytest.MonkeyPatch) -> None:
    """A newer program has brought it up to date."""
    with closing(sqlite3.connect(journal)) as db:
        db.execute("PRAGMA user_version=9999")


def overwritten(journal: Path, patch: pytest.MonkeyPatch) -> None:
    """What is there is no database."""
    journal.write_bytes(b"no journal " * 1000)


def holed(journal: Path, patch: pytest.MonkeyPatch) -> None:
    """Its first page is whole, and what follows is not."""
    with closing(sqlite3.connect(journal)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = journal.read_bytes()
    journal.write_bytes(raw[:4096] + b"\xff" * (len(raw) - 4096))


def garbled(journal: Path, patch: pytest.MonkeyPatch) -> None:
    """SQLite reads it, and what a row says is no order."""
    with closing(sqlite3.connect(journal)) as db:
        db.execute("UPDATE orders SET offer = '{\"way\": ['")
        db.commit()


def unreachable(journal: Path, patch: pytest.MonkeyPatch) -> None:
    """The server of the team's journal does not answer."""
    patch.setenv("BERTH_JOURNAL", f"postgresql://ada:secret@/journal?host={journal.parent}/no-socket")


def no_url(journal: Path, patch: pytest.MonkeyPatch) -> None:
    """What names it is no address of PostgreSQL."""
    patch.setenv("BERTH_JOURNAL", "mysql://somewhere/journal")


def adopted(elsewhere: Elsewhere) -> tuple[str, Path]:
    """A block that is order `lab` of a journal: its id, and the journal's file."""
    block, fee = elsewhere.block()
    assert elsewhere("adopt", block, "--as", "lab", "--paid", fee).code == 0
    return block, next(Path(elsewhere.berth.environment()["BERTH_HOME"]).rglob("journal.sqlite"))


@pytest.mark.parametrize("broken", [missing, newer, overwritten, holed, garbled, unreachable, no_url])
def test_leaving_without_the_journal(
    elsewhere: Elsewhere, broken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What AWS shows is told, by its marks; that intents are not seen is said; exit 14, and nothing made."""
    block, journal = adopted(elsewhere)
    broken(journal, monkeypatch)
    was = journal.read_bytes() if journal.exists() else None
    left = elsewhere("leave", "--region", "us-east-1")
    assert left.code == 14, left.err
    said = " ".join(left.out.split())
    assert f"{block} (payment-pending), order lab, by its tag: paid until" in said
    assert "Not seen without it: an order in doubt, an approval that waits" in said
    assert "the journal could not be read, so intents are not seen" in " ".join(left.err.split())
    assert left.money == "nothing was spent"
    assert "secret" not in left.out + left.err
    assert (journal.read_bytes() if journal.exists() else None) == was
    document = elsewhere("leave", "--json", "--region", "us-east-1").json
    assert document["exit_code"] == 14
    assert any(word in document["journal"] for word in (str(journal), "BERTH_JOURNAL", "no-socket"))
    assert [one["id"] for one in document["paid"]] == [block]


@pytest.mark.parametrize("broken", [newer, overwritten, holed, garbled, unreachable, no_url])
def test_what_aws_shows_is_listed_without_the_journal(
    elsewhere: Elsewhere, broken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`berth ls` goes on, says that the journal could not be read, ends with 14, and changes nothing."""
    block, journal = adopted(elsewhere)
    broken(journal, monkeypatch)
    was = journal.read_bytes()
    listed = elsewhere("ls", "--region", "us-east-1")
    assert listed.code == 14, listed.err
    assert block in listed.out
    assert "Not seen without it" in " ".join(listed.out.split())
    assert all(len(line) <= 80 or "/" in line for line in listed.out.splitlines())  # a path stays whole
    assert "the journal could not be read" in " ".join(listed.err.split())
    assert listed.money == "nothing was spent"
    document = elsewhere("ls", "--json", "--region", "us-east-1").json
    assert document["incomplete"]
    assert any(word in document["journal"] for word in (str(journal), "BERTH_JOURNAL", "no-socket"))
    assert [one["id"] for one in document["reservations"]] == [block]
    assert "secret" not in listed.out + listed.err
    assert journal.read_bytes() == was


def test_without_a_journal_nothing_is_missing_from_the_list(elsewhere: Elsewhere) -> None:
    """Who has bought nothing so far has no journal: `berth ls` ends well, and makes none."""
    block, _ = elsewhere.block()
    home = Path(elsewhere.berth.environment()["BERTH_HOME"])
    listed = elsewhere("ls", "--region", "us-east-1")
    assert listed.code == 0, listed.err
    assert block in listed.out
    assert not list(home.rglob("journal.sqlite"))
