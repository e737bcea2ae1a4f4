"""The arguments of the sandbox are exactly what a policy says."""

import os
from pathlib import Path

import msgspec
import pytest

from steno.errors import BadRequest
from steno.permissions.sandbox import command_wrapper, restricted_exec
from steno.permissions.sandbox.command_wrapper import SandboxBackend, WrapperPolicy, find_replaceable_link, wrap_command
from steno.permissions.sandbox.path_plan import parent_folders
from steno.permissions.sandbox.restricted_exec import RestrictionError, _paths_beside

_BWRAP = SandboxBackend("bwrap", "", "/usr/bin/bwrap")
_APART = SandboxBackend("landlock", "", apart=True)
_LANDLOCK = SandboxBackend("landlock", "")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    base = Path(os.path.realpath(tmp_path))
    for name in ("proj/.git/hooks", "proj/.claude", "more/.git", "tmp", "run", "hid/in", "kept"):
        (base / name).mkdir(parents=True)
    for name in ("secret", "shown", "socket", "proj/.mcp.json", "proj/hidden"):
        (base / name).write_text("x", encoding="utf-8")
    services = [str(base / "run"), str(base / "socket"), str(base)]
    monkeypatch.setattr(command_wrapper, "_service_paths", lambda: services)
    return base


def _policy(base: Path, *, network: bool = False) -> WrapperPolicy:
    return WrapperPolicy(
        project=str(base / "proj"),
        tmp=str(base / "tmp"),
        writable=(str(base / "more"), str(base / "gone"), str(base / "proj")),
        kept=(str(base / "kept"), str(base / "gone")),
        hidden=(str(base / "secret"), str(base / "hid"), str(base / "proj" / "hidden")),
        shown=(str(base / "shown"), str(base / "none")),
        network=network,
    )


def _said(argv: list[str] | None, base: Path) -> str:
    assert argv is not None
    return " ".join(argv).replace(str(base), "BASE")


def test_arguments_of_landlock(base: Path) -> None:
    said = _said(wrap_command(["ls", "-l"], _policy(base), _LANDLOCK), base)
    program = " ".join(command_wrapper._RESTRICTED_EXEC)
    assert said == (
        f"{program} --write BASE/proj --write BASE/more --write BASE/tmp"
        " --hide BASE/secret --hide BASE/hid --hide BASE/proj/hidden --show BASE/shown -- ls -l"
    )
    with_network = _said(wrap_command(["ls"], _policy(base, network=True), _LANDLOCK), base)
    assert with_network.startswith(f"{program} --network --write BASE/proj")
    assert command_wrapper._RESTRICTED_EXEC[1:] == ("-I", "-m", "steno.permissions.sandbox.restricted_exec")


def test_arguments_of_landlock_with_namespaces(base: Path) -> None:
    said = _said(wrap_command(["ls"], _policy(base), _APART), base)
    _, _, rest = said.partition("--show BASE/shown ")
    made = [name for name in command_wrapper._CREATED_FOLDERS if (base / "proj" / name).is_dir()]
    assert sorted(made) == sorted(command_wrapper._CREATED_FOLDERS)
    assert rest.startswith("--apart --cover BASE/run --cover BASE/socket --pin BASE/proj/.git")
    words = rest.split()
    assert words[words.index("--pin", words.index("--pin") + 1) + 1] == "BASE/more/.git"
    assert words.count("--pin") == 2
    assert words[-4:] == ["--keep", "BASE/kept", "--", "ls"]
    kept = [words[at + 1] for at, word in enumerate(words) if word == "--keep"]
    assert {"BASE/proj/.claude", "BASE/proj/.mcp.json", "BASE/proj/.git/hooks"} <= set(kept)
    # Nothing is made in folders beside the project.
    assert [path.name for path in (base / "more").iterdir()] == [".git"]


def test_arguments_of_bubblewrap(base: Path) -> None:
    said = _said(wrap_command(["ls"], _policy(base), _BWRAP), base)
    assert said.startswith(
        "/usr/bin/bwrap --ro-bind / / --dev /dev --proc /proc"
        " --perms 0555 --tmpfs BASE/run --ro-bind /dev/null BASE/socket"
        " --bind BASE/proj BASE/proj --bind BASE/more BASE/more --bind BASE/tmp BASE/tmp"
        " --bind BASE/proj/.git BASE/proj/.git --ro-bind "
    )
    assert said.endswith(
        " --ro-bind BASE/kept BASE/kept"
        " --perms 0555 --tmpfs BASE/hid --ro-bind /dev/null BASE/proj/hidden"
        " --ro-bind /dev/null BASE/secret --ro-bind BASE/shown BASE/shown"
        " --remount-ro BASE/run --remount-ro BASE/hid"
        " --unshare-pid --unshare-ipc --unshare-uts --new-session --unshare-net"
        " --cap-drop ALL --die-with-parent --chdir BASE/proj -- ls"
    )
    assert " --bind BASE/more/.git BASE/more/.git" in said
    assert "--unshare-net" not in _said(wrap_command(["ls"], _policy(base, network=True), _BWRAP), base)


