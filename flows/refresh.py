"""The flow that follows a graph: a newer dump in, only what must be done again, a champion that moves or stays.

Ids of the graph stay, the arrays are merged, and trained models go on while only facts changed; `tasks.resume.refresh`
holds the decisions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prefect import flow

from flows.answer_and_score import answer_and_score
from kgqa_core.config import Profile
from kgqa_core.store.artifacts import ArtifactRef, Home
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.publish import publish
from tasks.engine.run import Run, completed, tracked_run
from tasks.kg import build_kg, export_dkg, update_dkg, update_kg
from tasks.questions import questions_of, with_feedback
from tasks.resume.refresh import Decision, decide, remember
from tasks.resume.reuse import reuse, reuse_all
from tasks.resume.starting_point import (
    StartingRun,
    is_current,
    read_since,
    reused_artifacts,
    run_of_these_inputs,
    starting_point,
)
from tasks.retrieval import train_retrievers
from tasks.rewriting import corpus_of, rewriter_of


@flow(name="kgqa-refresh", flow_run_name="refresh {profile.kg.name}/{profile.questions.name}")
def refresh(profile: Profile, files: tuple[str, ...] = ()) -> dict[str, Any]:
    """Take a newer dump of a graph: update, train again only what must be, answer, score, promote or not.

    Goes on from the champion of the same graph and questions, else from the newest run; without one this is a whole
    run of the pipeline.  What learns is trained again when a relation came or went, when more of the triples changed
    than `operations.retrain_share`, or when questions or options of a training changed; the confirmed feedback of the
    home is among the questions.  With the same files as before nothing is done.

    Args:
        profile: What is run: the graph, the questions, the models, and how.
        files: The files of the new dump; those of the profile's section `kg` when empty.
    """
    if files:
        profile = profile.model_copy(update={"kg": profile.kg.model_copy(update={"files": tuple(files)})})
    profile = with_feedback(profile, Home.current())
    same = run_of_these_inputs(Home.current(), profile)
    if same is not None:
        since = read_since(Home.current(), profile, same["run_id"])
        message = f"nothing to do: the dump and the questions are those of run {same['run_id']}{since}"
        return _nothing(same["run_id"], message)
    with tracked_run(profile) as run:
        start = starting_point(run.home, profile)
        kg, dkg = _graph(run, start, profile)
        questions = questions_of(kg, profile)
        decision = decide(start, kg, dkg, questions, profile)
        remember(run, decision)
        if decision.nothing:
            run.save(status="unchanged")
            return _nothing(str(decision.start), decision.why)
        made = _learnt(run, start, decision, RunArtifacts(kg, dkg, questions), profile)
        scores = answer_and_score(made, profile)
        summary = publish(run, profile, scores)
        message = f"{decision.why}; {summary['champion']['why']}"
        return completed(message, summary | {"refresh": decision.as_json()})


def _graph(run: Run, start: StartingRun | None, profile: Profile) -> tuple[ArtifactRef, ArtifactRef]:
    """The graph of the dump and its arrays: made from nothing, kept, or brought up to date."""
    if start is None:
        kg = build_kg(profile.kg)
        return kg, export_dkg(kg, profile.dkg)
    if is_current(start, profile):
        whose = f"{start.role} {start.run_id}"
        return reuse(run, "kg", start.kg, whose), reuse(run, "dkg", start.dkg, whose)
    kg = update_kg(start.kg, profile.kg)
    return kg, update_dkg(kg, start.dkg, profile.dkg)


def _learnt(
    run: Run, start: StartingRun | None, decision: Decision, made: RunArtifacts, profile: Profile
) -> RunArtifacts:
    """With retrievers and rewriter: trained on the new graph, or those of the run that is gone on from."""
    if start is not None and not decision.retrain:
        return reuse_all(run, made, reused_artifacts(start, profile), f"{start.role} {start.run_id}: {decision.why}")
    graph = made.kg, made.dkg, made.questions
    retrievers = train_retrievers(*graph, profile)
    return replace(made, retrievers=retrievers, rewriter=rewriter_of(corpus_of(*graph, profile), profile))


def _nothing(run_id: str, why: str) -> dict[str, Any]:
    """The end of a refresh that found everything as it was."""
    decision = Decision(run_id, False, why, nothing=True)
    return completed(why, {"run_id": run_id, "refresh": decision.as_json()})
