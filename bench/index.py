"""Measure the index against other programs with the same sessions, alternating within one run.

    python bench/index.py --data FOLDER [--mb 1000] [--rounds 2] [--no-peers] [--json]

`make bench` includes this benchmark. The value of a row is the ratio of the other program to steno. A missing command
or a peer that cannot be installed results in a row without a value.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple

import peers
from measure import Failed, Run, run
from table import Row, at_least, passed, row, show
from texts import CLASSES, extracted, percentiles, words

FILES = 27_000
ORDERS = ("newest", "ranked")
LINE = (
    '{{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/home/ada/many",'
    '"sessionId":"{session}","version":"2.1.29","gitBranch":"main","type":"user",'
    '"message":{{"role":"user","content":"say {words}"}},'
    '"uuid":"{uuid}","timestamp":"{time}"}}\n'
)


HITS = 20


class Searching:
    """The open index of `STENO_HOME`: searches for the first 20 hits, with their excerpts."""

    def __init__(self) -> None:
        from steno.index.database import open_index
        from steno.index.search.finder import open_finder

        self._index = open_index(sync_first=False)
        self._finder = open_finder(self._index, when)

    def once(self, query: str, order: str) -> int:
        """Search as a page does: find, read the records, extract; `order` is `newest` or `ranked`."""
        from steno.index.search.hit_text import HitReader, best_excerpt
        from steno.index.search.query_parser import parse_query

        way = "rank" if order == "ranked" else "newest"
        found = self._finder.find(parse_query(query), way, limit=HITS)
        with HitReader(self._index.connection) as reader:
            texts = reader.read_texts(found.messages)
            shown = [best_excerpt(each, found.query_forms, found.scope, self._finder.tokenize) for each in texts]
        return len(shown)


def when(words: str) -> tuple[float, float]:
    """Reject time expressions: no query here contains one."""
    raise ValueError(words)


class Side(NamedTuple):
    """One of two compared programs: its name and how to run it, or why it cannot run."""

    name: str
    call: Callable[[], Run] | None
    why: str = ""


class Measured(NamedTuple):
    """Measurements of one side, by round."""

    name: str
    runs: list[Run]
    why: str

    def least(self, figure: Literal["wall", "cpu"]) -> float:
        """Return the minimum over all rounds."""
        return min(map(attrgetter(figure), self.runs))

    def told(self) -> str:
        """Return the minimum over all rounds as text."""
        return f"{self.least('wall'):.3f} s wall, {self.least('cpu'):.3f} s CPU"

    def most(self) -> float:
        """Return the maximum peak memory in MB."""
        return max(each.peak for each in self.runs)


Pair = tuple[Measured, Measured]


class Steno:
    """The installed package, with a separate home directory."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def env(self, config: Path) -> dict[str, str]:
        """Return an environment that exposes only one config directory."""
        return {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(config),
            "STENO_HOME": str(self.home / "steno"),
        }

    def side(self, config: Path, *arguments: str, memory: bool = False) -> Side:
        """Return how to run a command, or that it does not exist."""
        self.home.mkdir(parents=True, exist_ok=True)
        program = [sys.executable, "-m", "steno"]
        env = self.env(config)
        name = f"steno {arguments[0]}"
        try:
            run([*program, arguments[0], "--help"], env)
        except Failed:
            return Side(name, None, "not implemented")
        return Side(name, lambda: run([*program, *arguments], env, memory=memory))

    def sync(self, config: Path, *, memory: bool = False) -> Side:
        """Return how to update the index."""
        return self.side(config, "sync", "--root", str(config), memory=memory)


def in_turns(rounds: int, theirs: Side, ours: Side, before: Callable[[], None] | None = None) -> Pair:
    """Run both sides in alternation; `before` runs before each round."""
    taken: dict[str, list[Run]] = {theirs.name: [], ours.name: []}
    why = {theirs.name: theirs.why, ours.name: ours.why}
    for _ in range(rounds):
        if before:
            before()
        for side in (theirs, ours):
            if side.call is None or why[side.name]:
                continue
            try:
                taken[side.name].append(side.call())
            except Failed as problem:
                why[side.name] = str(problem)
    first, second = (Measured(side.name, taken[side.name], why[side.name]) for side in (theirs, ours))
    return first, second


def compared(what: str, figure: Literal["wall", "cpu"], goal: float, pair: Pair) -> Row:
    """Return a row with the ratio of the other program to steno."""
    value = None
    if not any(side.why for side in pair):
        theirs, ours = (side.least(figure) for side in pair)
        value = theirs / ours
    detail = ", ".join(f"{side.name}: {side.why or side.told()}" for side in pair)
    name = "CPU" if figure == "cpu" else figure
    return at_least(f"{what}, {name}: {pair[0].name} ÷ steno", value, goal, detail)


