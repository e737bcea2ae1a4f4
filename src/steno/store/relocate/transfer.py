"""Packs a project's sessions into one file for another machine, and unpacks such a file.

The file is a tar compressed with zstd, the manifest first. Members are named by number; the path, size and hash of each
are in the manifest, so nothing else in the archive can choose a path. Unpacking accepts exactly the bytes that the
manifest describes: other paths, links, missing or additional members and decompression bombs are refused before a file
is placed.
"""

import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from shutil import disk_usage, rmtree
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from steno._version import __version__
from steno.errors import BadRequest, Busy, NotFound, Unreadable, Unwritable
from steno.format.lenient_json import DECODE_ERRORS, decode_lenient
from steno.format.path_rewriter import PathRewriter
from steno.format.paths import Role, classify_path, is_uuid
from steno.store.atomic import TempFile, make_private_folder, unwritable_error
from steno.store.discovery import files_below, is_folder, list_folder
from steno.store.environment import now, steno_home
from steno.store.file_source import FileSource
from steno.store.relocate.execution import RECEIPTS_FOLDER, compress_chunks, relocation_lock
from steno.store.relocate.plan import (
    HISTORY_NAME,
    FileMove,
    FileSum,
    ProjectFiles,
    RelocationPlan,
    RelocationStep,
    check_steps,
    compute_sum,
    find_project_files,
    is_inside_path,
    line_mark,
    path_pairs,
    plan_steps,
    refuse_if_active,
    refuse_root,
    rewrite_mode,
    rewrite_paths,
    rewrite_units,
)
from steno.store.replace import place_new

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionReader


FORMAT_VERSION: Final = 1
MANIFEST_NAME: Final = "manifest.json"
MAX_MANIFEST_SIZE: Final = 64 << 20
"""Maximum size of the manifest in bytes."""
_MAX_FILES: Final = 1_000_000
_MAX_PATH_LENGTH: Final = 1024
_MAX_NAME_LENGTH: Final = 255
_TRANSFERABLE_ROLES: Final[frozenset[Role]] = frozenset(
    {
        *("agent", "agent-meta", "custom-title", "file-history", "journal", "memory", "session"),
        *("sessions-index", "task", "todo", "tool-result", "workflow"),
    }
)
_TRANSFERABLE_FOLDERS: Final = frozenset(("projects", "conversations", "file-history", "todos", "tasks"))
_FORBIDDEN_CHARACTERS: Final = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]|[\ud800-\udfff]')
_SHA256_PATTERN: Final = re.compile(r"[0-9a-f]{64}")
_MAX_MTIME: Final = 1 << 62
_SESSION_PATH_DEPTH: Final = len(("projects", "slug", "session.jsonl"))


class PackedFile(msgspec.Struct, frozen=True):
    """A file in the archive, with its expected size and hash."""

    name: str
    """Path relative to the config directory, separated by `/`."""
    size: int
    sha256: str
    mtime_ns: int = 0


class Manifest(msgspec.Struct, frozen=True):
    """The list of files in the archive."""

    format: int
    project: str
    config: str
    files: tuple[PackedFile, ...]
    steno: str = ""
    time: float = 0.0

    @property
    def size(self) -> int:
        """Total unpacked bytes."""
        return sum(file.size for file in self.files)

    @property
    def sessions(self) -> int:
        """Number of sessions."""
        names = [file.name.split("/") for file in self.files]
        return sum(len(n) == _SESSION_PATH_DEPTH and is_uuid(n[2].removesuffix(".jsonl")) for n in names)


def member_name(number: int) -> str:
    """Return the name of an archive member; the real file name is only in the manifest."""
    return f"files/{number:06}"


