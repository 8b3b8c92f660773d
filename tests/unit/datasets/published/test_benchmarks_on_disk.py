"""MetaQA and ZJQA: their formats, and on the real data that gold paths reach gold answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionsOptions, QuestionSource
from kgqa_core.datasets.files.jsonl import canonical
from kgqa_core.datasets.load import read_raw
from kgqa_core.datasets.published.metaqa import relation_path
from kgqa_core.datasets.published.registry import BENCHMARKS, catalogue, local_files
from kgqa_core.errors import QuestionFileError
from kgqa_core.types import INVERSE


@pytest.mark.parametrize(
    ("question_type", "expected"),
    [
        ("movie_to_year", ["release_year"]),
        ("tag_to_movie", ["<inv>-has_tags"]),
        ("movie_to_tags", ["has_tags"]),
        ("movie_to_imdbrating", ["has_imdb_rating"]),
        ("movie_to_imdbvotes", ["has_imdb_votes"]),
        ("actor_to_movie_to_year", ["<inv>-starred_actors", "release_year"]),
        ("movie_to_writer_to_movie_to_genre", ["written_by", "<inv>-written_by", "has_genre"]),
        ("director_to_movie_to_language", ["<inv>-directed_by", "in_language"]),
    ],
)
def test_a_question_type_names_a_relation_path(question_type: str, expected: list[str]) -> None:
    assert relation_path(question_type) == expected


@pytest.mark.parametrize("question_type", ["movie", "actor_to_director", "movie_to_movie", "movie_to_producer"])
def test_an_unknown_question_type_is_refused(question_type: str) -> None:
    with pytest.raises(ValueError, match=question_type):
        relation_path(question_type)


def read(source: str, folder: Path, hops: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    return read_raw(QuestionSource(source=source, path=str(folder), hops=hops), 7)


@pytest.mark.parametrize("names", [("1-hop/test.txt",), ("1-hop/vanilla/qa_test.txt",)])
def test_metaqa_is_read_in_both_layouts(tmp_path: Path, names: tuple[str, ...]) -> None:
    path = tmp_path / names[0]
    path.parent.mkdir(parents=True)
    path.write_text("what does [Grégoire Colin] appear in\tBefore the Rain|Beau travail\n", encoding="utf-8")
    (tmp_path / "1-hop" / "qa_test_qtype.txt").write_text("actor_to_movie\n", encoding="utf-8")
    assert read("metaqa", tmp_path, (1,)) == [
        canonical(
            {
                "id": "metaqa-1-test-00001",
                "question": "what does Grégoire Colin appear in",
                "topic_entities": ["Grégoire Colin"],
                "answers": ["Before the Rain", "Beau travail"],
                "answer_type": "entities",
                "relation_path": ["<inv>-starred_actors"],
                "split": "test",
                "complexity": "generic",
                "hops": 1,
            }
        )
    ]


def test_metaqa_faults_name_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(QuestionFileError, match=r"1-hop holds no questions"):
        read("metaqa", tmp_path)
    home = tmp_path / "2-hop"
    home.mkdir()
    (home / "dev.txt").write_text("who is [A]\tB\nno topic\tB\n", encoding="utf-8")
    with pytest.raises(QuestionFileError, match=r"dev.txt line 2"):
        read("metaqa", tmp_path, (2,))
    (home / "qa_dev_qtype.txt").write_text("actor_to_movie\n", encoding="utf-8")
    with pytest.raises(QuestionFileError, match=r"has 1 lines, but .* has 2"):
        read("metaqa", tmp_path, (2,))


def test_zjqa_faults_name_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(QuestionFileError, match="is it the folder of ZJQA"):
        read("zjqa", tmp_path)
    (tmp_path / "train.txt").write_text("q\tt\tr\ta\t1\nq\tt\tr\ta\n", encoding="utf-8")
    with pytest.raises(QuestionFileError, match=r"train.txt line 2"):
        read("zjqa", tmp_path)


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    for source in ("zjqa", "metaqa"):
        with pytest.raises(QuestionFileError, match=r"is not a folder|neither a file nor a folder"):
            read(source, tmp_path / "nothing")
    with pytest.raises(QuestionFileError, match="is not a folder"):
        local_files(tmp_path / "nothing")


def test_the_catalogue_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "webqsp").mkdir()
    (tmp_path / "webqsp" / "WebQSP.test.json").write_text("{}", encoding="utf-8")
    assert {name: found.size for name, found in local_files(tmp_path).items()} == {"WebQSP": 2}
    assert len({benchmark.name for benchmark in BENCHMARKS}) == len(BENCHMARKS)
    rows = {row["name"]: row for row in catalogue(tmp_path)}
    assert rows["WebQSP"]["found"] == "1 files, 0.0 MB"
    assert rows["MetaQA"]["found"] is None
    assert "found" not in catalogue()[0]


def test_zjqa_gold_paths_reach_gold_answers(shared_data: Path) -> None:
    rows = read_raw(QuestionsOptions(source="zjqa", path=str(shared_data / "zjqa")), 7)
    graph = _graph(shared_data / "zjqa" / "indexes" / "triple.txt", "\t")
    assert {split: sum(row["split"] == split for row in rows) for split in ("train", "dev", "test")} == {
        "train": 14_999,
        "dev": 2_147,
        "test": 3_345,
    }
    reached, equal = _reach(graph, [row for row in rows if row["split"] == "test"], exclude_topic=False)
    assert (reached, equal) == (3_345, 3_195)


@pytest.mark.parametrize(
    ("hops", "n", "share"),
    [
        (1, 9_947, 0.9966),
        pytest.param(2, 14_872, 0.9644, marks=pytest.mark.slow),
        pytest.param(3, 14_274, 0.9720, marks=pytest.mark.slow),
    ],
)
def test_metaqa_gold_paths_reach_gold_answers(shared_data: Path, hops: int, n: int, share: float) -> None:
    options = QuestionsOptions(source="metaqa", path=str(shared_data / "metaqa"), hops=(hops,), train_from="dev")
    rows = read_raw(options, 7)
    graph = _graph(shared_data / "metaqa" / "kb_reconstructed.txt", "|")
    test = [row for row in rows if row["split"] == "test"]
    dev = sum(row["split"] == "dev" for row in rows)
    assert len(test) == n
    assert dev == round((len(rows) - n) / 10)
    assert _reach(graph, test, exclude_topic=True)[0] / n == pytest.approx(share, abs=1e-4)


def _graph(path: Path, separator: str) -> dict[tuple[str, str], set[str]]:
    graph: dict[tuple[str, str], set[str]] = defaultdict(set)
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            head, relation, tail = line.rstrip("\n").split(separator)
            graph[head, relation].add(tail)
            graph[tail, INVERSE + relation].add(head)
    return graph


def _reach(
    graph: dict[tuple[str, str], set[str]], rows: Iterable[dict[str, Any]], *, exclude_topic: bool
) -> tuple[int, int]:
    """Questions whose gold path reaches a gold answer, and those where it reaches just the gold answers."""
    reached = equal = 0
    for row in rows:
        topics = set(row["topic_entities"])
        found = topics
        for relation in row["relation_paths"][0]:
            found = {tail for head in found for tail in graph.get((head, relation), ())}
            found = found - topics if exclude_topic else found
        reached += bool(found & set(row["answers"]))
        equal += found == set(row["answers"])
    return reached, equal
