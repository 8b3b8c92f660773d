"""The calls of docs/serving.md, run by a shell against a server over a graph file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kgqa_core.runs.graph_files import graph_record
from kgqa_core.serving.feedback import FeedbackStore
from kgqa_core.serving.http import HttpOptions, create_app
from kgqa_core.serving.service import Service
from kgqa_core.serving.systems import SystemSource
from kgqa_core.store.artifacts import Home
from tests.support.command import ROOT
from tests.support.question_graph import triples
from tests.support.served import listening

PAGE = ROOT / "docs" / "serving.md"
BLOCK = re.compile(r"^```sh\nurl=http://127\.0\.0\.1:8000\n(?P<calls>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_the_calls_of_the_page_get_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "films.nt").write_text("\n".join(triples()) + "\n", encoding="utf-8")
    home = Home(tmp_path / "home").prepare()
    service = Service(SystemSource(home, record=graph_record(home, [tmp_path / "films.nt"])))
    found = BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    shown = re.findall(r"^# → (.*)$", found["calls"], re.MULTILINE)
    calls = re.sub(r"^# → .*$", "echo; echo ::next", found["calls"], flags=re.MULTILINE)
    with listening(create_app(service, HttpOptions(naming=True), FeedbackStore(tmp_path / "serve"))) as url:
        script = f"set -eu -o pipefail\nurl={url}\n{calls}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    replies = done.stdout.split("::next\n")[:-1]
    assert len(replies) == len(shown) > 7
    assert [text for text, reply in zip(shown, replies, strict=True) if text not in reply] == [], replies
