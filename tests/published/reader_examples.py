"""The JSON examples of the two readers' notes (002, 003), each in a complete session file."""

from tests.published.client_form import ClientForm, full_id
from tests.published.example import Example, of_client, read_result
from tests.published.files import PNG
from tests.published.forms import Json, call

BASH = "toolu_01KSVptpVLQCxH4b5AbX4qmt"
FRAGO = "6c75e29d-01ec-4987-acf7-096af67c8031"
OPEN_CONTEXT = full_id("4afcb463")


def _frago() -> ClientForm:
    return ClientForm(FRAGO, cwd="/Users/bob/Repos/frago", version="2.0.76", slug="gleaming-jumping-key")


def command_turn() -> Example:
    """A prompt, a call of Bash and its result, with the fields that the document lists."""
    made = _frago()
    made.queued("enqueue", content="Hello, help me with the files")
    made.queued("dequeue")
    made.user("Hello, help me with the files")
    made.answer("I'll help you with them.",
                call(BASH, "Bash", command="ls -la", description="List files"))  # fmt: skip
    made.result(
        BASH,
        "Command output here",
        {"stdout": "Command output here", "stderr": "", "interrupted": False, "isImage": False},
        is_error=False,
    )
    made.answer("There are three.")
    said = ("Hello, help me", "I'll help you", BASH, "Command output here", "There are three.")
    return of_client("002", made, ("Hello, help me with the files",), said)


def failed_command() -> Example:
    """A result that is an error, with text where there are usually fields."""
    made = _frago()
    made.user("Run the tests")
    made.answer(call(BASH, "Bash", command="make test"))
    made.result(BASH, "Exit code 2", "Error: Exit code 2", is_error=True)
    made.answer("They fail.")
    said = ("Run the tests", "make test", "Exit code 2", "They fail.")
    return of_client("002", made, ("Run the tests",), said)


def blocks_of_content() -> Example:
    """Each block that the document lists, and a result that is a list of them."""
    made = _frago()
    image: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    made.user([{"type": "text", "text": "What is in this picture?"}, image])
    thought = {"type": "thinking", "thinking": "Internal reasoning content"}
    made.answer(thought, call("toolu_01img", "Read", file_path="/home/yu/a.png"))
    made.result("toolu_01img", [{"type": "text", "text": "A pixel."}, image])
    made.answer("One pixel.")
    said = ("What is in this picture?", "toolu_01img", "A pixel.", "One pixel.")
    return of_client("002", made, ("What is in this picture?",), said, findings=("message.unsigned-thinking",))


def system_error() -> Example:
    """A failed request with what is known of the next attempt."""
    made = _frago()
    made.user("Are you there?")
    made.add(
        "system",
        subtype="error",
        level="error",
        content="Error message: overloaded",
        error={"status": 529},
        cause="Overloaded",
        retryAttempt=1,
        maxRetries=3,
        retryInMs=1000,
    )
    made.answer("I am.")
    return of_client("002", made, ("Are you there?",), ("Are you there?", "I am."))


def summary_at_the_end() -> Example:
    """A title for a session, on its last record."""
    made = _frago()
    made.user("What is new?")
    (last,) = made.answer("Nothing.")
    made.put("summary", sessionId=made.session, leafUuid=last, summary="Session summary text")
    return of_client("002", made, ("What is new?",), ("What is new?", "Nothing."))


def snapshot_of_session() -> Example:
    """A snapshot that names its session."""
    made = _frago()
    prompt = made.user("Change nothing")
    made.snapshot(prompt, sessionId=made.session)
    made.answer("Nothing is changed.")
    return of_client("002", made, ("Change nothing",), ("Change nothing", "Nothing is changed."))


def expanded_skill() -> Example:
    """A skill that the model calls: its text comes as a message with the call's id."""
    made = _frago()
    made.user("Research hooks")
    made.answer(call(BASH, "Skill", skill="frago.run", args="hooks"))
    made.result(BASH, "Launching skill: frago.run", {"success": True, "commandName": "frago.run"})
    text = [{"type": "text", "text": "# /frago.run - Research Explorer\nFind pages."}]
    made.user(text, isMeta=True, sourceToolUseID=BASH)
    made.answer("Ten pages are found.")
    said = ("Research hooks", "frago.run", "Research Explorer", "Ten pages are found.")
    return of_client("002", made, ("Research hooks",), said)


