"""The pictures of docs/architecture.md, from the source itself: `python docs/architecture/draw.py`.

`ROOMS` is the order of the rooms: a module imports from its own room and from those above it, never from one below.
tests/test_architecture.py holds the source to that.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src" / "anyhull"

ROOMS: dict[str, tuple[str, ...]] = {
    "ground": ("errors", "files", "backend", "frames", "schema"),
    "boat": (
        "thrusters",
        "hydrodynamics",
        "envelope",
        "plausible",
        "scale",
        "identified",
        "vessel",
        "hulls",
        "unusual",
        "paper",
    ),
    "motion": (
        "dynamics",
        "paths",
        "turning",
        "speeds",
        "trajectory",
        "legs",
        "reference",
        "mission",
        "sea",
        "observation",
    ),
    "pilot": ("controller", "numpy_policy", "policy_file", "policy_parts", "pilot"),
    "control": ("control",),
    "simulation": ("log", "simulate"),
    "identification": ("identification",),
    "viz": ("viz",),
    "onboard": ("onboard",),
    "twin": ("twin",),
    "preflight": ("preflight",),
    "learn": ("learn",),
    "study": ("study",),
    "interfaces": ("gym", "export"),
    "lab": ("lab",),
    "cli": ("cli",),
}
"""Each room with its modules or packages, from the ground up."""

PURPOSE = {
    "ground": "one-line errors, atomic files, arithmetic, frames, typed tables",
    "boat": "vessels and thrusters; the paper's facts",
    "motion": "equations of motion, references, sea, what a policy sees",
    "pilot": "a trained policy as deployed, NumPy only",
    "control": "adaptive and model-based controllers behind the same interface",
    "simulation": "the closed loop of one boat, and its log",
    "identification": "a boat's dynamics from a recorded voyage",
    "viz": "a log as pictures, and in the formats of other tools",
    "onboard": "what a real boat runs: estimator, guard, allocation, links",
    "twin": "the simulated sea trial: hull, water, sensors, faults",
    "preflight": "whether a boat is fit: sails of the hulls that it may have",
    "learn": "training, in JAX",
    "study": "the paper's tables and figures, and ours",
    "interfaces": "Gymnasium environments, ONNX graphs",
    "lab": "one static page: the boat changed under way in a browser",
    "cli": "the command anyhull",
}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports() -> dict[str, set[str]]:
    """For each module those of the package that it imports, wherever in the file, and for type checking too."""
    known = modules()
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names if alias.name in known}
            elif isinstance(node, ast.ImportFrom) and node.module in known:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                graph[name] |= inner & known.keys() or {node.module}
    return graph


def room_of(module: str) -> str:
    """The room that a module lives in; the package itself, which only re-exports, lives above all."""
    top = module.split(".")[1] if "." in module else ""
    return next((room for room, members in ROOMS.items() if top in members), "")


def cycles() -> list[list[str]]:
    """Modules that import each other, directly or by way of others: strongly connected components of two or more."""
    graph, order, seen = imports(), [], set()

    def visit(node: str, edges: dict[str, set[str]], into: list[str]) -> None:
        stack = [(node, iter(sorted(edges[node])))]
        seen.add(node)
        while stack:
            rest = stack[-1][1]
            following = next((other for other in rest if other not in seen), None)
            if following is None:
                into.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges[following]))))

    for node in graph:
        if node not in seen:
            visit(node, graph, order)
    back: dict[str, set[str]] = {node: set() for node in graph}
    for node, targets in graph.items():
        for target in targets:
            back[target].add(node)
    seen.clear()
    found = []
    for node in reversed(order):
        if node not in seen:
            component: list[str] = []
            visit(node, back, component)
            if len(component) > 1:
                found.append(sorted(component))
    return found


def against_the_order() -> list[str]:
    """Imports from a room below the importer's own."""
    level = {room: i for i, room in enumerate(ROOMS)}
    return [
        f"{name} ({room_of(name)}) imports {target} ({room_of(target)})"
        for name, targets in imports().items()
        for target in sorted(targets)
        if room_of(name) and room_of(target) and level[room_of(target)] > level[room_of(name)]
    ]


INK, BLUE, SKY, GREY, WHITE = "#222222", "#0072B2", "#CFE6F5", "#8C8C8C", "#FFFFFF"


