"""The `offpath` command: parses the command line and calls the module that does the work."""

import signal
import sys

import typer

from offpath import artifacts, console
from offpath.codes import Code, with_code
from offpath.commands import (
    advise,
    bench,
    calibrate,
    control,
    env,
    info,
    lab,
    model,
    report,
    run,
    signatures,
    sim,
    soak,
    study,
    top,
    trace,
    tune,
)
from offpath.errors import OffpathError

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
app.add_typer(lab.app, name="lab")
app.add_typer(bench.app, name="bench")
app.add_typer(study.app, name="study")
app.add_typer(model.app, name="model")
app.add_typer(signatures.app, name="signatures")
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("env")(env.env)
app.command("info")(info.info)
app.command("top")(top.top)
app.command("trace")(trace.trace_)
app.command("report")(report.report)
app.command("tune")(tune.tune_)
app.command("control")(control.control)
app.command("soak")(soak.soak_)
app.command("calibrate")(calibrate.calibrate_)
app.command("sim")(sim.sim_)
app.command("advise", context_settings={"allow_interspersed_args": False})(advise.advise_)


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
        code = app(standalone_mode=False, prog_name="offpath")
        return code if isinstance(code, int) else 0
    except OffpathError as error:
        message = console.escape(with_code(str(error), error.kind))
        console.err.print(f"[red]offpath: error:[/red] {message}", soft_wrap=True)
        if error.hint:
            console.err.print(f"         {console.escape(error.hint)}", soft_wrap=True)
        return error.code
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except Exception as error:
        show = getattr(error, "show", None)
        if show is None or not hasattr(error, "exit_code"):
            raise
        show()
        console.err.print(f"[dim]{console.escape(f'[{Code.OPTION}]')}[/dim]")
        return error.exit_code
