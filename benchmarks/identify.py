"""Boats of the training distribution, each one lap under Adaptive: what is identified, and whether ± is what it says.

    python identify.py still --boats 1000    # still water, exact state
    python identify.py field --boats 1000    # the field sea
    python identify.py next                  # errors of the next voyage, with and without what the last one told
    python identify.py summary               # the first two, from the pieces

A boat follows the fastest lap of `SPEEDS` that its thrust allows by the rule of the training references. `under way` is
the estimate of Adaptive at the end of the lap, `whole record` that of `anyhull identify` from the log. Pieces go to
../out/identify-SEA.jsonl, one line a boat; a run goes on where the last one ended (--fresh begins anew). The summary
goes to results/identify.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from machine import describe, save
from students import changed, feasible

from anyhull import Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import Adaptive
from anyhull.hydrodynamics import Hydrodynamics, Normalized
from anyhull.identification.identify import identify
from anyhull.identification.voyage import voyage
from anyhull.identified import COMPONENTS, Identified
from anyhull.learn.randomization import DRAWS, Randomization
from anyhull.learn.reference_generator import capability
from anyhull.paper import PLATFORMS
from anyhull.scale import IDENTITY

RESULTS = Path(__file__).parent / "results" / "identify.json"
PIECES = Path(__file__).parent.parent / "out"

FIRST_BOAT = 1000
"""Seed of the first boat; the seed of its sea is 10000 higher. The method was developed on those below."""

SPEEDS = (0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""Speeds of a lap of the paper's rectangle, m/s."""

LONGEST = 82.0
"""Time of a run, s: a whole lap at 0.35 m/s."""

NEXT_SEED, NEXT_VOYAGES = 20000, 10
"""Seed of the first of the next voyages, and their number for each platform."""

EXCITED = 0.1
"""Stated standard deviation below which a component was excited."""

SEAS = {"still": Sea.ideal, "field": Sea.field}


def drawn(seed: int) -> Vessel:
    """A boat of the training distribution, with a surge inertia of 10 kg, on which nothing depends."""
    uniforms = jnp.array(np.random.default_rng(seed).uniform(size=DRAWS), jnp.float32)
    e = Normalized(*map(float, Randomization().sample(uniforms)))
    m11, m22 = 10.0, 10.0 * e.c_rv
    m66 = (m11 - m22) / e.c_uv if abs(e.c_uv) > 1e-9 else 1.0
    hull = Hydrodynamics(0.0, m11 - m22, m66, e.inv_tau_u * m11, e.inv_tau_v * m22, e.inv_tau_r * m66)
    return Vessel(f"boat {seed}", e.alpha_u * m11, e.alpha_v * m22, e.alpha_r * m66, m11, hull)


def unknowns(e: Normalized) -> list[float]:
    return [*map(math.log, e[:7]), math.asinh(e.c_uv)]


def one(seed: int, sea: str) -> dict[str, Any]:
    """True and estimated unknowns of a boat, their standard deviations, and the errors of the lap."""
    vessel = drawn(seed)
    able = capability(np.array(vessel.normalized))
    paths = (rounded_rectangle(speed=speed) for speed in SPEEDS)
    path = next((path for path in paths if feasible(able, path)), None)
    if path is None:
        return {"seed": seed, "followed": False}
    controller = Adaptive(vessel)
    began = time.perf_counter()
    log = simulate(controller, vessel, path, SEAS[sea](), seed=10000 + seed, duration=min(path.duration, LONGEST))
    steered = time.perf_counter()
    found = identify(voyage(log, vessel), "", "", judged=False)
    row: dict[str, Any] = {"seed": seed, "followed": True, "position_cm": log.metrics().position_cm}
    row |= {"true": unknowns(vessel.normalized), "delay": log.about["delay"], "settled": found.settled}
    row |= {"under way": stated(controller.identified("", "")), "whole record": stated(found.found)}
    return row | {"seconds": [steered - began, time.perf_counter() - steered]}


def stated(found: Identified) -> dict[str, Any]:
    prior = found.prior(IDENTITY, changed=np.zeros(8))
    std = np.sqrt(np.diag(prior.covariance))
    return {"mean": prior.mean.tolist(), "std": std.tolist(), "delay": found.delay, "lag": found.lag}


