"""Graph files that answer at once, without a run: the options that name them, and what is built of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli._options import ContextOption, GraphFilesOption, MapOption, NamesOption, SetOption, reading_section
from flows.cli._pandas import without_pandas
from flows.cli._session import JsonSession
from kgqa_core.errors import ConfigError
from kgqa_core.runs.records import answering_run
from kgqa_core.store.artifacts import Home

if TYPE_CHECKING:
    from kgqa_core.serving.systems import SystemSource


@dataclass(frozen=True)
class GraphChoice:
    """Options that name graph files to answer from at once, in place of a run."""

    kg: GraphFilesOption = None
    map: MapOption = None
    context: ContextOption = None
    names: NamesOption = None
    settings: SetOption = None

    def sections(self) -> dict[str, Any]:
        """What is set of a profile.  Raises ConfigError where something is, and no file is named."""
        from kgqa_core.config import parse_settings

        section = reading_section(self.map, self.context, self.names)
        given = {"--map": self.map, "--context": self.context, "--names": self.names, "--set": self.settings}
        if not self.kg and (named := [(name, value) for name, value in given.items() if value]):
            name, value = named[0]
            told = value if isinstance(value, (str, Path)) else value[0]
            raise ConfigError(f"{name} {told} is for graph files; name them with --kg, or leave it out")
        settings: dict[str, Any] = parse_settings(self.settings or ())
        return settings | {"kg": {**section, **settings.get("kg", {})}}


def graph_or_run(session: JsonSession, graph: GraphChoice, run_id: str | None) -> tuple[Home, dict[str, Any]]:
    """The home, and the record of what answers: of a graph that is built or found there, or of a finished run.

    Neither Prefect nor MLflow is imported.  Raises ConfigError for both, and what `graph_record` or `answering_run`
    raises.
    """
    sections = graph.sections()
    if not graph.kg:
        home = session.look()
        session.start_logging()
        return home, answering_run(home, run_id)
    if run_id is not None:
        raise ConfigError(f"--kg {graph.kg[0]} and --run {run_id} name two systems; leave one of them out")
    home = _writable(session)
    from kgqa_core.runs.graph_files import graph_record
    from tasks.engine.progress import StageMonitor

    with StageMonitor(Path(graph.kg[0]).name, lambda rows: None) as monitor:
        return home, graph_record(home, graph.kg, sections, monitor)


def named_graphs(
    given: Sequence[str], choice: GraphChoice, run_id: str | None
) -> tuple[GraphChoice, dict[str, list[str]]]:
    """What is asked where no graph is named, and the files of the others by name, of `--graph NAME=FILE`.

    Raises ConfigError.
    """
    from kgqa_core.runs.graph_files import NAME

    files: dict[str, list[str]] = {}
    for text in given:
        name, _, file = text.partition("=")
        if not NAME.fullmatch(name) or not file:
            raise ConfigError(f"--graph {text} is not NAME=FILE, with a name of letters, digits, `.`, `_` and `-`")
        files.setdefault(name, []).append(file)
    if files and not choice.kg and run_id is None:
        name = next(iter(files))
        choice = replace(choice, kg=files.pop(name), settings=[*(choice.settings or ()), f"kg.name={name}"])
    return choice, files


def graph_records(home: Home, files: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """The records of graphs that are built or found in the home, by name.  Raises what `graph_record` raises."""
    from kgqa_core.runs.graph_files import graph_record
    from tasks.engine.progress import StageMonitor

    records = {}
    for name, own in files.items():
        with StageMonitor(name, lambda rows: None) as monitor:
            records[name] = graph_record(home, own, {"kg": {"name": name}}, monitor)
    return records


def other_name(source: SystemSource, records: Mapping[str, Any]) -> str:
    """The name of the graph that is asked where none is named.  Raises ConfigError where another has it, too."""
    if (name := source.name(source.current())) in records:
        raise ConfigError(f"--graph {name}=… has the name of the graph that is served already; give it another name")
    return name


def built_folder(session: JsonSession, kg: Path) -> Path:
    """A graph folder itself; of a graph file the folder that it is built into in the home, as for questions."""
    from kgqa_core.kg.ingest.sources import tables_in
    from kgqa_core.kg.store import is_database

    if not (tables_in(kg) if kg.is_dir() else kg.is_file() and not is_database(kg)):
        return kg
    home = _writable(session)
    from kgqa_core.config import KgOptions
    from kgqa_core.kg.remote.registry import graph_name
    from kgqa_core.runs.graph_files import built_graph
    from tasks.engine.progress import StageMonitor

    options = KgOptions(name=graph_name(str(kg)) or "graph", files=(str(kg),))
    with StageMonitor(kg.name, lambda rows: None) as monitor:
        return built_graph(home, options, monitor).folder


def _writable(session: JsonSession) -> Home:
    without_pandas()
    home = session.prepare()
    session.start_logging()
    return home
