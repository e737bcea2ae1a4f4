"""`make audit`: results of pip-audit and licences of packages."""

import sys
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from tools import audit_dependencies as audit

SOUND = {"name": "click", "version": "8.5.1", "vulns": []}
VULNERABLE = {
    "name": "h11",
    "version": "0.15.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["0.16.0"]}, {"id": "GHSA-2", "fix_versions": []}],
}
SKIPPED = {"name": "anyio", "skip_reason": "not found"}


def reported(monkeypatch: pytest.MonkeyPatch, *packages: Any) -> int:
    monkeypatch.setattr(audit, "ask_pip_audit", {"python": {"dependencies": packages}}.__getitem__)
    return audit.vulnerabilities("python")


def test_a_vulnerability_fails_the_audit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(monkeypatch, SOUND, VULNERABLE, SKIPPED) == 1
    assert capsys.readouterr().out == (
        "vulnerable: h11 0.15.0: PYSEC-1 (fixed in 0.16.0)\n"
        "vulnerable: h11 0.15.0: GHSA-2 (fixed in no version)\n"
        "Vulnerabilities: 2 in 2 packages\nNot checked: anyio\n"
    )


def test_without_vulnerabilities_the_audit_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reported(monkeypatch, SOUND) == 0
    assert capsys.readouterr().out == "Vulnerabilities: 0 in 1 packages\n"


def test_unchecked_packages_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(monkeypatch, SKIPPED) == 0
    assert capsys.readouterr().out.startswith("Vulnerabilities: not checked (")


@pytest.mark.parametrize("python", ["no-such-program", sys.executable])
def test_without_pip_audit_the_check_is_skipped_with_a_message(capsys: pytest.CaptureFixture[str], python: str) -> None:
    assert audit.vulnerabilities(python) == 0
    out = capsys.readouterr().out
    assert out.startswith("Vulnerabilities: not checked (")
    assert out.count("\n") == 1


def package(folder: Path, *fields: str, licence: str = "") -> Distribution:
    """Install a distribution with this metadata."""
    info = folder / "thing-1.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.4", "Name: thing", "Version: 1", *fields]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "LICENSE.txt").write_text(licence)
    (info / "RECORD").write_text("thing-1.dist-info/LICENSE.txt,,\n")
    return PathDistribution(info)


GPL = "GNU GENERAL PUBLIC\n   LICENSE\nVersion 3"


@pytest.mark.parametrize(
    ("fields", "text", "licence", "flag"),
    [
        (("License-Expression: MIT",), GPL, "MIT", ""),
        (("License: Apache 2.0",), "", "Apache-2.0", ""),
        (("License: UNKNOWN", "Classifier: License :: OSI Approved :: ISC License (ISCL)"), "", "ISC", ""),
        (("License-Expression: MPL-2.0 AND MIT",), "", "MPL-2.0 AND MIT", "copyleft"),
        (("Classifier: License :: OSI Approved",), GPL, "GPL", "copyleft"),
        (("Classifier: License :: OSI Approved :: GNU Affero General Public License v3",), "", "GNU Affero General Public License v3", "copyleft"),
        ((), "Permission is hereby granted, free of\n charge", "MIT", ""),
        ((), "All rights reserved.", "unknown", "unknown"),
    ],
)  # fmt: skip
def test_licences_are_listed_and_flagged(
    tmp_path: Path, fields: tuple[str, ...], text: str, licence: str, flag: str
) -> None:
    found = audit.licence_of(package(tmp_path, *fields, licence=text))
    assert (found, audit.flag_of(found)) == (licence, flag)
