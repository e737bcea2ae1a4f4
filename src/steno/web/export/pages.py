"""A session as one page, or as several where it is long."""

from collections.abc import Iterator
from typing import Final

import msgspec
from markupsafe import Markup

from steno.report.export.levels import Level
from steno.report.export.opened import Leaving
from steno.report.prices import Prices
from steno.report.sessions import Known
from steno.safe.html import words
from steno.session.story.figures import steps_in
from steno.session.story.steps import one_line
from steno.session.transcript import Transcript
from steno.web.bodies.pictures import bytes_of, pictures_in
from steno.web.export.aside import Aside
from steno.web.export.frame import page_of
from steno.web.export.links import FileLinks
from steno.web.paint import part
from steno.web.place import Place
from steno.web.render.code import plainly
from steno.web.render.markdown import markdown
from steno.web.story.head import Head, Lying, head_of
from steno.web.story.seams import Seam, seam_of
from steno.web.story.steps import Manner, step_lines
from steno.web.story.tale import Tale, name_of
from steno.web.story.turns import SideBox, TurnBox, side_of, turn_of

__all__ = ["Drawn", "Style", "draw"]

_LATE: Final = 4e9
"""So late that no day is today: a page is read later than it is made."""
_PAGE: Final = 1_500_000
"""Letters of one page of several."""
_LINE: Final = 400
"""Letters around what is inside of a step."""
_TEXT: Final = 120
_DETAILS: Final[dict[Level, str]] = {
    "full": "everything",
    "high": "steps",
    "low": "steps",
    "minimal": "answers",
    "prompts": "prompts",
}


class Drawn(msgspec.Struct):
    """A session as pages, and what a list says of it."""

    title: str
    project: str
    day: str
    started: float
    turns: int
    steps: int
    cost: str
    pages: list[tuple[str, list[bytes]]]
    """The names of its files, and what is in them, in pieces."""


class _Page(msgspec.Struct):
    number: int
    file: str
    label: str
    first: int
    pieces: list[TurnBox | Seam | SideBox]


class _Row(msgspec.Struct):
    number: str
    text: str
    href: str


class _All(frozenset[str]):
    """Every step there is."""

    __slots__ = ()

    def __contains__(self, _place: object) -> bool:
        return True


class Style(msgspec.Struct, frozen=True):
    """How sessions are drawn."""

    level: Level = "full"
    split: bool = False
    """Whether a long session becomes several pages."""
    index: str = ""
    """The page that lists it among others."""
    coloured: bool = True
    """Whether code is painted here; else a page does it when a step is opened."""
    masked: str = ""
    """What is said of what was masked."""


def draw(leaving: Leaving, name: str, prices: Prices, style: Style) -> Drawn:
    """Return a session as pages called by a name."""
    drawing = _Drawing(leaving, name, prices, style)
    try:
        with plainly(wanted=not style.coloured):
            return drawing.drawn()
    finally:
        # Its links lead back to it: cut, it goes at once, and all of the session with it.
        vars(drawing).clear()


