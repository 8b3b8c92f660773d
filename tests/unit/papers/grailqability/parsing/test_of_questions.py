"""Examples are made of questions: gold forms that find the annotated answer, and annotated or linked topics."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.store import KgStore
from kgqa_core.papers.grailqability.parsing.examples import Topic, examples, read_examples
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.parsing import key, write_graph


@pytest.fixture(scope="module")
def kg(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture
def made(kg, tmp_path):
    with KgStore.open(kg) as store:
        ids = {own: i for i, own in store.entity_keys(range(store.counts()["entities"])).items()}

    def question(name, text, topics, paths, answers, **more):
        return Question(
            name, text, "train", topic_keys=topics, topic_entities=tuple(ids[one] for one in topics),
            relation_paths=paths, answer_keys=answers, answers=tuple(ids[one] for one in answers if one in ids), **more,
        )  # fmt: skip

    arland, borland = key("Arland"), key("Borland")
    questions = [
        question("a", "the capital of Arland?", (arland,), (("urn:x:capital",),), (key("Arville0"),)),
        question("b", "how many cities has Arland?", (arland,), (("<inv>-urn:x:country",),), ("3",),
                 complexity="count", answer_type="number"),
        question("c", "which is its largest city, of Arland?", (arland,),
                 (("<inv>-urn:x:country", "urn:x:population"),), (key("Arville2"),), complexity="superlative"),
        question("d", "does Arland border Dorland?", (arland, key("Dorland")), (("urn:x:borders",),), ("yes",),
                 complexity="yes/no", answer_type="yes/no"),
        question("e", "the capital of Borland?", (borland,), (("urn:x:capital",),), (key("Arville0"),)),
        question("f", "the capital of Borland?", (borland,), (), (key("Boville0"),)),
    ]  # fmt: skip
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", questions)
    (tmp_path / "out").mkdir()
    return tmp_path, questions, ids


def test_gold_forms_find_the_annotated_answer_or_are_not_known(kg, made):
    folder, _, _ = made
    counts = examples(Workspace(folder / "out"), kg=kg, questions=folder / "questions")
    found = {one.id: one for one in read_examples(folder / "out")}
    assert found["a"].form == "(JOIN (R urn:x:capital) urn:x:arland)"
    assert found["b"].form == "(COUNT (JOIN urn:x:country urn:x:arland))"
    assert found["c"].form == "(ARGMAX (JOIN urn:x:country urn:x:arland) urn:x:population)"
    assert not found["d"].known and not found["e"].known and not found["f"].known
    assert found["a"].topics == (Topic(key("Arland"), "Arland"),)
    assert counts["with_form"] == 3 and sum(counts["without_form"].values()) == 3
    assert set(counts["left_out"]) == {"d", "e", "f"}


def test_linked_topics_have_every_candidate_of_every_mention_selected_or_not(kg, made):
    folder, questions, ids = made
    (folder / "linked").mkdir()
    write_questions(folder / "linked", [replace(one, topic_entities=(ids[key("Borland")],)) for one in questions])
    rows = [
        ("a", 0, 15, 21, "Arland", ids[key("Borland")], 0.6, 0),
        ("a", 0, 15, 21, "Arland", ids[key("Arland")], 0.4, 1),
        ("a", 0, 4, 11, "capital", ids[key("Corland")], 0.3, 0),
    ]
    columns = ["question", "turn", "start", "end", "mention", "entity", "rho", "rank"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(folder / "linked" / "links.parquet")
    examples(Workspace(folder / "out"), kg=kg, questions=folder / "questions", linked=folder / "linked")
    found = {one.id: one for one in read_examples(folder / "out")}
    assert [(t.key, t.mention, t.rho, t.number) for t in found["a"].topics] == [
        (key("Corland"), "capital", 0.3, 0),
        (key("Borland"), "Arland", 0.6, 1),
        (key("Arland"), "Arland", 0.4, 1),
    ]
    assert found["a"].form == "(JOIN (R urn:x:capital) urn:x:arland)" and found["b"].topics == ()


def test_links_that_are_missing_are_reported(kg, made):
    folder, questions, _ = made
    (folder / "linked").mkdir()
    write_questions(folder / "linked", questions)
    with pytest.raises(ArtifactError, match=r"links\.parquet is missing"):
        examples(Workspace(folder / "out"), kg=kg, questions=folder / "questions", linked=folder / "linked")
