"""Worked examples are chosen to inform, the same way each time."""

from pathlib import Path

import duckdb
import polars as pl
import pytest

from kgqa_core.datasets.files.question import write_questions
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.report.examples import gather_examples, read_examples, write_examples
from kgqa_core.types import COMPLEXITY_TYPES, Question

FRANCE, PARIS = 0, 1


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / name for name in ("kg", "questions", "rigel", "none", "facts")}
    for folder in found.values():
        folder.mkdir()
    with duckdb.connect(str(found["kg"] / "kg.duckdb")) as base:
        create_tables(base, "kg")
        base.execute("INSERT INTO entities(id, key, kind) VALUES (0, 'Q142', 'entity'), (1, 'Q90', 'entity')")
        base.execute("INSERT INTO labels VALUES (0, 'en', 'France', NULL), (1, 'en', 'Paris', NULL)")
        base.execute("INSERT INTO relations VALUES (0, 'P36', 'entity')")
        base.execute("INSERT INTO relation_labels VALUES (0, 'en', 'capital')")
        base.execute("INSERT INTO triples VALUES (0, 0, 0, 1, 0)")
        write_meta(base, "kg", {"schema_version": SCHEMA_VERSION, "counts": {}, "languages": ["en", ""]})
    records = [
        Question(
            id=f"q{number:02}",
            text=f"question {number}?",
            topic_entities=(FRANCE,),
            answer_names=(("Paris",),),
            answers=(PARIS,),
            complexity=COMPLEXITY_TYPES[number % 9],
            unlinkable="not there" if number == 39 else None,
        )
        for number in range(40)
    ]
    write_questions(found["questions"], records)
    ids = [record.id for record in records]
    answer(
        found["none"], "none", "none", {name: "Paris" if place % 4 == 0 else "Rome" for place, name in enumerate(ids)}
    )
    answer(
        found["facts"],
        "rigel",
        "triples",
        {name: "Paris" if place % 2 == 0 else "Rome" for place, name in enumerate(ids)},
    )
    facts = pl.DataFrame(
        {
            "question": ids,
            "rank": [0] * 40,
            "score": [0.9] * 40,
            "hop": [1] * 40,
            "triple": [0] * 40,
            "direction": [1] * 40,
        }
    )
    facts.write_parquet(found["rigel"] / "facts.parquet")
    pl.DataFrame({"question": ids, "rank": [0] * 40, "entity": [PARIS] * 40, "score": [0.8] * 40}).write_parquet(
        found["rigel"] / "entities.parquet"
    )
    return found


def answer(folder: Path, retriever: str, form: str, outputs: dict[str, str]) -> None:
    frame = pl.DataFrame({"question": list(outputs), "output": list(outputs.values())})
    frame = frame.with_columns(retriever=pl.lit(retriever), format=pl.lit(form), model=pl.lit("builtin"))
    frame.write_parquet(folder / "answers.parquet")


def gather(folders: dict[str, Path], n: int = 8, seed: int = 3) -> list:
    answers = {"none": folders["none"], "rigel": folders["facts"]}
    return gather_examples(folders["kg"], folders["questions"], {"rigel": folders["rigel"]}, answers, n, seed)


def test_kinds_and_types_are_mixed(folders: dict[str, Path]) -> None:
    found = gather(folders)
    assert len(found) == len({example.question for example in found}) == 8
    assert [example.kind for example in found][:5] == ["fixed", "wrong", "right", "fixed", "wrong"]
    assert len({example.complexity for example in found}) >= 6
    assert "q39" not in {example.question for example in found}


def test_an_example_has_names_facts_outputs_and_ranking(folders: dict[str, Path]) -> None:
    example = gather(folders)[0]
    fact = example.facts[0]
    assert (fact.head_name, fact.relation, fact.tail_name) == ("France", "capital", "Paris")
    assert example.topic_names == ("France",)
    assert example.ranked == (("Paris", 0.8),)
    assert [(output.experiment, output.text, output.correct) for output in example.outputs] == [
        ("none/none/builtin", "Rome", False),
        ("rigel/triples/builtin", "Paris", True),
    ]


def test_examples_of_a_run_are_read_again_for_the_table(folders: dict[str, Path], tmp_path: Path) -> None:
    assert read_examples(tmp_path) == [], "runs of earlier versions have none"
    found = gather(folders)
    write_examples(tmp_path, found)
    assert read_examples(tmp_path) == found


def test_the_kind_is_that_of_the_triples_whatever_other_forms_say(folders: dict[str, Path], tmp_path: Path) -> None:
    kinds = [example.kind for example in gather(folders)]
    told = tmp_path / "told"
    told.mkdir()
    answer(told, "rigel", "rewritten", {f"q{number:02d}": "nothing" for number in range(40)})
    answers = {"none": folders["none"], "rigel": folders["facts"], "a": told}
    given = (folders["kg"], folders["questions"], {"rigel": folders["rigel"]}, answers, 8, 3)
    found = gather_examples(*given)
    assert [example.kind for example in found] == kinds
    assert [output.experiment for output in found[0].outputs][1:] == [
        "rigel/triples/builtin",
        "rigel/rewritten/builtin",
    ]


def test_sentences_made_from_the_facts_are_shown(folders: dict[str, Path], tmp_path: Path) -> None:
    knowledge = {}
    for retriever, form in (
        ("rigel", "rewritten"),
        ("rigel", "template"),
        ("rigel", "triples"),
        ("oracle", "template"),
    ):
        folder = tmp_path / f"{retriever}-{form}"
        folder.mkdir()
        ids = [example.question for example in gather(folders)]
        pl.DataFrame({"question": ids, "text": [f"{retriever} {form}"] * len(ids)}).with_columns(
            retriever=pl.lit(retriever), format=pl.lit(form)
        ).write_parquet(folder / "knowledge.parquet")
        knowledge[f"{retriever}/{form}"] = folder
    answers = {"none": folders["none"], "rigel": folders["facts"]}
    given = (folders["kg"], folders["questions"], {"rigel": folders["rigel"]}, answers, 8, 3)
    found = gather_examples(*given, knowledge)
    assert found[0].read == (("template", "rigel template"), ("rewritten", "rigel rewritten"))


def test_the_seed_decides(folders: dict[str, Path]) -> None:
    assert gather(folders) == gather(folders)
    assert gather(folders, seed=4) != gather(folders)


def test_fewer_questions_than_asked_for_and_none(folders: dict[str, Path]) -> None:
    assert len(gather(folders, n=100)) == 39
    assert gather(folders, n=0) == []


def test_without_answers_the_facts_alone_are_shown(folders: dict[str, Path]) -> None:
    found = gather_examples(folders["kg"], folders["questions"], {"rigel": folders["rigel"]}, {}, 3, 1)
    assert len(found) == 3
    assert all(example.facts and not example.outputs for example in found)
