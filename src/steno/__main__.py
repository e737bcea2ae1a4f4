"""The door of the command line: answers `--version` at once, hands the rest to `steno.cli`."""

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
    # Code is no garbage: to look through it again and again while it is imported is in vain.
    gc.set_threshold(_OFTEN_ENOUGH)
    try:
        from steno.cli.main import run
    except KeyboardInterrupt:
        os._exit(130)  # nothing has begun, so there is nothing to say or to tidy
    try:
        run()
    finally:
        # All of it goes with the process; there is no need to look for what might go first.
        gc.freeze()


def _say(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"steno: cannot write: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(3)  # another flush on the way out would only say it again


if __name__ == "__main__":
    main()
