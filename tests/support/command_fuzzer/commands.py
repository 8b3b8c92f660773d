"""The commands of `kgqa` as the app itself lists them, and one good call of each."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Role = Literal["file", "folder", "profile", "out_file", "out_folder", "home", "text", "number"]
"""What a parameter means: a file or folder to read, a profile, a file or folder to write, the home, words, a number."""

FLAG = (bool,)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command that takes a value.

    good: a value that works, relative to the user's folder where it is a path.  word: the option, or empty for an
    argument.  always: whether the good call of the command gives it.
    """

    name: str
    word: str
    role: Role
    good: str
    always: bool
    required: bool


@dataclass(frozen=True)
class Command:
    """A command.  more: words of its good call.

    flow: it runs a flow.  loads: it loads models.  serves: it runs until it is stopped.
    """

    words: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    flow: bool = False
    loads: bool = False
    serves: bool = False
    more: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The command as a user types it, without `kgqa`."""
        return " ".join(self.words)


@dataclass(frozen=True)
class Recipe:
    """The good call of a command: values of its parameters by name, and further words."""

    values: Mapping[str, str] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    flow: bool = False
    loads: bool = False
    serves: bool = False
    beside: tuple[str, ...] = ()
    """Endings of the files that the command writes beside its output file."""


QUICK = (
    "--set", "retrieval.retrievers=[random]", "--set", "answering.knowledge=[none]", "--set", "answering.limit=2",
    "--set", "evaluation.bootstrap=100", "--set", "answering.answerer=builtin",
)  # fmt: skip
"""Options of a run that trains nothing and answers two questions."""
LEVELS = (
    "--set", "ltgen.sampling.per_level=1", "--set", "ltgen.sampling.levels=absolute",
    "--set", "ltgen.sampling.thresholds=[1,9,12,15,100]",
)  # fmt: skip

RECIPES: dict[str, Recipe] = {
    "home": Recipe(),
    "gc": Recipe(more=("--yes",)),
    "judge": Recipe({"model": "builtin"}, loads=True),
    "link": Recipe({"kg": "kg", "mentions": "mentions"}),
    "mcp": Recipe({"run_id": "asked"}, ("--http", "--port", "0"), serves=True),
    "compare": Recipe(),
    "refresh": Recipe({"kg": "facts.tsv", "questions": "questions.jsonl"}, QUICK, flow=True),
    "demo": Recipe(more=QUICK, flow=True),
    "run": Recipe({"kg": "facts.tsv", "questions": "questions.jsonl"}, QUICK, flow=True),
    "forecast": Recipe({"kg": "facts.tsv", "questions": "questions.jsonl"}, QUICK, flow=True),
    "ask": Recipe({"question": "Where does Kasi live?", "topic": "Kasi", "run_id": "asked"}, loads=True),
    "chat": Recipe({"run_id": "asked"}, loads=True),
    "completion": Recipe(),
    "answer": Recipe({"run_id": "asked"}, flow=True),
    "evaluate": Recipe({"questions": "questions.jsonl"}),
    "datasets": Recipe(),
    "report": Recipe(),
    "ui": Recipe(more=("--prefect-port", "0", "--mlflow-port", "0"), serves=True),
    "serve": Recipe({"run_id": "asked"}, more=("--port", "0"), serves=True),
    "improve": Recipe({"run_id": "asked", "questions": "questions.jsonl"}, loads=True),
    "feedback list": Recipe(),
    "feedback confirm": Recipe(),
    "feedback quarantine": Recipe(),
    "feedback remove": Recipe(),
    "feedback import": Recipe(),
    "feedback export": Recipe(),
    "kg build": Recipe(),
    "kg map": Recipe(),
    "kg update": Recipe({"files": "newer.tsv"}),
    "kg diff": Recipe({"out": "differences"}),
    "kg dkg": Recipe(),
    "kg formats": Recipe(),
    "kg show": Recipe({"kg": "kg"}),
    "kg search": Recipe({"kg": "kg"}),
    "kg path": Recipe({"kg": "kg"}),
    "kg stats": Recipe({"kg": "kg"}),
    "kg words": Recipe({"kg": "kg"}),
    "kg export": Recipe({"kg": "kg"}),
    "kg query": Recipe({"kg": "kg"}),
    "kg sql": Recipe({"kg": "kg"}),
    "kg subset": Recipe({"questions": "questions.jsonl"}, beside=(".counts.json",)),
    "models convert": Recipe({"folder": "pickled", "out": "converted"}),
    "cache stats": Recipe(),
    "cache export": Recipe(),
    "cache clear": Recipe(more=("--yes",)),
    "questions generate": Recipe({"kg": "facts.tsv", "size": "20"}, flow=True),
    "questions predictions": Recipe({"kg": "kg"}),
    "questions export": Recipe(),
    "questions bridge": Recipe(
        {"questions": "questions.jsonl", "map": "ids.tsv"}, beside=(".counts.json", ".rejects.jsonl", ".paths.tsv")
    ),
    "ltgen build": Recipe({"kg": "longtail.nt", "out": "benchmark"}, LEVELS, flow=True),
    "ltgen sheet": Recipe({"kg": "longtail"}),
    "ltgen agreement": Recipe(),
    "ltgen stats": Recipe(),
    "answerability build": Recipe({"kg": "kg", "questions": "questions.jsonl", "out": "benchmark"}, flow=True),
    "answerability verify": Recipe(),
    "answerability stats": Recipe(),
    "answerability score": Recipe(),
    "answerability evaluate": Recipe(flow=True),
    "answerability abstain": Recipe(flow=True),
}
"""The good call of every command; a command that is not here fails the test of the fuzzer."""

ROLES: dict[str, tuple[Role, str]] = {
    "home": ("home", "home"),
    "settings": ("text", "seed=3"),
    "profile": ("profile", "profile.yaml"),
    "questions": ("file", "questions.jsonl"),
    "answerer": ("text", "builtin"),
    "run_id": ("text", "20260201-000000-bbbb"),
    "knowledge": ("text", "none"),
    "question": ("text", "Where does Kasi live?"),
    "text": ("text", "Kasi"),
    "topic": ("text", "Kasi"),
    "turn": ("text", "And Kasi?"),
    "kg": ("folder", "kg"),
    "mentions": ("folder", "mentions"),
    "context": ("text", "words"),
    "experiment": ("text", "rigel/triples/builtin"),
    "metric": ("text", "exact"),
    "html": ("out_file", "page.html"),
    "language": ("text", "en"),
    "predictions": ("file", "predictions.jsonl"),
    "host": ("text", "127.0.0.1"),
    "allowed_host": ("text", "localhost"),
    "trusted_proxy": ("text", "127.0.0.1"),
    "files": ("file", "facts.tsv"),
    "names": ("file", "names.yaml"),
    "file": ("file", "questions.jsonl"),
    "map": ("file", "map.yaml"),
    "format": ("text", "auto"),
    "shell": ("text", "bash"),
    "base": ("text", "urn:x:"),
    "old": ("folder", "kg"),
    "new": ("folder", "newer"),
    "added": ("file", "added.tsv"),
    "removed": ("file", "removed.tsv"),
    "old_dkg": ("folder", "dkg"),
    "key": ("text", "Kasi"),
    "start": ("text", "Kasi"),
    "end": ("text", "Kasi"),
    "form": ("text", "(COUNT (JOIN lives_in <Kasi>))"),
    "statement": ("text", "SELECT key FROM entities LIMIT 3"),
    "model": ("text", "builtin"),
    "writer": ("text", "template"),
    "benchmark": ("folder", "ltgen"),
    "first": ("file", "first.csv"),
    "second": ("file", "second.csv"),
    "split": ("text", "test"),
    "parsers": ("text", "rng"),
    "train": ("text", "A"),
    "topics": ("text", "gold"),
    "parsed": ("text", "rng/A=parsed"),
    "number": ("text", "1"),
    "numbers": ("text", "1"),
    "client": ("text", "loopback"),
    "since": ("text", "2026-01-01"),
    "until": ("text", "2026-01-01"),
}
"""Role and good value of parameters by name, where `OWN` says nothing else."""

OWN: dict[tuple[str, str], tuple[Role, str]] = {
    ("serve", "graph"): ("text", "other=facts.tsv"),
    ("mcp", "graphs"): ("text", "other=facts.tsv"),
    ("run", "kg"): ("file", "facts.tsv"),
    ("forecast", "kg"): ("file", "facts.tsv"),
    ("refresh", "kg"): ("file", "facts.tsv"),
    ("ltgen build", "kg"): ("file", "longtail.nt"),
    ("ltgen sheet", "kg"): ("folder", "longtail"),
    ("answerability verify", "kg"): ("folder", "kg"),
    ("compare", "runs"): ("text", "20260101"),
    ("datasets", "folder"): ("folder", "answerability"),
    ("answer", "out"): ("out_file", "answers.jsonl"),
    ("cache export", "out"): ("out_file", "completions.jsonl"),
    ("models convert", "folder"): ("folder", "pickled"),
    ("models convert", "out"): ("out_folder", "converted"),
    ("judge", "labelled"): ("file", "labelled.jsonl"),
    ("judge", "out"): ("out_file", "verdicts.jsonl"),
    ("feedback export", "out"): ("out_file", "lessons.jsonl"),
    ("kg build", "out"): ("out_folder", "graph"),
    ("kg update", "out"): ("out_folder", "graph"),
    ("kg diff", "out"): ("out_folder", "differences"),
    ("kg dkg", "out"): ("out_folder", "arrays"),
    ("kg export", "out"): ("out_file", "graph.nt"),
    ("questions generate", "kg"): ("file", "facts.tsv"),
    ("questions generate", "out"): ("out_file", "made.jsonl"),
    ("questions predictions", "answers"): ("file", "predictions.jsonl"),
    ("questions predictions", "format"): ("text", "webqsp"),
    ("questions predictions", "out"): ("out_file", "predictions.webqsp.json"),
    ("questions export", "out"): ("out_file", "questions.qald.json"),
    ("questions bridge", "kg"): ("file", "facts.tsv"),
    ("questions bridge", "map"): ("file", "ids.tsv"),
    ("questions bridge", "relation_map"): ("file", "paths.tsv"),
    ("questions bridge", "learn_relations"): ("file", "questions.jsonl"),
    ("questions bridge", "answers"): ("text", "any"),
    ("questions bridge", "out"): ("out_file", "bridged.jsonl"),
    ("evaluate", "benchmark"): ("text", "grailqability"),
    ("evaluate", "data"): ("folder", "grailqability"),
    ("evaluate", "ontology"): ("folder", "ontology"),
    ("evaluate", "rules"): ("text", "script"),
    ("kg subset", "dump"): ("file", "facts.tsv"),
    ("kg subset", "relations"): ("text", "lives_in"),
    ("kg subset", "direction"): ("text", "both"),
    ("kg subset", "languages"): ("text", "en"),
    ("kg subset", "ranks"): ("text", "truthy"),
    ("kg subset", "memory_limit"): ("text", "1GB"),
    ("kg subset", "work"): ("out_folder", "passes"),
    ("kg subset", "out"): ("out_file", "subset.nt"),
    ("ltgen build", "out"): ("out_folder", "benchmark"),
    ("ltgen sheet", "out"): ("out_folder", "sheet"),
    ("answerability build", "out"): ("out_folder", "benchmark"),
    ("answerability score", "predictions"): ("file", "forms.jsonl"),
    **{
        (f"answerability {name}", "folder"): ("folder", "answerability")
        for name in ("verify", "stats", "score", "evaluate", "abstain")
    },
}
"""Role and good value of a command's parameter that mean something else than `ROLES` says."""


