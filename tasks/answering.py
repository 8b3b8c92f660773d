"""The stage that asks the language model."""

from __future__ import annotations

from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import AnsweringOptions, check_knowledge
from tasks.outside import answerer_digest
from tasks.stage import stage


@stage(
    "answers",
    runs="kgqa_core.answering.answer:answer",
    label=lambda arguments: f"{arguments['retriever']} {arguments['options'].answerer}",
    variant=lambda arguments: arguments["retriever"],
    outside=lambda arguments: {"model": answerer_digest(arguments["options"].answerer)},
    packages=("torch", "transformers", "tokenizers", "openai"),
    tags=("gpu",),
    retries=1,
)
def answer(
    questions: ArtifactRef, knowledge: ArtifactRef | None, retriever: str, options: AnsweringOptions, seed: int
) -> ArtifactRef:
    """Ask the model every question, with one retriever's knowledge or with none."""
    raise AssertionError


def answer_all(
    questions: ArtifactRef, knowledge: dict[str, ArtifactRef], options: AnsweringOptions, seed: int
) -> dict[str, ArtifactRef]:
    """Answers with every configured kind of knowledge.  Raises ConfigError for knowledge that nobody collected."""
    check_knowledge(options.knowledge, knowledge)
    return {name: answer(questions, knowledge.get(name), name, options, seed) for name in options.knowledge}
