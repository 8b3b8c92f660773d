"""A server of the S3 protocol on loopback, as a process that can be killed."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.command import closed_port

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "id-canary-4711", "AWS_SECRET_ACCESS_KEY": "secret-canary-0815"}
START = "from moto.server import main; main()"


@dataclass
class ObjectStore:
    """One server.  options: further environment, e.g. to make it check credentials."""

    options: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port = closed_port()
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a user would set."""
        return {
            **CREDENTIALS,
            "AWS_ENDPOINT_URL": self.address,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "KGQA_STORE": "s3://bucket/prefix",
        }

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", **self.options},
        )
        deadline = time.monotonic() + 600
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/moto-api/", timeout=2).close()
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline, "the S3 server does not start"
                time.sleep(0.1)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def make_bucket(self) -> None:
        request = urllib.request.Request(f"{self.address}/bucket", method="PUT")
        urllib.request.urlopen(request, timeout=120).close()

    def copy_into(self, folder: Path) -> int:
        """Copies every object of the bucket into a folder; how many there are."""
        import boto3

        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=self.address, **keys)
        names = [
            found["Key"]
            for page in client.get_paginator("list_objects_v2").paginate(Bucket="bucket")
            for found in page.get("Contents", ())
        ]
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            client.download_file("bucket", name, str(folder / name))
        return len(names)

    def reset(self) -> None:
        """Forget everything and have one empty bucket."""
        request = urllib.request.Request(f"{self.address}/moto-api/reset", method="POST")
        urllib.request.urlopen(request, timeout=120).close()
        self.make_bucket()
