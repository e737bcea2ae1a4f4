"""The JSON examples of the two dialects, each in the least session file that is complete."""

from tests.published.example import Example
from tests.published.forms import Flat, Json, Nested, call


def flat_examples() -> Example:
    """The records that the document shows, in one session."""
    made = Flat()
    made.user("Hello", uuid="msg-hello", timestamp="2025-01-27T09:59:50Z")
    made.says("What shall I do?", uuid="msg-000", timestamp="2025-01-27T09:59:55Z")
    made.records[-1]["parentUuid"] = "msg-hello"
    shown: list[Json] = [
        {
            "type": "user",
            "uuid": "msg-001",
            "parentUuid": "msg-000",
            "timestamp": "2025-01-27T10:00:00Z",
            "sessionId": "session-123",
            "message": "Please help me write a Python script",
        },
        {
            "type": "user",
            "uuid": "msg-002",
            "parentUuid": "msg-001",
            "timestamp": "2025-01-27T10:00:05Z",
            "sessionId": "session-123",
            "message": "Analyze this code for potential improvements",
            "isSidechain": True,
            "userType": "external",
        },
        {
            "type": "assistant",
            "uuid": "msg-003",
            "parentUuid": "msg-002",
            "timestamp": "2025-01-27T10:00:10Z",
            "sessionId": "session-123",
            "message": "I'll help you create a Python script.",
            "subtype": "response",
        },
        {
            "type": "assistant",
            "uuid": "msg-004",
            "parentUuid": "msg-003",
            "timestamp": "2025-01-27T10:00:15Z",
            "sessionId": "session-123",
            "subtype": "tool_use",
            "toolName": "Write",
            "toolArguments": {"file_path": "/path/to/script.py", "content": "#!/usr/bin/env python3\n..."},
        },
        {
            "type": "assistant",
            "uuid": "msg-005",
            "parentUuid": "msg-004",
            "timestamp": "2025-01-27T10:00:20Z",
            "sessionId": "session-123",
            "subtype": "tool_use",
            "toolName": "Write",
            "toolArguments": {"file_path": "/protected/path", "content": ""},
        },
        {
            "type": "system",
            "uuid": "msg-006",
            "parentUuid": "msg-005",
            "timestamp": "2025-01-27T10:00:25Z",
            "sessionId": "session-123",
            "subtype": "tool_result",
            "message": "File created successfully at: /path/to/script.py",
        },
        {
            "type": "system",
            "uuid": "msg-007",
            "parentUuid": "msg-006",
            "timestamp": "2025-01-27T10:00:30Z",
            "sessionId": "session-123",
            "message": "Error: Permission denied writing to /protected/path",
            "isError": True,
            "subtype": "error",
        },
        {
            "type": "user",
            "uuid": "msg-008",
            "parentUuid": "msg-007",
            "timestamp": "2025-01-27T10:00:35Z",
            "sessionId": "session-123",
            "message": "/compact",
        },
        {
            "type": "compact_system",
            "uuid": "msg-009",
            "parentUuid": "msg-008",
            "timestamp": "2025-01-27T10:00:40Z",
            "sessionId": "session-123",
            "message": "conversation_compacting",
        },
        {
            "type": "compact_system",
            "uuid": "msg-010",
            "parentUuid": "msg-009",
            "timestamp": "2025-01-27T10:00:45Z",
            "sessionId": "session-123",
            "message": "conversation_compacted",
            "metadata": {"preservedMessages": 15, "totalMessages": 150, "compressionRatio": 0.1},
        },
    ]
    made.records += shown
    said = (
        "Please help me write a Python script",
        "I'll help you create a Python script.",
        "Write",
        "/path/to/script.py",
        "/protected/path",
        "File created successfully at: /path/to/script.py",
        "Error: Permission denied",
        "/compact",
    )
    return Example(
        "000",
        made.data(),
        ("Hello", "Please help me write a Python script", "/compact"),
        said,
        ("Analyze this code for potential improvements",),
    )


FLAT_TOOLS = (
    "Read", "Write", "Edit", "MultiEdit", "Bash", "BashOutput", "KillShell", "Grep", "Glob",
    "WebFetch", "WebSearch", "TodoWrite", "SlashCommand", "Task",
)  # fmt: skip


def flat_tools() -> Example:
    """Every tool that the document names, called and answered."""
    made = Flat()
    made.user("Try every tool")
    for tool in FLAT_TOOLS:
        made.calls(tool, arguments={"argument": f"for {tool}"})
        made.result(f"The result of {tool}.")
    made.says("All tried.")
    said = [words for tool in FLAT_TOOLS for words in (f"for {tool}", f"The result of {tool}.")]
    prompt = "Try every tool"
    return Example("000", made.data(), (prompt,), (prompt, *said, "All tried."))


