"""`kgqa kg map` and `kgqa kg build --map` at the command line."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from flows.cli import app as cli
from kgqa_core.kg.store import KgStore


def test_a_mapping_is_printed_edited_and_given_back(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "makers.csv").write_text("id,name\n1,Acme\n2,Bolt\n")
    (folder / "parts.csv").write_text("id,name,maker_id\n1,Nut,2\n2,Cap,1\n")
    printed = CliRunner().invoke(cli.app, ["kg", "map", str(folder)])
    assert printed.exit_code == 0 and "maker_id: {relation: maker, table: makers}" in printed.stdout
    mapping = tmp_path / "map.yaml"
    mapping.write_text(printed.stdout.replace("relation: maker", "relation: made by"))
    built = CliRunner().invoke(
        cli.app, ["kg", "build", str(folder), "--map", str(mapping), "--out", str(tmp_path / "g")]
    )
    assert built.exit_code == 0
    with KgStore.open(tmp_path / "g") as store:
        assert "made by" in store.relation_names()


def test_files_of_triples_have_no_mapping(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text("Ada\tknows\tBo\nBo\tknows\tCy\n")
    assert CliRunner().invoke(cli.app, ["kg", "map", str(tmp_path / "facts.tsv")]).exit_code != 0
