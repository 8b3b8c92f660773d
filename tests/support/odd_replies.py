"""Chat completions that are odd in one way each, drawn with a seed: what a broken, strange or hostile server may send.

draw(seed, text, usage) gives an OddReply: bytes for the wire, and the text that the caller must end up with where the
reply holds a completion that can be read.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

RAW = "\x01raw\x01"
"""Stands for a value that JSON has no other way to write."""


@dataclass(frozen=True)
class OddReply:
    """A reply as it goes over the wire.

    kind: what is odd.  expects: the text that a caller must get from it, None where it is unusable.  pieces: of the
    wire, sent with `pause` seconds between them.  close: the connection is closed after them; else it stays open.
    counted: whether its usage is what the server counted.
    """

    kind: str
    expects: str | None
    pieces: Sequence[bytes] = ()
    pause: float = 0.0
    close: bool = False
    counted: bool = True


@dataclass
class Draft:
    """A reply that is being made: a healthy one, until something in it is changed."""

    random: Random
    text: str
    data: dict[str, Any]
    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=lambda: [("Content-Type", "application/json")])
    body: bytes | None = None
    expects: str | None = None
    counted: bool = True

    @property
    def choice(self) -> dict[str, Any]:
        """The only choice."""
        choice: dict[str, Any] = self.data["choices"][0]
        return choice

    @property
    def message(self) -> dict[str, Any]:
        """The message of the only choice."""
        message: dict[str, Any] = self.choice["message"]
        return message

    def encoded(self) -> bytes:
        """The body."""
        return json.dumps(self.data).encode() if self.body is None else self.body


NUMBERS: tuple[Any, ...] = (
    10**30, -(10**30), float("inf"), float("-inf"), float("nan"), -1, -0.0, 0, 1.5, 12.0, 1e15, 2**31, 2**31 - 1, 2**63,
    2**63 - 1, 2**64, -(2**63) - 1, "7", "-7", "many", "", "\ud83d", "٣", None, [], [7], {}, {"n": 7}, True, False,
    f"{RAW}1e999{RAW}", f"{RAW}{'9' * 5000}{RAW}", f"{RAW}-{'9' * 500}{RAW}", f"{RAW}1e-999{RAW}",
)  # fmt: skip
"""Values in places where a count belongs."""

HALVES = ("\ud83d", "\ude00", "\ud83d\ud83d", "\ude00\ud83d", "a\ud83d", "\udfffz", "\ud83d \ude00")


def usage(draft: Draft) -> None:
    """Counts that are none, or no usage at all."""
    shape = draft.random.random()
    if shape < 0.15:
        draft.data["usage"] = draft.random.choice([None, [], "many", 3, float("nan"), True, {}, [1, 2]])
    elif shape < 0.2:
        del draft.data["usage"]
    else:
        names = ["prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"]
        for name in draft.random.sample(names, draft.random.randint(1, 3)):
            draft.data["usage"][name] = draft.random.choice(NUMBERS)
    draft.counted = False


def characters(draft: Draft) -> None:
    """A text with halves of surrogate pairs, NULs, controls or direction marks."""
    odd = draft.random.choice(
        [*HALVES, "\0", "a\0b", "\x1b[31m", "\u202e", "\ufeff", "\uffff", "\r\n", "😀", "\x7f\x80"]
    )
    text = draft.random.choice([odd, draft.text + odd, odd + draft.text, odd * 50])
    draft.message["content"] = text
    draft.expects = _clean(text)


def content(draft: Draft) -> None:
    """A content of another type."""
    parts = [{"type": "text", "text": draft.text[:2]}, {"type": "text", "text": draft.text[2:]}]
    kinds: list[tuple[Any, str | None]] = [
        (None, ""), ([], ""), ("", ""), ("   ", "   "), (5, "5"), (0, "0"), (1.25, "1.25"), (True, None), ({}, None),
        ({"text": draft.text}, None), ([draft.text], draft.text), (parts, draft.text),
        ([None, 3, *parts, {"type": "image"}, {"text": None}], draft.text),
        ([{"text": "\ud83d"}, {"text": "\ude00"}], "😀"), ([[["deep"]]], ""),
    ]  # fmt: skip
    draft.message["content"], draft.expects = draft.random.choice(kinds)
    if draft.random.random() < 0.1:
        del draft.message["content"]
        draft.expects = ""


def choices(draft: Draft) -> None:
    """Choices that are missing, empty, no list, several, or hold no message."""
    good, junk = draft.choice, draft.random.choice([None, 5, "x", [], {}, {"message": None}, {"message": "hi"}])
    other = {"index": 1, "message": {"content": "other"}, "finish_reason": "stop"}
    kinds: list[tuple[Any, bool]] = [
        (None, False), ([], False), ({}, False), ("x", False), (7, False), ([junk], False), ([junk, good], True),
        ([good, good], True), ([good, other], True), ([good, {**other, "index": 0}], True),
        ([good] + [junk] * 500, True),
        ([{**good, "index": "zero"}], True), ([{**good, "index": -1}], True),
    ]  # fmt: skip
    draft.data["choices"], usable = draft.random.choice(kinds)
    draft.expects = draft.text if usable else None
    if draft.random.random() < 0.1:
        del draft.data["choices"]
        draft.expects = None


def finish(draft: Draft) -> None:
    """Finish reasons, refusals and tool calls of all types."""
    message = draft.message
    draft.choice["finish_reason"] = draft.random.choice(
        [None, "length", "tool_calls", "function_call", "unknown", "", 5, [], {}, ["stop"], {"stop": 1}, True, "\ud83d"]
    )
    if draft.random.random() < 0.5:
        message["refusal"] = draft.random.choice([None, "", " ", False, True, 5, [], {}, ["no"], {"why": "no"}])
    if draft.random.random() < 0.5:
        message["tool_calls"] = draft.random.choice([None, [], [None], [{"function": {"name": "\ud83d"}}], "x", 5])
    if draft.random.random() < 0.2:
        message["refusal"] = draft.random.choice(["I cannot", "no \ud83d", "\0"])
        draft.expects = _clean(message["refusal"])
    if draft.random.random() < 0.1:
        draft.choice["finish_reason"] = "content_filter"
        refusal = message.get("refusal")
        draft.expects = _clean(refusal) if isinstance(refusal, str) and refusal.strip() else ""


def probabilities(draft: Draft) -> None:
    """Log-probabilities of all types."""
    token = {"token": "x", "logprob": draft.random.choice([*NUMBERS, -1e308, 0.5])}
    draft.choice["logprobs"] = draft.random.choice(
        [None, [], 5, "x", {}, {"content": None}, {"content": 5}, {"content": [None]}, {"content": [{}]},
        {"content": {}},
         {"content": [token]}, {"content": [{"logprob": -0.5}, token]}, {"content": [{"logprob": -1e308}] * 3}]
    )  # fmt: skip


def extras(draft: Draft) -> None:
    """Other fields, deep, long, twice, or with odd names."""
    kind = draft.random.randrange(5)
    if kind == 0:
        depth = draft.random.choice([50, 500, 5_000, 100_000])
        text = json.dumps(draft.data)
        draft.body = (text[:-1] + ', "deep": ' + "[" * depth + "]" * depth + "}").encode()
        draft.expects = draft.text if depth <= 500 else None
    elif kind == 1:
        draft.data = {"\ud83d": "\ud83d", "": None, **draft.data, "id": draft.random.choice(NUMBERS)}
    elif kind == 2:
        draft.body = ('{"choices": 5, "usage": [], ' + json.dumps(draft.data)[1:]).encode()
    elif kind == 3:
        draft.data["padding"] = "x" * draft.random.choice([1_000, 100_000])
    else:
        draft.data |= {"model": 5, "object": None, "created": float("nan")}


def document(draft: Draft) -> None:
    """Bodies that are no JSON object."""
    text = json.dumps(draft.data)
    cut = draft.random.randrange(1, len(text))
    bodies = [
        "", " ", "null", "5", "[]", f"[{text}]", json.dumps(text), text + text, text[:cut], text + "x",
        text[:-1] + ",}",
        "{not json", "<html><body>502 Bad Gateway</body></html>", f"data: {text}\n\ndata: [DONE]\n\n", "\0" * 50, "OK",
        '{"error": {"message": "overloaded"}}', '{"choices": "\\ud83d"}', "{" * 5000, '"' + "\\u0000" * 100 + '"',
    ]  # fmt: skip
    draft.body, draft.expects = draft.random.choice(bodies).encode(), None


def encoding(draft: Draft) -> None:
    """Other encodings, marks and content types."""
    text = json.dumps(draft.data, ensure_ascii=False)
    kinds: list[tuple[bytes, str | None]] = [
        (codecs.BOM_UTF8 + text.encode(), draft.text), (text.encode("utf-16"), draft.text),
        (text.encode("utf-16-le"), draft.text), (text.encode("utf-32"), draft.text), (b"\xff\xfe", None),
        (text.encode("utf-7") + b"+", None), (b"\xff" * 30, None), (text.encode()[::-1], None),
    ]  # fmt: skip
    draft.body, draft.expects = draft.random.choice(kinds)
    if draft.random.random() < 0.3:
        draft.body, draft.expects = text.encode().replace(draft.text.encode(), b"a\xffb\xc3"), "a\ufffdb\ufffd"
    draft.headers = [
        ("Content-Type", draft.random.choice(
            ["text/html", "application/json; charset=latin-1", "application/json; charset=no-such", "text/plain",
             "application/json; charset=idna", "application/octet-stream", "text/event-stream", "", "\xff\xfe",
             "x" * 900]
        ))
    ]  # fmt: skip


def compression(draft: Draft) -> None:
    """Compressed bodies, whole, broken, twice, or that are not what the header names."""
    plain = json.dumps(draft.data).encode()
    packed = gzip.compress(plain)
    kinds: list[tuple[str, bytes, bool]] = [
        ("gzip", packed, True), ("deflate", zlib.compress(plain), True), ("deflate", zlib.compress(plain)[2:-4], True),
        ("identity", plain, True), ("x-unknown", plain, True), ("gzip", plain, False), ("gzip", packed[:10], False),
        ("gzip", packed[: len(packed) // 2], False), ("gzip", bomb(64), False), ("deflate", packed, False),
        ("gzip, gzip", gzip.compress(packed), False), ("gzip, deflate", zlib.compress(packed), False),
        (", ".join(["gzip"] * 8), packed, False), ("br", b"\x0b\x02\x80", False), ("zstd", b"\x28\xb5\x2f\xfd", False),
        ("gzip", b"", False), ("gzip", packed + b"junk", True), ("gzip", bytes(50), False),
    ]  # fmt: skip
    name, draft.body, usable = draft.random.choice(kinds)
    draft.expects = draft.text if usable else None
    draft.headers.append(("Content-Encoding", name))


def statuses(draft: Draft) -> None:
    """Every status with bodies and headers of all kinds."""
    draft.status = draft.random.choice(
        [201, 202, 203, 204, 205, 206, 226, 299, 300, 304, 305, 399, 400, 402, 403, 404, 405, 406, 408, 409,
        410, 413, 415,
         418, 422, 425, 429, 451, 500, 501, 502, 503, 504, 507, 520, 524, 529, 599, 600, 799, 999]
    )  # fmt: skip
    if draft.status >= 300:
        draft.expects = None
        deep = b"[" * 990 + b"]" * 990
        bodies = [
            b"", b"null", b"[]", b"\xff\xfe", b"\x1b[31mred\x07", b"<html>busy</html>", deep,
            b'{"error": ' + deep + b"}",
            b'{"error": {"message": "half \\ud83d"}}', b'{"error": "[/x] [bold]"}', b'{"error": null}', b"x" * 300_000,
            json.dumps(draft.data).encode(), b'{"error": {"message": 5}}', b"{" * 3000,
        ]  # fmt: skip
        draft.body = draft.random.choice(bodies)
        if draft.random.random() < 0.1:
            draft.headers.append(("Content-Encoding", "gzip"))
            draft.body = bomb(64)
    if draft.status in (204, 205):
        draft.body, draft.expects = b"", None
    waits = ["0", "-1", "nan", "inf", "1e999", "soon", "", "\xff", "9" * 500, "Wed, 21 Oct 2015 07:28:00 GMT",
             "Fri, 31 Dec 99999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 +2359", "١", "0x10", "1_0"]  # fmt: skip
    name = draft.random.choice(["Retry-After", "retry-after-ms"])
    draft.headers.append((name, draft.random.choice(waits)))


def redirects(draft: Draft) -> None:
    """Redirects to other servers, to nowhere, in circles."""
    draft.status = draft.random.choice([301, 302, 303, 307, 308])
    targets = ["http://127.0.0.2:9/v1/chat/completions", "https://127.0.0.1:9/", "//127.0.0.2:9/x", "ftp://x/",
    "file:///etc",
               "/v1/chat/completions", "", "http://", "http://[", "\xff", "http://x:99999/",
               "javascript:alert(1)", "a" * 9000,
               "http://user:word@127.0.0.2:9/", "http://127.0.0.1:9/\x7f"]  # fmt: skip
    if draft.random.random() < 0.9:
        draft.headers.append(("Location", draft.random.choice(targets)))
    draft.body, draft.expects = b"", None


def _clean(text: str) -> str:
    """What must become of a text: written apart from the code that is tested."""
    joined, place = [], 0
    while place < len(text):
        character = text[place]
        following = text[place + 1] if place + 1 < len(text) else ""
        if "\ud800" <= character <= "\udbff" and "\udc00" <= following <= "\udfff":
            joined.append(chr(0x10000 + ((ord(character) - 0xD800) << 10) + ord(following) - 0xDC00))
            place += 1
        else:
            joined.append("\ufffd" if "\ud800" <= character <= "\udfff" or character == "\0" else character)
        place += 1
    return "".join(joined)


@cache
def bomb(megabytes: int) -> bytes:
    """A gzip file of a thousandth of so many MiB."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([packer.compress(b" " * 2**20) for _ in range(megabytes)]) + packer.flush()


