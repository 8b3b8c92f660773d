"""`kgqa models`: folders of language models and encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli import _session as common
from flows.cli._options import ForceOption
from flows.cli.usage import CommandApp

models_app = CommandApp(no_args_is_help=True, help="Folders of language models and encoders.")


@models_app.callback()
def group() -> None:
    """Folders of language models and encoders."""


@models_app.command()
def convert(
    folder: Annotated[
        Path, typer.Argument(help="Folder with config.json and pytorch_model.bin or its shards; or a GGUF file.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write: safetensors, configuration, tokenizer.")],
    force: ForceOption = False,
) -> None:
    """Convert pickled weights or a GGUF file to safetensors; pickles in a process that builds nothing but tensors."""
    from kgqa_core.llm.convert import convert

    done = convert(folder, out, force=force)
    tied = f", {done['tied']} of them tied or views" if done["tied"] else ""
    common.out.print(f"{done['tensors']:,} tensors{tied}, {done['bytes'] / 2**20:,.1f} MB in {out}", markup=False)
    common.out.print(f"digest {done['digest']}", highlight=False)
    if done["left_out"]:
        common.out.print(f"left out: {', '.join(done['left_out'])}", markup=False)
    if not done["alone"]:
        common.out.print("this system gave the process no network namespace of its own", markup=False)
