"""What every run ends with: the questions of a graph answered with trained models, and scored."""

from __future__ import annotations

from kgqa_core.config import Profile
from kgqa_core.store.artifacts import ArtifactRef
from tasks.answering import answer_all
from tasks.engine.artifacts import RunArtifacts
from tasks.evaluation import score_all
from tasks.linking import link_topics
from tasks.passages import passages_of
from tasks.retrieval import retrieve_all
from tasks.rewriting import write_all


def answer_and_score(artifacts: RunArtifacts, profile: Profile) -> ArtifactRef:
    """The scores of the questions: their topics linked, facts retrieved and put into words, answers made and scored."""
    artifacts = link_topics(artifacts, profile)
    facts = retrieve_all(artifacts, profile)
    passages = passages_of(artifacts.questions, profile)
    knowledge = write_all(artifacts, facts, passages, profile)
    answers = answer_all(artifacts, facts, knowledge, profile)
    return score_all(artifacts, facts, knowledge, answers, profile)
