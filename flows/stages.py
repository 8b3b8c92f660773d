"""Flows of single stages: trained on another machine, made ahead, or run again when questions or models change.

Each one is a straight line of the calls of `flows.pipeline`; what is finished in the home is found, not made again.
A run calls the first three as deployments (`tasks.engine.deployments`); anybody may run them from the UI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import flow

from flows.answer_and_score import answer_and_score
from kgqa_core.config import Profile
from kgqa_core.errors import ArtifactError
from kgqa_core.store.artifacts import ArtifactRef
from tasks import rewriting
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.publish import publish
from tasks.engine.run import Run, completed, tracked_run
from tasks.engine.stage_request import StageRequest, in_process, receive
from tasks.kg import build_kg, export_dkg
from tasks.questions import questions_of
from tasks.resume.reuse import reuse, reuse_all
from tasks.resume.starting_point import reused_artifacts, starting_point, take_over
from tasks.retrieval import train_retrievers


@flow(name="kgqa-train-retriever", flow_run_name="train retriever {profile.kg.name}/{profile.questions.name}")
def train_retriever(profile: Profile, given: StageRequest | None = None) -> dict[str, Any]:
    """Train the retrievers of a profile (Rigel, the path retriever, relation rankers) on its graph and questions.

    What a killed training has saved is taken up, and a finished one is found.  The next run of the pipeline with the
    same profile goes on with what was trained here.

    Args:
        profile: Every parameter of a run; only the graph, the questions and the retrievers count here.
        given: Filled in by a run that calls this one; leave it empty.
    """
    profile = in_process(profile)
    with tracked_run(profile) as run, receive(given, run) as inputs:
        kg = inputs.get("kg") or build_kg(profile.kg)
        dkg = inputs.get("dkg") or export_dkg(kg, profile.dkg)
        # of several sets the caller hands over the union
        questions = None if profile.trained_on else inputs.get("questions")
        return _ended(run, train_retrievers(kg, dkg, questions or questions_of(kg, profile), profile))


@flow(name="kgqa-generate-corpus", flow_run_name="generate corpus {profile.kg.name}/{profile.questions.name}")
def generate_corpus(profile: Profile, given: StageRequest | None = None) -> dict[str, Any]:
    """Make the KG-to-Text corpus of a profile: a teacher's sentences for gold subgraphs, checked by a QA model.

    Answers of endpoints are paid once: a killed run goes on where it was.

    Args:
        profile: Every parameter of a run; the graph, the questions, `corpus` and `llm` count here.
        given: Filled in by a run that calls this one; leave it empty.
    """
    profile = in_process(profile)
    with tracked_run(profile) as run, receive(given, run) as inputs:
        kg = inputs.get("kg") or build_kg(profile.kg)
        dkg = inputs.get("dkg") or export_dkg(kg, profile.dkg)
        questions = inputs.get("questions") or questions_of(kg, profile)
        corpus = rewriting.generate_corpus(kg, dkg, questions, profile.corpus, profile.llm, profile.seed)
        return _ended(run, {"corpus": corpus})


@flow(name="kgqa-finetune-rewriter", flow_run_name="finetune rewriter {profile.kg.name}/{profile.questions.name}")
def finetune_rewriter(profile: Profile, given: StageRequest | None = None) -> dict[str, Any]:
    """Adapt the language model that puts facts into sentences (LoRA) to the corpus of a profile.

    The corpus is made first where it is missing.  What a killed training has saved is taken up.

    Args:
        profile: Every parameter of a run; the graph, the questions, `corpus`, `rewriter` and `llm` count here.
        given: Filled in by a run that calls this one; leave it empty.
    """
    profile = in_process(profile)
    with tracked_run(profile) as run, receive(given, run) as inputs:
        corpus = inputs.get("corpus") or _corpus(profile)
        return _ended(run, {"rewriter": rewriting.finetune_rewriter(corpus, profile.rewriter, profile.seed)})


@flow(name="kgqa-evaluate", flow_run_name="evaluate {profile.kg.name}/{profile.questions.name}")
def evaluate(profile: Profile, trained_by: str | None = None) -> dict[str, Any]:
    """Answer and score a profile's questions with what an earlier run trained; nothing is trained.

    For new questions, another answering model or other knowledge.  Graph, retrievers and rewriter are those of the
    champion of the same graph and questions, else of the newest run; the result contends like any other run.

    Args:
        profile: Every parameter of a run; trainings are not made, whatever it says of them.
        trained_by: Id of the run whose graph and trained models are used; the champion's when empty.
    """
    with tracked_run(profile) as run:
        start = starting_point(run.home, profile, trained_by)
        if start is None:
            raise ArtifactError(
                f"{run.home.root} has no finished run of {profile.kg.name}/{profile.questions.name}, so there is "
                "nothing to evaluate; run the pipeline first"
            )
        run.decide("evaluates", f"what {start.role} {start.run_id} trained")
        take_over(run, start)
        whose = f"{start.role} {start.run_id}"
        kg, dkg = (reuse(run, kind, start.parts[kind], whose) for kind in ("kg", "dkg"))
        questions = questions_of(kg, profile)
        trained = reuse_all(run, RunArtifacts(kg, dkg, questions), reused_artifacts(start, profile), whose)
        scores = answer_and_score(trained, profile)
        summary = publish(run, profile, scores)
        return completed(f"evaluated what {whose} trained; {summary['champion']['why']}", summary)


def _corpus(profile: Profile) -> ArtifactRef:
    """The corpus of a profile, found or made with all that it is made of."""
    kg = build_kg(profile.kg)
    dkg = export_dkg(kg, profile.dkg)
    questions = questions_of(kg, profile)
    return rewriting.generate_corpus(kg, dkg, questions, profile.corpus, profile.llm, profile.seed)


def _ended(run: Run, made: Mapping[str, ArtifactRef]) -> dict[str, Any]:
    """The end of a run that makes artifacts for others: its record, and a state that says what it made."""
    run.save(status="made")
    stages = {stage.artifact.path: stage for stage in run.stages if stage.artifact is not None}
    statuses = [f"{stages[ref.path].title} {stages[ref.path].status}" for ref in made.values()]
    return completed(", ".join(statuses) or "the profile needs none", dict(made))
