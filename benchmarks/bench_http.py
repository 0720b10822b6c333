"""Over HTTP, one worker, side by side in one run: this yard, `moto_server`, and a server that does nothing.

Signatures on, keep-alive, requests exactly as boto3 sends them, ready made. The plans are bought over HTTP,
so the filling is a measurement too. Rounds are interleaved: every target has the same weather.
Figures: answers a second as median [lowest-highest] of the rounds; latencies and processor time are medians.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from berth.yard.testing.process import YardProcess
from harness import Verdicts, machine, table, versions
from load import Outcome, send
from servers import FLEET, INSTANCE_TYPE, REGION, Server, bare, client, moto, recorded
from target import BUSY, NOISE, Target, times

SEED = 20261130
ROUNDS = 3
COMPARED = ("moto", "describe few", "bare")
ROUNDS_COMPARED = 7  # of these three
FEW = 100  # plans in the small yard: one page of the list
DISTINCT = 256  # different requests of one kind
AGAINST_MOTO = 10.0
AGAINST_BARE = 0.2


# -- the yards -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filled:
    """A yard with plans in it, and how fast they were bought."""

    yard: YardProcess
    server: Server
    plans: int
    bought: Outcome
    played_s: float

    def requests(self, operation: str, variants: Sequence[dict[str, object]]) -> list[bytes]:
        """Signed requests of one operation, one for each set of parameters."""
        return recorded(
            self.yard.clients.sagemaker,
            lambda c: [getattr(c, operation)(**parameters) for parameters in variants][:0],
        )


def fill(yard: YardProcess, plans: int) -> Filled:
    """Buy plans over HTTP, every second one for now, and let the clock run until those are Active."""
    assert yard.process is not None
    server = Server(int(yard.url.rsplit(":", 1)[1]), yard.process.pid)
    sagemaker = yard.clients.sagemaker
    offers = offering_ids(sagemaker, yard)

    def buy(caller: object) -> None:
        for number in range(plans):
            offer = offers[0] if number % 2 == 0 else offers[1 + number % (len(offers) - 1)]
            caller.create_training_plan(  # type: ignore[attr-defined]
                TrainingPlanName=plan_name(number), TrainingPlanOfferingId=offer
            )

    bought = send(server.port, recorded(sagemaker, buy), BUSY, None)
    if bought.refused:
        raise RuntimeError(f"{bought.refused} purchases were refused: {bought.sample[:300]}")
    begun = time.perf_counter()
    yard.clock.advance(hours=2)
    return Filled(yard, server, plans, bought, time.perf_counter() - begun)


def offering_ids(sagemaker: object, yard: YardProcess) -> list[str]:
    """One that starts within the hour, then one for each of the next 40 days."""
    found = []
    for day in range(41):
        answer = sagemaker.search_training_plan_offerings(  # type: ignore[attr-defined]
            InstanceType=INSTANCE_TYPE, InstanceCount=1, DurationHours=24, TargetResources=["endpoint"],
            StartTimeAfter=yard.clock.now + timedelta(days=day),
        )  # fmt: skip
        found.append(answer["TrainingPlanOfferings"][0]["TrainingPlanOfferingId"])
    return found


def plan_name(number: int) -> str:
    """The name of the plan of that number; the even ones are Active."""
    return f"plan-{number:06d}"


def describes(filled: Filled) -> list[bytes]:
    """DescribeTrainingPlan of Active plans, drawn with the seed."""
    drawn = random.Random(SEED).choices(range(0, filled.plans, 2), k=DISTINCT)
    return filled.requests("describe_training_plan", [{"TrainingPlanName": plan_name(n)} for n in drawn])


def searches(filled: Filled) -> list[bytes]:
    """SearchTrainingPlanOfferings over counts, lengths and starts, drawn with the seed."""
    source, now = random.Random(SEED), filled.yard.clock.now
    variants = [
        {
            "InstanceType": INSTANCE_TYPE,
            "InstanceCount": source.choice((1, 4, 16, 64)),
            "DurationHours": 24 * source.choice((1, 7, 14, 56)),
            "TargetResources": ["endpoint"],
            "StartTimeAfter": now + timedelta(days=source.randrange(40)),
        }
        for _ in range(DISTINCT)
    ]
    return filled.requests("search_training_plan_offerings", variants)


def lists(filled: Filled) -> list[bytes]:
    """ListTrainingPlans, the first page of 100."""
    return filled.requests("list_training_plans", [{"MaxResults": 100}])


# -- the others ------------------------------------------------------------------------------------------


def moto_requests(server: Server) -> list[bytes]:
    """DescribeEndpoint of an endpoint that is made first."""
    caller = client(f"http://127.0.0.1:{server.port}", "testing", "testing")
    caller.create_model(
        ModelName="m",
        ExecutionRoleArn="arn:aws:iam::123456789012:role/r",
        PrimaryContainer={"Image": "i", "ModelDataUrl": "s3://b/k"},
    )
    variant = {
        "VariantName": "v", "ModelName": "m", "InitialInstanceCount": 1, "InstanceType": "ml.t2.medium",
    }  # fmt: skip
    caller.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    caller.create_endpoint(EndpointName="e", EndpointConfigName="c")
    return recorded(caller, lambda c: c.describe_endpoint(EndpointName="e"))


# -- the run ---------------------------------------------------------------------------------------------


def main() -> None:
    """Start everything, measure in rounds, stop everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=10_000, help="plans in the large yard")
    parser.add_argument("--seconds", type=float, default=1.2, help="length of a busy round")
    options = parser.parse_args()
    print(machine())
    print(f"{versions('uvicorn', 'uvloop', 'httptools', 'boto3', 'moto')}; seed {SEED}; {REGION}")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-bench-")))
        few = fill(stack.enter_context(YardProcess(folder / "few", fleet=FLEET)), FEW)
        many = fill(stack.enter_context(YardProcess(folder / "many", fleet=FLEET)), options.plans)
        stands = stack.enter_context(moto())
        t = targets(few, many, stands, stack)
        for number in range(max(ROUNDS, ROUNDS_COMPARED)):
            for name, target in t.items():
                if number < (ROUNDS_COMPARED if name in COMPARED else ROUNDS):
                    target.round(options.seconds)
        memory = many.server.memory_mb()
    report(t, many, memory)


