"""Options of entity linking."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kgqa_core.config.base import Execution, Options


class LinkerEndpoint(Options):
    """An entity linker behind HTTP, which questions and their earlier turns are sent to."""

    api: Literal["tagme", "rel", "blink"]
    """`tagme` and `rel` find mentions and entities; `blink` ranks the entities of the tagger's own mentions."""
    url: str
    """Where requests go: TAGME's `…/tag`, REL's address, or `…/api/entity-link/samples` of a server of BLINK."""
    key_env: str | None = None
    """Name of the environment variable that holds its key: TAGME's `gcube-token`, a bearer token of others."""
    language: str = "en"
    """Language of texts, for TAGME."""
    timeout_seconds: Execution[float] = Field(default=30, gt=0)
    """Longest wait for one reply."""
    max_reply_mb: Execution[float] = Field(default=8, gt=0, le=4096)
    """Largest reply after decompression, in MiB; a larger one is not read."""
    retries: Execution[int] = Field(default=3, ge=0)
    """Further tries of a request that failed."""


class LinkingOptions(Options):
    """How the entities of a bare question are found: a tagger of the TAGME type over the graph's own names."""

    service: LinkerEndpoint | None = None
    """A linker over Wikipedia that is asked besides; its pages mean the entities that have their titles as names."""

    threshold: float = Field(default=0.22, ge=0, le=1)
    """Smallest confidence ρ of an entity that is linked (LTGen's)."""
    top: int = Field(default=5, ge=1)
    """Entities linked in one question at most, the most confident first."""
    candidates: int = Field(default=10, ge=1)
    """Entities of one name that are weighed against each other, the most common first."""
    fallback: bool = True
    """Where no entity reaches the threshold, take the best one all the same."""
    appositions: Literal["first", "all"] = "first"
    """Of names side by side whose entities the graph relates, as in `Seoul, Korea`, take the first only, which is what
    a question is about; or all, as in a text of which every entity is wanted."""
    typos: int = Field(default=2, ge=0, le=2)
    """Typing errors allowed in a name at most, where the words are nothing else: one in names of four letters or more,
    two from eight on; 0 looks for names as they are written."""
    context: Literal["none", "words", "encoder"] = "words"
    """What breaks ties between entities of one name: nothing, words that the question shares with types and relations
    of an entity, or also the likeness of its encoded description."""
    encoder: str = "minilm"
    """Sentence encoder of `context: encoder`: `minilm` (packaged), or a folder or hub id."""
    turns: int = Field(default=4, ge=0)
    """Earlier turns of a dialogue whose mentions stay candidates."""
    turn_weight: float = Field(default=0.8, gt=0, le=1)
    """What the confidence of a mention is multiplied with for each turn that it lies back."""
