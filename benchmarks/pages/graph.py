"""The tables of docs/graphs.md, docs/kg_subset.md and docs/logic.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.conditions import commit_name
from benchmarks.tables import Rows, Table, table

Json = Mapping[str, Any]
CONNECTORS = {
    "atlas_file": "Atlas, N-Triples",
    "sparql": "Atlas, a SPARQL endpoint",
    "triples": "as a property graph: KGTK's triples and qualifiers",
    "neo4j_json": "APOC's JSON",
    "neo4j_csv": "CSV of neo4j-admin",
    "graphml": "GraphML",
    "csv": "CSV tables",
    "tsv": "TSV tables",
    "parquet": "Parquet tables",
    "bolt": "a server over Bolt",
}
CONNECTED = (
    "{conditions[date]}, commit {conditions[commit]:commit}, seed {conditions[seed]}. *Same*: entities, triples, "
    "labels, types and qualifiers are, by key, those of the file of triples above.",
    Rows(
        "rows",
        "through | entities | literals | relations | triples | labels | types | qualifiers | rejects | same",
        "{name} | {entities:,} | {literals:,} | {relations:,} | {triples:,} | {labels:,} | {types:,} | "
        "{qualifiers:,} | {rejects:,} | {same_as_triples:yes}",
        CONNECTORS,
        right=True,
    ),
)

DELTA_NAMES = {
    "build": "`kg build`",
    "update, files": "`kg update --added --removed`",
    "update, new dump": "`kg update` with the new dump",
    "DKG": "`kg dkg`",
    "DKG, updated": "`kg dkg --old-dkg`",
}


def delta(found: Mapping[str, Any]) -> str:
    """The text between the marks."""
    made, machine = found["conditions"], found["machine"]
    rows = []
    for size in found["sizes"]:
        for name, text in DELTA_NAMES.items():
            one = size["steps"][name]
            compared = one["of"] != name
            rows.append(
                (
                    f"{size['lines']:,}", text, f"{one['seconds']:.2f}", f"{one['process_seconds']:.2f}",
                    f"{one['cpu_seconds']:.2f}", f"{one['peak_mb']:,.0f}",
                    f"{one['share']:.2f}" if compared else "–", f"{one['cpu_share']:.2f}" if compared else "–",
                )
            )  # fmt: skip
    loads = " and ".join(f"{size['load']:.1f}" for size in found["sizes"])
    text = (
        f"{made['date']}, commit {commit_name(made['commit'])}, seed {made['seed']}, {machine['cores']} cores "
        f"({machine['cpu']}), load {loads}, memory limit {found['memory_limit']}; "
        f"medians of {found['sizes'][0]['rounds']}, {found['share']:.1%} of the lines changed. Seconds of the "
        "command's work, of the whole process, and of the processor; *share* of making it anew, by work and by "
        "processor time of the process.\n\n"
    )
    columns = ("lines", "command", "work s", "process s", "cpu s", "peak MB", "share", "cpu share")
    return text + table(columns, rows, right=True)


LOGIC_KINDS = ("1 hop", "1 hop inverse", "2 hops", "COUNT", "ARGMAX")
LOGIC_ROADS = {"rdflib": "rdflib", "sql": "SQL", "sql, indexed": "SQL, indexed",
               "sql, indexed, with proof": "SQL, indexed, with proof", "in memory": "in memory"}  # fmt: skip


def logic(found: Sequence[Json]) -> str:
    """Forms a second beside rdflib's SPARQL."""
    parts = []
    for one in found:
        rows = []
        for road, shown in LOGIC_ROADS.items():
            cells = [one["kinds"][kind][road] for kind in LOGIC_KINDS]
            rows.append((shown, *(f"{c['per_cpu_second']:,.0f}" + (f" ({c['ratio']:.2f})" if "ratio" in c else "")
                                  for c in cells)))  # fmt: skip
        head = (f"{one['triples']:,} triples, {one['questions']} questions of a kind", *LOGIC_KINDS)
        parts.append(
            table(head, rows) + f"\nIndex {one['index_s']} s; arrays {one['memory_load_s']} s and {one['memory_gb']} "
            f"GB; rdflib {one['rdflib']} {one['rdflib_load_s']} s and {one['rdflib_gb']} GB.\n"
        )
    return "\n".join(parts)


