"""The ROS 2 link: its dialect, its conversions, its node, both transports, and trials of the twin through it."""

import math
import socket
import time
from array import array
from collections import Counter
from dataclasses import replace
from typing import Any

import fake_rclpy
import pytest
from pond import process
from ros2_doubles import BOAT, Network, ROS2Config, Trial, message, setup, write_definitions

from anyhull import Pilot
from anyhull.errors import InputError
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.links import open_link
from anyhull.onboard.links.opening import read_link
from anyhull.onboard.links.ros2 import cdr, conversion
from anyhull.onboard.links.ros2 import zenoh_dialect as dialect
from anyhull.onboard.links.ros2.node import FIX, IMU, ODOMETRY, PATH, WRENCH, ROS2Link
from anyhull.onboard.links.ros2.rclpy_transport import RclpyTransport, message_class
from anyhull.onboard.links.ros2.transport import QUEUE, Inbox
from anyhull.onboard.links.ros2.zenoh_transport import ZenohTransport
from anyhull.onboard.links.udp import UDPConfig
from anyhull.onboard.messages import Acceleration, Command, Gyro, Heading, Odometry, Operator, Position, Status
from anyhull.onboard.setup import Setup
from anyhull.reference import line
from anyhull.vessel import Vessel

VESSEL = Vessel.load(BOAT)
EAST = {"w": 1.0}
ODOM = {"header": {"stamp": {"sec": 5}, "frame_id": "odom"}, "child_frame_id": "base_link"}
ODOM["pose"] = {"pose": {"orientation": EAST}}


def turned(degrees):
    """The quaternion of a level boat."""
    half = math.radians(degrees) / 2
    return {"w": math.cos(half), "z": math.sin(half)}


def pilot(network=None, config=None, frame=None, vessel=VESSEL):
    """A pilot's node, and a boat's transport on the same network."""
    network = network or Network()
    config = config or setup().link
    link = ROS2Link(config, network.node(), vessel, frame, network.clock)
    boat = network.node()
    for topic in link.command_topics:
        boat.subscribe(topic, WRENCH if config.command == "wrench" else "std_msgs/msg/Float64")
    for topic, kind in ((config.odometry, ODOMETRY), (config.fix, FIX), (config.imu, IMU), (config.path, PATH)):
        boat.advertise(config.topic(topic), kind)
    return link, boat


def states(link):
    return [received.message for received in link.receive(0.0) if not isinstance(received.message, Status)]


# The dialect of rmw_zenoh: expected texts are those of its design document, or put together after it.


def test_keys_and_tokens_are_those_of_the_design_document():
    string, hashed = "std_msgs/msg/String", cdr.type_hash("std_msgs/msg/String")
    # The examples of docs/design.md: the topic /chatter, node and endpoints of demo_nodes_cpp.
    known = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
    assert hashed == known
    graph = dialect.Graph(2, "aac3178e146ba6f1fc6e6a4085e77f21", "/", "listener")
    assert (
        dialect.Graph(0, "", "/", "").key("/chatter", string, hashed)
        == f"0/chatter/std_msgs::msg::dds_::String_/{known}"
    )
    assert (
        dialect.Graph(0, "", "/robot1", "").key("/robot1/chatter", string, hashed)
        == f"0/robot1/chatter/std_msgs::msg::dds_::String_/{known}"
    )
    assert graph.node_token() == "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/0/NN/%/%/listener"
    token = graph.token(10, "MS", "/chatter", string, hashed, dialect.qos(10))
    assert token == (
        "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/10/MS/%/%/listener/%chatter/"
        f"std_msgs::msg::dds_::String_/{known}/::,10:,:,:,,"
    )
    assert dialect.endpoint(token) == ("aac3178e146ba6f1fc6e6a4085e77f21", "MS", "/chatter", string, known)


@pytest.mark.parametrize("token", ["", "@ros2_lv", "@ros2_lv/0/a/0/0/NN/%/%/node", "a/" * 12 + "b", "/" * 12])
def test_other_tokens_are_no_endpoints(token):
    assert dialect.endpoint(token) is None


def test_quality_of_service_is_written_as_numbers_where_it_is_not_the_default():
    assert dialect.qos(7, best_effort=True) == "2::,7:,:,:,,"
    assert dialect.qos(1, latched=True) == ":1:,1:,:,:,,"


def test_an_attachment_is_33_bytes():
    # Little-endian 1 and 2, the length 16 = 0x10, and the GID.
    attachment = dialect.Attachment(1, 2, bytes(range(16)))
    content = bytes.fromhex("0100000000000000 0200000000000000 10 000102030405060708090a0b0c0d0e0f")
    assert attachment.encode() == content
    assert dialect.Attachment.decode(content) == attachment
    assert dialect.Attachment.decode(content[:-1]) is None
    assert dialect.Attachment.decode(b"") is None


def test_a_wrench_has_the_bytes_of_cdr():
    fields = {"header": {"stamp": {"sec": 1, "nanosec": 2}, "frame_id": "abc"}, "wrench": {"force": {"x": 1.0}}}
    # Encapsulation (little-endian CDR); stamp; length 4, "abc" and its final zero; six doubles, the first aligned to 8
    # from the end of the encapsulation: 4 + 4 + 4 + 4 = 16. 1.0 is 0x3ff0 and zeros.
    expected = "00010000 01000000 02000000 04000000 61626300" + "000000000000f03f" + "0000000000000000" * 5
    content = cdr.encode(WRENCH, fields)
    assert content == bytes.fromhex(expected.replace(" ", ""))
    assert cdr.decode(WRENCH, content).wrench.force.x == 1.0