def test_what_a_hidden_folder_holds_of_the_project_is_covered_first(base: Path) -> None:
    policy = WrapperPolicy(project=str(base / "hid" / "in"), tmp=str(base / "tmp"), hidden=(str(base / "hid"),))
    said = _said(wrap_command(["ls"], policy, _BWRAP), base)
    assert said.index("--tmpfs BASE/hid ") < said.index("--bind BASE/hid/in BASE/hid/in")
    assert said.count("--tmpfs BASE/hid ") == 1


def test_nothing_is_wrapped_without_a_way_to_confine(base: Path) -> None:
    assert wrap_command(["ls"], _policy(base), SandboxBackend(None, "")) is None
    assert [each.protects_project_rules for each in (_BWRAP, _APART, _LANDLOCK)] == [True, True, False]


@pytest.mark.parametrize("name", ["writable", "kept", "hidden", "shown"])
def test_paths_of_a_policy_are_absolute(base: Path, name: str) -> None:
    policy = WrapperPolicy(project=str(base / "proj"), tmp=str(base / "tmp"))
    policy = msgspec.structs.replace(policy, **{name: ("relative",)})
    with pytest.raises(BadRequest, match="relative is not an absolute path"):
        wrap_command(["ls"], policy, _LANDLOCK)


def test_folders_of_a_policy_exist(base: Path) -> None:
    for project, tmp in (("none", "tmp"), ("proj", "none"), ("secret", "tmp")):
        with pytest.raises(BadRequest, match="is not an absolute path"):
            wrap_command(["ls"], WrapperPolicy(project=str(base / project), tmp=str(base / tmp)), _LANDLOCK)
    with pytest.raises(BadRequest, match="is not an absolute path"):
        wrap_command(["ls"], WrapperPolicy(project="proj", tmp=str(base / "tmp")), _LANDLOCK)


_RULES = (
    ".git .claude .git/hooks .vscode .idea .husky .steno .git/config .mcp.json .gitmodules"
    " .envrc .npmrc .ripgreprc .pre-commit-config.yaml"
)


@pytest.mark.parametrize("name", _RULES.split())
def test_the_rules_of_a_project_are_kept_and_a_link_in_their_place_is_named(base: Path, name: str) -> None:
    project = base / "own"
    path = project / name
    path.parent.mkdir(parents=True)
    path.write_text("x", encoding="utf-8")
    policy = WrapperPolicy(project=str(project), tmp=str(base / "tmp"))
    assert f" --ro-bind BASE/own/{name} " in _said(wrap_command(["ls"], policy, _BWRAP), base)
    assert find_replaceable_link(str(project)) == ""
    path.unlink()
    path.symlink_to(base)
    assert find_replaceable_link(str(project)) == name


# What gives up the rights


def test_everything_but_what_is_hidden_is_named(base: Path) -> None:
    assert list(parent_folders("/a/b/c", "/")) == ["/a/b", "/a", "/"]
    (base / "link").symlink_to(base / "secret")
    hidden = (str(base / "hid" / "in"), str(base / "secret"))
    named = {path for path in _paths_beside(hidden) if path.startswith(f"{base}/")}
    others = ("proj", "more", "tmp", "run", "kept", "shown", "socket")
    assert named == {str(base / name) for name in others}
    assert str(base) not in set(_paths_beside(hidden))


def test_without_arguments_nothing_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert restricted_exec.main(["ls"]) == 126
    assert "usage: python -m" in capsys.readouterr().err
    assert restricted_exec.main(["--network", "--"]) == 126
    assert capsys.readouterr().err == "steno: no command given\n"


