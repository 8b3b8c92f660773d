"""Pictures of the page of `kgqa serve`, of a report and of both UIs, as docs/pictures has them.

    python -m tools.pictures docs/pictures
    kgqa demo --home DEMO
    python -m tools.pictures docs/pictures DEMO

The page is that of `kgqa serve --kg docs/quickstart/europe.ttl`, report and UIs those of DEMO, where one is given.
Needs Chromium.  The servers run on free ports of loopback; the browser reaches nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from flows.cli.servers import links
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import Home
from tasks.servers.login import LOGIN, ensure_auth_string, record_file
from tests.support.browser import Browser
from tests.support.chaos import wait_for
from tests.support.command import closed_port
from tests.support.kgqa_serve import served

GRAPH = "docs/quickstart/europe.ttl"
STATEMENT = "SELECT key, kind, popularity FROM entities ORDER BY popularity DESC"
ENTITY = "https://example.org/europe/Slovenia"
WIDE, PHONE, UIS_WIDTH = (1040, 900), (390, 844), 1440
ASKED = (
    ("ask", WIDE, ("Which countries border both France and Germany?",), "Proof"),
    ("declined", WIDE, ("Who is the president of Iceland?",), "Not in this graph"),
    ("not-understood", WIDE, ("Which landlocked countries border Germany?",), "I did not understand"),
    ("unsure", WIDE, ("What is the size of the city of Rome?",), "I am not sure"),
    (
        "conversation",
        WIDE,
        ("What is the capital of France?", "and of Spain?", "its population"),
        "population of capital of Spain",
    ),
    ("phone", PHONE, ("Which countries border both France and Germany?",), "Proof"),
)
"""Name of the picture, size of the window, questions one after the other, and a word that the last answer shows."""
BOXES = "[...document.querySelectorAll('main details, main .card')]"
BOTTOM = f"Math.max(...{BOXES}.map(one => one.getBoundingClientRect().bottom))"
MARGIN, MOST_HEIGHT, UI_SECONDS = 40, 1250, 8
PICTURE_SECONDS = 120
MOST_BYTES = 150_000


def main(out: Path, demo: Path | None = None) -> None:
    """Takes every picture of the page, and those of the report of a demo's newest run where one is given."""
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "log", size=WIDE) as browser:
        with served(Path(folder) / "home", "--kg", GRAPH) as server:
            address = server.url
            _ask(browser, address, *ASKED[0][2:])  # the first answer is a slow one
            for dark in (False, True):
                colours = "dark" if dark else "light"
                for name, size, questions, word in ASKED:
                    browser.emulate(*size, dark=dark)
                    _ask(browser, address, questions, word)
                    _whole(browser, out / f"{name}-{colours}.png", size, dark=dark)
                browser.emulate(*WIDE, dark=dark)
                _fresh(browser, address)
                browser.wait("What is in it", "It answers, for example")
                _whole(browser, out / f"start-{colours}.png", WIDE, dark=dark)
                browser.emulate(*WIDE, dark=dark)
                browser.open(f"{address}/console?sql={quote(STATEMENT)}", "Run")
                browser.click("Run")
                browser.wait("100 rows")
                _stand(browser)
                _take(browser, out / f"console-{colours}.png")
                browser.open(f"{address}/entity?key={quote(ENTITY, safe='')}", "Slovenia", "borders", "Facts")
                _stand(browser)
                _take(browser, out / f"entity-{colours}.png")
        for dark in (False, True) if demo is not None else ():
            browser.emulate(*WIDE, dark=dark)
            browser.open(Path(newest_run(Home(Path(demo or "")))["report"]).as_uri(), "Table 1")
            _take(browser, out / f"report-{'dark' if dark else 'light'}.png")
        if demo is not None:
            _uis(browser, out, Home(demo))


def _uis(browser: Browser, out: Path, home: Home) -> None:
    """Writes pictures of a home's newest run in its UIs: MLflow's table of runs, system metrics, the flow."""
    command = [sys.executable, "-m", "flows.cli", "ui", "--home", str(home.root), "--prefect-port", str(closed_port())]
    record, known = newest_run(home), record_file(home.root)
    with subprocess.Popen([*command, "--mlflow-port", str(closed_port())], stdout=subprocess.DEVNULL) as server:
        try:
            wait_for(known.exists, "the UIs did not start", PICTURE_SECONDS)
            pages, login = links(record), quote(ensure_auth_string(home.root), safe=":")
            metrics = pages["MLflow UI"].replace("?", "/system-metrics?", 1)
            for name, height, page, *words in (
                ("mlflow-runs", 480, pages["All runs"], "Run Name", "answers/wrong"),
                ("mlflow-system", 780, metrics, "cpu_utilization"),
                ("prefect-run", 780, pages["Prefect UI"], "Completed"),
            ):
                browser.emulate(UIS_WIDTH, height)
                browser.open(f"{page.partition('/#')[0].partition('/runs')[0]}{LOGIN}#{login}")
                time.sleep(UI_SECONDS)  # the page logs in by a request of its own
                browser.open(page, *words)
                time.sleep(UI_SECONDS)
                _take(browser, out / f"{name}.png")
        finally:
            server.terminate()


def _whole(browser: Browser, path: Path, size: tuple[int, int], *, dark: bool) -> None:
    """Writes a picture as high as what the page shows."""
    height = int(browser.run(BOTTOM))
    browser.emulate(size[0], min(height + MARGIN, MOST_HEIGHT), dark=dark)
    _stand(browser)
    _take(browser, path)


def _fresh(browser: Browser, address: str) -> None:
    browser.open(f"{address}/health", "alive")
    browser.run("sessionStorage.clear(); localStorage.clear()")
    browser.open(address, "in your own words")


def _ask(browser: Browser, address: str, questions: Sequence[str], word: str) -> None:
    _fresh(browser, address)
    for number, question in enumerate(questions):
        browser.fill("#question", question)
        browser.press("Enter")
        browser.count(".past", number)
        _until(browser, "!!document.querySelector('.turn:not(.waiting)')")
    if "Proof" in browser.wait(word):
        browser.count(".node")
    _stand(browser)


def _stand(browser: Browser) -> None:
    """Waits until the pictures of the graph stand still, where there are some."""
    _until(browser, "[...document.querySelectorAll('.picture')].every(one => one.dataset.still === 'true')")
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")


def _until(browser: Browser, condition: str) -> None:
    until = time.monotonic() + PICTURE_SECONDS
    while not browser.run(condition) and time.monotonic() < until:
        time.sleep(0.1)


def _take(browser: Browser, path: Path) -> None:
    """Writes a picture with at most 256 colours and says its size."""
    browser.picture(path, still=0.5)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE).save(
            path, optimize=True
        )
    size = path.stat().st_size
    sys.stdout.write(f"{path.name}: {size // 1000} kB\n")
    if size > MOST_BYTES:
        raise SystemExit(f"{path} has {size} bytes, more than {MOST_BYTES}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
