"""The head start of the label parser: what it is trained on, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kgqa_core.config import KgOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.phrases import Phrases, relation_words
from kgqa_core.symbolic.by_labels.model import load, untrained
from kgqa_core.symbolic.by_labels.packaged import HEAD_START
from kgqa_core.symbolic.by_labels.parser import LabelParser
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.workspace import Workspace
from tests.support.question_graph import RDFS, TYPE, X, build_graph, triples
from tools.head_start import real_graph, train
from tools.head_start.invented import DOMAINS, write_graph

LARGEST = 10_000_000
"""Bytes that the packaged adapter may have."""


def test_the_same_seed_invents_the_same_graph_and_another_one_another(tmp_path: Path) -> None:
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert write_graph(tmp_path / name, seed) > 3_000
        texts.append((tmp_path / name).read_text(encoding="utf-8"))
    assert texts[0] == texts[1] != texts[2]
    out = tmp_path / "kg"
    out.mkdir()
    (tmp_path / "a").rename(tmp_path / "a.nt")
    counts = build(Workspace(out), options=KgOptions(files=(str(tmp_path / "a.nt"),)))
    assert counts["rejects"] == 0


def test_invented_graph_without_types_has_all_else(tmp_path: Path) -> None:
    sizes = [write_graph(tmp_path / name, 1, typed=typed) for name, typed in (("typed.nt", True), ("plain.nt", False))]
    typed, plain = (
        set((tmp_path / name).read_text(encoding="utf-8").splitlines()) for name in ("typed.nt", "plain.nt")
    )
    assert plain == {line for line in typed if f"<{TYPE}>" not in line} and sizes[0] > sizes[1] > 2_000
    out = tmp_path / "kg"
    out.mkdir()
    build(Workspace(out), options=KgOptions(files=(str(tmp_path / "plain.nt"),)))
    with KgStore.open(out) as store:
        graph = LabelGraph(store)
        assert not graph.type_keys
        heads = [way.head for way in Phrases(graph).relation_words]
        assert any(heads) and any(
            own and not relation_words(label, "").head for own, label in zip(heads, graph.labels, strict=True)
        ), "heads of relations that the thesaurus says nothing of"


def test_every_invented_relation_starts_from_a_kind_of_its_domain() -> None:
    for domain in yaml.safe_load(DOMAINS.read_text(encoding="utf-8")):
        for head, labels, tail, *most in domain["relations"]:
            values = ("number", "year", "text", "word", "truth")
            assert head in domain["kinds"] and labels and (most or tail.split()[0] in (*values, tail))


@pytest.mark.slow
def test_the_real_graph_has_no_fact_of_a_scored_question(tmp_path: Path, shared_data: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    tables = [str(shared_data / "wikidata_mini" / name) for name in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv")]
    build(Workspace(whole), options=KgOptions(files=tuple(tables)))
    facts, pairs = real_graph.scored_facts(shared_data, whole), real_graph.scored_pairs(shared_data)
    assert len(facts) > 5_000 and len(pairs) > 1_000
    folder = real_graph.build_real_graph(shared_data, whole, tmp_path)
    with KgStore.open(folder) as store, KgStore.open(whole) as all_of_it:
        relations, all_relations = store.relation_keys(), all_of_it.relation_keys()
        rows = store.connection.execute(
            "SELECT h.key, t.relation, e.key FROM triples t JOIN entities h ON h.id = t.head "
            "JOIN entities e ON e.id = t.tail"
        ).fetchall()
        own = {(head, relations[relation], tail) for head, relation, tail in rows}
        held = all_of_it.connection.execute(
            "SELECT h.key, t.relation, e.key FROM triples t JOIN entities h ON h.id = t.head "
            "JOIN entities e ON e.id = t.tail"
        ).fetchall()
    assert not own & facts and not {(head, tail) for head, _, tail in own} & pairs
    there = {(head, all_relations[relation], tail) for head, relation, tail in held}
    assert there & facts, "the whole graph has such facts"


def test_the_packaged_adapter_is_small_and_loads() -> None:
    size = sum(file.stat().st_size for file in HEAD_START.iterdir())
    assert size <= LARGEST
    model = load(None)
    assert model.hops >= 2 and not any(p.requires_grad for p in model.network.encoder.parameters())


@pytest.mark.slow
@pytest.mark.parametrize(("hops", "three_hops"), [(2, 0.0), (3, train.SHARES.three_hops)])
def test_questions_are_linked_and_have_as_many_relations_as_the_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hops: int, three_hops: float
) -> None:
    twin = [f'<{X}twin> <{RDFS}label> "Norland"@en .', f"<{X}twin> <{TYPE}> <{X}city> ."]
    folder = build_graph(tmp_path, [*triples(), *twin])
    form = f"(JOIN (R <{X}capital>) <{X}c0>)"
    rows = [{"id": "a", "question": "who rules Norland", "answerable": False, "topic_entities": [f"{X}c0"]}]
    rows += [{"id": str(n), "question": "what is the capital of Norland", "s_expression": form} for n in range(30)]
    asked, learnt = [], []

    def make(store: KgStore, options: GeneratedQuestionsOptions, seed: int) -> list[dict[str, Any]]:
        asked.append(options)
        return rows

    def make_examples(parser: LabelParser, questions: list[Any], seed: int) -> tuple[list[Any], dict[str, int]]:
        learnt.extend(questions)
        return [], {}

    monkeypatch.setattr(train, "make", make)
    monkeypatch.setattr(train, "make_examples", make_examples)
    scorer = LabelScorer(untrained(1))
    for _ in range(2):  # the dictionary of names is made once
        assert train._examples(scorer, folder, 30, 7, None, hops) == []
    assert (tmp_path / "kg-mentions").is_dir()
    assert {options.shares.three_hops for options in asked} == {three_hops}
    assert {options.shares.existence for options in asked} == {0.0}
    assert learnt[: len(rows)] == learnt[len(rows) :], "equal seeds, equal links"
    meanings = [len(question.topic_entities) for question, _, _ in learnt[: len(rows)]]
    assert meanings[0] == 3 and set(meanings) == {1, 3}, "some keep their gold topics alone"
