"""The items of the campaign: each promise, the tests for it, and their duration.

The ID starts with the letter of the section: A load, B faults, C bad inputs, D security.
"""

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["size", "time", "plain"]


@dataclass(frozen=True, slots=True)
class Item:
    """A promise and its tests.

    `seconds` is the duration on two cores at full size. An item of kind `size` is run at the size that fits its share
    of the time, an item of kind `time` for the duration of its share, and an item of kind `plain` always completely.
    """

    id: str
    promise: str
    tests: tuple[str, ...]
    kind: Kind
    seconds: float
    only: str = ""
    """Expression for pytest's `-k`."""
    environment: tuple[tuple[str, int], ...] = ()
    """Environment variables set to a number, with their values at full size."""


def _size(name: str, seconds: float, promise: str, *tests: str, **more: int) -> Item:
    return Item(name, promise, tests, "size", seconds, environment=tuple(more.items()))


def _time(name: str, seconds: float, promise: str, *tests: str) -> Item:
    return Item(name, promise, tests, "time", seconds)


def _plain(name: str, seconds: float, promise: str, *tests: str, only: str = "") -> Item:
    return Item(name, promise, tests, "plain", seconds, only=only)


_LOAD: Final = "tests/campaign/test_load.py"
_READING: Final = "tests/faults/test_reading.py"
_MANY: Final = f"{_LOAD}::test_many_sessions_are_indexed_and_searched"
_LARGE: Final = f"{_LOAD}::test_a_large_session_is_opened_and_followed_in_bounded_memory"
FUZZ: Final = "fuzz/run.py"

