"""What every command needs before and around its work: the environment, the profile, the newest run, the errors."""

from __future__ import annotations

import atexit
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from rich.logging import RichHandler

import kgqa_core
from flows.cli._options import ProfileChoice
from flows.cli._output import err, out
from flows.cli._pandas import without_pandas
from flows.cli._threads import choose_threads
from kgqa_core.config import AUTO, PASSAGES, TOPICS, Profile, make_profile, parse_settings, read_profile
from kgqa_core.config.retrieval import baseline_names
from kgqa_core.errors import ConfigError, InputError, nearest
from kgqa_core.monitor import Monitor
from kgqa_core.report.terminal import TerminalConsole, VisibleText, log_handler, visible_json
from kgqa_core.spool import regular_file, shorten, spool_in
from kgqa_core.store.artifacts import ArtifactRef, Home
from kgqa_core.store.files import check_room, watch_room
from tasks.servers.clients import point_clients
from tasks.tracking.moved import follow_home

PROFILES = Path(__file__).parent.parent / "profiles"
MEASURED = {"size": 300, "split_shares": [0.0, 0.5, 0.5]}
"""How questions are generated for a graph of which nothing is learnt: a few, which measure what is there."""
log = logging.getLogger("kgqa")


@dataclass(frozen=True)
class JsonSession:
    """The options that most commands share, as their first parameter; `CommandApp` adds them to the command line.

    options: which of them a class stands for.  home: of `--home`.  as_json: the last line of stdout is one JSON object,
    and what is shown for people goes to stderr.  as_csv: stdout has tables alone, as CSV.
    Raises InputError for both.
    """

    options: ClassVar[tuple[str, ...]] = ("as_json",)

    home: Path | None = None
    as_json: bool = False
    as_csv: bool = False
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise InputError("--json and --csv both say how stdout is written; leave one of them out")
        out.start_csv(self.as_csv)

    @property
    def console(self) -> TerminalConsole:
        """Where tables go."""
        return err if self.as_json else out

    def prepare(self) -> Home:
        """A home that can be written, and the environment of what runs in it.  Must precede the import of Prefect.

        Raises StorageError when the home cannot be written or has no room for a run.
        """
        chosen = _choose(self.home).prepare()
        check_room(chosen.root)
        watch_room(chosen.root, log.error)
        if before := follow_home(chosen):
            text = f"this home was at {', '.join(before)} and is now at {chosen.root}; MLflow's records have followed"
            err.print(VisibleText(text), highlight=False, soft_wrap=True)
        return _set_environment(chosen, verbose=self.verbose)

    def look(self, *, missing: bool = False) -> Home:
        """A home that is only read, so that a full or read-only one can be; the environment as of `prepare`.

        missing: whether there may be none.  Raises InputError where there is none and must be.
        """
        without_pandas()
        chosen = _choose(self.home).look() if missing else existing(self.home)
        return _set_environment(chosen, verbose=self.verbose)

    def working_homes(self) -> tuple[Home, Home]:
        """The home that is read, and the home to work in: itself, or where it cannot be written a temporary one.

        Raises InputError where there is no home, and as `prepare`.
        """
        chosen = existing(self.home)
        if chosen.writable:
            return chosen, self.prepare()
        err.print(f"the home {chosen.root} cannot be written; this command works in a temporary folder", soft_wrap=True)
        folder = tempfile.mkdtemp(prefix="kgqa-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return chosen, replace(self, home=Path(folder)).prepare()

    def begin(self, profile: Profile) -> Home:
        """Set everything up for a flow, and refuse inputs that are known to be wrong; the home."""
        chosen = self.prepare()
        self.start_logging()
        if (message := choose_threads(os.environ)) is not None:  # before torch is imported
            err.print(message, highlight=False)
        with err.status("checking the inputs …"):
            check_data(profile)
            from tasks.servers import early

            early.launch()  # it starts while the rest is imported
            from flows.preflight import check

            check(profile)
            from tasks.tracking.mlflow_store import import_client, tracking_uri

            import_client(tracking_uri(chosen))  # a flow would wait for its server first
        return chosen

    def start_logging(self) -> None:
        """Send the library's log to stderr."""
        logger = logging.getLogger("kgqa")
        logger.setLevel(logging.DEBUG if self.verbose else logging.INFO)
        if not any(isinstance(handler, RichHandler) for handler in logger.handlers):
            logger.addHandler(log_handler(err, show_level=self.verbose))


class HomeSession(JsonSession):
    """A command that reads a home."""

    options = ("home", "as_json")


class TableSession(JsonSession):
    """A command that shows tables."""

    options = ("as_json", "as_csv")


class HomeTableSession(JsonSession):
    """A command that reads a home and shows tables."""

    options = ("home", "as_json", "as_csv")


class Session(JsonSession):
    """A command that runs something in a home."""

    options = ("home", "as_json", "verbose")


class AskSession(JsonSession):
    """The same where answers may be a table."""

    options = ("home", "as_json", "as_csv", "verbose")


def existing(home: Path | None) -> Home:
    """The home, which is there.  Raises InputError where it is not, StorageError where it is of a newer version."""
    chosen = _choose(home).look()
    if not chosen.exists:
        raise InputError(
            f"there is no home at {chosen.root}; name one with --home or KGQA_HOME, make one with `kgqa demo` or "
            "`kgqa run`, or name a graph to ask at once with --kg FILE"
        )
    return chosen


def _choose(home: Path | None) -> Home:
    if home is not None:
        os.environ["KGQA_HOME"] = str(home)
    return Home.current()


def _set_environment(chosen: Home, *, verbose: bool) -> Home:
    """Tell Prefect, MLflow and the model libraries where the home is.

    What the user has set stays; telemetry and the banners of Prefect are off unless the user turned them on.
    """
    os.environ["KGQA_HOME"] = str(chosen.root)
    spool_in(chosen.root / "tmp")
    defaults = {
        "PREFECT_LOGGING_EXTRA_LOGGERS": "kgqa",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO" if verbose else "CRITICAL",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    if "NUMBA_CACHE_DIR" not in os.environ and not _numba_can_cache():
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="kgqa-numba-")
        atexit.register(shutil.rmtree, os.environ["NUMBA_CACHE_DIR"], ignore_errors=True)
    point_clients(chosen.root)
    return chosen


def _numba_can_cache() -> bool:
    """Whether numba finds a place for compiled code beside ours or in the user's cache; it refuses to work without."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    while not user.exists() and user != user.parent:
        user = user.parent
    return any(os.access(folder, os.W_OK) for folder in (Path(kgqa_core.__file__).parent / "dkg", user))


def profile_names() -> list[str]:
    """Names of the shipped profiles."""
    return sorted(path.stem for path in PROFILES.glob("*.yaml"))


def check_data(profile: Profile) -> None:
    """Checks that data which a shipped profile looks for in this workplace is there: the package does not hold it.

    Raises InputError with the path that was looked for and the settings that name one's own copy.
    """
    if profile.name not in profile_names():
        return
    shipped = make_profile(read_profile(PROFILES / f"{profile.name}.yaml"))
    data = "../shared/data"
    absent, settings = [], []
    if profile.kg.files == shipped.kg.files:
        lacking = [name for name in shipped.kg.files if name.startswith(data) and not Path(name).exists()]
        if lacking:
            absent += lacking[:1]
            settings.append(f"--set kg.files='[{', '.join(shipped.kg.files)}]'")
    taken = {given.questions.name: given.questions.path for given in profile.each_set}
    for built_in in shipped.each_set:
        name, path = built_in.questions.name, built_in.questions.path
        if path is not None and taken.get(name) == path and not Path(path).exists():
            absent.append(path)
            of_set = f"{name}." if shipped.further_questions else ""
            settings.append(f"--set questions.{of_set}path={path}")
    if absent:
        raise InputError(
            f"the data set of profile {profile.name} is not part of the package, and there is no "
            f"{' and no '.join(os.path.abspath(path) for path in absent)}; `kgqa datasets` says where to get it; then "
            f"put the folder that holds your copy for DATA in: {' '.join(settings).replace(data, 'DATA')}"
        )


def chosen_profile(choice: ProfileChoice) -> Profile:
    """The profile that a command's options make; see `choose_profile`."""
    return choose_profile(
        choice.profile, choice.kg or (), choice.questions, choice.answerer, choice.settings or (), choice.names
    )


def choose_profile(
    name: str | None,
    files: Sequence[Path | str] = (),
    questions: Path | Sequence[Path] | None = None,
    answerer: str | None = None,
    settings: Sequence[str] = (),
    names: Path | None = None,
) -> Profile:
    """The profile of a run: a shipped name or a YAML file, then the command's options, then `--set`.

    Raises ConfigError for an unknown name or key, with the nearest one.
    """
    layers: list[dict[str, Any]] = []
    if name:
        path = Path(name) if name.endswith((".yaml", ".yml")) else PROFILES / f"{name}.yaml"
        if not regular_file(path, ConfigError).is_file():
            known = profile_names()
            raise ConfigError(
                f"unknown profile {shorten(name)!r} (there are {', '.join(known)}, or give a path ending in .yaml)"
                f"{nearest(name, known)}"
            )
        layers.append({"name": path.stem, **read_profile(path)})
    elif not files:
        raise ConfigError(
            f"give --profile NAME ({', '.join(profile_names())}), or --kg FILE, and --questions FILE.jsonl if you have "
            "questions (else they are made from the graph)"
        )
    section: dict[str, Any] = {}
    given = parse_settings(settings)
    if files:
        from kgqa_core.kg.remote.registry import graph_name

        section["kg"] = {"name": graph_name(files[0]), "files": [str(path) for path in files]}
    if names is not None:
        layers.append({"kg": {"names": read_profile(names)}})
    question_files = [questions] if isinstance(questions, Path) else list(questions or ())
    if question_files:
        sets = [{"name": entry, "source": "jsonl", "path": str(path)} for entry, path in _named(question_files)]
        section["questions"] = sets[0] if len(sets) == 1 else sets
        section.setdefault("name", "-".join(entry["name"] for entry in sets)) if not name else None
    if answerer:
        section["answering"] = {"answerer": answerer}
    elif not name and _leaves_answerer(given):
        section["answering"] = {"answerer": AUTO, "more": ["builtin"]}
    if not question_files and not name:
        section["name"] = section["kg"]["name"]
        section["questions"] = {"name": "generated", "source": "generated"}
    generated = not name and (not question_files or _source(given) == "generated")
    if generated and not question_files and answerer in (None, AUTO) and _leaves_all(given):
        section["retrieval"] = {"retrievers": [TOPICS], "topics": "linked"}
        section["answering"] = {"answerer": AUTO, "knowledge": [TOPICS]}
    elif generated:
        section["retrieval"] = {"retrievers": ["hop_path", "random", "oracle"], "topics": "linked"}
        section["answering"] = {**section.get("answering", {}), "knowledge": ["none", "random", "hop_path", "oracle"]}
    origin = f"profile {name}" if name else "the options"
    profile = make_profile(*layers, section, given, origin=origin)
    if generated and not profile.learns and not profile.adapts:
        section["questions"] = {**section.get("questions", {}), "generated": MEASURED}
        profile = make_profile(*layers, section, given, origin=origin)
    return profile


def _named(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """Question files with the names of their sets: that of the file, with its folder's where several are alike."""
    stems = [path.stem for path in paths]
    return [(stem if stems.count(stem) == 1 else f"{path.resolve().parent.name}-{stem}", path)
            for stem, path in zip(stems, paths, strict=True)]  # fmt: skip


def _source(given: Mapping[str, Any]) -> Any:
    """Where settings say that the questions come from."""
    questions = given.get("questions")
    return questions.get("source") if isinstance(questions, Mapping) else None


def _leaves_all(settings: Mapping[str, Any]) -> bool:
    """Whether settings name no questions, answerers, knowledge or retrievers, so that a graph stands alone."""
    questions, answering, retrieval = (settings.get(name, {}) for name in ("questions", "answering", "retrieval"))
    named = {"answerer", "answerers", "more", "knowledge"} & answering.keys() or "retrievers" in retrieval
    alone = isinstance(questions, Mapping) and not {"path", "also_train"} & questions.keys()
    return alone and not named and _source(settings) in (None, "generated")


def _leaves_answerer(settings: Mapping[str, Any]) -> bool:
    """Whether settings name no answerer, and no knowledge without facts of the graph, so that `auto` may be first."""
    given = settings.get("answering", {})
    knowledge = given.get("knowledge") if isinstance(given, dict) else None
    if not isinstance(given, dict) or {"answerer", "answerers"} & given.keys():
        return False
    names = knowledge if isinstance(knowledge, list | tuple) else ["rigel"]
    return any(str(name).partition("/")[0] not in ("none", PASSAGES, *baseline_names()) for name in names)


def mentions_folder(home: Home, graph: ArtifactRef, record: dict[str, Any] | None = None) -> Path:
    """The mention dictionary of a graph: a finished run's own, cached in the home, or built there with a progress bar.

    Raises ArtifactError, StorageError.
    """
    from kgqa_core.runs.finished import mentions_of_graph, mentions_of_run
    from tasks.engine.progress import StageMonitor

    with StageMonitor("mentions", lambda rows: None) as monitor:
        if record is None:
            return mentions_of_graph(home, graph, monitor, _compute_mentions)
        return mentions_of_run(home, record, monitor, _compute_mentions)


def _compute_mentions(home: Home, monitor: Monitor, kg: ArtifactRef) -> ArtifactRef:
    from tasks.linking import build_mentions  # with Prefect, which a dictionary that is there does without

    return build_mentions.compute_in(home, monitor, kg)


def print_rows(title: str, rows: Sequence[Mapping[str, Any]], to_stderr: bool = False) -> None:
    """A table of records, with their keys as its head."""
    from kgqa_core.report.console import rows_table

    (err if to_stderr else out).print(rows_table(title, rows))


def print_json(value: Any) -> None:
    """One JSON object as the last line of stdout."""
    sys.stdout.flush()
    print(visible_json(json.dumps(value, ensure_ascii=False, default=_plain)), flush=True)


def _plain(value: Any) -> Any:
    """What JSON has for a value that is none of its own: of an exact number the nearest, else the text."""
    return float(value) if isinstance(value, Decimal) else str(value)
