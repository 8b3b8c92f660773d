"""`kgqa judge`: how far a language model that judges answers agrees with people."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated

import typer

from flows.cli import _session as common
from flows.cli._options import ForceOption, ProfileOption, SetOption
from flows.cli._session import Session, print_json
from kgqa_core.config import make_profile, parse_settings
from kgqa_core.errors import ConfigError


def judge(
    session: Session,
    labelled: Annotated[
        Path, typer.Option("--labelled", help="JSON lines with question, answers, output and correct (true or false).")
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", help="openai:MODEL or hf:FOLDER_OR_ID [evaluation.judge].", show_default=False),
    ] = None,
    profile: ProfileOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File for the rows with the judge's verdicts.", show_default=False)
    ] = None,
    force: ForceOption = False,
    settings: SetOption = None,
) -> None:
    """Measure how far the judge of `evaluation.judge` agrees with labelled answers: accuracy and Cohen's kappa.

    Completions are cached in the home and count against llm.budget.
    """
    given = settings or []
    if profile is not None:
        chosen = common.choose_profile(profile, settings=given)
    else:
        chosen = make_profile(parse_settings(given), origin="--set")
    home = session.prepare()
    session.start_logging()
    from dataclasses import asdict

    from kgqa_core.evaluation import judge as judging
    from kgqa_core.input_files import read_document
    from kgqa_core.llm.budget import Budget
    from kgqa_core.llm.cache import FILE
    from kgqa_core.llm.factory import parse_spec
    from kgqa_core.store.outputs import claim_file
    from tasks.secrets import load_secrets

    spec = model or chosen.evaluation.judge
    if spec is None:
        raise ConfigError("no judge is named; give --model, or set evaluation.judge")
    parse_spec(spec, chosen.llm)
    load_secrets(chosen)
    claim = claim_file(out, inputs=[labelled], force=force) if out is not None else None
    text = read_document(labelled)
    rows = judging.read_labelled(text, str(labelled))
    account = f"judge/{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    budget = Budget(chosen.llm.budget, chosen.llm.prices, home.cache / FILE, account)
    agreement = judging.agreement(rows, spec, chosen.llm, cache=home.cache, budget=budget)
    if claim is not None:
        with claim.writing() as scratch:
            lines = (
                {"question": row.given.question, "output": row.given.output, "correct": row.correct, "judged": verdict}
                for row, verdict in zip(rows, agreement.verdicts, strict=True)
            )
            scratch.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    both, people, alone, neither = agreement.cells
    chance = "–" if agreement.kappa is None else f"{agreement.kappa:.3f}"
    session.console.print(
        f"{agreement.model}, {agreement.answers:,} answers: accuracy {agreement.accuracy:.3f}, Cohen's kappa {chance}; "
        f"both correct {both}, people only {people}, judge only {alone}, both incorrect {neither}; "
        f"{agreement.unread} without a verdict",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
    if session.as_json:
        values = asdict(agreement)
        del values["verdicts"]
        print_json({**values, "prompt_version": judging.VERSION})
