"""The tables of answers, of the papers and of operation, each a record, or a function where it cannot be said so."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import yaml

from benchmarks.conditions import ROOT, commit_name
from benchmarks.operation import kill_commands
from benchmarks.tables import MADE, Rows, Table, conditions_line, interval, late, percent, table
from kgqa_core.papers.grailqability.report import rule_of

Json = Mapping[str, Any]
SHARE = "{{{0}[{1}]:*100 .0f}} [{{{0}[low]:*100 .0f}}, {{{0}[high]:*100 .0f}}]"
"""A share in percent with its interval, of an entry and the name of its value."""
PRETRAINED = (
    f"{MADE} {{model[name]}}, digest `{{model[revision]}}`.",
    "{questions} test questions of Atlas, prompt `sen2023`, in percent with 95 % bootstrap intervals. *Named*: a gold "
    "answer stands in the output; *exact*: it is the output. *Fixed* and *broken* count questions against the reader's "
    "row `hop_path`, by *named*; p is McNemar's.",
    Rows(
        "readers/*/.",
        "reader | facts | named | exact | fixed | broken | p",
        f"{{key1}} | {{key2}} | {SHARE.format('boundaries', 'value')} | {SHARE.format('exact', 'value')} | "
        "{fixed} | {broken} | {p:.2g}",
    ),
    lambda found: (
        "Seconds of one core for the answers from gold paths, with loading: "
        + ", ".join(f"{reader} {rows['gold paths']['cpu_seconds']:.0f}" for reader, rows in found["readers"].items())
        + "."
    ),
    "Different sentences that were written of hop_path's facts. *Unfaithful* ones name something that is in no triple; "
    "*untold* are triples that no sentence states.",
    Rows(
        "readers/builtin",
        "writer | sentences | unfaithful | untold triples",
        "{name} | {sentences[sentences]:,} | {sentences[unfaithful]?0 :,.0f} | {sentences[untold]?0 :,.0f}",
        {
            "hop_path, sentences of the trained rewriter": "builtin, trained",
            "hop_path, sentences of the pretrained model": "the pretrained model, untrained",
        },
    ),
    "Plans of `auto` for people/dev over Atlas, {chooser[without][questions]} questions, in percent:",
    Rows(
        "chooser",
        "chooser | exact | declined rightly | wrong above .8 | seconds a question",
        f"{{name}} | {SHARE.format('exact', 'share')} | {SHARE.format('declined_of_unanswerable', 'share')} | "
        "{wrong_above[0.8][share]:*100 .1f} [{wrong_above[0.8][low]:*100 .1f}, {wrong_above[0.8][high]:*100 .1f}] | "
        "{mean_seconds:.1f}",
        {"without": "none", "with": "the pretrained model"},
    ),
    "Its choices: {chooser[choices]:pairs}. It fixed {chooser[fixed]} answers and broke {chooser[broken]} "
    "(p = {chooser[p]:.2g}).",
)
DATA_NAMES = {"atlas": "Atlas", "zjqa": "ZJQA", "metaqa": "MetaQA", "simplequestions": "SimpleQuestions",
              "mintaka": "Mintaka", "rebel": "REBEL", "wikidata-mini": "`wikidata_mini`",
              "wikidata_mini": "`wikidata_mini`", "views": "`wikidata_mini` by views", "qald9": "QALD-9",
              "lcquad1": "LC-QuAD 1"}  # fmt: skip


def abstention(found: Json, name: str) -> str:
    """Figures of the abstainer on one benchmark."""
    own = found["sets"][name]
    scores = own["scores"]
    by = scores["auroc_by"]
    low, high = scores["auroc_interval"]
    levels = {"iid": "iid", "partial": "partial zero-shot", "full": "full zero-shot"}
    zero = ", ".join(f"{levels[key]} {one['auroc']:.3f} (n = {one['n']})" for key, one in sorted(by["level"].items()))
    drops = ", ".join(f"{key} {one['auroc']:.3f} (n = {one['n']})" for key, one in sorted(by["drop"].items()))
    rows = [
        ("AUROC", f"{scores['auroc']:.3f} [{low:.3f}, {high:.3f}]; {zero}"),
        ("by what was dropped", drops),
        ("expected calibration error", f"{scores['ece']:.3f}"),
        ("answered, of the answerable", f"{percent(scores['answered_of_answerable'])} %"),
        ("declined, of the unanswerable", f"{percent(scores['declined_of_unanswerable'])} %"),
        ("wrong answers among those given",
         f"{percent(scores['risk'])} %; {percent(scores['risk_without'])} % if all were given"),
        ("wrong reasons", f"{percent(scores['wrong_reasons'])} % by what is truly missing, "
         f"{percent(scores['wrong_reasons_by_drop'])} % by what was dropped"),
    ]  # fmt: skip
    return f"{conditions_line(own.get('conditions'))}\n\n" + table(("", ""), rows)


def answerability_sets(found: Json) -> str:
    """What was built of each graph, and what building and verifying cost."""
    rows = []
    for name in ("atlas", "zjqa", "wikidata-mini", "metaqa"):
        if name not in found["sets"]:
            continue
        made, checked = found["sets"][name]["build"], found["sets"][name].get("verify")
        counts = made["counts"]
        drops = {row["drop"]: row for row in made["drops"]}
        [shots] = [row for row in made["unanswerable_by_split"] if row["drop"] == "all"]
        partial, full, iid = (shots[f"dev_{kind}"] + shots[f"test_{kind}"] for kind in ("partial", "full", "iid"))
        verdict = "–"
        if checked:
            rules = checked["checked_and_faults"]
            faults = sum(pair[1] for pair in rules.values())
            verdict = f"{len(rules)} rules, {faults} faults; {_cost(checked['cost'])}"
        rows.append(
            (
                DATA_NAMES[name],
                f"{counts['questions']:,}",
                f"{percent(counts['unanswerable'] / counts['questions'])} %",
                " / ".join(f"{counts[f'by_{kind}']:,}" for kind in ("type", "relation", "entity", "fact")),
                f"{drops['all']['NK']:,} / {drops['all']['NA_only']:,}",
                f"{partial:,}, {full:,} of {partial + full + iid:,}",
                f"{counts['triples_left']:,} of {made['graphs']['ideal']['triples']:,}",
                f"{counts['left_out']:,}",
                _cost(made["cost"]),
                verdict,
            )
        )
    head = ("", "questions", "U", "type / relation / entity / fact", "NK / NA only",
            "zero-shot of dev and test: partial, full, of all", "triples left", "left out", "build",
            "verify")  # fmt: skip
    return table(head, rows)


def _cost(cost: Json) -> str:
    return f"{cost['cpu_seconds']:,.0f} s, {cost['peak_mb']:,} MB"


PARSERS = {"rng": "Rank only", "decode": "Retrieve and decode"}


def parsers(found: Json, name: str) -> str:
    """Scores of the parsers on one benchmark, in percent."""
    rows, sizes = [], {}
    for key, evaluated in sorted(found["sets"][name].get("evaluate", {}).items(), reverse=True):
        for system in evaluated["systems"]:
            test = system["scores"]["test"]
            sizes = {group: test[group]["EM"]["n"] for group in ("A", "U")}
            label = f"{PARSERS[system['parser']]}, {system['training']}{rule_of(system)}"
            cells = [percent(test[g][m]["value"]) for g in ("all", "A", "U") for m in ("F1(L)", "F1(R)", "EM")]
            more = [percent(test[g]["EM"]["value"]) if g in test else "–"
                    for g in ("NK", "NA", "iid", "zero-shot", "full zero-shot")]  # fmt: skip
            rows.append((label + (", gold topics" if key.endswith("gold") else ""), *cells, *more))
    head = ("", *(f"{g} {m}" if m == "F1(L)" else m for g in ("all", "A", "U") for m in ("F1(L)", "F1(R)", "EM")),
            "NK EM", "NA EM", "iid EM", "zero-shot EM", "full zero-shot EM")  # fmt: skip
    return (
        f"{DATA_NAMES[name]}, {sizes['A']:,} answerable (A) and {sizes['U']:,} unanswerable (U) test questions:\n\n"
        + table(head, rows)
    )


def linking(found: Json) -> str:
    """Precision, recall and time of each method on each set."""
    rows = []
    for place, methods in found["quality"].items():
        name = place.partition("/")[0]
        for method in sorted(methods):
            if method == "tagger, no context":
                continue
            own = methods[method]
            cells = (percent(own[key]) for key in ("precision", "recall", "f1", "recall_at_5"))
            rows.append((DATA_NAMES[name], method, f"{own['texts']:,}", *cells, f"{own['cpu_ms_a_text']:.2f}"))
    return table(("data", "method", "texts", "precision", "recall", "F1", "recall@5", "CPU ms"), rows)


LTGEN_SIZES = (
    Rows(
        ".",
        "graph, writer | entities I / II / III / IV | questions | dialogues | turns | 1 / 2 / 3 / >3 triples (turns) | "
        "seconds QA, Conv",
        "{name} | {draw[level_I]:,} / {draw[level_II]:,} / {draw[level_III]:,} / {draw[level_IV]:,} | "
        "{qa[counts][questions]:,} | {conv[counts][dialogues]:,} | {conv[counts][turns]:,} | "
        "{conv[counts][by_triples][1]:,} / {conv[counts][by_triples][2]:,} / {conv[counts][by_triples][3]:,} / "
        "{conv[counts][by_triples][>3]:,} | {qa[seconds]:.0f}, {conv[seconds]:.0f}",
        {
            f"{data}/{writer}": f"{DATA_NAMES[data]}, {writer}"
            for data in ("atlas", "wikidata_mini", "views")
            for writer in ("template", "loopback")
        },
    ),
)


def ltgen_rejects(found: Json) -> str:
    """What of the loopback writer's completions was rejected, and why."""
    places = [(data, kind) for data in ("atlas", "wikidata_mini") for kind in ("qa", "conv")]
    columns = [found[f"{data}/loopback"][kind]["rejects"] for data, kind in places]
    reasons = sorted({reason for column in columns for reason in column})
    head = ("reason", *(f"{DATA_NAMES[data]} {'QA' if kind == 'qa' else 'Conv'}" for data, kind in places))
    return table(head, ((reason, *(column.get(reason, "–") for column in columns)) for reason in reasons))


