"""What an account may hold in a Region: the fleet file's limits, and what it was granted beyond them."""

from __future__ import annotations

from berth.yard.fleet.fleet import Fleet, QuotaKind, Quotas
from berth.yard.services.lag import FOR_EVER_US
from berth.yard.store.transaction import Reading


def effective_quotas(
    fleet: Fleet, rows: Reading, account_id: str, region: str, *, until_us: int = FOR_EVER_US
) -> Quotas:
    """The limits that hold for the account in the Region: what searches, purchases, launches and endpoints
    go by. What was granted after `until_us` (microseconds) is left out, for a read that lags."""
    granted = rows.all(
        "SELECT kind, name, max(desired) AS value FROM quota_requests"
        " WHERE account_id = ? AND region = ? AND status = 'APPROVED' AND updated_us <= ?"
        " GROUP BY kind, name",
        account_id, region, until_us,
    )  # fmt: skip
    return fleet.quotas.raised((QuotaKind(row["kind"]), row["name"], row["value"]) for row in granted)
