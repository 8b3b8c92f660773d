"""Puts the date of a question on the statements that say when they hold, as a condition on their qualifiers.

The join that takes it is the one nearest to the answer whose relation has dated qualifiers.  Of several of these a
beginning that another relation ends (`lookup.ending`: P580, P582) comes first, then the one that most statements have.
"""

from __future__ import annotations

from dataclasses import replace

from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import And, Arg, Count, Form, Greater, Holds, Join, Literal, Minus, Nth, Or, Where
from kgqa_core.logic.lookup import ending
from kgqa_core.logic.measures import dated_sql


class Dates:
    """Which qualifiers say when the statements of each relation hold, looked up when first asked."""

    def __init__(self, store: KgStore) -> None:
        self._store = store
        self._known: dict[str, str | None] = {}
        self._any: bool | None = None

    def conditioned(self, form: Form, date: Literal) -> Form | None:
        """The form with the condition `(at QUALIFIER date)` on a join; None where no relation of it has dates."""
        if self._any is None:
            row = self._store.connection.execute("SELECT count(*) FROM (SELECT 1 FROM qualifiers LIMIT 1)").fetchone()
            self._any = bool(row and row[0])
        return self._in(form, date) if self._any else None

    def _in(self, form: Form, date: Literal) -> Form | None:
        match form:
            case Join():
                return self._join(form, date)
            case Count(of=of) | Arg(of=of) | Nth(of=of) | Holds(of=of) | Minus(of=of):
                found = self._in(of, date)
                return None if found is None else replace(form, of=found)
            case Greater(one=one):
                found = self._in(one, date)
                return None if found is None else replace(form, one=found)
            case And(parts=parts) | Or(parts=parts):
                for place, part in enumerate(parts):
                    found = self._in(part, date)
                    if found is not None:
                        return type(form)((*parts[:place], found, *parts[place + 1 :]))
        return None

    def _join(self, form: Join, date: Literal) -> Form | None:
        for place, step in enumerate(form.path):
            qualifier = self.qualifier(step.relation)
            if qualifier is None or form.where:
                continue
            after = form.path[place + 1 :]
            inner = Join(after, form.of) if after else form.of
            made = Join((step,), inner, (Where(qualifier, "at", date),))
            return Join(form.path[:place], made) if place else made
        found = self._in(form.of, date)
        return None if found is None else replace(form, of=found)

    def qualifier(self, relation: str) -> str | None:
        """The key of the qualifier by which statements of a relation say when they hold; None where they do not."""
        if relation not in self._known:
            rows = self._store.connection.execute(
                "SELECT r.key, count(*) AS n FROM qualifiers q JOIN relations r ON r.id = q.relation "
                f"JOIN entities e ON e.id = q.value WHERE {dated_sql('e')} AND q.triple IN "
                "(SELECT id FROM triples WHERE relation = (SELECT id FROM relations WHERE key = $1)) "
                "GROUP BY r.key ORDER BY n DESC, r.key",
                [relation],
            ).fetchall()
            keys = [key for key, _ in rows]
            begins = [key for key in keys if ending(key) is not None]
            ended = [key for key in self._store.relation_keys() if ending(key) in keys] if not begins else []
            self._known[relation] = next(iter([*begins, *ended, *keys]), None)
        return self._known[relation]
