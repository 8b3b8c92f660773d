"""Questions made from a graph alone: a profile of it, forms drawn and run, words, noise, and a question file.

Files in `out`: `questions.jsonl` in our own format (`datasets.files.jsonl`) with `source: generated`, and
`statistics.json`.  The same graph, options and seed give the same bytes.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

from kgqa_core.builders.questions.draft import COMPLEXITY, YES_NO, Draft
from kgqa_core.builders.questions.read_back import ReadBack, Worded
from kgqa_core.builders.questions.sample import Sampler
from kgqa_core.builders.questions.unanswerable import Unanswerable, UnanswerableSampler
from kgqa_core.builders.questions.wording import English, WordedQuestion
from kgqa_core.builders.questions.wording_zh import Chinese
from kgqa_core.builders.questions.write import TEMPLATE, paraphrase
from kgqa_core.config import LlmOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.datasets.derived.noise import Noise
from kgqa_core.datasets.derived.splits import split_by_group
from kgqa_core.errors import FormError, InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import Result, answer_texts
from kgqa_core.logic.forms import Form, Holds, is_table
from kgqa_core.logic.measures import TIME
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.paths import to_paths
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.search.schema_profile import GraphProfile, profile
from kgqa_core.store.artifacts import write_json
from kgqa_core.types import SPLITS
from kgqa_core.workspace import Workspace

FILE, STATISTICS = "questions.jsonl", "statistics.json"
SOURCE = "generated"
"""Value of `source` of every question that was made here."""

MOST_YES_NO = 0.2
"""Share of the questions with an answer that ask for yes or no at most, but where the options want more of them."""
ROUNDS = 4
"""How often questions are drawn anew for those that were left out."""

Write = Callable[[Form, str], WordedQuestion]


def generate(
    workspace: Workspace,
    kg_folder: Path,
    options: GeneratedQuestionsOptions,
    seed: int,
    *,
    llm: LlmOptions | None = None,
) -> dict[str, Any]:
    """Writes `questions.jsonl` and `statistics.json` into the folder `out`; returns counts.

    counts: questions, those of each split, by kind, those without an answer, and those that were left out.  llm: of a
    writer that is a model.  Raises InputError where the graph has no relation or no entity that words can name.
    """
    written: dict[str, int] = {}

    def rewrite(rows: Sequence[dict[str, Any]]) -> None:
        if options.writer != TEMPLATE:
            written.update(paraphrase(workspace, rows, options, llm or LlmOptions()))

    with KgStore.open(kg_folder) as store:
        rows, left_out = _make(store, options, seed, workspace.monitor, rewrite)
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (workspace.out / FILE).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    counts = count(rows) | {"left_out": left_out} | written
    write_json(workspace.out / STATISTICS, counts)
    return counts


def make(store: KgStore, options: GeneratedQuestionsOptions, seed: int) -> list[dict[str, Any]]:
    """The rows of a question file for a graph that is open.  Raises InputError as `generate`."""
    return _make(store, options, seed, QUIET, lambda rows: None)[0]


def _make(
    store: KgStore,
    options: GeneratedQuestionsOptions,
    seed: int,
    monitor: Monitor,
    rewrite: Callable[[Sequence[dict[str, Any]]], None],
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The rows, and how many questions were left out for what.  rewrite: changes their `question` before noise."""
    monitor.progress(0, options.size, "questions")
    graph_profile = profile(store)
    if not graph_profile.relations or not graph_profile.askable.any():
        raise InputError(
            f"{store.path} has {len(graph_profile.relations)} relations and {int(graph_profile.askable.sum())} "
            "entities that words can name, and questions need both; build the graph with labels"
        )
    graph = MemoryGraph(store)
    sampler = Sampler(graph, graph_profile, options, seed)
    language = graph_profile.language if options.language == "auto" else options.language
    names = namer(graph, graph_profile)
    write: Write = (Chinese if language == "zh" else English)(graph_profile, names).write
    worded, left_out = _draw(sampler, write, options, language, monitor)
    rows = _rows(worded, graph, graph_profile.names, language)
    wanted = round(len(rows) * options.unanswerable / (1 - options.unanswerable))
    drafts = [draft for draft, _ in worded]
    rows += _unanswerable_rows(UnanswerableSampler(sampler.walker, write, drafts, seed).draw(wanted), language)
    rewrite(rows)
    rows = _typed(rows, Noise(options.noise, seed))
    if not any(row["answers"] for row in rows):
        raise InputError(
            f"no question can be made from this graph ({len(graph_profile.relations)} relations, "
            f"{int(graph_profile.askable.sum())} entities that words can name): no relation leads from one of these to "
            "another or to a value; add facts or labels, or give a question file"
        )
    _split(rows, options, seed)
    repeated = _repeat(rows, options)
    if repeated:
        monitor.note(f"the graph gives few questions: {repeated} stand in several splits, and their scores say little")
    monitor.progress(options.size, options.size, "questions")
    return _numbered(rows), left_out


