"""The stage `label_parser`: what it learns from, what it counts, and when there is nothing to learn from."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kgqa_core.config import LabelParserOptions, LinkingOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.datasets.load import ALSO_TRAIN
from kgqa_core.errors import ArtifactError, TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.tagger import Tagger, open_tagger
from kgqa_core.logic.parser import parse
from kgqa_core.search.candidates import LabelQuery
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.by_labels import stage
from kgqa_core.symbolic.by_labels.calibrate import AS_IT_IS, answer_key, choose
from kgqa_core.symbolic.by_labels.examples import candidate_of
from kgqa_core.symbolic.by_labels.learnt_words import SEEN
from kgqa_core.symbolic.by_labels.model import PHRASES, learned, load
from kgqa_core.symbolic.by_labels.parser import LabelParser
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.by_labels.stage import GENERATED, _compare, _drawn, _Judged, link_some, train
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.label_graph import X, question_about
from tests.support.models import Listener, content
from tests.support.question_graph import RDFS, TYPE, build_graph, triples

QUICK = LabelParserOptions(start="nothing", steps=3, batch_size=4, candidates=4, calibration_questions=20)
COUNTRIES = "Norland Sudland Estia Westria Midland Ilia Ruland Obara".split()


def own_questions(graph: LabelGraph) -> list[Question]:
    """Questions about each country: three train, three dev, two test."""
    found = []
    for i, name in enumerate(COUNTRIES):
        key = f"{X}c{i}"
        topic = tuple(graph.memory.know([key]).values())
        split = ("train", "dev", "test")[min(i // 3, 2)]
        for kind, text, form in (
            ("a", f"what is the capital of {name}", f"(JOIN (R <{X}capital>) <{key}>)"),
            ("b", f"how many countries border {name}", f"(COUNT (JOIN (R <{X}borders>) <{key}>))"),
        ):
            answer = tuple(graph.memory.know([f"{X}city{i}"]).values()) if kind == "a" else ()
            found.append(
                Question(
                    f"{kind}{i}", text, split, topic_keys=(key,), topic_entities=topic, answers=answer,
                    answer_keys=(f"{X}city{i}",) if kind == "a" else ("2",), s_expression=form,
                )
            )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def folders(graph: LabelGraph, label_kg: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("stage")
    found = {name: base / name for name in ("questions", "generated", "mentions", "none")}
    for folder in found.values():
        folder.mkdir()
    write_questions(found["questions"], own_questions(graph))
    write_questions(found["none"], [])
    rows: list[dict[str, Any]] = [
        {
            "id": f"g{i}", "split": "dev" if i % 4 == 3 else "train", "question": f"films directed by {name} Stone",
            "s_expression": f"(JOIN <{X}directed_by> <{X}p{i}>)", "answerable": True, "topic_entities": [f"{X}p{i}"],
        }
        for i, name in enumerate("Ada Ben Cleo Dan Eve Finn Gus".split())
    ]  # fmt: skip
    rows += [
        {
            "id": f"u{i}", "split": ("train", "dev")[i % 2], "question": f"who is the president of {COUNTRIES[i]}",
            "answerable": False, "topic_entities": [f"{X}c{i}"],
        }
        for i in range(4)
    ]  # fmt: skip
    rows.append({"id": "bad", "split": "train", "question": "?", "s_expression": "(JOIN", "answerable": True})
    # what a test question is about is not learnt
    rows.append(
        {
            "id": "t",
            "split": "train",
            "question": "Ruland's capital",
            "s_expression": f"(JOIN (R <{X}capital>) <{X}c6>)",
        }
    )
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (found["generated"] / GENERATED).write_text(text, encoding="utf-8")
    build_mentions(Workspace(found["mentions"]), kg=label_kg)
    return found | {"kg": label_kg}


def learn(folders: dict[str, Path], out: Path, options: LabelParserOptions = QUICK, **more: Any) -> dict[str, Any]:
    out.mkdir()
    workspace = Workspace(out, **{name: more.pop(name) for name in ("work", "monitor") if name in more})
    given: dict[str, Any] = {"questions": folders["questions"], "generated": None, "mentions": None, "seed": 7} | more
    return train(workspace, kg=folders["kg"], options=options, linking=LinkingOptions(), **given)


def test_own_questions_alone_are_learnt_also_where_a_run_is_killed_while_their_result_is_measured(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Steps(Listener):
        def progress(self, done: float, total: float | None, what: str) -> None:
            assert what != "steps", "trained again"

    def killed(*_: Any) -> _Judged:
        raise KeyboardInterrupt

    counts = learn(folders, tmp_path / "out")
    assert counts["questions"] == {"own": 6, "generated": 0}
    assert (counts["examples"], counts["without_form"], counts["unanswerable"]) == (6, 0, 0)
    assert counts["dev"]["answerable"] == 6 and "unanswerable" not in counts["dev"]
    assert set(counts["training"]) == {"loss", "accuracy"}
    assert load(tmp_path / "out").hops == QUICK.hops
    work = _work(tmp_path / "work")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stage, "_judge", killed)
        learn(folders, tmp_path / "half", work=work)
    again = learn(folders, tmp_path / "again", work=work, monitor=Steps())
    assert again == counts and content(tmp_path / "again") == content(tmp_path / "out")


@pytest.mark.slow
def test_generated_questions_are_added_but_for_those_that_test_is_about(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    counts = learn(folders, tmp_path / "out", generated=folders["generated"], mentions=folders["mentions"])
    assert counts["questions"] == {"own": 6, "generated": 8}
    assert (counts["examples"], counts["unanswerable"]) == (14, 2)
    assert counts["dev"]["answerable"] == 7 and counts["dev"]["unanswerable"] == 2


@pytest.mark.slow
def test_unanswerable_questions_of_the_run_are_learnt_from(folders: dict[str, Path], tmp_path: Path) -> None:
    questions = tmp_path / "questions"
    questions.mkdir()
    (questions / "questions.parquet").write_bytes((folders["questions"] / "questions.parquet").read_bytes())
    row = {"id": "u", "question": "who is the king of Estia", "topic_entities": [X + "c2"]}
    texts = [json.dumps(row | {"split": split, "id": split}) for split in ("train", "dev", "test")]
    (questions / "unanswerable.jsonl").write_text("\n".join(texts), encoding="utf-8")
    counts = learn(folders, tmp_path / "out", QUICK.model_copy(update={"steps": 1}), questions=questions)
    assert counts["questions"]["own"] == 7 and counts["unanswerable"] == 1 and counts["dev"]["unanswerable"] == 1


@pytest.mark.slow
def test_what_people_corrected_is_answered_after_a_few_further_steps_and_the_rest_stays(
    folders: dict[str, Path], graph: LabelGraph, tmp_path: Path
) -> None:
    own = own_questions(graph)
    taught = replace(own[0], id="t", text="whereabouts does the boss of Norland sit", source=ALSO_TRAIN)
    write_questions(tmp_path, [*own, *(replace(taught, id=f"t{n}") for n in range(SEEN))])
    packaged = QUICK.model_copy(update={"start": "packaged", "steps": 20})
    shares = {}
    for steps in (0, 10):
        out = tmp_path / f"out{steps}"
        options = packaged.model_copy(update={"also_train_steps": steps})
        counts = learn(folders, out, options, questions=tmp_path, work=_work(tmp_path / f"work{steps}"))
        assert counts.get("further") == ({"questions": SEEN, "steps": 10} if steps else None)
        assert load(out).words["boss"], "what a correction says in other words is no unread word"
        parser = LabelParser(graph, LabelScorer(load(out).network), packaged.hops, load(out).words)
        for question in (taught, own[1]):
            [choice] = map(choose, parser.parse([question]))
            form = parse(question.s_expression or "")
            wanted = candidate_of(form, LabelQuery(""), graph)
            assert wanted is not None
            right = choice.best is not None and answer_key(choice.best) == answer_key(wanted)
            shares[question.id, steps] = choice.share if right else 0.0
            if right and choice.ranked is not None:
                assert not parser.unread(choice.ranked.prepared, choice.best).restricting
    assert shares["t", 10] > shares["t", 0] and shares["t", 10] > 0.8, shares
    assert shares[own[1].id, 10] > 0.8, shares


@pytest.mark.slow
def test_a_killed_last_part_goes_on_after_what_was_learnt_before(
    folders: dict[str, Path], graph: LabelGraph, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    class Steps(Listener):
        totals: list[float | None]

        def __init__(self) -> None:
            super().__init__()
            self.totals = []

        def progress(self, done: float, total: float | None, what: str) -> None:
            if what == "steps":
                self.totals.append(total)

    class Stopping(Steps):
        def progress(self, done: float, total: float | None, what: str) -> None:
            if total == 2 and what == "steps":
                raise Killed

    own = own_questions(graph)
    write_questions(tmp_path, [*own, replace(own[0], id="t", text="where does Norland sit", source=ALSO_TRAIN)])
    options, work = QUICK.model_copy(update={"also_train_steps": 2}), _work(tmp_path / "work")
    learn(folders, tmp_path / "whole", options, questions=tmp_path)
    with pytest.raises(Killed):
        learn(folders, tmp_path / "half", options, questions=tmp_path, work=work, monitor=Stopping())
    heard = Steps()
    learn(folders, tmp_path / "rest", options, questions=tmp_path, work=work, monitor=heard)
    assert content(tmp_path / "rest") == content(tmp_path / "whole")
    assert heard.totals == [2], "the first steps are not done again"


def is_packaged(folder: Path) -> bool:
    own, head_start = (learned(load(place, merge=False).network) for place in (folder, None))
    return all(torch.equal(value, head_start[name]) for name, value in own.items())


def test_what_dev_does_not_gain_by_is_not_kept(folders: dict[str, Path], tmp_path: Path) -> None:
    packaged = QUICK.model_copy(update={"start": "packaged", "steps": 1})
    counts = learn(folders, tmp_path / "auto", packaged)
    assert is_packaged(tmp_path / "auto") and counts["training"] and counts["gain"]["n"] == 6
    assert not counts["gain"]["kept"] and "not kept: the packaged head start is (6 dev questions" in counts["outcome"]


@pytest.mark.slow
def test_what_was_learnt_is_kept_always_where_that_is_wanted(folders: dict[str, Path], tmp_path: Path) -> None:
    always = QUICK.model_copy(update={"start": "packaged", "steps": 1, "adapt": "always"})
    counts = learn(folders, tmp_path / "always", always)
    assert not is_packaged(tmp_path / "always") and "gain" not in counts
    assert counts["outcome"].startswith("trained on 6 questions, it answers")


def test_nothing_is_learnt_without_questions_of_ones_own(folders: dict[str, Path], tmp_path: Path) -> None:
    options = LabelParserOptions(threshold=0.3)
    counts = learn(folders, tmp_path / "none", options, questions=folders["none"], generated=folders["generated"])
    assert "training" not in counts and counts["dev"]["unanswerable"] == 2
    assert counts["outcome"].startswith("the packaged head start, not trained on this graph, answers ")
    assert "of 1 dev questions right and declines " in counts["outcome"] and "of 2 that" in counts["outcome"]
    is_calibrated_as_packaged(tmp_path / "none", 0.3)


def is_calibrated_as_packaged(folder: Path, threshold: float) -> None:
    head_start, own = load(None).calibration, load(folder).calibration
    assert head_start is not None and own == replace(head_start, threshold=threshold) and is_packaged(folder)


def test_only_a_sure_gain_is_kept_and_corrections_unless_they_harm() -> None:
    def kept(won: int, lost: int, same: int, corrected: bool = False) -> bool:
        old, new = [0] * won + [1] * lost + [1] * same, [1] * won + [0] * lost + [1] * same
        before, after = (_Judged({}, AS_IT_IS, np.array(exact, dtype=float)) for exact in (old, new))
        return _compare(before, after, len(old), corrected, 7)[1]

    assert kept(12, 1, 87) and not kept(5, 0, 95), "of five gains the bootstrap is sure, McNemar's test is not"
    assert not kept(12, 9, 79) and not kept(0, 12, 88) and not kept(0, 0, 100) and not kept(1, 0, 0)
    assert kept(0, 0, 100, corrected=True) and kept(3, 5, 92, corrected=True) and not kept(0, 12, 88, corrected=True)


def _work(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_nothing_to_learn_from_is_refused_with_the_way_out(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"set label_parser\.generated above 0, or label_parser\.steps to 0"):
        learn(folders, tmp_path / "out", questions=folders["none"])
    generated = tmp_path / "generated"
    generated.mkdir()
    row = {"id": "a", "split": "train", "question": "?", "s_expression": "(JOIN (R <http://x/nothing>) <http://x/c0>)"}
    (generated / GENERATED).write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(TrainingError, match="none of 1 questions has a form that can be run"):
        learn(folders, tmp_path / "other", questions=folders["none"], generated=generated)


@pytest.mark.slow
def test_without_steps_the_starting_point_is_calibrated_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    counts = learn(folders, tmp_path / "out", QUICK.model_copy(update={"steps": 0}))
    assert "training" not in counts and counts["dev"]["answerable"] == 6
    learn(folders, tmp_path / "never", LabelParserOptions(adapt="never", threshold=0.3))
    is_calibrated_as_packaged(tmp_path / "never", 0.3)
    empty = learn(folders, tmp_path / "none", QUICK.model_copy(update={"steps": 0}), questions=folders["none"])
    assert empty["dev"] == {} and load(tmp_path / "none").calibration == AS_IT_IS


@pytest.mark.slow
def test_test_question_with_an_unreadable_form_hinders_nothing(
    graph: LabelGraph, folders: dict[str, Path], tmp_path: Path
) -> None:
    questions = tmp_path / "questions"
    questions.mkdir()
    write_questions(questions, [*own_questions(graph), Question("x", "?", "test", s_expression="(JOIN")])
    options = QUICK.model_copy(update={"steps": 0})
    assert learn(folders, tmp_path / "out", options, questions=questions, generated=folders["generated"])["dev"]


def test_drawn_questions_cover_rare_shapes_first() -> None:
    def some(shape: str, number: int) -> list[tuple[Question, str | None, float]]:
        return [(Question(f"{shape}{n}", "?"), f"(JOIN {shape} e{n})", 1.0) for n in range(number)]

    rows = [*some("often", 50), *some("rare", 2), (Question("none", "?"), None, 1.0)]
    drawn = _drawn(rows, 6, random.Random(7))
    kinds = sorted(question.id.rstrip("0123456789") for question, _, _ in drawn)
    assert kinds == ["none", "often", "often", "often", "rare", "rare"]
    assert _drawn(rows, 6, random.Random(7)) == drawn and _drawn(rows[:3], 6, random.Random(7)) == rows[:3]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabelGraph, Tagger]]:
    """The graph with a city that is called as a country is, and a tagger of its names."""
    base = tmp_path_factory.mktemp("twins")
    lines = [f'<{X}twin> <{RDFS}label> "Norland"@en .', f"<{X}twin> <{TYPE}> <{X}city> .",
             f"<{X}twin> <{X}country> <{X}c3> ."]  # fmt: skip
    kg, mentions = build_graph(base, [*triples(), *lines]), base / "mentions"
    mentions.mkdir()
    build_mentions(Workspace(mentions), kg=kg)
    with KgStore.open(kg) as store:
        yield LabelGraph(store), open_tagger(mentions, kg, LinkingOptions())


def test_training_question_keeps_the_other_meanings_of_its_mention(
    twins: tuple[LabelGraph, Tagger], scorer: LabelScorer
) -> None:
    graph, tagger = twins
    meanings = {X + "c0", X + "city0", X + "twin"}  # Norland, Norland City, and the other Norland
    question = question_about(graph, "a", "what is the capital of Norland", X + "c0")
    form = f"(JOIN (R <{X}capital>) <{X}c0>)"
    [(linked, kept_form, weight)] = link_some(
        [(question, form, 2.0)], tagger, LinkingOptions(), random.Random(7), gold=0.0
    )
    assert (kept_form, weight, linked.text) == (form, 2.0, question.text)
    assert set(graph.store.entity_keys(list(linked.topic_entities)).values()) == meanings
    assert (linked.topic_keys, linked.topic_mentions) == (("Norland",) * 3, (0, 0, 0))
    weights = linked.topic_weights
    assert weights is not None and list(weights) == sorted(weights, reverse=True) and weights[1] > 0
    [query] = LabelParser(graph, scorer).read([linked])
    [slot] = query.slots
    assert {key for _, key, _ in slot.entities} == meanings and query.text == "what is the capital of x"


def test_share_of_training_questions_and_those_that_are_not_found_keep_their_gold_topics(
    twins: tuple[LabelGraph, Tagger],
) -> None:
    graph, tagger = twins
    form = f"(JOIN (R <{X}capital>) <{X}c0>)"
    known = question_about(graph, "a", "what is the capital of Norland", X + "c0")
    other = question_about(graph, "b", "what is the capital of that land", X + "c0")
    rows = [(known, form, 1.0), (other, form, 1.0), (known, None, 1.0), (other, None, 1.0)]

    def topics(gold: float) -> list[int]:
        found = link_some(rows, tagger, LinkingOptions(), random.Random(7), gold)
        return [len(question.topic_entities) for question, _, _ in found]

    assert topics(1.0) == [1, 1, 3, 0]
    assert topics(1e-9) == [3, 1, 3, 0]
    assert topics(0.0) == [3, 0, 3, 0]
    assert link_some(rows, None, LinkingOptions(), random.Random(7)) == rows


def test_the_wordings_of_the_graph_are_stored_encoded(
    folders: dict[str, Path], graph: LabelGraph, tmp_path: Path
) -> None:
    learn(folders, tmp_path / "out", QUICK)
    model = load(tmp_path / "out")
    ways = LabelParser(graph, LabelScorer(model.network)).wordings
    anew = LabelScorer(model.network).known(ways)
    assert model.phrases.keys() == set(ways)
    for text, own in anew.items():
        assert all(torch.equal(one, other) for one, other in zip(own, model.phrases[text], strict=True))
    (tmp_path / "out" / PHRASES).write_bytes(b"no tensors")
    with pytest.raises(ArtifactError, match="phrases.safetensors is damaged"):
        load(tmp_path / "out")
