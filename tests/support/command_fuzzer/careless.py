"""Commands that break the promise in every way that the judge must see."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from kgqa_core.errors import KgqaError

NOTES = Path("../notes.txt")


def main() -> None:
    """Do what the value of `--run` says."""
    words = sys.argv
    deed = words[words.index("--run") + 1]
    if deed == TEXT["traceback"]:
        raise KgqaError(deed)
    if deed == TEXT["gone"]:
        NOTES.unlink()
    elif deed == TEXT["changed"]:
        NOTES.write_text(NOTES.read_text())
    elif deed == TEXT["litter"]:
        Path("../litter").touch()
    elif deed == TEXT["process"]:
        subprocess.Popen(["sleep", "60"], start_new_session=True)
    elif deed == TEXT["code"]:
        os._exit(3)
    elif deed == TEXT["unnamed"]:
        sys.exit("error: something is wrong")
    elif deed == TEXT["long"]:
        sys.exit("error: " + deed + "\n" * 30)
    elif deed == TEXT["escape"]:
        print("\x1b[2J")
    elif deed == TEXT["hangs"]:
        time.sleep(60)


TEXT = {
    "traceback": "no such thing",
    "gone": "my file",
    "changed": "two\nlines",
    "litter": "-rf",
    "process": "grün ☃ \u202eфайл",
    "code": "../../../etc/passwd",
    "unnamed": "[/bold]x[red]y[/]",
    "long": "n" * 255,
    "escape": "\x1b]0;owned\x07\x1b[2J",
    "hangs": "h" * 100_000,
}
"""The fuzzer's value that stands for each deed."""
