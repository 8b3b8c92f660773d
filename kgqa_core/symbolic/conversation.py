"""Answers questions that refer back to the one before, over its form.

A question refers back by a pronoun without a name before it (`its population`), by `of them` (`which of them is the
largest?`), or where it is a fragment (`and of Spain?`, `how many are there?`, `and the smallest?`).  A fragment
changes the form before; a pronoun stands for one of its sets: the question is parsed with the name of a member, or of
`of them` with the type of the members, and the set takes its place in the form.  Every other question is complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kgqa_core.errors import FormError, FormTimeout, InputError
from kgqa_core.logic import forms
from kgqa_core.logic.forms import And, Arg, Class, Count, Entity, Form, Holds, Join, Literal, Nth, with_children
from kgqa_core.logic.memory import Ints
from kgqa_core.retrieval.linked_candidates import CANDIDATES, with_candidates
from kgqa_core.rewriting.phrases import plural
from kgqa_core.search.question_reader import ordinal_in
from kgqa_core.search.question_words import is_superlative
from kgqa_core.search.reading import stem, types_in
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import UNREAD, Linked, Question

TURNS, ANTECEDENTS, SAMPLE, WORDS = 8, 4, 50, 4
"""Earlier turns of the user that are read; sets of a form that a pronoun may stand for; members of a set among which
the one with the most relations stands for it; words of a fragment that names a relation."""
ALIKE = 0.5
"""Share of the types of two entities that they have in common, from which on one may take the other's place."""
_LEAD = re.compile(r"^\W*(?:(?:and|but|so|or|then|ok|okay|now|also|(?:what|how) about|same for)\b(?!-)[\s,]*)+", re.I)
_OF_THEM = re.compile(
    r"\b(?:which|who|what|how many|any|some|all)(?: ones?)? (?:of|among) (?:them|these|those)\b", re.I
)
_ONES = re.compile(r"^(?:which(?: ones?)?|what ones?)(?= (?:is|are|was|were|has|have|had|do|does|did|can)\b)", re.I)
_PRONOUN = re.compile(
    r"\b(?P<own>its|his|their|her(?= \w))\b|\b(?:it|he|him|she|her|they|them|(?:these|those)(?=\W*$))\b"
    r"|(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bif )\bthere\b(?! (?:is|are|was|were|an?|any|be)\b)",
    re.I,
)
_IDLE = re.compile(
    r"\bit(?= (?:true|correct|possible|the case|that|is|takes?|took|costs?)\b)|(?<=\btime is )it\b|(?<=\bwhere )they\b"
    r"|(?<=\w of )them(?= all\b)|(?<=\w in )(?:their|its)(?= names?\b)",
    re.I,
)
"""`It` that stands for nothing, `they` for people, and words for what stands before them: *the largest of them all*."""
_APART = re.compile(r"[,;:]|\b(?:nobody|no one|nothing|some(?:body|one|thing)) (?:who|that)\b", re.I)
"""What parts a clause, or names another thing, so that a pronoun behind it stands for what is before."""
_HOW_MANY = re.compile(r"^how many(?: (?:of )?(?:them|these|those)| (?:are|were)| there| they| ones)*\W*$", re.I)
_WHICH = re.compile(r"^(?:which|who|what|list|show|name)(?: ones?| are| they| exactly| them| those| all)*\W*$", re.I)
_BEST = re.compile(r"^(?:the )?(?P<rank>\w.*?)(?: ones?)?\W*$", re.I)
_IS = re.compile(r" (?:is|are|was|were) (?:the |an? )?(?P<what>[^?!.]+?)\W*$", re.I)
_ASKS = re.compile(r"\b(?:wh\w+|how|is|are|was|were|do|does|did|has|have|had|can)\b", re.I)
_PREPOSITIONS = frozenset("of in on at for from to by with".split())
_SMALL_WORDS = _PREPOSITIONS | frozenset("a an the as too instead one".split())
_PLURAL = frozenset("their they them these those".split())
_LARGEST = frozenset("largest biggest greatest most highest best latest last".split())
_SMALLEST = frozenset("smallest least fewest lowest worst earliest first".split())