def sidechain_file() -> Example:
    """A sub-agent's file in the folder of the sessions."""
    made = _frago()
    made.user("Look at the parser")
    made.answer(call(BASH, "Task", description="Look", subagent_type="Explore",
                     prompt="Read parser.py and report."))  # fmt: skip
    detail: Json = {
        "status": "completed",
        "prompt": "Read parser.py and report.",
        "agentId": "a59831a",
        "content": [{"type": "text", "text": "It skips three types."}],
        "totalDurationMs": 1200,
        "totalTokens": 900,
        "totalToolUseCount": 0,
    }
    made.result(BASH, [{"type": "text", "text": "It skips three types."}], detail)
    made.answer("Three types are skipped.")
    inner = ClientForm(FRAGO, cwd=made.envelope["cwd"], version="2.0.76", agent="a59831a")
    inner.user("Read parser.py and report.")
    inner.answer("It skips three types.")
    said = ("Look at the parser", "It skips three types.", "Three types are skipped.")
    beside = {"agent-a59831a.jsonl": inner.data()}
    return of_client("002", made, ("Look at the parser",), said, beside=beside)


def _open_context() -> ClientForm:
    return ClientForm(OPEN_CONTEXT, cwd="/home/yu/projects/foo", version="2.1.42", slug="inherited-popping-pike")


def thread_of_turns() -> Example:
    """Two turns with every field that the document lists for messages."""
    made = _open_context()
    made.user("Fix the login bug", permissionMode="default", thinkingMetadata={"maxThinkingTokens": 31999})
    path = "/home/yu/projects/foo/main.py"
    thought = {"type": "thinking", "thinking": "Let me analyze this.", "signature": "EpMCCkYICxgC"}
    _, _, asked = made.answer(thought, "Here's my analysis.", call("toolu_01XYZ", "Read", file_path=path))
    text = "     1\u2192#!/usr/bin/env python3\n     2\u2192def old():"
    made.result("toolu_01XYZ", text, read_result(path, text), sourceToolAssistantUUID=asked)
    given = {"file_path": path, "old_string": "def old():", "new_string": "def new():"}
    (asked,) = made.answer(call("toolu_01ABC", "Edit", **given))
    detail: Json = {
        "filePath": path,
        "oldString": "def old():",
        "newString": "def new():",
        "originalFile": "#!/usr/bin/env python3\ndef old():",
        "structuredPatch": [],
        "userModified": False,
        "replaceAll": False,
    }
    made.result("toolu_01ABC", "The file was updated.", detail, sourceToolAssistantUUID=asked)
    made.answer("It is fixed.")
    made.user("Thanks")
    made.answer("You are welcome.")
    said = ("Fix the login bug", "Here's my analysis.", "toolu_01XYZ", "toolu_01ABC",
            "The file was updated.", "It is fixed.", "Thanks", "You are welcome.")  # fmt: skip
    return of_client("003", made, ("Fix the login bug", "Thanks"), said)


def progress_with_sizes() -> Example:
    """The three kinds of progress, with the fields that only this document names."""
    made = _open_context()
    made.user("Test and search")
    made.answer(call("toolu_01b", "Bash", command="make test"))
    made.progress(
        "toolu_01b",
        type="bash_progress",
        output="latest partial",
        fullOutput="complete accumulated output",
        elapsedTimeSeconds=3,
        totalLines=42,
    )
    done = {"stdout": "42 passed", "stderr": "", "interrupted": False, "isImage": False}
    made.result("toolu_01b", "42 passed", done)
    prompt = "Search for the caller."
    made.answer(call("toolu_01t", "Task", description="Search", subagent_type="Explore",
                     prompt=prompt))  # fmt: skip
    inner = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": prompt}]}}
    made.progress("toolu_01t", type="agent_progress", prompt=prompt, agentId="ab5e7cc", message=inner)
    made.progress(
        "toolu_01t", type="hook_progress", hookEvent="PostToolUse", hookName="PostToolUse:Read", command="callback"
    )
    made.result("toolu_01t", [{"type": "text", "text": "It is in main.py."}])
    made.answer("Tested and found.")
    said = ("Test and search", "42 passed", prompt, "It is in main.py.", "Tested and found.")
    return of_client("003", made, ("Test and search",), said, ("latest partial",))


def system_events() -> Example:
    """The events of section 4 that the other documents do not show."""
    made = _open_context()
    made.user("Read both files")
    made.answer(call("toolu_01", "Read", file_path="/a"), call("toolu_02", "Read", file_path="/b"))
    made.result("toolu_01", "Text of a.")
    made.result("toolu_02", "Text of b.")
    made.add(
        "system",
        subtype="microcompact_boundary",
        content="Context microcompacted",
        isMeta=False,
        level="info",
        microcompactMetadata={
            "trigger": "auto",
            "preTokens": 150000,
            "tokensSaved": 45000,
            "compactedToolIds": ["toolu_01", "toolu_02"],
            "clearedAttachmentUUIDs": [],
        },
    )
    made.add(
        "system",
        subtype="api_error",
        level="error",
        error={"status": 529},
        retryInMs=500.0,
        retryAttempt=1,
        maxRetries=10,
    )
    made.answer("Both are read.")
    made.add(
        "system",
        subtype="stop_hook_summary",
        hookCount=1,
        hookInfos=[{"command": "callback"}],
        hookErrors=[],
        preventedContinuation=False,
        stopReason="",
        hasOutput=False,
        level="suggestion",
        toolUseID=full_id("0000beef"),
    )
    made.add("system", subtype="turn_duration", durationMs=1200, isMeta=False)
    said = ("Read both files", "Text of a.", "Text of b.", "Both are read.")
    return of_client("003", made, ("Read both files",), said)


