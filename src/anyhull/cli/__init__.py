"""The command `anyhull`: vessels, simulation, training, studies, export, sea trials and the onboard loop."""

from __future__ import annotations

import io
import sys
from importlib import metadata
from typing import Annotated, Any

import typer

from anyhull.cli import (
    bench,
    check,
    demo,
    export,
    identify,
    key,
    lab,
    log,
    pilot,
    simulate,
    study,
    train,
    trial,
    twin,
    vessels,
)
from anyhull.errors import InputError, RunError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help="Simulate and steer any surface vessel.")
app.add_typer(vessels.app, name="vessels")
app.command()(simulate.simulate)
app.command()(demo.demo)
app.command()(lab.lab)
app.command()(train.train)
app.command()(study.study)
app.command()(trial.trial)
app.command()(key.key)
app.command()(twin.twin)
app.command()(check.check)
app.command()(bench.listen)
app.command()(bench.thrusters)
app.command()(pilot.pilot)
app.command()(log.log)
app.command()(identify.identify)
app.command()(export.export)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    1 after a run that failed or diverged, 2 after invalid input, 130 when interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters shows question marks
    usage_error: Any = typer.BadParameter.__base__  # Typer's own in new versions, Click's in older ones
    try:
        status = app(arguments, standalone_mode=False) or 0
    except usage_error as error:
        return _fail(error.format_message(), 2)
    except InputError as error:
        return _fail(str(error), 2)
    except RunError as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    return _fail("interrupted", 130) if status == 130 else int(status)


def _fail(message: str, status: int) -> int:
    print("error:", " ".join(message.split()), file=sys.stderr)
    return status


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"anyhull {metadata.version('anyhull')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Simulate and steer any surface vessel."""
    if context.invoked_subcommand is None:
        print(context.get_help())
