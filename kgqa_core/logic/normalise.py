"""One form for all forms that mean the same by their shape, and when two forms are the same graph.

A form is a tree whose root is the answer; as a graph of variables it has none of their names, so two forms are
isomorphic when their trees are, up to the order of parts that have none.  Normalising keeps results:

- parts of AND and OR are sorted and stand once; an AND or OR of one part is that part;
- (AND (MINUS X Y) Z) = (MINUS (AND X Z) Y), and (MINUS (MINUS X Y) Z) = (MINUS X (OR Y Z));
- (JOIN r (lt s v)) = (lt (JOIN r s) v), where the path is not counted and no span of time;
- (NTHMAX 1 X r) = (FIRSTMAX 1 X r) = (ARGMAX X r);
- the two of GREATER and LESS are sorted, and so are conditions on qualifiers;
- with `inverses`, a relation that has an inverse of its own (Freebase's reverse properties) is written as the first of
  the two by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form, Step, Steps, with_children


def normalise(form: Form, inverses: Mapping[str, str] | None = None) -> Form:
    """The form that stands for all that are isomorphic to this one.

    inverses: relation → the relation that has the same meaning from the other end, stated in both directions or in one.
    """
    pairs = dict(inverses or {})
    pairs.update({other: relation for relation, other in pairs.items() if other not in pairs})
    return _normal(form, pairs)


def isomorphic(form: Form, other: Form, inverses: Mapping[str, str] | None = None) -> bool:
    """Whether two forms are the same graph; the EM of Gu et al. 2021 (section 6), which does not look at answers."""
    return normalise(form, inverses) == normalise(other, inverses)


def _normal(form: Form, inverses: Mapping[str, str]) -> Form:
    steps = {name: getattr(form, name, ()) for name in ("path", "by")}
    paths = {name: tuple(_first(step, inverses) for step in path) for name, path in steps.items() if path}
    form = replace(form, **paths) if paths else form  # type: ignore[type-var]
    if isinstance(form, forms.CompareTo) and isinstance(_normal(form.one, inverses), forms.Literal):
        return form  # as (OR 5 5), which a comparison with members may have; a literal is compared otherwise
    form = with_children(form, lambda part: _normal(part, inverses))
    match form:
        case forms.Join(path=path, of=of, where=where):
            return _join(path, of, where)
        case forms.And(parts=parts):
            return _and(parts)
        case forms.Or(parts=parts):
            return _together(forms.Or, parts)
        case forms.Minus(of=of, without=without):
            return _minus(of, without)
        case forms.Nth(n=1, best=best, of=of, path=path, counted=counted):
            return forms.Arg(best, of, path, counted)
        case forms.Greater(one=one, other=other):
            first, second = sorted((one, other), key=str)
            return replace(form, one=first, other=second)
    return form


def _first(step: Step, inverses: Mapping[str, str]) -> Step:
    other = inverses.get(step.relation, step.relation)
    return Step(other, not step.inverse) if other < step.relation else step


def _join(path: Steps, of: Form, where: tuple[forms.Where, ...]) -> Form:
    if where:
        conditions = {str(forms.Where(*condition)): forms.Where(*condition) for condition in where}
        return forms.Join(path, of, tuple(conditions[text] for text in sorted(conditions)))
    if isinstance(of, forms.Compare) and not forms.is_computed(of):
        return replace(of, path=path + of.path)
    return forms.Join(path, of)


def _and(parts: Sequence[Form]) -> Form:
    positive: list[Form] = []
    without: list[Form] = []
    for part in parts:
        if isinstance(part, forms.Minus):
            positive.append(part.of)
            without.append(part.without)
        else:
            positive.append(part)
    form = _together(forms.And, positive)
    return _minus(form, _together(forms.Or, without)) if without else form


def _minus(of: Form, without: Form) -> Form:
    return (
        forms.Minus(of.of, _together(forms.Or, [of.without, without]))
        if isinstance(of, forms.Minus)
        else forms.Minus(of, without)
    )


def _together(kind: type[forms.And] | type[forms.Or], parts: Sequence[Form]) -> Form:
    """Parts sorted and once each; those of an inner form of the same kind among them."""
    flat = (inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))
    by_text = {str(part): part for part in flat}
    ordered = [by_text[text] for text in sorted(by_text)]
    return ordered[0] if len(ordered) == 1 else kind(tuple(ordered))
