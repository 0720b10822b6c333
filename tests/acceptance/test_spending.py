"""Rules of spending and approvals through the command line, against a yard over HTTP."""

from __future__ import annotations

import io
import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FEE = "228.77"


def request_of(berth: Any, name: str) -> str:
    """The hash of the request that buying the need makes."""
    ended = berth.buy(name, "--json")
    assert ended.code == 15, ended.err
    assert ended.money == "nothing was spent"
    return str(ended.json["hash"])


def paid_calls(berth: Any) -> int:
    """How many plans the yard was asked to sell."""
    return len(berth.yard.log_of("CreateTrainingPlan"))


# -- rules -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[cap]]\nper = "order"\nmost = "200 USD"', "would go over the cap per order of 200.00 USD"),
        ('[[cap]]\nper = "hour"\nmost = "999 EUR"', "228.77 USD cannot be compared with the cap per hour of"),
        ('[allow]\nregions = ["us-west-2"]', "Region us-east-1 is not allowed; allowed: us-west-2"),
        ('[allow]\ntypes = ["ml.p5.*"]', "type ml.trn1.32xlarge is not allowed"),
        ('[allow]\nzone_ids = ["use1-az6"]', "is not allowed; allowed: use1-az6"),
        ('[allow]\nways = ["capacity-block"]', "way training-plan is not allowed"),
        ('[allow]\naccounts = ["000000000000"]', "is not allowed; allowed: 000000000000"),
        ('[allow]\npayers = ["arn:aws:iam::000000000000:role/buyer"]', "may not pay; allowed: arn:aws:iam"),
        ('[tags.team]\nvalues = ["a"]', "the tag team is missing"),
    ],
)  # fmt: skip
def test_a_rule_in_the_way_is_named_and_nothing_is_bought(
    berth: Any, rules: Callable[[str], Path], text: str, says: str
) -> None:
    """Each kind of rule stops the purchase before any paid call, in a sentence of its own, with exit 15."""
    file = rules(text)
    name = f"ruled-{abs(hash(says)) % 10**6}"
    berth.plan(name)
    before = paid_calls(berth)
    ended = berth.buy(name)
    assert ended.code == 15, ended.err
    assert says in ended.err
    assert str(file) in ended.err
    assert ended.money == "nothing was spent"
    assert paid_calls(berth) == before


def test_a_slip_of_the_pen_stops_everything(berth: Any, rules: Callable[[str], Path]) -> None:
    """An unknown key in the rules is an error with its line, and nothing is bought; so is a missing file."""
    berth.plan("slip")
    file = rules('[[cap]]\nper = "order"\nmots = "1 USD"\nmost = "500 USD"')
    before = paid_calls(berth)
    ended = berth.buy("slip")
    assert ended.code == 20
    assert f"{file}:3: cap.1.mots: unknown key" in ended.err
    file.unlink()
    ended = berth.buy("slip")
    assert ended.code == 20
    assert "cannot be read" in ended.err
    assert paid_calls(berth) == before


def test_tags_go_with_the_purchase_and_count_for_the_team(berth: Any, rules: Callable[[str], Path]) -> None:
    """`--tag` over the need's tags: on the plan in AWS, in the order, and against the team's cap."""
    rules('time_zone = "UTC"\n[[cap]]\nper = "month"\nteam = "*"\nmost = "300 USD"\n[tags.team]')
    berth.plan("tag-one", more='[tags]\nteam = "wrong"\n"cost-centre" = "4711"')
    bought = berth.buy("tag-one", "--tag", "team=red", "--json")
    assert bought.code == 0, bought.err
    arn = bought.json["training_plan_arn"]
    found = berth.yard.clients.sagemaker.list_tags(ResourceArn=arn)["Tags"]
    tags = {tag["Key"]: tag["Value"] for tag in found}
    assert (tags["team"], tags["cost-centre"]) == ("red", "4711")
    berth.plan("tag-two")
    refused = berth.buy("tag-two", "--tag", "team=red")
    assert refused.code == 15
    assert "the cap per month and team of 300.00 USD, of which 228.77 USD is spent or may be" in refused.err
    assert berth.buy("tag-two", "--tag", "team=blue").code == 0
    assert berth.buy("tag-one").code == 0, "what is bought already breaks no cap"


