"""`make audit`: the pinned packages against the database of known vulnerabilities, by pip-audit.

pip-audit calls what it cannot look up "no known vulnerabilities".  So it is first asked about a release that is known
to be vulnerable; when it does not know that one, the service is out of reach, which is said and fails nothing.
`known_findings.yaml` beside this file has the findings that we live with, and why.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

HOUSE = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).with_name("known_findings.yaml")
VULNERABLE = "requests==2.19.0"
"""CVE-2018-18074: a release that every database of vulnerabilities knows."""

Found = list[Mapping[str, Any]]
Ask = Callable[[Path], Found | None]


def ask_service(requirements: Path) -> Found | None:
    """What pip-audit says of each pinned package; None when it gives no answer."""
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip_audit", "--requirement", str(requirements), *options],
            capture_output=True, text=True, timeout=900,
        )  # fmt: skip
        return list(json.loads(done.stdout)["dependencies"])
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
        return None


def read_known(path: Path = KNOWN) -> dict[str, str]:
    """Findings that we live with: id → why."""
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return {row["id"]: f"{row['package']}: {row['why']}" for row in rows}


def audit(pins: Path, known: Mapping[str, str], ask: Ask = ask_service) -> tuple[int, list[str]]:
    """Exit code and what to say.  1 only when the service answers and names something that is not explained."""
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "requirements.txt"
        probe.write_text(VULNERABLE + "\n", encoding="utf-8")
        told = ask(probe)
    if not any(package.get("vulns") for package in told or ()):
        return 0, [
            f"audit: NOT DONE.  The vulnerability service is out of reach (it knows nothing of {VULNERABLE}).",
            "Run `make audit` where pypi.org is reachable before a release.",
        ]
    answers = ask(pins)
    if answers is None:
        return 1, ["audit: pip-audit gave no answer for constraints.txt; run `make audit` again"]
    skipped = [package["name"] for package in answers if "skip_reason" in package]
    findings = [(package, vuln) for package in answers for vuln in package.get("vulns", ())]
    said, open_ones, met = [], 0, set()
    for package, vuln in findings:
        ids = {vuln["id"], *vuln.get("aliases", ())}
        explained = sorted(ids & set(known))
        met |= ids
        if explained:
            said.append(f"known: {explained[0]}, {known[explained[0]]}")
            continue
        open_ones += 1
        mended = ", ".join(vuln.get("fix_versions", ())) or "no release"
        said.append(f"FOUND: {vuln['id']} in {package['name']} {package.get('version')}, mended in {mended}")
    said += [f"no longer met, take it out of {KNOWN.name}: {name}" for name in sorted(set(known) - met)]
    if skipped:
        said.append(f"not in the service's index: {', '.join(skipped)}")
    if open_ones:
        said.append(f"raise the pin in constraints.txt, or explain the finding in {KNOWN.relative_to(HOUSE)}")
    said.append(f"audit: {len(answers) - len(skipped)} packages, {len(findings)} findings, {open_ones} unexplained")
    return int(open_ones > 0), said


def main() -> int:
    """Audits constraints.txt."""
    code, said = audit(HOUSE / "constraints.txt", read_known())
    sys.stdout.write("\n".join(said) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
