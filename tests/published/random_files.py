"""Correct files of random conversations: of each dialect, and of the client with records of both."""

import random
from typing import Any, NamedTuple

from tests.published.forms import Client, Flat, Nested, call

FORMS = ("000", "004", "client")
_TOOLS = ("Read", "Bash", "Grep")
_TIME = 1767261600000


class Drawn(NamedTuple):
    """A file, and what must and must not be sent of it."""

    data: bytes
    present: list[str]
    absent: list[str]
    prompts: list[str]


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.present: list[str] = []
        self.absent: list[str] = []
        self.prompts: list[str] = []
        self._words = 0
        self._calls = 0

    def word(self, *, hidden: bool = False) -> str:
        self._words += 1
        text = f"{'H' if hidden else 'W'}{self._words:03d}x"
        (self.absent if hidden else self.present).append(text)
        return text

    def asked(self, *, hidden: bool = False) -> str:
        text = self.word(hidden=hidden)
        if not hidden:
            self.prompts.append(text)
        return text

    def name(self) -> str:
        self._calls += 1
        return f"toolu_{self._calls}"


def draw(form: str, seed: int) -> Drawn:
    """Return a random file; the same for the same seed."""
    writer = _Writer(random.Random(f"{form} {seed}"))
    write = {"000": _write_flat, "004": _write_nested, "client": _write_client}[form]
    data = write(writer)
    return Drawn(data, writer.present, writer.absent, writer.prompts)


def _write_flat(w: _Writer) -> bytes:
    file = Flat()
    for number in range(w.rng.randint(1, 6)):
        gone = number > 0 and w.rng.random() < 0.2
        fields: dict[str, Any] = {"isDeleted": True} if gone else {}
        file.user(w.asked(hidden=gone), **fields)
        for _ in range(w.rng.randint(0, 2)):
            _call_flat(w, file, fields)
            file.says(w.word(hidden=gone), **fields)
        if not gone and w.rng.random() < 0.2:
            file.says(w.word(), isAborted=True)
        if not gone and w.rng.random() < 0.2:
            file.compacts("compacting")
            figures = {"preservedMessages": 999, "totalMessages": 999, "compressionRatio": 1}
            file.compacts("compacted", metadata=figures)
    return file.data()


def _call_flat(w: _Writer, file: Flat, fields: dict[str, Any]) -> None:
    calls = [file.calls(w.rng.choice(_TOOLS), **fields) for _ in range(w.rng.randint(1, 4))]
    where = w.rng.choice(("own", "last", "chain"))
    for own in calls:
        place = {"own": {"parentUuid": own}, "last": {"parentUuid": calls[-1]}, "chain": {}}[where]
        write = file.fails if w.rng.random() < 0.3 else file.result
        write(w.word(hidden=bool(fields)), **{**fields, **place})


def _write_nested(w: _Writer) -> bytes:
    file = Nested()
    for number in range(w.rng.randint(1, 6)):
        gone = number > 0 and w.rng.random() < 0.2
        fields: dict[str, Any] = {"isDeleted": True} if gone else {}
        file.human(w.asked(hidden=gone), **fields)
        for _ in range(w.rng.randint(0, 2)):
            _call_nested(w, file, fields)
            file.says(w.word(hidden=gone), **fields)
        if not gone and w.rng.random() < 0.3:
            fork = file.records[-1]["uuid"]
            file.human(w.asked(hidden=True), is_active=False)
            file.says(w.word(hidden=True), is_active=w.rng.choice((False, None)))
            file.human(w.asked(), parentUuid=fork, is_active=w.rng.choice((True, None)))
            file.says(w.word(), is_active=True)
    for record in file.records:
        if record.get("is_active", True) is None:
            del record["is_active"]
    return file.data()


def _call_nested(w: _Writer, file: Nested | Client, fields: dict[str, Any]) -> None:
    calls = [call(w.name(), w.rng.choice(_TOOLS), file_path="a") for _ in range(w.rng.randint(1, 3))]
    if isinstance(file, Nested) and w.rng.random() < 0.5:
        file.says(*calls, **fields)
    else:
        for each in calls:
            file.says(each, **fields)
    if isinstance(file, Nested):
        w.rng.shuffle(calls)
    for each in calls:
        file.result(each["id"], w.word(hidden=bool(fields)), **fields)


def _write_client(w: _Writer) -> bytes:
    file = Client()
    for _ in range(w.rng.randint(4, 8)):
        file.user(w.asked())
        file.says(w.word())
        if w.rng.random() < 0.5:
            _call_nested(w, file, {})
            file.says(w.word())
    for _ in range(w.rng.randint(1, 2)):
        _add_foreign(w, file)
        file.user(w.asked())
        file.says(w.word())
    return file.data()


def _add_foreign(w: _Writer, file: Client) -> None:
    match w.rng.randrange(4):
        case 0:
            file.raw(type="user", message=w.asked())
            file.raw(type="assistant", subtype="response", message=w.word())
        case 1:
            file.raw(type="human", timestamp=_TIME, message={"type": "message", "content": w.asked()})
            file.says(w.word())
        case 2:
            file.raw(type="user", message=w.asked(hidden=True), isDeleted=True)
            file.raw(type="assistant", message=w.word(hidden=True), isDeleted=True)
        case _:
            file.user(w.asked())
            file.says(call(w.name(), "Bash", command="make"))
            file.raw(type="system", subtype="error", message=w.word(), isError=True)
            file.says(w.word())