def memory_row(pair: Pair) -> Row:
    """Return the row for the peak memory of the first index."""
    value = None if any(side.why for side in pair) else pair[0].most() / pair[1].most()
    detail = ", ".join(f"{side.name}: {side.why or f'{side.most():.0f} MB'}" for side in pair)
    return at_least("first index, peak memory of all processes: agentsview ÷ steno", value, 1.2, detail)


def working_copy(corpus: Path, place: Path) -> tuple[Path, Path]:
    """Return a config directory with the corpus, and a writable session in it.

    All other files are hard links: nothing is copied, and the corpus is not modified.
    """
    source = corpus / ".claude"
    shutil.copytree(source, place, copy_function=os.link)
    files = sorted(place.glob("projects/*/*.jsonl"), key=lambda file: (file.stat().st_size, file))
    mains = [file for file in files if not file.name.startswith("agent-")]
    chosen = mains[len(mains) // 2]
    original = source / chosen.relative_to(place)
    chosen.unlink()
    shutil.copy2(original, chosen)
    return place, chosen


def pairs_of_lines(session: Path) -> Callable[[], None]:
    """Return a function that appends a prompt and its answer to a session."""
    lines = [json.loads(line) for line in session.read_bytes().splitlines() if line.endswith(b"}")]
    prompt = next(each for each in lines if isinstance(each.get("message", {}).get("content"), str))
    answer = next(each for each in lines if each["type"] == "assistant")

    def append() -> None:
        first, second = str(uuid.uuid4()), str(uuid.uuid4())
        prompt.update(uuid=first, timestamp="2026-07-01T00:00:00.000Z")
        answer.update(uuid=second, parentUuid=first, timestamp="2026-07-01T00:00:01.000Z")
        answer["message"]["id"] = f"msg_{second}"
        with session.open("ab") as out:
            for line in (prompt, answer):
                out.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    return append


def many_files(folder: Path) -> Path:
    """Return a config directory with 27,000 sessions of one line; create it if it does not exist."""
    config = folder / f"one-line-{FILES}"
    if not (config / "made").exists():
        shutil.rmtree(config, ignore_errors=True)
        for number in range(FILES):
            session = f"{number:08x}-0000-4000-8000-000000000000"
            project = config / "projects" / f"-home-ada-many-{number % 27:02}"
            project.mkdir(parents=True, exist_ok=True)
            minute = time.strftime("%Y-%m-%dT%H:%M:00.000Z", time.gmtime(1767225600 + number * 60))
            line = LINE.format(
                session=session, words=f"word{number}", uuid=session.replace("4000", "4001"), time=minute
            )
            (project / f"{session}.jsonl").write_text(line)
        (config / "made").touch()
    return config


class Bench:
    """One run: directories, available peers, and measurements."""

    def __init__(self, folder: Path, scratch: Path, rounds: int, *, with_peers: bool) -> None:
        self.folder = folder
        self.scratch = scratch
        self.rounds = rounds
        self.views: peers.Agentsview | None = None
        self.costs: peers.Ccusage | None = None
        self.why = {"agentsview": "not requested", "ccusage": "not requested"}
        if with_peers:
            self.install()

    def install(self) -> None:
        """Install the peers; a peer that cannot be installed is reported and skipped."""
        try:
            self.views = peers.agentsview(self.folder)
        except peers.Unavailable as problem:
            self._missing("agentsview", problem)
        try:
            self.costs = peers.ccusage(self.folder)
        except peers.Unavailable as problem:
            self._missing("ccusage", problem)

    def _missing(self, name: str, problem: peers.Unavailable) -> None:
        print(f"{name} is not available: {problem}", file=sys.stderr)
        self.why[name] = str(problem)

    def sync(self, state: Path, config: Path, *, memory: bool = False) -> Side:
        """Return how agentsview updates its database."""
        views = self.views
        if views is None:
            return Side("agentsview", None, self.why["agentsview"])
        return Side("agentsview", lambda: views.sync(state, config, memory=memory))

    def report(self, config: Path) -> Side:
        """Return how ccusage reports costs."""
        costs = self.costs
        if costs is None:
            return Side("ccusage", None, self.why["ccusage"])
        return Side("ccusage", lambda: costs.report(self.scratch / "ccusage", config))

    def first(self, config: Path) -> tuple[Pair, Path, Steno]:
        """Index everything from scratch in each round; also return the state of the last round."""
        done = list[Pair]()
        state, steno = self.scratch / "views", Steno(self.scratch / "steno")
        for _ in range(self.rounds):
            shutil.rmtree(state, ignore_errors=True)
            shutil.rmtree(steno.home, ignore_errors=True)
            sides = self.sync(state, config, memory=True), steno.sync(config, memory=True)
            done.append(in_turns(1, *sides))
            self.took_in(peers.sessions(config), done[-1])
        theirs, ours = (
            Measured(
                side[0].name,
                [run for each in side for run in each.runs],
                next((each.why for each in side if each.why), ""),
            )
            for side in zip(*done, strict=True)
        )
        return (theirs, ours), state, steno

    def took_in(self, number: int, pair: Pair) -> None:
        """Assert that agentsview read that many files each time."""
        for each in pair[0].runs:
            assert self.views is None or self.views.synced(each) == number, each.output

    def many(self, config: Path) -> Row:
        """Measure an update without changes in 27,000 files."""
        steno = Steno(self.scratch / "steno-many")
        mine = steno.sync(config)
        # Creating this state takes minutes and is not measured, so it is kept.
        state = self.folder / "peers" / f"agentsview-{self.views and self.views.version}-{FILES}"
        theirs = self.sync(state, config)
        if theirs.call and not (state / "done").exists():
            shutil.rmtree(state, ignore_errors=True)
            took = theirs.call()
            assert self.views is not None
            assert self.views.synced(took) == FILES, took.output
            print(f"agentsview, first index of {FILES} files: {took}", file=sys.stderr)
            (state / "done").touch()
        first = in_turns(1, Side("nobody", None), mine)[1]
        if first.why:
            mine = Side(mine.name, None, first.why)
        pair = in_turns(3, theirs, mine)
        return compared(f"no changes in {FILES:,} files", "cpu", 12, pair)

    def rows(self, corpus: Path) -> Iterator[Row]:
        """Yield all measurements."""
        config, session = working_copy(corpus, self.scratch / "work")
        pair, state, steno = self.first(config)
        yield compared("first index", "wall", 12, pair)
        yield memory_row(pair)
        theirs, ours = self.sync(state, config), steno.sync(config)
        pair = in_turns(5, theirs, ours)
        self.took_in(0, pair)
        yield compared("no changes", "cpu", 6, pair)
        pair = in_turns(5, theirs, ours, pairs_of_lines(session))
        self.took_in(1, pair)
        yield compared("one append", "cpu", 6, pair)
        report = self.report(config)
        ours = steno.side(config, "usage", "--no-index", "--json")
        yield compared("cost without an index", "wall", 2.5, in_turns(5, report, ours))
        ours = steno.side(config, "usage", "--json")
        yield compared("cost from the index", "wall", 8, in_turns(5, report, ours))
        yield self.many(many_files(self.folder))
        os.environ.update(steno.env(config))
        yield from searching(words(extracted(self.folder, corpus)))


def searching(chosen: dict[str, list[str]]) -> Iterator[Row]:
    """Search for 200 words of each class in both orders; the value is the median."""
    search = Searching()
    for order in ORDERS:
        for kind in CLASSES:
            what = f"search, {'newest first' if order == 'newest' else order}, {kind}: ms"
            taken = list[float]()
            for each in chosen[kind]:
                query = {"phrase": f'"{each}"', "prefix": f"{each}*"}.get(kind, each)
                begun = time.perf_counter()
                search.once(query, order)
                taken.append((time.perf_counter() - begun) * 1000)
            half, most = percentiles(taken)
            yield row(what, half, None, f"p50 {half:.2f}, p99 {most:.2f}, {len(taken)} searches")


def measured(folder: Path, corpus: Path, rounds: int = 2, *, with_peers: bool = True) -> list[Row]:
    """Return all measurements."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="index-") as scratch:
        return list(Bench(folder, Path(scratch), rounds, with_peers=with_peers).rows(corpus))


def main() -> None:
    """Measure and print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1000, help="size of the corpus")
    parser.add_argument("--data", type=Path, required=True, help="directory for corpus and peers")
    parser.add_argument("--rounds", type=int, default=2, help="number of rounds that index from scratch")
    parser.add_argument("--no-peers", action="store_true", help="do not compare with other programs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    from run import generated

    options.data.mkdir(parents=True, exist_ok=True)
    corpus = generated(options.data, options.mb)
    rows = measured(options.data, corpus, options.rounds, with_peers=not options.no_peers)
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows)
    sys.exit(any(map(passed, rows)))


if __name__ == "__main__":
    main()
