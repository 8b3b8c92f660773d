"""What can be written under the trie of a graph is exactly its paths, whatever the weights of the model are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgqa_core.answering.exploration import ExplorerInputs
from kgqa_core.answering.explore import open_explorer
from kgqa_core.config import ConstrainedOptions, LlmOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ModelError
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.hf_constrained import constrained_beams
from kgqa_core.papers.peers.agent.operations import NamedGraph
from kgqa_core.papers.peers.constrained.explorer import ConstrainedReasoner
from kgqa_core.papers.peers.constrained.trie import GraphTrie, SegmentTokens, TrieConstraint, names_constraint
from tests.support.device import DEVICE
from tests.support.explored_graph import OpenGraph, write_explored_graph
from tests.support.models import save_causal, save_seq2seq

CAPITAL = "what is the capital of avalonia?"


class Names:
    """A store that knows names alone."""

    def __init__(self, names: list[str]) -> None:
        self.list = names

    def names(self, ids: Iterable[int]) -> dict[int, str]:
        return {entity: self.list[entity] for entity in ids}

    def entity_keys(self, ids: Iterable[int]) -> dict[int, str]:
        return {entity: f"e{entity}" for entity in ids}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> OpenGraph:
    return OpenGraph(write_explored_graph(tmp_path_factory.mktemp("explored")))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, HFModel]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "causal": HFModel(save_causal(folder / "causal", positions=512)),
        "causal of other weights": HFModel(save_causal(folder / "other", seed=5, positions=512)),
        "seq2seq": HFModel(save_seq2seq(folder / "seq2seq")),
    }


def all_written(constraint: TrieConstraint, most: int = 400) -> set[tuple[int, ...]]:
    """Every sequence that a constraint accepts."""
    found, stack = set(), [()]
    while stack:
        prefix = stack.pop()
        if constraint.accepts(prefix):
            found.add(prefix)
        if len(prefix) < most:
            stack += [(*prefix, token) for token in constraint.allowed(prefix)]
    return found


def paths_by_walking(dkg: Dkg, topics: Iterable[int], hops: int) -> list[list[tuple[int, int]]]:
    """Every path from the topics that visits no entity twice, as (topic, entities and relations in turn)."""
    found: list[Any] = []
    stack = [((topic,), ()) for topic in topics]
    while stack:
        entities, relations = stack.pop()
        if relations:
            found.append((entities, relations))
        if len(relations) == hops:
            continue
        start, stop = (int(bound) for bound in dkg.row_bounds(entities[-1]))
        for edge in range(start, stop):
            if int(dkg.tail[edge]) not in entities:
                stack.append(((*entities, int(dkg.tail[edge])), (*relations, int(dkg.rel[edge]))))
    return found


def written_path(dkg: Dkg, names: list[str], path: Any) -> str:
    entities, relations = path
    text = names[entities[0]]
    for relation, entity in zip(relations, entities[1:], strict=True):
        forward = relation < dkg.relations
        name = dkg.relation_names[relation % dkg.relations]
        text += f" -> {name} -> {names[entity]}" if forward else f" <- {name} <- {names[entity]}"
    return text


GRAPHS = st.integers(3, 6).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.sets(
            st.tuples(st.integers(0, size - 1), st.integers(0, 2), st.integers(0, size - 1)), min_size=1, max_size=10
        ),
        st.lists(st.sampled_from(["a", "b", "a b", "ab", "c a", "b c"]), min_size=size, max_size=size),
    )
)


def trie_of(
    size: int, triples: set[tuple[int, int, int]], names: list[str], model: HFModel, **options: Any
) -> GraphTrie:
    heads, relations, tails = zip(*sorted(triples), strict=True)
    dkg = Dkg.from_triples(heads, relations, tails, size, 3, relation_names=["r", "r s", "s"])
    view = NamedGraph(dkg, Names(names), 10)  # type: ignore[arg-type]
    given = {"topics": (0, 1), "hops": 2, "max_edges": 1000} | options
    return GraphTrie(view, SegmentTokens(model.tokenizer), **given)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=GRAPHS)
def test_what_the_trie_accepts_is_what_walking_the_graph_writes(models: dict[str, HFModel], drawn: Any) -> None:
    """Names that two entities share, and names that begin others, included; entities of one name are visited once."""
    size, triples, names = drawn
    model = models["causal"]
    trie = trie_of(size, triples, names, model)
    walked = paths_by_walking(trie.view.dkg, (0, 1), 2)
    texts = {written_path(trie.view.dkg, names, path) for path in walked}
    distinct = {
        written_path(trie.view.dkg, names, path)
        for path in walked
        if len({names[entity] for entity in path[0]}) == len(path[0])
    }
    accepted = {model.tokenizer.decode(list(ids)).replace("<unk>", "") for ids in all_written(trie.constraint())}
    plain = {text.replace("-", "").replace(">", "").replace("<", "") for text in texts}
    assert accepted <= plain
    assert {text.replace("-", "").replace(">", "").replace("<", "") for text in distinct} <= accepted


@pytest.mark.parametrize("triples", [{(0, 0, 0)}, {(0, 0, 1)}])
def test_topics_that_lead_only_to_themselves_begin_no_path(
    models: dict[str, HFModel], triples: set[tuple[int, int, int]]
) -> None:
    """Two topics of one name count as one."""
    assert trie_of(3, triples, ["a", "a", "a"], models["causal"]).empty
    assert not trie_of(3, {*triples, (0, 0, 2)}, ["a", "a", "b"], models["causal"]).empty


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=GRAPHS, kind=st.sampled_from(["causal", "causal of other weights", "seq2seq"]), beams=st.integers(1, 6))
def test_every_output_is_a_path_of_the_graph_whatever_the_weights(
    models: dict[str, HFModel], drawn: Any, kind: str, beams: int
) -> None:
    size, triples, names = drawn
    model = models[kind]
    trie = trie_of(size, triples, names, model)
    if trie.empty:
        return
    constraint = trie.constraint()
    found, _ = constrained_beams(model, "who?", constraint, beams, 100)
    walked = paths_by_walking(trie.view.dkg, (0, 1), 2)
    ends = {path[0][-1] for path in walked}
    edges = {tuple(row) for row in sorted(triples)}
    rows = sorted(triples)
    assert found and len(found) <= beams and len({one.ids for one in found}) == len(found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in found:
        for branch in constraint.branches(one.ids):
            used, last = trie.triples(branch)
            assert last and set(last) <= ends and used
            assert {rows[triple] for triple in used} <= edges
            assert any(
                set(path[0][1:]) <= {entity for row in (rows[t] for t in used) for entity in (row[0], row[2])}
                and path[0][-1] in last
                and len(path[1]) == branch.hop
                for path in walked
            )


def test_beam_search_with_beams_enough_returns_every_path_by_its_likelihood(
    graph: OpenGraph, models: dict[str, HFModel]
) -> None:
    """The scores are the model's own mean log-likelihoods, computed here without a beam."""
    model = models["causal"]
    view = NamedGraph(graph.dkg, graph.store, 10)
    trie = GraphTrie(view, SegmentTokens(model.tokenizer), [graph.ids["Avalonia"]], 2, 100)
    constraint = trie.constraint()
    found, read = constrained_beams(model, CAPITAL, constraint, 12, 160)
    every = all_written(constraint)
    assert {one.ids for one in found} == every and len(every) >= 3
    prompt = model.encode(CAPITAL, 160)
    assert read == len(prompt)
    for one in found:
        whole = torch.tensor([[*prompt, *one.ids, model.ends[0]]], device=DEVICE)
        with torch.no_grad():
            logs = model.model(input_ids=whole).logits[0].log_softmax(-1)
        own = [float(logs[place - 1, whole[0, place]]) for place in range(len(prompt), whole.shape[1])]
        assert one.score == pytest.approx(sum(own) / len(own), abs=1e-3)


