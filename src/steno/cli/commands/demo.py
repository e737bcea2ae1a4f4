"""`steno demo`: writes demo sessions to try steno on."""

import click
import msgspec

from steno.cli.options import COLOR, JSON, add_options
from steno.cli.output.screen import Screen, write_json
from steno.errors import Unreadable
from steno.report import humanize
from steno.sanitize.terminal import ColourMode
from steno.store.environment import demo_dir


@click.command("demo", short_help="Write demo sessions to try steno on.")
@add_options(JSON, COLOR)
@click.pass_context
def command(ctx: click.Context, color: ColourMode, *, as_json: bool) -> None:
    """Write demo sessions to STENO_HOME, and list them.

    They cover sub-agents, a compaction, a rewind, a damaged file and hostile text. Commands that
    read sessions take --demo to use them. Running the command again rewrites the demo sessions; other
    files in the directory are kept.
    """
    from steno.cli.commands.ls import command as ls
    from steno.demo.recording import write_demo

    folder = demo_dir()
    try:
        report = write_demo(folder)
    except OSError as error:
        raise Unreadable(f"cannot write {folder}: {error.strerror or error}") from error
    if as_json:
        write_json(msgspec.to_builtins(report))
        return
    screen = Screen(color)
    screen.print_lines(
        [
            [
                "Wrote ",
                (humanize.count(report.sessions, "session"), "bold"),
                f" in {humanize.count(report.projects, 'project')}, ",
                f"{humanize.count(report.agents, 'sub-agent')}, {humanize.size(report.size)}",
            ],
            [("to ", "dim"), (report.root, "dim")],
            [],
        ]
    )
    ctx.invoke(ls, demo=True, color=color)
    screen.print_next_steps(["steno show --demo last", "steno ls --demo"])
