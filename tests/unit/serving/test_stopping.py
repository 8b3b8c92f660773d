"""A server that is busy ends in time after a signal, and says so to those who wait."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.command import ROOT

SERVER = """
import socket, sys, time
from kgqa_core.serving import http, run
from kgqa_core.serving.service import Service
from tests.support.served import EchoSource, EchoSystem

class Stuck:
    def wait(self, seconds):
        time.sleep(100)

run.GRACE_SECONDS, run.CLOSE_SECONDS, http.CLOSE_SECONDS = 1, 0.5, 0.5
service = Service(EchoSource(one=EchoSystem(gate=Stuck())))
service.start()
bound = socket.create_server(("127.0.0.1", 0))
print(bound.getsockname()[1], flush=True)
run.serve(run.ServeOptions(home=sys.argv[1]), bound, service, worker="")
"""


def test_a_busy_server_ends_within_its_grace_and_refuses_what_waits(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    url = f"http://127.0.0.1:{int(process.stdout.readline())}/ask"

    def ask(number: int) -> int:
        body = json.dumps({"question": f"q{number}"}).encode()
        try:
            return int(
                urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).status
            )
        except urllib.error.HTTPError as fault:
            return fault.code

    with ThreadPoolExecutor(8) as pool:
        replies = pool.map(ask, range(8))
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        output, _ = process.communicate(timeout=60)
        assert time.monotonic() - began < 6 and process.returncode == 0 and "Traceback" not in output
        assert set(replies) == {503}
