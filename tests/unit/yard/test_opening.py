"""Opening a data folder: what it holds decides, and what contradicts it is refused before anything changes.
Opening a data folder: what it holds decides, and what contradicts it is refused before anything changes."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import pytest

from berth.storage.sqlite import NewerSchema
from berth.yard.command.build import choose_fleet, forget_aws
from berth.yard.command.settings import StartSettings
from berth.yard.data_folder import DataFolder, FolderInUse, FolderUnusable
from berth.yard.engines.engine import EngineRefused
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.lifecycle.clock import ClockRefused
from berth.yard.opening import FleetChanged

from .bench import SMALL, Bench, small_fleet

OWN = load_fleet(SMALL.read_text("utf-8").replace('kind = "rehearsal"', 'kind = "own"'), "own.toml")


def test_a_fresh_folder_has_one_account(open_bench: type[Bench]) -> None:
    """It is called default, and is the same after a restart."""
    first = open_bench().account
    assert first.name == "default"
    assert open_bench().account == first


def test_the_first_account_stays_the_first(bench: Bench) -> None:
    """Accounts added at the same yard instant come after it, whatever their keys begin with."""
    first = bench.account
    for number in range(8):
        bench.add_account(f"more-{number}")
    from berth.yard.identity.accounts import access_keys

    names = [key.account.name for key in bench.do(access_keys).values()]
    assert names == [first.name, *(f"more-{number}" for number in range(8))]


def test_a_fleet_that_lost_a_pool_with_bookings_is_refused(open_bench: type[Bench]) -> None:
    """The message names the pool and who holds hosts of it."""
    bench = open_bench()
    bench.buy("p", count=4)
    text = re.sub("use1-az1 = 4, ", "", SMALL.read_text("utf-8"))
    with pytest.raises(
        FleetChanged, match=r"no pool use1-az1/trn1.32xlarge, of which .*training-plan/p holds"
    ):
        open_bench(fleet=load_fleet(text, "less.toml"))
    assert open_bench().plan("p")["Status"] == "Pending"


def test_a_folder_is_a_rehearsals_or_real_machines_for_good(open_bench: type[Bench]) -> None:
    """A rehearsal's bookings must never bind machines that exist, nor the other way round."""
    open_bench()
    with pytest.raises(FleetChanged, match="of kind 'rehearsal' and the fleet file of kind 'own'"):
        open_bench(fleet=OWN, clock="real")


def test_the_clock_of_real_machines_cannot_stand_still(open_bench: type[Bench]) -> None:
    """Clock and faults exist in rehearsals only."""
    with pytest.raises(ClockRefused, match="only a rehearsal's clock"):
        open_bench(fleet=OWN)
    assert not open_bench(fleet=OWN, clock="real").yard.clock.stopped


def test_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    """An older program does not touch what a newer one wrote."""
    Bench(tmp_path / "y").close()
    with sqlite3.connect(tmp_path / "y" / "yard.sqlite") as connection:
        connection.execute("PRAGMA user_version=9999")
    with pytest.raises(NewerSchema, match="use the newer program"):
        Bench(tmp_path / "y")


def test_an_engine_that_cannot_keep_accounts_apart_is_asked_again_at_a_start(tmp_path: Path) -> None:
    """A folder with two accounts does not open where containers run unconfined."""
    bench = Bench(tmp_path / "y")
    bench.add_account("second")
    bench.close()
    with pytest.raises(EngineRefused, match="2 accounts are too many"):
        Bench(tmp_path / "y", most_accounts=1)
    Bench(tmp_path / "y").close()


def test_a_fleet_file_is_kept_once_the_yard_is_open_and_not_before(tmp_path: Path) -> None:
    """A file that the folder refuses must not replace the one that it runs on."""
    folder = DataFolder(tmp_path / "y")
    folder.prepare()
    settings = StartSettings(folder, SMALL, 0, "real")
    fleet, text = choose_fleet(settings)
    assert (fleet.name, text) == ("Small", SMALL.read_text("utf-8"))
    assert not folder.fleet.exists()
    assert text is not None
    folder.keep_fleet(text)
    assert folder.fleet.stat().st_mode & 0o777 == 0o600
    again, kept = choose_fleet(StartSettings(folder, None, 0, "real"))
    assert (again.name, kept) == ("Small", text)


def test_a_yard_forgets_somebodys_aws() -> None:
    """Profiles, keys, endpoints and files of whoever starts it are out of its reach."""
    environ = {"AWS_PROFILE": "prod", "AWS_ENDPOINT_URL": "https://x", "AWS_SESSION_TOKEN": "t", "HOME": "/h"}
    forget_aws(environ)
    assert environ == {
        "HOME": "/h",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def test_one_process_at_a_time_has_a_folder(tmp_path: Path) -> None:
    """The lock is the kernel's, and goes when its descriptor closes; the refusal says how to stop the other.
    The lock is the kernel's, and goes when its descriptor closes; the refusal says how to stop the other."""
    folder = DataFolder(tmp_path / "y")
    folder.prepare()
    held = folder.lock()
    with pytest.raises(FolderInUse, match=r"stop it with: berth yard stop --data"):
        folder.lock()
    os.close(held)
    os.close(folder.lock())


def test_a_path_too_long_for_a_socket_is_said_at_once(tmp_path: Path) -> None:
    """With its length and the limit; nothing is made."""
    folder = DataFolder(tmp_path / ("x" * 120))
    with pytest.raises(FolderUnusable, match=r"too long for a unix socket .*--data"):
        folder.prepare()
    assert not folder.path.exists()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """A file in the way is named."""
    (tmp_path / "f").write_text("")
    with pytest.raises(FolderUnusable, match="cannot use"):
        DataFolder(tmp_path / "f" / "y").prepare()


def test_the_small_fleet_is_a_rehearsal() -> None:
    """What these tests build on."""
    assert small_fleet().is_rehearsal
    assert not OWN.is_rehearsal