def operations(found: Json) -> str:
    """What orchestration costs when every stage is cached."""
    own = found["overhead"]
    spent = ", ".join(
        f"{name} {part['seconds']:.1f} s ({part['calls']} calls)"
        for name, part in sorted(own["spent_on"].items(), key=lambda pair: -pair[1]["seconds"])
    )
    return (
        f"{own['stages']} stages, all cached, median of {len(own['wall_seconds'])} runs: {own['median_seconds']:.1f} s "
        f"in all, **{own['seconds_a_stage']:.2f} s a stage**. Of these: {spent}; {own['not_attributed']:.1f} s are not "
        f"attributed.\n"
    )


def passages(found: Json) -> str:
    """Dense, BM25 and hybrid search over the abstracts."""
    own = found["rebel"]
    rows: list[tuple[str, ...]] = []
    for kind, example in own["examples"].items():
        for place, method in enumerate(("dense", "bm25", "hybrid")):
            scores = own["scores"][kind][method]
            name = f"**{kind}** (n = {scores['n']}): *{example}*" if place == 0 else ""
            hits = (
                f"{percent(s['value'])} ({percent(s['low'])}–{percent(s['high'])})"
                for s in (scores["hit_at_1"], scores["hit_at_10"])
            )
            rows.append((name, "BM25" if method == "bm25" else method, *hits, f"{scores['mrr']['value']:.3f}"))
    return table(("question", "", "Hits@1", "Hits@10", "MRR"), rows)


