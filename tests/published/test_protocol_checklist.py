"""The checklist of the protocol schema (001, section 12), held to one session of steno's own agent.

The agent reads, writes, runs commands side by side, calls a sub-agent, compacts, and is resumed.
"""

import json
import re
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.agent.headless_harness import House
from tests.notation import notation

from steno.format.paths import slug_for_path
from steno.format.source import BytesSource
from steno.llm.testserver.responders import text, thinking, tool
from steno.session.resume.replay import valid_messages
from steno.session.session import Session
from steno.session.transcript import load

Json = dict[str, Any]
SUMMARY = "They built the thing."


class Played:
    """What a session of the agent left on the disk and sent over the wire."""

    def __init__(self, folder: Path) -> None:
        house = House(folder)
        self.house = house
        house.options = msgspec.structs.replace(house.options, mode="bypassPermissions")
        house.write("a.txt", "alpha\n")
        house.write("b.txt", "beta\n")
        house.hook("SessionStart", "echo welcome")
        self._script(house)
        assert house.say("Build it", "/compact", "Finish now") == 0
        self.records = house.records()
        self.sent_before = len(house.server.requests)
        house.resume()
        assert house.say("More of it") == 0
        house.check()
        self.resumed = house.records()
        self.requests = [each.body for each in house.server.requests]
        (self.agent_path,) = house.config.rglob("agent-*.jsonl")
        self.agent = house.records(self.agent_path)

    @staticmethod
    def _script(house: House) -> None:
        one, script = str(house.project / "a.txt"), house.script
        look = [tool("Read", file_path=one), tool("Glob", pattern="*.txt")]
        # The first that fits answers.
        script.on("Summarize", SUMMARY)
        script.on("More of it", "More is done.")
        script.on("Finish now", "It is finished.")
        script.on("Count the apples", tool("Read", file_path=str(house.project / "b.txt")))
        script.then("Three apples.")
        script.on("Build it", [thinking("First I look."), text("I look."), *look])
        change = tool("Edit", file_path=one, old_string="alpha", new_string="omega")
        write = tool("Write", file_path=str(house.project / "c.txt"), content="gamma\n")
        script.then([change, write, tool("Bash", command="echo built")])
        task = tool("Task", description="Count", prompt="Count the apples", subagent_type="general-purpose")
        script.then([tool("Grep", pattern="gamma"), task])
        script.then("It is built.")

    def of(self, kind: str, subtype: str = "") -> list[Json]:
        """Return the records of a type."""
        found = [each for each in self.records if each["type"] == kind]
        return [each for each in found if not subtype or each.get("subtype") == subtype]

    @property
    def messages(self) -> list[Json]:
        return [each for each in self.records if "message" in each]

    @property
    def linked(self) -> list[Json]:
        return [each for each in self.records if "parentUuid" in each]

    def blocks(self, kind: str, records: list[Json] | None = None) -> list[Json]:
        """Return the content blocks of a type."""
        every = [each["message"]["content"] for each in records or self.messages]
        return [block for content in every if isinstance(content, list) for block in content if block["type"] == kind]

    def details(self) -> dict[str, Json]:
        """Return what stands beside each tool's result, by the tool's name."""
        names = {block["id"]: block["name"] for block in self.blocks("tool_use")}
        return {
            names[each["message"]["content"][0]["tool_use_id"]]: each["toolUseResult"]
            for each in self.of("user")
            if "toolUseResult" in each
        }


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("checklist")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("STENO_HOME", str(folder / "steno"))
        patch.setenv("CLAUDE_CONFIG_DIR", str(folder / "config"))
        return Played(folder)


def is_uuid(value: str, version: int = 4) -> bool:
    return uuid.UUID(value).version == version


def session_id(p: Played) -> bool:
    return is_uuid(p.house.path.stem) and {each["sessionId"] for each in p.linked} == {p.house.path.stem}


