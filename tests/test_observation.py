"""Observation and history: by hand, and invariant under rotation, translation and mirroring of the world."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from anyhull.observation import (
    ERRORS,
    HISTORY,
    HISTORY_SIZE,
    OBSERVATION,
    OBSERVATION_SIZE,
    PRIVILEGED,
    history,
    observe,
    pack,
)
from anyhull.reference import figure_eight

POSE, VELOCITY, PREVIOUS = np.array([0.3, -0.2, 0.4]), np.array([0.5, 0.1, -0.2]), np.array([0.1, -0.3, 0.2])
WINDOW = figure_eight().window(7.0)


def test_sizes_are_the_papers():
    seen = pack(observe(POSE, VELOCITY, WINDOW, PREVIOUS))
    assert seen.shape == (OBSERVATION_SIZE,) == (72,)
    assert pack(history(POSE, POSE, VELOCITY, PREVIOUS)).shape == (HISTORY_SIZE,) == (9,)


def test_every_field_lies_at_its_slice_of_the_packed_vector():
    o, h = observe(POSE, VELOCITY, WINDOW, PREVIOUS), history(POSE, POSE + 0.1, VELOCITY, PREVIOUS)
    for fields, slices in ((o, OBSERVATION), (h, HISTORY)):
        packed = pack(fields)
        for name, field in fields._asdict().items():
            np.testing.assert_array_equal(packed[getattr(slices, name)], np.ravel(field), err_msg=name)
        assert [place.start for place in slices] == [0, *(place.stop for place in slices[:-1])]  # no gap, no overlap
    errors = np.concatenate([o.position_error, o.heading_error, o.velocity_error])
    np.testing.assert_array_equal(pack(o)[ERRORS], errors)
    # e (9), delay (1), current (2), force (3).
    assert [(place.start, place.stop) for place in PRIVILEGED] == [(0, 9), (9, 10), (10, 12), (12, 15)]


def test_errors_point_from_the_boat_to_the_reference():
    # The boat heads along y: a reference 2 m ahead along y and 1 m along x is 2 m ahead and 1 m to the right.
    window = np.zeros((11, 6))
    window[:, :3] = 1.0, 2.0, math.pi
    window[:, 3] = 0.6
    seen = observe(np.array([0, 0, math.pi / 2]), np.array([0.5, 0.1, 0.2]), window, PREVIOUS)
    np.testing.assert_allclose(seen.position_error, [2, -1], atol=1e-12)
    np.testing.assert_allclose(seen.heading_error, [math.pi / 2])
    np.testing.assert_allclose(seen.velocity_error, [0.1, -0.1, -0.2])
    np.testing.assert_allclose(seen.lookahead[4], [2, -1, math.pi / 2, 0.6, 0, 0], atol=1e-12)
    np.testing.assert_allclose(seen.previous, PREVIOUS)


def test_history_is_the_motion_since_the_last_period_in_the_present_body_frame():
    before, now = np.array([1.0, 1.0, math.pi - 0.1]), np.array([1.0, 1.5, -math.pi + 0.1])
    seen = history(now, before, VELOCITY, PREVIOUS)
    sin, cos = math.sin(now[2]), math.cos(now[2])
    np.testing.assert_allclose(seen.displacement, [0.5 * sin, 0.5 * cos, 0.2], atol=1e-12)
    # Without a previous pose the displacement is that of the present velocity: 0.5 m/s, 0.1 m/s, -0.2 rad/s for 0.1 s.
    for itself in (now, np.nextafter(now.astype(np.float32), 9), now + np.array([0, 0, 2 * math.pi])):
        np.testing.assert_allclose(history(now, itself, VELOCITY, PREVIOUS).displacement, [0.05, 0.01, -0.02])


@pytest.mark.parametrize("angle", [0.7, -2.0, 3.1, 2 * math.pi])
def test_observations_are_invariant_under_rotation_and_translation(angle):
    def moved(poses):
        poses = np.array(poses, float)
        x, y = poses[..., 0].copy(), poses[..., 1].copy()
        poses[..., 0] = 5 + math.cos(angle) * x - math.sin(angle) * y
        poses[..., 1] = -3 + math.sin(angle) * x + math.cos(angle) * y
        poses[..., 2] += angle
        return poses

    here = pack(observe(POSE, VELOCITY, WINDOW, PREVIOUS))
    there = pack(observe(moved(POSE), VELOCITY, moved(WINDOW), PREVIOUS))
    np.testing.assert_allclose(there, here, atol=1e-9)


def test_mirroring_the_world_mirrors_the_observation():
    flip = np.array([1, -1, -1, 1, -1, -1])
    here = observe(POSE, VELOCITY, WINDOW, PREVIOUS)
    mirrored = observe(flip[:3] * POSE, flip[3:] * VELOCITY, flip * WINDOW, flip[:3] * PREVIOUS)
    np.testing.assert_allclose(mirrored.position_error, here.position_error * [1, -1], atol=1e-12)
    np.testing.assert_allclose(mirrored.heading_error, -here.heading_error, atol=1e-12)
    np.testing.assert_allclose(mirrored.lookahead, here.lookahead * flip, atol=1e-12)


def test_numpy_and_jax_give_the_same_observation():
    inputs = POSE, VELOCITY, WINDOW, PREVIOUS
    traced = pack(observe(*(jnp.array(value) for value in inputs)))
    np.testing.assert_allclose(traced, pack(observe(*inputs)), atol=2e-6)
