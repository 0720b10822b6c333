"""What whoever operates a yard may ask and do. The admin application is only its HTTP face."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from berth.terms.durations import parse_duration
from berth.terms.instants import from_micros, iso, parse_instant
from berth.terms.money import Money
from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.assembly import Yard
from berth.yard.calls import CallLog
from berth.yard.engines.engine import EngineRefused
from berth.yard.faults import read_fault
from berth.yard.identity.accounts import (
    AccessKey,
    AccountExists,
    NoAccount,
    access_keys,
    add_account,
    add_user,
)
from berth.yard.identity.policies import EVERYTHING, PolicyRefused
from berth.yard.identity.roles import Role, RoleRefused, put_role, roles
from berth.yard.lifecycle.clock import EARLIEST, LATEST, ClockRefused
from berth.yard.lifecycle.timers import Timekeeper
from berth.yard.services.ec2.block_seed import BlockSeed, seed_block
from berth.yard.services.operation import served
from berth.yard.services.sagemaker.plan_seed import PlanSeed, seed_training_plan
from berth.yard.store.transaction import Reading, Row
from berth.yard.store.writer import Writer

LIMIT_MAX = 10_000
_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Refused(Exception):
    """The yard will not do that; the text says why and what would be right."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """How the yard is reached: base URLs without a slash at the end; `s3_url` None = no S3 beside it."""

    url: str
    s3_url: str | None


class Desk:
    """The operator's desk of one running yard. Any thread may call its methods; they wait for the writer.

    `refresh_keys` is called after an account or a role was added or changed.
    """

    def __init__(
        self,
        yard: Yard,
        *,
        writer: Writer,
        timekeeper: Timekeeper,
        calls: CallLog,
        addresses: Addresses,
        facts: Mapping[str, Any],
        refresh_keys: Callable[[], None],
    ) -> None:
        self._yard = yard
        self._writer = writer
        self._timekeeper = timekeeper
        self._calls = calls
        self._addresses = addresses
        self._facts = facts
        self._refresh_keys = refresh_keys

    def _read(self, work: Any) -> Any:
        """Reads go through the writer too: the desk is rarely used, and then sees everything there is."""
        return self._writer.submit(work).result()

    # -- what it is --------------------------------------------------------------------------------------
    def status(self) -> dict[str, Any]:
        """Everything that `berth yard status` shows."""
        return {
            **self._facts,
            "url": self._addresses.url,
            "s3_url": self._addresses.s3_url,
            "clock": self.clock(),
            "accounts": self.accounts(),
            "engine": {"name": self._yard.engine.name, **self._yard.engine.describe()},
            "faults": self.armed_faults(),
        }

    def accounts(self) -> list[dict[str, str]]:
        """Account ids, names, users, key ids, one entry a user; never a secret."""
        keys: Mapping[str, AccessKey] = self._read(access_keys)
        return [
            {
                "account": key.account.account_id,
                "name": key.account.name,
                "user": key.account.user,
                "access_key_id": key.access_key_id,
            }
            for key in keys.values()
        ]

    def add_account(self, name: str, policy: str = EVERYTHING) -> dict[str, str]:
        """A new account with one key pair, and what it may do (an IAM policy's JSON text; '': everything)."""
        if not _ACCOUNT_NAME.fullmatch(name):
            raise Refused("an account's name has letters, digits, - and _, at most 64")
        try:
            known = {entry["account"] for entry in self.accounts()}
            self._yard.engine.allow_accounts(len(known) + 1)
            key = self._writer.submit(lambda tx: add_account(tx, name, policy)).result()
        except (AccountExists, EngineRefused, PolicyRefused) as problem:
            raise Refused(str(problem)) from None
        self._refresh_keys()
        return self._key(key)

    def add_user(self, account: str, name: str, policy: str = EVERYTHING) -> dict[str, str]:
        """A further user of an account, with one key pair, who may do what `policy` says. Raises Refused."""
        if not _ACCOUNT_NAME.fullmatch(name):
            raise Refused("a user's name has letters, digits, - and _, at most 64")
        of = self._key_of(account).account.name
        try:
            key = self._writer.submit(lambda tx: add_user(tx, of, name, policy)).result()
        except (AccountExists, NoAccount, PolicyRefused) as problem:
            raise Refused(str(problem)) from None
        self._refresh_keys()
        return self._key(key)

    def roles(self) -> list[dict[str, Any]]:
        """The roles, in the order in which they were made; an external id is told as asked for or not."""
        return [_shown_role(role) for role in self._read(roles).values()]

    def put_role(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Give an account a role, or change the one of that name: `account`, `name`, `trust` (a list of
        ARNs, or of accounts by name or id), `external_id`, `policy`, `max_session`. Raises Refused."""
        given = body.get("trust")
        if not isinstance(given, list):
            raise Refused('trust must be a list: ["arn:aws:iam::111122223333:user/ada"]')
        try:
            role = Role(
                "", "", "", str(body.get("name", "")), tuple(self._trusted(str(one)) for one in given),
                str(body.get("external_id") or ""), str(body.get("policy") or EVERYTHING),
                parse_duration(str(body.get("max_session") or "1h")),
            )  # fmt: skip
            of = self._key_of(str(body.get("account", ""))).account.name
            made: Role = self._writer.submit(lambda tx: put_role(tx, of, role)).result()
        except (RoleRefused, NoAccount, ValueError) as problem:
            raise Refused(str(problem)) from None
        self._refresh_keys()
        return _shown_role(made)

    def _trusted(self, text: str) -> str:
        """An ARN as it is; an account, by name or id, as the ARN that stands for all of it."""
        if text.startswith("arn:"):
            return text
        return f"arn:aws:iam::{self._key_of(text).account.account_id}:root"

    @staticmethod
    def _key(key: AccessKey) -> dict[str, str]:
        return {
            "account": key.account.account_id,
            "name": key.account.name,
            "user": key.account.user,
            "access_key_id": key.access_key_id,
            "secret_access_key": key.secret,
        }

    def environment(self, account: str | None, user: str | None = None) -> dict[str, str]:
        """The variables for an AWS client; `account` is a name or id, None the first account; `user` one of
        its users, None the first."""
        key = self._key_of(account, user)
        region = next(iter(self._yard.fleet.regions))
        urls = [self._addresses.url, *([self._addresses.s3_url] if self._addresses.s3_url else [])]
        environment = {
            "AWS_ENDPOINT_URL": self._addresses.url,
            "BERTH_YARD": " ".join(urls),
            "AWS_ACCESS_KEY_ID": key.access_key_id,
            "AWS_SECRET_ACCESS_KEY": key.secret,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
        }
        if self._addresses.s3_url:
            environment["AWS_ENDPOINT_URL_S3"] = self._addresses.s3_url
        return environment

    def _key_of(self, account: str | None, user: str | None = None) -> AccessKey:
        """The key of the account of that name or id (None: the first account), and of its user of that name
        (None: its first). Raises Refused."""
        keys: Mapping[str, AccessKey] = self._read(access_keys)
        first = next(iter(keys.values())).account.account_id
        of = [
            key for key in keys.values() if (account or first) in (key.account.name, key.account.account_id)
        ]
        for key in of:
            if user in (None, key.account.user):
                return key
        if of:
            name = of[0].account.name
            raise Refused(f"account {name} has no user {user!r}; add: berth yard account user {name} NAME")
        raise Refused(f"no account {account!r}; add it with: berth yard account add NAME")

    # -- time --------------------------------------------------------------------------------------------
    def clock(self) -> dict[str, Any]:
        """Now, and whether it stands still."""
        return {"now": iso(self._yard.clock.now()), "stopped": self._yard.clock.stopped}

    def move_clock(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Move a stopped clock. Raises Refused."""
        self._rehearsal("the clock")
        if ("to" in body) == ("advance" in body):
            raise Refused('say either "to" (an instant) or "advance" (a duration)')
        try:
            if "to" in body:
                target = parse_instant(str(body["to"]))
            else:
                target = self._yard.clock.now() + parse_duration(str(body["advance"]))
            played = self._timekeeper.move_to(target)
        except (ClockRefused, OverflowError) as problem:
            raise Refused(str(problem)) from None
        return {**self.clock(), "timers": played}

    def _rehearsal(self, what: str) -> None:
        if not self._yard.fleet.is_rehearsal:
            raise Refused(f"{what} can be touched in a rehearsal only; this yard owns real machines")

    # -- faults ------------------------------------------------------------------------------------------
    def armed_faults(self) -> list[dict[str, Any]]:
        """The armed faults, oldest first."""
        return [asdict(fault) for fault in self._yard.faults.armed()]

    def arm_fault(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Arm a fault; see `FaultKind` for the kinds and what `amount` means. Raises Refused."""
        self._rehearsal("faults")
        account = self._key_of(str(body["account"])).account.account_id if body.get("account") else None
        try:
            names = {name for _, name in served()}
            fault = read_fault(body, account, int(self._yard.ids.hex(8), 16), names)
        except ValueError as problem:
            raise Refused(str(problem)) from None
        self._yard.faults.arm(fault)
        return asdict(fault)

    def clear_faults(self) -> dict[str, int]:
        """Disarm all."""
        return {"cleared": self._yard.faults.clear()}

    # -- what happened -----------------------------------------------------------------------------------
    def events(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Events after number `after`, oldest first."""
        rows = self._read(
            lambda tx: tx.all(
                "SELECT * FROM events WHERE event_id > ? ORDER BY event_id LIMIT ?",
                _bounded(after),
                min(limit, LIMIT_MAX),
            )
        )
        return [_shown(row) for row in rows]

    def calls(self, after: int, limit: int, operation: str | None) -> list[dict[str, Any]]:
        """Accepted calls after number `after`, oldest first; only those of `operation` when given."""
        self._calls.flush().result()
        rows = self._read(
            lambda tx: tx.all(
                "SELECT * FROM calls WHERE call_id > ?1 AND (?2 IS NULL OR operation = ?2)"
                " ORDER BY call_id LIMIT ?3",
                _bounded(after), operation, min(limit, LIMIT_MAX),
            )
        )  # fmt: skip
        return [_shown(row) for row in rows]

    def ledger(self, account: str | None) -> list[dict[str, Any]]:
        """What was billed, oldest first; of one account (name or id) when given."""

        account_id = self._key_of(account).account.account_id if account else None

        def read(rows: Reading) -> list[Row]:
            return rows.all(
                "SELECT * FROM ledger WHERE ?1 IS NULL OR account_id = ?1 ORDER BY entry_id", account_id
            )

        entries = []
        for row in self._read(read):
            entry = _shown(row)
            money = Money.from_micros(entry.pop("amount_micros"), entry["currency"])
            entries.append({**entry, "amount": str(money.amount)})
        return entries

    # -- tests -------------------------------------------------------------------------------------------
    def seed_plan(self, body: Mapping[str, Any]) -> dict[str, str]:
        """Put a plan of any state into a rehearsal. Raises Refused."""
        self._rehearsal("plans")
        state = str(body.get("state", "Active"))
        seed = PlanSeed(
            account=self._account_in(body),
            region=str(body.get("region", "us-east-1")),
            name=str(body.get("name", "seeded")),
            instance_type=str(body.get("instance_type", "ml.trn1.32xlarge")),
            count=_whole(body.get("count", 1)),
            target=Target(str(body.get("target", "endpoint"))),
            window=self._window_in(body, state),
            fee=Money.parse(str(body.get("fee", "228.77"))),
            state=state,
        )
        arn = self._writer.submit(lambda tx: seed_training_plan(tx, self._yard, seed)).result()
        self._timekeeper.wake()
        return {"arn": arn, "name": seed.name}

    def seed_block(self, body: Mapping[str, Any]) -> dict[str, str]:
        """Put a Capacity Block of any state into a rehearsal. Raises Refused."""
        self._rehearsal("blocks")
        state = str(body.get("state", "active"))
        tags = body.get("tags", {})
        if not isinstance(tags, dict):
            raise Refused('tags must be an object like {"team": "a"}')
        seed = BlockSeed(
            account=self._account_in(body),
            region=str(body.get("region", "us-east-1")),
            instance_type=str(body.get("instance_type", "p5.48xlarge")),
            count=_whole(body.get("count", 1)),
            platform=str(body.get("platform", "Linux/UNIX")),
            window=self._window_in(body, state),
            fee=Money.parse(str(body.get("fee", "1146.17"))),
            state=state,
            zone_id=str(body["zone"]) if body.get("zone") else None,
            tags={str(key): str(value) for key, value in tags.items()},
        )
        made = self._writer.submit(lambda tx: seed_block(tx, self._yard, seed)).result()
        self._timekeeper.wake()
        return made

    def _account_in(self, body: Mapping[str, Any]) -> str:
        return self._key_of(str(body["account"]) if body.get("account") else None).account.account_id

    def _window_in(self, body: Mapping[str, Any], state: str) -> Window:
        """`start` and `duration` of a seed; without a start, one that goes with the state."""
        now = self._yard.clock.now()
        start = _start_of(state, now) if "start" not in body else parse_instant(str(body["start"]))
        span = parse_duration(str(body.get("duration", "24h")))
        if not EARLIEST <= start < LATEST or span > LATEST - start:
            raise Refused(f"a window lies between {iso(EARLIEST)} and {iso(LATEST)}")
        return Window(start, start + span)


def _shown_role(role: Role) -> dict[str, Any]:
    return {
        "arn": role.arn(),
        "role_id": role.role_id,
        "account": role.account_id,
        "name": role.name,
        "trust": list(role.trusted),
        "external_id": bool(role.external_id),
        "max_session_s": int(role.max_session.total_seconds()),
    }


def _start_of(state: str, now: datetime) -> datetime:
    """A start that goes with the state: running since an hour, over since a day, or tomorrow."""
    return now + {"active": timedelta(hours=-1), "expired": timedelta(days=-2)}.get(
        state.lower(), timedelta(days=1)
    )


def _whole(value: object) -> int:
    if type(value) is not int:
        raise Refused(f"count must be a whole number, not {value!r}")
    return value


def _bounded(number: int) -> int:
    """What SQLite takes; no table has more rows than that."""
    return min(number, 2**63 - 1)


def _shown(row: Row) -> dict[str, Any]:
    """A row with its instants in ISO 8601."""
    shown: dict[str, Any] = {}
    for name in row.keys():  # noqa: SIM118 - a sqlite3.Row iterates over values
        if name.endswith("_us"):
            shown[name[:-3]] = iso(from_micros(row[name])) if row[name] is not None else None
        else:
            shown[name] = row[name]
    return shown
