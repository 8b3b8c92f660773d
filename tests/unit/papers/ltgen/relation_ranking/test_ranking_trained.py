"""The trained rankers: what they learn from, that AMR graphs reach the answer, and that a killed training goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from kgqa_core.config import RelationRankingOptions, RetrievalOptions
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError, ConfigError, InputError, TrainingError
from kgqa_core.papers.ltgen.relation_ranking import amr_source
from kgqa_core.papers.ltgen.relation_ranking import trained as trained_rankers
from kgqa_core.papers.ltgen.relation_ranking.amr import AmrGraph, Triple
from kgqa_core.papers.ltgen.relation_ranking.network import AmrNetwork
from kgqa_core.papers.ltgen.relation_ranking.ranker import RankingQuery
from kgqa_core.papers.ltgen.relation_ranking.train import fit, measure, train
from kgqa_core.papers.ltgen.relation_ranking.trained import (
    PairRanker,
    TrainedRanker,
    load,
    open_trained,
    pair_text,
    read_pairs,
)
from kgqa_core.papers.ltgen.relation_ranking.training_examples import (
    LinkedEntity,
    LinkingSet,
    RankingExample,
    examples_of_linking,
    examples_of_questions,
    gold_relations,
    make_example,
    read_line,
    read_linking,
)
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import Listener, content, runner

OPTIONS = RelationRankingOptions(
    encoder="scratch", scratch_width=32, heads=2, epochs=12, patience=12, learning_rate=5e-3, negatives=3,
    device=DEVICE, relations=1,
)  # fmt: skip
QUICK = OPTIONS.model_copy(update={"epochs": 2, "scratch_width": 16})
CAPITAL, MONEY = "what is the capital of it", "how do people pay there"
GRAPHS = {
    CAPITAL: AmrGraph(("capital", "ARG1", "country"), (0, 2, 0), ((0, 1), (1, 2))),
    MONEY: AmrGraph(("pay", "ARG3", "currency", "location", "country"), (0, 2, 0, 2, 0),
                    ((0, 1), (1, 2), (0, 3), (3, 4))),
}  # fmt: skip
RELATIONS = ("capital", "currency", "neighbour", "<inv>-neighbour")
EXAMPLES = [
    RankingExample(question, f"Land {number}", RELATIONS, (place,))
    for number in range(8)
    for question, place in ((CAPITAL, 0), (MONEY, 1))
]
run = runner(train, OPTIONS)


def read_json(penman: str) -> list[Triple]:
    """A reader that takes triples as JSON where PENMAN would stand."""
    try:
        return [(source, role, target) for source, role, target in json.loads(penman)]
    except ValueError as fault:
        raise InputError(f"no graph: {fault}") from None


@pytest.fixture
def graph_file(world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Graphs of all questions of the small world but those on capitals of the test split."""
    monkeypatch.setattr(amr_source, "read_penman", read_json)
    graphs = {}
    for question in read_questions(world.questions_folder):
        if question.split != "test" or question.relation_paths != (("capital",),):
            words = question.text.split()
            links = [("w0", f":op{number}", word) for number, word in enumerate(words[1:], start=1)]
            graphs[question.text] = json.dumps([("w0", ":instance", words[0]), *links])
    path = tmp_path / "graphs.json"
    path.write_text(json.dumps(graphs), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "ranker"
    counts = run(world, folder)
    assert counts["pair"]["dev_recall"] > 0.5  # chance is 0.44: a quarter of the questions have one candidate
    assert counts["lessons"]["train"] > 0 and counts["amr_graphs"] == 0 and "amr" not in counts
    return folder


def test_a_pair_is_written_as_in_the_paper() -> None:
    assert pair_text(("Who?", "Skype", "owner")) == "[TEXT] Who? [ENT] Skype [REL] owner"


LONG = OPTIONS.model_copy(update={"epochs": 40, "patience": 40, "learning_rate": 1e-2})


@pytest.mark.slow
def test_the_graph_tells_which_relation_a_question_asks_for() -> None:
    fitted = fit(Workspace(Path()), EXAMPLES, EXAMPLES[:4], LONG, 7, "amr", graphs=GRAPHS)
    assert measure(fitted.trained, EXAMPLES, 1, GRAPHS)["recall"] == 1.0
    loss = measure(fitted.trained, EXAMPLES, 1, GRAPHS)["loss"]
    assert measure(fitted.trained, EXAMPLES, 1, {CAPITAL: GRAPHS[MONEY], MONEY: GRAPHS[CAPITAL]})["loss"] > loss


def test_the_pair_encoder_learns_which_relations_a_question_needs() -> None:
    fitted = fit(Workspace(Path()), EXAMPLES, EXAMPLES[:4], LONG, 7)
    assert measure(fitted.trained, EXAMPLES, 2)["recall"] == 1.0  # two of four; chance is a half
    untrained = fit(Workspace(Path()), EXAMPLES, [], QUICK.model_copy(update={"learning_rate": 1e-9}), 7)
    assert measure(untrained.trained, EXAMPLES, 2)["loss"] > measure(fitted.trained, EXAMPLES, 2)["loss"]


def amr_ranker() -> TrainedRanker:
    return fit(Workspace(Path()), EXAMPLES, [], QUICK, 7, "amr", graphs=GRAPHS).trained


def test_the_gradient_of_the_answer_reaches_every_part_of_the_graph_network() -> None:
    trained = amr_ranker()
    network = trained.network
    assert isinstance(network, AmrNetwork)
    network.train().zero_grad(set_to_none=True)
    own = [(CAPITAL, "Land 1", "capital"), (MONEY, "Land 1", "capital"), (MONEY, "Land 1", "currency")]
    logits = trained.logits(read_pairs(trained.reader, own), [question for question, _, _ in own], GRAPHS)
    wanted = torch.tensor([1.0, 0.0, 1.0], device=DEVICE)
    torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted).backward()
    for part in (network.gat, network.enter, network.attention, network.score, network.encoder):
        gradients = [parameter.grad for parameter in part.parameters()]
        assert any(gradient is not None and float(gradient.abs().sum()) > 0 for gradient in gradients)
    for layer in network.gat:  # the attention itself, not only its values
        assert float(layer.att_src.grad.abs().sum()) > 0 and float(layer.att_dst.grad.abs().sum()) > 0


