"""Boat and pilot in two processes by the wall clock, under process faults and a flood of forged datagrams.

    python benchmarks/loop.py --minutes 60 --flood 10000 --json benchmarks/results/loop.json

Every `--every` s one of these, in turn: the boat is stopped (SIGSTOP) for 3 s, the pilot's console hangs up (SIGHUP),
the boat is killed and restarted, the pilot is killed and restarted. The pilot's console is a full pipe that nobody
reads. The forged datagrams are without a valid tag; as root they have the boat's own source address. The guard is
rearmed by SIGUSR1. The periods are those that each pilot process measures; between two processes there is none.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from multiprocessing import Process
from pathlib import Path
from typing import Any

from machine import describe, save

from anyhull.onboard.links.keys import make_key

BOAT = Path(__file__).parents[1] / "examples" / "boat.toml"
COMMAND = [sys.executable, "-m", "anyhull.cli"]
P99_MS, MAX_MS = 110.0, 200.0
"""What is asked of the periods."""

REARM = 15.0
"""Time between two signals to rearm, s."""


def flood(rate: int, target: tuple[str, int], source: int) -> None:
    """Send `rate` forged datagrams a second to `target`, from the port `source` where that is permitted."""
    try:
        sender, forged = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP), True
    except PermissionError:
        sender, forged = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), False
    message = json.dumps({"v": 2, "type": "position", "session": 1, "seq": 1, "time": 0.0, "x": 0.0, "y": 0.0}).encode()
    tag = os.urandom(16)
    contents = [os.urandom(100), message, tag + b"\x01" + os.urandom(32), tag + b"\x02" + bytes(8) + message]
    began, sent = time.monotonic(), 0
    while True:
        for _ in range(int((time.monotonic() - began) * rate) - sent):
            content = random.choice(contents)
            header = struct.pack("!HHHH", source, target[1], 8 + len(content), 0) if forged else b""
            with suppress(OSError):
                sender.sendto(header + content, target)
            sent += 1
        time.sleep(0.002)


def free_ports() -> tuple[int, int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b:
        a.bind(("127.0.0.1", 0))
        b.bind(("127.0.0.1", 0))
        return a.getsockname()[1], b.getsockname()[1]


def resident_mb(process: subprocess.Popen[bytes]) -> float:
    """Memory of a running process, MB."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return math.nan


class Trial:
    """A boat and its pilot as processes in a folder."""

    def __init__(self, folder: Path, controller: str) -> None:
        boat_port, pilot_port = self.ports = free_ports()
        make_key(folder / "boat.key")
        file = folder / "boat.toml"
        link = f'\n[link]\nlisten = "127.0.0.1:{pilot_port}"\npeer = "127.0.0.1:{boat_port}"\nkey = "boat.key"\n'
        file.write_text(BOAT.read_text() + link)
        self.out = folder / "run.npz"
        self._boat = [*COMMAND, "twin", "--vessel", str(file), "--sea", "light-air", "--json"]
        self._pilot = [
            *COMMAND,
            "pilot",
            str(file),
            "--controller",
            controller,
            "--laps",
            "400",
            "--out",
            str(self.out),
        ]
        self.faults: Counter[str] = Counter()
        self.memory: list[list[float]] = []
        """Of each pilot process, MB, once a second."""
        self.start_boat()
        self.start_pilot()

    def start_boat(self) -> None:
        nowhere = subprocess.DEVNULL
        self.boat = subprocess.Popen(self._boat, stdout=nowhere, stderr=nowhere)

    def start_pilot(self) -> None:
        _, blocked = os.pipe()
        os.set_blocking(blocked, False)
        with suppress(BlockingIOError):
            while True:
                os.write(blocked, bytes(1024))
        os.set_blocking(blocked, True)
        self.pilot = subprocess.Popen(self._pilot, stdout=subprocess.DEVNULL, stderr=blocked)
        self._started = time.time()
        self.memory.append([])

    @property
    def steering(self) -> bool:
        """Whether the pilot has begun its journal; before, it does not handle signals."""
        journal = self.out.with_suffix(".jsonl")
        return journal.exists() and journal.stat().st_mtime > self._started

    def disturb(self, kind: str) -> None:
        """Cause a fault."""
        self.faults[kind] += 1
        if kind == "boat stopped":
            self.boat.send_signal(signal.SIGSTOP)
            time.sleep(3.0)
            self.boat.send_signal(signal.SIGCONT)
        elif kind == "console hung up":
            self.pilot.send_signal(signal.SIGHUP)
        elif kind == "boat killed":
            self.boat.kill()
            self.boat.wait()
            self.start_boat()
        else:
            self.pilot.kill()
            self.pilot.wait()
            self.start_pilot()

    def end(self) -> int:
        """End both; the exit status of the pilot."""
        self.pilot.send_signal(signal.SIGTERM)
        status = self.pilot.wait(120)
        self.boat.kill()
        self.boat.wait()
        return status


