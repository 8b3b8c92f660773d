"""What all HTTP clients here share: the certificates that they trust, and how long a server asks them to wait."""

from __future__ import annotations

import email.utils
import os
import ssl
import time
from collections.abc import Mapping
from functools import cache


def trusted() -> ssl.SSLContext:
    """What httpx2 trusts by default: SSL_CERT_FILE or SSL_CERT_DIR of the environment, else the system or certifi.

    Read once: reading takes longer than many a request.
    """
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _read(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a Retry-After (or retry-after-ms) header asks for, from a number or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            return max(0.0, float(text) * unit)
        except ValueError:
            pass
        try:
            return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
        except (TypeError, ValueError, OverflowError, OSError):
            continue
    return None
