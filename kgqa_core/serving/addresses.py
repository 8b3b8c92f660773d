"""Addresses that a server listens on: which machines reach one, what clients call it, and its socket."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from kgqa_core.errors import ConfigError


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether an address stands for all of this machine's."""
    try:
        return not host or ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def host_names(host: str, more: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Names beside loopback's addresses that `Host` may have of a server that listens on `host`; None for any.

    more: further ones, such as that of a proxy.
    """
    return None if is_wildcard(host) and not more else (*more, host)


def check_proxies(proxies: Sequence[str]) -> None:
    """Raises ConfigError for one that is neither an address nor a network."""
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError as fault:
            raise ConfigError(f"--trusted-proxy takes an address or a network such as 10.0.0.0/8: {fault}") from None


def header_name(host: str) -> str | None:
    """The name or address in a `Host` header, in lower case and without its port; None where it is malformed."""
    host = host.lower()
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return None
    return name if name and parts.netloc == host and "@" not in host else None


def same_origin(origin: str, host: str) -> bool:
    """Whether an `Origin` header names a page of the server that `Host` names."""
    scheme, _, rest = origin.lower().partition("://")
    return scheme in ("http", "https") and rest == host.lower()


def reserve(host: str, port: int) -> socket.socket:
    """A socket bound to an address; nothing listens yet, so connections are refused.

    port: 0 for any free one.  Raises OSError when the address is in use or none of this machine.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        if port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


def bind(host: str, port: int) -> socket.socket:
    """A socket of `reserve`.  Raises ConfigError where that is not possible."""
    try:
        return reserve(host, port)
    except (socket.gaierror, UnicodeError) as fault:
        raise ConfigError(f"--host {host} is no address of this machine ({fault})") from None
    except OSError as fault:
        raise ConfigError(f"cannot listen on {host} port {port} ({fault.strerror}); give another --port") from None
