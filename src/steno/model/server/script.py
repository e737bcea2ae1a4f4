"""The scripted mind: on this prompt answer these blocks, and then those.

    Script().on("fix the bug", [text("I look."), tool("Read", file_path="a.py")]).then("Fixed.")

A scene begins with what the user said last and goes on with each answer to it, so that the same
request always gets the same answer, whoever else is asking, and a retry gets it again.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeAlias, TypedDict, Unpack

import msgspec

from steno.errors import BadRequest
from steno.model.server.minds import Answer, Asked, Failure, Item, Reply, Wait, text

__all__ = ["DEFAULT", "Given", "How", "Script", "Wanted", "as_answer"]

DEFAULT: Final = "(the script has no answer to this)"
"""What is answered where nothing fits."""
_KEPT: Final = 100

Plain: TypeAlias = str | Item | Sequence[str | Item] | Answer
Given: TypeAlias = Plain | Callable[[Asked], Plain]
"""An answer: words, a block, several, a whole reply, an error, or what makes one of these."""
Wanted: TypeAlias = str | int | re.Pattern[str] | Callable[[Asked], bool]
"""What a scene is for: words in the prompt, the number of the request, or what decides."""


class How(TypedDict, total=False):
    """How an answer goes over the wire; see `Reply`."""

    stop_reason: str
    stop_sequence: str | None
    usage: dict[str, Any]
    model: str
    id: str
    after: Wait | None
    cut_after: int | None
    breaks: Failure | None
    first: Sequence[Given]
    """What is answered instead, once each, before the answer itself: errors, cuts."""


class _Step:
    """One answer, and what comes before it the first few times."""

    def __init__(self, given: Given, how: How) -> None:
        self._first = list(how.pop("first", ()))
        self._given = given
        self._how = how

    def answer(self, asked: Asked) -> Answer:
        if self._first:
            return as_answer(self._first.pop(0), asked)
        return as_answer(self._given, asked, **self._how)


class _Scene(msgspec.Struct):
    """What it is for, and the answers in turn."""

    wanted: Wanted
    steps: list[_Step]

    def fits(self, asked: Asked) -> bool:
        wanted = self.wanted
        if isinstance(wanted, str):
            return wanted in asked.prompt
        if isinstance(wanted, int):
            return wanted == asked.number
        if isinstance(wanted, re.Pattern):
            return wanted.search(asked.prompt) is not None
        return wanted(asked)


class Script:
    """A mind that says what it was told to say."""

    def __init__(self, *answers: Given) -> None:
        self._scenes: list[_Scene] = []
        self._queue = [_Step(each, {}) for each in answers]
        self._default = _Step(DEFAULT, {})
        self.unmatched: list[str] = []
        """The prompts that nothing was written for, the last of them."""

    def on(self, wanted: Wanted, given: Given, **how: Unpack[How]) -> Self:
        """Begin a scene: the first answer to a prompt, or to the request of that number."""
        self._scenes.append(_Scene(wanted, [_Step(given, how)]))
        return self

    def then(self, given: Given, **how: Unpack[How]) -> Self:
        """Go on with the scene: the answer to the results of the calls before it.

        Raises:
            BadRequest: no scene has begun.
        """
        if not self._scenes:
            raise BadRequest("`then` goes on with a scene, and none has begun", hint="use `on`")
        self._scenes[-1].steps.append(_Step(given, how))
        return self

    def queue(self, *answers: Given) -> Self:
        """Answer so, one after the other, where no scene fits."""
        self._queue += [_Step(each, {}) for each in answers]
        return self

    def otherwise(self, given: Given, **how: Unpack[How]) -> Self:
        """Answer so where nothing else fits."""
        self._default = _Step(given, how)
        return self

    def answer(self, asked: Asked) -> Answer:
        """Return the answer of the first scene that fits, else the next one in line."""
        step = self._step(asked)
        if step is None:
            self.unmatched = [*self.unmatched, asked.prompt][-_KEPT:]
        return (step or self._default).answer(asked)

    def _step(self, asked: Asked) -> _Step | None:
        for scene in self._scenes:
            if scene.fits(asked):
                # The number of a request says which one is meant; a prompt goes on for several.
                at = 0 if isinstance(scene.wanted, int) else asked.step
                if at < len(scene.steps):
                    return scene.steps[at]
        return self._queue.pop(0) if self._queue else None

    def vouches(self, thinking: str, signature: str) -> bool:
        """Vouch for nothing: what the server did not sign is not genuine."""
        _ = thinking, signature
        return False


def as_answer(given: Given, asked: Asked, **how: Unpack[How]) -> Answer:
    """Return what was given as an answer; `how` is laid over it."""
    plain = given(asked) if callable(given) else given
    changes = {key: value for key, value in how.items() if key != "first"}
    if isinstance(plain, Failure):
        return msgspec.structs.replace(plain, after=changes.get("after") or plain.after)
    if isinstance(plain, Reply):
        return msgspec.structs.replace(plain, **changes)
    items = [plain] if isinstance(plain, str) or not isinstance(plain, Sequence) else plain
    content = tuple(text(each) if isinstance(each, str) else each for each in items)
    return msgspec.structs.replace(Reply(content=content), **changes)
