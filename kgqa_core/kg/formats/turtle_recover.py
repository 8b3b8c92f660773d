"""Where to read on after a statement of Turtle or TriG that is at fault, and how much is lost with it.

Reading goes on behind the statement: behind its dot, on the same line too.  Where a quote is without its partner, a
string may hold the statements that follow; then reading goes on at the first of them that a parser reads whole.  A
declaration begins a statement wherever it stands.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kgqa_core.kg.formats.turtle_feed import Feed
from kgqa_core.kg.formats.turtle_scan import (
    CLOSED,
    COMMENT,
    DEPTH,
    DOT,
    IN_LONG,
    INSIDE,
    MODE,
    OPENED,
    PENDING,
    QUOTE2,
    START,
    TOKEN,
    Array,
    new_state,
    scan,
)

WINDOWS = (1 << 12, 1 << 16, 1 << 20, 16 << 20)
"""Bytes in which the end of a statement is looked for, one after the other."""

PIECE = 1 << 20
"""Bytes looked at at once beyond that."""

MAX_BRACES = 4
"""Braces of TriG between a position and the end of the statement that is tried there."""

MAX_POSITIONS, MAX_TRIALS = 100_000, 500
"""Positions that are looked at, and those at which a parser is tried."""

_STRING = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+"""|\'\'\'(?:[^\'\\]++|\\.|\'(?!\'\'))*+\'\'\''
    rb'|"(?:[^"\\\r\n]++|\\.)*+"|\'(?:[^\'\\\r\n]++|\\.)*+\''
)
_PIECES = re.compile(
    rb'(?P<skip>\#[^\r\n]*|<[^\x00-\x20<>"{}|^`]*>)|(?P<string>' + _STRING + rb")"
    rb"|(?P<declares>(?<!\S)@?(?i:prefix)\s+[^\s:<]*:\s*<|(?<!\S)@?(?i:base)\s+<)"
    rb"|(?P<end>\.(?=[\s#]|\Z))",
    re.DOTALL,
)
_END = re.compile(rb"\.(?=[\s#]|\Z)")
_BEGIN = re.compile(
    rb"(?:\s|\#[^\r\n]*)*(?:<|\[|\(|_:|[\w.\-\x80-\xff]*:|@prefix|@base|(?i:prefix|base|graph)\s|[{}]|\Z)", re.DOTALL
)
_LINES = re.compile(rb"[.;,][ \t]*(?:\#[^\r\n]*)?(?:\r|\n|\Z)")
_BLANK = re.compile(rb"(?:\s|\#[^\r\n]*+(?=[\r\n]|\Z))*+\Z")
_LINE = re.compile(rb"(?:\r\n?|\n)(?=[^\r\n#])")
_PREFIX = re.compile(rb"(?:@prefix|(?<![\w:])(?i:prefix))\s+(?:([^\s:<]*:|[^\s:<]+)\s*)?\Z")
_NAME = re.compile(rb"([^\s:<]*)\s*:?(?=[\s<])")
_BASE = re.compile(rb"(?:@base|(?<![\w:])(?i:base))\s*\Z")
_MISSPELT = re.compile(rb"@\w*\s*(?:([^\s:<]*)\s*:?\s*)?<")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A statement at fault.

    line: of the fault; text: that line.  statement: the whole of it, None where its end is a guess or far off; depth:
    open braces before it.  after: where reading goes on, None at the end of the file, and to which line; open: braces
    there.  size: bytes not read; lost: how many triples these held, at earliest 1, or 0 where they were no statement.
    prefixes: what it declared in vain, None standing for the base.
    """

    line: int
    text: bytes
    statement: bytes | None
    depth: int
    after: int | None
    to_line: int
    open: int
    size: int
    lost: int
    prefixes: tuple[str | None, ...]


class _Region(NamedTuple):
    """The bytes from where a fault may have begun to the end of its statement.

    start, token: positions of the first of them and of the token at fault.  blank: only blanks and comments stand
    before the token in its statement.  opened: position of a long string that never ends, else None.
    """

    text: bytes
    start: int
    token: int
    blank: bool
    opened: int | None


class Recovery:
    """Finds the next statement after a fault.

    whole: whether a parser reads a text as a statement, with so many open braces before and after it.
    """

    def __init__(self, feed: Feed, graphs: bool, whole: Callable[[bytes, int, int], bool]) -> None:
        self._feed, self._graphs, self._whole = feed, graphs, whole

    def after(self, position: int | None) -> Skipped:
        """What to do about the fault at a position; None stands for a token that is too long for the parser."""
        feed = self._feed
        state = feed.scanned(feed.position if position is None else position)
        mode, start, depth = int(state[MODE]), int(state[START]), int(state[DEPTH])
        position = int(state[TOKEN]) if position is None else position
        if mode in PENDING:
            start = int(state[DOT]) + 1
        closed = (int(state[OPENED]), int(state[CLOSED]))
        if mode == QUOTE2:
            closed = (int(state[TOKEN]), position)
        token = int(state[TOKEN]) if mode in INSIDE and state[TOKEN] >= max(start, feed.first()) else position
        start = max(min(start, token), feed.first())
        begin = feed.window(start, token - start)
        if mode == COMMENT and _BLANK.match(begin):
            return self._comment(token, depth)
        end, scan_state, window = self._end(token, depth)
        blank = _BLANK.match(begin) is not None
        suspect = closed[0] if closed[1] == token and closed[0] >= start else token
        natural = end
        shown = {at: (feed.line(at), feed.text(at, 2_000)) for at in {suspect, token}}
        opened = int(scan_state[TOKEN]) if end is None and scan_state[MODE] in IN_LONG else None
        text = feed.window(suspect, (token + len(window) if end is None else end) - suspect)
        end = self._nearer(_Region(text, suspect, token, blank, opened), end, depth, window)
        lost = _lost(window, False)
        if end is None:
            end, lines = self._streamed(token, scan_state, window)
            natural = end
            far = len(window) if end is None else end - token
            lost = 1 if opened is not None and end is not None else max(lines, lost * far // max(1, len(window)))
        elif end > token:
            lost = _lost(window[: end - token], end != natural)
        if suspect < token:
            lost = max(lost, len(_LINES.findall(text, 0, token - suspect)) + (end is None or end > token))
        line, line_text = shown[token if end is None or end > token else suspect]
        declared = _declared(begin, window[:1_000], blank)
        if end is None:
            return Skipped(line, line_text, None, depth, None, line, 0, feed.last() - start, max(1, lost), declared)
        whole = end == natural and start >= feed.first() and end - start <= WINDOWS[-1]
        statement = feed.window(start, end - start) if whole else None
        last = feed.window(end - 1, 1) if self._graphs else b"."
        open_ = 1 if last == b"{" else 0 if last == b"}" else depth
        return Skipped(
            line, line_text, statement, depth, end, feed.line(end), open_, end - start, max(1, lost), declared
        )

    def _comment(self, token: int, depth: int) -> Skipped:
        """The end of a comment between statements."""
        at = token
        while (piece := self._feed.window(at, PIECE)) and not (match := re.search(rb"[\r\n]", piece)):
            at += len(piece)
        after = at + match.start() if piece and match else None
        line = self._feed.line(at)
        return Skipped(line, b"", None, depth, after, line, depth, 0, 0, ())

    def _end(self, token: int, depth: int) -> tuple[int | None, Array, bytes]:
        """Where the statement ends that has a token, the scan's last state, and the bytes looked at."""
        for size in WINDOWS:
            window = self._feed.window(token, size)
            whole = len(window) < size
            state = new_state(token, depth)
            data = np.frombuffer(window + b"\n" if whole else window, dtype=np.uint8)
            end = int(scan(data, token, 0, len(data), state, self._graphs, True))
            if end >= 0 or whole:
                break
        return (end if 0 <= end <= token + len(window) else None), state, window

    def _streamed(self, token: int, state: Array, window: bytes) -> tuple[int | None, int]:
        """The end of a statement beyond the window, None at the end of the file; and lines that may be statements."""
        at, lines = token + len(window), len(_LINES.findall(window))
        while piece := self._feed.window(at, PIECE):
            data = np.frombuffer(piece, dtype=np.uint8)
            end = int(scan(data, at, 0, len(data), state, self._graphs, True))
            if end >= 0:
                return end, lines
            lines += len(_LINES.findall(piece))
            at += len(piece)
        return None, lines

    def _nearer(self, region: _Region, end: int | None, depth: int, window: bytes) -> int | None:
        """The first position before the end at which a statement surely begins, else the end."""
        trials = 0
        for position, sure in itertools.islice(_positions(region), MAX_POSITIONS):
            if trials >= MAX_TRIALS or (end is not None and position >= end):
                break
            if sure:
                return position
            behind = position >= region.token
            data, at = (window, position - region.token) if behind else (region.text, position - region.start)
            if _BEGIN.match(data, at, at + (1 << 12)):
                trials += 1
                if self._reads(position, depth):
                    return position
        return end

    def _reads(self, position: int, depth: int) -> bool:
        """Whether a parser reads what follows a position, up to the end of a statement, as one statement."""
        at, open_ = position, depth
        for _ in range(MAX_BRACES):
            end, _, window = self._end(at, open_)
            if end is None:
                return False
            piece = window[: end - at]
            open_ = 1 if self._graphs and piece[-1:] == b"{" else 0 if piece[-1:] == b"}" else open_
            at = end
            if piece[-1:] != b"{" and not _BLANK.match(piece[:-1]):
                break
        return self._whole(self._feed.window(position, at - position), depth, open_)


