"""Rules to offer to whoever is asked: the narrowest first, and never one that allows anything."""

import os
import re
import shlex
from collections.abc import Iterator
from typing import Final

from steno.guard.hidden import runs_code
from steno.guard.paths import Place, inside_parts
from steno.guard.rules import EDITS
from steno.guard.switches import RUNNERS
from steno.guard.words import Command, names

__all__ = ["offers_for_command", "offers_for_path"]

# Programs whose first word says what they do.
_WITH_VERBS: Final = names(
    "git npm pnpm yarn cargo go docker podman kubectl gh pip uv poetry bundle mvn gradle dotnet brew"
    " apt apt-get systemctl terraform helm make just task"
)
_SCRIPTS: Final = frozenset({"npm", "pnpm", "yarn", "bun", "make", "just", "task"})
# Nobody should allow these with any words whatever.
_NEVER: Final = names(
    "rm rmdir mv cp dd chmod chown chgrp ln kill pkill killall curl wget mkfs mount umount shutdown"
    " reboot truncate shred install tee touch mkdir"
)
_VERB: Final = re.compile(r"[a-z][a-z0-9:_-]*")


def offers_for_command(command: Command) -> Iterator[str]:
    """Yield rules that would allow a command; whoever asks for them sees whether they do."""
    texts = [word.text for word in command.words]
    if not texts or command.assignments:
        return
    known = all(word.literal and "\n" not in word.text for word in command.words)
    if known and not command.sealed and not any("*" in text for text in texts):
        yield f"Bash({' '.join(map(_quoted, texts))})"
    program = command.words[0]
    if not program.literal or "/" in program.text or program.text in _NEVER:
        return
    if program.text in _WITH_VERBS:
        verb = texts[1] if len(texts) > 1 else ""
        switches = RUNNERS.get(program.text)
        if not _VERB.fullmatch(verb) or (switches is not None and verb in switches.first.split()):
            return
        script = texts[2] if len(texts) > len(("npm", "run")) else ""
        if program.text in _SCRIPTS and verb == "run" and _VERB.fullmatch(script):
            yield f"Bash({program.text} run {script}:*)"
        elif verb != "run":
            yield f"Bash({program.text} {verb}:*)"
    elif not runs_code(program.text):
        yield f"Bash({program.text}:*)"


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w@%+=:,./~^-]+", text) else shlex.quote(text)


def offers_for_path(place: Place, tool: str, root: str) -> Iterator[str]:
    """Yield rules for a file and for its folder."""
    name = "Edit" if tool in EDITS else "Read"
    rest = inside_parts(place.real_parts, Place.of(root).real_parts)
    path = "/" + "/".join(rest) if rest is not None else "/" + place.real
    if re.search(r"[*?\[\]!()\\\n#]", path) or path.endswith(" "):
        return
    if not os.path.isdir(place.real):
        yield f"{name}({path})"
        path = os.path.dirname(path)
    if path.strip("/"):
        yield f"{name}({path}/**)"