def test_bytes_that_are_no_message_are_bad_cdr():
    good = cdr.encode(ODOMETRY, ODOM)
    for content in (b"", b"\0", good[:50], b"\0\1\0\0" + b"\xff" * 400, b"\7" * 800, b"\0" * (cdr.MAX_BYTES + 1)):
        with pytest.raises(cdr.BadCDR):
            cdr.decode(ODOMETRY, content)


def test_keys_hashes_and_attachments_agree_with_zenoh_ros2_sdk(tmp_path):
    from zenoh_ros2_sdk import attachment, entity, keyexpr, utils
    from zenoh_ros2_sdk import qos as sdk_qos
    from zenoh_ros2_sdk.message_registry import MessageRegistry

    graph = dialect.Graph(3, "abc", "/boats/a", "pilot")
    node = entity.NodeEntity(3, "abc", 0, "pilot", "/boats/a")
    assert keyexpr.node_liveliness_keyexpr(node) == graph.node_token()
    best_effort = sdk_qos.QosProfile(reliability=sdk_qos.QosReliability.BEST_EFFORT, history_depth=5)
    reports = ("nav_msgs/msg/Path", "diagnostic_msgs/msg/DiagnosticArray", "std_msgs/msg/Float64MultiArray")
    plain = ("std_msgs/msg/Float64", "std_msgs/msg/String", "std_msgs/msg/Bool", "geometry_msgs/msg/PoseStamped")
    for kind in (ODOMETRY, FIX, IMU, WRENCH, *reports, *plain):
        write_definitions(tmp_path, kind)
        registry = MessageRegistry(str(tmp_path))
        text = registry.get_msg_file_path(kind).read_text()
        hashed = utils.get_type_hash(kind, text, utils.load_dependencies_recursive(kind, text, registry))
        assert cdr.type_hash(kind) == hashed
        name = utils.ros2_to_dds_type(kind)
        assert keyexpr.topic_keyexpr(3, "/boats/a/x", name, hashed) == graph.key("/boats/a/x", kind, hashed)
        end = entity.EndpointEntity(
            node, 11, entity.EntityKind.SUBSCRIPTION, "/boats/a/x", name, hashed, best_effort.encode()
        )
        own = graph.token(11, "MS", "/boats/a/x", kind, hashed, dialect.qos(5, best_effort=True))
        assert keyexpr.endpoint_liveliness_keyexpr(end) == own
    theirs = attachment.Attachment(5, 6, b"g" * 16)
    assert theirs.to_bytes() == dialect.Attachment(5, 6, b"g" * 16).encode()


# Conversions.


@pytest.mark.parametrize("time", [0.0, 1e-9, 12.345678901, 1_700_000_000.25])
def test_stamps_keep_a_time(time):
    assert conversion.time_of(message(**conversion.stamp_of(time))) == pytest.approx(time, abs=1e-6)


def test_odometry_is_taken_as_it_is_in_enu_and_turned_in_ned():
    # 2 m east and 1 m north, the bow 30° north of east, drifting to port at 0.3 m/s and turning to port at 0.1 rad/s.
    pose = {"position": {"x": 2.0, "y": 1.0}, "orientation": turned(30)}
    twist = {"linear": {"x": 0.5, "y": 0.3}, "angular": {"z": 0.1}}
    covariance = [0.0] * 36
    covariance[0], covariance[7], covariance[35] = 4.0, 9.0, 0.25
    content = cdr.encode(
        ODOMETRY,
        {"pose": {"pose": pose, "covariance": covariance}, "twist": {"twist": twist, "covariance": covariance}},
    )
    read = cdr.decode(ODOMETRY, content)
    state, std = conversion.read_odometry(read, "enu")
    assert state == pytest.approx((2.0, 1.0, math.radians(30), 0.5, 0.3, 0.1))
    assert std == pytest.approx((2.0, 3.0, 0.5, 2.0, 3.0, 0.5))
    # From north clockwise the bow is at 60°; to starboard everything changes its sign.
    state, std = conversion.read_odometry(read, "ned")
    assert state == pytest.approx((1.0, 2.0, math.radians(60), 0.5, -0.3, -0.1))
    assert std == pytest.approx((3.0, 2.0, 0.5, 2.0, 3.0, 0.5))


@pytest.mark.parametrize("axes", ["enu", "ned"])
def test_what_the_boat_writes_the_pilot_reads(axes):
    state, std = (3.0, -4.0, 2.5, 0.4, -0.2, 0.3), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    pose, twist = conversion.odometry_fields(state, std, axes)
    read, deviations = conversion.read_odometry(
        cdr.decode(ODOMETRY, cdr.encode(ODOMETRY, {"pose": pose, "twist": twist})), axes
    )
    assert read == pytest.approx(state)
    assert deviations == pytest.approx(std)
    imu = cdr.decode(IMU, cdr.encode(IMU, conversion.imu_fields(2.5, 0.01, 0.3, (0.5, -0.6), axes)))
    psi, heading_std, rate, level = conversion.read_imu(imu, axes)
    assert (psi, heading_std, rate) == pytest.approx((2.5, 0.01, 0.3))
    assert level == pytest.approx((0.5, -0.6))


@pytest.mark.parametrize("first", [-1.0, 0.0])
def test_a_covariance_of_minus_one_or_zeros_is_unknown(first):
    covariance = [first, *[0.0] * 35]
    read = cdr.decode(
        ODOMETRY, cdr.encode(ODOMETRY, {"pose": {"pose": {"orientation": EAST}, "covariance": covariance}})
    )
    assert conversion.read_odometry(read, "enu")[1] is None


