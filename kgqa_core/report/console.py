"""What commands show on a terminal beside scores: a run's stages, an answer with its facts, an entity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from kgqa_core.answering.reply import refusal_text
from kgqa_core.config import AUTO
from kgqa_core.report.terminal import VisibleText, titled_table

SHOWN_COUNTS = (
    "triples", "entities", "edges", "questions", "calls_a_question", "tokens_a_question", "epochs", "dev_hits_at_1",
    "facts", "with_facts", "asked", "kept", "distinct_prompts", "dev_loss", "experiments",
)  # fmt: skip


def stage_names(stages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the stages of a run are called: their names, or titles where another artifact has the name already."""
    first: dict[str, Any] = {}
    names = []
    for stage in stages:
        made = (stage.get("artifact") or {}).get("path")
        known = first.setdefault(str(stage["name"]), made)
        names.append(str(stage["name"] if known == made else stage.get("title") or stage["name"]))
    return names


def stage_table(stages: Sequence[Mapping[str, Any]], seconds: float | None = None) -> Table:
    """One row a stage: what it did in this run, how long that took, and its main counts."""
    total = "" if seconds is None else f" · {seconds:,.0f} s in all"
    table = titled_table(f"Stages{total}", ("stage", "status", "seconds", "result"), right=("seconds",))
    for name, stage in zip(stage_names(stages), stages, strict=True):
        status = VisibleText(str(stage["status"]), style="green" if stage["status"] == "cached" else "")
        table.add_row(VisibleText(name), status, f"{stage['seconds']:,.1f}", VisibleText(_headline(stage["counts"])))
    return table


def ask_tables(reply: Mapping[str, Any]) -> list[RenderableType]:
    """The linked entities where no topic was given, the answer, and its facts."""
    topics = ", ".join(topic["name"] for topic in reply["topics"])
    given, sure = reply.get("answerable", True), confidence_text(reply)
    text, *more = [reply["answer"] or "(no answer)"] if given else refusal_text(reply).split("\n")
    about = topics and f"about {topics}"
    line = "   " + ", ".join(filter(None, (sure, about, f"{reply['seconds']:.2f} s")))
    head = VisibleText.assemble((text, "bold green" if given else "bold yellow"), line, *(f"\n{one}" for one in more))
    if reply.get("understood"):
        head.append(f"\nunderstood as: {reply['understood']}", style="dim")
    if reply.get("readings"):
        head.append("\n(one with its proof: ask again with --reading NUMBER)", style="dim")
    if reply.get("wording"):
        head.append(f"\n{reply['wording']}", style="italic")
    if reply.get("chooser"):
        head.append(f"\n{reply['chooser']}", style="dim")
    rows = ((str(fact["hop"]), f"{fact['score']:.3f}", fact["text"]) for fact in reply["facts"])
    facts = titled_table("Facts", ("hop", "score", "fact"), rows, right=("hop", "score"))
    ranked = VisibleText("Retriever's candidates: ", style="dim")
    ranked.append(", ".join(f"{entity['name']} ({entity['score']:.2f})" for entity in reply["entities"][:5]) or "none")
    linked = [topic for topic in reply["topics"] if "rho" in topic]
    parts = [head, *_computed(reply)]
    if reply.get("model") != AUTO and "effort" not in reply:
        parts += [facts, ranked]
    return [_linked_line(linked), *parts] if linked else parts


def _computed(reply: Mapping[str, Any]) -> list[RenderableType]:
    """The form that was run, what it found, and the triples that prove it; nothing where nothing computes."""
    if "operation" not in reply:
        return []
    if "effort" in reply:
        return _explored(reply)
    if reply["form"] is None:
        if reply.get("model") == AUTO:
            return []
        if reply["proof"]:
            return _proof(reply)
        return [VisibleText(f"no form of the operation {reply['operation']!r} found anything", style="dim")]
    results = () if reply["computed"] == reply["answer"] else (("computed ", "dim"), reply["computed"], " ")
    line = VisibleText.assemble(*results, ("by ", "dim"), reply["form"])
    return [line, *_proof(reply)]


def _explored(reply: Mapping[str, Any]) -> list[RenderableType]:
    """What was done on the way, with calls and tokens, and the triples that were visited."""
    effort = reply["effort"]
    tokens = effort["prompt_tokens"] + effort["completion_tokens"]
    steps = "".join(f"\n  {number}. {step}" for number, step in enumerate(effort["steps"], start=1))
    title = f"explored: {effort['end']}, {effort['calls']:,} calls, {tokens:,} tokens"
    return [VisibleText(f"{title}{steps}", style="dim"), *_proof(reply)]


def _proof(reply: Mapping[str, Any]) -> list[RenderableType]:
    """The table of the first triples that an answer rests on; nothing without any."""
    if not reply["proof"]:
        return []
    shown = len(reply["proof"])
    more = f" ({shown:,} of {reply['proof_rows']:,})" if shown < reply["proof_rows"] else ""
    return [titled_table(f"Proof{more}", rows=([text] for text in reply["proof"]))]


def confidence_text(reply: Mapping[str, Any]) -> str:
    """`confidence 0.83`; empty for a decline, which says its own."""
    if not reply.get("answerable"):
        return ""
    sure = reply.get("confidence")
    return "confidence not calibrated" if sure is None else f"confidence {sure:.2f}"


def _linked_line(topics: Sequence[Mapping[str, Any]]) -> VisibleText:
    """`linked France (link score 0.61)`, with the words that it was found by where they are others."""
    line = VisibleText("linked ", style="dim")
    for index, topic in enumerate(topics):
        answer_text = "" if topic["mention"] == topic["name"] else f" by “{topic['mention']}”"
        line.append(", " if index else "").append(topic["name"], style="bold not dim")
        line.append(f"{answer_text} (link score {topic['rho']:.2f})")
    return line


