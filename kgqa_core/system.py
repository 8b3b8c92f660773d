"""The finished system: a graph, a trained retriever and a language model that answer a question together.

The top floor of the library, for notebooks and for `kgqa ask`:

    system = System.open(kg=…, dkg=…, retriever=…)
    system.ask("What is the capital of France?")["answer"]
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kgqa_core.config import AnsweringOptions, LlmOptions, RetrievalOptions, RewriterOptions, split_knowledge
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.protocol import GenerationParams, LanguageModel
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import answer_prompt
from kgqa_core.retrieval.opening import Opener, make_opener
from kgqa_core.rewriting.teller import Teller
from kgqa_core.types import Question, Retrieved

SHORTEST_MENTION = 3
LONGEST_MENTION = 80


@dataclass
class System:
    """A question-answering system over one graph.

    knowledge: `retriever/format` that the model reads.  teller: turns retrieved facts into sentences, where the format
    is not triples.
    """

    store: KgStore
    dkg: Dkg
    opener: Opener
    model: LanguageModel
    answering: AnsweringOptions
    knowledge: str = "rigel/triples"
    teller: Teller | None = None

    @classmethod
    def open(
        cls,
        *,
        kg: Path,
        dkg: Path,
        retriever: Path | None,
        retrieval: RetrievalOptions | None = None,
        answering: AnsweringOptions | None = None,
        llm: LlmOptions | None = None,
        knowledge: str = "rigel/triples",
        rewriter: Path | None = None,
        rewriting: RewriterOptions | None = None,
        language: str = "en",
        cache: Path | None = None,
        seed: int = 7,
    ) -> System:
        """Open the artifacts of a run.

        retriever: the trained retriever that `knowledge` names.  rewriter: for the format rewritten.  cache: folder
        that keeps vectors for all runs, of KAPING.  seed: of the retriever `random`.
        Raises ArtifactError, GraphMismatch, ConfigError, ModelError or EndpointError.
        """
        answering, llm = answering or AnsweringOptions(), llm or LlmOptions()
        graph = Dkg.open(dkg)
        name, form = split_knowledge(knowledge)
        options = retrieval or RetrievalOptions()
        store = KgStore.open(kg)
        teller = None
        if form in ("template", "rewritten"):
            teller = Teller.open(store, form, rewriter, rewriting or RewriterOptions(), llm, language)
        return cls(
            store=store,
            dkg=graph,
            opener=(
                (lambda names: _Nothing())
                if name == "none"
                else make_opener(name, graph, options, seed, retriever=retriever, kg=kg, cache=cache)
            ),
            model=load_model(answering.answerer, llm),
            answering=answering,
            knowledge=f"{name}/{form}",
            teller=teller,
        )

    def ask(self, text: str, topics: Sequence[str] = ()) -> dict[str, Any]:
        """Answer one question.

        topics: keys or labels of the entities that it is about; without any, labels that occur in the question and
        belong to one entity only are taken, the longest first.
        Returns answer, topics, facts (text, hop, score, direction), entities (name, score), knowledge, and the text
        that the model read.
        Raises InputError when a topic is not in the graph or none is found in the question.
        """
        found = self._given(topics) if topics else self._mentioned(text)
        question = Question(id="ask", text=text, topic_entities=tuple(found), topic_keys=tuple(found.values()))
        forms = self.store.surface_forms(list(found))
        retrieved = self.opener(forms).retrieve([question])[0]
        names = self.store.names({entity for entity, _ in retrieved.entities[:10]} | set(found))
        wording = Wording(self.store, [fact.triple for fact in retrieved.facts], self.answering.qualifiers)
        texts = wording.texts([(fact.triple, fact.direction) for fact in retrieved.facts])
        rows = [
            {"text": text, "hop": fact.hop, "score": round(fact.score, 4), "direction": fact.direction}
            for text, fact in zip(texts, retrieved.facts, strict=True)
        ]
        knowledge = self.teller.tell(retrieved) if self.teller is not None else _joined(texts, retrieved)
        prompt = answer_prompt(text, knowledge, self.answering.template)
        completion = self.model.generate([prompt], GenerationParams(max_new_tokens=self.answering.max_new_tokens))[0]
        return {
            "question": text,
            "answer": completion.text.strip().split("\n")[0],
            "model": self.model.name,
            "knowledge": self.knowledge,
            "text": knowledge,
            "topics": [{"key": key, "name": names[entity]} for entity, key in found.items()],
            "facts": rows,
            "entities": [
                {"name": names[entity], "score": round(score, 4)} for entity, score in retrieved.entities[:10]
            ],
            "truncated": retrieved.truncated,
        }

    @cached_property
    def _labels(self) -> dict[str, list[int]]:
        return self.store.label_index()

    def _given(self, topics: Sequence[str]) -> dict[int, str]:
        resolved = self.store.resolve(topics)
        found: dict[int, str] = {}
        for topic in topics:
            ids = resolved.get(topic) or []
            if not ids:
                near = self.store.suggest(topic)
                hint = f" (did you mean {near!r}?)" if near else ""
                raise InputError(f"topic entity {topic!r} is not in this graph{hint}; `kgqa kg show` looks entities up")
            for entity in ids:
                found[entity] = topic
        return found

    def _mentioned(self, text: str) -> dict[int, str]:
        spans = _mentions(text, self._labels)
        forms = self.store.surface_forms(sorted({entity for _, _, entity in spans}))
        types = self._types([entity for _, _, entity in spans])
        spans = [span for span in spans if span[2] not in types]
        exact = [(start, end, entity) for start, end, entity in spans if text[start:end] in forms[entity]]
        found = _longest(exact) or _longest([span for span in spans if _speaks_of_a_name(text[span[0] : span[1]])])
        if not found:
            raise InputError(
                f"no entity of this graph is named in {text!r} by a label of its own; say which one with --topic"
            )
        keys = self.store.entity_keys(found)
        return {entity: keys[entity] for entity in found}

    def _types(self, entities: Sequence[int]) -> set[int]:
        rows = self.store.connection.execute(
            "SELECT DISTINCT type FROM types WHERE type IN (SELECT unnest(?))", [list(entities)]
        ).fetchall()
        return {entity for (entity,) in rows}


def _joined(texts: Sequence[str], retrieved: Retrieved) -> str:
    """The texts of facts, each triple where it first stands, as `write_knowledge` joins them."""
    first: dict[int, str] = {}
    for text, fact in zip(texts, retrieved.facts, strict=True):
        first.setdefault(fact.triple, text)
    return ", ".join(first.values())


class _Nothing:
    """The retriever of No Knowledge."""

    name = "none"

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        return [Retrieved(question.id) for question in questions]


def _mentions(text: str, index: Mapping[str, Sequence[int]]) -> list[tuple[int, int, int]]:
    """(start, end, entity) of every stretch of the text that is a label or alias of one entity only, in any case.

    In scripts with spaces a mention starts and ends at a word boundary.
    """
    folded = text.casefold()
    if len(folded) != len(text):
        text = folded
    starts = [place for place in range(len(text)) if _boundary(text, place)]
    ends = [place for place in range(1, len(text) + 1) if _boundary(text, place)]
    spans: list[tuple[int, int, int]] = []
    for start in starts:
        for end in ends:
            if start < end <= start + LONGEST_MENTION:
                ids = index.get(folded[start:end])
                if ids and len(ids) == 1:
                    spans.append((start, end, ids[0]))
    return spans


def _longest(spans: Sequence[tuple[int, int, int]]) -> list[int]:
    """Entities of the spans, in order of the text; longer mentions hide those that they overlap."""
    taken: list[tuple[int, int, int]] = []
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if all(span[1] <= other[0] or span[0] >= other[1] for other in taken):
            taken.append(span)
    return list(dict.fromkeys(entity for _, _, entity in sorted(taken)))


def _boundary(text: str, place: int) -> bool:
    if place in (0, len(text)):
        return True
    before, after = text[place - 1], text[place]
    return not (_letter(before) and _letter(after))


def _letter(sign: str) -> bool:
    return sign.isalnum() and not re.match(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]", sign)


def _speaks_of_a_name(mention: str) -> bool:
    """Whether a mention in another case than its label's may be meant; single short words of prose are not."""
    if mention != mention.lower() or not mention.isascii():
        return len(mention) >= SHORTEST_MENTION or not mention.isascii()
    return " " in mention or mention.isdigit() or len(mention) > 2 * SHORTEST_MENTION
