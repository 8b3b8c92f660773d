"""Which finished run a server answers with, and how its system is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from kgqa_core.config import Profile
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.runs.finished import SystemParts, mentions_of_run, system_parts, with_mentions
from kgqa_core.runs.home_names import names_file
from kgqa_core.runs.records import answering_run, champion_run, default_run, is_champion, newest_run
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.store.artifacts import Home
from kgqa_core.system import System
from kgqa_core.tracing import NO_TRACER, QuestionTracer


@dataclass(frozen=True)
class SystemSource:
    """The systems of a home that a server answers with.

    run: a run's id, `newest`, `champion` or `champion:SYSTEM`, which is followed as it changes; without it as
    `default_run` says.  knowledge, min_confidence: as `System.from_run` takes them.
    record: of a graph that answers without a run, in place of one (`graph_files.graph_record`).
    tracer_of: from the record of a run to what keeps traces of its answers.  prepare: is called with the profile of a
    run before its system is opened, such as to load the secrets that it names.  seconds: in which a request to an
    endpoint has ended, its retries included, so that nobody waits behind an answer that nobody waits for any more.
    """

    home: Home
    run: str | None = None
    knowledge: str | None = None
    min_confidence: float | None = None
    monitor: Monitor = QUIET
    tracer_of: Callable[[Mapping[str, Any]], QuestionTracer] | None = None
    prepare: Callable[[Profile], None] | None = None
    seconds: float | None = None
    record: Mapping[str, Any] | None = None

    def record_of(self, run: str) -> Mapping[str, Any]:
        """The record of a run, or of the graph that answers without one."""
        return self.record if self.record is not None else newest_run(self.home, run)

    def current(self) -> str:
        """Id of the run that is to answer now.  Raises InputError where there is none, and as `current_champions`."""
        if self.record is not None:
            return str(self.record["run_id"])
        if self.run is not None and is_champion(self.run):
            return champion_run(self.home.root, self.run)  # without the records of all runs: it is asked often
        return str(answering_run(self.home, self.run)["run_id"])

    def fixed(self) -> SystemSource:
        """The same of one system, so that a champion of another graph in the home is not followed."""
        if self.record is not None:
            return self
        word = self.run if self.run not in (None, "champion") else default_run(self.home)
        return replace(self, run=word) if is_champion(word) else self

    def open(
        self, run: str, on_view: Callable[[GraphView | None], None] | None = None
    ) -> tuple[System, GraphView | None]:
        """The system of a run, and what looks into its graph; None where it reads none.

        on_view: is given the latter before the system is opened, which takes longer.
        Raises what `System.open` and `GraphView.open` raise.
        """
        parts = self._parts(run, None)
        view = GraphView.open(parts.kg, parts.dkg, parts.mentions) if parts.mentions is not None else None
        if on_view is not None:
            on_view(view)
        return System.open(parts), view

    def with_knowledge(self, run: str, knowledge: str) -> System:
        """The system of a run that reads other knowledge.  Raises what `System.open` raises."""
        return System.open(self._parts(run, knowledge))

    def _parts(self, run: str, knowledge: str | None) -> SystemParts:
        record = self.record_of(run)
        parts = system_parts(self.home, record, knowledge or self.knowledge, self.min_confidence)
        if self.prepare is not None:
            self.prepare(parts.profile)
        if self.seconds is not None:
            limited = parts.profile.llm.within(self.seconds)
            parts = replace(parts, profile=parts.profile.model_copy(update={"llm": limited}))
        if not parts.reads_graph:
            return parts
        return with_mentions(parts, mentions_of_run(self.home, record, self.monitor))

    def tracer(self, run: str) -> QuestionTracer:
        """What keeps traces of the answers of a run's system."""
        return NO_TRACER if self.tracer_of is None else self.tracer_of(self.record_of(run))

    def names(self, run: str) -> str:
        """Digest of the names that the home gives to the graph of a run; empty without any."""
        path = names_file(self.home, self.record_of(run))
        with suppress(FileNotFoundError):
            return hashlib.sha256(path.read_bytes()).hexdigest()
        return ""

    def name(self, run: str) -> str:
        """What the system of a run is called by clients: the name of its graph."""
        profile = self.record_of(run).get("profile") or {}
        return str((profile.get("kg") or {}).get("name") or "graph")
