"""What a run has made before it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgqa_core.config import RetrieverVariant
from kgqa_core.errors import ConfigError
from kgqa_core.store.artifacts import ArtifactRef


@dataclass(frozen=True)
class RunArtifacts:
    """The graph, the questions and the trained models of a run.

    retrievers: those that learn, by name.  linked: the questions with linked topics, where a retriever starts from
    these.
    """

    kg: ArtifactRef
    dkg: ArtifactRef
    questions: ArtifactRef
    retrievers: Mapping[str, ArtifactRef] = field(default_factory=dict)
    rewriter: ArtifactRef | None = None
    linked: ArtifactRef | None = None

    def questions_for(self, variant: str) -> ArtifactRef:
        """The questions with the topics that a variant of a retriever starts from.  Raises ConfigError."""
        if not RetrieverVariant.parse(variant).linked:
            return self.questions
        if self.linked is None:
            raise ConfigError(f"{variant} starts from linked topics; set retrieval.topics to linked or both")
        return self.linked
