"""Stages that train the retrievers and collect facts for every question."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kgqa_core.config import (
    HopPathOptions,
    LlmOptions,
    Profile,
    RelationRankingOptions,
    RetrievalOptions,
    RetrieverOptions,
    split_retriever,
)
from kgqa_core.datasets.question import read_questions
from kgqa_core.datasets.splits import check_splits
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import InputError
from kgqa_core.retrieval.hops import check_hops, needed_hops
from kgqa_core.runs.records import choose_run
from kgqa_core.store.artifacts import ArtifactRef, read_manifest, verify
from tasks.engine.context import Call, Counts, StageContext, folder, folders
from tasks.engine.external_digests import encoder_digest, file_digest, model_digest
from tasks.engine.run import current_run
from tasks.engine.stage import stage
from tasks.linking import build_mentions, link_questions
from tasks.questions import more_questions

log = logging.getLogger("kgqa")
DEPLOYMENT = "kgqa-train-retriever/train-retriever"


def _label(name: str, hops: int | None) -> str:
    return f"{name} {hops} hops".strip() if hops is not None else name


@stage(
    "retriever",
    label=lambda call: _label("rigel", call.options.hops),
    external=lambda call: {"encoder": encoder_digest(call.options.encoder)},
    packages=("torch", "transformers", "tokenizers"),
    tags=("gpu",),
    trains=True,
    deployment=DEPLOYMENT,
)
def train_rigel(
    stage: StageContext,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    more: dict[str, ArtifactRef],
    feedback: ArtifactRef | None,
    options: RetrieverOptions,
    seed: int,
) -> Counts:
    """Train Rigel from question-answer pairs (Sen et al. 2023).  more: further question sets, by name."""
    from kgqa_core.retrieval.rigel.train import train

    return train(
        stage.out,
        kg=kg.folder,
        dkg=dkg.folder,
        questions=questions.folder,
        more=folders(more),
        feedback=folder(feedback),
        options=options,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
    )


@stage("feedback")
def gather_feedback(
    stage: StageContext,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    facts: ArtifactRef,
    answers: ArtifactRef,
    bare: ArtifactRef | None,
) -> Counts:
    """Collect the relation paths that an earlier run's right answers speak for."""
    from kgqa_core.retrieval.rigel.feedback import gather

    return gather(
        stage.out,
        dkg=dkg.folder,
        questions=questions.folder,
        facts=facts.folder,
        answers=answers.folder,
        bare=folder(bare),
        monitor=stage.monitor,
    )


def feedback_of(dkg: ArtifactRef, word: str | None) -> ArtifactRef | None:
    """What the run that a word means says of relation paths: by its first answers that read a retriever's facts.

    Raises InputError when there is no such run, no such answers in it, or when it was over another graph, whose facts
    have other numbers.
    """
    if word is None:
        return None
    run_id, found = feedback_sources(current_run().home.root, word)
    found = {name: verify(ref.folder) for name, ref in found.items()}
    over = read_manifest(found["facts"].folder).get("made_of", {}).get("inputs", {}).get("dkg")
    if over != dkg.digest:
        raise InputError(
            f"run {run_id} is over another graph than this one, so that its facts say nothing here; name a run over "
            "this graph in retriever.feedback, or make one"
        )
    return gather_feedback(dkg, found["questions"], found["facts"], found["answers"], found.get("bare"))


def feedback_sources(home: Path, word: str) -> tuple[str, dict[str, ArtifactRef]]:
    """Id of the run that a word means, and what feedback reads of it, by the argument of `gather_feedback`.

    Raises InputError when there is no such run, or no answers with a retriever's facts in it.
    """
    record = choose_run(home, word)
    artifacts = {stage["name"]: stage["artifact"] for stage in record["stages"] if stage.get("artifact")}
    made = {name: ArtifactRef.model_validate(artifact) for name, artifact in artifacts.items()}
    bare = {"bare": made["answers/none"]} if "answers/none" in made else {}
    for name, answers in made.items():
        facts = "facts/" + name.removeprefix("answers/").partition("/")[0]
        yardstick = facts.partition("@")[0] in ("facts/random", "facts/oracle")
        if name.startswith("answers/") and facts in made and not yardstick:
            return record["run_id"], {"questions": made["questions"], "facts": made[facts], "answers": answers, **bare}
    raise InputError(f"run {record['run_id']} has no answers with a retriever's facts; it has {', '.join(made)}")


