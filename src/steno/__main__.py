"""Entry point: prints `--version` without further imports, else runs `steno.cli`."""

import gc
import os
import sys

_OFTEN_ENOUGH = 50_000


def main() -> None:
    """Run the `steno` command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from steno._version import __version__

        _say(f"steno {__version__}\n")
        return
    # Importing creates many objects and no garbage; frequent collections only slow it down.
    gc.set_threshold(_OFTEN_ENOUGH)
    try:
        from steno.cli.main import run
    except KeyboardInterrupt:
        os._exit(130)  # nothing to report or clean up yet
    try:
        run()
    finally:
        # The process ends here; skip the final garbage collection.
        gc.freeze()


def _say(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"steno: cannot write: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(3)  # a flush at exit would report the error again


if __name__ == "__main__":
    main()
