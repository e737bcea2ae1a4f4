"""The door of the command line: answers `--version` at once, hands the rest to `steno.cli`."""

import sys


def main() -> None:
    """Run the `steno` command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from steno._version import __version__

        sys.stdout.write(f"steno {__version__}\n")
        return
    from steno.cli.main import run

    run()


if __name__ == "__main__":
    main()