@pytest.mark.parametrize("text", ["team", "=x", "team=", "aws:x=1", "berth:order=1"])
def test_a_tag_that_is_none_is_refused(berth: Any, text: str) -> None:
    """KEY=VALUE, and no key of AWS's or ours."""
    berth.plan("no-tag")
    assert berth.buy("no-tag", "--tag", text).code == 2


def test_what_is_in_doubt_counts(berth: Any, rules: Callable[[str], Path]) -> None:
    """A lost answer may have been paid: until it is known it stands against the cap."""
    rules('[[cap]]\nper = "hour"\nmost = "300 USD"')
    berth.plan("doubt")
    berth.plan("after-doubt")
    berth.yard.fault("lag", "*")
    berth.yard.fault("lost-reply", "CreateTrainingPlan")
    assert berth.buy("doubt").code == 40
    ended = berth.buy("after-doubt")
    assert ended.code == 15
    assert "228.77 USD is spent or may be" in ended.err
    berth.yard.clear_faults()
    berth.yard.clock.advance(minutes=61)
    assert berth.buy("doubt").code == 0
    berth.plan("after-doubt")
    assert berth.buy("after-doubt").code == 0, "an hour later it is out of the window"


# -- approvals ---------------------------------------------------------------------------------------------
def test_an_approval_buys_once(berth: Any, approving: Any, approve: Any, lead: Any, tmp_path: Path) -> None:
    """Asked for, proven to STS by another identity, bought with the proof; kept: who, when, how much."""
    approving()
    berth.plan("needs-word")
    hash_ = request_of(berth, "needs-word")
    signed = approve(hash_[:12])
    assert signed.code == 0, signed.err
    proof = tmp_path / "proof.json"
    assert stat.S_IMODE(proof.stat().st_mode) == 0o600
    bought = berth.buy("needs-word", "--proof", str(proof))
    assert bought.code == 0, bought.err
    assert f"approved: order needs-word, {FEE} USD, by {lead.arn}" in bought.err
    assert f"paying {FEE} USD for order needs-word: no refund, no cancelling, no change" in bought.err
    shown = berth("approvals", "show", hash_, "--json").json
    assert shown["state"] == "approved"
    assert [one["approver"] for one in shown["approvals"]] == [lead.arn]
    assert len(berth.sold("needs-word")) == 1
    history = berth("show", "needs-word", "--json").json["history"]
    assert [event["kind"] for event in history][:4] == ["approval asked", "alarm", "approved", "intended"]


def test_nobody_to_approve_is_one_alarm_and_no_purchase(berth: Any, approving: Any) -> None:
    """Field fault 6: tried for an hour, nothing is bought, one alarm is raised, every try says what lacks."""
    approving()
    berth.plan("alone")
    before = paid_calls(berth)
    alarms = 0
    for _ in range(6):
        ended = berth.buy("alone")
        assert ended.code == 15
        assert "nobody has approved it" in ended.err
        alarms += ended.err.count("ALARM:")
        berth.yard.clock.advance(minutes=10)
        berth.plan("alone")
    assert alarms == 1
    assert paid_calls(berth) == before
    kinds = [event["kind"] for event in berth("audit", "--json").json["events"] if event["order"] == "alone"]
    assert kinds == ["approval asked", "alarm"], "also of an order that was never made"


