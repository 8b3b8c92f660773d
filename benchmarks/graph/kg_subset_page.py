"""The tables of docs/kg_subset.md, as `make bench-docs` writes them from benchmarks/results/kg_subset.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.conditions import commit_name
from benchmarks.tables import table

ROADS = {
    "ntriples": "`kg subset`, N-Triples",
    "ntriples_gz": "`kg subset`, the same as gzip",
    "loop": "plain Python loop, N-Triples",
    "json": "`kg subset`, Wikidata JSON",
}
SETS = {
    "mintaka_dev_wikidata_samples": ("Mintaka dev", "49 real entities of the Wikidata samples", 2),
    "mintaka_dev_wikidata_mini_one_hop": ("Mintaka dev", "`wikidata_mini`", 1),
    "mintaka_dev_wikidata_mini": ("Mintaka dev", "`wikidata_mini`", 2),
    "webqsp_train_freebase_of_its_parses": ("WebQSP train", "Freebase RDF of its own parses", 2),
    "webqsp_train_wikidata_mini_by_p646": ("WebQSP train", "`wikidata_mini` with P646", 2),
}

Json = Mapping[str, Any]


def figures(found: Json) -> str:
    """The text between the marks."""
    return "\n".join([_speed(found), _question_sets(found), _survivors(found)])


def _speed(found: Json) -> str:
    speed = found["speed"]
    rows = []
    for name, text in ROADS.items():
        one = speed["roads"][name]
        rows.append(
            (text, one["megabytes"], one["seconds"], one["processor_seconds"], one.get("lines_a_second", "–"),
             one["megabytes_a_second"], one["peak_megabytes"], one["edges_kept"])
        )  # fmt: skip
    return (
        f"**Speed.** {speed['lines']:,} generated lines of N-Triples and a dump that repeats real entities; two "
        f"hops around {speed['seeds']} entities, every pass from the beginning, in a process of its own; of "
        f"{speed['rounds']} round(s) the one with the fewest processor seconds. {found['machine']}, "
        f"load {found['load'][0]}, {found['date']}, commit {commit_name(found['commit'])}, seed {found['seed']}. "
        "The loop reads the lines three times with `str.split` and keeps sets of strings; it takes "
        f"{speed['times_the_loop']} times as long as `kg subset`, and {speed['times_the_loop_processor']} times the "
        "processor seconds.\n\n"
        + table(("road", "MB", "s", "CPU s", "lines/s", "MB/s", "peak MB", "edges kept"), rows, right=True)
    )


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
