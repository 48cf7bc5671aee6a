"""Notebooks without a server: their cells run in order in one namespace, and become a page of Markdown.

A notebook is stored without outputs. What its cells print and draw is made when the site is built.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Output(NamedTuple):
    """What one cell showed."""

    text: str
    """Printed."""
    pictures: list[bytes]
    """PNG files of the Matplotlib figures that the cell left open."""


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook (format 4)."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def run(path: Path, folder: Path) -> Iterator[tuple[dict[str, Any], Output]]:
    """Each cell with its output, run in `folder`; an exception ends it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells(path), 1):
        if cell["cell_type"] != "code":
            yield cell, Output("", [])
            continue
        printed = io.StringIO()
        before = Path.cwd()
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), namespace)
        finally:
            os.chdir(before)
        pictures = []
        for figure in map(pyplot.figure, pyplot.get_fignums()):
            picture = io.BytesIO()
            figure.savefig(picture, format="png", dpi=110, facecolor="white")
            pictures.append(picture.getvalue())
        pyplot.close("all")
        yield cell, Output(printed.getvalue(), pictures)


def page(path: Path, folder: Path) -> tuple[str, dict[str, bytes]]:
    """The notebook as Markdown, and its pictures by file name."""
    parts = list[str]()
    pictures = dict[str, bytes]()
    for cell, output in run(path, folder):
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        if output.text:
            parts.append(f"```text\n{output.text.rstrip()}\n```")
        for picture in output.pictures:
            name = f"{path.stem}-{len(pictures) + 1}.png"
            pictures[name] = picture
            parts.append(f"![What the cell above draws]({name})")
    return "\n\n".join(parts) + "\n", pictures