def run(trial: Trial, seconds: float, every: float) -> None:
    """Disturb the two for a time."""
    kinds = itertools.cycle(("boat stopped", "console hung up", "boat killed", "pilot killed"))
    began = time.monotonic()
    disturb_at, rearm_at = began + every, began + REARM
    while (now := time.monotonic()) < began + seconds:
        for name, process in (("pilot", trial.pilot), ("boat", trial.boat)):
            if process.poll() is not None:
                sys.exit(f"the {name} has ended by itself with status {process.returncode}")
        trial.memory[-1].append(resident_mb(trial.pilot))
        if now >= rearm_at and trial.steering:
            trial.pilot.send_signal(signal.SIGUSR1)
            rearm_at = now + REARM
        if now >= disturb_at and trial.steering:
            trial.disturb(next(kinds))
            disturb_at = now + every
        time.sleep(1.0)


def _rejected(counts: dict[str, int] | None) -> int | None:
    """Datagrams rejected; None for a run that was killed, whose counts are lost."""
    if counts is None:
        return None
    return sum(times for what, times in counts.items() if what.startswith("message rejected"))


def results(trial: Trial) -> dict[str, Any]:
    """The periods of each pilot process from its log, in their order, and its memory."""
    from anyhull.log import Log

    killed = len(trial.memory) - 1
    logs = [*(trial.out.with_stem(f"run-killed-{i + 1}") for i in range(killed)), trial.out]
    processes: list[dict[str, Any]] = []
    for path, memory in zip(logs, trial.memory, strict=True):
        about = Log.load(path).about
        memory = memory[10:] or memory  # without the start
        counts = about.get("event_counts")
        found = {"ended": about["ended"] or "killed", "progress_s": round(about["progress"], 1), **about["loop"]}
        found |= {"memory_mb": [round(memory[0], 1), round(memory[-1], 1)], "rejected": _rejected(counts)}
        processes.append(found)
    return {
        "p99_ms": max(process["p99_ms"] for process in processes),
        "max_ms": max(process["max_ms"] for process in processes),
        "faults": dict(trial.faults),
        "processes": processes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--flood", type=int, default=0, help="Forged datagrams a second.")
    parser.add_argument("--every", type=float, default=20.0, help="Time between two faults, s.")
    parser.add_argument("--controller", default="field")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), options.controller)
        attacker = Process(
            target=flood, args=(options.flood, ("127.0.0.1", trial.ports[1]), trial.ports[0]), daemon=True
        )
        if options.flood:
            attacker.start()
        try:
            run(trial, 60 * options.minutes, options.every)
            status = trial.end()
        finally:
            for process in (trial.pilot, trial.boat):
                process.kill()
            if options.flood:
                attacker.kill()
        found = results(trial)
    settings = {name: getattr(options, name) for name in ("minutes", "flood", "every", "controller")}
    found = settings | {"from_the_boats_address": os.geteuid() == 0, "exit_status": status} | found
    for name, value in found.items():
        print(f"{name}: {json.dumps(value, indent=1) if name == 'processes' else value}")
    save(options.json, {"machine": describe("numpy")} | found)
    if status or found["p99_ms"] >= P99_MS or found["max_ms"] >= MAX_MS:
        sys.exit(f"must be below {P99_MS:g} ms (p99) and {MAX_MS:g} ms (max)")


if __name__ == "__main__":
    main()
