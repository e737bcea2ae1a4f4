"""Record the demo sessions: `python -m tools.make_demo [--check]`.

Builds the sessions with the test builders and writes `src/steno/demo/recording.zip`. The output is deterministic.
"""

import sys
import zipfile
from typing import Final

import msgspec
from tests.builders.builder import Session
from tests.builders.stories import common, stories

from steno.demo.recording import INDEX, RECORDING, Recording, read_recording

_DATE: Final = (2026, 11, 14, 0, 0, 0)
_PRIVATE: Final = 0o600 << 16


def record() -> Recording:
    """Return the demo as created by the current builders."""
    made = stories()
    files: dict[str, tuple[bytes, int]] = {}
    for session in made:
        files |= {name: (data, session.ended) for name, data in session.files().items()}
    last = max(session.ended for session in made)
    files |= {name: (data, last) for name, data in common(made).items()}
    return Recording(
        projects=len({session.folder for session in made}),
        sessions=len(made),
        agents=sum(_agents(session) for session in made),
        files=files,
    )


def _agents(session: Session) -> int:
    return len(session.transcripts)


def write(recording: Recording) -> None:
    """Write the recording: sorted entries with a fixed date, so that equal files give equal bytes."""
    times = {name: ms for name, (_, ms) in sorted(recording.files.items())}
    index = {"projects": recording.projects, "sessions": recording.sessions, "agents": recording.agents, "times": times}
    with zipfile.ZipFile(RECORDING, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(_entry(INDEX), msgspec.json.format(msgspec.json.encode(index)))
        for name in times:
            archive.writestr(_entry(name), recording.files[name][0])


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _PRIVATE
    return entry


def main() -> int:
    """Write the recording, or check whether it is up to date."""
    recording = record()
    if "--check" in sys.argv[1:]:
        if read_recording() == recording:
            return 0
        print(f"{RECORDING.name} is out of date: run `python -m tools.make_demo`", file=sys.stderr)
        return 1
    write(recording)
    return 0


if __name__ == "__main__":
    sys.exit(main())