def test_a_pose_says_its_uncertainty_though_the_twist_does_not():
    stated, unknown = [0.0] * 36, [-1.0, *[0.0] * 35]
    stated[0], stated[7], stated[35] = 1e4, 4.0, 0.25
    for none in (unknown, [0.0] * 36):
        pose = {"pose": {"orientation": EAST}, "covariance": stated}
        read = cdr.decode(ODOMETRY, cdr.encode(ODOMETRY, {"pose": pose, "twist": {"covariance": none}}))
        assert conversion.read_odometry(read, "enu")[1] == pytest.approx((100.0, 2.0, 0.5, 0.0, 0.0, 0.0))
        assert conversion.read_odometry(read, "ned")[1] == pytest.approx((2.0, 100.0, 0.5, 0.0, 0.0, 0.0))
        pose = {"pose": {"orientation": EAST}, "covariance": none}
        read = cdr.decode(ODOMETRY, cdr.encode(ODOMETRY, {"pose": pose, "twist": {"covariance": stated}}))
        assert conversion.read_odometry(read, "enu")[1] == pytest.approx((0.0, 0.0, 0.0, 100.0, 2.0, 0.5))


def test_gravity_is_no_acceleration_of_a_boat_that_heels():
    # Heeled by 30° about x, at rest: the specific force of 1 g is up, so g·sin 30° along the body's y and g·cos 30°
    # along its z. Level there is nothing. The bow is 90° from east.
    half, quarter = math.radians(15), math.radians(45)
    # yaw after roll: (cos 45°, 0, 0, sin 45°) times (cos 15°, sin 15°, 0, 0)
    orientation = {
        "w": math.cos(quarter) * math.cos(half),
        "x": math.cos(quarter) * math.sin(half),
        "y": math.sin(quarter) * math.sin(half),
        "z": math.sin(quarter) * math.cos(half),
    }
    force = {"y": 9.8 * math.sin(2 * half), "z": 9.8 * math.cos(2 * half)}
    read = cdr.decode(IMU, cdr.encode(IMU, {"orientation": orientation, "linear_acceleration": force}))
    psi, std, rate, level = conversion.read_imu(read, "enu")
    assert psi == pytest.approx(math.pi / 2)
    assert level == pytest.approx((0.0, 0.0), abs=1e-12)
    assert (std, rate) == (None, 0.0)


def test_an_imu_says_what_it_does_not_measure():
    unknown = [-1.0, *[0.0] * 8]
    fields = {"orientation": EAST, "angular_velocity_covariance": unknown, "linear_acceleration_covariance": unknown}
    read = cdr.decode(IMU, cdr.encode(IMU, fields))
    assert conversion.read_imu(read, "enu") == (0.0, None, None, None)
    with pytest.raises(conversion.Rejected, match="without orientation"):
        conversion.read_imu(cdr.decode(IMU, cdr.encode(IMU, {"orientation_covariance": unknown})), "enu")


def test_a_fix_is_a_place_in_the_local_frame():
    covariance = [4.0, 0, 0, 0, 9.0, 0, 0, 0, 1.0]
    fields = {"latitude": 59.0, "longitude": 10.001, "position_covariance": covariance, "position_covariance_type": 2}
    read = cdr.decode(FIX, cdr.encode(FIX, fields))
    # A degree of longitude at 59° is 57.4 km on WGS84.
    x, y, std = conversion.read_fix(read, LocalFrame(59.0, 10.0, "enu"))
    assert (x, y) == pytest.approx((57.4, 0.0), abs=0.1)
    assert std == 3.0
    assert conversion.read_fix(read, LocalFrame(59.0, 10.0, "ned"))[:2] == pytest.approx((0.0, 57.4), abs=0.1)
    lost = cdr.decode(FIX, cdr.encode(FIX, fields | {"status": {"status": -1}}))
    with pytest.raises(conversion.Rejected, match="no fix"):
        conversion.read_fix(lost, LocalFrame(59.0, 10.0, "enu"))


# The table [link].


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"transport": "dds"}, "link.transport = 'dds': must be 'auto', 'rclpy' or 'zenoh'"),
        ({"odometry": "a b"}, "link.odometry = 'a b': must be a topic such as 'odom' or '/boat/odom'"),
        ({"odometry": ""}, "link.odometry = '': must be a topic"),
        ({"command": "thrusters"}, "link.thrusters = (): must be a topic for each thruster"),
        ({"domain": 300}, "link.domain = 300: must be from 0 to 232"),
        ({"router": "localhost"}, "link.router = 'localhost': must be a locator such as 'tcp/localhost:7447'"),
        ({"preset": "wam"}, "link.preset = 'wam': must be 'vrx'"),
        ({"odometri": "x"}, "link.odometri = 'x': unknown key; did you mean 'odometry'?"),
        ({"depth": 0}, "link.depth = 0: must be from 1 to 1000"),
        ({"node": "a/b"}, "link.node = 'a/b': must be a name without slashes"),
    ],
)
def test_a_wrong_field_is_an_error_of_one_line(tmp_path, table, words):
    with pytest.raises(InputError) as raised:
        read_link({"kind": "ros2"} | table, tmp_path)
    assert str(raised.value) == words


def test_the_preset_of_vrx_has_its_topics_and_the_file_goes_before_it(tmp_path):
    link = read_link({"kind": "ros2", "preset": "vrx", "origin": [-33.7, 150.7], "imu": "/imu"}, tmp_path)
    assert isinstance(link, ROS2Config)
    assert (link.state, link.command) == ("sensors", "thrusters")
    assert link.topic(link.fix) == "/wamv/sensors/gps/gps/fix"
    assert [link.topic(name) for name in link.thrusters] == [
        "/wamv/thrusters/left/thrust",
        "/wamv/thrusters/right/thrust",
    ]
    assert link.imu == "/imu"


