"""Commands that read a home do without pandas, which DuckDB would import with the first parameter of a query.

That import takes half a second, and none of our queries gives or takes a table of pandas.  MLflow needs it: the first
import of MLflow makes pandas importable again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

NEEDED_BY = "mlflow"


class _PandasAgain(MetaPathFinder):
    """Finds nothing; makes pandas importable when MLflow is looked for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None, so that the other finders go on."""
        if fullname == NEEDED_BY:
            allow_pandas()
        return None


_finder = _PandasAgain()


def without_pandas() -> None:
    """Makes `import pandas` fail from now on, as where it is not installed, unless it or MLflow is imported already."""
    if not {"pandas", NEEDED_BY} & sys.modules.keys():
        cast(dict[str, Any], sys.modules)["pandas"] = None
        sys.meta_path.insert(0, _finder)


def allow_pandas() -> None:
    """Makes it importable again."""
    if cast(dict[str, Any], sys.modules).get("pandas", sys) is None:
        del sys.modules["pandas"]
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
