"""The two consoles of a command: what it prints for people, and what it says while it works."""

from __future__ import annotations

from kgqa_core.report.terminal import TerminalConsole

err = TerminalConsole(stderr=True)
out = TerminalConsole()