@stage(
    "hop_path",
    label=lambda call: _label("", call.options.max_hops),
    external=lambda call: {"encoder": encoder_digest(call.options.encoder)},
    packages=("torch", "transformers", "tokenizers"),
    tags=("gpu",),
    trains=True,
    deployment=DEPLOYMENT,
)
def train_hop_path(
    stage: StageContext, kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, options: HopPathOptions, seed: int
) -> Counts:
    """Train the hop and relation classifiers of the path retriever (Wu et al. 2023)."""
    from kgqa_core.retrieval.hop_path.train import train

    return train(
        stage.out,
        kg=kg.folder,
        dkg=dkg.folder,
        questions=questions.folder,
        options=options,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
    )


def _ranked_outside(call: Call) -> dict[str, str]:
    """Digests of what a ranker reads beside artifacts."""
    ranking, name = call.section, split_retriever(call.name)[0]
    if name == "rank_llm":
        return {"model": model_digest(ranking.model)}
    if name == "rank_embedding":
        return {"encoder": encoder_digest(ranking.sentence_encoder)}
    return _amr_outside(ranking) if name == "rank_amr" else {}


def _ranker_outside(call: Call) -> dict[str, str]:
    options: RelationRankingOptions = call.options
    sets = {f"training_set_{number}": _file(name) for number, name in enumerate(options.training_sets)}
    return {"encoder": encoder_digest(options.encoder)} | sets | _amr_outside(options)


def _amr_outside(options: RelationRankingOptions) -> dict[str, str]:
    parser = {"amr_parser": _file(options.amr_parser.partition(":")[2])} if options.amr_parser else {}
    return parser | ({"amr_graphs": _file(options.amr_graphs)} if options.amr_graphs else {})


def _file(name: str) -> str:
    return file_digest(Path(name).expanduser())


@stage(
    "relation_ranker",
    label=lambda call: call.options.encoder,
    external=_ranker_outside,
    packages=("torch", "torch_geometric", "transformers", "tokenizers"),
    tags=("gpu",),
    trains=True,
    deployment=DEPLOYMENT,
)
def train_relation_ranker(
    stage: StageContext,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    options: RelationRankingOptions,
    seed: int,
) -> Counts:
    """Train the rankers of relations, with AMR graphs where there are any (Huang et al. 2024)."""
    from kgqa_core.retrieval.relation_ranking.train import train

    return train(
        stage.out,
        kg=kg.folder,
        dkg=dkg.folder,
        questions=questions.folder,
        options=options,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
        cache=stage.cache,
    )


@stage(
    "facts",
    variant=lambda call: call.name,
    external=_ranked_outside,
    packages=("torch", "torch_geometric", "transformers", "tokenizers", "openai"),
    retries=1,
    pays=True,
)
def rank_relations(
    stage: StageContext,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    retriever: ArtifactRef | None,
    name: str,
    options: RetrievalOptions,
    section: RelationRankingOptions,
    llm: LlmOptions,
    seed: int,
) -> Counts:
    """Collect the triples behind the best relations of each question's entities.  name: as of `retrieve`."""
    from kgqa_core.retrieval.collect import collect

    return collect(
        stage.out,
        kg=kg.folder,
        dkg=dkg.folder,
        questions=questions.folder,
        retriever=folder(retriever),
        name=name,
        options=options,
        section=section,
        llm=llm,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
        cache=stage.cache,
        budget=stage.budget,
    )


def _merge_facts(stage: StageContext, parts: Sequence[Path], call: Call) -> Counts:
    from kgqa_core.retrieval.collect import merge

    return merge(stage.out, parts, name=call.name, options=call.options, monitor=stage.monitor)


