"""Generated questions are those that the search reads as they are meant, and few of them ask for yes or no."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.builders.questions import generate as module
from kgqa_core.builders.questions.draft import Draft
from kgqa_core.builders.questions.generate import FILE, generate, make
from kgqa_core.builders.questions.read_back import ReadBack, Worded, phrase
from kgqa_core.builders.questions.wording import WordedQuestion
from kgqa_core.config import KgOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions, KindShares
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from kgqa_core.monitor import QUIET, NoteRecorder
from kgqa_core.workspace import Workspace

PEOPLE = "name,boss,team\nAna,Dee,Red\nBo,Ana,Red\nCy,Ana,Blue\n"


def worded(graph: MemoryGraph, form: str, text: str, *mentions: str) -> Worded:
    parsed = parse(form.replace("@", "http://x/"))
    result = graph.execute(parsed)
    return Draft("one_hop", parsed, result.nodes, result.value), WordedQuestion(text, mentions)


def test_a_question_stays_where_its_words_lead_to_its_answer(film_kg: Path) -> None:
    with KgStore.open(film_kg) as store:
        reader, graph = ReadBack(store, 1), MemoryGraph(store)
        right = [
            worded(graph, "(JOIN (R @directed_by) @f0)", "Who directed Night A0?", "Night A0"),
            worded(graph, "(COUNT (JOIN @directed_by @p0))", "How many films did Ada Stone direct?", "Ada Stone"),
            worded(graph, "(AND (TYPE @country) (gt @population 5000000))", "Countries with over 5 million people"),
            worded(graph, "(HOLDS (JOIN (R @capital) @c0) @city1)", "Is Sudland City the capital of Norland?",
                   "Norland", "Sudland City"),
        ]  # fmt: skip
        wrong = [
            worded(graph, "(JOIN (R @directed_by) @f0)", "Is Night A0 the one of what?", "Night A0"),
            worded(graph, "(COUNT (JOIN @directed_by @p0))", "Who directed the films of Ada Stone?", "Ada Stone"),
        ]
        assert reader.reads([right[0], wrong[0], *right[1:], wrong[1]], QUIET) == [True, False, True, True, True, False]
        again = worded(graph, "(JOIN (R @directed_by) @f1)", "Who directed Night B1?", "Night B1")
        assert phrase(again[1]) == phrase(right[0][1]) and reader.reads([again], QUIET) == [True]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    (folder / "people.csv").write_text(PEOPLE)
    build(Workspace(folder), options=KgOptions(files=(str(folder / "people.csv"),)))
    return folder


def test_of_a_tiny_graph_at_most_a_fifth_asks_for_yes_or_no_and_the_log_says_what_is_left_out(people: Path) -> None:
    monitor = NoteRecorder(QUIET)
    counts = generate(Workspace(people, monitor=monitor), people, GeneratedQuestionsOptions(size=70, unanswerable=0), 7)
    rows = [json.loads(line) for line in (people / FILE).read_text(encoding="utf-8").splitlines()]
    asked = sum(row["answer_type"] == "yes/no" for row in rows)
    assert 0 < asked <= math.ceil(len(rows) / 5) and len(rows) == counts["questions"] < 70
    assert counts["left_out"]["yes_no"] > 0
    assert any("ask for yes or no, of which 20 %" in note for note in monitor.notes), monitor.notes


def test_where_only_yes_or_no_is_wanted_all_are(people: Path) -> None:
    shares = KindShares(**dict.fromkeys(KindShares.model_fields, 0.0) | {"yes_no": 1.0})
    with KgStore.open(people) as store:
        rows = make(store, GeneratedQuestionsOptions(size=12, unanswerable=0, shares=shares, read_back=0), 7)
    assert len(rows) >= 12 and {row["answer_type"] for row in rows} == {"yes/no"}


def test_what_is_not_read_is_replaced_by_others_and_the_same_seed_gives_the_same(film_kg: Path) -> None:
    options = GeneratedQuestionsOptions(size=10, unanswerable=0, read_back=1)
    with KgStore.open(film_kg) as store:
        first, again = make(store, options, 3), make(store, options, 3)
        free = make(store, options.model_copy(update={"read_back": 0}), 3)
    assert first == again and len(first) == len(free)
    texts = {row["plain_question"] for row in first}
    assert any(row["plain_question"] not in texts for row in free), "the first candidate alone is not always right"


def test_a_graph_of_which_no_question_is_read_still_has_questions(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadBack, "reads", lambda _, worded, __: [False] * len(worded))
    with KgStore.open(people) as store:
        rows: list[dict[str, Any]] = module.make(store, GeneratedQuestionsOptions(size=10), 7)
    assert any(row["answers"] for row in rows)
