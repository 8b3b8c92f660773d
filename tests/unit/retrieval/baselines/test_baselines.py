"""Random facts and the oracle: what they draw, in which order; and what is collected of any retriever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from kgqa_core.config import RetrievalOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError, ConfigError
from kgqa_core.retrieval import collect as collecting
from kgqa_core.retrieval.api import LEAST_SCORE, Retriever, RetrieverInputs, ranked
from kgqa_core.retrieval.baselines.retriever import FrequentRelation, Oracle, RandomFacts
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.registry import open_retriever
from kgqa_core.types import Fact, Question, Retrieved
from kgqa_core.workspace import Workspace


def star(leaves: int) -> Dkg:
    """Entity 0 with `leaves` neighbours by relation 0, each of which has one by relation 1."""
    heads = [0] * leaves + list(range(1, leaves + 1))
    tails = list(range(1, leaves + 1)) + list(range(leaves + 1, 2 * leaves + 1))
    return Dkg.from_triples(heads, [0] * leaves + [1] * leaves, tails, 2 * leaves + 1, 2)


def test_facts_stand_hop_by_hop_and_by_score_then_triple() -> None:
    facts = ranked([Fact(0, 0.5, 2, 1, 1), Fact(0, 0.2, 1, 9, 1), Fact(0, 0.9, 2, 7, 1), Fact(0, 0.9, 2, 3, -1)])
    assert [(fact.rank, fact.hop, fact.triple) for fact in facts] == [(0, 1, 9), (1, 2, 3), (2, 2, 7), (3, 2, 1)]


def test_light_and_doubled_facts_are_left_out() -> None:
    facts = ranked([Fact(0, LEAST_SCORE / 2, 1, 1, 1), Fact(0, 0.5, 1, 2, -1), Fact(0, 0.6, 1, 2, 1)])
    assert [(fact.triple, fact.direction) for fact in facts] == [(2, 1)]


def test_random_facts_depend_on_seed_and_id_only() -> None:
    dkg = star(50)
    questions = [Question(f"q{number}", "?", topic_entities=(0,)) for number in range(5)]
    forwards = RandomFacts(dkg, 10, 7).retrieve(questions)
    backwards = RandomFacts(dkg, 10, 7).retrieve(questions[::-1])[::-1]
    assert forwards == backwards
    assert forwards[0].facts != forwards[1].facts
    assert RandomFacts(dkg, 10, 8).retrieve(questions) != forwards
    assert all(len({fact.triple for fact in found.facts}) == 10 for found in forwards)


def test_random_facts_are_uniform_over_the_neighbourhood() -> None:
    dkg = star(20)
    draws = RandomFacts(dkg, 5, 1).retrieve(
        [Question(f"q{number}", "?", topic_entities=(0,)) for number in range(2000)]
    )
    counts = np.bincount([fact.triple for found in draws for fact in found.facts], minlength=20)
    assert counts.sum() == 10_000
    assert abs(counts - 500).max() < 120  # six standard deviations of a binomial


def test_random_facts_are_all_where_there_are_fewer_and_a_shared_triple_counts_once(world: Any) -> None:
    found = RandomFacts(world.dkg, 10, 7).retrieve([Question("q", "?", topic_entities=(0, 1)), Question("none", "?")])
    assert len(found[0].facts) == 7  # four triples at each country, the border between them shared
    assert found[1].facts == ()


def test_oracle_grounds_the_gold_path(world: Any) -> None:
    question = next(question for question in world.questions if question.hops == 2)
    found = Oracle(world.dkg, 10).retrieve([question])[0]
    triples = [world.dkg.edges([fact.triple]) for fact in found.facts]
    assert [fact.direction for fact in found.facts] == [-1, 1]
    assert int(triples[0][2][0]) == question.topic_entities[0]
    assert [entity for entity, _ in found.entities] == list(question.answers)


def test_oracle_cut_keeps_a_way_to_an_answer() -> None:
    dkg = star(40)
    question = Question("q", "?", topic_entities=(0,), answers=(77,), relation_paths=(("r0", "r1"),))
    found = Oracle(dkg, 3).retrieve([question])[0]
    ends = [int(dkg.edges([fact.triple])[2][0]) for fact in found.facts]
    assert len(found.facts) == 6
    assert 37 in ends[:3] and 77 in ends[3:]


def test_oracle_pairs_paths_with_topics_and_skips_unknown_relations(world: Any) -> None:
    both = Question("q", "?", topic_entities=(0, 1), answers=(24,), relation_paths=(("capital",), ("currency",)))
    unknown = replace(both, id="u", relation_paths=(("mayor",),))
    found = Oracle(world.dkg, 10).retrieve([both, unknown])
    assert [(fact.path, int(world.dkg.edges([fact.triple])[0][0])) for fact in found[0].facts] == [(0, 0), (1, 1)]
    assert found[1].facts == ()


def films() -> Dkg:
    """Film 0 by person 2 of genre 3, film 1 of genre 3 only; relations r0 (by), r1 (genre)."""
    return Dkg.from_triples([0, 0, 1], [0, 1, 1], [2, 3, 3], 4, 2)


def asked(name: str, *path: str, split: str = "train", **more: Any) -> Question:
    return Question(name, "?", split=split, topic_entities=(0,), relation_paths=(path,) if path else (), **more)


def test_the_most_frequent_relation_of_training_is_followed_whatever_the_question_asks() -> None:
    training = [
        asked("a", "r0"),
        asked("b", "r0"),
        asked("c", "r1"),
        *(asked(f"t{n}", "r1", split="test") for n in "12345"),
    ]
    retriever = FrequentRelation(films(), 10, training)
    assert retriever.paths == [("r0",), ("r1",)]
    found = retriever.retrieve([asked("q", "r1", split="test", answers=(3,))])[0]
    assert [entity for entity, _ in found.entities] == [2] and len(found.facts) == 1


def test_a_topic_without_the_most_frequent_relation_gets_the_next() -> None:
    retriever = FrequentRelation(films(), 10, [asked("a", "r0"), asked("b", "r0"), asked("c", "r1")])
    found = retriever.retrieve([replace(asked("q"), topic_entities=(1,)), Question("none", "?")])
    assert [entity for entity, _ in found[0].entities] == [3]
    assert found[1].facts == () and found[1].entities == ()


def test_a_stated_number_of_hops_takes_paths_of_as_many_where_training_has_some() -> None:
    training = [asked("a", "r1"), asked("b", "r1"), asked("c", "r1", "<inv>-r1")]
    retriever = FrequentRelation(films(), 10, training)
    two, three = retriever.retrieve([asked("q", hops=2), asked("r", hops=3)])
    assert [entity for entity, _ in two.entities] == [0, 1]
    assert [entity for entity, _ in three.entities] == [3]


def test_gold_answers_do_not_decide_which_facts_the_most_frequent_relation_keeps() -> None:
    dkg = star(40)
    training = [Question("a", "?", split="train", relation_paths=(("r0",),))]
    kept = [FrequentRelation(dkg, 3, training).retrieve([Question("q", "?", topic_entities=(0,), answers=answers)])[0]
            for answers in ((), (39,))]  # fmt: skip
    assert kept[0].facts == kept[1].facts and [fact.triple for fact in kept[0].facts] == [0, 1, 2]


def test_without_annotated_paths_the_relations_from_topic_to_answer_are_counted() -> None:
    retriever = FrequentRelation(
        films(), 10, [asked("a", answers=(3,)), asked("b", answers=(3,)), asked("c", answers=(2,))]
    )
    assert retriever.paths == [("r1",), ("r0",)]


@pytest.mark.parametrize("name", ["random", "frequent", "oracle"])
def test_collected_tables_have_the_agreed_columns_and_the_same_bytes_twice(
    world: Any, tmp_path: Path, name: str
) -> None:
    written = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        counts = collect(
            Workspace(folder), world.questions_folder, name, RetrieverInputs(world.dkg, RetrievalOptions(), 3)
        )
        written.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert written[0] == written[1]
    facts = pl.read_parquet(tmp_path / "a" / "facts.parquet")
    assert facts.columns == ["question", "retriever", "rank", "score", "path", "hop", "triple", "direction"]
    assert facts.equals(facts.sort("question", "rank"))
    assert counts["questions"] == 10 * 8
    assert set(written[0]) == {"facts.parquet", "entities.parquet", "facts_meta.parquet", "meta.json"}


@pytest.mark.parametrize("name", ["rigel", "hop_path"])
def test_retriever_that_learns_says_that_its_training_is_missing(world: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(ArtifactError, match=f"'{name}' needs a trained retriever; run the {name} stage first"):
        collect(Workspace(tmp_path), world.questions_folder, name, RetrieverInputs(world.dkg, RetrievalOptions(), 3))


def test_unknown_retriever_is_named_with_the_known_ones(world: Any) -> None:
    with pytest.raises(
        ConfigError,
        match="'rige' is unknown; did you mean 'rigel'.*rigel, hop_path, transfernet, kaping, rank_llm.*random",
    ):
        open_retriever("rige", RetrieverInputs(world.dkg, RetrievalOptions()))


class Pathfinder(Retriever):
    """Predicts two relation paths for every question, and finds one triple by both."""

    name = "hop_path"

    predicts_paths = True
    counts = {"grounded": 5}

    def retrieve(self, questions: Any, monitor: Any = None) -> list[Retrieved]:
        """The same for all."""
        paths = ((("capital",), 0.75), (("neighbour", "<inv>-capital"), 0.25))
        facts = (Fact(0, 0.75, 1, 4, 1, 0), Fact(1, 0.25, 1, 4, 1, 1), Fact(2, 0.25, 2, 9, -1, 1))
        return [Retrieved(question.id, facts, paths=paths) for question in questions]


def test_predicted_paths_are_collected_and_a_triple_stands_in_each_of_its_reasoning_paths(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "open_retriever", lambda *arguments: Pathfinder())
    inputs = RetrieverInputs(world.dkg, RetrievalOptions())
    counts = collect(Workspace(tmp_path), world.questions_folder, "hop_path", inputs)
    assert (counts["with_paths"], counts["grounded"], counts["facts"]) == (80, 5, 240)
    paths = pl.read_parquet(tmp_path / "paths.parquet")
    assert paths.columns == ["question", "rank", "hops", "path", "score"]
    assert paths.schema["rank"] == paths.schema["hops"] == pl.Int32
    assert paths.equals(paths.sort("question", "rank")) and paths.height == 160
    assert paths.rows()[1][1:] == (1, 2, ["neighbour", "<inv>-capital"], 0.25)
    facts = pl.read_parquet(tmp_path / "facts.parquet")
    first = facts.filter(pl.col("question") == facts["question"][0])
    assert first.select("rank", "path", "hop", "triple").rows() == [(0, 0, 1, 4), (1, 1, 1, 4), (2, 1, 2, 9)]
