"""Moves a project over and over, each time with a fault at the next step.

    python relocating.py OPERATION FAULT FOLDER STRIDE

As `steps.py`, but for a whole move (`move`), its undoing (`undo`), or sessions from another machine
(`unpack`). For each child a line is written: N, how it ended, and the step that was struck.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from tests.faults.steps import Fault, in_a_child
from tests.store.relocate.moving import NEW, OLD, project, write

from steno.errors import StenoError
from steno.store.relocate.execution import apply_plan, find_receipt, new_receipt_folder, undo_relocation
from steno.store.relocate.plan import plan_move
from steno.store.relocate.transfer import pack_project, plan_unpack

__all__ = ["ARCHIVE", "CONFIG", "main", "operate"]

_MOST: Final = 400
CONFIG: Final = "config"
ARCHIVE: Final = "x.tar.zst"


def operate(operation: str, place: Path) -> None:
    """Do the thing itself."""
    config = str(place / CONFIG)
    if operation == "undo":
        undo_relocation(find_receipt("last"))
    elif operation == "unpack":
        folder = new_receipt_folder()
        plan = plan_unpack(str(place / ARCHIVE), NEW, config, folder)
        apply_plan(plan, "unpack", folder)
    else:
        apply_plan(plan_move(OLD, NEW, config))


def prepare(operation: str, place: Path) -> None:
    """Make a folder in which the thing can be done."""
    place.mkdir(parents=True)
    os.environ["STENO_HOME"] = str(place / "steno")
    config = place / CONFIG
    history = json.dumps({"display": "x", "project": OLD}) + "\n"
    if operation == "unpack":
        write(place / "other", project())
        (place / "other" / "history.jsonl").write_text(history)
        pack_project(OLD, str(place / "other"), str(place / ARCHIVE))
        config.mkdir()
        (config / "history.jsonl").write_text('{"project":"/mine"}\n')
        return
    config.mkdir()
    (config / "history.jsonl").write_text(history)
    (config / ".claude.json").write_text(json.dumps({"projects": {OLD: {}}}))
    write(config, project())
    if operation == "undo":
        operate("move", place)


def _in_child(operation: str, fault: Fault, place: Path) -> NoReturn:
    fault.install(links=True)
    code = 9
    try:
        operate(operation, place)
        code = 0
    except StenoError:
        code = 3
    finally:
        # Whatever else it was, it must not go on as if it were the parent.
        os._exit(code)


def main(operation: str, kind: str, folder: Path, stride: int) -> None:
    """Strike at every step in turn, or at some."""
    for at in range(1, _MOST, stride):
        place = folder / str(at)
        prepare(operation, place)
        work = partial(_in_child, operation, place=place)
        ended, struck = in_a_child(kind, at, lambda fault, work=work: work(fault))
        sys.stdout.write(f"{at} {ended} {struck or '-'}\n")
        sys.stdout.flush()
        if not struck:
            return
    sys.exit(f"not done after {_MOST} steps")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
