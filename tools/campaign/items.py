"""The items of the campaign: each promise, the tests that try it, and what they cost.

The ids are those of the tables: A load, B faults, C bad inputs, D security.
"""

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["size", "time", "plain"]


@dataclass(frozen=True, slots=True)
class Item:
    """One promise, and how it is tried.

    `seconds` is what it takes on two cores at full size. An item of the kind `size` is run at the
    size that fits its share of the time, one of the kind `time` for as long as its share is, and
    one of the kind `plain` always whole.
    """

    id: str
    promise: str
    tests: tuple[str, ...]
    kind: Kind
    seconds: float
    only: str = ""
    """An expression for pytest's `-k`."""
    environment: tuple[tuple[str, int], ...] = ()
    """Variables that are given a number, by what it is at full size."""


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
    _size("A1", 400, "Many sessions are indexed, and none is missing.", _MANY),
    _size("A2", 300, "A large session is opened in bounded memory.", _LARGE),
    _size(
        "A3", 60, "A line of any length is read around in bounded memory.",
        f"{_LOAD}::test_a_long_line_is_read_around_in_bounded_memory",
    ),
    _plain(
        "A4", 20, "A chain of a million records is walked without recursion.",
        "tests/session/test_replay.py::test_a_million_links_are_walked_without_recursion",
    ),
    _size("A5", 400, "The index of tables is made at the speed of reading.", _MANY),
    _size("A6", 400, "The index of text keeps up.", _MANY),
    _size("A7", 300, "One line more in a large session is soon in the index.", _LARGE),
    _size("A8", 400, "A search is answered while one types.", _MANY),
    _time(
        "A9", 600, "Under 50 readers memory and file handles stay bounded.",
        "tests/campaign/test_soak.py",
    ),
    _plain("A10", 60, "A long session costs no more per turn.", "tests/agent/test_long_sessions.py"),
    _size(
        "B1", 400, "A writer killed at any moment leaves a file that is read.",
        f"{_READING}::test_a_writer_killed_at_any_moment_leaves_a_file_that_is_read",
    ),
    _size(
        "B2", 900, "Killed at any step, nothing is lost.",
        "tests/faults/test_replace.py", "tests/faults/test_repair.py",
        "tests/faults/test_relocate.py", "tests/faults/test_archive.py",
    ),
    _size(
        "B3", 120, "A session cut at any byte is read up to the cut.",
        f"{_READING}::test_a_session_cut_at_any_byte_is_read_up_to_the_cut",
    ),
    _plain(
        "B4", 20, "Zero bytes, a missing newline and a splice cost only what they hit.",
        f"{_READING}::test_zero_bytes_before_any_record_cost_no_record",
        f"{_READING}::test_a_missing_newline_behind_any_record_costs_no_record",
        f"{_READING}::test_a_splice_at_any_record_costs_that_record_alone",
    ),
    _size(
        "B5", 600, "Any step may fail with a full disk or an I/O error.",
        "tests/faults/test_replace.py", "tests/faults/test_archive.py",
        "tests/faults/test_repair.py", "tests/faults/test_relocate.py",
    ),
    _size(
        "B6", 300, "Writers side by side tear and lose nothing.", "tests/campaign/test_writers.py"
    ),
    _plain(
        "B7", 30, "Any schedule of writing and indexing ends as if all was read at once.",
        "tests/property/test_index.py",
    ),
    _plain("B8", 30, "What changes is seen, whatever the system misses.", "tests/store/test_watcher.py"),
    _plain(
        "B9", 30, "Clocks and times of files decide nothing.",
        "tests/check/test_rules_time.py", "tests/index/test_trouble.py",
    ),
    _size(
        "B10", 600, "An index that is killed or damaged is made good or made anew.",
        "tests/faults/test_sync.py", "tests/index/test_trouble.py",
    ),
    _size(
        "B11", 600, "A power loss keeps what was acknowledged and synced.",
        "tests/faults/test_power_loss.py", STENO_POWER_LOSS=50_000,
    ),
    _size(
        "B12", 400, "An answer cut at any byte leaves a session that goes on.",
        "tests/agent/test_stream_interruption.py", "tests/whole/test_turns.py",
    ),
    _size(
        "B13", 400, "Killed in any state of a turn, a session goes on.",
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
        "C5", 60, "A table of nasty files: each has its finding, none stops the reading.",
        "tests/format/test_lines.py", "tests/format/test_records.py", "tests/cli/test_error_messages.py",
        "tests/store/test_discovery.py",
    ),
    _plain("C6", 30, "Depth and number of values are bounded.", "tests/format/test_bounds.py"),
    _size(
        "C7", 600, "Any query gives hits or one line.", "tests/index/test_search_nasty.py",
        STENO_QUERIES=100_000,
    ),
    _size(
        "D1", 900, "No text of a session runs or loads anything in a page.",
        "tests/security/test_xss.py", "tests/security/test_export_xss.py",
    ),
    _plain(
        "D2", 60, "Every route is behind the gate, for every combination of headers.",
        "tests/security/test_matrix.py", "tests/security/test_wire.py",
    ),
    _plain("D3", 30, "DNS rebinding gets nothing.", "tests/security/test_rebinding.py"),
    _size(
        "D4", 200, "No path leads out, and no race with a link is won.",
        "tests/security/test_traversal.py", "tests/agent/test_swapped_files.py",
    ),
    _plain("D5", 30, "Nothing acts on a terminal.", "tests/sanitize/test_terminal.py"),
    _size(
        "D6", 900, "No command has an effect that nobody approved.",
        "tests/security/permissions/test_permissions.py", "tests/permissions/test_generated.py",
        "tests/permissions/shell/test_option_effects.py", "tests/permissions/test_known_holes.py", "tests/permissions/test_holes.py",
    ),
    _plain("D7", 30, "No path escapes its folder.", "tests/permissions/test_paths.py"),
    _plain(
        "D8", 60, "A hostile project has no effect before it is trusted.",
        "tests/agent/test_known_vulnerabilities.py", "tests/permissions/test_project_trust.py",
    ),
    _size(
        "D9", 600, "Confinement and the sandbox keep programs in.",
        "tests/permissions/sandbox", "tests/agent/test_confined_commands.py", "tests/permissions/test_command_wrapper.py",
        "tests/agent/test_command_sandbox.py",
    ),
    _plain(
        "D10", 60, "The key is sent to its host alone, and kept nowhere.",
        "tests/llm/test_endpoint.py", "tests/cli/commands/test_chat.py", "tests/agent/test_known_vulnerabilities.py",
        only="key or canary or endpoint or secret",
    ),
    _plain(
        "D11", 60, "Secrets are masked in what leaves.",
        "tests/sanitize/test_secret_masker.py", "tests/sanitize/test_secret_cases.py",
    ),
    _plain("D12", 5, "No cell is a formula.", "tests/sanitize/test_csv.py"),
    _plain(
        "D13", 30, "Files of steno's own are private, whatever the umask is.",
        "tests/store/test_state_files.py", "tests/store/test_archive.py", "tests/store/test_append.py",
        only="umask or private or owner or mode or permission or own",
    ),
    _plain("D14", 60, "Reading changes nothing.", "tests/campaign/test_read_only.py"),
    _plain(
        "D15", 5, "What is installed is declared and pinned.",
        "tests/campaign/test_supply.py", "tests/docs/test_habits.py",
    ),
)  # fmt: skip