def place(p: Played) -> bool:
    return p.house.path.parent == p.house.config / "projects" / slug_for_path(str(p.house.project))


def project_slug(p: Played) -> bool:
    """Unlike the document, the leading dash stays, and so it is with the client."""
    return p.house.path.parent.name == re.sub("[^A-Za-z0-9]", "-", str(p.house.project))


def readable_slug(p: Played) -> bool:
    slugs = {each["slug"] for each in p.resumed if each.get("slug")}
    return len(slugs) == 1 and bool(re.fullmatch(r"[a-z]+-[a-z]+-[a-z]+", slugs.pop()))


def surroundings(p: Played) -> bool:
    names = ("cwd", "gitBranch", "version")
    return all(name in each for each in p.messages for name in names) and {each["cwd"] for each in p.messages} == {
        str(p.house.project)
    }


def one_line_each(p: Played) -> bool:
    lines = p.house.path.read_bytes().split(b"\n")
    compact = [json.loads(line) for line in lines[:-1]]
    return lines[-1] == b"" and len(compact) == len(p.resumed)


def own_uuids(p: Played) -> bool:
    uuids = [each["uuid"] for each in p.linked]
    return len(set(uuids)) == len(uuids) and all(is_uuid(each) for each in uuids)


def parents(p: Played) -> bool:
    known: set[str | None] = {None}
    for each in p.linked:
        if each["parentUuid"] not in known:
            return False
        known.add(each["uuid"])
    return p.linked[0]["parentUuid"] is None


def snapshots(p: Played) -> bool:
    kinds = [each["type"] for each in p.records]
    first = p.of("file-history-snapshot")[0]
    changed = {each["trackingPath"] for each in p.of("file-history-delta")}
    before_result = kinds.index("file-history-delta") < kinds.index("last-prompt")
    prompt = next(each for each in p.of("user"))
    return first["messageId"] == prompt["uuid"] and changed == {"a.txt", "c.txt"} and before_result


def times(p: Played) -> bool:
    stamps = [each["timestamp"] for each in p.linked]
    return stamps == sorted(stamps) and all(stamp.endswith("Z") and datetime.fromisoformat(stamp) for stamp in stamps)


def roles(p: Played) -> bool:
    sent = [message["role"] for body in p.requests for message in body["messages"]]
    return set(sent) == {"user", "assistant"} and list(p.house.server.refused) == []


def definitions(p: Played) -> bool:
    names = {each["name"] for each in p.requests[0]["tools"]}
    return {"Read", "Write", "Edit", "Bash", "Glob", "Grep"} <= names


def split(p: Played) -> bool:
    first = p.of("assistant")[0]["message"]["id"]
    lines = [each for each in p.of("assistant") if each["message"]["id"] == first]
    kinds = [each["message"]["content"][0]["type"] for each in lines]
    return kinds == ["thinking", "text", "tool_use", "tool_use"] and all(
        len(each["message"]["content"]) == 1 for each in p.of("assistant")
    )


def request_ids(p: Played) -> bool:
    by_message: dict[str, set[str]] = {}
    for each in p.of("assistant"):
        by_message.setdefault(each["message"]["id"], set()).add(each["requestId"])
    shared = [next(iter(each)) for each in by_message.values() if len(each) == 1]
    return len(shared) == len(by_message) == len(set(shared))


def stop_reasons(p: Played) -> bool:
    last = {each["message"]["id"]: each["message"]["stop_reason"] for each in p.of("assistant")}
    return list(last.values()) == ["tool_use", "tool_use", "tool_use", "end_turn", "end_turn"]


def calls(p: Played) -> bool:
    names = [block["name"] for block in p.blocks("tool_use")]
    return names == ["Read", "Glob", "Edit", "Write", "Bash", "Grep", "Task"]


def local_tools(p: Played) -> bool:
    project = p.house.project
    done = (project / "a.txt").read_text() == "omega\n" and (project / "c.txt").exists()
    said = json.dumps([block["content"] for block in p.blocks("tool_result")])
    return done and all(words in said for words in ("alpha", "a.txt", "built", "c.txt"))


