"""Writes every generated table of the docs from the result files; `make bench-docs` runs it and leaves no difference.

    python -m benchmarks.docs_tables                       writes the tables into their pages
    python -m benchmarks.docs_tables --check               names what differs, and result files that are not as declared
    python -m benchmarks.docs_tables --drop FILE KEY …     takes an entry out of a result file whole (stale, or by hand)

A table stands in its page between `<!-- table: NAME -->` and `<!-- end -->`; nothing between them is typed by hand.
RESULTS says which script writes which file; the rooms of benchmarks/pages have the records of the tables.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import ROOT, commit_name
from benchmarks.pages import answers, graph, performance, serving
from benchmarks.tables import Table, table

RESULTS_FOLDER = Path("benchmarks/results")


@dataclass(frozen=True)
class ResultFile:
    """A result file and the script that writes it."""

    name: str
    script: str
    """From the root of the repository; its FIELDS say what it writes."""
    since: str = ""
    """Where the file was made before its script wrote its conditions: the commit that it came with, so that it was made
    at or before that; goes with the next run."""


RESULTS: tuple[ResultFile, ...] = (
    ResultFile("ablation", "benchmarks/answers/ablation.py"),
    ResultFile("abstention", "benchmarks/answers/abstention.py", "a7353cc, 2026-11-22"),
    ResultFile("answerability", "benchmarks/papers/answerability.py", "fd418cf, 2026-11-22"),
    ResultFile("artifact_digests", "benchmarks/operation/artifact_digests.py"),
    ResultFile("builtin", "tools/builtin_reader/evaluate.py"),
    ResultFile("bases", "benchmarks/models/bases.py"),
    ResultFile("pretrained", "benchmarks/models/pretrained.py"),
    ResultFile("cases", "benchmarks/answers/cases.py"),
    ResultFile("command_fuzzer", "tests/support/command_fuzzer/table.py", "2896250, 2026-11-23"),
    ResultFile("connectors", "benchmarks/graph/connectors.py"),
    ResultFile("data_sets", "benchmarks/questions/data_sets.py"),
    ResultFile("delta", "benchmarks/graph/delta.py"),
    ResultFile("demo", "benchmarks/operation/demo.py"),
    ResultFile("dialogues", "benchmarks/answers/dialogues.py"),
    ResultFile("dialogues_dev", "benchmarks/answers/dialogues.py"),
    ResultFile("dkg_follow", "benchmarks/graph/dkg_follow.py"),
    ResultFile("dkg_follow_metaqa", "benchmarks/graph/dkg_follow.py"),
    ResultFile("dkg_scale", "benchmarks/graph/dkg_scale.py"),
    ResultFile("feedback_loop", "benchmarks/serving/feedback_loop.py"),
    ResultFile("compositional", "benchmarks/papers/compositional.py"),
    ResultFile("conformal", "benchmarks/answers/conformal.py"),
    ResultFile("noa", "benchmarks/answers/noa.py"),
    ResultFile("dry_runs", "benchmarks/papers/dry_runs.py"),
    ResultFile("first_answer", "benchmarks/operation/first_answer.py"),
    ResultFile("first_hour", "benchmarks/operation/first_hour.py"),
    ResultFile("forecast", "benchmarks/models/forecast.py"),
    ResultFile("grailqability", "benchmarks/papers/grailqability.py"),
    ResultFile("graph_alone", "benchmarks/answers/graph_alone.py"),
    ResultFile("head_start_calibration", "tools/head_start/calibrate.py"),
    ResultFile("ingest", "benchmarks/graph/ingest.py"),
    ResultFile("installed_size", "benchmarks/operation/installed_size.py"),
    ResultFile("kg_subset", "benchmarks/graph/kg_subset.py"),
    ResultFile("kill_commands", "benchmarks/operation/kill_commands.py"),
    ResultFile("languages", "benchmarks/answers/languages.py"),
    ResultFile("linking", "benchmarks/answers/linking.py", "05696d7, 2026-11-22"),
    ResultFile("llm", "benchmarks/models/llm.py"),
    ResultFile("logic", "benchmarks/graph/logic.py"),
    ResultFile("long_questions", "benchmarks/serving/long_questions.py"),
    ResultFile("ltgen", "benchmarks/papers/ltgen.py"),
    ResultFile("new_relations", "benchmarks/papers/new_relations.py"),
    ResultFile("operations", "benchmarks/operation/operations.py", "2ce5c47, 2026-11-22"),
    ResultFile("parsers", "benchmarks/papers/parsers.py"),
    ResultFile("passages", "benchmarks/answers/passages.py"),
    ResultFile("real_sets", "benchmarks/answers/real_sets.py"),
    ResultFile("peers", "benchmarks/papers/peers.py"),
    ResultFile("people_dev", "benchmarks/answers/people.py"),
    ResultFile("people_dev2", "benchmarks/answers/people.py"),
    ResultFile("people_dev3", "benchmarks/answers/people.py"),
    ResultFile("people_dev3_first", "benchmarks/answers/people.py"),
    ResultFile("people_dev4", "benchmarks/answers/people.py"),
    ResultFile("people_dev4_first", "benchmarks/answers/people.py"),
    ResultFile("people_dev5", "benchmarks/answers/people.py"),
    ResultFile("people_dev5_first", "benchmarks/answers/people.py"),
    ResultFile("people_dev6", "benchmarks/answers/people.py"),
    ResultFile("people_dev6_first", "benchmarks/answers/people.py"),
    ResultFile("people_dev7", "benchmarks/answers/people.py"),
    ResultFile("people_dev7_first", "benchmarks/answers/people.py"),
    ResultFile("people_dev8", "benchmarks/answers/people.py"),
    ResultFile("people_dev8_first", "benchmarks/answers/people.py"),
    ResultFile("people_dev9", "benchmarks/answers/people.py"),
    ResultFile("people_dev9_first", "benchmarks/answers/people.py"),
    ResultFile("people_locked2", "benchmarks/answers/people.py"),
    ResultFile("people_locked3", "benchmarks/answers/people.py"),
    ResultFile("quiz", "benchmarks/answers/quiz.py"),
    ResultFile("relation_ranking", "benchmarks/papers/relation_ranking.py", "2852f8b, 2026-11-22"),
    ResultFile("dkg_peers", "benchmarks/graph/dkg_peers.py"),
    ResultFile("large_graph", "benchmarks/graph/large_graph.py"),
    ResultFile("gpu", "benchmarks/models/gpu.py"),
    ResultFile("rra_published", "benchmarks/papers/rra_published.py"),
    ResultFile("serve", "benchmarks/serving/serve.py"),
    ResultFile("serve_clients", "benchmarks/serving/serve_clients.py"),
    ResultFile("serve_faults", "benchmarks/serving/serve_faults.py"),
    ResultFile("sketch", "benchmarks/papers/sketch.py"),
    ResultFile("sparql_road", "benchmarks/questions/sparql_road.py"),
    ResultFile("thesaurus", "benchmarks/answers/thesaurus.py"),
    ResultFile("translated", "benchmarks/answers/translated.py"),
    ResultFile("times", "benchmarks/operation/times.py"),
    ResultFile("training", "benchmarks/models/training.py"),
    ResultFile("whole_table", "benchmarks/answers/whole_table.py"),
    ResultFile("wikidata_json", "benchmarks/graph/wikidata_json.py"),
)


TABLES: tuple[Table, ...] = (*answers.TABLES, *graph.TABLES, *performance.TABLES, *serving.TABLES)

WITHOUT_RESULT: Mapping[str, str] = {
    "docs/atlas.md": "counts of the bundled questions, which the code makes from a seed",
    "docs/security.md": "status codes",
}
"""Pages that still have tables of figures that no result file holds, and why; the list may only become shorter."""

REBASED = frozenset({"38e0cca", "49a9a7e", "c3c88b0", "efa9a78"})
"""Commits of result files that are in no history, since they were rebased before they were published; no more."""

COMMIT = re.compile(r"[0-9a-f]{7,40}( with changes)?")
BLOCK = re.compile(r"<!-- table: (?P<name>[^>]+?) -->\n(?P<text>.*?)<!-- end -->\n", re.DOTALL)


def load(result: str) -> Any:
    """The JSON of a result file."""
    return json.loads((ROOT / RESULTS_FOLDER / f"{result}.json").read_text(encoding="utf-8"))


def rendered(page: str) -> str:
    """A page with each of its tables written anew.

    Raises ValueError where its markers and TABLES name different tables.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    own = {table.name: table for table in TABLES if table.page == page} | (
        {"results": Table("results", page, "", lambda _: result_files())} if page == RESULTS_PAGE else {}
    )
    marked = [match["name"] for match in BLOCK.finditer(text)]
    if sorted(marked) != sorted(own):
        raise ValueError(f"{page} has markers of {sorted(marked)}, benchmarks/docs_tables.py tables {sorted(own)}")

    def replaced(match: re.Match[str]) -> str:
        table = own[match["name"]]
        made = table.write(load(table.result) if table.result else None).strip("\n")
        marked = "".join(f"\n\n{mark}" for mark in marks(table.result) if mark not in made)
        return f"<!-- table: {table.name} -->\n{made}{marked}\n<!-- end -->\n"

    return BLOCK.sub(replaced, text)


