"""Pictures of the page of `kgqa serve` and of a report, light and dark, as docs/pictures has them.

    kgqa run --kg docs/quickstart/europe.ttl --home HOME --set questions.generated.size=600 \\
        --set label_parser.generated=400 --set label_parser.steps=60 --set hop_path.encoder=scratch
    python -m tools.pictures HOME docs/pictures

Needs Chromium.  The server runs on a free port of loopback, and the browser reaches nothing else.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import Home
from tests.support.browser import Browser

QUESTION = "Which countries border both France and Germany?"
DECLINED = "Who is the president of Iceland?"
ENTITY = "https://example.org/europe/Slovenia"
WIDE, PHONE = (1040, 900), (390, 844)
START_SECONDS, PICTURE_SECONDS = 240, 120
MOST_BYTES = 150_000


def main(home: Path, out: Path) -> None:
    """Takes every picture of a home's newest run."""
    report = Path(newest_run(Home(home))["report"])
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "log", size=WIDE) as browser:
        with _served(home) as address:
            for dark in (False, True):
                colours = "dark" if dark else "light"
                browser.emulate(*WIDE, dark=dark)
                _ask(browser, address, QUESTION, "Proof")
                _take(browser, out / f"ask-{colours}.png")
                _ask(browser, address, DECLINED, "Not in this graph")
                _take(browser, out / f"declined-{colours}.png")
                browser.open(f"{address}/entity?key={quote(ENTITY, safe='')}", "Slovenia", "borders", "Facts")
                _stand(browser)
                _take(browser, out / f"entity-{colours}.png")
                browser.emulate(*PHONE, dark=dark)
                _ask(browser, address, QUESTION, "Proof")
                _take(browser, out / f"phone-{colours}.png")
        for dark in (False, True):
            browser.emulate(*WIDE, dark=dark)
            browser.open(report.as_uri(), "Table 1")
            _take(browser, out / f"report-{'dark' if dark else 'light'}.png")


@contextlib.contextmanager
def _served(home: Path) -> Iterator[str]:
    """The address of a server of the home, once it answers."""
    command = [sys.executable, "-m", "flows.cli", "serve", "--home", str(home), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + START_SECONDS
    try:
        while True:
            with contextlib.suppress(OSError, ValueError, KeyError):
                address = str(json.loads((home / "serve" / "server.json").read_text(encoding="utf-8"))["url"])
                if urllib.request.urlopen(f"{address}/ready", timeout=10).status == 200:
                    break
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"kgqa serve --home {home} does not answer")
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def _ask(browser: Browser, address: str, question: str, word: str) -> None:
    browser.open(f"{address}/health", "alive")
    browser.run("sessionStorage.clear(); localStorage.clear()")
    browser.open(address, "in your own words")
    browser.fill("#question", question)
    browser.press("Enter")
    browser.wait(word)
    _stand(browser)


def _stand(browser: Browser) -> None:
    """Waits until the picture of the graph stands still, where there is one."""
    until = time.monotonic() + PICTURE_SECONDS
    moving = "document.querySelector('.picture') && document.querySelector('.picture').dataset.still !== 'true'"
    while browser.run(moving) and time.monotonic() < until:
        time.sleep(0.1)
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")


def _take(browser: Browser, path: Path) -> None:
    """Writes a picture, packed as well as PNG can, and says its size."""
    shot = Image.open(io.BytesIO(browser.picture(path, still=0.5).read_bytes())).convert("RGB")
    shot.save(path, optimize=True)
    size = path.stat().st_size
    sys.stdout.write(f"{path.name}: {shot.width} × {shot.height}, {size // 1000} kB\n")
    if size > MOST_BYTES:
        raise SystemExit(f"{path} has {size} bytes, more than {MOST_BYTES}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
