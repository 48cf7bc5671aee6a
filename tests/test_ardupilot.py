"""ArduPilot's DataFlash logs: the run that they hold, and files that are damaged."""

import json
import math
import struct
import warnings

import numpy as np
import pytest

from anyhull import InputError
from anyhull.cli import main
from anyhull.viz.ardupilot import read_ardupilot
from anyhull.viz.dataflash import read_messages
from anyhull.viz.foxglove import write_mcap

# The structures of ArduPilot's log messages: number, letters of the fields, names.
TYPES = {
    "XKF1": (10, "QBccCfffffffccce", "TimeUS,C,Roll,Pitch,Yaw,VN,VE,VD,dPD,PN,PE,PD,GX,GY,GZ,OH"),
    "IMU": (11, "QBffffff", "TimeUS,I,GyrX,GyrY,GyrZ,AccX,AccY,AccZ"),
    "ORGN": (12, "QBLLe", "TimeUS,Type,Lat,Lng,Alt"),
    "GPS": (13, "QBBIHBcLLe", "TimeUS,I,Status,GMS,GWk,NSats,HDop,Lat,Lng,Alt"),
    "THR": (14, "Qhffff", "TimeUS,ThrIn,ThrOut,DesSpeed,Speed,AccY"),
    "STER": (15, "Qhfffff", "TimeUS,SteerIn,SteerOut,DesLatAcc,LatAcc,DesTurnRate,TurnRate"),
    "RCOU": (16, "QHHHH", "TimeUS,C1,C2,C3,C4"),
    "PARM": (17, "QNff", "TimeUS,Name,Value,Default"),
    "MODE": (18, "QMBB", "TimeUS,Mode,ModeNum,Rsn"),
    "MSG": (19, "QZ", "TimeUS,Message"),
    "ERR": (20, "QBB", "TimeUS,Subsys,ECode"),
    "EV": (21, "QB", "TimeUS,Id"),
    "PSCN": (22, "Qffffffff", "TimeUS,TPN,PN,DVN,TVN,VN,DAN,TAN,AN"),
    "PSCE": (23, "Qffffffff", "TimeUS,TPE,PE,DVE,TVE,VE,DAE,TAE,AE"),
    "FMT": (128, "BBnNZ", "Type,Length,Name,Format,Columns"),
}
CODES = {"Q": "Q", "B": "B", "M": "B", "H": "H", "h": "h", "I": "I", "i": "i", "f": "f", "c": "h", "C": "H", "e": "i"}
CODES |= {"L": "i", "n": "4s", "N": "16s", "Z": "64s"}


def record(name, *values):
    """A record as the board writes it, with raw values."""
    number, letters, _ = TYPES[name]
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    return b"\xa3\x95" + bytes([number]) + struct.pack("<" + "".join(CODES[letter] for letter in letters), *raw)


def flight(seconds=20.0, targets=True):
    """A boat that goes north-east at 1 m/s and turns clockwise by 0.01 rad/s; it began 100 s after the start."""
    data = b"".join(
        record(
            "FMT",
            number,
            3 + struct.calcsize("<" + "".join(CODES[letter] for letter in letters)),
            name,
            letters,
            columns,
        )
        for name, (number, letters, columns) in TYPES.items()
    )
    began = 100_000_000
    data += record("MSG", began, "ArduRover V4.5.1") + record("ORGN", began, 0, 600_000_000, 100_000_000, 0)
    servos = {
        "SERVO1_FUNCTION": 73,
        "SERVO3_FUNCTION": 74,
        "SERVO2_FUNCTION": 0,
        "SERVO1_MIN": 1000,
        "SERVO1_MAX": 2000,
    }
    data += b"".join(record("PARM", began, name, value, 0.0) for name, value in servos.items())
    for k in range(int(seconds * 25)):
        t, us = 0.04 * k, began + 40_000 * k
        along, yaw = t * math.sqrt(0.5), round(100 * (359.0 + math.degrees(0.01 * t))) % 36000
        for core in (0, 1):
            velocity = (math.sqrt(0.5), math.sqrt(0.5))
            data += record("XKF1", us, core, 0, 0, yaw, *velocity, 0, 0, along + core, along, 0, 0, 0, 0, 0)
        data += record("IMU", us, 0, 0, 0, 0.01, 0, 0, -9.81)
        if k % 5 == 0:
            data += record("GPS", us, 0, 3, 200_000 * 5 + 40 * k, 2300, 12, 80, 600_000_000, 100_000_000, 0)
            data += record("THR", us, 50, 40.0, 1.0, 1.0, 0) + record("STER", us, 0, -2250.0, 0, 0, 0, 0)
            data += record("RCOU", us, 1750, 1500, 1300, 0)
        if targets and 5 <= t <= 15:
            data += record("PSCN", us, along + 0.3, along, 0, 1.0, 0, 0, 0, 0)
            data += record("PSCE", us, along + 0.4, along, 0, 0.0, 0, 0, 0, 0)
        if k == 250:
            data += record("MODE", us, 15, 15, 2) + record("ERR", us, 5, 1) + record("EV", us, 10)
    return data


