"""Questions whose forms are GrailQA's: every set has a type, and what GrailQA does not write is not made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.builders.questions.generate import FILE, generate
from kgqa_core.config.generated_questions import GRAILQA_KINDS, GeneratedQuestionsOptions, KindShares
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import answer_texts, execute
from kgqa_core.logic.forms import And, Arg, Class, Compare, Count, Form, Join
from kgqa_core.logic.parser import parse
from kgqa_core.workspace import Workspace

OPTIONS = GeneratedQuestionsOptions(size=300, forms="grailqa", unanswerable=0)


@pytest.fixture(scope="module")
def rows(film_kg: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out = tmp_path_factory.mktemp("grailqa")
    generate(Workspace(out), film_kg, OPTIONS, 7)
    return [json.loads(line) for line in (out / FILE).read_text(encoding="utf-8").splitlines()]


def set_of(form: Form) -> Form:
    while isinstance(form, (Count, Arg)):
        form = form.of
    return form


def test_every_set_names_a_type(rows: list[dict[str, Any]]) -> None:
    assert len(rows) > 200
    for row in rows:
        inner = set_of(parse(row["s_expression"]))
        assert isinstance(inner, Class) or (
            isinstance(inner, And)
            and any(isinstance(part, Class) for part in inner.parts)
            and all(isinstance(part, (Class, Join, Compare)) for part in inner.parts)
        ), row["s_expression"]
        assert row["kind"] in GRAILQA_KINDS and "(COUNT (R" not in row["s_expression"]


def test_answers_are_what_the_form_with_its_type_finds(film_kg: Path, rows: list[dict[str, Any]]) -> None:
    with KgStore.open(film_kg) as store:
        for row in rows[:80]:
            form = parse(row["s_expression"])
            found = execute(form, store)
            keys = store.entity_keys(found.nodes)
            assert sorted(answer_texts(form, found, keys)) == sorted(row["answers"])


def test_most_kinds_that_grailqa_writes_are_made(rows: list[dict[str, Any]]) -> None:
    assert {row["kind"] for row in rows} >= {"one_hop", "two_hops", "intersection", "count", "best_of_path", "bounds"}


def test_shares_of_other_kinds_alone_are_refused_with_the_kinds_there_are() -> None:
    nothing = {name: 0.0 for name in KindShares.model_fields}
    with pytest.raises(ValueError, match="one_hop, two_hops"):
        GeneratedQuestionsOptions(forms="grailqa", shares=KindShares(**nothing | {"yes_no": 1.0}))