@pytest.mark.parametrize("what", ["need", "flag", "proof", "tag"])
def test_a_request_cannot_carry_its_own_approval(
    berth: Any, approving: Any, tmp_path: Path, what: str
) -> None:
    """Field fault 6: `approval = true` in a need, as an option, in a proof or as a tag approves nothing."""
    approving()
    before = paid_calls(berth)
    if what == "need":
        ended = berth("plan", berth.need("selfish", more="approval = true"))
        assert ended.code == 20
        assert "approval: unknown key" in ended.err
        return
    berth.plan(f"selfish-{what}")
    hash_ = request_of(berth, f"selfish-{what}")
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"schema": "berth.approval-proof/1", "hash": hash_, "approval": True}))
    more = {"flag": ("--approval",), "proof": ("--proof", str(file)), "tag": ("--tag", "approval=true")}[what]
    ended = berth.buy(f"selfish-{what}", *more)
    assert ended.code in {2, 15, 20}
    assert paid_calls(berth) == before


def test_whoever_asks_cannot_approve(berth: Any, approving: Any, rules: Any, tmp_path: Path) -> None:
    """The requester's own identity signs nothing, also where the rules name it among the approvers."""
    approving()
    berth.plan("own-word")
    hash_ = request_of(berth, "own-word")
    out = ("--out", str(tmp_path / "own.json"), "--yes")
    own = berth.yard.clients.sts.get_caller_identity()["Arn"]
    rules(f'[approval]\nabove = "100 USD"\napprovers = ["{own}"]')
    ended = berth("approve", hash_, *out)
    assert ended.code == 13
    assert "is the identity that asks or pays" in ended.err
    assert not (tmp_path / "own.json").exists()


def test_a_stranger_cannot_approve(
    berth: Any, approving: Any, approve: Any, rules: Any, tmp_path: Path
) -> None:
    """Whoever the rules do not name: the proof is sound, and it approves nothing."""
    approving()
    berth.plan("stranger")
    hash_ = request_of(berth, "stranger")
    assert approve(hash_).code == 0
    rules('[approval]\nabove = "100 USD"\napprovers = ["arn:aws:iam::000000000000:user/boss"]')
    ended = berth.buy("stranger", "--proof", str(tmp_path / "proof.json"))
    assert ended.code == 13
    assert "is not among the approvers" in ended.err
    assert ended.money == "nothing was spent"


def test_a_price_that_rose_needs_a_new_approval(
    berth: Any, approving: Any, approve: Any, tmp_path: Path
) -> None:
    """Field fault 6: approved at one price, offered at a higher one: a new request, a second alarm."""
    approving()
    berth.plan("rising")
    first = request_of(berth, "rising")
    assert approve(first).code == 0
    assert berth("approvals", "take", str(tmp_path / "proof.json")).code == 0
    berth.yard.fault("price-change", "SearchTrainingPlanOfferings", amount="1.01", times=None)
    before = paid_calls(berth)
    berth.plan("rising")
    ended = berth.buy("rising", "--json")
    assert ended.code == 15
    assert "the price rose: 228.77 USD to 231.06 USD" in ended.err
    assert ended.err.count("ALARM:") == 1
    assert ended.json["hash"] != first
    assert paid_calls(berth) == before
    berth.yard.clear_faults()
    berth.plan("rising")
    assert berth.buy("rising").code == 0, "at the approved price it still holds"


def test_an_approval_ends(berth: Any, approving: Any, approve: Any, tmp_path: Path) -> None:
    """After its time the request stands for nothing, approved or not."""
    approving(more='valid = "1h"')
    berth.plan("ending")
    assert approve(request_of(berth, "ending")).code == 0
    assert berth("approvals", "take", str(tmp_path / "proof.json")).code == 0
    berth.yard.clock.advance(minutes=61)
    berth.plan("ending")
    ended = berth.buy("ending")
    assert ended.code == 15
    assert "does not hold, since it ended at" in ended.err


