"""KAPING: which triples are compared, that a vector depends on its text alone, and that nothing is encoded twice."""

from __future__ import annotations

import doctest
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from transformers import BertConfig, BertModel

from kgqa_core.config import KapingOptions, KgOptions, RetrievalOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.errors import ArtifactError, ModelError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.nn import sentence_encoder as kaping_encoder
from kgqa_core.nn import vectors
from kgqa_core.nn.sentence_encoder import CachedEncoder, SentenceEncoder
from kgqa_core.nn.vectors import ONE, VectorStore, dots, fixed_point
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.kaping import retriever as kaping
from kgqa_core.retrieval.kaping.retriever import Kaping, neighbourhood, triple_sentences
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.models import save_tokenizer

GRAPH = """\
France\tcapital\tParis
France\tcurrency\tEuro
France\tborders\tSpain
Spain\tcapital\tMadrid
Spain\tcurrency\tEuro
Paris\tlies_on\tSeine
Anna\tborn_in\tParis
Anna\tmarriage\tm.0abc12
m.0abc12\tspouse\tBert
Bert\tborn_in\tMadrid
"""
TEXTS = (
    "Paris", "France capital Paris", "what is the capital of France", "which money is used in Spain and in Portugal",
    "Anna born in Paris", "x " * 200, "a rather long text that has some more words than all of the others", "é", "",
)  # fmt: skip


class Graph:
    """The graph above as store and DKG."""

    def __init__(self, folder: Path) -> None:
        self.kg, self.dkg_folder, self.questions_folder = (folder / name for name in ("kg", "dkg", "questions"))
        for part in (self.kg, self.dkg_folder, self.questions_folder):
            part.mkdir(parents=True)
        (folder / "graph.tsv").write_text(GRAPH, encoding="utf-8")
        build(Workspace(self.kg), options=KgOptions(files=(str(folder / "graph.tsv"),)))
        export(Workspace(self.dkg_folder), kg=self.kg)
        self.dkg = Dkg.open(self.dkg_folder)
        with KgStore.open(self.kg) as store:
            self.names = store.names(range(self.dkg.entities))
        self.ids = {name: i for i, name in self.names.items()}
        self.questions = [
            self.ask("q1", "What is the capital of France?", "France", "Paris"),
            self.ask("q2", "Which money is used in France?", "France", "Euro"),
            self.ask("q3", "Who was born in Paris?", "Paris", "Anna"),
            self.ask("q4", "On which river does Paris lie?", "France", "Seine"),
        ]
        write_questions(self.questions_folder, self.questions)

    def ask(self, name: str, text: str, topic: str, answer: str) -> Question:
        """A test question with one topic and one answer."""
        return Question(name, text, topic_entities=(self.ids[topic],), answers=(self.ids[answer],))

    def names_of(self, triples: Sequence[int]) -> list[tuple[str, ...]]:
        """(head, relation, tail) by name."""
        heads, relations, tails = self.dkg.edges(triples)
        return [
            (self.names[h], self.dkg.relation_keys[r], self.names[t])
            for h, r, t in zip(heads.tolist(), relations.tolist(), tails.tolist(), strict=True)
        ]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return Graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder("minilm")


def tiny_encoder(folder: Path, seed: int) -> Path:
    """A BERT of one layer with random weights."""
    size = save_tokenizer(folder)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return folder