def backup_of_file() -> Example:
    """A snapshot that names a backup, and the backup itself."""
    made = _open_context()
    path = "/home/yu/projects/foo/main.py"
    prompt = made.user("Change main.py")
    made.snapshot(prompt)
    made.answer(call("toolu_01w", "Write", file_path=path, content="new"))
    detail: Json = {"type": "update", "filePath": path, "content": "new", "structuredPatch": [], "originalFile": "old"}
    made.result("toolu_01w", "The file was updated.", detail)
    backup = {"backupFileName": "094de626321f00d3@v1", "version": 1, "backupTime": "2026-02-14T13:20:00.000Z"}
    made.snapshot(prompt, {path: backup}, isSnapshotUpdate=True)
    made.answer("It is changed.")
    said = ("Change main.py", "The file was updated.", "It is changed.")
    beside = {f"../../file-history/{made.session}/094de626321f00d3@v1": b"old"}
    return of_client("003", made, ("Change main.py",), said, beside=beside)


def queue_of_tasks() -> Example:
    """The three operations that the document lists."""
    made = _open_context()
    told = "<task-id>b1</task-id><status>completed</status>"
    made.user("Start the server")
    made.answer("It runs.")
    made.queued("enqueue", content=told)
    made.queued("dequeue")
    made.queued("complete")
    made.user("Stop it")
    made.answer("It is stopped.")
    said = ("Start the server", "It runs.", "Stop it", "It is stopped.")
    return of_client("003", made, ("Start the server", "Stop it"), said)


def no_prompts() -> Example:
    """Messages of the user that begin no turn: a command, its output, an interrupt, a meta text."""
    made = _open_context()
    made.user("Fix the login bug")
    made.answer("Half an ans")
    made.user([{"type": "text", "text": "[Request interrupted by user]"}])
    made.user("<command-name>/model</command-name>\n<command-message>model</command-message>\n"
              "<command-args></command-args>")  # fmt: skip
    made.user("<local-command-stdout>Set model to opus</local-command-stdout>")
    made.user("The caveat.", isMeta=True)
    made.user("Go on")
    made.answer("It is fixed.")
    said = ("Fix the login bug", "Half an ans", "interrupted", "Go on", "It is fixed.")
    return of_client("003", made, ("Fix the login bug", "Go on"), said)


def sub_agents_folder() -> Example:
    """A sub-agent's file in the session's own folder, and a saved output."""
    made = _open_context()
    prompt = "Search for the caller."
    made.user("Who calls it?")
    made.answer(call("toolu_01t", "Task", description="Search", subagent_type="Explore",
                     prompt=prompt))  # fmt: skip
    detail: Json = {
        "status": "completed",
        "prompt": prompt,
        "agentId": "ab5e7cc",
        "content": [{"type": "text", "text": "main.py calls it."}],
        "totalDurationMs": 1200,
        "totalTokens": 900,
        "totalToolUseCount": 1,
    }
    made.result("toolu_01t", [{"type": "text", "text": "main.py calls it."}], detail)
    made.answer("It is main.py.")
    inner = ClientForm(OPEN_CONTEXT, cwd="/home/yu/projects/foo", version="2.1.42", agent="ab5e7cc")
    inner.user(prompt)
    inner.answer(call("toolu_01g", "Grep", pattern="old"))
    inner.result("toolu_01g", "main.py:1")
    inner.answer("main.py calls it.")
    beside = {
        f"{made.session}/subagents/agent-ab5e7cc.jsonl": inner.data(),
        f"{made.session}/tool-results/toolu_01g.txt": b"main.py:1\n",
    }
    said = ("Who calls it?", "main.py calls it.", "It is main.py.")
    return of_client("003", made, ("Who calls it?",), said, ("main.py:1",), beside=beside)


READER_EXAMPLES = (
    command_turn,
    failed_command,
    blocks_of_content,
    system_error,
    summary_at_the_end,
    snapshot_of_session,
    expanded_skill,
    sidechain_file,
    thread_of_turns,
    progress_with_sizes,
    system_events,
    backup_of_file,
    queue_of_tasks,
    no_prompts,
    sub_agents_folder,
)
