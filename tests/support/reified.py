"""The reified KB of Cohen et al. 2020, which `follow` is compared with."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from kgqa_core.dkg.csr import Dkg


def sparse_maps(dkg: Dkg) -> tuple[csr_matrix, csr_matrix, csr_matrix]:
    """M_left [T', E], M_rel [T', 2R] and M_right [T', E], binary float32 CSR; row i is directed edge i of the DKG.

    follow(x, r) = M_right^T [(M_left x) * (M_rel r)] (eq. 2).  Edges out of literals are rows where the
    DKG stores them.
    """
    edges = dkg.edges_stored
    ones, starts = np.ones(edges, dtype=np.float32), np.arange(edges + 1, dtype=np.int64)
    left = np.repeat(np.arange(dkg.entities, dtype=np.int64), np.diff(dkg.ptr))
    columns = ((left, dkg.entities), (dkg.rel, 2 * dkg.relations), (dkg.tail, dkg.entities))
    first, second, third = (csr_matrix((ones, c.astype(np.int64), starts), shape=(edges, n)) for c, n in columns)
    return first, second, third
