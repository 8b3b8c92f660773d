"""What a command imports: libraries that take long to import stay out of what does not need them."""

from __future__ import annotations

import subprocess
import sys

from tests.support.command import ROOT


def test_a_system_is_opened_without_the_libraries_that_it_does_not_need() -> None:
    unwanted = "transformers peft prefect mlflow pandas openai scipy.stats torch._dynamo sympy".split()
    code = (
        "import sys, flows.cli.ask, kgqa_core.system, kgqa_core.report.console\n"
        f"found = [name for name in {unwanted!r} if name in sys.modules]\n"
        "assert not found, found"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
