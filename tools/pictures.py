"""Pictures of the page of `kgqa serve`, of a report and of both UIs, as docs/pictures has them.

    python -m tools.pictures docs/pictures
    kgqa demo --home DEMO
    python -m tools.pictures docs/pictures DEMO

The page is that of `kgqa serve --kg docs/quickstart/europe.ttl`, report and UIs those of DEMO, where one is given.
Needs Chromium.  The servers run on free ports of loopback, and the browser reaches nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

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
WIDE, PHONE = (1040, 900), (390, 844)
ASKED = (
    ("ask", WIDE, "Which countries border both France and Germany?", "Proof"),
    ("declined", WIDE, "Who is the president of Iceland?", "Not in this graph"),
    ("phone", PHONE, "Which countries border both France and Germany?", "Proof"),
)
"""Name of the picture, size of the window, question, and a word that its answer shows."""
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
            _ask(browser, address, ASKED[0][2], ASKED[0][3])  # the first answer is a slow one
            for dark in (False, True):
                colours = "dark" if dark else "light"
                for name, size, question, word in ASKED:
                    browser.emulate(*size, dark=dark)
                    _ask(browser, address, question, word)
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
            for name, page, *words in (
                ("mlflow-runs", pages["All runs"], "Run Name"), ("mlflow-system", metrics, "cpu_utilization"),
                ("prefect-run", pages["Prefect UI"], "Completed"),
            ):  # fmt: skip
                browser.emulate(*WIDE)
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


def _ask(browser: Browser, address: str, question: str, word: str) -> None:
    _fresh(browser, address)
    browser.fill("#question", question)
    browser.press("Enter")
    browser.wait(word)
    if word == "Proof":
        browser.count(".node")
    _stand(browser)


def _stand(browser: Browser) -> None:
    """Waits until the picture of the graph stands still, where there is one."""
    until = time.monotonic() + PICTURE_SECONDS
    moving = "document.querySelector('.picture') && document.querySelector('.picture').dataset.still !== 'true'"
    while browser.run(moving) and time.monotonic() < until:
        time.sleep(0.1)
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")


def _take(browser: Browser, path: Path) -> None:
    """Writes a picture and says its size."""
    size = browser.picture(path, still=0.5).stat().st_size
    sys.stdout.write(f"{path.name}: {size // 1000} kB\n")
    if size > MOST_BYTES:
        raise SystemExit(f"{path} has {size} bytes, more than {MOST_BYTES}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