class Listener:
    """Counts what was encoded, and interrupts after so many reports of it."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at, self.encoded, self.notes = stop_at, 0, list[str]()

    def progress(self, done: float, total: float | None, what: str) -> None:
        if what == "texts encoded":
            self.encoded += 1
            if self.encoded == self.stop_at:
                raise KeyboardInterrupt

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        raise AssertionError("retrieval measures nothing as it goes")

    def note(self, message: str) -> None:
        self.notes.append(message)


def test_doctests() -> None:
    for module in (kaping, vectors):
        assert doctest.testmod(module, extraglobs={"np": np}).failed == 0


# -- neighbourhoods --------------------------------------------------------------------------------------------


def by_hand(dkg: Dkg, topics: set[int], hops: int) -> dict[int, tuple[int, set[int]]]:
    """Triple → nearest hop, and the ends that a step of that hop leads to."""
    heads, _, tails = (column.tolist() for column in dkg.edges(range(dkg.triples)))
    found: dict[int, tuple[int, set[int]]] = {}
    frontier = topics
    for hop in range(1, hops + 1):
        new: dict[int, set[int]] = {}
        for triple, (head, tail) in enumerate(zip(heads, tails, strict=True)):
            ends = {tail} if head in frontier else set()
            ends |= {head} if tail in frontier else set()
            if ends and triple not in found:
                new[triple] = ends
        found |= {triple: (hop, ends) for triple, ends in new.items()}
        frontier = {end for ends in new.values() for end in ends} - topics
    return found


@pytest.mark.parametrize("seed", range(8))
def test_neighbourhood_is_every_triple_within_the_hops_at_its_nearest_one(seed: int) -> None:
    draw = random.Random(seed)
    triples = {(draw.randrange(30), draw.randrange(3), draw.randrange(30)) for _ in range(40)}
    heads, relations, tails = zip(*sorted(triples), strict=True)
    dkg = Dkg.from_triples(heads, relations, tails, 30, 3)
    for topics in ([4], [1, 9], [9, 1, 1]):
        for hops in (1, 2):
            near = neighbourhood(dkg, topics, hops=hops, most=1000, edge_budget=1000)
            found: dict[int, tuple[int, set[int]]] = {}
            for triple, hop, target in zip(near.triple.tolist(), near.hop.tolist(), near.target.tolist(), strict=True):
                found.setdefault(triple, (hop, set()))[1].add(target)
            assert found == by_hand(dkg, set(topics), hops)
            assert near.cut == 0


def test_neighbourhood_is_cut_by_hop_then_id_and_says_how_much_is_missing() -> None:
    leaves = 10  # topic 0, leaves 1..10, each with one more node behind it
    heads = [0] * leaves + list(range(1, leaves + 1))
    dkg = Dkg.from_triples(heads, [0] * 2 * leaves, range(1, 2 * leaves + 1), 2 * leaves + 1, 1)
    near = neighbourhood(dkg, [0], hops=2, most=13, edge_budget=1000)
    assert near.triple.tolist() == list(range(13)) and near.cut == 7
    assert near.hop.tolist() == [1] * 10 + [2] * 3
    near = neighbourhood(dkg, [0], hops=2, most=4, edge_budget=1000)
    assert near.triple.tolist() == [0, 1, 2, 3]
    assert near.cut == 6 + 20  # six triples, and all edges of the leaves unread
    near = neighbourhood(dkg, [0], hops=2, most=1000, edge_budget=10)
    assert near.triple.tolist() == [*range(10), *range(10, 15)]  # ten edges of five leaves, half of them back
    assert near.cut == 10


def test_relation_that_leads_to_thousands_crowds_out_no_other() -> None:
    heads = [*range(1, 1000), 1000, 1000]  # all of 1..999 lie in 1000, which has a capital and a currency
    dkg = Dkg.from_triples(heads, [0] * 999 + [1, 2], [1000] * 999 + [5, 1001], 1002, 3)
    near = neighbourhood(dkg, [1000], hops=1, most=4, edge_budget=5000)
    assert near.triple.tolist() == [0, 1, 999, 1000] and near.cut == 997
    assert neighbourhood(dkg, [1000], hops=1, most=2, edge_budget=5000).triple.tolist() == [0, 999]


def test_nodes_without_name_have_one_text_and_readable_keys_stay(graph: Graph) -> None:
    marriage = [i for i in range(graph.dkg.triples) if "m.0abc12" in graph.names_of([i])[0]]
    with KgStore.open(graph.kg) as store:
        assert triple_sentences(store, marriage) == ["(Anna, marriage, CVT)", "(CVT, spouse, Bert)"]
        place = graph.names_of(range(10)).index(("Paris", "lies_on", "Seine"))
        assert triple_sentences(store, [place]) == ["(Paris, lies on, Seine)"]


# -- vectors ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_vector_of_a_text_has_the_same_bits_alone_and_among_others(encoder: SentenceEncoder) -> None:
    together = encoder.encode(TEXTS)
    assert np.array_equal(together, np.concatenate([encoder.encode([text]) for text in TEXTS]))
    assert np.array_equal(together[::-1], encoder.encode(TEXTS[::-1]))
    many = encoder.encode([*TEXTS, *(f"{text} {number}" for text in TEXTS for number in range(40))])
    assert np.array_equal(together, many[: len(TEXTS)])
    lengths = np.sqrt(np.diagonal(dots(together, together))) / ONE
    assert np.abs(lengths - 1).max() < 1e-3


def test_dot_products_are_exact_in_any_order() -> None:
    draw = np.random.default_rng(3)
    rows, columns = (draw.integers(-ONE, ONE, (n, 384), dtype=np.int16, endpoint=True) for n in (9000, 3))
    exact = rows.astype(np.int64) @ columns.astype(np.int64).T
    assert np.array_equal(dots(rows, columns), exact)
    order = draw.permutation(384)
    assert np.array_equal(dots(rows[:, order], columns[:, order]), exact)
    assert dots(rows[:0], columns).shape == (0, 3)


def test_stored_vectors_belong_to_one_encoder_and_come_back_as_they_were(tmp_path: Path) -> None:
    stored = fixed_point(np.random.default_rng(1).uniform(-1, 1, (5, 8)))
    texts = ["a", "b", "c", "d", "e"]
    with VectorStore(tmp_path / "new" / "v.sqlite", "one", 8) as store:
        store.put(texts[:3], stored[:3])
        store.put(texts[2:4], stored[3:])  # `c` is there already and stays
    with VectorStore(tmp_path / "new" / "v.sqlite", "one", 8) as store:
        found, known = store.get(texts)
        assert known.tolist() == [True, True, True, True, False]
        assert np.array_equal(found[:4], stored[[0, 1, 2, 4]])
    with VectorStore(tmp_path / "new" / "v.sqlite", "two", 8) as store:
        assert not store.get(texts)[1].any() and len(store) == 0
    with VectorStore(tmp_path / "new" / "v.sqlite", "one", 16) as store:
        assert not store.get(texts)[1].any()


def test_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "v.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(ArtifactError, match=r"v\.sqlite is no store of vectors.*delete it"):
        VectorStore(tmp_path / "v.sqlite", "one", 8)


FILL = """
import sys, pathlib, numpy
from kgqa_core.nn.vectors import VectorStore
with VectorStore(pathlib.Path(sys.argv[1]), "one", 8) as store:
    for start in range(0, 200, 10):
        store.put([f"t{place}" for place in range(start, start + 15)], numpy.full((15, 8), int(sys.argv[2]), "i2"))
