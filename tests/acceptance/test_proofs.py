"""Verbs that take an approver's proof, against a yard over HTTP: used to buy once, never in the way later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FEE = "228.77"


def paid_calls(berth: Any) -> int:
    """How many plans the yard was asked to sell."""
    return len(berth.yard.log_of("CreateTrainingPlan"))


def test_run_waits_for_a_word_and_goes_on_with_it(
    berth: Any, approving: Any, approve: Any, lead: Any, tmp_path: Path
) -> None:
    """Asked for with how to go on, bought with the proof; again, the proof stale, nothing is bought."""
    approving()
    words = ("run", berth.need("one-go"), "--yes", "--max", "500")
    before = paid_calls(berth)
    asked = berth(*words, "--json")
    assert (asked.code, asked.money) == (15, "nothing was spent")
    assert "run the same command with --proof proof.json" in asked.err
    lost = berth(*words, "--proof", str(tmp_path / "nowhere.json"))
    assert (lost.code, lost.money) == (20, "nothing was spent")
    assert approve(asked.json["hash"]).code == 0
    proof = tmp_path / "proof.json"
    done = berth(*words, "--proof", str(proof))
    assert done.code == 0, done.err
    assert f"approved: order one-go, {FEE} USD, by {lead.arn}" in done.err
    assert "waiting until" in done.out
    proof.write_text(proof.read_text().replace("X-Amz-Date=20", "X-Amz-Date=19"))
    again = berth(*words, "--proof", str(proof))
    assert (again.code, "waiting until" in again.out) == (0, True), again.err
    assert paid_calls(berth) == before + 1
    assert len(berth.sold("one-go")) == 1


def test_run_takes_the_proof_of_another_choice_for_none(
    berth: Any, approving: Any, approve: Any, tmp_path: Path
) -> None:
    """An approval of less than what is bought now is none: the gate is that of `buy`."""
    approving()
    words = ("run", berth.need("dearer"), "--yes", "--max", "500")
    assert approve(berth(*words, "--json").json["hash"]).code == 0
    berth.yard.fault("price-change", "SearchTrainingPlanOfferings", amount="1.01", times=None)
    before = paid_calls(berth)
    ended = berth(*words, "--proof", str(tmp_path / "proof.json"))
    assert (ended.code, ended.money) == (15, "nothing was spent")
    assert "the price rose: 228.77 USD to 231.06 USD" in ended.err
    assert paid_calls(berth) == before


def test_a_stale_proof_of_what_was_approved_is_no_obstacle(
    berth: Any, approving: Any, approve: Any, tmp_path: Path
) -> None:
    """The same command typed again must look what became of its order; without an approval it is one."""
    approving()
    berth.plan("stale")
    assert approve(berth.buy("stale", "--json").json["hash"]).code == 0
    proof = tmp_path / "proof.json"
    fresh = proof.read_text()
    proof.write_text(fresh.replace("X-Amz-Date=20", "X-Amz-Date=19"))
    refused = berth.buy("stale", "--proof", str(proof))
    assert (refused.code, refused.money) == (15, "nothing was spent")
    assert "not verified within 15 minutes" in refused.err
    proof.write_text(fresh)
    assert berth.buy("stale", "--proof", str(proof)).code == 0
    proof.write_text(fresh.replace("X-Amz-Date=20", "X-Amz-Date=19"))
    again = berth.buy("stale", "--proof", str(proof))
    assert (again.code, "bought already" in again.err) == (0, True), again.err
    assert len(berth.sold("stale")) == 1