@pytest.fixture(scope="module")
def whole():
    return flight()


def test_the_state_of_a_run_is_that_of_the_first_filter_in_its_own_frame(whole, tmp_path):
    (tmp_path / "00000001.BIN").write_bytes(whole)
    log = read_ardupilot(tmp_path / "00000001.BIN")
    # Records 40 ms apart, the last at 19.96 s: periods at 0, 0.1, ..., 19.9 s.
    assert len(log.time) == 200
    np.testing.assert_allclose(np.diff(log.time), 0.1)
    np.testing.assert_allclose(log.state[:, 0], log.time * math.sqrt(0.5), atol=1e-5)
    # Heading grows through north: from -1 degree.
    np.testing.assert_allclose(log.state[:, 2], math.radians(-1) + 0.01 * log.time, atol=2e-4)
    # North-east is 45 degrees to starboard of a boat that heads north.
    across = math.radians(45) - log.state[:, 2]
    np.testing.assert_allclose(
        log.state[:, 3:], np.stack([np.cos(across), np.sin(across), across * 0 + 0.01], 1), atol=1e-5
    )
    assert log.thrusters is not None
    assert log.epoch is not None
    assert log.sensors is not None
    # 40 of 100 ahead, half of 4500 to port; pulses 250 of 500 up, none, and 200 of 400 down.
    np.testing.assert_allclose(log.command, np.full((200, 3), (0.4, 0.0, -0.5)), atol=1e-7)
    np.testing.assert_allclose(log.thrusters, np.full((200, 2), (0.5, -0.5)), atol=1e-7)
    assert log.about["frame"] == {"latitude": pytest.approx(60), "longitude": pytest.approx(10), "axes": "ned"}
    # Week 2300 began 2300 * 604800 s after 1980-01-06, which is 315964800 s after 1970; 18 leap seconds since.
    assert log.epoch[0] == pytest.approx(315_964_800 + 2300 * 604_800 + 1000 - 18, abs=1e-3)
    np.testing.assert_allclose(log.sensors[::2, 1:3], 0.0, atol=1e-6)
    assert np.isnan(log.sensors[1::2, 1]).all()


def test_the_targets_of_the_position_controller_are_the_reference_while_they_are_in_force(whole, tmp_path):
    (tmp_path / "run.bin").write_bytes(whole)
    log = read_ardupilot(tmp_path / "run.bin")
    ((start, end),) = log.about["following"]
    assert (start, end) == pytest.approx((5.0, 15.0), abs=0.1)
    # 0.3 m north and 0.4 m east of the boat is half a metre.
    np.testing.assert_allclose(log.during([(start, end)]).position_error, 0.5, atol=1e-3)
    np.testing.assert_allclose(log.during([(start, end)]).reference[:, 2], 0.0, atol=1e-6)


def test_modes_messages_and_errors_are_events(whole, tmp_path):
    (tmp_path / "run.bin").write_bytes(whole)
    events = read_ardupilot(tmp_path / "run.bin").about["events"]
    assert events == [
        [0.0, "message", "ArduRover V4.5.1"],
        [pytest.approx(10.0), "error", "subsystem 5, code 1"],
        [pytest.approx(10.0), "event", "10"],
        [pytest.approx(10.0), "mode", "GUIDED"],
    ]