class _Set(NamedTuple):
    """A set that words may refer to."""

    form: Form
    nodes: Ints


class _EarlierQuestion(NamedTuple):
    """An earlier question, linked, and what was computed for it."""

    question: Question
    solved: ComputedAnswer


@dataclass(frozen=True, slots=True)
class _FollowUp:
    """A question, linked, with its mentions, and how it refers back.

    kind: `of them`, `rank`, `count`, `list`, `replace`, `relation` or `pronoun`; "" where it does not.  start, end: of
    the words in its text that do.
    """

    question: Question
    mentions: list[Linked]
    kind: str = ""
    start: int = 0
    end: int = 0

    @property
    def words(self) -> str:
        return self.question.text[self.start : self.end].strip(" ?!.")


class Conversation:
    """Answers follow-up questions on the graph of a solver.  link: a question, without its dialogue."""

    def __init__(self, solver: AutoSolver, link: Callable[[Question], tuple[Question, list[Linked]]]) -> None:
        self.solver, self.graph, self.link = solver.at_reading(0), solver.graph, link
        self.reading = solver.reading

    def follow(self, question: Question) -> tuple[Question, ComputedAnswer] | None:
        """A question that refers back with the entities of what it was read as, and its answer; None for others."""
        if question.topic_keys or question.topic_entities:
            return None
        asked = [text for role, text in question.dialogue if role == "user"][-TURNS:]
        reading = self._read(question)
        solved = self._solved(reading, self._turn(question, asked) if reading.kind else None)
        if solved is None:
            return None
        if self.reading:
            raise InputError(
                f"there is no reading {self.reading} of {question.text!r}, which refers back and offers none"
            )
        used = forms.elements(solved.form).entities if solved.form is not None else ()
        ids = {key: found[0] for key, found in self.solver.store.resolve(used).items() if found}
        return replace(question, topic_keys=tuple(ids), topic_entities=tuple(ids.values())), replace(
            solved, readings=()
        )

    def _turn(self, question: Question, texts: Sequence[str]) -> _EarlierQuestion | None:
        """The last of earlier questions that was understood, read from the last one that is complete."""
        readings = [self._read(replace(question, text=text, dialogue=())) for text in texts]
        starts = [n for n, one in enumerate(readings) if not one.kind] or [0]
        return next(filter(None, (self._last(readings[n:]) for n in reversed(starts))), None)

    def _last(self, readings: Sequence[_FollowUp]) -> _EarlierQuestion | None:
        turn: _EarlierQuestion | None = None
        for reading in readings:
            own = with_candidates(reading.question, reading.mentions, CANDIDATES)
            solved = self._solved(reading, turn) if reading.kind else self.solver.solve([own])[0]
            if solved is not None and (solved.form is not None or (turn is None and own.topic_entities)):
                if turn is not None and reading.kind == "replace":
                    used = forms.elements(solved.form).entities if solved.form is not None else ()
                    own = self._renamed(turn, reading, used) or own
                turn = _EarlierQuestion(own, solved)
        return turn

    # -- how a question refers back ----------------------------------------------------------------------------

    def _read(self, question: Question) -> _FollowUp:
        linked, mentions = self.link(replace(question, dialogue=()))
        lead = _LEAD.match(question.text)
        start = lead.end() if lead is not None else 0
        text = question.text[start:]
        names = [name for name, _ in mentions if not (name.islower() and types_in(name, self.graph))]
        names = [name for name in names if not any(name != other and name in other for other in names)]
        names = [name for name in names if not _PRONOUN.fullmatch(name)]
        typed = bool(types_in(text, self.graph))
        whole = _FollowUp(linked, [one for one in mentions if one[0] in names], "", start, len(question.text))

        def read(kind: str, match: re.Match[str] | None = None, group: str | int = 0) -> _FollowUp:
            span = match.span(group) if match is not None else (0, len(text))
            return replace(whole, kind=kind, start=start + span[0], end=start + span[1])

        if _HOW_MANY.match(text) or _WHICH.match(text):
            return read("count" if text[:1].lower() == "h" else "list")
        if match := _OF_THEM.search(text) or (None if typed or (names and " or " in text) else _ONES.match(text)):
            return read("of them", match)
        best = _BEST.match(text)
        ranks = best is not None and any(map(is_superlative, best["rank"].lower().split()))
        if ranks and not names and not _ASKS.search(text) and (lead is not None or not typed):
            return read("rank", best, "rank")
        for match in _PRONOUN.finditer(text):
            if not self._is_own(match, text, names, not question.dialogue):
                return read("pronoun", match)
        rest = _content(text)
        if rest and ((len(names) == 1 and rest == _content(names[0])) or (lead and " ".join(rest) in self.graph.texts)):
            return read("replace")
        few = lead is not None and 0 < len(rest) <= WORDS and not names and not _ASKS.search(text)
        return read("relation" if text == text.lower() else "replace") if few else replace(whole, mentions=mentions)

    def _is_own(self, match: re.Match[str], text: str, names: Sequence[str], first: bool) -> bool:
        """Whether a pronoun stands for something in its own question, or for nothing, or is in a name.

        first: whether there is no earlier question."""
        before, after = text[: match.start()], text[match.end() :]
        idle = _IDLE.match(text, match.start()) is not None
        inside = any(text.find(name) <= match.start() < text.find(name) + len(name) for name in names)
        *_, behind = [0, *(apart.start() for apart in _APART.finditer(before))]
        typed = bool(types_in(before if match["own"] is not None else before[:behind], self.graph))
        typed |= first and not self.graph.label_words.isdisjoint(map(stem, _content(before[:behind])))
        there = any(re.search(rf"\b(?:in|at|on|from)\b.* {re.escape(name)}", after) for name in names)
        return (
            idle or inside or typed or any(name in before for name in names) or (there and match[0].lower() == "they")
        )

    # -- what it means -----------------------------------------------------------------------------------------

    def _solved(self, reading: _FollowUp, turn: _EarlierQuestion | None) -> ComputedAnswer | None:
        """What is computed for a question that refers back; None for one that does not, or a fragment of nothing."""
        them = _OF_THEM.match(reading.words) is not None or (reading.kind == "pronoun" and not reading.mentions)
        if not reading.kind or (turn is None and not them):
            return None
        found = getattr(self, f"_{reading.kind.replace(' ', '_')}")
        solved: ComputedAnswer | None = found(reading, turn) if turn is not None else None
        words = reading.words.split()[-1] if reading.kind == "of them" else reading.words
        why, least = f"what does “{words}” refer to?", self.solver.threshold
        return solved or ComputedAnswer(reading.question.id, "none", min_confidence=least, reason=UNREAD, missing=why)

    def _count(self, reading: _FollowUp, turn: _EarlierQuestion) -> ComputedAnswer | None:
        form, members = turn.solved.form, next(self._sets(turn), None)
        whole = Count(form) if form is not None and members is not None and members.form == form else None
        form = form if isinstance(form, Count) else whole
        return self._given(reading, form, turn.solved) if form is not None else None

    def _list(self, reading: _FollowUp, turn: _EarlierQuestion) -> ComputedAnswer | None:
        form = turn.solved.form
        return None if form is None else self._given(reading, form.of if isinstance(form, Count) else form, turn.solved)

    def _replace(self, reading: _FollowUp, turn: _EarlierQuestion) -> ComputedAnswer | None:
        """The form before with another entity or text; where none is of its kind, the question before with its name."""
        graph, form, text = self.graph, turn.solved.form, turn.question.text
        new = [one for _, own in reading.mentions for one, _ in own[:CANDIDATES]]
        new = new or list(graph.texts.get(" ".join(_content(reading.words)), ()))[:1]
        keys = self.solver.store.entity_keys(new)
        named = dict(zip(turn.question.topic_entities, turn.question.topic_keys, strict=False))
        judges = form is not None and any(isinstance(one, (Holds, forms.Greater)) for one in _parts(form))
        first = judges and _PREPOSITIONS.isdisjoint(reading.words.lower().split())
        made: list[tuple[float, int, Form]] = []
        for leaf, node, relation in self._leaves(form) if form else ():
            place = text.find(named.get(node, "\0")) * (-1 if first else 1)
            for entity in new:
                old, own = set(graph.types_of(node)), set(graph.types_of(entity))
                alike = len(old & own) / len(old | own) if old | own else ALIKE
                has = relation < 0 or relation in graph.directed_relations(np.array([entity], dtype=np.int64))
                if form and entity != node and (has or (own and alike >= ALIKE)):
                    made.append((alike + has, place, _swapped(form, leaf, graph.named(entity, keys[entity]))))
        for _, _, changed in sorted(made, key=lambda one: one[:2], reverse=True):
            if (given := self._given(reading, changed, turn.solved)) is not None:
                return given
        again = self._renamed(turn, reading)
        return replace(self.solver.solve([again])[0], understood=again.text) if again is not None else None

    def _renamed(self, turn: _EarlierQuestion, reading: _FollowUp, used: Collection[str] = ()) -> Question | None:
        """The question before with the name of this one for the last one that it has, but for those that are used."""
        question, keys = turn.question, self.solver.store.entity_keys(turn.question.topic_entities)
        named = zip(question.topic_entities, question.topic_keys, strict=False)
        old = [name for node, name in named if name and name in question.text and keys.get(node) not in used]
        if not old or not reading.mentions:
            return None
        text = question.text.replace(old[-1], reading.mentions[0][0])
        return with_candidates(*self.link(Question(reading.question.id, text, language=question.language)), CANDIDATES)

    def _of_them(self, reading: _FollowUp, turn: _EarlierQuestion) -> ComputedAnswer | None:
        members = max(self._sets(turn), key=lambda one: len(one.nodes) > 1, default=None)
        return None if members is None else self._among(reading, members, turn.solved)

    def _among(self, reading: _FollowUp, members: _Set, before: ComputedAnswer) -> ComputedAnswer | None:
        """What is asked of a set: the question with the type of its members in place of the words, within the set."""
        if not len(members.nodes) or not (noun := self._noun(members)):
            return None
        after, number = reading.question.text[reading.end :], reading.words.lower().startswith("how many")
        many = number or re.match(r" (?:are|were|have|do|(?!(?:is|has|was|does)\b)[a-z]+[^s\W]\b)", after)
        asked = [f"{'how many' if number else 'which'} {plural(noun) if many else noun}{after}"]
        what = match["what"] if (match := _IS.match(after)) is not None else ""
        for index, _ in types_in(what, self.graph)[: not number]:
            label = self.graph.type_labels[index]
            if what.lower() in (label, plural(label)):
                return self._given(reading, And((members.form, Class(self.graph.type_keys[index]))), before)
        if any(map(is_superlative, what.lower().split())):
            asked.append(f"{what} {noun}")
        solved = self.solver.solve([self._asked(reading, text, number=n) for n, text in enumerate(asked)])
        best = max(solved, key=lambda one: (one.form is not None, one.confidence or 0.0))
        best = replace(best, question=reading.question.id)
        return best if best.form is None else self._given(reading, self._within(best.form, members), best, before)

    def _rank(self, reading: _FollowUp, turn: _EarlierQuestion) -> ComputedAnswer | None:
        """The ranking before with the other end or by another measure, or one of the set before."""
        last, words = turn.solved.form, reading.words.lower().split()
        members = next((one for one in self._sets(turn) if len(one.nodes) > 1), None)
        if isinstance(last, (Arg, Nth)):
            members, word = _Set(last.of, self._nodes(last.of)), words[-1]
            if word in _LARGEST | _SMALLEST and not (_LARGEST | _SMALLEST).isdisjoint(_content(turn.question.text)):
                n, best = ordinal_in(reading.words) or 1, "max" if word in _LARGEST else "min"
                ranked: Form = Arg(best, last.of, last.path, last.counted)
                ranked = Nth(n, best, last.of, last.path, last.counted) if n > 1 else ranked
                return self._given(reading, ranked, turn.solved)
        if members is None:
            return None
        verb = "is" if is_superlative(words[-1]) else "has"
        question = replace(reading.question, text=f"which {verb} the {reading.words}")
        return self._among(replace(reading, question=question, start=0, end=len("which")), members, turn.solved)

    def _relation(self, reading: _FollowUp, turn: _EarlierQuestion) -> ComputedAnswer | None:
        inner, at = [*self._sets(turn)], len(reading.words) + 4
        reading = replace(
            reading, question=replace(reading.question, text=f"{reading.words} of it"), start=at, end=at + 2
        )
        return self._about(reading, [*inner[1:], *inner[:1]], turn)

    def _pronoun(self, reading: _FollowUp, turn: _EarlierQuestion) -> ComputedAnswer | None:
        sets, word = [*self._sets(turn)], reading.words.lower()
        single = [one for one in sets if len(one.nodes) == 1]
        if word != "there":
            sets = single if word not in _PLURAL else [one for one in sets if len(one.nodes) > 1] or single
        return self._about(reading, sets, turn)

    def _about(self, reading: _FollowUp, sets: Sequence[_Set], turn: _EarlierQuestion) -> ComputedAnswer | None:
        """What is asked of one of some sets, the likeliest first: of several that with the fewest relations.

        The question is parsed with the name of a member.
        """
        sets, text = sets[:ANTECEDENTS], reading.question.text
        questions, keys = [], []
        for number, one in enumerate(sets):
            node = max(one.nodes[:SAMPLE].tolist(), key=lambda own: len(self.graph.directed_relations(np.array([own]))))
            keys.append(self.solver.store.entity_keys([node])[node])
            name = self.solver.store.names([node])[node]
            match = _PRONOUN.match(text, reading.start)
            own = "'s" if match is not None and match["own"] else ""
            asked = f"{text[: reading.start]}{name}{own}{text[reading.end :]}"
            questions.append(self._asked(reading, asked, [(name, [(node, 1.0)])], number))
        solved, made = self.solver.solve(questions) if questions else [], []
        for number, (one, found) in enumerate(zip(sets, solved, strict=True)):
            if found.form is None or Entity(keys[number]) not in _parts(found.form):
                continue
            form = _swapped(found.form, Entity(keys[number]), one.form)
            if (given := self._given(reading, form, found, turn.solved)) is not None:
                made.append((sum(len(getattr(part, "path", ())) for part in _parts(found.form)), number, given))
        if made:
            return min(made, key=lambda row: row[:2])[2]
        return replace(solved[0], question=reading.question.id) if solved else None

    # -- parts -------------------------------------------------------------------------------------------------

    def _asked(self, reading: _FollowUp, text: str, more: Sequence[Linked] = (), number: int = 0) -> Question:
        """The question in other words, with its own mentions and more.  number: of the wording."""
        lead, mentions = _LEAD.match(text), [*reading.mentions, *more]
        topics = tuple(dict.fromkeys(own[0][0] for _, own in mentions if own))
        question = Question(
            f"{reading.question.id} {number}", text[lead.end() :] if lead else text, topic_entities=topics,
            language=reading.question.language,
        )  # fmt: skip
        return with_candidates(question, mentions, CANDIDATES)

    def _sets(self, turn: _EarlierQuestion) -> Iterator[_Set]:
        """The sets of things of a form, the outermost first; of a yes or no, and without one, the entities named."""
        form, question = turn.solved.form, turn.question
        whole = [] if form is None or isinstance(form, Holds) else [*_parts(form)]
        if not whole:
            named = zip(question.topic_mentions, question.topic_entities, question.topic_keys, strict=False)
            first = {number: (question.text.find(name), node) for number, node, name in reversed([*named])}
            keys = self.solver.store.entity_keys(node for _, node in first.values())
            whole = [Entity(keys[node]) for _, node in sorted(first.values())]
        for form in dict.fromkeys(one for one in whole if not isinstance(one, Class) or len(whole) < 3):
            nodes = self._nodes(form)
            if len(nodes) and not self.graph.memory.literal[nodes].any():
                yield _Set(form, nodes)

    def _nodes(self, form: Form) -> Ints:
        """What a form denotes; nothing for a value, and for one that cannot be run."""
        try:
            result = self.graph.answering.execute(form)
        except (FormError, FormTimeout):
            return np.zeros(0, dtype=np.int64)
        return np.array([] if result.value is not None else result.nodes, dtype=np.int64)

    def _noun(self, members: _Set) -> str:
        """The smallest type that all members have."""
        kinds = set.intersection(*(set(self.graph.types_of(node)) for node in members.nodes.tolist()))
        return self.graph.type_labels[min(kinds, key=lambda one: (len(self.graph.members(one)), one))] if kinds else ""

    def _within(self, form: Form, members: _Set) -> Form:
        """A form whose set is taken within another."""
        match form:
            case Count(of=of) | Arg(of=of) | Nth(of=of) | forms.Aggregate(of=of) | forms.Minus(of=of):
                return replace(form, of=self._within(of, members))
        parts = form.parts if isinstance(form, And) else (form,)
        rest = [one for one in parts if not (isinstance(one, Class) and np.isin(members.nodes, self._nodes(one)).all())]
        return And((members.form, *rest)) if rest else members.form

    def _leaves(self, form: Form, relation: int = -1) -> Iterator[tuple[Form, int, int]]:
        """Entities and texts of a form as (form, node, directed relation that is followed from it)."""
        if isinstance(form, (Entity, Literal)):
            key = form.key if isinstance(form, Entity) else form.text
            for node in self.solver.store.resolve([key])[key][:1]:
                yield form, node, relation
        relation = self.graph.inverse(self.graph.directed_relation(form.path[-1])) if isinstance(form, Join) else -1
        for part in forms.children(form):
            yield from self._leaves(part, relation)

    def _given(self, reading: _FollowUp, form: Form, *of: ComputedAnswer) -> ComputedAnswer | None:
        """The answer of a form, as sure as those that it is made of; None where the form cannot be run."""
        sure = [one.confidence for one in of if one.confidence is not None and one.form is not None]
        return self.solver.of_form(reading.question, form, min(sure, default=1.0))


def _parts(form: Form) -> Iterator[Form]:
    """A form and those in it, each before those below, each step of a path too; of a yes or no first what is judged."""
    yield form
    parts = (form.one, form.of) if isinstance(form, Holds) else forms.children(form)
    if isinstance(form, Join) and len(form.path) > 1:
        parts = (Join(form.path[1:], form.of),)
    for part in parts:
        yield from _parts(part)


def _swapped(form: Form, old: Form, new: Form) -> Form:
    """A form with another one in place of one of its parts."""
    return new if form == old else with_children(form, lambda part: _swapped(part, old, new))


def _content(text: str) -> list[str]:
    """The words of a text in small letters, without those of grammar."""
    words = re.findall(r"[^\s?!.,;:]+", text.lower())
    return [word.removesuffix("'s") for word in words if word not in _SMALL_WORDS]
