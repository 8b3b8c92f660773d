"""The text that an answering model reads of each question, written for a batch.

The stages of a run write a table for all questions, `KnowledgeWriter` the texts of a batch; both call the same
functions of `kg.verbalise`, `rewriting` and `passages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.answering.registry import KnowledgeSpec, knowledge_spec
from kgqa_core.config import Profile
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.llm.models import Models
from kgqa_core.passages.search import PassageSearch, below_text, query_of
from kgqa_core.passages.table import Passage
from kgqa_core.rewriting.describe import Describer
from kgqa_core.types import Question, Retrieved


@dataclass(frozen=True, slots=True)
class WrittenKnowledge:
    """The knowledge of one question.

    text: all that is read.  facts: the text of each retrieved fact, in rank order, for people.  passages: with scores.
    """

    text: str
    facts: tuple[str, ...] = ()
    passages: tuple[tuple[Passage, float], ...] = ()


@dataclass(frozen=True)
class KnowledgeWriter:
    """Writes knowledge in one format.

    qualifiers: triples are written with those of their statements.  describer: writes sentences, where the format has
    some.  search: finds passages, where the format has some.
    """

    spec: KnowledgeSpec
    store: KgStore
    qualifiers: bool = False
    describer: Describer | None = None
    search: PassageSearch | None = None

    @classmethod
    def open(
        cls,
        knowledge: str,
        store: KgStore,
        profile: Profile,
        *,
        models: Models,
        rewriter: Path | None = None,
        passages: Path | None = None,
        cache: Path | None = None,
    ) -> KnowledgeWriter:
        """Load what the format of `knowledge`, `retriever/format`, needs.

        models: load a rewriter.  rewriter: a trained one; without it `rewriter.base` writes as it is.  passages: a
        passage index.  cache: folder that keeps vectors.
        Raises InputError without an index that is needed, ArtifactError or ModelError.
        """
        spec, describer, search = knowledge_spec(knowledge), None, None
        if spec.sentences:
            language = profile.questions.language
            describer = Describer.open(store, spec.name, rewriter, profile.rewriter, models, language)
        if spec.passages:
            if passages is None:
                raise InputError("passages are to be read, but there is no index of them; give `passages`")
            search = PassageSearch(passages, profile.passages, cache)
        return cls(spec, store, profile.answering.qualifiers, describer, search)

    def write(self, questions: Sequence[Question], retrieved: Sequence[Retrieved]) -> list[WrittenKnowledge]:
        """The knowledge of a batch of questions, in its order; retrieved: of each question."""
        triples = sorted({fact.triple for one in retrieved for fact in one.facts})
        wording = Wording(self.store, triples, self.qualifiers)
        passages = self._passages(questions)
        steps = [[(fact.triple, fact.direction) for fact in one.facts] for one in retrieved]
        texts = self.describer.describe(retrieved) if self.describer is not None else map(wording.paragraph, steps)
        written = []
        for text, facts, own in zip(texts, steps, passages, strict=True):
            if self.spec.passages:
                text = below_text(text, (passage.titled_text for passage, _ in own))
            written.append(WrittenKnowledge(text, tuple(wording.texts(facts)), own))
        return written

    def _passages(self, questions: Sequence[Question]) -> list[tuple[tuple[Passage, float], ...]]:
        if self.search is None:
            return [() for _ in questions]
        rankings = self.search.search([query_of(question, self.search.options.history) for question in questions])
        return [
            tuple(zip(self.search.read(ranked), (score for _, score in ranked), strict=True)) for ranked in rankings
        ]