def test_a_pair_asks_its_own_question_s_graph_alone() -> None:
    trained = amr_ranker()
    one, other = (CAPITAL, "Land 1", "capital"), (MONEY, "Land 1", "capital")
    together = trained.scores([one, other], GRAPHS)
    assert trained.scores([one], GRAPHS)[0] == pytest.approx(together[0], abs=1e-5)
    changed = GRAPHS | {MONEY: GRAPHS[CAPITAL]}
    again = trained.scores([one, other], changed)
    assert again[0] == pytest.approx(together[0], abs=1e-5)
    assert abs(again[1] - together[1]) > 1e-4


def test_the_edges_of_a_graph_matter() -> None:
    trained = amr_ranker()
    bare = GRAPHS | {MONEY: replace(GRAPHS[MONEY], edges=())}
    own = [(MONEY, "Land 1", "currency")]
    assert abs(trained.scores(own, bare)[0] - trained.scores(own, GRAPHS)[0]) > 1e-6


def test_a_long_question_gives_way_to_entity_and_relation() -> None:
    trained = fit(Workspace(Path()), EXAMPLES, [], QUICK, 7).trained
    reader = replace(trained.reader, max_tokens=24)
    entity_and_relation = read_pairs(trained.reader, [("", "Land 1", "currency")])[0]
    [row] = read_pairs(reader, [("how do people pay there " * 20, "Land 1", "currency")])
    assert len(row) <= 24 and row[-6:] == entity_and_relation[-6:]
    assert read_pairs(reader, [("how", "Land 1", "currency")]) == read_pairs(
        trained.reader, [("how", "Land 1", "currency")]
    )


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match="heads 3 does not divide the encoder's width 16"):
        fit(Workspace(Path()), EXAMPLES, [], QUICK.model_copy(update={"heads": 3}), 7, "amr", graphs=GRAPHS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pair", "amr"])
def test_a_killed_training_goes_on_and_ends_with_the_same_bits(kind: Any, tmp_path: Path) -> None:
    options = QUICK.model_copy(update={"epochs": 3, "batch_size": 4, "checkpoint_seconds": 1e-9})
    whole = fit(Workspace(Path()), EXAMPLES, EXAMPLES[:4], options, 7, kind, graphs=GRAPHS)
    for stop in (2, 7):
        with pytest.raises(KeyboardInterrupt):
            fit(
                Workspace(tmp_path, tmp_path, monitor=Listener(stop)),
                EXAMPLES,
                EXAMPLES[:4],
                options,
                7,
                kind,
                graphs=GRAPHS,
            )
    listener = Listener()
    resumed = fit(
        Workspace(tmp_path, tmp_path, monitor=listener), EXAMPLES, EXAMPLES[:4], options, 7, kind, graphs=GRAPHS
    )
    assert "goes on from its checkpoint" in listener.notes[0] and listener.steps[0] > 1
    assert resumed.progress.curve == whole.progress.curve
    weights = whole.trained.network.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in resumed.trained.network.state_dict().items())


