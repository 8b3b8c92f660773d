"""How many examples a property is tried on: an eighth of them in the default run, all of them in `make test-all`."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

QUICK = "KGQA_QUICK_EXAMPLES"
"""Set by conftest where slow tests are left out."""


def examples(count: int, **more: Any) -> settings:
    """Settings of a property that is tried on `count` examples, at least three, without a deadline."""
    return settings(max_examples=max(3, count // 8) if QUICK in os.environ else count, deadline=None, **more)
