"""SPARQL of question sets: queries read as forms, executed, turned into gold subgraphs, and giving the gold answers.

    python -m benchmarks.questions.sparql_road [--json FILE] [--only SET …] [--data DIR] [--most N]
    python -m benchmarks.questions.sparql_road --table [--json FILE]

Sets and graphs are those of `sparql_road_sets`.  Sets that are finished stay in the JSON; --only makes one again.

forms: `read` by `logic.sparql`, its proof is the subgraph.  execution: every query, through `logic.sparql_execution`:
`executed` (it ran within 10 s and 200,000 triples), `result` (not empty; a count of 0 and a no count as empty),
`subgraph` (some solution has triples).  without_form: the same of queries that no form writes.  together: the form
where there is one and it has a subgraph, else execution; as the corpus stage takes them.  Of each, `gold_found` (every
gold answer is among the results) and `equal` (the results are the gold answers) of the `held` queries, those whose gold
answers the graph holds.  agreement: queries that both roads run, and those with the same result.  Reasons are counted.
LC-QuAD 2 and QALD-9 have no answers in their files.  Of LC-QuAD 2 only the test file is here; docs/test_sets.md says
what was seen of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import DATA, RESULTS, commit_name, conditions
from benchmarks.questions.sparql_road_sets import SEED, SETS, AnnotatedQuery
from benchmarks.results_file import fields_below
from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.sparql import from_sparql
from kgqa_core.logic.sparql_execution.engine import NotExecuted
from kgqa_core.logic.sparql_execution.run import SparqlRunner
from kgqa_core.logic.sparql_query import Outside

FIELDS = (*fields_below("sets/*"), "sets/...")
"""What the result file holds (benchmarks/results_file.py)."""
FIGURES = ("subgraph", "gold_found", "equal")


@dataclass
class Outcome:
    """What one road makes of one query.  ran: it was read and run; found: keys of results; triples: of the subgraph."""

    ran: bool = False
    found: frozenset[str] | None = None
    triples: int = 0
    reason: str = ""


@dataclass
class Counts:
    """Sums over queries."""

    numbers: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, query: AnnotatedQuery, outcome: Outcome, ran: str) -> None:
        """Counts one query; ran: the name of having run."""
        if not outcome.ran:
            self.reasons["not_" + ran][outcome.reason] += 1
            return
        self.numbers[ran] += 1
        self.numbers["result"] += bool(outcome.found)
        self.numbers["subgraph"] += outcome.triples > 0
        if not outcome.triples:
            self.reasons["without_subgraph"][outcome.reason or "it finds nothing in this graph"] += 1
        if query.triples is not None and outcome.found is not None:
            self.numbers["gold_found"] += outcome.found >= set(query.answers)
            self.numbers["equal"] += outcome.found == set(query.answers)

    def record(self, ran: str, held: int) -> dict[str, Any]:
        """The counts; of gold answers only where the graph holds some."""
        names = (ran, "result", "subgraph", *(("gold_found", "equal") if held else ()))
        counted = {name: dict(own.most_common()) for name, own in sorted(self.reasons.items())}
        return {name: self.numbers[name] for name in names} | counted


def by_form(query: AnnotatedQuery, store: KgStore | None) -> Outcome:
    """The form of a query, and its proof."""
    try:
        form = from_sparql(query.sparql)
    except Outside as fault:
        return Outcome(reason=fault.reason)
    except FormError:
        return Outcome(reason="no standard SPARQL")
    if store is None:
        return Outcome(ran=True, reason="there is no graph")
    try:
        result = execute(form, store, without_named="!=" in query.sparql)
    except (FormError, FormTimeout) as fault:
        return Outcome(ran=True, reason=_kind(fault))
    if result.value is not None:
        found = frozenset(map(str, [result.value] if result.value else []))
    else:
        found = frozenset(store.entity_keys(result.nodes).values())
    return Outcome(True, found, len(result.proof))


def by_execution(query: AnnotatedQuery, runner: SparqlRunner) -> Outcome:
    """A query executed, and its first solutions."""
    try:
        result = runner.run(query.sparql)
    except FormTimeout:
        return Outcome(reason="it takes longer than 10 s")
    except NotExecuted as fault:
        return Outcome(reason=fault.reason)
    except FormError:
        return Outcome(reason="no standard SPARQL")
    values = (str(result.truth),) if result.truth else tuple(value for value in result.values if value != "0")
    found = frozenset((*runner.store.entity_keys(result.nodes).values(), *values))
    triples = {triple for one in result.solutions for triple in one.triples}
    reason = "it names what the graph lacks" if result.missing else ""
    return Outcome(True, found, len(triples), reason)


def measure(queries: Sequence[AnnotatedQuery], store: KgStore | None) -> dict[str, Any]:
    """The record of one set."""
    forms, execution, without_form, together = Counts(), Counts(), Counts(), Counts()
    agreement, sizes, seconds = Counter[str](), [], []
    held = sum(one.triples is not None for one in queries)
    runner = SparqlRunner(store) if store is not None else None
    for one in queries:
        form = by_form(one, store)
        forms.add(one, form, "read")
        if runner is None:
            continue
        started = time.perf_counter()
        run = by_execution(one, runner)
        seconds.append(time.perf_counter() - started)
        execution.add(one, run, "executed")
        if not form.ran:
            without_form.add(one, run, "executed")
        best = form if form.ran and form.triples else run
        together.add(one, best, "executed")
        if best.triples:
            sizes.append(best.triples)
        if run.ran and form.found is not None:
            agreement["both"] += 1
            agreement["same"] += run.found == form.found
    record: dict[str, Any] = {"queries": len(queries), "held": held, "forms": forms.record("read", held)}
    if runner is None:
        return record
    runner.close()
    return record | {
        "execution": execution.record("executed", held),
        "without_form": without_form.record("executed", held),
        "together": together.record("executed", held),
        "not_held": dict(Counter(one.reason for one in queries if one.triples is None).most_common()),
        "agreement": {name: agreement[name] for name in ("both", "same")},
        "median_triples": statistics.median(sizes) if sizes else None,
        "milliseconds": {
            "p50": round(1000 * statistics.median(seconds), 1),
            "p99": round(1000 * sorted(seconds)[int(0.99 * len(seconds))], 1),
        }
        if seconds
        else None,
    }


def _kind(fault: Exception) -> str:
    """What a fault says, without the names in it."""
    if "is not in this graph" in str(fault):
        return "an element of the form is not in the graph"
    return "it takes too long" if isinstance(fault, FormTimeout) else str(fault)[:80]


def run(name: str, data: Path, most: int | None = None) -> dict[str, Any]:
    """The record of a set, with its conditions."""
    with tempfile.TemporaryDirectory() as folder:
        queries = list(SETS[name].queries(data))[:most]
        store = SETS[name].graph(data, Path(folder), queries) if queries else None
        try:
            return {"conditions": conditions(SEED), "graph": SETS[name].described, **measure(queries, store)}
        finally:
            if store is not None:
                store.close()


def table(record: dict[str, Any]) -> str:
    """The sets as a markdown table, and the conditions beneath."""
    lines = [
        "| set | graph | queries | as forms | executed | of those without a form | subgraphs | gold answers held "
        "| equal to them |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in SETS:
        if (own := record["sets"].get(name)) is None:
            continue
        total, forms = own["queries"], own["forms"]
        cells = [f"{total:,}", _share(forms["read"], total)]
        if "execution" in own:
            rest = total - forms["read"]
            cells += [
                _share(own["execution"]["executed"], total),
                _share(own["without_form"]["executed"], rest),
                _share(own["together"]["subgraph"], total),
                f"{own['held']:,}" if own["held"] else "–",
                _share(own["together"]["equal"], own["held"]) if own["held"] else "–",
            ]
        else:
            cells += ["–"] * 5
        lines.append(f"| {name} | {own['graph']} | {' | '.join(cells)} |")
    made = {(commit_name(own["conditions"]["commit"]), own["conditions"]["date"]) for own in record["sets"].values()}
    lines += ["", f"Conditions: {', '.join(f'commit {commit}, {date}' for commit, date in sorted(made))}; seed {SEED}."]
    return "\n".join(lines)


def _share(part: int, total: int) -> str:
    return f"{part:,} ({100 * part / total:.1f} %)" if total else "–"


def main() -> None:
    """Reads the command line, and measures or prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--only", action="append", choices=tuple(SETS))
    parser.add_argument("--most", type=int, help="queries of a set at most, for trials")
    parser.add_argument("--json", type=Path, default=RESULTS / "sparql_road.json")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    record: dict[str, Any] = {"sets": {}}
    if given.json.is_file():
        record = json.loads(given.json.read_text(encoding="utf-8"))
    if given.table:
        print(table(record))
        return
    for name in given.only or [one for one in SETS if one not in record["sets"]]:
        record["sets"][name] = run(name, given.data, given.most)
        ordered = {"sets": {one: record["sets"][one] for one in SETS if one in record["sets"]}}
        results_file.write(given.json, ordered, FIELDS)
        print(name, json.dumps(record["sets"][name], indent=1, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
