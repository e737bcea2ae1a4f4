"""What must not leave the machine is masked, in whatever disguise; everything else stays."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sanitize.synthetic import ENCODINGS, SECRETS, secrets, traces

from steno.sanitize.secret_masker import MASK_IDS, SECRET_FAMILIES, Masker, find_edits

_AROUND = ("{}", "export K={} # now", "line one\n{}\nline three", "see {} here")
_EACH = 50
_ROOT = Path(__file__).parents[2]


def test_made_up_secrets_are_of_families_that_are_known() -> None:
    assert {family.id for family in SECRET_FAMILIES} >= set(SECRETS)
    assert len(SECRETS) >= 20
    assert len(ENCODINGS) >= 10


def test_secrets_of_every_family_are_masked_in_every_disguise() -> None:
    cases: list[tuple[str, str, set[str]]] = []
    lines: list[str] = []
    for number, (family, secret, core) in enumerate(secrets(7, _EACH)):
        for name, disguise in ENCODINGS.items():
            hidden = disguise(secret)
            said = _AROUND[number % len(_AROUND)].format(hidden)
            lines.append(json.dumps({"type": "user", "content": said}, ensure_ascii=False))
            cases.append((family, name, traces(secret, core, name)))
    masked = Masker().mask_bytes("\n".join(lines).encode()).decode().split("\n")
    lost: Counter[tuple[str, str]] = Counter()
    for (family, name, left), line in zip(cases, masked, strict=True):
        # Masking a line of JSON leaves a line of JSON.
        said = json.loads(line)["content"]
        if "<masked:" not in said or any(trace in said for trace in left):
            lost[family, name] += 1
    assert 1 - lost.total() / len(cases) >= 0.99, lost.most_common(10)
    for name in ENCODINGS:
        share = sum(count for (_, each), count in lost.items() if each == name)
        assert share <= 0.02 * len(SECRETS) * _EACH, name


def _clean_lines() -> Iterator[bytes]:
    for kind in ("src/**/*.py", "docs/**/*.md", "src/**/*.js", "bench/*.py", "tools/*.py"):
        for path in _ROOT.glob(kind):
            yield from path.read_bytes().split(b"\n")


_HOLDS = (b"masker.text", b"hide_secrets", b"k3y-of-ada")
"""Examples of secrets in our own pages."""


def test_hardly_any_clean_line_is_touched() -> None:
    lines = [line for line in _clean_lines() if not any(each in line for each in _HOLDS)]
    touched = _touched(lines)
    assert len(lines) > 50_000
    assert len(touched) <= len(lines) / 20_000, touched[:10]


def test_hardly_any_clean_line_of_real_sessions_is_touched(shared: Path) -> None:
    files = sorted(shared.glob("corpus/real-client/2.1.325/**/*.jsonl"))
    lines = [line for path in files for line in path.read_bytes().split(b"\n")]
    touched = _touched(lines)
    assert len(lines) > 500
    assert touched == []


def _touched(lines: list[bytes]) -> list[bytes]:
    """Return the lines in which something but a home folder or an address is masked."""
    data = b"\n".join(lines)
    found = [edit for edit in find_edits(data) if edit.family not in ("home", "e-mail")]
    return [data[edit.begin - 30 : edit.end] for edit in found]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ada/tool/x.py", "~/tool/x.py"),
        ('"/Users/' + 'ada.lovelace"', '"~"'),
        (r"C:\\Users\\ada\\x", r"~\\x"),
        ("-home-ada-work-tool", "-home-user-work-tool"),
        ("\\n/home/ada/x", "\\n~/x"),
        ("https://site.org/home/news", "https://site.org/home/news"),
        ("write to ada@lovelace.org, please", "write to <masked:e-mail>, please"),
        ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ("pip install x@1.2.3 y@latest", "pip install x@1.2.3 y@latest"),
        ("@pytest.mark.slow", "@pytest.mark.slow"),
        ("noreply@anthropic.com", "noreply@anthropic.com"),
    ],
)
def test_who_somebody_is_is_masked_and_nothing_like_it(text: str, shown: str) -> None:
    assert Masker().mask_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password(user)",
        'token: str = ""',
        "max_tokens: 4096, output_tokens=12345",
        "sk-learn and task-list-of-things-to-do-here-now",
        "commit 4f9b2c8d1e7a6f5b3c0d9e8f7a6b5c4d3e2f1a0b",
        "toolu_01A09q90qw90lq917835lq9 msg_01XFDUDYJgAACzvnptvVoYEL",
        "550e8400-e29b-41d4-a716-446655440000",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "secret_key: ${SECRET_KEY}",
        "http://localhost:8080/x@y",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert Masker().mask_text(text) == text


def test_a_receipt_says_where_and_how_many_and_never_what() -> None:
    masker = Masker()
    key = "ghp_4f9b2c8d1e7a6f5b3c0d9e8f7a6b5c4d3e2f"
    lines = [b'{"a":1}', b'{"b":"%s"}' % key.encode(), b'{"c":"/home/ada/x"}']
    masker.mask_bytes(b"\n".join(lines), "7c1f")
    receipt = masker.receipt
    assert receipt.counts == {"github-token": 1, "home": 1}
    assert [(place.where, place.at) for place in receipt.places] == [("7c1f", 8)]
    assert key not in repr(receipt)
    assert set(receipt.counts) <= set(MASK_IDS)


@given(st.text(max_size=200))
def test_whatever_is_masked_the_line_stays_json(text: str) -> None:
    key = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx0123456789"
    said = f"{text}\n{key}\t{text}\\n{key}"
    line = json.dumps({"said": said}).encode()
    shown = json.loads(Masker().mask_bytes(line))["said"]
    assert key not in shown


def test_a_token_by_its_name_is_masked_however_deep_inside_of_json() -> None:
    text, shown = '{"token": "Xk9mQ2vL8aB3cD"}', '{"token": "<masked:named-secret>"}'
    for _ in range(3):
        assert Masker().mask_text(text) == shown
        text, shown = json.dumps(text), json.dumps(shown)


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_a_password_in_the_environment_may_be_a_word_and_quoted(quote: str) -> None:
    said = f"export DB_PASSWORD={quote}hunter-two{quote}; make"
    for text in (said, json.dumps(said), json.dumps(json.dumps(said))):
        masked = Masker().mask_bytes(text.encode()).decode()
        assert "hunter" not in masked
        assert masked.replace("<masked:env-password>", "hunter-two") == text
    assert Masker().mask_text(f"DB_PASSWORD={quote}$OTHER{quote}") == f"DB_PASSWORD={quote}$OTHER{quote}"
