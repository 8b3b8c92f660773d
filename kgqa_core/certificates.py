"""The certificates that outgoing connections trust, read once: reading them takes longer than many a request."""

from __future__ import annotations

import os
import ssl
from functools import cache


def trusted() -> ssl.SSLContext:
    """What httpx2 trusts by default: SSL_CERT_FILE or SSL_CERT_DIR of the environment, else the system or certifi."""
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _read(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()
