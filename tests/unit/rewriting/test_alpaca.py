"""Reading corpora in the Alpaca form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import CorpusOptions, LlmOptions
from kgqa_core.errors import InputError
from kgqa_core.prompts import rewrite_prompt, spaced_triples
from kgqa_core.rewriting.alpaca import parse_all, read_pairs, triples_of
from kgqa_core.rewriting.corpus import generate
from kgqa_core.workspace import Workspace

Row = dict[str, Any]


def row(*triples: tuple[str, str, str], output: str = "A text.", language: str = "en") -> Row:
    return {"instruction": rewrite_prompt(spaced_triples(triples), language), "input": "", "output": output}


def write(path: Path, rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return path


def imported(tmp_path: Path, source: Path) -> tuple[dict[str, Any], pl.DataFrame]:
    out = tmp_path / "out"
    out.mkdir()
    nowhere = tmp_path / "nowhere"
    counts = generate(
        Workspace(out),
        kg=nowhere,
        dkg=nowhere,
        questions=nowhere,
        options=CorpusOptions(alpaca_file=str(source), dev_share=0.25),
        llm=LlmOptions(),
        seed=3,
    )
    return counts, pl.read_parquet(out / "corpus.parquet")


@pytest.mark.parametrize(
    "triples",
    [
        [("Paris", "capital of", "France")],
        [
            ("Mary, Queen of Scots", "place_of_birth", "Linlithgow, Scotland"),
            ("Linlithgow, Scotland", "located_in", "Scotland"),
        ],
        [("Gold (film) (1999)", "directed_by", "Ann (II) (actor)"), ("Gold (film) (1999)", "has_genre", "Drama")],
        [("A", "film.film.starring", "CVT1"), ("CVT1", "film.performance.actor", "B, the Great")],
        [(":)", "written_by", "X"), ("Y", "written_by", "Z")],
        [("宁波中心", "介绍", "占地面积约6.4万方，可容纳3000名观众"), ("宁波中心", "地点", "宁波市（象山县）")],
    ],
)
def test_triples_are_taken_apart_with_commas_and_brackets_in_names(triples: list[tuple[str, str, str]]) -> None:
    examples = [("Q", relation, "W") for _, relation, _ in triples]
    text, plain = spaced_triples(triples), spaced_triples(examples)
    assert parse_all([text, plain]) == [tuple(triples), tuple(examples)]


def test_text_that_is_no_triples_is_left_whole() -> None:
    assert parse_all(["(A, B)", "words", "", "(A, some words, B, more words, C)"]) == [(), (), (), ()]


def test_triples_are_found_in_other_instructions_too() -> None:
    assert triples_of(rewrite_prompt("(A, b, C)")) == triples_of(rewrite_prompt("(A, b, C)", "zh")) == "(A, b, C)"
    assert triples_of("Tell (A (x), b, C) please") == "(A (x), b, C)"
    assert triples_of("Tell me something") == ""


def test_bad_rows_are_rejects_with_their_number(tmp_path: Path) -> None:
    good = [row((f"X{number}", "capital of", "Y")) for number in range(8)]
    rows = [
        *good[:4],
        {"instruction": "x"},
        "text",
        row(("A", "b", "C"), output=" "),
        {"instruction": "hello", "output": "x"},
        *good[4:],
    ]
    counts, frame = imported(tmp_path, write(tmp_path / "pairs.json", rows))
    assert counts["rows"] == 12 and counts["kept"] == 8 and counts["unreadable"] == 4
    bad = frame.filter(pl.col("verdict") != "kept")
    assert dict(zip(bad["source"], bad["verdict"], strict=True)) == {
        "pairs.json:5": "unreadable: no instruction or no output",
        "pairs.json:6": "unreadable: not an object",
        "pairs.json:7": "unreadable: empty output",
        "pairs.json:8": "unreadable: no triples in the instruction",
    }
    assert bad["split"].null_count() == 4


def test_one_file_is_split_by_graph(tmp_path: Path) -> None:
    rows = [row((f"X{number % 10}", "capital of", "Y"), output=f"Text {number}.") for number in range(40)]
    _, frame = imported(tmp_path, write(tmp_path / "pairs.json", rows))
    graphs = {split: set(part["triple_text"]) for (split,), part in frame.group_by("split")}
    assert set(graphs) == {"train", "dev"} and not graphs["train"] & graphs["dev"]
    assert len(graphs["dev"]) == 2


def test_a_folder_keeps_its_splits_and_drops_training_pairs_of_dev_graphs(tmp_path: Path) -> None:
    train = [row((f"X{number}", "capital of", "Y"), ("Y", "part of", "Z")) for number in range(6)]
    train.append(row(("Y", "part of", "Z"), ("D", "capital of", "Y"), output="Another order."))
    write(tmp_path / "both/train/train.json", train)
    write(tmp_path / "both/dev.json", [row(("D", "capital of", "Y"), ("Y", "part of", "Z"))])
    counts, frame = imported(tmp_path, tmp_path / "both")
    assert counts["train"] == 6 and counts["dev"] == 1 and counts["in_dev"] == 1
    assert frame.filter(pl.col("verdict") == "in dev")["source"].to_list() == ["train.json:7"]


def test_a_pair_that_occurs_twice_is_trained_on_once(tmp_path: Path) -> None:
    rows = [row((f"X{number // 2}", "capital of", "Y")) for number in range(12)]
    counts, frame = imported(tmp_path, write(tmp_path / "pairs.json", rows))
    assert counts["kept"] == 12 and counts["pairs"] == counts["train"] + counts["dev"] == 6
    assert frame["split"].null_count() == 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "no usable pair of 0"),
        ('[{"instruction": "x"}]', "no usable pair of 1"),
        ('{"a": 1}', "holds dict"),
        ("nonsense", "cannot be read"),
    ],
)
def test_a_file_without_any_good_pair_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    source = tmp_path / "pairs.json"
    source.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_pairs(source)


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither a file nor a folder with train\.json"):
        read_pairs(tmp_path)


def test_published_corpora_are_read_in_full(shared_data: Path) -> None:
    sizes = {"WQSP": (12543, 497), "MetaQA": (1386, 6), "ZJQA": (1821, 30)}
    for name, (size, relations) in sizes.items():
        pairs = read_pairs(shared_data / "rra_kg2text/finetune-llama" / name)
        assert len(pairs) == size and not any(pair.fault for pair in pairs)
        assert sum(not pair.named for pair in pairs) <= 1, "one WebQSP graph has a triple without tail"
        assert len({triple[1] for pair in pairs for triple in pair.named}) == relations
        assert {pair.language for pair in pairs} == {"zh" if name == "ZJQA" else "en"}
