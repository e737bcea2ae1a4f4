"""The JSON examples of the protocol schema (001), each in the least session file that is complete."""

from tests.published.client_form import ClientForm, full_id
from tests.published.example import Example, of_client, read_result
from tests.published.forms import Json, call, lines

SPEC_READ = "toolu_01DjYdxoudKLXxDoF7GwQWwB"
WEB_SEARCH = "toolu_01websearch"
MTOOLS = "/Users/ada/work/mtools"
PLAN = f"{MTOOLS}/tickets/workflows/implement_spec.md"


def full_conversation() -> Example:
    """The complete session of section 11."""
    first: Json = {
        "type": "file-history-snapshot",
        "messageId": "aaa-111",
        "snapshot": {"messageId": "aaa-111", "trackedFileBackups": {}, "timestamp": "2026-01-03T10:00:00.000Z"},
        "isSnapshotUpdate": False,
    }
    readme = "# My Project\n\nA CLI tool for managing widgets."
    path = "/home/user/project/README.md"
    records: list[Json] = [
        first,
        {
            **_line("user", None, "aaa-111", "00.000"),
            "message": {"role": "user", "content": "Read the README and tell me what this project does"},
        },
        {
            **_line("assistant", "aaa-111", "bbb-222", "02.000"),
            "requestId": "req_001",
            "message": _response("msg_001", call("toolu_001", "Read", file_path=path), "tool_use", 500, 50),
        },
        {
            **_line("user", "bbb-222", "ccc-333", "03.000"),
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_001", "content": readme}],
            },
            "toolUseResult": {
                "type": "text",
                "file": {"filePath": path, "content": readme, "numLines": 3, "startLine": 1, "totalLines": 3},
            },
        },
        {
            **_line("assistant", "ccc-333", "ddd-444", "05.000"),
            "requestId": "req_002",
            "message": _response(
                "msg_002",
                {"type": "text", "text": "This project is a CLI tool for managing widgets."},
                "end_turn",
                600,
                20,
            ),
        },
        {**_line("system", "ddd-444", "eee-555", "05.500"), "subtype": "turn_duration", "durationMs": 5500},
    ]
    prompt = "Read the README and tell me what this project does"
    said = (prompt, "Read", "# My Project", "This project is a CLI tool for managing widgets.")
    return Example("001", lines(records), (prompt,), said, project="/home/user/project")


def _line(kind: str, parent: str | None, uuid: str, seconds: str) -> Json:
    own = {"isMeta": False} if kind != "assistant" else {}
    return {
        "type": kind,
        "parentUuid": parent,
        "sessionId": "sess-001",
        "uuid": uuid,
        "timestamp": f"2026-01-03T10:00:{seconds}Z",
        "isSidechain": False,
        **own,
        "userType": "external",
        "cwd": "/home/user/project",
        "version": "2.1.29",
        "gitBranch": "main",
    }


def _response(name: str, block: Json, stop: str, read: int, written: int) -> Json:
    return {
        "model": "claude-opus-4-5-20251101",
        "id": name,
        "type": "message",
        "role": "assistant",
        "content": [block],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written},
    }


def skill_and_response() -> Example:
    """A prompt, the skill it expands to, and a response of three lines (4.1, 4.2, 10)."""
    made = ClientForm()
    prompt = made.user(
        "implement the backtest engine", uuid=full_id("c01b7ace"), isMeta=False, permissionMode="default"
    )
    made.snapshot(prompt)
    workflow = "# Spec Implementation Workflow\n\nExecute the **Spec Implementation Workflow**."
    made.user([{"type": "text", "text": workflow}], isMeta=True)
    made.answer(
        {"type": "thinking", "thinking": "The user wants me to continue.", "signature": "EpMCCkYICxgCKkDguxdb"},
        "I have the spec ticket. Let me proceed with implementation.",
        call(SPEC_READ, "Read", file_path=PLAN),
    )
    text = "     1\u2192# Spec Implementation Workflow\n     2\u2192\n"
    made.result(SPEC_READ, text, read_result(PLAN, text), isMeta=False)
    made.answer("The engine is implemented.")
    said = (
        "implement the backtest engine",
        "Execute the **Spec Implementation Workflow**",
        "I have the spec ticket.",
        SPEC_READ,
        "1\u2192# Spec",
        "The engine is implemented.",
    )
    return of_client("001", made, ("implement the backtest engine",), said)