def passage_cells(found: Json) -> str:
    """Approximate search: recall of the exact ten, and time."""
    own = found["cells"]
    rows = [
        (name, percent(one["recall_of_flat"]), f"{one['cpu_ms_a_question']:.2f}", f"{one['bytes'] / 1e6:.0f}")
        for name, one in own.items() if isinstance(one, Mapping)
    ]  # fmt: skip
    head = (f"{own['passages']:,} labels, {own['cells']} cells", "recall of flat's ten", "CPU ms a question", "MB")
    return table(head, rows)


def relation_rankers(found: Json) -> str:
    """Recall at five of each ranker and seed on each set, and `amr` against `pair`."""
    rows = []
    for key, own in found["cells"].items():
        data, ranker, seed = key.rsplit("/", 2)
        low, high = own["interval"]
        learnt = f"{own['learnt_from']:,}" if "learnt_from" in own else "–"
        rows.append((DATA_NAMES[data], f"`{ranker}`", seed, f"{own['recall_at_5']:.3f} [{low:.3f}, {high:.3f}]",
                     f"{own['chance']:.3f}", own["gold"], own["mean_candidates"], learnt,
                     f"{own['cpu_seconds']:,.0f}"))  # fmt: skip
    head = ("data", "ranker", "seed", "recall@5 [95 %]", "five at random", "gold pairs", "candidates",
            "learnt from", "CPU s")  # fmt: skip
    lines = [table(head, rows)]
    for name, own in found["amr_against_pair"].items():
        low, high = own["interval"]
        by_seed = ", ".join(f"{value:+.3f}" for value in own["by_seed"])
        lines.append(
            f"`{name}` − `pair` on the same {own['questions']} questions of QALD-9: **{own['difference']:+.3f} "
            f"[{low:+.3f}, {high:+.3f}]**; by seed ({', '.join(own['seeds'])}): {by_seed}.\n"
        )
    return "\n".join(lines)


