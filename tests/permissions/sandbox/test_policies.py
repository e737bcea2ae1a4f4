"""What a policy gives and takes: folders that are written, links, odd names, mounts, homes."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.permissions.sandbox.boxes import Box, World, give

from steno.permissions.sandbox.policy import SandboxError, SandboxPolicy, deny_secrets

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")


def _writing(world: World, *, read_only: tuple[str, ...] = (), denied: tuple[str, ...] = ()) -> SandboxPolicy:
    return SandboxPolicy(
        cwd=str(world.work),
        readable=(str(world.work),),
        scratch=str(world.scratch),
        writable=(str(world.work),),
        read_only=tuple(str(world.work / path) for path in read_only),
        denied=tuple(str(world.work / path) for path in denied),
    )


def test_a_writable_folder_is_written_and_nothing_beside_it(box: Box, world: World) -> None:
    policy = _writing(world)
    script = "echo x > new && mkdir d && mv new d/moved && rm open.txt && touch sub/more.txt && cat d/moved"
    done = box.bash(script, policy)
    assert (done.code, done.out) == (0, "x\n"), done.err
    assert (world.work / "d" / "moved").read_text(encoding="utf-8") == "x\n"
    for attempt in ("echo x > ../outside/new", "echo x > link/new", "chmod 777 ../outside/secret.txt"):
        assert box.bash(attempt, policy).code != 0
        assert box.bash(attempt, policy, confined=False).code == 0


def test_no_program_is_left_that_others_run_as_the_user(box: Box, world: World) -> None:
    for attempt in ("chmod 4755 open.txt", "chmod g+s open.txt", "install -m 4755 open.txt new"):
        assert box.bash(attempt, _writing(world)).code != 0, attempt
        assert not [p for p in world.work.iterdir() if p.lstat().st_mode & 0o6000]
        assert box.bash(attempt, _writing(world), confined=False).code == 0, attempt
        (world.work / "open.txt").chmod(0o644)


RULES = (
    "echo x > .claude/settings.json",
    "mkdir -p .claude && echo x > .claude/new",
    "mv .claude other && mkdir .claude && echo x > .claude/settings.json",
    "rm -rf .claude && mkdir .claude && echo x > .claude/settings.json",
    "ln -s sub .claude/link",
    "mv .git moved && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
    "echo x > .git/hooks/pre-commit",
    "echo x >> .git/config",
    "rm -f .git/config && echo x > .git/config",
    "ln -f open.txt .git/config",
    "echo x >> sub/config-name",
    "chmod 777 .claude/settings.json",
)


def _rules(world: World, box: Box) -> None:
    for folder in (".claude", ".git/hooks"):
        (world.work / folder).mkdir(parents=True, exist_ok=True)
    for name in (".claude/settings.json", ".git/config"):
        (world.work / name).write_text("as it was\n", encoding="utf-8")
    name = world.work / "sub" / "config-name"
    if not name.exists():
        os.link(world.work / ".git" / "config", name)
    give(world.work, box)


def test_read_only_paths_are_not_changed(box: Box, world: World) -> None:
    _rules(world, box)
    read_only = (".claude", ".git/hooks", ".git/config")
    before = sorted(str(p) for p in (world.work / ".claude").rglob("*"))
    for attempt in RULES:
        done = box.bash(attempt, _writing(world, read_only=read_only))
        assert done.error == ""
        assert done.code != 0, attempt
        assert sorted(str(p) for p in (world.work / ".claude").rglob("*")) == before, attempt
        for name in (".claude/settings.json", ".git/config"):
            text = (world.work / name).read_text(encoding="utf-8")
            assert text == "as it was\n", (attempt, name)
        assert list((world.work / ".git" / "hooks").iterdir()) == []
    done = box.bash("cat .claude/settings.json && echo y > sub/more.txt", _writing(world, read_only=read_only))
    assert (done.code, done.out) == (0, "as it was\n")
    # Each of them is possible for somebody who is not confined.
    for attempt in RULES:
        _rules(world, box)
        assert box.bash(attempt, _writing(world), confined=False).code == 0, attempt


def test_read_only_paths_that_do_not_exist_are_not_created(box: Box, world: World) -> None:
    policy = _writing(world, read_only=(".claude", ".git/hooks", ".mcp.json", "sub/deep/er"))
    before = sorted(world.work.rglob("*"))
    for attempt in (
        "echo x > .mcp.json",
        "mkdir -p .claude/x",
        "rmdir .claude; mkdir .claude/y",
        "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "mkdir -p new/hooks && mv new .git",
        "ln -s sub .claude",
        "mv open.txt .mcp.json",
        "mkdir -p sub/deep/er/x",
    ):
        assert box.bash(attempt, policy).code != 0, attempt
        assert not (world.work / ".mcp.json").is_file()
        subprocess.run(["rm", "-rf", world.work / "new"], check=True)
        assert sorted(world.work.rglob("*")) == before, attempt
    if not box.landlock_alone:
        assert box.bash("echo x > new.txt && cat new.txt", policy).out == "x\n"


def test_a_denied_path_in_a_writable_folder_is_neither_read_nor_replaced(box: Box, world: World) -> None:
    policy = _writing(world, denied=("secret.txt", "hidden", "sub/other-name"))
    for attempt in (
        "cat secret.txt | grep content",
        "echo x > secret.txt",
        "rm -f secret.txt && ! [ -e secret.txt ]",
        "mv secret.txt sub/x",
        "mv hidden sub/x && cat sub/x/inner.txt",
        "echo x > hidden/new",
        "mv sub moved && cat moved/other-name | grep content",
        "ln secret.txt sub/x && cat sub/x",
    ):
        assert box.bash(attempt, policy).code != 0, attempt
    assert (world.work / "secret.txt").read_text(encoding="utf-8") == "content of secret.txt\n"
    assert sorted(p.name for p in (world.work / "hidden").iterdir()) == ["inner.txt"]


def test_a_rule_behind_a_link_that_can_be_replaced_is_refused(box: Box, world: World) -> None:
    (world.work / "rules").symlink_to("sub")
    done = box.bash("true", _writing(world, read_only=("rules",)))
    assert "symbolic link in a writable directory" in done.error
    done = box.bash("true", _writing(world, read_only=("rules/missing",)))
    assert "symbolic link in a writable directory" in done.error


def test_a_folder_works_under_the_name_that_the_user_wrote(box: Box, world: World) -> None:
    (world.base / "one").symlink_to("two")
    (world.base / "two").symlink_to(world.work / "sub")
    linked = str(world.base / "one")
    policy = SandboxPolicy(cwd=linked, readable=(linked,), scratch=str(world.scratch))
    done = box.bash(
        f"cd {linked} && cat more.txt {linked}/more.txt && pwd -L", policy, env={"PATH": "/usr/bin:/bin", "PWD": linked}
    )
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == linked
    assert box.bash(f"cat {world.work}/open.txt", policy).code != 0
    denied = msgspec.structs.replace(policy, denied=(f"{linked}/more.txt",))
    assert box.bash("cat more.txt | grep content", denied).code != 0
    assert box.bash(f"cat {world.work}/sub/more.txt | grep content", denied).code != 0


ODD = ("with space", "new\nline", 'quo"te', "back\\slash", "\udcff\udcfe", "täst", "-rf", "a\\040b", "$(x)")


def test_odd_names_are_denied_and_read_like_others(box: Box, world: World) -> None:
    for name in ODD:
        folder = world.work / name
        folder.mkdir()
        (folder / "open").write_text("open", encoding="utf-8")
        (folder / name).write_text("secret", encoding="utf-8")
    give(world.work, box)
    denied = tuple(str(world.work / name / name) for name in ODD)
    policy = msgspec.structs.replace(world.plain_policy(), denied=denied)
    assert box.bash("cat ./*/open", policy).out == "open" * len(ODD)
    assert "secret" not in box.bash("cat ./*/*", policy).out.replace("content of secret.txt", "")
    for name in ODD:
        inner = SandboxPolicy(
            cwd=str(world.work / name), readable=(str(world.work / name),), scratch=str(world.scratch)
        )
        assert box.bash("cat open", inner).out == "open", name


def test_thousands_of_names_beside_a_denied_one(box: Box, world: World) -> None:
    for number in range(5000):
        (world.work / f"f{number}").touch()
    (world.work / "f4999").write_text("last", encoding="utf-8")
    give(world.work, box)
    policy = msgspec.structs.replace(world.plain_policy(), denied=(str(world.work / "secret.txt"),))
    done = box.bash("ls | wc -l; cat f4999; cat secret.txt sub/other-name | grep content", policy)
    assert done.out.split()[1] == "last"
    assert int(done.out.split()[0]) > 5000
    assert "content" not in done.out


def test_a_folder_on_another_mount(box: Box, world: World) -> None:
    if os.geteuid():
        pytest.skip("only an administrator can mount")
    libc = ctypes.CDLL(None, use_errno=True)
    nosuid, nodev, noexec, read_only = 2, 4, 8, 1
    for flags in (nosuid | nodev, noexec | nosuid, nodev | read_only):
        target = world.work / f"mount-{flags}"
        target.mkdir()
        assert libc.mount(b"tmpfs", bytes(target), b"tmpfs", flags & ~read_only, b"mode=0755") == 0
        try:
            (target / "open").write_text("open", encoding="utf-8")
            (target / "secret").write_text("secret", encoding="utf-8")
            give(target, box)
            if flags & read_only:
                assert libc.mount(None, bytes(target), None, 32 | flags, None) == 0
            denied = (str(target / "secret"),)
            for root in (world.work, target):
                policy = SandboxPolicy(cwd=str(root), readable=(str(root),), scratch=str(world.scratch), denied=denied)
                script = f"cat {target}/open; cat {target}/secret; echo x > {target}/new"
                done = box.bash(script, policy)
                assert done.out == "open"
                assert not (target / "new").exists()
            policy = SandboxPolicy(cwd=str(target), readable=(), writable=(str(target),), scratch=str(world.scratch))
            done = box.bash("echo x > new && cat new", policy)
            assert done.out == ("" if flags & read_only else "x\n")
        finally:
            assert libc.umount2(bytes(target), 2) == 0


def test_files_of_the_kernel_below_a_folder_are_denied(box: Box, world: World) -> None:
    if os.geteuid():
        pytest.skip("only an administrator can mount")
    libc = ctypes.CDLL(None, use_errno=True)
    target = world.work / "proc"
    target.mkdir()
    assert libc.mount(b"proc", bytes(target), b"proc", 0, None) == 0
    try:
        script = "cat proc/1/cmdline proc/version | grep -a ."
        assert box.bash(script, world.policy, confined=False).code == 0
        assert box.bash(script, world.policy).code != 0
    finally:
        assert libc.umount2(bytes(target), 2) == 0


def test_the_home_folder_as_working_folder_keeps_its_secrets(box: Box) -> None:
    home = box.home
    for name in (".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", "notes", ".config/app"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"content of {name}", encoding="utf-8")
    (home / "scratch").mkdir(exist_ok=True)
    give(home, box)
    policy = SandboxPolicy(cwd=str(home), readable=(str(home),), scratch=str(home / "scratch"), list_denied_names=True)
    done = box.bash("cat notes .config/app .ssh/* .aws/* .config/gh/* .netrc; grep -rs content . | sort", policy)
    assert "content of notes" in done.out
    assert "content of .config/app" in done.out
    for name in (".ssh", ".aws", "gh/hosts", ".netrc"):
        assert f"content of {name}" not in done.out.replace(".config/", ""), name
    inside = SandboxPolicy(cwd=str(home / ".ssh"), readable=(str(home / ".ssh"),), scratch=str(home / "scratch"))
    assert "contains secrets" in box.bash("true", inside).error


def test_the_root_folder_as_working_folder_gives_nothing_of_the_system(box: Box, world: World) -> None:
    policy = SandboxPolicy(cwd="/", readable=("/",), scratch=str(world.scratch))
    done = box.bash("ls /usr | head -1", policy)
    assert done.out, done.err
    for attempt in (
        "cat /etc/shadow",
        "ls /root | grep .",
        f"cat {world.work}/open.txt",
        "cat /proc/1/environ",
        "ls /var/lib | grep .",
        "ls /sys/kernel | grep .",
    ):
        assert box.bash(attempt, policy).code != 0, attempt


def test_folders_of_the_kernel_are_refused(box: Box, world: World) -> None:
    for folder in ("/proc", "/sys", "/dev", "/proc/self"):
        policy = SandboxPolicy(cwd="/usr", readable=(folder,), scratch=str(world.scratch))
        assert "kernel" in box.bash("true", policy).error


def test_etc_as_working_folder_keeps_its_passwords(box: Box, world: World) -> None:
    policy = SandboxPolicy(cwd="/etc", readable=("/etc",), scratch=str(world.scratch), list_denied_names=True)
    done = box.bash("cat hosts.conf host.conf passwd shadow gshadow sudoers 2>/dev/null", policy)
    assert "root:" in done.out
    assert "root:x:" in done.out
    assert ":::" not in "".join(
        line for line in done.out.splitlines(keepends=True) if line.startswith("root:")
    ).replace("root:x:0:", "")


def test_programs_of_a_folder_run_and_others_do_not(box: Box, world: World) -> None:
    (world.outside / "tool").write_text("#!/bin/sh\necho ran\n", encoding="utf-8")
    (world.outside / "tool").chmod(0o755)
    give(world.outside, box)
    env = {"PATH": f"{world.outside}:/usr/bin:/bin"}
    assert "Permission denied" in (error := box.ask(["tool"], world.policy, env=env).error) or "No such" in error
    policy = msgspec.structs.replace(world.policy, programs=(str(world.outside), "/no/such"))
    assert box.ask(["tool"], policy, env=env).out == "ran\n"


def test_a_denied_folder_can_be_left_listable(box: Box, world: World) -> None:
    if not box.landlock_alone:
        pytest.skip("mounts hide denied folders without this")
    assert box.bash("ls", world.policy).code != 0
    listing = msgspec.structs.replace(world.policy, list_denied_names=True)
    done = box.bash("ls; cat hidden/inner.txt", listing)
    assert "open.txt" in done.out
    assert "content" not in done.out


def test_contradicting_policies_are_refused(box: Box, world: World) -> None:
    scratch = str(world.work / "hidden" / "scratch")
    Path(scratch).mkdir()
    assert "scratch" in box.bash("true", msgspec.structs.replace(world.policy, scratch=scratch)).error
    cwd = str(world.work / "hidden")
    assert "denied" in box.bash("true", msgspec.structs.replace(world.policy, cwd=cwd)).error
    root = msgspec.structs.replace(world.policy, writable=("/",))
    assert "writable" in box.bash("true", root).error


@pytest.mark.parametrize("field", ["cwd", "scratch", "readable", "writable", "read_only", "denied", "programs"])
def test_paths_must_be_absolute(tmp_path: Path, field: str) -> None:
    good = SandboxPolicy(cwd=str(tmp_path), readable=(), scratch=str(tmp_path))
    good.check()
    for bad in ("relative", "", "/with\0nul"):
        value = bad if field in {"cwd", "scratch"} else (bad,)
        with pytest.raises(SandboxError, match="absolute"):
            msgspec.structs.replace(good, **{field: value}).check()
    with pytest.raises(SandboxError, match="directory"):
        msgspec.structs.replace(good, cwd=str(tmp_path / "gone")).check()


def test_secrets_are_denied_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".config" / "gh").mkdir(parents=True)
    (tmp_path / "project" / ".aws").mkdir(parents=True)
    policy = SandboxPolicy(
        cwd=str(tmp_path), readable=(str(tmp_path), str(tmp_path / "project")), scratch=str(tmp_path)
    )
    denied = deny_secrets(policy).denied
    assert str(tmp_path / "home" / ".config" / "gh") in denied
    assert str(tmp_path / "project" / ".aws") in denied