def test_the_domain_is_the_environments(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "42")
    assert (ROS2Config().domain_id, ROS2Config(domain=1).domain_id) == (42, 1)
    monkeypatch.setenv("ROS_DOMAIN_ID", "many")
    with pytest.raises(InputError, match="ROS_DOMAIN_ID = 'many': must be from 0 to 232"):
        _ = ROS2Config().domain_id


def test_what_does_not_fit_the_boat_or_its_mission_is_refused_before_a_session_is_opened():
    three = ROS2Config(command="thrusters", thrusters=("a", "b", "c"))
    with pytest.raises(InputError, match="3 topics for the 4 thrusters of Platform A over ROS 2: must be one for each"):
        open_link(three, "pilot", vessel=VESSEL)
    with pytest.raises(InputError, match=r"link.origin is missing: must be \[latitude, longitude\]"):
        open_link(ROS2Config(state="sensors"), "pilot", vessel=VESSEL)
    with pytest.raises(InputError, match=r"link\.axes = 'enu': the mission has 'ned'"):
        open_link(ROS2Config(), "pilot", frame=LocalFrame(0.0, 0.0, "ned"), vessel=VESSEL)
    with pytest.raises(InputError, match=r"--listen 127\.0\.0\.1:1: only for"):
        open_link(ROS2Config(), "pilot", listen="127.0.0.1:1", vessel=VESSEL)


# The node.


def test_odometry_becomes_a_message_and_a_status_follows():
    link, boat = pilot()
    assert link.receive(0.0) == []  # without a state the boat's time is not known
    boat.publish("/odom", ODOM)
    odometry, status = [received.message for received in link.receive(0.0)]
    assert isinstance(odometry, Odometry)
    assert (odometry.time, odometry.pose[0], odometry.seq) == (5.0, 0.0, 0)
    assert isinstance(status, Status)
    assert (status.stopped, status.accepted, status.session) == (False, -1, odometry.session)


def test_a_status_confirms_what_was_published_while_someone_subscribes():
    link, boat = pilot()
    boat.publish("/odom", ODOM)
    link.receive(0.0)
    link.send(Command(1, 7, 5.0, (), (), (0.5, 0.0, 0.0)))
    link.transport.network.now += 0.2
    (status,) = [received.message for received in link.receive(0.0)]
    assert (status.stopped, status.accepted, status.wrench) == (False, 7, (0.5, 0.0, 0.0))
    boat.close()
    link.transport.network.now += 0.2
    (status,) = [received.message for received in link.receive(0.0)]
    assert (status.stopped, status.accepted) == (True, -1)


@pytest.mark.parametrize(("axes", "sign"), [("enu", 1), ("ned", -1)])
def test_a_wrench_is_in_newtons_forward_and_to_port(axes, sign):
    link, boat = pilot(config=setup(axes=axes).link)
    link.send(Command(1, 0, 5.0, (), (), (0.5, 0.25, -2.0)))
    (arrived,) = boat.receive(0.0)
    # The limits are 40 N, 40 N and 20 N·m; a command beyond them is cut.
    wrench = arrived.message.wrench
    assert (wrench.force.x, wrench.force.y, wrench.torque.z) == (20.0, sign * 10.0, sign * -20.0)
    assert (arrived.message.header.stamp.sec, arrived.message.header.frame_id) == (5, "base_link")


def test_thrusters_get_newtons_or_fractions_and_azimuths_their_angle():
    vessel = replace(
        VESSEL, Fx=20.0, Fy=10.0, Mz=2.0, thrusters=(VESSEL.thrusters[0], replace(VESSEL.thrusters[1], kind="azimuth"))
    )
    fields = {"command": "thrusters", "thrusters": ("left", "right"), "thruster_angles": ("", "right/pos")}
    link, boat = pilot(config=setup(**fields).link, vessel=vessel)
    link.send(Command(1, 0, 5.0, (1.0, -1.0), (0.0, 3.5)))
    # 3.5 rad is 3.5 - 2·pi; full thrust is 18 N ahead and 14.2 N astern.
    values = {arrived.topic: arrived.message.data for arrived in boat.receive(0.0)}
    assert values == pytest.approx({"/left": 18.0, "/right": -14.2, "/right/pos": 3.5 - 2 * math.pi})
    link, boat = pilot(config=setup(**fields, thruster_unit="fraction").link, vessel=vessel)
    link.send(Command(1, 0, 5.0, (0.5, -1.0), (0.0, 0.0)))
    assert [arrived.message.data for arrived in boat.receive(0.0)] == [0.5, 0.0, -1.0]


def test_a_command_that_is_not_finite_is_not_published():
    link, boat = pilot()
    link.send(Command(1, 0, 5.0, (), (), (math.nan, 0.0, 0.0)))
    assert boat.receive(0.0) == []
    assert link.rejected["command not finite"] == 1


def test_a_pilot_that_has_handed_over_gives_way():
    link, boat = pilot()
    for seq in range(10):
        link.send(Command(1, seq, 5.0, (), (), (0.0, 0.0, 0.0), engaged=False))
    assert len(boat.receive(0.0)) == 3
    link.send(Command(1, 10, 5.0, (), (), (0.1, 0.0, 0.0)))
    assert len(boat.receive(0.0)) == 1


