"""The two worlds, AWS and a yard, and the check that nobody speaks to both at once.

Everything here is decided from the environment and from clients that were built and not used: nothing is
sent.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from berth.terms.outcomes import BerthError, ExitCode

# The DNS suffixes of AWS's partitions (botocore's partitions.json).
_AWS_SUFFIXES = (
    "amazonaws.com",
    "amazonaws.com.cn",
    "amazonaws.eu",
    "api.aws",
    "api.amazonwebservices.com.cn",
    "api.amazonwebservices.eu",
    "c2s.ic.gov",
    "sc2s.sgov.gov",
    "cloud.adc-e.uk",
    "csp.hci.ic.gov",
)
_TRUE = {"1", "true", "yes", "on"}


@dataclass(frozen=True, slots=True)
class Yard:
    """A declared yard: the origin that serves it, and the origin of its S3 (None: it runs none)."""

    url: str
    s3_url: str | None

    @property
    def address(self) -> str:
        """Host and port, for people."""
        return urlsplit(self.url).netloc

    def expects(self, service: str, url: str) -> bool:
        """Whether a client of `service` may speak to `url`."""
        allowed = {self.url, self.s3_url} if service == "s3" else {self.url}
        return origin(url) in allowed


def origin(url: str) -> str:
    """Scheme, host and port of a URL, without path and final slash."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def is_aws(url: str) -> bool:
    """Whether `url` is one of AWS's own hosts, over TLS."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".").lower()
    return parts.scheme == "https" and any(host.endswith("." + suffix) for suffix in _AWS_SUFFIXES)


def declared_yard(environ: Mapping[str, str]) -> Yard | None:
    """The yard that BERTH_YARD declares (`URL`, or `URL S3URL`), None where it is empty or absent.

    Raises BerthError (bad request) for a URL that is not http(s), that is AWS's, or that would carry keys
    in clear over a network: only a loopback address may be plain http.
    """
    words = environ.get("BERTH_YARD", "").split()
    if not words:
        return None
    if len(words) > 2:
        raise _refused(
            f"BERTH_YARD holds {len(words)} words; it is the yard's URL and, after a space, its S3's"
        )
    for url in words:
        _check_yard_url(url)
    return Yard(origin(words[0]), origin(words[1]) if len(words) == 2 else None)


def check_environment(environ: Mapping[str, str], yard: Yard | None) -> None:
    """Refuse an environment that points to both worlds, or that hides where it points to."""
    named = {k: v for k, v in environ.items() if k.startswith("AWS_ENDPOINT_URL") and v}
    ignoring = environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() in _TRUE
    if ignoring and (yard or named):
        raise _refused(
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is set, so clients would speak to AWS and not to the yard",
            "unset AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
        )
    if yard is None:
        for key, url in sorted(named.items()):
            if not is_aws(url):
                raise _refused(
                    f"{key} is {url}, and BERTH_YARD declares no yard",
                    'eval "$(berth yard env)" for a rehearsal, or unset it to speak to AWS',
                )


def check_endpoints(endpoints: Mapping[tuple[str, str], str], yard: Yard | None) -> None:
    """Refuse unless every client (by service and Region) speaks to the one world that was declared.

    `endpoints` maps to each client's endpoint URL. Raises BerthError (bad request) naming the strays.
    """
    if yard is None:
        strays = {key: url for key, url in endpoints.items() if not is_aws(url)}
        where = "AWS"
    else:
        strays = {key: url for key, url in endpoints.items() if not yard.expects(key[0], url)}
        where = f"the yard {yard.address}"
    if not strays:
        return
    (service, region), url = min(strays.items())
    more = f" and {len(strays) - 1} more" if len(strays) > 1 else ""
    raise _refused(
        f"endpoints are mixed: this session speaks to {where}, "
        f"but {service} in {region} would go to {url}{more}",
        'eval "$(berth yard env)"' if yard else "remove the endpoint_url from the AWS configuration",
    )


def _check_yard_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _refused(f"BERTH_YARD: {url!r} is not a URL like http://127.0.0.1:4599")
    if is_aws(f"https://{parts.netloc}"):
        raise _refused(f"BERTH_YARD: {url} is AWS, which is no yard", "unset BERTH_YARD")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise _refused(
            f"BERTH_YARD: {url} is not on this machine and not https: keys and data would travel in clear"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(message: str, next_step: str | None = None) -> BerthError:
    return BerthError(ExitCode.BAD_REQUEST, f"{message}; nothing was sent", next_step)
