"""Random trees with random denied paths: what a program sees is exactly what it may see."""

import os
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.permissions.sandbox.boxes import Box, folder_for, give

from steno.permissions.sandbox.policy import SandboxPolicy

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")

_NAME = st.sampled_from(["a", "b", "c d", "é", ".e", "-f"])
_PATH = st.lists(_NAME, min_size=1, max_size=4).map("/".join)
_STEP = st.one_of(
    st.tuples(st.just("file"), _PATH, st.just("")),
    st.tuples(st.just("folder"), _PATH, st.just("")),
    st.tuples(st.just("hard link"), _PATH, _PATH),
    st.tuples(st.just("link"), _PATH, _PATH),
)
_READ_ALL = 'for f in "$@"; do c=$(cat "$f" 2>/dev/null); [ -n "$c" ] && printf "%s\\0%s\\0" "$f" "$c"; done; true'
_WRITE_ALL = 'for f in "$@"; do echo x >> "$f"; echo x > "$f/new"; rm -rf "$f"; mv "$f" moved; done 2>/dev/null; true'


def _build(root: Path, steps: list[tuple[str, str, str]]) -> None:
    for number, (kind, name, other) in enumerate(steps):
        path, target = root / name, root / other
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "file":
                with path.open("x", encoding="utf-8") as file:
                    file.write(f"file {number}")
            elif kind == "folder":
                path.mkdir()
            elif kind == "hard link":
                os.link(target, path)
            else:
                # Some absolute, some relative, some to nothing, some in a circle.
                path.symlink_to(target if number % 2 else os.path.relpath(target, path.parent))
        except OSError:
            # The step makes no sense in this tree.
            continue


def _inside(path: Path, folders: set[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)


def _expected(root: Path, denied: set[Path]) -> dict[str, str]:
    """Return the files that may be read, by a model of its own: inodes and real paths."""
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    hidden = {path.stat().st_ino for path in files if _inside(path, denied)}
    return {str(path): path.read_text(encoding="utf-8") for path in files if path.stat().st_ino not in hidden}


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(_STEP, min_size=4, max_size=25),
    chosen=st.lists(st.integers(0, 1000), max_size=4),
    top_name=st.sampled_from(["work", "linked"]),
)
def test_exactly_what_is_not_denied_is_read(
    box: Box, steps: list[tuple[str, str, str]], chosen: list[int], top_name: str
) -> None:
    for base in folder_for():
        root, scratch = base / "work", base / "scratch"
        root.mkdir()
        scratch.mkdir()
        _build(root, steps)
        give(base, box)
        everything = sorted(root.rglob("*"))
        names = [str(everything[number % len(everything)]) for number in chosen if everything]
        real = {Path(os.path.realpath(name)) for name in names if Path(name).exists()}
        if root in real:
            continue
        (base / "linked").symlink_to("work")
        top = base / top_name
        policy = SandboxPolicy(cwd=str(top), readable=(str(top),), scratch=str(scratch), denied=tuple(names))
        paths = [str(path) for path in everything if path.is_file() and not path.is_symlink()]
        done = box.ask(["bash", "-c", _READ_ALL, "bash", *paths], policy)
        assert done.error == ""
        parts = done.out.split("\0")[:-1]
        expected = _expected(root, real)
        assert dict(zip(parts[::2], parts[1::2], strict=True)) == expected
        _check_listing(box, policy, root, real)
        before = _snapshot(root)
        box.ask(["bash", "-c", _WRITE_ALL, "bash", *map(str, everything)], policy)
        assert _snapshot(root) == before


def _check_listing(box: Box, policy: SandboxPolicy, root: Path, denied: set[Path]) -> None:
    listed = box.ask(["find", str(root), "-mindepth", "1", "-print0"], policy).out.split("\0")[:-1]
    below = {path for path in root.rglob("*") if _inside(path.parent, denied)}
    assert not {str(path) for path in below} & set(listed)
    if box.landlock_alone:
        return
    assert set(listed) == {str(path) for path in root.rglob("*") if path not in below}


def _snapshot(root: Path) -> list[object]:
    return [
        (str(path), status.st_mode, status.st_ino, status.st_size, status.st_ctime_ns)
        for path in sorted(root.rglob("*"))
        for status in [path.lstat()]
    ]


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=st.lists(_STEP, min_size=4, max_size=25), chosen=st.lists(st.integers(0, 1000), max_size=3))
def test_read_only_paths_survive_everything(box: Box, steps: list[tuple[str, str, str]], chosen: list[int]) -> None:
    for base in folder_for():
        root, scratch = base / "work", base / "scratch"
        root.mkdir()
        scratch.mkdir()
        _build(root, steps)
        give(base, box)
        everything = [path for path in sorted(root.rglob("*")) if not path.is_symlink()]
        kept = {everything[number % len(everything)] for number in chosen if everything}
        policy = SandboxPolicy(
            cwd=str(root),
            readable=(str(root),),
            writable=(str(root),),
            scratch=str(scratch),
            read_only=tuple(map(str, kept)),
        )
        before = {str(path): _snapshot_one(path) for path in kept}
        argv = ["bash", "-c", _WRITE_ALL, "bash", *map(str, sorted(root.rglob("*")))]
        done = box.ask(argv, policy)
        assert done.error == ""
        assert {name: _snapshot_one(Path(name)) for name in before} == before
        if not kept and everything:
            assert len(list(root.rglob("*"))) < len(everything) + 1


def _snapshot_one(path: Path) -> object:
    if path.is_dir():
        return [
            (str(each), each.lstat().st_ino, each.read_bytes() if each.is_file() and not each.is_symlink() else b"")
            for each in (path, *sorted(path.rglob("*")))
        ]
    return (path.lstat().st_ino, path.read_bytes())


def test_the_model_notices_a_leak(box: Box) -> None:
    """The comparison above can fail: without the denied paths, more is read."""
    for base in folder_for():
        root, scratch = base / "work", base / "scratch"
        root.mkdir()
        scratch.mkdir()
        _build(root, [("file", "a/b", ""), ("hard link", "c d", "a/b"), ("file", "b", "")])
        give(base, box)
        policy = SandboxPolicy(cwd=str(root), readable=(str(root),), scratch=str(scratch))
        denying = msgspec.structs.replace(policy, denied=(str(root / "a"),))
        assert set(_expected(root, {root / "a"})) == {str(root / "b")}
        argv = ["bash", "-c", _READ_ALL, "bash", *(str(root / n) for n in ("a/b", "b", "c d"))]
        assert "file 0" in box.ask(argv, policy).out
        assert "file 0" not in box.ask(argv, denying).out
