"""Certificates are read once, and again where the environment names others."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kgqa_core.http_clients import trusted


def test_they_are_read_once_a_process() -> None:
    assert trusted() is trusted()
    assert trusted().verify_mode is ssl.CERT_REQUIRED and trusted().check_hostname


def test_a_file_that_the_environment_names_later_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    before = trusted()
    known = before.get_ca_certs(binary_form=True)
    if not known:
        pytest.skip("no file of certificates on this machine")
    (tmp_path / "own.pem").write_text(ssl.DER_cert_to_PEM_cert(known[0]), encoding="ascii")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
    assert trusted() is not before and len(trusted().get_ca_certs()) == 1
    monkeypatch.delenv("SSL_CERT_FILE")
    assert trusted() is before
