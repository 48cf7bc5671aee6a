"""The page, assembled from its sources: one HTML file with style, scripts, weights and vessels inside."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.lab.data import page_data

MODEL = (
    "arithmetic",
    "dynamics",
    "boat",
    "sea",
    "random",
    "paths",
    "reference",
    "policy",
    "pid",
    "quadratic",
    "mpc",
    "allocation",
    "world",
)
"""Scripts of the closed loop, which run without a page too, in the order in which they build on each other."""

VIEW = (
    "lap",
    "settings",
    "colours",
    "hull",
    "plan",
    "inset",
    "charts",
    "estimate",
    "controls",
    "panels",
    "input",
    "app",
)
"""Scripts of the page."""

FILE = "index.html"
"""Name of the page in its folder."""


def lab_page() -> str:
    """The whole page as one HTML document that refers to nothing outside itself but the documentation."""
    script = f'"use strict";\n(() => {{\n{model_script()}\n{_scripts("view", VIEW)}\n}})();'
    parts = {"/*style*/": _source("style.css"), "/*script*/": script}
    page = _source("page.html")
    for mark, text in parts.items():
        page = page.replace(mark, text)
    return page


def model_script() -> str:
    """The data and the model as one script, for the page and for tests of its numbers."""
    # A closing tag within the data would end the script.
    data = json.dumps(page_data(), separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return f"const DATA = {data};\n{_scripts('model', MODEL)}"


def write_page(folder: str | Path) -> Path:
    """Write the page into a folder, whole or not at all, and never over a file."""
    path = Path(folder) / FILE
    if path.exists():
        raise InputError(f"{path}: exists, and the page never replaces a file: give another folder")
    with atomic_write(path) as temporary:
        temporary.write_text(lab_page(), encoding="utf-8")
    return path


def _scripts(folder: str, names: tuple[str, ...]) -> str:
    return "\n".join(_source(f"{folder}/{name}.js") for name in names)


def _source(name: str) -> str:
    return (resources.files("anyhull") / "lab" / name).read_text(encoding="utf-8")
