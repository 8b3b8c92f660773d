"""Where the files under test lie."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
INFRA = REPOSITORY / "infra"
KUBERNETES = INFRA / "kubernetes"
SECRET_WORDS = ("PASSWORD", "SECRET", "TOKEN", "ACCESS_KEY", "API_KEY", "AUTH_STRING")
NO_SECRETS = ("TOKENIZERS_PARALLELISM",)


def is_secret(name: str) -> bool:
    """Does a variable of this name hold a secret?"""
    return name not in NO_SECRETS and any(word in name.upper() for word in SECRET_WORDS)
