"""How to install an extra, by how steno itself was installed."""

import asyncio
import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from steno import extras
from steno.agent.mcp.connections import McpConnections, ServerConfig
from steno.errors import BadRequest

ROOT = Path(__file__).resolve().parents[1]


class Installed:
    """An installed package, with the files that installers leave."""

    def __init__(self, **files: str) -> None:
        self._files = files

    def read_text(self, name: str) -> str | None:
        return self._files.get(name.partition(".")[0])


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Stand in a folder that has nothing to do with it, in no active environment."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


def command(monkeypatch: pytest.MonkeyPatch, record: Any, installer: str = "pip\n") -> list[str]:
    """Return the words of the install command for a record of a direct URL."""
    text = record if isinstance(record, str) else json.dumps(record)
    installed = Installed(direct_url=text, INSTALLER=installer)
    monkeypatch.setattr(importlib.metadata, "distribution", {"stenolog": installed}.__getitem__)
    return shlex.split(extras.install_command("agent"))


def pip(*words: str) -> list[str]:
    return [sys.executable, "-m", "pip", "install", *words]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "my steno's"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    return folder


@pytest.mark.parametrize(("editable", "options"), [(True, ["-e"]), (False, [])])
def test_a_checkout_is_installed_again(
    monkeypatch: pytest.MonkeyPatch, checkout: Path, options: list[str], *, editable: bool
) -> None:
    record = {"url": checkout.as_uri(), "dir_info": {"editable": editable}}
    assert command(monkeypatch, record) == pip(*options, f"{checkout}[agent]")
    monkeypatch.chdir(checkout)
    assert command(monkeypatch, record) == pip(*options, ".[agent]")
    assert extras.install_command("agent").endswith("'.[agent]'")
    # A bare word would be the name of a package.
    monkeypatch.chdir(checkout.parent)
    assert command(monkeypatch, record) == pip(*options, f"./{checkout.name}[agent]")


def test_an_active_environment_needs_no_path(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.chdir(checkout)
    record = {"url": checkout.as_uri(), "dir_info": {}}
    assert command(monkeypatch, record) == ["pip", "install", ".[agent]"]
    monkeypatch.setenv("VIRTUAL_ENV", "/another")
    assert command(monkeypatch, record) == pip(".[agent]")


def test_a_wheel_is_named_by_its_path_or_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = tmp_path / "stenolog-0.1.0-py3-none-any.whl"
    record = {"url": wheel.as_uri(), "archive_info": {"hash": "sha256=0"}}
    assert command(monkeypatch, record) == pip(f"./{wheel.name}[agent]")
    wheel.touch()
    assert command(monkeypatch, record) == pip(f"{wheel}[agent]")


def test_a_url_and_a_commit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://example.org/stenolog-0.1.0.tar.gz"
    assert command(monkeypatch, {"url": url, "archive_info": {}}) == pip(f"stenolog[agent] @ {url}")
    record = {
        "url": "https://example.org/steno.git",
        "subdirectory": "python",
        "vcs_info": {"vcs": "git", "commit_id": "c0ffee"},
    }
    expected = "stenolog[agent] @ git+https://example.org/steno.git@c0ffee#subdirectory=python"
    assert command(monkeypatch, record) == pip(expected)


def test_what_uv_installed_uv_installs(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> None:
    record = {"url": checkout.as_uri(), "dir_info": {}}
    expected = ["uv", "pip", "install", "--python", sys.executable, f"{checkout}[agent]"]
    assert command(monkeypatch, record, "uv") == expected


@pytest.mark.parametrize(
    ("marker", "command_before", "command_after"),
    [
        ("pipx_metadata.json", ["pipx", "install", "--force"], []),
        ("uv-receipt.toml", ["uv", "tool", "install"], []),
        (None, ["uvx", "--from"], ["steno"]),
    ],
)
def test_a_tool_that_manages_the_environment_installs_the_extra(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    checkout: Path,
    marker: str | None,
    command_before: list[str],
    command_after: list[str],
) -> None:
    environment = tmp_path / "cache" / "archive-v0" / "x1_-Y"
    environment.mkdir(parents=True)
    if marker:
        (environment / marker).touch()
    monkeypatch.setattr(sys, "prefix", str(environment))
    record = {"url": checkout.as_uri(), "dir_info": {}}
    monkeypatch.setitem(sys.modules, "acp", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    # The extra `mcp` is installed and stays so; `parquet` is not.
    assert command(monkeypatch, record, "uv") == [*command_before, f"{checkout}[agent,mcp]", *command_after]


def test_an_installation_from_an_index_names_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", {"stenolog": Installed(INSTALLER="pip")}.__getitem__)
    assert shlex.split(extras.install_command("mcp")) == pip("stenolog[mcp]")


@pytest.mark.parametrize(
    "record",
    ["", "{", "[]", "3", "{}", '{"url": 3}', '{"url": "file:///gone", "dir_info": {}}',
     '{"url": "file:///gone", "dir_info": 3}', '{"url": "http://[", "archive_info": {}}',
     '{"url": "https://x", "vcs_info": []}'],
)  # fmt: skip
def test_without_a_usable_record_packages_are_named_and_never_steno(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, record: str
) -> None:
    # As it is where packages are installed: no checkout around it.
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "lib" / "steno" / "extras.py"))
    monkeypatch.setitem(sys.modules, "acp", None)
    monkeypatch.setitem(sys.modules, "pypdf", None)
    assert command(monkeypatch, record) == pip("agent-client-protocol", "pypdf")


def test_a_checkout_that_is_not_installed_is_installed_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", fail)
    assert shlex.split(extras.install_command("mcp")) == pip("-e", f"{ROOT}[mcp]")


def test_a_working_directory_that_is_gone_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> None:
    def fail() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(os, "getcwd", fail)
    record = {"url": checkout.as_uri(), "dir_info": {}}
    assert command(monkeypatch, record) == pip(f"{checkout}[agent]")


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_the_packages_of_an_extra_are_those_of_the_project(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {each.partition(">")[0] for each in project["optional-dependencies"][extra]}
    assert set(extras.EXTRAS[extra]) == named
    assert extras.missing(extra) == []


@pytest.mark.parametrize(
    ("extra", "module"), [(extra, module) for extra, named in extras.EXTRAS.items() for module in named.values()]
)
def test_any_missing_package_of_an_extra_is_noticed(monkeypatch: pytest.MonkeyPatch, extra: str, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadRequest, match=f"this needs the extra `{extra}`: "):
        extras.require(extra, "this")


def test_to_look_for_an_extra_imports_none_of_it() -> None:
    code = (
        "import sys\nfrom steno.extras import EXTRAS, require\n"
        "for extra in EXTRAS: require(extra, 'this')\n"
        "modules = {module for named in EXTRAS.values() for module in named.values()}\n"
        "assert not modules & set(sys.modules), modules & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_mcp_server_without_the_extra_fails_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    async def go() -> None:
        servers = [
            ServerConfig(name="one", kind="stdio", scope="local", command="true"),
            ServerConfig(name="two", kind="http", scope="local", url="http://x"),
        ]
        connections = McpConnections(servers, cwd=str(tmp_path), env={})
        connections.start()
        await connections.wait_until_ready(30)
        states = connections.states()
        await connections.close()
        assert [state.status for state in states] == ["failed", "failed"]
        assert all("an MCP server needs the extra `mcp`: " in state.error for state in states)

    asyncio.run(go())