def is_transferable(name: str) -> bool:
    """Return whether a file of a config directory may be transferred between machines.

    Settings, keys, environment files and scripts are never transferred.
    """
    if name == HISTORY_NAME:
        return True
    parts = name.split("/")
    has_valid_names = all(
        0 < len(p.encode("utf-8", "replace")) <= _MAX_NAME_LENGTH and p not in {".", ".."} for p in parts
    )
    if (
        not has_valid_names
        or len(name) > _MAX_PATH_LENGTH
        or _FORBIDDEN_CHARACTERS.search(name)
        or parts[0] not in _TRANSFERABLE_FOLDERS
    ):
        return False
    if parts[-1].startswith(".") or "scripts" in parts[2:-1]:
        return False
    location = classify_path(name)
    return location.role in _TRANSFERABLE_ROLES


def parse_manifest(raw: bytes) -> Manifest:
    """Parse and check the manifest.

    Raises BadRequest if it is invalid or contains a path that may not be transferred.
    """
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except DECODE_ERRORS as error:
        raise BadRequest("not an archive written by `steno relocate --to-machine`") from error
    if manifest.format != FORMAT_VERSION:
        raise BadRequest(f"unsupported archive format {manifest.format}; this version reads {FORMAT_VERSION}")
    if len(manifest.files) > _MAX_FILES:
        raise BadRequest(f"the archive has too many files: {len(manifest.files):,}")
    if not manifest.project or not manifest.config or "\0" in manifest.project + manifest.config:
        raise BadRequest("the archive does not name its project")
    folded_names: set[str] = set()
    for file in manifest.files:
        if not is_transferable(file.name):
            raise BadRequest(f"the archive has a file that may not be transferred: {file.name!r}")
        if file.name.casefold() in folded_names:
            raise BadRequest(f"the archive contains {file.name!r} twice")
        folded_names.add(file.name.casefold())
        has_valid_size = file.size >= 0 and 0 <= file.mtime_ns < _MAX_MTIME
        if not has_valid_size or not _SHA256_PATTERN.fullmatch(file.sha256):
            raise BadRequest(f"the archive has invalid metadata for {file.name!r}")
    return manifest


_COMPRESSION_LEVEL: Final = 10
_MEMBER_MODE: Final = 0o600
_NANOSECONDS: Final = 10**9


class PackResult(msgspec.Struct, frozen=True):
    """The manifest of a packed archive, and the paths that were left out."""

    manifest: Manifest
    left_out: tuple[str, ...]


def pack_project(project: str, config: str, path: str, on_progress: Callable[[int], None] | None = None) -> PackResult:
    """Pack the sessions of a project into a new file.

    Raises BadRequest if the project is the root of a disk, NotFound if it has no files, Busy if a session changed while
    it was read, or Unwritable if the file exists or cannot be written.
    """
    refuse_root(project)
    config = os.path.realpath(config)
    root, project_files = _find_packable_files(project, config)
    sources = {_relative_name(move.source, config): move.source for move in project_files.moves}
    ids = {os.path.basename(name).removesuffix(".jsonl") for name in sources}
    sources |= dict(_related_files(config, {session_id for session_id in ids if is_uuid(session_id)}))
    left_out = tuple(source for name, source in sources.items() if not is_transferable(name))
    transferred = sorted((name, source) for name, source in sources.items() if is_transferable(name))
    files = [_packed_file(name, source) for name, source in transferred]
    prompts = _project_prompts(os.path.join(config, HISTORY_NAME), root)
    if prompts:
        prompt_sum = compute_sum([prompts])
        files.append(PackedFile(HISTORY_NAME, prompt_sum.size, prompt_sum.sha256, int(now()) * _NANOSECONDS))
    manifest = Manifest(FORMAT_VERSION, root, config, tuple(files), __version__, now())
    bodies = [*((source, None) for _, source in transferred), *([("", prompts)] if prompts else [])]
    with TempFile(path) as temp_file:
        try:
            tar_chunks = _tar_chunks(manifest, bodies, on_progress)
            temp_file.write(compress_chunks(tar_chunks, level=_COMPRESSION_LEVEL, write_checksum=True))
        except Unwritable as error:
            # The error came from reading a source, not from writing.
            if isinstance(error.__cause__, Busy | Unreadable):
                raise error.__cause__ from None
            raise
        place_new(temp_file, path)
    return PackResult(manifest, left_out)