def parallel_results() -> Example:
    """The graph of section 5: results of two calls that follow each other."""
    made = ClientForm()
    made.user("implement-spec", permissionMode="default")
    made.user([{"type": "text", "text": "The expanded skill."}], isMeta=True)
    made.answer(call("toolu_read", "Read", file_path=PLAN), call("toolu_glob", "Glob", pattern="**/*.cpp"))
    made.result("toolu_read", "The plan's text.", read_result(PLAN, "The plan's text."))
    names = ["/path/to/match1.cpp", "/path/to/match2.cpp"]
    found = {"filenames": names, "durationMs": 128, "numFiles": 2, "truncated": False}
    made.result("toolu_glob", "\n".join(names), found)
    made.answer("Both are read.")
    said = ("implement-spec", "expanded skill", "toolu_read", "toolu_glob", "The plan's text.",
            "match2.cpp", "Both are read.")  # fmt: skip
    return of_client("001", made, ("implement-spec",), said)


def tool_metadata() -> Example:
    """Each tool's result with what the client notes beside it (7.3)."""
    made = ClientForm()
    made.user("Use each tool once")
    for number, (tool, given, detail) in enumerate(_TOOL_RESULTS):
        made.answer(call(f"toolu_{number}", tool, **given))
        made.result(f"toolu_{number}", f"What {tool} returned.", detail)
    made.answer("Each is used.")
    said = [f"What {tool} returned." for tool, _, _ in _TOOL_RESULTS]
    return of_client("001", made, ("Use each tool once",), ("Use each tool once", *said, "Each is used."))


_STATUS = "| **Status** | Decided |"
_STATUS_NEW = "| **Status** | Implemented |"
_TODOS = [
    {
        "content": "Phase 1: Setup & Initialization",
        "status": "in_progress",
        "activeForm": "Setting up and initializing workflow",
    },
    {
        "content": "Phase 2: Input Parsing & Validation",
        "status": "pending",
        "activeForm": "Parsing and validating inputs",
    },
]
_TOOL_RESULTS: tuple[tuple[str, Json, Json], ...] = (
    (
        "Read",
        {"file_path": "/path/to/file.md"},
        {
            "type": "text",
            "file": {
                "filePath": "/path/to/file.md",
                "content": _STATUS,
                "numLines": 473,
                "startLine": 1,
                "totalLines": 473,
            },
        },
    ),
    (
        "Glob",
        {"pattern": "**/*.cpp"},
        {
            "filenames": ["/path/to/match1.cpp", "/path/to/match2.cpp"],
            "durationMs": 128,
            "numFiles": 2,
            "truncated": False,
        },
    ),
    (
        "Bash",
        {"command": "git status --short", "description": "Show what changed"},
        {
            "stdout": "M apps/collector/main.cpp\nM include/mtools/book.h",
            "stderr": "",
            "interrupted": False,
            "isImage": False,
        },
    ),
    (
        "Write",
        {"file_path": "/path/to/new-file.md", "content": "All of it"},
        {
            "type": "create",
            "filePath": "/path/to/new-file.md",
            "content": "All of it",
            "structuredPatch": [],
            "originalFile": None,
        },
    ),
    (
        "Edit",
        {"file_path": "/path/to/file.md", "old_string": _STATUS, "new_string": _STATUS_NEW},
        {
            "filePath": "/path/to/file.md",
            "oldString": _STATUS,
            "newString": _STATUS_NEW,
            "originalFile": f"# Spec\n\n|-------|-------|\n{_STATUS}\n",
            "structuredPatch": [
                {
                    "oldStart": 4,
                    "oldLines": 7,
                    "newStart": 4,
                    "newLines": 7,
                    "lines": [" |-------|-------|", f"-{_STATUS}", f"+{_STATUS_NEW}", " | **Created** | 2026-01-03 |"],
                }
            ],
            "userModified": False,
            "replaceAll": False,
        },
    ),
    ("TodoWrite", {"todos": _TODOS}, {"oldTodos": [], "newTodos": _TODOS}),
    (
        "Grep",
        {"pattern": "book", "path": "include", "glob": "*.h", "output_mode": "files_with_matches"},
        {"mode": "files_with_matches", "filenames": ["include/mtools/book.h"], "numFiles": 1},
    ),
    (
        "WebFetch",
        {"url": "https://example.org/spec", "prompt": "What is new?"},
        {
            "bytes": 12,
            "code": 200,
            "codeText": "OK",
            "result": "Nothing is.",
            "durationMs": 12,
            "url": "https://example.org/spec",
        },
    ),
    (
        "WebSearch",
        {"query": "Claude Code hooks feature 2026"},
        {"query": "Claude Code hooks feature 2026", "results": [], "durationSeconds": 1.5},
    ),
)


