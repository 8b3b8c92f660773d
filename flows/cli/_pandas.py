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

NEEDED_BY = "mlflow"


class _NoPandas(MetaPathFinder):
    """Says that pandas is not installed, until MLflow is looked for.

    An entry of None in `sys.modules` would do the same for Python; pyarrow's import takes it for the module.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None, so that the other finders go on.  Raises ModuleNotFoundError for pandas."""
        if fullname == NEEDED_BY:
            allow_pandas()
        elif fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out in this process", name=fullname)
        return None


_finder = _NoPandas()


def without_pandas() -> None:
    """Makes `import pandas` fail from now on, as where it is not installed, unless it or MLflow is imported already."""
    if not {"pandas", NEEDED_BY} & sys.modules.keys() and _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def allow_pandas() -> None:
    """Makes it importable again."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
