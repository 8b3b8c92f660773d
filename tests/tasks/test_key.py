"""The key of a stage sees its inputs, its options and the code it runs, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kgqa_core.config import KgOptions, RigelOptions
from kgqa_core.kg.formats.registry import FORMATS
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine import key as caching
from tasks.engine.key import code_digest, import_closure, stage_key
from tasks.import_closure import _module_file, module_code, package_folder
from tasks.kg import build_kg, export_dkg


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `sample` with a module that imports another."""
    root = tmp_path / "sample"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "config.py").write_text("X = 1\n")
    (root / "lower.py").write_text("def f():\n    return 1\n")
    (root / "upper.py").write_text("def g():\n    from sample.lower import f\n    return f()\n")
    (root / "other.py").write_text("Y = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(caching, "PACKAGE", "sample")
    forget()
    yield root
    forget()
    for name in [name for name in sys.modules if name.split(".")[0] == "sample"]:
        del sys.modules[name]


def forget() -> None:
    for read_once in (code_digest, import_closure, module_code, package_folder, _module_file):
        read_once.cache_clear()


def digest(name: str) -> str:
    """Of a stage's body that imports a module and calls it."""
    forget()
    return code_digest(BODIES[name])


def calls_upper() -> None:
    from sample import upper

    upper.g()


def calls_lower() -> None:
    from sample.lower import f

    f()


BODIES = {"sample.upper": calls_upper, "sample.lower": calls_lower}


def test_comments_formatting_and_docstrings_do_not_count(package: Path) -> None:
    before = digest("sample.upper")
    (package / "lower.py").write_text('# new\ndef f():\n    """Says one."""\n\n    return (1)\n')
    assert digest("sample.upper") == before


def test_code_of_an_imported_module_counts(package: Path) -> None:
    before = digest("sample.upper")
    (package / "lower.py").write_text("def f():\n    return 2\n")
    assert digest("sample.upper") != before


def test_code_that_is_not_imported_does_not_count(package: Path) -> None:
    before = digest("sample.upper")
    (package / "other.py").write_text("Y = 2\n")
    assert digest("sample.upper") == before


def test_the_body_of_a_stage_and_what_it_calls_count(package: Path) -> None:
    assert digest("sample.upper") != digest("sample.lower")
    (package / "upper.py").write_text("def g():\n    return 3\n")
    changed = digest("sample.upper"), digest("sample.lower")
    (package / "lower.py").write_text("def f():\n    return 3\n")
    assert digest("sample.upper") == changed[0], "it does not import lower any more"
    assert digest("sample.lower") != changed[1]


def test_code_of_a_stage_is_that_of_the_library_functions_that_it_calls() -> None:
    built, exported = (code_digest(one.body) for one in (build_kg, export_dkg))
    assert built != exported
    names = {
        name for one in (build_kg, export_dkg) for name in caching._named_modules(one.body, caching._body(one.body))
    }
    assert {"kgqa_core.kg.build", "kgqa_core.dkg.export"} <= names


def test_closure_of_the_graph_build_has_no_retriever_in_it() -> None:
    names = set(import_closure("kgqa_core.kg.build"))
    assert "kgqa_core.kg.store" in names
    assert not any(name.startswith(("kgqa_core.retrieval", "kgqa_core.llm", "kgqa_core.dkg")) for name in names)


def test_closure_of_the_graph_build_holds_every_reader() -> None:
    names = set(import_closure("kgqa_core.kg.build"))
    for name, spec in FORMATS.items():
        assert type(spec.reader()).__module__ in names, name


def body() -> None:
    """Of a stage."""


def key(options: object, digest: str = "d1", outside: str = "o") -> str:
    ref = ArtifactRef(kind="kg", path="/somewhere", digest=digest)
    return stage_key("dkg", (body,), {"kg": ref, "options": options}, {"file": outside}, ("numpy",))[0]


def test_key_changes_with_options_inputs_and_outside_files() -> None:
    base = key(RigelOptions(hops=2))
    assert key(RigelOptions(hops=2)) == base
    assert key(RigelOptions(hops=3)) != base
    assert key(RigelOptions(hops=2), digest="d2") != base
    assert key(RigelOptions(hops=2), outside="p") != base


def test_key_ignores_where_and_how_fast_work_is_done() -> None:
    base = key(KgOptions(name="a", threads=1, memory_limit="1GB"))
    assert key(KgOptions(name="b", threads=8, memory_limit="9GB")) == base
    assert key(RigelOptions(device="cpu")) == key(RigelOptions(device="cuda"))


def test_code_of_a_library_function_is_its_own_and_that_of_its_module_where_it_names_it(package: Path) -> None:
    (package / "spec.py").write_text(
        "LIMIT = 1\ndef train():\n    from sample.lower import f\n    return f()\n"
        "def cut():\n    return LIMIT\ndef open():\n    from sample.other import Y\n    return Y\n"
    )
    from sample import spec  # type: ignore[import-not-found]

    trained, cut = code_digest(spec.train), code_digest(spec.cut)
    (package / "other.py").write_text("Y = 3\n")
    forget()
    assert code_digest(spec.train) == trained, "it does not open"
    (package / "spec.py").write_text((package / "spec.py").read_text().replace("LIMIT = 1", "LIMIT = 2"))
    forget()
    assert (code_digest(spec.train) == trained, code_digest(spec.cut) == cut) == (True, False)
    (package / "lower.py").write_text("def f():\n    return 7\n")
    forget()
    assert code_digest(spec.train) != trained
