"""Options of passages of text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kgqa_core.config.base import Execution, Options


class PassagesOptions(Options):
    """Passages of text that answers are read from, beside facts or instead of them (Huang et al. 2024)."""

    corpus: Execution[str | None] = None
    """The texts: a file, or a folder whose files are read in order of name; `.gz`, `.bz2` and `.zst` are unpacked."""
    format: Literal["auto", "jsonl", "text", "kilt", "tsv"] = "auto"
    """`jsonl` has an object a line, `text` has blank lines between documents, `kilt` is KILT's knowledge source or its
    passages of 100 words, `tsv` has passages as `id, text, title`, as KILT and DPR publish them; `auto` looks at the
    beginning of each file."""
    fields: dict[Literal["id", "title", "text"], str] = {}
    """Names of the fields of JSON lines: `id`, `title`, `text` (the defaults), such as `{id: docid, text: contents}`;
    a document without id is called by its line."""
    words: int = Field(default=100, ge=10, le=1000)
    """Longest passage in words; of scripts without spaces two characters count as a word."""
    retriever: Literal["dense", "bm25", "hybrid"] = "dense"
    """`dense` compares vectors, `bm25` words, `hybrid` joins both by reciprocal rank."""
    k: int = Field(default=10, ge=1)
    """Passages kept of a question."""
    history: int = Field(default=2, ge=0)
    """Earlier turns of a dialogue that are searched for along with its last query."""
    encoder: str = "minilm"
    """`minilm` (packaged), or a folder or hub id of a HF encoder with mean pooling, such as Contriever."""
    similarity: Literal["auto", "cosine", "dot"] = "auto"
    """How vectors are compared: by `cosine`, or by the `dot` product of vectors as long as the encoder makes them;
    `auto` is `dot` for a Contriever, as published, and `cosine` for others."""
    max_tokens: int = Field(default=256, ge=16)
    """Tokens of a passage that the encoder reads."""
    index: Literal["flat", "ivf", "auto"] = "auto"
    """FAISS index: `flat` compares all vectors, `ivf` those of the nearest cells; `auto` is flat up to half a million
    passages."""
    device: Execution[str] = "auto"
    """Of the encoder: `auto`, `cpu`, `cuda` or `cuda:N`."""
