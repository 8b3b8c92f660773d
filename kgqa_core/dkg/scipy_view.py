"""The DKG as the three sparse maps of the paper (reified KB, Cohen et al. 2020), for tests and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

if TYPE_CHECKING:
    from kgqa_core.dkg.csr import Dkg


def scipy_matrices(dkg: Dkg) -> tuple[csr_matrix, csr_matrix, csr_matrix]:
    """M_left [T', E], M_rel [T', 2R], M_right [T', E]: binary float32 CSR.

    follow(x, r) = M_right^T [(M_left x) * (M_rel r)] (eq. 2).  T' counts *directed edges* in edge-index order, inverses
    included ("inverse triples are in the DKG"), so row i of each matrix is edge i of the CSR; edges out of literals are
    rows only where the DKG stores them.
    """
    edges = dkg.edges_stored
    left = np.repeat(np.arange(dkg.entities, dtype=np.int64), np.diff(dkg.ptr))

    def selector(columns: np.ndarray, width: int) -> csr_matrix:
        ones = np.ones(edges, dtype=np.float32)
        return csr_matrix((ones, columns.astype(np.int64), np.arange(edges + 1, dtype=np.int64)), shape=(edges, width))

    return selector(left, dkg.entities), selector(dkg.rel, 2 * dkg.relations), selector(dkg.tail, dkg.entities)
