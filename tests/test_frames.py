"""Conversion of axes: NED with forward-right-down, ENU with forward-left-up."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from anyhull.backend import to_inertial, wrap
from anyhull.frames import heading_of, mirror_body, quaternion_of, swap_pose

RANDOM = np.random.default_rng(0)
POSES = RANDOM.uniform(-3, 3, (50, 3))


@pytest.mark.parametrize(
    ("ned", "enu"),
    [
        # 3 m north and 1 m east, bow north: in ENU 1 m along x, 3 m along y, bow along y.
        ((3.0, 1.0, 0.0), (1.0, 3.0, math.pi / 2)),
        # Bow east is zero in ENU; bow south is -90°.
        ((0.0, 0.0, math.pi / 2), (0.0, 0.0, 0.0)),
        ((0.0, 0.0, -math.pi), (0.0, 0.0, -math.pi / 2)),
    ],
)
def test_a_pose_north_and_east_is_one_east_and_north(ned, enu):
    assert_allclose(swap_pose(ned), enu, atol=1e-15)
    assert_allclose(swap_pose(enu), ned, atol=1e-15)


def test_sway_to_starboard_and_a_turn_to_starboard_are_negative_to_port():
    assert mirror_body((1.0, 2.0, 3.0)) == (1.0, -2.0, -3.0)


def test_each_conversion_is_its_own_inverse():
    for pose in POSES:
        back = swap_pose(swap_pose(pose))
        assert_allclose(back[:2], pose[:2])
        assert_allclose(wrap(back[2] - pose[2]), 0.0, atol=1e-12)
        assert_allclose(mirror_body(mirror_body(pose)), pose)


def test_a_boat_moves_to_the_same_place_on_the_earth_in_both():
    for pose, velocity in zip(POSES, RANDOM.uniform(-1, 1, (50, 3)), strict=True):
        north, east = to_inertial(velocity[0], velocity[1], pose[2])
        x, y, psi = swap_pose(pose)
        u, v, _ = mirror_body(velocity)
        assert_allclose(to_inertial(u, v, psi), (east, north), atol=1e-12)
        assert_allclose((x, y), (pose[1], pose[0]))


def test_heading_and_quaternion_agree_and_roll_and_pitch_do_not_change_the_heading():
    for psi in (-3.0, -0.5, 0.0, 1.0, 3.1):
        assert_allclose(heading_of(quaternion_of(psi)), psi, atol=1e-12)
    # Yaw 90°, then roll 90° about the bow: (w, x, y, z) = q_yaw ⊗ q_roll = (0.5, 0.5, 0.5, 0.5).
    assert_allclose(heading_of((0.5, 0.5, 0.5, 0.5)), math.pi / 2)
    # A quaternion of another length is the same attitude; of length zero, none.
    assert_allclose(heading_of((2.0, 0.0, 0.0, 2.0)), math.pi / 2)
    assert math.isnan(heading_of((0.0, 0.0, 0.0, 0.0)))
