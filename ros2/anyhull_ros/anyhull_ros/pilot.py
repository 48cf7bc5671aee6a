"""Runs `anyhull pilot` with the parameters of a ROS 2 node.

`boat` is the boat's file. `controller`, `mission`, `reference`, `waypoints`, `speed`, `out` and `from_link` are options
of the command line. All others are fields of the file's table [link], which they replace: topics, quality of service
and frames.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

OPTIONS = ("controller", "mission", "reference", "waypoints", "speed", "out")
"""Parameters that are options of the command line."""

OF_ROS = ("use_sim_time", "start_type_description_service")
"""Parameters that every node has; stamps tell the time here, so that the first has no effect."""


def main() -> None:
    """Read the parameters, and become the pilot."""
    import rclpy

    rclpy.init()
    node = rclpy.create_node("anyhull_pilot", automatically_declare_parameters_from_overrides=True)
    parameters = {name: found.value for name, found in node.get_parameters_by_prefix("").items()}
    own = {"node": node.get_name(), "namespace": node.get_namespace()}
    node.destroy_node()
    rclpy.shutdown()
    try:
        command = arguments(own | parameters, Path(tempfile.mkdtemp(prefix="anyhull_")))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    os.execv(sys.executable, [sys.executable, "-m", "anyhull.cli", *command])


def arguments(parameters: dict[str, Any], folder: Path) -> list[str]:
    """The command line for a node's parameters; the boat's file with its [link] is written to `folder`."""
    given = {name: value for name, value in parameters.items() if name not in OF_ROS and value not in ("", None)}
    if "boat" not in given:
        raise ValueError("parameter boat is missing: must be the path of the boat's TOML file")
    boat = Path(given.pop("boat")).expanduser()
    command = ["pilot", str(folder / boat.name)]
    for name in OPTIONS:
        if name in given:
            command += [f"--{name}", str(given.pop(name))]
    command += ["--from-link"] * bool(given.pop("from_link", False))
    table = tomllib.loads(boat.read_text())
    link = {"kind": "ros2"} | table.get("link", {})
    # The node's own name and namespace come before nothing that the file states.
    table["link"] = {key: given.pop(key) for key in ("node", "namespace") if key in given} | link | given
    (folder / boat.name).write_text(as_toml(table))
    return command


def as_toml(table: dict[str, Any]) -> str:
    """A boat's file: values first, then its tables; strings, numbers and lists are written as in JSON."""
    lines = [f"{key} = {_value(value)}" for key, value in table.items() if not _is_table(value)]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]", *(f"{name} = {_value(entry)}" for name, entry in value.items())]
        elif _is_table(value):
            for entry in value:
                lines += ["", f"[[{key}]]", *(f"{name} = {_value(part)}" for name, part in entry.items())]
    return "\n".join(lines) + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _value(value: Any) -> str:
    # Lists of a node's parameters may be arrays.
    plain = value if isinstance(value, str | bool | int | float) else list(value)
    return json.dumps(plain, ensure_ascii=False)


if __name__ == "__main__":
    main()
