"""The question sets over real graphs: what their profiles draw, and that random facts do not answer them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from benchmarks.answers import real_sets_data
from benchmarks.answers.real_sets import frequent_answers, table, with_entities
from flows.cli._session import choose_profile
from kgqa_core.builders.questions.draft import COMPLEXITY
from kgqa_core.builders.questions.easiness import Easiness
from kgqa_core.builders.questions.generate import make
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.types import COMPLEXITY_TYPES, Question
from kgqa_core.workspace import Workspace

PROFILES = ("real-wikidata-mini", "real-codex-m", "real-fb15k237")


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_draws_all_types_and_drops_what_random_facts_answer(name: str) -> None:
    profile = choose_profile(name)
    options = profile.questions.generated
    shares = {kind: share for kind, share in options.shares.model_dump().items() if share}
    assert profile.questions.source == "generated"
    assert {COMPLEXITY[kind] for kind in shares} == set(COMPLEXITY_TYPES)
    assert {"one_hop", "two_hops", "three_hops"} <= set(shares)
    assert options.max_random_hit <= 0.25 and options.max_answer_share <= 0.01
    assert options.random_facts == profile.retrieval.k == 10


@pytest.mark.slow
def test_a_small_set_over_wikidata_has_all_types_and_hops_and_is_harder_than_simplequestions(
    shared_data: Path, tmp_path: Path
) -> None:
    data = shared_data / "wikidata_mini"
    if not data.is_dir():
        pytest.skip(f"no wikidata_mini at {shared_data}")
    profile = choose_profile("real-wikidata-mini")
    files = tuple(str(data / Path(name).name) for name in profile.kg.files)
    build(Workspace(tmp_path), options=profile.kg.model_copy(update={"files": files}))
    options = profile.questions.generated.model_copy(update={"size": 400})
    with KgStore.open(tmp_path) as store:
        rows = make(store, options, profile.seed)
        own = Easiness(MemoryGraph(store), options)
        generated = mean(_hit(own, row["topic_entities"], row["answers"]) for row in rows if _has_entities(row))
        simple = [line.split("\t") for line in _simple_questions(shared_data)]
        shipped = mean(_hit(own, [line[0]], [line[2]]) for line in simple)
    assert {row["complexity"] for row in rows} == set(COMPLEXITY_TYPES)
    assert set(Counter(row["hops"] for row in rows)) == {1, 2, 3}
    assert generated < 0.1 < 0.5 < shipped


def _has_entities(row: dict[str, Any]) -> bool:
    return row["answer_type"] == "entities" and not set(row["answers"]) <= set(row["topic_entities"])


def _hit(own: Easiness, topics: list[str], answers: list[str]) -> float:
    known = own.graph.know([*topics, *answers])
    return own.random_hit([known[key] for key in topics if key in known], [known[k] for k in answers if k in known])


def _simple_questions(shared_data: Path) -> list[str]:
    """Two hundred dev questions, spread evenly."""
    folder = shared_data / "simplequestions_wikidata"
    files = [path for path in sorted(folder.rglob("*valid*")) if path.is_file()]
    if not files:
        pytest.skip(f"no dev questions in {folder}")
    lines = files[0].read_text(encoding="utf-8").splitlines()
    return lines[:: max(1, len(lines) // 200)]


def test_the_page_has_the_tables_of_the_result_file() -> None:
    root = Path(__file__).resolve().parents[4]
    results = json.loads((root / "benchmarks" / "results" / "real_sets.json").read_text(encoding="utf-8"))["results"]
    assert table(results) in (root / "docs" / "real_sets.md").read_text(encoding="utf-8")
    for name in PROFILES:
        row = results[name]
        assert set(row["by_type_and_hops"]) == set(COMPLEXITY_TYPES)
        assert row["random"]["all"]["high"] < 0.1 < results["wikidata-mini"]["random"]["all"]["low"]


def test_a_frequent_answer_is_that_of_training_and_a_hit_is_no_topic() -> None:
    training = [Question(str(n), "?", answer_keys=(key,), complexity="count") for n, key in enumerate("aab")]
    test = [Question("x", "?", answer_keys=("a", "c")), Question("y", "?", answer_keys=("b",), complexity="count")]
    assert frequent_answers(training, test, by_type=False) == {"x": True, "y": False}
    assert frequent_answers(training, test, by_type=True) == {"x": False, "y": False}
    assert with_entities([Question("z", "?", topic_entities=(1, 2), answers=(2,)), Question("w", "?")]) == []


def test_names_of_fb15k237_come_from_the_lines_that_are_published(tmp_path: Path) -> None:
    source, published = tmp_path / "fb15k237", tmp_path / "published"
    source.mkdir()
    published.mkdir()
    (source / "train.tsv").write_text("0\t0\t1\n2\t1\t9\n", encoding="utf-8")
    (source / "dev.tsv").write_text("0\t0\t1\n", encoding="utf-8")
    (source / "test.tsv").write_text("2\t0\t1\n", encoding="utf-8")
    (source / "entity2wikidata.json").write_text(
        '{"/m/f": {"label": "Heat", "alternatives": ["Hot"]}}', encoding="utf-8"
    )
    genre = "/film/film/genre"
    (published / "valid.txt").write_text(f"/m/f\t{genre}\t/m/g\n", encoding="utf-8")
    (published / "test.txt").write_text(f"/m/h\t{genre}\t/m/g\n", encoding="utf-8")
    counts = real_sets_data.write(tmp_path, published, tmp_path / "out")
    assert (counts["entities"], counts["named"], counts["relations"]) == (4, 3, 1)
    triples = (tmp_path / "out" / "triples.tsv").read_text(encoding="utf-8").splitlines()
    assert triples[:2] == [f"/m/f\t{genre}\t/m/g", "/m/h\t/fb15k237/1\t/fb15k237/9"]
    labels = (tmp_path / "out" / "labels.en.tsv").read_text(encoding="utf-8").splitlines()
    assert labels == ["/m/f\tHeat", f"{genre}\tgenre", "/film/film\tfilm"]
    (published / "test.txt").write_text(f"/m/h\t{genre}\t/m/x\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"test.txt line 1: 1 was /m/g before"):
        real_sets_data.write(tmp_path, published, tmp_path / "out")
