"""Whatever happens to the files between two syncs, the index is as if it had been made at once."""

import os
import tempfile
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule, run_state_machine_as_test
from tests.builders.stories import stories
from tests.index.dump import dump

from steno.format.encode import encode_line
from steno.index.database import IndexLocation
from steno.index.sync.updater import sync

LINES = [encode_line(record) for story in stories() for record in story.records()]
LONELY = b'{"type":"user","uuid":"u","cwd":"/\\udc00","message":{"role":"user","content":"\\ud800 a"}}\n'
NUMBERS = b'{"type":"user","uuid":7,"timestamp":1700000000000,"message":{"content":[3,{"type":9}]}}\n'
DAMAGE = [b"\n", b"\0\0\0\n", b'{"type":"user"', b"}{", b'"\xff\xfe', LONELY, NUMBERS, b"[1]\n"]
numbers = st.integers(0, len(LINES) - 1)
some_lines = st.lists(numbers, min_size=1, max_size=6).map(lambda chosen: b"".join(LINES[number] for number in chosen))
some_bytes = some_lines | st.sampled_from(DAMAGE)


class Schedule(RuleBasedStateMachine):
    """Sessions that are written, cut, exchanged, moved and deleted, with syncs in between."""

    files = Bundle("files")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name) / "projects"
        self.home = IndexLocation(str(Path(self.folder.name) / "index"), (str(self.root),))
        self.root.mkdir()
        self.clock = count(1_700_000_000)
        self.names = count()

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        sync(self.home)
        fresh = IndexLocation(self.home.folder + "-fresh", self.home.roots)
        sync(fresh)
        now, then = dump(self.home), dump(fresh)
        if "days" not in now:
            # Files that are gone count on, so the sums are not those of the files that are there.
            then.pop("days")
            now["usage"] = [row[:-1] for row in now["usage"]]
            then["usage"] = [row[:-1] for row in then["usage"]]
        assert now == then
        self.folder.cleanup()

    def _touch(self, path: Path) -> None:
        # The clock of a file system may stand still for a few milliseconds; here it never does.
        when = next(self.clock)
        os.utime(path, (when, when))

    @rule(target=files, data=some_bytes, agent=st.sampled_from(["", "agent-"]))
    def appear(self, data: bytes, agent: str) -> Path:
        number = next(self.names)
        name = f"{agent}{number:08x}" if agent else f"00000000-0000-4000-8000-{number:012}"
        path = self.root / f"-home-{number % 2}" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        self._touch(path)
        return path

    @rule(path=files, data=some_bytes)
    def append(self, path: Path, data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data)
        self._touch(path)

    @rule(path=files, part=st.floats(0, 1))
    def shorten(self, path: Path, part: float) -> None:
        os.truncate(path, int(path.stat().st_size * part))
        self._touch(path)

    @rule(path=files, data=some_bytes)
    def replace(self, path: Path, data: bytes) -> None:
        other = path.with_suffix(".new")
        other.write_bytes(data)
        self._touch(other)
        other.rename(path)

    @rule(path=files, data=some_bytes)
    def rewrite(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        self._touch(path)

    @rule(target=files, path=consumes(files))
    def move(self, path: Path) -> Path:
        number = next(self.names)
        other = self.root / "-home-moved" / f"00000000-0000-4000-8000-{number:012}.jsonl"
        other.parent.mkdir(exist_ok=True)
        return path.rename(other)

    @rule(path=consumes(files))
    def delete(self, path: Path) -> None:
        path.unlink()

    @rule()
    def sync(self) -> None:
        sync(self.home)


def test_any_schedule_ends_as_if_all_was_read_at_once() -> None:
    run_state_machine_as_test(
        Schedule,
        settings=settings(max_examples=25, stateful_step_count=14, suppress_health_check=[HealthCheck.too_slow]),
    )
