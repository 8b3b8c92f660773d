"""Stages that make the KG-to-Text corpus, train the rewriter on it, and put facts into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kgqa_core.answering.registry import knowledge_spec
from kgqa_core.config import CorpusOptions, Knowledge, LlmOptions, Profile, RewriterOptions
from kgqa_core.rewriting.request import SentenceRequest
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.workspace import Workspace
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.context import Call, Counts, folder
from tasks.engine.external_digests import file_digest, model_digest
from tasks.engine.stage import stage
from tasks.passages import write_passages

MODEL_PACKAGES = ("torch", "transformers", "tokenizers", "peft")


def _corpus_outside(call: Call) -> dict[str, str]:
    options: CorpusOptions = call.options
    if options.alpaca_file:
        return {"imported": file_digest(Path(options.alpaca_file).expanduser())}
    return {"teacher": model_digest(options.teacher), "qa_model": model_digest(options.qa_model)}


@stage(
    "corpus",
    label=lambda call: f"by {call.options.teacher}" if not call.options.alpaca_file else "imported",
    external=_corpus_outside,
    packages=(*MODEL_PACKAGES, "openai", "rdflib", "pyoxigraph"),
    tags=("gpu",),
    retries=1,
    pays=True,
    deployment="kgqa-generate-corpus/generate-corpus",
    only_here=lambda call: bool(call.options.alpaca_file),  # no GPU makes the reading of a file faster
)
def generate_corpus(
    workspace: Workspace,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    options: CorpusOptions,
    llm: LlmOptions,
    seed: int,
) -> Counts:
    """Write sentences for gold subgraphs and keep those from which the QA model answers (Wu et al. 2023, 3.2)."""
    from kgqa_core.rewriting.corpus import generate

    return generate(
        workspace, kg=kg.folder, dkg=dkg.folder, questions=questions.folder, options=options, llm=llm, seed=seed
    )


@stage(
    "rewriter",
    label=lambda call: f"{call.options.base} LoRA",
    external=lambda call: {"base": model_digest(call.options.base)},
    packages=MODEL_PACKAGES,
    tags=("gpu",),
    trains=True,
    deployment="kgqa-finetune-rewriter/finetune-rewriter",
)
def finetune_rewriter(workspace: Workspace, corpus: ArtifactRef, options: RewriterOptions, seed: int) -> Counts:
    """Adapt a language model to the corpus by LoRA."""
    from kgqa_core.rewriting.train import train

    return train(workspace, corpus=corpus.folder, options=options, seed=seed)


@stage("knowledge", variant=lambda call: call.retriever)
def write_triples(
    workspace: Workspace, kg: ArtifactRef, questions: ArtifactRef, facts: ArtifactRef, retriever: str, qualifiers: bool
) -> Counts:
    """Write each question's facts as triple-form text."""
    from kgqa_core.kg.verbalise import write_knowledge

    return write_knowledge(
        workspace,
        kg=kg.folder,
        questions=questions.folder,
        facts=facts.folder,
        retriever=retriever,
        qualifiers=qualifiers,
    )


def _merge_sentences(workspace: Workspace, parts: Sequence[Path], call: Call) -> Counts:
    from kgqa_core.rewriting.write import merge

    return merge(
        workspace,
        parts,
        kg=call.kg.folder,
        questions=call.questions.folder,
        facts=call.facts.folder,
        rewriter=folder(call.rewriter),
        request=call.request,
        options=call.options,
    )


@stage(
    "knowledge",
    variant=lambda call: f"{call.request.retriever}/{call.request.format}",
    external=lambda call: {"base": model_digest(call.options.base)} if call.request.format == "rewritten" else {},
    packages=MODEL_PACKAGES,
    tags=("gpu",),
    merge=_merge_sentences,
    pays=True,
)
def write_sentences(
    workspace: Workspace,
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: ArtifactRef,
    rewriter: ArtifactRef | None,
    request: SentenceRequest,
    options: RewriterOptions,
    llm: LlmOptions,
) -> Counts:
    """Write each question's facts as sentences, by rule or by the rewriter."""
    from kgqa_core.rewriting.write import write

    return write(
        workspace,
        kg=kg.folder,
        questions=questions.folder,
        facts=facts.folder,
        rewriter=folder(rewriter),
        request=request,
        options=options,
        llm=llm,
    )


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
    spec, read = knowledge_spec(name), Knowledge.parse(name)
    retriever = str(read.variant)
    if spec.passages:
        assert passages is not None
        if facts is None or not spec.facts:
            return write_passages(questions, passages)
        triples = triples or write_triples(kg, questions, facts, retriever, profile.answering.qualifiers)
        return write_passages(questions, passages, triples, retriever)
    assert facts is not None
    if not spec.sentences:
        return write_triples(kg, questions, facts, retriever, profile.answering.qualifiers)
    adapted = rewriter if spec.rewriter else None
    request = sentence_request(name, profile)
    return write_sentences(kg, questions, facts, adapted, request, profile.rewriter, profile.llm)


def sentence_request(name: str, profile: Profile) -> SentenceRequest:
    """What `write_sentences` is to write for knowledge named `retriever/format`."""
    read, answering = Knowledge.parse(name), profile.answering
    return SentenceRequest(
        retriever=str(read.variant),
        format=read.format,
        language=profile.questions.language,
        split=answering.split,
        limit=answering.limit,
        seed=profile.seed,
    )


def write_all(
    made: RunArtifacts, facts: Mapping[str, ArtifactRef], passages: ArtifactRef | None, profile: Profile
) -> dict[str, ArtifactRef]:
    """Everything that the answering model is to read, by `retriever/format`.  passages: where any of it holds some."""
    written: dict[str, ArtifactRef] = {}
    for name in sorted(profile.knowledge, key=lambda name: Knowledge.parse(name).format == "both"):
        read = Knowledge.parse(name)
        if read.format != "none":
            own, triples = facts.get(str(read.variant)), written.get(str(replace(read, format="triples")))
            given = (made.kg, made.questions, own, passages, made.rewriter, name, profile, triples)
            written[name] = write_knowledge(*given)
    return written
