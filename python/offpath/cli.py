"""The `offpath` command: parses the command line and calls the module that does the work.

To load the modules of all commands takes a tenth of a second and more, which every job of `offpath run` would
pay. So only those of the command that is named are loaded.
"""

import importlib
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from offpath import __version__, artifacts, console
from offpath.codes import Code, with_code
from offpath.errors import OffpathError

if TYPE_CHECKING:
    import typer

# By its name, in the order of the help: the module of `offpath.commands`, and what it calls the function or,
# for a group of commands, the group.
_GROUPS = {name: (name, "app") for name in ("lab", "bench", "study", "model", "signatures")}
_COMMANDS = {
    "run": ("run", "run"),
    "env": ("env", "env"),
    "info": ("info", "info"),
    "top": ("top", "top"),
    "trace": ("trace", "trace_"),
    "report": ("report", "report"),
    "tune": ("tune", "tune_"),
    "control": ("control", "control"),
    "soak": ("soak", "soak_"),
    "calibrate": ("calibrate", "calibrate_"),
    "sim": ("sim", "sim_"),
    "advise": ("advise", "advise_"),
}
_LAUNCHERS = ("run", "advise")  # what follows the first other word is somebody else's command line


def make_app(words: Sequence[str] = ()) -> "typer.Typer":
    """The command with the one subcommand that the first of `words` names; with all of them if it names
    none."""
    import typer

    app = typer.Typer(
        name="offpath",
        help=(
            "Move the communication of MPI programs off the host's cores, try it on an emulated cluster, and"
            " measure it."
        ),
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_version_option())  # a group, even of one command
    named = words[0] if words else None
    wanted = {named} if named in (*_GROUPS, *_COMMANDS) else {*_GROUPS, *_COMMANDS}
    for name, place in _GROUPS.items():
        if name in wanted:
            app.add_typer(_find(*place), name=name)
    for name, place in _COMMANDS.items():
        if name in wanted:
            settings = {"allow_interspersed_args": False} if name in _LAUNCHERS else {}
            app.command(name, context_settings=settings)(_find(*place))
    return app


def _version_option():
    import typer

    def show(wanted: bool) -> None:
        if wanted:
            print(f"offpath {__version__}")
            raise typer.Exit

    def options(
        _version: bool = typer.Option(
            False, "--version", callback=show, is_eager=True, help="Show the version and exit."
        ),
    ) -> None:
        pass

    return options


def _complete_values(command) -> None:
    """Lets shells complete values that the help lists, such as host|offpath."""
    for below in getattr(command, "commands", {}).values():
        _complete_values(below)
    for parameter in command.params:
        if re.fullmatch(r"[a-z][\w+-]*(\|[a-z][\w+-]*)+", parameter.metavar or ""):
            values = parameter.metavar.split("|")
            parameter._custom_shell_complete = lambda _context, _parameter, begun, values=values: [
                value for value in values if value.startswith(begun)
            ]


def job_without_options(words: list[str]) -> list[str]:
    """The command line of the job, if `words` are those of `offpath run` without options of its own; else
    nothing. To load Typer and check options, even default ones, takes longer than the rest of the start."""
    command, *job = words or [""]
    if command != "run" or not job:
        return []
    if job[0] == "--":
        return job[1:]
    return [] if job[0].startswith("-") else job


def _find(module: str, name: str):
    return getattr(importlib.import_module(f"offpath.commands.{module}"), name)


def _terminate(_number, _frame):
    # The handler runs only once: a second signal must not cut short the clean-up that the first one starts.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(143)


def main() -> int:
    # Also while a message is printed.
    try:
        return _run()
    except KeyboardInterrupt:
        return 130


def _run() -> int:
    artifacts.take_over()
    signal.signal(signal.SIGTERM, _terminate)
    # A shell that starts this in the background ignores SIGINT. This command handles it anyway, because a lab
    # must end when it is told to.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        words = sys.argv[1:]
        if job := job_without_options(words):
            from offpath import run_job

            return run_job.run(job)
        from offpath import standard_streams

        standard_streams.watch()
        code = _parse_and_run(words)
        standard_streams.finish()
        return code
    except OffpathError as error:
        message = console.escape(with_code(str(error), error.kind))
        console.err.print(f"[red]offpath: error:[/red] {message}", soft_wrap=True)
        if error.hint:
            console.err.print(f"         {console.escape(error.hint)}", soft_wrap=True)
        return error.code
    except BrokenPipeError:
        sys.stderr.close()
        return 141


def _parse_and_run(words: list[str]) -> int:
    import typer

    try:
        command = typer.main.get_command(make_app(words))
        if "_OFFPATH_COMPLETE" in os.environ:
            _complete_values(command)
        code = command(standalone_mode=False, prog_name="offpath")
        return code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return 130
    except (OffpathError, BrokenPipeError):
        raise
    except Exception as error:
        show = getattr(error, "show", None)
        if show is None or not hasattr(error, "exit_code"):
            raise
        show()
        console.err.print(f"[dim]{console.escape(f'[{Code.OPTION}]')}[/dim]")
        return error.exit_code
