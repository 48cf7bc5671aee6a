"""`anyhull lab`: the page on which a boat is changed under way."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from anyhull.cli.output import AsJson, print_json


def lab(
    out: Annotated[
        Path | None, typer.Option(help="Write the page into this folder, and do not open it. Never over a file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change a boat under way in a browser, and watch controllers adapt: one page that needs no server."""
    from anyhull.lab import write_page  # it imports the MPC, whose CasADi is slow to import

    path = write_page(out or tempfile.mkdtemp(prefix="anyhull-lab-")).absolute()
    opened = out is None and webbrowser.open(path.as_uri())
    if as_json:
        print_json({"page": str(path), "bytes": path.stat().st_size, "opened": opened})
        return
    print(path)
    if out is None and not opened:
        print("No browser could be started here: open that file in one.")
