"""The abstainer learns from labelled questions, judges others, explains, and is measured."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kgqa_core.abstention.apply import AbstentionJudge, Verdict, apply, read_verdicts
from kgqa_core.abstention.evidence import read_evidence
from kgqa_core.abstention.labels import ENTITY, FACT, RELATION, AnswerabilityLabel, write_labels
from kgqa_core.abstention.model import load_abstainer
from kgqa_core.abstention.reasons import Reason
from kgqa_core.abstention.train import train
from kgqa_core.config import AbstentionOptions, KgOptions
from kgqa_core.datasets.files.answers import LIKELY, SCHEMA
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.errors import ArtifactError, TrainingError
from kgqa_core.evaluation.abstention import measure, score
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.report.abstention import abstention_part, scores_grid, terminal_tables
from kgqa_core.retrieval.collect import write_paths, write_retrieved
from kgqa_core.store.artifacts import content_digest
from kgqa_core.types import Fact, Question, Retrieved
from kgqa_core.workspace import Workspace

COUNTS = {"train": 90, "dev": 60, "test": 60}
TOWNS = 12


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A graph of towns, and what a road left of questions about their mayors (there), heights (no such relation),
    mayors that are missing, and towns that are missing."""
    base = tmp_path_factory.mktemp("road")
    names = ("kg", "questions", "labels", "rigel", "hop_path", "train", "dev", "test")
    found = {name: base / name for name in names}
    for folder in found.values():
        folder.mkdir()
    lines = [f"Town{i}\tmayor\tPerson{i}" for i in range(TOWNS)]
    (base / "graph.tsv").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    build(Workspace(found["kg"]), options=KgOptions(files=(str(base / "graph.tsv"),)))
    dice = random.Random(5)
    questions, labels, outputs = [], [], {split: [] for split in COUNTS}
    rigel, paths, predicted = [], [], {}
    with KgStore.open(found["kg"]) as store:
        ids = store.resolve([f"{kind}{i}" for kind in ("Town", "Person") for i in range(TOWNS)])
    for split, count in COUNTS.items():
        for number in range(count):
            name, town = f"{split}{number:03}", f"Town{number % TOWNS}"
            why = (None, None, None, ENTITY, RELATION, FACT)[number % 6]
            text = f"how high is {town}" if why == RELATION else f"who is the mayor of {town}"
            topics = () if why == ENTITY else (ids[town][0],)
            person = ids[f"Person{number % TOWNS}"][0]
            gold = () if why else ((f"Person{number % TOWNS}",),)
            questions.append(
                Question(
                    name, text, split, topic_keys=(town,) if topics else (), topic_entities=topics, answer_names=gold,
                    topic_weights=(0.5 + dice.random() / 2,) if topics else (),
                )
            )  # fmt: skip
            labels.append(
                AnswerabilityLabel(name, why is None, why, None if why is None else why.split()[-1], why and "iid")
            )
            best = 0.9 - dice.random() / 5 if why is None else dice.random() / 2
            fact = (Fact(0, best, 1, number % TOWNS, 1),) if topics else ()
            rigel.append(Retrieved(name, fact, ((person, best),) if topics else (), 0, (0.9, 0.1) if topics else ()))
            paths.append(Retrieved(name, fact if why is None else (), ((person, best),) if why is None else ()))
            predicted[name] = [(("mayor",), best)] if topics else []
            outputs[split].append(
                (name, f"Person{number % TOWNS}" if dice.random() < 0.9 else "unknown", -dice.random())
            )
    write_questions(found["questions"], questions)
    write_labels(found["labels"], labels)
    write_retrieved(found["rigel"], "rigel@linked", rigel)
    write_retrieved(found["hop_path"], "hop_path@linked", paths)
    write_paths(found["hop_path"], predicted)
    for split, rows in outputs.items():
        answers = [
            (name, "rigel@linked", "triples", "m", "0", text, text == "unknown", "stop", 9, 3) for name, text, _ in rows
        ]
        pl.DataFrame(answers, schema=SCHEMA, orient="row").write_parquet(found[split] / "answers.parquet")
        likely = {"question": pl.String, "log_probability": pl.Float64, "tokens": pl.Int32}
        pl.DataFrame([(name, value, 3) for name, _, value in rows], schema=likely, orient="row").write_parquet(
            found[split] / LIKELY
        )
        (found[split] / "meta.json").write_text('{"experiment": "rigel@linked/triples/m"}')
    return found


