"""The systemd unit that we ship: what it runs exists, and it restarts only what another start helps."""

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from anyhull.cli import main

UNIT = Path(__file__).parents[1] / "examples" / "anyhull-pilot.service"


def section(name):
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(UNIT)
    return dict(parser[name])


def test_the_unit_runs_a_pilot_with_options_that_exist(tmp_path, capsys):
    program, *arguments = shlex.split(section("Service")["ExecStart"])
    assert program == "/opt/anyhull/bin/anyhull"
    root = UNIT.parents[1] / "examples"
    places = {
        "/etc/anyhull/boat.toml": root / "boat.toml",
        "/etc/anyhull/mission.toml": root / "missions" / "lawnmower.toml",
        "/var/lib/anyhull/voyage.npz": tmp_path / "voyage.npz",
    }
    assert main([*(str(places.get(argument, argument)) for argument in arguments), "--dry-run"]) == 0
    assert "approach" in capsys.readouterr().out


def test_only_a_killed_pilot_is_started_again():
    service = section("Service")
    assert service["Restart"] == "on-failure"
    # 1 is a boat that was refused, 2 invalid input: docs/link.md.
    assert service["RestartPreventExitStatus"].split() == ["1", "2"]
    assert service["KillSignal"] == "SIGTERM"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    # The program is one that is there: whether /opt/anyhull is installed is not the unit's fault.
    text = UNIT.read_text().replace("/opt/anyhull/bin/anyhull", "/bin/true")
    (tmp_path / UNIT.name).write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / UNIT.name)], capture_output=True, text=True)
    own = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert own == []
