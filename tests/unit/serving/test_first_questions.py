"""The questions to begin with: what is asked of a graph before any is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgqa_core.answering.reply import Answer
from kgqa_core.kg.store import KgStore
from kgqa_core.serving.examples import example_questions
from tests.support.question_graph import RDFS, X, build_graph

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
DATE = "http://www.w3.org/2001/XMLSchema#date"


def test_a_participle_is_asked_as_a_verb_and_never_as_a_noun(tmp_path: Path) -> None:
    lines = []
    for number in range(4):
        saw = f"<{X}saw{number}>"
        lines += [f"{saw} <{TYPE}> <{X}tool> .", f'{saw} <{RDFS}label> "saw {number}"@en .']
        lines += [f'{saw} <{X}bought> "2021-03-0{number + 1}"^^<{DATE}> .', f"{saw} <{X}brand> <{X}brand{number}> ."]
        lines.append(f"{saw} <{X}repaired> <{X}brand{number}> .")
    asked: list[str] = []

    def answer(texts: Sequence[str]) -> list[Answer]:
        asked.extend(texts)
        found = {"When was saw 0 bought?": "2021-03-01"}
        return [Answer(text, text, found.get(text), answerable=text in found) for text in texts]

    with KgStore.open(build_graph(tmp_path, lines)) as store:
        assert example_questions(store, answer) == ("When was saw 0 bought?",)
    assert "What is the brand of saw 0?" in asked
    assert not [text for text in asked if "the bought" in text or "repaired" in text]
