"""The answerer `auto`: every road proposes forms, one calibrated scale ranks them, and the best is run for its proof.

Roads: `labels`, forms made around the mentions by the labels of the graph; `retriever`, those of the paths that a
retriever predicts or walks; `parser`, those of a trained semantic parser.  All are scored by the same network, so that
none needs to be trusted before another.  Where no form is likely enough the question is declined, with the reason.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from kgqa_core.config import SymbolicOptions
from kgqa_core.errors import FormError, FormTimeout, InputError, QuestionTimeout
from kgqa_core.kg.names import is_unnamed
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.english import singulars
from kgqa_core.linking.languages import ENGLISH, are_in, language_of, script_language
from kgqa_core.linking.words import usualness
from kgqa_core.logic.execute import execute
from kgqa_core.logic.forms import Aggregate, And, Compare, Count, Form, Holds, Or, Share, TimeConstraint, elements
from kgqa_core.logic.lookup import index
from kgqa_core.logic.parser import parse
from kgqa_core.logic.paths import from_path
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.question_limits import SECONDS, next_question, time_limit
from kgqa_core.search.candidates import KINDS, Candidate, LabelQuery, labels_of, nodes_of, stated_form
from kgqa_core.search.graph import WORD, LabelGraph
from kgqa_core.search.phrases import NUMBER
from kgqa_core.search.question_words import grammar_of, kinds, question_words
from kgqa_core.search.reading import CONTENT_FREE, stem, stems, two_questions
from kgqa_core.symbolic.arguments import Proposed, Weighted
from kgqa_core.symbolic.by_labels.calibrate import Choice, choices, choose
from kgqa_core.symbolic.by_labels.examples import candidate_of
from kgqa_core.symbolic.by_labels.model import LabelModel, load
from kgqa_core.symbolic.by_labels.parser import LabelParser, answer_nodes, answers_of
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.by_labels.unread import Unread
from kgqa_core.symbolic.chooser import NAMES, PlanChooser, PlanSentences, confidence_of
from kgqa_core.symbolic.corrections import ConfirmedForms
from kgqa_core.symbolic.suggestions import NameSuggestions
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.symbolic.translate import CODES, EXTRA_LANGUAGES, translator_of
from kgqa_core.types import (
    ENTITY,
    FACT,
    OFFERED,
    OTHER_LANGUAGE,
    RELATION,
    ROADS,
    TYPE,
    UNREAD,
    UNSURE,
    OfferedReading,
    Question,
    is_sentence,
)

log = logging.getLogger("kgqa")

LABELS, RETRIEVER, PARSER = ROADS
BATCH = 64
UNCALIBRATED = 0.3
"""Share of the probability that an answer needs where no confidence was learnt."""
UNREAD_MOST, ENDED_SHARE = 0.2, 0.45
"""Confidence at most in an answer whose form leaves words unread that restrict it, which is below the threshold, too;
what is left of the confidence where all facts of an answer have ended."""
VERB_LEAST = 0.4
"""Confidence from which on an answer is given although the question has verbs that were not read, as *hang* in
*paintings that hang in x* of a relation *held at*."""
GIVEN = 1.5
"""What the score of "no form" loses where a question comes with its topics, so that the graph is known to have them."""
LIKELY_ENOUGH = 0.5
"""Share of the default threshold from which on the best answer may be right, and the graph is not said to lack it."""
SUGGESTED = 400
"""Characters of a question at most for whose words others are suggested."""
PROPOSED = 12
"""Paths of a retriever, and forms of a parser, that become candidates."""


CAPITALS = re.compile(r"(?<=[\w,] )[A-Z][\w-]*(?: [A-Z][\w-]*)*")
"""Words in capitals within a text."""


@dataclass(frozen=True)
class _Named:
    """Names of entities, and keys of answers, by id."""

    names: Mapping[int, str]
    keys: Mapping[int, str]


def _meant(query: LabelQuery) -> list[int]:
    """The entity that each mention of a reading most likely means."""
    return [slot.entities[0][0] for slot in query.slots]


@dataclass
class AutoSolver:
    """Answers questions on one graph, which stays open as long as the solver is used.

    model: a trained label parser; the packaged head start where it is None.  options: of proof and answers.
    min_confidence: below which a question is declined, and from which on it is answered; the calibration's own where
    it is None.  With 0 all that is found is answered.  chooser: of `symbolic.chooser`.  reading: which of the readings
    that a decline offers is answered, from 1 on, however unsure; 0 for the best where it is sure enough.
    """

    store: KgStore
    options: SymbolicOptions
    model: LabelModel | None = None
    min_confidence: float | None = None
    chooser: PlanChooser | None = None
    reading: int = 0
    timeouts: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        index(self.store)
        model = self.model or load(None)
        self.graph = LabelGraph(self.store)
        self.calibration = model.calibration
        self.parser = LabelParser(self.graph, LabelScorer(model.network, model.phrases), model.hops, model.words)
        self.corrections = ConfirmedForms(self.parser)
        self.suggestions = NameSuggestions(self.parser)
        self.translator = translator_of(self.graph)

    @property
    def default_threshold(self) -> float:
        """The threshold of the calibration; UNCALIBRATED where there is none."""
        return self.calibration.threshold if self.calibration is not None else UNCALIBRATED

    @property
    def threshold(self) -> float:
        """Confidence below which a question is declined."""
        return self.default_threshold if self.min_confidence is None else self.min_confidence

    def at_confidence(self, least: float) -> AutoSolver:
        """The same solver with another `min_confidence`; graph and network are shared."""
        other = copy(self)
        other.min_confidence = least
        return other

    def at_reading(self, number: int) -> AutoSolver:
        """The same solver with another `reading`."""
        other = copy(self)
        other.reading = number
        return other

    def solve(
        self,
        questions: Sequence[Question],
        paths: Mapping[str, Sequence[Weighted]] | None = None,
        parsed: Mapping[str, Sequence[Proposed]] | None = None,
        monitor: Monitor = QUIET,
        *,
        suggest: bool = False,
    ) -> list[ComputedAnswer]:
        """What is computed for each question, in their order.

        paths: relation paths by question, from a retriever; parsed: forms by question, from a parser.  suggest: whether
        a declined question comes with what words of it that were not read may mean.  One on which a step takes longer
        than `question_limits.SECONDS` comes back with `reject`.
        """
        results: list[ComputedAnswer] = []
        for start in range(0, len(questions), BATCH):
            own = questions[start : start + BATCH]
            try:
                with time_limit(SECONDS):
                    solved = self._in_parts(own, self._solve(own, paths or {}, parsed or {}))
                    results += self._suggested(own, solved) if suggest else solved
            except QuestionTimeout as fault:
                if len(questions) > 1:  # one of them: each on its own
                    results += [
                        made for question in own for made in self.solve([question], paths, parsed, suggest=suggest)
                    ]
                    continue
                log.warning("question %s: %s", own[0].id, fault)
                self.timeouts += 1
                results.append(
                    ComputedAnswer(own[0].id, "none", min_confidence=self.threshold, reason=RELATION, reject=str(fault))
                )
            monitor.progress(len(results), len(questions), "questions")
        return results

    def _solve(
        self,
        questions: Sequence[Question],
        paths: Mapping[str, Sequence[Weighted]],
        parsed: Mapping[str, Sequence[Proposed]],
        *,
        chooses: bool = True,
    ) -> list[ComputedAnswer]:
        readings = self.parser.readings(questions)
        flat = [(question, query) for question, some in zip(questions, readings, strict=True) for query in some]
        prepared = self.parser.prepare(
            [(question.id, query) for question, query in flat],
            proposed=[
                self._proposed(query, paths.get(question.id, ()), parsed.get(question.id, ()))
                for question, query in flat
            ],
        )
        best = self.parser.best_readings(self.parser.rank(prepared), [len(some) for some in readings])
        chosen: list[tuple[Question, LabelQuery, Choice]] = []
        for question, some, ranked in zip(questions, readings, best, strict=True):
            if (corrected := self.corrections.choose([ranked.prepared.query, *some])) is not None:
                chosen.append((question, *corrected))
                continue
            if question.topic_entities and not question.topic_weights:
                ranked = replace(ranked, none=ranked.none - GIVEN)
            chosen.append((question, ranked.prepared.query, choose(ranked)))
        if self.chooser is not None and chooses:
            chosen = self.chooser.revise(chosen, self.parser)
        if self.reading and chooses:
            chosen = [(question, query, self._at_reading(question, choice)) for question, query, choice in chosen]
        named = self._named(chosen)
        return [self._answer(*one, named) for one in chosen]

    def _in_parts(self, questions: Sequence[Question], solved: list[ComputedAnswer]) -> list[ComputedAnswer]:
        """The same; a question that is two has the answers of both, or none where one of them has none."""
        for n, question in enumerate(questions):
            if (parts := two_questions(question)) is None:
                continue
            one, other = made = self._solve(parts, {}, {}, chooses=False)
            sure = round((one.confidence or 0) * (other.confidence or 0), 6)
            declined = [part for part in made if part.form is None]
            if declined or sure < self.threshold or one.form == other.form:
                plain = replace(one, form=None, answers=(), keys=(), proof=(), truncated=False, road=None)
                solved[n] = declined[0] if declined else replace(plain, confidence=sure, reason=UNSURE)
            elif not any(isinstance(part.form, (Count, Holds, Share, Aggregate)) for part in made):
                found = dict(zip((*one.keys, *other.keys), (*one.answers, *other.answers), strict=True))
                solved[n] = replace(
                    one, form=Or(tuple(part.form for part in made if part.form is not None)), keys=tuple(found),
                    answers=tuple(found.values()), confidence=sure, weight=min(one.weight, other.weight),
                    proof=tuple(sorted({*one.proof, *other.proof})), truncated=one.truncated or other.truncated,
                    words=f"{one.words} {other.words}",
                )  # fmt: skip
        return solved

    def of_form(self, question: Question, form: Form, confidence: float) -> ComputedAnswer | None:
        """The answer of a form that a question was read as, with what it says in words; None where it cannot be run."""
        query = LabelQuery(question.text)
        best = candidate_of(form, query, self.graph)
        if best is None:
            return None
        choice = Choice(best, confidence, 0.0)
        solved = self._answer(question, query, choice, self._named([(question, query, choice)]))
        used = elements(form)
        ids = {key: found[0] for key, found in self.store.resolve(used.entities).items() if found}
        names = {key: self.store.names([i])[i] for key, i in ids.items()}
        texts = {literal.text: literal.text for literal in used.literals}
        said = re.sub(r"\b([\w ]+) that is (?=\1\b)", "", self.parser.phrases.write(form, texts | names))
        values = (node.value.text for node in nodes_of(form) if isinstance(node, (Compare, TimeConstraint)))
        said = re.sub(rf"\b{NUMBER}\b", lambda found: next(values, found[0]), said)
        return replace(solved, topics=tuple(names.values()), understood=said)

    def _suggested(self, questions: Sequence[Question], solved: list[ComputedAnswer]) -> list[ComputedAnswer]:
        """The same, with names by which a declined question has an answer, one for the same words."""
        short = [n for n, question in enumerate(questions) if len(question.text) <= SUGGESTED]
        declined = [n for n in short if solved[n].missing and solved[n].reason in (ENTITY, RELATION, TYPE, UNREAD)]
        declined = [n for n in declined if not is_sentence(solved[n].missing)]
        tried = [
            (n, *pair) for n in declined for pair in self.suggestions.of(questions[n].text, solved[n].missing or "")
        ]
        again = [replace(questions[n], text=text) for n, _, text in tried]
        with contextlib.suppress(QuestionTimeout):
            made = self._solve(again, {}, {}, chooses=False) if again else ()
            for (n, suggestion, _), one in zip(tried, made, strict=True):
                known = solved[n].suggestions
                if one.form is not None and all(other.words not in suggestion.words for other in known):
                    solved[n] = replace(solved[n], suggestions=(*known, suggestion))
        return solved

    def _proposed(
        self, query: LabelQuery, paths: Sequence[Weighted], parsed: Sequence[Proposed]
    ) -> list[tuple[Candidate, str]]:
        """Forms of the other roads as candidates, with the road of each."""
        forms: list[tuple[Form, str]] = []
        next_question()
        for slot in query.slots:
            for entity, key, _ in slot.entities[:1]:
                if not self.graph.memory.literal[entity]:
                    forms += [(from_path(key, path), RETRIEVER) for path, _ in paths[:PROPOSED]]
        for text, _ in parsed[:PROPOSED]:
            try:
                forms.append((parse(text), PARSER))
            except FormError:
                continue
        results = []
        for form, road in forms:
            made = candidate_of(form, query, self.graph)
            if made is not None and (made.nodes is None or len(made.nodes)):
                results.append((made, road))
        return results

    def _named(self, chosen: Sequence[tuple[Question, LabelQuery, Choice]]) -> _Named:
        """Names of all entities that are meant or answered, and keys of the answers, each by one query."""
        meant = [entity for _, query, _ in chosen for entity in _meant(query)]
        answered = [
            node for _, _, choice in chosen if choice.best is not None
            for node in answer_nodes(choice.best, self.options.max_answers)
        ]  # fmt: skip
        return _Named(self.store.names([*meant, *answered]), self.store.entity_keys(answered))

    def _answer(self, question: Question, query: LabelQuery, choice: Choice, named: _Named) -> ComputedAnswer:
        over = False
        if choice.best is not None and not choice.empty and self.options.current_facts:
            current, over = self.parser.qualifiers.current(query, choice.best)
            if current is not choice.best:
                choice = replace(choice, best=current)  # whose words are read anew
                named = self._named([(question, query, choice)])
        best, sure_of = choice.best, self._confidence(choice)
        left = self._left(query, choice, named)
        if left.restricting and not (left.verbs and sure_of >= VERB_LEAST):
            confidence = round(min(sure_of, UNREAD_MOST, 0.9 * self.threshold or 1.0), 6)
        else:
            confidence = round(ENDED_SHARE * sure_of if over else sure_of, 6)
        words = " ".join(word for word in WORD.findall(query.text) if len(word) > 1 or word.isdigit())
        usable = best is not None and not choice.empty
        sure = usable and (self.reading > 0 or confidence >= self.threshold)
        made = ComputedAnswer(
            question.id,
            KINDS[best.kind] if best is not None else "none",
            topics=tuple(named.names[entity] for entity in _meant(query)),
            words=words,
            tried=len(choice.ranked.order) if choice.ranked is not None else 0,
            confidence=confidence if self.calibration is not None else None,
            min_confidence=self.threshold,
            chooser=f"{self.chooser.model.name}: {choice.verdict}" if self.chooser and choice.verdict else None,
        )
        if (
            (choice.ranked or not choice.best)
            and choice.verdict is None
            and not (sure and not left.words)
            and (language := self._unread_language(question.text))
        ):
            extra = EXTRA_LANGUAGES if language in CODES and self.translator is None else ""
            return replace(made, confidence=None, reason=UNREAD, missing=OTHER_LANGUAGE.format(language) + extra)
        if not sure or best is None:
            kind, missing = self._reason(question, query, choice)
            if (verdict := choice.verdict) is not None and verdict.place < 0:
                kind, missing = RELATION, verdict.missing or missing
            elif usable and (
                verdict is not None
                and verdict.place > 0
                or sure_of >= LIKELY_ENOUGH * self.default_threshold
                or choice.share > choice.none
            ):
                missing = self._shown(question, query, left.words, named) or None
                kind = UNREAD if missing and not (verdict and verdict.place) else UNSURE
                return replace(made, reason=kind, missing=missing, readings=self._readings(choice))
            elif best is None and (away := self.parser.cues(query).negations):
                kind, missing = UNREAD, ", ".join(word for _, word in away)
            if kind in (ENTITY, FACT):  # there is no answer to be sure of
                made = replace(made, confidence=None)
            return replace(made, reason=kind, missing=missing)
        best = replace(best, form=stated_form(best, self.graph))
        proof, truncated = self._proof(best.form)
        if best.nodes is not None and len(best.nodes) > self.options.max_answers:
            best, truncated = replace(best, nodes=best.nodes[: self.options.max_answers]), True
        unnamed = 0
        if best.nodes is not None:
            nodes = [node for node in best.nodes.tolist() if not is_unnamed(named.keys[node], named.names[node])]
            if (unnamed := len(best.nodes) - len(nodes)) and not nodes:
                missing = f"names of the {', '.join(labels_of(best.form, self.graph))}"
                return replace(made, confidence=None, reason=FACT, missing=missing)
            order = self.store.list_order(proof)
            nodes.sort(key=lambda node: order.get(node, len(order)))
            best = replace(best, nodes=np.array(nodes, dtype=best.nodes.dtype))
        answers = answers_of(best, named.names)
        keys = tuple(named.keys[node] for node in best.nodes.tolist()) if best.nodes is not None else ()
        keys = keys or answers
        return replace(
            made,
            form=best.form,
            answers=answers,
            keys=keys,
            weight=round(choice.share, 6),
            proof=proof,
            truncated=truncated,
            road=best.road,
            unnamed=unnamed,
        )

    def _unread_language(self, text: str) -> str | None:
        """The language of a text where its words are not read, for the graph has no labels in it; None at threshold 0,
        where all that is found is answered."""
        language = language_of(text) if self.threshold else None
        return None if language in (None, ENGLISH) or are_in(self.graph.label_words, language) else language

    def _left(self, query: LabelQuery, choice: Choice, named: _Named) -> Unread:
        """Words of a question that its best form leaves unread; among them those for a number or a date, where none of
        what the form finds has a digit."""
        best, ranked = choice.best, choice.ranked
        if best is None or ranked is None or choice.empty:
            return Unread()
        left, cues = choice.unread, self.parser.cues(query)
        if left is None:
            left = self.parser.unread(ranked.prepared, best)
        if (other := script_language(query.text)) and not are_in(self.graph.label_words, other):
            strange = [word for word in query.text.split() if script_language(word)]
            left = Unread((*(word for word in left.words if word not in strange), *strange), True)
        if cues.kind not in ("number", "time") or best.nodes is None:
            return left
        names = (named.names.get(node, "0") for node in best.nodes.tolist())
        if any(letter.isdigit() for name in names for letter in name):
            return left
        return Unread((*left.words, cues.words), True)

    def _confidence(self, choice: Choice) -> float:
        """That the best answer is right; 0 without any, and too little if uncalibrated and less likely than none."""
        if choice.best is None or choice.empty:
            return 0.0
        if choice.ranked is None:
            return choice.share  # of a confirmed form
        plain = choice.share if choice.share > choice.none else min(choice.share, UNCALIBRATED - 0.01)
        confidence = self.calibration.confidence(choice) if self.calibration is not None else plain
        return confidence_of(choice, confidence, self.threshold)

    def _proof(self, form: Form) -> tuple[tuple[int, ...], bool]:
        """Triples that a form's result rests on; of a `no` or a `none` those of what there is instead."""
        try:
            result = execute(form, self.store, seconds=self.options.timeout_seconds)
            if isinstance(form, Holds) and not result.value:
                return execute(form.of, self.store, seconds=self.options.timeout_seconds).proof, result.truncated
            inner = form.of if isinstance(form, Count) else form
            if not result.proof and isinstance(inner, And):
                return execute(
                    inner.parts[-1], self.store, seconds=self.options.timeout_seconds
                ).proof, result.truncated
            return result.proof, result.truncated
        except FormTimeout:
            self.timeouts += 1
        except FormError:
            pass
        return (), False

    def _offered(self, choice: Choice) -> list[Choice]:
        """A choice and the likeliest others that find something; none without an answer."""
        if choice.best is None or choice.empty:
            return []
        others = choices(choice.ranked, 2 * OFFERED) if choice.ranked is not None else []
        found = [one for one in others if one.place != choice.place and one.best is not None and not one.empty]
        return [choice, *found][:OFFERED]

    def _at_reading(self, question: Question, choice: Choice) -> Choice:
        offered = self._offered(choice)
        if self.reading > len(offered):
            raise InputError(f"there is no reading {self.reading} of {question.text!r}, which offers {len(offered)}")
        return offered[self.reading - 1]

    def _readings(self, choice: Choice) -> tuple[OfferedReading, ...]:
        """What a question may mean, with what each finds; none is likelier than the one before it."""
        offered, results, least = self._offered(choice), list[OfferedReading](), 1.0
        sentences = PlanSentences(self.parser, offered)
        for one in offered:
            assert one.best is not None
            plan, least = sentences.of(one), min(least, self._confidence(one))
            sure = round(least, 6) if self.calibration is not None else None
            found = tuple(plan["finds"][:NAMES])
            form = str(stated_form(one.best, self.graph))
            results.append(OfferedReading(plan["asks for"], found, plan["count"], sure, form))
        return tuple(results)

    def _reason(self, question: Question, query: LabelQuery, choice: Choice) -> tuple[str, str | None]:
        """What of a question the graph does not have, one of `types.REASONS` or TYPE, and that in words."""
        best = choice.best
        if best is not None and choice.empty and choice.share > choice.none:
            return FACT, PlanSentences(self.parser, [choice]).of(choice)["asks for"]
        if name := self._unknown(question, query):
            return ENTITY, name
        missing = self._strange(query, best)
        words = (missing or "").split()
        for word, behind in zip(words, [*words[1:], "?"], strict=False):  # the last of a compound says what it is
            asked = re.search(rf"\b(?:which|how many|all|every) {re.escape(word)}\b", query.text, re.IGNORECASE)
            kind = f"{word} {behind}" not in query.text and not kinds().isdisjoint(singulars(word.lower()))
            if (asked or kind) and stem(word.lower()) not in self.graph.label_words:
                return TYPE, word
        return RELATION, missing

    def _shown(self, question: Question, query: LabelQuery, left: Sequence[str], named: _Named) -> str:
        """Words that were not read: of a mention those of the question, of a number its value."""
        mentions = dict(zip(question.topic_entities, question.topic_keys, strict=False))
        shown = {NUMBER: query.values[0].text} if query.values else {}
        for slot in query.slots:
            entity = slot.entities[0][0]
            words = mentions.get(entity, "")
            shown[slot.word] = words if words and words in question.text else named.names.get(entity, words)
        return ", ".join(" ".join(shown.get(word, word) for word in run.split()) for run in left if run)

    def _unknown(self, question: Question, query: LabelQuery) -> str | None:
        """A name in a question that the graph does not have: words in capitals within it, or, where it has no mention
        at all, of no usual English."""
        words, own = WORD.findall(query.text), self.graph.label_words
        if grammar_of(query.text) is question_words()["grammar"] and any(map(str.islower, words[1:])):
            named = (name for slot in query.slots for name in (*slot.names, slot.mention))
            known = " ".join([*question.topic_keys, *named]).lower()
            runs = [
                run for run in CAPITALS.findall(question.text)
                if len(run) > 1 and run.lower() not in self.graph.texts
                and any(word not in known and stem(word) not in own for word in run.lower().split())
            ]  # fmt: skip
            there = self.store.resolve(runs)
            if runs := [run for run in runs if not there[run]]:
                return max(runs, key=len)
        if query.slots or query.types:
            return None
        plain = (word for word in words if word.isalpha() and word.lower() not in CONTENT_FREE)
        names = [word for word in plain if not usualness(word.lower())]
        return " ".join(names) or None

    def _strange(self, query: LabelQuery, best: Candidate | None) -> str | None:
        """The words of a question that neither grammar nor the best form accounts for."""
        labels = labels_of(best.form, self.graph) if best else []
        known = stems([*labels, *(self.graph.type_labels[position] for position, _ in query.types)])
        words = [w for w in WORD.findall(query.text) if w.lower() not in CONTENT_FREE and len(w) > 2]
        left = [word for word in words if stem(word.lower()) not in known]
        return " ".join(left or words) or None
