"""`kgqa completion`: what a shell reads so that TAB completes commands, options, profiles and runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from flows.cli._output import out


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.")]) -> None:
    """Print what makes TAB complete commands and options in a shell: `source <(kgqa completion bash)`."""
    from typer.completion import get_completion_script

    script = get_completion_script(prog_name="kgqa", complete_var="_KGQA_COMPLETE", shell=shell)
    out.print(script, highlight=False, soft_wrap=True)
