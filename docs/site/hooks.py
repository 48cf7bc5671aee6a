"""What the site has beyond the pages in docs/: the lab, the records, the notebooks run, and links into the repository.

MkDocs calls these functions by their names. A warning fails the build.
"""

from __future__ import annotations

import importlib
import json
import logging
import posixpath
import re
import tempfile
from pathlib import Path
from typing import Any

import notebooks
from mkdocs.structure.files import File, Files

from anyhull.lab import lab_page

ROOT = Path(__file__).parents[2]

SOURCE = "https://github.com/anyhull/anyhull/blob/main/"
"""Where files outside docs/ are read."""

RECORDS = ("benchmarks/results", "results")
"""Folders of records, each figure's own JSON file."""

API = {
    "api/index.md": ("anyhull",),
    "api/control.md": ("anyhull.control",),
    "api/mission.md": ("anyhull.mission",),
    "api/onboard.md": ("anyhull.onboard", "anyhull.onboard.links", "anyhull.onboard.links.ros2"),
    "api/twin.md": ("anyhull.twin", "anyhull.preflight"),
    "api/viz.md": ("anyhull.viz",),
    "api/interfaces.md": ("anyhull.lab",),
}
"""Packages whose every public name a page must have."""

LINK = re.compile(r"(?<!\\)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")

log = logging.getLogger("mkdocs.hooks.anyhull")


def on_files(files: Files, config: Any) -> Files:
    """Add the lab, the records and the notebooks."""
    files.append(File.generated(config, "lab/page/index.html", content=lab_page()))
    for folder in RECORDS:
        for path in sorted((ROOT / folder).glob("*.json")):
            files.append(File.generated(config, f"records/{folder}/{path.name}", abs_src_path=str(path)))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        uri = f"notebooks/{path.name}"
        files.remove(files.src_uris[uri])
        with tempfile.TemporaryDirectory() as folder:
            text, pictures = notebooks.page(path, Path(folder))
        made = File.generated(config, f"notebooks/{path.stem}.md", content=text)
        files.append(made)
        for name, picture in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Embed the lab, list the records, and lead links that leave docs/ to the repository."""
    here = posixpath.dirname("docs/" + page.file.src_uri)

    def lead(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(here, link[1]))
        if path.startswith("docs/"):
            return link[0].replace(".ipynb", ".md")  # a notebook's page is made above
        if not (ROOT / path).exists():
            log.warning(f"{page.file.src_uri}: links to {path}, which does not exist")
        return f"]({SOURCE}{path}{link[2] or ''})"

    if page.file.src_uri == "lab.md":
        frame = '<iframe class="lab" src="page/index.html" title="The lab" loading="lazy"></iframe>'
        whole = '<p><a href="page/index.html" target="_blank">Open the lab on a page of its own</a></p>'
        markdown = markdown.replace("\n\n", f"\n\n{whole}\n{frame}\n\n", 1)
        page.meta["hide"] = ["navigation", "toc"]
    if page.file.src_uri == "records.md":
        markdown += records()
    markdown = re.sub(r"(?m)^  - ", "    - ", markdown)  # Python-Markdown nests lists by four spaces
    return LINK.sub(lead, markdown)


def records() -> str:
    """A table of all records: what is in each, and on which machine it was made."""
    lines = ["", "| record | holds | machine |", "| --- | --- | --- |"]
    for folder in RECORDS:
        for path in sorted((ROOT / folder).glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            holds = ", ".join(f"`{key}`" for key in content if key != "machine")
            machine = content.get("machine", {})
            machine = machine if isinstance(machine, str) else machine.get("device") or machine.get("cpu") or ""
            lines.append(f"| [{folder}/{path.name}](records/{folder}/{path.name}) | {holds} | {machine} |")
    return "\n".join(lines) + "\n"


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Every public name of a package is on its page."""
    for package in API.get(page.file.src_uri, ()):
        module = importlib.import_module(package)
        for name in module.__all__:
            public = getattr(module, name)
            places = f"{package}.{name}", f"{getattr(public, '__module__', '')}.{name}"
            if not any(f'id="{place}"' in output for place in places):
                log.warning(f"{page.file.src_uri}: {package}.{name} is missing")
    return output