def _positions(region: _Region) -> Iterator[tuple[int, bool]]:
    """Positions at which a statement may begin, in order, and whether one surely does."""
    lines = _LINE.finditer(region.text, max(region.token - region.start, 0)) if region.blank else ()
    return heapq.merge(_within(region), ((region.start + match.end(), False) for match in lines))


def _within(region: _Region) -> Iterator[tuple[int, bool]]:
    for match in _PIECES.finditer(region.text):
        position = region.start + match.start()
        if region.opened is not None and position >= region.opened:
            break
        if match["string"] is not None:
            yield from _ends_in(region, match.start(), match.end())
        elif position < region.token:
            continue
        elif match["declares"] is not None and not (region.blank and position == region.token):
            yield position, True
        elif match["end"] is not None:
            yield region.start + match.end(), False
    if region.opened is not None:
        yield from _ends_in(region, max(region.opened - region.start, 0), len(region.text))


def _ends_in(region: _Region, begin: int, stop: int) -> Iterator[tuple[int, bool]]:
    """Positions behind the dots between two indexes of a region, those in comments left out."""
    for match in _END.finditer(region.text, begin, stop):
        earliest = max(begin, match.start() - 1_000)
        line = region.text[max(region.text.rfind(b"\n", earliest, match.start()), earliest) : match.start()]
        if b" #" not in line and not line.lstrip().startswith(b"#"):
            yield region.start + match.end(), False


