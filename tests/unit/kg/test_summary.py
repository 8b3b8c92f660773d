"""What a build says at its end."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.look.summary import LONGEST, _listed, summary
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace


def _lines(folder: Path, text: str, name: str, **options: object) -> list[str]:
    (folder / name).write_text(text, encoding="utf-8")
    build(Workspace(folder), options=KgOptions(files=(str(folder / name),), **options))
    with KgStore.open(folder) as store:
        return summary(store)


def test_five_lines_say_what_was_read_and_is_in_a_graph(tmp_path: Path) -> None:
    read, holds, guessed, following, left = _lines(tmp_path, "Ana\tmember_of\tChess Club\nAna\ttype\tperson\n", "g.tsv",
                                                   type_predicates=("type",))  # fmt: skip
    assert read == "Read: g.tsv as delimited: 2 statements; 2 triples."
    assert "(1 person)" in holds and "2 relations (member_of, type)" in holds
    assert guessed == "Guessed and noted: nothing." and "kgqa kg stats" in following
    assert left == "No statement is left out."


def test_what_was_guessed_and_what_was_rejected_are_named_with_the_command_that_lists_it(tmp_path: Path) -> None:
    rows = "subject;predicate;object\n" + "".join(f"a{n};r;b{n}\n" for n in range(200)) + "only;two\n"
    _, _, guessed, following, left = _lines(tmp_path, rows, "g.csv")
    assert "delimiter" in guessed
    assert "type_predicates" in following
    assert left.startswith("1 of 201 statements are rejected") and "SELECT * FROM rejects" in left


def test_a_long_note_is_cut_between_its_parts_so_that_no_command_of_it_is_cut() -> None:
    parts = ["read as a table", *(f"to change {n}: `kgqa kg map g.csv > map{n}.yaml`" for n in range(20))]
    cut = _listed(["; ".join(parts)])
    assert len(cut) <= LONGEST and cut.count("`") % 2 == 0 and cut.endswith("yaml`…")
    assert _listed(["a; b"]) == "a; b" and _listed(["x" * 400]) == "x" * (LONGEST - 1) + "…"
