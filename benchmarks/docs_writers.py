"""The tables of the docs, each a function from the JSON of its result file to Markdown; `docs_tables.py` lists them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.conditions import commit_name
from benchmarks.performance import table
from kgqa_core.papers.grailqability.report import rule_of

Json = Mapping[str, Any]
DATA_NAMES = {"atlas": "Atlas", "zjqa": "ZJQA", "metaqa": "MetaQA", "simplequestions": "SimpleQuestions",
              "mintaka": "Mintaka", "rebel": "REBEL", "wikidata-mini": "`wikidata_mini`",
              "wikidata_mini": "`wikidata_mini`", "views": "`wikidata_mini` by views", "qald9": "QALD-9",
              "lcquad1": "LC-QuAD 1"}  # fmt: skip


def conditions_line(conditions: Json | None) -> str:
    """Commit, date, seed, cores and threads in a sentence; says so where an older file does not hold them."""
    if not conditions or "commit" not in conditions:
        return "Commit not recorded (made before the scripts wrote it)."
    threads = conditions["threads"] or "as many as cores"
    return (
        f"Commit {commit_name(conditions['commit'])}, "
        f"{conditions['date']}, seed {conditions['seed']}, {conditions['cores']} cores, threads: {threads}."
    )


def percent(value: float, places: int = 1) -> str:
    """A share in percent."""
    return f"{100 * value:.{places}f}"


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


OPTION_ROWS = (
    ("linked topics", "end to end (`soft_start`)", "linked", "tagger", "soft"),
    ("linked topics", "end to end and intersected", "linked", "tagger", "soft+product"),
    ("gold topics", "`intersect: product`", "intersect", "-", "product"),
    ("gold topics", "`intersect: min`", "intersect", "-", "min"),
    ("the questions of the most hops", "and others", "mix", "-", "mix"),
    ("the questions of the most hops", "and others, longer", "mix", "-", "mix_long"),
    ("1,000 questions", "feedback of the builtin model", "feedback", "-", "feedback"),
)


def _difference(found: Json, data: str, comparison: str, condition: str, variant: str) -> Json | None:
    place = {"data": data, "comparison": comparison, "condition": condition, "variant": variant, "group": "all"}
    rows = [row for row in found["differences"] if all(row[name] == value for name, value in place.items())]
    return rows[0] if rows else None


def _passes(found: Json, variant: str) -> str:
    """How many passes the trainings of a variant of `mix` took."""
    cells = [cell for cell in found["cells"] if (cell["comparison"], cell["variant"]) == ("mix", variant)]
    passes = sorted(cell["train"]["epochs"] for cell in cells)
    return f", {passes[0]}–{passes[-1]} passes"


def rigel_options(found: Json) -> str:
    """Each extension against the plain retriever, Hits@1."""
    rows = []
    for plain, extended, comparison, condition, variant in OPTION_ROWS:
        cells = []
        for data in ("atlas", "zjqa", "metaqa"):
            row = _difference(found, data, comparison, condition, variant)
            cells.append(f"{row['base_score']} → {row['variant_score']}, {row['difference']}" if row else "–")
        if comparison == "mix":
            plain, extended = plain + _passes(found, "alone"), extended + _passes(found, variant)
        rows.append((plain, extended, *cells))
    return table(("plain", "extended", "Atlas", "ZJQA", "MetaQA"), rows)


def rigel_linked(found: Json) -> str:
    """Gold topics, the tagger's and a bad tagger's."""
    rows = []
    for condition in ("tagger", "noise"):
        for data in ("atlas", "zjqa", "metaqa"):
            own = {name: _difference(found, data, "linked", condition, name) for name in ("gold", "candidates", "soft")}
            if any(row is None for row in own.values()):
                continue
            gold, candidates, soft = (own[name] or {} for name in ("gold", "candidates", "soft"))
            rows.append((f"{DATA_NAMES[data]}, {condition}", gold["variant_score"], gold["base_score"],
                         candidates["variant_score"], soft["variant_score"], soft["difference"]))  # fmt: skip
    return table(("", "gold topics", "`plain`", "`candidates`", "`soft`", "`soft` − `plain`"), rows)


def linking_end_to_end(found: Json) -> str:
    """What linked topics cost Rigel that was trained on gold ones."""
    rows = []
    for data in ("atlas", "zjqa", "metaqa"):
        row = _difference(found, data, "linked", "tagger", "gold")
        if row:
            rows.append((DATA_NAMES[data], row["variant_score"], row["base_score"], row["difference"]))
    return table(("Hits@1", "gold topics", "linked topics", "gold − linked"), rows)


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


def linking_scale(found: Json) -> str:
    """Ten million names: building, opening, linking."""
    own = found["scale"]
    build, opened, speed = own["build"], own["open"], own["speed"]
    link = speed["link"]
    rows = [
        ("names", f"{own['names']:,}, {build['counts']['names']:,} different when folded; "
         f"{build['counts']['neighbours']:,} neighbour pairs"),
        ("build", f"{build['cpu_s']:,.0f} s of processor time, at most {build['peak_mb'] / 1024:.1f} GB of memory"),
        ("size", f"{build['bytes'] / 1e9:.2f} GB on disk, mapped"),
        ("open", f"{opened['warm']['open_ms']:.0f} ms; {opened['cold']['open_ms']:.0f} ms with nothing in the page "
         f"cache; first look-up after {opened['warm']['first_ms']:.0f} to {opened['cold']['first_ms']:.0f} ms"),
        ("walk over a folded text", f"{speed['walk']['mentions_per_s']:,.0f} mentions a second on one thread"),
        ("with folding", f"{speed['fold_and_walk']['mentions_per_s']:,.0f} mentions a second"),
        ("linked", f"{link['mentions_per_s']:,.0f} mentions a second, {link['us_a_text'] / 1000:.1f} ms a text"),
    ]  # fmt: skip
    return table(("", ""), rows)


def people_linking(found: Json) -> str:
    """Linking of names as people type them."""
    rows = []
    for place, own in found["rows"].items():
        name, _, way = place.rpartition("/")
        cells = (percent(own[key]) for key in ("best", "all", "precision"))
        times = f"{own['p50_ms']:.1f} / {own['p99_ms']:.1f}"
        rows.append((name, f"{own['questions']:,}", way, *cells, times))
    head = ("set (dev)", "questions", "as", "linked", "all candidates", "precision", "ms, p50 / p99")
    return f"{conditions_line(found.get('conditions'))}\n\n" + table(head, rows)


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


LTGEN_SETS = ("atlas/template", "atlas/loopback", "wikidata_mini/template", "wikidata_mini/loopback",
              "views/template", "views/loopback")  # fmt: skip


def ltgen_sizes(found: Json) -> str:
    """What each writer made of each graph."""
    rows = []
    for place in LTGEN_SETS:
        if place not in found:
            continue
        own, (data, writer) = found[place], place.split("/")
        conv = own["conv"]["counts"]
        rows.append(
            (
                f"{DATA_NAMES[data]}, {writer}",
                " / ".join(f"{own['draw'][f'level_{level}']:,}" for level in ("I", "II", "III", "IV")),
                f"{own['qa']['counts']['questions']:,}",
                f"{conv['dialogues']:,}",
                f"{conv['turns']:,}",
                " / ".join(f"{conv['by_triples'][size]:,}" for size in ("1", "2", "3", ">3")),
                f"{own['qa']['seconds']:.0f}, {own['conv']['seconds']:.0f}",
            )
        )
    head = ("graph, writer", "entities I / II / III / IV", "questions", "dialogues", "turns",
            "1 / 2 / 3 / >3 triples (turns)", "seconds QA, Conv")  # fmt: skip
    return table(head, rows)


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


PAIR_TEXTS = {"rewriter": "builtin + LoRA", "template": "sentences by rule", "triples": "triples",
              "published": "the published text itself"}  # fmt: skip


def rewriter(found: Json) -> str:
    """The adapted builtin model against rules on published pairs."""
    checked = found["pairs"]["dev"]
    rows = [
        (PAIR_TEXTS[name], own["bleu"], own["chrf"], own["faithful"], own["inventing"], own["triples_untold"])
        for name, own in found["scores"].items()
    ]
    untold = next(iter(found["scores"].values()))["triples"]
    head = (f"{found['data']}'s published pairs, {checked} of its dev set", "BLEU", "chrF", "faithful texts",
            "texts that invent", f"untold of {untold} triples")  # fmt: skip
    options, losses = found["options"], found["dev_loss"]
    curve = ", ".join(f"{loss:.2f} ({steps})" for steps, loss in losses.items())
    return (
        f"{found['pairs']['train']:,} training pairs ({found['pairs']['left_out_since_in_dev']} left out, since their "
        f"graph is in dev), {options['epochs']} pass(es), rank {options['rank']}, rate {options['learning_rate']:g}, "
        f"batch {options['batch_size']}, seed {found['seed']}, {found['cpu_seconds']:,.0f} s of processor time; dev "
        f"loss after steps: {curve}.\n\n" + table(head, rows)
    )


def webqsp_paths(found: Json) -> str:
    """Hop and path accuracy on WebQSP."""
    rows = []
    for name, own in (("dev", found["dev"]), ("test", found["test"]),
                      *((f"test, {hops} hop(s)", one) for hops, one in found["test_by_hops"].items())):  # fmt: skip
        cells = (f"{own[key]:.3f}" for key in ("hop_accuracy", "path_at_1", "path_at_5"))
        rows.append((name, f"{own['n']:,}", *cells, own["unseen_paths"]))
    head = (f"WebQSP, {found['options']['encoder']}, K = {found['options']['beam']}", "chains", "hop accuracy",
            "path top-1", f"top-{found['options']['beam']}", "chains with a relation not in training")  # fmt: skip
    return table(head, rows)


def unseen_triples(found: Json) -> str:
    """Relation accuracy over all and among the topic's, and Hits@1, of both decoders."""

    def cell(own: Json) -> str:
        if not own["n"]:
            return "–"
        return f"{own['relation_accuracy']:.3f} / {own['relation_accuracy_at_topic']:.3f} / {own['hits_at_1']:.3f}"

    rows = [
        (one["dataset"], f"{one['holdout']:.0%}", f"`{one['decoder']}`", cell(one["test"]["seen"]),
         cell(one["test"]["unseen"]), f"{one['train_cpu_seconds']:,.0f}",
         f"{one['test']['seen']['n']:,} / {one['test']['unseen']['n']:,}")
        for one in found["cells"]
    ]  # fmt: skip
    head = ("questions", "held out", "decoder", "seen relations", "unseen relations", "CPU s", "n")
    return table(head, rows)


