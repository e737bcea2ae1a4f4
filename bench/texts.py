"""The text of a generated corpus, one document per record, and words to search for.

Documents are stored as JSON lines, `[milliseconds, text]`, so that an indexing program need not keep them in memory. A
document is the whole text of a record: prompt, answer, thinking, tool input and tool output.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from child import transcripts

EACH = 200
CLASSES = ("common", "mid", "rare", "phrase", "prefix")
_WORD = re.compile(r"\b[a-z]{3,}\b")
_PAIR = re.compile(r"\b[a-z]{3,} [a-z]{3,}\b")
_SAMPLE = 10
_STEM = 4
_DOCUMENT = msgspec.json.Decoder(tuple[int, str])


def documents(file: Path) -> Iterator[tuple[int, str]]:
    """Yield time and text of the documents written by `extracted`."""
    with file.open("rb") as lines:
        yield from map(_DOCUMENT.decode, lines)


def extracted(folder: Path, corpus: Path) -> Path:
    """Return the file with the text of a corpus; create it if it does not exist."""
    made = folder / f"texts-{corpus.name}.jsonl"
    if not made.exists():
        part = made.with_suffix(".part")
        with part.open("wb") as out:
            for document in _documents(corpus):
                out.write(msgspec.json.encode(document) + b"\n")
        part.rename(made)
    return made


def _documents(corpus: Path) -> Iterator[tuple[int, str]]:
    for path in transcripts(str(corpus)):
        with open(path, "rb") as file:
            for line in file:
                try:
                    record = msgspec.json.decode(line)
                except msgspec.MsgspecError:
                    continue
                message = record.get("message")
                said = "\n".join(_said(message.get("content"))) if message else ""
                if said:
                    when = datetime.fromisoformat(record["timestamp"])
                    yield int(when.timestamp() * 1000), said


def _said(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in content or ():
        match block["type"]:
            case "text":
                yield block["text"]
            case "thinking":
                yield block["thinking"]
            case "tool_use":
                yield json.dumps(block["input"], ensure_ascii=False)
            case "tool_result":
                yield from _said(block["content"])
            case _:
                pass


def words(texts: Path) -> dict[str, list[str]]:
    """Return search words by class, selected once from every tenth document.

    Common words are the most frequent ones, middle words occur in 0.1 to 1 % of the documents, rare words in one. A
    phrase is two consecutive words, a prefix the first four letters of a middle word.
    """
    made = texts.with_suffix(".words.json")
    if not made.exists():
        made.write_text(json.dumps(_choose(texts), indent=1))
    return json.loads(made.read_bytes())


def _choose(texts: Path) -> dict[str, list[str]]:
    number, pairs, seen = 0, set[str](), Counter[str]()
    for place, (_, text) in enumerate(documents(texts)):
        if place % _SAMPLE:
            continue
        number += 1
        seen.update(set(_WORD.findall(text)))
        pairs.update(_PAIR.findall(text)[:1])
    by_count = [word for word, _ in seen.most_common()]
    mid = [word for word in by_count if number / 1000 <= seen[word] <= number / 100]
    return {
        "common": by_count[:EACH],
        "mid": _some(mid),
        "rare": _some([word for word in by_count if seen[word] == 1]),
        "phrase": _some(sorted(pairs)),
        "prefix": _some(sorted({word[:_STEM] for word in mid if len(word) > _STEM})),
    }


def _some(pool: list[str]) -> list[str]:
    return pool[:: max(1, len(pool) // EACH)][:EACH]


def percentiles(milliseconds: list[float]) -> tuple[float, float]:
    """Return the 50th and the 99th percentile."""
    ordered = sorted(milliseconds)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


if __name__ == "__main__":
    file = extracted(Path(sys.argv[1]), Path(sys.argv[2]))
    print(file, f"{os.path.getsize(file) / 1e6:.0f} MB", sum(1 for _ in documents(file)))
    for kind, some in words(file).items():
        print(kind, len(some), some[:8])
