"""The assessment: what to ask of a boat, and whether it is fit, from sails of plausible hulls.

1. `FLEET` hulls are drawn. Of each follow the highest speed and the tightest turn of steady motion; what all but
   `WEAKEST` of them can do is the first answer.
2. Some are sailed around a rectangle of their own lengths at half that speed or less, with the loop as on the boat.
3. The hull that just can is sailed at that speed, and one around that turn. Where it fails, less is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from anyhull.errors import InputError
from anyhull.log import Log
from anyhull.onboard.setup import Setup
from anyhull.preflight import findings
from anyhull.preflight.capability import PlausibleHull, Units, weakest
from anyhull.preflight.findings import BANDS, HullResult, Measurement, Thruster, at_least, within
from anyhull.preflight.sails import MOST_SAILS, Course, MakeController, Regatta, Sail, cores, run
from anyhull.twin import TwinConfig, Water
from anyhull.vessel import Vessel

HULLS = 16
"""Hulls that are sailed by default: a minute and a half on two cores. Of a ship, whose sails last longer by its time
unit, fewer by that, but at least `LEAST_HULLS`."""

LEAST_HULLS = 4
"""Hulls of a ship that are sailed at least."""

FLEET = 128
"""Hulls that are drawn for what can be asked for."""

RECTANGLE = (6.0, 4.0, 1.5)
"""Length, width and corner radius of the course, in lengths of the boat."""

WIDE = 2.5
"""Radius of wide turns, in lengths: ships must turn within five lengths (IMO resolution MSC.137(76))."""

SAILED, LEAD_IN, TIMEOUT = 40.0, 12.0, 15.0
"""Measured part of a sail, time on the course before it and time allowed beyond it, in the boat's time unit (s, for
boats up to some metres)."""

CAUTION, CORNER_SHARE = 0.5, 0.7
"""Of the highest speed, and of the thrusters in the corners: what the course asks of the weakest hulls."""

LEAST_SPEED = 0.05
"""Lowest speed of a course, as a share of the highest in training."""

ROOM, ROOM_LENGTHS = 0.5, 0.25
"""A fit hull stays within the larger of this many metres and lengths."""

RESTRICTED = 0.8
"""Share of the hulls that must be fit for a `go`, which then is restricted; all of them for one without reserve."""

ROUNDS, LESS = 3, 0.8
"""Attempts at confirming a speed or a turn, and how much less the next asks for."""


@dataclass(frozen=True)
class Limit:
    """What may be asked for."""

    value: float
    """m/s or m."""
    attempts: int
    """Sails of a weak hull until one succeeded."""
    confirmed: bool
    """Whether one did; otherwise the value is that at which the rectangle was sailed."""
    trained: bool
    """Whether it is training that sets it, not the thrusters."""


@dataclass(frozen=True)
class Assessment:
    """All that was found."""

    vessel: str
    go: bool
    verdict: str
    restrictions: tuple[str, ...]
    sea: str
    hull_source: str
    """Where the hulls come from."""
    length: float
    """Of the boat, m."""
    room: float
    """Distance within which a fit hull stays, m."""
    course: Course
    results: tuple[HullResult, ...]
    shares: dict[str, float]
    """Share of the hulls that stay within 10 cm, 50 cm and a length at every moment."""
    fit: int
    fit_at_least: float
    """Share of all hulls that are fit, with 95 % confidence."""
    worst: int
    """Index of the worst hull."""
    causes: tuple[str, ...]
    highest_speed: Limit
    tightest_turn: Limit
    thrusters: tuple[Thruster, ...]
    """Most used first."""
    unmet: float
    """Share of time in which the thrusters could not give the force that was asked for, mean of the sails."""
    measurements: tuple[Measurement, ...]
    """That which narrows the answer most first."""
    logs: tuple[Log | None, ...]
    curve: tuple[tuple[float, float, float], ...]
    """Radius (m) and the highest speeds (m/s) of the weakest and of the median hull."""

    def document(self) -> dict[str, Any]:
        """All but the logs, for JSON."""
        kept = asdict(replace(self, logs=()))
        del kept["logs"]
        results = [
            result | {name: list(result[name]) for name in ("at_limit", "used")} for result in kept.pop("results")
        ]
        return kept | {"duration": self.course.reference.duration, "hulls": results}


def assess(
    setup: Setup,
    make: MakeController,
    *,
    water: Water,
    sea: str = "",
    hulls: int | None = None,
    seed: int = 0,
    speed: float | None = None,
    duration: float | None = None,
    workers: int | None = None,
    on_progress: Callable[[float, float], None] | None = None,
) -> Assessment:
    """Assess a boat by sails of so many `hulls`, by default `HULLS`.

    `make` makes its controller, once in each of `workers` processes, by default one a core. `duration` is the measured
    part of a sail in the boat's time unit, by default `SAILED`. `on_progress` gets the number of sails done, and all.
    """
    vessel, config = setup.vessel, TwinConfig(water=water)
    units, duration = Units.of(vessel), SAILED if duration is None else duration
    hulls = max(LEAST_HULLS, round(HULLS / units.time)) if hulls is None else hulls
    if not 1 <= hulls <= MOST_SAILS:
        raise InputError(f"hulls = {hulls}: must be from 1 to {MOST_SAILS}")
    fleet = [PlausibleHull.draw(vessel, config, seed + i) for i in range(max(FLEET, hulls))]
    top = [hull.highest_speed(WIDE * units.length) for hull in fleet]
    fast = top[weakest(top)]
    course = _course(units, _pace(fleet, units, fast) if speed is None else speed, RECTANGLE, duration)
    radii = [hull.tightest_radius(course.speed) for hull in fleet]
    slow_turn = radii[weakest(radii, largest=True)]
    room = max(ROOM, ROOM_LENGTHS * units.length)

    done, total = 0.0, hulls + 2.0
    with Regatta(setup, make, config, min(workers or cores(), hulls)) as regatta:

        def sail(jobs: list[Sail]) -> list[Any]:
            nonlocal done, total
            total = max(total, done + len(jobs))
            outcomes = run(regatta, jobs, on_progress and (lambda sailed: on_progress(done + sailed, total)))
            done += len(jobs)
            return outcomes

        outcomes = sail([Sail(hull.seed, course) for hull in fleet[:hulls]])
        results = [findings.hull_result(*pair, room) for pair in zip(fleet[:hulls], outcomes, strict=True)]
        fit = sum(result.fit for result in results)
        go = fit >= RESTRICTED * hulls
        weak = fleet[weakest(top)], fleet[weakest(radii, largest=True)]

        def passes(hull: PlausibleHull, outcome: Any) -> bool:
            return findings.hull_result(hull, outcome, room).fit

        asked = [_Search(max(fast, course.speed)), _Search(min(max(slow_turn, 1e-3), course.radius))]
        for _ in range(ROUNDS if go else 0):
            courses = [
                _course(units, asked[0].value, (16.0, 12.0, WIDE), duration),
                _tight(course, asked[1].value),
            ]
            open_ = [i for i in (0, 1) if not asked[i].confirmed]
            jobs = [Sail(weak[i].seed, courses[i]) for i in open_]
            for i, outcome in zip(open_, sail(jobs) if jobs else [], strict=True):
                asked[i] = asked[i].after(passes(weak[i], outcome), LESS if i == 0 else 1 / LESS)
    highest = asked[0].limit(course.speed, fast >= 0.999 * units.speed)
    trained_radius = course.speed / units.yaw_rate
    tightest = asked[1].limit(course.radius, slow_turn <= 1.001 * trained_radius)

    worst = findings.worst_of(results)
    quantities = ["top speed", "turning rate", "bollard pull", *(["mass"] if vessel.m is None else [])]
    reasons = findings.causes(results[worst], fleet[worst], fleet, course.speed)
    measured = findings.measurements(quantities, fleet[:hulls], results, fleet, top, radii, room)
    verdict = _verdict(results, room, course, sea)
    unmet = [result.unmet for result in results if math.isfinite(result.unmet)]
    return Assessment(
        vessel=vessel.name,
        go=go,
        verdict=verdict,
        restrictions=tuple(_restrictions(vessel, results, highest, tightest, course, sea, measured) if go else ()),
        sea=sea,
        hull_source=_source(vessel),
        length=units.length,
        room=room,
        course=course,
        results=tuple(results),
        shares={
            **{f"{100 * band:.0f} cm": within(results, band) for band in BANDS},
            "one length": within(results, units.length),
        },
        fit=fit,
        fit_at_least=at_least(fit, hulls),
        worst=worst,
        causes=tuple(reasons),
        highest_speed=highest,
        tightest_turn=tightest,
        thrusters=tuple(findings.thruster_use(results, fleet[0])),
        unmet=sum(unmet) / len(unmet) if unmet else math.nan,
        measurements=tuple(measured),
        logs=tuple(outcome.log for outcome in outcomes),
        curve=_curve(fleet[:32], units),
    )


@dataclass(frozen=True)
class _Search:
    """A value that is asked for less of until a weak hull can do it."""

    value: float
    attempts: int = 0
    confirmed: bool = False

    def after(self, passed: bool, factor: float) -> _Search:
        return replace(
            self,
            value=self.value if passed else factor * self.value,
            attempts=self.attempts + 1,
            confirmed=passed,
        )

    def limit(self, sailed: float, trained: bool) -> Limit:
        return Limit(self.value if self.confirmed else sailed, self.attempts, self.confirmed, trained)


def _pace(fleet: list[PlausibleHull], units: Units, fast: float) -> float:
    """A cautious speed for the course: with force to spare for all but the weakest hulls."""
    corners = [hull.highest_speed(RECTANGLE[2] * units.length, CORNER_SHARE) for hull in fleet]
    return max(min(CAUTION * fast, corners[weakest(corners)]), LEAST_SPEED * units.speed)


def _course(units: Units, speed: float, lengths: tuple[float, float, float], duration: float) -> Course:
    """A rectangle in lengths of the boat, for up to two laps."""
    length, width, radius = (units.length * value for value in lengths)
    lap = 2 * (length + width) - (8 - 2 * math.pi) * radius
    laps = min(duration * units.time * speed / lap, 2.0)
    return Course(length, width, radius, speed, laps, LEAD_IN * units.time, TIMEOUT * units.time)


def _tight(course: Course, radius: float) -> Course:
    """The course with tighter corners."""
    return replace(course, radius=min(radius, course.width / 2))


def _curve(fleet: list[PlausibleHull], units: Units) -> tuple[tuple[float, float, float], ...]:
    """The highest speeds on circles from a quarter of a length to ten."""
    rows = []
    for lengths in (0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0, 6.0, 10.0):
        speeds = sorted(hull.highest_speed(lengths * units.length) for hull in fleet)
        rows.append((lengths * units.length, speeds[weakest(speeds)], speeds[len(speeds) // 2]))
    return tuple(rows)


def _source(vessel: Vessel) -> str:
    if vessel.hydrodynamics is not None:
        return "about the file's [hydrodynamics], with the errors of such figures"
    return "drawn from length, beam, mass and thrust, since the file has no [hydrodynamics]"


def _verdict(results: list[HullResult], room: float, course: Course, sea: str) -> str:
    n, fit = len(results), sum(result.fit for result in results)
    word = "go" if fit == n else "go with restrictions" if fit >= RESTRICTED * n else "no-go"
    where = f"at {course.speed:.2g} m/s{f' in the {sea} sea' if sea else ''}"
    return f"{word}: {fit} of {n} hulls stay within {room:.2g} m and arrive, {where}"


def _restrictions(
    vessel: Vessel,
    results: list[HullResult],
    highest: Limit,
    tightest: Limit,
    course: Course,
    sea: str,
    measured: list[Measurement],
) -> list[str]:
    found = [
        f"ask for at most {highest.value:.2g} m/s",
        f"and for turns of {tightest.value:.2g} m or wider at {course.speed:.2g} m/s",
    ]
    found += [f"expect the same up to the {sea} sea, not beyond"] if sea else []
    found += [f"{short.axis}: {short.advice}" for short in vessel.shortcomings()]
    if (unfit := [result.seed for result in results if not result.fit]) and measured:
        names = ", ".join(map(str, unfit))
        found.append(f"your boat may be one that fails (hull {names}): measure its {measured[0].quantity} first")
    return found
