"""Where a PostgreSQL server is, and what of that may be shown: never a password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.storage.database import Unusable
from berth.terms.text import plain

SCHEMES = ("postgresql://", "postgres://")
EXTRA = "pip install 'gpu-berth[team]'"
_SHOWN = {
    "user": re.compile(r"[\w.+ -]*"),
    "host": re.compile(r"[\w.,:/%-]*"),
    "port": re.compile(r"[\d,]*"),
    "dbname": re.compile(r"[\w.+ -]*"),
}
_SECRETS = ("password", "sslpassword")
# A server that vanished is noticed within half a minute; whoever writes other values into the URL wins.
_PATIENCE: Mapping[str, Any] = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "application_name": "berth",
}


@dataclass(frozen=True, slots=True)
class Address:
    """A server and a database on it; `str()` and `repr()` show user, host, port and name, and no more."""

    shown: str
    settings: Mapping[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return self.shown

    def told(self, problem: object) -> str:
        """What the driver says, in one line, without a password."""
        words = " ".join(plain(problem, 2000).split())
        for name in _SECRETS:
            secret = str(self.settings.get(name) or "")
            if secret:
                words = words.replace(secret, "***")
        return plain(words, 400)


def driver() -> Any:
    """psycopg, which only a journal on a server needs. Raises Unusable where it is not installed."""
    try:
        import psycopg
    except ImportError as missing:
        raise Unusable(
            f"PostgreSQL needs psycopg, which cannot be loaded here ({plain(missing, 200)})", EXTRA
        ) from None
    return psycopg


def parse_address(url: str) -> Address:
    """The address of `postgresql://USER@HOST:PORT/DATABASE?sslmode=verify-full`, in libpq's words.

    What the URL leaves out comes from where libpq takes it (`PGPASSWORD`, `~/.pgpass`, `PGSERVICE`). Raises
    Unusable for what is no such URL, without repeating any of it: a password with an unescaped `@` or `/`
    would be read as a host or a port, and be shown.
    """
    conninfo = driver().conninfo
    try:
        if not url.startswith(SCHEMES):
            raise ValueError
        given = conninfo.conninfo_to_dict(url)
        if not all(rule.fullmatch(str(given.get(name) or "")) for name, rule in _SHOWN.items()):
            raise ValueError
    except (ValueError, driver().Error):
        raise Unusable(
            "it is not the URL of a PostgreSQL database (not shown here, as it may hold a password)",
            "write postgresql://USER@HOST:PORT/DATABASE; special characters of a password in the % form,"
            " or the password in ~/.pgpass",
        ) from None
    return Address(_shown(given), {**_PATIENCE, **given})


def _shown(given: Mapping[str, Any]) -> str:
    user = f"{given['user']}@" if given.get("user") else ""
    host = str(given.get("host") or "")
    socket = f"?host={host}" if host.startswith("/") else ""
    port = f":{given['port']}" if given.get("port") else ""
    service = f" (service {plain(given['service'], 60)})" if given.get("service") else ""
    return f"postgresql://{user}{'' if socket else host}{port}/{given.get('dbname') or ''}{socket}{service}"