def sub_agent() -> Example:
    """A session and its sub-agent's file beside it (section 8)."""
    made = ClientForm()
    prompt = "Implement the following feature: count the errors."
    made.user("Reduce the errors")
    asked = call("toolu_01task", "Task", description="Count", subagent_type="cpp-developer",
                 prompt=prompt)  # fmt: skip
    made.answer(asked)
    found = "There are still 114 errors. Given the extensive scope, I stop here."
    detail: Json = {
        "status": "completed",
        "prompt": prompt,
        "agentId": "ab97f57",
        "content": [{"type": "text", "text": found}],
        "totalDurationMs": 785728,
        "totalTokens": 126186,
        "totalToolUseCount": 1,
        "usage": {
            "input_tokens": 1,
            "cache_creation_input_tokens": 191,
            "cache_read_input_tokens": 125212,
            "output_tokens": 782,
            "service_tier": "standard",
        },
    }
    made.result("toolu_01task", [{"type": "text", "text": found}], detail)
    made.answer("114 are left.")
    inner = ClientForm(agent="ab97f57")
    inner.user(prompt)
    inner.answer(call("toolu_01inner", "Read", file_path="/path/to/errors.log"))
    inner.result("toolu_01inner", "114 lines", read_result("/path/to/errors.log", "114 lines"))
    inner.answer(found)
    said = ("Reduce the errors", prompt, "114 errors", "114 are left.")
    beside = {"agent-ab97f57.jsonl": inner.data()}
    return of_client("001", made, ("Reduce the errors",), said, ("114 lines",), beside=beside)


def compacted() -> Example:
    """A compaction as sections 4.3.1, 4.4 and 9 have it: a title, a boundary, a new root."""
    made = ClientForm()
    made.user("Audit the code")
    (last,) = made.answer("Three faults are fixed.")
    made.put("summary", summary="Backtest engine implementation spec workflow", leafUuid=last)
    made.add(
        "system",
        parent=None,
        subtype="compact_boundary",
        logicalParentUuid=last,
        content="Conversation compacted",
        isMeta=False,
        level="info",
        compactMetadata={"trigger": "auto", "preTokens": 167503},
    )
    made.user("Go on with the audit", parent=None)
    made.answer("The audit is complete.")
    return of_client(
        "001",
        made,
        ("Audit the code", "Go on with the audit"),
        ("Go on with the audit", "The audit is complete."),
        ("Three faults are fixed.",),
        findings=("compaction.title-form",),
    )


def timing_and_commands() -> Example:
    """The two other events of section 4.3."""
    made = ClientForm()
    made.user("Build it")
    made.answer("It is built.")
    made.add("system", subtype="turn_duration", durationMs=88947, isMeta=False)
    made.add(
        "system",
        subtype="local_command",
        content="<command-name>/agents</command-name>\n"
        "<command-message>agents</command-message>\n<command-args>create</command-args>",
        level="info",
        isMeta=False,
    )
    made.user("Test it")
    made.answer("It is tested.")
    said = ("Build it", "It is built.", "Test it", "It is tested.")
    return of_client("001", made, ("Build it", "Test it"), said)


