"""Settings, layer over layer."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steno.agent.config.settings import LayerSource, Settings, load_settings, merge_settings
from steno.permissions.project_trust import filter_settings


class Folder:
    """A machine with a user and a project."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "work"
        self.managed = root / "managed.json"
        self.env = {"HOME": str(self.home), "CLAUDE_CONFIG_DIR": str(self.home / ".claude")}

    def write(self, layer: str, value: Any) -> Path:
        path = {
            "managed": self.managed,
            "user": self.home / ".claude" / "settings.json",
            "project": self.project / ".claude" / "settings.json",
            "local": self.project / ".claude" / "settings.local.json",
        }[layer]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
        return path

    def load(self, *, trusted: bool = True, flags: str = "") -> Settings:
        return load_settings(str(self.project), trusted=trusted, flags=flags, env=self.env, managed=str(self.managed))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_without_any_file_everything_has_its_default(folder: Folder) -> None:
    settings = folder.load()
    assert settings == Settings()
    assert settings.auto_compact


def test_the_highest_layer_that_has_a_value_wins(folder: Folder) -> None:
    layers = ["user", "project", "local"]
    for layer in layers:
        folder.write(layer, {"model": layer})
        assert folder.load().model == layer
    assert folder.load(flags='{"model": "flags"}').model == "flags"
    folder.write("managed", {"model": "managed"})
    settings = folder.load(flags='{"model": "flags"}')
    assert settings.model == "managed"
    assert settings.origins["model"] == "managed"


def test_a_higher_layer_hides_only_the_keys_that_it_has(folder: Folder) -> None:
    folder.write("user", {"model": "a", "outputStyle": "Learning", "language": "French"})
    folder.write("project", {"model": "b"})
    settings = folder.load()
    found = (settings.model, settings.output_style, settings.language)
    assert found == ("b", "Learning", "French")
    assert settings.origins["outputStyle"] == "user"


def test_rules_of_all_layers_count_and_remember_theirs(folder: Folder) -> None:
    folder.write("user", {"permissions": {"allow": ["Read", "Edit"], "deny": ["Bash(rm:*)"]}})
    folder.write("project", {"permissions": {"allow": ["Edit", "Write"], "ask": ["WebFetch"]}})
    folder.write("managed", {"permissions": {"additionalDirectories": ["../x"]}})
    permissions = folder.load().permissions
    assert {(rule.text, rule.layer) for rule in permissions.allow} == {
        ("Edit", "project"),
        ("Write", "project"),
        ("Read", "user"),
    }
    assert [rule.text for rule in permissions.deny] == ["Bash(rm:*)"]
    assert [rule.text for rule in permissions.ask] == ["WebFetch"]
    assert permissions.directories[0].layer == "managed"


def test_the_environment_is_merged_name_by_name(folder: Folder) -> None:
    folder.write("user", {"env": {"A": "user", "B": 1, "C": True}})
    folder.write("project", {"env": {"A": "project"}})
    settings = folder.load()
    assert settings.env == {"A": "project", "B": "1", "C": "true"}
    assert settings.origins["env.A"] == "project"


def test_hooks_of_all_layers_stand_one_after_the_other(folder: Folder) -> None:
    def hook(command: str) -> dict[str, Any]:
        return {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}

    for layer in ("user", "project", "local"):
        folder.write(layer, hook(layer))
    assert [hook.command for hook in folder.load().hooks] == ["local", "project", "user"]


def test_a_hook_has_its_matcher_timeout_and_condition(folder: Folder) -> None:
    entry = {"type": "command", "command": "x", "timeout": 5, "if": "Bash(git *)", "async": True}
    folder.write("user", {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}})
    (hook,) = folder.load().hooks
    assert (hook.event, hook.matcher, hook.timeout) == ("PreToolUse", "Bash", 5.0)
    assert hook.condition == "Bash(git *)"
    assert hook.background
    assert hook.args is None


def test_a_hook_of_another_type_is_noted(folder: Folder) -> None:
    folder.write("user", {"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}})
    settings = folder.load()
    assert not settings.hooks
    assert "prompt" in str(settings.notes[0])


def test_nothing_of_a_project_counts_that_is_not_trusted(folder: Folder) -> None:
    value = {
        "model": "x",
        "env": {"A": "1"},
        "permissions": {"allow": ["Bash"]},
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "evil"}]}]},
        "enableAllProjectMcpServers": True,
    }
    folder.write("project", value)
    folder.write("local", value)
    settings = folder.load(trusted=False)
    assert settings.notes
    assert Settings(notes=settings.notes) == settings