def pieces(sea: str) -> list[dict[str, Any]]:
    path = PIECES / f"identify-{sea}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def sail(sea: str, boats: int, minutes: float) -> None:
    """Add the boats that are missing, for at most that time."""
    PIECES.mkdir(exist_ok=True)
    done, began = {row["seed"] for row in pieces(sea)}, time.monotonic()
    for seed in range(FIRST_BOAT, FIRST_BOAT + boats):
        if seed in done:
            continue
        if time.monotonic() - began > 60 * minutes:
            print("not all: run it again")
            return
        row = one(seed, sea)
        with (PIECES / f"identify-{sea}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def summarize(sea: str) -> dict[str, Any]:
    """For each component the share of the boats within 10 %, and within one, two and three standard deviations."""
    rows = pieces(sea)
    sailed = [row for row in rows if row["followed"]]
    table: dict[str, Any] = {"boats": len(rows), "sailed": len(sailed)}
    if not sailed:
        return table
    table["position_cm_median"] = float(np.median([row["position_cm"] for row in sailed]))
    table["settled"] = float(np.mean([row["settled"] for row in sailed]))
    true = np.array([row["true"] for row in sailed])
    for kind in ("under way", "whole record"):
        mean, std = (np.array([row[kind][name] for row in sailed]) for name in ("mean", "std"))
        error = mean - true
        table[kind] = {}
        for i, name in enumerate(COMPONENTS):
            z, excited = error[:, i] / std[:, i], std[:, i] < EXCITED
            close = np.abs(np.expm1(error[:, i]) if name != "c_uv" else error[:, i]) <= 0.1
            table[kind][name] = {
                "excited": float(excited.mean()),
                "within_10_percent_where_excited": float(close[excited].mean()) if excited.any() else None,
                "median_error_where_excited": float(np.median(np.abs(error[excited, i]))) if excited.any() else None,
                "median_error": float(np.median(np.abs(error[:, i]))),
                "median_std": float(np.median(std[:, i])),
                "within_sd": [float((np.abs(z) <= k).mean()) for k in (1, 2, 3)],
                "median_z": float(np.median(z)),
                "median_abs_z": float(np.median(np.abs(z))),
            }
        off = [abs(sum((row[kind]["delay"][0], row[kind]["lag"][0])) - row["delay"]) for row in sailed]
        table[kind]["delay_and_lag_median_error_s"] = float(np.median(off))
    return table


def next_voyage() -> dict[str, Any]:
    """Mean position error (cm) from the start of a voyage, with what the one before has told, and without.

    The paper's platforms in the field sea, and the same with 30 % more mass and inertia. The voyage before was a lap
    under Adaptive in another sea.
    """
    table: dict[str, Any] = {}
    for platform in PLATFORMS:
        vessel = Vessel.load(platform)
        log = simulate(Adaptive(vessel), vessel, rounded_rectangle(), Sea.field(), seed=NEXT_SEED - 1)
        sources = {
            "without": vessel,
            "under way": replace(vessel, identified=_last(vessel)),
            "whole record": replace(vessel, identified=identify(voyage(log, vessel), "", "", judged=False).found),
        }
        for load, boat in (
            ("same", vessel),
            ("30 % heavier", changed(vessel, 1.3, "X_udot", "Y_vdot", "I_comb", mass=1.3)),
        ):
            for source, known in sources.items():
                errors = []
                for seed in range(NEXT_SEED, NEXT_SEED + NEXT_VOYAGES):
                    sailed = replace(boat, identified=known.identified)
                    run = simulate(Adaptive(sailed), sailed, rounded_rectangle(), Sea.field(), seed=seed, duration=10.0)
                    errors.append([100 * run.position_error[run.time < end].mean() for end in (2.0, 10.0)])
                row = table.setdefault(load, {}).setdefault(source, {})
                row[platform] = dict(zip(("first_2_s_cm", "first_10_s_cm"), np.mean(errors, axis=0), strict=True))
    for load, rows in table.items():
        for source, row in rows.items():
            row["mean"] = {key: float(np.mean([of[key] for of in row.values()])) for key in row[PLATFORMS[0]]}
            print(f"{load:14s} {source:12s} {row['mean']}", flush=True)
    return table


def _last(vessel: Vessel) -> Identified:
    """What Adaptive knows at the end of the voyage before."""
    controller = Adaptive(vessel)
    simulate(controller, vessel, rounded_rectangle(), Sea.field(), seed=NEXT_SEED - 1)
    return controller.identified("", "")


def show(sea: str, table: dict[str, Any]) -> None:
    print(f"{sea}: {table['sailed']} of {table['boats']} boats")
    for kind in ("under way", "whole record"):
        for name in COMPONENTS if kind in table else ():
            of = table[kind][name]
            close = of["within_10_percent_where_excited"]
            print(
                f"  {kind:12s} {name:10s} excited {of['excited']:.2f}, of these within 10 % {close or 0:.2f}; "
                f"within 1, 2, 3 sd {' '.join(f'{share:.2f}' for share in of['within_sd'])}; "
                f"median z {of['median_z']:+.1f}, |z| {of['median_abs_z']:.1f}, error {of['median_error']:.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Calibration of the identification.")
    parser.add_argument("part", choices=(*SEAS, "next", "summary"))
    parser.add_argument("--boats", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time; run again to go on")
    parser.add_argument("--fresh", action="store_true", help="discard the pieces of this sea")
    arguments = parser.parse_args()
    if arguments.part in SEAS:
        if arguments.fresh:
            (PIECES / f"identify-{arguments.part}.jsonl").unlink(missing_ok=True)
        sail(arguments.part, arguments.boats, arguments.minutes)
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if arguments.part == "next":
        results["next"] = next_voyage()
    for sea in SEAS:
        if pieces(sea):
            results[sea] = summarize(sea)
            show(sea, results[sea])
    command = "python identify.py still && python identify.py field && python identify.py next"
    save(RESULTS, results | {"command": command, "machine": describe("numpy", "casadi")})


if __name__ == "__main__":
    main()
