"""Pages as a user sees them: one headless Chromium, told over its DevTools socket where to go, what to click, when to
take the picture.  It reaches loopback only.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.servers import end_family

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-port=0"
).split()
LOOPBACK_ONLY = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
START_SECONDS, PAGE_SECONDS = 300, 300


class Browser:
    """A browser with one tab, while the `with` block lasts.  log: where its own messages go.

    names: host names that lead to loopback; all others lead nowhere.  requested: addresses that pages asked for, after
    `watch`.
    """

    def __init__(self, log: Path, size: tuple[int, int] = (1400, 1000), names: Sequence[str] = ()) -> None:
        self._log, self._size = log, size
        self._rules = LOOPBACK_ONLY.replace("=", "=" + "".join(f"MAP {name} 127.0.0.1 , " for name in names), 1)
        self._exit = contextlib.ExitStack()
        self._calls = 0
        self._socket: Any = None
        self.requested: list[str] = []

    def __enter__(self) -> Browser:
        program = chromium()
        if program is None:
            raise RuntimeError(NO_CHROMIUM)
        folder = Path(tempfile.mkdtemp(prefix="kgqa-chromium-"))
        self._exit.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            log = self._exit.enter_context(self._log.open("ab"))
            words = [program, *OPTIONS, self._rules, f"--user-data-dir={folder}", "about:blank"]
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )  # fmt: skip
            self._exit.callback(end_family, process)
            self._socket = self._exit.enter_context(_connect(folder / "DevToolsActivePort", process))
        except BaseException:
            self._exit.close()
            raise
        width, height = self._size
        self._call("Page.enable")
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        return self

    def __exit__(self, *_: Any) -> None:
        self._exit.close()

    def open(self, url: str, *words: str) -> str:
        """Go to a page and wait until it shows all `words`; the text it shows.  Raises AssertionError."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=url)
        return self.wait(*words)

    def wait(self, *words: str) -> str:
        """The text that the page shows, once it has all `words`.  Raises AssertionError with what it shows instead."""
        until = time.monotonic() + PAGE_SECONDS
        text = ""
        while time.monotonic() < until:
            text = self.text()
            if text and all(word in text for word in words):
                return text
            time.sleep(0.25)
        missing = [word for word in words if word not in text]
        raise AssertionError(f"{self.run('location.href')} does not show {missing}, but:\n{text[:3000]}")

    def text(self) -> str:
        """The text that the page shows now."""
        return str(self.run("document.body ? document.body.innerText : ''") or "")

    def count(self, selector: str, at_least: int = 1) -> int:
        """Elements of a CSS selector, once there are so many.  Raises AssertionError."""
        until = time.monotonic() + PAGE_SECONDS
        found = 0
        while time.monotonic() < until:
            found = int(self.run(f"document.querySelectorAll({json.dumps(selector)}).length"))
            if found >= at_least:
                return found
            time.sleep(0.25)
        raise AssertionError(f"{self.run('location.href')} has {found} of {selector!r}, not {at_least}")

    def click(self, label: str) -> None:
        """Click the element whose own text is `label`.  Raises AssertionError when there is none."""
        chosen = (
            "[...document.body.querySelectorAll('*')]"
            f".filter(found => found.innerText && found.innerText.trim() === {json.dumps(label)}).pop()"
        )
        until = time.monotonic() + PAGE_SECONDS
        while time.monotonic() < until:
            if self.run(f"(found => found ? (found.click(), true) : false)({chosen})"):
                return
            time.sleep(0.25)
        raise AssertionError(f"{self.run('location.href')} has nothing called {label!r} to click")

    def dismiss(self) -> None:
        """Close what lies over or beside the page: assistants, announcements."""
        self.run("document.querySelectorAll('button[aria-label*=lose]').forEach(found => found.click())")

    def fill(self, selector: str, text: str) -> None:
        """Type into the first input of a CSS selector.  Raises AssertionError when there is none."""
        self.count(selector)
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self._call("Input.insertText", text=text)

    def choose(self, selector: str, file: Path) -> None:
        """Choose a file in the first file input of a CSS selector."""
        root = self._call("DOM.getDocument")["root"]["nodeId"]
        node = self._call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self._call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key in the element that has the focus: `Enter`, `Escape`, `Tab`, an arrow, a letter."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        given = {"key": key, "windowsVirtualKeyCode": code.get(key, ord(key[0].upper())), "modifiers": 8 * shift}
        self._call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **given)
        self._call("Input.dispatchKeyEvent", type="keyUp", **given)

    def mouse(self, selector: str, *, times: int = 1, by: tuple[int, int] = (0, 0)) -> None:
        """Click the middle of an element, or drag it from there.  Raises AssertionError when there is none."""
        self.count(selector)
        found = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{found}.scrollIntoView({{block: 'center'}})")
        box = json.loads(self.run(f"JSON.stringify({found}.getBoundingClientRect())"))
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for turn in range(1, times + 1):
            given = {"x": x, "y": y, "button": "left", "clickCount": turn}
            self._call("Input.dispatchMouseEvent", type="mousePressed", buttons=1, **given)
            for step in (1, 2, 3) if any(by) else ():
                given |= {"x": x + by[0] * step / 3, "y": y + by[1] * step / 3}
                self._call("Input.dispatchMouseEvent", type="mouseMoved", buttons=1, **given)
            self._call("Input.dispatchMouseEvent", type="mouseReleased", **given)

    def emulate(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the window another size, and the system the light or the dark colours."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def watch(self) -> None:
        """Begin to note which addresses pages ask for, also those that are refused."""
        self._call("Network.enable")

    def drawn(self, selector: str, least: int = 15_000) -> None:
        """Wait until the drawing in an element, a canvas say, is there and stands still.  Raises AssertionError.

        least: bytes of its picture; one colour takes some hundreds, empty axes some thousands.
        """
        box = (
            f"(found => found ? JSON.stringify(found.getBoundingClientRect()) : '')"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        until = time.monotonic() + PAGE_SECONDS
        last = ""
        while time.monotonic() < until:
            found = json.loads(self.run(box) or "{}")
            if found.get("width") and found.get("height"):
                clip = {key: found[key] for key in ("x", "y", "width", "height")} | {"scale": 1}
                now = str(self._call("Page.captureScreenshot", format="png", clip=clip)["data"])
                if now == last and len(now) * 3 / 4 >= least:
                    return
                last = now
            time.sleep(1)
        raise AssertionError(f"{self.run('location.href')} draws nothing in {selector!r}")

    def picture(self, out: Path, *, still: float = 1.5) -> Path:
        """A screenshot, when the page's text has not changed for `still` seconds."""
        text, since = self.text(), time.monotonic()
        until = since + PAGE_SECONDS
        while time.monotonic() < min(since + still, until):
            time.sleep(0.25)
            if (now := self.text()) != text:
                text, since = now, time.monotonic()
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))
        return out

    def run(self, script: str) -> Any:
        """Value of a script in the page; of a promise, what it comes to."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": params}))
        while True:
            reply = json.loads(self._socket.recv(timeout=PAGE_SECONDS))
            if reply.get("method") == "Network.requestWillBeSent":
                self.requested.append(reply["params"]["request"]["url"])
            if reply.get("id") == self._calls:
                if "error" in reply:
                    raise RuntimeError(f"the browser refused {method}: {reply['error']}")
                return dict(reply["result"])


NO_CHROMIUM = "no Chromium on this machine: neither `chromium`, `chromium-browser` nor `google-chrome` is in PATH"


def chromium() -> str | None:
    """The browser's program, or None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _connect(port_file: Path, process: subprocess.Popen[bytes]) -> Any:
    from websockets.sync.client import connect

    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
            port = int(port_file.read_text().splitlines()[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=5) as reply:
                tab = next(found for found in json.load(reply) if found["type"] == "page")
            return connect(tab["webSocketDebuggerUrl"], max_size=None, proxy=None)
        time.sleep(0.2)
    raise RuntimeError(f"the browser did not start (it ended with {process.poll()})")
