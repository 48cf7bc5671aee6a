"""The guard: the reaction to each fault, its recovery, and the invariants for any input."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from anyhull.errors import InputError
from anyhull.hydrodynamics import Normalized
from anyhull.onboard import Circle, Estimator, Guard, Limits, Polygon
from anyhull.paper import RANGES
from anyhull.vessel import Vessel

ENVELOPE = [RANGES[name][0] for name in Normalized._fields], [RANGES[name][1] for name in Normalized._fields]
"""Least and largest e of the paper's training."""

PUSH = np.array([0.8, -0.4, 0.2])


@dataclass
class State:
    """A state without an estimator, as from another autopilot."""

    time: float
    pose: Any = field(default_factory=lambda: np.zeros(3))
    velocity: Any = field(default_factory=lambda: np.zeros(3))
    health: str = "ok"
    reason: str = ""


class Loop:
    """A guard in its loop, at 10 Hz, without faults except those of a test."""

    def __init__(self, **settings):
        self.guard, self.now = Guard(**settings), 0.0

    def step(self, command=PUSH, period=0.1, state=None, **other):
        self.now += period
        return self.guard.step(self.now, command, replace(state or State(0.0), time=self.now), **other)

    def run(self, seconds, **other):
        return [self.step(**other) for _ in range(round(seconds * 10))]

    def under_way(self):
        assert self.run(2.0)[-1].reaction == "run"
        assert self.step().command == pytest.approx(PUSH)
        return self


def reactions(decisions):
    return [decision.reaction for decision in decisions]


def test_commands_pass_after_a_second_without_a_fault():
    found = Loop().run(1.5)
    # Well from 0.1 s on, so from 1.1 s.
    assert reactions(found) == ["ramp"] * 10 + ["run"] * 5
    assert all((decision.command == 0).all() for decision in found[:10])
    assert found[10].command == pytest.approx([0.5, -0.4, 0.2])
    assert found[11].command == pytest.approx(PUSH)


@pytest.mark.parametrize("bad", [[math.nan, 0, 0], [0, math.inf, 0], [1, 2], None, "full ahead", 1j, [None] * 3, [[]]])
def test_an_invalid_command_is_held_then_ramped_down_and_recovers(bad):
    loop = Loop().under_way()
    held = loop.run(0.5, command=bad)
    assert reactions(held) == ["hold"] * 5
    assert all(decision.command == pytest.approx(PUSH) for decision in held)
    assert "command: " in held[0].reason
    ramped = loop.run(0.8, command=bad)
    assert reactions(ramped) == ["ramp"] * 8
    # In proportion, from full in a second: 0.8 falls by 0.1 a period.
    assert ramped[0].command == pytest.approx(PUSH * 0.7 / 0.8)
    assert (ramped[-1].command == 0).all()
    back = loop.run(1.5)
    assert reactions(back) == ["ramp"] * 10 + ["run"] * 5
    assert back[-1].command == pytest.approx(PUSH)


def test_a_hold_ends_with_its_fault():
    loop = Loop().under_way()
    assert reactions(loop.run(0.3, command=None)) == ["hold"] * 3
    assert loop.step().reaction == "run"


def test_faults_in_turn_are_not_held_longer_than_one():
    loop = Loop().under_way()
    found = [loop.step(command=None) if k % 2 else loop.step(state=State(0, pose=[math.nan] * 3)) for k in range(8)]
    assert reactions(found) == ["hold"] * 5 + ["ramp"] * 3


@pytest.mark.parametrize(
    ("state", "detail"),
    [
        (State(0, pose=np.array([math.nan, 0, 0])), "state: not finite"),
        (State(0, velocity=np.array([0, 0, math.inf])), "state: not finite"),
        (State(0, pose=None), "state: not finite"),
        (State(0, pose=np.zeros(2)), "state: not finite"),
    ],
)
def test_an_invalid_state_is_held_then_ramped_down(state, detail):
    loop = Loop().under_way()
    found = loop.run(1.0, state=state)
    assert reactions(found) == ["hold"] * 5 + ["ramp"] * 5
    assert found[0].reason == detail


