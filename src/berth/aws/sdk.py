"""What the installed SDK knows: operations and members that Berth sends and an older botocore lacks.

Nothing is asked of a network: botocore ships its models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import botocore
import botocore.session
from botocore.exceptions import BotoCoreError
from botocore.model import ListShape, StructureShape

_SERVICE_OF = {"sagemaker:InvokeEndpoint": "sagemaker-runtime"}
MEMBERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "ec2:RunInstances": (
        ("InstanceMarketOptions", "MarketType"),
        ("CapacityReservationSpecification", "CapacityReservationTarget", "CapacityReservationId"),
    ),
    "ec2:PurchaseCapacityBlock": (("CapacityBlockOfferingId",), ("TagSpecifications",)),
    "sagemaker:SearchTrainingPlanOfferings": (("TargetResources",), ("DurationHours",)),
    "sagemaker:CreateTrainingPlan": (("TrainingPlanOfferingId",), ("Tags",)),
    "sagemaker:CreateEndpointConfig": (
        ("ProductionVariants", "CapacityReservationConfig", "MlReservationArn"),
    ),
}
"""Members, as paths, that a request of Berth cannot do without: an SDK without one refuses the request."""


def version() -> str:
    """Of botocore."""
    return str(botocore.__version__)


def lacking(operations: Iterable[str]) -> tuple[str, ...]:
    """Which of the operations (`ec2:RunInstances`), or members that they cannot do without, the SDK lacks."""
    session = botocore.session.get_session()
    found = []
    for row in sorted(operations):
        service, _, name = row.partition(":")
        try:
            model = session.get_service_model(_SERVICE_OF.get(row, service))
        except BotoCoreError:
            found.append(row)
            continue
        if name not in model.operation_names:
            found.append(row)
            continue
        shape = model.operation_model(name).input_shape
        found += [f"{row} {'.'.join(path)}" for path in MEMBERS.get(row, ()) if not _has(shape, path)]
    return tuple(found)


def _has(shape: object, path: tuple[str, ...]) -> bool:
    for name in path:
        while isinstance(shape, ListShape):
            shape = shape.member
        if not isinstance(shape, StructureShape) or name not in shape.members:
            return False
        shape = shape.members[name]
    return True
