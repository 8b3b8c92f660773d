"""The flow that learns from an answerability benchmark when not to answer, and measures what that is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import flow

from kgqa_core.config import Answerer, Knowledge, Profile, make_profile
from kgqa_core.errors import ConfigError
from kgqa_core.retrieval.registry import RETRIEVERS
from kgqa_core.store.artifacts import ArtifactRef, read_manifest
from tasks.abstention import judge, score_abstention, train_abstainer, unpack_benchmark
from tasks.answering import answer
from tasks.benchmarks import benchmark_in
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.publish import publish
from tasks.engine.run import Run, completed, tracked_run
from tasks.evaluation import score_all
from tasks.kg import export_dkg
from tasks.linking import link_topics
from tasks.retrieval import retrieve_all, train_retrievers
from tasks.rewriting import corpus_of, rewriter_of, write_all
from tasks.secrets import load_secrets


@flow(name="kgqa-abstention", flow_run_name="abstention {profile.questions.name}")
def learn_abstention(profile: Profile, benchmark: str) -> dict[str, Any]:
    """Train retrievers on the modified graph, let the model answer, learn when the graph holds the answer, measure.

    Args:
        profile: Every parameter of a run, as `profile_for` makes it.
        benchmark: Folder that `kgqa answerability build` wrote.
    """
    with tracked_run(profile) as run:
        made, modified = benchmark_in(Path(benchmark))
        run.home.use_folder(made.folder)
        kg = _known(run, modified)
        dkg = export_dkg(kg, profile.dkg)
        questions = unpack_benchmark(made, kg)
        trained = train_retrievers(kg, dkg, questions, profile)
        rewriter = rewriter_of(corpus_of(kg, dkg, questions, profile), profile)
        artifacts = link_topics(RunArtifacts(kg, dkg, questions, trained, rewriter), profile)
        facts = retrieve_all(artifacts, profile)
        knowledge = write_all(artifacts, facts, None, profile)
        [name] = profile.knowledge
        topic_questions = artifacts.linked or questions
        answers = _answers(topic_questions, knowledge[name], name, profile)
        labelled = {split: answers[split] for split in ("train", "dev")}
        abstainer = train_abstainer(kg, topic_questions, questions, facts, labelled, name, profile.abstention)
        least = profile.abstention.min_confidence
        sure = judge(kg, topic_questions, facts, {"test": answers["test"]}, abstainer, min_confidence=least)
        score_abstention(questions, questions, sure, answers["test"], profile.seed, profile.evaluation.bootstrap)
        scores = score_all(artifacts, facts, knowledge, {name: answers["test"]}, profile)
        summary = publish(run, profile, scores)
        return completed(f"abstention of {name}", summary)


def profile_for(base: Profile) -> Profile:
    """A profile's graph and models with a benchmark's questions: what `learn_abstention` runs.

    The answerer is the language model of the profile's own, `builtin` where that has none (`auto`): the
    abstainer learns from log-probabilities.  Raises ConfigError when no retriever is left that learns, and for
    passages.
    """
    chosen = base.abstention
    retrievers = [name for name, spec in RETRIEVERS.items() if spec.headline and name in base.retrieval.retrievers]
    read = Knowledge.parse(chosen.knowledge)
    if read.retriever not in retrievers:
        raise ConfigError(
            f"abstention.knowledge {chosen.knowledge!r} is of no retriever that learns; retrieval.retrievers has "
            f"{', '.join(retrievers) or 'none'}"
        )
    if read.holds_passages:
        raise ConfigError(
            f"abstention.knowledge {chosen.knowledge!r} holds passages, and the benchmark has none; write "
            f"{read.retriever}/triples"
        )
    name = str(replace(read, topics=chosen.topics))
    layers = {
        "name": f"{base.name}-abstention",
        "kg": {"name": f"{base.kg.name}-modified"},
        "questions": {
            "name": f"{base.questions.name}-answerability", "source": "jsonl", "path": None, "hops": [],
            "train_from": "train", "more": [], "folds": 1, "fold": 0,
        },
        "retrieval": {"retrievers": retrievers, "topics": chosen.topics, "training": True},
        "answering": {
            "answerer": Answerer.parse(base.answering.answerer).model or "builtin", "more": [], "knowledge": [name],
            "split": "test", "log_probabilities": True,
        },
    }  # fmt: skip
    return make_profile(base.model_dump(mode="json"), layers, origin="abstention")


def check(profile: Profile, benchmark: Path) -> None:
    """Raise the first fault of what the flow needs.  Raises InputError, ArtifactError, ConfigError."""
    load_secrets(profile)
    benchmark_in(benchmark)


def _answers(questions: ArtifactRef, knowledge: ArtifactRef, name: str, profile: Profile) -> dict[str, ArtifactRef]:
    """What the model says of training, dev and test questions, the last as the run's answers."""
    answers = {}
    for split in ("train", "dev", "test"):
        limit = profile.abstention.training_questions if split == "train" else profile.answering.limit
        options = profile.answering.model_copy(update={"split": split, "limit": limit})
        answers[split] = answer(questions, knowledge, name, options, profile.llm, profile.seed)
    return answers


def _known(run: Run, kg: ArtifactRef) -> ArtifactRef:
    """A graph that is there already, as the run's graph."""
    with run.stage("kg", "kg") as record:
        record.artifact, record.status = kg, "cached"
        record.counts = read_manifest(kg.folder)["counts"]
    return kg
