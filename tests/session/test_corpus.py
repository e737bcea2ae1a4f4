"""Every real file loads, and what would be sent of it keeps the API's rules."""

from pathlib import Path

import pytest
from tests.corpus import transcripts

from steno.format.source import BytesSource
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import CLIENTS
from steno.session.resume.replay import as_resumed, valid_messages
from steno.session.transcript import load

pytestmark = pytest.mark.corpus


def real(shared: Path) -> list[Path]:
    return [path for path in transcripts(shared) if "resume-cases" not in path.parts]


def test_what_would_be_sent_of_real_files_keeps_the_rules(shared: Path) -> None:
    """One file is a window that begins inside a conversation: there the assistant begins."""
    broken: dict[str, list[str]] = {}
    for path in real(shared):
        found = find_breaches(as_resumed(load(BytesSource(path.read_bytes()))) or [])
        if found:
            broken[path.name] = [breach.rule for breach in found]
    assert broken == {"large-conversation.jsonl": ["role.first"]}


def test_valid_messages_keep_the_rules_without_exception(shared: Path) -> None:
    files = transcripts(shared)
    for path in files:
        assert find_breaches(valid_messages(load(BytesSource(path.read_bytes())))) == [], path
    assert len(files) > 400


def test_every_client_reads_every_real_file(shared: Path) -> None:
    for path in real(shared):
        transcript = load(BytesSource(path.read_bytes()))
        for client in CLIENTS:
            as_resumed(transcript, client)
