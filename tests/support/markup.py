"""What a browser would run of a page, and text that tries to be run."""

from __future__ import annotations

import re
from html.parser import HTMLParser

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
