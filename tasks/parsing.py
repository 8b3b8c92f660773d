"""Stages of the semantic parsers: the questions they learn from, their training, and what they say of questions."""

from __future__ import annotations

from kgqa_core.artifacts import ArtifactRef
from tasks.stage import stage


@stage("examples", runs="kgqa_core.parsing.of_questions:examples", packages=("duckdb", "numpy", "polars"))
def parsing_examples(kg: ArtifactRef, questions: ArtifactRef, linked: ArtifactRef | None = None) -> ArtifactRef:
    """Give each question its gold form and its topics, annotated or linked."""
    raise AssertionError