def test_negatives_are_sampled_anew_in_every_pass_and_are_never_gold() -> None:
    from kgqa_core.papers.ltgen.relation_ranking.train import _ExamplePairs

    examples = [RankingExample("q", "e", tuple(f"r{number}" for number in range(20)), (3, 7)) for _ in range(3)]
    own = _ExamplePairs(fit(Workspace(Path()), EXAMPLES, [], QUICK, 7).trained, examples, {})
    passes = [own.order(2, 4, 7, epoch) for epoch in (0, 1, 0)]
    assert [len(batch) for batch in passes[0]] == [12, 6]
    for order in passes:
        numbers = sorted(number for batch in order for number in batch.tolist())
        assert len(set(numbers)) == 18
        assert {3, 7, 23, 27, 43, 47} <= set(numbers)
    assert [batch.tolist() for batch in passes[0]] == [batch.tolist() for batch in passes[2]]
    assert [batch.tolist() for batch in passes[0]] != [batch.tolist() for batch in passes[1]]


@pytest.mark.slow
def test_training_twice_gives_the_same_files(world: Any, graph_file: Path, tmp_path: Path) -> None:
    options = QUICK.model_copy(update={"amr_graphs": str(graph_file), "epochs": 1})
    counts = [run(world, tmp_path / name, options, cache=tmp_path / "cache") for name in ("one", "two")]
    assert counts[0] == counts[1] and counts[0]["amr"]["lessons"] == counts[0]["lessons"]
    for ranker in ("pair", "amr"):
        assert content(tmp_path / "one" / ranker) == content(tmp_path / "two" / ranker)
        assert sorted(content(tmp_path / "one" / ranker)) == [
            "config.json", "curves.parquet", "model.safetensors", "tokenizer.json",
        ]  # fmt: skip


def test_gold_relations_are_the_first_of_gold_paths_and_those_of_gold_triples() -> None:
    dkg = Dkg.from_triples([0, 0, 1], [0, 1, 0], [1, 2, 2], 3, ("near", "of"))
    question = Question(
        "q", "?", topic_keys=("a", "b"), topic_entities=(0, 1), relation_paths=(("near", "near"),),
        gold_triples=(("a", "of", "c"), ("a", "near", "b"), ("x", "near", "y")),
    )  # fmt: skip
    assert gold_relations(question, dkg) == {0: {0, 1}, 1: {2}}


def test_lessons_of_questions_count_what_they_leave_out(world: Any) -> None:
    questions = [question for question in world.questions if question.split == "train"]
    examples, counts = examples_of_questions([*questions, Question("bare", "who?")], world.dkg, None, 200)
    assert counts == {
        "questions": len(questions) + 1, "annotated": len(questions), "lessons": len(questions), "lost": 0,
    }  # fmt: skip
    first = examples[0]
    assert first.entity == "Land 0" and first.relations == ("capital", "currency", "neighbour", "<inv>-neighbour")
    assert [first.relations[place] for place in first.gold] == ["capital"]
    few, cut = examples_of_questions(questions, world.dkg, None, 1)
    assert cut["lost"] > 0 and cut["lost"] + len(few) == len(questions)


