"""Random logical forms over the vocabulary of `random_graphs`."""

from __future__ import annotations

from hypothesis import strategies as st

from kgqa_core.logic import forms as f
from tests.support.graphs import (
    BEGIN,
    CLASSES,
    DATES,
    END,
    ENTITIES,
    LINKS,
    LITERALS,
    NAMES,
    NUMBERS,
    QUANTITIES,
    XSD,
)

entities = st.sampled_from(ENTITIES).map(f.Entity)
classes = st.sampled_from(CLASSES).map(f.Class)


def literals(among):
    """Literals as a form writes them: a date has no precision of its own."""
    plain = [(text, kind, detail if kind not in _TIMES else None) for text, kind, detail in among]
    return st.sampled_from(sorted(set(plain), key=str)).map(lambda one: f.Literal(*one))


_TIMES = {XSD + name for name in ("gYear", "gYearMonth", "date", "dateTime")}
numbers, dates = literals(QUANTITIES), literals(DATES)
measured = st.one_of(numbers, dates)

links = st.builds(f.Step, st.sampled_from(LINKS), st.booleans())
values = st.sampled_from([NUMBERS, NUMBERS, BEGIN, NAMES]).map(f.Step)
link_paths = st.lists(links, min_size=1, max_size=2).map(tuple)
value_paths = st.builds(lambda before, last: (*before, last), st.lists(links, max_size=1).map(tuple), values)
spans = st.builds(lambda unit: (f.TimeSpan(BEGIN, until=END, unit=unit),), st.sampled_from(f.UNITS_OF_TIME))
measures = st.one_of(
    st.tuples(value_paths, st.just(False)), st.tuples(link_paths, st.just(True)), st.tuples(spans, st.just(False))
)
bests = st.sampled_from(f.BESTS)

conditions = st.one_of(
    st.builds(f.Where, st.just("P805"), st.just("eq"), entities),
    st.builds(f.Where, st.sampled_from(["P580", "P582", "P585"]), st.sampled_from(("eq", *f.OPS, "at")), dates),
)
compares = st.one_of(
    st.builds(
        f.Compare, st.sampled_from(f.OPS), spans,
        st.sampled_from(("0", "1", "100")).map(lambda n: f.Literal(n, XSD + "integer")),
    ),
    st.builds(f.Compare, st.sampled_from(f.OPS), value_paths, measured),
    st.builds(
        f.Compare, st.sampled_from(f.OPS), link_paths,
        st.integers(1, 3).map(lambda n: f.Literal(str(n), XSD + "integer")), st.just(True),
    ),
)  # fmt: skip
leaves = st.one_of(entities, entities, classes, literals(LITERALS), compares)


def _ranked(inner):
    return st.one_of(
        st.builds(lambda best, of, m: f.Arg(best, of, *m), bests, inner, measures),
        st.builds(lambda n, best, of, m: f.Nth(n, best, of, *m), st.integers(1, 3), bests, inner, measures),
        st.builds(lambda n, best, of, m: f.Nth(n, best, of, *m, True), st.integers(1, 3), bests, inner, measures),
        st.builds(lambda op, of, m: f.CompareTo(op, m[0], of, m[1]), st.sampled_from(f.OPS),
                  inner.filter(lambda of: not isinstance(of, f.Literal)), measures),
        st.builds(lambda a, b, m, best: f.Greater(a, b, m[0], best, m[1]), inner, inner, measures, bests),
        st.builds(lambda of, way, v: f.TimeConstraint(of, (*way, f.Step(BEGIN)), v), inner,
                  st.lists(links, max_size=1).map(tuple), dates),
    )  # fmt: skip


def _positive(inner):
    return st.one_of(
        st.builds(f.Join, st.lists(st.one_of(links, links, values), min_size=1, max_size=2).map(tuple), inner),
        st.builds(lambda step, of, where: f.Join((step,), of, where), links, inner,
                  st.lists(conditions, min_size=1, max_size=2).map(tuple)),
        st.builds(lambda parts: f.And(tuple(parts)), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda parts: f.Or(tuple(parts)), st.lists(inner, min_size=2, max_size=3)),
    )  # fmt: skip


def _any(inner):
    return st.one_of(_positive(inner), _positive(inner), st.builds(f.Minus, inner, inner), _ranked(inner))


sets = st.recursive(leaves, _any, max_leaves=5)
positive = st.recursive(
    st.one_of(
        entities, classes, literals(LITERALS), st.builds(f.Compare, st.sampled_from(f.OPS), value_paths, measured)
    ),
    _positive,
    max_leaves=4,
)
"""Forms that more triples only make larger: what proves them proves them alone."""
groups = st.one_of(st.just(()), link_paths)
aggregates = st.one_of(
    st.builds(lambda how, of, m, by: f.Aggregate(how, of, m[0], by, m[1]), st.sampled_from(f.REDUCTIONS), sets,
              measures, groups),
    st.builds(lambda of, m: f.Aggregate("values", of, m[0], (), m[1]), sets, measures),
    st.builds(lambda of, by: f.Aggregate("count", of, (), by), sets, link_paths),
    st.builds(lambda of, by, pick: f.Aggregate("count", of, (), by, pick=pick), sets, link_paths, bests),
    st.builds(lambda how, of, m, by: f.Aggregate(how, of, m[0], by, m[1]), st.sampled_from(f.BEST_MEMBERS), sets,
              measures, link_paths),
    st.builds(lambda how, of, m, by, pick: f.Aggregate(how, of, m[0], by, m[1], pick),
              st.sampled_from(f.ARITHMETIC), sets, measures, link_paths, bests),
)  # fmt: skip
forms = st.one_of(
    sets, sets, sets, sets.map(f.Count), st.builds(f.Holds, sets, sets), st.builds(f.Share, sets, sets), aggregates
)