class Forgotten(Exception):
    """A command or parameter of the app that the fuzzer does not know how to call; it says where to add it."""


def commands() -> list[Command]:
    """Every command of the app, with its parameters that take a value.  Raises Forgotten."""
    import typer

    from flows.cli.app import app

    found = [_command(words, one) for words, one in _walk(typer.main.get_command(app), ())]
    unknown = [one.name for one in found if one.name not in RECIPES]
    gone = sorted(set(RECIPES) - {one.name for one in found})
    if unknown or gone:
        raise Forgotten(f"RECIPES of {Path(__file__).name} lacks {unknown}, and names {gone}, which the app has not")
    return found


def _walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
        return
    for name, one in inner.items():
        yield from _walk(one, (*words, name))


def _command(words: tuple[str, ...], command: Any) -> Command:
    name = " ".join(words)
    recipe = RECIPES.get(name, Recipe())
    parameters = tuple(_parameter(name, recipe, one) for one in command.params if not _is_flag(one))
    return Command(words, parameters, recipe.flow, recipe.loads, recipe.serves, recipe.more)


def _is_flag(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_flag", False))


def _parameter(command: str, recipe: Recipe, parameter: Any) -> Parameter:
    role, good = _meaning(command, parameter)
    always = parameter.required or parameter.name in recipe.values
    word = next((one for one in parameter.opts if one.startswith("--")), "")
    word = word if parameter.param_type_name == "option" else ""
    return Parameter(parameter.name, word, role, recipe.values.get(parameter.name, good), always, parameter.required)


def _meaning(command: str, parameter: Any) -> tuple[Role, str]:
    annotation = parameter.type_descriptor.annotation
    inner = typing.get_args(annotation)
    taken = inner[0] if inner else annotation
    if taken in (int, float):
        return "number", "3"
    known = OWN.get((command, parameter.name)) or ROLES.get(parameter.name)
    if known is None:
        raise Forgotten(
            f"kgqa {command}: nothing in ROLES or OWN of {Path(__file__).name} says what {parameter.name!r} means"
        )
    return known
