"""`berth deploy`: put a model into a reservation as an endpoint. Spends nothing beyond what is paid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import Counter, counter, tell_spending
from berth.cli.named import order_named
from berth.cli.options import Json, Name, Profile, waiting
from berth.cli.output import Output
from berth.cli.spending import check_use
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Way

if TYPE_CHECKING:
    from berth.orders.order import Order
    from berth.orders.seen import SeenReservation
    from berth.planner.need import Deployment
    from berth.workloads.deploy import Storage

Text = str | None


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("deploy")(deploy)


def deploy(
    name: Name,
    *,
    model: Annotated[Text, typer.Option("--model", help="A SageMaker model that exists.")] = None,
    image: Annotated[Text, typer.Option("--image", help="Container image, to make a model of.")] = None,
    data: Annotated[Text, typer.Option("--data", help="Artefact: file, folder or s3:// URL.")] = None,
    role: Annotated[Text, typer.Option("--role", help="ARN of the role that SageMaker takes on.")] = None,
    bucket: Annotated[
        Text, typer.Option("--bucket", help="Bucket for a local artefact (sagemaker-REGION-ACCOUNT).")
    ] = None,
    wait: Annotated[bool, waiting("for the window")] = False,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Deploy an endpoint into order NAME's training plan. What the need says, or the options over it."""
    from berth.orders.wording import called

    output = Output(as_json=as_json)
    check_options(model, image, data, role)
    with counter(output, profile=profile, need=name.partition("/")[0]) as at:
        order = order_named(at, name, "berth deploy {}")
        check_way(order, Way.TRAINING_PLAN, f"berth launch {order.key}")
        order, seen = bought(at, order, wait=wait)
        wanted = what_to_deploy(order, model=model, image=image, data=data, role=role)
        endpoint = deploy_order(at, order, seen, wanted, bucket=bucket)
        output.document({"schema": "berth.deployment/1", "order": str(order.key), "endpoint": endpoint})
        output.answer(f"endpoint {endpoint} is in service on the {called(order)}")
        output.talk(f"next: berth invoke {order.key}; berth clean {order.key} before the window closes")
    return ExitCode.DONE


def bought(at: Counter, order: Order, *, wait: bool) -> tuple[Order, SeenReservation | None]:
    """The order settled and its reservation read; with `wait`, once that is open or never will be."""
    from berth.cli.standing import reservation, settled
    from berth.orders.order import OrderState
    from berth.orders.seen import Stage
    from berth.terms.instants import iso
    from berth.watch.waiting import wait_for

    order, seen = reservation(at, settled(at, order, wait=wait))
    if not wait or order.state is not OrderState.BOUGHT:
        return order, seen
    last = [order]
    ends = {Stage.OPEN, Stage.OVER, Stage.FAILED, Stage.LOST}

    def look() -> tuple[Order, SeenReservation | None]:
        last[0], now_seen = reservation(at, last[0])
        return last[0], now_seen

    def over(found: tuple[Order, SeenReservation | None]) -> bool:
        return found[0].state is not OrderState.BOUGHT or (found[1] is not None and found[1].stage in ends)

    def standing(found: tuple[Order, SeenReservation | None]) -> None:
        start = iso(order.offer.paid_window.start)
        at.output.talk(f"waiting until {start}; the yard's clock stands still: berth yard clock set {start}")

    return wait_for(
        look, over, at.door.clock, known=lambda found: (order.offer.paid_window.start,), standing=standing
    )


def check_way(order: Order, way: Way, instead: str) -> None:
    """Whether the verb is for what was bought. Raises BerthError (bad request) naming the one that is."""
    from berth.orders.wording import called

    if order.offer.way is not way:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"{called(order)} is for {order.offer.target}, which this verb does not do",
            instead,
            order.spending,
        )


def check_options(model: Text, image: Text, data: Text, role: Text) -> None:
    """Whether the options say one thing: an existing model, or how to make one. Raises BerthError (usage)."""
    if model is not None and (image or data or role):
        raise BerthError(
            ExitCode.USAGE, "--model names one that exists: leave out --image, --data and --role"
        )


def what_to_deploy(order: Order, *, model: Text, image: Text, data: Text, role: Text) -> Deployment:
    """What the need said, with the options over it. Raises BerthError (bad request) when it is not enough."""
    from berth.planner.need import Deployment, Need

    need = order.context.get("need")
    said = (Need.from_json(need).deployment if need else None) or Deployment()
    if model is not None:
        return replace(said, model_name=model, image=None, data=None, role=None, environment=())
    local = data if data is None or "://" in data else str(Path(data).absolute())
    made = replace(said, image=image or said.image, data=local or said.data, role=role or said.role)
    if image or data or role:
        made = replace(made, model_name=None)
    if made.model_name is None and not (made.image and made.role):
        raise _not_enough(order, made)
    return made


def _not_enough(order: Order, made: Deployment) -> BerthError:
    missing = " and ".join(
        option for option, value in (("--image", made.image), ("--role", made.role)) if not value
    )
    return BerthError(
        ExitCode.BAD_REQUEST,
        f"it is not said what to deploy into order {order.key}: {missing} missing",
        "add --model NAME, or --image, --role and --data; or a [deployment] in the need",
        order.spending,
    )


def deploy_order(
    at: Counter, order: Order, seen: SeenReservation | None, wanted: Deployment, *, bucket: Text = None
) -> str:
    """Deploy, and return the endpoint's name. Raises BerthError (30 when bought and nothing serves)."""
    from berth.workloads.artefact import default_bucket
    from berth.workloads.deploy import Storage
    from berth.workloads.deploy import deploy as put_in_service

    tell_spending(order.spending)
    check_use(at, order)
    region = order.offer.region

    def storage() -> Storage:
        s3 = at.door.launcher(region, service="s3")
        return Storage(s3, bucket or default_bucket(at.account, region), region)

    return put_in_service(at.site(region), order, seen, wanted, storage)
