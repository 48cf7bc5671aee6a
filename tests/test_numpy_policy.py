"""The in-place step of a policy equals the reference functions of the observation, with fresh arrays."""

import numpy as np
import pytest

from anyhull import InputError, Pilot, rounded_rectangle
from anyhull.controller import check_inputs
from anyhull.numpy_policy import MLP, Features, Layer
from anyhull.observation import Scales, history, observe, pack, scale_history, scale_observation


@pytest.mark.parametrize("printed", [False, True])
def test_features_are_the_scaled_observation_and_history(printed):
    scales = Scales(error=12.0, gain=100.0, velocity=5.0, command=8.0, printed=printed)
    features, random = Features(scales), np.random.default_rng(0)
    for k in range(200):
        window = rounded_rectangle().window(0.1 * k)
        # Errors of metres and of whole turns.
        pose = window[0, :3] + random.normal(size=3) * (1.0, 1.0, 10.0)
        # Every tenth time the pose is the previous one, as at the first step.
        moved = (0.1, 0.1, 4.0) if k % 10 else 0.0
        before, velocity, previous = pose + random.normal(size=3) * moved, *random.normal(size=(2, 3))
        given = [array.copy() for array in (pose, before, velocity, window, previous)]
        features(*given)
        o = scale_observation(pack(observe(pose, velocity, window, previous)), scales)
        h = scale_history(pack(history(pose, before, velocity, previous)), scales)
        np.testing.assert_allclose(features.o, o, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(features.h, h, rtol=1e-6, atol=1e-6)
        for array, kept in zip(given, (pose, before, velocity, window, previous), strict=True):
            np.testing.assert_array_equal(array, kept)  # the inputs are unchanged


def test_an_elu_layer_by_hand():
    one = np.eye(2, dtype=np.float32)
    net = MLP([Layer(one, np.array([0.0, -1.0], np.float32)), Layer(one, np.array([5.0, 0.0], np.float32))])
    # Hidden 2 and -2: ELU gives 2 and e⁻² - 1 = -0.8647; times the factors 3 and 2, plus 5 and 0.
    output = net(np.array([2.0, -1.0], np.float32), np.array([3.0, 2.0], np.float32))
    np.testing.assert_allclose(output, [11.0, 2 * (np.exp(-2.0) - 1)], rtol=1e-6)


@pytest.mark.parametrize("name", ["field", "student", "ppo-general"])
def test_a_pilot_copies_arrays_that_the_caller_reuses(name):
    fresh, reused = Pilot.load(name), Pilot.load(name)
    pose, velocity, window = np.zeros(3), np.zeros(3), np.zeros((11, 6))
    latents = []
    for k in range(20):
        now = rounded_rectangle().window(0.1 * k)
        pose[:], velocity[:], window[:] = now[0, :3] + 0.05, now[0, 3:], now
        wanted = fresh.step(pose.copy(), velocity.copy(), window.copy())
        command = reused.step(pose, velocity, window)
        np.testing.assert_array_equal(command, wanted)
        command[:] = np.nan
        latents.append((reused.latent, reused.latent.copy()))
    for latent, then in latents:
        np.testing.assert_array_equal(latent, then)


def test_large_finite_numbers_pass_and_others_are_named():
    pilot, window = Pilot.load("field"), rounded_rectangle().window(0.0)
    assert np.isfinite(pilot.step([1e20, -1e20, 0.0], [0.0, 0.0, 0.0], window)).all()
    # Its square overflows.
    large = window.copy()
    large[5, 3] = 1e160
    assert check_inputs(np.zeros(3), np.zeros(3), large)[2][5, 3] == 1e160
    large[7, 2] = np.inf
    with pytest.raises(InputError, match=r"window\[7, 2\] = inf: must be a finite number"):
        pilot.step(np.zeros(3), np.zeros(3), large)
    with pytest.raises(InputError, match=r"velocity\[1\] = nan"):
        pilot.step(np.zeros(3), [0.0, np.nan, 0.0], window)
