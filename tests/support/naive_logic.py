"""What a logical form denotes, by the words of `logic.forms` and nothing else: sets in Python, no SQL."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import date
from fractions import Fraction

from kgqa_core.logic.forms import (
    Aggregate,
    And,
    Arg,
    Class,
    Compare,
    CompareTo,
    Count,
    Entity,
    Form,
    Greater,
    Holds,
    Join,
    Literal,
    Minus,
    Nth,
    Or,
    Share,
    Step,
    Steps,
    TimeConstraint,
    TimeSpan,
    Where,
)
from tests.support.graphs import XSD, Graph

DAY = 86_400
SPAN = {9: 372 * DAY, 10: 31 * DAY, 11: DAY, 14: 1}
PRECISIONS = {"gYear": 9, "gYearMonth": 10, "date": 11, "dateTime": 14}
NUMERIC = {XSD + name for name in ("integer", "decimal", "double")}
ENDS = {"marriage.from": "marriage.to", "P580": "P582"}
TO_BASE = {
    "Q174728": ("metre", Fraction(1, 100), Fraction(0)),
    "Q200323": ("metre", Fraction(1, 10), Fraction(0)),
    "Q11573": ("metre", Fraction(1), Fraction(0)),
    "Q25267": ("kelvin", Fraction(1), Fraction(27315, 100)),
    "Q11579": ("kelvin", Fraction(1), Fraction(0)),
}


def meaning(text: str, datatype: str, detail: str | None):
    """(dimension, lo, hi) of a number or a date; None for text."""
    if datatype in NUMERIC:
        if not re.fullmatch(r"-?\d+(\.\d+)?", text):
            return None
        base, factor, offset = TO_BASE.get(detail or "", (detail or "", Fraction(1), Fraction(0)))
        x = Fraction(text) * factor + offset
        return base, x, x
    name = datatype.removeprefix(XSD)
    found = re.fullmatch(r"(-?\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d):(\d\d)Z)?)?)?", text)
    if name not in PRECISIONS or found is None:
        return None
    year, month, day, hour, minute, second = (
        int(x or d) for x, d in zip(found.groups(), (0, 1, 1, 0, 0, 0), strict=True)
    )
    digits = re.match(r"\d+", detail or "")
    precision = int(digits[0]) if digits else PRECISIONS[name]
    if precision in (7, 8):
        if precision == 8:
            first, years = year // 10 * 10, 10
        else:
            first, years = (year - 1) // 100 * 100 + 1, 100
        return "time", first * SPAN[9], (first + years) * SPAN[9]
    at = ((year * 12 + month - 1) * 31 + day - 1) * DAY + hour * 3600 + minute * 60 + second
    lo = at // SPAN[precision] * SPAN[precision]
    return "time", lo, lo + SPAN[precision]


def compares(op: str, value, asked) -> bool:
    """Whether a measured value compares so with another, certainly; both (dimension, lo, hi)."""
    if value is None or asked is None or value[0] != asked[0]:
        return False
    if value[0] != "time":
        x, y = value[1], asked[1]
        return {"eq": x == y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[op]
    (_, lo, hi), (_, first, end) = value, asked
    return {
        "eq": lo >= first and hi <= end, "lt": hi <= first, "le": hi <= end, "gt": lo >= end, "ge": lo >= first,
    }[op]  # fmt: skip


def calendar_day(lo: int) -> int:
    """The number of the day on which a date begins; years are moved by thousands, for `date` knows none before 1."""
    months, day = divmod(lo // DAY, 31)
    return date(months // 12 + 4000, months % 12 + 1, day + 1).toordinal()


def is_computed(path: Steps, counted: bool) -> bool:
    return counted or isinstance(path[-1], TimeSpan)


class Naive:
    """Evaluates forms over one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.measured = {i: meaning(*literal) for i, literal in graph.literals.items()}
        self.by_triple = defaultdict(lambda: defaultdict(list))
        for triple, statement, relation, value in graph.qualifiers:
            self.by_triple[triple][statement].append((relation, value))

    def of(self, form: Form) -> set[int] | int | bool:
        """The nodes that a form denotes, or its value."""
        match form:
            case Entity(key=key):
                return {i for i, k in self.graph.entities.items() if k == key}
            case Literal():
                return {i for i in self.graph.literals if self.equal(i, form)}
            case Class(key=key):
                below = {i for i, k in self.graph.entities.items() if k == key}
                below |= {i for i, above in self.graph.supers.items() if above & below}
                return {entity for entity, kind in self.graph.types if kind in below}
            case Join(path=path, of=of, where=where):
                found = self.of(of)
                for step in reversed(path):
                    found = {a for a, b in self.edges(step, where) if b in found}
                return found
            case And(parts=parts):
                return set.intersection(*[self.of(part) for part in parts])
            case Or(parts=parts):
                return set.union(*[self.of(part) for part in parts])
            case Minus(of=of, without=without):
                return self.of(of) - self.of(without)
            case Count(of=of):
                return len(self.of(of))
            case Holds(of=of, one=one):
                asked = self.of(one)
                return bool(asked) and asked <= self.of(of)
            case Arg(best=best, of=of, path=path, counted=counted):
                return self.nth(1, best, self.of(of), path, counted)
            case Nth(n=n, best=best, of=of, path=path, counted=counted):
                if form.first:
                    return self.first(n, best, self.of(of), path, counted)
                return self.nth(n, best, self.of(of), path, counted)
            case Share(of=of, one=one):
                members = self.of(of)
                return Fraction(100 * len(members & self.of(one)), len(members)) if members else None
            case Aggregate():
                return self.aggregate(form)
            case Compare(op=op, path=path, value=value, counted=counted):
                asked = meaning(value.text, value.datatype, value.unit)
                ways = self.ways(path)
                if is_computed(path, counted):
                    numbers = {i: self.computed(i, path) for i in ways}
                    return {i for i, found in numbers.items() if any(compares(op, ("", n, n), asked) for n in found)}
                return {i for i, nodes in ways.items() if any(compares(op, self.measured.get(n), asked) for n in nodes)}
            case CompareTo(op=op, path=path, one=one, counted=counted):
                return self.compared_to(op, path, self.of(one), counted)
            case TimeConstraint(of=of, path=path, value=value):
                return self.at_time(self.of(of), path, meaning(value.text, value.datatype, None))
            case Greater(one=one, other=other, path=path, best=best, counted=counted):
                return self.greater(self.of(one), self.of(other), path, best, counted)
        raise AssertionError(form)

    def edges(self, step, where=()):
        for number, (head, relation, tail) in enumerate(self.graph.triples):
            if relation == step.relation and (not where or self.qualified(number, where)):
                yield (tail, head) if step.inverse else (head, tail)

    def qualified(self, triple: int, where) -> bool:
        return any(all(self.fulfils(said, Where(*w)) for w in where) for said in self.by_triple[triple].values())

    def fulfils(self, said, condition: Where) -> bool:
        relation, op, value = condition
        values = [v for r, v in said if r == relation]
        if isinstance(value, Entity):
            return any(self.graph.entities.get(v) == value.key for v in values)
        if op == "eq":
            return any(v in self.graph.literals and self.equal(v, value) for v in values)
        asked = meaning(value.text, value.datatype, value.unit)
        if op != "at":
            return any(compares(op, self.measured.get(v), asked) for v in values)
        begins = [m for v in values if (m := self.measured.get(v)) and m[0] == "time"]
        if relation not in ENDS:
            return any(lo < asked[2] and hi > asked[1] for _, lo, hi in begins)
        finishes = [m for r, v in said if r == ENDS[relation] and (m := self.measured.get(v)) and m[0] == "time"]
        begun = not begins or any(lo < asked[2] for _, lo, _ in begins)
        lasts = not finishes or any(hi > asked[1] for _, _, hi in finishes)
        return bool(begins or finishes) and begun and lasts

    def equal(self, node: int, literal: Literal) -> bool:
        asked = meaning(literal.text, literal.datatype, literal.unit)
        if asked is not None:
            return compares("eq", self.measured[node], asked)
        text, datatype, _ = self.graph.literals[node]
        plain = literal.datatype == XSD + "string"
        return text == literal.text and (self.measured[node] is None if plain else datatype == literal.datatype)

    def ways(self, path: Steps) -> dict[int, set[int]]:
        """The nodes that a path leads to from each node that it leads anywhere from."""
        found: dict[int, set[int]] = {i: {i} for i in [*self.graph.entities, *self.graph.literals]}
        for step in path:
            edges = list(self.edges(step))
            found = {i: {b for a, b in edges if a in nodes} for i, nodes in found.items()}
        return {i: nodes for i, nodes in found.items() if nodes}

    def computed(self, node: int, path: Steps) -> list[int]:
        """How many nodes a path leads to, or the spans of time from one date to another."""
        if not isinstance(path[-1], TimeSpan):
            reached = self.ways(path).get(node)
            return [len(reached)] if reached else []
        span, found = path[-1], []
        begins, finishes = (
            [m for end in self.ends(node, (step,)) if (m := self.measured.get(end)) and m[0] == "time"]
            for step in (Step(span.relation), Step(span.until))
        )
        for _, lo, hi in begins:
            for _, first, last in finishes:
                if first >= lo and span.unit == "years":
                    found.append((first - lo) // SPAN[9])
                elif first >= lo and max(hi - lo, last - first) <= DAY:
                    found.append(calendar_day(first) - calendar_day(lo))
        return found

    def values(self, members: set[int], path: Steps, counted: bool) -> dict[str, dict[int, list]]:
        """Dimension → member → values."""
        by_dimension = defaultdict(lambda: defaultdict(list))
        for i, nodes in self.ways(path).items():
            if i in members and is_computed(path, counted):
                if numbers := self.computed(i, path):
                    by_dimension[""][i] += numbers
            elif i in members:
                for value in (self.measured.get(node) for node in nodes):
                    if value is not None:
                        by_dimension[value[0]][i].append(value[1])
        return by_dimension

    def nth(self, n: int, best: str, members: set[int], path: Steps, counted: bool) -> set[int]:
        by_dimension = self.values(members, path, counted)
        if not by_dimension:
            return set()
        dimension = min(by_dimension, key=lambda d: (-len(by_dimension[d]), DIMENSIONS.get(d, d)))
        choose = max if best == "max" else min
        mine = {i: choose(values) for i, values in by_dimension[dimension].items()}
        places = sorted(set(mine.values()), reverse=best == "max")
        return {i for i, value in mine.items() if n <= len(places) and value == places[n - 1]}

    def first(self, n: int, best: str, members: set[int], path: Steps, counted: bool) -> set[int]:
        placed: set[int] = set()
        for place in range(1, n + 1):
            if len(placed) < n:
                placed |= self.nth(place, best, members, path, counted)
        return placed

    def ends(self, node: int, path: Steps) -> list[int]:
        """Where a path leads from a node, once for each way."""
        at = [node]
        for step in path:
            edges = list(self.edges(step))
            at = [b for one in at for a, b in edges if a == one]
        return at

    def aggregate(self, form: Aggregate):
        """A number or None, a set of nodes, or of a table its rows (node, node or number)."""
        members = self.of(form.of)
        by = self.ways(form.by) if form.by else {i: {-1} for i in members}
        if form.how == "values":
            ways = self.ways(form.path)
            of_each = {i: ways[i] for i in members & set(ways)}
            return (
                {(i, number) for i in of_each for number in self.computed(i, form.path)}
                if is_computed(form.path, form.counted)
                else {(i, end) for i, ends in of_each.items() for end in ends}
            )
        pairs = [(i, key) for i in sorted(members) for key in by.get(i, ())]
        if form.how == "count":
            sizes = {key: sum(key == other for _, other in pairs) for _, key in pairs}
            return self.picked(form, sizes) if form.pick else set(sizes.items())
        rows = []  # (member, group, node, dimension, number, number in the base unit, unit)
        for i, key in pairs:
            ends = self.ends(i, form.path)
            computed = is_computed(form.path, form.counted)
            for number in self.computed(i, form.path) if computed else ():
                rows.append((i, key, -1, "", number, number, ""))
            for end in [] if computed else ends if form.how in ("sum", "avg", "median") else sorted(set(ends)):
                value = self.measured.get(end)
                if value is not None and (value[0] != "time" or form.how in ("max", "min", "argmax", "argmin")):
                    text, _, unit = self.graph.literals[end]
                    number = value[1] if value[0] == "time" else Fraction(text)
                    rows.append((i, key, end, value[0], number, value[1], unit or ""))
        having = {dim: len({row[0] for row in rows if row[3] == dim}) for dim in {row[3] for row in rows}}
        usual = min(having, key=lambda d: (-having[d], DIMENSIONS.get(d, d)), default=None)
        results = {}
        for key in sorted({row[1] for row in rows if row[3] == usual}):
            own = [row for row in rows if row[1] == key and row[3] == usual]
            numbers = [row[5 if len({row[6] for row in own}) > 1 else 4] for row in own]
            if form.how in ("argmax", "argmin"):
                best = (max if form.how == "argmax" else min)(row[5] for row in own)
                results[key] = {row[0] for row in own if row[5] == best}
            elif form.how in ("max", "min"):
                best = (max if form.how == "max" else min)(row[5] for row in own)
                results[key] = best if own[0][2] < 0 else {row[2] for row in own if row[5] == best}
            elif form.how == "median":
                middle = sorted(numbers)
                results[key] = Fraction(middle[(len(middle) - 1) // 2] + middle[len(middle) // 2]) / 2
            elif form.how == "range":
                results[key] = max(numbers) - min(numbers)
            else:
                results[key] = Fraction(sum(numbers)) / (1 if form.how == "sum" else len(numbers))
        if not form.by:
            nodes = form.how in ("max", "min") and not is_computed(form.path, form.counted)
            return results.get(-1, set() if nodes else None)
        if form.pick:
            return self.picked(form, results)
        return {(key, one) for key, value in results.items() for one in (value if isinstance(value, set) else {value})}

    def picked(self, form: Aggregate, results: dict) -> set[int]:
        best = (max if form.pick == "max" else min)(results.values(), default=None)
        return {key for key, value in results.items() if value == best}

    def greater(self, one: set[int], other: set[int], path: Steps, best: str, counted: bool) -> set[int]:
        first, second = self.values(one, path, counted), self.values(other, path, counted)
        common = sorted(set(first) & set(second), key=lambda d: DIMENSIONS.get(d, d))
        if not common:
            return set()
        choose = max if best == "max" else min
        sides = [{i: choose(values) for i, values in side[common[0]].items()} for side in (first, second)]
        top = choose(value for side in sides for value in side.values())
        return {i for side in sides for i, value in side.items() if value == top}

    def compared_to(self, op: str, path: Steps, one: set[int], counted: bool) -> set[int]:
        everything = self.values({*self.graph.entities, *self.graph.literals}, path, counted)
        choose, found = (max if op in ("gt", "ge") else min), set()
        for dimension, own in self.values(one, path, counted).items():
            bound = choose(value for values in own.values() for value in values)
            test = {"lt": bound.__gt__, "le": bound.__ge__, "gt": bound.__lt__, "ge": bound.__le__}[op]
            found |= {i for i, values in everything.get(dimension, {}).items() if any(map(test, values))}
        return found

    def at_time(self, members: set[int], path: Steps, asked) -> set[int]:
        step = path[-1]
        nodes = self.ways(path[:-1])

        def open_or(relation: str | None, node: int, test) -> bool:
            edges = self.edges(type(step)(relation, step.inverse)) if relation else ()
            dates = [m for a, b in edges if a == node and (m := self.measured.get(b)) and m[0] == "time"]
            return not dates or any(map(test, dates))

        def holds(node: int) -> bool:
            return open_or(step.relation, node, lambda m: m[1] < asked[2]) and open_or(
                ENDS.get(step.relation), node, lambda m: m[2] > asked[1]
            )

        return {i for i in members if any(holds(node) for node in nodes.get(i, ()))}


DIMENSIONS = {"metre": "Q11573", "kelvin": "Q11579"}
"""The names by which `logic` orders dimensions."""
