"""Mutation fuzzing of everything that reads foreign bytes: messages, policies, logs, journals, TOML, missions, CLI.

    cd benchmarks && python fuzz.py --target decoder --inputs 1000000 --json results/fuzz.json
    cd benchmarks && python fuzz.py --target all --inputs 20000 --json results/fuzz.json

An input is a mutation of a valid file or of an input that once broke something (tests/corpus), drawn from its seed and
number. It must be accepted, with finite results, or refused by one `InputError` of one line that names the file, within
1 s of processor time and 200 MB. Anything else, also a warning, is a finding: it is repeated, shortened and written to
`--save`. Inputs run in a process of their own, which is replaced when it ends or does not answer. Results of other
targets in the JSON file are kept.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when the libraries below are loaded

import argparse
import hashlib
import json
import multiprocessing
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from fuzz_targets import TARGETS, Target, Unsafe
from machine import describe, save

from anyhull.errors import InputError
from anyhull.onboard.messages import BadMessage

SECONDS, MEGABYTES = 1.0, 200.0
"""Limits of one input: processor time, and memory beyond that of the process before it."""

LONGEST_LINE = 4000
"""Characters of an error."""

SILENCE = 120.0
"""Time without progress after which a process counts as hung, s."""

SHORTEN_SECONDS = 5.0
"""Time to shorten a finding, s."""

SAVED_BYTES = 20_000
"""Size of a finding above which it is not saved."""

FILE = "fuzz-input"
"""Stem of the file under test, which an error has to name."""


class OutOfTime(BaseException):
    """An input took more than its time; no reader catches it."""


def out_of_time(number: int, frame: Any) -> None:
    raise OutOfTime


def outcome(target: Target, path: Path) -> str:
    """`accepted`, `refused`, or the description of a finding: the exception and the line that raised it."""
    signal.signal(signal.SIGPROF, out_of_time)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        target.read(path)
        signal.setitimer(signal.ITIMER_PROF, 0)
    except (InputError, BadMessage) as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        text = str(error)
        if not text.isprintable() or len(text) > LONGEST_LINE:
            return f"error of more than a line: {_raised_at(error)}"
        if target.names_file and path.name not in text:
            return f"error without the file: {_raised_at(error)}"
        return "refused"
    except BaseException as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if isinstance(error, KeyboardInterrupt):
            raise
        what = f": {error}"[:100] if isinstance(error, Unsafe) else ""
        return f"{type(error).__name__}{what} at {_raised_at(error)}"
    return "accepted"


def _raised_at(error: BaseException) -> str:
    """File, line and function of the innermost frame within the package."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name != "out_of_time"]
    ours = [frame for frame in frames if "anyhull" in Path(frame.filename).parts] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}"


def memory(field: str) -> float:
    """A field of /proc/self/status, MB."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(field + ":")[1].split()[0]) / 1000


def reset_peak() -> None:
    """Set the peak of the process's memory to what it takes now."""
    Path("/proc/self/clear_refs").write_text("5")


def measured(target: Target, path: Path) -> tuple[str, float, float]:
    """`outcome`, with the processor time (s) and the memory (MB) that it took."""
    reset_peak()
    before, start = memory("VmRSS"), time.process_time()
    found = outcome(target, path)
    return found, time.process_time() - start, memory("VmHWM") - before


def draw(target: Target, seeds: dict[str, bytes], seed: int, number: int) -> tuple[str, bytes]:
    """Suffix and content of one input: mostly a mutation of valid files."""
    random = Random(f"{seed}/{number}")
    suffix, valid = random.choice(target.suffixes), random.random() < 0.8
    names = [name for name in seeds if name.endswith(suffix) and not (valid and name.startswith("found-"))]
    return suffix, target.mutate(random, [seeds[name] for name in names])


def shorten(target: Target, path: Path, data: bytes, finding: str) -> bytes:
    """A shorter input with the same finding: blocks of falling size are left out while it stays."""
    until, size = time.monotonic() + SHORTEN_SECONDS, len(data) // 2
    while size and time.monotonic() < until:
        at = 0
        while at < len(data) and time.monotonic() < until:
            candidate = data[:at] + data[at + size :]
            path.write_bytes(candidate)
            if outcome(target, path) == finding:
                data = candidate
            else:
                at += size
        size //= 2
    return data