def test_trie_grows_only_where_a_path_goes(graph: OpenGraph, models: dict[str, HFModel]) -> None:
    view = NamedGraph(graph.dkg, graph.store, 10)
    tokens = SegmentTokens(models["causal"].tokenizer)
    trie = GraphTrie(view, tokens, [graph.ids["Quelmar"]], 2, 100)
    assert len(view._names) == 1, "the sixty citizens of the hub are not looked up before a path turns to them"
    constraint = trie.constraint()
    [start] = tokens(["Quelmar"])
    state = constraint.state(start)
    assert state is not None and len(view._names) == 1
    [relation] = tokens([" <- lives in <-"])
    assert constraint.state((*start, *relation)) is not None and len(view._names) == 61


def test_edges_beyond_the_limit_are_left_out_and_counted(graph: OpenGraph, models: dict[str, HFModel]) -> None:
    view = NamedGraph(graph.dkg, graph.store, 10)
    trie = GraphTrie(view, SegmentTokens(models["causal"].tokenizer), [graph.ids["Quelmar"]], 1, 5)
    assert len(all_written(trie.constraint())) <= 5 + 3 and trie.truncated == 55


@pytest.mark.parametrize("final", ["paths", "model"])
@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_answer_is_an_end_of_a_decoded_path_and_its_triples_prove_it(
    graph: OpenGraph, models: dict[str, HFModel], final: str, kind: str
) -> None:
    view = NamedGraph(graph.dkg, graph.store, 10)
    options = ConstrainedOptions(beams=4, final=final, max_path_tokens=160)
    reasoner = ConstrainedReasoner(view, models[kind], options)
    questions = [graph.question(CAPITAL, "Avalonia"), graph.question("who?", id="q2")]
    found, empty = reasoner.explore(questions)
    assert (empty.end, empty.calls, empty.names) == ("no topic", 0, ())
    assert found.end == "answered" and found.names and len(found.steps) <= 4
    assert found.calls == (2 if final == "model" else 1) and found.prompt_tokens > 0 < found.completion_tokens
    rows = graph.store.triples(found.facts)
    ends = {entity for head, _, tail in rows.values() for entity in (head, tail)}
    keys = graph.store.entity_keys(ends)
    assert set(found.keys) <= {keys[entity] for entity in ends}
    assert reasoner.explore(questions) == [found, empty], "from the cache"


