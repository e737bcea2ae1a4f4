"""The environment of programs: no secrets, and git that runs no program of a repository's."""

import os
import subprocess
from pathlib import Path

import pytest

from steno.permissions.program_environment import (
    _safe_folders,
    approved_environment,
    git_settings,
    program_folders,
    sandbox_environment,
)

_PROGRAMS = [
    ("core.fsmonitor", "{}"),
    ("core.pager", "{}"),
    ("core.sshCommand", "{}"),
    ("diff.external", "{}"),
    ("diff.driver.textconv", "{}"),
    ("diff.driver.command", "{}"),
    ("filter.driver.clean", "{}"),
    ("filter.driver.process", "{}"),
    ("alias.st", "!{}"),
    ("pager.log", "{}"),
    ("pager.diff", "{}"),
    ("credential.helper", "!{}"),
    ("gpg.program", "{}"),
    ("log.showSignature", "true"),
]
_COMMANDS = ("status", "diff HEAD", "log -p", "show", "st", "diff --stat HEAD", "blame a.txt", "log")


def _git(folder: Path, *words: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    _git(folder, "init", "-q")
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        _git(folder, "config", name, value)
    (folder / ".gitattributes").write_text("*.txt diff=driver filter=driver\n", encoding="utf-8")
    (folder / "a.txt").write_text("one\n", encoding="utf-8")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "first")
    (folder / "a.txt").write_text("two\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("name", "value"), _PROGRAMS)
@pytest.mark.parametrize("alone", [True, False])
def test_no_program_of_a_repository_runs(
    repository: Path, tmp_path: Path, name: str, value: str, *, alone: bool
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 0\n", encoding="utf-8")
    program.chmod(0o755)
    _git(repository, "config", name, value.format(program))
    env = {**sandbox_environment(os.environ), **git_settings([str(repository)], isolated=alone)}
    for command in _COMMANDS:
        _git(repository, *command.split(), env=env)
    assert not (tmp_path / "ran").exists()


def test_the_programs_would_run_otherwise(repository: Path, tmp_path: Path) -> None:
    _git(repository, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    _git(repository, "status")
    assert (tmp_path / "ran").exists()


def test_git_still_says_what_changed(repository: Path) -> None:
    for name, value in (("diff.external", "evil"), ("diff.driver.textconv", "evil")):
        _git(repository, "config", name, value)
    _git(repository, "config", "filter.driver.required", "true")
    _git(repository, "config", "filter.driver.clean", "evil")
    env = {**sandbox_environment(os.environ), **git_settings([str(repository)], isolated=True)}
    assert "-one\n+two\n" in _git(repository, "diff", env=env)
    assert _git(repository, "status", "-s", env=env).split() == ["M", "a.txt"]
    assert "first" in _git(repository, "log", "--oneline", env=env)


def test_hooks_do_not_run(repository: Path, tmp_path: Path) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    hook.chmod(0o755)
    env = {**approved_environment(os.environ), **git_settings([str(repository)])}
    _git(repository, "commit", "-qam", "second", env=env)
    assert "second" in _git(repository, "log", "-1", "--oneline")
    assert not (tmp_path / "ran").exists()


def test_the_settings_of_the_user_stay_for_what_a_rule_allows(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[alias]\n\tmine = log --oneline\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    env = {**approved_environment(os.environ), **git_settings([str(repository)])}
    assert "first" in _git(repository, "mine", env=env)


@pytest.mark.parametrize(
    "name",
    [
        *("ANTHROPIC_API_KEY", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "DB_PASSWORD"),
        *("PGPASSWORD", "MY_SECRET", "SENTRY_DSN", "X_API_KEY", "OPENAI_KEY", "SLACK_WEBHOOK_TOKEN"),
        *("AWS_SESSION_TOKEN", "DJANGO_SECRET_KEY", "COOKIE", "HTTP_AUTH", "github_pat", "API_CREDENTIALS"),
    ],
)
def test_approved_programs_get_no_secrets(name: str) -> None:
    assert approved_environment({name: "s3cr3t-v4lue", "LANG": "C"}) == {"LANG": "C"}
    assert name not in sandbox_environment({name: "s3cr3t-v4lue"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("SSH_AUTH_SOCK", "/run/x"), ("PWD", "/a"), ("EDITOR", "vi"), ("VIRTUAL_ENV", "/v")),
        *(("GOOGLE_APPLICATION_CREDENTIALS", "/k.json"), ("MAX_TOKENS", "4096"), ("KEYMAP", "de")),
        *(("DATABASE_URL", "postgres://localhost/db"), ("USE_AUTH", "true"), ("MONKEY", "x")),
    ],
)
def test_approved_programs_get_the_rest(name: str, value: str) -> None:
    assert approved_environment({name: value}) == {name: value}


def test_what_the_user_passes_on_purpose_is_passed() -> None:
    env = {"GH_TOKEN": "a", "NPM_TOKEN": "b", "X_TOKEN": "c", "STENO_PASS_ENV": "GH_TOKEN, NPM_TOKEN"}
    assert set(approved_environment(env)) == {"GH_TOKEN", "NPM_TOKEN"}
    assert set(approved_environment({"X_TOKEN": "c"}, ["X_TOKEN"])) == {"X_TOKEN"}


def test_confined_programs_get_a_short_list(tmp_path: Path) -> None:
    inside = tmp_path / "node_modules" / ".bin"
    inside.mkdir(parents=True)
    env = {
        "PATH": f"{inside}:.:relative:/usr/bin::/bin",
        "HOME": "/h",
        "LANG": "C",
        "SSH_AUTH_SOCK": "/s",
        "BASH_ENV": "/x",
        "LD_PRELOAD": "/l",
        "BASH_FUNC_ls%%": "() { x; }",
        "GIT_DIR": "/g",
        "PROMPT_COMMAND": "x",
        "DISPLAY": ":0",
        "http_proxy": "p",
    }
    found = sandbox_environment(env, scratch="/scratch", folders=(str(tmp_path),))
    assert found == {
        "HOME": "/h",
        "LANG": "C",
        "PATH": "/usr/bin:/bin",
        "TMPDIR": "/scratch",
        "XDG_CONFIG_HOME": "/scratch",
        "XDG_CACHE_HOME": "/scratch",
    }
    assert program_folders({"PATH": "relative"}) == ["/usr/bin", "/bin"]


def _settings_of(env: dict[str, str]) -> list[tuple[str, str]]:
    count = int(env["GIT_CONFIG_COUNT"])
    return [(env[f"GIT_CONFIG_KEY_{at}"], env[f"GIT_CONFIG_VALUE_{at}"]) for at in range(count)]


def test_folders_that_the_user_calls_safe_stay_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[safe]\n\tdirectory = /srv/one\n\tdirectory = *\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    _safe_folders.cache_clear()
    try:
        safe = [each for each in _settings_of(git_settings([], isolated=True)) if "safe.d" in each[0]]
        assert safe[-2:] == [("safe.directory", "/srv/one"), ("safe.directory", "*")]
        assert "safe.directory" not in dict(_settings_of(git_settings([])))
    finally:
        _safe_folders.cache_clear()


def test_settings_of_a_submodule_run_nothing(repository: Path, tmp_path: Path) -> None:
    """Whether a submodule is changed is looked up by a git in it, with settings of its own."""
    inner = repository / "inner"
    inner.mkdir()
    _git(inner, "init", "-q")
    (inner / "b.txt").write_text("one\n", encoding="utf-8")
    _git(inner, "add", ".")
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    _git(inner, *author, "commit", "-q", "-m", "first")
    _git(repository, "add", "inner")
    _git(repository, "commit", "-q", "-m", "second")
    mark = tmp_path / "mark"
    (inner / ".gitattributes").write_text("* filter=driver\n", encoding="utf-8")
    _git(inner, "config", "filter.driver.clean", f"touch {mark}; cat")
    (inner / "b.txt").write_text("two\n", encoding="utf-8")
    env = {**os.environ, **git_settings([str(repository)])}
    for words in (["diff"], ["diff", "HEAD"], ["diff", "--stat"]):
        _git(repository, *words, env=env)
        assert not mark.exists(), words
    without = {name: value for name, value in env.items() if value != "diff.ignoreSubmodules"}
    place = next(name for name, value in env.items() if value == "diff.ignoreSubmodules")
    _git(repository, "diff", env={**without, place: "x.unused"})
    assert mark.exists(), "the test itself shows nothing"


def test_names_of_programs_are_taken_from_the_repository_alone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[alias]\n\tmine = status\n[pager]\n\tlog = less\n")
    monkeypatch.setenv("HOME", str(home))
    _git(repository, "config", "alias.theirs", "!evil")
    _git(repository, "config", "filter.x.clean", "evil")
    found = _settings_of(git_settings([str(repository), str(repository), str(tmp_path / "none")]))
    assert found[-2:] == [("alias.theirs", ""), ("filter.x.clean", "")]
    assert [name for name, _ in found].count("alias.theirs") == 1
    assert not {"alias.mine", "pager.log"} & set(dict(found))
