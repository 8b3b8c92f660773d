"""What the documentation site shows beside docs/: a hook of mkdocs, named in mkdocs.yml.

- A link of a page that leads out of docs/ (`../infra/README.md`) works in a checkout; in the site it leads to a copy
  below `repository/`, which is made here, with the links of the copy treated in the same way.
- docs/quickstart.ipynb becomes a page, with its outputs as they are in the file.
- Lists are written as Python-Markdown reads them: with a blank line before, and four spaces in front of what belongs
  to a numbered item, where GitHub needs none and three.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
COPIES, DOCS = "repository", "docs"
NOTEBOOKS = ("quickstart.ipynb",)
PAGES = ("infra/README.md", "CHANGELOG.md")
"""Markdown of the repository that the site shows as pages, without a link from docs/ too."""
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^\s*(```|~~~)")
ITEM = re.compile(r"^(\s*)([-*]|\d+\.) ")
CONTROL = re.compile(r"\x1b\[[0-9;]*m")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the copies and the pages made of notebooks."""
    for name in NOTEBOOKS:
        text = notebook_page(json.loads((ROOT / DOCS / name).read_text(encoding="utf-8")))
        files.append(File.generated(config, name.replace(".ipynb", ".md"), content=text))
    waiting = {*PAGES}
    for file in files.documentation_pages():
        waiting |= set(outside(file.content_string, posixpath.join(DOCS, file.src_uri)))
    done: set[str] = set()
    while waiting:
        place = waiting.pop()
        done.add(place)
        content = (ROOT / place).read_bytes()
        files.append(File.generated(config, posixpath.join(COPIES, place), content=content))
        if place.endswith(".md"):
            waiting |= set(outside(content.decode(), place)) - done
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """The page with links into the site, and lists that Python-Markdown sees."""
    uri = page.file.src_uri
    place = uri.removeprefix(COPIES + "/") if uri.startswith(COPIES + "/") else posixpath.join(DOCS, uri)

    def in_site(match: re.Match[str]) -> str:
        target = resolved(place, match[1])
        own = target.removeprefix(DOCS + "/") if target.startswith(DOCS + "/") else posixpath.join(COPIES, target)
        if own in NOTEBOOKS and own != uri.replace(".md", ".ipynb"):
            own = own.replace(".ipynb", ".md")
        return posixpath.relpath(own, posixpath.dirname(uri) or ".") + (match[2] or "")

    return with_lists("\n".join(LINK.sub(in_site, line) if plain else line for plain, line in lines(markdown)))


def lines(markdown: str) -> Iterator[tuple[bool, str]]:
    """Each line, and whether it is outside of fenced code."""
    inside = False
    for line in markdown.split("\n"):
        fence = bool(FENCE.match(line))
        yield not (inside or fence), line
        inside ^= fence


def resolved(place: str, link: str) -> str:
    """The path in the repository that a link of a file leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(place), link))


def outside(markdown: str, place: str) -> Iterator[str]:
    """Files of the repository, not of docs/, that a page links to; a missing one is left to the check of mkdocs."""
    for plain, line in lines(markdown):
        for match in LINK.finditer(line) if plain else ():
            target = resolved(place, match[1])
            if not target.startswith((DOCS + "/", "..")) and (ROOT / target).is_file():
                yield target


def with_lists(markdown: str) -> str:
    """The same Markdown with lists that Python-Markdown sees: a blank line before, four spaces below a number."""
    out: list[str] = []
    marker, paragraphs = "", False
    for plain, line in lines(markdown):
        item = ITEM.match(line) if plain else None
        follows_text = bool(out and out[-1].strip())
        if item and not item[1]:
            if (paragraphs or not marker) and follows_text:
                out.append("")
            marker, paragraphs = item[2], False
        elif line.strip() and not line.startswith(" ") and not follows_text:
            marker = ""
        paragraphs = paragraphs or not line.strip()
        out.append(f" {line}" if marker[:1].isdigit() and line.startswith("   ") else line)
    return "\n".join(out)


def notebook_page(notebook: Mapping[str, Any]) -> str:
    """A notebook as Markdown: its text, its code, and what each cell showed."""
    blocks = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
            continue
        magic, _, rest = source.partition("\n")
        language = "console" if magic.startswith("%%") else "python"
        blocks.append(_fenced(language, rest if magic.startswith("%%") else source))
        shown = "".join(filter(None, map(_text, cell["outputs"])))
        if shown.strip():
            blocks.append(_fenced("text", shown))
    return "\n\n".join(blocks) + "\n"


def _text(output: Mapping[str, Any]) -> str:
    value = output.get("text") or output.get("data", {}).get("text/plain") or ""
    return CONTROL.sub("", "".join(value)).rstrip("\n") + "\n"


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"
