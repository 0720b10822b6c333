"""Operating a yard: its admin socket, real time, restarts, machines of one's own."""

from __future__ import annotations

import http.client
import json
import re
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from berth.yard.admin.app import ROUTES
from berth.yard.admin.client import AdminRefused, NoYard, ask
from berth.yard.fleet import fleet_file
from berth.yard.testing.process import YardDidNotStart, YardProcess

from .conftest import SMALL, buy, offers, refused, send, serve, wait

YARD = {"fleet": SMALL}
SHIPPED = Path(fleet_file.__file__).with_name("rehearsal.toml")


def admin(yard: YardProcess, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
    """One raw request to the admin socket: status, and the body as JSON where it is some."""
    line = http.client.HTTPConnection("localhost")
    line.sock = socket.socket(socket.AF_UNIX)
    line.sock.connect(str(yard.folder.admin_socket))
    line.request(method, path, body=body)
    answer = line.getresponse()
    text = answer.read()
    line.close()
    return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text


# -- the admin socket ------------------------------------------------------------------------------------
def test_only_its_owner_may_operate_a_yard(shared: YardProcess) -> None:
    """The socket and the database are 0600, the folder 0700."""

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert mode(shared.folder.admin_socket) == 0o600
    assert mode(shared.folder.store) == 0o600
    assert mode(shared.folder.fleet) == 0o600


def test_the_description_is_whole_and_lists_every_route(shared: YardProcess) -> None:
    """OpenAPI 3: each path and method with a summary and the answers it gives."""
    status, found = admin(shared, "GET", "/openapi.json")
    assert status == 200
    assert found["openapi"].startswith("3.")
    assert set(found["info"]) >= {"title", "version"}
    described = {(method.upper(), path) for path, verbs in found["paths"].items() for method in verbs}
    assert described == {(method, path) for method, path, _ in ROUTES} | {("POST", "/stop")}
    for verbs in found["paths"].values():
        for description in verbs.values():
            assert description["summary"].endswith(".")
            assert all(int(code) in range(200, 600) for code in description["responses"])
            assert all("description" in answer for answer in description["responses"].values())
            for parameter in description.get("parameters", []):
                assert set(parameter) == {"name", "in", "schema"}


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "/clock", b"{nonsense", "the body is not JSON"),
        ("POST", "/clock", b"[1]", "must be a JSON object"),
        ("POST", "/clock", b"[" * 100_000, "the body is not JSON"),
        ("POST", "/clock", b'{"a":"' + b"x" * 1_000_001 + b'"}', "larger than a megabyte"),
        ("POST", "/clock", b"{}", 'say either "to" (an instant) or "advance"'),
        ("POST", "/clock", b'{"to":"2026-12-02T00:00Z","advance":"1d"}', "say either"),
        ("POST", "/clock", b'{"to":5}', ""),
        ("POST", "/clock", b'{"advance":"999999999999999999999w"}', ""),
        ("POST", "/faults", b'{"kind":"earthquake"}', "no fault 'earthquake'"),
        ("POST", "/faults", b'{"kind":["stall"]}', "no fault"),
        ("POST", "/accounts", b'{"name":"default"}', "exists already"),
        ("POST", "/accounts", b'{"name":{"a":1}}', "letters, digits"),
        ("GET", "/events?after=-1", b"", "after must be a whole number"),
        ("GET", "/events?after=x", b"", "after must be a whole number"),
        ("GET", "/environment?account=nobody", b"", "no account 'nobody'"),
        ("GET", "/ledger?account=nobody", b"", "no account 'nobody'"),
        ("POST", "/seed/plans", b'{"state":"Happy"}', "no state 'Happy'; there are Pending"),
        ("POST", "/seed/plans", b'{"state":"Active","start":"2026-12-05T00:00Z"}', "cannot be Active"),
        ("POST", "/seed/plans", b'{"state":"Pending","start":"2026-12-01T09:05Z"}', "cannot be Pending"),
        ("POST", "/seed/plans", b'{"count":1.5}', "count must be a whole number"),
        ("POST", "/seed/plans", b'{"count":[1]}', "count must be a whole number"),
        ("POST", "/seed/plans", b'{"count":0}', "count must be at least 1"),
        ("POST", "/seed/plans", b'{"count":99}', "no room for 99"),
        ("POST", "/seed/plans", b'{"account":"nobody"}', "no account 'nobody'"),
        ("POST", "/seed/plans", b'{"name":"../x"}', "no name for a training plan"),
        ("POST", "/seed/plans", b'{"region":"mars-1"}', "no room"),
        ("POST", "/seed/plans", b'{"target":"fun"}', "'fun' is not a valid Target"),
        ("POST", "/seed/plans", b'{"fee":"-1"}', "not negative"),
        ("POST", "/seed/plans", b'{"fee":"much"}', "not an amount of money"),
        ("POST", "/seed/plans", b'{"duration":"99999999w"}', ""),
        ("POST", "/seed/plans", b'{"state":"Failed","start":"0001-01-01T00:00Z"}', "a window lies between"),
    ],
)  # fmt: skip
def test_admin_refuses_nonsense(shared: YardProcess, method: str, path: str, body: bytes, words: str) -> None:
    """400 with what is wrong; never a fault of the yard's own, and nothing changes."""
    before = shared.events, shared.clock.now
    status, answer = admin(shared, method, path, body)
    assert status == 400, answer
    assert words in answer["error"]
    assert (shared.events, shared.clock.now) == before


