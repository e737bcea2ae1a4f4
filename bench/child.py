"""The measured programs, one per process: `python bench/child.py NAME ARGUMENTS…`."""

import os
import resource
import sys
from collections.abc import Callable, Iterator

import msgspec


class Text(msgspec.Struct, tag="text", tag_field="type"):
    """A text block."""

    text: str = ""


class Thinking(msgspec.Struct, tag="thinking", tag_field="type"):
    """A thinking block."""

    thinking: str = ""


class ToolUse(msgspec.Struct, tag="tool_use", tag_field="type"):
    """A tool call."""

    id: str = ""
    name: str = ""


class ToolResult(msgspec.Struct, tag="tool_result", tag_field="type"):
    """A tool result."""

    tool_use_id: str = ""


class Image(msgspec.Struct, tag="image", tag_field="type"):
    """An image block."""


class Message(msgspec.Struct):
    """The fields of a message that a minimal loop reads."""

    id: str | None = None
    content: str | list[Text | Thinking | ToolUse | ToolResult | Image] | None = None


class Envelope(msgspec.Struct, rename="camel"):
    """The fields of a record that a minimal loop reads."""

    type: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    is_sidechain: bool | None = None
    message: Message | None = None


def transcripts(folder: str) -> Iterator[str]:
    """Yield the session files below a directory."""
    for place, _, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in names if name.endswith(".jsonl"))


def bare(folder: str) -> str:
    """Read envelopes and text with only a typed decoder and a loop, as the baseline."""
    decode = msgspec.json.Decoder(Envelope).decode
    records = words = 0
    for path in transcripts(folder):
        with open(path, "rb") as file:
            for line in file:
                try:
                    record = decode(line)
                except msgspec.MsgspecError:
                    continue
                records += 1
                content = record.message.content if record.message else None
                if isinstance(content, str):
                    words += len(content)
                elif content:
                    words += sum(len(block.text) for block in content if isinstance(block, Text))
    return f"{records} records, {words} characters"


def read(folder: str) -> str:
    """Read envelopes and text with steno."""
    from steno.format.lines import read_records
    from steno.store.file_source import FileSource

    records = words = 0
    for path in transcripts(folder):
        with FileSource(path) as source:
            for record in read_records(source):
                records += 1
                _ = (record.uuid, record.parent_uuid, record.timestamp)
                if record.role:
                    words += len(record.text)
    return f"{records} records, {words} characters"


def load(path: str) -> str:
    """Open one session completely: nodes, leaf, conversation."""
    from steno.session.session import Session
    from steno.session.transcript import load as load_transcript
    from steno.store.file_source import FileSource

    session = Session(load_transcript(FileSource(path)))
    return f"{len(session.transcript.nodes)} records, {len(session.conversation())} in conversation"


def check(path: str) -> str:
    """Check one file, or a directory as `steno check --json` does."""
    from steno.check.file_reports import check_files, find_all_files
    from steno.store.session_lookup import find

    found = find_all_files(path, []) if os.path.isdir(path) else [find(path)]
    records = findings = 0
    for report in check_files(found, problems=[]):
        records += sum(file.records for file in report.files)
        findings += report.number("error", "warning", "info")
    return f"{records} records, {findings} findings"


PROGRAMS: dict[str, Callable[[str], str]] = {"bare": bare, "read": read, "load": load, "check": check}


def main() -> None:
    """Run one program; print its result, CPU seconds and peak memory in MB."""
    name, argument = sys.argv[1:]
    found = PROGRAMS[name](argument)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{found}\t{used.ru_utime + used.ru_stime:.3f}\t{used.ru_maxrss / 1024:.0f}")


if __name__ == "__main__":
    main()
