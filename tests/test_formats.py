"""Logs in the formats of other tools, read back by libraries that we did not write."""

import json
import math
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from anyhull import InputError
from anyhull.cli import main
from anyhull.hydrodynamics import Normalized
from anyhull.log import SENSORS, Log
from anyhull.onboard.recorder import FORMAT as JOURNAL_FORMAT
from anyhull.thrusters import Thruster
from anyhull.viz.foxglove import LAYOUT, write_mcap
from anyhull.viz.rosbag import write_bag
from anyhull.viz.topics import NUMBERS, TOPICS

ROWS = 5
FRAME = {"latitude": 60.0, "longitude": 10.0, "axes": "ned"}
LAYOUT_OF_THRUSTERS = [
    asdict(Thruster("fixed", x, y, forward=10.0, reverse=5.0)) for x, y in ((1, 0.5), (1, -0.5), (-1, 0.5), (-1, -0.5))
]
EVENTS = [
    [1000.05, "arming", "all checks passed"],
    [1000.1, "reaction", "run: no fault"],
    [1000.3, "reaction", "ramp: lost"],
]


@pytest.fixture
def log():
    """Five rows in a NED frame: the boat lies 3 m north and 4 m east of the origin and heads north."""
    random, ones = np.random.default_rng(0), np.ones((ROWS, 1))
    sensors = np.full((ROWS, len(SENSORS)), np.nan)
    sensors[1, :4] = 1000.1, 3.0, 4.0, 0.5
    sensors[:, 4:6] = 0.0, 0.1
    return Log(
        time=0.1 * np.arange(ROWS, dtype=np.float64),
        state=ones * (3.0, 4.0, 0.0, 1.0, 0.2, 0.1),
        reference=ones * (2.0, 4.0, 0.0, 1.0, 0.0, 0.0),
        command=ones * (0.5, 0.25, -0.1),
        current=random.normal(size=(ROWS, 2)),
        force=np.zeros((ROWS, 3)),
        latent=random.normal(size=(ROWS, 3)),
        estimate=ones * (3.5, 4.0, 0.0, 1.0, 0.2, 0.1),
        epoch=1.7e9 + 0.1 * np.arange(ROWS, dtype=np.float64),
        thrusters=ones * (1.0, -1.0, 0.5, 0.0),
        angles=np.zeros((ROWS, 4)),
        dynamics=np.concatenate(
            [ones * (1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 1.1, -0.9, 0.5), np.full((ROWS, 9), 0.1)], axis=1
        ),
        sensors=sensors,
        about={"vessel": "Dinghy", "length": 2.0, "beam": 1.0, "limits": [50.0, 50.0, 20.0], "frame": FRAME}
        | {"layout": LAYOUT_OF_THRUSTERS, "events": EVENTS, "boat_time": 1000.0},
    )


def bare(log):
    """What every log has, and nothing else."""
    names = ("latent", "estimate", "epoch", "thrusters", "angles", "dynamics", "sensors")
    return replace(log, about={}, **dict.fromkeys(names))


