"""Fields of one question of a question file: each is checked and brought into one form; ValueError names the fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgqa_core.errors import FormError, nearest
from kgqa_core.logic.forms import Form
from kgqa_core.logic.graph_query import from_graph_query
from kgqa_core.logic.paths import to_paths
from kgqa_core.types import ROLES

FIELDS = (
    "id",
    "question",
    "topic_entities",
    "answers",
    "answer_type",
    "relation_path",
    "split",
    "complexity",
    "hops",
    "answer_aliases",
    "s_expression",
    "graph_query",
    "sparql",
    "sparql_query",
    "language",
    "level",
    "generalization",
    "dialogue",
    "reference",
    "gold_triples",
    "answerable",
)


def read_id(value: Mapping[str, Any]) -> str:
    """The id, a number as text."""
    identity = value.get("id")
    if isinstance(identity, int) and not isinstance(identity, bool):
        return str(identity)
    return read_text(value, "id")


def read_text(value: Mapping[str, Any], name: str) -> str:
    """A text that must be there, stripped."""
    if name not in value:
        known = [key for key in value if key not in FIELDS]
        raise ValueError(f"field '{name}' is missing{nearest(name, known)}")
    text = value[name]
    if not isinstance(text, str):
        raise ValueError(f"field '{name}' must be a string, but it is {kind_of(text)}")
    if not text.strip():
        raise ValueError(f"field '{name}' is empty")
    return _clean(name, text)


def _clean(name: str, text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"field '{name}' holds half of a surrogate pair: {text!a}") from None
    return text.strip()


def read_list(value: Mapping[str, Any], name: str, *, required: bool) -> list[Any]:
    """The values of a field, a single one as a list; nothing where the field may be absent."""
    items = value.get(name)
    if items is None:
        if required:
            known = [key for key in value if key not in FIELDS]
            raise ValueError(f"field '{name}' is missing{nearest(name, known)}")
        return []
    if isinstance(items, Mapping):
        raise ValueError(f"field '{name}' must be a list, but it is {kind_of(items)}")
    return items if isinstance(items, list) else [items]


def read_flag(value: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false; true where it is absent."""
    flag = value.get(name)
    if flag is not None and not isinstance(flag, bool):
        raise ValueError(f"field '{name}' must be true or false, but it is {kind_of(flag)}")
    return flag is not False


def read_texts(value: Mapping[str, Any], name: str, *, required: bool) -> list[str]:
    """Texts of a field, each once."""
    texts = []
    for item in read_list(value, name, required=required):
        if not isinstance(item, str) or not item.strip():
            raise ValueError(f"field '{name}' must list non-empty strings, but it holds {item!r}")
        texts.append(_clean(name, item))
    return list(dict.fromkeys(texts))


def read_literal(name: str, item: Any) -> str:
    """An answer as text: numbers without needless digits, true and false as yes and no."""
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, int):
        return str(item)
    if isinstance(item, float):
        return str(int(item)) if item.is_integer() else repr(item)
    if isinstance(item, str) and (item.strip() or name != "answers"):
        return _clean(name, item)
    raise ValueError(f"field '{name}' must list strings, numbers, true or false, but it holds {item!r}")


def read_choice(value: Mapping[str, Any], name: str, known: Sequence[str]) -> str | None:
    """One of the known words, or None where there is none."""
    choice = value.get(name)
    if choice is None or choice in known:
        return choice
    raise ValueError(f"field '{name}' must be one of {', '.join(known)}, but it is {choice!r}")


def read_paths(value: Mapping[str, Any]) -> list[list[str]]:
    """Relation paths, a single one as a list of one."""
    given = value.get("relation_paths") or value.get("relation_path")
    if given is None or given == []:
        return []
    if not isinstance(given, list):
        raise ValueError(f"field 'relation_path' must be a list of relation keys, but it is {kind_of(given)}")
    paths = given if all(isinstance(item, list) for item in given) else [given]
    check: Callable[[Any], bool] = lambda item: isinstance(item, str) and bool(item.strip())  # noqa: E731
    for path in paths:
        if not path or not all(check(item) for item in path):
            raise ValueError(f"field 'relation_path' must list relation keys (strings), but it holds {path!r}")
    return [[_clean("relation_path", item) for item in path] for path in paths]


