"""The main flow: a graph and questions in, an evaluated question-answering system and its report out.

Every noun below is an artifact: a finished folder in the home that the next line reads.  A line whose inputs,
options and code have not changed is not computed again.
"""

from __future__ import annotations

from typing import Any

from prefect import flow

from kgqa_core.config import Profile
from tasks.answering import answer_all
from tasks.engine.publish import publish
from tasks.engine.run import completed, tracked_run
from tasks.evaluation import score_all
from tasks.kg import build_kg, export_dkg
from tasks.linking import link_topics
from tasks.passages import passages_of
from tasks.questions import questions_of
from tasks.retrieval import retrieve_all, train_retrievers
from tasks.rewriting import corpus_of, rewriter_of, write_all


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
        linked = link_topics(kg, questions, profile)
        facts = retrieve_all(kg, dkg, questions, linked, retrievers, profile)
        corpus = corpus_of(kg, dkg, questions, profile)
        rewriter = rewriter_of(corpus, profile)
        passages = passages_of(questions, profile)
        knowledge = write_all(kg, questions, facts, passages, rewriter, profile)
        answers = answer_all(questions, knowledge, profile, kg, facts, linked, dkg)
        scores = score_all(kg, questions, linked, facts, knowledge, answers, profile)
        summary = publish(run, profile, scores)
        return completed(summary["champion"]["why"], summary)