def test_options_become_restrictions(monkeypatch: pytest.MonkeyPatch, base: Path) -> None:
    asked: list[object] = []

    def restrict(writable: list[str], **more: object) -> None:
        asked.append((writable, more))

    monkeypatch.setattr(restricted_exec, "restrict_process", restrict)
    options = ["--write", "/a", "--hide", "/b", "--write", "/c", "--show", "/d"]
    restricted_exec._apply_options(options)
    restricted_exec._apply_options([*options, "--network"])
    given = {"hidden": ["/b"], "readable": ["/d"]}
    assert asked == [(["/a", "/c"], {"network": False, **given}), (["/a", "/c"], {"network": True, **given})]
    with pytest.raises(RestrictionError, match="cannot enter"):
        restricted_exec._change_directory(str(base / "none"))


def test_a_program_that_is_not_confined_is_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RestrictionError("no Landlock")

    def restrict(*_: object, **__: object) -> None:
        """Restrict nothing."""

    monkeypatch.setattr(restricted_exec, "restrict_process", refuse)
    assert restricted_exec.main(["--", "true"]) == 126
    said = capsys.readouterr().err
    assert said == "steno: not run, because it cannot be sandboxed: no Landlock\n"
    monkeypatch.setattr(restricted_exec, "restrict_process", restrict)
    assert restricted_exec.main(["--", "no-such-program-here"]) == 127
    assert capsys.readouterr().err == "steno: no-such-program-here: no such file or directory\n"


# What is looked for


def _program(path: Path, code: int) -> str:
    path.write_text(f'#!/bin/sh\necho "$@" >> {path}.asked\nexit {code}\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_bubblewrap_is_tried_before_it_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("x", encoding="utf-8")
    works = _program(tmp_path / "works", 0)
    places = (str(tmp_path / "none"), str(plain), works, _program(tmp_path / "more", 0))
    monkeypatch.setattr(command_wrapper, "_BWRAP_PATHS", places)
    found = command_wrapper.find_backend()
    assert (found.kind, found.program, found.protects_project_rules) == ("bwrap", works, True)
    assert found.summary == ("commands run under bubblewrap: writes only in the project, no network")
    asked = Path(f"{works}.asked").read_text(encoding="utf-8").split()
    assert asked[:-1] == ["--ro-bind", "/", "/", "--unshare-net", "--unshare-pid", "--"]
    assert asked[-1] in {"/usr/bin/true", "/bin/true"}
    assert not (tmp_path / "more.asked").exists()


@pytest.mark.parametrize("version", [0, 3, 4])
def test_without_bubblewrap_the_words_say_what_is_held_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: int
) -> None:
    fails, works = _program(tmp_path / "fails", 1), _program(tmp_path / "works", 0)
    monkeypatch.setattr(command_wrapper, "_BWRAP_PATHS", (fails,))
    monkeypatch.setattr(command_wrapper, "_landlock_version", lambda: version)
    monkeypatch.setattr(command_wrapper, "_RESTRICTED_EXEC", (works, "confine"))
    first = command_wrapper.find_backend()
    asked = Path(f"{works}.asked")
    if not version:
        assert (first.kind, first.apart, asked.exists()) == (None, False, False)
        assert first.summary == "no sandbox available: commands run with all your permissions"
        return
    assert (first.kind, first.apart, first.protects_project_rules) == ("landlock", True, True)
    assert first.summary == (
        f"commands run under Landlock (version {version}) with mount and network namespaces:"
        " writes only in the project, no network"
    )
    assert asked.read_text(encoding="utf-8").split()[:-1] == ["confine", "--apart", "--"]
    alone = tmp_path / "alone"
    alone.write_text('#!/bin/sh\n[ "$2" = -- ]\n', encoding="utf-8")
    alone.chmod(0o755)
    monkeypatch.setattr(command_wrapper, "_RESTRICTED_EXEC", (str(alone), "confine"))
    second = command_wrapper.find_backend()
    assert (second.kind, second.apart, second.protects_project_rules) == ("landlock", False, False)
    net = "no TCP connections, other network access allowed" if version == 4 else "network access allowed"
    assert second.summary == (
        f"commands run under Landlock (version {version}): writes only in the project,"
        f" {net}; protected files in the project are writable"
    )
    monkeypatch.setattr(command_wrapper, "_RESTRICTED_EXEC", (fails, "confine"))
    assert command_wrapper.find_backend().kind is None
    monkeypatch.setattr(command_wrapper, "_RESTRICTED_EXEC", (str(tmp_path / "none"), "confine"))
    assert command_wrapper.find_backend().kind is None


def test_services_of_the_machine_are_covered() -> None:
    assert command_wrapper._SERVICE_SOCKETS == (
        "/run/docker.sock",
        "/run/podman/podman.sock",
        "/run/containerd/containerd.sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
    )
    assert command_wrapper._BWRAP_PATHS == ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
