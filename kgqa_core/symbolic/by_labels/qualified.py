"""Forms over the qualifiers of statements: when a fact holds, who says so, and what else is stated of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from functools import cached_property

import numpy as np

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic.builder import TIMED_SQL
from kgqa_core.logic.forms import Entity, Form, Join, Literal, Qualifier, Where, rewritten
from kgqa_core.logic.lookup import begins, ending
from kgqa_core.search.candidates import Candidate, LabelQuery, contains, nodes_of
from kgqa_core.search.graph import WORD, LabelGraph, words_of
from kgqa_core.search.phrases import NUMBER
from kgqa_core.search.reading import CONTENT_FREE, stem

BASES = 12
BEGIN, END, POINT, TIMED = "begin", "end", "point", 0.9
"""Share of the values of a qualifier that are dates or years, from which on it tells a time."""
PROVENANCE = frozenset(("graph", "source", "stated in", "reference", "reference url", "provenance", "according to"))
"""Labels of qualifiers that tell who states a fact."""
_SOURCE = re.compile(r"\b(?:who|wh\w+ \w+) (?:says?|said|states?|stated|claims?)\b|\baccording to wh|\bsource\b")
_PRESENT = re.compile(r"\b(?:is|are|does|do)\b|['’]s\b|\bwho \w+s\b")
_PAST = re.compile(
    r"\b(?:was|were|did|had|been|ever|former|formerly|previous|previously|past|history|until|till|when|since|before|"
    r"after|first|last|has \w+|have \w+|all \w+s of|n)\b"
)
_END = re.compile(r"\b(?:until|till) (?:when|what|which)\b|\bwhen .*\b(?:end|ended|stop|stopped|leave|left|finish)\b")
_BEGIN_WORDS = frozenset("since from start started starting begin began beginning become became join joined".split())
_END_WORDS = frozenset("until till to end ended stop stopped leave left finish finished".split())
_WORDS = {
    "lt": "before", "gt": "after", "first": "first earliest original", "last": "last latest most recent",
    "current": "current currently now nowadays today still at present",
}  # fmt: skip
_POINTS = frozenset("year date time when since on day".split())
_BEFORE_YEARS = {
    **dict.fromkeys(("since", "from", "starting"), (BEGIN, "eq")), **dict.fromkeys(("until", "till"), (END, "eq")),
    "before": (BEGIN, "lt"), "after": (BEGIN, "gt"),
}  # fmt: skip
_SAYING = frozenset("says say said states state stated claims claim reports report according source so".split())


def qualifier_words(form: Form, graph: LabelGraph) -> frozenset[str]:
    """Words of a question that the qualifiers of a form account for."""
    words: set[str] = set()
    for node in nodes_of(form):
        own: Iterable[tuple[str, str, object]] = node.where if isinstance(node, Join) else ()
        for key, op, value in [(node.relation, "", None)] if isinstance(node, Qualifier) else own:
            words.update(_WORDS.get(op, "").split())
            if op in ("", "eq"):
                words.update(_BEGIN_WORDS if ending(key) else _END_WORDS if begins(key) else ())
                words.update(WORD.findall(words_of(value.key).lower()) if isinstance(value, Entity) else ())
                words.update(_SAYING if graph.labels[graph.memory.relation_ids[key]].lower() in PROVENANCE else ())
    return frozenset(words)


_STATED = "FROM qualifiers q JOIN triples t ON t.id = q.triple"


class Qualifiers:
    """Makes forms with qualifiers on one graph; today: what is current is so on this day."""

    def __init__(self, graph: LabelGraph, today: date | None = None) -> None:
        self.graph, self.today = graph, today or date.today()
        self._relations_of_value: dict[int, set[tuple[int, int]]] = {}
        self._dated: set[str] = set()

    @cached_property
    def of_relation(self) -> dict[int, dict[int, str]]:
        """The qualifiers of each relation's statements, with what it tells: BEGIN, END, POINT or no time."""
        results: dict[int, dict[int, str]] = {}
        rows = self.graph.store.connection.execute(
            "SELECT t.relation, q.relation, avg((e.precision IS NOT NULL)::INT), "
            f"avg({TIMED_SQL}::INT) {_STATED} JOIN entities e ON e.id = q.value GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        for relation, qualifier, dated, timed in rows:
            key, words = self.graph.keys[qualifier], set(self.graph.labels[qualifier].lower().split())
            kind = END if begins(key) else BEGIN if ending(key) else POINT if dated or words & _POINTS else ""
            results.setdefault(relation, {})[qualifier] = kind if (timed or 0) > TIMED else ""
            self._dated.update((key,) if (dated or 0) > TIMED else ())
        return results

    def make(self, query: LabelQuery, bases: Iterable[Candidate]) -> Iterator[Candidate]:
        """Candidates with qualifiers, of some without: of the first `BASES` that have any."""
        tried, used = set[Form](), 0
        for base in bases if self.of_relation else ():
            if used >= BASES:
                return
            steps = [step.relation for node in nodes_of(base.form) if isinstance(node, Join) for step in node.path]
            relation = next((key for key in steps if self._of(key)), None)
            if relation is None:
                continue
            forms: list[tuple[Form, str, tuple[int, ...]]] = []
            for where, slots in self._conditions(query, relation, base):
                form = rewritten(base.form, {relation: where}.get)
                if form is not None:
                    forms.append((form, where.relation, slots))
            if isinstance(base.form, Join) and steps == [relation]:
                forms += self._values(query, base.form, base)
            used += bool(forms)
            for form, key, slots in forms:
                made = self._run(base, form, (key,), slots) if form not in tried else None
                tried.add(form)
                if made is not None and not (isinstance(form, Qualifier) and not made.nodes.size):  # type: ignore[union-attr]
                    yield made

    def current(self, query: LabelQuery, best: Candidate) -> tuple[Candidate, bool]:
        """A candidate over facts that have not ended, for a question in the present tense; and whether all have."""
        low = query.text.lower()
        plain = not {*_WORDS["current"].split()[:6]}.isdisjoint(low.split())
        outer = any(isinstance(node, Qualifier) or getattr(node, "where", ()) for node in nodes_of(best.form))
        if not self.of_relation or outer or not (plain or (_PRESENT.search(low) and not _PAST.search(low))):
            return best, False
        now = Literal(self.today.isoformat(), f"{XSD}date")
        form = rewritten(best.form, lambda key: Where(end, "current", now) if (end := self._time(key, END)) else None)
        made = self._run(best, form, (), best.slots) if form is not None else None
        if made is None:
            return best, False
        if made.nodes is not None and not len(made.nodes):
            return best, True
        same = made.value == best.value and np.array_equal(made.nodes, best.nodes)  # type: ignore[arg-type]
        return (best if same and not plain else made), False

    def _of(self, relation: str) -> dict[int, str]:
        return self.of_relation.get(self.graph.memory.relation_ids.get(relation, -1), {})

    def _time(self, relation: str, *kinds: str) -> str | None:
        own = self._of(relation)
        return next((self.graph.keys[number] for kind in kinds for number in own if own[number] == kind), None)

    def _conditions(self, query: LabelQuery, relation: str, base: Candidate) -> Iterator[tuple[Where, tuple[int, ...]]]:
        """Conditions that the question states on the statements of a relation, with the mentions that each uses."""
        low = query.text.lower()
        begin = self._time(relation, BEGIN, POINT)
        years = [value for value in query.values if value.datatype.endswith("gYear")]
        before = re.search(rf"(\w+)(?: the)?(?: year)? {NUMBER}\b", low)
        kind, op = _BEFORE_YEARS.get(before[1] if before else "", (BEGIN, "at"))
        if years and (key := begin if kind == BEGIN else self._time(relation, END)):
            own = op == "at" or key in self._dated
            yield Where(key, op, years[0] if own else Literal(years[0].text, f"{XSD}decimal")), ()
        for op in ("first", "last"):
            if begin and (query.place or 1) == 1 and not {*_WORDS[op].split()[:2]}.isdisjoint(low.split()):
                yield Where(begin, op, Literal("1", f"{XSD}integer")), ()
        for name, key, pair in self._sources if "according to" in low else ():
            if pair[0] == self.graph.memory.relation_ids[relation] and name in low:
                yield Where(self.graph.keys[pair[1]], "eq", Entity(key)), ()
        for number, slot in enumerate(query.slots):
            for entity, key, _ in slot.entities[:2] if number not in base.slots else ():
                for qualifier in sorted(q for r, q in self._having(entity) if self.graph.keys[r] == relation):
                    value = Literal(key, f"{XSD}string") if self.graph.memory.literal[entity] else Entity(key)
                    yield Where(self.graph.keys[qualifier], "eq", value), (number,)

    @cached_property
    def _sources(self) -> list[tuple[str, str, tuple[int, int]]]:
        """Entities that state facts: name in lower case, key, and the relation and the qualifier by which they do."""
        own = [q for q, label in enumerate(self.graph.labels) if label.lower() in PROVENANCE]
        rows = self.graph.store.connection.execute(
            f"SELECT DISTINCT q.value, e.key, t.relation, q.relation {_STATED} JOIN entities e ON e.id = q.value "
            "WHERE e.kind = 'entity' AND list_contains($1, q.relation) ORDER BY ALL LIMIT 10000",
            [own],
        ).fetchall()
        names = self.graph.store.names({entity for entity, *_ in rows})
        return [(names[entity].lower(), key, (relation, q)) for entity, key, relation, q in rows]

    def _having(self, entity: int) -> set[tuple[int, int]]:
        if entity not in self._relations_of_value:
            sql = f"SELECT DISTINCT t.relation, q.relation {_STATED} WHERE q.value = $1"
            self._relations_of_value[entity] = set(self.graph.store.connection.execute(sql, [entity]).fetchall())
        return self._relations_of_value[entity]

    def _values(self, query: LabelQuery, join: Join, base: Candidate) -> Iterator[tuple[Form, str, tuple[int, ...]]]:
        """Forms whose answer is a qualifier, with the mentions that each uses."""
        low = query.text.lower()
        own = list(self._of(join.path[0].relation))
        words = {stem(word) for word in WORD.findall(low)} - CONTENT_FREE
        wanted = [self.graph.keys[q] for q in own if {*map(stem, WORD.findall(self.graph.labels[q].lower()))} <= words]
        if re.search(r"\b(?:when|what year|which year|what date)\b", low):
            kinds = (END,) if _END.search(low) else (BEGIN, POINT)
            wanted = [key for key in (self._time(join.path[0].relation, *kinds),) if key]
        if _SOURCE.search(low):
            wanted += [self.graph.keys[q] for q in own if self.graph.labels[q].lower() in PROVENANCE]
        others = [number for number in range(len(query.slots)) if number not in base.slots]
        for key in dict.fromkeys(wanted):
            if not others:
                yield Qualifier(key, join), key, base.slots
            for number in others:
                for entity, name, _ in query.slots[number].entities[:2]:
                    if base.nodes is not None and contains(entity, base.nodes):
                        yield Qualifier(key, join, self.graph.named(entity, name)), key, (*base.slots, number)

    def _run(self, base: Candidate, form: Form, relations: tuple[str, ...], slots: tuple[int, ...]) -> Candidate | None:
        try:
            result = self.graph.answering.execute(form)
        except (FormError, FormTimeout):
            return None
        nodes = None if result.value is not None else np.array(result.nodes, dtype=np.int64)
        ways = (*base.ways, *(self.graph.memory.relation_ids[key] for key in relations))
        return replace(
            base,
            form=form,
            nodes=nodes,
            value=result.value,
            ways=ways,
            slots=tuple({**dict.fromkeys(base.slots), **dict.fromkeys(slots)}),
        )
