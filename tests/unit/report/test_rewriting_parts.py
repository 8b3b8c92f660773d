"""Corpus, rewriter and faithfulness as the page has them."""

from pathlib import Path

import polars as pl

from kgqa_core.report import rewriting
from kgqa_core.report.rewriting import corpus_part, faithfulness_table, rewriter_part

from .fake import fake_corpus, fake_knowledge, fake_rewriter


def test_acceptance_is_summed_by_hops_and_listed_by_path(tmp_path: Path) -> None:
    part = corpus_part(fake_corpus(tmp_path / "corpus"))
    assert part is not None
    assert part.by_hops.columns[-1] == "Cost"
    assert part.by_hops.rows == (
        ("1", (60, 45, "75.0 %", "5,400", "4,200", "30.00")),
        ("2", (60, 48, "80.0 %", "5,400", "4,200", "30.00")),
        ("all", (120, 93, "77.5 %", "10,800", "8,400", "60.00")),
    )
    assert [name for name, _ in part.by_path.rows] == ["located in, currency", "capital", "<inv>-located in", "all"]
    assert sum(n for _, n in part.reasons) == 27 and dict(part.facts)["pairs to train on"] == "85"


def test_without_prices_there_is_no_cost(tmp_path: Path) -> None:
    folder = fake_corpus(tmp_path / "corpus")
    (folder / "volatile" / "cost.parquet").unlink()
    part = corpus_part(folder)
    assert part is not None and "Cost" not in part.by_hops.columns and len(part.by_hops.rows[0][1]) == 5


def test_rare_paths_are_one_row(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(rewriting, "MOST_PATHS", 1)
    part = corpus_part(fake_corpus(tmp_path / "corpus"))
    assert part is not None
    assert [(name, cells[0]) for name, cells in part.by_path.rows] == [
        ("located in, currency", 60), ("2 other paths", 60), ("all", 120),
    ]  # fmt: skip


def test_examples_show_kept_pairs_and_each_kind_of_reject_with_the_answer(tmp_path: Path) -> None:
    part = corpus_part(fake_corpus(tmp_path / "corpus"))
    assert part is not None
    verdicts = [told.verdict for told in part.examples]
    assert verdicts[:3] == ["kept"] * 3 and sorted(verdicts[3:]) == ["QA wrong", "teacher empty", "unfaithful"]
    assert {told.other for told in part.examples if told.verdict == "QA wrong"} == {"Some town"}


def test_an_imported_corpus_has_no_acceptance(tmp_path: Path) -> None:
    folder = fake_corpus(tmp_path / "corpus")
    pl.read_parquet(folder / "acceptance.parquet").clear().write_parquet(folder / "acceptance.parquet")
    (folder / "volatile" / "cost.parquet").unlink()
    part = corpus_part(folder)
    assert part is not None and part.by_hops.rows == part.by_path.rows == ()


def test_the_rewriter_shows_the_samples_of_its_last_pass(tmp_path: Path) -> None:
    part = rewriter_part(fake_rewriter(tmp_path / "rewriter"))
    assert part is not None and part.epoch == 4
    assert [told.text for told in part.samples] == ["Nuuk is in Greenland, told after pass 4."] * 3
    assert dict(part.facts)["left out as too long"] == "2" and [name for name, _ in part.curves] == ["loss"]


def test_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    assert corpus_part(None) is rewriter_part(None) is None
    assert corpus_part(tmp_path) is rewriter_part(tmp_path) is None
    assert faithfulness_table({"rigel/triples": tmp_path}).rows == ()


def test_faithfulness_counts_sentences_and_leaves_out_columns_without_any(tmp_path: Path) -> None:
    told = fake_knowledge(tmp_path / "told", "hop_path", "rewritten")
    ruled = fake_knowledge(tmp_path / "ruled", "hop_path", "template")
    grid = faithfulness_table({"b": told, "a": ruled})
    assert [name for name, _ in grid.rows] == ["HopPath facts (template)", "HopPath facts (rewritten)"]
    row = dict(zip(grid.columns[1:], grid.rows[1][1], strict=True))
    assert row == {
        "Sentences": 96, "Inventing": 6, "Kept": 90, "Replaced": 6, "Added": 3, "Failed": 1, "Untold triples": 4,
        "Cut short": 2, "Without text": 1, "Tokens to write": 12_456,
    }  # fmt: skip
    assert dict(zip(grid.columns[1:], grid.rows[0][1], strict=True))["Untold triples"] is None
