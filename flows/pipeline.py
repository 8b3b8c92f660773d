"""The main flow: a graph and questions in, an evaluated question-answering system and its report out.

Every noun below is an artifact: a finished folder in the home that the next line reads.  A line whose inputs,
options and code have not changed is not computed again.
"""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.answer_and_score import answer_and_score
from kgqa_core.config import Profile
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.publish import publish
from tasks.engine.run import completed, tracked_run
from tasks.kg import build_kg, export_dkg
from tasks.questions import questions_of
from tasks.retrieval import train_retrievers
from tasks.rewriting import corpus_of, rewriter_of


@flow(name="kgqa-pipeline", flow_run_name="{profile.kg.name}/{profile.questions.name}")
def pipeline(profile: Profile) -> dict[str, Any]:
    """Build the graph, train the retrievers and the rewriter, answer the questions, score and report.

    Args:
        profile: What is run: the graph, the questions, the models, and how.
    """
    with tracked_run(profile) as run:
        kg = build_kg(profile.kg)
        dkg = export_dkg(kg, profile.dkg)
        questions = questions_of(kg, profile)
        retrievers = train_retrievers(kg, dkg, questions, profile)
        corpus = corpus_of(kg, dkg, questions, profile)
        rewriter = rewriter_of(corpus, profile)
        scores = answer_and_score(RunArtifacts(kg, dkg, questions, retrievers, rewriter), profile)
        summary = publish(run, profile, scores)
        return completed(summary["champion"]["why"], summary)
