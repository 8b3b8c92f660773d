"""Options of the answerers that explore the graph themselves: an agent over it, and decoding constrained to it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kgqa_core.config.base import Options


class AgentOptions(Options):
    """An agent over the graph, `agent:openai:MODEL`: how it explores, how it speaks, and its limits for one question.

    `turns` is the loop's, `depth` and `width` are the beam's; both keep within `calls` and `tokens`.
    """

    policy: Literal["loop", "beam"] = "loop"
    """`loop` is the multi-turn loop of KG-R1 (Song et al. 2025): one operation a turn, its observation, and so on until
    the answer.  `beam` is Think-on-Graph (Sun et al. 2024): at each depth the model prunes relations and then entities
    to `width`, and says whether the facts are enough."""
    protocol: Literal["tools", "json"] = "tools"
    """`tools` sends operations as functions that the model calls; `json` has each reply follow a JSON schema."""
    turns: int = Field(default=10, ge=1)
    """Replies of the loop for one question; the last may only be an answer."""
    depth: int = Field(default=3, ge=1)
    """Largest number of hops of the beam (D of Think-on-Graph)."""
    width: int = Field(default=3, ge=1)
    """Relations of an entity, and entities of a depth, that the beam keeps (N of Think-on-Graph)."""
    calls: int = Field(default=40, ge=1)
    """Completions for one question, rejected ones included; the last may only be an answer."""
    tokens: int = Field(default=40_000, ge=1)
    """Prompt and completion tokens of one question, by the server's count; a request that would exceed them by our
    estimate is not sent, and the question ends without an answer."""
    faults: int = Field(default=2, ge=0)
    """Turns of the loop in which the model gave no reply that can be read, after `llm.attempts` each, that are answered
    with what was wrong; one more ends the question."""
    retry_temperature: float = Field(default=0.7, ge=0)
    """Temperature of further attempts at a reply that cannot be read; the first is greedy."""
    max_new_tokens: int = Field(default=512, ge=16)
    """Longest reply in tokens, thoughts included."""
    shown: int = Field(default=40, ge=1)
    """Relations or entities in one observation; of the rest the number is given."""


class ConstrainedOptions(Options):
    """Graph-constrained decoding, `gcr:hf:MODEL` (Luo et al. 2024): paths of the graph as the only possible output."""

    hops: int = Field(default=2, ge=1, le=4)
    """Longest path from a topic."""
    beams: int = Field(default=5, ge=1)
    """Paths that the beam search keeps and returns (K)."""
    final: Literal["paths", "model"] = "model"
    """How the answer comes from the paths: `paths` takes the end of the likeliest path and of those with the same
    relations; `model` has the model answer from the paths, constrained to names of their ends."""
    answers: int = Field(default=1, ge=1)
    """Names that the model answers with, likeliest first, under `final: model`."""
    max_edges: int = Field(default=2_000, ge=1)
    """Edges along one relation from the same path that are put into the trie, in order of id; the rest counts as
    truncated."""
    max_path_tokens: int = Field(default=128, ge=8)
    """Longest path in tokens; a longer one is cut off and does not count."""
