"""`kgqa kg subset`: the neighbourhood of a question set's entities out of a dump, or of a SPARQL endpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli import _session as common
from flows.cli._options import ForceOption
from flows.cli._session import JsonSession, print_json
from kgqa_core.errors import InputError

if TYPE_CHECKING:
    from kgqa_core.config import SubsetOptions
    from kgqa_core.datasets.files.seeds import QuestionSeeds
    from kgqa_core.kg.client.pass_folder import PassFolder
    from kgqa_core.kg.subset.subset import SubsetResult
    from kgqa_core.monitor import Monitor

COUNTS_ENDING = ".counts.json"
WORK_ENDING = ".passes"


@dataclass(frozen=True)
class SeedQuestions:
    """Options that name the questions whose entities a subset starts from."""

    questions: Annotated[
        list[str], typer.Option("--questions", help="Question file, ours or official; give it again for more.")
    ]
    language: Annotated[str, typer.Option("--language", help="Language to take from the question file.")] = "en"


@dataclass(frozen=True)
class SubsetSection:
    """Options of `SubsetOptions`, those of an endpoint aside."""

    hops: Annotated[int, typer.Option("--hops", min=1, max=8, help="Hops from topics and gold answers.")] = 2
    relations: Annotated[
        str | None,
        typer.Option(
            "--relations", help="Relations to follow: P31,P17,… or @FILE, one a line [all].", show_default=False
        ),
    ] = None
    direction: Annotated[
        Literal["both", "forward"], typer.Option("--direction", help="Follow relations both ways, or forward only.")
    ] = "both"
    max_degree: Annotated[
        int,
        typer.Option(
            "--max-degree",
            min=0,
            max=2**62,
            help="Longest run (triples of one entity, relation, direction) followed; 0: any.",
        ),
    ] = 1000
    languages: Annotated[
        str | None, typer.Option("--languages", help="Languages of names to keep: en,de [all].", show_default=False)
    ] = None
    ranks: Annotated[
        Literal["truthy", "normal", "all"], typer.Option("--ranks", help="Statements of Wikidata's JSON, as kg.ranks.")
    ] = "truthy"
    format: Annotated[str, typer.Option("--format", help="auto, or a name of `kgqa kg formats`.")] = "auto"
    max_reject_share: Annotated[
        float, typer.Option("--max-reject-share", min=0, max=1, help="Largest share of bad statements of a file.")
    ] = 0.01
    memory_limit: Annotated[str, typer.Option("--memory-limit", help="Memory for the sets of entities.")] = "4GB"


@dataclass(frozen=True)
class EndpointRequests:
    """Options of `SparqlEndpointOptions`."""

    batch: Annotated[int, typer.Option("--batch", min=1, max=10_000, help="Endpoint: entities in one query.")] = 50
    page: Annotated[int, typer.Option("--page", min=1, max=10_000_000, help="Endpoint: rows of one reply.")] = 10_000
    delay: Annotated[float, typer.Option("--delay", min=0, max=3600, help="Endpoint: seconds between requests.")] = 1.0
    retries: Annotated[
        int, typer.Option("--retries", min=0, max=1000, help="Endpoint: further tries of a request.")
    ] = 6
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=86_400, help="Endpoint: seconds of a request.")
    ] = 90.0


def subset(
    session: JsonSession,
    dump: Annotated[
        list[str],
        typer.Argument(
            help="Dump files or patterns (Wikidata JSON, truthy N-Triples, Freebase RDF), or sparql+http://…"
        ),
    ],
    seed_questions: SeedQuestions,
    out: Annotated[Path, typer.Option("--out", help="File to write, which --kg reads; packed if it ends with .gz.")],
    section: SubsetSection,
    endpoint: EndpointRequests,
    work: Annotated[
        Path | None,
        typer.Option(
            "--work",
            help="Folder of finished passes, which stays and serves other questions [beside FILE, deleted at the end].",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Cut the neighbourhood of a question set's entities out of a dump of any size, and count everything."""
    session.start_logging()
    from kgqa_core.config import SubsetOptions
    from kgqa_core.kg.client.pass_folder import PassFolder
    from kgqa_core.kg.sql import memory_bytes
    from kgqa_core.store.outputs import claim_file, is_stream
    from tasks.engine.progress import StageMonitor

    lists = {name: _listed(getattr(section, name)) for name in ("relations", "languages")}
    options = SubsetOptions.model_validate(vars(section) | lists | {"endpoint": vars(endpoint)})
    memory_bytes(options.memory_limit)
    inputs = [*(name for name in dump if not _is_endpoint(name)), *seed_questions.questions]
    claim = claim_file(out, inputs=inputs, force=force)
    beside = None if is_stream(out) else out.with_name(out.name + COUNTS_ENDING)
    counts_claim = claim_file(beside, inputs=inputs, force=force) if beside is not None else None
    seeds, read = _seeds(seed_questions)
    with StageMonitor("subset", lambda rows: None) as monitor, _folder(work, out) as folder:
        result = _subset_of(dump, seeds.keys, options, PassFolder(folder), monitor)
        with claim.writing() as scratch:
            result.write(scratch, packed=claim.place.suffix == ".gz")
            if counts_claim is not None:
                with counts_claim.writing() as file:
                    result.write_counts(file)
    counts = read | result.counts | {"not_found": result.not_found}
    if session.as_json:
        print_json({"out": str(out), **counts})
        return
    _show(counts, out)


