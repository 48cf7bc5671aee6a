"""A boat's file with nothing but a name, the length and two thrusters, in the loop as on the boat."""

import math
from dataclasses import replace

import numpy as np
import pytest
from doubles import Constant

from anyhull import Pilot, Vessel, hold, line
from anyhull.cli import main
from anyhull.legs import legs
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.joining import Approach
from anyhull.onboard.limits import Limits
from anyhull.onboard.monitors import ProgressMonitor
from anyhull.onboard.setup import Setup
from anyhull.onboard.tracker import Tracker
from anyhull.speeds import force_share
from anyhull.twin import TwinConfig, Water
from anyhull.twin.sea_trial import sea_trial

TWO_AT_THE_STERN = """
name = "Least"
length = {length}
[[thrusters]]
kind = "fixed"
x = {x}
y = -0.3
forward = {thrust}
[[thrusters]]
kind = "fixed"
x = {x}
y = 0.3
forward = {thrust}
"""

FOUR_AZIMUTHS = "name = 'Large'\nlength = 20.0\n" + "".join(
    f"[[thrusters]]\nkind = 'azimuth'\nx = {x}\ny = {y}\nforward = 5000.0\n" for x in (8, -8) for y in (-2, 2)
)

FILES = {
    "small": TWO_AT_THE_STERN.format(length=1.2, x=-0.5, thrust=50.0),
    "three metres": TWO_AT_THE_STERN.format(length=3.0, x=-1.3, thrust=250.0),
    "twenty metres": FOUR_AZIMUTHS,
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "boat.toml"
    path.write_text(FILES["small"])
    return path


@pytest.mark.parametrize("which", FILES)
def test_it_is_shown_and_simulated_without_a_word_about_sway(tmp_path, capsys, which):
    path = tmp_path / "boat.toml"
    path.write_text(FILES[which])
    assert main(["vessels", "show", str(path)]) == 0
    said = capsys.readouterr().out
    assert ("field-under" in said) == (which != "twenty metres")
    assert "warning" not in said
    assert main(["simulate", "--vessel", str(path), "--reference", "line", "--speed", "0.1"]) == 0
    said = capsys.readouterr()
    assert "plausible hull 0" in said.err
    assert "sway" not in said.err


@pytest.mark.parametrize("seed", [2, 6])
def test_hulls_stronger_than_estimated_settle_at_the_start_and_get_under_way(file, seed):
    # Their surge accelerations are 9.8 and 13.8 m/s², and 8 the largest in training.
    setup = Setup.load(file)
    pilot = Pilot.load("field", setup.vessel)
    log = sea_trial(pilot, setup, line(1.5, speed=0.4), TwinConfig(Water.preset("lake")), seed=seed, lead_in=4.0)
    assert log.about["arrived"]
    assert log.about["event_counts"].get("stop", 0) == 0
    assert log.position_error.max() < 0.5


def test_legs_are_planned_for_it_each_at_a_speed_of_its_own(file):
    turn = legs([(0, 0), (20, 0), (20, 20), (0, 20)], speed=0.6, vessel=Vessel.load(file))
    assert turn.infeasible(Vessel.load(file)) == []
    first, *_, last = (leg.speed for leg in turn.legs)
    assert 0 < first <= 0.6
    assert last == pytest.approx(first)


def test_the_share_of_the_force_is_that_of_each_motion_by_itself(file):
    speeds = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    for vessel in (Vessel.load(file), Vessel.load("platform-a")):
        whole = force_share(vessel, speeds, np.zeros_like(speeds), np.full_like(speeds, 0.1))
        each = [float(force_share(vessel, np.array([u]), np.zeros(1), np.full(1, 0.1))[0]) for u in speeds.flat]
        np.testing.assert_allclose(whole.ravel(), each)


def settling(vessel, pose, seconds):
    """A tracker whose boat stays at a pose for some seconds after its approach was planned, and its last phase."""
    tracker = Tracker(line(5.0, speed=0.3), Limits(), Approach(), vessel, settle=1.0)
    tracker.step(0.1, True, False, np.array([-3.0, 0.0, 0.0]), np.zeros(3))
    assert tracker.phase == "joining"
    for _ in range(round(10 * seconds)):
        tracker.step(0.1, True, False, np.array(pose), np.zeros(3))
        if tracker.phase != "joining":
            break
    return tracker.phase


def test_a_boat_without_sway_force_has_joined_at_any_heading(file):
    under, full = Vessel.load(file), Vessel.load("platform-a")
    # 3 m at 0.3 m/s, with the ramps less than 20 s.
    assert settling(under, (0.2, 0.0, 2.0), 20.0) == "holding"
    assert settling(full, (0.2, 0.0, 2.0), 60.0) == "joining"


def test_within_its_circle_a_boat_without_sway_force_has_joined_after_a_while(file):
    under, full = Vessel.load(file), Vessel.load("platform-a")
    assert under.hold_radius == 1.2
    # Further than 0.3 m and 0.5 m; the circle counts 10 s after the end of the approach.
    assert settling(under, (1.1, 0.0, 0.0), 20.0) == "joining"
    assert settling(under, (1.1, 0.0, 0.0), 60.0) == "holding"
    assert settling(under, (1.3, 0.0, 0.0), 60.0) == "joining"
    assert settling(full, (1.1, 0.0, 0.0), 60.0) == "joining"


def test_keeping_station_in_the_circle_at_any_heading_is_progress(file):
    radius, push = Vessel.load(file).hold_radius, np.array([1.0, 0.0, 0.5])

    def stalls(distance, hold_radius):
        monitor = ProgressMonitor(Limits(), 1.0, hold_radius)
        pose = np.array([distance, 0.0, 2.0])
        return any(monitor.step(0.1, push, pose, np.zeros(3)) for _ in range(100))

    assert not stalls(1.1, radius)
    assert stalls(1.3, radius)
    assert stalls(0.1, 0.0)  # with sway force 2 rad off is not where it should be


def test_the_autopilot_knows_the_circle_of_its_boat(file):
    setup = Setup.load(file)
    loop = Autopilot(setup, Constant(0.0, 0.0, 0.0), hold(duration=10.0), session=1)
    assert loop._progress_monitor._away == 1.2
    assert math.isinf(loop._progress_monitor._angle)
    both = Setup.load("platform-a")
    vessel = replace(both.vessel, thrusters=())
    both = replace(both, vessel=vessel, link=replace(both.link, command="wrench"))
    loop = Autopilot(both, Constant(0.0, 0.0, 0.0), hold(duration=10.0), session=1)
    assert loop._progress_monitor._away == 0.5