def test_huge_numbers_are_only_late(shared: YardProcess) -> None:
    """A number that no table reaches gives an empty list."""
    assert admin(shared, "GET", f"/events?after={10**30}&limit={10**30}") == (200, [])
    assert admin(shared, "GET", f"/calls?after={10**30}") == (200, [])


def test_what_admin_does_not_know_it_says(shared: YardProcess) -> None:
    """Another path or method is 404 or 405, for the client AdminRefused; without a yard it is NoYard."""
    assert admin(shared, "GET", "/nonsense")[0] == 404
    assert admin(shared, "DELETE", "/clock")[0] == 405
    with pytest.raises(AdminRefused, match="404"):
        ask(shared.folder.admin_socket, "GET", "/nonsense")
    with pytest.raises(NoYard):
        ask(shared.folder.path / "none.sock", "GET", "/clock")


def test_plans_can_be_seeded_in_every_state(shared: YardProcess) -> None:
    """And live on from there by the clock."""
    client = shared.clients.sagemaker
    for state in ("Pending", "Scheduled", "Active", "Expired", "Failed"):
        shared.seed.plan(name=f"seed-{state}", state=state)
        assert client.describe_training_plan(TrainingPlanName=f"seed-{state}")["Status"] == state


def test_accounts_have_their_own_keys_plans_and_zone_names(shared: YardProcess) -> None:
    """Over HTTP: one's plan is not the other's; the zones have the same ids for all and other names for some.
    Over HTTP: one's plan is not the other's; the zones have the same ids for all and other names for some."""
    asked = urlencode({"Action": "DescribeAvailabilityZones", "Version": "2016-11-15"}).encode()
    form = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    views = set()
    for number in range(12):
        added = shared.account(f"team-{number}")
        keys = added["access_key_id"], added["secret_access_key"]
        zones = send(shared, "POST", "/", asked, form, sign="ec2", keys=keys).body.decode()
        ids, names = re.findall("<zoneId>(.*?)<", zones), re.findall("<zoneName>(.*?)<", zones)
        assert sorted(ids) == ["use1-az1", "use1-az2", "use1-az3"]
        assert sorted(names) == ["us-east-1a", "us-east-1b", "us-east-1c"]
        views.add(tuple(sorted(zip(ids, names, strict=True))))
    assert len(views) > 1
    clients = shared.clients_of("team-0")
    assert refused(clients.sagemaker.describe_training_plan, TrainingPlanName="seed-Active").code == (
        "ResourceNotFound"
    )
    assert clients.sagemaker.list_training_plans()["TrainingPlanSummaries"] == []
    identity = clients.sts.get_caller_identity()
    assert identity["Arn"] == f"arn:aws:iam::{identity['Account']}:user/team-0"
    assert shared.environment["AWS_ACCESS_KEY_ID"] != shared.environment_of("team-0")["AWS_ACCESS_KEY_ID"]


# -- one process -----------------------------------------------------------------------------------------
def test_a_second_process_on_the_folder_is_refused(shared: YardProcess) -> None:
    """The first goes on as if nothing had been."""
    with pytest.raises(YardDidNotStart, match="a yard is running on"):
        YardProcess(shared.folder.path)
    assert shared.folder.running.exists()
    assert shared.status["pid"] == (shared.process.pid if shared.process else None)
    shared.clients.sagemaker.list_models()


