"""WebQuestions: answers of a targetValue, topics of an address, ids by place."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from kgqa_core.config import QuestionsOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import read_raw, read_source
from kgqa_core.datasets.published.webquestions import answers_of, topic_of
from kgqa_core.errors import QuestionFileError
from kgqa_core.workspace import Workspace
from tests.unit.datasets.published.official import graph, loaded, stored


def question(page: str, target: str, text: str = "what?") -> dict[str, str]:
    return {"url": f"http://www.freebase.com/view/en/{page}", "targetValue": target, "utterance": text}


def options(path: Path) -> QuestionsOptions:
    return QuestionsOptions(source="webquestions", path=str(path))


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ('(list (description "Jazmyn Bieber") (description "Jaxon Bieber"))', ["Jazmyn Bieber", "Jaxon Bieber"]),
        ("(list (description Stay))", ["Stay"]),
        ('(list (description "a \\"b\\" (c)") (description 1999))', ['a "b" (c)', "1999"]),
        ("(list)", []),
    ],
)
def test_the_answers_of_a_target_value(target: str, names: list[str]) -> None:
    assert answers_of(target) == names


@pytest.mark.parametrize("target", ["Stay", "(list (name Stay))", '(list (description "a) (description b))'])
def test_another_target_value_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="targetValue"):
        answers_of(target)


def test_the_topic_is_the_name_in_the_address() -> None:
    assert topic_of("http://www.freebase.com/view/en/st_john$0027s") == "st john's"
    assert topic_of("http://www.freebase.com/") is None


def test_ids_are_the_places_of_the_rows_and_a_tenth_of_train_is_dev(tmp_path: Path) -> None:
    stored(tmp_path / "webquestions.examples.train.json", [question("ann", "(list (description B))")] * 20)
    stored(tmp_path / "webquestions.examples.test.json", [question("ann", "(list (description B))")])
    rows = read_raw(options(tmp_path), 7)
    assert [row["id"] for row in rows if row["split"] == "test"] == ["WebQTest-0"]
    assert sorted(row["id"] for row in rows if row["split"] != "test") == sorted(f"WebQTrn-{n}" for n in range(20))
    assert sum(row["split"] == "dev" for row in rows) == 2


def test_dev_has_the_size_that_is_wanted(tmp_path: Path) -> None:
    rows = [question("a", "(list (description b))", f"what {n}?") for n in range(30)]
    (tmp_path / "webquestions.examples.train.json").write_text(json.dumps(rows), encoding="utf-8")
    sizes = Counter(row["split"] for row in read_raw(options(tmp_path).model_copy(update={"dev_size": 7}), 7))
    assert sizes == {"train": 23, "dev": 7}
    with pytest.raises(QuestionFileError, match="dev_size is 30.*has 30 training questions; give fewer"):
        read_raw(options(tmp_path).model_copy(update={"dev_size": 30}), 7)


def test_a_bad_row_is_rejected_and_does_not_move_the_ids(tmp_path: Path) -> None:
    rows = ["text", question("ann", "B"), *[question("ann", "(list (description B))")] * 2]
    stored(tmp_path / "webquestions.examples.test.json", rows)
    kept, rejects = read_source(options(tmp_path), 7)
    assert [row["id"] for row in kept] == ["WebQTest-2", "WebQTest-3"]
    assert [reject.row for reject in rejects] == ["row 1", "row 2"]


def test_topics_are_linked_without_regard_to_case(tmp_path: Path) -> None:
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    source = tmp_path / "graph.nt"
    source.write_text(
        f'<http://x/1> <{label}> "Ann Lee"@en .\n<http://x/2> <{label}> "Bo"@en .\n'
        "<http://x/1> <http://x/r> <http://x/2> .\n",
        encoding="utf-8",
    )
    from kgqa_core.config import KgOptions
    from kgqa_core.kg.build import build

    (tmp_path / "kg").mkdir()
    build(Workspace(tmp_path / "kg"), options=KgOptions(files=(str(source),)))
    rows = [
        question("ann_lee", "(list (description Bo))"),
        question("nobody", "(list (description Bo))"),
        question("ann_lee", "(list (description Nothing))"),
    ]
    stored(tmp_path / "webquestions.examples.test.json", rows)
    out, counts = loaded(tmp_path, tmp_path / "kg", source="webquestions", path=str(tmp_path))
    first, second, third = read_questions(out)
    assert (len(first.topic_entities), len(first.answers), first.unlinkable) == (1, 1, None)
    assert second.topic_entities == () and "nobody" in (second.unlinkable or "")
    assert third.unlinkable == "answer 'Nothing' is not in the graph"
    assert counts["n_unlinkable"]["test"] == 2


def test_another_graph_has_none_of_the_topics(tmp_path: Path) -> None:
    from kgqa_core.errors import QuestionFileError

    kg = graph(tmp_path, "a\tr\tb\n")
    stored(tmp_path / "webquestions.examples.test.json", [question("ann", "(list (description B))")])
    with pytest.raises(QuestionFileError, match="Do the questions belong to this graph"):
        loaded(tmp_path, kg, source="webquestions", path=str(tmp_path))