def figure(width: float, height: float) -> tuple[Any, Any]:
    """A figure in inches with one panel whose coordinates are inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(made)
    panel = made.add_axes((0, 0, 1, 1))
    panel.set_xlim(0, width)
    panel.set_ylim(0, height)
    panel.axis("off")
    return made, panel


def box(
    panel: Any, x: float, y: float, width: float, height: float, title: str, text: str = "", fill: str = SKY
) -> None:
    """A box with its lower left corner at (x, y)."""
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.08"
    panel.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, fc=fill, ec=BLUE, lw=1.2))
    middle = y + height / 2
    shift = 0.11 if text else 0.0
    # A bold letter is some 0.09 inches wide at 10 points.
    size = min(10.0, 10.0 * (width - 0.2) / (0.09 * len(title)))
    panel.text(x + width / 2, middle + shift, title, ha="center", va="center", fontsize=size, weight="bold", color=INK)
    if text:
        panel.text(x + width / 2, middle - 0.13, text, ha="center", va="center", fontsize=8, color=INK)


def arrow(panel: Any, start: tuple[float, float], end: tuple[float, float], text: str = "", bend: float = 0.0) -> None:
    """An arrow, bent by a part of its length."""
    style = {
        "arrowstyle": "-|>",
        "color": INK,
        "lw": 1.1,
        "connectionstyle": f"arc3,rad={bend}",
        "shrinkA": 0,
        "shrinkB": 0,
    }
    panel.annotate("", end, start, arrowprops=style)
    if text:
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        panel.text(x, y + 0.07, text, ha="center", va="bottom", fontsize=8, color=INK)


def draw_rooms() -> Any:
    """The rooms from the ground up, and which import from which."""
    edges: dict[tuple[str, str], int] = {}
    for name, targets in imports().items():
        for target in targets:
            one, two = room_of(name), room_of(target)
            if one and two and one != two:
                edges[one, two] = edges.get((one, two), 0) + 1
    names = list(ROOMS)
    step, width, left = 0.62, 4.9, 2.6
    made, panel = figure(10, step * len(names) + 0.55)
    top = step * len(names) - 0.1
    place = {room: top - step * i for i, room in enumerate(names)}
    for (importer, imported), count in sorted(edges.items()):
        low, high = place[importer] + 0.22, place[imported] + 0.22
        span = names.index(importer) - names.index(imported)
        side = 1 if imported in ("ground", "boat", "motion") else -1
        x = left + (width if side > 0 else 0)
        reach = 0.22 + 0.155 * span
        weight = 0.5 + 0.25 * min(count, 8)
        panel.annotate(
            "",
            (x, high),
            (x, low),
            arrowprops={
                "arrowstyle": "-|>",
                "color": GREY if side > 0 else BLUE,
                "lw": weight,
                "alpha": 0.75,
                "connectionstyle": f"arc3,rad={side * reach / max(low - high, high - low, 0.1) * 1.4:.3f}",
            },
        )
    for room, y in place.items():
        box(panel, left, y, width, 0.44, ", ".join(ROOMS[room]), PURPOSE[room], WHITE if room == "ground" else SKY)
    panel.text(
        0.15, 0.16, "Arrows point from the importer to what it imports; wider is more often.", fontsize=8, color=INK
    )
    return made


def draw_measurement() -> Any:
    """The way of one measurement to a thruster."""
    made, panel = figure(11, 3.3)
    wide, high, gap, y = 1.5, 0.62, 0.28, 1.9
    steps = (
        ("Link", "UDP datagram"),
        ("ClockSync", "boat's time"),
        ("Estimator", "pose, velocity"),
        ("Controller", "command in [-1, 1]³"),
        ("Guard", "limits, faults"),
        ("Allocator", "thruster commands"),
    )
    for i, (title, text) in enumerate(steps):
        x = 0.25 + i * (wide + gap)
        box(panel, x, y, wide, high, title, text)
        if i:
            arrow(panel, (x - gap, y + high / 2), (x, y + high / 2))
    last = 0.25 + 5 * (wide + gap) + wide / 2
    box(panel, 0.25, 0.35, wide, high, "Boat or twin", "sensors, thrusters", WHITE)
    arrow(panel, (0.25 + wide / 2, 0.35 + high), (0.25 + wide / 2, y), "")
    panel.text(0.32 + wide / 2, 1.4, "position 7 Hz, heading, gyro 100 Hz", fontsize=8, color=INK, va="center")
    panel.plot([last, last, 0.25 + wide], [y, 0.35 + high / 2, 0.35 + high / 2], color=INK, lw=1.1)
    arrow(panel, (0.6 + wide, 0.35 + high / 2), (0.25 + wide, 0.35 + high / 2))
    panel.text(5.5, 0.35 + high / 2 + 0.07, "command 10 Hz, over the same link", ha="center", fontsize=8, color=INK)
    reference = 0.25 + 3 * (wide + gap) + wide / 2
    arrow(panel, (reference, 3.15), (reference, y + high))
    panel.text(reference + 0.08, 2.95, "reference window, now and 10 periods ahead", fontsize=8, color=INK)
    panel.text(0.25, 3.05, "Autopilot.on_message", fontsize=9, color=BLUE, weight="bold")
    panel.text(reference + 0.08, 2.68, "Autopilot.step, once per control period", fontsize=9, color=BLUE, weight="bold")
    return made


def draw_training() -> Any:
    """One training step of each learner: what they share is the rollout."""
    made, panel = figure(11, 4.4)
    box(panel, 0.25, 2.9, 2.2, 0.72, "TrackingEnv", "reset, step, observe,\nhistory, privileged")
    box(panel, 0.25, 1.3, 2.2, 0.72, "Policy", "act(observation, history,\nprivileged, memory)")
    box(
        panel,
        3.4,
        2.05,
        2.3,
        0.86,
        "rollout",
        "observe, act, step: one scan,\nauto_reset where an episode is done",
        WHITE,
    )
    arrow(panel, (2.45, 3.2), (3.4, 2.65))
    arrow(panel, (2.45, 1.7), (3.4, 2.3))
    learners = (
        ("ppo", "collect, advantages, update;\nkernels.ppo on a GPU", 3.35),
        ("distillation", "‖ẑ - z‖² over sequences,\nactor frozen", 2.5),
        ("apg", "cost of a window, differentiated\nthrough the simulator", 1.65),
        ("evaluate", "tracking errors of many boats\n(also: study)", 0.8),
    )
    for title, text, y in learners:
        box(panel, 6.6, y, 2.5, 0.7, title, text)
        arrow(panel, (5.7, 2.48), (6.6, y + 0.35))
    box(panel, 9.55, 2.1, 1.25, 0.75, "phases", "train(key, config)", WHITE)
    for y in (3.7, 2.85, 2.0):
        arrow(panel, (9.1, y), (9.55, 2.48))
    box(panel, 9.55, 0.75, 1.25, 0.75, "trainer", "files, progress,\nseeds, devices", WHITE)
    arrow(panel, (10.17, 2.1), (10.17, 1.5))
    panel.text(0.25, 4.1, "One training step", fontsize=11, weight="bold", color=INK)
    panel.text(
        0.25,
        0.3,
        "config decides all of it; checkpoints, distributed and precompile serve the trainer.",
        fontsize=8,
        color=INK,
    )
    return made


def draw_method() -> Any:
    """The policy in training, where an encoder is given the boat, and on the boat, where the adapter estimates it."""
    made, panel = figure(11, 5.0)

    def actor(y: float, command: str) -> None:
        box(panel, 6.4, y, 1.7, 0.72, "Actor", "MLP")
        arrow(panel, (8.1, y + 0.36), (9.0, y + 0.36))
        box(panel, 9.0, y, 1.75, 0.72, "Command", command, WHITE)
        arrow(panel, (7.25, y + 1.12), (7.25, y + 0.72))
        panel.text(7.33, y + 0.98, "errors to the reference, now and ahead", fontsize=8, color=INK)

    def adapter(y: float) -> None:
        box(panel, 0.25, y, 2.0, 0.72, "History", "motion and commands", WHITE)
        arrow(panel, (2.25, y + 0.36), (3.0, y + 0.36))
        box(panel, 3.0, y, 1.7, 0.72, "Adapter", "GRU")

    panel.text(0.25, 4.72, "In simulation, on boats whose e is known", fontsize=11, weight="bold", color=BLUE)
    box(panel, 0.25, 3.5, 2.0, 0.72, "Boat's e", "nine coefficients", WHITE)
    arrow(panel, (2.25, 3.86), (3.0, 3.86))
    box(panel, 3.0, 3.5, 1.7, 0.72, "Encoder", "MLP")
    arrow(panel, (4.7, 3.86), (6.4, 3.86), "latent z")
    actor(3.5, "in [-1, 1]³")
    adapter(2.35)
    arrow(panel, (4.7, 2.71), (5.4, 2.71))
    panel.text(5.48, 2.71, "ẑ, taught to equal z", va="center", fontsize=8, color=INK)
    panel.plot([0.25, 10.75], [2.05, 2.05], color=GREY, lw=0.8, ls="--")

    panel.text(0.25, 1.72, "On the boat, whose e is unknown", fontsize=11, weight="bold", color=BLUE)
    adapter(0.75)
    arrow(panel, (4.7, 1.11), (6.4, 1.11), "estimated latent ẑ")
    actor(0.75, "to the guard")
    arrow(panel, (3.85, 0.75), (3.85, 0.4))
    panel.text(3.85, 0.22, "dynamics head: e and its uncertainty, for operator and guard", ha="center", fontsize=8)
    return made


def main() -> None:
    pictures = {"rooms": draw_rooms, "measurement": draw_measurement, "training": draw_training, "method": draw_method}
    for name, draw in pictures.items():
        made = draw()
        made.savefig(HERE / f"{name}.png", dpi=110)
        print(HERE / f"{name}.png")


if __name__ == "__main__":
    main()
