"""The finished system: a graph, a retriever and an answerer that answer questions together.

The top floor of the library, for notebooks and for `kgqa ask`:

    system = System.from_graph("graph.ttl")  # or what a run trained: System.from_run(".kgqa")
    system.ask("What is the capital of France?").answer
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

from kgqa_core.abstention.apply import AbstentionJudge
from kgqa_core.abstention.evidence import Evidence, Judgement, ModelAnswer
from kgqa_core.abstention.model import load_abstainer
from kgqa_core.answering.answer import is_declined, parse_output
from kgqa_core.answering.exploration import ExplorerInputs
from kgqa_core.answering.explore import ExploringCalculator, open_explorer
from kgqa_core.answering.knowledge import KnowledgeWriter
from kgqa_core.answering.registry import (
    AnswererSpec,
    AnswerInput,
    answer_prompt,
    answerer_name,
    answerer_spec,
    model_spec,
    wording_model,
)
from kgqa_core.answering.reply import MODEL_FAILED, Answer, AnswerFact, AnswerPassage, Answers, RankedEntity
from kgqa_core.answering.topics import answer_topics
from kgqa_core.answering.trace import question_trace
from kgqa_core.config import TOPICS, Answerer, AnsweringOptions, Knowledge, LinkingOptions
from kgqa_core.cores import own_cores
from kgqa_core.errors import EndpointError, InputError, KgqaError, QuestionTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.questions import dialogue_turns, link_question, with_topics
from kgqa_core.linking.tagger import Tagger, open_tagger
from kgqa_core.llm.models import Models
from kgqa_core.llm.protocol import Completion, LanguageModel, overheard
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.question_limits import (
    SECONDS,
    TOO_LONG,
    check_question,
    next_question,
    question_fault,
    shown,
    time_limit,
)
from kgqa_core.retrieval.api import Retriever, RetrieverInputs
from kgqa_core.retrieval.linked_candidates import CANDIDATES, with_candidates
from kgqa_core.retrieval.registry import RETRIEVERS, open_retriever
from kgqa_core.retrieval.topics import Topics
from kgqa_core.runs.finished import SystemParts, mentions_of_run, system_parts, with_mentions
from kgqa_core.runs.graph_files import graph_record
from kgqa_core.runs.records import answering_run
from kgqa_core.store.artifacts import Home
from kgqa_core.symbolic.answer import listed, with_result
from kgqa_core.symbolic.compute import Calculator, open_solver
from kgqa_core.symbolic.conversation import Conversation
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.tracing import NO_TRACER, OnStep, QuestionTracer, StepClock
from kgqa_core.types import Linked, Question, Retrieved

SHOWN_ENTITIES = 10
"""Ranked entities that an answer holds."""


@dataclass
class System:
    """A question-answering system over one graph.

    Several threads may ask it: each reads the graph through a connection of its own.  As many link, retrieve and
    compute at a time as there are cores (`turns`, which systems that share its graph and networks share); the others
    wait, which is no part of their time, and none waits for another's language model.

    knowledge: `retriever/format` that is read.  writer: writes it.  answerer: what answers from it; model: its language
    model, where it has one; calculator: computes answers, where it computes.  retriever: None where no graph is read.
    tagger: links questions that come without topics; None where each must name its own.  judge: decides whether the
    graph holds the answer, by rules where no abstainer was trained; None answers always.  others: further retrievers
    that it reads.  language: of questions that do not say theirs.  words: puts computed answers into words, where the
    answerer has a language model for that.  tracer: keeps traces of the questions that it wants.  confirmed: of
    `ConfirmedForms`.  listeners: told the steps of a question, by its id.
    """

    store: KgStore
    knowledge: str
    writer: KnowledgeWriter
    answerer: AnswererSpec
    answering: AnsweringOptions
    model: LanguageModel | None = None
    calculator: Calculator | None = None
    retriever: Retriever | None = None
    tagger: Tagger | None = None
    linking: LinkingOptions = field(default_factory=LinkingOptions)
    judge: AbstentionJudge | None = None
    others: Sequence[Retriever] = ()
    language: str = "en"
    words: LanguageModel | None = None
    tracer: QuestionTracer = NO_TRACER
    confirmed: Callable[[], Sequence[Question]] = tuple
    listeners: Mapping[str, OnStep] = field(default_factory=dict)
    turns: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(len(own_cores())), repr=False, compare=False
    )

    @classmethod
    def from_run(
        cls,
        home: Home | Path | str,
        run: str | None = None,
        *,
        knowledge: str | None = None,
        min_confidence: float | None = None,
        monitor: Monitor = QUIET,
    ) -> System:
        """Open what a finished run of a home made.

        home: a home or its folder.  run: its id, `newest` or `champion`; the champion when absent, or the newest
        finished run where there is none (`runs.records.default_run`).  knowledge: `retriever/format` that is read; the
        run's first that answers a user's question when absent.  min_confidence: that the graph holds the answer, below
        which it is not given; the run's own when absent.  The mention dictionary is built into the home where there is
        none yet.
        Raises InputError when there is no such run or it has not trained what this needs, and what `open` raises.
        """
        home = home if isinstance(home, Home) else Home(Path(home))
        record = answering_run(home, run)
        parts = system_parts(home, record, knowledge, min_confidence)
        return cls.open(with_mentions(parts, mentions_of_run(home, record, monitor)) if parts.reads_graph else parts)

    @classmethod
    def from_graph(
        cls,
        *files: Path | str,
        home: Home | Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        monitor: Monitor = QUIET,
    ) -> System:
        """Answer from graph files at once, by the packaged label parser; nothing is trained.

        files, settings: as of `runs.graph_files.graph_record`.  home: where the graph is built and found again; that of
        KGQA_HOME, else `.kgqa`, when absent.  Raises what `graph_record` and `open` raise.
        """
        home = home if isinstance(home, Home) else Home(Path(home)) if home is not None else Home.current()
        record = graph_record(home, files, settings, monitor)
        return cls.open(with_mentions(system_parts(home, record), mentions_of_run(home, record, monitor)))

    @classmethod
    def open(cls, parts: SystemParts, models: Models | None = None) -> System:
        """Load the parts of a system.

        models: load the language models, which are asked every time and without a budget where it is absent.
        Raises InputError when a part is missing that the answerer or the format of the knowledge needs, ArtifactError,
        GraphMismatch, ConfigError, ModelError or EndpointError.
        """
        profile, store = parts.profile, KgStore.open(parts.kg)
        models = models or Models(profile.llm)
        spec = answerer_spec(profile.answering.answerer)
        writer = KnowledgeWriter.open(
            parts.knowledge, store, profile, models=models, rewriter=parts.rewriter, passages=parts.passages,
            cache=parts.cache,
        )  # fmt: skip
        turns = threading.Semaphore(len(own_cores()))
        calculator = _calculator(store, parts, models, turns) if spec.computes else None
        if spec.explores:
            calculator = _exploring(store, spec, parts, models)

        def load(name: str, folder: Path | None) -> Retriever:
            if name == TOPICS:
                return Topics()
            from kgqa_core.dkg.csr import Dkg  # with numba, which a question without a retriever does not wait for

            section = RETRIEVERS[name].options(profile)
            inputs = RetrieverInputs(
                Dkg.open(parts.dkg), profile.retrieval, profile.seed, section, folder, parts.kg, parts.cache,
                llm=models.llm, budget=models.budget,
            )  # fmt: skip
            return open_retriever(name, inputs)

        retriever, judge, others = None, None, []
        answering = profile.answering.model_copy(update={"log_probabilities": False})
        if parts.reads_graph:
            retriever = load(str(Knowledge.parse(parts.knowledge).variant), parts.retriever)
            abstainer = load_abstainer(parts.abstainer) if parts.abstainer is not None else None
            judge = AbstentionJudge(store, abstainer, profile.abstention.min_confidence)
            if abstainer is not None:
                answering = answering.model_copy(update={"log_probabilities": True})
                others = [load(name, folder) for name, folder in parts.others.items()]
        return cls(
            store=store,
            knowledge=parts.knowledge,
            writer=writer,
            answerer=spec,
            answering=answering,
            model=models.load(model_spec(answering.answerer)) if spec.reads else None,
            words=models.load(worded) if (worded := wording_model(answering.answerer)) else None,
            calculator=calculator,
            retriever=retriever,
            tagger=open_tagger(parts.mentions, parts.kg, profile.linking) if parts.mentions is not None else None,
            linking=profile.linking,
            judge=judge,
            others=others,
            language=profile.questions.language,
            turns=turns,
        )

    def ask(
        self,
        text: str,
        topics: Sequence[str] = (),
        dialogue: Sequence[tuple[str, str]] = (),
        traces: dict[str, str] | None = None,
    ) -> Answer:
        """The answer to one question.

        topics: keys or labels of the entities that it is about; without any they are linked in the question.
        dialogue: earlier turns as (`user` or `agent`, text), oldest first.  Topics are linked in them too, passages are
        searched for with them, and the template `ltgen2024` shows them to the model.  traces: as of `answer`.
        Raises InputError when a topic is not in the graph, a role is unknown or the question is beyond
        `question_limits`, KgqaError (of an endpoint, EndpointError) when the language model fails on the question.
        """
        check_question(text, topics, dialogue)
        question = Question(
            "ask", text, language=self.language, topic_keys=tuple(topics), dialogue=dialogue_turns(dialogue)
        )
        [answer] = self.answer([question], traces)
        if answer.reject is not None:
            raise self.failed(answer.reject)
        return answer

    async def aask(
        self,
        text: str,
        topics: Sequence[str] = (),
        dialogue: Sequence[tuple[str, str]] = (),
        traces: dict[str, str] | None = None,
    ) -> Answer:
        """As `ask`, in a thread, so that the event loop goes on meanwhile.

        Whoever cancels it waits no longer, but the thread answers to the end, within the limits of a question.
        """
        return await asyncio.to_thread(self.ask, text, topics, dialogue, traces)

    def failed(self, why: str) -> KgqaError:
        """The error of a rejected question: of time, or of the language model, EndpointError where it is behind one."""
        if why.startswith(TOO_LONG):
            return QuestionTimeout(why)
        remote = self.model is not None and self.model.name.startswith("openai:")
        return EndpointError(why) if remote else KgqaError(why)

    def answer(self, questions: Sequence[Question | str], traces: dict[str, str] | None = None) -> Answers:
        """The answers to a batch of questions, in its order; the id of one that is a plain text is its number, from 1.

        A question starts from its topic_entities, else from the entities of its topic_keys, else from those that are
        linked in its text and dialogue.  One on which the language model fails, or that is beyond `question_limits`
        or takes too long, comes back with `reject`.
        traces: filled with the trace's id of each question that was traced, by the question's id.  Raises InputError
        when a topic is not in the graph, or when two questions have one id.
        """
        if isinstance(questions, str):
            raise InputError(f"answer takes a list of questions, and {shown(questions)!r} is a text; use ask")
        batch = [
            Question(str(number), one, language=self.language) if isinstance(one, str) else one
            for number, one in enumerate(questions, start=1)
        ]
        if twice := [name for name, number in Counter(question.id for question in batch).items() if number > 1]:
            raise InputError(f"the questions of a batch need ids of their own; {twice[0]!r} stands more than once")
        faults = {
            question.id: question_fault(question.text, question.topic_keys, question.dialogue) for question in batch
        }
        good = [question for question in batch if not faults[question.id]]
        answers: list[Answer] = []
        try:
            answers = self._answer(good, traces) if good else []
        except QuestionTimeout as fault:
            if len(good) == 1:
                faults[good[0].id] = str(fault)
            else:  # one of them: each on its own
                answers = [self.answer([one], traces)[0] for one in good]
        made = iter(answers)
        return Answers(
            Answer(question.id, shown(question.text), None, knowledge=self.knowledge, reject=why)
            if (why := faults[question.id])
            else next(made)
            for question in batch
        )

    def _answer(self, questions: Sequence[Question], traces: dict[str, str] | None) -> list[Answer]:
        clock, given_texts = StepClock(), {question.id: question.text for question in questions}
        with self.turns, clock.step("linking"), time_limit(SECONDS):
            questions = [self._in_english(question) for question in questions]
            english = {one.id: one.text for one in questions if one.text != given_texts[one.id]}
            followed = {question.id: self._follow(question) for question in questions}
            linked = [self._link(found[0] if (found := followed[one.id]) else one) for one in questions]
        batch = [question for question, _ in linked]
        for question in (one for one in batch if one.id in self.listeners):
            topics = answer_topics(self.store, question, self.store.names(question.topic_entities))
            self.listeners[question.id]("linked", {"topics": [asdict(topic) for topic in topics]})
        with self.turns, clock.step("retrieval"):
            retrieved = self._retrieve(self.retriever, linked)
        with clock.step("knowledge"):
            written = self.writer.write(batch, retrieved)
        computed: list[ComputedAnswer | None] = [None] * len(batch)
        if self.calculator is not None:
            started = batch
            with self.turns if self.answerer.computes else nullcontext(), clock.step("forms"):
                if self.answerer.computes:
                    started = [with_candidates(question, mentions, CANDIDATES) for question, mentions in linked]
                    corrections = self.calculator.solver.corrections
                    corrections.learn(
                        self.confirmed(), lambda one: with_candidates(*self._link(self._in_english(one)), CANDIDATES)
                    )
                whole = [index for index, one in enumerate(started) if followed[one.id] is None]
                solved_now = self.calculator.compute([started[i] for i in whole], [retrieved[i] for i in whole])
                computed = [found[1] if (found := followed[one.id]) else None for one in started]
                for index, own in zip(whole, solved_now, strict=True):
                    computed[index] = own
        replies = [self.calculator.reply(one) if self.calculator and one else {} for one in computed]
        for question, reply in zip(batch, replies, strict=True):
            if reply.get("form") and question.id in self.listeners:
                self.listeners[question.id]("understood", {"form": reply["form"], "named": reply["form_named"]})
        inputs = [
            AnswerInput(question, own.text, solved)
            for question, own, solved in zip(batch, written, computed, strict=True)
        ]
        with clock.step("model"):
            told = compress(inputs, self._surely_given(linked, retrieved, computed)) if self.answerer.reads else ()
            completions = self.answerer.complete(inputs, self._overheard(self.model, [*told]), self.answering)
        outputs = [parse_output(completion.text, self.answering.template) for completion in completions]
        with clock.step("wording"):
            wordings = self._wordings(batch, [own.text for own in written], computed)
        with self.turns:
            verdicts = self._judge(linked, retrieved, outputs, completions, computed)
        for index, (completion, solved) in enumerate(zip(completions, computed, strict=True)):
            if solved is not None and solved.reject:
                verdicts[index] = {"reject": solved.reject}
            elif completion.finish == "error" and not outputs[index]:
                verdicts[index] = {"reject": MODEL_FAILED + (completion.error or "no completion")}
        shown = {entity for one in retrieved for entity, _ in one.entities[:SHOWN_ENTITIES]}
        names = self.store.names(shown | {entity for question in batch for entity in question.topic_entities})
        model = answerer_name(self.answering.answerer, self.model.name if self.model is not None else "")
        for index, (solved, reply) in enumerate(zip(computed, replies, strict=True)):
            if solved is not None and outputs[index] == listed(solved.answers):
                outputs[index] = reply.get("computed", outputs[index])
        answers = [
            Answer(
                id=given.question.id,
                question=given_texts[given.question.id],
                output=output,
                model=model,
                knowledge=self.knowledge,
                text=given.text,
                topics=answer_topics(self.store, given.question, names),
                facts=tuple(
                    AnswerFact(text, fact.hop, round(fact.score, 4), fact.direction)
                    for text, fact in zip(own.facts, one.facts, strict=True)
                ),
                entities=tuple(
                    RankedEntity(names[entity], round(score, 4)) for entity, score in one.entities[:SHOWN_ENTITIES]
                ),
                truncated=one.truncated,
                passages=tuple(
                    AnswerPassage(passage.document, passage.title, passage.text, score)
                    for passage, score in own.passages
                )
                if self.writer.spec.passages
                else None,
                wording=wording,
                **({"understood": english.get(given.question.id)} | {k: v for k, v in reply.items() if v is not None}),
                **verdict,
            )
            for given, own, one, output, wording, verdict, reply in zip(
                inputs, written, retrieved, outputs, wordings, verdicts, replies, strict=True
            )
        ]
        for index, answer in enumerate(answers):
            if not self.tracer.wants():
                continue
            read: dict[str, Any] = {}
            if self.answerer.reads:
                prompt = answer_prompt(batch[index], inputs[index].text, self.answering)
                read = {"prompt": prompt, "completion": completions[index]}
            trace = question_trace(clock, *linked[index], answer, batch=len(batch), **read)
            if (name := self.tracer.record(trace)) is not None and traces is not None:
                traces[answer.id] = name
        return answers

    def at_confidence(self, least: float) -> System:
        """The same system with another `min_confidence`, for single requests; graph and networks are shared."""
        judge = AbstentionJudge(self.store, self.judge.abstainer, least) if self.judge is not None else None
        calculator = self.calculator.at_confidence(least) if self.calculator is not None else None
        return replace(self, judge=judge, calculator=calculator)

    def at_reading(self, number: int) -> System:
        """The same system that answers with a certain one of the readings that `Answer.readings` offers, from 1 on.

        Asking raises InputError where a question has fewer.
        """
        if self.calculator is None or not self.answerer.computes:
            raise InputError(f"answerer {self.answering.answerer!r} offers no readings; `auto` does")
        return replace(self, calculator=self.calculator.at_reading(number))

    def _surely_given(
        self,
        linked: Sequence[tuple[Question, list[Linked]]],
        read: list[Retrieved],
        computed: Sequence[ComputedAnswer | None],
    ) -> list[bool]:
        """Whether what a model answers is given whatever it is, so that it may be told before its end."""
        if not self.listeners or (self.judge is not None and self.judge.abstainer is not None):
            return [False] * len(linked)
        some = Completion("?")
        verdicts = self._judge(linked, read, [some.text] * len(linked), [some] * len(linked), computed)
        return [verdict.get("answerable") is not False for verdict in verdicts]

    def _overheard(self, model: LanguageModel | None, inputs: Sequence[AnswerInput]) -> LanguageModel | None:
        """The model, whose answer to each question that is listened to is told as it is written, step `written`."""
        prompts = {answer_prompt(one.question, one.text, self.answering): one.question.id for one in inputs}
        listened = {prompt: self.listeners[name] for prompt, name in prompts.items() if name in self.listeners}
        told = dict.fromkeys(listened, "")

        def tell(prompt: str, text: str) -> None:
            written = parse_output(text, self.answering.template)
            if prompt in told and len(written) > len(told[prompt]) and written.startswith(told[prompt]):
                listened[prompt]("written", {"text": written[len(told[prompt]) :]})
                told[prompt] = written

        return overheard(model, tell) if model is not None and listened else model

    def _wordings(
        self, batch: Sequence[Question], texts: Sequence[str], computed: Sequence[ComputedAnswer | None]
    ) -> list[str | None]:
        """Each computed answer as the language model puts it; None where there is no answer or no such model."""
        wordings: list[str | None] = [None] * len(batch)
        if self.words is None or self.calculator is None:
            return wordings
        results = {index: one for index, one in enumerate(computed) if one is not None and one.answers}
        inputs = [AnswerInput(batch[index], with_result(one, texts[index])) for index, one in results.items()]
        completions = answerer_spec("model").complete(inputs, self._overheard(self.words, inputs), self.answering)
        for index, completion in zip(results, completions, strict=True):
            wordings[index] = parse_output(completion.text, self.answering.template) or None
        return wordings

    def _in_english(self, question: Question) -> Question:
        """A question and its dialogue in English, where the extra for its language is installed and `auto` answers."""
        if (
            self.calculator is None
            or not self.answerer.computes
            or ((translator := self.calculator.solver.translator) is None)
        ):
            return question

        def read(text: str) -> str:
            if (language := translator.language_of(text)) is None:
                return text
            _, mentions = self._link(Question(question.id, text))
            return translator.english(text, language, mentions)

        dialogue = tuple((role, read(text) if role == "user" else text) for role, text in question.dialogue)
        return replace(question, text=read(question.text), dialogue=dialogue)

    def _link(self, question: Question) -> tuple[Question, list[Linked]]:
        """The question with its topics, and all candidates of its mentions where these were linked."""
        next_question()
        if question.topic_entities:
            return question, []
        if question.topic_keys:
            return with_topics(question, question.topic_keys, self.store), []
        if self.tagger is None and self.retriever is None:
            return question, []
        if self.tagger is None:
            raise InputError("this system was opened without `mentions`; say what the question is about with `topics`")
        if not self.answerer.computes:
            return link_question(self.tagger, question, self.linking)
        linked, mentions = link_question(self.tagger, replace(question, dialogue=()), self.linking)
        return replace(linked, dialogue=question.dialogue), mentions

    def _follow(self, question: Question) -> tuple[Question, ComputedAnswer] | None:
        """A question that refers back to its dialogue as it was read, and its answer; None for one that does not."""
        if self.calculator is None or not self.answerer.computes or self.tagger is None:
            return None
        return Conversation(self.calculator.solver, self._link).follow(question)

    def _retrieve(
        self, retriever: Retriever | None, linked: Sequence[tuple[Question, list[Linked]]]
    ) -> list[Retrieved]:
        """What a retriever finds for each question; nothing without topics."""
        results = [Retrieved(question.id) for question, _ in linked]
        if retriever is None:
            return results
        started = [
            with_candidates(question, mentions, retriever.candidates) if retriever.candidates else question
            for question, mentions in linked
        ]
        indices = [index for index, question in enumerate(started) if question.topic_entities]
        for index, own in zip(indices, retriever.retrieve([started[index] for index in indices]), strict=True):
            results[index] = own
        return results

    def _judge(
        self,
        linked: Sequence[tuple[Question, list[Linked]]],
        read: list[Retrieved],
        outputs: Sequence[str],
        completions: Sequence[Completion],
        computed: Sequence[ComputedAnswer | None],
    ) -> list[dict[str, Any]]:
        """Fields of an answer that say whether the graph holds it; none where no graph is read."""
        if self.judge is None or self.retriever is None:
            return [{} for _ in outputs]
        results = {self.retriever.name: read}
        results |= {other.name: self._retrieve(other, linked) for other in self.others}
        evidence = []
        for index, (question, _) in enumerate(linked):
            completion, solved = completions[index], computed[index]
            declined = is_declined(outputs[index], completion.finish)
            proved = solved is not None and bool(solved.answers)
            output = ModelAnswer(
                outputs[index], declined, completion.log_probability, completion.scored_tokens, proved,
                _judgement(solved),
            )  # fmt: skip
            evidence.append(Evidence.of(question, {name: own[index] for name, own in results.items()}, output))
        return [verdict.fields() for verdict in self.judge.judge(evidence)]


def _judgement(solved: ComputedAnswer | None) -> Judgement | None:
    """What the answerer says of its own answer, where it judges it."""
    if solved is None or (solved.road is None and solved.reason is None):
        return None
    return Judgement(solved.confidence, solved.min_confidence, solved.reason, solved.missing)


def _exploring(store: KgStore, spec: AnswererSpec, parts: SystemParts, models: Models) -> ExploringCalculator:
    from kgqa_core.dkg.csr import Dkg

    profile, dkg = parts.profile, Dkg.open(parts.dkg)
    model, cache = str(Answerer.parse(profile.answering.answerer).model), parts.cache
    inputs = ExplorerInputs(dkg, store, model, spec.section(profile), models.llm, profile.seed, cache, models.budget)
    return ExploringCalculator(store, open_explorer(profile.answering.answerer, inputs), spec.name)


def _calculator(store: KgStore, parts: SystemParts, models: Models, turns: threading.Semaphore) -> Calculator:
    if parts.label_parser is None or not parts.reads_graph:
        missing = "a trained `label_parser`" if parts.reads_graph else "a retriever in its knowledge, for its facts"
        raise InputError(f"answerer {parts.profile.answering.answerer!r} needs {missing}")
    options, least = parts.profile.symbolic, parts.profile.abstention.min_confidence
    asked = {"llm": models.llm, "cache": models.responses or parts.cache, "budget": models.budget, "turns": turns}
    return Calculator(store, open_solver(store, options, parts.label_parser, least, **asked))
