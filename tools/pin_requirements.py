"""Writes `requirements/`: one version of every package, with the hashes of all its files.

    make pins                        # keep the pinned versions that still fit pyproject.toml
    make pins ARGS=--upgrade         # take the newest versions that fit
    make pins ARGS='--upgrade-package click'

`pyproject.toml` lists the required packages and their minimum versions; the files in `requirements/` determine the
installed versions. uv resolves them, because pip evaluates environment markers only for the Python that it runs on: one
set of files has to serve Python 3.11 and newer on Linux, macOS and Windows.

Each file contains only what it adds to the files that it includes, so that a line occurs once in a chain of files. No
file names a registry: pip and uv use the configured one.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
REQUIREMENTS: Final = ROOT / "requirements"
OLDEST: Final = "3.11"
"""Oldest supported Python version."""
EDITABLE: Final = "editables>=0.5"
"""Required by hatchling to install a checkout in place; hatchling requests it only while building."""
TOOLS: Final = ("pip-audit>=2.9", "uv>=0.9")
"""Programs for `make pins` and `make audit`, in a separate environment."""
DOCS: Final = ("mkdocs>=1.6,<2", "mkdocs-material>=9.6")
"""Programs for `make docs-site`, in a separate environment."""
_PIN: Final = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[\w.!+]+)\s*(?:;\s*(?P<marker>[^\\#]+?))?\s*"
    r"(?P<hashes>(?:--hash=sha256:[0-9a-f]{64}\s*)+)"
)


@dataclass(frozen=True)
class Group:
    """One requirements file."""

    name: str
    about: str
    wanted: tuple[str, ...]
    """Requirements whose closure the file contains."""
    includes: str = ""
    """Group whose file is included and whose packages are not repeated."""


@dataclass(frozen=True)
class Pin:
    """A package at one version."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """Requirement without hashes."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")

    @property
    def text(self) -> str:
        """Requirement as written in a file."""
        return " \\\n    --hash=sha256:".join((self.requirement, *self.hashes)) + "\n"


def groups(project: dict[str, Any]) -> list[Group]:
    """Return the groups of files to write, each after the one that it includes."""
    base: list[str] = project["project"]["dependencies"]
    extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
    build = (*project["build-system"]["requires"], EDITABLE)
    return [
        Group("build", "Builds and installs steno itself.", build),
        Group("base", "Reads sessions: what steno needs without any extra.", tuple(base)),
        Group("agent", "The extra `agent`.", (*base, *extras["agent"]), "base"),
        Group("mcp", "The extra `mcp`.", (*base, *extras["mcp"]), "base"),
        Group("parquet", "The extras `parquet` and `fleet`.", (*base, *extras["parquet"]), "base"),
        Group(
            "dev",
            "Tests and checks: all extras and the tools for development.",
            (*base, *extras["agent"], *extras["all"], *extras["dev"], *build),
            "agent",
        ),
        Group("fuzz", "Fuzzing (`make fuzz`).", (*extras["fuzz"],)),
        Group("tools", "Runs `make pins` and `make audit`, in its own environment.", TOOLS),
        Group("docs", "Builds the documentation site (`make docs-site`).", DOCS),
    ]


def parse(text: str) -> list[Pin]:
    """Return the pins in a requirements file, as this tool or uv writes it."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "-r "))]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        Pin(
            found["name"].lower(),
            found["version"],
            (found["marker"] or "").strip(),
            tuple(sorted(re.findall(r"sha256:([0-9a-f]{64})", found["hashes"]))),
        )
        for found in (_PIN.fullmatch(line.strip()) for line in joined.splitlines() if line.strip())
        if found
    ]


def resolve(wanted: tuple[str, ...], constraints: list[str]) -> list[Pin]:
    """Resolve requirements for every Python and platform, with hashes.

    Raises:
        SystemExit: uv is missing, or there is no solution.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, fixed = Path(folder, "asked.in"), Path(folder, "fixed.txt")
        asked.write_text("\n".join(wanted) + "\n")
        fixed.write_text("\n".join(constraints) + "\n")
        options = ["--universal", "--python-version", OLDEST, "--fork-strategy", "fewest"]
        options += ["--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
        command = [sys.executable, "-m", "uv", "pip", "compile", *options]
        command += ["--constraint", str(fixed), str(asked)]
        ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=_environment())
    if ran.returncode:
        raise SystemExit(f"uv could not resolve the requirements:\n{ran.stderr.strip()}")
    return parse(ran.stdout)


def _environment() -> dict[str, str]:
    """Return the environment for uv: the registry and certificates from pip's configuration."""
    env = dict(os.environ)
    listed = [sys.executable, "-m", "pip", "config", "list"]
    ran = subprocess.run(listed, check=False, capture_output=True, text=True)
    for line in ran.stdout.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2].replace("-", "_")
        # Values are printed as Python strings.
        plain = value.strip().strip("'\"")
        if name == "index_url":
            env.setdefault("UV_DEFAULT_INDEX", plain)
        elif name == "cert":
            env.setdefault("SSL_CERT_FILE", plain)
    return env


def file_text(group: Group, pins: list[Pin]) -> str:
    """Return the text of one requirements file."""
    head = f"# {group.about}\n# Generated by `make pins` from pyproject.toml: do not edit.\n"
    if group.includes:
        head += f"-r {group.includes}.txt\n"
    return head + "".join(pin.text for pin in pins)


def pinned() -> list[Pin]:
    """Return all current pins, except those of the tools."""
    paths = [path for path in sorted(REQUIREMENTS.glob("*.txt")) if path.stem != "tools"]
    return [pin for path in paths for pin in parse(path.read_text())]


def main() -> None:
    """Write the requirements files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="upgrade to the newest versions")
    parser.add_argument("--upgrade-package", action="append", default=[], metavar="NAME")
    asked = parser.parse_args()
    fresh = {re.sub(r"[-_.]+", "-", name).lower() for name in asked.upgrade_package}
    kept = [] if asked.upgrade else [pin for pin in pinned() if pin.name not in fresh]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    every = groups(project)
    together = tuple(dict.fromkeys(want for group in every if group.name != "tools" for want in group.wanted))
    versions = sorted({f"{pin.name}=={pin.version}" for pin in kept})
    master = [f"{pin.name}=={pin.version}" for pin in resolve(together, versions)]
    held: dict[str, set[str]] = {"": set()}
    REQUIREMENTS.mkdir(exist_ok=True)
    for group in every:
        pins = resolve(group.wanted, [] if group.name == "tools" else master)
        below = held[group.includes]
        # A package that more Pythons need than the included file covers is repeated, with its wider marker.
        added = [pin for pin in pins if not below & {pin.requirement, f"{pin.name}=={pin.version}"}]
        (REQUIREMENTS / f"{group.name}.txt").write_text(file_text(group, added))
        held[group.name] = below | {pin.requirement for pin in pins}
        print(f"{group.name + '.txt':12} {len(added)} packages")


if __name__ == "__main__":
    main()