SUBSET_SPEED = (
    "**Speed.** {speed[lines]:,} generated lines of N-Triples and a dump that repeats real entities; two hops around "
    "{speed[seeds]} entities, every pass from the beginning, in a process of its own; of {speed[rounds]} round(s) the "
    "one with the fewest processor seconds. {machine}, load {load[0]}, {date}, commit {commit:commit}, seed {seed}. "
    "The loop reads the lines three times with `str.split` and keeps sets of strings; it takes {speed[times_the_loop]} "
    "times as long as `kg subset`, and {speed[times_the_loop_processor]} times the processor seconds.",
    Rows(
        "speed/roads",
        "road | MB | s | CPU s | lines/s | MB/s | peak MB | edges kept",
        "{name} | {megabytes:,} | {seconds:,} | {processor_seconds:,} | {lines_a_second?:,} | "
        "{megabytes_a_second:,} | {peak_megabytes:,} | {edges_kept:,}",
        {
            "ntriples": "`kg subset`, N-Triples",
            "ntriples_gz": "`kg subset`, the same as gzip",
            "loop": "plain Python loop, N-Triples",
            "json": "`kg subset`, Wikidata JSON",
        },
        right=True,
    ),
)
SETS = {
    "mintaka_dev_wikidata_samples": ("Mintaka dev", "49 real entities of the Wikidata samples", 2),
    "mintaka_dev_wikidata_mini_one_hop": ("Mintaka dev", "`wikidata_mini`", 1),
    "mintaka_dev_wikidata_mini": ("Mintaka dev", "`wikidata_mini`", 2),
    "webqsp_train_freebase_of_its_parses": ("WebQSP train", "Freebase RDF of its own parses", 2),
    "webqsp_train_wikidata_mini_by_p646": ("WebQSP train", "`wikidata_mini` with P646", 2),
}


def _question_sets(found: Json) -> str:
    subsets = found["questions"]["subsets"]
    rows = []
    for name, (questions, graph, hops) in SETS.items():
        one = subsets[name]
        rows.append(
            (questions, graph, hops, one["lines_read"], one["seeds"], one["seeds"] - one["seeds_not_found"],
             one["entities"], one["kept"]["edges"], one["hubs_cut"],
             f"{one['with_topic_and_answer']:,} of {one['with_entity_answers']:,}", one["seconds"])
        )  # fmt: skip
    head = ("questions", "graph", "hops", "lines", "seeds", "found", "entities", "edges", "hubs cut",
            "topic and answer in it", "s")  # fmt: skip
    return (
        "**Question sets.** `max_degree` is 1,000, but without limit for the last row. *Topic and answer in it*: of "
        "the questions whose answers are entities, those with a topic and a gold answer in the subset.\n\n"
        + table(head, rows, right=True)
    )


def _survivors(found: Json) -> str:
    counts = found["questions"]["webqsp_train_over_wikidata"]
    learnt = counts["paths_learnt"]
    rows = [("questions", counts["questions"], counts["questions_surviving"])]
    rows += [
        (name, counts[name]["all"], counts[name]["surviving"]) for name in ("topics", "answers", "relations", "paths")
    ]
    reasons = ", ".join(f"{count:,} because {reason}" for reason, count in counts["rejected_by_reason"].items())
    return (
        "**WebQSP's train split over Wikidata by P646**, as far as `wikidata_mini` and FB15k-237's map of 14,515 ids "
        "go; over the whole of Wikidata more would survive. Paths are learnt from the same questions: of "
        f"{learnt['foreign_paths']} Freebase paths {learnt['with_ends_in_the_graph']} have a question with both "
        f"ends in the graph, and {learnt['learnt']} have a Wikidata path that finds the answers. Rejected: {reasons}. "
        f"{counts['questions_with_every_answer']:,} of the surviving questions keep every answer.\n\n"
        + table(("what", "all", "surviving"), rows, right=True)
    )


TABLES = (
    Table("connectors", "docs/graphs.md", "connectors", CONNECTED),
    Table("delta", "docs/graphs.md", "delta", delta),
    Table("kg_subset", "docs/kg_subset.md", "kg_subset", (*SUBSET_SPEED, _question_sets, _survivors)),
    Table("logic", "docs/logic.md", "logic", logic),
)