def test_an_old_state_is_held_then_ramped_down():
    loop = Loop().under_way()
    frozen, found = State(loop.now), []
    for _ in range(12):
        loop.now += 0.1
        found.append(loop.guard.step(loop.now, PUSH, frozen))
    assert reactions(found) == ["run"] * 3 + ["hold"] * 5 + ["ramp"] * 4
    assert found[3].reason == "state: 0.4 s old"
    assert loop.guard.step(loop.now + 0.1, PUSH, None).reason == "state: missing"


def test_a_lost_estimator_ramps_down_at_once_and_hands_over_after_its_limit():
    loop = Loop().under_way()
    lost = State(0, health="lost", reason="position uncertain by 2 m")
    found = loop.run(11, state=lost)
    assert reactions(found) == ["ramp"] * 100 + ["handover"] * 10
    assert found[0].reason == "lost: lost, position uncertain by 2 m"
    assert reactions(loop.run(5)) == ["handover"] * 50


def test_waiting_for_sensors_before_the_first_run_is_no_handover():
    loop = Loop()
    assert reactions(loop.run(60, state=State(0, health="starting"))) == ["ramp"] * 600
    assert loop.run(1.1)[-1].reaction == "run"


def test_dead_reckoning_runs_for_its_limit_then_ramps_down():
    loop = Loop().under_way()
    found = loop.run(6, state=State(0, health="dead reckoning", reason="position silent for 1 s"))
    assert reactions(found) == ["run"] * 50 + ["ramp"] * 10
    assert reactions(loop.run(1.2)) == ["ramp"] * 10 + ["run"] * 2


def test_outside_the_fence_the_failure_action_is_in_force_until_rearmed_inside():
    loop = Loop(fence=Circle(0, 0, 20)).under_way()
    out = State(0, pose=np.array([12.0, 17.0, 0.0]))
    found = loop.run(1.0, state=out)
    assert reactions(found) == ["failsafe"] * 10
    # √(12² + 17²) - 20 = 0.81
    assert found[0].reason == "fence: 0.81 m outside"
    assert found[-1].command == pytest.approx(PUSH)
    assert not loop.guard.rearm()
    back = loop.run(1.0)
    assert (back[-1].reaction, back[-1].reason) == ("failsafe", "waiting to be rearmed")
    assert loop.guard.rearm()
    assert loop.step().reaction == "run"


def test_a_boat_that_stays_outside_the_fence_is_handed_over():
    loop = Loop(fence=Circle(0, 0, 20)).under_way()
    found = loop.run(11.0, state=State(0, pose=np.array([12.0, 17.0, 0.0])))
    assert reactions(found) == ["failsafe"] * 100 + ["handover"] * 10
    assert (found[-1].command == 0).all()


def test_the_fence_is_met_by_the_stopping_distance():
    loop = Loop(fence=Circle(0, 0, 20), stopping_time=2.0).under_way()
    # 2 s at 0.6 m/s are 1.2 m; the boat heads for the fence along y, by its heading of 90°.
    close = State(0, pose=np.array([0.0, 18.7, math.pi / 2]), velocity=np.array([0.6, 0.0, 0.0]))
    assert loop.step(state=close).reaction == "run"
    closer = replace(close, pose=np.array([0.0, 18.9, math.pi / 2]))
    decision = loop.step(state=closer)
    assert (decision.reaction, decision.reason) == ("failsafe", "fence: 1.10 m inside, too close to stop")
    along = replace(closer, pose=np.array([0.0, 18.9, 0.0]))
    assert "fence" not in loop.step(state=along).reason


def test_drift_as_the_failure_action_is_a_handover():
    loop = Loop(limits=Limits(on_failure="drift")).under_way()
    found = loop.run(1.5, conditions={"battery": "9 % of its charge left"})
    assert reactions(found) == ["handover"] * 15
    assert (found[-1].command == 0).all()


