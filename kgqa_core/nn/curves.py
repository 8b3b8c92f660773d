"""What a training measured: its curves as a table, and the dev metrics of its best epoch."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from kgqa_core.nn.checkpoint import Progress


def write_curves(out: Path, progress: Progress) -> None:
    """Writes curves.parquet: step, epoch, split, metric, value."""
    curve = pl.DataFrame(
        progress.curve,
        schema={"step": pl.Int64, "epoch": pl.Int32, "split": pl.String, "metric": pl.String, "value": pl.Float64},
        orient="row",
    )
    curve.write_parquet(out / "curves.parquet", compression="zstd", statistics=False)


def dev_of_best(progress: Progress) -> dict[str, float]:
    """`dev_` metrics at the end of the best epoch, to six decimals."""
    rows = [row for row in progress.curve if row[2] == "dev" and row[1] == progress.best_epoch]
    return {f"dev_{row[3]}": round(row[4], 6) for row in rows}
