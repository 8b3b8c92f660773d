"""Where the packaged files of the label parser are; apart from its model, which imports torch."""

from __future__ import annotations

from pathlib import Path

HEAD_START = Path(__file__).parent / "head_start"
"""The packaged adapter (docs/model_cards/label_parser.md)."""
