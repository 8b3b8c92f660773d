"""The main flow: a graph and questions in, an evaluated question-answering system and its report out.

Every noun below is an artifact: a finished folder in the home that the next line reads.  A line whose inputs,
options and code have not changed is not computed again.
"""

from __future__ import annotations

from typing import Any

from prefect import flow

from kgqa_core.config import Profile
from tasks.answering import answer_all
from tasks.evaluation import publish, score
from tasks.kg import build_kg, export_dkg
from tasks.questions import load_questions
from tasks.retrieval import retrieve_all, train_retriever, write_all
from tasks.run import tracked_run


@flow(name="kgqa-pipeline", flow_run_name="{profile.kg.name}/{profile.questions.name}")
def pipeline(profile: Profile) -> dict[str, Any]:
    """Build the graph, train the retriever, answer the questions, score and report."""
    with tracked_run(profile) as run:
        kg = build_kg(profile.kg)
        dkg = export_dkg(kg, profile.dkg)
        questions = load_questions(kg, profile.questions, profile.seed)
        retriever = train_retriever(kg, dkg, questions, profile.retriever, profile.seed)
        facts = retrieve_all(kg, dkg, questions, retriever, profile.retrieval, profile.seed)
        knowledge = write_all(kg, questions, facts, profile.answering)
        answers = answer_all(questions, knowledge, profile.answering, profile.seed)
        scores = score(kg, questions, facts, answers, profile.evaluation, profile.seed, profile.answering.limit)
        return publish(run, profile, kg, dkg, questions, retriever, facts, answers, scores)
