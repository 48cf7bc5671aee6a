"""Round trips through the links, by real sockets, with peers that we did not write.

    python benchmarks/links.py mavlink --json benchmarks/results/links-mavlink.json

The peer runs in a process of its own and plays the autopilot: with pymavlink's `mavutil`, and with MAVSDK's C++ library
(its `mavlink_direct`). It sends `--messages` states at `--rate`, and reports each override that it gets as RC_CHANNELS.
The age of a state is the time from the peer's call until our link returns it; the age of a command is the time from our
call until the peer's library returns it; a round trip is a command until our link returns its confirmation. Both
processes read one clock. A kind of link is a function of `KINDS`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull.onboard.messages import Command, Odometry, Status
from anyhull.twin.ardupilot_rover import ADVISED, DEFAULTS

ADDRESS = "127.0.0.1:14650"
PARAMETERS = (
    DEFAULTS
    | ADVISED
    | {f"RC{n}_{name}": value for n in (1, 3) for name, value in {"MIN": 1000.0, "TRIM": 1500.0, "MAX": 2000.0}.items()}
)
STEERING = 250
"""Steps of the steering in one direction, which number the commands together with the throttle."""

Times = dict[str, dict[int, float]]


def numbered(number: int) -> tuple[float, float, float]:
    """The wrench that stands for a number below 12,000: no two have the same pulses."""
    return (number // STEERING) / 50, 0.0, (number % STEERING) / STEERING


def number_of(steering: int, throttle: int) -> int:
    """The number whose wrench has these pulses: half shares of 500 us, the throttle in whole percents."""
    return round((throttle - 1500) / 5) * STEERING + steering - 1500


def pymavlink_peer(pipe: Connection, messages: int, rate: float) -> None:
    """An autopilot made of pymavlink's connection."""
    from pymavlink import mavutil

    peer = mavutil.mavlink_connection(f"udpout:{ADDRESS}", source_system=1, source_component=1, dialect="ardupilotmega")
    times: Times = {"states": {}, "commands": {}}
    began, sent, quiet = time.monotonic(), 0, 0.0
    while quiet < 1.0:
        now = time.monotonic()
        if sent < messages + 100 and now - began >= sent / rate:
            stamp = round((now - began) * 1000) + 1
            if sent % 10 == 0:
                peer.mav.heartbeat_send(11, 3, 209, 0, 4)
            peer.mav.attitude_send(stamp, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            times["states"][sent] = time.monotonic()
            peer.mav.local_position_ned_send(stamp, float(sent), 0.0, 0.0, 0.0, 0.0, 0.0)
            sent += 1
        message = peer.recv_match(blocking=False)
        if message is None:
            if sent >= messages + 100:
                quiet += 1e-3
            time.sleep(2e-4)
            continue
        quiet = 0.0
        if message.get_type() == "PARAM_REQUEST_READ" and message.param_id in PARAMETERS:
            peer.mav.param_value_send(message.param_id.encode(), PARAMETERS[message.param_id], 9, 100, 0)
        elif message.get_type() == "RC_CHANNELS_OVERRIDE" and message.chan1_raw:
            number = number_of(message.chan1_raw, message.chan3_raw)
            times["commands"].setdefault(number, time.monotonic())
            stamp = round((time.monotonic() - began) * 1000) + 1
            pulses = [message.chan1_raw, 1500, message.chan3_raw] + [1500] * 15
            peer.mav.rc_channels_send(stamp, 16, *pulses, 255)
    pipe.send(times)
    peer.close()


def mavsdk_peer(pipe: Connection, messages: int, rate: float) -> None:
    """An autopilot made of MAVSDK's library, which parses and packs in C++."""
    from mavsdk import Configuration, Mavsdk
    from mavsdk.plugins.mavlink_direct import MavlinkDirect, MavlinkMessage

    sdk = Mavsdk(Configuration.create_manual(1, 1, False))
    sdk.add_any_connection(f"udpin://{ADDRESS}")
    times: Times = {"states": {}, "commands": {}}
    began = time.monotonic()

    def stamp() -> int:
        return round((time.monotonic() - began) * 1000) + 1

    while not sdk.get_systems():
        time.sleep(0.05)
        if time.monotonic() - began > 10:
            pipe.send(times)
            return
    direct = MavlinkDirect(sdk.get_systems()[0])

    def send(name: str, **fields: Any) -> None:
        direct.send_message(MavlinkMessage(name, 1, 1, 0, 0, json.dumps(fields)))

    def on_override(message: Any, _: Any = None) -> None:
        fields = json.loads(message.fields_json)
        if fields["chan1_raw"]:
            number = number_of(fields["chan1_raw"], fields["chan3_raw"])
            times["commands"].setdefault(number, time.monotonic())
            pulses = {f"chan{n}_raw": 1500 for n in range(1, 19)} | {k: fields[k] for k in ("chan1_raw", "chan3_raw")}
            send("RC_CHANNELS", time_boot_ms=stamp(), chancount=16, rssi=255, **pulses)

    def on_request(message: Any, _: Any = None) -> None:
        name = json.loads(message.fields_json)["param_id"]
        if name in PARAMETERS:
            value = PARAMETERS[name]
            send("PARAM_VALUE", param_id=name, param_value=value, param_type=9, param_count=100, param_index=0)

    direct.subscribe_message("RC_CHANNELS_OVERRIDE", on_override)
    direct.subscribe_message("PARAM_REQUEST_READ", on_request)
    level = {"roll": 0.0, "pitch": 0.0, "yaw": 0.0, "rollspeed": 0.0, "pitchspeed": 0.0, "yawspeed": 0.0}
    still = {"y": 0.0, "z": 0.0, "vx": 0.0, "vy": 0.0, "vz": 0.0}
    beat = {"type": 11, "autopilot": 3, "base_mode": 209, "custom_mode": 0, "system_status": 4, "mavlink_version": 3}
    for sent in range(messages + 300):
        time.sleep(max(0.0, began + 2.0 + sent / rate - time.monotonic()))
        if sent % 10 == 0:
            send("HEARTBEAT", **beat)
        send("ATTITUDE", time_boot_ms=stamp(), **level)
        times["states"][sent] = time.monotonic()
        send("LOCAL_POSITION_NED", time_boot_ms=stamp(), x=float(sent), **still)
    time.sleep(1.0)
    pipe.send(times)


PEERS: dict[str, tuple[str, Callable[[Connection, int, float], None]]] = {
    "pymavlink": ("udp", pymavlink_peer),
    "mavsdk": ("udpout", mavsdk_peer),
}
"""Which end listens, and the peer."""


def mavlink(messages: int, rate: float) -> dict[str, Any]:
    """Our link to an ArduPilot autopilot, with each of the peers."""
    return {name: _mavlink(how, peer, messages, rate) for name, (how, peer) in PEERS.items()}


def _mavlink(how: str, peer: Callable[[Connection, int, float], None], messages: int, rate: float) -> dict[str, Any]:
    from anyhull.onboard.links.mavlink.config import MAVLinkConfig
    from anyhull.onboard.links.mavlink.link import open_mavlink

    link = open_mavlink(MAVLinkConfig(address=f"{how}:{ADDRESS}"), None)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=peer, args=(theirs, messages, rate))
    process.start()
    got: Times = {"states": {}, "commands": {}, "confirmed": {}}
    sent, due = 0, 0.0
    began = time.monotonic()
    while not ours.poll() and time.monotonic() - began < 60 + 2 * messages / rate:
        for message, arrival in link.receive(0.001):
            if isinstance(message, Odometry):
                got["states"].setdefault(round(message.pose[0]), arrival)
            elif isinstance(message, Status) and message.accepted >= 0:
                got["confirmed"].setdefault(message.accepted, arrival)
        now = time.monotonic()
        # MAVSDK adds heartbeats of its own, of a vehicle that is not armed: until the next the link sends nothing.
        permitted = not link.parameters.unready() and link._heartbeat.permits(now)
        if sent < messages and now >= due and permitted:
            due = max(due + 1 / rate, now)
            got["commands"][sent] = time.monotonic()
            link.send(Command(1, sent, 0.0, (), (), numbered(sent)))
            sent += 1
    times: Times = ours.recv() if ours.poll() else {"states": {}, "commands": {}}
    process.join(10)
    if process.is_alive():
        process.kill()
    rejected = dict(link.rejected)
    link.close()
    first = min(got["states"], default=0)
    wanted = [n for n in times["states"] if n >= first][:messages]
    commands = [n for n in got["commands"] if n in times["commands"]]
    return {
        "states_sent": len(wanted),
        "states_received": sum(n in got["states"] for n in wanted),
        "commands_sent": len(got["commands"]),
        "commands_received": len(commands),
        "commands_confirmed": len(got["confirmed"]),
        "state_age_ms": _quantiles([got["states"][n] - times["states"][n] for n in wanted if n in got["states"]]),
        "command_age_ms": _quantiles([times["commands"][n] - got["commands"][n] for n in commands]),
        "round_trip_ms": _quantiles([at - got["commands"][n] for n, at in got["confirmed"].items()]),
        "rejected": rejected,
    }


def _quantiles(ages: list[float]) -> dict[str, float]:
    if not ages:
        return {}
    p50, p99 = np.quantile(ages, (0.5, 0.99)) * 1e3
    return {"p50": round(float(p50), 3), "p99": round(float(p99), 3), "max": round(1e3 * max(ages), 3)}


KINDS: dict[str, Callable[[int, float], dict[str, Any]]] = {"mavlink": mavlink}


def main() -> None:
    """Measure the links named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("links", nargs="*", help=f"{', '.join(KINDS)}; by default all")
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=100.0, help="Hz")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results: dict[str, Any] = {"machine": describe("numpy", "pymavlink", "mavsdk")}
    results |= {"messages": given.messages, "rate_hz": given.rate, "load": list(os.getloadavg())}
    for name in given.links or KINDS:
        results[name] = KINDS[name](given.messages, given.rate)
    print(json.dumps(results, indent=1))
    save(given.json, results)


if __name__ == "__main__":
    main()
