"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from kgqa_core.errors import InputError


def _runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """The words for runs of the home, for completion; its newest runs first."""
    home = Path(ctx.params.get("home") or os.environ.get("KGQA_HOME") or ".kgqa")
    runs = sorted((path.name for path in home.glob("runs/*")), reverse=True)
    return [word for word in ("newest", "champion", *runs) if word.startswith(incomplete)]


def _profiles(incomplete: str) -> list[str]:
    """The shipped profiles, for completion."""
    names = sorted(path.stem for path in (Path(__file__).parent.parent / "profiles").glob("*.yaml"))
    return [name for name in names if name.startswith(incomplete)]


HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="Folder of all artifacts and runs [KGQA_HOME, else ./.kgqa].", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print tables as CSV, and all else on stderr.")]
KeysOption = Annotated[bool, typer.Option("--keys", help="Show keys of the graph in place of names.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's log and tracebacks.")]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="RUN[:SET]",
        autocompletion=_runs,
        help="Run id, newest, champion or champion:SYSTEM, and of a run of several question sets which one "
        "(newest:SET); the newest finished run, and its first set, when absent.",
        show_default=False,
    ),
]
AnsweringRunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="RUN[:SET]",
        autocompletion=_runs,
        help="A run's id, newest, champion or champion:SYSTEM, or RUN:SET of a run of several question sets; the "
        "champion when absent, or the newest finished run where there is none.",
        show_default=False,
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="A shipped profile, or a path to a YAML file.",
        autocompletion=_profiles,
        show_default=False,
    ),
]
GraphFilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kg",
        metavar="FILE",
        help="Graph file, or sparql+https://… or neo4j://…; give it again for more.",
        show_default=False,
    ),
]
MapOption = Annotated[
    Path | None,
    typer.Option("--map", help="Mapping of several tables, as of `kgqa kg map`.", show_default=False),
]
ContextOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        help="File of a JSON-LD context that documents name by address: FILE or ADDRESS=FILE.",
        show_default=False,
    ),
]
QuestionsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--questions", help="Question file: ours, or an official one; again for further sets.", show_default=False
    ),
]
AnswererOption = Annotated[
    str | None, typer.Option("--answerer", help="builtin, hf:FOLDER_OR_ID or openai:MODEL.", show_default=False)
]
NamesOption = Annotated[
    Path | None,
    typer.Option("--names", help="File of your own words for the graph, as of `kgqa kg words`.", show_default=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. rigel.hops=3.", show_default=False),
]
KnowledgeOption = Annotated[
    str | None,
    typer.Option(
        "--knowledge",
        metavar="RETRIEVER/FORMAT",
        help="What the model reads: rigel, hop_path/rewritten, … [the run's first retriever's triples].",
        show_default=False,
    ),
]
MinConfidenceOption = Annotated[
    float | None,
    typer.Option(
        "--min-confidence",
        min=0,
        max=1,
        help="Do not answer where the confidence that the graph holds the answer is below; 0 always answers [the one "
        "that was learnt].",
        show_default=False,
    ),
]
TraceShareOption = Annotated[
    float | None,
    typer.Option(
        "--trace-share",
        min=0,
        max=1,
        help="Share of the questions of which MLflow keeps a trace [tracking.trace_share of the run].",
        show_default=False,
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace what is at the place to write to; first it says what goes.")
]
KgOption = Annotated[
    Path | None,
    typer.Option("--kg", help="Graph folder, or a graph file; the newest run's when absent.", show_default=False),
]
BuildSourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kg",
        metavar="FILE",
        help="Graph file or server (give it again for more), or a graph folder.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class ProfileChoice:
    """The options that make the profile of a run."""

    profile: ProfileOption = None
    kg: GraphFilesOption = None
    questions: QuestionsOption = None
    answerer: AnswererOption = None
    names: NamesOption = None
    settings: SetOption = None


NamedGraphsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--graph",
        metavar="NAME=FILE",
        help="Graph file that is served under a name beside others; again for more graphs, or for more files of "
        "one. Without --kg and --run the first is the one that is asked where none is named.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class SystemChoice:
    """The options that choose which run answers, from what, and how sure it must be."""

    run_id: AnsweringRunOption = None
    knowledge: KnowledgeOption = None
    min_confidence: MinConfidenceOption = None


@dataclass(frozen=True)
class TracedSystemChoice(SystemChoice):
    """The same where MLflow may keep traces."""

    trace_share: TraceShareOption = None


def reading_section(map: Path | None, context: Sequence[str] | None, names: Path | None) -> dict[str, Any]:
    """The keys of the section `kg` that --map, --context and --names set; a context of `''` is of every address."""
    from kgqa_core.config import read_profile

    pairs = [text.rpartition("=") for text in context or ()]
    section: dict[str, Any] = {} if map is None else {"map": str(map)}
    section |= {} if names is None else {"names": read_profile(names)}
    return section | ({"context": {address: file for address, _, file in pairs}} if pairs else {})


def graph_folder(paths: Sequence[str]) -> str | None:
    """The graph folder among the values of `--kg`, if it is one.  Raises InputError for one among others."""
    folders = [path for path in paths if os.path.isdir(path)]
    if folders and len(paths) > 1:
        raise InputError(f"--kg {folders[0]} is a folder; give one graph folder, or files only")
    return str(folders[0]) if folders else None