HEAD_START = (
    Rows(
        "cross_fitted/*/.",
        "questions | confidence | n | ECE | Brier score | given: right | wrong | above .8: right | wrong",
        "{key1} | {key2} | {questions} | {ece:.3f} | {brier:.3f} | {given[right]} | {given[wrong]} | "
        "{row[above_0.8][right]} | {row[above_0.8][wrong]}",
    ),
)


DIALOGUES = (
    f"{MADE} Set *{{set}}*, {{dialogues}} dialogues; wrong answers above .8: {{wrong_above[0.8][share]:.3f}}.",
    Rows("graphs", "graph | right | 95 % | turns", "{key} | {share:.3f} | {low:.2f}–{high:.2f} | {n}"),
    "All: {turns[share]:.3f} ({turns[low]:.2f}–{turns[high]:.2f}); the first turns: {first_turns[share]:.3f}.",
)
"""How often the second and third turns of dialogues are right."""

BOARDS = ROOT / "tests" / "scoreboard"
SETS = {"people, atlas": "people, Atlas", "people, wikidata_mini": "people, `wikidata_mini`"}
VARIANTS = {"with": "all", "without": "without the graph's entries", "neither": "nor Wikidata's names"}


def thesaurus(found: Json) -> str:
    """What is answered with and without the words for the relations of the graph that is scored."""
    rows = []
    for name, row in found["sets"].items():
        matching = f"{row['entries']['matching']} of {row['entries']['all']}"
        for variant, title in VARIANTS.items():
            own = row[variant]
            exact = interval(own["exact"])
            figures = ("hits_at_1", "declined", "wrong_above", "missed_above")
            shares = [f"{own[figure]['share']:.3f}" if figure in own else "–" for figure in figures]
            rows.append((SETS.get(name, name), matching, title, own["questions"], exact, *shares))
    head = ("questions", "entries of the graph", "words", "n", "exact [95 %]", "Hits@1", "declined wrongly",
            "not exact above .8", "first answer wrong above .8")  # fmt: skip
    return f"{table(head, rows)}\n{conditions_line(found['conditions'])}\n"


def people(found: Json) -> str:
    """Figures of a set of people's questions, by graph and of all."""
    rows = []
    for name, own in (*found.get("graphs", {}).items(), ("all" if "graphs" in found else found["graph"], found)):
        asked, told = own["answerable"], own["confidence"]
        figures = [own[key]["share"] for key in ("wrongly_declined", "among_ten")]
        more = [own["declined_of_unanswerable"]["share"], own["wrong_above"]["0.8"]["share"], told["ece"]]
        shown = [f"{share:.3f}" if share is not None else "–" for share in (*figures, *more)]
        rows.append((name, asked, interval(own["exact"]), *shown[:2], own["questions"] - asked, *shown[2:]))
    head = ("graph", "answerable", "exact [95 %]", "declined wrongly", "among ten", "not answerable",
            "declined rightly", "wrong above .8", "ECE")  # fmt: skip
    kinds = [(kind, f"{exact:.3f}", n) for kind, (exact, n) in found["exact_by_type"].items()]
    return (
        f"{table(head, rows)}\nCommit {commit_name(found['commit'])}, {found['date']}. By type of question:\n\n"
        f"{table(('type', 'exact', 'n'), kinds)}"
    )


