"""`anyhull key`: a new key for the link between a boat and its pilot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyhull.cli.output import AsJson, print_json


def key(
    file: Annotated[Path, typer.Argument(help="Path of the new key, as boat.key; a file that exists is kept.")],
    as_json: AsJson = False,
) -> None:
    """Make the key of a boat, without which its link is limited to loopback. See docs/link.md."""
    from anyhull.onboard.links.keys import make_key

    make_key(file)
    if as_json:
        print_json({"key": str(file)})
        return
    print(f"{file}: a new key, mode 600. Copy it to the other end by a safe way, and in both ends' boat file write:")
    print(
        f'[link]\nkey = "{file.name}"   # relative to the boat file; with kind = "mavlink": signing_key = "{file.name}"'
    )
