"""Questions made from a graph alone: complete answers, even cover, separate splits, the same bytes again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.builders.questions.draft import COMPLEXITY
from kgqa_core.builders.questions.generate import FILE, generate
from kgqa_core.config import KgOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions, KindShares, NoiseOptions
from kgqa_core.datasets.files.jsonl import read_question_file
from kgqa_core.datasets.files.link import link
from kgqa_core.errors import InputError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import answer_texts, execute
from kgqa_core.logic.parser import parse
from kgqa_core.types import COMPLEXITY_TYPES
from kgqa_core.workspace import Workspace

OPTIONS = GeneratedQuestionsOptions(size=400, read_back=0)


@pytest.fixture(scope="module")
def folder(film_kg: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("generated")
    generate(Workspace(out), film_kg, OPTIONS, 7)
    return out


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE).read_text(encoding="utf-8").splitlines()]


def answerable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row.get("answerable", True)]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(
    film_kg: Path, folder: Path, tmp_path: Path
) -> None:
    texts = []
    for seed in (7, 8):
        out = tmp_path / str(seed)
        out.mkdir()
        generate(Workspace(out), film_kg, OPTIONS, seed)
        texts.append((out / FILE).read_bytes())
    assert texts[0] == (folder / FILE).read_bytes() != texts[1]


TINY = {
    "a star of two triples": "hub\thas\tleaf 0\nhub\thas\tleaf 1\n",
    "two triples": "Ada\tknows\tBob\nBob\tlives in\tRome\n",
    "one triple": "Ada\tknows\tBob\n",
    "one value": '<http://x/Ada> <http://x/nick> "Addie" .\n',
}


@pytest.mark.parametrize("graph", TINY)
def test_each_split_of_a_tiny_graph_has_a_question_with_an_answer(graph: str, tmp_path: Path) -> None:
    file = tmp_path / ("g.nt" if "<" in TINY[graph] else "g.tsv")
    file.write_text(TINY[graph])
    build(Workspace(tmp_path), options=KgOptions(files=(str(file),)))
    counts = generate(Workspace(tmp_path), tmp_path, OPTIONS.model_copy(update={"size": 60}), 7)
    rows = [json.loads(line) for line in (tmp_path / FILE).read_text(encoding="utf-8").splitlines()]
    assert {row["split"] for row in answerable(rows)} == {"train", "dev", "test"}
    assert counts["questions"] == len(rows) == len({row["id"] for row in rows})


def test_a_graph_in_which_nothing_leads_anywhere_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_text("Ada\tis\tAda\n")
    build(Workspace(tmp_path), options=KgOptions(files=(str(tmp_path / "g.tsv"),)))
    with pytest.raises(InputError, match=r"no question can be made from this graph \(1 relations, 1 entities"):
        generate(Workspace(tmp_path), tmp_path, OPTIONS, 7)


def test_every_form_gives_exactly_the_answers_of_its_question(film_kg: Path, rows: list[dict[str, Any]]) -> None:
    with KgStore.open(film_kg) as store:
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for row in answerable(rows):
            by_kind.setdefault(row["kind"], []).append(row)
        for row in (row for some in by_kind.values() for row in some[:6]):
            form = parse(row["s_expression"])
            result = execute(form, store, proof=False)
            keys = store.entity_keys(result.nodes)
            assert sorted(answer_texts(form, result, keys)) == sorted(row["answers"]), row


def test_the_file_is_read_and_linked_like_any_question_file(
    film_kg: Path, folder: Path, rows: list[dict[str, Any]]
) -> None:
    read = read_question_file(folder / FILE)
    with KgStore.open(film_kg) as store:
        linked = link([row for row in read if row.get("answerable", True)], store)
    assert linked.counts["n_unlinkable"] == 0
    types = {row["id"]: row["answer_type"] for row in answerable(rows)}
    assert all(question.answer_type == types[question.id] for question in linked.questions)


def test_every_kind_that_the_graph_allows_is_there(rows: list[dict[str, Any]]) -> None:
    kinds = Counter(row["kind"] for row in answerable(rows))
    without = {name for name, share in OPTIONS.shares.model_dump().items() if not share}
    assert set(COMPLEXITY) - set(kinds) <= {"qualified", *without}  # the graph has no qualifiers
    assert {row["complexity"] for row in answerable(rows)} <= set(COMPLEXITY_TYPES)


AGGREGATES = ("total", "average", "greatest_value", "least_value", "share", "first_k", "group")


def test_sums_shares_and_groups_are_made_where_they_are_wanted_and_are_what_the_graph_gives(
    film_kg: Path, tmp_path: Path
) -> None:
    shares = dict.fromkeys(KindShares.model_fields, 0.0) | dict.fromkeys(AGGREGATES, 1.0)
    changes = {"size": 70, "unanswerable": 0, "noise": NoiseOptions.none()}
    options = OPTIONS.model_copy(update={**changes, "shares": KindShares(**shares)})
    generate(Workspace(tmp_path), film_kg, options, 3)
    rows = [json.loads(line) for line in (tmp_path / FILE).read_text(encoding="utf-8").splitlines()]
    with KgStore.open(film_kg) as store:
        kinds = Counter(row["kind"] for row in rows)
        assert set(kinds) == set(AGGREGATES) and min(kinds.values()) > 5
        for row in rows:
            form = parse(row["s_expression"])
            result = execute(form, store, proof=False)
            names = (store.names if row["answer_type"] == "text" else store.entity_keys)(result.ids)
            assert list(answer_texts(form, result, names)) == row["answers"], row
        linked = link(list(read_question_file(tmp_path / FILE)), store)
    assert linked.counts["n_unlinkable"] == 0
    assert {row["answer_type"] for row in rows} == {"number", "date", "entities", "text"}


def test_every_relation_is_covered_about_evenly(rows: list[dict[str, Any]]) -> None:
    used = Counter(
        relation.removeprefix("<inv>-")
        for row in answerable(rows)
        for path in row.get("relation_path", ())
        for relation in path
    )
    own = {key: number for key, number in used.items() if key.startswith("http://x/")}
    assert len(own) == 10 and max(own.values()) < 8 * min(own.values())


def test_half_of_the_yes_no_questions_are_not_so(rows: list[dict[str, Any]]) -> None:
    truths = Counter(row["answers"][0] for row in answerable(rows) if row["answer_type"] == "yes/no")
    assert truths["yes"] and abs(truths["yes"] - truths["no"]) <= 5


def test_no_entities_with_their_paths_are_in_two_splits(rows: list[dict[str, Any]]) -> None:
    splits: dict[tuple[Any, ...], set[str]] = {}
    for row in answerable(rows):
        sign = (
            tuple(sorted(row["topic_entities"])),
            json.dumps(sorted(row.get("relation_path", [row["s_expression"]]))),
        )
        splits.setdefault(sign, set()).add(row["split"])
    assert all(len(each) == 1 for each in splits.values())
    assert {row["split"] for row in rows} == {"train", "dev", "test"}


def test_questions_name_their_entities_and_never_a_key(rows: list[dict[str, Any]]) -> None:
    for row in answerable(rows):
        assert "http" not in row["question"]
        assert all(mention in row["plain_question"] for mention in row["mentions"]), row


def test_no_more_answers_than_the_options_allow_counts_apart(film_kg: Path, tmp_path: Path) -> None:
    generate(Workspace(tmp_path), film_kg, GeneratedQuestionsOptions(size=150, max_answers=3, read_back=0), 7)
    rows = [json.loads(line) for line in (tmp_path / FILE).read_text(encoding="utf-8").splitlines()]
    assert max(len(row["answers"]) for row in rows) <= 3
    assert max(int(row["answers"][0]) for row in answerable(rows) if row["complexity"] == "count") > 3


def test_shares_of_zero_make_none_and_no_noise_leaves_the_text(film_kg: Path, tmp_path: Path) -> None:
    shares = KindShares(**{name: 0.0 for name in KindShares.model_fields} | {"one_hop": 1.0})
    options = GeneratedQuestionsOptions(size=60, shares=shares, read_back=0, noise=NoiseOptions.none())
    generate(Workspace(tmp_path), film_kg, options, 7)
    rows = answerable([json.loads(line) for line in (tmp_path / FILE).read_text(encoding="utf-8").splitlines()])
    assert {row["kind"] for row in rows} == {"one_hop"}
    assert all(row["question"] == row["plain_question"] for row in rows)
