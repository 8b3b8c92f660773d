"""The compiled loop of `patch_apply`: sorted triples, without some and with others."""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")

GONE, CAME, RANKED = range(3)
"""Places of `merge`'s state, int64 [3]: how many of each were used."""


@_jit
def merge(
    first: int,
    rows: Array,
    ranks: Array,
    gone: Array,
    came: Array,
    came_ranks: Array,
    ranked: Array,
    new_ranks: Array,
    last: bool,
    state: Array,
    out: Array,
    out_ranks: Array,
) -> int:
    """Fills `out` and `out_ranks` with a piece of the old triples, changed; how many that are.

    first: id of the first triple of the piece.  rows, came: int32 [3, n], sorted by (head, relation, tail) down the
    columns.  gone, ranked: ids, ascending; new_ranks: of `ranked`.  last: nothing comes after this piece.  out: room
    for the piece and `came`.
    """
    g, a, k = state[GONE], state[CAME], state[RANKED]
    at = 0
    for i in range(rows.shape[1]):
        h, r, t = rows[0, i], rows[1, i], rows[2, i]
        while a < came.shape[1] and (
            came[0, a] < h or (came[0, a] == h and (came[1, a] < r or (came[1, a] == r and came[2, a] < t)))
        ):
            out[0, at], out[1, at], out[2, at], out_ranks[at] = came[0, a], came[1, a], came[2, a], came_ranks[a]
            a += 1
            at += 1
        number = first + i
        if g < gone.shape[0] and gone[g] == number:
            g += 1
            continue
        rank = ranks[i]
        if k < ranked.shape[0] and ranked[k] == number:
            rank = new_ranks[k]
            k += 1
        out[0, at], out[1, at], out[2, at], out_ranks[at] = h, r, t, rank
        at += 1
    if last:
        while a < came.shape[1]:
            out[0, at], out[1, at], out[2, at], out_ranks[at] = came[0, a], came[1, a], came[2, a], came_ranks[a]
            a += 1
            at += 1
    state[GONE], state[CAME], state[RANKED] = g, a, k
    return at
