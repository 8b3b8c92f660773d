"""Questions that are too easy are dropped: random triples that name an answer, and answers of many questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.builders.questions.draft import Draft
from kgqa_core.builders.questions.easiness import Easiness
from kgqa_core.builders.questions.generate import make
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from tests.support.question_graph import X, build_graph


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryGraph]:
    """A hub with four triples, one of them to it; `a` has two, and one of these is the hub's."""
    lines = [f"<{X}{head}> <{X}{relation}> <{X}{tail}> ." for head, relation, tail in (
        ("hub", "r", "a"), ("hub", "r", "b"), ("hub", "s", "c"), ("d", "r", "hub"), ("a", "s", "d"),
    )]  # fmt: skip
    with KgStore.open(build_graph(tmp_path_factory.mktemp("hub"), lines)) as store:
        yield MemoryGraph(store)


def easiness(graph: MemoryGraph, **options: Any) -> Easiness:
    return Easiness(graph, GeneratedQuestionsOptions.model_validate({"size": 10, "unanswerable": 0} | options))


def ids(graph: MemoryGraph, *names: str) -> list[int]:
    known = graph.know([X + name for name in names])
    return [known[X + name] for name in names]


@pytest.mark.parametrize(
    ("topics", "answers", "drawn", "probability"),
    [
        (["hub"], ["a"], 1, 1 / 4),
        (["hub"], ["a"], 2, 1 / 2),  # 1 - 3/4 · 2/3
        (["hub"], ["a", "d"], 2, 5 / 6),  # against the direction too: 1 - 2/4 · 1/3
        (["hub"], ["a"], 10, 1.0),  # all triples are drawn
        (["hub", "a"], ["d"], 1, 2 / 5),  # the triple between two topics counts once
        (["hub"], ["hub"], 10, 0.0),  # a topic is no answer of its own triples
        ([], ["a"], 10, 0.0),
    ],
)
def test_probability_of_a_random_hit_is_hypergeometric(
    hub: MemoryGraph, topics: list[str], answers: list[str], drawn: int, probability: float
) -> None:
    own = easiness(hub, random_facts=drawn)
    assert own.random_hit(ids(hub, *topics), ids(hub, *answers)) == pytest.approx(probability)


def test_a_draft_is_dropped_only_above_the_bound(hub: MemoryGraph) -> None:
    draft = Draft("one_hop", parse(f"(JOIN (R {X}r) {X}hub)"), tuple(ids(hub, "a", "b")))
    assert easiness(hub, random_facts=1, max_random_hit=0.49).refuses(draft)
    assert not easiness(hub, random_facts=1, max_random_hit=0.5).refuses(draft)
    assert not easiness(hub).refuses(draft)


def test_an_answer_is_used_until_its_share_is_reached_and_yes_is_never_used_up(hub: MemoryGraph) -> None:
    own = easiness(hub, max_answer_share=0.2)  # of ten questions: two
    form = parse(f"(JOIN (R {X}r) {X}hub)")
    seven, yes = Draft("count", form, value=7), Draft("yes_no", form, value=True)
    assert [own.refuses(seven) for _ in range(3)] == [False, False, True]
    assert [own.refuses(Draft("one_hop", form, (node,))) for node in (1, 1, 2, 1)] == [False, False, False, True]
    assert not any(own.refuses(yes) for _ in range(9))
    assert not any(easiness(hub).refuses(seven) for _ in range(20))


def test_made_questions_keep_the_bounds_and_the_default_drops_none(film_kg: Path) -> None:
    options = GeneratedQuestionsOptions(size=120, unanswerable=0, read_back=0)
    bounded = options.model_copy(update={"max_random_hit": 0.6, "max_answer_share": 0.05})
    with KgStore.open(film_kg) as store:
        graph = MemoryGraph(store)
        free, rows = make(store, options, 7), make(store, bounded, 7)
    own = easiness(graph)

    def hit(row: dict[str, Any]) -> float:
        return own.random_hit(
            list(graph.know(row["topic_entities"]).values()), list(graph.know(row["answers"]).values())
        )

    assert max(hit(row) for row in free) > 0.9
    assert rows and max(hit(row) for row in rows) <= 0.6
    answers = Counter(answer for row in rows if row["answer_type"] != "yes/no" for answer in row["answers"])
    assert max(answers.values()) <= 6 < max(Counter(a for row in free for a in row["answers"]).values())


def test_split_by_topics_puts_no_set_of_topics_into_two_splits(film_kg: Path) -> None:
    found = {}
    for split_by in ("form", "topics"):
        options = GeneratedQuestionsOptions.model_validate({"size": 200, "split_by": split_by, "read_back": 0})
        with KgStore.open(film_kg) as store:
            splits: dict[tuple[str, ...], set[str]] = {}
            for row in make(store, options, 7):
                if row["topic_entities"]:
                    splits.setdefault(tuple(sorted(row["topic_entities"])), set()).add(row["split"])
        found[split_by] = max(len(each) for each in splits.values())
    assert found["topics"] == 1 < found["form"]