def marks(result: str) -> list[str]:
    """What stands below each table of a result file whose figures cannot be made again exactly."""
    if not result:
        return []
    file = next(one for one in RESULTS if one.name == result)
    changed = sorted({commit_name(commit) for commit in _commits(load(result)) if commit.endswith(" with changes")})
    return [f"*Of an unknown commit, at or before {file.since}.*"] * bool(file.since) + [
        f"*In part of a tree with changes that were not kept: {commit}.*" for commit in changed
    ]


RESULTS_PAGE = "docs/evaluation.md"


def result_files() -> str:
    """Every result file with its script and the commits that its figures were made at."""
    rows = []
    for one in RESULTS:
        names = {commit_name(commit) for commit in _commits(load(one.name))}
        commits = sorted(f"{name} (rebased since)" if name in REBASED else name for name in names)
        unknown = f"not recorded: {one.since} or before"
        rows.append((f"`{one.name}.json`", f"`{one.script}`", ", ".join(commits) or unknown))
    return table(("file", "made by", "commit"), rows)


def _commits(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, own in value.items():
            if name in ("commit", "git") and isinstance(own, str):
                yield own
            else:
                yield from _commits(own)
    elif isinstance(value, list):
        for own in value:
            yield from _commits(own)


def faults() -> list[str]:
    """What a result file holds that its script does not declare, or lacks."""
    found = []
    for one in RESULTS:
        fields = results_file.declared(ROOT / one.script)
        for problem in results_file.problems(load(one.name), fields):
            if not one.since or not re.fullmatch(r"lacks '(.*/)?(conditions/.*|commit)'", problem):
                found.append(f"{one.name}.json: {problem} ({one.script})")
        commits = set(_commits(load(one.name)))
        found += [
            f"{one.name}.json: {commit!r} is no commit that a script writes" for commit in sorted(commits)
            if not COMMIT.fullmatch(commit)
        ]  # fmt: skip
        if bool(one.since) == bool(commits):
            does = f"records its commit, so that nothing is to say of {one.since!r}" if commits else "records no commit"
            found.append(f"{one.name}.json: {does} ({one.script})")
    return found


def drop(file: Path, keys: Sequence[str]) -> None:
    """Takes entries out of a result file, each named by its path with ` > ` between the names."""
    text = file.read_text(encoding="utf-8")
    document = json.loads(text)
    for key in keys:
        *above, last = key.split(" > ")
        holder = document
        for name in above:
            holder = holder[int(name) if isinstance(holder, list) else name]
        del holder[last]
    file.write_text(json.dumps(document, indent=1, ensure_ascii="\\u" in text) + "\n", encoding="utf-8")


def pages() -> list[str]:
    """The pages that have generated tables."""
    return sorted({table.page for table in TABLES} | {RESULTS_PAGE})


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: 0, or 1 where --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--drop", nargs="+", metavar=("FILE", "KEY"))
    given = parser.parse_args(arguments)
    if given.drop:
        drop(Path(given.drop[0]), given.drop[1:])
        return 0
    found = faults()
    for page in pages():
        text = rendered(page)
        if text == (ROOT / page).read_text(encoding="utf-8"):
            continue
        if given.check:
            found.append(f"{page} is not what the result files say; run make bench-docs")
        else:
            (ROOT / page).write_text(text, encoding="utf-8")
            sys.stdout.write(f"{page} written\n")
    for line in found:
        sys.stderr.write(line + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
