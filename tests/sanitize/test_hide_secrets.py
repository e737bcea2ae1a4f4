"""What looks like a secret is masked; what does not is left alone."""

import pytest

from steno.sanitize.display_masking import PLAIN_MASK, hide_secrets

_LETTERS = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"


@pytest.mark.parametrize(
    "secret",
    [
        f"sk-ant-api03-{_LETTERS}",
        f"ghp_{_LETTERS}",
        f"github_pat_{_LETTERS}",
        f"glpat-{_LETTERS[:20]}",
        "xoxb-1234567890-abcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
        f"AIza{_LETTERS}",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        f"npm_{_LETTERS}",
        f"hf_{_LETTERS[:20]}",
        f"dckr_pat_{_LETTERS[:24]}",
        f"hvs.{_LETTERS[:26]}",
        "glc_c2hvcnQgYnV0IGEga2V5",
        "Z2hwX0FiQ2RFZkdoSWpLbE1uT3BRclN0VXZXeFl6MDEyMzQ1Njc4OQ==",
        "4f9b2c8d1e7a6f5b3c0d9e8f7a6b5c4d3e2f1a0b",
    ],
)
@pytest.mark.parametrize("around", ["{}", "run --with {} --now", '"x": "{}"', "a={};b=1"])
def test_a_key_is_masked_wherever_it_stands(secret: str, around: str) -> None:
    hidden = hide_secrets(around.format(secret))
    assert secret not in hidden
    assert PLAIN_MASK in hidden


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("curl -H 'Authorization: Bearer abc.def-123456'", "abc.def"),
        ("curl -u x -H 'authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("notify --token hunter2 --done", "hunter2"),
        ("notify --token hunter --done", "hunter"),
        ("the token hunter2 is old", "hunter2"),
        ("deploy --api-key=hunter2", "hunter2"),
        ("DB_PASSWORD=hunter2 make", "hunter2"),
        ("psql postgres://ada:hunter2@db/x", "hunter2"),
    ],
)
def test_what_is_called_a_secret_is_masked(text: str, gone: str) -> None:
    assert gone not in hide_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "Bash(python -m pytest:*)",
        "claude-opus-5-5",
        "Token streaming works, and the authentication bug is gone.",
        "python scripts/format_everything_before_the_commit.py --check",
        "https://mcp.example/path",
        '{"cleanupPeriodDays": 30, "maxTokens": 4096}',
        "/home/ada/a-rather-long-folder-name/with/many/parts/in/it",
    ],
)
def test_ordinary_settings_stay_as_they_are(text: str) -> None:
    assert hide_secrets(text) == text


@pytest.mark.parametrize("text", ["a" * 400_000, "token" * 40_000, "-eyJ" * 10_000, "-sk-" * 20_000])
def test_a_long_run_of_letters_takes_no_more_than_its_length(text: str) -> None:
    """What takes the square of it would not end before the test is given up."""
    assert len(hide_secrets(text)) <= len(text)
