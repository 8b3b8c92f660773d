"""WebQSP's annotation as a graph: topic, inferential chain and answers of each first parse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace


def question(topic: str, name: str, chain: list[str] | None, *answers: tuple[str, str | None]) -> dict[str, Any]:
    found = [
        {"AnswerType": "Entity" if label else "Value", "AnswerArgument": key, "EntityName": label}
        for key, label in answers
    ]
    parse = {"TopicEntityMid": topic, "TopicEntityName": name, "InferentialChain": chain, "Answers": found}
    return {"QuestionId": "q", "RawQuestion": "?", "Parses": [parse]}


def graph(tmp_path: Path, *questions: Any) -> tuple[set[tuple[str, str, str]], dict[str, str], dict[str, Any]]:
    """Triples by key, labels, counts."""
    file = tmp_path / "WebQSP.train.json"
    file.write_text("\ufeff" + json.dumps({"Questions": questions}, indent=1), encoding="utf-8")
    (tmp_path / "kg").mkdir()
    counts = build(Workspace(tmp_path / "kg"), options=KgOptions(files=(str(file),), max_reject_share=1))
    with KgStore.open(tmp_path / "kg") as store:
        run = store.connection.execute
        triples = run(
            "SELECT h.key, r.key, t.key FROM triples x JOIN entities h ON h.id = x.head "
            "JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail"
        ).fetchall()
        labels = run("SELECT e.key, l.label FROM labels l JOIN entities e ON e.id = l.id").fetchall()
    return set(triples), dict(labels), dict(counts)


def test_a_chain_leads_from_the_topic_to_each_answer_through_a_node_of_its_own(tmp_path: Path) -> None:
    triples, labels, counts = graph(
        tmp_path,
        question("m.0a", "Anna", ["p.sibling_s", "p.sibling"], ("m.0b", "Bo"), ("m.0c", "Cy")),
        question("m.0a", "Anna", ["p.born"], ("1900", None)),
        question("m.0a", "Anna", ["p.sibling_s", "p.sibling"], ("m.0b", "Bo")),
    )
    between = {tail for head, relation, tail in triples if (head, relation) == ("m.0a", "p.sibling_s")}
    assert len(between) == 2 and all(node.startswith("m.0between1") for node in between)
    ends = {(head, tail) for head, relation, tail in triples if relation == "p.sibling"}
    assert {head for head, _ in ends} == between and {tail for _, tail in ends} == {"m.0b", "m.0c"}
    assert ("m.0a", "p.born", "1900") in triples and len(triples) == 5, "equal chains are equal triples"
    assert labels == {"m.0a": "Anna", "m.0b": "Bo", "m.0c": "Cy"}
    assert (counts["literals"], counts["rejects"]) == (1, 0)


def test_questions_that_lead_nowhere_and_faulty_ones_are_counted(tmp_path: Path) -> None:
    triples, _, counts = graph(
        tmp_path,
        question("m.0a", "Anna", ["p.born"], ("m.0b", "Bo")),
        question("m.0a", "Anna", None, ("m.0b", "Bo")),
        question("m.0a", "Anna", ["p.born"]),
        {"Parses": []},
        {"Parses": [{"TopicEntityMid": "m.0a"}]},
        question("m.0a", "Anna", ["p.born", 7], ("m.0b", "Bo")),  # type: ignore[list-item]
    )
    assert triples == {("m.0a", "p.born", "m.0b")}
    assert counts["filtered_by_rule"] == {"question without topic, chain or answer": 3}
    assert counts["rejects"] == 2


@pytest.mark.parametrize("text", ['{"Questions": [', '{"Answers": []}', "[]"])
def test_what_is_no_webqsp_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    (tmp_path / "kg").mkdir()
    with pytest.raises(KgInputError, match="x.json"):
        build(Workspace(tmp_path / "kg"), options=KgOptions(files=(str(tmp_path / "x.json"),), format="webqsp"))
