"""A record read again is the record that was read first: bytes, notes and spans."""

import pytest
from tests.builders import session, text, tool

from steno.errors import Unreadable
from steno.format.lines import read_bytes
from steno.format.records import Gap, Record
from steno.format.source import BytesSource
from steno.session.transcript import load

MODE = b'{"type":"mode","mode":"normal","sessionId":"s"}'
TAG = b'{"type":"tag","tag":"x","sessionId":"s"}'
SOUND = session(seed=5).user("one").assistant(text("two"), tool("Read", file_path="/a")).result("x")


@pytest.mark.parametrize(
    "data",
    [
        SOUND.bytes(),
        MODE + b"\n" + MODE + TAG + b"\n",
        MODE + b"\n" + TAG[:20] + MODE + b"\n",
        MODE + b"\n" + bytes(300) + TAG + b"\n",
        bytes(2 << 20) + TAG + b"\n",
        MODE + b"\r\n" + TAG + b"\r\n",
        MODE + b"\r\n" + TAG + b"\r",
        MODE + b"\r" + TAG + b"\r\n",
        MODE + b"\n" + b'{"type":"tag","tag":"a\tb"}\n',
        MODE + b"\n" + b'{"type":"tag","tag":NaN}\r\n',
        MODE + b"\n" + b'{"type":"tag","tag":"a\tb"}\r' + MODE,
        b"\xef\xbb\xbf" + MODE + b"\n" + b'{"type":"tag","tag":"\xff"}\n' + TAG,
    ],
)
def test_a_record_read_again_has_the_notes_and_spans_it_had(data: bytes) -> None:
    first = [piece for piece in read_bytes(data) if isinstance(piece, Record)]
    transcript = load(BytesSource(data))
    assert len(first) == len(transcript.nodes) > 0
    for node, record in zip(transcript.nodes, first, strict=True):
        again = transcript.record(node)
        assert (again.raw, again.offset) == (record.raw, record.offset)
        assert again.damage == record.damage
        assert again.whole == record.whole == node.whole


def test_notes_are_not_kept_for_every_line_of_a_windows_file() -> None:
    transcript = load(BytesSource((MODE + b"\r\n") * 50 + MODE + TAG + b"\r\n"))
    assert list(transcript.notes) == [transcript.nodes[-1].offset]


def test_pieces_are_read_with_the_cap_of_the_load() -> None:
    long = b'{"type":"mode","mode":"' + b"x" * 500 + b'"}'
    transcript = load(BytesSource(long + b"\n" + MODE + b"\n"), cap=100)
    assert [isinstance(piece, Gap) for piece in transcript.pieces()] == [True, False]
    assert len(transcript.gaps) == 1


class Shrinking(BytesSource):
    """A file that is cut short, or written over, behind the reader's back."""

    def change(self, data: bytes) -> None:
        self._data = data


@pytest.mark.parametrize("now", [b"", MODE + b"\n", MODE + b"\n" + TAG[:-1], bytes(400)])
def test_a_file_that_changed_since_it_was_loaded_is_said_to_be_unreadable(now: bytes) -> None:
    source = Shrinking(MODE + b"\n" + TAG + b"\n")
    transcript = load(source)
    source.change(now)
    with pytest.raises(Unreadable, match="changed while it was read") as raised:
        transcript.record(transcript.nodes[1])
    assert raised.value.hint


def test_a_transcript_that_holds_its_records_never_reads_them_again() -> None:
    transcript = load(BytesSource(SOUND.bytes()), keep=True)
    transcript.source = BytesSource(b"")
    assert [transcript.record(node).offset for node in transcript.nodes] == [node.offset for node in transcript.nodes]
