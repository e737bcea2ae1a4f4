"""Session folders in which every text wants to be something else.

`hostile_root` writes two kinds. Thin sessions are small, one for each payload, and all their texts
are that payload and nothing else. Wide ones have everything a client can write; their texts hold
several payloads, each with another one first.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.builders import Session, image, raw, session, thinking, tool
from tests.builders.everything import everything
from tests.security.payloads import PAYLOADS, TRICKS

__all__ = ["hostile_root"]

_BUNDLE: Final = 8
_ALL: Final = (*PAYLOADS, *TRICKS)
_KEPT: Final = frozenset(
    {
        *("uuid", "parentUuid", "logicalParentUuid", "sessionId", "timestamp", "leafUuid"),
        *("messageId", "tool_use_id", "toolUseID", "parentToolUseID", "sourceToolAssistantUUID"),
        *("requestId", "promptId", "signature", "agentId", "id", "data"),
    }
)
"""What ties records together: without it there would be no session to show."""
_FORM: Final = frozenset(
    {
        *("type", "subtype", "operation", "role", "version", "stop_reason", "userType", "level"),
        *("entrypoint", "media_type", "status", "hookEvent", "permissionMode", "mode", "origin"),
        *("name", "sourceToolUseID", "service_tier", "hookName", "isSidechain", "caller"),
    }
)
"""What says how something is shown. It is spared in some sessions only."""
_NAME: Final = 60


def hostile_root(root: Path) -> Path:
    """Write the folder."""
    for number, payload in enumerate(_ALL):
        _write(root, _thin(number), _each(lambda _, payload=payload: payload, _KEPT | _FORM), payload)
    bundles = itertools.count()

    def several(_: str) -> str:
        start = next(bundles) * (_BUNDLE - 1)
        return "\n".join(_ALL[(start + place) % len(_ALL)] for place in range(_BUNDLE))

    spared = (_KEPT | _FORM, _KEPT | _FORM - {"name", "status", "level"}, _KEPT)
    for version in ("2.1.325", "2.0.76"):
        for number, made in enumerate(everything(version)):
            _write(root, made, _each(several, spared[number % len(spared)]), "")
    _odd_names(root)
    return root


def _thin(number: int) -> Session:
    made = session(seed=f"thin{number}", full=number % 5 == 0)
    made.user("Prompt").assistant(
        thinking("Thought"),
        "Answer",
        tool("Bash", command="Command", description="What"),
        tool("Read", file_path="Path"),
        tool("Edit", file_path="Path", old_string="Old", new_string="New"),
        tool("WebFetch", url="Address", prompt="Ask"),
        tool("mcp__server__do", some="Thing", other={"deep": ["List"]}),
    )
    made.results("Output", "Read", "Edited", "Fetched", "Done")
    made.user([image(b"<script>alert(1)</script>"), raw("novel", text="Unknown")])
    return made.assistant("Seen").rename("Title").done()


def _each(make: Callable[[str], str], spared: frozenset[str]) -> Callable[[Any], Any]:
    """Return what puts another text in place of each text of a value."""

    def change(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: change(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [change(each, key) for each in value]
        return make(value) if isinstance(value, str) and key not in spared else value

    return change


def _write(root: Path, made: Session, change: Callable[[Any], Any], name: str) -> None:
    folder = "".join(letter for letter in name if letter not in "/\0\\")[:_NAME]
    for place, data in made.files().items():
        parts = place.split("/")
        if folder and parts[0] == "projects":
            parts[1] = folder
        path = root.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        if place.endswith(".jsonl"):
            path.write_bytes(b"".join(_lines(data, change)))
        else:
            path.write_bytes(data)


def _lines(data: bytes, change: Callable[[Any], Any]) -> Iterator[bytes]:
    for number, line in enumerate(data.splitlines()):
        changed = change(msgspec.json.decode(line))
        if number % 7 == 3:
            changed[change("x")] = change({"x": ["y", {"z": "t"}]})
        yield msgspec.json.encode(changed) + b"\n"
    unknown = {"type": change("x"), "sessionId": "s", "content": change("y"), change("k"): 1}
    yield msgspec.json.encode(unknown) + b"\n"
    yield f"{change('not json')}\n".encode("utf-8", "replace").replace(b"\n", b" ") + b"\n"


def _odd_names(root: Path) -> None:
    """Write sessions, and sub-agents, whose files have names to break out of."""
    for number, payload in enumerate(_ALL[::9]):
        name = payload.replace("/", "").replace("\0", "").replace("\n", " ")[:_NAME]
        made = session(seed=f"odd{number}").turn("Hello", "Yes")
        folder = root / "projects" / f"odd{number}"
        agents = folder / made.session_id / "subagents"
        agents.mkdir(parents=True, exist_ok=True)
        with_agent = session(seed=f"agent{number}").turn("Look", "Seen").bytes()
        try:
            (folder / f"{name}.jsonl").write_bytes(made.bytes())
            (agents / f"agent-{name}.jsonl").write_bytes(with_agent)
        except OSError:
            # Not every system takes every name.
            continue
        (folder / f"{made.session_id}.jsonl").write_bytes(made.bytes())
    os.utime(root)
