"""Where the files under test lie, what is a pinned image, an address and a secret, and faults that must be found."""

import re
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
INFRA = REPOSITORY / "infra"
KUBERNETES = INFRA / "kubernetes"
ADDRESS = re.compile(r"(?:@|//)([a-z][a-z0-9-]*):(\d+)")
PINNED = re.compile(r"^[\w./-]+(:v?\d+\.\d+[\w.-]*|@sha256:[0-9a-f]{64})$")
SECRET_WORDS = ("PASSWORD", "SECRET", "TOKEN", "ACCESS_KEY", "API_KEY", "AUTH_STRING")
NO_SECRETS = ("TOKENIZERS_PARALLELISM",)


def is_secret(name: str) -> bool:
    """Does a variable of this name hold a secret?"""
    return name not in NO_SECRETS and any(word in name.upper() for word in SECRET_WORDS)


def read_faults(files: str) -> list[list[str]]:
    """Name, (file,) old and new text, and words of the problem, of the faults of images, compose or kubernetes."""
    text = Path(__file__).with_name("faults.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load(text)[files])
