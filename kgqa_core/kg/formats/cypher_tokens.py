"""Tokens of Cypher: names, strings, numbers and signs, with their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from kgqa_core.kg.formats.property_graph import Unfit

_TOKEN = re.compile(
    r"""(?P<space>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))|(?P<text>'[^'\\]*+(?:\\.[^'\\]*+)*+(?:'|\Z)|"""
    r""""[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z))|(?P<name>[^\W\d]\w*+|`(?:[^`]|``)*+`)|"""
    r"""(?P<number>0[xX][0-9a-fA-F]++|0o[0-7]++|\d++(?:\.\d++)?+(?:[eE][+-]?\d++)?+|\.\d++(?:[eE][+-]?\d++)?+)|"""
    r"""(?P<sign>\+=|.)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "f": "\f", "r": "\r", "'": "'", '"': '"', "\\": "\\", "`": "`", "/": "/"}


class Tokens:
    """The tokens of a text, the current one at hand: `kind` (empty at the end), `token`, its `line` and `begin`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.kind = self.token = self.word = ""
        self.line, self.begin = 1, 0
        self._matches = self._scan(0)
        self.next()

    def next(self) -> None:
        """Goes to the next token; a name in backticks is no `word`, which is in lower case."""
        match = next(self._matches, None)
        begin = len(self.text) if match is None else match.start()
        self.line += self.text.count("\n", self.begin, begin)
        self.begin = begin
        self.kind, self.token = ("", "") if match is None else (match.lastgroup or "", match.group())
        quoted = self.token.startswith("`") and self.kind == "name"
        self.word = self.token.lower() if self.kind == "name" and not quoted else ""
        if quoted:
            self.token = self.token[1:-1].replace("``", "`")

    def accept(self, sign: str) -> bool:
        """Whether the token is this sign; it is passed then."""
        matches = self.kind == "sign" and self.token == sign
        if matches:
            self.next()
        return matches

    def need(self, sign: str) -> None:
        """Passes a sign.  Raises Unfit for another token."""
        if not self.accept(sign):
            raise Unfit(f"{self.shown} where {sign!r} is expected")

    def name(self, what: str) -> str:
        """Passes a name.  Raises Unfit for another token."""
        if self.kind != "name":
            raise Unfit(f"{self.shown} where {what} is expected")
        name = self.token
        self.next()
        return name

    @property
    def shown(self) -> str:
        """The token for a message."""
        return repr(self.token[:40]) if self.kind else "the end of the script"

    def peek(self) -> str:
        """The word behind the current token, in lower case."""
        match = next(self._scan(self.begin + len(self.token)), None)
        return match.group().lower() if match is not None else ""

    def ahead(self, words: Collection[str], counts: Callable[[str, str], bool]) -> str:
        """The first of some words before the next semicolon.  counts: of the word and what follows, whether it does."""
        for match in self._scan(self.begin):
            token = match.group()
            if token == ";":
                break
            named = match.lastgroup == "name" and token.lower() in words
            if named and counts(token.lower(), self.text[match.end() : match.end() + 200]):
                return token.lower()
        return ""

    def skip(self, words: Collection[str]) -> None:
        """Goes to the next of some words, or semicolon."""
        while self.kind and self.token != ";" and self.word not in words:
            self.next()

    def skip_line(self) -> None:
        """Goes to the first token of another line."""
        line = self.line
        while self.kind and self.line == line:
            self.next()

    def _scan(self, at: int) -> Iterator[re.Match[str]]:
        return (match for match in _TOKEN.finditer(self.text, at) if match.lastgroup != "space")


def unescaped(token: str) -> str:
    """The text of a string in quotes.  Raises Unfit for one that is not closed, or no Unicode."""
    body = token[1:-1]
    if len(token) < 2 or token[-1] != token[0] or (len(body) - len(body.rstrip("\\"))) % 2:
        raise Unfit("a string is never closed")
    if "\\" not in body:
        return body

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _ESCAPES.get(match[3], match[0])

    try:
        return _ESCAPE.sub(character, body).encode("utf-16", "surrogatepass").decode("utf-16")
    except (UnicodeDecodeError, ValueError, OverflowError):
        raise Unfit("a string that is no Unicode") from None
