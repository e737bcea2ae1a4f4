"""Commands in a sandbox: really confined, through the whole agent."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from tests.agent.hostile_project import KEY as HOSTILE_KEY
from tests.agent.hostile_project import Chat
from tests.agent.session_harness import KEY, Whole

from steno.agent.config.settings import LayerSource, merge_settings
from steno.errors import BadRequest
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import run_server_in_thread
from steno.permissions.sandbox import command_wrapper as sandboxes
from steno.permissions.sandbox.command_wrapper import SandboxBackend, find_backend

_FOUND = find_backend()
needs_sandbox = pytest.mark.skipif(_FOUND.kind is None, reason="this kernel has no Landlock and there is no bubblewrap")
needs_keeping = pytest.mark.skipif(
    not _FOUND.protects_project_rules, reason="there is no bubblewrap, and this kernel gives us no namespaces"
)
_SETTINGS: dict[str, Any] = {"enabled": True}


def _runs(*commands: str, **given: Any) -> ScriptedResponder:
    script = ScriptedResponder()
    script.on("go", tool("Bash", command=commands[0], **given))
    for command in commands[1:]:
        script.then(tool("Bash", command=command, **given))
    return script.then("Done.")


def _whole(folder: Path, *commands: str, **options: Any) -> Whole:
    given = options.pop("given", {})
    return Whole(folder, _runs(*commands, **given), **{"sandbox": True, **options})


@needs_keeping
def test_a_command_works_inside_and_writes_nowhere_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    whole = _whole(
        tmp_path,
        "mkdir -p src && cd src && echo hello > a.txt && cat a.txt && pwd",
        "echo more >> a.txt; cat a.txt; mktemp > /dev/null && echo made",
        f"echo x > {outside}/x",
        "echo x > ../.claude/settings.json",
        f"ln -s {outside} ../link && echo x > ../link/x",
        "echo x > $HOME/.bashrc",
    )
    (tmp_path / "home").mkdir()
    whole.say("go")
    assert [each.is_error for each in whole.results] == [False, False, True, True, True, True]
    assert "hello" in str(whole.results[0].content)
    assert str(whole.results[1].content).split() == ["hello", "more", "made"]
    assert list(outside.iterdir()) == []
    assert list((whole.project / ".claude").iterdir()) == []
    assert list((tmp_path / "home").iterdir()) == []
    assert whole.refused == []
    whole.check()
    assert whole.started is not None
    assert whole.started.sandbox is not None
    assert not Path(whole.started.sandbox.policy.tmp).exists()


@needs_keeping
def test_secrets_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("hidden words", encoding="utf-8")
    (tmp_path / "plain").write_text("open words", encoding="utf-8")
    whole = _whole(
        tmp_path,
        f"cat {secret}/key",
        "cat $CLAUDE_CONFIG_DIR/.credentials.json",
        "cat private/note",
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep '^ANTHROPIC'; env | grep ANTHROPIC",
        f"cat {tmp_path}/plain",
    )
    (whole.config / ".credentials.json").write_text("hidden words", encoding="utf-8")
    (whole.project / "private").mkdir()
    (whole.project / "private" / "note").write_text("hidden words", encoding="utf-8")
    whole.settings(sandbox={"filesystem": {"denyRead": [str(secret)]}}, permissions={"deny": ["Read(./private/**)"]})
    whole.say("go")
    said = [str(each.content) for each in whole.results]
    assert "hidden words" not in "".join(said)
    assert KEY not in "".join(said)
    assert said[-1] == "open words"
    whole.check()


@needs_keeping
def test_there_is_no_network_unless_all_of_it_is_allowed(tmp_path: Path) -> None:
    for domains, reached in (([], False), (["example.com"], False), (["*"], True)):
        folder = tmp_path / ("-".join(domains).replace("*", "all") or "none")
        folder.mkdir()
        script = ScriptedResponder()
        whole = Whole(folder, script, sandbox=True)
        whole.settings(sandbox={"network": {"allowedDomains": domains}})
        look = "import os, socket; socket.create_connection(('127.0.0.1', {}), 2)"
        script.on(
            "go",
            lambda _asked, w=whole, words=look: [
                tool("Bash", command=f'python3 -c "{words.format(w.server.url.rpartition(":")[2])}"')
            ],
        ).then("Done.")
        whole.play(lambda started: started.agent.run_turn("go"))
        assert [each.is_error for each in whole.results] == [not reached]
        told = any("allowedDomains" in words for words in whole.notices)
        assert told == (domains == ["example.com"])


@needs_keeping
def test_no_program_gets_out_to_another(tmp_path: Path) -> None:
    with socket.socket() as served:
        served.bind(("127.0.0.1", 0))
        served.listen()
        served.setblocking(False)
        port = served.getsockname()[1]
        tries = {
            "bash": f"exec 3<>/dev/tcp/127.0.0.1/{port}",
            "curl": f"curl -s --max-time 3 http://127.0.0.1:{port}/",
            "wget": f"wget -q -T 3 -t 1 http://127.0.0.1:{port}/",
            "nc": f"nc -z -w 3 127.0.0.1 {port}",
            "ssh": f"ssh -o ConnectTimeout=3 -o BatchMode=yes -p {port} 127.0.0.1",
            "git": f"git ls-remote git://127.0.0.1:{port}/x",
        }
        commands = [command for name, command in tries.items() if shutil.which(name)]
        whole = _whole(tmp_path, *commands)
        whole.say("go")
        assert [each.is_error for each in whole.results] == [True] * len(commands)
        with pytest.raises(BlockingIOError):
            served.accept()


@needs_keeping
def test_a_command_that_takes_too_long_leaves_nothing_running(tmp_path: Path) -> None:
    command = "(setsid sleep 61.37 &) ; sleep 61.37"
    whole = _whole(tmp_path, command, given={"timeout": 1000})
    whole.say("go")
    assert "timed out" in str(whole.results[0].content)
    assert not [path for path in Path("/proc").glob("[0-9]*") if b"61.37" in _line(path)]


def _line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


@needs_keeping
def test_commands_in_the_background_are_confined_as_well(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    script = ScriptedResponder()
    whole = Whole(tmp_path, script, sandbox=True)
    # It waits until it is asked for: the word that it has ended must not come in between.
    os.mkfifo(whole.project / "gate")
    gate = os.open(whole.project / "gate", os.O_RDWR)
    command = f"read word < gate; echo in > in.txt; echo x > {outside}; echo tried"
    script.on("go", tool("Bash", command=command, run_in_background=True))

    def asked_for(asked: Any) -> Any:
        os.write(gate, b"go\n")
        return tool("TaskOutput", task_id=_task(asked))

    script.then(asked_for)
    script.then("Done.")
    whole.say("go")
    os.close(gate)
    assert "tried" in str(whole.results[-1].content)
    assert not outside.exists()
    assert (whole.project / "in.txt").read_text(encoding="utf-8") == "in\n"
    whole.check()


def _task(asked: Any) -> str:
    words = str(asked.results[0]["content"])
    return words.partition("ID: ")[2].partition(".")[0]


@needs_keeping
def test_a_sub_agents_commands_are_confined_as_well(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    script = ScriptedResponder()
    script.on("go", tool("Agent", description="d", prompt="inner work", subagent_type="general-purpose"))
    script.then("Done.")
    script.on("inner work", tool("Bash", command=f"echo x > {outside}")).then("Tried.")
    whole = Whole(tmp_path, script, sandbox=True)
    whole.say("go")
    assert not outside.exists()
    assert whole.bodies[-1]["messages"]
    assert [body for body in whole.bodies if "rror" in json.dumps(body["messages"][-1])]


# Consent


@needs_keeping
def test_what_is_confined_needs_no_consent_but_rules_come_first(tmp_path: Path) -> None:
    whole = _whole(tmp_path, "touch made", "touch asked", "touch denied")
    whole.settings(permissions={"ask": ["Bash(touch asked)"], "deny": ["Bash(touch denied)"]})
    whole.say("go")
    assert sorted(path.name for path in whole.project.iterdir()) == [".claude", "made"]
    assert len(whole.refused) == 2


@needs_keeping
@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"sandbox": {"autoAllowBashIfSandboxed": False}}, {}),
        ({}, {"mode": "plan"}),
        ({}, {"mode": "dontAsk"}),
        ({"permissions": {"deny": ["Read(**/*.pem)"]}}, {}),
    ],
)
def test_consent_is_asked_for_where_it_must_be(
    tmp_path: Path, settings: dict[str, Any], options: dict[str, Any]
) -> None:
    whole = _whole(tmp_path, "touch made", **options)
    whole.settings(**settings)
    whole.say("go")
    assert not (whole.project / "made").exists()
    assert len(whole.refused) == 1


@needs_sandbox
def test_where_rules_cannot_be_kept_consent_is_asked_for_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "_BWRAP_PATHS", ())
    runs = sandboxes._works
    monkeypatch.setattr(sandboxes, "_works", _only_plain(runs))
    outside = tmp_path / "outside"
    whole = _whole(tmp_path, "touch made", f"touch {outside}", "touch other")
    whole.options.allowed = ("Bash(touch made)", f"Bash(touch {outside})")
    whole.say("go")
    assert (whole.project / "made").exists()
    assert not outside.exists()
    assert len(whole.refused) == 1
    assert any("protected files in the project are writable" in w for w in whole.notices)


def _only_plain(runs: Callable[[list[str]], bool]) -> Callable[[list[str]], bool]:
    def tried(argv: list[str]) -> bool:
        return "--apart" not in argv and runs(argv)

    return tried


# Out of the sandbox


@needs_keeping
def test_a_command_leaves_the_sandbox_only_with_consent(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    given = {"dangerouslyDisableSandbox": True}
    refused = _whole(tmp_path, f"touch {outside}", given=given)
    refused.say("go")
    assert len(refused.refused) == 1
    assert not outside.exists()
    ignored = _whole(tmp_path, f"touch {outside}", given=given, allowed=("Bash(touch:*)",))
    ignored.settings(sandbox={"allowUnsandboxedCommands": False})
    ignored.say("go")
    assert ignored.results[0].is_error
    assert not outside.exists()
    allowed = _whole(tmp_path, f"touch {outside}", given=given, allowed=("Bash(touch:*)",))
    allowed.settings()
    allowed.say("go")
    assert outside.exists()
    assert any("outside the sandbox" in words for words in allowed.notices)


@needs_keeping
def test_excluded_commands_run_outside_alone_and_not_what_is_tied_to_them(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    whole = _whole(
        tmp_path,
        f"touch {outside}/one",
        f"touch {outside}/two; echo x > {outside}/three",
        f"touch {outside}/$(echo x > {outside}/four)",
        mode="bypassPermissions",
    )
    whole.settings(sandbox={"excludedCommands": ["touch"]})
    whole.say("go")
    assert [path.name for path in outside.iterdir()] == ["one"]
    asks = _whole(tmp_path, f"touch {outside}/five")
    asks.settings(sandbox={"excludedCommands": ["touch *"]})
    asks.say("go")
    assert len(asks.refused) == 1


# Whether there is one


def test_where_one_is_asked_for_and_there_is_none_nothing_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = SandboxBackend(None, "no sandbox available")
    monkeypatch.setattr("steno.agent.command_sandbox.find_backend", lambda: none)
    whole = _whole(tmp_path, "touch made", allowed=("Bash(touch:*)",))
    with pytest.raises(BadRequest, match="no sandbox available"):
        whole.say("go")
    assert not (whole.project / "made").exists()
    lax = _whole(tmp_path, "touch made", allowed=("Bash(touch:*)",))
    lax.settings(sandbox={"failIfUnavailable": False})
    lax.say("go")
    assert (whole.project / "made").exists()
    assert sum("no sandbox available" in words for words in lax.notices) == 1


def test_nobody_gets_a_sandbox_who_did_not_ask(tmp_path: Path) -> None:
    whole = _whole(tmp_path, "touch made", sandbox=None, allowed=("Bash(touch:*)",))
    whole.say("go")
    assert whole.started is not None
    assert whole.started.sandbox is None
    assert (whole.project / "made").exists()


@needs_keeping
def test_the_settings_of_the_user_confine_a_whole_session(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    script = _runs(f"echo x > in; echo x > {outside}/x")
    with run_server_in_thread(script, key=HOSTILE_KEY) as server:
        chat = Chat(tmp_path, server)
        settings = chat.home / ".claude" / "settings.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps({"sandbox": _SETTINGS}), encoding="utf-8")
        # A project does not let itself out.
        chat.file(".claude/settings.json", {"sandbox": {"enabled": False}})
        chat("-p", "go", "--trust", "--dangerously-skip-permissions")
        assert (chat.project / "in").exists()
        assert list(outside.iterdir()) == []


# Settings


def _merged(**layers: dict[str, Any]) -> Any:
    sources = [LayerSource(cast("Any", name), name, json.dumps({"sandbox": part})) for name, part in layers.items()]
    return merge_settings(sources, trusted=True)


def test_a_project_may_tighten_and_never_loosen() -> None:
    settings = _merged(
        user={
            "enabled": True,
            "excludedCommands": ["docker"],
            "filesystem": {"allowWrite": ["/a"], "denyRead": ["/b"]},
        },
        project={
            "enabled": False,
            "failIfUnavailable": False,
            "autoAllowBashIfSandboxed": False,
            "excludedCommands": ["sh"],
            "allowUnsandboxedCommands": False,
            "network": {"allowedDomains": ["*"]},
            "filesystem": {"allowWrite": ["/"], "allowRead": ["/b"], "denyRead": ["/c"], "denyWrite": ["/d"]},
        },
    )
    found = settings.sandbox
    assert (found.enabled, found.fail_if_unavailable, found.auto_allow) == (True, True, False)
    assert (found.allow_unsandboxed, found.network, found.excluded_commands) == (False, False, ("docker",))
    assert (found.writable_paths, found.readable_paths) == (("/a",), ())
    assert (sorted(found.hidden_paths), found.read_only_paths) == (["/b", "/c"], ("/d",))
    left_out = " ".join(note.message for note in settings.notes)
    for key in ("enabled", "failIfUnavailable", "excludedCommands", "allowWrite", "allowRead"):
        assert f"{key}`" in left_out


def test_a_project_that_asks_for_a_sandbox_gets_no_consent_for_commands() -> None:
    assert _merged(project=_SETTINGS).sandbox.enabled
    assert not _merged(project=_SETTINGS).sandbox.auto_allow
    assert not _merged(project={**_SETTINGS, "autoAllowBashIfSandboxed": True}).sandbox.auto_allow
    assert _merged(user=_SETTINGS).sandbox.auto_allow
    assert _merged(user={"autoAllowBashIfSandboxed": True}, project=_SETTINGS).sandbox.auto_allow


def test_the_highest_layer_decides_and_a_manager_cannot_be_overruled(tmp_path: Path) -> None:
    off = {"enabled": False}
    assert not _merged(flags=off, user=_SETTINGS).sandbox.enabled
    assert _merged(managed=_SETTINGS, flags=off).sandbox.required_by_manager
    from steno.agent.command_sandbox import SandboxRequest, create_sandbox
    from steno.permissions.permission_rules import RuleSet

    setting = SandboxRequest(cwd=str(tmp_path), config=str(tmp_path), env={}, requested=False)
    with pytest.raises(BadRequest, match="managed settings require"):
        create_sandbox(setting, _merged(managed=_SETTINGS), RuleSet(), [])
    assert create_sandbox(setting, _merged(user=_SETTINGS), RuleSet(), []) is None


@pytest.mark.parametrize("said", [None, {}, {"enabled": False}, {"enabled": 1}, [], "x"])
def test_what_does_not_ask_for_a_sandbox_gives_none(said: Any) -> None:
    assert not _merged(user=said).sandbox.enabled
