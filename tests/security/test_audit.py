"""`make audit` fails on a finding that nobody explained, and says so when it could not look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.security.audit import HOUSE, VULNERABLE, audit, read_known

CVE = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.0"]}


def service(*answers: dict[str, Any], reachable: bool = True) -> Any:
    def ask(path: Path) -> Any:
        if VULNERABLE in path.read_text():
            return [{"name": "requests", "vulns": [{"id": "CVE-2018-18074"}] if reachable else []}]
        return list(answers)

    return ask


PINS = HOUSE / "constraints.txt"
GOOD = {"name": "good", "version": "1", "vulns": []}
BAD = {"name": "bad", "version": "1", "vulns": [CVE]}


@pytest.mark.parametrize("ask", [service(GOOD, reachable=False), lambda path: None])
def test_a_service_out_of_reach_is_said_and_fails_nothing(ask: Any) -> None:
    code, said = audit(PINS, {}, ask)
    assert code == 0 and "NOT DONE" in said[0]


def test_a_finding_fails_and_names_the_release_that_mends_it() -> None:
    code, said = audit(PINS, {}, service(GOOD, BAD))
    assert code == 1 and "FOUND: PYSEC-1 in bad 1, mended in 2.0" in said
    assert said[-1] == "audit: 2 packages, 1 findings, 1 unexplained"


@pytest.mark.parametrize("name", ["PYSEC-1", "CVE-1"])
def test_an_explained_finding_passes_with_its_reason(name: str) -> None:
    code, said = audit(PINS, {name: "bad: we never call it"}, service(GOOD, BAD))
    assert code == 0 and f"known: {name}, bad: we never call it" in said


def test_an_explanation_of_what_is_gone_and_a_package_that_was_skipped_are_told() -> None:
    code, said = audit(PINS, {"CVE-9": "x: y"}, service(GOOD, {"name": "own", "skip_reason": "not found"}))
    text = "\n".join(said)
    assert code == 0 and "CVE-9" in text and "index: own" in text and "1 packages" in text


def test_a_service_that_stops_answering_fails() -> None:
    asked = []

    def ask(path: Path) -> Any:
        asked.append(path)
        return service()(path) if len(asked) == 1 else None

    assert audit(PINS, {}, ask)[0] == 1


def test_known_findings_are_read_with_package_and_reason(tmp_path: Path) -> None:
    known = tmp_path / "known.yaml"
    known.write_text("")
    assert read_known(known) == {}
    known.write_text("- {id: CVE-1, package: bad, why: we never call it}\n- {id: CVE-2, package: worse, why: x}\n")
    assert read_known(known) == {"CVE-1": "bad: we never call it", "CVE-2": "worse: x"}
    assert not [name for name, why in read_known().items() if len(why) <= 40], "ours have a reason of some words"
