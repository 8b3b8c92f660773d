"""How many threads torch computes with: as many as other processes leave cores, for its threads wait by spinning."""

from __future__ import annotations

import math
import os
import time
from collections.abc import MutableMapping
from pathlib import Path

from kgqa_core.cores import own_cores

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
SECONDS = 0.3
"""For which the machine is watched."""
STAT = Path("/proc/stat")


def choose_threads(environment: MutableMapping[str, str]) -> str | None:
    """Sets the number of threads where other processes use cores, and the user said nothing; a line that says so.

    Two threads on two cores beside one busy process compute a fifth of what they do alone, and one thread two thirds
    (docs/footguns.md).  None where nothing was set.
    """
    if any(name in environment for name in VARIABLES):
        return None
    cores = len(own_cores())
    used = cores_in_use()
    threads = threads_beside(used, cores)
    if threads == cores:
        return None
    environment.update(dict.fromkeys(VARIABLES, str(threads)))
    return (
        f"other processes use {used:.1f} of {cores} cores: computing with {threads} thread{'s' * (threads > 1)} "
        "(OMP_NUM_THREADS sets another number)"
    )


def threads_beside(used: float, cores: int) -> int:
    """Threads that find a core of their own where others use so many cores; one at least."""
    return max(1, min(cores, math.floor(cores - used + 0.5)))


def cores_in_use(seconds: float = SECONDS) -> float:
    """How many of these cores are busy now; where the system does not tell, its load in the last minute."""
    try:
        first = _ticks()
        time.sleep(seconds)
        last = _ticks()
    except (OSError, ValueError):
        return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    busy, idle = last[0] - first[0], last[1] - first[1]
    return busy / (busy + idle) * len(own_cores()) if busy + idle else 0.0


def _ticks() -> tuple[int, int]:
    """Busy and idle ticks of this process's cores since the machine started.  Raises OSError, ValueError."""
    names = {f"cpu{number}" for number in own_cores()}
    rows = [line.split() for line in STAT.read_text(encoding="ascii").splitlines()]
    numbers = [[int(word) for word in row[1:9]] for row in rows if row[:1] and row[0] in names]
    if not numbers or any(len(row) < 5 for row in numbers):
        raise ValueError(f"{STAT} does not tell of the cores {sorted(names)}")
    idle = sum(row[3] + row[4] for row in numbers)
    return sum(map(sum, numbers)) - idle, idle