def test_relations_of_equal_words_are_one_in_a_lesson() -> None:
    assert make_example("q", "e", ["a", "b", "a"], ["a"]) == RankingExample("q", "e", ("a", "b"), (0,))
    assert make_example("q", "e", ["a"], ["b"]) is None


def test_relation_linking_is_read_with_what_has_no_entity_counted(tmp_path: Path) -> None:
    source = (
        "Who leads [?] it? [Berlin | City | leader, area, leader] [Al Gore, 2000 | Office | incumbent] [Bare | X | ]"
    )
    own, unlinked = read_line("1", source, "[Berlin | leader] [Berlin | mayor] [What | name] [Al Gore, 2000 | x]")
    assert own == [
        LinkedEntity("1", "Who leads [?] it?", "Berlin", ("area", "leader"), frozenset({"leader", "mayor"})),
        LinkedEntity("1", "Who leads [?] it?", "Al Gore, 2000", ("incumbent",), frozenset({"x"})),
    ]
    assert unlinked == 1
    path = tmp_path / "set.json"
    row = {"q_id": 1, "source": source, "target": "[Berlin | leader] [Berlin | mayor] [What | name]"}
    path.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    assert read_linking(path).counts == {"questions": 1, "entities": 2, "gold": 2, "no_candidate": 1, "unlinked": 1}
    path.write_text(json.dumps(row) + "\n{}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2 is no JSON with q_id"):
        read_linking(path)