def framing(draft: Draft) -> OddReply:
    """Replies that are broken as HTTP: lengths, chunks, headers, status lines."""
    body, good = draft.encoded(), draft.text
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    length = b"Content-Length: %d\r\n" % len(body)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"
    kinds: list[tuple[str, str | None, list[bytes], bool]] = [
        ("chunked", good, [head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks], False),
        ("no length", good, [head + b"Connection: close\r\n\r\n" + body], True),
        ("length too long", None, [head + b"Content-Length: 99999\r\n\r\n" + body], True),
        ("length too short", None, [head + b"Content-Length: 5\r\n\r\n" + body], True),
        ("length negative", None, [head + b"Content-Length: -5\r\n\r\n" + body], True),
        ("length no number", None, [head + b"Content-Length: many\r\n\r\n" + body], True),
        ("length huge", None, [head + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n" + body], True),
        ("lengths differ", None, [head + b"Content-Length: 3\r\n" + length + b"\r\n" + body], True),
        ("chunk broken", None, [head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body], True),
        ("chunk huge", None, [head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n" + body], True),
        ("chunks cut", None, [head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks[:-9]], True),
        ("early hints", good,
        [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 20 + head + length + b"\r\n" + body], False),
        ("headers huge", None, [head + b"X: " + b"x" * 300_000 + b"\r\n" + length + b"\r\n" + body], True),
        ("headers many", None, [head + b"".join(b"X%d: y\r\n" % n for n in range(20_000)) + b"\r\n"], True),
        ("header without colon", None, [head + b"nonsense\r\n" + length + b"\r\n" + body], True),
        ("header controls", None, [head + b"X: \x00\x1b\r\n" + length + b"\r\n" + body], True),
        ("header latin", good, [head + b"X: \xe4\xff\r\n" + length + b"\r\n" + body], False),
        ("http 1.0", good, [head.replace(b"1.1", b"1.0") + length + b"\r\n" + body], True),
        ("http 9.9", None, [head.replace(b"1.1", b"9.9") + length + b"\r\n" + body], True),
        ("no http", None, [b"SSH-2.0-OpenSSH_9.6\r\n"], True),
        ("nothing", None, [], True),
        ("half a status line", None, [b"HTTP/1."], True),
        ("body twice", None, [head + length + b"\r\n" + body + body], True),
        ("pieces", good, [bytes([each]) for each in head + length + b"\r\n"] + [body], False),
    ]  # fmt: skip
    kind, expects, pieces, close = draft.random.choice(kinds)
    return OddReply(f"framing: {kind}", expects, pieces, close=close)


def timing(draft: Draft) -> OddReply:
    """Replies that take for ever, byte by byte or without end."""
    body = draft.encoded()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    endless = [head + b"Transfer-Encoding: chunked\r\n\r\n", *[b"5000\r\n" + b" " * 0x5000 + b"\r\n"] * 400]
    kinds: list[tuple[str, list[bytes], float]] = [
        ("headers in drops", [bytes([each]) for each in head + length + body], 0.05),
        ("body in drops", [head + length, *(bytes([each]) for each in body)], 0.05),
        ("stall before", [b""], 0.0),
        ("stall within", [head + length + body[:5]], 0.0),
        ("hints without end", [b"HTTP/1.1 103 Early Hints\r\n\r\n"] * 1000, 0.01),
        ("body without end", endless, 0.0),
    ]
    kind, pieces, pause = draft.random.choice(kinds)
    return OddReply(f"timing: {kind}", None, pieces, pause=pause)


FIELDS: dict[str, Callable[[Draft], None]] = {
    "usage": usage, "characters": characters, "content": content, "choices": choices, "finish": finish,
    "log-probabilities": probabilities, "further fields": extras, "document": document, "encoding": encoding,
    "compression": compression, "status": statuses, "redirect": redirects,
}  # fmt: skip
WIRE: dict[str, Callable[[Draft], OddReply]] = {"framing": framing, "timing": timing}
KINDS = (*FIELDS, *WIRE)


def draw(seed: object, text: str, counts: dict[str, int], kinds: Sequence[str] = KINDS) -> OddReply:
    """An odd reply that a healthy server would have answered with `text` and the token counts."""
    random = Random(f"odd/{seed}")
    data = {
        "id": "x", "object": "chat.completion", "created": 0, "model": "stub",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, "refusal": None}, "finish_reason": "stop"}
        ],
        "usage": {**counts, "total_tokens": sum(counts.values())},
    }  # fmt: skip
    draft = Draft(random, text, data, expects=text)
    kind = random.choice(list(kinds))
    if kind in WIRE:
        return WIRE[kind](draft)
    FIELDS[kind](draft)
    body = draft.encoded()
    for mark in ('"\\u0001raw\\u0001', '\\u0001raw\\u0001"'):
        body = body.replace(mark.encode(), b"")
    lines = [f"HTTP/1.1 {draft.status} X", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in draft.headers]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")
    bodiless = draft.status in (204, 304)
    made = OddReply(kind, draft.expects, [head if bodiless else head + body], counted=draft.counted)
    return replace(made, close=True) if bodiless else made
