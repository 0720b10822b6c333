"""Several pieces as one order through the command line, against yards over HTTP."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from berth import api
from berth.orders.pieces.tally import Tally
from berth.terms.instants import parse_instant

STAIRS = """
name = "{name}"
duration = "4d"
target = "instances"
regions = ["us-east-1"]
interruptible = false
start = "2026-12-03T11:30:00Z"
zone_ids = ["use1-az2"]

[[parts]]
name = "nodes"
type = "p5.48xlarge"
profile = [{{ from = "0h", count = 2 }}, {{ from = "48h", count = 4 }}]

[[parts]]
name = "head"
type = "c7g.2xlarge"
reserve = false
"""
HUNDRED = """
name = "{name}"
type = "p5.48xlarge"
count = 100
duration = "24h"
target = "instances"
start = "2026-12-03T11:30:00Z"
regions = ["us-east-1"]
zone_ids = ["use1-az1"]
{more}
"""
DAY = Decimal("31.464") * 24


@pytest.fixture(scope="module")
def wide() -> Iterator[Any]:
    """A yard with room for several blocks at once."""
    from berth.yard.testing.process import YardProcess

    fleet = Path(__file__).with_name("several_pieces.toml")
    with tempfile.TemporaryDirectory(prefix="yard-") as folder, YardProcess(Path(folder), fleet=fleet) as one:
        yield one


@pytest.fixture
def pieces(wide: Any, at_yard: Callable[..., Any], request: pytest.FixtureRequest) -> Iterator[Any]:
    """The command line with an account of its own: `pieces.plan(NAME, TEXT)`."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:30].strip("-")
    wide.account(name)
    berth = at_yard(wide, name)
    yield berth
    wide.clear_faults()


def planned(berth: Any, name: str, text: str, *more: str, code: int = 0, said: str = "") -> dict[str, Any]:
    """Write a need, plan it; the plan."""
    file = berth.folder / f"{name}.toml"
    file.write_text(text.format(name=name, more=said))
    ended = berth("plan", str(file), "--json", *more)
    assert ended.code == code, ended.err
    plan: dict[str, Any] = ended.json
    return plan


def blocks_of(berth: Any, account: str | None = None) -> list[dict[str, Any]]:
    """The blocks of an account, by count."""
    ec2 = berth.yard.clients_of(account or berth.account).ec2
    found = ec2.describe_capacity_reservations()["CapacityReservations"]
    return sorted(found, key=lambda block: int(_tags(block)["berth:order"].rpartition(".")[2]))


def _tags(block: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in block["Tags"]}


