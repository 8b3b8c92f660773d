"""How far two annotators agree on a sheet, and how many items both find wrong (Huang et al. 2024, quality check)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.builders.ltgen.sheet import CORRECT, INCORRECT
from kgqa_core.errors import InputError
from kgqa_core.input_files import read_document

_WORDS = {
    **dict.fromkeys((CORRECT, "c", "yes", "y", "true", "1", "ok", "right"), True),
    **dict.fromkeys((INCORRECT, "i", "no", "n", "false", "0", "wrong"), False),
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two sheets compared.

    items: that both have annotated.  both_correct … both_incorrect: the four cells.  only_one: items that only one
    annotator has annotated.  raw: share on which they agree.  kappa: Cohen's; None where chance alone would make them
    agree on everything.  error_rate: share of incorrect ones among those on which they agree; None without any.
    """

    items: int
    both_correct: int
    first_only: int
    second_only: int
    both_incorrect: int
    only_one: int
    raw: float
    kappa: float | None
    error_rate: float | None
    disagreed: tuple[str, ...]


def read_sheet(path: Path) -> dict[str, bool | None]:
    """Labels by id: True for correct, None for an item that is not annotated yet.  Columns may stand between commas,
    semicolons or tabs.

    Raises InputError for a file that is no sheet, a label that is none, or an id that is there twice.
    """
    try:
        with io.StringIO(read_document(path, needs="a header with the columns id and label"), newline="") as file:
            head = file.readline()
            file.seek(0)
            reader = csv.DictReader(file, delimiter=max(",;\t", key=head.count))  # spreadsheets save by their locale
            names = reader.fieldnames or []
            if "id" not in names or "label" not in names:
                raise InputError(
                    f"{path} is no annotation sheet: it has the columns {', '.join(names) or 'none'}, not id and label"
                )
            found: dict[str, bool | None] = {}
            for row in reader:
                key, label = (row["id"] or "").strip(), (row["label"] or "").strip().casefold()
                if not key and not label:
                    continue
                if key in found:
                    raise InputError(f"{path} line {reader.line_num}: the id '{key}' is there twice")
                if label and label not in _WORDS:
                    raise InputError(
                        f"{path} line {reader.line_num}: the label '{label}' is neither {CORRECT} nor {INCORRECT}"
                    )
                found[key] = _WORDS[label] if label else None
    except csv.Error as fault:
        raise InputError(f"{path} cannot be read as a CSV sheet: {fault}") from None
    if not found:
        raise InputError(f"{path} has no items")
    return found


def compare(first: dict[str, bool | None], second: dict[str, bool | None]) -> Agreement:
    """The agreement of two annotators.  Raises InputError when their sheets are not of the same items, or no item is
    annotated by both."""
    if set(first) != set(second):
        other = sorted(set(first) ^ set(second))
        raise InputError(
            f"the sheets are not of the same items: {len(other)} are in one only, for example '{other[0]}'; compare "
            "two copies of one sheet"
        )
    pairs = [(key, first[key], second[key]) for key in first]
    done = [(key, one, two) for key, one, two in pairs if one is not None and two is not None]
    if not done:
        raise InputError("no item is annotated in both sheets; fill the column label")
    cells = [sum(one == a and two == b for _, one, two in done) for a in (True, False) for b in (True, False)]
    yes, first_only, second_only, no = cells
    total, agreed = len(done), yes + no
    return Agreement(
        items=total, both_correct=yes, first_only=first_only, second_only=second_only, both_incorrect=no,
        only_one=sum((one is None) != (two is None) for _, one, two in pairs),
        raw=agreed / total, kappa=kappa(cells), error_rate=no / agreed if agreed else None,
        disagreed=tuple(key for key, one, two in done if one != two),
    )  # fmt: skip


def kappa(cells: Sequence[int]) -> float | None:
    """Cohen's κ of a table (both correct, first only, second only, both incorrect): in [-1, 1], higher is better.

    κ = (p_o - p_e) / (1 - p_e), with p_e the agreement that the two shares of `correct` would have by chance; None
    where p_e is 1.

    >>> round(kappa([20, 5, 10, 15]), 6)
    0.4
    """
    yes, first_only, second_only, no = cells
    total = sum(cells)
    observed = yes + no
    chance = (yes + first_only) * (yes + second_only) + (second_only + no) * (first_only + no)
    if chance == total * total:
        return None
    return (observed * total - chance) / (total * total - chance)
