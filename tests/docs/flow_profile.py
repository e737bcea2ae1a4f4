"""Runs the command line under a profiler and prints the modules of steno whose functions were called.

    python flow_profile.py OUTPUT ARGUMENT…

What runs while a module is imported is left out: class bodies, module bodies and the functions they call.
"""

import inspect
import json
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import steno

_SOURCE = str(Path(steno.__file__).parent) + "/"


def main(output: Path, arguments: list[str]) -> None:
    modules: set[str] = set()
    imports = threading.local()

    def note_call(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):
            imports.depth = getattr(imports, "depth", 0) + (1 if event == "call" else -1)
        if getattr(imports, "depth", 0) > 0:
            return
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(_SOURCE):
            modules.add(code.co_filename.removeprefix(_SOURCE))

    sys.argv = ["steno", *arguments]
    threading.setprofile(note_call)
    sys.setprofile(note_call)
    try:
        from steno.__main__ import main as run_steno

        run_steno()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        output.write_text(json.dumps(sorted(modules)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
