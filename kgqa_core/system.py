"""The finished system: a graph, a trained retriever and a language model that answer a question together.

The top floor of the library, for notebooks and for `kgqa ask`:

    system = System.open(kg=…, dkg=…, retriever=…, mentions=…)
    system.ask("What is the capital of France?")["answer"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa_core.abstention.apply import Judge
from kgqa_core.abstention.evidence import Evidence, Said
from kgqa_core.abstention.model import load_abstainer
from kgqa_core.answering.answer import called, is_declined, model_of, parse_output
from kgqa_core.config import (
    PASSAGES,
    SYMBOLIC,
    AnsweringOptions,
    LinkingOptions,
    LlmOptions,
    PassagesOptions,
    RelationRankingOptions,
    RetrievalOptions,
    RewriterOptions,
    SymbolicOptions,
    split_answerer,
    split_knowledge,
)
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.linking.asked import topics_told, turns, with_topics
from kgqa_core.linking.questions import link_asked
from kgqa_core.linking.tagger import Tagger, open_tagger
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.passages.retrieve import numbered
from kgqa_core.passages.search import PassageSearch, query_of
from kgqa_core.passages.table import Passage
from kgqa_core.prompts import answer_prompt
from kgqa_core.retrieval.api import Retriever
from kgqa_core.retrieval.registry import Opener, make_opener
from kgqa_core.retrieval.starts import learnt_candidates, with_candidates
from kgqa_core.rewriting.teller import Teller
from kgqa_core.symbolic.answer import listed
from kgqa_core.symbolic.asking import Calculator
from kgqa_core.symbolic.hybrid import joined
from kgqa_core.symbolic.solve import Solved
from kgqa_core.types import Linked, Question, Retrieved


@dataclass
class System:
    """A question-answering system over one graph.

    knowledge: `retriever/format` that the model reads.  teller: turns retrieved facts into sentences, where the format
    is not triples.  tagger: finds what a question is about; None where it must be said.  passages: finds texts, where
    the model reads some.  candidates: of each mention that is found, which the retriever starts from; 0 is its topic.
    judge: decides whether the graph holds the answer, by rules where nothing was learnt; None always answers.
    others: further retrievers that it hears, by name, each with the candidates that it starts from.  calculator:
    computes answers, which the model reads where there is one; `model` is None where answers are computed alone.
    """

    store: KgStore
    dkg: Dkg
    opener: Opener
    model: LanguageModel | None
    answering: AnsweringOptions
    knowledge: str = "rigel/triples"
    teller: Teller | None = None
    tagger: Tagger | None = None
    linking: LinkingOptions = field(default_factory=LinkingOptions)
    language: str = "en"
    passages: PassageSearch | None = None
    candidates: int = 0
    judge: Judge | None = None
    others: Mapping[str, tuple[Opener, int]] = field(default_factory=dict)
    calculator: Calculator | None = None

    @classmethod
    def open(
        cls,
        *,
        kg: Path,
        dkg: Path,
        retriever: Path | None,
        retrieval: RetrievalOptions | None = None,
        ranking: RelationRankingOptions | None = None,
        answering: AnsweringOptions | None = None,
        llm: LlmOptions | None = None,
        knowledge: str = "rigel/triples",
        rewriter: Path | None = None,
        rewriting: RewriterOptions | None = None,
        language: str = "en",
        mentions: Path | None = None,
        linking: LinkingOptions | None = None,
        passages: Path | None = None,
        searching: PassagesOptions | None = None,
        cache: Path | None = None,
        seed: int = 7,
        abstainer: Path | None = None,
        others: Mapping[str, Path] | None = None,
        min_confidence: float | None = None,
        operator: Path | None = None,
        symbolic: SymbolicOptions | None = None,
    ) -> System:
        """Open the artifacts of a run.

        retriever: the trained retriever that `knowledge` names.  rewriter: for the format rewritten.  mentions: the
        graph's mention dictionary, for questions that come without topics.  passages: the passage index, for the
        formats passages and both.  cache: folder that keeps vectors for all runs, of KAPING and of passages.  seed: of
        the retriever `random`.  abstainer: what was learnt of when not to answer; by rules where there is none.
        others: further trained retrievers that it hears, by name.  min_confidence: in place of its threshold.
        operator: the trained classifier of operations, for the answerers `symbolic` and `hybrid`.
        Raises ArtifactError, GraphMismatch, ConfigError, ModelError or EndpointError.
        """
        answering, llm, linking = answering or AnsweringOptions(), llm or LlmOptions(), linking or LinkingOptions()
        graph = Dkg.open(dkg)
        name, form = split_knowledge(knowledge)
        options = retrieval or RetrievalOptions()
        store = KgStore.open(kg)
        teller = None
        if form in ("template", "rewritten"):
            teller = Teller.open(store, form, rewriter, rewriting or RewriterOptions(), llm, language)

        def opener(retriever_name: str, folder: Path | None) -> Opener:
            return make_opener(
                retriever_name, graph, options, seed, retriever=folder, kg=kg, cache=cache, ranking=ranking, llm=llm
            )

        graphless = name in ("none", PASSAGES)
        learnt = load_abstainer(abstainer) if abstainer is not None and not graphless else None
        heard = (others or {}).items() if learnt else ()
        return cls(
            store=store,
            dkg=graph,
            opener=(lambda names: _Nothing()) if graphless else opener(name, retriever),
            model=load_model(model_of(answering.answerer), llm) if answering.answerer != SYMBOLIC else None,
            answering=answering,
            knowledge=f"{name}/{form}",
            teller=teller,
            tagger=open_tagger(mentions, kg, linking) if mentions is not None else None,
            linking=linking,
            language=language,
            passages=_search(passages, searching, cache) if form in ("both", PASSAGES) else None,
            candidates=learnt_candidates(retriever),
            judge=None if graphless else Judge(store, learnt, min_confidence),
            others={other: (opener(other, folder), learnt_candidates(folder)) for other, folder in heard},
            calculator=_calculator(store, operator, symbolic, answering, graphless=graphless),
        )

    def ask(self, text: str, topics: Sequence[str] = (), dialogue: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
        """Answer one question.

        topics: keys or labels of the entities that it is about; without any they are found in the question.
        dialogue: earlier turns as (`user` or `agent`, text), oldest first.  Topics are found in them too, passages are
        searched for with them, and the template `ltgen2024` shows them to the model.
        Returns answer, topics (key, name; with mention and rho where they were found), facts (text, hop, score,
        direction), entities (name, score), knowledge, the text that the model read, and its passages (document, title,
        text, score) where it reads some.  What computes adds operation, form, computed, proof and proof_rows (see
        `Calculator.reply`).  Where a graph is read also answerable, confidence (that the graph holds the
        answer), calibrated, min_confidence, and reason, missing and nearest, which are None where it is answerable;
        else answer is None and model_answer what the model said.
        Raises InputError when a topic is not in the graph or a role is unknown.
        """
        asked = Question(id="ask", text=text, language=self.language, dialogue=turns(dialogue))
        question, mentions = (with_topics(asked, topics, self.store), []) if topics else self._linked(asked)
        begun, reader, retrieved = self._found(question, mentions, self.opener, self.candidates)
        heard = {name: self._found(question, mentions, *own)[1:] for name, own in self.others.items()}
        names = self.store.names({entity for entity, _ in retrieved.entities[:10]} | set(question.topic_entities))
        wording = Wording(self.store, [fact.triple for fact in retrieved.facts], self.answering.qualifiers)
        texts = wording.texts([(fact.triple, fact.direction) for fact in retrieved.facts])
        rows = [
            {"text": text, "hop": fact.hop, "score": round(fact.score, 4), "direction": fact.direction}
            for text, fact in zip(texts, retrieved.facts, strict=True)
        ]
        knowledge = self.teller.tell(retrieved) if self.teller is not None else _joined(texts, retrieved)
        passages = self._passages(question)
        knowledge = "\n".join(filter(None, [knowledge, *numbered(passage.told for passage, _ in passages)]))
        solved = self.calculator.compute(begun, reader, retrieved) if self.calculator is not None else None
        if self.calculator is not None and solved is not None and self.model is not None:
            knowledge = joined(self.calculator.told(solved), knowledge, self.calculator.options.facts)
        completion = self._completion(text, knowledge, question, solved)
        answer = parse_output(completion.text, self.answering.template)
        return {
            "question": text,
            "answer": answer,
            "model": SYMBOLIC if self.model is None else called(self.answering.answerer, self.model.name),
            "knowledge": self.knowledge,
            "text": knowledge,
            "topics": topics_told(question, names, self.store),
            "facts": rows,
            "entities": [
                {"name": names[entity], "score": round(score, 4)} for entity, score in retrieved.entities[:10]
            ],
            "truncated": retrieved.truncated,
            **({"passages": [_told(*found) for found in passages]} if self.passages is not None else {}),
            **(self.calculator.reply(solved) if self.calculator is not None and solved is not None else {}),
            **self._verdict(question, (reader, retrieved), heard, answer, completion, solved),
        }

    def _found(
        self, question: Question, mentions: Sequence[Linked], opener: Opener, candidates: int
    ) -> tuple[Question, Retriever, Retrieved]:
        """The question as a retriever begins it, the retriever, and what it finds; nothing where no topic is known."""
        begun = with_candidates(question, mentions, candidates) if candidates else question
        reader = opener(self.store.surface_forms(list(begun.topic_entities)))
        asks = begun.topic_entities or self.judge is None
        return begun, reader, reader.retrieve([begun])[0] if asks else Retrieved(begun.id)

    def _completion(self, text: str, knowledge: str, question: Question, solved: Solved | None) -> Completion:
        """What the model writes, or what was computed where there is no model."""
        if self.model is None:
            return Completion(listed(solved.answers) if solved is not None else "", "stop")
        prompt = answer_prompt(text, knowledge, self.answering.template, question.dialogue)
        asks = self.judge is not None and self.judge.abstainer is not None
        params = GenerationParams(max_new_tokens=self.answering.max_new_tokens, log_probabilities=asks)
        return self.model.generate([prompt], params)[0]

    def _verdict(
        self,
        question: Question,
        read: tuple[Retriever, Retrieved],
        heard: Mapping[str, tuple[Retriever, Retrieved]],
        answer: str,
        completion: Completion,
        solved: Solved | None,
    ) -> dict[str, Any]:
        """Whether the graph holds the answer, as `ask` returns it; nothing where no graph is read."""
        if self.judge is None:
            return {}
        opened = {split_knowledge(self.knowledge)[0]: read, **heard}
        paths: Mapping[str, Any] = next((got for own, _ in opened.values() if (got := getattr(own, "paths", None))), {})
        declined, computed = is_declined(answer, completion.finish), solved is not None and bool(solved.answers)
        said = Said(answer, declined, completion.log_probability, completion.scored_tokens, computed)
        found = {name: retrieved for name, (_, retrieved) in opened.items()}
        [verdict] = self.judge.judge([Evidence(question, found, tuple(paths.get(question.id, ())), said)])
        reason = verdict.reason
        return {
            "answerable": verdict.answerable,
            "confidence": verdict.confidence,
            "calibrated": verdict.calibrated,
            "min_confidence": self.judge.threshold,
            "reason": reason and reason.kind,
            "missing": reason and reason.missing,
            "nearest": reason and reason.nearest,
            **({} if verdict.answerable else {"answer": None, "model_answer": answer}),
        }

    def _passages(self, question: Question) -> list[tuple[Passage, float]]:
        if self.passages is None:
            return []
        [ranked] = self.passages.search([query_of(question, self.passages.options.history)])
        return list(zip(self.passages.read(ranked), (score for _, score in ranked), strict=True))

    def _linked(self, asked: Question) -> tuple[Question, list[Linked]]:
        """The question with the topics that are found in it, and all candidates of its mentions."""
        if self.tagger is None and split_knowledge(self.knowledge)[0] == PASSAGES:
            return asked, []
        if self.tagger is None:
            raise InputError("this system was opened without `mentions`; say what the question is about with `topics`")
        return link_asked(self.tagger, asked, self.linking)


def _calculator(
    store: KgStore,
    operator: Path | None,
    options: SymbolicOptions | None,
    answering: AnsweringOptions,
    *,
    graphless: bool,
) -> Calculator | None:
    if split_answerer(answering.answerer)[0] == "model":
        return None
    if operator is None or graphless:
        missing = "facts to compute from; knowledge must name a retriever" if graphless else "a trained `operator`"
        raise InputError(f"answerer {answering.answerer!r} needs {missing}")
    return Calculator(store, operator, options or SymbolicOptions())


def _search(index: Path | None, options: PassagesOptions | None, cache: Path | None) -> PassageSearch:
    if index is None:
        raise InputError("passages are to be read, but there is no index of them; give `passages`")
    return PassageSearch(index, options or PassagesOptions(), cache)


def _told(passage: Passage, score: float) -> dict[str, Any]:
    return {"document": passage.document, "title": passage.title, "text": passage.text, "score": score}


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
