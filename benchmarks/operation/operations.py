"""Operated for real: a transcript of servers, workers, a schedule, two events and a champion, on a toy graph.

    python -m benchmarks.operation.operations [--folder DIR] [--overhead PROFILE] [--json OUT]

Brings up PostgreSQL, Prefect and MLflow on it, and a worker for each pool, on free loopback ports; deploys
`prefect.yaml`; runs the pipeline; lets a schedule fire; updates the graph twice with `kgqa kg update --emit`; and says
what each refresh did and why.  --overhead then measures a run in which everything is cached, for a profile
(`atlas`, or `register` for the toy).  All of it is stopped at the end; --folder keeps what it wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS
from tests.support.operated import Operated, statuses
from tests.support.servers import Servers
from tests.support.toy import LATE, Register, write_register

FIELDS = (
    *CONDITIONS, "cores", "seconds/*", "seconds/*/...", "?overhead/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

MODEL = "kgqa-register-asked"
LINKS = ("🏃", "🧪")
"""MLflow prints a link for each run that ends."""


class Transcript:
    """Lines with the seconds since the start, printed as they come; measurements are stored."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self.facts: dict[str, Any] = {"seconds": {}}

    def say(self, text: str, indent: int = 0) -> None:
        """One line."""
        print(f"[{time.monotonic() - self._started:6.1f} s] {'    ' * indent}{text}", flush=True)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """A step that is timed."""
        self.say(f"$ {text}")
        started = time.monotonic()
        yield
        self.facts["seconds"][text] = round(time.monotonic() - started, 1)


def tell(made: Transcript, operated: Operated, run: Any) -> None:
    """What a flow run was, did and decided."""
    by = getattr(run.created_by, "type", None) or "API"
    waited = (run.start_time - run.expected_start_time).total_seconds() if run.start_time else float("nan")
    made.say(f"flow run “{run.name}” started by {by.lower()}, {waited:.1f} s after its time: {run.state.name}", 1)
    if run.state.message:
        made.say(run.state.message, 1)
    record = next(iter(found for found in [_record(operated, run)] if found), None)
    if record is not None:
        made.say(", ".join(f"{name} {status}" for name, status in statuses(record).items()), 1)
    for child in operated.children(run.id):
        made.say(f"child on the pool {child.work_pool_name}: “{child.name}”, {child.state.message}", 2)


def tell_champion(made: Transcript, operated: Operated) -> str:
    """The champion as MLflow's registry has it."""
    client = operated.mlflow()
    version = client.get_model_version_by_alias(MODEL, "champion")
    metrics = client.get_run(version.run_id).data.metrics
    value = next((got for name, got in metrics.items() if name.startswith("rigel/-/-/test/hits_at_1")), None)
    held = len(client.search_model_versions(f"name = '{MODEL}'"))
    score = "" if value is None else f", Hits@1 of rigel {value:.3f}"
    made.say(f"champion of {MODEL}: version {version.version} of {held}{score}", 1)
    return str(version.version)


def show(made: Transcript, servers: Servers, register: Register) -> None:
    """The transcript."""
    operated = Operated(servers)
    for name, seconds in servers.seconds.items():
        made.say(f"{name} up in {seconds:.1f} s", 1)
    rows = servers.query("prefect", "SELECT split_part(version(), ' ', 2), count(*) FROM pg_stat_activity")
    made.say(
        f"PostgreSQL {rows[0][0]} serves {rows[0][1]} connections; Prefect {servers.prefect}, MLflow {servers.mlflow}",
        1,
    )
    with made.step("prefect deploy --all"):
        outcome = operated.deploy()
        if outcome.code:
            raise SystemExit(outcome.out + outcome.err)
    found = operated.deployments()
    made.say(", ".join(f"{name} (pool {one.work_pool_name})" for name, one in sorted(found.items())), 1)
    with made.step("prefect deploy --all --prefect-file prefect.yaml   # its profile changed to that of the register"):
        operated.deploy(register.profile())
    with made.step("prefect deployment run kgqa-pipeline/pipeline"):
        first = operated.run("pipeline", {})
    tell(made, operated, first)
    made.facts["champion"] = [tell_champion(made, operated)]

    with made.step("prefect deployment schedule create …   # 8 s ahead"):
        before = operated.ids("refresh")
        schedule = operated.schedule("refresh", 8)
        run = operated.fired("refresh", before)
        operated.unschedule("refresh", schedule)
    tell(made, operated, run)

    with made.step("kgqa kg build first.tsv --out graphs/register"):
        graph = operated.build_graph(register.first)
    for dump, what in ((register.facts, "a few facts came"), (register.relation, f"the relation {LATE} came")):
        before = operated.ids("refresh")
        with made.step(f"kgqa kg update graphs/register {dump.name} --out graphs/register --emit   # {what}"):
            event = operated.update_graph(graph, dump)
        made.say(f"event kgqa.kg.updated of {event['event']}, changes {json.dumps(event['changes'])}", 1)
        with made.step(f"… the refresh that the event starts, for {dump.name}"):
            run = operated.fired("refresh", before)
        tell(made, operated, run)
        made.facts["champion"].append(tell_champion(made, operated))


def measure_overhead(made: Transcript, servers: Servers, register: Register, profile: str) -> None:
    """A run with everything cached, in one process against these servers."""
    name: str | Path = profile
    if profile == "register":
        name = servers.folder / "register.yaml"
        name.write_text(yaml.safe_dump(register.profile(operations={"gpu_stages": "here"})))
    out = servers.folder / "overhead.json"
    words = ["-m", "benchmarks.operation.overhead", "--profile", name, "--json", out]
    with made.step(f"python -m benchmarks.operation.overhead --profile {profile}"):
        outcome = servers.python(*words, timeout=3600)
    for line in outcome.out.splitlines():
        if not line.startswith(LINKS):
            made.say(line, 1)
    if outcome.code:
        raise SystemExit(outcome.err)
    made.facts["overhead"] = json.loads(out.read_text())


def _record(operated: Operated, run: Any) -> dict[str, Any] | None:
    try:
        return operated.record(run.id)
    except AssertionError:
        return None


def main() -> None:
    """Bring it up, show it, take it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="a new folder for homes, logs and artifacts, which stays")
    parser.add_argument("--overhead", help="profile to measure with everything cached: atlas, or register")
    parser.add_argument("--only-overhead", action="store_true", help="leave the transcript out")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    made = Transcript()
    with tempfile.TemporaryDirectory(prefix="kgqa-operations-") as scratch:
        folder = (given.folder or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        made.say("$ PostgreSQL, prefect server, mlflow server, prefect worker start --pool cpu, --pool gpu")
        with Servers(folder, pools=() if given.only_overhead else ("cpu", "gpu")) as servers:
            register = write_register(folder / "register")
            if not given.only_overhead:
                show(made, servers, register)
            if given.overhead:
                measure_overhead(made, servers, register, given.overhead)
            stopping = time.monotonic()
        made.say(f"all stopped in {time.monotonic() - stopping:.1f} s")
    if given.json:
        results_file.write(given.json, {"conditions": conditions(7), "cores": os.cpu_count(), **made.facts}, FIELDS)


if __name__ == "__main__":
    main()
