"""What a failed request to an endpoint says, whether another try may mend it, and whether it may have cost tokens."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from kgqa_core.http_clients import retry_after

RETRIED = (408, 409, 425, 429)
"""Statuses below 500 that another try may mend."""

REFUSED = (401, 403, 404)
"""Statuses that no try mends and that concern every prompt alike."""

WORKED_ON = (408, 504, 524)
"""Statuses that say that time ran out: the model may have written something that is charged."""

NEVER_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol")
"""Faults of a client that has sent nothing yet."""

NO_REQUEST = (*NEVER_SENT, "LocalProtocolError", "NoneType")
"""Faults of a client that cannot send at all."""


UNREADABLE = "unreadable reply"
"""Begins the message of a reply that came and cannot be read."""

LEAST_PACKED = 8
"""Characters of a secret that is looked for in Base64 too; what packs shorter ones occurs in any text."""


class UnreadableReply(Exception):
    """A reply that is no completion.  billed: whether it is one all the same, which the model has worked on."""

    def __init__(self, why: str, *, billed: bool = False) -> None:
        super().__init__(why)
        self.billed = billed


class ReplyRefused(Exception):
    """A reply that is not read; the message follows the name of the server.  free: whether it surely cost no tokens."""

    def __init__(self, why: str, *, free: bool) -> None:
        super().__init__(why)
        self.free = free


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed request.

    message: in words, without secrets.  again: whether another try may mend it.  wait: seconds that the server wants.
    free: whether the server surely did not work on it, so that it costs a call and no tokens.  billed: whether it
    surely did, and sent a completion that cannot be read.
    """

    message: str
    again: bool
    wait: float | None = None
    free: bool = False
    billed: bool = False


def explain(fault: Exception, secrets: Iterable[str] = ()) -> Failure:
    """What a request's fault means.  Faults that are not the client's or the network's are raised again."""
    import httpx2
    import openai

    if isinstance(fault, openai.APIStatusError):
        status = fault.status_code
        body = printable(" ".join(redacted(_words(fault.body), secrets).split())[:200])
        again = status in RETRIED or status >= 500
        wait = retry_after(fault.response.headers)
        return Failure(f"status {status} {body}".strip(), again, wait, free=status not in WORKED_ON)
    if isinstance(fault, openai.APITimeoutError | TimeoutError):
        name = type(fault.__cause__).__name__
        return Failure("timed out", True, free=name in NEVER_SENT)
    if isinstance(fault, openai.APIConnectionError):
        name = type(fault.__cause__).__name__
        if name == "DecodingError":
            return Failure(f"{UNREADABLE}: not compressed as it says", True)
        message = "no connection" if name in NO_REQUEST else "connection lost"
        return Failure(f"{message} ({name})", True, free=name in NEVER_SENT)
    if isinstance(fault, ReplyRefused):
        return Failure(printable(redacted(str(fault), secrets)), False, free=fault.free)
    if isinstance(fault, UnreadableReply):
        return Failure(f"{UNREADABLE}: {fault}", True, billed=fault.billed)
    if isinstance(fault, openai.OpenAIError | httpx2.HTTPError | httpx2.InvalidURL | ValueError | RecursionError):
        return Failure(f"{UNREADABLE}: {type(fault).__name__}", True)
    raise fault


def _words(body: object) -> str:
    """An error's body as text."""
    try:
        return str(body or "")
    except RecursionError:
        return "nested too deeply"


def printable(text: str) -> str:
    """The text of a server without characters that a terminal or a file would not take as text."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def concerns_all(message: str) -> bool:
    """Whether a failure would meet every other prompt too, and is no prompt's fault: refused, or nobody there."""
    return message.startswith(("no connection", "it redirects", *(f"status {status}" for status in REFUSED)))


def is_final(message: str) -> bool:
    """Whether one such failure is enough to know that every prompt will meet it: nobody there, or the key refused."""
    return message.startswith(("no connection", "status 401"))


def excerpt(text: str, longest: int = 80) -> str:
    """The end of a text, where a prompt has its question, in one line."""
    line = printable(" ".join(text[-4 * longest :].split()))
    return line if len(line) <= longest else "…" + line[1 - longest :]


def redacted(text: str, secrets: Iterable[str]) -> str:
    """A text without any of the secrets, as they are, as URLs write them or in Base64; the longest first, so that no
    part of one stays."""
    forms = set(filter(None, secrets))
    forms |= {quote(secret, safe="") for secret in forms}
    forms |= {b64encode(secret.encode()).decode().rstrip("=") for secret in forms if len(secret) >= LEAST_PACKED}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "[key]")
    return text


def shown(url: str) -> str:
    """An address without user, password, query and fragment: of what stands before the last @, only http(s) stays.

    >>> shown("https://me:hun/ter2@host/v1?key=x"), shown("me:hunter2@host/v1")
    ('https://host/v1', 'host/v1')
    """
    scheme, mark, rest = url.partition("://")
    if scheme.lower() not in ("http", "https"):
        scheme, mark, rest = "", "", url
    return scheme.lower() + mark + re.split("[?#]", rest.rpartition("@")[2])[0]


def is_web(url: str) -> bool:
    """Whether an address is one of http or https, with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # also where what looks like a port is none
        return False


def secrets_of(url: str) -> list[str]:
    """What of an address must not be shown: its password and the values of its query."""
    parts = urlsplit(url)
    password = [parts.password, unquote(parts.password)] if parts.password else []
    return [*password, *(value for _, value in parse_qsl(parts.query))]