def test_an_approval_is_of_one_order(berth: Any, approving: Any, approve: Any, tmp_path: Path) -> None:
    """The proof of one order put under the name of another is not borne out by STS."""
    approving()
    berth.plan("mine")
    berth.plan("other")
    mine, other = request_of(berth, "mine"), request_of(berth, "other")
    assert approve(mine).code == 0
    proof = json.loads((tmp_path / "proof.json").read_text())
    (tmp_path / "forged.json").write_text(json.dumps({**proof, "hash": other}))
    ended = berth.buy("other", "--proof", str(tmp_path / "forged.json"))
    assert ended.code == 13
    assert "STS does not bear the proof out" in ended.err
    assert ended.money == "nothing was spent"


def test_a_listener_takes_the_proof(berth: Any, approving: Any, approve: Any, tmp_path: Path) -> None:
    """`approvals listen` on a unix socket: handed over by the approver, then bought without a proof."""
    from berth.cli.approvals_wire import Place, serve
    from berth.cli.desks import counter
    from berth.cli.output import Output
    from berth.cli.spending import request_json, take_proof

    approving()
    berth.plan("heard")
    hash_ = request_of(berth, "heard")
    path, ready = tmp_path / "s", threading.Event()

    def listen() -> None:
        with counter(Output(stderr=io.StringIO()), profile=None) as at:
            take = lambda proof: request_json(at, take_proof(at, proof))  # noqa: E731
            serve(Place(None, path), take, once=True, ready=lambda where: ready.set())

    listener = threading.Thread(target=listen)
    listener.start()
    assert ready.wait(20)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    ended = approve(hash_, "--to", str(path))
    listener.join(20)
    assert ended.code == 0, ended.err
    assert f"request {hash_[:12]} is approved" in ended.err
    assert not path.exists()
    assert berth.buy("heard").code == 0


def test_a_listener_that_is_not_there_is_said(
    berth: Any, approving: Any, approve: Any, tmp_path: Path
) -> None:
    """Nobody takes the proof: exit 14, and it was handed to nobody."""
    approving()
    berth.plan("unheard")
    ended = approve(request_of(berth, "unheard"), "--to", str(tmp_path / "nobody"))
    assert ended.code == 14
    assert "it was not handed over" in ended.err


