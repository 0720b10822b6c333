"""`berth doctor`: is everything there that a need takes? Login, clock, Regions, rights, quotas."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import journal_trouble
from berth.cli.needs import typed_need
from berth.cli.options import BuyerProfile, Json, NeedIfAny, Profile
from berth.cli.output import Output
from berth.cli.who import enter
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.aws.session import Door
    from berth.checkup.caller import Skew
    from berth.checkup.findings import Checkup, Finding
    from berth.planner.need import Need
    from berth.planner.need_accounts import NeedAccount
    from berth.sources.checkup import Looked

# With these the door stays shut for want of a login or an answer: that is a finding, not the end.
_SHUT = frozenset({ExitCode.CREDENTIALS, ExitCode.INCOMPLETE})


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("doctor")(doctor)


def doctor(
    need: NeedIfAny = None,
    *,
    region: Annotated[list[str] | None, typer.Option("--region", help="Region; may be repeated.")] = None,
    profile: Profile = None,
    buyer_profile: BuyerProfile = None,
    as_json: Json = False,
) -> int:
    """Check what NEED takes: login, clock, Regions, rights, quotas. Says what to do. Spends nothing."""
    output = Output(as_json=as_json)
    draft = typed_need(need, {"regions": region}).draft() if need is not None else None
    heard: list[Skew] = []
    try:
        door = enter(
            output, profile=profile, regions=draft.regions if draft else region or (), quiet=True,
            hear_date=_hearing(heard),
        )  # fmt: skip
    except BerthError as problem:
        if problem.exit_code not in _SHUT:
            raise
        return _end(output, _shut(problem, draft, heard))
    if buyer_profile is not None:
        door.pay_with(buyer_profile)
    output.talk(door.identity.header())
    return _end(output, _checked(output, door, draft, heard))


def _hearing(heard: list[Skew]) -> Callable[[str, str], None]:
    """Compares each `Date` with this machine's clock. Called from several threads; appending is atomic."""
    from berth.terms.clock import SystemClock

    clock = SystemClock()

    def hear(service: str, date: str) -> None:
        try:
            told = parsedate_to_datetime(date)
        except ValueError:
            return  # a proxy's invention is no time to compare with; without any the clock is unknown
        heard.append((service, clock.now() - (told if told.tzinfo else told.replace(tzinfo=UTC))))

    return hear


def _shut(problem: BerthError, need: Need | None, heard: list[Skew]) -> Checkup:
    """What can be said without a door."""
    from berth.aws.worlds import declared_yard
    from berth.checkup.caller import clock_finding, no_identity
    from berth.checkup.findings import Checkup, in_order
    from berth.terms.clock import SystemClock

    now = SystemClock().now()
    yard = declared_yard(os.environ)
    clock = clock_finding(heard, now)
    found = [no_identity(problem, clock), clock, *_at_home(yard.address if yard else "aws")]
    name = need.name if need else None
    return Checkup(now, name, None, yard.url if yard else None, in_order(found))


def _checked(output: Output, door: Door, draft: Need | None, heard: list[Skew]) -> Checkup:
    from berth.checkup.caller import clock_finding, identity_findings, payer_findings
    from berth.checkup.findings import Checkup, State, in_order
    from berth.checkup.regions import region_findings
    from berth.sources.checkup import look_over
    from berth.terms.clock import SystemClock

    need = replace(draft, regions=door.regions) if draft is not None else None
    artefact = _artefact(need)
    looked = look_over(door, need, uploads=artefact is not None, told=output.talk)
    regions = region_findings(door.regions, looked.statuses, looked.regions)
    found: list[Finding] = [
        *identity_findings(door.identity, need.account if need else None),
        *payer_findings(door.identity, door.payer),
        *(_account(door, one) for one in (need.accounts if need else ()) if one.id != door.identity.account),
        clock_finding(heard, SystemClock().now()),
        *_at_home(door.identity.realm),
        *regions,
    ]
    if need is not None:
        # Where there is no Region, nothing else about it is worth a line.
        there = tuple(one.what for one in regions if one.state is not State.MISSING)
        if there:
            found += _for_need(replace(need, regions=there), door.identity.account, looked, artefact)
    rehearsal = door.identity.rehearsal
    return Checkup(
        door.clock.now(), need.name if need else None, door.identity.account,
        rehearsal.url if rehearsal else None, in_order(found),
    )  # fmt: skip


