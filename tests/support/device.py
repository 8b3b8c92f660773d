"""Where tests train and generate: `KGQA_TEST_DEVICE`, such as `cuda`, else the CPU."""

from __future__ import annotations

import os

DEVICE = os.environ.get("KGQA_TEST_DEVICE", "cpu")
"""For options `device`."""