def test_a_request_travels_without_the_journal(
    berth: Any, approving: Any, approve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`approvals request` and `show --json` make a document; another machine approves it by that alone."""
    approving()
    berth.plan("travels")
    asked = berth("approvals", "request", "travels#1", "--json")
    assert asked.code == 0, asked.err
    (tmp_path / "request.json").write_text(asked.out)
    home = tmp_path / "elsewhere"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTH_HOME", str(home))
        patch.delenv("BERTH_RULES")
        assert approve("--request", str(tmp_path / "request.json")).code == 0
    assert berth.buy("travels", "--proof", str(tmp_path / "proof.json")).code == 0


def test_below_the_threshold_nobody_is_asked(berth: Any, approving: Any) -> None:
    """A fee at the threshold needs no approval."""
    approving(above=f"{FEE} USD")
    berth.plan("small")
    assert "needs no approval" in berth("approvals", "request", "small#1").out
    assert berth.buy("small").code == 0


def test_nothing_secret_is_kept_or_shown(
    berth: Any, approving: Any, approve: Any, lead: Any, tmp_path: Path
) -> None:
    """No URL, signature or key in the journal's files, on stdout, on stderr or in JSON, whatever happened."""
    approving()
    berth.plan("secret")
    hash_ = request_of(berth, "secret")
    said = [approve(hash_)]
    text = (tmp_path / "proof.json").read_text()
    url = json.loads(text)["url"]
    broken = tmp_path / "broken.json"
    broken.write_text(text.replace("X-Amz-Signature=", "X-Amz-Signature=0"))
    said.append(berth.buy("secret", "--proof", str(broken)))
    broken.write_text(text[:-20])
    said.append(berth.buy("secret", "--proof", str(broken)))
    said.append(berth.buy("secret", "--json", "--proof", str(tmp_path / "proof.json")))
    said += [berth("approvals", "show", hash_, "--json"), berth("approvals", "ls"), berth("audit", "--json")]
    assert [ended.code for ended in said] == [0, 13, 20, 0, 0, 0, 0], [ended.err for ended in said]
    kept = b"".join(file.read_bytes() for file in (tmp_path / "home").rglob("*") if file.is_file())
    shown = "".join(ended.out + ended.err for ended in said)
    secrets = [
        part.partition("=")[2] for part in url.split("&") if "Signature=" in part or "Credential" in part
    ]
    secrets += [lead.environment["AWS_SECRET_ACCESS_KEY"], lead.environment["AWS_ACCESS_KEY_ID"], "X-Amz-"]
    for secret in secrets:
        assert secret.encode() not in kept
        assert secret not in shown


# -- the buyer profile -------------------------------------------------------------------------------------
def write_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **keys: dict[str, str]) -> None:
    """A credentials file with these profiles, used from now on."""
    ids = ("aws_access_key_id", "aws_secret_access_key")
    rows = [[f"[{name}]", *(f"{key} = {of[key.upper()]}" for key in ids)] for name, of in keys.items()]
    (tmp_path / "credentials").write_text("\n".join(line for row in rows for line in row))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def profiles(berth: Any, lead: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles `buyer` (of the same account) and `other` (of another)."""
    own = berth.yard.environment_of(None)
    write_profiles(tmp_path, monkeypatch, buyer=own, other=lead.environment)


@pytest.mark.usefixtures("profiles")
def test_the_paid_call_uses_the_buyer_profile(berth: Any) -> None:
    """It pays with the profile's keys, of the order's account; a pinned account is kept."""
    account = berth.yard.clients.sts.get_caller_identity()["Account"]
    berth.plan("by-buyer", more=f'account = "{account}"')
    ended = berth.buy("by-buyer", "--buyer-profile", "buyer")
    assert ended.code == 0, ended.err
    assert "paid calls: user" in ended.err
    assert len(berth.sold("by-buyer")) == 1


@pytest.mark.usefixtures("profiles")
@pytest.mark.parametrize("profile", ["other", "nobody"])
def test_a_buyer_of_another_account_is_refused(berth: Any, profile: str) -> None:
    """The order's account and the buyer's differ, or there is no such profile: exit 13, no paid call."""
    berth.plan(f"wrong-{profile}")
    before = paid_calls(berth)
    ended = berth.buy(f"wrong-{profile}", "--buyer-profile", profile)
    assert ended.code == 13
    assert ended.money == "nothing was spent"
    assert paid_calls(berth) == before


def test_an_approval_is_of_one_teams_money(berth: Any, approving: Any, approve: Any, tmp_path: Path) -> None:
    """Approved for one team, bought for another: asked anew."""
    approving()
    berth.plan("whose", more='[tags]\nteam = "red"')
    assert approve(request_of(berth, "whose")).code == 0
    assert berth("approvals", "take", str(tmp_path / "proof.json")).code == 0
    ended = berth.buy("whose", "--tag", "team=blue")
    assert ended.code == 15
    assert "it is for another offer" in ended.err
    assert berth.buy("whose").code == 0


def test_what_runs_in_what_is_paid_keeps_to_the_lists(berth: Any, rules: Callable[[str], Path]) -> None:
    """`deploy` into a Region that is not allowed is refused; a tag that lacks is said and stops nothing."""
    rules("")
    berth.plan("in-use")
    assert berth.buy("in-use").code == 0
    what = ("--image", "rehearsal/echo:1", "--role", "arn:aws:iam::123456789012:role/serving")
    rules('[allow]\nregions = ["us-west-2"]')
    refused = berth("deploy", "in-use", *what)
    assert refused.code == 15
    assert "Region us-east-1 is not allowed" in refused.err
    assert refused.money.startswith("paid 228.77 USD")
    rules("[tags.team]")
    warned = berth("deploy", "in-use", *what)
    assert "warning: order in-use: the tag team is missing" in warned.err
    assert "do not allow it" not in warned.err
