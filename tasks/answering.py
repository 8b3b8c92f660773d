"""The stage that asks the language model."""

from __future__ import annotations

from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import AnsweringOptions, LlmOptions, split_knowledge
from tasks.outside import model_digest
from tasks.stage import stage


@stage(
    "answers",
    runs="kgqa_core.answering.answer:answer",
    label=lambda arguments: f"{arguments['name']} {arguments['options'].answerer}",
    variant=lambda arguments: arguments["name"].removesuffix("/triples").removesuffix("/none"),
    outside=lambda arguments: {"model": model_digest(arguments["options"].answerer)},
    packages=("torch", "transformers", "tokenizers", "openai"),
    tags=("gpu",),
    retries=1,
    mapped=True,
)
def answer(
    questions: ArtifactRef,
    knowledge: ArtifactRef | None,
    name: str,
    options: AnsweringOptions,
    llm: LlmOptions,
    seed: int,
) -> ArtifactRef:
    """Ask the model every question, with one retriever's facts in one format or with none."""
    raise AssertionError


def answer_all(
    questions: ArtifactRef,
    knowledge: dict[str, ArtifactRef],
    options: AnsweringOptions,
    llm: LlmOptions,
    seed: int,
) -> dict[str, ArtifactRef]:
    """Answers with every configured kind of knowledge, by `retriever/format`."""
    names = ["/".join(split_knowledge(name)) for name in options.knowledge]
    return {name: answer(questions, knowledge.get(name), name, options, llm, seed) for name in names}
