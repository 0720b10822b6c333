"""`berth launch`: run instances in a Capacity Block that is bought. It cannot launch anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.deploy import bought, check_way
from berth.cli.desks import Counter, counter, tell_spending
from berth.cli.named import order_named, whole_named
from berth.cli.options import Json, Name, Profile, waiting
from berth.cli.output import Output
from berth.cli.pieces import Documents, each_piece
from berth.cli.spending import check_use
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Way

if TYPE_CHECKING:
    from berth.orders.order import Order
    from berth.orders.pieces.whole import Whole
    from berth.orders.seen import SeenReservation
    from berth.planner.launch import Launch
    from berth.workloads.launch import Running

Text = str | None


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("launch")(launch)


def launch(
    name: Name,
    *,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Instances to have (all that was bought).")
    ] = None,
    image: Annotated[Text, typer.Option("--image", help="Image (ami-...) of the block's platform.")] = None,
    template: Annotated[Text, typer.Option("--template", help="Launch template: lt-... or its name.")] = None,
    version: Annotated[Text, typer.Option("--template-version", help="Its version ($Default).")] = None,
    role: Annotated[Text, typer.Option("--role", help="Instance profile: name or ARN.")] = None,
    subnet: Annotated[
        Text, typer.Option("--subnet", help="Subnet in the block's zone (its default one).")
    ] = None,
    block: Annotated[
        list[str] | None,
        typer.Option("--block", help="One more block (cr-...), used when the first is full."),
    ] = None,
    wait: Annotated[bool, waiting("for the window, and until all instances run")] = False,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Launch instances into order NAME's Capacity Block. What the need says, or the options over it."""
    from berth.orders.elsewhere import check_block_id

    output = Output(as_json=as_json)
    for one in block or ():
        check_block_id(one)
    with counter(output, profile=profile, need=name.partition("/")[0]) as at:
        whole = whole_named(at, name)
        if whole is not None:
            options = {
                "image": image, "template": template, "version": version, "role": role, "subnet": subnet,
            }  # fmt: skip
            return launch_pieces(at, whole, options, count=count, wait=wait)
        order = order_named(at, name)
        check_way(order, Way.CAPACITY_BLOCK, f"berth deploy {order.key}")
        order, seen = bought(at, order, wait=wait)
        said = what_to_launch(
            order, image=image, template=template, version=version, role=role, subnet=subnet
        )
        running = launch_order(at, order, seen, said, count=count, others=tuple(block or ()), wait=wait)
        say_launched(at, order, running)
    return ExitCode.DONE


def launch_pieces(
    at: Counter, whole: Whole, options: dict[str, str | None], *, count: int | None, wait: bool
) -> int:
    """Launch into each block of the order whose window is open. Raises BerthError; see `launch_order`."""
    if count is not None:
        raise BerthError(
            ExitCode.USAGE, "--count is for one piece of the order", f"berth launch {whole.key}/1.1 --count N"
        )
    told = Documents(at, "berth.launch-pieces/1", str(whole.key))

    def act(there: Counter, order: Order) -> int:
        if order.offer.way is not Way.CAPACITY_BLOCK or not order.window.contains(there.door.clock.now()):
            there.output.talk(f"piece {order.key}: nothing launched: {_not_now(order)}")
            return ExitCode.DONE
        order, seen = bought(there, order, wait=wait)
        running = launch_order(there, order, seen, what_to_launch(order, **options), wait=wait)
        say_launched(there, order, running, tell=told.add)
        return ExitCode.DONE

    code = each_piece(at, whole, act)
    told.tell()
    return code


def _not_now(order: Order) -> str:
    if order.offer.way is not Way.CAPACITY_BLOCK:
        return f"berth deploy {order.key} serves from it"
    return f"its window is {iso(order.window.start)} to {iso(order.window.end)}"


def what_to_launch(
    order: Order,
    *,
    image: Text = None,
    template: Text = None,
    version: Text = None,
    role: Text = None,
    subnet: Text = None,
) -> Launch:
    """What the need said, with the options over it, one by one."""
    from berth.planner.launch import Launch
    from berth.planner.need import Need

    need = order.context.get("need")
    said = (Need.from_json(need).launch if need else None) or Launch()
    if template is not None:
        said = replace(said, template=template, template_version=None)
    given = {"image": image, "template_version": version, "role": role, "subnet": subnet}
    return replace(said, **{key: value for key, value in given.items() if value is not None})


def launch_order(
    at: Counter,
    order: Order,
    seen: SeenReservation | None,
    said: Launch,
    *,
    count: int | None = None,
    others: tuple[str, ...] = (),
    wait: bool = False,
) -> Running:
    """Launch and read back. Raises BerthError (30 when bought and less runs than wanted)."""
    from berth.workloads.launch import launch as launch_into
    from berth.workloads.launch import until_running

    tell_spending(order.spending)
    check_use(at, order)
    site = at.site(order.offer.region)
    running = launch_into(site, order, seen, said, wanted=count, others=others)
    return until_running(site, order, running) if wait else running


def say_launched(
    at: Counter, order: Order, running: Running, tell: Callable[[dict[str, Any]], None] | None = None
) -> None:
    """Tell what runs, and what is next."""
    from berth.workloads.launch import described

    (tell or at.output.document)(
        {"schema": "berth.launch/1", "order": str(order.key), "wanted": running.wanted,
         "started": running.started, "instances": described(running)}
    )  # fmt: skip
    at.output.answer("\n".join(f"instance {one.id} in {one.block}: {one.state}" for one in running.instances))
    at.output.talk(f"started now: {running.started}; next: berth clean {order.key} before the window closes")
