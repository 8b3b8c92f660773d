"""Agreement of two annotators, computed by hand, and what is no sheet."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.errors import InputError
from kgqa_core.metrics.agreement import kappa
from kgqa_core.papers.ltgen.sheet import compare, read_sheet


def labels(text: str) -> dict[str, bool | None]:
    return {str(place): {"c": True, "i": False}.get(letter) for place, letter in enumerate(text)}


def test_a_table_computed_by_hand() -> None:
    # 45 both correct, 3 only by the first, 7 only by the second, 5 by none, of 60:
    # p_o = 50/60; p_e = 48/60 * 52/60 + 12/60 * 8/60 = (2496 + 96) / 3600 = 0.72; kappa = (0.8333 - 0.72) / 0.28
    found = compare(labels("c" * 45 + "c" * 3 + "i" * 7 + "i" * 5), labels("c" * 45 + "i" * 3 + "c" * 7 + "i" * 5))
    assert (found.both_correct, found.first_only, found.second_only, found.both_incorrect) == (45, 3, 7, 5)
    assert found.raw == pytest.approx(50 / 60)
    assert found.kappa == pytest.approx((50 / 60 - 0.72) / 0.28)
    assert found.error_rate == pytest.approx(5 / 50)
    assert len(found.disagreed) == 10


@pytest.mark.parametrize(
    ("cells", "expected"),
    [((10, 0, 0, 10), 1.0), ((0, 10, 10, 0), -1.0), ((25, 25, 25, 25), 0.0), ((20, 5, 10, 15), 0.4),
     ((10, 0, 0, 0), None), ((0, 0, 0, 3), None), ((9, 1, 0, 0), 0.0)],
)  # fmt: skip
def test_kappa_of_known_tables(cells: tuple[int, ...], expected: float | None) -> None:
    found = kappa(cells)
    assert found == (None if expected is None else pytest.approx(expected))


def test_kappa_is_symmetric() -> None:
    assert kappa((7, 2, 5, 3)) == kappa((7, 5, 2, 3)) == kappa((3, 5, 2, 7))


def test_items_that_only_one_has_annotated_are_counted_apart() -> None:
    found = compare(labels("cci-c"), labels("cc-ii"))
    assert (found.items, found.only_one, found.raw) == (3, 2, pytest.approx(2 / 3))
    assert found.disagreed == ("4",)
    assert found.error_rate == 0.0


def test_no_error_rate_where_they_agree_on_nothing() -> None:
    found = compare(labels("ci"), labels("ic"))
    assert found.error_rate is None and found.raw == 0 and found.kappa == -1


def test_sheets_of_other_items_and_empty_ones_are_refused() -> None:
    with pytest.raises(InputError, match="1 are in one only, for example '2'"):
        compare(labels("cci"), labels("cc"))
    with pytest.raises(InputError, match="no item is annotated in both"):
        compare(labels("c-"), labels("-c"))


def test_sheets_are_read_as_people_fill_them(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text('\ufeffid,query,label\na,"x,\ny",Correct\nb,z, no \nc,z,1\nd,z,\n,,\n', encoding="utf-8")
    assert read_sheet(path) == {"a": True, "b": False, "c": True, "d": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [("id,label\na,maybe\n", "line 2: the label 'maybe' is neither"), ("id,label\na,1\na,0\n", "'a' is there twice"),
     ("id,verdict\na,1\n", "not id and label"), ("id,label\n", "has no items"), ("", "is empty; it needs a header")],
)  # fmt: skip
def test_what_is_no_sheet_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_sheet(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_sheet(tmp_path / "gone.csv")


@pytest.mark.parametrize("between", [",", ";", "\t"], ids=["commas", "semicolons", "tabs"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
def test_a_sheet_is_read_as_the_spreadsheet_of_any_country_saves_it(tmp_path: Path, between: str, mark: str) -> None:
    rows = [("id", "query", "label"), ("a", "Where, and; when?", "correct"), ("b", "Who?", "incorrect"), ("c", "?", "")]
    text = "\r\n".join(between.join(f'"{cell}"' for cell in row) for row in rows)
    (tmp_path / "sheet.csv").write_text(mark + text, encoding="utf-8", newline="")
    assert read_sheet(tmp_path / "sheet.csv") == {"a": True, "b": False, "c": None}