def test_second_exploration_decodes_nothing(
    graph: OpenGraph, models: dict[str, HFModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = NamedGraph(graph.dkg, graph.store, 10)
    reasoner = ConstrainedReasoner(view, models["causal"], ConstrainedOptions(max_path_tokens=160))
    asked = [graph.question(CAPITAL, "Avalonia")]
    first = reasoner.explore(asked)
    monkeypatch.setattr("kgqa_core.papers.peers.constrained.explorer.constrained_beams", None)
    assert reasoner.explore(asked) == first


def test_name_is_written_whole_where_it_begins_another(models: dict[str, HFModel]) -> None:
    tokens = SegmentTokens(models["causal"].tokenizer)
    constraint = names_constraint(tokens, {4: "new york", 5: "new york city", 6: "new york"})
    written = {ids: sorted(e for b in constraint.branches(ids) for e in b.entities) for ids in all_written(constraint)}
    assert sorted(written.values()) == [[4, 6], [5]]


def test_model_without_end_token_and_endpoint_are_refused(
    graph: OpenGraph, models: dict[str, HFModel], tmp_path: Path
) -> None:
    endless = SimpleNamespace(ends=(), name="hf:x")
    with pytest.raises(ModelError, match="'hf:x' has no end token"):
        constrained_beams(endless, "a", TrieConstraint(None), 1, 8)  # type: ignore[arg-type]
    inputs = ExplorerInputs(graph.dkg, graph.store, "openai:m", ConstrainedOptions(), LlmOptions())
    with pytest.raises(ModelError, match="masks the tokens of a local model.*write gcr:hf:MODEL"):
        open_explorer("gcr:openai:m", inputs)


def test_builtin_model_decodes_paths_too(graph: OpenGraph) -> None:
    inputs = ExplorerInputs(graph.dkg, graph.store, "builtin", ConstrainedOptions(beams=2, hops=1), LlmOptions())
    [found] = open_explorer("gcr:builtin", inputs).explore([graph.question("What is its capital?", "Avalonia")])
    assert found.names == ("Zweib",) and found.steps[0].startswith("Avalonia -> capital -> Zweib (")
