"""`import kgqa` has the public names, and alone loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kgqa
import kgqa_core
from kgqa_core.errors import InputError
from tasks.engine.key import import_closure

ROOT = Path(__file__).resolve().parents[2]


def test_the_names_of_the_package_are_those_of_their_modules() -> None:
    from kgqa_core import system as module

    assert kgqa.System is kgqa_core.System is module.System and kgqa.errors.KgqaError is kgqa.KgqaError
    assert [getattr(kgqa, name).__name__ for name in kgqa_core.__all__] == kgqa_core.__all__
    assert kgqa.__all__ == [*kgqa_core.__all__, "errors"]
    for package in (kgqa, kgqa_core):
        assert set(package.__all__) <= set(dir(package)) and (Path(package.__file__ or "").parent / "py.typed").exists()
        with pytest.raises(AttributeError, match="no attribute 'Sistem'"):
            package.Sistem  # noqa: B018


def test_importing_the_package_loads_no_library_and_none_of_its_own_modules() -> None:
    code = (
        "import sys; before = set(sys.modules); import kgqa; new = set(sys.modules) - before; "
        "print(*sorted(name for name in new if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kgqa", "kgqa_core"]


def test_what_the_package_hands_on_is_no_code_of_a_stage() -> None:
    """`from kgqa_core import prompts` would otherwise bring the whole library into the key."""
    names = set(import_closure("kgqa_core.answering.registry"))
    assert "kgqa_core.prompts" in names and "kgqa_core.system" not in names


def test_a_system_is_opened_by_the_name_of_its_home(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no finished run"):
        kgqa_core.System.from_run(str(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()