def _subset_of(
    dump: list[str], seeds: Sequence[str], options: SubsetOptions, passes: PassFolder, monitor: Monitor
) -> SubsetResult:
    endpoints = [name for name in dump if _is_endpoint(name)]
    if not endpoints:
        from kgqa_core.kg.subset.subset import subset_of_dump

        return subset_of_dump(dump, seeds, options, passes, monitor)
    from kgqa_core.kg.subset.endpoint import subset_of_endpoint

    if len(dump) > 1:
        raise InputError(f"{endpoints[0]} is an endpoint; give it alone, without further dumps")
    return subset_of_endpoint(endpoints[0], seeds, options, passes, monitor)


def _seeds(given: SeedQuestions) -> tuple[QuestionSeeds, dict[str, Any]]:
    from kgqa_core.config import QuestionSource
    from kgqa_core.datasets.files.seeds import seeds_of
    from kgqa_core.datasets.load import read_source

    rows, rejects = [], []
    for path in given.questions:
        more, bad = read_source(QuestionSource(path=path, language=given.language), seed=7)
        rows += more
        rejects += bad
    seeds = seeds_of(rows)
    if not seeds.keys:
        raise InputError(f"{', '.join(given.questions)} name no entity; give questions with topic_entities or answers")
    return seeds, {
        "questions": len(rows), "questions_rejected": len(rejects), "topics": seeds.topics, "answers": seeds.answers
    }  # fmt: skip


@contextlib.contextmanager
def _folder(work: Path | None, out: Path) -> Iterator[Path]:
    """The folder of the passes.

    Without `--work` it is deleted once the subset is written, and when what was given cannot be used; a kill, a full
    disk or an endpoint that does not answer leaves it for the next command.
    """
    import shutil

    if work is not None:
        yield work.expanduser()
        return
    folder = out.expanduser().resolve()
    folder = folder.with_name(f".{folder.name}{WORK_ENDING}")
    try:
        yield folder
    except InputError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _is_endpoint(name: str) -> bool:
    return name.startswith(("sparql+http://", "sparql+https://"))


def _listed(text: str | None) -> tuple[str, ...]:
    """Words between commas, or the lines of `@FILE`; comments after a blank and `#` are left out.

    Raises InputError.
    """
    if text is None:
        return ()
    if text.startswith("@"):
        path = Path(text[1:]).expanduser()
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as fault:
            raise InputError(f"{path} cannot be read ({fault}); give a file with one relation a line") from None
        words = [line.split(" #")[0].strip() for line in lines if not line.startswith("#")]
    else:
        words = [word.strip() for word in text.split(",")]
    names = tuple(dict.fromkeys(word for word in words if word))
    if not names:
        raise InputError(f"{text!r} names nothing; leave the option out to take all")
    return names


def _show(counts: dict[str, Any], out: Path) -> None:
    from kgqa_core.report.console import rows_table

    common.out.print(rows_table(f"{out}: hops", counts["by_hop"]))
    lists = ("by_hop", "not_found", "examples_of_rejects", "passes_found_done")
    rows: list[dict[str, Any]] = []
    for name, value in counts.items():
        if isinstance(value, dict):
            rows += [{"what": f"{name}: {part}".replace("_", " "), "count": number} for part, number in value.items()]
        elif name not in lists:
            rows.append({"what": name.replace("_", " "), "count": value})
    common.out.print(rows_table("counts", rows))
    if counts["not_found"]:
        first = ", ".join(counts["not_found"][:5])
        common.err.print(
            f"{len(counts['not_found']):,} entities of the questions are not in the dump, such as {first}; all are in "
            f"{out.name}{COUNTS_ENDING}",
            markup=False,
            soft_wrap=True,
        )