def _lost(region: bytes, guessed: bool) -> int:
    """How many triples lie between a fault and the position where reading goes on.

    They are counted by the commas, semicolons and dots that follow, unless words of a broken text lie between them;
    then by those at the ends of lines.
    """
    text = region if guessed else re.sub(_STRING, b'""', region, flags=re.DOTALL)
    lines = len(_LINES.findall(text))
    text = re.sub(rb'\#[^\r\n]*|<[^\x00-\x20<>"{}|^`]*>', b":", text)
    text = re.sub(rb"\\.", b"_", text)
    first = re.search(rb"[;,]\s", text)
    rest = text[first.end() :] if first else b""
    broken = re.search(rb"(?<![\w:.\-@\"'\\])(?!a\s|true\b|false\b|[\d+\-.])[^\W\d_][\w.\-]*+(?!:)", rest)
    return max(1, lines, 0 if broken or not first else 1 + len(re.findall(rb"[;,.](?=\s|\Z)", rest)))


def _declared(begin: bytes, token: bytes, blank: bool) -> tuple[str | None, ...]:
    """The prefixes that a statement at fault would have declared; None stands for the base."""
    if match := _PREFIX.search(begin):
        name = match[1]
        if name is None and (following := _NAME.match(token)):
            name = following[1]
        return () if name is None else (name.rstrip(b":").decode(errors="replace"),)
    if _BASE.search(begin):
        return (None,)
    if blank and (match := _MISSPELT.match(token)):
        return (match[1].decode(errors="replace") if match[1] is not None else None,)
    return ()