def easiness(found: Json) -> str:
    """What retrievers that read no question reach, and the oracle, on each set."""
    rows = []
    for name, own in found["sets"].items():
        for metric, shown in (("hits_at_1", "Hits@1"), ("recall_of_answers", "an answer among the facts")):
            cells = [own["scores"][one][metric] for one in ("random", "frequent", "oracle")]
            label = SET_NAMES.get(name, name)
            rows.append((label, f"{own['questions']:,}", shown, *(_cell(cell) for cell in cells)))
    return table(("set", "questions", "", "random facts", "most frequent relation", "oracle"), rows)


SET_NAMES = {
    "wikidata-mini": "SimpleQuestions over `wikidata_mini`",
    "atlas": "Atlas",
    "zjqa": "ZJQA",
    "metaqa": "MetaQA",
}


def _cell(cell: Json) -> str:
    return f"{percent(cell['value'])} [{percent(cell['low'])}, {percent(cell['high'])}]"


def fresh_model(found: Json) -> str:
    """What the champion's MLflow model answered in an environment that was made from its requirements alone."""
    model, made, loaded, served = (found[name] for name in ("model", "environment", "loaded", "served"))
    lines = [
        "$ python -m venv venv",
        f"$ venv/bin/pip install -r requirements.txt     # the model's own {model['requirements']} pinned packages",
        f"# {made['install_seconds']} s, {made['packages']} packages, {made['gb']} GB, Python {made['python']}",
        "$ env -u PYTHONPATH venv/bin/python            # in an empty folder",
        f'>>> model = mlflow.pyfunc.load_model("{model["name"]}")   # {loaded["load_seconds"]} s',
    ]
    for one in loaded["questions"]:
        lines += [f">>> answer({one['question']!r})   # {one['seconds']} s", one["text"]]
    lines += [
        f"$ venv/bin/mlflow models serve -m {model['name']} --env-manager local --port PORT",
        f"# /ping answers after {served['ready_seconds']} s",
    ]
    for one in served["questions"]:
        body = json.dumps({"input": [{"role": "user", "content": one["question"]}]})
        lines += [f"$ curl …/invocations -d '{body}'   # {one['seconds']} s", f"{one['status']} {one['text']}"]
    refused = found["refused"]
    body = '{"input": […], "custom_inputs": {"topics": ["Nobody"]}}'
    lines += [f"$ curl …/invocations -d '{body}'", f"{refused['status']} {refused['message']}"]
    checks = ", ".join(f"{name.replace('_', ' ')}: {'yes' if held else 'NO'}" for name, held in found["checks"].items())
    return (
        f"{conditions_line(found['conditions'])} `python -m benchmarks.operation.fresh_model --work DIR`; answer() "
        "stands for `model.predict` and the text of its output.\n\n```text\n"
        + "\n".join(lines)
        + f"\n```\n\nChecked: {checks}.\n"
    )


def result_files(rows: Iterable[tuple[str, str, str]]) -> str:
    """The table of result files: file, script, commits."""
    return table(("file", "made by", "commit"), rows)


def head_start_calibration(found: Json) -> str:
    """Errors of the confidence by source of the questions, before and after the calibration."""
    rows = [
        (
            name, kind, str(of["questions"]), f"{of['ece']:.3f}", f"{of['brier']:.3f}",
            *(str(of[level][answers]) for level in ("given", "above_0.8") for answers in ("right", "wrong")),
        )
        for name, own in found["cross_fitted"].items()
        for kind, of in own.items()
    ]  # fmt: skip
    head = ("questions", "confidence", "n", "ECE", "Brier score", "given: right", "wrong", "above .8: right", "wrong")
    return table(head, rows)
