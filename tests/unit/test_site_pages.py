"""The documentation site: pages made beside docs/, lists and links; and the links of README, which is no page of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.site_pages import LINK, notebook_page, outside, resolved, with_lists

ROOT = Path(__file__).resolve().parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.png"))


def test_a_list_after_a_line_of_text_gets_a_blank_line_and_one_in_code_none() -> None:
    items = "- one\n  goes on\n- two\n\nText."
    assert with_lists(f"Three ways:\n{items}") == f"Three ways:\n\n{items}"
    code = "```yaml\nsets:\n- one\n```"
    assert with_lists(code) == code


def test_what_belongs_to_a_numbered_item_gets_four_spaces_and_the_next_item_a_blank_line() -> None:
    text = "1. First:\n   - inner\n\n   | a |\n   |---|\n2. Second\n\nText.\n   kept"
    assert with_lists(text) == "1. First:\n    - inner\n\n    | a |\n    |---|\n\n2. Second\n\nText.\n   kept"


def test_a_link_out_of_the_docs_is_followed_to_a_file_of_the_repository() -> None:
    assert resolved("docs/deploying.md", "../infra/README.md") == "infra/README.md"
    text = "[a](../infra/README.md#compose) [b](home.md) [c](https://x.org/d) [d](../nowhere.md)\n"
    text += "```\n[e](../LICENSE)\n```"
    assert list(outside(text, "docs/page.md")) == ["infra/README.md"]


def test_a_notebook_becomes_text_code_and_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": [{"text": ["1\n"]}]},
        {"cell_type": "code", "source": ["%%bash\n", "kgqa ask"], "outputs": []},
    ]
    page = notebook_page({"cells": cells})
    assert page == "# Title\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```console\nkgqa ask\n```\n"


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_the_links_of_a_page_outside_of_the_docs_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [(match[1], match[2]) for match in LINK.finditer(text)]
    links += [(found, None) for found in re.findall(r'(?:src|srcset)="([^"]+)"', text)]
    assert links or page != "README.md"
    for link, anchor in links:
        target = ROOT / resolved(page, link)
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            titles = re.findall(r"(?m)^#+ (.*)$", target.read_text(encoding="utf-8"))
            assert anchor[1:] in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, anchor


def test_pictures_are_small_and_each_is_used() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert PICTURES
    for picture in PICTURES:
        assert picture.stat().st_size < 150_000, picture.name
        assert f"pictures/{picture.name}" in text, f"{picture.name} is on no page"


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_pages_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    loaded = re.compile(r'<(?:script|img|source|iframe)\b[^>]*?\bsrc(?:set)?="([^"]+)"|<link\b[^>]*?\bhref="([^"]+)"')
    for page in pages:
        for match in loaded.finditer(page.read_text(encoding="utf-8")):
            address = match[1] or match[2]
            assert not re.match(r"(https?:)?//", address), (page.name, address)
            place = tmp_path / "site" / address[1:] if address.startswith("/") else page.parent / address  # 404.html
            assert not address.endswith(".png") or place.is_file(), (page.name, address)
