"""`kgqa ui`: the pages of Prefect and MLflow."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli._options import HomeOption
from flows.cli._session import JsonSession


def ui(
    home: HomeOption = None,
    prefect_port: Annotated[int, typer.Option(help="Port of the Prefect UI.")] = 4200,
    mlflow_port: Annotated[int, typer.Option(help="Port of the MLflow UI.")] = 5000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="Further name by which browsers reach the UIs, such as that of a proxy; may be repeated."),
    ] = None,
) -> None:
    """Start the Prefect and MLflow UIs on this machine and print their links; Ctrl-C stops both."""
    chosen = JsonSession(home).prepare()
    from flows.cli.servers import serve

    serve(chosen, host, prefect_port, mlflow_port, allowed_host or [])