def targets(few: Filled, many: Filled, stands: Server, stack: contextlib.ExitStack) -> dict[str, Target]:
    """What is measured, in the order of a round: the compared three stand beside each other."""
    asked = partial(Target, alone=True)
    describing = describes(few)
    body = len(send(few.server.port, describing[:1], 1, None).sample)
    nothing = stack.enter_context(bare(body))
    found = {
        "moto": asked("moto_server, DescribeEndpoint", stands, moto_requests(stands)),
        "describe few": asked(f"DescribeTrainingPlan, {few.plans:,} plans", few.server, describing),
        "bare": asked(f"bare ASGI handler, {body} bytes", nothing, describing),
        "describe many": asked(f"DescribeTrainingPlan, {many.plans:,} plans", many.server, describes(many)),
    }
    for size, filled in (("few", few), ("many", many)):
        found[f"search {size}"] = asked(
            f"SearchTrainingPlanOfferings, {filled.plans:,}", filled.server, searches(filled)
        )
        found[f"list {size}"] = asked(
            f"ListTrainingPlans page of 100, {filled.plans:,}", filled.server, lists(filled)
        )
    return found


def row(target: Target) -> list[str]:
    """The target's line of the table."""
    latencies = [*target.latencies(target.busy, 2), *target.latencies(target.single, 3)]
    return [target.name, target.rates(), *latencies, f"{target.cost:.0f}"]


def report(t: dict[str, Target], many: Filled, memory: float) -> None:
    """The table, the ratios, the pass lines."""
    head = ["target", f"req/s, {BUSY} connections", "p50 ms", "p99 ms", "alone p50", "p99", "CPU us"]
    print(table(head, [row(target) for target in t.values()]))
    print(
        f"alone: one connection; CPU: of the server, for one answer\n"
        f"{many.plans:,} purchases, {BUSY} connections, each on disk before its answer: "
        f"{many.bought.rate:,.0f}/s, p50 {many.bought.p50_us / 1e3:.1f} ms, "
        f"p99 {many.bought.p99_us / 1e3:.1f} ms; two hours of their timers played in {many.played_s:.1f} s; "
        f"memory then {memory:.0f} MB"
    )
    verdicts = Verdicts("http")
    for name, aim, what in (
        ("moto", AGAINST_MOTO, "moto_server's rate"),
        ("bare", AGAINST_BARE, "the bare handler's rate"),
    ):
        rates, processor = times(t["describe few"], t[name])
        verdicts.check(
            rates >= aim, f"{rates:.2f} times {what} (aim: {aim:g}); by processor time {processor:.2f} times"
        )
    for name in ("describe", "search", "list"):
        ratio = t[f"{name} many"].cost / t[f"{name} few"].cost
        verdicts.check(
            ratio <= 1 + NOISE,
            f"{name}: {ratio:.2f} times the processor time with {many.plans:,} plans as with {FEW}"
            f" (aim: the same within noise, at most {1 + NOISE:g})",
        )
    verdicts.finish()


if __name__ == "__main__":
    main()