class _Drawing:
    def __init__(self, leaving: Leaving, name: str, prices: Prices, style: Style) -> None:
        self.session = leaving.session
        self.tale = Tale(self.session, prices)
        self._style = style
        self._size = leaving.size
        self._name = name
        self._anchors: dict[str, str] = {"index": style.index} if style.index else {}
        self._links = FileLinks(self._anchors, self._picture)
        self._aside = Aside()
        self._inside = style.level in ("full", "high")
        self._manner = Manner(
            key="",
            links=self._links,
            detail=_DETAILS[style.level],
            opened=_All() if self._inside else frozenset(),
            project=self.session.project,
            shut=True,
            full=True,
            laid=self._aside.lay,
        )
        self._pages: list[_Page] = []
        self._pictures: dict[str, dict[int, int]] = {}

    def drawn(self) -> Drawn:
        """Return all of it."""
        self._turn_pages(split=self._style.split)
        turns = self.tale.turns
        head = self._head()
        outline = [
            _Row(
                str(turn.number),
                one_line(turn.prompt.text if turn.prompt is not None else "", _TEXT),
                self._links.session("", f"t{turn.number}"),
            )
            for turn in turns
        ]
        started = turns[0].started if turns else None
        return Drawn(
            head.title,
            self.session.project,
            f"{started.astimezone():%Y-%m-%d}" if started is not None else "",
            started.timestamp() if started is not None else 0.0,
            self.tale.figures.turns,
            self.tale.figures.steps,
            head.cost,
            [(page.file, self._whole(page, head, outline)) for page in self._pages],
        )

    def _whole(self, page: _Page, head: Head, outline: list[_Row]) -> list[bytes]:
        last = page is self._pages[-1]
        return page_of(
            "export-session.html.j2",
            self._links,
            self._aside,
            head=head,
            page={"number": page.number, "of": len(self._pages), "all": self._pages},
            outline=outline,
            pieces=page.pieces,
            loose=list(self._loose()) if last else [],
            made="Exported by steno",
            masked=self._style.masked,
        )

    # Turns

    def _turn_pages(self, *, split: bool) -> None:
        self._begin(0)
        length = 0
        self._sides(0)
        for turn in self.tale.turns:
            if split and length > _PAGE:
                self._begin(turn.number)
                length = 0
            page = self._pages[-1]
            self._anchors[f"t{turn.number}"] = page.file if split else ""
            before = self.tale.turns[turn.number - 2] if turn.number > 1 else None
            for seam in filter(None, (*turn.seams, turn.closing)):
                number = self.tale.seam_numbers[seam.boundary.index]
                self._anchors[f"c{number}"] = page.file if split else ""
            if turn.opening is not None:
                self._put(seam_of(turn.opening, before, self.tale, self._manner))
            length += self._put(turn_of(turn, self.tale, self._manner))
            length += self._sides(turn.number)
            if turn.closing is not None:
                self._put(seam_of(turn.closing, turn, self.tale, self._manner))
        for page, behind in zip(self._pages, [*self._pages[1:], None], strict=True):
            end = behind.first - 1 if behind is not None else len(self.tale.turns)
            page.label = f"{max(1, page.first)}\N{EN DASH}{end}"

    def _begin(self, first: int) -> None:
        number = len(self._pages) + 1
        file = f"{self._name}.html" if number == 1 else f"{self._name}-{number}.html"
        self._pages.append(_Page(number, file, "", first, []))

    def _sides(self, after: int) -> int:
        return sum(
            self._put(side_of(side, self.tale, self._manner, opened=True))
            for side in self.tale.sides_by_turn.get(after, ())
        )

    def _put(self, piece: TurnBox | Seam | SideBox) -> int:
        self._pages[-1].pieces.append(piece)
        return self._aside.taken() + _length(piece)

    def _loose(self) -> Iterator[dict[str, object]]:
        for thread in self.session.loose_agents:
            if thread.warmup or not self._inside:
                continue
            own = Tale(self.session, self.tale.prices, name_of(thread))
            body = part(
                "session-agent.html.j2",
                links=self._links,
                brief=markdown(thread.prompt),
                lines=step_lines(thread.steps, own, self._manner, depth=1),
                report=markdown(thread.report) if thread.report else "",
                href="",
                status=thread.status,
                steps=steps_in(thread.steps),
            )
            yield {"name": thread.description or name_of(thread), "body": Markup(body)}

    # What stands above them

    def _head(self) -> Head:
        session = self.session
        model = session.models[-1] if session.models else ""
        known = Known(
            title=session.title.text or session.id,
            project=session.project,
            branch=session.branch,
            model=model,
            size=self._size,
        )
        place = Place(0, session.id, "", "", gone=False, key="")
        lying = Lying(known, self.tale.cost_of_all().known, age=_LATE)
        head = head_of(self.tale, place, lying, _LATE)
        for badge in head.badges:
            badge.href = ""
        return head

    # Pictures

    def _picture(self, agent: str, place: str) -> str:
        transcript = self._transcript(agent)
        offset, _, number = place.partition("-")
        places = self._pictures.setdefault(agent, {})
        if not places:
            places.update((node.offset, node.index) for node in transcript.nodes)
        index = places.get(int(offset))
        if index is None:
            return ""
        for picture in pictures_in(transcript.record(transcript.nodes[index])):
            if str(picture.number) == number and bytes_of(picture) is not None:
                return words(f"data:{picture.media_type};base64,{picture.data}")
        return ""

    def _transcript(self, agent: str) -> Transcript:
        for each in self.session.all_agents:
            if agent and name_of(each) == agent:
                return each.transcript
        return self.session.transcript


def _length(piece: TurnBox | Seam | SideBox) -> int:
    """Return how long a piece is, nearly, without what is inside of its steps."""
    if isinstance(piece, Seam):
        return 0
    turns = [piece] if isinstance(piece, TurnBox) else piece.turns
    return sum(_LINE * (len(turn.lines) + len(turn.later) + 1) for turn in turns)
