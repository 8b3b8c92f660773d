"""`python -m tests.support.command_fuzzer`: run the fuzzer, show violations as they come, write the table."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.command_fuzzer.run import SEED, chosen, run


def main() -> int:
    """Run the cases that the options choose; 1 when one broke something."""
    options = argparse.ArgumentParser(prog="command_fuzzer", description=__doc__)
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--most", type=int, help="cases; every one when absent")
    options.add_argument("--only", default="", help="commands that begin so")
    options.add_argument("--flows", action="store_true", help="also cases that run a flow; starts a Prefect server")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--json", type=Path, help="file for the table of outcomes")
    given = options.parse_args()
    found = chosen(given.seed, flows=given.flows, most=given.most, only=given.only)
    started = time.monotonic()

    def told(row: dict[str, Any]) -> None:
        if row["violations"]:
            what = f"{row['role']} {row['kind']}: exit {row['code']}, {row['seconds']} s"
            print(f"#{row['number']} kgqa {row['call']}\n    {what}: {'; '.join(row['violations'])}")
            print(f"    | {row['message']}", flush=True)

    with tempfile.TemporaryDirectory(prefix="kgqa-fuzzer-", ignore_cleanup_errors=True) as folder:
        environment = {}
        if given.flows:
            from tests.support.command_fuzzer.flows import environment_of_flows

            environment = environment_of_flows(Path(folder))
        rows = run(found, Path(folder), seed=given.seed, workers=given.workers, environment=environment, told=told)
    if given.flows:
        from tests.support.prefect_server import stop

        stop()
    broken = [row for row in rows if row["violations"]]
    seconds = time.monotonic() - started
    cpu = sum(row["cpu"] for row in rows)
    print(f"{len(rows)} cases, {len(broken)} with violations, {seconds:.0f} s, {cpu:.0f} s of processor in the cases")
    if given.json:
        from tests.support.command_fuzzer.table import write

        write(given.json, rows, given.seed, sum(row["seconds"] for row in rows))
    return bool(broken)


if __name__ == "__main__":
    raise SystemExit(main())