def flat_answers() -> Example:
    """Each kind of answer, and each flag."""
    made = Flat()
    made.user("Think, then run a command")
    made.says("Internal reasoning first.", subtype="thinking")
    made.says("/status", subtype="command")
    made.says("The answer itself.")
    made.add("system", "Configuration", subtype="meta", isMeta=True)
    made.add("system", "Status update")
    made.user("And now?")
    made.says("Half an ans", isAborted=True)
    said = ("Think, then run", "The answer itself.", "And now?", "Half an ans")
    prompts = ("Think, then run a command", "And now?")
    return Example("000", made.data(), prompts, said, ("Configuration",))


def nested_examples() -> Example:
    """The records that the document shows, in one session."""
    made = Nested()
    made.records += [
        _nested("msg_hello", None, "human", 1738160128123, "Hello"),
        _nested("msg_assistant_000", "msg_hello", "assistant", 1738160129123, "What shall I do?"),
        _nested(
            "msg_user_001", "msg_assistant_000", "human", 1738160130123, "Create a Python script to parse JSON files"
        ),
        _nested(
            "msg_assistant_002",
            "msg_user_001",
            "assistant",
            1738160135456,
            [
                {"type": "text", "text": "I'll create a Python script to parse JSON files."},
                call(
                    "toolu_01abc123",
                    "Write",
                    file_path="/parse_json.py",
                    content="import json\n\ndef parse_json(file_path):\n    ...",
                ),
            ],
        ),
        _nested(
            "msg_result_003",
            "msg_assistant_002",
            "tool_result",
            1738160136789,
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_01abc123",
                    "content": "File created successfully",
                    "is_error": False,
                }
            ],
        ),
        _nested("msg_text_004", "msg_result_003", "human", 1738160137000, "This is a text message"),
        _nested(
            "msg_mixed_005",
            "msg_text_004",
            "assistant",
            1738160138000,
            [{"type": "text", "text": "Here's the analysis:"}, call("toolu_xyz789", "Read", file_path="/config.json")],
        ),
        _nested(
            "msg_result_006",
            "msg_mixed_005",
            "tool_result",
            1738160139000,
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_xyz789",
                    "content": "Tool execution result",
                    "is_error": False,
                }
            ],
        ),
        _nested("msg_assistant_007", "msg_result_006", "assistant", 1738160139500, "Analyzed."),
    ]
    said = (
        "Create a Python script",
        "I'll create",
        "Write",
        "File created successfully",
        "This is a text message",
        "Here's the analysis:",
        "Read",
        "Tool execution result",
        "Analyzed.",
    )
    prompts = ("Hello", "Create a Python script to parse JSON files", "This is a text message")
    return Example("004", made.data(), prompts, said)


def _nested(uuid: str, parent: str | None, kind: str, time: int, content: object) -> Json:
    return {
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "session_123",
        "type": kind,
        "timestamp": time,
        "version": "1.0.128",
        "message": {"type": "message", "content": content},
    }


def nested_sidechain() -> Example:
    """The document's sub-agent, which hangs on the call of it."""
    made = Nested()
    made.human("Improve the code base")
    prompt = "Analyze this codebase for potential improvements"
    owner = made.says("I delegate.", call("toolu_01task", "Task", subagent_type="reviewer", prompt=prompt))
    made.records[-1]["uuid"] = owner = "msg_task_invocation"
    side = _nested("msg_sidechain_001", owner, "human", 1738160140000, prompt)
    made.records.append({**side, "isSidechain": True, "userType": "external"})
    made.says("The agent's answer.", isSidechain=True)
    made.result("toolu_01task", "Three improvements.", parentUuid=owner)
    made.says("There are three.")
    said = ("Improve the code base", "I delegate.", "Three improvements.", "There are three.")
    return Example("004", made.data(), ("Improve the code base",), said, ("The agent's answer.",))


NESTED_TOOLS = (
    "Read", "Write", "Edit", "MultiEdit", "Bash", "TodoWrite", "Task", "Grep", "WebSearch",
    "WebFetch",
)  # fmt: skip


def nested_tools() -> Example:
    """Every tool that the document names, called and answered."""
    made = Nested()
    made.human("Try every tool")
    for number, tool in enumerate(NESTED_TOOLS):
        made.says(call(f"toolu_{number}", tool, argument=f"for {tool}"))
        made.result(f"toolu_{number}", f"The result of {tool}.")
    made.says("All tried.")
    said = [words for tool in NESTED_TOOLS for words in (f"for {tool}", f"The result of {tool}.")]
    prompt = "Try every tool"
    return Example("004", made.data(), (prompt,), (prompt, *said, "All tried."))


def nested_unknown_fields() -> Example:
    """Fields that the document leaves to later versions, and a record without a version."""
    made = Nested()
    made.human("Who is there?", isMeta=False, laterField={"any": ["thing"]})
    made.says("Nobody.", compactMetadata={"trigger": "auto"}, subtype="other")
    del made.records[-1]["version"]
    said = ("Who is there?", "Nobody.")
    return Example("004", made.data(), ("Who is there?",), said)


DIALECT_EXAMPLES = (
    flat_examples,
    flat_tools,
    flat_answers,
    nested_examples,
    nested_sidechain,
    nested_tools,
    nested_unknown_fields,
)