def entity_tables(description: Mapping[str, Any]) -> list[RenderableType]:
    """Each entity that a key may mean: names, types, facts both ways."""
    parts: list[RenderableType] = []
    for match in description["matches"]:
        names = [name for name in match["names"] if name != match["name"]]
        head = VisibleText.assemble((match["name"], "bold"), f"   {match['key']}")
        if match["description"]:
            head.append(f"\n  {match['description']}", style="italic")
        if match["text"] != match["name"]:
            head.append(f"\n  {match['text']}")
        if match["types"]:
            head.append(f"\n  types: {', '.join(match['types'])}")
        if names:
            head.append(f"\n  also: {', '.join(names[:12])}{' …' if len(names) > 12 else ''}")
        if match["bridges"]:
            elsewhere = ", ".join(f"{bridge['value']} ({bridge['relation']})" for bridge in match["bridges"])
            head.append(f"\n  elsewhere: {elsewhere}")
        parts.append(head)
        for title, rows, total in (
            ("Facts", match["facts"], match["n_facts"]),
            ("Facts about it elsewhere", match["incoming"], match["n_incoming"]),
        ):
            if rows:
                parts.append(_facts(f"{title} ({len(rows):,} of {total:,})", rows))
    return parts


def statistics_tables(found: Mapping[str, Any]) -> list[RenderableType]:
    """What a graph is made of: the parts of `kg.stats.statistics`, empty ones left out."""
    numbers = ((name, value) for name, value in found["counts"].items() if isinstance(value, int))
    counts = titled_table(f"Graph {found['name']}", rows=((name.replace("_", " "), _cell(n)) for name, n in numbers))
    degrees = found["degrees"]
    percentiles = ", ".join(f"{name} {degrees[name]:,}" for name in ("p50", "p90", "p99", "p99.9"))
    hubs = ", ".join(f"{hub['entity']} ({hub['degree']:,})" for hub in degrees["hubs"])
    labels = found["labels"]
    lines = VisibleText(
        f"Degree: mean {degrees['mean']:,}, {percentiles}, largest {degrees['largest']:,}\nHubs: {hubs}\n"
        f"Labelled: {labels['labelled']:,} entities, {labels['share']:.1%}"
    )
    largest = max((row["entities"] for row in degrees["bins"]), default=1)
    bins = [
        {
            "degree": f"{row['from']:,}–{row['to']:,}" if row["to"] > row["from"] else f"{row['from']:,}",
            "entities": row["entities"],
            "": "█" * max(1, round(30 * row["entities"] / largest)),
        }
        for row in degrees["bins"]
    ]
    coverage = [{**row, "share": f"{row['share']:.1%}"} for row in labels["by_language"]]
    filtered = [{"rule": rule, "statements": n} for rule, n in found["filtered"].items()]
    tables = {
        "Degrees": bins,
        "Largest relations": found["relations"],
        "Largest types": found["types"],
        "Labels by language": coverage,
        "Literals": found["literals"],
        "Left out": filtered,
        "Rejected": found["rejects"],
    }
    return [counts, lines, *(rows_table(title, rows) for title, rows in tables.items() if rows)]


def rows_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows of equal keys as a table; numbers to the right."""
    table = Table(title=title or None, title_justify="left", title_style="bold")
    for name in rows[0] if rows else ("nothing",):
        numeric = all(isinstance(row[name], int | float) for row in rows)
        table.add_column(name.replace("_", " "), overflow="fold", justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    return table


def _cell(value: Any) -> VisibleText:
    return VisibleText(f"{value:,}", value=value) if isinstance(value, int | float) else VisibleText(str(value))


def result_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """The result of a statement: every name and value as it can be copied into another one."""
    table = Table()
    for index, name in enumerate(columns):
        numeric = all(isinstance(row[index], int | float | Decimal | None) for row in rows)
        table.add_column(VisibleText(name), overflow="fold", justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(VisibleText(_sql_text(value), value="" if value is None else None) for value in row))
    return table


def _sql_text(value: Any) -> str:
    """A value as DuckDB writes it; NULL in CSV is empty."""
    if isinstance(value, list):
        return f"[{', '.join(map(_sql_text, value))}]"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _facts(title: str, rows: Iterable[Mapping[str, Any]]) -> Table:
    table = titled_table(title, ("relation", "entity"))
    table.add_column("key", style="dim")
    for row in rows:
        rank = "" if row["rank"] == "normal" else f" ({row['rank']})"
        table.add_row(*map(VisibleText, (row["relation"] + rank, row["text"], str(row["entity_key"]))))
        for number, statement in enumerate(row["qualifiers"]):
            for index, one in enumerate(statement):
                mark = "·" if number == 0 or index else "+"  # + begins another statement of the same triple
                table.add_row(
                    VisibleText(f"  {mark} {one['relation']}", style="dim"),
                    VisibleText(one["text"]),
                    VisibleText(one["entity_key"]),
                )
    return table


def _headline(counts: Mapping[str, Any]) -> str:
    parts = []
    for name in SHOWN_COUNTS:
        value = counts.get(name)
        if isinstance(value, Mapping):
            value = sum(part for part in value.values() if isinstance(part, int))
        if isinstance(value, int | float) and not isinstance(value, bool):
            parts.append(f"{value:,} {name}" if isinstance(value, int) else f"{name} {value:.3f}")
    return ", ".join(parts)