def test_a_fix_and_an_imu_become_the_sensors_messages():
    config = setup(state="sensors", origin=(59.0, 10.0)).link
    link, boat = pilot(config=config)
    stamp = {"stamp": {"sec": 5}}
    boat.publish("/imu/data", {"header": stamp, "orientation": turned(90), "angular_velocity": {"z": 0.2}})
    boat.publish("/fix", {"header": stamp, "latitude": 59.0, "longitude": 10.0})
    gyro, acceleration, heading, position = states(link)
    assert (type(gyro), type(acceleration), type(heading)) == (Gyro, Acceleration, Heading)
    assert (gyro.rate, heading.psi, gyro.time) == (0.2, pytest.approx(math.pi / 2), 5.0)
    assert isinstance(position, Position)
    assert (position.x, position.y) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_a_message_without_a_stamp_is_of_its_arrival():
    link, boat = pilot()
    link.transport.network.now = 3.0
    boat.publish("/odom", ODOM | {"header": {"frame_id": "odom"}})
    assert [found.time for found in states(link)] == [3.0]


def switched(**fields):
    """A node of a boat with a switch and an emergency stop, the boat, and a function for what the loop is told."""
    link, boat = pilot(config=setup(**(fields or {"operator": "switch", "estop": "estop"})).link)
    boat.advertise("/switch", "std_msgs/msg/String")
    boat.advertise("/estop", "std_msgs/msg/Bool")

    def told(after=0.0, **said):
        link.transport.network.now += after
        for topic, data in said.items():
            boat.publish(f"/{topic}", ODOM if topic == "odom" else {"data": data})
        return [found.mode for found in states(link) if isinstance(found, Operator)]

    return link, told


def test_a_press_before_the_first_odometry_is_not_dropped():
    link, told = switched()
    assert told(switch="auto", estop=True) == []
    assert told(1.0, odom=True) == ["stop"]
    assert told(0.5, odom=True) == ["stop"]
    assert link.unready() == ""
    assert not link.rejected


def test_the_most_severe_of_switch_and_emergency_stop_counts():
    link, told = switched()
    told(odom=True)
    # Each message is passed on, and the mode again with the status.
    assert set(told(0.1, switch="auto", estop=False)) == {"auto"}
    assert set(told(0.1, estop=True)) == {"stop"}
    assert set(told(0.3, switch="auto")) == {"stop"}
    assert set(told(1.0, switch="stop")) == {"stop"}
    assert set(told(0.2, estop=False)) == {"stop"}
    assert set(told(0.2, switch="manual")) == {"manual"}
    assert set(told(0.2, switch="fly")) == {"manual"}
    assert link.rejected == {"operator: must be auto, manual or stop": 1}
    assert set(told(0.2, switch=" AUTO ")) == {"auto"}
    assert told(0.01, estop=True)[0] == "stop"
    assert told(0.01, estop=False)[0] == "auto"
    link, told = switched(estop="estop")
    told(odom=True)
    assert [set(told(0.2, estop=pressed)) for pressed in (True, False)] == [{"stop"}, {"auto"}]


def test_a_boat_starts_when_its_switch_and_emergency_stop_are_heard():
    link, told = switched()
    told(odom=True)
    assert link.unready() == "nothing is heard on /switch: must be published once a second"
    told(0.1, switch="auto")
    assert link.unready() == "nothing is heard on /estop: must be published once a second"
    told(0.1, estop=False)
    assert link.unready() == ""
    told(2.0, switch="auto")
    assert told(1.5, switch="auto")[-1] == "stop"  # the emergency stop is 3.5 s old
    assert link.unready() == "nothing is heard on /estop: must be published once a second"
    assert link.rejected == {"/estop silent for 3 s, which counts as stop": 1}
    assert set(told(0.1, estop=False)) == {"stop"}
    assert link.unready() == "/estop was silent: set it to stop and back"
    assert link.rejected["/estop was silent: set it to stop and back"] == 1
    told(0.1, estop=True)
    assert set(told(0.1, estop=False)) == {"auto"}
    assert link.unready() == ""
    two = link.transport.network.node()
    two.advertise("/estop", "std_msgs/msg/Bool")
    assert link.unready() == "/estop has several publishers"


def test_odometry_in_another_frame_is_rejected_and_the_operator_is_told():
    link, boat = pilot()
    boat.publish("/odom", ODOM | {"header": {"frame_id": "map"}})
    boat.publish("/odom", ODOM | {"child_frame_id": "gps"})
    assert states(link) == []
    assert link.rejected == {"not in frame_id 'odom'": 1, "not in base_frame 'base_link'": 1}
    assert link.hint() == "messages are in frame 'gps', and [link] base_frame = 'base_link'"


def test_a_boat_starts_when_its_commands_have_one_publisher_and_a_subscriber():
    network = Network()
    link, boat = pilot(network)
    assert link.unready() == ""
    teleoperation = network.node()
    teleoperation.advertise("/cmd_wrench", WRENCH)
    assert link.unready() == "someone else publishes /cmd_wrench"
    teleoperation.close()
    other = network.node()
    other.advertise("/odom", ODOMETRY)
    assert link.unready() == "/odom has several publishers"
    other.close()
    boat.close()
    assert link.unready() == "nobody subscribes to /cmd_wrench"
    assert link.hint() == "nobody publishes /odom; check the boat, ROS_DOMAIN_ID and the router"


def test_a_path_is_a_list_of_points_and_a_second_one_is_ignored():
    link, boat = pilot()
    link.listen_for_path()
    points = [(0.0, 0.0), (0.0, 0.0), (5.0, 1.0)]
    poses = [{"pose": {"position": {"x": x, "y": y}}} for x, y in points]
    for fields in ({"header": {"frame_id": "odom"}}, {"header": {"frame_id": "map"}}, {"poses": poses[:1]}):
        boat.publish("/path", {"poses": poses} | fields)
        assert states(link) == []
    assert link.path == [(0.0, 0.0), (5.0, 1.0)]
    assert link.rejected == {"not in frame_id 'odom'": 1}