def messages(path):
    """Every message by topic: its time and its content; schemas by topic; metadata."""
    found: dict[str, list[Any]] = {}
    schemas: dict[str, str] = {}
    factories: dict[str, Any] = {}
    with Path(path).open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        notes = {record.name: record.metadata for record in reader.iter_metadata()}
        for schema, channel, message in reader.iter_messages():
            assert schema is not None
            schemas[channel.topic] = schema.name
            if schema.encoding == "protobuf":
                if schema.name not in factories:
                    files = descriptor_pb2.FileDescriptorSet.FromString(schema.data)
                    pool = descriptor_pool.DescriptorPool()
                    for part in files.file:
                        pool.Add(part)
                    factories[schema.name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
                content = factories[schema.name].FromString(message.data)
            else:
                content = json.loads(message.data, parse_constant=pytest.fail)
                properties = json.loads(schema.data)["properties"]
                assert content.keys() <= properties.keys()
            found.setdefault(channel.topic, []).append((message.log_time, content))
    return found, schemas, notes


def test_an_mcap_has_every_topic_with_its_schema_and_one_message_a_period(log, tmp_path):
    found, schemas, notes = messages(write_mcap(log, tmp_path / "run.mcap"))
    numbers = [*NUMBERS, "/thrusters", "/dynamics", "/latent", "/guard"]
    expected = {topic: f"foxglove.{name}" for topic, name in TOPICS.items()}
    assert schemas == expected | {topic: f"anyhull{topic.replace('/', '.')}" for topic in numbers}
    once = {"/path": 1, "/reference_path": 1, "/hull": 1, "/events": 3, "/guard": 4}
    assert {topic: len(rows) for topic, rows in found.items()} == dict.fromkeys(schemas, ROWS) | once
    for topic, rows in found.items():
        times = [time for time, _ in rows]
        assert times == sorted(times), topic
    # Ten digits before the point leave a double some 0.2 us.
    stamps = [time for time, _ in found["/pose"]]
    np.testing.assert_allclose(np.array(stamps) / 1e9, log.epoch, rtol=0, atol=1e-6)
    assert json.loads(notes["anyhull"]["about"]) == log.about
    assert "1970" in notes["anyhull"]["log_time"]


def test_the_numbers_of_an_mcap_are_those_of_the_log_with_poses_in_east_and_north(log, tmp_path):
    found, _, _ = messages(write_mcap(log, tmp_path / "run.mcap"))
    # North 3, east 4, heading north: x = 4, y = 3, a quarter turn counterclockwise from east.
    for topic, x, y in (("/pose", 4.0, 3.0), ("/estimate", 4.0, 3.5), ("/reference", 4.0, 2.0)):
        pose = found[topic][0][1].pose
        assert (pose.position.x, pose.position.y) == pytest.approx((x, y), abs=1e-9)
        assert (pose.orientation.z, pose.orientation.w) == pytest.approx((math.sqrt(0.5), math.sqrt(0.5)), abs=1e-9)
    boat, target = found["/tf"][0][1].transforms
    assert (boat.parent_frame_id, boat.child_frame_id, target.child_frame_id) == ("local", "boat", "reference")
    assert (boat.translation.x, boat.translation.y, target.translation.y) == (4.0, 3.0, 2.0)
    # A degree of latitude is 111.4 km at 60 degrees north, one of longitude 55.8 km.
    place = found["/gps"][0][1]
    assert (place.latitude, place.longitude) == pytest.approx((60 + 3 / 111_412, 10 + 4 / 55_800), abs=1e-7)
    for i in range(ROWS):
        assert found["/command"][i][1] == {"surge": 0.5, "sway": 0.25, "yaw": -0.1}
        assert found["/thrusters"][i][1] == {"commands": [1.0, -1.0, 0.5, 0.0], "angles": [0.0] * 4}
        assert list(found["/water"][i][1].values()) == log.current[i].tolist()
        assert found["/latent"][i][1]["z"] == log.latent[i].tolist()
    # One metre ahead of the reference, which heads along x.
    assert found["/error"][0][1] == {"along": 1.0, "across": 0.0, "position": 1.0, "heading": 0.0}
    assert found["/sensors"][0][1] == {"heading": 0.0, "gyro": 0.1}
    assert found["/sensors"][1][1]["fix_std"] == 0.5
    dynamics = found["/dynamics"][0][1]
    assert dynamics["alpha_v"] == pytest.approx(
        {"value": 2, "low": 2 * math.exp(-0.1), "high": 2 * math.exp(0.1), "spread": 0.1}
    )
    assert dynamics["c_ru"]["low"] == pytest.approx(-0.9 * math.exp(0.1))
    assert dynamics["c_uv"]["high"] == pytest.approx(math.sinh(math.asinh(0.5) + 0.1))
    assert tuple(dynamics) == Normalized._fields


def test_the_events_of_an_mcap_have_the_time_of_the_run_and_give_the_guards_state(log, tmp_path):
    found, _, _ = messages(write_mcap(log, tmp_path / "run.mcap"))
    # In the boat's clock they are 0.05, 0.1 and 0.3 s after the first row.
    since = [(time / 1e9 - 1.7e9, event.message, event.level) for time, event in found["/events"]]
    assert since == [
        (pytest.approx(0.05, abs=1e-6), "arming: all checks passed", 2),
        (pytest.approx(0.1, abs=1e-6), "reaction: run: no fault", 2),
        (pytest.approx(0.3, abs=1e-6), "reaction: ramp: lost", 3),
    ]
    assert [state["reaction"] for _, state in found["/guard"]] == ["run", "run", "ramp", "ramp"]


def test_the_forces_are_drawn_where_the_thrusters_are(log, tmp_path):
    found, _, _ = messages(write_mcap(log, tmp_path / "run.mcap"))
    # Body y is to starboard in the log and to port in the file; full reverse is half of full ahead; the hull is 2 m.
    first, second, third, fourth = found["/forces"][0][1].entities[0].arrows
    assert (first.pose.position.x, first.pose.position.y) == (1.0, -0.5)
    lengths = [arrow.shaft_length + arrow.head_length for arrow in (first, second, third, fourth)]
    assert lengths == pytest.approx([1.0, 0.5, 0.5, 0.0])
    assert abs(second.pose.orientation.z) == pytest.approx(1.0)  # half a turn
    outline = found["/hull"][0][1].entities[0].lines[0].points
    assert max(point.x for point in outline) - min(point.x for point in outline) == pytest.approx(2.0)
    assert max(point.y for point in outline) == pytest.approx(0.5)


def test_a_log_without_optional_arrays_has_time_from_zero_and_its_own_axes(log, tmp_path):
    found, schemas, notes = messages(write_mcap(bare(log), tmp_path / "run.mcap"))
    absent = {"/estimate", "/gps", "/sensors", "/thrusters", "/dynamics", "/latent", "/guard", "/events"}
    assert not absent & schemas.keys()
    assert [time for time, _ in found["/pose"]] == [round(1e8 * k) for k in range(ROWS)]
    pose = found["/pose"][0][1].pose
    assert (pose.position.x, pose.position.y, pose.orientation.w) == (3.0, 4.0, 1.0)
    assert "no absolute time" in notes["anyhull"]["log_time"]
    with Reader(write_bag(bare(log), tmp_path / "bag")) as bag:
        assert {c.topic for c in bag.connections} == {"/odom", "/tf", "/reference", "/reference_path", "/command"}


def test_a_clock_that_is_set_back_does_not_turn_the_file_back(log, tmp_path):
    epoch = log.epoch.copy()
    epoch[0] += 3600
    found, _, _ = messages(write_mcap(replace(log, epoch=epoch), tmp_path / "run.mcap"))
    np.testing.assert_allclose(np.array([time for time, _ in found["/pose"]]) / 1e9, log.epoch, atol=1e-6)


def paths_of(value):
    """Every topic and message path that a layout mentions."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ([key] if key.startswith("/") else [])
            yield from paths_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from paths_of(inner)
    elif isinstance(value, str) and value.startswith("/"):
        yield value


def test_the_documentation_names_every_topic_and_no_other():
    text = (Path(__file__).parents[1] / "docs" / "logs.md").read_text()
    table = text.partition("## Foxglove")[2].partition("JSON messages have")[0]
    numbers = [*NUMBERS, "/thrusters", "/dynamics", "/latent", "/guard"]
    assert set(re.findall(r"`(/\w+)`", table)) == {*TOPICS, *numbers}
    for topic, schema in TOPICS.items():
        assert re.search(rf"`{topic}`[^|]*\| foxglove\.{schema} ", table), topic


def test_every_path_of_the_layout_is_in_a_file(log, tmp_path):
    found, _, _ = messages(write_mcap(log, tmp_path / "run.mcap"))
    layout = json.loads(LAYOUT.read_text())
    paths = set(paths_of(layout["configById"]))
    assert {path.partition(".")[0] for path in paths} >= found.keys() - {"/tf", "/sensors", "/latent", "/water"}
    for path in paths:
        topic, *fields = path.replace("[", ".").replace("]", "").split(".")
        value = found[topic][0][1]
        for field in fields:
            value = value[int(field)] if field.isdecimal() else value[field]
        assert not fields or isinstance(value, float | int | str), path
    names = json.dumps(layout["layout"])
    assert all(f'"{name}"' in names for name in layout["configById"])


def test_a_bag_holds_standard_messages_in_the_axes_of_ros(log, tmp_path):
    store = get_typestore(Stores.ROS2_JAZZY)
    found: dict[str, list[Any]] = {}
    with Reader(write_bag(log, tmp_path / "bag")) as bag:
        for connection, time, data in bag.messages():
            found.setdefault(connection.topic, []).append((time, store.deserialize_cdr(data, connection.msgtype)))
            assert connection.digest == store.hash_rihs01(connection.msgtype)
    counts = {topic: len(rows) for topic, rows in found.items()}
    each = ("/odom", "/ground_truth", "/tf", "/reference", "/command", "/imu")
    thrusters = [f"/thruster_{i}/{what}" for i in range(4) for what in ("command", "angle")]
    assert counts == dict.fromkeys((*each, *thrusters), ROWS) | {"/reference_path": 1, "/fix": 1, "/events": 3}
    np.testing.assert_allclose([time / 1e9 for time, _ in found["/odom"]], log.epoch, rtol=0, atol=1e-6)
    # The estimate: north 3.5, east 4, heading north, 0.2 m/s to starboard, turning clockwise.
    odometry = found["/odom"][0][1]
    assert (odometry.header.frame_id, odometry.child_frame_id) == ("odom", "base_link")
    assert odometry.header.stamp.sec == 1_700_000_000
    pose, twist = odometry.pose.pose, odometry.twist.twist
    assert (pose.position.x, pose.position.y) == (4.0, 3.5)
    assert (pose.orientation.z, pose.orientation.w) == pytest.approx((math.sqrt(0.5), math.sqrt(0.5)))
    assert (twist.linear.x, twist.linear.y, twist.angular.z) == (1.0, -0.2, -0.1)
    # 0.5 of 50 N, 0.25 of 50 N to starboard, 0.1 of 20 N m counterclockwise.
    wrench = found["/command"][0][1].wrench
    assert (wrench.force.x, wrench.force.y, wrench.torque.z) == pytest.approx((25.0, -12.5, 2.0))
    assert [found[f"/thruster_{i}/command"][0][1].data for i in range(4)] == [1.0, -1.0, 0.5, 0.0]
    imu = found["/imu"][0][1]
    assert (imu.orientation.w, imu.angular_velocity.z) == pytest.approx((math.sqrt(0.5), -0.1))
    assert (imu.angular_velocity_covariance[0], imu.linear_acceleration_covariance[0]) == (0.0, -1.0)
    fix = found["/fix"][0][1]
    assert fix.latitude == pytest.approx(60 + 3 / 111_412, abs=1e-7)
    assert fix.position_covariance[0] == 0.25
    assert [row.level for _, row in found["/events"]] == [20, 20, 30]
    assert found["/tf"][0][1].transforms[0].transform.translation.y == 3.5


def test_a_journal_becomes_an_mcap_and_a_bag(tmp_path, capsys):
    file = tmp_path / "run.jsonl"
    about = {"vessel": "Test boat", "frame": FRAME}
    rows = [
        json.dumps([0.1 * k, 0.1 * k, 1, 1e9 + k, k, *[0.0] * 16, *[None] * 8, [0.5], [], [], []]) for k in range(5)
    ]
    lines = [json.dumps({"format": JOURNAL_FORMAT, "about": about}), '{"boat_time": 50.0}', *rows]
    file.write_text("\n".join([*lines, '{"event": [50.2, "fence", "0.1 m outside"]}', "damaged"]))
    assert main(["log", str(file), "--mcap", str(tmp_path / "run.mcap"), "--bag", str(tmp_path / "bag")]) == 0
    assert f"mcap: {tmp_path / 'run.mcap'}" in capsys.readouterr().out
    found, _, _ = messages(tmp_path / "run.mcap")
    assert [m.pose.position.y for _, m in found["/pose"]] == [0, 1, 2, 3, 4]
    # 0.2 s after the first period is its third row, whose epoch is two seconds on.
    assert found["/events"][0][0] == round((1e9 + 2) * 1e9)
    assert found["/sensors"][0][1] == {}
    with Reader(tmp_path / "bag") as bag:
        assert {c.topic: c.msgcount for c in bag.connections}["/thruster_0/command"] == 5


def test_a_layout_is_written_for_foxglove(log, tmp_path):
    file, layout = log.save(tmp_path / "run.npz"), tmp_path / "layout.json"
    assert main(["log", str(file), "--layout", str(layout)]) == 0
    assert json.loads(layout.read_text()) == json.loads(LAYOUT.read_text())


@pytest.mark.parametrize("option", ["--mcap", "--csv", "--bag", "--layout"])
def test_a_file_that_exists_is_refused_and_untouched(log, tmp_path, capsys, option):
    file = log.save(tmp_path / "run.npz")
    there = tmp_path / {"--mcap": "a.mcap", "--csv": "a.csv", "--bag": "a", "--layout": "a.json"}[option]
    there.write_text("precious")
    assert main(["log", str(file), option, str(there)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(there) in error
    assert there.read_text() == "precious"


@pytest.mark.parametrize("command", [["simulate"], ["trial"], ["pilot", "examples/boat-b.toml"]])
def test_an_mcap_that_could_not_be_written_is_refused_before_the_run(tmp_path, capsys, command):
    (tmp_path / "a.mcap").write_text("precious")
    for name in ("a.mcap", "a.txt"):
        assert main([*command, "--mcap", str(tmp_path / name)]) == 2
        assert "must be a new file that ends in .mcap" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "option", "hint"), [("foxglove", "--mcap", "anyhull[foxglove]"), ("rosbags", "--bag", "anyhull[ros2]")]
)
def test_a_missing_package_is_one_line_that_names_the_extra(log, tmp_path, capsys, monkeypatch, module, option, hint):
    file = log.save(tmp_path / "run.npz")
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["log", str(file), option, str(tmp_path / "out.mcap")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"is not installed: pip install '{hint}'" in error


def test_the_package_and_its_commands_import_no_extra():
    code = (
        "import sys, anyhull, anyhull.cli, anyhull.viz.foxglove; print(*{name.split('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "anyhull" in loaded
    assert not {"foxglove", "rosbags", "mcap", "pymavlink"} & set(loaded)


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"frame": 3}, "frame = 3"),
        ({"frame": {"latitude": 91.0, "longitude": 0.0, "axes": "ned"}}, "latitude = 91"),
        ({"layout": [{"kind": "fixed"}]}, "layout[0].x is missing"),
        ({"limits": [1, 2]}, "limits = [1, 2]"),
        ({"length": "long"}, "length = 'long'"),
        ({"events": [[1, 2]]}, "events"),
        ({"boat_time": "x"}, "boat_time = 'x'"),
    ],
)
def test_a_log_with_an_odd_description_is_refused_in_one_line(log, tmp_path, capsys, about, words):
    file = replace(log, about=about).save(tmp_path / "odd.npz")
    for option in ("--mcap", "--bag"):
        assert main(["log", str(file), option, str(tmp_path / "out.mcap")]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "odd.npz: " in error
        assert words in error
    assert [path.name for path in tmp_path.iterdir()] == ["odd.npz"]


def test_csv_has_empty_cells_for_what_was_not_measured_and_whole_microseconds_of_time(log, tmp_path):
    header, *rows = log.save_csv(tmp_path / "run.csv").read_text().splitlines()
    names, cells = header.split(","), [row.split(",") for row in rows]
    assert [row[names.index("sensors fix x [m]")] for row in cells] == ["", "3", "", "", ""]
    np.testing.assert_allclose([float(row[names.index("epoch [s]")]) for row in cells], log.epoch, rtol=0, atol=1e-4)
    assert [float(row[names.index("thrusters 1 [-]")]) for row in cells] == [-1.0] * ROWS
    assert "nan" not in "".join(rows)


def test_a_dynamics_estimate_that_is_missing_in_some_rows_is_kept_for_the_others(log, tmp_path):
    dynamics = log.dynamics.copy()
    dynamics[:2] = np.nan
    kept = Log.load(replace(log, dynamics=dynamics).save(tmp_path / "run.npz"))
    np.testing.assert_array_equal(kept.dynamics, dynamics)
    found, _, _ = messages(write_mcap(kept, tmp_path / "run.mcap"))
    assert len(found["/dynamics"]) == ROWS - 2


def test_json_of_a_log_with_missing_measurements_is_valid(log, tmp_path, capsys):
    assert main(["log", str(log.save(tmp_path / "run.npz")), "--json"]) == 0
    json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_a_number_that_time_cannot_hold_is_refused(log, tmp_path):
    with pytest.raises(InputError, match="must be from 0 to"):
        write_mcap(replace(log, epoch=log.epoch + 1e11), tmp_path / "run.mcap")
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fails_leaves_one_line_and_no_file(log, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("FoxgloveError: MCAP error: I/O error")

    monkeypatch.setattr("anyhull.viz.topics.Publisher.row", fail)
    with pytest.raises(InputError, match=r"run\.mcap: cannot be written: MCAP error: I/O error"):
        write_mcap(log, tmp_path / "run.mcap")
    assert not list(tmp_path.iterdir())


def test_a_simulation_writes_its_mcap(tmp_path):
    file = tmp_path / "run.mcap"
    common = ["simulate", "--reference", "line", "--length", "2", "--controller", "field"]
    assert main([*common, "--mcap", str(file), "--out", str(tmp_path / "run.npz")]) == 0
    found, _, _ = messages(file)
    log = Log.load(tmp_path / "run.npz")
    positions = [(m.pose.position.x, m.pose.position.y) for _, m in found["/pose"]]
    np.testing.assert_allclose(positions, log.state[:, :2], atol=1e-9)
    assert {"/dynamics", "/latent", "/forces", "/error"} <= found.keys()


def test_axes_alone_turn_poses_to_east_and_north(log, tmp_path):
    # Without a frame, as of a MAVLink boat with a local mission: 3 m north, 4 m east, heading north.
    found, _, notes = messages(write_mcap(replace(log, about={"axes": "ned"}), tmp_path / "run.mcap"))
    pose = found["/pose"][0][1].pose
    np.testing.assert_allclose((pose.position.x, pose.position.y), (4.0, 3.0))
    assert "/gps" not in found
    assert notes["anyhull"]["axes"] == "x east, y north"
    with pytest.raises(InputError, match="axes = 'up': must be 'ned' or 'enu'"):
        write_mcap(replace(log, about={"axes": "up"}), tmp_path / "b.mcap")