def _draw(
    sampler: Sampler, write: Write, options: GeneratedQuestionsOptions, language: str, monitor: Monitor
) -> tuple[list[Worded], dict[str, int]]:
    """Questions with an answer whose words are read as they are meant, and how many were left out for what."""
    size = round(options.size * (1 - options.unanswerable))
    checks = options.read_back and options.forms == "plain" and language == "en"
    reader = ReadBack(sampler.graph.store, options.read_back) if checks else None
    shares = options.shares.model_dump()
    most = max(MOST_YES_NO, sum(shares[kind] for kind in YES_NO) / sum(shares.values()))
    results: list[Worded] = []
    unread: list[Worded] = []
    left_out = {"not_read": 0, "yes_no": 0}
    for _ in range(ROUNDS):
        drafts = sampler.draw(size - len(results), monitor)
        new = _worded(drafts, write, sampler.seed)
        reads = [True] * len(new) if reader is None else reader.reads(new, monitor)
        read = list(compress(new, reads))
        fitting = _few_yes_no([*results, *read], most)
        unread += [one for one, good in zip(new, reads, strict=True) if not good]
        left_out["yes_no"] += len(results) + len(read) - len(fitting)
        results = fitting
        if not drafts or len(results) >= size:
            break
    if not results:  # of a graph whose labels are no words at all
        results, unread = _few_yes_no(unread, most), []
    if unread:
        left_out["not_read"] = len(unread)
        monitor.note(f"{len(unread)} questions are left out: the search does not read them as they are meant")
    if left_out["yes_no"]:
        monitor.note(
            f"{left_out['yes_no']} questions are left out that ask for yes or no, of which {100 * most:.0f} % of the "
            f"questions may: the graph gives {len(results)} of {size}"
        )
    return results, left_out


def _few_yes_no(worded: Sequence[Worded], most: float) -> list[Worded]:
    """Questions without the last of those for yes or no, so that these are at most such a share of them."""
    asks = [isinstance(draft.form, Holds) for draft, _ in worded]
    room = len(worded) if most == 1 else int(most / (1 - most) * (len(worded) - sum(asks)))
    return [one for one, yes_no in zip(worded, asks, strict=True) if not yes_no or (room := room - 1) >= 0]


def _worded(drafts: Sequence[Draft], write: Write, seed: int) -> list[Worded]:
    """Drafts that have words, with these."""
    results = []
    for draft in drafts:
        with contextlib.suppress(FormError):
            results.append((draft, write(draft.form, f"wording/{seed}/{draft.key}")))
    return results


def namer(graph: MemoryGraph, graph_profile: GraphProfile) -> Callable[[str], str]:
    """The name of an entity by its key.  It raises FormError for one without."""

    def name(key: str) -> str:
        found = graph.know([key])
        text = graph_profile.names[found[key]] if key in found else None
        if text is None:
            raise FormError(f"{key} has no name")
        return text

    return name


def _rows(
    worded: Sequence[Worded], graph: MemoryGraph, names: Sequence[str | None], language: str
) -> list[dict[str, Any]]:
    """Rows of drafts with their words; `group` is left in them for the splits."""
    keys = graph.store.entity_keys(sorted({node for draft, _ in worded for node in draft.nodes}))
    rows = []
    for draft, wording in worded:
        result = Result(draft.nodes, draft.value)
        if is_table(draft.form):  # the answers of a table are texts, of names
            result = graph.execute(draft.form)
            named = {i: names[i] or key for i, key in graph.store.entity_keys(result.ids).items()}
        answers = answer_texts(draft.form, result, named if result.rows else keys)
        rows.append(
            {
                "id": "",
                "question": wording.text,
                "topic_entities": list(draft.topics),
                "answers": list(answers),
                "answer_type": answer_type(draft, graph),
                "s_expression": str(draft.form),
                **_path_fields(draft),
                "complexity": COMPLEXITY[draft.kind],
                "kind": draft.kind,
                "language": language,
                "source": SOURCE,
                "plain_question": wording.text,
                "mentions": list(wording.mentions),
                "group": draft.group,
                "answer_names": [str(names[node]) for node in draft.nodes if names[node] is not None],
            }
        )
    return rows