def test_the_inbox_keeps_the_newest_and_counts_the_rest():
    inbox, rejected = Inbox[int](), Counter[str]()
    inbox.open("/odom")
    for i in range(QUEUE + 5):
        inbox.put("/odom", i)
    assert inbox.take(0.0, rejected) == list(range(5, QUEUE + 5))
    assert inbox.take(0.0, rejected) == []
    assert rejected == {"queue of /odom full": 5}


def test_no_topic_crowds_out_another_and_the_emergency_stop_is_first():
    inbox, rejected = Inbox[Any](), Counter[str]()
    for topic in ("/odom", "/imu"):
        inbox.open(topic)
    inbox.open("/estop", 2, first=True)
    inbox.put("/imu", "imu")
    inbox.put("/estop", "pressed")
    for i in range(1000):
        inbox.put("/odom", i)
    inbox.put("/imu", "imu again")
    taken = inbox.take(0.0, rejected)
    assert taken[:3] == ["pressed", "imu", 800]
    assert taken[-2:] == [999, "imu again"]
    assert rejected == {"queue of /odom full": 800}
    # More than a burst: what is first is so in each of them.
    for name in "abc":
        inbox.open(name)
        for i in range(QUEUE):
            inbox.put(name, i)
    inbox.put("/estop", "pressed")
    assert inbox.take(0.0, rejected)[0] == "pressed"


def test_paths_that_are_not_taken_do_not_fill_the_memory(router):
    config = replace(setup().link, router=router, domain=12)
    transport, planner = ZenohTransport(config), ZenohTransport(replace(config, node="planner"))
    link = ROS2Link(config, transport, VESSEL)
    try:
        link.listen_for_path()
        planner.advertise("/path", PATH)
        # 80 bytes a pose: 14,000 are more than 1 MiB, 11,000 are not but more than 10,000 poses.
        pose = {"header": {"frame_id": "odom"}, "pose": {"position": {"x": 1.0}}}
        inbox = transport._inbox

        def full():
            planner.publish("/path", {"poses": [pose] * 14_000})
            planner.publish("/path", {"poses": [pose] * 11_000})
            return inbox._noted["queue of /path full"] >= 3 and inbox._noted["too long"] >= 3

        wait_for(full)
        assert [len(queue) for topic, queue in inbox._queues.items() if topic == "/path"] == [1]
        assert states(link) == []
        assert link.rejected["not a nav_msgs/msg/Path"] > 0
        assert not link.path
    finally:
        link.close()
        planner.close()
    long = message(poses=[message(pose={"position": {"x": float(i), "y": 0.0}}) for i in range(10_001)])
    with pytest.raises(conversion.Rejected, match="path of more than 10000 poses"):
        conversion.read_path(long, "enu")


# Trials of the twin.


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("sensors", [False, True])
def test_a_trial_through_ros_2_tracks_as_one_through_udp(sensors, seed):
    if sensors:
        ros2 = setup(state="sensors", origin=(59.0, 10.0), command="thrusters", thrusters=("a", "b", "c", "d"))
        udp = replace(setup(), link=UDPConfig())
    else:
        ros2, udp = setup(), replace(setup(), link=UDPConfig(state="odometry", command="wrench"))
    runs = [Trial(boat, line(8.0), seed=seed, sea="lake").run() for boat in (ros2, udp)]
    assert [run.autopilot.phase for run in runs] == ["arrived", "arrived"]
    assert runs[0].within_limits()
    position = [run.log().metrics().position_cm for run in runs]
    assert position[0] == pytest.approx(position[1], rel=0.1)


def test_the_reports_reach_other_nodes():
    trial = Trial(setup(), line(3.0))
    watcher = trial.network.node()
    topics = {"/reference": PATH, "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray"}
    for topic, kind in topics.items():
        watcher.subscribe(topic, kind)
    trial.run(5.0)
    arrived = watcher.receive(0.0)
    (path,) = [found.message for found in arrived if found.topic == "/reference"]
    assert path.poses[-1].pose.position.x == pytest.approx(3.0)
    diagnostics = [found.message.status[0] for found in arrived if found.topic == "/diagnostics"]
    assert 4 <= len(diagnostics) <= 6  # once a second
    values = {entry.key: entry.value for entry in diagnostics[-1].values}
    assert (diagnostics[-1].level, values["reaction"], values["estimator"]) == (0, "run", "ok")


# The transports.


