"""The page of an assessment: one HTML file that holds its pictures. Needs Matplotlib."""

from __future__ import annotations

import html
import math
from pathlib import Path

from anyhull.files import atomic_write
from anyhull.preflight.assessment import Assessment, Limit
from anyhull.preflight.figures import pictures
from anyhull.preflight.findings import HullResult, in_words
from anyhull.viz.page import html_figure, html_page, html_table, inline
from anyhull.viz.plots import check_suffix, new_figure

STYLE = """
.verdict { border-left: .5rem solid; padding: .6rem 1rem; background: #f7f7f7; font-size: 1.1rem; font-weight: 600; }
.go { border-color: #009E73; } .restricted { border-color: #E69F00; } .no-go { border-color: #D55E00; }
figure img { max-width: 100%; }
.answers th, .answers td { text-align: left; white-space: normal; vertical-align: top; }
.answers td:first-child { min-width: 11rem; }
.each th:last-child, .each td:last-child { text-align: left; white-space: normal; min-width: 11rem; }
.each td { vertical-align: top; }
"""


def check_page(path: Path) -> None:
    """Raise unless a page can be drawn and the path ends as one."""
    check_suffix(path, (".html",), "the page")
    new_figure((1, 1))


def write_page(found: Assessment, path: Path) -> None:
    """Write the page, whole or not at all."""
    text = _page(found)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _page(found: Assessment) -> str:
    kind = "no-go" if not found.go else "go" if found.fit == len(found.results) else "restricted"
    body = [
        f"<h1>{html.escape(found.vessel)}: before the water</h1>",
        f'<p class="verdict {kind}">{html.escape(found.verdict)}</p>',
        *(["<ul>", *(f"<li>{html.escape(text)}</li>" for text in found.restrictions), "</ul>"] if found.go else []),
        f"<p>{len(found.results)} hulls {html.escape(found.hull_source)}, each with its own thrusters, sensors and "
        f"water, were sailed in simulation with the loop as on the boat. A hull is fit if it arrives, is never stopped "
        f"by the guard, and is at every moment within {found.room:.2g} m of the reference. By these sails at least "
        f"{100 * found.fit_at_least:.0f} % of such hulls are fit, with 95 % confidence.</p>",
        _in("answers", html_table(("question", "answer"), answers(found))),
    ]
    first, *others = pictures(found)
    body += ["<h2>The sails</h2>", html_figure(*first), _worst(found)]
    body += ["<h2>What may be asked for</h2>", html_figure(*others[0])]
    body += ["<h2>What to measure</h2>"]
    body += [html_table(MEASURED, measured_rows(found)), f'<p class="note">{inline(MEASURED_NOTE)}</p>']
    body += [html_figure(*picture) for picture in others[1:]]
    body += ["<h2>Every hull</h2>", _in("each", html_table(EACH, [_row(result) for result in found.results]))]
    return html_page(f"{found.vessel}: before the water", body, STYLE)


def _in(name: str, table: str) -> str:
    """A table in the style of that name."""
    return f'<div class="{name}">{table}</div>'


LITTLE = 0.05
"""What a measurement must narrow the answer by to be worth it."""

MEASURED = ("measure", "expect", "error", "speed", "turn", "narrows the answer by")
MEASURED_NOTE = (
    "expect: 5 to 95 % of the hulls; a boat outside is not the one of its file. error, speed, turn: the share of the "
    "variance of the logarithm over the hulls that the quantity predicts, for hulls left out of the fit. The last "
    "column is that of the three together."
)
EACH = ("hull", "fit", "mean, cm", "95 %, cm", "worst, cm", "heading, °", "top speed, m/s", "turning, °/s", "events")


def answers(found: Assessment) -> list[tuple[str, str]]:
    """What an owner asks, in rows of two."""
    inside = ", ".join(f"{name} {100 * share:.0f} %" for name, share in found.shares.items())
    rows = [
        ("hulls that stay within, at every moment", inside),
        ("highest speed to ask for", _limit(found.highest_speed, "m/s")),
        (f"tightest turn at {found.course.speed:.2g} m/s", _limit(found.tightest_turn, "m radius")),
        ("thruster that limits", limiting(found)),
        ("worst hull", f"{found.results[found.worst].seed}: {'; '.join(found.causes)}"),
    ]
    if found.measurements:
        best = found.measurements[0]
        low, high = (in_words(best.quantity, value) for value in (best.low, best.high))
        narrows = f"narrows the answer by {100 * best.narrows:.0f} %; expect {low} to {high}"
        first = f"{best.quantity}: {narrows}"
        little = "nothing: no single measurement would narrow the answer much"
        rows.append(("measure first", first if best.narrows >= LITTLE else little))
    return rows


def measured_rows(found: Assessment) -> list[tuple[str, ...]]:
    """What each measurement would tell, for a table with the columns `MEASURED`."""
    return [
        (
            m.quantity,
            f"{in_words(m.quantity, m.low)} to {in_words(m.quantity, m.high)}",
            *("–" if share is None else f"{100 * share:.0f} %" for share in (m.error, m.speed, m.turn, m.narrows)),
        )
        for m in found.measurements
    ]


def limiting(found: Assessment) -> str:
    """The thruster that is at its limit longest, in words."""
    beyond = f"all together asked for more than they have {100 * found.unmet:.1f} % of the time"
    if not found.thrusters:
        return "not known: no hull got under way"
    most = found.thrusters[0]
    if most.at_limit_worst < 0.01:
        return f"none; nearest is {most.name}, within {100 * most.used:.0f} % of its range for 95 % of the time"
    mean, worst = 100 * most.at_limit, 100 * most.at_limit_worst
    return f"{most.name}: at its limit {mean:.1f} % of the time, {worst:.0f} % on the worst hull; {beyond}"


def _limit(limit: Limit, unit: str) -> str:
    why = "what the policy was trained on" if limit.trained else "thrust"
    if limit.confirmed:
        return f"{limit.value:.2g} {unit}, limited by {why}; sailed by one of the weakest hulls"
    if limit.attempts:
        return f"{limit.value:.2g} {unit}, as on the course: one of the weakest hulls failed beyond it"
    return "none: see the verdict"


def _worst(found: Assessment) -> str:
    seed = found.results[found.worst].seed
    return f"<p>The worst is hull {seed}: {html.escape('; '.join(found.causes))}.</p>"


def _row(result: HullResult) -> tuple[str, ...]:
    numbers = (result.mean_cm, result.p95_cm, result.worst_cm, result.heading_deg)
    shown = ["–" if math.isnan(value) else f"{value:.1f}" for value in numbers]
    speed, turn = result.measurable["top speed"], math.degrees(result.measurable["turning rate"])
    events = [f"{what} {times}" for what, times in result.events.items()]
    events += [f"stopped {result.stops} ({result.stopped})"] if result.stops else []
    events += [] if result.arrived else [result.failure or "not arrived"]
    fit = "yes" if result.fit else "no"
    return (str(result.seed), fit, *shown, f"{speed:.2f}", f"{turn:.0f}", ", ".join(events))
