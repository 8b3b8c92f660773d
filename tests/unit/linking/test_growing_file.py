"""Arrays that are written a piece at a time are those that NumPy writes at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kgqa_core.linking.growing_file import GrowingFile


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float32])
@pytest.mark.parametrize("sizes", [(), (0,), (1,), (3, 0, 12_345)])
def test_pieces_make_the_file_of_the_whole(tmp_path: Path, dtype: type[np.generic], sizes: tuple[int, ...]) -> None:
    values = np.arange(sum(sizes)) % 251
    file = GrowingFile(tmp_path / "grown.npy", dtype)
    for piece in np.split(values, np.cumsum(sizes)[:-1]) if sizes else ():
        file.add(piece)
    assert file.close() == len(values)
    np.save(tmp_path / "whole.npy", values.astype(dtype))
    assert (tmp_path / "grown.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert np.load(tmp_path / "grown.npy", mmap_mode="r", allow_pickle=False).dtype == dtype
