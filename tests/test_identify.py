"""System identification: what a voyage tells of a boat, the file that keeps it, and what the next voyage gains."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from anyhull import InputError, Pilot, Sea, Vessel, rounded_rectangle, simulate, through
from anyhull.cli import main
from anyhull.control import Adaptive
from anyhull.identification.boat_file import table_of, write_boat
from anyhull.identification.hull import fit_hull
from anyhull.identification.identify import identify
from anyhull.identification.table import read_table
from anyhull.identification.voyage import voyage
from anyhull.identified import Identified
from anyhull.log import Log
from anyhull.scale import IDENTITY, Scale

NAMES = ("alpha_u", "alpha_v", "alpha_r", "inv_tau_u", "inv_tau_v", "inv_tau_r", "c_rv", "c_uv")


def zigzag(speed):
    return through([(2.5 * k, 1.5 * (-1) ** k) for k in range(5)], speed=speed)


class Excited:
    """The shipped policy, with steps added to its command on one axis after the other."""

    def __init__(self, vessel):
        self.pilot, self.dice = Pilot.load("field", vessel), np.random.default_rng(1)

    def reset(self):
        self.pilot.reset()
        self.k = 0

    def step(self, pose, velocity, window):
        self.k += 1
        if self.k % 4 == 1:
            self.added = 0.5 * self.dice.standard_normal(3)
        command = np.clip(self.pilot.step(pose, velocity, window) + self.added, -1, 1)
        self.pilot.issued(command)
        return command


@pytest.fixture(scope="session")
def excited():
    """A log of Platform A whose commands excite everything, measured with 2 mm, 2 mrad, 5 mm/s and 5 mrad/s."""
    vessel = Vessel.load("platform-a")
    log = simulate(Excited(vessel), vessel, zigzag(0.5), Sea.field(), seed=7, duration=35.0)
    noise = np.random.default_rng(2).standard_normal(log.state.shape) * (2e-3, 2e-3, 2e-3, 5e-3, 5e-3, 5e-3)
    return replace(log, state=log.state + noise)


@pytest.fixture(scope="session")
def found(excited):
    return identify(voyage(excited, Vessel.load("platform-a")), "excited.npz", "2026-01-02")


@pytest.fixture(scope="session")
def table(excited, tmp_path_factory):
    return excited.save_csv(tmp_path_factory.mktemp("voyage") / "excited.csv")


def test_recovers_what_the_voyage_excites(found):
    e = Vessel.load("platform-a").normalized
    for name in NAMES:
        value, std = getattr(found.found, name)
        # Of eight normal errors one is beyond three standard deviations in fifty voyages.
        assert abs(value - getattr(e, name)) < 3 * std, name
        if found.excitation[name] == "yes" and name != "c_uv":
            assert value == pytest.approx(getattr(e, name), rel=0.1), name
    assert {found.excitation[name] for name in NAMES[:7]} == {"yes"}
    assert found.settled


def test_finds_delay_and_lag_together(excited, found):
    assert found.delay_and_lag[0] == pytest.approx(excited.about["delay"], abs=0.02)


def test_predicts_what_it_has_not_seen(found):
    near, second, far = found.fits
    assert [near.seconds, second.seconds, far.seconds] == pytest.approx([0.1, 1.0, 5.0])
    assert (near.percent > 50).all()
    assert (near.rmse < second.rmse).all()


def test_a_voyage_that_excites_nothing_says_so():
    vessel = Vessel.load("platform-a")
    log = simulate(Pilot.load("field"), vessel, through([(0, 0), (12, 0)], speed=0.5), Sea.ideal(), seed=3, duration=12)
    noise = np.random.default_rng(2).standard_normal(log.state.shape) * 0.02
    found = identify(voyage(replace(log, state=log.state + noise), vessel), "", "")
    assert found.excitation["c_uv"] == "no"
    assert "yes" not in [found.excitation[name] for name in ("alpha_v", "inv_tau_v", "c_rv", "inv_tau_r")]


def test_mass_and_damping_follow_from_the_limits(found):
    vessel = Vessel.load("platform-a")
    hull = fit_hull(found.found, vessel.limits)
    true = [*vessel.inertia, vessel.hull.X_u, vessel.hull.Y_v, vessel.hull.N_r]
    assert hull.consistent
    assert (np.abs(np.log(hull.values / true)) < 3 * hull.std).all()
    # Two limits that are each stated 10 % off are found off in their ratio: nothing is known better than they are.
    assert hull.std.min() > 0.05


def test_limits_that_no_hull_can_have_are_noticed(found):
    # A sway force three times too large: alpha_v and c_rv then disagree by a factor of three, eleven times 10 %.
    u, v, r = Vessel.load("platform-a").limits
    assert not fit_hull(found.found, (u, 3 * v, r)).consistent


def test_a_file_gives_back_the_same_prior(found, tmp_path):
    path = write_boat(tmp_path / "boat.toml", table_of("platform-a"), found.found, Vessel.load("platform-a").limits)
    kept = Vessel.load(path).identified
    assert kept is not None
    assert kept.source == "excited.npz"
    # The file has six figures, and four decimals of a correlation.
    for scale in (IDENTITY, Scale(5.0, 2.0)):
        wrote, read = (table.prior(scale, (1.0, 0.5, 1.0)) for table in (found.found, kept))
        assert read.mean == pytest.approx(wrote.mean, abs=1e-4)
        assert read.covariance == pytest.approx(wrote.covariance, abs=1e-4)
        assert read.delay == pytest.approx(wrote.delay, rel=1e-4)
    assert Vessel.load(path).normalized.inv_tau_u == pytest.approx(found.found.inv_tau_u[0], rel=0.05)
    with pytest.raises(InputError, match="exists, and a vessel's file is never replaced"):
        write_boat(path, table_of("platform-a"), found.found, (40.0, 40.0, 20.0))


def test_an_earlier_voyage_lowers_the_first_errors(found, tmp_path):
    vessel = Vessel.load("platform-a")
    known = replace(vessel, identified=found.found)
    errors: dict[str, list[float]] = {"without": [], "with": []}
    for seed in (11, 12):
        for name, boat in (("without", vessel), ("with", known)):
            log = simulate(Adaptive(boat), boat, rounded_rectangle(), Sea.field(), seed=seed, duration=3.0)
            errors[name].append(log.position_error.mean())
    assert np.mean(errors["with"]) < np.mean(errors["without"])


def test_a_prior_of_quite_another_boat_does_no_lasting_harm(found):
    # Platform B has three times the accelerations.
    vessel = replace(Vessel.load("platform-b"), identified=found.found)
    log = simulate(Adaptive(vessel), vessel, rounded_rectangle(), Sea.field(), seed=3, duration=15.0)
    assert log.position_error[log.time > 10].mean() < 0.03


def test_table_and_log_give_the_same(excited, table):
    vessel = Vessel.load("platform-a")
    (of_table,), (of_log,) = voyage(read_table(table, None), vessel).series, voyage(excited, vessel).series
    # The table has nine figures.
    assert of_table.state == pytest.approx(of_log.state, abs=1e-6)
    assert of_table.command == pytest.approx(of_log.command, abs=1e-6)


def foreign(log, path, every=1, drop=()):
    """A table as another program may write it: newtons, degrees and knots, uneven times."""
    rows = ["time [ms],x [m],y [m],psi [deg],u [kn],v [m/s],r [deg/s],surge [N],sway [N],yaw [N m],note"]
    for k in range(0, len(log.time), every):
        if k not in drop:
            x, y, psi, u, v, r = log.state[k]
            values = [1e3 * log.time[k] + 7 * (k % 3), x, y, np.degrees(psi), u / 0.514444, v, np.degrees(r)]
            values += [40 * log.command[k, 0], 40 * log.command[k, 1], 20 * log.command[k, 2]]
            rows.append(",".join(f"{value:.9g}" for value in values) + ",ok")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_foreign_table_is_converted_resampled_and_split_at_gaps(excited, tmp_path):
    vessel = Vessel.load("platform-a")
    path = foreign(excited, tmp_path / "foreign.csv", drop=range(100, 130))
    recorded = voyage(read_table(path, vessel), vessel)
    assert (recorded.gaps, recorded.resampled, len(recorded.series)) == (1, True, 2)
    first = recorded.series[0]
    own = excited.state[:50] - [*excited.state[0, :2], 0, 0, 0, 0]
    # Times are shifted by at most 14 ms: with 0.6 m/s that is 8 mm, beside the noise.
    assert first.state[:50, :2] == pytest.approx(own[:, :2], abs=0.03)
    assert first.command[:50].mean(axis=0) == pytest.approx(excited.command[:50].mean(axis=0), abs=0.03)


def test_commands_of_thrusters_become_forces(tmp_path):
    vessel = Vessel.load("examples/boat.toml")
    n = len(vessel.thrusters)
    header = "time,x,y,psi,u,v,r," + ",".join(f"thrusters {i} [-]" for i in range(n))
    path = tmp_path / "thrusters.csv"
    path.write_text(header + "\n0,0,0,0,0,0,0,1,1,0,0\n0.1,0,0,0,0,0,0,0,0,0,0\n")
    # Both bow thrusters, 18 N each at ± 45° of the bow: 2 · 18 · cos 45° = 25.46 N ahead, of 40 N; nothing else.
    assert read_table(path, vessel).command[0] == pytest.approx([25.456 / 40, 0, 0], abs=1e-4)


LINE = "0,0,0,0,0,0,0,0,0,0"
HEADER = "time,x,y,psi,u,v,r,surge,sway,yaw"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column time is missing: must be 'time [s]'"),
        ("time,x,y,psi,u,v\n0,0,0,0,0,0\n", "column r is missing: must be 'r [rad/s]' or 'r [deg/s]'"),
        ("time,x,y,psi,u,v,r\n0,0,0,0,0,0,0\n", "no commands: must have columns 'surge [-]'"),
        (f"{HEADER}\n{LINE}\n0.1,0,0,0,x,0,0,0,0,0\n", "line 3, column 'u': 'x': must be a number"),
        (f"{HEADER}\n0,0,0,nan,0,0,0,0,0,0\n", "line 2, column 'psi': 'nan': must be a number"),
        (f"{HEADER}\n0,0,0,0,0,0,0,,0,0\n", "line 2, column 'surge': '': must be a number"),
        (f"{HEADER}\n0,0,0\n", "line 2: 3 cells: must be 10, as in the header"),
        (f"{HEADER}\n1{LINE[1:]}\n{LINE}\n", "line 3, column 'time': time runs backward"),
        (f"{HEADER}\n", "no rows below the header"),
        (f"{HEADER}\n{LINE}\n", "1 rows: must be at least 100"),
        (HEADER.replace("u", "u [km/h]", 1) + "\n" + LINE, "column 'u [km/h]': the unit must be m/s or kn"),
        (f"{HEADER},u\n{LINE},0\n", "column 'u': u is there twice"),
        (HEADER.replace("surge", "surge [N]") + "\n" + LINE, "needs the limits of the boat: give --vessel"),
        (f"{HEADER}\n0,0,0,0,0,0,0,40,0,0\n", "command surge is 40: must be fractions of the limits"),
    ],
)
def test_a_damaged_table_is_refused_in_one_line(text, message, tmp_path, capsys):
    path = tmp_path / "voyage.csv"
    path.write_text(text)
    assert main(["identify", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {path}: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha_u": [-1.0, 0.1]}, "identified.alpha_u = [-1.0, 0.1]: must be a value from 1e-09 to 1e+06"),
        ({"alpha_u": [1.0, 0.0]}, "identified.alpha_u = [1.0, 0.0]: must be a positive standard deviation"),
        ({"c_rv": [1.0]}, "identified.c_rv = [1.0]: must be a list of 2 finite numbers"),
        ({"delay": [float("nan"), 0.1]}, "identified.delay[0] = nan: must be a finite number"),
        ({"correlation": [[1.0]]}, "identified.correlation: must be 8 lists of 8 numbers"),
        ({"correlation": (2 * np.eye(8)).tolist()}, "correlation: must be symmetric with ones on its diagonal"),
        ({"correlation": (2 * np.eye(8) - 1).tolist()}, "correlation: must be positive semidefinite"),
        ({"colour": "red"}, "identified.colour = 'red': unknown key"),
    ],
)
def test_a_damaged_identification_is_refused_in_one_line(change, message, found, tmp_path):
    from anyhull.files import toml_text

    path = write_boat(tmp_path / "boat.toml", table_of("platform-a"), found.found, (40.0, 40.0, 20.0))
    table = table_of(path)
    table["identified"] |= change
    other = tmp_path / "other.toml"
    other.write_text(toml_text(table))
    with pytest.raises(InputError) as raised:
        Vessel.load(other)
    assert message in str(raised.value)


def test_a_correlation_that_no_numbers_have_is_refused(found):
    # Pairwise -0.9 of three: the variance of their sum would be 3 - 6 · 0.9 < 0.
    rows = np.eye(8)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        rows[i, j] = rows[j, i] = -0.9
    with pytest.raises(InputError, match="positive semidefinite"):
        replace(found.found, correlation=tuple(map(tuple, rows.tolist())))


def test_the_command_prints_json_and_writes_file_and_figure(excited, tmp_path, capsys):
    log = excited.during([[0.0, 12.0]]).save(tmp_path / "voyage.npz")
    out, plot = tmp_path / "boat.toml", tmp_path / "estimates.png"
    arguments = ["identify", str(log), "--vessel", "platform-a", "--out", str(out)]
    assert main([*arguments, "--plot", str(plot), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document["identified"]) == set(Identified.__dataclass_fields__)
    assert document["hull"]["m - X_udot"][0] == pytest.approx(44, rel=0.2)
    assert Vessel.load(out).identified is not None
    assert plot.stat().st_size > 10_000
    before = out.read_bytes()
    assert main(arguments) == 2
    assert "never replaced" in capsys.readouterr().err
    assert out.read_bytes() == before


def test_simulate_saves_the_boat_of_adaptive_only(tmp_path, capsys):
    out = tmp_path / "boat.toml"
    assert main(["simulate", "--duration", "5", "--save-boat", str(out)]) == 2
    assert "only --controller adaptive identifies the boat under way" in capsys.readouterr().err
    assert main(["simulate", "--controller", "adaptive", "--duration", "5", "--save-boat", str(out)]) == 0
    kept = Vessel.load(out).identified
    assert kept is not None
    assert kept.seconds == pytest.approx(5.0)


def test_the_log_says_which_boat_it_is_of(excited):
    # A log of a run without a length has no scale; its limits give kg all the same.
    assert excited.about["limits"] == [40, 40, 20]
    bare = Log(
        **{name: getattr(excited, name) for name in ("time", "state", "reference", "command", "current", "force")}
    )
    assert voyage(bare, None).scale.identity
