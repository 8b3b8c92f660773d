"""`kgqa link`: the mentions of a text, what each may mean, and how sure the tagger is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._graph import built_folder
from flows.cli._options import KgOption, RunOption
from flows.cli._session import HomeTableSession, print_json
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import Home

if TYPE_CHECKING:
    from kgqa_core.config import LinkingOptions
    from kgqa_core.linking.mentions import LinkCandidate, Mention

SHOWN = 5
"""Candidates shown of one mention."""


@dataclass(frozen=True)
class LinkingChanges:
    """Options of the section `linking` that the command changes."""

    threshold: Annotated[
        float | None,
        typer.Option("--threshold", min=0, max=1, help="Smallest ρ that is selected [0.22].", show_default=False),
    ] = None
    typos: Annotated[
        int | None,
        typer.Option("--typos", min=0, max=2, help="Typing errors forgiven in a name [2].", show_default=False),
    ] = None
    context: Annotated[
        str | None,
        typer.Option("--context", help="What breaks ties: none, words or encoder [words].", show_default=False),
    ] = None


def link(
    session: HomeTableSession,
    text: Annotated[str, typer.Argument(help="A question or any other text, in quotes.")],
    kg: KgOption = None,
    mentions: Annotated[
        Path | None,
        typer.Option("--mentions", help="Folder of its mention dictionary; found or built when absent."),
    ] = None,
    turn: Annotated[
        list[str] | None,
        typer.Option("--turn", help="An earlier turn of the dialogue, oldest first; repeat it.", show_default=False),
    ] = None,
    changes: LinkingChanges = LinkingChanges(),
    run_id: RunOption = None,
) -> None:
    """Find the entities of a graph that a text names: mentions, candidates, and the confidence ρ of each.

    It links as `ask` does: with the section `linking` of the run's profile, unless an option says otherwise.
    """
    session.start_logging()
    kg = built_folder(session, kg) if kg is not None else None
    chosen = session.look(missing=kg is not None)
    record = newest_run(chosen, run_id) if kg is None else None
    options = _options(record, {name: value for name, value in asdict(changes).items() if value is not None})
    graph, names = _opened(kg, record, mentions)
    started = time.monotonic()
    from kgqa_core.linking.tagger import open_tagger, select_entities

    with common.err.status("opening the mention dictionary …"):
        tagger = open_tagger(names, graph, options)
    opened = time.monotonic()
    tagged = tagger.link(text, [("user", turn_text) for turn_text in turn or ()])
    selected = select_entities(tagged, options)
    seconds = time.monotonic() - opened
    if session.as_json:
        print_json(
            {
                "text": text,
                "mentions": [asdict(mention) for mention in tagged],
                "entities": [
                    {"entity": candidate.entity, "key": candidate.key, "label": candidate.label, "rho": candidate.rho}
                    for candidate, _ in selected
                ],
                "seconds": round(seconds, 4),
                "load_seconds": round(opened - started, 3),
            }
        )
        return
    _show(text, tagged, selected, options)


def _options(record: dict[str, Any] | None, given: dict[str, Any]) -> LinkingOptions:
    """How a run links, or the defaults, with what the command says instead.  Raises ConfigError."""
    from kgqa_core.config import make_profile, recorded_profile

    base = recorded_profile(record).linking.model_dump() if record is not None else {}
    return make_profile({"linking": base | given}, origin="the options").linking


def _opened(kg: Path | None, record: dict[str, Any] | None, mentions: Path | None) -> tuple[Path, Path]:
    """Folders of the graph and of its mention dictionary: the one given, found in the home, or made there."""
    from kgqa_core.runs.home_names import named_graph
    from tasks.kg import graph_in

    graph = graph_in(kg or Path()) if record is None else named_graph(Home.current(), record)
    if mentions is not None:
        return graph.folder, mentions
    return graph.folder, common.mentions_folder(Home.current(), graph, record)


def _show(
    text: str, mentions: list[Mention], selected: Sequence[tuple[LinkCandidate, Mention]], options: LinkingOptions
) -> None:
    from rich import box
    from rich.table import Table

    from kgqa_core.report.terminal import VisibleText

    if not mentions:
        hint = "" if options.typos else "; try --typos 1"
        common.out.print(f"nothing in {text!r} is the name of an entity of this graph{hint}")
        return
    table = Table(title="Mentions", title_justify="left", box=box.SIMPLE_HEAD)
    turns = any(mention.turn for mention in mentions)
    for name in ("mention", *(("turn",) if turns else ()), "candidate"):
        table.add_column(name, overflow="fold")
    for name in ("common-\nness", "link\nprob.", "coher-\nence", "ρ"):
        table.add_column(name, justify="right")
    table.add_column("")
    for mention in mentions:
        for index, one in enumerate(mention.candidates[:SHOWN]):
            first = index == 0
            table.add_row(
                VisibleText(mention.text) if first else "",
                *((str(mention.turn) if first else "",) if turns else ()),
                VisibleText.assemble(one.label, (f"\n{one.key}" if one.key != one.label else "", "dim")),
                f"{one.commonness:.2f}",
                f"{mention.link_probability:.2f}" if first else "",
                f"{mention.coherence:.2f}" if first else "",
                f"{one.rho:.3f}",
                _verdict(mention, selected, options) if first else "",
            )
        if len(mention.candidates) > SHOWN:
            more = f"… {len(mention.candidates) - SHOWN} more"
            table.add_row("", *(("",) if turns else ()), more)
    common.out.print(table)
    labels = [f"{one.label} ({one.rho:.3f})" for one, _ in selected]
    common.out.print("linked: " + (", ".join(labels) or "nothing reaches the threshold"))


def _verdict(mention: Mention, selected: Sequence[tuple[LinkCandidate, Mention]], options: LinkingOptions) -> str:
    """What became of a mention, and why."""
    from kgqa_core.linking.spots import LEAST

    best = mention.candidates[0]
    if any(mention is chosen for _, chosen in selected):
        return "linked"
    if not mention.chosen:
        return "hardly a name" if mention.link_probability < LEAST else "not preferred"
    if best.rho < options.threshold:
        return "below the threshold"
    return (
        "the same again" if any(best.entity == chosen.entity for chosen, _ in selected) else f"not among {options.top}"
    )
