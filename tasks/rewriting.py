"""Stages that make the KG-to-Text corpus, train the rewriter on it, and put facts into words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kgqa_core.config import PASSAGES, CorpusOptions, LlmOptions, Profile, RewriterOptions, split_knowledge
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.external_digests import file_digest, model_digest
from tasks.engine.stage import stage
from tasks.passages import write_passages

MODEL_PACKAGES = ("torch", "transformers", "tokenizers", "peft")


def _corpus_outside(arguments: Any) -> dict[str, str]:
    options: CorpusOptions = arguments["options"]
    if options.imported:
        return {"imported": file_digest(Path(options.imported).expanduser())}
    return {"teacher": model_digest(options.teacher), "qa_model": model_digest(options.qa_model)}


@stage(
    "corpus",
    runs="kgqa_core.rewriting.corpus:generate",
    label=lambda arguments: f"by {arguments['options'].teacher}" if not arguments["options"].imported else "imported",
    outside=_corpus_outside,
    packages=(*MODEL_PACKAGES, "openai"),
    tags=("gpu",),
    retries=1,
)
def generate_corpus(
    kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, options: CorpusOptions, llm: LlmOptions, seed: int
) -> ArtifactRef:
    """Write sentences for gold subgraphs and keep those from which the QA model answers (Wu et al. 2023, 3.2)."""
    raise AssertionError


@stage(
    "rewriter",
    runs="kgqa_core.rewriting.train:train",
    label=lambda arguments: f"{arguments['options'].base} LoRA",
    outside=lambda arguments: {"base": model_digest(arguments["options"].base)},
    packages=MODEL_PACKAGES,
    tags=("gpu",),
)
def finetune_rewriter(corpus: ArtifactRef, options: RewriterOptions, seed: int) -> ArtifactRef:
    """Adapt a language model to the corpus by LoRA."""
    raise AssertionError


@stage("knowledge", runs="kgqa_core.kg.verbalise:write_knowledge", variant=lambda arguments: arguments["retriever"])
def write_triples(
    kg: ArtifactRef, questions: ArtifactRef, facts: ArtifactRef, retriever: str, qualifiers: bool
) -> ArtifactRef:
    """Write each question's facts as triple-form text."""
    raise AssertionError


@stage(
    "knowledge",
    runs="kgqa_core.rewriting.write:write",
    variant=lambda arguments: f"{arguments['retriever']}/{arguments['format']}",
    outside=lambda arguments: (
        {"base": model_digest(arguments["options"].base)} if arguments["format"] == "rewritten" else {}
    ),
    packages=MODEL_PACKAGES,
    tags=("gpu",),
    mapped=True,
)
def write_sentences(
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: ArtifactRef,
    rewriter: ArtifactRef | None,
    retriever: str,
    format: str,
    options: RewriterOptions,
    llm: LlmOptions,
    language: str,
    split: str,
    limit: int | None,
    seed: int,
) -> ArtifactRef:
    """Write each question's facts as sentences, by rule or by the rewriter."""
    raise AssertionError


def corpus_of(kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef | None:
    """The corpus, where the profile has knowledge rewritten by a model that learns it."""
    if not profile.trains_rewriter:
        return None
    return generate_corpus(kg, dkg, questions, profile.corpus, profile.llm, profile.seed)


def rewriter_of(corpus: ArtifactRef | None, profile: Profile) -> ArtifactRef | None:
    """The rewriter that a corpus teaches."""
    return finetune_rewriter(corpus, profile.rewriter, profile.seed) if corpus is not None else None


def write_knowledge(
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: ArtifactRef | None,
    passages: ArtifactRef | None,
    rewriter: ArtifactRef | None,
    name: str,
    profile: Profile,
    triples: ArtifactRef | None = None,
) -> ArtifactRef:
    """One retriever's facts in one format, or passages, or both.

    name: `retriever/format`.  facts: of the retriever; None for passages alone.  triples: the same facts as triples,
    where they are written already, for `both`.
    """
    retriever, form = split_knowledge(name)
    if form == PASSAGES:
        assert passages is not None
        return write_passages(questions, passages)
    assert facts is not None
    if form == "both":
        assert passages is not None
        triples = triples or write_triples(kg, questions, facts, retriever, profile.answering.qualifiers)
        return write_passages(questions, passages, triples, retriever)
    if form == "triples":
        return write_triples(kg, questions, facts, retriever, profile.answering.qualifiers)
    adapted = rewriter if form == "rewritten" else None
    return write_sentences(kg, questions, facts, adapted, retriever, form, *sentence_options(profile))


def sentence_options(profile: Profile) -> tuple[RewriterOptions, LlmOptions, str, str, int | None, int]:
    """The last arguments of `write_sentences`: how, in which language, and for which questions."""
    asked = profile.answering
    return profile.rewriter, profile.llm, profile.questions.language, asked.split, asked.limit, profile.seed


def write_all(
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: dict[str, ArtifactRef],
    passages: ArtifactRef | None,
    rewriter: ArtifactRef | None,
    profile: Profile,
) -> dict[str, ArtifactRef]:
    """Everything that the answering model is to read, by `retriever/format`.  passages: where any of it holds some."""
    found: dict[str, ArtifactRef] = {}
    for name in sorted(profile.knowledge, key=lambda name: name.endswith("/both")):
        retriever, form = split_knowledge(name)
        if form != "none":
            own, triples = facts.get(retriever), found.get(f"{retriever}/triples")
            found[name] = write_knowledge(kg, questions, own, passages, rewriter, name, profile, triples)
    return found