@pytest.fixture(scope="module")
def router():
    """A router of a free port, by zenoh."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        locator = f"tcp/127.0.0.1:{taken.getsockname()[1]}"
    transport = ZenohTransport(ROS2Config(router=locator, domain=7, node="router"), route=True)
    yield locator
    transport.close()


def wait_for(condition, seconds=20.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_thousand_round_trips_with_zenoh_ros2_sdk_lose_nothing(router, tmp_path):
    from zenoh_ros2_sdk import ROS2Publisher, ROS2Subscriber
    from zenoh_ros2_sdk import message_registry as registry
    from zenoh_ros2_sdk.session import ZenohSession

    write_definitions(tmp_path, ODOMETRY, WRENCH)
    registry._registry = registry.MessageRegistry(str(tmp_path))
    where = {"domain_id": 7, "router_ip": "127.0.0.1", "router_port": int(router.rpartition(":")[2])}
    session = ZenohSession.get_instance(where["router_ip"], where["router_port"])
    config = replace(setup().link, router=router, domain=7)
    link = ROS2Link(config, ZenohTransport(config), VESSEL)
    try:
        publisher = ROS2Publisher("/odom", ODOMETRY, **where)

        def answer(wrench):
            """The boat: an odometry at x = the force ahead, of the command's time."""
            at = {"position": {"x": wrench.wrench.force.x}, "orientation": EAST}
            stamp = {"sec": wrench.header.stamp.sec, "nanosec": wrench.header.stamp.nanosec}
            fields = ODOM | {"header": {"stamp": stamp, "frame_id": "odom"}, "pose": {"pose": at}}
            odometry = cdr.build(session.store, ODOMETRY, fields)
            names = ("header", "child_frame_id", "pose", "twist")
            publisher.publish(**{name: getattr(odometry, name) for name in names})

        subscriber = ROS2Subscriber("/cmd_wrench", WRENCH, answer, **where)
        wait_for(lambda: link.unready() == "" and link.transport.publishers("/odom") == 1)

        def heard():  # it declares its tokens before its subscription
            link.send(Command(1, 0, 9.0, (), (), (0.0, 0.0, 0.0)))
            return any(isinstance(r.message, Odometry) for r in link.receive(0.5))

        wait_for(heard)
        while states(link):
            time.sleep(0.05)
        returned: list[Odometry] = []
        for i in range(1000):
            link.send(Command(1, i, 10.0 + i, (), (), (i / 1000, 0.0, 0.0)))
            ends = time.monotonic() + 20.0
            while len(returned) == i and time.monotonic() < ends:
                returned += [r.message for r in link.receive(0.5) if isinstance(r.message, Odometry)]
        assert [found.time for found in returned] == [10.0 + i for i in range(1000)]
        assert [found.pose[0] for found in returned] == pytest.approx([0.04 * i for i in range(1000)])
        assert not link.rejected
        subscriber.close()
        wait_for(lambda: link.unready() == "nobody subscribes to /cmd_wrench")
        publisher.close()
    finally:
        link.close()
        session.close()


def test_a_late_node_gets_the_reference_and_a_topic_of_another_type_is_told(router):
    import zenoh.ext

    config = replace(setup().link, router=router, domain=8)
    link, late = ROS2Link(config, ZenohTransport(config), VESSEL), ZenohTransport(replace(config, node="late"))
    try:
        link.transport.publish("/reference", {"poses": [{"pose": {"position": {"x": 4.0}}}]})
        key = dialect.Graph(8, "", "/", "").key("/reference", PATH, cdr.type_hash(PATH))
        got: list[Any] = []
        history = zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=1)
        listening = zenoh.ext.declare_advanced_subscriber(late._session, key, got.append, history=history)
        wait_for(lambda: bool(got))
        assert cdr.decode(PATH, got[0].payload.to_bytes()).poses[0].pose.position.x == 4.0
        listening.undeclare()
        late.advertise("/odom", "geometry_msgs/msg/PoseStamped")
        wait_for(lambda: "as 'geometry_msgs/msg/PoseStamped' with another type" in link.hint())
        assert link.transport.publishers("/odom") == 0
    finally:
        link.close()
        late.close()


def test_a_pilot_waits_for_a_path_and_plans_it(router, tmp_path):
    import json

    boat = tmp_path / "boat.toml"
    stated = f'kind = "ros2"\ntransport = "zenoh"\ndomain = 10\nrouter = "{router}"'
    boat.write_text(BOAT.read_text().replace('kind = "ros2"', stated))
    planner = ZenohTransport(ROS2Config(router=router, domain=10, node="planner"))
    planner.advertise("/path", PATH)
    poses = [{"pose": {"position": {"x": x, "y": y}}} for x, y in ((0.0, 0.0), (10.0, 0.0), (10.0, 10.0))]
    try:
        with process("pilot", boat, "--from-link", "--speed", "0.5", "--dry-run", "--json") as planning:
            ends = time.monotonic() + 30.0
            while planning.poll() is None and time.monotonic() < ends:
                planner.publish("/path", {"header": {"frame_id": "odom"}, "poses": poses})
                time.sleep(0.1)
            plan = json.loads(planning.stdout.read())
    finally:
        planner.close()
    assert plan["waypoints"] == [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]]


def test_a_path_is_only_for_a_boat_of_ros_2(capsys):
    from anyhull.cli.from_link import mission_from_link

    with pytest.raises(InputError, match=r"--from-link: only for \[link\] kind = 'ros2', and this boat's is 'udp'"):
        mission_from_link(replace(setup(), link=UDPConfig()), {})
    with pytest.raises(InputError, match=r"--mission a\.toml: not for a path of the link"):
        mission_from_link(setup(), {"mission": "a.toml"})


def test_zenoh_passes_over_what_is_no_message(router):
    config = replace(setup().link, router=router, domain=9)
    link, other = ROS2Link(config, ZenohTransport(config), VESSEL), ZenohTransport(replace(config, node="other"))
    try:
        key = dialect.Graph(9, "", "/", "").key("/odom", ODOMETRY, cdr.type_hash(ODOMETRY))
        good, found = cdr.encode(ODOMETRY, ODOM), list[Any]()

        def heard():
            other._session.put(key, b"\0" * 5000)
            other._session.put(key, good[:60], attachment=b"short")
            other._session.put(key, good)
            found.extend(states(link))
            return bool(found) and {"not a nav_msgs/msg/Odometry", "too long"} <= link.rejected.keys()

        wait_for(heard)
    finally:
        link.close()
        other.close()


def test_a_router_that_is_not_there_does_not_hold_up_the_pilot():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = replace(setup().link, router=f"tcp/127.0.0.1:{taken.getsockname()[1]}", domain=7)
        link = open_link(replace(config, transport="zenoh"), "pilot", vessel=VESSEL)
    assert link.receive(0.05) == []
    assert link.unready() == "nobody subscribes to /cmd_wrench"
    link.close()