"""


def test_several_processes_fill_one_store(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    workers = [subprocess.Popen([sys.executable, "-c", FILL, str(path), str(number)]) for number in (7, 8, 9)]
    assert [worker.wait(300) for worker in workers] == [0, 0, 0]
    with VectorStore(path, "one", 8) as store:
        assert len(store) == 205
        found, known = store.get([f"t{place}" for place in range(205)])
    assert known.all() and set(found[:, 0].tolist()) <= {7, 8, 9}


@pytest.mark.slow
def test_killed_encoding_goes_on_where_it_was(
    encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kaping_encoder, "STORED", 2)
    texts = TEXTS[:7]
    with VectorStore(tmp_path / "v.sqlite", encoder.digest, encoder.width) as store, pytest.raises(KeyboardInterrupt):
        CachedEncoder(encoder, store).vectors(texts, Listener(stop_at=2))
    with VectorStore(tmp_path / "v.sqlite", encoder.digest, encoder.width) as store:
        cached = CachedEncoder(encoder, store)
        assert np.array_equal(cached.vectors(texts), encoder.encode(texts))
        assert cached.encoded == 3
        assert np.array_equal(cached.vectors(texts), encoder.encode(texts))
        assert cached.encoded == 3


def test_digest_tells_weights_apart(tmp_path: Path) -> None:
    one, same, other = (
        SentenceEncoder(str(tiny_encoder(tmp_path / name, seed))) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one.digest == same.digest != other.digest
    assert np.array_equal(one.encode(["paris"]), same.encode(["paris"]))
    assert not np.array_equal(one.encode(["paris"]), other.encode(["paris"]))


# -- retrieval -------------------------------------------------------------------------------------------------


def test_the_most_similar_triples_come_first_and_entities_are_their_far_ends(graph: Graph) -> None:
    found = Kaping(graph.dkg, KapingOptions(), RetrievalOptions(k=3), graph.kg).retrieve(graph.questions)
    assert graph.names_of([row.facts[0].triple for row in found[:3]]) == [
        ("France", "capital", "Paris"), ("France", "currency", "Euro"), ("Anna", "born_in", "Paris"),
    ]  # fmt: skip
    assert [row.entities[0][0] for row in found] == [row.answers[0] for row in graph.questions]
    assert [found[2].facts[0].direction, found[3].facts[0].direction] == [-1, 1]
    assert found[3].facts[0].hop == 2
    for row, question in zip(found, graph.questions, strict=True):
        assert [fact.rank for fact in row.facts] == [0, 1, 2]
        assert [fact.score for fact in row.facts] == sorted((fact.score for fact in row.facts), reverse=True)
        assert 0 < row.facts[2].score < row.facts[0].score <= 1
        assert all(fact.path == -1 for fact in row.facts)
        assert question.topic_entities[0] not in {entity for entity, _ in row.entities}
        assert row.entities[0][1] == row.facts[0].score and row.truncated == 0


def test_hops_candidates_and_cut_follow_the_options(graph: Graph) -> None:
    question = graph.questions[:1]
    options = RetrievalOptions(k=50, candidates=2)
    near = Kaping(graph.dkg, KapingOptions(hops=1), options, graph.kg).retrieve(question)[0]
    assert {fact.hop for fact in near.facts} == {1} and len(near.facts) == 3 and len(near.entities) == 2
    cut = Kaping(graph.dkg, KapingOptions(max_triples=4), RetrievalOptions(), graph.kg).retrieve(question)[0]
    whole = Kaping(graph.dkg, KapingOptions(), RetrievalOptions(), graph.kg).retrieve(question)[0]
    assert len(cut.facts) == 4 and cut.truncated == len(whole.facts) - 4


def test_question_without_topic_or_with_a_lonely_one_has_no_facts(graph: Graph) -> None:
    unlinked = Question("none", "Who?")
    assert Kaping(graph.dkg, KapingOptions(), RetrievalOptions(), graph.kg).retrieve([unlinked])[0].facts == ()
    found = Kaping(graph.dkg, KapingOptions(), RetrievalOptions(), graph.kg).retrieve([unlinked, *graph.questions])
    assert found[0].facts == () and found[0].entities == () and found[1].facts


def test_equal_scores_stand_in_order_of_id(tmp_path: Path) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    rows = [f'<http://x/t> <http://x/has> <http://x/e{i}> .\n<http://x/e{i}> {label} "same"@en .\n' for i in range(6)]
    (tmp_path / "graph.nt").write_text("".join(rows), encoding="utf-8")
    for part in ("kg", "dkg"):
        (tmp_path / part).mkdir()
    build(Workspace(tmp_path / "kg"), options=KgOptions(files=(str(tmp_path / "graph.nt"),)))
    export(Workspace(tmp_path / "dkg"), kg=tmp_path / "kg")
    with KgStore.open(tmp_path / "kg") as store:
        [topic] = store.resolve(["http://x/t"])["http://x/t"]
    options = RetrievalOptions(k=4, candidates=3)
    [row] = Kaping(Dkg.open(tmp_path / "dkg"), KapingOptions(), options, tmp_path / "kg").retrieve(
        [Question("q", "what has t", topic_entities=(topic,))]
    )
    assert len({fact.score for fact in row.facts}) == 1
    assert [fact.triple for fact in row.facts] == [0, 1, 2, 3]
    ids = [entity for entity, _ in row.entities]
    assert ids == sorted(ids) and len(ids) == 3


@pytest.mark.slow
def test_result_depends_on_no_other_question_nor_on_how_the_work_is_cut(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = KapingOptions(), RetrievalOptions(k=3)
    whole = Kaping(graph.dkg, *options, graph.kg).retrieve(graph.questions)
    assert [Kaping(graph.dkg, *options, graph.kg).retrieve([q])[0] for q in graph.questions] == whole
    monkeypatch.setattr(kaping, "CHUNK", 1)
    monkeypatch.setattr(kaping, "HELD", 1)
    monkeypatch.setattr(vectors, "_ROWS", 2)
    assert Kaping(graph.dkg, *options, graph.kg, tmp_path).retrieve(graph.questions[::-1])[::-1] == whole


@pytest.mark.slow
def test_collected_bytes_are_the_same_cold_warm_and_after_a_kill(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kaping_encoder, "STORED", 3)

    def run(name: str, cache: Path | None, listener: Listener) -> dict[str, bytes]:
        (tmp_path / name).mkdir()
        counts = collect(
            Workspace(tmp_path / name, cache=cache, monitor=listener),
            graph.questions_folder,
            "kaping",
            RetrieverInputs(graph.dkg, RetrievalOptions(k=3), 1, kg=graph.kg),
        )
        assert counts["hits_at_1"]["test"] == 1.0
        return {path.name: path.read_bytes() for path in sorted((tmp_path / name).iterdir())}

    cold, warm = Listener(), Listener()
    without = run("without", None, Listener())
    assert run("cold", tmp_path / "cache", cold) == without
    assert run("warm", tmp_path / "cache", warm) == without
    assert cold.encoded > 2 and warm.encoded == 0
    with pytest.raises(KeyboardInterrupt):
        run("killed", tmp_path / "other", Listener(stop_at=cold.encoded - 1))
    rest = Listener()
    assert run("resumed", tmp_path / "other", rest) == without
    assert rest.encoded == 1
    facts = pl.read_parquet(tmp_path / "warm" / "facts.parquet")
    assert facts["retriever"].unique().to_list() == ["kaping"] and facts.height == 12
    assert not (tmp_path / "warm" / "paths.parquet").exists()


def test_cut_short_says_which_option_to_raise(graph: Graph, tmp_path: Path) -> None:
    listener = Listener()
    collect(
        Workspace(tmp_path, monitor=listener),
        graph.questions_folder,
        "kaping",
        RetrieverInputs(graph.dkg, RetrievalOptions(), 1, section=KapingOptions(max_triples=2), kg=graph.kg),
    )
    assert any("kaping.max_triples " in note and "4 questions short" in note for note in listener.notes)


def test_unknown_script_is_reported(graph: Graph, tmp_path: Path) -> None:
    listener = Listener()
    question = replace(graph.questions[0], text="ΩΩΩ ☃☃☃ 🀄🀄 🀐🀐")
    options = KapingOptions(encoder=str(tiny_encoder(tmp_path / "tiny", 1)))
    Kaping(graph.dkg, options, RetrievalOptions(), graph.kg).retrieve([question], listener)
    assert any("does not know" in note and "set kaping.encoder" in note for note in listener.notes)


def test_what_is_missing_is_named(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="'kaping' reads the names"):
        Kaping(graph.dkg, KapingOptions(), RetrievalOptions(), None)
    for name, message in (("scratch", "trains no encoder"), (str(tmp_path), r"kaping\.encoder .* no model")):
        with pytest.raises(ModelError, match=message):
            Kaping(graph.dkg, KapingOptions(encoder=name), RetrievalOptions(), graph.kg).retrieve(graph.questions)