def test_a_piece_that_is_gone_is_told_and_bought_later(pieces: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is sold to somebody else: exit 15, what is paid and missing; the same command goes on."""
    planned(pieces, "gone", STAIRS)
    paid = Tally.paid

    def then_gone(self: Any, order: Any) -> None:
        paid(self, order)
        pieces.yard.fault("gone", "PurchaseCapacityBlock")

    monkeypatch.setattr(Tally, "paid", then_gone)
    ended = pieces("buy", "gone#best", "--yes", "--max", "99000")
    assert ended.code == 15, ended.err
    assert "could not be bought, and nothing else was bought" in ended.err
    assert "what is bought stays bought and paid" in ended.err
    (block,) = blocks_of(pieces)
    assert ended.money.startswith("paid ")
    assert ended.money.endswith(" USD, order gone")
    assert "1 of 2 pieces bought" in pieces("show", "gone").out
    pieces.yard.clear_faults()
    monkeypatch.setattr(Tally, "paid", paid)
    more = pieces("buy", "gone#best", "--yes", "--max", "99000")
    assert more.code == 0, more.err
    assert len(blocks_of(pieces)) == 2
    assert block["CapacityReservationId"] in {one["CapacityReservationId"] for one in blocks_of(pieces)}


def test_a_hundred_are_two_blocks(pieces: Any) -> None:
    """64 and 36 in one window: no search confirms 100, so deciding beforehand takes a word of its own."""
    plan = planned(pieces, "hundred", HUNDRED)
    assert [one["count"] for one in plan["combination"]["best"]["pieces"]] in ([36, 64], [64, 36])
    asked = pieces("buy", "hundred#best", "--yes", "--max", "99000")
    assert (asked.code, asked.money) == (15, "nothing was spent")
    assert "--unconfirmed" in asked.err
    bought = pieces("buy", "hundred#best", "--yes", "--max", "99000", "--unconfirmed")
    assert bought.code == 0, bought.err
    assert [_tags(block)["berth:order"].partition("/")[2] for block in blocks_of(pieces)] == [
        "hundred/1.1",
        "hundred/1.2",
    ]


def test_pieces_of_two_accounts_are_one_order(
    pieces: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first account has room for 64 more; the other 36 are searched and paid with the second's keys."""
    yard, own = pieces.yard, pieces.account
    yard.account("gpu-b")
    ids = [yard.clients_of(name).sts.get_caller_identity()["Account"] for name in (own, "gpu-b")]
    keys = yard.environment_of("gpu-b")
    lines = ["[gpu-b]", f"aws_access_key_id = {keys['AWS_ACCESS_KEY_ID']}"]
    (tmp_path / "credentials").write_text(
        "\n".join([*lines, f"aws_secret_access_key = {keys['AWS_SECRET_ACCESS_KEY']}"])
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setattr("berth.cli.buy_pieces._held", lambda there: 192 if there.account == ids[0] else 0)
    said = f'[[accounts]]\nid = "{ids[0]}"\n\n[[accounts]]\nid = "{ids[1]}"\nprofile = "gpu-b"\n'
    planned(pieces, "spread", HUNDRED, said=said)
    bought = pieces("buy", "spread#best", "--yes", "--max", "99000", "--unconfirmed", "--json")
    assert bought.code == 0, bought.err
    assert {(one["account"], one["offer"]["count"]) for one in bought.json["pieces"]} == {
        (ids[0], 64),
        (ids[1], 36),
    }
    assert [len(blocks_of(pieces, name)) for name in (own, "gpu-b")] == [1, 1]
    assert _tags(blocks_of(pieces, "gpu-b")[0])["berth:order"].startswith(f"{ids[1]}/spread/1.")
    shown = pieces("show", "spread", "--json")
    assert shown.code == 0, shown.err
    assert shown.json["state"] == "bought"
    again = pieces("buy", "spread#best", "--yes", "--max", "99000", "--unconfirmed")
    assert again.code == 0, again.err
    assert len(blocks_of(pieces, "gpu-b")) == 1


def test_a_combination_is_one_order(pieces: Any) -> None:
    """Planned, bought, bought again, shown, launched into piece by piece, cleaned: two blocks, one order."""
    plan = planned(pieces, "stairs", STAIRS)
    total = Decimal(plan["combination"]["best"]["total"]["amount"])
    dear = pieces("buy", "stairs#best", "--yes", "--max", str(total - 1))
    assert (dear.code, dear.money) == (15, "nothing was spent")
    first = pieces("buy", "stairs#best", "--yes", "--max", str(total), "--json")
    assert first.code == 0, first.err
    assert "head: 1 x c7g.2xlarge, on-demand" in " ".join(first.err.split())
    assert (first.json["schema"], first.json["state"]) == ("berth.whole/1", "bought")
    assert [one["order"] for one in first.json["pieces"]] == ["stairs/1.1", "stairs/1.2"]
    again = pieces("buy", "stairs#best", "--yes", "--max", str(total))
    assert again.code == 0
    assert "nothing bought now; it is whole" in again.err
    marks = [_tags(block)["berth:order"].partition("/")[2] for block in blocks_of(pieces)]
    assert marks == ["stairs/1.1", "stairs/1.2"]
    own = pieces.yard.clients_of(pieces.account).sts.get_caller_identity()["Account"]
    calls = pieces.yard.log_of("PurchaseCapacityBlock")
    assert sum(call["account_id"] == own for call in calls) == 2
    # One number is one order.
    single = pieces("buy", "stairs#1", "--yes", "--max", "99000")
    assert single.code in {15, 20}
    pieces.yard.clock.advance(minutes=6)
    shown = pieces("show", "stairs", "--json").json
    assert shown["money"]["line"] == f"paid {total:,} USD, order stairs"
    assert [one["bought"]["seen"]["state"] for one in shown["pieces"]] == ["scheduled", "scheduled"]
    one = pieces("show", "stairs/1.2", "--json").json
    assert (one["order"], one["piece"], one["state"]) == ("stairs/1.2", 2, "bought")
    assert pieces("renewal", "stairs").code == 20
    one_piece = pieces("renewal", "stairs/1.1", "--by", "1d")
    assert one_piece.code in (0, 10), one_piece.err
    assert "NOTE    it is one piece of an order of several" in one_piece.out
    named = pieces("extend", "stairs", "--by", "1d", "--yes", "--max", "1")
    assert (named.code, named.money) == (20, "nothing was spent")
    until = "until 2026-12-07T11:30Z"
    assert f"  stairs/1.1: bought, scheduled, 2 x p5.48xlarge {until}" in named.err.splitlines()
    assert f"  stairs/1.2: bought, scheduled, 2 x p5.48xlarge {until}" in named.err.splitlines()
    assert "next: berth extend stairs/1.1 --by 1d --max 1 --yes, and so on for each" in named.err
    # Two days in both windows are open: each block gets its instances.
    pieces.yard.clock.set(parse_instant("2026-12-05T11:40:00Z"))
    image = pieces.yard.clients_of(pieces.account).ec2.describe_images(
        Filters=[{"Name": "platform-details", "Values": ["Linux/UNIX"]}]
    )["Images"][0]["ImageId"]
    launched = pieces("launch", "stairs", "--image", image, "--json")
    assert launched.code == 0, launched.err
    assert [len(piece["instances"]) for piece in launched.json["pieces"]] == [2, 2]
    ending = pieces("clean", "stairs")  # both are asked to end, and neither is at its end yet
    assert ending.code == 30, ending.err
    assert ending.money == f"paid {total:,} USD, order stairs"
    pieces.yard.clock.advance(minutes=15)
    cleaned = pieces("clean", "stairs", "--json")
    assert cleaned.code == 31, cleaned.err
    assert [piece["order"] for piece in cleaned.json["pieces"]] == ["stairs/1.1", "stairs/1.2"]
    left = pieces("leave", "--region", "us-east-1")
    assert left.code == 31, left.err
    listed = pieces("ls", "--orders", "--json").json["orders"]
    assert [(one["order"], one["piece"]) for one in listed] == [("stairs/1.1", 1), ("stairs/1.2", 2)]
    audited = pieces("audit", "--json")
    assert audited.code == 0, audited.err
    assert "stairs/1.2" in audited.out


def test_run_takes_each_piece_as_far_as_it_can_go(pieces: Any) -> None:
    """Planned, bought and waited for in one command; run again nothing is spent, and each piece is told."""
    file = pieces.folder / "running.toml"
    file.write_text(STAIRS.format(name="running").replace("2026-12-03", "2026-12-10"))
    first = pieces("run", str(file), "--best", "--yes", "--max", "99000", "--json")
    assert first.code == 0, first.err
    assert [(one["order"], one["stage"]) for one in first.json["pieces"]] == [
        ("running/1.1", "waiting"),
        ("running/1.2", "waiting"),
    ]
    again = pieces("run", str(file), "--best", "--yes", "--max", "99000")
    assert again.code == 0, again.err
    assert len(blocks_of(pieces)) == 2


def test_a_second_part_is_bought_once(pieces: Any) -> None:
    """The combination holds it: planned by itself beside it, it is not bought a second time."""
    text = STAIRS.replace("2026-12-03", "2026-12-10") + (
        '\n[[parts]]\nname = "store"\ntype = "p5.48xlarge"\ncount = 1\nreserve = true\n'
    )
    plan = planned(pieces, "parts", text)
    assert plan["combination"]["left_out"] == ["head"]
    planned(pieces, "parts", text, "--part", "store")
    bought = pieces("buy", "parts#best", "--yes", "--max", "99000", "--json", "--unconfirmed")
    assert bought.code == 0, bought.err
    assert [one["offer"]["count"] for one in bought.json["pieces"]].count(1) == 1


def test_a_lost_journal_knows_how_many_pieces_there_were(
    pieces: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their tags tell it: whole again; where one is not found, so many of so many, and never whole."""
    text = STAIRS.replace("2026-12-03", "2026-12-10")
    planned(pieces, "counted", text)
    assert pieces("buy", "counted#best", "--yes", "--max", "99000").code == 0
    assert [_tags(block)["berth:pieces"] for block in blocks_of(pieces)] == ["2", "2"]
    monkeypatch.setenv("BERTH_HOME", str(tmp_path / "new"))
    told = pieces("rebuild", "--region", "us-east-1")
    assert told.code == 0, told.err
    assert "pieces   order counted: all 2 pieces" in told.out.splitlines()
    shown = pieces("show", "counted")
    assert shown.out.splitlines()[0] == "order    counted: bought, 2 pieces"
    ec2 = pieces.yard.clients_of(pieces.account).ec2
    lost = blocks_of(pieces)[1]["CapacityReservationId"]
    ec2.create_tags(Resources=[lost], Tags=[{"Key": "berth:order", "Value": "nobody"}])
    monkeypatch.setenv("BERTH_HOME", str(tmp_path / "newer"))
    some = pieces("rebuild", "--region", "us-east-1", "--json")
    assert some.code == 0, some.err
    assert [(one["order"], one["found"], one["of"]) for one in some.json["wholes"]] == [("counted", 1, 2)]
    assert "1 of 2 pieces known" in pieces("show", "counted").out


def test_a_program_buys_a_combination_once(pieces: Any) -> None:
    """`world.buy_best`: over the bound nothing, then all pieces, then nothing again; verbs know the order."""
    file = pieces.folder / "library.toml"
    file.write_text(STAIRS.format(name="library").replace("2026-12-03", "2026-12-17"))
    with api.connect() as world:
        plan = world.plan(world.read_need(file))
        with pytest.raises(api.BerthError) as dear:
            world.buy_best(plan, most=api.Money(Decimal(1)))
        assert dear.value.exit_code == 15, dear.value.message
        assert dear.value.spent.line() == "nothing was spent"
        assert world.wholes("library") == ()
        first = world.buy_best(plan, most=api.Money(Decimal(99000)))
        again = world.buy_best(world.recall("library"), most=api.Money(Decimal(99000)))
        (whole,) = world.wholes("library")
        assert [order.state for order in world.orders("library")] == [api.OrderState.BOUGHT] * 2
        with pytest.raises(api.BerthError, match="is of 2 pieces"):
            world.extend("library", by="1d", most=api.Money(Decimal(1)))
    assert (first.now, again.now) == ((1, 2), ())
    assert (whole.state, whole.of) == (api.WholeState.BOUGHT, 2)
    assert len(blocks_of(pieces)) == 2
    assert pieces("show", "library", "--json").json["state"] == "bought"
