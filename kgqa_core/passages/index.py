"""The stage that makes a corpus searchable: passages, their vectors in FAISS, their words in BM25."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

from kgqa_core.config import PassagesOptions
from kgqa_core.errors import InputError
from kgqa_core.monitor import Monitor
from kgqa_core.passages import bm25, dense
from kgqa_core.passages.corpus import Document, RejectedText, RejectsWriter, find_corpus, read_corpus
from kgqa_core.passages.table import Passage, Passages, PassageWriter, chunk
from kgqa_core.store.artifacts import write_json
from kgqa_core.workspace import Workspace

META = "index.json"


def build(workspace: Workspace, *, options: PassagesOptions, seed: int) -> dict[str, Any]:
    """Writes passages/*.parquet, dense.faiss, bm25/, rejects.parquet and index.json; returns counts.

    What `options.retriever` does not search with is not made.  With the same cache, or the same `work`, a killed build
    encodes only what is missing.
    Returns documents, passages, rejects, encoded (passages whose vector was not known).
    Raises InputError without corpus or when nothing in it can be used, ModelError, StorageError.
    """
    scratch = workspace.work or workspace.out / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    documents, writer, rejects = 0, PassageWriter(workspace.out), RejectsWriter(workspace.out)
    for each in read_corpus(find_corpus(options.corpus), options):
        if isinstance(each, RejectedText):
            rejects.add(each)
            continue
        pieces = chunk(each.text, options.words)
        if not pieces:
            rejects.add(_empty(each))
            continue
        documents += 1
        for text in pieces:
            writer.add(Passage(each.id, each.title, text))
        if documents % 1000 == 0:
            workspace.monitor.progress(documents, None, "documents")
    writer.flush()
    rejects.close()
    _check(options, documents, rejects, workspace.monitor)
    counts = {"documents": documents, "passages": writer.count, "rejects": rejects.count}
    meta: dict[str, Any] = {"passages": writer.count, "words": options.words}
    texts = Passages(workspace.out, writer.count)
    if options.retriever in ("dense", "hybrid"):
        encoder = dense.open_encoder(options)
        scratched = replace(workspace, work=scratch)
        made = dense.build(scratched, texts.blocks(dense.BLOCK), writer.count, encoder, options, seed=seed)
        counts["encoded"] = made.pop("encoded")
        meta["dense"] = made
    if options.retriever in ("bm25", "hybrid"):
        meta["bm25"] = bm25.build(workspace, texts.blocks(dense.BLOCK), writer.count)
    write_json(workspace.out / META, meta)
    if workspace.work is None:
        shutil.rmtree(scratch)
    return counts


def _empty(document: Document) -> RejectedText:
    return RejectedText(document.file, document.line, "the text has no words", document.text[:80])


def _check(options: PassagesOptions, documents: int, rejects: RejectsWriter, monitor: Monitor) -> None:
    """Says what was rejected, and stops when that is everything."""
    shown = "; ".join(f"{each.file} line {each.line}: {each.reason}" for each in rejects.first)
    if not documents:
        why = f"all {rejects.count:,} are rejected: {shown}" if rejects.count else "it is empty"
        raise InputError(
            f"passages.corpus {options.corpus!r} has no document that can be used: {why}; set passages.format and "
            "passages.fields to what it is"
        )
    if rejects.count:
        monitor.note(f"{rejects.count:,} documents or lines of the corpus are rejected (rejects.parquet): {shown}")
