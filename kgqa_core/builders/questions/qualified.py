"""Forms with a condition on a qualifier: what somebody was nominated for, for which work."""

from __future__ import annotations

from kgqa_core.builders.questions.draft import Draft
from kgqa_core.builders.questions.paths import Walker
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic.forms import Entity, Join, Literal, Step, Where

_DRAWN = 20_000
"""Qualifiers that are read, spread evenly over those that there are."""


class Qualified:
    """Draws statements with a qualifier."""

    def __init__(self, walker: Walker) -> None:
        self.walker, self.rng = walker, walker.rng
        self._rows: list[tuple[int, int, int, str, int, float | None]] | None = None

    def draw(self) -> Draft | None:
        """A path of one hop with one condition; None where the statement drawn has no names."""
        rows = self.rows()
        if not rows:
            return None
        head, relation, tail, qualifier, value, number = rows[self.rng.randrange(len(rows))]
        profile = self.walker.profile
        each = self.walker.by_id.get(relation)
        if each is None or each.is_type or not each.entities or qualifier not in profile.qualifiers:
            return None
        forward = self.rng.random() < 0.5
        topic = head if forward else tail
        if not profile.askable[topic]:
            return None
        if number is not None:
            operand: Entity | Literal = Literal(str(int(number)), XSD + "gYear")
        elif profile.askable[value] and value != topic:
            operand = self.walker.entity(value)
        else:
            return None
        where = (Where(qualifier, "eq", operand),)
        return Draft("qualified", Join((Step(each.key, inverse=forward),), self.walker.entity(topic), where))

    def rows(self) -> list[tuple[int, int, int, str, int, float | None]]:
        """(head, relation, tail, key of the qualifier, its value, the year where that is a date)."""
        if self._rows is None:
            run = self.walker.graph.store.connection.execute
            (total,) = run("SELECT count(*) FROM qualifiers").fetchall()[0]
            every = max(1, total // _DRAWN)
            self._rows = run(
                "SELECT t.head, t.relation, t.tail, r.key, q.value, "
                "CASE WHEN e.precision >= 9 AND e.number BETWEEN 1000 AND 2999 THEN floor(e.number) END "
                "FROM qualifiers q JOIN triples t ON t.id = q.triple JOIN relations r ON r.id = q.relation "
                "JOIN entities e ON e.id = q.value WHERE e.kind = 'entity' OR e.precision >= 9 "
                f"QUALIFY row_number() OVER (ORDER BY q.triple, q.statement, q.relation, q.value) % {every} = 0 "
                "ORDER BY q.triple, q.statement, q.relation, q.value"
            ).fetchall()
        return self._rows
