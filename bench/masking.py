"""Measure masking: milliseconds of CPU time per megabyte, on clean and on adversarial texts.

python -m bench.masking                       measure this checkout
python -m bench.masking --before OTHER/src    also measure another checkout, alternating, with the ratio
python -m bench.masking --texts FOLDER        use the *.jsonl files in FOLDER as clean text

Every text is masked in a separate process with a timeout.
"""

import argparse
import base64
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
_SIZE: Final = 1 << 18
_MB: Final = 1 << 20
_PATIENCE: Final = 40
_ROUNDS: Final = 3
_CLEAN: Final = ("sessions", "source and docs")


def _filled(stem: bytes) -> bytes:
    return (stem * (_SIZE // len(stem) + 1))[:_SIZE]


def _adversarial() -> dict[str, bytes]:
    """Return texts that consist of the beginnings of secrets but contain none."""
    stems = {
        "token prefixes": b"sk-a1b-",
        "JWT prefixes": b"-eyJ0",
        "names": b"password=",
        "quoted names": b'"token": "',
        "URLs": b"://a:b@",
        "commands": b"curl -u a ",
        "key headers": b"-----BEGIN RSA PRIVATE KEY-----",
        "cookies": b"Cookie: a=b; ",
        "quotes": b'""',
        "equals signs": b"=",
        "percent signs": b"%20 ",
        "escapes": b"\\u0041",
        "colour codes": b"\\u001b[0ma",
        "entities": b"&#65; ",
        "stems in base64": base64.b64encode(b"sk-sk-" * 3),
        "stems in hex": b"sk-an".hex().encode(),
    }
    made = {name: _filled(stem) for name, stem in stems.items()}
    text = _filled(b"secret token password: eyJ0 ")
    made["text in base64"] = base64.b64encode(text)
    made["random base64"] = base64.b64encode(hashlib.shake_256(b"7").digest(_SIZE))
    made["a line of 50 MB"] = b"x" * (50 * _MB)
    return made


def _clean(folder: str) -> dict[str, bytes]:
    own = [path for kind in ("src/**/*.py", "docs/**/*.md") for path in sorted(_ROOT.glob(kind))]
    made = {_CLEAN[1]: b"\n".join(path.read_bytes() for path in own)}
    files = sorted(Path(folder).glob("**/*.jsonl")) if folder else []
    if files:
        made[_CLEAN[0]] = b"\n".join(path.read_bytes() for path in files)
    return made


def _child(name: str, folder: str) -> None:
    """Mask one text and print the time."""
    from steno.sanitize.secret_masker import find_edits

    data = (_clean(folder) if name in _CLEAN else _adversarial())[name]
    find_edits(b"ghp_ password= " * 20)
    taken: list[float] = []
    for _ in range(_ROUNDS if name in _CLEAN else 1):
        begun = time.process_time()
        find_edits(data)
        taken.append(time.process_time() - begun)
    print(json.dumps(min(taken) * 1000 * _MB / len(data)))


def _measured(source: str, name: str, folder: str) -> float | None:
    """Return milliseconds per megabyte; None on a timeout."""
    command = [sys.executable, "-m", "bench.masking", "--child", name, "--texts", folder]
    env = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{_ROOT}"}
    try:
        done = subprocess.run(command, env=env, capture_output=True, timeout=_PATIENCE, check=True, cwd=_ROOT)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


def _shown(value: float | None) -> str:
    return f"{value:10.1f}" if value is not None else f"> {_PATIENCE} s".rjust(10)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default="", help="source directory of another checkout")
    parser.add_argument("--texts", default="", help="directory with session files")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(given.child, given.texts)
        return
    print(f"{'ms/MB':22}{'before' if given.before else '':>10}{'now':>10}{'ratio':>8}")
    for name in (*_clean(given.texts), *_adversarial()):
        before = _measured(given.before, name, given.texts) if given.before else None
        now = _measured(str(_ROOT / "src"), name, given.texts)
        ratio = f"{now / before:8.2f}" if before and now else ""
        print(f"{name:22}{_shown(before) if given.before else '':>10}{_shown(now)}{ratio}", flush=True)


if __name__ == "__main__":
    main()
