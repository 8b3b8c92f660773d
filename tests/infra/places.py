"""Where the files under test lie, and what is a pinned image, an address and a secret."""

import re
from pathlib import Path

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
