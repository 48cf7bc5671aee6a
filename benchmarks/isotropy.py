"""PPO (specific) on hulls whose translation does, or does not, depend on heading.

    python isotropy.py --json results/isotropy.json    # the paper's budget, three seeds; on a GPU
    python isotropy.py --json results/isotropy.json --seeds 1 --hull "platform-a, twice both"    # 50 minutes on a core

Platforms A and B have equal mass, added mass, damping and force in surge and sway: their translation does not depend on
heading. The Roboats' does. Is the heading error that the paper's recipe leaves on A and B due to that? Here A gets the
sway drag or the sway added mass of a slender hull, and two Roboats get in sway what they have in surge. The rows of
the vessels as they are belong to the study (`anyhull study ideal --job ideal-ppo-specific`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull.hydrodynamics import Theta
from anyhull.learn import checkpoints, trainer
from anyhull.learn.config import Config, paper
from anyhull.study.train_jobs import FINAL, tiny
from anyhull.vessel import Vessel

METHOD = "ppo-specific"


def hulls() -> dict[str, Theta]:
    """The changed vessels by name."""
    a, one, two = (Vessel.load(name).theta for name in ("platform-a", "roboat-1", "roboat-2"))
    return {
        "platform-a, twice the sway damping": a._replace(Y_v=2 * a.Y_v),
        "platform-a, twice the sway added mass": a._replace(Y_vdot=2 * a.Y_vdot),
        "platform-a, twice both": a._replace(Y_v=2 * a.Y_v, Y_vdot=2 * a.Y_vdot),
        "roboat-1, sway as surge": one._replace(Y_v=one.X_u, Y_vdot=one.X_udot),
        "roboat-2, sway as surge": two._replace(Y_v=two.X_u, Y_vdot=two.X_udot),
    }


def configs(quick: bool) -> dict[str, Config]:
    """PPO (specific) around each hull."""
    base = paper(METHOD, vessel="platform-a")
    made = {name: trainer.around(base, theta) for name, theta in hulls().items()}
    return {name: tiny(config) for name, config in made.items()} if quick else made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--hull", nargs="*", choices=list(hulls()), help="these hulls; by default all")
    parser.add_argument("--work", type=Path, default=Path("../runs/isotropy"), help="folder of the training run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--commit", help="commit to record where there is no git repository")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to test the script: the figures mean nothing")
    options = parser.parse_args()

    chosen = {name: config for name, config in configs(options.quick).items() if name in (options.hull or hulls())}
    slugs = {name.replace(", ", "-").replace(" ", "-"): config for name, config in chosen.items()}
    resumed = (options.work / "config.json").exists()
    trainer.train(slugs, options.work, seeds=options.seeds, resume=resumed)
    files = trainer.paths(options.work, FINAL, options.seeds, list(slugs))
    earlier = json.loads(options.json.read_text()) if options.json and options.json.exists() else {"rows": {}}
    rows: dict[str, Any] = earlier["rows"]
    for i, name in enumerate(chosen):
        own = files[i * options.seeds : (i + 1) * options.seeds]
        found = [checkpoints.read_about(file)["metrics"] for file in own]
        rows[name] = {what: [one[what] for one in found] for what in ("position_cm", "heading_deg")}
        heading = rows[name]["heading_deg"]
        print(
            f"{name:40s} {np.mean(rows[name]['position_cm']):6.3f} cm  {np.mean(heading):6.2f}°  {np.round(heading, 2)}"
        )
    save(options.json, {"machine": describe(), "rows": rows}, options.commit)


if __name__ == "__main__":
    main()
