"""The stage that reads questions and links them to the graph."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from types import SimpleNamespace

from kgqa_core.config import GeneratedQuestionsOptions, LlmOptions, Profile, QuestionsOptions
from kgqa_core.datasets.published.registry import GENERATED
from kgqa_core.report.page import GENERATED_SCORES
from kgqa_core.serving.feedback import FILE as FEEDBACK
from kgqa_core.serving.feedback import FeedbackStore
from kgqa_core.serving.feedback_examples import training_examples, write_examples
from kgqa_core.serving.limits import SERVE_FOLDER
from kgqa_core.store.artifacts import ArtifactRef, Home, read_manifest
from kgqa_core.workspace import Workspace
from tasks.engine.context import Call, Counts, folders
from tasks.engine.external_digests import file_digest, model_digest
from tasks.engine.run import current_run
from tasks.engine.stage import stage

log = logging.getLogger("kgqa")


def _question_files(call: Call) -> dict[str, str]:
    options = call.options
    further = {}
    if options.also_train:
        further = {"also_train": file_digest(Path(options.also_train).expanduser())}
    if options.source == "atlas":
        from kgqa_core.datasets.published.atlas import QUESTIONS

        return {"atlas": file_digest(QUESTIONS), **further}
    return ({"questions": file_digest(Path(options.path).expanduser())} if options.path else {}) | further


@stage(
    "questions",
    label=lambda call: call.options.name,
    external=_question_files,
    packages=("rdflib", "pyoxigraph"),
)
def load_questions(workspace: Workspace, kg: ArtifactRef, options: QuestionsOptions, seed: int) -> Counts:
    """Read the questions, link topics and answers to the graph, list what cannot be linked, measure leakage."""
    from kgqa_core.datasets.load import load

    return load(workspace, kg=kg.folder, options=options, seed=seed)


@stage(
    "generated_questions",
    label=lambda call: f"{call.options.size:,} by {call.options.writer}",
    external=lambda call: {} if call.options.writer == "template" else {"writer": model_digest(call.options.writer)},
    packages=("duckdb", "numpy"),
    retries=1,
    pays=True,
)
def generate_questions(
    workspace: Workspace, kg: ArtifactRef, options: GeneratedQuestionsOptions, llm: LlmOptions, seed: int
) -> Counts:
    """Make questions from the graph alone: forms drawn, run and worded, some without an answer."""
    from kgqa_core.builders.questions.generate import generate

    return generate(workspace, kg.folder, options, seed, llm=llm)


@stage(
    "questions",
    label=lambda call: call.options.name,
    external=_question_files,
)
def load_generated(
    workspace: Workspace, kg: ArtifactRef, generated: ArtifactRef, options: QuestionsOptions, seed: int, repeat: int
) -> Counts:
    """Link the generated questions, with a few real ones mixed in where there are any."""
    from kgqa_core.builders.questions.mix import load_mixed

    return load_mixed(workspace, kg=kg.folder, generated=generated.folder, options=options, repeat=repeat, seed=seed)


def questions_of(kg: ArtifactRef, profile: Profile) -> ArtifactRef:
    """The questions of a profile: of its file or benchmark, or made from the graph."""
    loaded = _questions_of(kg, profile.questions, profile)
    counts = read_manifest(loaded.folder)["counts"]
    if counts.get("generated_scored"):
        unread = counts["left_out"]["not_read"]
        easier = f"; {unread:,} that the search does not read as they are meant were left out before" if unread else ""
        current_run().decide("scored_on", GENERATED_SCORES + easier)
    return loaded


def _questions_of(kg: ArtifactRef, options: QuestionsOptions, profile: Profile) -> ArtifactRef:
    if options.source != GENERATED:
        return load_questions(kg, options, profile.seed)
    made = generate_questions(kg, options.generated, profile.llm, profile.seed)
    return load_generated(kg, made, options, profile.seed, options.generated.repeat)


@stage(
    "questions",
    variant=lambda call: f"more/{call.options.name}",
    external=_question_files,
    packages=("rdflib",),
)
def load_more(workspace: Workspace, kg: ArtifactRef, options: QuestionsOptions, seed: int) -> Counts:
    """Read a further question set that the retriever learns from."""
    from kgqa_core.datasets.load import load

    return load(workspace, kg=kg.folder, options=options, seed=seed)


def more_questions(kg: ArtifactRef, options: QuestionsOptions, seed: int) -> dict[str, ArtifactRef]:
    """The further question sets, by name."""
    return {one.name: load_more(kg, QuestionsOptions(**one.model_dump()), seed) for one in options.more}


@stage("questions", variant=lambda call: "union")
def unite_questions(workspace: Workspace, sets: dict[str, ArtifactRef]) -> Counts:
    """Make one set of the training questions of several, without those that any of them tests."""
    from kgqa_core.datasets.derived.unite import unite

    return unite(workspace, sets=folders(sets))


def training_questions(kg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef:
    """What a profile's retrievers are trained on: its own questions, or with `questions_train: union` all sets'."""
    if not profile.trained_on:
        return questions
    others = [one for one in profile.trained_on if one != profile.questions]
    loaded = {one.name: _questions_of(kg, one, profile) for one in (*others, profile.questions)}  # the run's own last
    return unite_questions({one.name: loaded[one.name] for one in profile.trained_on})


def question_digests(options: QuestionsOptions) -> dict[str, str]:
    """Digests of the files that questions would be read from, as they enter their key."""
    return _question_files(SimpleNamespace(options=options))


def with_feedback(profile: Profile, home: Home) -> Profile:
    """The profile, with the home's confirmed feedback among its questions; a file of the profile's own stays.

    It is written to a file whose name follows its content, so that a run can be made again.
    """
    folder = home.root / SERVE_FOLDER
    if profile.questions.also_train is not None or not (folder / FEEDBACK).is_file():
        return profile
    with contextlib.closing(FeedbackStore(folder)) as store:
        rows = store.rows()
    if faults := [row for row in rows if row["fault"]]:
        log.warning("%d of %d verdicts cannot train and are left out: `kgqa feedback list`", len(faults), len(rows))
    if not (examples := training_examples(rows)):
        return profile
    path = write_examples(folder, examples)
    held = sum(example.held_out for example in examples)
    log.info("%d confirmed questions train besides, %d test what they teach: %s", len(examples) - held, held, path)
    questions = profile.questions.model_copy(update={"also_train": str(path)})
    return profile.model_copy(update={"questions": questions})