def read_aliases(value: Mapping[str, Any], answers: list[str]) -> list[list[str]]:
    """Aliases of each answer, in the order of the answers."""
    aliases = value.get("answer_aliases")
    if aliases is None:
        return [[] for _ in answers]
    if isinstance(aliases, Mapping):
        unknown = [key for key in aliases if key not in answers]
        if unknown:
            raise ValueError(f"field 'answer_aliases' names {unknown[0]!r}, which is not among the answers")
        groups = [aliases.get(answer, []) for answer in answers]
    elif isinstance(aliases, list) and aliases and all(isinstance(item, list) for item in aliases):
        if len(aliases) != len(answers):
            raise ValueError(f"field 'answer_aliases' has {len(aliases)} lists for {len(answers)} answers")
        groups = aliases
    elif isinstance(aliases, list):
        groups = [aliases] + [[] for _ in answers[1:]] if answers else []
    else:
        raise ValueError(f"field 'answer_aliases' must be a list or a mapping, but it is {kind_of(aliases)}")
    return [read_texts({"answer_aliases": group}, "answer_aliases", required=False) for group in groups]


def read_dialogue(value: Mapping[str, Any]) -> list[list[str]]:
    """Earlier turns as [role, text]."""
    turns = []
    for number, turn in enumerate(_list_of(value, "dialogue", 'turns, {"role": "user", "text": …}'), start=1):
        if not isinstance(turn, Mapping):
            raise ValueError(
                f"field 'dialogue': turn {number} must be an object with role and text, but it is {kind_of(turn)}"
            )
        if turn.get("role") not in ROLES:
            raise ValueError(
                f"field 'dialogue': the role of turn {number} must be {' or '.join(ROLES)}, but it is "
                f"{turn.get('role')!r}"
            )
        if not isinstance(turn.get("text"), str) or not turn["text"].strip():
            raise ValueError(f"field 'dialogue': turn {number} must have a text, but it is {turn.get('text')!r}")
        turns.append([turn["role"], _clean("dialogue", turn["text"])])
    return turns


def read_triples(value: Mapping[str, Any]) -> list[list[str]]:
    """Triples of keys as [head, relation, tail]."""
    triples = _list_of(value, "gold_triples", "triples, [head, relation, tail]")
    for triple in triples:
        if (
            not isinstance(triple, list)
            or len(triple) != 3
            or not all(isinstance(part, str) and part.strip() for part in triple)
        ):
            raise ValueError(
                f"field 'gold_triples' must list triples of three keys, [head, relation, tail], but it holds {triple!r}"
            )
    return [[_clean("gold_triples", part) for part in triple] for triple in triples]


def _list_of(value: Mapping[str, Any], name: str, what: str) -> list[Any]:
    """A list that may be absent."""
    items = value.get(name)
    if items is not None and not isinstance(items, list):
        raise ValueError(f"field '{name}' must be a list of {what}, but it is {kind_of(items)}")
    return items or []


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)


def read_form(value: Mapping[str, Any], topics: Sequence[str]) -> tuple[str | None, list[list[str]], str | None]:
    """The s-expression of a question, the relation paths of a query, and why no form writes the query.

    `s_expression` counts first, then `graph_query`, then `sparql` (or `sparql_query`, as GrailQA calls it).  Paths are
    given for queries only, in the order of `topics` where each topic has one.
    """
    if value.get("s_expression") is not None:
        return read_text(value, "s_expression"), [], None
    name = next((name for name in ("graph_query", "sparql", "sparql_query") if value.get(name) is not None), None)
    if name is None:
        return None, [], None
    if name == "graph_query" and not isinstance(value[name], dict):
        raise ValueError(f"field 'graph_query' must be an object, but it is {kind_of(value[name])}")
    try:
        form = from_graph_query(value[name]) if name == "graph_query" else _from_sparql(read_text(value, name))
    except FormError as fault:
        return None, [], f"{name}: {fault}"
    except RecursionError:
        return None, [], f"{name}: it is nested too deep"
    paths = [path for path in to_paths(form) if path.relations]
    if sorted(path.topic for path in paths) == sorted(topics):
        paths.sort(key=lambda path: topics.index(path.topic))
    return str(form), [list(path) for path in dict.fromkeys(path.relations for path in paths)], None


def _from_sparql(text: str) -> Form:
    from kgqa_core.logic.sparql import from_sparql  # rdflib takes 0.2 s to import

    return from_sparql(text)
