"""`steno demo`: writes made-up sessions to try the commands on."""

import click
import msgspec

from steno.cli.options import COLOR, JSON, add_options
from steno.cli.output.screen import Screen, write_json
from steno.errors import Unreadable
from steno.report import humanize
from steno.sanitize.terminal import ColourMode
from steno.store.environment import demo_dir


@click.command("demo", short_help="Write a few made-up sessions to try things on.")
@add_options(JSON, COLOR)
@click.pass_context
def command(ctx: click.Context, color: ColourMode, *, as_json: bool) -> None:
    """Write a few made-up sessions below steno's own folder (STENO_HOME), and list them.

    They show what sessions can hold: sub-agents, a compaction, a rewind, a damaged file, text that
    bites. Every command that looks at sessions takes --demo. What an earlier demo wrote is written
    afresh; other files in the folder are left alone.
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
                (humanize.count(report.sessions, "session"), "bold"),
                f" in {humanize.count(report.projects, 'project')}, ",
                f"{humanize.count(report.agents, 'sub-agent')}, {humanize.size(report.size)} written",
            ],
            [("in ", "dim"), (report.root, "dim")],
            [],
        ]
    )
    ctx.invoke(ls, demo=True, color=color)
    screen.print_next_steps(["steno show --demo last", "steno ls --demo"])
