"""Odd values in a boat's file: a warning with field, value and what is usual; an error where no simulation runs."""

import pytest
from doubles import DINGHY

from anyhull.cli import main
from anyhull.dynamics import substeps
from anyhull.errors import InputError
from anyhull.unusual import warnings
from anyhull.vessel import Vessel, catalogue

GOOD = "length = 1.2\nbeam = 0.6\n" + DINGHY + "Fx = 20\nFy = 10\nMz = 5\n"

MINIMAL = """
name = "Boat"
length = 1.2
beam = 0.8
m = 20

[[thrusters]]
kind = "fixed"
x = -0.5
y = -0.3
forward = 50

[[thrusters]]
kind = "fixed"
x = -0.5
y = 0.3
forward = 50
"""


def load(tmp_path, text):
    path = tmp_path / "boat.toml"
    path.write_text(text)
    return Vessel.load(path)


def test_published_vessels_have_no_odd_values_but_one_sign():
    found = {name: warnings(Vessel.load(name)) for name in catalogue()}
    assert {name for name, lines in found.items() if lines} == {"qiuxin5"}
    assert found["qiuxin5"][0].startswith("hydrodynamics.Y_vdot = 31.4571: usual is a negative value")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("length = 1.2", "length = 10", "m = 20: boats of 10 m have 400 to 8e+04 kg"),
        ("length = 1.2", "length = 900", "m = 20: boats of 900 m have"),  # mm
        ("m = 20", "m = 20000", "m = 20000: boats of 1.2 m have 0.691 to 138 kg"),  # g
        ("beam = 0.8", "beam = 8", "beam = 8: usual are 1/12 to 1 of the length"),
        ("forward = 50", "forward = 5000", "Fx = 10000: usual are 0.196 to 589 N"),
        ("forward = 50", "forward = 0.001", "Fx = 0.002: usual are"),
        ("y = 0.3", "y = 0.3\nlag = 200", "thrusters[1].lag = 200: usual are 0.05 to 1 s; check s and ms"),
        ("y = 0.3", "y = 0.3\nreverse = 80", "thrusters[1].reverse = 80: usual is 0.2 to 1 of forward, 50 N"),
        ("y = 0.3", "y = 0.3\nangle = 0.785", "thrusters[1].angle = 0.785: in degrees; as radians it would be 45°"),
        ("y = 0.3", "y = 0.3\nangle = 390", "thrusters[1].angle = 390: usual are -180 to 360 degrees"),
        ("y = 0.3", "y = 0.3\ndead_band = 0.9", "thrusters[1].dead_band = 0.9: usual are 0 to 0.4"),
        ("x = -0.5\ny = 0.3", "x = -1.1\ny = 0.3", "thrusters[1].x = -1.1: outside the hull: usual is up to half"),
        ("y = 0.3", "y = 0.6", "thrusters[1].y = 0.6: outside the hull: usual is up to half of the beam, 0.8 m"),
    ],
)
def test_an_odd_value_is_a_warning_with_what_is_usual(tmp_path, old, new, expected):
    assert warnings(load(tmp_path, MINIMAL)) == []
    boat = load(tmp_path, MINIMAL.replace(old, new))
    assert any(expected in line for line in warnings(boat)), warnings(boat)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("X_udot = -1", "X_udot = 1", "hydrodynamics.X_udot = 1: usual is a negative value"),
        ("Y_vdot = -5", "Y_vdot = 5", "hydrodynamics.Y_vdot = 5: usual is a negative value"),
        ("I_comb = 2", "I_comb = 0.001", "hydrodynamics.I_comb = 0.001: usual are 0.144 to 9.22 kg·m²"),
        # 20 N against 0.4 kg/s balance at 50 m/s.
        ("X_u = 3", "X_u = 0.4", "hydrodynamics.X_u = 0.4: gives a top speed of 50 m/s at Fx = 20 N"),
        ("Mz = 5", "Mz = 500", "Mz = 500: usual are 0.24 to 28.8 N·m"),
    ],
)
def test_odd_hydrodynamics_are_a_warning_and_can_be_simulated(tmp_path, old, new, expected):
    assert warnings(load(tmp_path, GOOD)) == []
    text = GOOD.replace(old, new)
    assert text != GOOD
    boat = load(tmp_path, text)
    assert any(expected in line for line in warnings(boat)), warnings(boat)
    assert substeps(boat) <= 1000


def test_an_inertia_that_no_simulation_can_follow_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InputError, match=r"boat.toml: hydrodynamics.I_comb = 1e-12: must be such that \|alpha_r\|"):
        load(tmp_path, GOOD.replace("I_comb = 2", "I_comb = 1e-12"))


def test_commands_print_odd_values(tmp_path, capsys):
    path = tmp_path / "boat.toml"
    path.write_text(MINIMAL.replace("m = 20", "m = 20000"))
    assert main(["vessels", "show", str(path)]) == 0
    assert "warning: m = 20000: boats of 1.2 m have 0.691 to 138 kg; check kg and m" in capsys.readouterr().out
    assert main(["simulate", "--vessel", str(path), "--duration", "2"]) == 0
    assert "warning: Boat: m = 20000: boats of 1.2 m have" in capsys.readouterr().err
