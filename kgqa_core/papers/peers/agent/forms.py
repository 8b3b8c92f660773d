"""What a model may reply, as functions with a JSON schema: the operations of the loop, and the choices of the beam."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip


class UnreadableStep(Exception):
    """A reply is none of what was asked for; the text says why."""


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """One thing that a model may reply.  properties: schema of each argument, all of which are required."""

    name: str
    description: str
    properties: Mapping[str, Schema]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments, as strict structured outputs want it."""
        return object_schema(self.properties)

    def check(self, arguments: object) -> dict[str, Any]:
        """The arguments, where they fit the schema; further ones are dropped.  Raises UnreadableStep."""
        if not isinstance(arguments, dict):
            raise UnreadableStep(f"the arguments of {self.name} are no object")
        for name, schema in self.properties.items():
            if name not in arguments:
                raise UnreadableStep(f"{self.name} has no {name!r}")
            _check(arguments[name], schema, f"{name!r} of {self.name}")
        return {name: arguments[name] for name in self.properties}


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply that was read: which form, with what arguments, and what was thought beside it."""

    form: str
    arguments: dict[str, Any]
    thought: str = ""


def as_json(values: Any) -> str:
    """A value as the model reads it."""
    return json.dumps(values, ensure_ascii=False)


def object_schema(properties: Mapping[str, Schema]) -> dict[str, Any]:
    """The schema of an object that has all of these properties and no others."""
    return {
        "type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def array_of(items: Schema) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": items}


def _check(value: object, schema: Schema, what: str) -> None:
    kinds = TYPES[schema["type"]]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise UnreadableStep(f"{what} is no {schema['type']}")
    if isinstance(value, list):
        for item in value:
            _check(item, schema["items"], f"an item of {what}")
    if isinstance(value, dict):
        for name, property_schema in schema.get("properties", {}).items():
            if name not in value:
                raise UnreadableStep(f"{what} has no {name!r}")
            _check(value[name], property_schema, f"{name!r} in {what}")


RELATIONS_OUT = ReplyForm("relations_out", "Lists the relations that lead out of an entity.", {"entity": TEXT})
RELATIONS_IN = ReplyForm("relations_in", "Lists the relations that lead into an entity.", {"entity": TEXT})
FOLLOW_OUT = ReplyForm(
    "follow_out",
    "Lists the entities that a relation leads to from an entity: the tails of (entity, relation, tail).",
    {"entity": TEXT, "relation": TEXT},
)
FOLLOW_IN = ReplyForm(
    "follow_in",
    "Lists the entities from which a relation leads to an entity: the heads of (head, relation, entity).",
    {"entity": TEXT, "relation": TEXT},
)
ANSWER = ReplyForm(
    "answer",
    "Ends with the answers to the question, each as it was shown; none where the graph does not hold them.",
    {"answers": array_of(TEXT)},
)

OPERATIONS = (RELATIONS_OUT, RELATIONS_IN, FOLLOW_OUT, FOLLOW_IN)
"""The four operations of the loop."""

CHOOSE_RELATIONS = ReplyForm(
    "choose_relations",
    "Keeps the relations that help to answer the question, each with a score from 0 to 1.",
    {
        "relations": array_of(
            object_schema({"relation": TEXT, "direction": {**TEXT, "enum": ["out", "in"]}, "score": NUMBER})
        )
    },
)
CHOOSE_ENTITIES = ReplyForm(
    "choose_entities",
    "Keeps the entities that help to answer the question, each with a score from 0 to 1.",
    {"entities": array_of(object_schema({"entity": TEXT, "score": NUMBER}))},
)
JUDGE = ReplyForm("judge", "Says whether the facts are enough to answer the question.", {"enough": FLAG})
