"""Numbers of README and docs/: each comes from a result file, from the source, or is allowed with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import docs_numbers
from tests.support.docs_numbers import NUMBER, pages, unexplained


@pytest.mark.parametrize("page", pages())
def test_every_number_of_a_page_comes_from_somewhere(page: str) -> None:
    assert list(unexplained(page)) == [], "make a result file for what was measured, or let its figure go"


def test_what_is_allowed_is_on_its_page_and_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = docs_numbers._entries()
    monkeypatch.setattr(docs_numbers, "_entries", dict)
    lacking = {page: {one.number.replace(",", "") for one in unexplained(page)} for page in pages()}
    lacking["everywhere"] = set().union(*lacking.values())
    for page, reasons in entries.items():
        allowed = {number.replace(",", "") for key in reasons for number in str(key).split()}
        assert allowed <= lacking[page], (page, "what needs no reason goes")
        assert all(len(str(reason).split()) > 2 for reason in reasons.values()), page


def test_a_measurement_needs_a_result_file_of_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(docs_numbers, "ROOT", tmp_path)
    monkeypatch.setattr(docs_numbers, "_entries", dict)
    monkeypatch.setattr(docs_numbers, "_values", lambda file: ([0.8125, 12.0], frozenset({"512"})))
    monkeypatch.setattr(docs_numbers, "_known", lambda number: number == "7")

    def found(text: str) -> list[tuple[str, bool]]:
        page.write_text(text, encoding="utf-8")
        return [(one.number, one.measured) for one in unexplained("page.md")]

    named = "see `quiz.json`: "
    assert found(f"{named}81.3 %, .81, 0.8125, 12 s, 512 MB, 7 of them") == []
    assert found(f"{named}81.4 %, .82 and 13 s") == [("81.4", True), (".82", True), ("13", True)]
    assert found("without a file 81.3 %, and 7 %") == [("81.3", True), ("7", True)]
    assert found("7 and 8 things, `9`\n\n```sh\nrun 10 0.5\n```\n") == [
        ("8", False), ("9", False), ("10", False), ("0.5", False),
    ]  # fmt: skip
    assert found("<!-- table: x -->\n99.9 %\n<!-- end -->\n") == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,234 and 5.", ["1,234", "5"]), ("2026-11-28", []), ("127.0.0.1:8000", []), ("version 3.0.2, v2", []),
        ("5303c6b", []), ("arXiv:2509.26383", []), ("0.5 to .75 (12 %)", ["0.5", ".75", "12"]), ("P31, 4k", []),
    ],
)  # fmt: skip
def test_parts_of_versions_dates_addresses_and_names_are_no_numbers(text: str, numbers: list[str]) -> None:
    assert NUMBER.findall(text) == numbers
