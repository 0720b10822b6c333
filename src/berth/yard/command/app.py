"""`berth yard ...`: start, stop and operate a yard."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain
from berth.yard.admin.client import AdminRefused, NoYard, ask
from berth.yard.data_folder import DataFolder, default_folder

PORT = 4599

app = typer.Typer(
    name="berth yard",
    help="A server that speaks AWS's capacity APIs: a rehearsal, or machines of your own.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
clock_app = typer.Typer(help="The yard's clock.", no_args_is_help=True, rich_markup_mode=None)
account_app = typer.Typer(help="Accounts and their keys.", no_args_is_help=True, rich_markup_mode=None)
fault_app = typer.Typer(
    help="What a rehearsal does wrong on demand.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(clock_app, name="clock")
app.add_typer(account_app, name="account")
app.add_typer(fault_app, name="fault")

Data = Annotated[
    Path | None, typer.Option("--data", help="The yard's data folder (default: under ~/.local/state).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _folder(data: Path | None) -> DataFolder:
    return DataFolder((data or default_folder(os.environ)).absolute())


def _ask(data: Path | None, method: str, path: str, body: Any = None, **query: Any) -> Any:
    folder = _folder(data)
    try:
        return ask(folder.admin_socket, method, path, body, **query)
    except NoYard as problem:
        raise BerthError(
            ExitCode.USAGE, str(problem), f"start one: berth yard start --detach --data {folder.path}"
        ) from None
    except AdminRefused as problem:
        raise BerthError(ExitCode.BAD_REQUEST, str(problem)) from None


def _show(as_json: bool, answer: Any, lines: Sequence[str]) -> None:
    typer.echo(json.dumps(answer, indent=2) if as_json else "\n".join(plain(line, 2000) for line in lines))


@app.command()
def start(  # noqa: PLR0917 - a command line's options, given by name
    fleet: Annotated[
        Path | None, typer.Option("--fleet", help="A fleet file; without one, the shipped rehearsal.")
    ] = None,
    data: Data = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 = any free.")
    ] = PORT,
    clock: Annotated[
        str,
        typer.Option("--clock", help="`real`, or an instant at which the clock stands still until moved."),
    ] = "real",
    rest: Annotated[
        str | None,
        typer.Option(
            "--rest", help="URL of another emulator on this machine for what a yard does not serve."
        ),
    ] = None,
    throttle_scale: Annotated[
        float,
        typer.Option(
            "--throttle-scale",
            min=1,
            max=100_000,
            help="A rehearsal's throttles refill so many times faster than real time.",
        ),
    ] = 1.0,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; return when ready.")
    ] = False,
) -> None:
    """Start a yard. It runs until stopped; what it acknowledged survives any end."""
    from berth.yard.command.settings import StartSettings
    from berth.yard.command.start import start_detached, start_here

    settings = StartSettings(
        _folder(data), fleet.absolute() if fleet else None, port, clock, rest, throttle_scale
    )
    if detach:
        start_detached(settings)
    else:
        start_here(settings)


@app.command()
def stop(data: Data = None) -> None:
    """Stop the yard in order; its containers end with it (a rehearsal's always do)."""
    from berth.yard.command.start import wait_until_gone

    folder = _folder(data)
    pid = int(_ask(data, "GET", "/status")["pid"])
    _ask(data, "POST", "/stop")
    wait_until_gone(folder, pid)
    typer.echo(f"the yard on {folder.path} has stopped")


@app.command()
def status(data: Data = None, as_json: AsJson = False) -> None:
    """What runs, where it listens, how containers are confined, what the clock says."""
    answer = _ask(data, "GET", "/status")
    engine = answer["engine"]
    clock = answer["clock"]
    lines = [
        f"yard      {answer['url']}  ({answer['kind']}: {answer['fleet']}), pid {answer['pid']}",
        f"S3        {answer['s3_url'] or 'none beside this yard'}",
        f"data      {answer['data']}",
        *([f"rest      {answer['rest']}"] if answer["rest"] else []),
        f"clock     {clock['now']}  {'stands still until moved' if clock['stopped'] else 'real time'}",
        *(f"{name:9} {value}" for name, value in engine.items() if name != "name"),
        f"engine    {engine['name']}",
        f"accounts  {', '.join(_who(a) + ' (' + a['account'] + ')' for a in answer['accounts'])}",
        f"faults    {', '.join(fault['kind'] for fault in answer['faults']) or 'none armed'}",
    ]
    _show(as_json, answer, lines)


@app.command()
def env(
    data: Data = None,
    account: Annotated[str | None, typer.Option("--account", help="Name or id; default: the first.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="A further user of the account.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the environment that makes an AWS client talk to the yard: eval "$(berth yard env)"."""
    answer = _ask(data, "GET", "/environment", account=account, user=user)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in answer.items()]
    lines.append("unset AWS_PROFILE AWS_SESSION_TOKEN")
    _show(as_json, answer, lines)


@app.command()
def events(
    data: Data = None,
    after: Annotated[int, typer.Option("--after", min=0, help="Only events after this number.")] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000)] = 1000,
    as_json: AsJson = False,
) -> None:
    """What happened in the yard, oldest first."""
    answer = _ask(data, "GET", "/events", after=after, limit=limit)
    _show(as_json, answer, [_event_line(event) for event in answer])


def _event_line(event: dict[str, Any]) -> str:
    moved = f"{event['from_state'] or '-'} -> {event['to_state']}" if event["to_state"] else ""
    return f"{event['event_id']:>6}  {event['at']:20}  {event['subject']}  {moved}  {event['reason']}"


@app.command()
def log(
    data: Data = None,
    operation: Annotated[
        str | None, typer.Option("--operation", help="Only calls of this operation.")
    ] = None,
    after: Annotated[int, typer.Option("--after", min=0, help="Only calls after this number.")] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000)] = 1000,
    as_json: AsJson = False,
) -> None:
    """The calls that the yard accepted, oldest first."""
    answer = _ask(data, "GET", "/calls", after=after, limit=limit, operation=operation)
    lines = [
        f"{call['call_id']:>6}  {call['at']:20}  {call['account_id']}  {call['region']:14}"
        f"  {call['operation']:32}  {call['outcome']}"
        for call in answer
    ]
    _show(as_json, answer, lines)


@app.command()
def ledger(
    data: Data = None,
    account: Annotated[str | None, typer.Option("--account", help="Name or id; default: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """What the yard billed."""
    answer = _ask(data, "GET", "/ledger", account=account)
    lines = [
        f"{entry['at']:20}  {entry['account_id']}  {entry['amount']:>14} {entry['currency']}"
        f"  {entry['description']}"
        for entry in answer
    ]
    _show(as_json, answer, lines)


@clock_app.command("show")
def clock_show(data: Data = None, as_json: AsJson = False) -> None:
    """The time in the yard."""
    answer = _ask(data, "GET", "/clock")
    _show(as_json, answer, [_clock_line(answer)])


@clock_app.command("set")
def clock_set(
    time: Annotated[str, typer.Argument(help="An instant, like 2026-12-02T11:30Z.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Set a clock that stands still; everything due on the way happens, in order."""
    answer = _ask(data, "POST", "/clock", {"to": time})
    _show(as_json, answer, [_clock_line(answer)])


@clock_app.command("advance")
def clock_advance(
    span: Annotated[str, typer.Argument(help="A duration, like 7d or 36h or 6m.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Advance a clock that stands still; everything due on the way happens, in order."""
    answer = _ask(data, "POST", "/clock", {"advance": span})
    _show(as_json, answer, [_clock_line(answer)])


def _clock_line(answer: dict[str, Any]) -> str:
    played = f", {answer['timers']} timers played" if "timers" in answer else ""
    return f"{answer['now']}  {'stands still until moved' if answer['stopped'] else 'real time'}{played}"


@account_app.command("add")
def account_add(
    name: Annotated[str, typer.Argument(help="Letters, digits, - and _.")],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", help="IAM policy (JSON file): all that it may do. None: everything."),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Add an account; prints its keys."""
    answer = _ask(data, "POST", "/accounts", {"name": name, "policy": _text_of(policy)})
    _show(as_json, answer, [f"account {answer['account']} ({answer['name']})", *_key_lines(answer)])


@account_app.command("user")
def account_user(
    account: Annotated[str, typer.Argument(help="The account's name or id.")],
    name: Annotated[str, typer.Argument(help="Letters, digits, - and _.")],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", help="IAM policy (JSON file): all that this user may do. None: everything."),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Give an account a further user, who is another identity than the first; prints the keys."""
    body = {"account": account, "name": name, "policy": _text_of(policy)}
    answer = _ask(data, "POST", "/users", body)
    shown = f"user {answer['user']} of account {answer['account']} ({answer['name']})"
    _show(as_json, answer, [shown, *_key_lines(answer)])


def _key_lines(answer: dict[str, Any]) -> list[str]:
    user = f" --user {answer['user']}" if answer["user"] != answer["name"] else ""
    return [
        f"AWS_ACCESS_KEY_ID={answer['access_key_id']}",
        f"AWS_SECRET_ACCESS_KEY={answer['secret_access_key']}",
        f'use it: eval "$(berth yard env --account {answer["name"]}{user})"',
    ]


def _who(entry: dict[str, Any]) -> str:
    """An account's first user by the account's name; a further one after a slash."""
    return entry["name"] if entry["user"] == entry["name"] else f"{entry['name']}/{entry['user']}"


def _text_of(file: Path | None) -> str:
    try:
        return file.read_text("utf-8") if file else ""
    except (OSError, UnicodeDecodeError) as problem:
        raise BerthError(ExitCode.BAD_REQUEST, f"{file} cannot be read: {problem}") from None


@account_app.command("role")
def account_role(  # noqa: PLR0917 - a command line's options, given by name
    account: Annotated[str, typer.Argument(help="The account's name or id.")],
    name: Annotated[str, typer.Argument(help="Letters, digits and _+=,.@-.")],
    trust: Annotated[
        list[str],
        typer.Option("--trust", metavar="WHO", help="ARN, or an account's name or id; may be repeated."),
    ],
    external_id: Annotated[
        str, typer.Option("--external-id", help="What whoever assumes it must know.")
    ] = "",
    policy: Annotated[
        Path | None,
        typer.Option("--policy", help="IAM policy (JSON file): all that it may do. None: everything."),
    ] = None,
    max_session: Annotated[str, typer.Option("--max-session", help="The longest session, 1h to 12h.")] = "1h",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Give an account a role that others may assume, or change it; prints its ARN."""
    body = {
        "account": account, "name": name, "trust": trust, "external_id": external_id,
        "policy": _text_of(policy), "max_session": max_session,
    }  # fmt: skip
    answer = _ask(data, "POST", "/roles", body)
    _show(as_json, answer, [f"role {answer['arn']}", *_role_lines(answer)])


@account_app.command("roles")
def account_roles(data: Data = None, as_json: AsJson = False) -> None:
    """The roles, and whom they trust."""
    answer = _ask(data, "GET", "/roles")
    _show(as_json, answer, [line for one in answer for line in (one["arn"], *_role_lines(one))])


def _role_lines(role: dict[str, Any]) -> list[str]:
    asked = ["  asks for an external id"] if role["external_id"] else []
    return [*(f"  trusts {arn}" for arn in role["trust"]), *asked]


@account_app.command("list")
def account_list(data: Data = None, as_json: AsJson = False) -> None:
    """The accounts and their key ids."""
    answer = _ask(data, "GET", "/accounts")
    _show(as_json, answer, [f"{a['account']}  {_who(a):20}  {a['access_key_id']}" for a in answer])


@fault_app.command("arm")
def fault_arm(  # noqa: PLR0917 - a command line's options, given by name
    kind: Annotated[str, typer.Argument(help="lost-reply, error-after-commit, stall, throttle, gone, ...")],
    operation: Annotated[str, typer.Option("--operation", help="Operation name; * is a wildcard.")] = "*",
    account: Annotated[str | None, typer.Option("--account", help="Only calls of this account id.")] = None,
    times: Annotated[int | None, typer.Option("--times", min=1, help="Default: until cleared.")] = None,
    amount: Annotated[
        str, typer.Option("--amount", help="Seconds, minutes, factor or names: see the docs.")
    ] = "",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Arm a fault (docs/internals/faults.md tells what each does)."""
    body = {"kind": kind, "operation": operation, "account": account, "times": times, "amount": amount}
    answer = _ask(data, "POST", "/faults", body)
    _show(as_json, answer, [_fault_line(answer)])


@fault_app.command("list")
def fault_list(data: Data = None, as_json: AsJson = False) -> None:
    """The armed faults."""
    answer = _ask(data, "GET", "/faults")
    _show(as_json, answer, [_fault_line(fault) for fault in answer] or ["none armed"])


@fault_app.command("clear")
def fault_clear(data: Data = None, as_json: AsJson = False) -> None:
    """Disarm all faults."""
    answer = _ask(data, "DELETE", "/faults")
    _show(as_json, answer, [f"{answer['cleared']} disarmed"])


def _fault_line(fault: dict[str, Any]) -> str:
    times = "until cleared" if fault["times"] is None else f"{fault['times']} times"
    amount = f", {fault['amount']}" if fault["amount"] else ""
    return f"{fault['kind']} on {fault['operation']}, {times}{amount}"


def main(argv: Sequence[str]) -> int:
    """Run `berth yard` with `argv`; the exit code. Failures raise BerthError, which `berth` prints."""
    result = app(list(argv), prog_name="berth yard", standalone_mode=False)
    return int(result or 0)