def _account(door: Door, named: NeedAccount) -> Finding:
    """Whether an account that the need names opens; where its role does not, which side refuses."""
    from berth.checkup.accounts import AccountLook, account_finding
    from berth.cli.accounts import door_of, source_of
    from berth.sources.checkup import may_assume

    try:
        return account_finding(AccountLook(named, door_of(door, named).identity), door.identity)
    except BerthError as problem:
        trouble = problem
    if named.role is None or trouble.exit_code is not ExitCode.CREDENTIALS:
        return account_finding(AccountLook(named, None, trouble), door.identity)
    try:
        source = source_of(door, named)
    except BerthError as problem:
        return account_finding(AccountLook(named, None, problem), door.identity)
    look = AccountLook(named, None, trouble, may_assume(source, named.role))
    return account_finding(look, source.identity)


def _for_need(need: Need, account: str, looked: Looked, artefact: bool | None) -> list[Finding]:
    """Rights, quotas and parts, in the Regions of `need`."""
    from berth.checkup.parts import part_findings
    from berth.checkup.quotas import QuotaSeen, quota_findings, quotas_of
    from berth.checkup.rights import right_findings

    rights = [looked.rights[region] for region in need.regions if region in looked.rights]
    silent = [region for region in need.regions if region not in looked.rights]
    why = next((one.no_simulation for one in rights if one.no_simulation), "")
    why = why or (f"interrupted before it answered for {', '.join(silent)}" if silent else "")
    quotas: list[QuotaSeen] = []
    for region in need.regions:
        if region in looked.quotas:
            quotas += looked.quotas[region].seen
        else:
            quotas += [
                QuotaSeen(one, one.code, None, trouble="interrupted") for one in quotas_of(need, region)
            ]
    return [
        *right_findings(need, [answer for one in rights for answer in one.answers], why),
        *quota_findings(quotas),
        *part_findings(need, account, [looked.parts[r] for r in need.regions if r in looked.parts], artefact),
    ]


def _artefact(need: Need | None) -> bool | None:
    """Whether the local artefact that the need names is there; None where it names none."""
    data = need.deployment.data if need is not None and need.deployment is not None else None
    return None if data is None or "://" in data else Path(data).exists()


def _at_home(realm: str) -> list[Finding]:
    """What is asked of this machine alone: the SDK and the journal."""
    return [_sdk(), _journal(realm)]


def _sdk() -> Finding:
    from berth.aws.permissions import VERBS
    from berth.aws.sdk import lacking, version
    from berth.checkup.findings import Finding, State, Topic

    missing = lacking({row for rows in VERBS.values() for row in rows})
    facts = {"version": version(), "lacking": list(missing)}
    if not missing:
        return Finding(
            Topic.SDK, State.OK, f"botocore {version()}", "knows all that Berth sends", None, facts
        )
    said = f"too old, it does not know {', '.join(missing)}"
    todo = "pip install --upgrade boto3 botocore"
    return Finding(Topic.SDK, State.MISSING, f"botocore {version()}", said, todo, facts)


def _journal(realm: str) -> Finding:
    """Whether the journal opens, and takes a write: asked with one that changes nothing."""
    from berth.checkup.findings import Finding, State, Topic
    from berth.orders.journal_file import check_writable, journal_place

    try:
        with journal_trouble():
            place = journal_place(os.environ)
        with journal_trouble(place):
            db = place.to_write()
            try:
                check_writable(db)
                row = db.execute("SELECT count(*) AS n FROM orders WHERE realm = ?", (realm,)).fetchone()
            finally:
                db.close()
            reader, version = place.to_read()
            reader.close()
    except BerthError as problem:
        return Finding(Topic.JOURNAL, State.MISSING, "journal", problem.message, problem.next_step)
    count = row["n"] if row is not None else 0
    whose = "shared by a team" if place.shared else "of this machine"
    said = f"{whose}, schema {version}, {count} {'order' if count == 1 else 'orders'}, writable"
    return Finding(
        Topic.JOURNAL, State.OK, str(place), said, None, {"schema_version": version, "orders": count}
    )


def _end(output: Output, checkup: Checkup) -> int:
    from berth.checkup.findings import State
    from berth.checkup.wording import checkup_text

    output.document(checkup.to_json())
    output.answer(checkup_text(checkup))
    code = checkup.exit_code
    if code is ExitCode.DONE:
        return code
    missing, unknown = len(checkup.having(State.MISSING)), len(checkup.having(State.UNKNOWN))
    said = f"{missing} missing, {unknown} unknown" if missing else f"{unknown} not known, and so not fine"
    raise BerthError(code, said, "the list above says what to do")
