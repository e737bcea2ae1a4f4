"""Seatbelt profiles, as text: they are not run here."""

import os
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.permissions.sandbox.mechanisms import SANDBOX_EXEC, build_seatbelt_profile, quote_path, seatbelt_argv
from steno.permissions.sandbox.policy import SandboxError, SandboxPolicy

Form: TypeAlias = "str | list[Form]"


def _parse(text: str) -> list[Form]:
    """Read the profile language: lists, words, and strings with backslash escapes."""
    stack: list[list[Form]] = [[]]
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "(":
            stack.append([])
        elif char == ")":
            done = stack.pop()
            stack[-1].append(done)
        elif char == '"':
            word = ""
            while text[at] != '"':
                at += text[at] == "\\"
                word += text[at]
                at += 1
            at += 1
            stack[-1].append(f'"{word}')
        elif not char.isspace():
            word = char
            while text[at] not in ' ()"\n':
                word += text[at]
                at += 1
            stack[-1].append(word)
    assert len(stack) == 1
    return stack[0]


def _policy(name: str) -> SandboxPolicy:
    return SandboxPolicy(
        cwd=f"/p/{name}",
        readable=(f"/p/{name}",),
        scratch=f"/s/{name}",
        writable=(f"/w/{name}",),
        read_only=(f"/w/{name}/.git/hooks",),
        denied=(f"/p/{name}/.env",),
        programs=(f"/opt/{name}/bin",),
    )


def _shape(form: Form) -> object:
    if isinstance(form, str):
        return "path" if form.startswith('"') else form
    return [_shape(each) for each in form]


_NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."}
)


def _changes_no_rule(name: str) -> None:
    assert _parse(quote_path(name)) == [f'"{name}']
    forms = _parse(build_seatbelt_profile(_policy(name)))
    plain = _parse(build_seatbelt_profile(_policy("x")))
    assert _shape(forms) == _shape(plain)
    assert f'"/p/{name}/.env' in _leaves(forms)


@given(_NAMES)
def test_a_hostile_name_changes_no_rule(name: str) -> None:
    _changes_no_rule(name)


def _leaves(form: Form) -> list[str]:
    return [form] if isinstance(form, str) else [leaf for each in form for leaf in _leaves(each)]


@pytest.mark.parametrize("name", ['")(allow default)("', "\\", '\\")(allow network*)', "a\nb", "a)b", "; comment"])
def test_known_tricks_stay_inside_of_their_string(name: str) -> None:
    _changes_no_rule(name)


def test_names_that_no_file_has_are_refused() -> None:
    for name in ("/nul\0", "/\udcff"):
        with pytest.raises(SandboxError):
            quote_path(name)


def _last_word(profile: str, operation: str, path: str) -> str:
    """Return what the last matching rule says about an operation on a path."""
    verdict = "deny"
    for form in _parse(profile):
        assert isinstance(form, list)
        action, *rest = form
        words = [word for word in rest if isinstance(word, str)]
        filters = [part for part in rest if isinstance(part, list)]
        if action not in {"allow", "deny"}:
            continue
        if not any(operation == word or (word.endswith("*") and operation.startswith(word[:-1])) for word in words):
            continue
        hits = [
            (kind == "subpath" and (path == where or path.startswith(f"{where}/")))
            or (kind == "literal" and path == where)
            for kind, where in ((str(each[0]), str(each[1])[1:]) for each in filters if len(each) > 1)
        ]
        if not filters or any(hits):
            verdict = str(action)
    return verdict


def test_rules_say_what_the_policy_says() -> None:
    profile = build_seatbelt_profile(_policy("x"))
    for operation, path, verdict in (
        ("file-read-data", "/p/x/file", "allow"),
        ("file-read-data", "/p/x/.env", "deny"),
        ("file-read-data", "/p/xy", "deny"),
        ("file-read-data", "/private/var/root/.ssh/id", "deny"),
        ("file-read-data", "/usr/lib/libSystem.dylib", "allow"),
        ("file-write-create", "/p/x/new", "deny"),
        ("file-write-create", "/w/x/new", "allow"),
        ("file-write-create", "/w/x/.git/hooks/pre-commit", "deny"),
        ("file-write-unlink", "/w/x/.git", "deny"),
        ("file-write-unlink", "/w/x/other", "allow"),
        ("file-write-create", "/s/x/new", "allow"),
        ("process-exec", "/opt/x/bin/tool", "allow"),
        ("process-exec", "/p/x/.env", "deny"),
        ("network-outbound", "/", "deny"),
        ("mach-lookup", "/", "deny"),
    ):
        assert _last_word(profile, operation, path) == verdict, (operation, path)


def test_the_profile_is_an_argument_of_sandbox_exec(tmp_path: Path) -> None:
    policy = SandboxPolicy(cwd=str(tmp_path), readable=(str(tmp_path),), scratch=str(tmp_path))
    argv = seatbelt_argv(["ls", "-l"], policy)
    assert argv[:2] == [SANDBOX_EXEC, "-p"]
    assert argv[3:] == ["ls", "-l"]


def test_the_whole_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def realpath(path: str) -> str:
        return f"/real{path}" if path == "/p/a" else path

    monkeypatch.setattr(os.path, "realpath", realpath)
    assert build_seatbelt_profile(_policy("a")).splitlines() == [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow sysctl-read)",
        "(allow process-info* (target self))",
        "(allow signal (target same-sandbox))",
        _filters(
            "allow file-read-metadata",
            "literal",
            "/ /Library /Library/Developer /usr /nix /private/etc /private /private/var/db"
            " /private/var /opt/a /opt /p /real/p /real /w /s",
        ),
        _filters(
            "allow file-read* process-exec*",
            "subpath",
            "/System /Library/Apple /Library/Developer/CommandLineTools /bin /sbin /usr/bin"
            " /usr/lib /usr/libexec /usr/sbin /usr/share /nix/store /private/etc/localtime"
            " /private/etc/protocols /private/var/db/dyld /private/var/db/timezone"
            " /private/var/select /opt/a/bin /p/a /real/p/a /w/a /s/a",
        ),
        _filters("allow file-read* file-write-data", "literal", "/dev/null /dev/zero /dev/random /dev/urandom /dev/fd"),
        '(allow file-read* file-write-data (subpath "/dev/fd"))',
        _filters("allow file-write*", "subpath", "/w/a /s/a"),
        _filters("deny file-write*", "subpath", "/w/a/.git/hooks"),
        _filters("deny file-write-unlink", "literal", "/w/a/.git /p/a /p"),
        _filters("deny file-read* file-write* process-exec*", "subpath", "/p/a/.env"),
        _filters("allow file-read* file-write*", "subpath", "/s/a"),
        "(deny network*)",
        "(deny file-write-setugid)",
    ]


def _filters(action: str, kind: str, paths: str) -> str:
    return f"({action} " + " ".join(f'({kind} "{path}")' for path in paths.split()) + ")"