def results(p: Played) -> bool:
    asked = [block["id"] for block in p.blocks("tool_use")]
    answered = [block["tool_use_id"] for block in p.blocks("tool_result", p.of("user"))]
    return sorted(asked) == sorted(answered)


def metadata(p: Played) -> bool:
    found = p.details()
    keys = {
        "Read": {"type", "file"},
        "Glob": {"filenames", "numFiles", "truncated"},
        "Edit": {"filePath", "oldString", "newString", "originalFile", "structuredPatch"},
        "Write": {"type", "filePath", "content", "structuredPatch"},
        "Bash": {"stdout", "stderr", "interrupted", "isImage"},
    }
    return all(wanted <= set(found[name]) for name, wanted in keys.items())


def parallel(p: Played) -> bool:
    first = p.house.server.requests[1].body["messages"][-1]["content"]
    return [block["type"] for block in first][:2] == ["tool_result", "tool_result"]


def agent_file(p: Played) -> bool:
    """In the session's own folder, as newer clients have it, and not beside the session."""
    name = re.fullmatch(r"agent-[0-9a-f]+\.jsonl", p.agent_path.name)
    return name is not None and p.agent_path.parent == p.house.path.with_suffix("") / "subagents"


def agent_loop(p: Played) -> bool:
    kinds = [(each["type"], each["message"]["content"]) for each in p.agent if "message" in each]
    said = [kind for kind, _ in kinds]
    return said == ["user", "assistant", "user", "assistant"] and "Three apples." in str(kinds[-1])


def agent_marks(p: Played) -> bool:
    name = p.agent_path.stem.removeprefix("agent-")
    own = [each for each in p.agent if "uuid" in each]
    return (
        all(each["isSidechain"] and each["agentId"] == name for each in own)
        and {each["sessionId"] for each in own} == {p.house.path.stem}
        and own[0]["parentUuid"] is None
    )


def agent_result(p: Played) -> bool:
    task = next(block["id"] for block in p.blocks("tool_use") if block["name"] == "Task")
    return any(
        block["tool_use_id"] == task and "Three apples." in json.dumps(block["content"])
        for block in p.blocks("tool_result")
    )


def agent_totals(p: Played) -> bool:
    found = p.details()["Task"]
    return (
        found["totalToolUseCount"] == 1
        and found["totalTokens"] > 0
        and found["totalDurationMs"] >= 0
        and found["status"] == "completed"
    )


def usage(p: Played) -> bool:
    every = [each["message"]["usage"] for each in p.of("assistant")]
    total = Session(load(BytesSource(p.house.path.read_bytes()))).usage
    return all(each["input_tokens"] > 0 for each in every) and total.output > 0


def compaction(p: Played) -> bool:
    asked = [body for body in p.requests if "Summarize" in json.dumps(body["messages"][-1])]
    later = json.dumps(p.requests[p.sent_before - 1]["messages"])
    return len(asked) == 1 and SUMMARY in later


def compaction_records(p: Played) -> bool:
    """The summary is a message under the boundary, as the client has it, and not a title."""
    (boundary,) = p.of("system", "compact_boundary")
    (summary,) = [each for each in p.of("user") if each.get("isCompactSummary")]
    return (
        boundary["compactMetadata"]["trigger"] == "manual"
        and boundary["compactMetadata"]["preTokens"] > 0
        and summary["parentUuid"] == boundary["uuid"]
        and SUMMARY in str(summary["message"]["content"])
    )


def compaction_root(p: Played) -> bool:
    (boundary,) = p.of("system", "compact_boundary")
    return boundary["parentUuid"] is None and boundary["logicalParentUuid"] in {each["uuid"] for each in p.linked}