def _typed(rows: Sequence[dict[str, Any]], noise: Noise) -> list[dict[str, Any]]:
    """Rows as people type, each text once."""
    texts: set[str] = set()
    results = []
    for row in rows:
        if row["language"] == "en":
            row["question"] = noise.apply(row["question"], row["mentions"], row["group"])
        same = row["question"].casefold().strip(" ?!.")
        if same not in texts:
            texts.add(same)
            results.append(row)
    return results


def _unanswerable_rows(missing: Sequence[Unanswerable], language: str) -> list[dict[str, Any]]:
    """Rows of questions without an answer."""
    results = []
    for one in missing:
        form = {} if one.form is None else {"missing_form": str(one.form)}
        results.append(
            {
                "id": "",
                "question": one.worded.text,
                "topic_entities": list(one.topics),
                "answers": [],
                "answerable": False,
                "reason": one.reason,
                "missing": one.missing,
                "missing_keys": list(one.keys),
                **form,
                "complexity": None,
                "hops": 1,
                "kind": "unanswerable",
                "language": language,
                "source": SOURCE,
                "plain_question": one.worded.text,
                "mentions": list(one.worded.mentions),
                "group": f"{one.missing}|{'|'.join(one.topics)}",
            }
        )
    return results


def answer_type(draft: Draft, graph: MemoryGraph) -> str:
    """What a draft's answer is, as question files have it: entities, number, yes/no, date or text."""
    if isinstance(draft.form, Holds):
        return "yes/no"
    if draft.value is not None:
        return "number"
    if is_table(draft.form):
        return "text"
    if not draft.nodes:
        return "none"
    first = draft.nodes[0]
    if not graph.literal[first]:
        return "entities"
    index = int(graph.dim[first])
    return "text" if index < 0 else "date" if graph.dimensions[index] == TIME else "number"


def _path_fields(draft: Draft) -> dict[str, Any]:
    """The relation paths of a form from its topics, and how many hops the longest has."""
    paths = to_paths(draft.form)
    lengths = [len(path.relations) for path in paths if path.relations]
    found = {"relation_path": [list(path.relations) for path in paths if path.relations]} if lengths else {}
    return found | {"hops": max(lengths, default=1)}


def _split(rows: list[dict[str, Any]], options: GeneratedQuestionsOptions, seed: int) -> None:
    by_topics = options.split_by == "topics"
    groups = {
        str(index): tuple(sorted(row["topic_entities"])) if by_topics and row["topic_entities"] else row["group"]
        for index, row in enumerate(rows)
    }
    chosen = split_by_group(groups, options.split_shares, seed)
    scored = {str(index): groups[str(index)] for index, row in enumerate(rows) if row["answers"]}
    if {chosen[index] for index in scored} != _wanted(options):  # of few, those without an answer may fill a split
        chosen |= split_by_group(scored, options.split_shares, seed)
    for index, row in enumerate(rows):
        row["split"] = chosen[str(index)]


def _repeat(rows: list[dict[str, Any]], options: GeneratedQuestionsOptions) -> int:
    """Repeats a question in each split that has none with an answer, because there are too few; how many that are."""
    scored = [row for row in rows if row["answers"]]
    lacking = sorted(_wanted(options) - {row["split"] for row in scored})
    rows += [{**scored[index % len(scored)], "split": split} for index, split in enumerate(lacking)]
    return len(lacking)


def _wanted(options: GeneratedQuestionsOptions) -> set[str]:
    """The splits that get questions."""
    return {split for split, share in zip(SPLITS, options.split_shares, strict=True) if share > 0}


def _numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for number, row in enumerate(rows, start=1):
        row["id"] = f"generated-{number:05d}"
        for name in ("group", "answer_names"):
            row.pop(name, None)
    return rows


def count(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of rows: in all, by split, kind, complexity and number of hops."""
    each = list(rows)
    return {
        "questions": len(each),
        "by_split": dict(sorted(Counter(row["split"] for row in each).items())),
        "by_kind": dict(sorted(Counter(row["kind"] for row in each).items())),
        "by_complexity": dict(sorted(Counter(row["complexity"] or "-" for row in each).items())),
        "by_reason": dict(sorted(Counter(row["reason"] for row in each if "reason" in row).items())),
        "by_hops": {str(hops): n for hops, n in sorted(Counter(row["hops"] for row in each).items())},
        "unanswerable": sum(row.get("answerable") is False for row in each),
    }