def work(name: str, first: int, last: int, seed: int, folder: Path, progress: Any, results: Connection) -> None:
    """Run the inputs first … last - 1 and send the counts, or what is known when a finding ends the process."""
    warnings.simplefilter("error")
    target = TARGETS[name]
    seeds = target.seeds(name)
    try:
        valid = next((file, data) for file, data in seeds.items() if not file.startswith("found-"))
        target.read(_write(folder, *valid))  # imports everything
    except ImportError as error:
        results.send((Counter[str](), 0.0, 0.0))
        print(f"{name}: skipped: {error}", file=sys.stderr, flush=True)
        return
    limit = int(1e6 * (memory("VmSize") + 8 * MEGABYTES))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    counts, longest, peak = Counter[str](), 0.0, 0.0
    for number in range(first, last):
        progress.value = number
        suffix, data = draw(target, seeds, seed, number)
        path = folder / f"{FILE}{suffix}"
        path.write_bytes(data)
        found, taken, grown = measured(target, path)
        if found.startswith("OutOfTime") or grown > MEGABYTES:
            found, taken, grown = measured(target, path)  # once more, since the machine is shared
            if found in ("accepted", "refused") and grown > MEGABYTES:
                found = f"{found}, but over {MEGABYTES} MB"
        if found in ("accepted", "refused"):
            longest, peak = max(longest, taken), max(peak, grown)
        elif not counts[found]:
            # A shorter command line may leave out what ends its run.
            whole = name == "cli" or "MemoryError" in found or "over" in found
            results.send((found, suffix, data if whole else shorten(target, path, data, found)))
        counts[found] += 1
    results.send((counts, longest, peak))


def _write(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def fuzz(name: str, inputs: int, seed: int, save_in: Path | None) -> dict[str, Any]:
    """Counts of a target's inputs by outcome, with the longest time and the largest memory."""
    context, started = multiprocessing.get_context("fork"), time.monotonic()
    counts, longest, peak, first = Counter[str](), 0.0, 0.0, 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        while first < inputs:
            # A process for some thousand inputs, so that one which dies loses the counts of few.
            last = min(first + (100_000 if name == "decoder" else 2000), inputs)
            progress = context.Value("q", first, lock=False)
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(name, first, last, seed, Path(folder), progress, theirs))
            process.start()
            theirs.close()
            done, seen, since = False, first, time.monotonic()
            while not done:
                try:
                    if ours.poll(1.0):
                        message = ours.recv()
                        if isinstance(message[0], Counter):
                            counts.update(message[0])
                            longest, peak, done = max(longest, message[1]), max(peak, message[2]), True
                        else:
                            keep(save_in, name, *message)
                except EOFError:
                    break
                if progress.value != seen:
                    seen, since = progress.value, time.monotonic()
                elif time.monotonic() - since > SILENCE:
                    process.kill()
                    break
            process.join()
            first = last
            if not done:
                data = draw(TARGETS[name], TARGETS[name].seeds(name), seed, progress.value)
                what = f"the process ended with status {process.exitcode}, or hung"
                keep(save_in, name, what, *data)
                counts[what] += 1
                first = progress.value + 1
    findings = {found: n for found, n in counts.most_common() if found not in ("accepted", "refused")}
    return {
        "inputs": inputs,
        "seed": seed,
        "accepted": counts["accepted"],
        "refused": counts["refused"],
        "findings": findings,
        "longest_s": round(longest, 4),
        "peak_mb": round(peak, 1),
        "seconds": round(time.monotonic() - started, 1),
    }


def keep(folder: Path | None, name: str, found: str, suffix: str, data: bytes) -> None:
    """Report a finding, and save its input."""
    print(f"  {name}: {found}: {len(data)} bytes, {data[:120]!r}", file=sys.stderr, flush=True)
    if folder and len(data) <= SAVED_BYTES:
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"found-{hashlib.sha256(found.encode()).hexdigest()[:8]}{suffix}").write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutation fuzzing of all readers.")
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--inputs", type=int, default=2000, help="number of inputs of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write shortened findings here")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results here as well")
    arguments = parser.parse_args()
    failed = False
    for name in TARGETS if arguments.target == "all" else (arguments.target,):
        result = fuzz(name, arguments.inputs, arguments.seed, arguments.save)
        failed |= bool(result["findings"])
        print(
            f"{name:9s}{result['inputs']:9d} inputs: {result['accepted']} accepted, {result['refused']} refused, "
            f"{sum(result['findings'].values())} findings, at most {result['longest_s']:.3f} s and "
            f"{result['peak_mb']:.1f} MB, {result['seconds']:.0f} s",
            flush=True,
        )
        for found, times in result["findings"].items():
            print(f"    {times:6d}  {found}")
        if arguments.json:
            before = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
            targets = before.get("targets", {}) | {name: result | {"machine": describe("numpy", "safetensors")}}
            save(arguments.json, {"targets": dict(sorted(targets.items()))})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
