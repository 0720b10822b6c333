"""States as tables: complete, and the only way to move."""

from __future__ import annotations

import pytest

from berth.yard.lifecycle.moves import ENDPOINT, TRAINING_PLAN, MoveLost, States, move

from .bench import Bench

BEGINNINGS = {"training-plan": {"Pending"}, "endpoint": {"Creating"}}
FINAL = {"training-plan": {"Failed", "Expired"}, "endpoint": {"Deleting"}}
TABLES = pytest.mark.parametrize("states", [TRAINING_PLAN, ENDPOINT], ids=lambda states: states.kind)


@TABLES
def test_every_state_can_be_reached(states: States) -> None:
    """No state of a table is unreachable from where such a thing begins, and no move leads out of the table.
    No state of a table is unreachable from where such a thing begins, and no move leads out of the table."""
    reached = set(BEGINNINGS[states.kind])
    while True:
        more = reached | {to for state in reached for to in states.moves[state]}
        if more == reached:
            break
        reached = more
    assert reached == set(states.moves)


@TABLES
def test_only_the_final_states_have_no_way_out(states: States) -> None:
    """Whatever else happens, a thing can still end."""
    assert {state for state, to in states.moves.items() if not to} == FINAL[states.kind]


@TABLES
def test_states_are_those_of_the_model(states: States) -> None:
    """A word that no client knows cannot be a state."""
    import botocore.session

    shape = {"training-plan": "TrainingPlanStatus", "endpoint": "EndpointStatus"}[states.kind]
    model = botocore.session.get_session().get_service_model("sagemaker")
    assert set(states.moves) <= set(model.shape_for(shape).enum)


@TABLES
def test_moves_that_the_table_lacks_are_refused(states: States) -> None:
    """Every pair that is not in the table, itself included, is not a move."""
    for state in states.moves:
        for to in states.moves:
            assert states.may(state, to) == (to in states.moves[state])
        assert not states.may(state, state)
        assert not states.may("Unheard-of", state)


def test_a_forbidden_move_writes_nothing(bench: Bench) -> None:
    """Pending cannot become Active: ValueError, no event, no change."""
    arn = bench.buy("p")
    events = len(bench.rows("SELECT * FROM events"))
    with pytest.raises(ValueError, match="no move from Pending to Active"):
        bench.do(lambda tx: move(tx, TRAINING_PLAN, tx.one("SELECT * FROM training_plans"), "Active", "no"))
    assert bench.plan("p")["Status"] == "Pending"
    assert len(bench.rows("SELECT * FROM events")) == events
    assert arn


def test_who_comes_second_loses_the_move(bench: Bench) -> None:
    """The write names the state it expects: a row read before somebody else moved is refused."""
    bench.buy("p")
    stale = bench.rows("SELECT * FROM training_plans")[0]
    bench.do(lambda tx: move(tx, TRAINING_PLAN, stale, "Scheduled", "first"))
    with pytest.raises(MoveLost):
        bench.do(lambda tx: move(tx, TRAINING_PLAN, stale, "Failed", "second"))
    assert bench.plan("p")["Status"] == "Scheduled"


def test_a_move_leaves_an_event_with_both_states(bench: Bench) -> None:
    """Who, from, to and why, on the yard's clock."""
    bench.buy("p")
    row = bench.rows("SELECT * FROM training_plans")[0]
    bench.do(lambda tx: move(tx, TRAINING_PLAN, row, "Scheduled", "because", status_message="shown"))
    event = bench.rows("SELECT * FROM events ORDER BY event_id DESC LIMIT 1")[0]
    assert (event["from_state"], event["to_state"], event["reason"]) == ("Pending", "Scheduled", "because")
    assert event["account_id"] == bench.account.account_id
    assert bench.plan("p")["StatusMessage"] == "shown"
