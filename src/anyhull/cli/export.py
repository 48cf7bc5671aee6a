"""`anyhull export`: a policy for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.errors import InputError
from anyhull.pilot import Pilot
from anyhull.policy_file import shipped
from anyhull.vessel import Vessel


def export(
    policy: Annotated[str, typer.Argument(help=f"{', '.join(shipped())}, or a path to a .safetensors file.")],
    onnx: Annotated[Path, typer.Option(help="Write the graph to this .onnx.")],
    vessel: Annotated[
        str | None, typer.Option(help="The vessel of a teacher: a name of the catalogue, or a TOML file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a policy as one ONNX graph from pose, velocity and reference to command, with its memory in and out."""
    from anyhull.export import UNITS, build, check_path, save

    check_path(onnx)
    pilot = Pilot.load(policy, None if vessel is None else Vessel.load(vessel))
    if vessel is not None and not (pilot.about["kind"] == "teacher" and pilot.parts.fixed_latent.size):
        raise InputError(f"--vessel {vessel}: {policy} is no teacher and takes no vessel: leave the option out")
    model = build(pilot)
    save(model, onnx)
    ends = {"input": model.graph.input, "output": model.graph.output}
    values = [
        {
            "name": value.name,
            "is": end,
            "type": "float64" if value.type.tensor_type.elem_type == 11 else "float32",
            "shape": [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim],
            "holds": UNITS[value.name],
        }
        for end, found in ends.items()
        for value in found
    ]
    if as_json:
        print_json(
            {"policy": policy, "kind": pilot.about["kind"], "vessel": vessel, "values": values, "file": str(onnx)}
        )
        return
    table = new_table(["", "name", "type", "shape"], left=("name", "type", "shape"))
    for value in values:
        table.add_row(value["is"], value["name"], value["type"], " × ".join(map(str, value["shape"])))
    console = open_console()
    console.print(f"{policy}, {pilot.about['kind']}, {onnx.stat().st_size / 1000:.0f} kB; one row for each boat\n")
    console.print(table)
    console.print(f"graph: {onnx}", soft_wrap=True)