@stage(
    "facts",
    variant=lambda call: call.name,
    external=lambda call: (
        {"encoder": encoder_digest(call.options.kaping.encoder)} if split_retriever(call.name)[0] == "kaping" else {}
    ),
    packages=("torch",),
    merge=_merge_facts,
)
def retrieve(
    stage: StageContext,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    retriever: ArtifactRef | None,
    name: str,
    options: RetrievalOptions,
    seed: int,
) -> Counts:
    """Collect each question's facts and ranked entities with one retriever.  name: with `@linked` for linked topics."""
    from kgqa_core.retrieval.collect import collect

    return collect(
        stage.out,
        kg=kg.folder,
        dkg=dkg.folder,
        questions=questions.folder,
        retriever=folder(retriever),
        name=name,
        options=options,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
        cache=stage.cache,
        part=stage.part,
    )


def train_retrievers(
    kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile
) -> dict[str, ArtifactRef]:
    """Those of the configured retrievers that learn, by name.

    Raises QuestionFileError or ConfigError, before any is trained, when the questions leave one nothing to learn from.
    """
    _check_questions(dkg, questions, profile)
    wanted, trained = profile.retrieval.retrievers, {}
    if "rigel" in wanted:
        more = more_questions(kg, profile.questions, profile.seed)
        learnt, feedback = questions, feedback_of(dkg, profile.retriever.feedback)
        if profile.retriever.soft_start:
            mentions = build_mentions(kg)
            learnt = link_questions(kg, mentions, questions, profile.linking)
            more = {name: link_questions(kg, mentions, own, profile.linking) for name, own in more.items()}
        trained["rigel"] = train_rigel(kg, dkg, learnt, more, feedback, profile.retriever, profile.seed)
    if "hop_path" in wanted:
        trained["hop_path"] = train_hop_path(kg, dkg, questions, profile.hop_path, profile.seed)
    if rankers := [name for name in ("rank_pair", "rank_amr") if name in wanted]:
        ranker = train_relation_ranker(kg, dkg, questions, profile.relation_ranking, profile.seed)
        trained |= dict.fromkeys(rankers, ranker)
    return trained


def _check_questions(dkg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> None:
    """What preflight can only say of a file with annotated paths, now that questions and graph are joined."""
    everything = read_questions(questions.folder)
    sizes = Counter(question.split for question in everything)
    check_splits(sizes, profile.needed_splits, profile.questions.path or profile.questions.source)
    if any(limit is not None for _, limit in profile.hop_limits):
        for warning in check_hops(needed_hops(everything, Dkg.open(dkg.folder)), profile.hop_limits):
            log.warning("%s; leave it unset to cover them", warning)


def retrieve_all(
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    linked: ArtifactRef | None,
    trained: dict[str, ArtifactRef],
    profile: Profile,
) -> dict[str, ArtifactRef]:
    """Facts of every configured retriever, by name.  linked: the questions of those that start from linked topics."""
    found = {}
    for name in profile.retrieval.collected:
        plain, from_links = split_retriever(name)
        asked = linked if from_links else questions
        assert asked is not None, f"{name} needs linked questions"
        found[name] = facts_of(kg, dkg, asked, trained.get(plain), name, profile)
    return found


def facts_of(
    kg: ArtifactRef, dkg: ArtifactRef, asked: ArtifactRef, trained: ArtifactRef | None, name: str, profile: Profile
) -> ArtifactRef:
    """Facts of one retriever, by the stage that its kind needs.  trained: what it learnt, where it learns."""
    plain = split_retriever(name)[0]
    if not plain.startswith("rank_"):
        return retrieve(kg, dkg, asked, trained, name, profile.retrieval, profile.seed)
    llm = profile.llm if plain == "rank_llm" else LlmOptions()
    return rank_relations(kg, dkg, asked, trained, name, profile.retrieval, profile.relation_ranking, llm, profile.seed)
