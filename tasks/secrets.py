"""How secrets come into a run: from the environment, or from Secret blocks of Prefect that fill it for this process.

No profile holds a secret, since profiles are written into runs, trackers and Prefect's parameters.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from kgqa_core.config import Profile
from kgqa_core.errors import ConfigError
from kgqa_core.llm.faults import is_web, shown
from tasks.servers.clients import point_clients

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*(KEY|KEY_ID|TOKEN|PASSWORD|SECRET)|KGQA_STORE_OPTIONS")
"""Variables that a profile may have filled: such that hold secrets, and no others."""
SECRET = re.compile(r"key|token|secret|passw|auth|sig", re.IGNORECASE)
"""Names of query parameters whose values are secrets."""


def load_secrets(profile: Profile) -> None:
    """Refuse a profile that holds a secret, and fill the variables of `operations.secrets` that are not set.

    Raises ConfigError, which names no secret.
    """
    _check_addresses(profile)
    for variable, block in profile.operations.secrets.items():
        if not VARIABLE.fullmatch(variable):
            raise ConfigError(
                f"operations.secrets: {variable!r} is not a variable for a secret; its name must end in KEY, KEY_ID, "
                "TOKEN, PASSWORD or SECRET, or be KGQA_STORE_OPTIONS"
            )
        if not os.environ.get(variable):
            os.environ[variable] = _read(variable, block)


def load_secrets_of(profile: Profile, home: Path) -> None:
    """The same in a process that no command of ours set up: from the Prefect server or store of a home.

    That process's own settings of Prefect go before; they are not touched where no variable needs a block.
    Raises ConfigError, as `load_secrets`.
    """
    if not all(os.environ.get(variable) for variable in profile.operations.secrets):
        point_clients(home)
    load_secrets(profile)


def _read(variable: str, block: str) -> str:
    from prefect.blocks.system import Secret

    hint = f"make it in Prefect's UI under Blocks, or set {variable} in the environment"
    try:
        value = Secret.load(block, _sync=True).get()  # type: ignore[call-arg, union-attr]
    except ValueError:
        raise ConfigError(
            f"operations.secrets.{variable}: the Prefect server has no Secret block {block!r}; {hint}"
        ) from None
    except Exception as fault:  # its text may hold what the server sent
        raise ConfigError(
            f"operations.secrets.{variable}: the Secret block {block!r} cannot be read ({type(fault).__name__}); {hint}"
        ) from None
    text = value if isinstance(value, str) else json.dumps(value)
    if not text or "\0" in text:
        raise ConfigError(f"operations.secrets.{variable}: the Secret block {block!r} is empty or no text; {hint}")
    return text


def _check_addresses(profile: Profile) -> None:
    addresses = {"llm.base_url": profile.llm.base_url}
    addresses |= {f"llm.endpoints.{name}.base_url": each.base_url for name, each in profile.llm.endpoints.items()}
    if profile.linking.service is not None:
        addresses["linking.service.url"] = profile.linking.service.url
    for key, address in addresses.items():
        if address is None:
            continue
        if not is_web(address):  # which may be a mistyped password: it is not shown
            raise ConfigError(f"{key} is not an http(s) address; write for example http://localhost:8000/v1")
        named = [name for name, _ in parse_qsl(urlsplit(address).query) if SECRET.search(name)]
        if "@" in address or named:
            what = "a user or password" if "@" in address else f"a secret in {named[0]!r}"
            raise ConfigError(
                f"{key} ({shown(address)}) holds {what}, and "
                "profiles are written into every run; put the key into an environment variable and name it in "
                f"{'linking.service' if key.startswith('linking') else 'llm.endpoints.NAME'}.key_env"
            )
