"""The unseen-relations benchmark: which relations it hides, from whom, and how its cells are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers import unseen_relations as bench
from kgqa_core.dkg.csr import Dkg


def test_a_share_of_the_relations_that_questions_use_is_sampled_with_the_seed(world: Any) -> None:
    assert bench.draw(world.questions, 0.5, 7) == bench.draw(world.questions[::-1], 0.5, 7)
    assert len(bench.draw(world.questions, 0.5, 7)) == 1
    assert bench.draw(world.questions, 1.0, 7) == ["capital", "currency"]


def test_a_question_is_unseen_when_its_path_has_a_held_out_relation_in_either_direction(world: Any) -> None:
    paths = {question.relation_paths for question in world.questions if bench.unseen(question, ["capital"])}
    assert paths == {(("capital",),), (("<inv>-capital", "currency"),)}


def test_the_graph_without_a_relation_keeps_the_other_triples_and_all_entities(world: Any, tmp_path: Path) -> None:
    bench.without(world.dkg, ["capital"], tmp_path / "small")
    small = Dkg.open(tmp_path / "small")
    assert small.relation_keys == ["currency", "neighbour", "<inv>-currency", "<inv>-neighbour"]
    assert small.entities == world.dkg.entities
    keys = [
        {(head, dkg.relation_keys[relation], tail) for head, relation, tail in zip(*edges, strict=True)}
        for dkg in (world.dkg, small)
        for edges in [[column.tolist() for column in dkg.edges(np.arange(dkg.triples))]]
    ]
    assert keys[1] == {fact for fact in keys[0] if fact[1] != "capital"}


def test_a_cell_replaces_its_earlier_figure_and_leaves_the_others(tmp_path: Path) -> None:
    cell = {"dataset": "zjqa", "holdout": 0.1, "decoder": "label", "seed": 7, "test": 1}
    for own in (cell, cell | {"decoder": "layer"}, cell | {"test": 2}):
        bench.put(tmp_path / "results" / "out.json", own)
    cells = json.loads((tmp_path / "results" / "out.json").read_text())["cells"]
    assert [(own["decoder"], own["test"]) for own in cells] == [("label", 2), ("layer", 1)]
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["out.json"]
