"""What the page takes from the package: vessels, policies, tunings and constants, as JSON."""

from __future__ import annotations

import base64
from dataclasses import asdict
from importlib import resources
from typing import Any

import numpy as np

from anyhull.control import pid
from anyhull.control.mpc import TUNINGS
from anyhull.dynamics import SUBSTEP
from anyhull.numpy_policy import Layer
from anyhull.observation import CURRENT_SCALE, DELAY_SCALE, FORCE_SCALE, LOG_STD_RANGE, MODULATION, STILL
from anyhull.pilot import Pilot
from anyhull.reference import PREVIEW
from anyhull.scale import PERIOD, derating
from anyhull.sea import Sea
from anyhull.vessel import WORKING_POINT, Vessel, catalogue

POLICY = "field"
"""The shipped policy that the page runs; a second one would make the page larger than 1 MB."""

BASELINE = "field-ppo-general"
"""PPO (general), trained for the same sea: part of the page where it is part of the package."""


def page_data() -> dict[str, Any]:
    """The constants of the model, the policies and the vessels that they can steer."""
    pilot = Pilot.load(POLICY)
    policies = {"student": _policy(pilot)}
    baseline = resources.files("anyhull") / "policies" / "baselines" / f"{BASELINE}.safetensors"
    if baseline.is_file():
        policies["ppo"] = _policy(Pilot.load(str(baseline)))
    sea = Sea.field()
    return {
        "period": PERIOD,
        "preview": PREVIEW,
        "substep": SUBSTEP,
        "still": STILL,
        "workingPoint": WORKING_POINT,
        "modulation": MODULATION,
        "logStd": LOG_STD_RANGE,
        "seaScales": {"delay": DELAY_SCALE, "current": CURRENT_SCALE, "force": FORCE_SCALE},
        "sea": {"currentDecay": sea.current_decay, "forceDecay": sea.force_decay},
        "pid": {"T": pid.T},
        "mpc": {name: asdict(TUNINGS[name]) for name in ("tight", "field")},
        "envelope": pilot.envelope,
        "policies": policies,
        "vessels": {
            name: vessel_data(vessel) for name in catalogue() if not (vessel := Vessel.load(name)).under_actuated
        },
        "withoutSway": [vessel.name for name in catalogue() if (vessel := Vessel.load(name)).under_actuated],
    }


def vessel_data(vessel: Vessel) -> dict[str, Any]:
    """A vessel as the page needs it, SI."""
    keep = ("name", "m", "Fx", "Fy", "Mz", "length", "beam", "caveats")
    return {name: getattr(vessel, name) for name in keep} | {
        "hydrodynamics": asdict(vessel.hull),
        "scale": {"length": vessel.scale.length, "time": vessel.scale.time},
        "derating": derating(vessel),
        "thrusters": [
            {"kind": t.kind, "x": t.x, "y": t.y, "angle": t.angle, "forward": t.forward} for t in vessel.thrusters
        ],
    }


def _policy(pilot: Pilot) -> dict[str, Any]:
    """A policy: input scaling, and the tensors of the deployed step as float32 in the order of `layout`."""
    layout: list[tuple[str, int, int]] = []
    tensors = []

    def add(name: str, layer: Layer) -> None:
        layout.append((name, *layer.weight.shape))
        tensors.extend([layer.weight, layer.bias])

    parts = pilot.parts
    for layer in parts.actor:
        add("actor", layer)
    for layer in parts.head:
        add("head", layer)
    for layer in parts.dynamics_head:
        add("dynamics_head", layer)
    if parts.modulation:
        add("modulation", parts.modulation)
    if parts.cell:
        layout.append(("cell", parts.cell.weight_ih.shape[1], parts.cell.bias_n.size))
        tensors.extend(parts.cell)
    numbers = np.concatenate([np.ravel(tensor) for tensor in tensors]).astype("<f4")
    return {
        "scales": asdict(pilot.scales),
        "layout": layout,
        "weights": base64.b64encode(numbers.tobytes()).decode(),
    }
