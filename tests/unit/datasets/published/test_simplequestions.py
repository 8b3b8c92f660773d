"""SimpleQuestions on Wikidata: lines read, directions, and answers completed from the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionsOptions
from kgqa_core.datasets.files.jsonl import canonical
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import input_files, read_raw
from kgqa_core.datasets.published.registry import BENCHMARKS
from kgqa_core.datasets.published.simplequestions import SPLIT_FILES, relation_key
from kgqa_core.errors import QuestionFileError
from tests.unit.datasets.published.official import graph, loaded

GRAPH = """\
Q1\tP19\tQ10
Q2\tP19\tQ10
Q3\tP19\tQ10
Q1\tP106\tQ21
Q1\tP106\tQ20
Q10\trdfs:label\tDetroit
Q2\trdfs:label\tDiana
"""

LINES = {
    "train": "Q1\tP19\tQ10\twhere was q one born\nQ10\tR19\tQ2\twho was born in detroit \n",
    "dev": "Q2\tP19\tQ10\twhere is diana from\n",
    "test": "Q1\tP106\tQ21\twhat does q one do\n\nQ10\tP19\tQ10\twhere was detroit born\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "sq"
    home.mkdir()
    for split, lines in LINES.items():
        (home / SPLIT_FILES[split][0]).write_text(lines, encoding="utf-8")
    return home


@pytest.fixture
def kg(tmp_path: Path) -> Path:
    return graph(tmp_path, GRAPH)


def read(folder: Path) -> list[dict[str, Any]]:
    return read_raw(QuestionsOptions(source="simplequestions", path=str(folder)), 7)


def test_a_line_becomes_a_raw_question_with_its_direction(folder: Path) -> None:
    rows = {row["id"]: row for row in read(folder)}
    assert list(rows) == ["sq-train-00001", "sq-train-00002", "sq-dev-00001", "sq-test-00001", "sq-test-00003"]
    assert rows["sq-train-00002"] == canonical(
        {
            "id": "sq-train-00002",
            "question": "who was born in detroit",
            "topic_entities": ["Q10"],
            "answers": ["Q2"],
            "answer_type": "entities",
            "relation_path": ["<inv>-P19"],
            "split": "train",
            "complexity": "generic",
            "hops": 1,
        }
    )
    assert rows["sq-test-00001"]["relation_paths"] == [["P106"]]


@pytest.mark.parametrize("text", ["P", "Q19", "R1a", "19", "p19", "P１９"])
def test_a_relation_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither P and a number nor R"):
        relation_key(text)


def test_faults_name_file_and_line(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(QuestionFileError, match="neither a file nor a folder"):
        read(tmp_path / "nothing")
    with pytest.raises(QuestionFileError, match="is it the folder of SimpleQuestions"):
        read(tmp_path)
    (folder / SPLIT_FILES["dev"][0]).write_text("Q1\tP19\tQ10\tq\nQ1\tP19\tQ10\nQ1\tX19\tQ10\tq\n", encoding="utf-8")
    with pytest.raises(
        QuestionFileError, match=r"(?s)valid_answerable.txt has 2 faults.*line 2: 4 fields.*line 3: rel"
    ):
        read(folder)


def test_answers_are_all_that_the_relation_leads_to_and_the_annotated_one_comes_first(
    folder: Path, kg: Path, tmp_path: Path
) -> None:
    out, counts = loaded(tmp_path, kg, source="simplequestions", path=str(folder))
    questions = {question.id: question for question in read_questions(out)}
    born_in = questions["sq-train-00002"]
    assert born_in.answer_keys == ("Q2", "Q1", "Q3")
    assert born_in.answer_keys[0] == "Q2"
    assert born_in.answer_names == (("Diana",), ("Q1",), ("Q3",))
    assert len(born_in.answers) == 3 and born_in.answers == tuple(sorted(born_in.answers))
    assert questions["sq-test-00001"].answer_keys == ("Q21", "Q20")
    assert questions["sq-train-00001"].answer_keys == ("Q10",)
    assert questions["sq-test-00003"].answer_keys == ("Q10",)  # the graph knows no such fact: as annotated
    assert counts["questions"] == {"train": 2, "dev": 1, "test": 2}


def test_the_stage_reads_every_file_and_the_catalogue_names_the_loader(folder: Path) -> None:
    options = QuestionsOptions(source="simplequestions", path=str(folder))
    assert input_files(options) == [folder / name for (name,) in SPLIT_FILES.values()]
    assert {benchmark.source for benchmark in BENCHMARKS if "SimpleQuestions-W" in benchmark.name} == {
        "simplequestions"
    }


def test_every_question_on_disk_has_its_annotated_answer_in_the_graph(shared_data: Path) -> None:
    rows = read_raw(QuestionsOptions(source="simplequestions", path=str(shared_data / "simplequestions_wikidata")), 7)
    assert {split: sum(row["split"] == split for row in rows) for split in ("train", "dev", "test")} == {
        "train": 19_481,
        "dev": 2_821,
        "test": 5_622,
    }
    wanted = set()
    for row in rows:
        path = row["relation_paths"][0][0]
        ends = (row["topic_entities"][0], row["answers"][0])
        head, tail = ends[::-1] if path.startswith("<inv>-") else ends
        wanted.add((head, path.removeprefix("<inv>-"), tail))
    with (shared_data / "wikidata_mini" / "triples.tsv").open(encoding="utf-8") as lines:
        there = {fact for fact in (tuple(line.rstrip("\n").split("\t")) for line in lines) if fact in wanted}
    assert there == wanted
