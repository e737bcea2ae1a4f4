"""Sessions packed on one machine and unpacked on another; what is hostile is refused whole."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from tests.store.relocate.moving import NEW, OLD, aged, project, seen, write

from steno.errors import BadRequest, Busy, NotFound, StenoError, Unwritable
from steno.format.paths import slug_for_path
from steno.store.relocate import transfer as unpacking
from steno.store.relocate.execution import RelocationReceipt, apply_plan, new_receipt_folder, undo_relocation
from steno.store.relocate.transfer import is_transferable, pack_project, plan_unpack

SID = "62ecc684-5437-43ff-95cf-5c331fca7ea1"
NAME = f"projects/-home-ada-work/{SID}.jsonl"
LINE = json.dumps({"type": "user", "cwd": OLD, "sessionId": SID}).encode() + b"\n"


def here(tmp_path: Path) -> Path:
    made = project()
    folder = write(tmp_path / "here", made)
    for name, data in {
        f"file-history/{made.session_id}/0123456789abcdef@v1": b"old",
        f"todos/{made.session_id}-agent-{made.session_id}.json": b"[]",
        f"session-env/{made.session_id}/hook.sh": b"export A=1",
        "settings.json": b"{}",
        "history.jsonl": json.dumps({"display": "hi", "project": OLD}).encode() + b"\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return aged(folder)


def brought(archive: Path, folder: Path, new: str = NEW) -> RelocationReceipt:
    place = new_receipt_folder()
    return apply_plan(plan_unpack(str(archive), new, str(folder), place), "unpack", place)


def test_sessions_arrive_with_all_that_is_theirs(tmp_path: Path) -> None:
    source = here(tmp_path)
    made = project()
    before = seen(source)
    packing = pack_project(OLD, str(source), str(tmp_path / "x.tar.zst"))
    assert seen(source) == before
    assert packing.manifest.sessions == 1
    there = tmp_path / "there"
    there.mkdir()
    (there / "history.jsonl").write_text('{"display":"mine","project":"/mine"}\n')
    own = seen(there)
    receipt = brought(tmp_path / "x.tar.zst", there)
    path = there / "projects" / slug_for_path(NEW) / f"{made.session_id}.jsonl"
    assert {json.loads(line).get("cwd", NEW) for line in path.read_bytes().splitlines()} == {NEW}
    assert path.stat().st_mtime_ns == (source / "projects" / made.folder / path.name).stat().st_mtime_ns
    assert (there / f"file-history/{made.session_id}/0123456789abcdef@v1").read_bytes() == b"old"
    told = [json.loads(each) for each in (there / "history.jsonl").read_text().splitlines()]
    assert told == [{"display": "hi", "project": NEW}, {"display": "mine", "project": "/mine"}]
    # What a shell would run, and what a client obeys, does not travel.
    assert not (there / "session-env").exists()
    assert not (there / "settings.json").exists()
    undo_relocation(receipt)
    assert {k: v[0] for k, v in seen(there).items()} == {k: v[0] for k, v in own.items()}
    assert not (there / "file-history" / made.session_id).exists()


def test_there_and_back_over_two_machines_is_the_same(tmp_path: Path) -> None:
    source = write(tmp_path / "one", project())
    before = seen(source)
    pack_project(OLD, str(source), str(tmp_path / "a"))
    brought(tmp_path / "a", tmp_path / "two", NEW)
    pack_project(NEW, str(tmp_path / "two"), str(tmp_path / "b"))
    brought(tmp_path / "b", tmp_path / "three", OLD)
    after = seen(tmp_path / "three")
    assert {k: v[:2] for k, v in after.items()} == {k: v[:2] for k, v in before.items()}


def test_what_is_here_already_is_not_overwritten(tmp_path: Path) -> None:
    source = write(tmp_path / "one", project())
    pack_project(OLD, str(source), str(tmp_path / "a"))
    brought(tmp_path / "a", tmp_path / "two")
    place = new_receipt_folder()
    assert plan_unpack(str(tmp_path / "a"), NEW, str(tmp_path / "two"), place).steps == ()
    (path,) = (tmp_path / "two").glob("projects/*/*.jsonl")
    path.write_bytes(b"{}\n")
    aged(tmp_path / "two")
    with pytest.raises(BadRequest, match="already exists"):
        brought(tmp_path / "a", tmp_path / "two")


def test_an_existing_file_is_not_packed_over(tmp_path: Path) -> None:
    source = write(tmp_path / "one", project())
    (tmp_path / "a").write_bytes(b"mine")
    with pytest.raises(Unwritable):
        pack_project(OLD, str(source), str(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == b"mine"
    with pytest.raises(NotFound):
        pack_project("/no/such", str(source), str(tmp_path / "b"))


def test_a_file_that_changes_while_it_is_packed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "one", project())
    from steno.store.relocate import transfer as packing

    real = packing._packed_file

    def late(name: str, path: str) -> object:
        told = real(name, path)
        Path(path).write_bytes(b"other" * 99_999)
        return told

    monkeypatch.setattr(packing, "_packed_file", late)
    with pytest.raises(Busy, match="changed while"):
        pack_project(OLD, str(source), str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()


# Archives that mean harm

Edit = Callable[[dict[str, Any]], None]


def archive(path: Path, edit: Edit = lambda _: None, *, body: bytes = LINE, **tar: Any) -> Path:
    """Write an archive by hand: its manifest edited, its members as they are told."""
    told = {
        "format": 1,
        "project": OLD,
        "config": "/home/ada/.claude",
        "files": [{"name": NAME, "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}],
    }
    edit(told)
    manifest = tar.get("manifest", json.dumps(told).encode())
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as made:
        for name, data, kind in tar.get(
            "members", [("manifest.json", manifest, tarfile.REGTYPE), ("files/000000", body, tarfile.REGTYPE)]
        ):
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(data), "/etc/passwd"
            made.addfile(info, io.BytesIO(data))
    # Without the padding that `tarfile` adds behind the two empty blocks.
    size = len(raw.getvalue())
    whole = raw.getvalue()[: tar.get("cut", size)]
    end = whole.rstrip(b"\0")
    whole = end + bytes(-len(end) % 512) + bytes(1024) if not tar.get("cut") else whole
    path.write_bytes(zstandard.ZstdCompressor().compress(whole + tar.get("more", b"")))
    return path


def named(name: str) -> Edit:
    def edit(told: dict[str, Any]) -> None:
        told["files"][0]["name"] = name

    return edit


def setting(**fields: Any) -> Edit:
    def edit(told: dict[str, Any]) -> None:
        told["files"][0] |= fields

    return edit


def about(**fields: Any) -> Edit:
    def edit(told: dict[str, Any]) -> None:
        told |= fields

    return edit


def twice(told: dict[str, Any]) -> None:
    told["files"].append({**told["files"][0], "name": NAME.upper()})


def test_the_archive_written_by_hand_is_sound(tmp_path: Path) -> None:
    receipt = brought(archive(tmp_path / "a"), tmp_path / "there")
    assert len(receipt.steps) == 1


HOSTILE: dict[str, dict[str, Any]] = {
    "climbs": {"edit": named(f"projects/../../{SID}.jsonl")},
    "absolute": {"edit": named("/etc/cron.d/x.jsonl")},
    "drive": {"edit": named(f"projects/C:/{SID}.jsonl")},
    "backslash": {"edit": named(f"projects\\..\\{SID}.jsonl")},
    "nul": {"edit": named(f"projects/a/\0{SID}.jsonl")},
    "settings": {"edit": named("settings.json")},
    "keys": {"edit": named(".credentials.json")},
    "environment": {"edit": named(f"session-env/{SID}/hook.sh")},
    "hooks": {"edit": named("hooks/x")},
    "commands": {"edit": named("commands/x.md")},
    "hidden": {"edit": named("projects/a/.claude.json")},
    "script": {"edit": named(f"projects/a/{SID}/workflows/scripts/x.js")},
    "wrong hash": {"edit": setting(sha256="0" * 64)},
    "no hash": {"edit": setting(sha256="")},
    "wrong size": {"edit": setting(size=3)},
    "less than nothing": {"edit": setting(size=-1)},
    "no time": {"edit": setting(mtime_ns=1 << 70)},
    "bomb": {"edit": setting(size=1 << 40)},
    "twice": {"edit": twice},
    "other format": {"edit": about(format=2)},
    "no project": {"edit": about(project="")},
    "no manifest": {"members": [("files/000000", LINE, tarfile.REGTYPE)]},
    "no json": {"manifest": b"[" * 100_000},
    "link": {"members": "link"},
    "hard link": {"members": "hard"},
    "folder": {"members": "folder"},
    "another name": {"members": "name"},
    "more members": {"members": "more"},
    "more bytes": {"more": b"x" * 512},
    "cut": {"cut": 1600},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_hostile_is_refused_and_nothing_is_written(tmp_path: Path, kind: str) -> None:
    how = dict(HOSTILE[kind])
    if isinstance(how.get("members"), str):
        how["members"] = members(how["members"])
    path = archive(tmp_path / "a", **how)
    there = tmp_path / "there"
    there.mkdir()
    outside = seen(tmp_path)
    with pytest.raises(StenoError):
        brought(path, there)
    assert seen(tmp_path) == outside


def members(kind: str) -> list[tuple[str, bytes, bytes]]:
    told = {"format": 1, "project": OLD, "config": "/c"}
    # What is not a regular file has no bytes: without a look at its kind it would do for an empty one.
    data = LINE if kind in ("name", "more") else b""
    files = [{"name": NAME, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}]
    head = ("manifest.json", json.dumps({**told, "files": files}).encode(), tarfile.REGTYPE)
    body = {
        "link": [("files/000000", b"", tarfile.SYMTYPE)],
        "hard": [("files/000000", b"", tarfile.LNKTYPE)],
        "folder": [("files/000000", b"", tarfile.DIRTYPE)],
        "name": [("../../evil", LINE, tarfile.REGTYPE)],
        "more": [("files/000000", LINE, tarfile.REGTYPE), ("../evil", b"x", tarfile.REGTYPE)],
    }[kind]
    return [head, *body]


def test_what_is_no_archive_at_all_is_refused(tmp_path: Path) -> None:
    for data in (b"", b"hello", zstandard.ZstdCompressor().compress(bytes(10_000))):
        (tmp_path / "a").write_bytes(data)
        with pytest.raises(StenoError):
            brought(tmp_path / "a", tmp_path / "there")


def test_an_archive_that_swells_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a", body=bytes(70 << 20))
    assert path.stat().st_size < 70_000
    with pytest.raises(BadRequest, match="would unpack to 73,400,320 bytes"):
        brought(path, tmp_path / "there")


def test_an_archive_bigger_than_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(msgspec.Struct):
        free: int = 10

    def usage(_: str) -> Full:
        return Full()

    monkeypatch.setattr(unpacking, "disk_usage", usage)
    with pytest.raises(Unwritable, match="not enough disk space"):
        brought(archive(tmp_path / "a"), tmp_path / "there")


def test_only_what_is_harmless_travels() -> None:
    assert is_transferable(NAME)
    assert is_transferable(f"projects/a/{SID}/subagents/agent-a318043.jsonl")
    assert is_transferable("projects/a/memory/MEMORY.md")
    assert not is_transferable("projects/a/../b.jsonl")
    assert not is_transferable(f"projects/a/{SID}.jsonl.before-repair")
    assert not is_transferable("sessions/1.key")
