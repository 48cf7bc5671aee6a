"""The closed loop and its log."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from doubles import Constant

from anyhull import InputError, Log, Sea, Vessel, circle, hold, line, simulate
from anyhull.controller import check_inputs
from anyhull.files import atomic_write


class WithLatent(Constant):
    """The same with a latent."""

    latent = np.arange(9.0)


@pytest.fixture(scope="module")
def log():
    return simulate(WithLatent(0.5, 0.1, 0.01), Vessel.load("platform-a"), circle(), Sea.field(), seed=3, duration=5)


def test_metrics_by_hand():
    # Offsets of 3 and 4 cm, heading errors of ± 0.1 rad in turn, surge commands of 0 and 1 in turn.
    n = 10
    state, reference = np.zeros((n, 6)), np.zeros((n, 6))
    state[:, :2] = 0.03, 0.04
    state[:, 2] = [0.1, -0.1] * 5
    reference[:, 2] = 4 * np.pi
    command = np.zeros((n, 3))
    command[::2, 0] = 1
    time = 0.1 * np.arange(n, dtype=np.float64)
    metrics = Log(time, state, reference, command, np.zeros((n, 2)), np.zeros((n, 3))).metrics()
    assert metrics.position_cm == pytest.approx(5)
    assert metrics.position_std_cm == pytest.approx(0, abs=1e-12)
    assert metrics.heading_deg == pytest.approx(np.degrees(0.1))
    assert metrics.heading_std_deg == pytest.approx(0, abs=1e-9)
    assert metrics.delta_tau == pytest.approx(1 / 3)
    assert metrics.saturation == pytest.approx(5 / 30)


def test_a_run_starts_at_the_reference_and_records_every_period(log):
    assert log.time[0] == 0
    np.testing.assert_allclose(np.diff(log.time), 0.1)
    assert len(log.time) == 50
    np.testing.assert_allclose(log.state[0], log.reference[0])
    np.testing.assert_allclose(log.latent, np.tile(np.arange(9.0), (50, 1)))


def test_a_log_comes_back_from_its_file_as_it_was(log, tmp_path):
    again = Log.load(log.save(tmp_path / "new" / "run.npz"))
    for name in ("time", "state", "reference", "command", "current", "force", "latent"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
    assert again.about["vessel"] == "Platform A"
    assert again.about["seed"] == 3
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run.npz"]


def test_a_log_file_that_is_damaged_foreign_or_newer_is_refused(log, tmp_path):
    path = log.save(tmp_path / "run.npz")
    whole_file = path.read_bytes()
    path.write_bytes(whole_file[: len(whole_file) // 2])
    with pytest.raises(InputError, match=r"run\.npz: not a log of a run, or damaged"):
        Log.load(path)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InputError, match=r"other\.npz: not a log of a run"):
        Log.load(tmp_path / "other.npz")
    np.savez(tmp_path / "pickle.npz", about=np.array([object()], dtype=object))
    with pytest.raises(InputError, match=r"pickle\.npz: not a log of a run"):
        Log.load(tmp_path / "pickle.npz")
    with np.load(log.save(path)) as content:
        arrays = dict(content)
    np.savez(path, **arrays | {"about": '{"format": 99}'})
    with pytest.raises(InputError, match=r"format = 99: must be 1"):
        Log.load(path)
    with pytest.raises(InputError, match=r"none\.npz: cannot be read: No such file"):
        Log.load(tmp_path / "none.npz")


def test_an_unwritable_path_is_refused_and_nothing_is_lost(log, tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match=r"cannot be written: (Not a directory|File exists)"):
        log.save(tmp_path / "file" / "run.npz")
    assert (tmp_path / "file").read_text() == "kept"
    with pytest.raises(InputError, match=r"give a path that ends in \.npz"):
        log.save(tmp_path / "run.txt")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "run.npz"
    path.write_text("old")

    def interrupted():
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_controllers_inputs_are_checked():
    good = np.zeros(3), np.zeros(3), np.zeros((11, 6))
    assert [value.shape for value in check_inputs(*good)] == [(3,), (3,), (11, 6)]
    with pytest.raises(InputError, match=r"window of shape \(10, 6\): must have shape \(11, 6\)"):
        check_inputs(np.zeros(3), np.zeros(3), np.zeros((10, 6)))
    with pytest.raises(InputError, match=r"pose\[2\] = nan: must be a finite number"):
        check_inputs(np.array([0, 0, np.nan]), np.zeros(3), np.zeros((11, 6)))


def test_a_vessel_change_takes_effect_at_its_time():
    # From rest u = alpha / rate (1 - exp(-rate t)) under full surge; after 1 s the boat has three times the inertia and
    # damping, so a third of the terminal speed and the same rate.
    vessel = Vessel.load("platform-a")
    hull = replace(vessel.hull, **{name: 3 * value for name, value in asdict(vessel.hull).items()})
    heavy = replace(vessel, m=3 * vessel.mass, hydrodynamics=hull)
    log = simulate(Constant(1, 0, 0), vessel, hold(), duration=2.1, vessel_change=(1.0, heavy))
    top, rate = vessel.top_speeds[0], vessel.normalized.inv_tau_u
    at_change = top * -np.expm1(-rate * 1.0)
    assert log.state[10, 3] == pytest.approx(at_change, rel=1e-6)
    assert log.state[20, 3] == pytest.approx(top / 3 + (at_change - top / 3) * np.exp(-rate * 1.0), rel=1e-6)


@pytest.mark.parametrize("command", [(0, 2, 0), (0, np.nan, 0), (0, 0)])
def test_an_invalid_command_is_refused(command):
    with pytest.raises(InputError, match=r"command = .*: a controller must return three numbers in \[-1, 1\]"):
        simulate(Constant(*command), Vessel.load("platform-a"), line())


@pytest.mark.parametrize("bad", [{"duration": 0}, {"duration": np.inf}, {"start": [0, 0]}])
def test_invalid_arguments_of_a_run_are_refused(bad):
    (name,) = bad
    with pytest.raises(InputError, match=rf"{name} = .*: must be"):
        simulate(Constant(0, 0, 0), Vessel.load("platform-a"), hold(), **bad)
