"""The columns of the table into which the compiled loop of `ntriples_kernels` cuts statements."""

from __future__ import annotations

SUBJECT, PREDICATE, OBJECT, DATATYPE, GRAPH = 0, 2, 4, 6, 9
"""Columns of a row where the begin of a span stands; its length follows."""
KIND, LINE, COLUMNS = 8, 11, 12
