"""Types without accelerators: each exists in EC2's model, and its figures follow from its name."""

from __future__ import annotations

import botocore.session

from berth.facts.general_types import general_type, general_type_names


def test_every_general_type_is_one_of_ec2s() -> None:
    """The installed botocore model is the authority for names."""
    model = botocore.session.get_session().get_service_model("ec2")
    known = set(model.shape_for("InstanceType").enum)  # type: ignore[attr-defined]
    assert set(general_type_names()) <= known


def test_figures_follow_from_size_and_family() -> None:
    """As the EC2 guide prints them: c7g.2xlarge has 8 vCPUs and 16 GiB, r6i.large 2 and 16."""
    figures = {
        "c7g.2xlarge": ("arm64", 8, 16), "r6i.large": ("x86_64", 2, 16), "m8g.medium": ("arm64", 1, 4),
        "c5.9xlarge": ("x86_64", 36, 72), "m7a.48xlarge": ("x86_64", 192, 768),
    }  # fmt: skip
    for name, expected in figures.items():
        found = general_type(name)
        assert found is not None
        assert (found.architecture, found.vcpus, found.memory_gib) == expected
    assert general_type("p5.48xlarge") is None