def test_a_project_that_is_not_trusted_may_forbid_but_not_permit(folder: Folder) -> None:
    rules = {"deny": ["Read(.env)"], "ask": ["Bash"], "allow": ["Bash"], "defaultMode": "plan"}
    off = {"disableBypassPermissionsMode": "disable"}
    folder.write("project", {"permissions": {**rules, **off}})
    permissions = folder.load(trusted=False).permissions
    assert [rule.text for rule in permissions.deny] == ["Read(.env)"]
    assert [rule.text for rule in permissions.ask] == ["Bash"]
    assert permissions.allow == ()
    assert permissions.default_mode == "plan"
    assert permissions.bypass_disabled


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("layer", ["project", "local"])
def test_the_loader_goes_by_the_one_rule_of_trust(folder: Folder, layer: Any, *, trusted: bool) -> None:
    value: dict[str, Any] = {
        "permissions": {
            "allow": ["A"],
            "ask": ["B"],
            "deny": ["C"],
            "additionalDirectories": ["/"],
            "defaultMode": "acceptEdits",
        },
        "env": {"PATH": ".", "FINE": "1", "ANTHROPIC_MODEL": "m", "X_CA_BUNDLE": "x"},
        "apiKeyHelper": "evil",
        "enableAllProjectMcpServers": True,
        "enabledMcpjsonServers": ["evil"],
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]},
        "mcpServers": {"s": {"command": "x"}},
        "model": "m",
        "unheardOf": {"command": "x"},
    }
    effect = filter_settings(value, layer, trusted=trusted)
    path = folder.write(layer, value)
    settings = folder.load(trusted=trusted)
    path.write_text(json.dumps(effect.settings), "utf-8")
    bare = folder.load(trusted=trusted)
    told = {note.message.split("`")[1] for note in settings.notes}
    assert told == set(effect.held)
    assert msgspec.structs.replace(settings, notes=()) == msgspec.structs.replace(bare, notes=())
    assert settings.enabled_mcpjson == ()
    assert bool(settings.hooks) is trusted


def test_what_a_project_forbids_counts_before_it_is_trusted(folder: Folder) -> None:
    rules = {"allow": ["Bash"], "deny": ["Read(.env)"], "ask": ["WebFetch"], "defaultMode": "plan"}
    folder.write("project", {"permissions": rules})
    permissions = folder.load(trusted=False).permissions
    assert not permissions.allow
    assert [rule.text for rule in permissions.deny] == ["Read(.env)"]
    assert [rule.text for rule in permissions.ask] == ["WebFetch"]
    assert permissions.default_mode == "plan"


def test_a_trusted_project_chooses_no_programs_folders_or_servers(folder: Folder) -> None:
    value = {
        "env": {"PATH": ".", "LD_PRELOAD": "x", "GIT_SSH_COMMAND": "x", "NODE_OPTIONS": "x"},
        "permissions": {"additionalDirectories": ["/"], "defaultMode": "bypassPermissions"},
        "enableAllProjectMcpServers": True,
        "enabledMcpjsonServers": ["a"],
    }
    folder.write("project", value)
    settings = folder.load()
    assert Settings(notes=settings.notes) == settings
    assert len(settings.notes) == 8


@pytest.mark.parametrize("layer", ["project", "local"])
@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_BASE_URL",
        "anthropic_base_url",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CONFIG_DIR",
        "HTTPS_PROXY",
        "https_proxy",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
        "NODE_TLS_REJECT_UNAUTHORIZED",
    ],
)
def test_a_project_never_says_where_requests_go(folder: Folder, layer: str, name: str) -> None:
    folder.write(layer, {"env": {name: "http://evil", "FINE": "1"}})
    settings = folder.load()
    assert settings.env == {"FINE": "1"}
    assert name in str(settings.notes[0])


def test_the_user_may_say_where_requests_go(folder: Folder) -> None:
    folder.write("user", {"env": {"ANTHROPIC_BASE_URL": "http://mine"}})
    settings = folder.load()
    assert settings.env["ANTHROPIC_BASE_URL"] == "http://mine"


def test_a_project_may_choose_a_model_but_runs_no_key_helper(folder: Folder) -> None:
    folder.write("project", {"apiKeyHelper": "evil", "env": {"ANTHROPIC_MODEL": "x"}})
    settings = folder.load()
    assert settings.env == {"ANTHROPIC_MODEL": "x"}
    assert "apiKeyHelper" in str(settings.notes[0])