QUIZ = (
    Rows(
        "figures",
        "figure | share [95 %] | n",
        "{name} | {share:.3f} [{low:.3f}, {high:.3f}] | {n}",
        {"named": "a gold answer is named", "exact": "exact", "wrong": "wrong", "wrong_above_0.8": "wrong above .8",
         "declined": "declined"},
    ),
    lambda found: conditions_line(found["conditions"]),
)  # fmt: skip
CASES = (
    Rows(
        "total",
        "what became of them | questions",
        "{name} | {row}",
        {"questions": "all", "exact": "exact", "declined rightly": "declined rightly",
         "declined wrongly": "declined wrongly", "wrong": "wrong", "wrong above 0.8": "wrong above .8",
         "refused": "of a file that is refused"},
    ),
    lambda found: conditions_line(found["conditions"]),
)  # fmt: skip


SERVICES = (
    Rows(
        "graphs",
        "file | questions | exact | declined rightly | declined wrongly | wrong",
        "`{name}` | {row[counts][questions]} | {row[counts][exact]} | {row[counts][declined rightly]} | "
        "{row[counts][declined wrongly]} | {row[counts][wrong]}",
        {f"services/services.{ending}": f"services.{ending}" for ending in ("csv", "ttl", "graphml")},
    ),
)


def builtin(found: Json) -> str:
    """Held-out scores of the builtin model."""
    scores = found["scores"]
    names = [name.removeprefix("triples ") for name in scores if name.startswith("triples ")]
    shown = [(form, name) for name in names for form in ("triples", "sentences")]
    cells = {pair: f"{scores[' '.join(pair)]:.2f}" if " ".join(pair) in scores else "–" for pair in shown}
    read = [(name.replace(" zh", ", Chinese"), cells["triples", name], cells["sentences", name]) for name in names]
    parts = ("exact", "faithful", "all names", "nothing invented")
    told = [
        (language, *(f"{scores[f'{form}: {part}']:.2f}" for part in parts))
        for form, language in (("rewrite", "English"), ("rewrite zh", "Chinese"))
    ]
    return (
        f"{found['each']} samples of each; {conditions_line(found['conditions'])}\n\n"
        f"{table(('questions', 'from triples', 'from sentences'), read)}\n"
        f"{table(('telling triples', 'as expected', 'faithful', 'all names', 'nothing invented'), told)}"
    )


def scoreboard(_: None, name: str) -> str:
    """What a retriever has to score in the slow tests, and what it scored when that was set."""
    rows = []
    for path in sorted(BOARDS.glob("*.yaml")):
        board = yaml.safe_load(path.read_text(encoding="utf-8"))
        rows += [
            (board["profile"], one.get("group", "all"), one["metric"], one["at_least"], one["measured"])
            for one in board["scores"] if one["experiment"] == f"{name}/-/-"
        ]  # fmt: skip
    return table(("profile", "questions", "metric", "at least", "measured"), rows)


