"""Ages of state and command over the ROS 2 link, with zenoh-ros2-sdk as the boat in a process of its own.

    cd benchmarks && python links_ros2.py --json results/links-ros2.json

The boat publishes nav_msgs/Odometry 100 times a second, each stamped with the system's clock. The pilot answers each
with a geometry_msgs/WrenchStamped of the time at which it sends, and the boat notes when that arrives. Both are on one
machine, so that one clock serves, through a zenoh router in the pilot's process. The age of the state is from its
stamp to its arrival at the pilot's loop, decoded; that of the command from its stamp to the boat's callback, decoded.
The boat's messages are defined by files that rosbags writes: zenoh-ros2-sdk would else fetch them.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull import Vessel
from anyhull.onboard.links.ros2 import ROS2Config, cdr
from anyhull.onboard.links.ros2.node import ODOMETRY, WRENCH, ROS2Link
from anyhull.onboard.links.ros2.zenoh_transport import ZenohTransport
from anyhull.onboard.messages import Command, Odometry

DOMAIN, RATE = 17, 100.0
"""ROS domain, and odometries a second."""

LAST = 2.0
"""Time for the last messages, s."""


def write_definitions(folder: Path, *kinds: str) -> None:
    """Definitions of messages as files."""
    store, todo = cdr.typestore(), list(kinds)
    while todo:
        kind = todo.pop()
        package, _, name = kind.split("/")
        file = folder / package / "msg" / f"{name}.msg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(store.generate_msgdef(kind, ros_version=2)[0].partition("=" * 80)[0])
        todo += [about for _, (node, about) in store.fielddefs[kind][1] if node.name == "NAME"]


def boat(port: int, definitions: str, count: int) -> None:
    """The boat's process: it prints the ages of the commands, s, as JSON."""
    from zenoh_ros2_sdk import ROS2Publisher, ROS2Subscriber
    from zenoh_ros2_sdk import message_registry as registry
    from zenoh_ros2_sdk.session import ZenohSession

    registry._registry = registry.MessageRegistry(definitions)
    session = ZenohSession.get_instance("127.0.0.1", port)
    where: dict[str, Any] = {"domain_id": DOMAIN, "router_ip": "127.0.0.1", "router_port": port}
    ages: list[float] = []

    def on_command(message: Any) -> None:
        stamp = message.header.stamp
        ages.append(time.time() - stamp.sec - 1e-9 * stamp.nanosec)

    publisher = ROS2Publisher("/odom", ODOMETRY, **where)
    subscriber = ROS2Subscriber("/cmd_wrench", WRENCH, on_command, **where)
    print("ready", flush=True)
    sys.stdin.readline()
    due = time.monotonic()
    for i in range(count):
        while (wait := due - time.monotonic()) > 0:
            time.sleep(wait)
        due += 1 / RATE
        ns = time.time_ns()
        header = {"stamp": {"sec": ns // 10**9, "nanosec": ns % 10**9}, "frame_id": "odom"}
        pose = {"pose": {"position": {"x": float(i)}, "orientation": {"w": 1.0}}}
        fields = {"header": header, "child_frame_id": "base_link", "pose": pose}
        message = cdr.build(session.store, ODOMETRY, fields)
        publisher.publish(**{name: getattr(message, name) for name in ("header", "child_frame_id", "pose", "twist")})
    time.sleep(LAST)
    print(json.dumps(ages), flush=True)
    subscriber.close()
    publisher.close()
    session.close()


def measure(count: int) -> dict[str, Any]:
    """Ages of `count` round trips, ms."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    config = ROS2Config(router=f"tcp/127.0.0.1:{port}", domain=DOMAIN)
    router = ZenohTransport(ROS2Config(router=config.router, domain=DOMAIN, node="router"), route=True)
    link = ROS2Link(config, ZenohTransport(config, clock=time.time), Vessel.load("platform-a"), clock=time.time)
    with tempfile.TemporaryDirectory() as folder:
        write_definitions(Path(folder), ODOMETRY, WRENCH)
        command = [sys.executable, __file__, "--boat", str(port), folder, str(count)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            while process.stdout.readline().strip() != "ready":
                pass
            while link.unready() or not link.transport.publishers("/odom"):
                time.sleep(0.05)
            time.sleep(1.0)  # the boat declares its token before its subscription
            process.stdin.write("\n")
            process.stdin.flush()
            states: list[tuple[float, float]] = []
            ends = time.monotonic() + count / RATE + LAST
            while time.monotonic() < ends and len(states) < count:
                for message, _ in link.receive(0.05):
                    if isinstance(message, Odometry):
                        states.append((message.pose[0], time.time() - message.time))
                        link.send(Command(1, len(states), time.time(), (), (), (0.1, 0.0, 0.0)))
            commands = json.loads(process.stdout.readline())
    rejected = dict(link.rejected)
    link.close()
    router.close()
    in_order = [x for x, _ in states] == [float(i) for i in range(count)]
    return {
        "round_trips": count,
        "states_received": len(states),
        "states_in_order": in_order,
        "commands_received": len(commands),
        "rejected": rejected,
        "state_age_ms": _quantiles([age for _, age in states]),
        "command_age_ms": _quantiles(commands),
    }


def _quantiles(ages: list[float]) -> dict[str, float]:
    ms = 1e3 * np.array(ages)
    return {name: round(float(np.quantile(ms, q)), 3) for name, q in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--boat", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.boat:
        port, folder, count = arguments.boat
        boat(int(port), folder, int(count))
        return
    results = measure(arguments.count)
    print(json.dumps(results, indent=1))
    packages = ("numpy", "eclipse-zenoh", "rosbags", "zenoh-ros2-sdk")
    save(arguments.json, {"machine": describe(*packages), "rate_hz": RATE, **results})


if __name__ == "__main__":
    main()