def test_a_tenth_of_a_relation_linking_set_is_held_out_by_question() -> None:
    linked = tuple(LinkedEntity(str(n // 2), f"q{n // 2}", f"e{n}", ("a", "b"), frozenset({"a"})) for n in range(40))
    learning, developing = examples_of_linking(LinkingSet(linked, {}), 7)
    assert len(learning) == 36 and len(developing) == 4
    assert not {one.question for one in learning} & {one.question for one in developing}


@pytest.mark.slow
def test_relation_linking_files_are_learnt_from_beside_questions(world: Any, tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    rows = [
        {"q_id": n, "source": f"Who made {n}? [T{n} | X | maker, age]", "target": f"[T{n} | maker]"} for n in range(20)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options = QUICK.model_copy(update={"training_sets": (str(path),), "epochs": 1})
    counts = run(world, tmp_path / "both", options)
    alone = run(world, tmp_path / "alone", options.model_copy(update={"training_sets": ()}))
    assert counts["lessons"]["train"] == alone["lessons"]["train"] + 18
    assert counts["lessons"]["dev"] == alone["lessons"]["dev"] + 2
    assert counts["from"]["training_set_0"]["leaked"] == 0


@pytest.mark.slow
def test_training_sets_teach_no_dev_or_test_question(world: Any, tmp_path: Path) -> None:
    held = next(question for question in world.questions if question.split == "test")
    rows = [
        {"q_id": n, "source": f" {text}  [T{n} | X | maker, age]", "target": f"[T{n} | maker]"}
        for n, text in enumerate([held.text, "Who made it?", "And when?"])
    ]
    path = tmp_path / "set.json"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    counts = run(world, tmp_path / "out", QUICK.model_copy(update={"training_sets": (str(path),), "epochs": 1}))
    assert counts["from"]["training_set_0"]["leaked"] == 1
    learnt = sum(counts["from"][split]["lessons"] for split in ("train", "dev"))
    assert sum(counts["lessons"].values()) == learnt + 2


def test_questions_without_annotation_cannot_be_learnt_from(world: Any, tmp_path: Path) -> None:
    bare = [replace(question, relation_paths=()) for question in world.questions]
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", bare)
    with pytest.raises(TrainingError, match="relation_ranking.training_sets"):
        run(world, tmp_path / "out", OPTIONS, questions=tmp_path / "questions")


def test_the_trained_ranker_collects_facts_and_the_pairs_behind_them(world: Any, trained: Path, tmp_path: Path) -> None:
    counts = collect(
        Workspace(tmp_path),
        world.questions_folder,
        "rank_pair",
        RetrieverInputs(world.dkg, RetrievalOptions(), 7, section=OPTIONS, trained=trained),
    )
    pairs_kept = pl.read_parquet(tmp_path / "relations.parquet")
    questions = {question.id: question for question in world.questions if question.split != "train"}
    right = sum(
        row["relation"] == questions[row["question"]].relation_paths[0][0] for row in pairs_kept.iter_rows(named=True)
    )
    assert pairs_kept.height == len(questions) and right / len(questions) > 0.5
    facts = pl.read_parquet(tmp_path / "facts.parquet")
    assert set(facts["retriever"]) == {"rank_pair"} and counts["without_facts"] == 0
    assert facts["score"].min() >= 0 and facts["score"].max() <= 1


def test_without_graphs_amr_ranks_as_pair_and_says_so_once(trained: Path) -> None:
    listener = Listener()
    asks = [RankingQuery("what is the capital of Land 3", "Land 3", RELATIONS), RankingQuery("who?", "Land 3", ())]
    ranker = open_trained(trained, "amr", OPTIONS, monitor=listener)
    first, again = ranker.rank(asks, 2, listener), ranker.rank(asks, 2, listener)
    assert first == again == open_trained(trained, "pair", OPTIONS).rank(asks, 2)
    assert first[1] == []
    [note] = listener.notes
    assert "rank_amr ranks as rank_pair does" in note


def test_a_ranker_that_was_trained_without_graphs_ranks_as_pair_and_says_so(trained: Path, graph_file: Path) -> None:
    listener = Listener()
    open_trained(trained, "amr", OPTIONS.model_copy(update={"amr_graphs": str(graph_file)}), monitor=listener)
    assert listener.notes == ["the ranker 'amr' was trained without AMR graphs; rank_amr ranks as rank_pair does"]


@pytest.mark.slow
def test_a_question_without_graph_is_ranked_by_the_pair_encoder(world: Any, graph_file: Path, tmp_path: Path) -> None:
    options = QUICK.model_copy(update={"amr_graphs": str(graph_file)})
    run(world, tmp_path / "ranker", options)
    listener = Listener()
    ranker = open_trained(tmp_path / "ranker", "amr", options, monitor=listener)
    asks = [RankingQuery("what is the capital of Land 20", "Land 20", RELATIONS),
            RankingQuery("how do people pay in Land 20", "Land 20", RELATIONS)]  # fmt: skip
    found = ranker.rank(asks, 4, listener)
    pair = open_trained(tmp_path / "ranker", "pair", options).rank(asks, 4)
    assert found[0] == pair[0] and found[1] != pair[1]
    assert ranker.counts == {"pairs": 8, "with_amr": 1, "without_amr": 1}
    assert listener.notes == ["1 of 2 questions have no AMR graph and are ranked as rank_pair does"]


def test_a_damaged_ranker_is_another_error_than_a_missing_one(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="run the relation_ranker stage"):
        load(tmp_path, "pair")
    assert load(trained, "amr") is None
    (tmp_path / "pair").mkdir()
    for name, data in content(trained / "pair").items():
        (tmp_path / "pair" / name).write_bytes(data)
    weights = tmp_path / "pair" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ArtifactError, match="train it again"):
        load(tmp_path, "pair")
    (tmp_path / "pair" / "config.json").write_text('{"kind": "hop_path", "version": 1}', encoding="utf-8")
    with pytest.raises(ArtifactError, match="hop_path"):
        load(tmp_path, "pair")


def test_what_is_ranked_beside_a_pair_does_not_move_its_score(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = load(trained, "pair")
    assert stored is not None
    asks = [RankingQuery(f"what is the capital of Land {number}", f"Land {number}", RELATIONS) for number in range(9)]
    together = PairRanker(stored).rank(asks, 4)
    monkeypatch.setattr(trained_rankers, "CHUNK", 2)
    assert PairRanker(stored).rank(asks, 4) == together
    assert [PairRanker(stored).rank([ask], 4)[0] for ask in asks] == together
