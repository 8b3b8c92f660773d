"""The commands of `kgqa`: where each stands, and its line in `kgqa --help`, so that a call imports the one it runs."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from flows.cli.usage import CommandApp


class CommandRecord(NamedTuple):
    """A command or a group of commands.

    module: of `flows.cli`.  attribute: its function, or the `CommandApp` of a group.  help: the first paragraph of its
    help, which the list shows; a test compares it with the module.
    """

    module: str
    attribute: str
    help: str

    @property
    def name(self) -> str:
        """What is typed after `kgqa`."""
        return self.attribute.removesuffix("_app")

    def load(self) -> Any:
        """The command, with its module imported."""
        loaded = getattr(importlib.import_module(f"flows.cli.{self.module}"), self.attribute)
        if isinstance(loaded, typer.Typer):
            command: Any = get_group(loaded)
        else:
            alone = CommandApp(add_completion=False, rich_markup_mode="rich")
            alone.command()(loaded)
            command = get_command(alone)
        command.name = self.name
        return command

    def listed(self) -> TyperCommand:
        """What stands for it in the list of commands."""
        return TyperCommand(self.name, help=self.help, rich_markup_mode="rich")


COMMANDS = (
    CommandRecord(
        "demo",
        "demo",
        "Build the bundled graph Atlas, train what answers best on it, score it on a sample, and ask three questions.",
    ),
    CommandRecord("run", "run", "Run the pipeline on a profile, or on your own graph and questions."),
    CommandRecord(
        "ask",
        "ask",
        "Answer one question from a graph file, or with what a run trained, and show the facts behind it.",
    ),
    CommandRecord(
        "chat",
        "chat",
        "Ask one question after the other on a terminal or a pipe; each may refer back: `and of Spain?`.",
    ),
    CommandRecord(
        "ask",
        "answer",
        "Answer a file of questions from a graph file (--kg), or with what a run trained.",
    ),
    CommandRecord(
        "serve", "serve", "Answer questions over HTTP: JSON, OpenAI's chat protocol, the graph; Ctrl-C stops it."
    ),
    CommandRecord("run", "report", "Show the scores of a run and where its report lies."),
    CommandRecord(
        "compare",
        "compare",
        "Say what changed between runs: options, data, code, scores with intervals, questions won and lost.",
    ),
    CommandRecord(
        "run",
        "refresh",
        "Take a newer dump: update the graph, train again only what must be, answer, score, promote or not.",
    ),
    CommandRecord(
        "run",
        "forecast",
        "Say what a run would ask of language models: calls, tokens, cost and time, less what is already paid.",
    ),
    CommandRecord("ask", "evaluate", "Score somebody's answers with our metrics, or by the rules of a benchmark."),
    CommandRecord(
        "judge",
        "judge",
        "Measure how far the judge of `evaluation.judge` agrees with labelled answers: accuracy and Cohen's kappa.",
    ),
    CommandRecord(
        "link",
        "link",
        "Find the entities of a graph that a text names: mentions, candidates, and the confidence ρ of each.",
    ),
    CommandRecord(
        "mcp", "mcp", "Serve a graph and what answers from it to agents as tools of the Model Context Protocol."
    ),
    CommandRecord(
        "datasets",
        "datasets",
        "List the benchmarks of the field: what they are, where to get them, what is found here, and which run.",
    ),
    CommandRecord(
        "ui", "ui", "Start the Prefect and MLflow UIs on this machine and print their links; Ctrl-C stops both."
    ),
    CommandRecord(
        "home",
        "home",
        "Show where the home is, what it holds and how much of the disk each kind of artifact and each run takes.",
    ),
    CommandRecord(
        "home",
        "gc",
        "Remove what no champion, recent run or run under way needs; first without --yes, to see what would go.",
    ),
    CommandRecord(
        "completion",
        "completion",
        "Print what makes TAB complete commands and options in a shell: `source <(kgqa completion bash)`.",
    ),
    CommandRecord("kg", "kg_app", "Build, update and look into knowledge graphs."),
    CommandRecord("cache", "cache_app", "Completions of language models that this home keeps."),
    CommandRecord("models", "models_app", "Folders of language models and encoders."),
    CommandRecord(
        "improve",
        "improve",
        "Ask a home's questions again, and list those without a sure reply by what is wrong, with what mends each.",
    ),
    CommandRecord(
        "feedback", "feedback_app", "Verdicts on answers: list, confirm, quarantine, remove, import, export."
    ),
    CommandRecord("ltgen", "ltgen_app", "Build a benchmark about little known entities from any graph."),
    CommandRecord("questions", "questions_app", "Make questions from a graph, and export question sets."),
    CommandRecord(
        "answerability",
        "answerability_app",
        "Build a benchmark of what a graph can and cannot answer, from any graph and questions.",
    ),
)
"""In the order of `kgqa --help`."""


class LoadedCommands(MutableMapping[str, Any]):
    """Commands by name, each imported when it is first read; their names are known without that."""

    def __init__(self) -> None:
        self._records = {record.name: record for record in COMMANDS}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._records[name].load()
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._records or name in self._loaded

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise KeyError(f"{name!r}: commands are not removed")

    def __iter__(self) -> Iterator[str]:
        return iter({**self._records, **self._loaded})

    def __len__(self) -> int:
        return len({**self._records, **self._loaded})


class CommandGroup(TyperGroup):
    """The group of all commands: a call imports the module of the one that it names, the list of them imports none."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = LoadedCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in order."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the list, from the records."""
        listed = copy.copy(self)
        listed.commands = {record.name: record.listed() for record in COMMANDS}
        TyperGroup.format_help(listed, ctx, formatter)