def learn(folders: dict[str, Path], out: Path, **changed: object) -> dict[str, object]:
    out.mkdir(exist_ok=True)
    options = AbstentionOptions(**changed)
    return train(
        Workspace(out),
        kg=folders["kg"],
        questions=folders["questions"],
        labels=folders["labels"],
        facts={"rigel@linked": folders["rigel"], "hop_path@linked": folders["hop_path"]},
        answers={split: folders[split] for split in ("train", "dev")},
        name="rigel@linked/triples",
        options=options,
    )


def judged(
    folders: dict[str, Path], abstainer: Path | None, out: Path, min_confidence: float | None = None
) -> dict[str, Verdict]:
    out.mkdir(exist_ok=True)
    facts = {"rigel@linked": folders["rigel"], "hop_path@linked": folders["hop_path"]}
    apply(
        Workspace(out),
        kg=folders["kg"],
        questions=folders["questions"],
        facts=facts,
        answers={"test": folders["test"]},
        abstainer=abstainer,
        min_confidence=min_confidence,
    )
    return read_verdicts(out)


@pytest.fixture(scope="module")
def abstainer(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("abstainer")
    counts = learn(folders, out)
    assert counts["questions"] == {"train": 90, "dev": 60} and counts["answerable"] == {"train": 45, "dev": 30}
    assert counts["dev_auroc"] > 0.95 and counts["reasons"] == sorted((ENTITY, FACT, RELATION))
    return out


def test_it_tells_what_the_graph_answers_and_says_why_not(
    folders: dict[str, Path], abstainer: Path, tmp_path: Path
) -> None:
    verdicts = judged(folders, abstainer, tmp_path / "out")
    assert len(verdicts) == COUNTS["test"] and all(own.calibrated for own in verdicts.values())
    known = {label: (None, None, None, ENTITY, RELATION, FACT)[int(label[4:]) % 6] for label in verdicts}
    right = [own.answerable == (known[name] is None) for name, own in verdicts.items()]
    assert np.mean(right) > 0.9
    reasons = [(known[name], own.reason) for name, own in verdicts.items() if own.reason and known[name]]
    assert np.mean([why == reason.kind for why, reason in reasons]) > 0.9
    heights = [reason for why, reason in reasons if why == reason.kind == RELATION]
    assert heights[0].missing == "how high" and heights[0].nearest == "mayor"
    gone = [reason for why, reason in reasons if why == reason.kind == FACT]
    assert gone and all(reason.confidence is not None and 0 <= reason.confidence <= 1 for reason in gone)


def test_training_is_the_same_every_time_and_is_read_back(
    folders: dict[str, Path], abstainer: Path, tmp_path: Path
) -> None:
    learn(folders, tmp_path / "again")
    assert content_digest(tmp_path / "again") == content_digest(abstainer)
    assert judged(folders, abstainer, tmp_path / "a") == judged(folders, tmp_path / "again", tmp_path / "b")
    learnt = load_abstainer(abstainer)
    assert learnt.retrievers == ("hop_path", "rigel") and learnt.knowledge == "rigel@linked/triples"
    with pytest.raises(ArtifactError, match="holds no abstainer"):
        load_abstainer(tmp_path)


def test_one_question_is_judged_as_among_many(folders: dict[str, Path], abstainer: Path, tmp_path: Path) -> None:
    facts = {"rigel": folders["rigel"], "hop_path": folders["hop_path"]}
    evidence = read_evidence(read_questions(folders["questions"]), facts, [folders["test"]])
    together = judged(folders, abstainer, tmp_path)
    with KgStore.open(folders["kg"]) as store:
        judge = AbstentionJudge(store, load_abstainer(abstainer))
        for one in evidence[:12]:
            assert judge.judge([one]) == [together[one.question.id]]


def test_the_knob_answers_all_or_none(folders: dict[str, Path], abstainer: Path, tmp_path: Path) -> None:
    everything = judged(folders, abstainer, tmp_path / "all", min_confidence=0.0)
    assert all(own.answerable and own.reason is None for own in everything.values())
    nothing = judged(folders, abstainer, tmp_path / "none", min_confidence=1.0)
    assert not any(own.answerable for own in nothing.values())
    assert {name: own.confidence for name, own in everything.items()} == {
        name: own.confidence for name, own in nothing.items()
    }


def test_without_training_the_rules_judge(folders: dict[str, Path], tmp_path: Path) -> None:
    verdicts = judged(folders, None, tmp_path)
    answers = pl.read_parquet(folders["test"] / "answers.parquet")
    declined = set(answers.filter(pl.col("abstained"))["question"])
    assert declined, "some answers decline"
    for name, own in verdicts.items():
        missing = int(name[4:]) % 6 == 3
        answered = not missing and name not in declined
        assert (own.answerable, own.calibrated, own.confidence) == (answered, False, None)
        assert (own.reason.kind if own.reason else None) == (ENTITY if missing else None if answered else FACT)


def test_no_reason_is_learnt_where_one_that_occurs_has_too_few_examples(
    folders: dict[str, Path], abstainer: Path, tmp_path: Path
) -> None:
    labels, gone = [], 0
    for question in read_questions(folders["questions"]):
        why = (None, None, None, ENTITY, RELATION, FACT)[int(question.id[-3:]) % 6]
        gone += why == RELATION and question.split == "train"
        labels.append(AnswerabilityLabel(question.id, why is None, FACT if why == RELATION and gone > 5 else why))
    write_labels(tmp_path, labels)
    counts = learn({**folders, "labels": tmp_path}, tmp_path / "out")
    assert counts["reasons"] == []
    verdicts = judged(folders, tmp_path / "out", tmp_path / "judged")
    confidences = {own.reason.kind: own.reason.confidence for own in verdicts.values() if own.reason is not None}
    assert confidences == {ENTITY: None, FACT: None}
    whole = load_abstainer(abstainer)
    alone = replace(whole, why={FACT: whole.why[FACT]})
    assert alone.reasons(np.zeros((2, len(whole.why[FACT].names)))) == [{}, {}]


@pytest.mark.slow
def test_a_reason_is_calibrated_only_where_dev_has_enough_of_both(folders: dict[str, Path], tmp_path: Path) -> None:
    labels = []
    for question in read_questions(folders["questions"]):
        why = (None, None, None, ENTITY, RELATION, FACT)[int(question.id[-3:]) % 6]
        labels.append(
            AnswerabilityLabel(question.id, why is None, None if question.split == "dev" and why != FACT else why)
        )
    write_labels(tmp_path, labels)
    learn({**folders, "labels": tmp_path}, tmp_path / "out")
    learnt = load_abstainer(tmp_path / "out")
    assert sorted(learnt.why) == sorted((ENTITY, FACT, RELATION))
    assert {own.temperature for own in learnt.why.values()} == {1.0}


def test_an_abstainer_needs_what_it_read(folders: dict[str, Path], abstainer: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="hop_path"):
        apply(
            Workspace(tmp_path),
            kg=folders["kg"],
            questions=folders["questions"],
            facts={"rigel": folders["rigel"]},
            answers={"test": folders["test"]},
            abstainer=abstainer,
        )


def test_too_few_of_a_kind_are_named_with_the_way_out(folders: dict[str, Path], tmp_path: Path) -> None:
    write_labels(tmp_path, [AnswerabilityLabel(question.id, True) for question in read_questions(folders["questions"])])
    with pytest.raises(TrainingError, match="0 are not.*kgqa answerability build"):
        learn({**folders, "labels": tmp_path}, tmp_path / "out")


def test_scores_of_the_judged_are_reported_and_plotted(
    folders: dict[str, Path], abstainer: Path, tmp_path: Path
) -> None:
    judged(folders, abstainer, tmp_path / "sure")
    (tmp_path / "out").mkdir()
    counts = score(
        Workspace(tmp_path / "out"),
        questions=folders["questions"],
        labels=folders["labels"],
        confidence=tmp_path / "sure",
        answers=folders["test"],
        seed=3,
        bootstrap=50,
    )
    found = json.loads((tmp_path / "out" / "abstention.json").read_text(encoding="utf-8"))
    assert found["n"] == {"answerable": 30, "unanswerable": 30} and counts["auroc"] == found["auroc"] > 0.95
    assert found["risk"] < found["risk_without"] and found["wrong_reasons"] < 0.1
    assert set(found["auroc_by"]["why"]) == {ENTITY, RELATION, FACT}
    assert found["curves"]["answer"][-1]["coverage"] == 1.0
    assert found["curves"]["answer"][-1]["risk"] == pytest.approx(found["risk_without"], abs=1e-6)
    part = abstention_part({"abstention": found})
    assert part is not None and part.risk.count("series s") == 2 and "<circle" in part.reliability
    assert [table.title for table in terminal_tables(found)] == [
        "Knowing when not to answer", "Against the answerable", "Reasons",
    ]  # fmt: skip
    assert abstention_part({}) is None


def test_questions_of_one_kind_have_no_auroc() -> None:
    there = [AnswerabilityLabel(str(number), True) for number in range(20)]
    gone = [AnswerabilityLabel("gone", False, FACT, "fact", "iid")]
    sure = [Verdict(0.9, True, True) for _ in there]
    mixed = measure(there + gone, [*sure, Verdict(0.1, True, False, Reason(FACT))], np.zeros(21), 1, 100)
    assert (mixed["auroc"], mixed["auroc_interval"]) == (1.0, [1.0, 1.0])
    for labels, verdicts in ((there, sure), (gone, sure[:1])):
        found = measure(labels, verdicts, np.ones(len(labels)), seed=1, bootstrap=20)
        assert (found["auroc"], found["auroc_interval"]) == (None, None)
        assert not any(found["auroc_by"].values())
        assert dict(scores_grid(found).rows)["AUROC, answerable against unanswerable"] == ("–",)
        assert abstention_part({"abstention": found}) is not None


def test_measures_by_hand() -> None:
    labels = [
        AnswerabilityLabel("a", True), AnswerabilityLabel("b", True),
        AnswerabilityLabel("c", False, FACT, "fact", "iid"),
        AnswerabilityLabel("d", False, RELATION, "type", "full"),
    ]  # fmt: skip
    verdicts = [
        Verdict(0.9, True, True),
        Verdict(0.4, True, False, Reason(FACT)),
        Verdict(0.6, True, True),
        Verdict(0.1, True, False, Reason(ENTITY)),
    ]
    found = measure(labels, verdicts, np.array([0.0, 1.0, 1.0, 1.0]), seed=1, bootstrap=20)
    assert found["auroc"] == 0.75 and found["accuracy"] == 0.5 and found["answered"] == 0.5
    assert (found["answered_of_answerable"], found["declined_of_unanswerable"]) == (0.5, 0.5)
    assert (found["risk"], found["risk_without"]) == (0.5, 0.75)
    assert found["auroc_by"]["drop"] == {"fact": {"auroc": 0.5, "n": 1}, "type": {"auroc": 1.0, "n": 1}}
    assert (found["wrong_reasons"], found["wrong_reasons_by_drop"]) == (1.0, 1.0)
    assert found["reasons"][RELATION] == {ENTITY: 1, RELATION: 0, FACT: 0}
