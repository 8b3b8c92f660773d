"""Graphs on servers, fetched page by page into a file that the readers of formats read."""
