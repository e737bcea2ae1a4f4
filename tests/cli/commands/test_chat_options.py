"""The options of `steno chat` for the sandbox and for thinking, as they are called."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands.test_chat import Chat

from steno.llm.testserver.responders import thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import run_server_in_thread
from steno.permissions.sandbox.command_wrapper import find_backend

needs_keeping = pytest.mark.skipif(
    not find_backend().protects_project_rules, reason="there is no bubblewrap, and this kernel gives no namespaces"
)


@pytest.fixture
def script() -> ScriptedResponder:
    return ScriptedResponder().otherwise("Yes.")


@pytest.fixture
def chat(tmp_path: Path, script: ScriptedResponder) -> Iterator[Chat]:
    with run_server_in_thread(script, key="canary-key-of-nobody") as server:
        yield Chat(tmp_path, server)


@needs_keeping
def test_a_sandbox_is_had_for_the_asking_and_told(chat: Chat, script: ScriptedResponder) -> None:
    outside = chat.project.parent / "outside"
    script.on("go", tool("Bash", command=f"touch in; touch {outside}")).then("Done.")
    begin, *_ = chat.lines("go", "--sandbox")
    assert begin["sandbox"]["enabled"]
    assert begin["sandbox"]["kind"] in ("bwrap", "landlock")
    assert (chat.project / "in").exists()
    assert not outside.exists()
    assert "sandbox" in json.dumps(chat.server.requests[0].body["system"])
    result = json.loads(chat("-p", "hello", "--sandbox", "--output-format", "json"))
    assert result["sandbox"]["enabled"]
    chat.check()


def test_without_asking_there_is_none_and_that_is_told_too(chat: Chat) -> None:
    begin, *_ = chat.lines("hello")
    assert begin["sandbox"] == {"enabled": False, "kind": None}
    result = json.loads(chat("-p", "hello", "--json"))
    assert result["sandbox"]["enabled"] is False


@needs_keeping
def test_settings_ask_for_one_and_the_caller_may_do_without(chat: Chat) -> None:
    settings = json.dumps({"sandbox": {"enabled": True}})
    begin, *_ = chat.lines("hello", "--settings", settings)
    assert begin["sandbox"]["enabled"]
    begin, *_ = chat.lines("hello", "--settings", settings, "--no-sandbox")
    assert not begin["sandbox"]["enabled"]


def test_what_the_user_should_know_is_said_beside_the_answer(chat: Chat) -> None:
    (chat.project / ".claude").mkdir()
    rules = '{"permissions": {"allow": ["Bash(ls:*)"]}}'
    (chat.project / ".claude" / "settings.json").write_text(rules, encoding="utf-8")
    assert chat("-p", "hello") == "Yes.\n"
    assert "not trusted" in chat.said


def test_thinking_and_effort_go_out_with_the_names_they_are_known_by(chat: Chat, script: ScriptedResponder) -> None:
    script.on("think", [thinking("Hm.")])
    chat("-p", "hello", "--effort", "high", "--thinking", "adaptive")
    sent = chat.server.requests[-1]
    assert sent.body["thinking"] == {"type": "adaptive"}
    assert sent.body["output_config"] == {"effort": "high"}
    named = sent.headers["anthropic-beta"].split(",")
    assert named == ["interleaved-thinking-2025-05-14", "effort-2025-11-24"]
    chat("-p", "hello", env={**chat.env, "MAX_THINKING_TOKENS": "4096"})
    sent = chat.server.requests[-1]
    assert sent.body["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    chat("-p", "hello", "--thinking", "disabled", env={**chat.env, "MAX_THINKING_TOKENS": "4096"})
    sent = chat.server.requests[-1]
    assert "thinking" not in sent.body
    assert "anthropic-beta" not in sent.headers
    chat("-p", "hello", code=2, env={**chat.env, "MAX_THINKING_TOKENS": "lots"})
    assert "MAX_THINKING_TOKENS" in chat.said
    chat.check()