def test_the_same_node_runs_over_rclpy(monkeypatch):
    fake_rclpy.install(monkeypatch)
    import rclpy

    OdometryClass = message_class(ODOMETRY)

    config = replace(setup().link, transport="rclpy", domain=5)
    link = open_link(config, "pilot", vessel=VESSEL)
    assert isinstance(link, ROS2Link)
    assert isinstance(link.transport, RclpyTransport)
    context = fake_rclpy.Context()
    rclpy.init(context=context, domain_id=5, signal_handler_options=fake_rclpy.SignalHandlerOptions.NO)
    boat, commands = rclpy.create_node("boat", context=context, namespace="/"), list[Any]()
    publisher = boat.create_publisher(OdometryClass, "/odom", None)
    assert link.unready() == "nobody subscribes to /cmd_wrench"
    boat.create_subscription(message_class(WRENCH), "/cmd_wrench", commands.append, None)
    assert link.unready() == ""
    odometry = OdometryClass()
    odometry.header.stamp.sec, odometry.header.frame_id, odometry.pose.pose.orientation.w = 4, "odom", 1.0
    publisher.publish(odometry)
    found: list[Any] = []

    def heard():
        found.extend(states(link))
        return bool(found)

    wait_for(heard)
    assert (found[0].time, found[0].pose[2]) == (4.0, 0.0)
    link.send(Command(1, 0, 4.5, (), (), (0.5, 0.0, 0.0)))
    _, wrench = boat.waiting.get(timeout=5)
    assert (wrench.wrench.force.x, wrench.header.stamp.nanosec) == (20.0, 500_000_000)
    trial = Trial(setup(), line(3.0)).run(3.0)
    link.report(trial.steps[-1], trial.reference)  # every report passes the checks of the classes
    reference = next(p for p in link.transport._node.publishers_ if p.topic == "/reference")
    assert reference.profile.durability.name == "TRANSIENT_LOCAL"
    assert not link.rejected
    link.close()
    link.send(Command(1, 1, 4.6, (), (), (0.5, 0.0, 0.0)))
    assert link.rejected["not sent"] == 1


def test_rclpy_that_cannot_be_imported_is_an_error_of_one_line():
    with pytest.raises(InputError, match="rclpy cannot be imported: source a ROS 2 installation, or set"):
        RclpyTransport(ROS2Config())


# The package for colcon.

PACKAGE = BOAT.parents[1] / "ros2" / "anyhull_ros"


@pytest.fixture
def node_arguments():
    """The function that turns a node's parameters into a command line."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("anyhull_ros_pilot", PACKAGE / "anyhull_ros" / "pilot.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.arguments


def test_parameters_of_the_node_replace_the_files_link(node_arguments, tmp_path):
    parameters = {"boat": str(BOAT), "controller": "pid", "mission": "", "use_sim_time": True, "from_link": True}
    own = {"node": "pilot_a", "namespace": "/a", "odometry": "/gps/odom", "depth": 3, "origin": array("d", [59, 10])}
    command = node_arguments(own | parameters, tmp_path)
    assert command == ["pilot", str(tmp_path / BOAT.name), "--controller", "pid", "--from-link"]
    loaded = Setup.load(command[1])
    wanted = {"node": "pilot_a", "namespace": "/a", "odometry": "/gps/odom", "depth": 3, "origin": (59.0, 10.0)}
    assert loaded == replace(setup(), link=replace(setup().link, **wanted))
    with pytest.raises(ValueError, match="parameter boat is missing"):
        node_arguments({}, tmp_path)
    node_arguments(parameters | {"odometri": "x"}, tmp_path)
    with pytest.raises(InputError, match=r"link\.odometri = 'x': unknown key; did you mean 'odometry'"):
        Setup.load(tmp_path / BOAT.name)


def test_colcon_finds_the_package():
    from xml.etree import ElementTree

    package = ElementTree.parse(PACKAGE / "package.xml").getroot()
    assert package.attrib["format"] == "3"
    assert [package.findtext(name) for name in ("name", "license")] == ["anyhull_ros", "MIT"]
    assert package.findtext("export/build_type") == "ament_python"
    assert (PACKAGE / "resource" / "anyhull_ros").exists()
    compile((PACKAGE / "launch" / "pilot.launch.py").read_text(), "pilot.launch.py", "exec")


def test_the_wam_v_of_vrx_is_a_boat_that_can_be_steered():
    boat = Setup.load(PACKAGE / "config" / "vrx.toml")
    # Two thrusters of 1266 N, 1.027 m to the side: 2 · 1266 N ahead, and 2 · 1266 · 1.027 = 2600 N·m.
    assert boat.vessel.limits == pytest.approx((2532.0, 0.0, 2600.4), rel=1e-3, abs=1e-6)
    trial = Trial(boat, line(8.0, speed=1.0), controller=Pilot.load("field")).run(40.0)
    assert trial.autopilot.phase == "arrived"
    assert trial.within_limits()


def test_an_emergency_stop_counts_whoever_presses_it():
    link, told = switched()
    told(odom=True, switch="auto", estop=False)
    assert set(told(0.2, odom=True, estop=False)) <= {"auto"}
    other = link.transport.network.node()
    other.advertise("/estop", "std_msgs/msg/Bool")
    other.publish("/estop", {"data": False})
    assert link.transport.network.now == pytest.approx(0.2)
    told(0.1, odom=True)
    assert link.rejected["another publisher of /estop"] == 1
    other.publish("/estop", {"data": True})
    assert "stop" in told(0.1, odom=True)
    # The first one's release does not undo it.
    assert "auto" not in told(0.1, odom=True, estop=False)
