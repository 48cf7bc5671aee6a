"""Pages: one self-contained HTML file with tables, text and figures."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0 auto; padding: 1rem;
  max-width: 62rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
.wide { overflow-x: auto; -webkit-overflow-scrolling: touch; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #222; font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
td.text { text-align: left; }
td.long { white-space: normal; min-width: 11rem; }
p.note { font-size: .85rem; color: #555; margin: .4rem 0; }
figure { margin: 1.2rem 0; } figure img { width: 100%; max-width: 44rem; height: auto; }
figcaption { font-size: .85rem; color: #555; }
code { background: #f4f4f4; padding: .1rem .3rem; }
"""


LONG = 32
"""Characters from which on a cell may have several lines."""


def html_page(title: str, body: Sequence[str], style: str = "") -> str:
    """A page with these parts, which may bring rules of their own."""
    head = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title, quote=False)}</title><style>{STYLE}{style}</style></head>
<body>"""
    return "\n".join([head, *body, "</body></html>", ""])


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; cells that begin with a digit are aligned as numbers."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def html_figure(figure: Figure, caption: str) -> str:
    """A figure as SVG within the page."""
    text = html.escape(caption)
    image = f'<img alt="{text}" src="data:image/svg+xml;base64,{_svg(figure)}">'
    return f"<figure>{image}<figcaption>{text}</figcaption></figure>"


def inline(text: str) -> str:
    """Text with `code` and **words** as HTML."""
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", coded)


def _cell(text: str) -> str:
    kinds = "" if re.match(r"-?\d", text) else "text ", "long" if len(text) > LONG else ""
    named = f' class="{"".join(kinds).strip()}"' if any(kinds) else ""
    return f"<td{named}>{html.escape(text)}</td>"


def _svg(figure: Figure) -> str:
    import matplotlib as mpl

    buffer = io.BytesIO()
    # Equal results give equal bytes: no date, and no random names.
    with mpl.rc_context({"svg.hashsalt": "anyhull"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return base64.b64encode(buffer.getvalue()).decode("ascii")