@pytest.mark.parametrize(
    ("fault", "first", "after", "then"),
    [
        ("uplink", "ramp", 0.0, "ramp"),
        ("off_path", "failsafe", 0.0, "failsafe"),
        ("no_progress", "handover", 0.0, "handover"),
        ("mismatch", "run", 1.0, "handover"),
        ("thruster", "handover", 0.0, "handover"),
        ("battery", "failsafe", 0.0, "failsafe"),
        ("leak", "failsafe", 0.0, "failsafe"),
        ("tilt", "run", 2.0, "handover"),
        ("operator", "handover", 0.0, "handover"),
    ],
)
def test_each_condition_of_the_caller_has_its_reaction(fault, first, after, then):
    loop = Loop().under_way()
    found = reactions(loop.run(after + 1.0, conditions={fault: "test"}))
    assert found == [first] * round(10 * after) + [then] * 10


def test_a_failsafe_outlasts_a_ramp():
    loop = Loop().under_way()
    loop.step(conditions={"leak": "water in the hull"})
    assert reactions(loop.run(0.5, state=State(0, health="lost"))) == ["ramp"] * 5
    assert reactions(loop.run(1.2)) == ["ramp"] * 10 + ["failsafe"] * 2


def test_the_operator_stops_the_boat_in_two_periods():
    loop = Loop().under_way()
    found = loop.run(0.2, conditions={"operator": "stop"})
    # In steps of 0.5: 0.8, 0.3, 0.
    assert [np.abs(decision.command).max() for decision in found] == pytest.approx([0.3, 0.0])


def test_after_manual_control_the_command_goes_on_from_the_operators():
    loop = Loop().under_way()
    by_hand = np.array([0.2, 0.6, -0.1])
    found = loop.run(0.5, conditions={"operator": "manual"}, manual=by_hand)
    assert reactions(found) == ["handover"] * 5
    assert found[-1].command == pytest.approx(by_hand)
    loop.step(manual=by_hand)
    assert loop.guard.rearm()
    assert loop.step(command=by_hand + 0.1).command == pytest.approx(by_hand + 0.1)


def test_before_the_first_command_one_event_states_what_is_missing():
    loop = Loop()
    for conditions in ({"uplink": "no status from the boat", "arming": "too far"}, {"arming": "too far"}, {}):
        loop.run(2.0, conditions=conditions)
    said = [(event.what, event.detail) for event in loop.guard.events]
    assert said == [
        ("arming", "uplink: no status from the boat; too far"),
        ("arming", "too far"),
        ("arming", "all checks passed"),
        ("reaction", "run: no fault"),
    ]


def test_no_condition_starts_the_failure_action_of_a_boat_that_has_not_run():
    loop = Loop()
    assert reactions(loop.run(3.0, conditions={"battery": "9 %", "operator": "stop"})) == ["ramp"] * 30
    assert loop.run(1.2)[-1].reaction == "run"


def test_commands_step_no_further_than_the_limit_and_chatter_ramps_down():
    loop = Loop(limits=Limits(step=0.3)).under_way()
    found = [loop.step(command=PUSH * (-1) ** k) for k in range(1, 40)]
    sent = np.array([PUSH, *(decision.command for decision in found)])
    assert np.abs(np.diff(sent, axis=0)).max() <= 0.3 + 1e-12
    assert found[0].reason == "rate: command moved by 1.6 in a period"
    assert reactions(found) == ["run"] * 30 + ["ramp"] * 9


def test_one_overrun_passes_and_a_stall_or_many_ramp_down():
    loop = Loop().under_way()
    late = loop.step(period=0.25)
    assert (late.reaction, late.reason) == ("run", "overrun: 0.25 s since the last command")
    assert loop.step().reaction == "run"
    # Each counts from when the command was due: 0.1 s, then 0.3, 0.5.
    assert reactions([loop.step(period=0.2) for _ in range(3)]) == ["run", "run", "ramp"]
    stalled = Loop().under_way()
    assert stalled.step(period=2.0).reaction == "ramp"


@pytest.mark.parametrize("now", [math.nan, None, "noon", -math.inf])
def test_an_invalid_clock_is_held_then_ramped_down(now):
    loop = Loop().under_way()
    found = [loop.guard.step(now, PUSH, State(loop.now)) for _ in range(7)]
    assert reactions(found) == ["hold"] * 5 + ["ramp"] * 2
    assert found[0].reason.startswith("clock: ")


