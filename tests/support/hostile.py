"""Names that try to control a terminal or to run in a page, and what a terminal or a browser would do with them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

CONTROLS = "a\x1b]0;pwned\x07\x1b[2J\x1b[31mb\x9b2Jc\u202ed\re\bf\x0bg\x7fh"
"""OSC, CSI, C1, a direction override, carriage return, backspace, vertical tab, DEL."""
SHOWN = r"a\x1b]0;pwned\x07\x1b[2J\x1b[31mb\x9b2Jc\u202ed\x0de\x08f\x0bg\x7fh"
"""What a terminal shows in its place."""
MARKUP = "x[/bold] [red]y[/red] [link=http://evil]z[/link] :smile: [/nope] \\[b]"
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Controls that no data may bring to a terminal; the line ends of a terminal are CR LF."""
STYLES = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\x1b\[2K|\x1b\[1000C|\x1b\[[0-9]+[CD]")
"""What rich itself writes: colours, and the moves of its spinner."""


def write_hostile_graph(path: Path) -> Path:
    """N-Triples in which labels, keys, relations and literals are hostile."""
    controls = CONTROLS.encode("unicode_escape").decode()
    controls = re.sub(r"\\x(..)", r"\\u00\1", controls).replace("\\r", "\\u000D")
    markup = MARKUP.replace("\\", "\\\\")
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    path.write_text(
        f'<http://x/a> {label} "{controls}" .\n'
        f'<http://x/b> {label} "{markup}" .\n'
        "<http://x/a> <http://x/[bold]r[/bold]> <http://x/b> .\n"
        "<http://x/[/red]key> <http://x/[bold]r[/bold]> <http://x/a> .\n"
        f'<http://x/b> <http://x/note> "{controls}" .\n'
        "<http://x/a> this line \x1b]0;pwned\x07 is bad\n" + "<http://x/a> <http://x/p> <http://x/b> .\n",
        encoding="utf-8",
    )
    return path


EVIL = (
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "</title></style></pre></svg><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "[x](javascript:alert(1))",
    "{{ 7 * 191 }}",
    "<!-- <iframe srcdoc='<script>alert(1)</script>'>",
)  # fmt: skip
"""Names, questions and answers that somebody hostile could think of."""
RUNS = {
    "script",
    "iframe",
    "object",
    "embed",
    "img",
    "base",
    "form",
    "input",
    "button",
    "foreignobject",
    "animate",
    "set",
}
ADDRESSES = {"href", "src", "xlink:href", "action", "formaction", "srcdoc", "data", "poster", "background"}


class Dangers(HTMLParser):
    """Collects what could run: elements, event handlers, addresses of scripts.  text: what is visible."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in RUNS:
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            plain = re.sub(r"[\x00-\x20]", "", value or "").lower()
            if name.startswith("on"):
                self.found.append(f"<{tag} {name}={value!r}>")
            if name in ADDRESSES and plain.startswith(("javascript:", "data:", "vbscript:")):
                self.found.append(f"<{tag} {name}={value!r}>")
            if name == "style" and ("url(" in plain or "expression" in plain):
                self.found.append(f"<{tag} {name}={value!r}>")
            if tag == "meta" and name == "http-equiv" and plain == "refresh":
                self.found.append("<meta refresh>")

    def handle_comment(self, data: str) -> None:
        if "alert" in data:
            self.found.append(f"<!--{data}-->")

    def handle_data(self, data: str) -> None:
        self.text += data


def dangers(page: str) -> list[str]:
    """What of a page could run."""
    return Dangers(page).found
