"""Checks the pinned packages for known vulnerabilities, and lists the licences of the installed packages.

make audit

Exit code 1 means that a pinned version has a known vulnerability. If the vulnerability service cannot be reached, the
check is skipped and the exit code is 0.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final

from tools.pin_requirements import REQUIREMENTS, parse

COPYLEFT: Final = re.compile(r"GPL|MPL|EUPL|CDDL|EPL|OSL|Mozilla|Affero|GNU|Eclipse", re.IGNORECASE)
UNKNOWN: Final = "unknown"
_SECONDS: Final = 600
_CLASSIFIER: Final = "License :: "
_NAMES: Final = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD License": "BSD",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0",
    "ISC License (ISCL)": "ISC",
    "ISC license": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""Licence identifiers by the names that packages use."""
_PHRASES: Final = {
    "GNU AFFERO GENERAL PUBLIC": "AGPL",
    "GNU LESSER GENERAL PUBLIC": "LGPL",
    "GNU GENERAL PUBLIC": "GPL",
    "MOZILLA PUBLIC LICENSE": "MPL",
    "APACHE LICENSE": "Apache-2.0",
    "PERMISSION IS HEREBY GRANTED, FREE OF CHARGE": "MIT",
    "REDISTRIBUTION AND USE IN SOURCE AND BINARY FORMS": "BSD",
}
"""Licence identifiers by phrases in licence files, most restrictive first."""


def licence_of(package: Distribution) -> str:
    """Return the licence of a package, from its metadata or its licence file."""
    fields: dict[str, Any] = package.metadata.json
    expression: str = fields.get("license_expression", "")
    if expression:
        return expression
    named: str = fields.get("license", "").strip()
    if named and named.upper() != "UNKNOWN" and "\n" not in named:
        return _NAMES.get(named, named)
    classified: list[str] = [
        name.rpartition(" :: ")[2]
        for name in fields.get("classifier", [])
        if name.startswith(_CLASSIFIER) and not name.endswith("OSI Approved")
    ]
    if classified:
        return " OR ".join(_NAMES.get(name, name) for name in classified)
    return _by_file(package) or UNKNOWN


def _by_file(package: Distribution) -> str:
    for file in package.files or ():
        if re.match(r"(?:LICEN[CS]E|COPYING)", file.name, re.IGNORECASE):
            path = Path(str(package.locate_file(file)))
            text = " ".join(path.read_text("utf-8", "replace").upper().split())
            for phrase, name in _PHRASES.items():
                if phrase in text:
                    return name
    return ""


def flag_of(licence: str) -> str:
    """Return what requires attention: `copyleft`, `unknown`, or nothing."""
    if licence == UNKNOWN:
        return UNKNOWN
    return "copyleft" if COPYLEFT.search(licence) else ""


def audited(report: dict[str, Any]) -> tuple[list[str], list[str], int]:
    """Return the vulnerabilities in a pip-audit report, the skipped packages, and the number of checked packages."""
    found: list[str] = []
    skipped: list[str] = []
    checked = 0
    for package in report["dependencies"]:
        if "skip_reason" in package:
            skipped.append(package["name"])
            continue
        checked += 1
        found += [
            f"{package['name']} {package['version']}: {vulnerability['id']}"
            f" (fixed in {', '.join(vulnerability['fix_versions']) or 'no version'})"
            for vulnerability in package["vulns"]
        ]
    return found, skipped, checked


def ask_pip_audit(python: str) -> dict[str, Any] | str:
    """Return pip-audit's report on all pinned packages, or the reason why there is none."""
    pins = {
        f"{pin.name}=={pin.version}" for path in REQUIREMENTS.glob("*.txt") for pin in parse(path.read_text("utf-8"))
    }
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "pins.txt")
        listed.write_text("\n".join(sorted(pins)) + "\n")
        options = ["--disable-pip", "--no-deps", "--progress-spinner=off", "--format=json"]
        command = [python, "-m", "pip_audit", *options, "--requirement", str(listed)]
        try:
            ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"pip-audit: {error}"
    try:
        return json.loads(ran.stdout)
    except ValueError:
        return (ran.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1]


def vulnerabilities(python: str) -> int:
    """Print known vulnerabilities; return the exit code."""
    report = ask_pip_audit(python)
    if isinstance(report, str):
        print(f"Vulnerabilities: not checked ({report})")
        return 0
    found, skipped, checked = audited(report)
    for line in found:
        print(f"vulnerable: {line}")
    if not checked:
        print("Vulnerabilities: not checked (the service knows none of the packages)")
    else:
        print(f"Vulnerabilities: {len(found)} in {checked} packages")
        if skipped:
            print(f"Not checked: {', '.join(skipped)}")
    return 1 if found else 0


def main() -> int:
    """Check the pinned versions, then list the licences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="Python with pip-audit")
    code = vulnerabilities(parser.parse_args().python)
    rows = sorted({(each.name.lower(), each.version, licence_of(each)) for each in distributions()})
    print(f"\nLicences of {len(rows)} installed packages:")
    for name, version, licence in rows:
        print(f"  {name:28} {version:16} {licence:40} {flag_of(licence)}".rstrip())
    return code


if __name__ == "__main__":
    sys.exit(main())