TABLES = (
    Table("builtin", "docs/model_cards/builtin.md", "builtin", builtin),
    Table("scoreboard/hop_path", "docs/model_cards/hop_path.md", "", partial(scoreboard, name="hop_path")),
    Table("scoreboard/rigel", "docs/model_cards/rigel.md", "", partial(scoreboard, name="rigel")),
    Table("thesaurus", "docs/auto.md", "thesaurus", thesaurus),
    Table("ablation", "docs/auto.md", "ablation", late("benchmarks.answers.ablation", "ablation")),
    Table("pretrained", "docs/models.md", "pretrained", PRETRAINED),
    Table("conformal", "docs/abstention.md", "conformal", late("benchmarks.answers.conformal", "tables")),
    Table("noa", "docs/abstention.md", "noa", late("benchmarks.answers.noa", "tables")),
    Table("dry_runs", "docs/papers.md", "dry_runs", late("benchmarks.papers.dry_runs", "tables")),
    Table("abstention/zjqa", "docs/abstention.md", "abstention", partial(abstention, name="zjqa")),
    Table("answerability/sets", "docs/answerability.md", "answerability", answerability_sets),
    Table("answerability/atlas", "docs/answerability.md", "answerability", partial(parsers, name="atlas")),
    Table("answerability/zjqa", "docs/answerability.md", "answerability", partial(parsers, name="zjqa")),
    Table("compositional", "docs/answerability.md", "compositional", late("benchmarks.papers.compositional", "tables")),
    Table("people/dev", "docs/auto.md", "people_dev", people),
    Table("people/dev2", "docs/auto.md", "people_dev2", people),
    Table("people/dev3", "docs/auto.md", "people_dev3", people),
    Table("people/dev3/first", "docs/auto.md", "people_dev3_first", people),
    Table("people/dev4", "docs/auto.md", "people_dev4", people),
    Table("people/dev4/first", "docs/auto.md", "people_dev4_first", people),
    Table("people/dev5", "docs/auto.md", "people_dev5", people),
    Table("people/dev5/first", "docs/auto.md", "people_dev5_first", people),
    Table("people/dev6", "docs/auto.md", "people_dev6", people),
    Table("people/dev6/first", "docs/auto.md", "people_dev6_first", people),
    Table("people/dev7", "docs/auto.md", "people_dev7", people),
    Table("people/dev7/first", "docs/auto.md", "people_dev7_first", people),
    Table("people/dev8", "docs/auto.md", "people_dev8", people),
    Table("people/dev8/first", "docs/auto.md", "people_dev8_first", people),
    Table("people/dev9", "docs/auto.md", "people_dev9", people),
    Table("people/dev9/first", "docs/auto.md", "people_dev9_first", people),
    Table("people/locked2", "docs/auto.md", "people_locked2", people),
    Table("people/locked3", "docs/auto.md", "people_locked3", people),
    Table("peers", "docs/peers.md", "peers", late("benchmarks.papers.peers", "tables")),
    Table("quiz", "docs/auto.md", "quiz", QUIZ),
    Table("cases", "docs/auto.md", "cases", CASES),
    Table("cases/services", "docs/auto.md", "cases", SERVICES),
    Table(
        "command_fuzzer", "docs/robustness.md", "command_fuzzer", late("tests.support.command_fuzzer.table", "tables")
    ),
    Table("data_sets", "docs/data_sets.md", "data_sets", late("benchmarks.questions.data_sets", "table")),
    Table("demo/sample", "README.md", "demo", late("benchmarks.operation.demo", "sample")),
    Table("demo/printed", "docs/demo.md", "demo", late("benchmarks.operation.demo", "printed")),
    Table("dialogues", "docs/conversation.md", "dialogues", DIALOGUES),
    Table("dialogues/dev", "docs/conversation.md", "dialogues_dev", DIALOGUES),
    Table(
        "grailqability",
        "docs/freebase_question_sets.md",
        "grailqability",
        late("benchmarks.papers.grailqability", "tables"),
    ),
    Table("head_start_calibration", "docs/auto.md", "head_start_calibration", HEAD_START),
    Table("kill_commands", "docs/operations.md", "kill_commands", kill_commands.section),
    Table("bases", "docs/auto.md", "bases", late("benchmarks.models.bases", "weighed")),
    Table("languages/translated", "docs/auto.md", "translated", late("benchmarks.answers.translated", "answered")),
    Table("languages/detection", "docs/auto.md", "languages", late("benchmarks.answers.languages", "detection")),
    Table("linking", "docs/linking.md", "linking", linking),
    Table("ltgen/sizes", "docs/ltgen.md", "ltgen", LTGEN_SIZES),
    Table("ltgen/rejects", "docs/ltgen.md", "ltgen", ltgen_rejects),
    Table("operations/overhead", "docs/operations.md", "operations", operations),
    Table("new_relations", "docs/parsing.md", "new_relations", late("benchmarks.papers.new_relations", "tables")),
    Table("parsers", "docs/parsing.md", "parsers", late("benchmarks.papers.parsers", "tables")),
    Table("sketch", "docs/parsing.md", "sketch", late("benchmarks.papers.sketch", "tables")),
    Table("passages", "docs/passages.md", "passages", passages),
    Table("passages/cells", "docs/passages.md", "passages", passage_cells),
    Table("real_sets", "docs/real_sets.md", "real_sets", late("benchmarks.answers.real_sets", "page")),
    Table("relation_ranking", "docs/relation_ranking.md", "relation_ranking", relation_rankers),
    Table("rra_published", "docs/rra_published.md", "rra_published", late("benchmarks.papers.rra_published", "tables")),
    Table(
        "sparql_road",
        "docs/freebase_question_sets.md",
        "sparql_road",
        late("benchmarks.questions.sparql_road", "table"),
    ),
    Table("whole_table", "docs/whole_table.md", "whole_table", late("benchmarks.answers.whole_table", "figures")),
)
