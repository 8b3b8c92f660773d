"""A language model for agents by script: it picks relations by the words of the question, and reads what tools return.

    server = ChatServer(act=ScriptedAgent())

It knows no graph.  In the loop it lists the relations of the topic, follows the one that shares most words with the
question, then goes on or answers with the entities that it was shown; in the beam it scores what it is offered.
`mischief` maps the number of a reply of a dialogue (0 is the first), or the name of the only form that is offered, to
what it does wrong there, in `MISCHIEF`; a further attempt at the same request behaves, unless `stubborn`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MISCHIEF = ("garbled", "unknown tool", "no call", "missing argument", "stranger", "refusal", "two calls", "wrong type")
"""Arguments that are no JSON, a tool that was not offered, text without a call, an argument left out, an entity that
was never shown, a refusal, two calls at once, and an argument of another type."""

STOP = frozenset("what which who is the of in a an does did to by for are was were on at and from with me name".split())


@dataclass
class ScriptedAgent:
    """Answers the bodies of chat-completions requests.  hops: after so many it answers.  words: synonyms of a relation.

    restless: it never answers of its own accord.
    """

    hops: int = 1
    mischief: Mapping[int | str, str] = field(default_factory=dict)
    stubborn: bool = False
    restless: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    thoughts: str = "I look at the relations."

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        """The message of the reply."""
        by_tools = "tools" in body
        replies = sum(message["role"] == "assistant" for message in body["messages"])
        only = forms_of(body)[0] if len(forms_of(body)) == 1 else None
        wrong = self.mischief.get(replies, self.mischief.get(only or ""))
        if "seed" in body and not self.stubborn:
            wrong = None
        if wrong == "refusal":
            return {"content": None, "refusal": "I would rather not."}
        if wrong == "no call":
            return {"content": "The answer is obvious."}
        name, arguments = self._decide(body)
        if wrong == "stranger":
            name, arguments = "relations_out", {"entity": "Atlantis", "relation": "", "answers": []}
        if wrong == "unknown tool":
            name = "drop_table"
        if wrong == "missing argument":
            arguments = {}
        if wrong == "wrong type":
            arguments = dict.fromkeys(arguments, 7)
        written = '{"entity": "Fra' if wrong == "garbled" else json.dumps(arguments, ensure_ascii=False)
        if not by_tools:
            whole = {"thought": self.thoughts, "operation": name, **arguments}
            return {"content": written if wrong == "garbled" else json.dumps(whole, ensure_ascii=False)}
        call = {"id": f"x{replies}", "type": "function", "function": {"name": name, "arguments": written}}
        return {"content": self.thoughts, "tool_calls": [call, call] if wrong == "two calls" else [call]}

    def _decide(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        offered = forms_of(body)
        user = body["messages"][1]["content"]
        question = re.search(r"^Question: (.*)$", user, re.MULTILINE)[1]  # type: ignore[index]
        if "choose_relations" in offered:
            listed = json.loads(_line(user, "Relations"))
            rows = [(relation, way) for way in ("out", "in") for relation in listed[way]]
            kept = sorted(rows, key=lambda row: -self._score(row[0], question))[:2]
            scored = [{"relation": r, "direction": w, "score": self._score(r, question)} for r, w in kept]
            return "choose_relations", {"relations": [row for row in scored if row["score"] > 0]}
        if "choose_entities" in offered:
            names = json.loads(_line(user, "Entities"))
            return "choose_entities", {"entities": [{"entity": name, "score": 0.9} for name in names]}
        if "judge" in offered:
            facts = json.loads(_line(user, "Facts"))
            return "judge", {"enough": bool(facts) and not self.restless}
        if offered == ["answer"] and "Facts" in user:
            facts = json.loads(_line(user, "Facts"))
            return "answer", {"answers": [fact.strip("()").split(", ")[-1] for fact in facts]}
        return self._loop(body, offered, question, json.loads(_line(user, "Topic entities")))

    def _loop(
        self, body: dict[str, Any], offered: list[str], question: str, topics: list[str]
    ) -> tuple[str, dict[str, Any]]:
        """The next operation, by what the earlier ones returned."""
        empty = {} if "tools" in body else {"entity": "", "relation": "", "answers": []}
        if "tools" not in body and offered == ["answer"]:
            empty = {"answers": []}
        done = dialogue_of(body)
        shown: list[str] = []
        follows = 0
        relations: dict[str, tuple[str, str, str]] = {}
        place = topics[0]
        for name, arguments, result in done:
            if name.startswith("follow") and "entities" in result:
                shown, follows, relations = result["entities"], follows + 1, {}
                place = shown[0]
            elif "relations" in result:
                for relation in result["relations"]:
                    relations[f"{name}/{relation}"] = (name.removeprefix("relations"), arguments["entity"], relation)
        if offered == ["answer"] or (follows >= self.hops and not self.restless):
            return "answer", empty | {"answers": shown}
        looked = {(name, arguments.get("entity")) for name, arguments, _ in done}
        for name in ("relations_out", "relations_in"):
            if (name, place) not in looked:
                return name, empty | {"entity": place}
        best = max(relations.values(), key=lambda row: self._score(row[2], question), default=None)
        if best is None:
            return "answer", empty | {"answers": shown}
        return f"follow{best[0]}", empty | {"entity": best[1], "relation": best[2]}

    def _score(self, relation: str, question: str) -> float:
        """Share of a relation's words that are in the question."""
        asked = set(_words(question))
        own = _words(self.words.get(relation, relation))
        return sum(any(word[:4] == other[:4] for other in asked) for word in own) / max(1, len(own))


def forms_of(body: dict[str, Any]) -> list[str]:
    """Names of the forms that a request offers."""
    if "tools" in body:
        return [tool["function"]["name"] for tool in body["tools"]]
    listed: list[str] = body["response_format"]["json_schema"]["schema"]["properties"]["operation"]["enum"]
    return listed


def dialogue_of(body: dict[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Operations so far, with arguments and what they returned."""
    done: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    pending: tuple[str, dict[str, Any]] | None = None
    for message in body["messages"][2:]:
        if message["role"] == "assistant":
            if "tool_calls" in message:
                function = message["tool_calls"][0]["function"]
                pending = function["name"], json.loads(function["arguments"])
            else:
                given = json.loads(message["content"])
                pending = given["operation"], given
        elif pending is not None:
            done.append((*pending, json.loads(message["content"].removeprefix("Observation: "))))
            pending = None
    return done


def _line(text: str, name: str) -> str:
    found = re.search(rf"^{name}: (.*)$", text, re.MULTILINE)
    assert found is not None, f"no {name} in {text}"
    return found[1]


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.replace("_", " ").casefold()) if word not in STOP]