def test_a_clock_set_back_costs_one_period():
    loop = Loop().under_way()
    loop.now = -1000.0
    assert loop.step().reaction == "hold"
    assert loop.step().reaction == "run"


def test_a_boat_out_of_distribution_is_handed_over_after_its_limit():
    usual = np.array(Vessel.load("platform-a").normalized)
    loop = Loop(dynamics_range=ENVELOPE).under_way()
    assert set(reactions(loop.run(5, dynamics=usual))) == {"run"}
    slightly, outside = usual.copy(), usual.copy()
    slightly[0], outside[0] = 23.0, 25.0
    assert set(reactions(loop.run(5, dynamics=slightly))) == {"run"}
    found = loop.run(2.5, dynamics=outside)
    assert reactions(found) == ["run"] * 20 + ["handover"] * 5
    # Half of 0.15 and twice 12.
    assert found[0].reason == "out_of_distribution: dynamics[0] = 25 outside [0.075, 24]"
    # Without a range there is no check.
    assert set(reactions(Loop().under_way().run(5, dynamics=outside))) == {"run"}


def test_an_unsure_estimate_of_the_dynamics_hands_no_boat_over_and_a_sure_one_does():
    e = np.array(Vessel.load("platform-a").normalized)
    e[0], e[7] = 50.0, -30.0  # e^1.43 times 12, and below -10
    sure, unsure = np.full(9, 0.7), np.full(9, 0.75)  # two standard deviations: factors of 4.06 and 4.48
    bounds = tuple(np.array(bound, dtype=float) for bound in ENVELOPE)
    loop = Loop(dynamics_range=bounds).under_way()
    assert set(reactions(loop.run(5, dynamics=e, spread=unsure))) == {"run"}
    assert reactions(loop.run(2.5, dynamics=e, spread=sure))[-1] == "handover"
    found = Loop(dynamics_range=bounds).under_way().step(dynamics=e, spread=np.full(9, math.nan))
    assert found.reason == "out_of_distribution: spread of dynamics not 9 finite numbers"


def test_a_latent_outside_its_training_range_or_not_finite_is_out_of_distribution():
    loop = Loop(latent_range=([-1.0, -1.0], [1.0, 1.0])).under_way()
    assert loop.step(latent=[0.9, -0.9]).reason == ""
    assert loop.step(latent=[0.9, -1.1]).reason == "out_of_distribution: latent[1] = -1.1 outside [-1, 1]"
    assert loop.step(latent=[math.nan, 0]).reason == "out_of_distribution: latent not 2 finite numbers"
    with pytest.raises(InputError, match="latent_range of shapes"):
        Guard(latent_range=([1.0], [0.0]))


def test_every_fault_is_logged_once_when_it_begins_and_once_when_it_clears():
    loop = Loop().under_way()
    loop.guard.events.clear()
    start = loop.now
    loop.run(1.0, command=None)
    loop.run(2.0)
    found = [(round(event.time - start, 6), event.what, event.detail) for event in loop.guard.events]
    assert found == [
        (0.1, "command", "None is not three finite numbers"),
        (0.1, "reaction", "hold: command: None is not three finite numbers"),
        (0.6, "reaction", "ramp: command: None is not three finite numbers"),
        (1.1, "command", "cleared"),
        (2.1, "reaction", "run: no fault"),
    ]


def test_the_worst_of_several_faults_counts():
    loop = Loop(fence=Circle(0, 0, 1)).under_way()
    outside = np.array([5.0, 0, 0])
    decision = loop.step(command=None, state=State(0, pose=outside), conditions={"uplink": "lost"})
    assert decision.reaction == "ramp"
    assert [event.what for event in decision.events] == ["command", "fence", "uplink", "reaction"]


def test_a_position_that_is_not_known_is_not_held_against_the_fence():
    loop = Loop(fence=Circle(0, 0, 1)).under_way()
    outside = np.array([5.0, 0, 0])
    assert [event.what for event in loop.step(state=State(0, pose=outside, health="lost")).events] == [
        "lost",
        "reaction",
    ]
    loop.run(3.0)
    assert loop.guard.reaction == "run"
    assert loop.step(state=State(0, pose=outside, health="dead reckoning")).reaction == "failsafe"