def _find_packable_files(project: str, config: str) -> tuple[str, ProjectFiles]:
    # As in `plan`: first the given path, then the real path.
    for root in dict.fromkeys((os.path.abspath(project), os.path.realpath(project))):
        project_files = find_project_files(config, root, root)
        if project_files.moves:
            return root, project_files
    raise NotFound(f"no sessions found for {project}", hint="Run `steno ls` to list sessions and their directories.")


def _relative_name(path: str, config: str) -> str:
    return os.path.relpath(path, config).replace(os.sep, "/")


def _related_files(config: str, ids: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of some sessions elsewhere in the config directory."""
    for folder_name in ("file-history", "tasks"):
        for session_id in sorted(ids):
            folder = os.path.join(config, folder_name, session_id)
            for file in files_below(folder, [], prefix=f"{folder_name}/{session_id}"):
                yield _relative_name(file.path, config), file.path
    for file in files_below(os.path.join(config, "todos"), [], prefix="todos"):
        if file.place.session_id in ids:
            yield _relative_name(file.path, config), file.path


def _packed_file(name: str, source: str) -> PackedFile:
    with FileSource(source) as file:
        file_sum = compute_sum(file.chunks())
        return PackedFile(name, file_sum.size, file_sum.sha256, os.stat(source).st_mtime_ns)


def _project_prompts(path: str, root: str) -> bytes:
    """Return the history lines of prompts typed in a project."""
    if not os.path.isfile(path):
        return b""
    with FileSource(path) as file:
        lines = list(rewrite_units(file.chunks(), "lines"))
    return b"".join(line for line in lines if line.endswith(b"\n") and _is_prompt_of(line, root))


def _is_prompt_of(line: bytes, root: str) -> bool:
    entry = decode_lenient(line)
    project = cast("dict[str, Any]", entry).get("project") if isinstance(entry, dict) else None
    return isinstance(project, str) and is_inside_path(project, root)


def _tar_chunks(
    manifest: Manifest, bodies: Iterable[tuple[str, bytes | None]], on_progress: Callable[[int], None] | None
) -> Iterator[bytes]:
    manifest_data = msgspec.json.encode(manifest)
    yield from _tar_member(
        MANIFEST_NAME,
        PackedFile(MANIFEST_NAME, len(manifest_data), "", int(manifest.time) * _NANOSECONDS),
        [manifest_data],
    )
    for number, (packed, (source, prompts)) in enumerate(zip(manifest.files, bodies, strict=True)):
        yield from _tar_member(member_name(number), packed, _member_body(source, prompts, packed))
        if on_progress is not None:
            on_progress(packed.size)
    yield bytes(2 * _BLOCK_SIZE)


def _tar_member(name: str, packed: PackedFile, body: Iterable[bytes]) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = packed.size, _MEMBER_MODE, packed.mtime_ns // _NANOSECONDS
    yield info.tobuf(tarfile.GNU_FORMAT)
    yield from body
    yield bytes(-packed.size % _BLOCK_SIZE)


def _member_body(source: str, prompts: bytes | None, packed: PackedFile) -> Iterator[bytes]:
    """Yield the content of a file, which must match the manifest."""
    if prompts is not None:
        yield prompts
        return
    with FileSource(source) as file:
        if file.size < packed.size:
            raise Busy(f"{source} changed while it was read", hint="Nothing was written. Run the command again.")
        file.size = packed.size
        file_sum = compute_sum(file.chunks())
        if file_sum != FileSum(packed.size, packed.sha256):
            raise Busy(f"{source} changed while it was read", hint="Nothing was written. Run the command again.")
        yield from file.chunks()


STAGING_FOLDER: Final = "staged"
_BLOCK_SIZE: Final = tarfile.BLOCKSIZE
_READ_SIZE: Final = 1 << 20
_MAX_WINDOW_SIZE: Final = 128 << 20
_MAX_RATIO: Final = 1000
_SMALL_SIZE: Final = 64 << 20
_SPACE_FACTOR: Final = 2.2
"""Free disk space needed, relative to the unpacked size: one staged and one final copy, plus a margin."""


def plan_unpack(
    path: str, new: str, config: str, folder: str, on_progress: Callable[[int], None] | None = None
) -> RelocationPlan:
    """Unpack an archive next to the receipt in `folder`, verify it, and plan the new paths.

    Raises BadRequest if the file is not such an archive, is damaged or malicious, or a session already exists;
    Unreadable if it cannot be read; Unwritable if disk space is insufficient.
    """
    refuse_root(new)
    config = os.path.realpath(config)
    new = os.path.realpath(new)
    staged = os.path.join(folder, STAGING_FOLDER)
    with relocation_lock():
        _remove_abandoned(folder)
        manifest = _TransferReader(path).unpack(staged, on_progress)
    project_files = find_project_files(staged, manifest.project, new)
    moves = [
        msgspec.structs.replace(move, target=config + move.target[len(staged) :], action="add")
        for move in project_files.moves
    ]
    moves += _other_moves(staged, config)
    folders = [
        (_foreign_path(manifest.config, source, staged), config + target[len(staged) :])
        for source, target in project_files.folders
    ]
    pairs = path_pairs(manifest.project, new, config, folders)
    plan = RelocationPlan(manifest.project, new, config, tuple(pairs), notes=tuple(project_files.notes))
    steps = [*plan_steps(moves, PathRewriter(pairs)), *_prompt_step(staged, config, PathRewriter(pairs))]
    plan = check_steps(plan, steps)
    refuse_if_active(msgspec.structs.replace(plan, old=plan.new, steps=()))
    return plan


def _foreign_path(config: str, source: str, staged: str) -> str:
    """Return the path of a directory on the other machine, in that machine's notation."""
    below = source[len(staged) :].replace(os.sep, "/")
    windows = "\\" in config and not config.startswith("/")
    return config + (below.replace("/", "\\") if windows else below)


def _other_moves(staged: str, config: str) -> Iterator[FileMove]:
    for folder_name in ("file-history", "tasks", "todos"):
        for source in _files_in_folder(os.path.join(staged, folder_name)):
            yield FileMove(source, config + source[len(staged) :], "bytes", "add")


def _files_in_folder(folder: str) -> Iterator[str]:
    if not os.path.isdir(folder):
        return
    for entry in list_folder(folder, []):
        if is_folder(entry, links=False):
            yield from _files_in_folder(entry.path)
        else:
            yield entry.path


def _prompt_step(staged: str, config: str, paths: PathRewriter) -> Iterator[RelocationStep]:
    """Yield the step that merges the prompts of the archive into the local history."""
    source, target = os.path.join(staged, HISTORY_NAME), os.path.join(config, HISTORY_NAME)
    if not os.path.isfile(source):
        return
    (step,) = plan_steps([FileMove(source, target, rewrite_mode(source), "merge")], paths)
    with FileSource(source) as file:
        marks = [line_mark(line) for line in rewrite_paths(file.chunks(), paths, "lines")]
    yield msgspec.structs.replace(step, lines=tuple(marks))


def remove_staged(folder: str) -> None:
    """Remove unpacked files that are no longer needed."""
    rmtree(folder, ignore_errors=True)


def _remove_abandoned(folder: str) -> None:
    """Remove the directories of interrupted unpacking: those without a receipt."""
    receipts_folder = os.path.join(steno_home(), RECEIPTS_FOLDER)
    for entry in list_folder(receipts_folder, []):
        if not is_folder(entry, links=False) or entry.path == folder:
            continue
        if not os.path.exists(os.path.join(entry.path, "receipt.json")):
            rmtree(entry.path, ignore_errors=True)


class _TransferReader:
    """Reads one archive sequentially and verifies each file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def unpack(self, staged: str, on_progress: Callable[[int], None] | None) -> Manifest:
        """Write every file below a directory, verifying each; return the manifest."""
        from zstandard import ZstdDecompressor, ZstdError

        try:
            with FileSource(self._path) as file, open(self._path, "rb") as raw:
                decompressor = ZstdDecompressor(max_window_size=_MAX_WINDOW_SIZE)
                with decompressor.stream_reader(raw) as stream:
                    manifest = self._read_manifest(stream, file.size)
                    for number, packed in enumerate(manifest.files):
                        self._unpack_member(stream, number, packed, staged)
                        if on_progress is not None:
                            on_progress(packed.size)
                    self._expect_end(stream)
        except ZstdError as error:
            raise BadRequest(f"{self._path} is damaged or not an archive") from error
        except Unreadable as error:
            hint = "Run `steno relocate OLD --to-machine FILE` to create an archive."
            raise Unreadable(str(error), hint=hint) from error
        except OSError as error:
            if isinstance(error, Unwritable):
                raise
            raise unwritable_error(staged, error) from error
        return manifest

    def _read_manifest(self, stream: "ZstdDecompressionReader", size: int) -> Manifest:
        length = self._read_member_header(stream, MANIFEST_NAME)
        if length > MAX_MANIFEST_SIZE:
            raise BadRequest(f"{self._path}: the manifest is too large")
        manifest = parse_manifest(self._read_exactly(stream, length))
        self._read_exactly(stream, -length % _BLOCK_SIZE)
        if manifest.size > max(_SMALL_SIZE, size * _MAX_RATIO):
            raise BadRequest(f"{self._path} would unpack to {manifest.size:,} bytes, which is suspiciously large")
        if manifest.size * _SPACE_FACTOR > disk_usage(steno_home()).free:
            raise Unwritable(f"not enough disk space for the {manifest.size:,} bytes of {self._path}")
        return manifest

    def _read_member_header(self, stream: "ZstdDecompressionReader", name: str) -> int:
        """Return the size of the next member, which must be a regular file of this name."""
        block = self._read_exactly(stream, _BLOCK_SIZE)
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise self._unexpected_member_error(name) from error
        if info.name != name or info.type != tarfile.REGTYPE or info.size < 0:
            raise self._unexpected_member_error(name)
        return info.size

    def _unexpected_member_error(self, name: str) -> BadRequest:
        about = f"{self._path} does not contain {name} at the expected position"
        return BadRequest(about, hint="Only archives written by `steno relocate --to-machine` are accepted.")

    def _unpack_member(self, stream: "ZstdDecompressionReader", number: int, packed: PackedFile, staged: str) -> None:
        if self._read_member_header(stream, member_name(number)) != packed.size:
            raise BadRequest(f"{packed.name!r} in the archive has the wrong size")
        target = os.path.join(staged, *packed.name.split("/"))
        make_private_folder(os.path.dirname(target))
        digest = sha256()
        with TempFile(target) as temp_file:
            temp_file.write(self._read_pieces(stream, packed.size, digest.update))
            if digest.hexdigest() != packed.sha256:
                raise BadRequest(f"{packed.name!r} in the archive has the wrong hash")
            os.utime(temp_file.path, ns=(packed.mtime_ns, packed.mtime_ns))
            # Not `TempFile.replace`: all errors during unpacking name the staging directory.
            os.replace(temp_file.path, target)
        self._read_exactly(stream, -packed.size % _BLOCK_SIZE)

    def _read_pieces(
        self, stream: "ZstdDecompressionReader", size: int, on_piece: Callable[[bytes], None]
    ) -> Iterator[bytes]:
        while size:
            piece = self._read_exactly(stream, min(size, _READ_SIZE))
            on_piece(piece)
            size -= len(piece)
            yield piece

    def _read_exactly(self, stream: "ZstdDecompressionReader", size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = stream.read(size)
            if not part:
                raise BadRequest(f"{self._path} is incomplete", hint="Copy the file again.")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _expect_end(self, stream: "ZstdDecompressionReader") -> None:
        if any(self._read_exactly(stream, 2 * _BLOCK_SIZE)) or stream.read(1):
            raise BadRequest(f"{self._path} has data after its last file")
