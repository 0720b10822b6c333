"""The rules of spending as a file: read strictly, every complaint with its line and key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from berth.orders.spending import Cap, Per
from berth.orders.spending_file import load_rules, read_rules, rules_file
from berth.terms.money import Money
from berth.terms.outcomes import BerthError
from berth.terms.settings import SettingsError

WHOLE = """
time_zone = "Europe/Berlin"

[allow]
regions = ["us-east-1"]
types = ["p5.48xlarge", "ml.p5.*"]
zone_ids = ["use1-az4"]
ways = ["capacity-block", "training-plan"]
accounts = ["111122223333"]
payers = ["arn:aws:iam::111122223333:role/gpu/buyer"]

[tags.team]
values = ["research", "serving"]

[tags.cost-centre]
pattern = "[0-9]{4}"

[[cap]]
per = "order"
most = "30,000.00 USD"

[[cap]]
per = "month"
team = "*"
most = "90000 EUR"

[approval]
above = ["10,000.00 USD", "9000 EUR"]
approvers = ["arn:aws:iam::111122223333:role/lead", "arn:aws:iam::444455556666:user/ops/*"]
valid = "8h"
"""


def test_a_whole_file_is_read() -> None:
    """Everything that the reference names comes through."""
    rules = read_rules(WHOLE, "rules.toml")
    assert getattr(rules.zone, "key") == "Europe/Berlin"  # noqa: B009 - tzinfo in general has none
    assert rules.caps == (
        Cap(Per.ORDER, Money(Decimal(30000)), None, 18),
        Cap(Per.MONTH, Money(Decimal(90000), "EUR"), "*", 22),
    )
    assert [rule.key for rule in rules.tags] == ["team", "cost-centre"]
    assert rules.allow.types == ("p5.48xlarge", "ml.p5.*")
    assert rules.approval is not None
    assert rules.approval.above == (Money(Decimal(10000)), Money(Decimal(9000), "EUR"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("caps = 1", "r:1: caps: unknown key"),
        ("approval = true", "r:1: approval: must be a table [approval]"),
        (
            '[[cap]]\nper = "week"\nmost = "1 USD"',
            "r:2: cap.1.per: 'week' is not one of order, hour, fortnight, month",
        ),
        ('[[cap]]\nper = "order"', "cap.1: most is missing"),
        ('[[cap]]\nper = "order"\nmost = "100"', "r:3: cap.1.most: '100' names no currency"),
        ('[[cap]]\nper = "order"\nmost = 100', "r:3: cap.1.most: must be text in quotes"),
        ('[[cap]]\nper = "order"\nmost = "1,50 USD"', "cap.1.most: not an amount"),
        ('[[cap]]\nper = "order"\nmost = "0 USD"', "must be more than zero"),
        ('[[cap]]\nper = "order"\nmost = "5 DOLLARS"', "'DOLLARS' is no currency"),
        ('[[cap]]\nper = "month"\nmost = "1 USD"', "time_zone is missing"),
        ('time_zone = "Mars"', "r:1: time_zone: 'Mars' is not a time zone"),
        ('cap = [{per = "order", most = "1 USD"}, {per = "order", most = "2 USD"}]', "leave one"),
        ("[allow]\nregions = []", "r:2: allow.regions: allows nothing"),
        ('[allow]\nregions = ["frankfurt"]', "r:2: allow.regions"),
        ('[allow]\nzone_ids = ["us-east-1a"]', "r:2: allow.zone_ids"),
        ('[allow]\nways = ["cb"]', "r:2: allow.ways: 'cb' is not one of"),
        ('[allow]\naccounts = ["1234"]', "r:2: allow.accounts"),
        ('[tags]\nteam = "a"', "r:2: tags.team: must be a table [team]"),
        ("[tags.team]\nvalues = []", "r:2: tags.team.values: allows nothing"),
        ('[tags.team]\npattern = "("', "r:2: tags.team.pattern: is no regular expression"),
        ('[approval]\nabove = "1 USD"', "approvers is missing"),
        ("[approval]\napprovers = []", "names nobody"),
        ('[approval]\napprovers = ["lead"]', "r:2: approval.approvers"),
        ('[approval]\napprovers = ["arn:aws:iam::*:role/lead"]', "r:2: approval.approvers"),
        ('[approval]\napprovers = ["arn:aws:iam::111122223333:role/a/*"]', "STS does not tell a role's path"),
        (
            '[approval]\napprovers = ["arn:aws:sts::111122223333:assumed-role/lead/grace"]',
            "name the role, arn:aws:iam::111122223333:role/lead",
        ),
        (
            '[approval]\nvalid = "1m"\napprovers = ["arn:aws:iam::111122223333:root"]',
            "must be from 15m to 30d",
        ),
        ('[approval]\nabove = ["1 USD", "2 USD"]\napprovers = ["arn:aws:iam::111122223333:root"]', "twice"),
        (
            '[approval]\napproved = true\napprovers = ["arn:aws:iam::111122223333:root"]',
            "approved: unknown key",
        ),
        ("= 1", "not TOML"),
    ],
)
def test_a_wrong_file_says_where(text: str, says: str) -> None:
    """Strict: a slip of the pen is never a rule that is not there."""
    with pytest.raises(SettingsError) as caught:
        read_rules(text, "r")
    assert says in str(caught.value)


def test_where_the_rules_are(tmp_path: Path) -> None:
    """BERTH_RULES, else beside the journal, else none; a named file that is missing is no permission."""
    home = {"BERTH_HOME": str(tmp_path)}
    assert rules_file(home) is None
    assert load_rules(home) is None
    (tmp_path / "rules.toml").write_text("")
    assert rules_file(home) == tmp_path / "rules.toml"
    named = {**home, "BERTH_RULES": str(tmp_path / "other.toml")}
    assert rules_file(named) == tmp_path / "other.toml"
    with pytest.raises(BerthError, match="nothing is bought without them"):
        load_rules(named)
    (tmp_path / "other.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BerthError, match="not UTF-8"):
        load_rules(named)