ITEMS: Final[tuple[Item, ...]] = (
    _size("A1", 400, "Many sessions are indexed completely.", _MANY),
    _size("A2", 300, "A large session is opened in bounded memory.", _LARGE),
    _size(
        "A3", 60, "A line of any length is skipped in bounded memory.",
        f"{_LOAD}::test_a_long_line_is_read_around_in_bounded_memory",
    ),
    _plain(
        "A4", 20, "A chain of a million records is walked without recursion.",
        "tests/session/test_replay.py::test_a_million_links_are_walked_without_recursion",
    ),
    _size("A5", 400, "The tables of the index are built at reading speed.", _MANY),
    _size("A6", 400, "The tables and the text index are built together at reading speed.", _MANY),
    _size("A7", 300, "A record appended to a large session is indexed quickly.", _LARGE),
    _size("A8", 400, "A search is fast enough for search as you type.", _MANY),
    _time(
        "A9", 600, "Memory and file handles stay bounded with 50 readers.",
        "tests/campaign/test_soak.py",
    ),
    _plain("A10", 60, "The cost per turn does not grow in a long session.", "tests/agent/test_long_sessions.py"),
    _size(
        "B1", 400, "A writer killed at any moment leaves a readable file.",
        f"{_READING}::test_a_writer_killed_at_any_moment_leaves_a_file_that_is_read",
    ),
    _size(
        "B2", 900, "A process killed at any step loses no data.",
        "tests/faults/test_replace.py", "tests/faults/test_repair.py",
        "tests/faults/test_relocate.py", "tests/faults/test_archive.py",
    ),
    _size(
        "B3", 120, "A session truncated at any byte is read up to that byte.",
        f"{_READING}::test_a_session_cut_at_any_byte_is_read_up_to_the_cut",
    ),
    _plain(
        "B4", 20, "Zero bytes, a missing newline and a splice affect only the damaged records.",
        f"{_READING}::test_zero_bytes_before_any_record_cost_no_record",
        f"{_READING}::test_a_missing_newline_behind_any_record_costs_no_record",
        f"{_READING}::test_a_splice_at_any_record_costs_that_record_alone",
    ),
    _size(
        "B5", 600, "A full disk or an I/O error at any step loses no data.",
        "tests/faults/test_replace.py", "tests/faults/test_archive.py",
        "tests/faults/test_repair.py", "tests/faults/test_relocate.py",
    ),
    _size(
        "B6", 300, "Concurrent writers neither corrupt nor lose records.", "tests/campaign/test_writers.py"
    ),
    _plain(
        "B7", 30, "Any schedule of writing and indexing gives the same index as reading once.",
        "tests/property/test_index.py",
    ),
    _plain("B8", 30, "File changes are detected even if the system reports none.", "tests/store/test_watcher.py"),
    _plain(
        "B9", 30, "Clocks and file times do not affect results.",
        "tests/check/test_rules_time.py", "tests/index/test_trouble.py",
    ),
    _size(
        "B10", 600, "An interrupted or damaged index is repaired or rebuilt.",
        "tests/faults/test_sync.py", "tests/index/test_trouble.py",
    ),
    _size(
        "B11", 600, "Acknowledged and synced data survives a power loss.",
        "tests/faults/test_power_loss.py", STENO_POWER_LOSS=50_000,
    ),
    _size(
        "B12", 400, "A session can continue after an answer truncated at any byte.",
        "tests/agent/test_stream_interruption.py", "tests/whole/test_turns.py",
    ),
    _size(
        "B13", 400, "A session can continue after a kill in any state of a turn.",
        "tests/faults/test_console.py", "tests/faults/test_talk.py", "tests/whole/test_calls.py",
    ),
    _time(
        "C1", 1800, "Byte mutants are read, checked and repaired.",
        "tests/campaign/test_mutants.py::test_byte_mutants_are_survived",
    ),
    _time(
        "C2", 1800, "Structural mutants are read, checked and repaired.",
        "tests/campaign/test_mutants.py::test_structural_mutants_are_survived",
    ),
    _size(
        "C3", 1800, "Properties hold for generated examples.",
        "tests", STENO_EXAMPLES=5_000,
    ),
    _time("C4", 3600, "Coverage-guided fuzzing of six targets finds nothing.", FUZZ),
    _plain(
        "C5", 60, "Each file of a table of malformed files has its finding; none stops reading.",
        "tests/format/test_lines.py", "tests/format/test_records.py", "tests/cli/test_error_messages.py",
        "tests/store/test_discovery.py",
    ),
    _plain("C6", 30, "Depth and number of values are bounded.", "tests/format/test_bounds.py"),
    _size(
        "C7", 600, "Any query returns hits or a one-line error.", "tests/index/test_search_nasty.py",
        STENO_QUERIES=100_000,
    ),
    _size(
        "D1", 900, "No session text runs or loads anything in a page.",
        "tests/security/test_xss.py", "tests/security/test_export_xss.py",
    ),
    _plain(
        "D2", 60, "Every route requires authentication, for every combination of headers.",
        "tests/security/test_matrix.py", "tests/security/test_wire.py",
    ),
    _plain("D3", 30, "DNS rebinding gets no data.", "tests/security/test_rebinding.py"),
    _size(
        "D4", 200, "Path traversal and symlink races are prevented.",
        "tests/security/test_traversal.py", "tests/agent/test_swapped_files.py",
    ),
    _plain("D5", 30, "No session text controls a terminal.", "tests/sanitize/test_terminal.py"),
    _size(
        "D6", 900, "No command has an unapproved effect.",
        "tests/security/permissions/test_permissions.py", "tests/permissions/test_generated.py",
        "tests/permissions/shell/test_option_effects.py", "tests/permissions/test_known_holes.py", "tests/permissions/test_holes.py",
    ),
    _plain("D7", 30, "No path escapes its directory.", "tests/permissions/test_paths.py"),
    _plain(
        "D8", 60, "A hostile project has no effect before it is trusted.",
        "tests/agent/test_known_vulnerabilities.py", "tests/permissions/test_project_trust.py",
    ),
    _size(
        "D9", 600, "The sandbox restricts programs.",
        "tests/permissions/sandbox", "tests/agent/test_confined_commands.py", "tests/permissions/test_command_wrapper.py",
        "tests/agent/test_command_sandbox.py",
    ),
    _plain(
        "D10", 60, "The API key is sent only to its host and never stored.",
        "tests/llm/test_endpoint.py", "tests/cli/commands/test_chat.py", "tests/agent/test_known_vulnerabilities.py",
        only="key or canary or endpoint or secret",
    ),
    _plain(
        "D11", 60, "Secrets are masked in exports.",
        "tests/sanitize/test_secret_masker.py", "tests/sanitize/test_secret_cases.py",
    ),
    _plain("D12", 5, "CSV cells are never formulas.", "tests/sanitize/test_csv.py"),
    _plain(
        "D13", 30, "steno's files are private with any umask.",
        "tests/store/test_state_files.py", "tests/store/test_archive.py", "tests/store/test_append.py",
        only="umask or private or owner or mode or permission or own",
    ),
    _plain("D14", 60, "Reading changes nothing.", "tests/campaign/test_read_only.py"),
    _plain(
        "D15", 5, "Installed packages are declared and pinned.",
        "tests/campaign/test_supply.py", "tests/docs/test_habits.py",
    ),
)  # fmt: skip
