"""Steps and seconds of every training run of the study."""

from __future__ import annotations

from typing import Any

from anyhull.study.entries import LABELS, Table
from anyhull.study.results import Result

NAMES = LABELS | {"sweep": "Student with one latent number"}


def budgets(results: dict[str, Result]) -> list[Table]:
    """Steps of the simulator for one seed of each trained row, and the time of its job."""
    rows = tuple(
        (
            result.study,
            ", ".join(NAMES[row] for row in result.data["rows"]),
            " + ".join(_steps(steps) for steps in phase_steps(result.config)),
            f"{result.seconds:.0f}",
            str(result.seeds),
            str(result.hardware.get("device", "")),
        )
        for result in results.values()
        if result.seeds and result.config
    )
    notes = (
        "Steps of one seed (of one vessel for PPO (specific)), phase by phase; the paper has 6 × 10⁷ for both phases. "
        "Seconds are wall-clock time of all seeds together, with compilation and evaluation. Where jobs ran side by "
        "side on one device, the time of each includes the others' share of it.",
    )
    columns = ("study", "", "steps", "seconds", "seeds", "device")
    return [Table("budgets", "Steps and seconds", columns, rows, notes)] if rows else []


def phase_steps(config: dict[str, Any]) -> list[int]:
    """Environment steps of each phase."""
    config = config[config["order"][0]] if "order" in config else config
    ppo, adapter = config["ppo"]["total_steps"], config["distillation"]["total_steps"]
    if config["recipe"] == "apg":
        windows = [config[phase] for phase in ("apg", "finetune")]
        teacher, student = (w["updates"] * w["num_envs"] * w["horizon"] for w in windows)
        return [teacher, adapter, student]
    return [ppo, adapter] if config["method"] in ("student", "sweep") else [ppo]


def _steps(number: int) -> str:
    """As in 4.5 × 10⁷."""
    return f"{number / 1e7:.3g} × 10⁷"
