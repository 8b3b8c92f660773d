"""What a command imports: libraries that take long to import stay out of what does not need them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.command import ROOT


@pytest.mark.slow
def test_a_system_is_opened_without_the_libraries_that_it_does_not_need() -> None:
    _imports_without(
        "flows.cli.ask, kgqa_core.system, kgqa_core.report.console",
        "transformers peft prefect mlflow pandas openai scipy.stats torch._dynamo sympy rdflib",
    )


def test_a_run_whose_stages_are_cached_imports_neither_kernels_nor_models() -> None:
    """What a stage needs to compute is imported when it computes."""
    _imports_without(
        "flows.preflight, flows.pipeline", "torch transformers peft mlflow pandas openai numba scipy rdflib"
    )


def _imports_without(modules: str, unwanted: str) -> None:
    code = (
        f"import sys, {modules}\n"
        f"found = [name for name in {unwanted.split()!r} if name in sys.modules]\n"
        "assert not found, found"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