def progress_of_tools() -> Example:
    """Every kind of progress of section 4.5, and the calls that they are about."""
    made = ClientForm()
    made.user("Build the image, explore, search and wait")
    start: Json = {"hookEvent": "SessionStart", "hookName": "SessionStart:startup"}
    made.progress("", type="hook_progress", **start, command="echo hello-from-hook")
    made.answer(call("toolu_015hQa", "Bash", command="docker build ."))
    made.progress(
        "toolu_015hQa",
        type="bash_progress",
        output="Step 1/12 : FROM python:3.11-slim\n",
        fullOutput="DEPRECATED: The legacy builder is gone.\nStep 1/12 : FROM python:3.11-slim\n",
    )
    done = {"stdout": "Successfully built", "stderr": "", "interrupted": False, "isImage": False}
    made.result("toolu_015hQa", "Successfully built", done)
    asked = "Explore this codebase and report."
    made.answer(call("toolu_01exp", "Task", description="Explore", subagent_type="Explore",
                     prompt=asked))  # fmt: skip
    block = [{"type": "text", "text": asked}]
    inner = {"type": "user", "message": {"role": "user", "content": block}}
    made.progress("toolu_01exp", type="agent_progress", message=inner)
    made.result("toolu_01exp", [{"type": "text", "text": "It is explored."}])
    query = "Claude Code hooks feature 2026"
    made.answer(call(WEB_SEARCH, "WebSearch", query=query))
    made.progress(WEB_SEARCH, type="query_update", query=query)
    made.progress(WEB_SEARCH, type="search_results_received", resultCount=10, query=query)
    made.result(WEB_SEARCH, "Ten pages.")
    made.answer(call("toolu_01wait", "TaskOutput", task_id="b1"))
    made.progress(
        "toolu_01wait",
        type="waiting_for_task",
        taskDescription="Debug socat bridge from inside Docker container",
        taskType="local_bash",
    )
    made.result("toolu_01wait", "The task has ended.")
    made.answer("All is done.")
    prompt = "Build the image, explore, search and wait"
    said = (prompt, "docker build", "Successfully built", asked, "It is explored.", query,
            "Ten pages.", "The task has ended.", "All is done.")  # fmt: skip
    return of_client("001", made, (prompt,), said, ("Step 1/12", "hello-from-hook"))


def text_in_snapshot() -> Example:
    """The two snapshots of section 4.6: one tracks nothing, one holds a file's text."""
    made = ClientForm()
    prompt = made.user("Write the notes", uuid=full_id("c01b7ace"))
    made.snapshot(prompt)
    note = f"{MTOOLS}/tickets/discussions/003_backtest-engine/2026-01-03_implementation.md"
    made.answer(call("toolu_01w", "Write", file_path=note, content="New text"))
    detail: Json = {
        "type": "update",
        "filePath": note,
        "content": "New text",
        "structuredPatch": [],
        "originalFile": "Original text",
    }
    made.result("toolu_01w", "The file was updated.", detail)
    made.snapshot(prompt, {note.removeprefix(f"{MTOOLS}/"): "Original text"}, isSnapshotUpdate=True)
    made.answer("They are written.")
    said = ("Write the notes", "New text", "The file was updated.", "They are written.")
    return of_client("001", made, ("Write the notes",), said)


def queue_and_pull_request() -> Example:
    """The two records that are no part of the conversation (4.7, 4.8)."""
    made = ClientForm()
    made.queued("dequeue")
    made.user("Open a pull request")
    made.answer("It is open.")
    made.put(
        "pr-link",
        sessionId=made.session,
        prNumber=3,
        prUrl="https://github.com/ada/claude-code-hub/pull/3",
        prRepository="ada/claude-code-hub",
        timestamp=made.now(),
    )
    said = ("Open a pull request", "It is open.")
    return of_client("001", made, ("Open a pull request",), said)


PROTOCOL_EXAMPLES = (
    full_conversation,
    skill_and_response,
    parallel_results,
    tool_metadata,
    sub_agent,
    compacted,
    timing_and_commands,
    progress_of_tools,
    text_in_snapshot,
    queue_and_pull_request,
)