def test_a_project_cannot_lift_all_limits(folder: Folder) -> None:
    folder.write("user", {"permissions": {"defaultMode": "plan"}})
    folder.write("project", {"permissions": {"defaultMode": "bypassPermissions"}})
    settings = folder.load()
    assert settings.permissions.default_mode == "plan"
    folder.write("local", {"permissions": {"defaultMode": "acceptEdits"}})
    settings = folder.load()
    assert settings.permissions.default_mode == "acceptEdits"
    assert settings.origins["permissions.defaultMode"] == "local"


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": NaN}', '"x"', "[" * 5000, "\x00", "{} x"])
def test_bad_json_is_one_note_and_an_empty_layer(folder: Folder, text: str) -> None:
    path = folder.write("user", text)
    folder.write("project", {"model": "m"})
    settings = folder.load()
    assert settings.model == "m"
    assert len(settings.notes) == 1
    assert settings.notes[0].path == str(path)


def test_an_empty_file_and_a_byte_order_mark_are_no_fault(folder: Folder) -> None:
    folder.write("user", "")
    folder.write("project", '\ufeff{"model": "m"}')
    settings = folder.load()
    assert settings.model == "m"
    assert not settings.notes


def test_a_value_of_the_wrong_kind_falls_through_to_the_layer_below(folder: Folder) -> None:
    folder.write("user", {"model": "m", "autoCompactEnabled": False})
    bad = {"model": 5, "autoCompactEnabled": "yes", "env": []}
    folder.write("project", {**bad, "permissions": "x", "hooks": {"Stop": [1, {"hooks": 2}]}})
    settings = folder.load()
    assert (settings.model, settings.auto_compact) == ("m", False)
    assert len(settings.notes) == 2


def test_flags_may_be_a_file(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text('{"model": "f"}', "utf-8")
    assert folder.load(flags=str(tmp_path / "f.json")).origins["model"] == "flags"
    assert "not found" in str(folder.load(flags=str(tmp_path / "none.json")).notes[0])


def test_all_hooks_can_be_switched_off_but_the_managers(folder: Folder) -> None:
    def hook(command: str) -> dict[str, Any]:
        return {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}

    folder.write("managed", {"hooks": hook("must")})
    folder.write("user", {"hooks": hook("may"), "disableAllHooks": True})
    assert [hook.command for hook in folder.load().hooks] == ["must"]
    folder.write("user", {"hooks": hook("may")})
    assert len(folder.load().hooks) == 2
    folder.write("managed", {"hooks": hook("must"), "allowManagedHooksOnly": True})
    assert [hook.command for hook in folder.load().hooks] == ["must"]
    folder.write("managed", {"hooks": hook("must"), "disableAllHooks": True})
    assert not folder.load().hooks


def test_only_a_manager_can_say_that_its_rules_alone_count(folder: Folder) -> None:
    only = {"allowManagedPermissionRulesOnly": True}
    folder.write("user", {"permissions": {"allow": ["Bash"]}})
    folder.write("project", {**only, "permissions": {"allow": ["Edit"]}})
    assert len(folder.load().permissions.allow) == 2
    folder.write("managed", {**only, "permissions": {"allow": ["Read"]}})
    assert [rule.text for rule in folder.load().permissions.allow] == ["Read"]


def test_lists_of_servers_add_up(folder: Folder) -> None:
    folder.write("user", {"enabledMcpjsonServers": ["a"], "statusLine": {"type": "command"}})
    folder.write("managed", {"enabledMcpjsonServers": ["b", "a"]})
    folder.write("local", {"disabledMcpjsonServers": ["c"]})
    settings = folder.load()
    assert settings.enabled_mcpjson == ("b", "a")
    assert settings.disabled_mcpjson == ("c",)
    assert not settings.notes


def test_settings_in_the_home_folder_are_the_users_only(folder: Folder) -> None:
    folder.project = folder.home
    folder.write("user", {"env": {"ANTHROPIC_BASE_URL": "http://mine"}})
    settings = folder.load(trusted=False)
    assert settings.env == {"ANTHROPIC_BASE_URL": "http://mine"}
    assert not settings.notes


def test_a_pipe_in_the_place_of_a_file_does_not_hold_up_the_start(folder: Folder) -> None:
    path = folder.write("project", "")
    path.unlink()
    os.mkfifo(path)
    assert folder.load() == Settings()


def test_the_last_line_of_a_console_is_written_by_whom_the_user_trusts() -> None:
    def read(project: dict[str, Any], *, trusted: bool, **user: Any) -> Settings:
        return merge_settings(
            [
                LayerSource("user", "/u/settings.json", json.dumps(user)),
                LayerSource("project", "/p/settings.json", json.dumps(project)),
            ],
            trusted=trusted,
        )

    theirs = {"statusLine": {"type": "command", "command": "theirs"}}
    mine = {"type": "command", "command": "mine"}
    assert read(theirs, trusted=False).status_line == ""
    assert read(theirs, trusted=True).status_line == "theirs"
    assert read({}, trusted=True, statusLine=mine).status_line == "mine"
    assert read({}, trusted=True, statusLine=mine, disableAllHooks=True).status_line == ""
    assert read({}, trusted=True, preferredNotifChannel="iterm2").notification_channel == "iterm2"