# -- real time -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("anew", [False, True], ids=["running", "restarted"])
def test_on_real_time_a_payment_comes_by_itself(
    tmp_path: Path, make_yard: Callable[..., YardProcess], anew: bool
) -> None:
    """The shipped fleet with a payment delay of a second: Scheduled without anybody's help, killed or not."""
    text = SHIPPED.read_text("utf-8").replace('payment_delay = "5m"', 'payment_delay = "1s"')
    assert '"1s"' in text
    (tmp_path / "fleet.toml").write_text(text, "utf-8")
    yard = make_yard(fleet=tmp_path / "fleet.toml", clock="real")
    client = yard.clients.sagemaker
    with pytest.raises(AdminRefused, match="the clock is real and cannot be moved"):
        yard.clock.advance(days=1)
    buy(client, "p")
    if anew:
        yard.kill()
        yard.start()
    deadline = time.monotonic() + 20
    while client.describe_training_plan(TrainingPlanName="p")["Status"] == "Pending":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert client.describe_training_plan(TrainingPlanName="p")["Status"] == "Scheduled"
    assert len(yard.ledger) == 1


# -- restart ---------------------------------------------------------------------------------------------
def test_a_restarted_yard_is_the_same_yard(yard: YardProcess) -> None:
    """Shipped fleet, stopped in order: plans, endpoints, accounts, clock, zones and offers are as they were.
    Shipped fleet, stopped in order: plans, endpoints, accounts, clock, zones and offers are as they were."""
    client = yard.clients.sagemaker
    plan = yard.seed.plan(name="p", state="Active")["arn"]
    serve(client, "e", plan)
    buy(client, "q")
    yard.account("other")
    yard.clock.advance(hours=1)
    offer = offers(client, StartTimeAfter=yard.clock.now)[-1]

    def picture() -> Any:
        return (
            yard.clock.now, yard.ledger, yard.environment_of("other")["AWS_ACCESS_KEY_ID"],
            yard.environment["AWS_ACCESS_KEY_ID"], client.list_training_plans()["TrainingPlanSummaries"],
            yard.clients.ec2.describe_availability_zones()["AvailabilityZones"],
            [o["ReservedCapacityOfferings"] for o in offers(client, StartTimeAfter=yard.clock.now)],
        )  # fmt: skip

    before = picture()
    yard.restart()
    assert client.describe_endpoint(EndpointName="e")["EndpointStatus"] in ("Updating", "InService")
    assert picture() == before
    wait(client, "endpoint_in_service", EndpointName="e")
    assert yard.clients.runtime.invoke_endpoint(EndpointName="e", Body=b"x")["Body"].read() == b"x"
    client.create_training_plan(TrainingPlanName="r", TrainingPlanOfferingId=offer["TrainingPlanOfferingId"])


# -- machines of one's own -------------------------------------------------------------------------------
def test_a_yard_of_real_machines(tmp_path: Path, make_yard: Callable[..., YardProcess]) -> None:
    """It sells, pays and keeps books; it has no S3 beside it, no clock to move and no faults to arm."""
    text = SMALL.read_text("utf-8").replace('kind = "rehearsal"', 'kind = "own"')
    (tmp_path / "fleet.toml").write_text(text, "utf-8")
    yard = make_yard(fleet=tmp_path / "fleet.toml", clock="real")
    status = yard.status
    assert (status["kind"], status["s3_url"], yard.s3_url) == ("own", None, None)
    assert "AWS_ENDPOINT_URL_S3" not in yard.environment
    assert yard.environment["BERTH_YARD"] == yard.url
    buy(yard.clients.sagemaker, "p")
    for attempt, words in (
        (lambda: yard.clock.advance(days=1), "can be touched in a rehearsal only"),
        (lambda: yard.fault("stall"), "can be touched in a rehearsal only"),
        (lambda: yard.seed.plan(name="x"), "can be touched in a rehearsal only"),
    ):
        with pytest.raises(AdminRefused, match=words):
            attempt()
    client = yard.clients.sagemaker
    assert client.describe_training_plan(TrainingPlanName="p")["Status"] == "Pending"
    yard.kill()
    yard.start()
    assert client.describe_training_plan(TrainingPlanName="p")["Status"] == "Pending"
    with pytest.raises(YardDidNotStart, match="only a rehearsal's clock can stand still"):
        make_yard(fleet=tmp_path / "fleet.toml")