def live_commands(p: Played) -> bool:
    """The newest client writes no such records; who watches is told, and the file is not."""
    return not p.of("progress") and any(line.get("type") for line in p.house.lines)


def live_agents(p: Played) -> bool:
    sub = [line for line in p.house.lines if line.get("parent_tool_use_id")]
    return not p.of("progress") and len(sub) >= 1


def live_hooks(p: Played) -> bool:
    """The newest client writes an attachment for a hook."""
    kinds = [each["attachment"]["type"] for each in p.of("attachment")]
    return not p.of("progress") and any(kind.startswith("hook_") for kind in kinds)


def durations(p: Played) -> bool:
    """Nobody is at a terminal here; the client writes none then, and nor does steno."""
    return not p.of("system", "turn_duration")


def read_again(p: Played) -> bool:
    texts = json.dumps(p.requests[-1]["messages"])
    return SUMMARY in texts and "It is finished." in texts and "More of it" in texts


def dag(p: Played) -> bool:
    transcript = load(BytesSource(p.house.path.read_bytes()))
    return set(transcript.by_uuid) >= {each["uuid"] for each in p.linked}


def leaf(p: Played) -> bool:
    parents = {each["uuid"]: each["parentUuid"] for each in p.resumed if "uuid" in each}
    before = {each["uuid"] for each in p.linked}
    prompt = [each for each in p.resumed if each["type"] == "user" and "message" in each][-1]
    up = prompt["parentUuid"]
    while up not in before:
        up = parents[up]
    return up == p.linked[-1]["uuid"]


def grouped(p: Played) -> bool:
    """By the id of the message, as the client does it; `requestId` groups the same lines."""
    cut = next(place for place, each in enumerate(p.records) if each.get("subtype") == "compact_boundary")
    data = b"".join(json.dumps(each).encode() + b"\n" for each in p.records[:cut])
    said = notation(valid_messages(load(BytesSource(data))))
    ids = {each["requestId"] for each in p.records[:cut] if each["type"] == "assistant"}
    return len([line for line in said if line.startswith("a:")]) == len(ids) == 4


def after_compaction(p: Played) -> bool:
    texts = json.dumps(p.requests[-1]["messages"])
    return SUMMARY in texts and "I look." not in texts


CHECKLIST: dict[str, Callable[[Played], bool]] = {
    "001.12.1.1": session_id,
    "001.12.1.2": place,
    "001.12.1.3": project_slug,
    "001.12.1.4": readable_slug,
    "001.12.1.5": surroundings,
    "001.12.2.1": one_line_each,
    "001.12.2.2": own_uuids,
    "001.12.2.3": parents,
    "001.12.2.4": snapshots,
    "001.12.2.5": times,
    "001.12.3.1": roles,
    "001.12.3.2": definitions,
    "001.12.3.3": split,
    "001.12.3.4": request_ids,
    "001.12.3.5": stop_reasons,
    "001.12.4.1": calls,
    "001.12.4.2": local_tools,
    "001.12.4.3": results,
    "001.12.4.4": metadata,
    "001.12.4.5": parallel,
    "001.12.5.1": agent_file,
    "001.12.5.2": agent_loop,
    "001.12.5.3": agent_marks,
    "001.12.5.4": agent_result,
    "001.12.5.5": agent_totals,
    "001.12.6.1": usage,
    "001.12.6.2": compaction,
    "001.12.6.3": compaction_records,
    "001.12.6.4": compaction_root,
    "001.12.7.1": live_commands,
    "001.12.7.2": live_agents,
    "001.12.7.3": live_hooks,
    "001.12.7.4": durations,
    "001.12.8.1": read_again,
    "001.12.8.2": dag,
    "001.12.8.3": leaf,
    "001.12.8.4": grouped,
    "001.12.8.5": after_compaction,
}


@pytest.mark.parametrize("item", CHECKLIST)
def test_the_agent_does_what_the_checklist_asks(played: Played, item: str) -> None:
    assert CHECKLIST[item](played)