def test_an_estimate_is_a_state():
    estimator, guard = Estimator(), Guard()
    for k in range(200):
        estimator.gyro(k / 100, 0.0)
        estimator.heading(k / 100, 0.0)
        if k % 14 == 0:
            estimator.position(k / 100, (1.0, 2.0))
        if k % 10 == 0:
            decision = guard.step(k / 100, PUSH, estimator.at(k / 100))
    assert decision.reaction == "run"


@pytest.mark.parametrize("seed", range(20))
def test_for_any_input_the_command_is_finite_bounded_and_within_a_step(seed):
    rng = np.random.default_rng(seed)
    fence = (None, Circle(0, 0, 5), Polygon(((-5, -5), (5, -5), (5, 5), (-5, 5))))[seed % 3]
    limits = Limits(step=rng.uniform(0.05, 1), ramp=rng.uniform(0.1, 3), settle=0.2)
    guard = Guard(limits, fence, ([-1.0] * 9, [1.0] * 9), ENVELOPE)
    junk = [math.nan, math.inf, -math.inf, 1e308, -1e308, None, "x", b"x", 1j, [], [[1]], {}, object(), True, 10**400]
    junk += [
        np.full(3, math.nan),
        np.full(3, 1e308),
        np.full(3, -1e308),
        np.zeros((3, 3)),
        np.array([1, "a", None], object),
    ]

    def either(good, chance):
        return junk[rng.integers(len(junk))] if rng.random() < chance else good

    now, before, ran = 0.0, np.zeros(3), 0
    usual = np.array(Vessel.load("roboat-1").normalized)
    for k in range(400):
        chance = (0.0, 0.02, 0.3)[k // 40 % 3]
        now += rng.choice([0.1, 0.1, 0.1, 0.3, -5.0, 1e6]) if rng.random() < chance else 0.1
        state = State(
            either(now, chance),
            either(rng.normal(size=3), chance),
            either(rng.normal(size=3), chance),
            either("ok", chance),
            either("", chance),
        )
        decision = guard.step(
            either(now, chance),
            either(rng.uniform(-2, 2, 3), chance),
            either(state, chance),
            either(np.zeros(9), chance),
            either(usual, chance) if k % 7 else None,
        )
        assert decision.command.shape == (3,)
        assert np.isfinite(decision.command).all()
        assert np.abs(decision.command).max() <= 1
        assert np.abs(decision.command - before).max() <= limits.step + 1e-12
        before = decision.command.copy()
        # A change by the caller must not return.
        decision.command[:] = math.nan
        ran += decision.reaction == "run"
        if decision.reaction == "handover":
            guard.rearm()
    assert ran > 20
    assert all(math.isfinite(event.time) for event in guard.events)


def test_fences_by_hand():
    assert Circle(1, 2, 5).margin(4, 6) == pytest.approx(0)
    assert Circle(1, 2, 5).margin(1, 2) == 5
    # An L of two by two less its upper right quarter.
    bent = Polygon(((0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)))
    assert bent.margin(0.5, 0.5) == pytest.approx(0.5)
    assert bent.margin(1.5, 1.5) == pytest.approx(-0.5)
    assert bent.margin(3, 4) == pytest.approx(-math.hypot(2, 2))
    assert Polygon(bent.corners[::-1]).margin(0.5, 1.9) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("corners", "accepted"),
    [
        (((0, 0), (1, 0)), "three or more that enclose some water"),
        (((0, 0), (1, 1), (2, 2)), "three or more that enclose some water"),
        (((0, 0), (1, 0), (math.nan, 1)), r"corners\[2\]\[0\] = nan: must be a finite number"),
        (((0, 0), (2, 2), (2, 0), (0, 1)), "in order, so that sides do not cross"),
    ],
)
def test_a_fence_must_enclose_some_water(corners, accepted):
    with pytest.raises(InputError, match=accepted):
        Polygon(corners)


def test_limits_must_be_positive():
    with pytest.raises(InputError, match=r"step = 0: must be positive"):
        Limits(step=0)
    with pytest.raises(InputError, match=r"radius = -1: must be positive"):
        Circle(0, 0, -1)