def test_the_same_records_are_read_by_pymavlink(whole, tmp_path):
    """That our file is a DataFlash log, and that we read it as ArduPilot's own reader does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pymavlink.DFReader import DFReader_binary

        (tmp_path / "run.bin").write_bytes(whole)
        reader = DFReader_binary(str(tmp_path / "run.bin"))
        theirs = []
        while (message := reader.recv_match(type=["XKF1"])) is not None:
            theirs.append((message.TimeUS, message.C, message.Yaw, message.PN, message.VE))
        reader.close()
    ours = read_messages(tmp_path / "run.bin", ["XKF1"])["XKF1"]
    np.testing.assert_allclose(
        np.stack([ours.numbers(name) for name in ("TimeUS", "C", "Yaw", "PN", "VE")], axis=1), theirs, rtol=1e-9
    )


def test_messages_of_scripts_with_odd_names_are_passed_over(whole, tmp_path):
    # Two fields of one name, and more records of it than there may be damaged stretches.
    definition = record("FMT", 99, 3 + 8, "LUA!", "ff", "a,a")
    (tmp_path / "run.bin").write_bytes(definition + (b"\xa3\x95\x63" + bytes(8)) * 20_000 + whole)
    assert len(read_ardupilot(tmp_path / "run.bin").time) == 200


def test_the_command_sums_up_draws_and_converts_it(whole, tmp_path, capsys):
    file = tmp_path / "run.BIN"
    file.write_bytes(whole)
    outputs = [
        "--plot",
        str(tmp_path / "run.png"),
        "--mcap",
        str(tmp_path / "run.mcap"),
        "--bag",
        str(tmp_path / "bag"),
    ]
    assert main(["log", str(file), *outputs]) == 0
    shown = capsys.readouterr().out
    assert "run, ArduPilot, 19.9 s, 200 periods" in shown
    assert "50.00" in shown  # cm
    assert "mode: GUIDED" in shown
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_a_run_without_a_reference_has_no_errors_rather_than_none_at_all(tmp_path, capsys):
    file = tmp_path / "run.bin"
    file.write_bytes(flight(targets=False))
    assert main(["log", str(file), "--plot", str(tmp_path / "run.png")]) == 0
    assert "no reference in the log" in capsys.readouterr().out
    assert main(["log", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["metrics"] == {}
    from mcap.reader import make_reader

    with write_mcap(read_ardupilot(file), tmp_path / "run.mcap").open("rb") as written:
        summary = make_reader(written).get_summary()
    assert summary is not None
    topics = {channel.topic for channel in summary.channels.values()}
    assert {"/pose", "/path", "/gps", "/thrusters"} <= topics
    assert not {"/reference", "/error", "/reference_path"} & topics


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "too short"), (b"text " * 100, "not a DataFlash log"), (b"\xa3\x95" * 50_000, "not a DataFlash log")],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path, capsys, content, words):
    (tmp_path / "run.bin").write_bytes(content)
    assert main(["log", str(tmp_path / "run.bin")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_damaged_files_give_a_log_or_one_line_and_nothing_else(tmp_path):
    random, data, file = np.random.default_rng(0), flight(3.0), tmp_path / "run.bin"
    refused = []
    for i in range(200):
        changed = bytearray(data)
        for at in random.integers(0, len(data), size=1 + i % 20):
            changed[at] = random.integers(256)
        if i % 3 == 0:  # among the definitions, where a byte changes how all others are read
            changed[random.integers(89 * len(TYPES))] = random.integers(256)
        if i % 5 == 0:
            del changed[random.integers(len(changed)) :]
        if i % 7 == 0:
            at = int(random.integers(len(changed) + 1))
            changed[at:at] = random.bytes(50)
        file.write_bytes(changed)
        try:
            log = read_ardupilot(file)
        except InputError as error:
            refused.append(str(error))
            continue
        assert len(log.time) < 20_000
        assert np.isfinite(log.state).all()
        assert np.isfinite(log.reference).all()
        assert np.isfinite(log.command).all()
        assert (np.abs(log.thrusters) <= 1).all() if log.thrusters is not None else True
        json.dumps(log.about, allow_nan=False)
    # Most damage is skipped.
    assert 0 < len(refused) < 100
    assert not any("\n" in line for line in refused)
