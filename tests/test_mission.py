"""Missions: files of every format load as their specifications have them, and every bad input gives one line."""

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyhull import InputError, Mission, Vessel
from anyhull.legs import Legs
from anyhull.mission import Circle, Lawnmower, LocalFrame, Plan, Station, Waypoint, lawnmower
from anyhull.reference import line

EXAMPLES = Path(__file__).parents[1] / "examples" / "missions"
HERE = (63.4405, 10.4)


def tangent_plane(origin, place):
    """North and east (m) of a place in the plane that touches WGS84 at the origin, by way of Earth-centred x, y, z."""
    a, f = 6378137.0, 1 / 298.257223563

    def earth_centred(latitude, longitude):
        latitude, longitude = math.radians(latitude), math.radians(longitude)
        n = a / math.sqrt(1 - f * (2 - f) * math.sin(latitude) ** 2)
        across = n * math.cos(latitude)
        return np.array(
            [across * math.cos(longitude), across * math.sin(longitude), n * (1 - f) ** 2 * math.sin(latitude)]
        )

    moved = earth_centred(*place) - earth_centred(*origin)
    sin_lat, cos_lat = math.sin(math.radians(origin[0])), math.cos(math.radians(origin[0]))
    sin_lon, cos_lon = math.sin(math.radians(origin[1])), math.cos(math.radians(origin[1]))
    north = np.array([-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat])
    return float(moved @ north), float(moved @ np.array([-sin_lon, cos_lon, 0.0]))


@pytest.mark.parametrize("origin", [HERE, (0.0, 179.999), (-54.8, -68.3), (89.5, 20.0)])
def test_latitude_and_longitude_agree_with_an_independent_computation_to_1_mm_at_1_km(origin):
    ned, enu = (LocalFrame(origin[0], origin[1], axes) for axes in ("ned", "enu"))
    for degrees in range(0, 360, 30):
        # Near a place 1 km away, on a sphere; the tangent plane is then off by s³/(6R²), 4 µm.
        north, east = 1000 * math.cos(math.radians(degrees)), 1000 * math.sin(math.radians(degrees))
        latitude = origin[0] + math.degrees(north / 6371e3)
        longitude = origin[1] + math.degrees(east / (6371e3 * math.cos(math.radians(origin[0]))))
        place = (latitude, (longitude + 180) % 360 - 180)
        expected = tangent_plane(origin, place)
        assert math.hypot(*expected) == pytest.approx(1000, rel=0.2)
        assert math.dist(ned.to_local(*place), expected) < 1e-3
        assert enu.to_local(*place) == ned.to_local(*place)[::-1]
        np.testing.assert_allclose(ned.to_geographic(*ned.to_local(*place)), place, atol=1e-11)


def test_a_compass_heading_is_measured_from_x_toward_y_in_either_frame():
    # East is y in ned, so 90°, and x in enu, so 0°; north is x in ned, so 0°, and y in enu, so 90°.
    ned, enu = LocalFrame(*HERE, "ned"), LocalFrame(*HERE, "enu")
    assert (ned.to_heading(90), enu.to_heading(90), ned.to_heading(0), enu.to_heading(0)) == (90, 0, 0, 90)
    plan: Any = {"coordinates": "geographic", "origin": HERE, "station": Station(HERE, 10.0), "heading": 90.0}
    for axes, psi in (("ned", math.pi / 2), ("enu", 0.0)):
        np.testing.assert_allclose(Mission.of_plan(Plan(axes=axes, **plan)).reference.at(1.0)[:3], [0, 0, psi])


def legs_of(mission):
    assert isinstance(mission.reference, Legs)
    return mission.reference.legs


def local(mission, axes="ned"):
    """Latitudes and longitudes of a mission's waypoints."""
    return [LocalFrame(*HERE, axes).to_geographic(*point) for point in mission.waypoints]


GPX_POINTS = [(63.4406, 10.4001), (63.4409, 10.4003), (63.4409, 10.4010)]


def gpx(body, space=' xmlns="http://www.topografix.com/GPX/1/1"', version="1.1"):
    return f'<?xml version="1.0"?>\n<gpx version="{version}" creator="test"{space}>{body}</gpx>'


def points(tag):
    return "".join(f'<{tag} lat="{lat}" lon="{lon}"><ele>1</ele></{tag}>' for lat, lon in GPX_POINTS)


@pytest.mark.parametrize(
    "text",
    [
        (EXAMPLES / "route.gpx").read_text(),
        gpx(f"<rte>{points('rtept')}</rte>"),
        gpx(f"<trk><name>a</name><trkseg>{points('trkpt')}</trkseg></trk>"),
        gpx(points("wpt")),
        gpx(points("wpt"), ' xmlns="http://www.topografix.com/GPX/1/0"', "1.0"),
        gpx(points("wpt"), ""),
        f'<g:gpx version="1.1" xmlns:g="http://www.topografix.com/GPX/1/1">{points("g:wpt")}</g:gpx>',
        "\ufeff" + gpx(points("wpt")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("axes", ["ned", "enu"])
def test_a_route_a_track_or_waypoints_of_gpx_load(tmp_path, text, axes):
    file = tmp_path / "a.gpx"
    file.write_text(text, encoding="utf-8")
    mission = Mission.load(file, origin=HERE, axes=axes)
    np.testing.assert_allclose(local(mission, axes), GPX_POINTS, atol=1e-9)
    assert mission.name == "a"


def test_a_suffix_may_be_in_upper_case(tmp_path):
    (tmp_path / "A.GPX").write_text(gpx(points("wpt")))
    assert len(Mission.load(tmp_path / "A.GPX", origin=HERE, axes="ned").waypoints) == 3


def write(tmp_path, name, content):
    file = tmp_path / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


LINE = [[10.4001, 63.4406, 3.0], [10.4003, 63.4409, 3.0], [10.4010, 63.4409]]


@pytest.mark.parametrize(
    "document",
    [
        {"type": "LineString", "coordinates": LINE},
        {"type": "Feature", "properties": None, "geometry": {"type": "LineString", "coordinates": LINE}},
        {"type": "MultiPoint", "coordinates": LINE},
        {
            "type": "FeatureCollection",
            "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}},
            "features": [
                {"type": "Feature", "properties": {"n": i}, "geometry": {"type": "Point", "coordinates": place}}
                for i, place in enumerate(LINE)
            ],
        },
        {
            "type": "GeometryCollection",
            "geometries": [
                {"type": "MultiLineString", "coordinates": [LINE]},
                {"type": "Point", "coordinates": [1, 2]},
            ],
        },
    ],
)
def test_geojson_has_longitude_first(tmp_path, document):
    for name in ("a.geojson", "a.json"):
        mission = Mission.load(write(tmp_path, name, document), origin=HERE, axes="ned")
        np.testing.assert_allclose(local(mission), GPX_POINTS, atol=1e-9)


def test_a_polygon_of_geojson_is_a_survey_area_and_a_point_a_station(tmp_path):
    mission = Mission.load(EXAMPLES / "area.geojson", origin=HERE, axes="ned", spacing=4)
    # 63.4406 to 63.44085 is 27.9 m north: seven lines 3.98 m apart; the notch splits the upper four.
    assert len(mission.waypoints) == 2 * (3 + 4 + 4)
    assert not [note for note in mission.notes if "farther" in note]
    point = write(tmp_path, "p.geojson", {"type": "Point", "coordinates": [10.4001, 63.4406]})
    station = Mission.load(point, origin=HERE, axes="ned", duration=30)
    assert station.reference.duration == 30
    north, east = tangent_plane(HERE, (63.4406, 10.4001))
    np.testing.assert_allclose(station.reference.at(5.0)[:2], [north, east], atol=1e-6)


def item(command, *params, frame=3, **more):
    seven = [*params, *[0] * (7 - len(params))]
    return {"type": "SimpleItem", "command": command, "frame": frame, "params": seven, "autoContinue": True} | more


def waypoint(latitude, longitude, hold=0, command=16):
    return item(command, hold, 0, 0, None, latitude, longitude, 20)


def qgc(*items, fence=None, **more):
    mission = {"version": 2, "items": list(items), "plannedHomePosition": [*HERE, 12.5], "cruiseSpeed": 15}
    return {"fileType": "Plan", "version": 1, "groundStation": "QGroundControl", "mission": mission} | (
        {"geoFence": {"version": 2, "polygons": [], "circles": []} | (fence or {})} | more
    )


def test_a_plan_of_qgroundcontrol_has_speeds_holds_a_return_and_a_fence():
    mission = Mission.load(EXAMPLES / "lake.plan", origin="home", axes="ned")
    places = [(63.4406, 10.4001), (63.4409, 10.4003), (63.4409, 10.4008), HERE]
    np.testing.assert_allclose(local(mission), places, atol=1e-9)
    assert [leg.speed for leg in legs_of(mission)] == [0.5] * 3
    assert "hold of 30 s at waypoint 3" in [stage.label for stage in mission.reference.stages]
    # The corners of the fence lie on its circle of 80 m.
    assert mission.fence_corners is not None
    centre = tangent_plane(HERE, (63.4407, 10.4004))
    np.testing.assert_allclose([math.dist(centre, corner) for corner in mission.fence_corners], 80, atol=1e-3)


def test_a_survey_of_qgroundcontrol_is_its_items_without_the_camera(tmp_path):
    survey = {
        "type": "ComplexItem",
        "complexItemType": "survey",
        "TransectStyleComplexItem": {
            "version": 1,
            "Items": [waypoint(63.4407, 10.4001), item(206, 25, 0, 1, frame=2), waypoint(63.4407, 10.4009)],
        },
        "polygon": [],
    }
    polygon = {"polygon": [[63.44, 10.39], [63.45, 10.39], [63.45, 10.41], [63.44, 10.41]], "inclusion": True}
    plan = qgc(
        waypoint(63.4406, 10.4001, 3),
        item(93, 4),
        item(178, 1, 0.4, -1, frame=2),
        survey,
        item(178, 1, 0.3, -1, frame=2),
        waypoint(63.441, 10.4009, 5, command=19),
        fence={"polygons": [polygon | {"version": 1}]},
    )
    mission = Mission.load(write(tmp_path, "a.plan", plan), origin=HERE, axes="ned")
    assert [leg.speed for leg in legs_of(mission)] == [0.4, 0.4, 0.3]
    assert mission.notes[0] == "left out: camera commands 206, 1"
    holds = [stage.label for stage in mission.reference.stages if stage.label.startswith("hold")]
    assert holds == ["hold of 7 s at waypoint 1", "hold of 5 s at waypoint 4"]
    assert mission.fence_corners is not None
    assert len(mission.fence_corners) == 4


def test_what_a_plan_states_and_a_mission_has_not_is_noted(tmp_path):
    places = [item(16, 0, 3, 0, 90, 63.4406, 10.4001), item(16, 0, 3, 0, 0, 63.4409, 10.4003)]
    plan = qgc(*places, waypoint(63.4409, 10.401), rallyPoints={"version": 2, "points": [[63.44, 10.4, 0]]})
    mission = Mission.load(write(tmp_path, "a.plan", plan), origin=HERE, axes="ned")
    noted = ["acceptance radius of waypoints, 2", "yaw of waypoints, 1", "rally points, 1"]
    assert [note for note in mission.notes if "left out" in note] == [f"left out: {what}" for what in noted]


def test_csv_columns_are_named_with_their_units(tmp_path):
    mission = Mission.load(EXAMPLES / "waypoints.csv")
    assert mission.waypoints == ((0, 0), (20, 0), (20, 10), (0, 10))
    assert [leg.speed for leg in legs_of(mission)] == [0.6, 0.4, 0.6]
    text = "lon [deg], LAT [deg] ,heading [deg]\n10.4001,63.4406,90\n10.4003,63.4409,90\n"
    east = Mission.load(write(tmp_path, "a.csv", text), origin=HERE, axes="enu")
    np.testing.assert_allclose(local(east, "enu"), GPX_POINTS[:2], atol=1e-9)
    np.testing.assert_allclose(east.reference.at(np.arange(5.0))[:, 2], 0, atol=1e-12)


@pytest.mark.parametrize(("first", "last"), [("30", ""), ("", "30"), ("30", "20")])
def test_a_hold_at_the_first_point_of_a_closed_path_is_at_the_end_of_each_lap(tmp_path, first, last):
    text = f"x [m],y [m],hold [s]\n0,0,{first}\n10,0,\n10,10,\n0,10,\n0,0,{last}\n"
    mission = Mission.load(write(tmp_path, "a.csv", text), laps=2)
    labels = [stage.label for stage in mission.reference.stages]
    assert [i for i, label in enumerate(labels) if label == "hold of 30 s at waypoint 1"] == [4, 9]


def test_the_radius_of_either_row_for_the_first_point_of_a_closed_path_is_used(tmp_path):
    for first, last in (("1", ""), ("", "1")):
        text = f"x [m],y [m],radius [m]\n0,0,{first}\n9,0,1\n9,9,1\n0,9,1\n0,0,{last}\n"
        mission = Mission.load(write(tmp_path, "a.csv", text), laps=2)
        # With arcs of 1 m everywhere.
        assert mission.deviation == pytest.approx(1 - math.sqrt(0.5))


def test_a_speed_or_radius_for_all_is_for_the_waypoints_that_state_none(tmp_path):
    plan = qgc(waypoint(63.4406, 10.4001), waypoint(63.4409, 10.4001), item(178, 1, 0.4, -1), waypoint(63.4409, 10.401))
    mission = Mission.load(write(tmp_path, "a.plan", plan), origin=HERE, axes="ned", speed=0.5)
    assert [leg.speed for leg in legs_of(mission)] == [0.5, 0.4]
    rows = "0,0,\n20,0,3\n20,20,\n0,20,3\n"
    mission = Mission.load(write(tmp_path, "a.csv", "x [m],y [m],radius [m]\n" + rows), radius=2, corridor=9)
    # Arcs of 3 m and of 2 m: at each corner the path is shorter by 2 - pi / 2 radii.
    path = 60 - (2 - math.pi / 2) * (3 + 2)
    states = mission.reference.at(np.arange(0, mission.reference.duration, 0.01))
    assert 0.01 * np.hypot(*states[:, 3:5].T).sum() == pytest.approx(path, abs=0.02)
    rows = "0,0,\n20,0,3\n20,20,\n"
    with pytest.raises(InputError, match="radius = 2: the waypoints state their own"):
        Mission.load(write(tmp_path, "a.csv", "x [m],y [m],radius [m]\n" + rows), radius=2)


def test_our_own_file_states_all_of_a_mission():
    mission = Mission.load(EXAMPLES / "inspection.toml")
    assert (mission.name, mission.approach_speed, mission.approach_distance) == ("Inspection of two buoys", 0.3, 60)
    assert len(mission.waypoints) == 2 * 4 + 1
    np.testing.assert_allclose(mission.waypoints[0], tangent_plane(HERE, (63.4406, 10.4002)), atol=1e-6)
    # "speed" is that of the leg that ends at a waypoint.
    assert [leg.speed for leg in legs_of(mission)] == [0.6, 0.3, 0.6, 0.6] * 2
    assert sum(stage.label == "hold of 20 s at waypoint 2" for stage in mission.reference.stages) == 2


def test_the_example_survey_follows_its_legs_for_its_boat():
    vessel = Vessel.load("platform-a")
    mission = Mission.load(EXAMPLES / "lawnmower.toml", vessel=vessel)
    # Five lines over 25 m: the first 2.5 m inside.
    assert mission.waypoints[:4] == ((0, 2.5), (40, 2.5), (40, 7.5), (0, 7.5))
    assert len(mission.waypoints) == 10
    assert mission.deviation == pytest.approx(2 * (1 - math.sqrt(0.5)))
    assert mission.deviation <= (mission.corridor or 0.0)
    assert mission.reference.infeasible(vessel) == []


@pytest.mark.parametrize("angle", [0.0, 0.4, math.pi / 2, -2.0])
def test_a_lawnmower_covers_a_rotated_rectangle_with_legs_a_spacing_apart(angle):
    cos, sin = math.cos(angle), math.sin(angle)
    corners = [(3 + cos * x - sin * y, -7 + sin * x + cos * y) for x, y in ((0, 0), (30, 0), (30, 12), (0, 12))]
    found = np.array(lawnmower(corners, spacing=4, angle=angle))
    # Three lines, 2 m inside both long sides, each 30 m long, from side to side in turn.
    assert len(found) == 6
    back = (found - (3, -7)) @ np.array([[cos, -sin], [sin, cos]])
    np.testing.assert_allclose(back, [(0, 2), (30, 2), (30, 6), (0, 6), (0, 10), (30, 10)], atol=1e-9)
    np.testing.assert_allclose(lawnmower([*corners, corners[0]], spacing=4), found, atol=1e-9)


@pytest.mark.parametrize(("width", "lines"), [(4.0, 1), (9.9, 2), (10.0, 2), (10.1, 3), (14.9, 3), (25.0, 5)])
def test_a_lawnmower_leaves_no_strip_wider_than_half_its_spacing_at_an_edge(width, lines):
    found = np.array(lawnmower([(0, 0), (40, 0), (40, width), (0, width)], spacing=5, angle=0.0))
    across = np.unique(found[:, 1])
    # ceil(width / 5) lines, width / lines apart and half of that from both edges.
    gap = width / lines
    np.testing.assert_allclose(across, gap * (np.arange(lines) + 0.5), atol=1e-9)
    assert gap <= 5


def test_what_no_leg_of_a_survey_comes_near_is_noted():
    # An arm of 10 m by 1 m from y = 4.5 to 5.5, between lines at 2.5 and 7.5: of 110 m² those 10, less the 1.5 m by
    # 1 m or so of it that are within 2.5 m of the ends of these lines.
    corners = ((0, 0), (10, 0), (10, 4.5), (20, 4.5), (20, 5.5), (10, 5.5), (10, 10), (0, 10))
    mission = Mission.of_plan(Plan(coordinates="local", lawnmower=Lawnmower(corners, 5.0, 0.0)))
    (note,) = [note for note in mission.notes if "farther" in note]
    assert 7.5 < float(note.split()[0]) < 9.1
    assert note.endswith("% of the survey area is farther than half a spacing from every leg")


def test_legs_in_a_polygon_that_is_not_convex_stay_inside_it_and_cover_every_line():
    comb = [
        (0, 0),
        (30, 0),
        (30, 20),
        (22, 20),
        (22, 6),
        (18, 6),
        (18, 20),
        (10, 20),
        (10, 6),
        (6, 6),
        (6, 20),
        (0, 20),
    ]
    found = lawnmower(comb, spacing=2, angle=0.0)
    legs = list(zip(found[::2], found[1::2], strict=True))
    # Ten lines at 1, 3, ... 19 m: three over the whole width, seven in three teeth of 6, 8 and 8 m.
    lengths = sorted(round(math.dist(a, b), 6) for a, b in legs)
    assert lengths == [6.0] * 7 + [8.0] * 14 + [30.0] * 3
    for a, b in legs:
        x = sorted((a[0], b[0]))
        assert a[1] == pytest.approx(b[1])
        assert a[1] < 6 or any(low - 1e-9 <= x[0] and x[1] <= high + 1e-9 for low, high in ((0, 6), (10, 18), (22, 30)))


def test_a_circle_has_its_centre_radius_laps_and_side_and_starts_from_rest():
    for radius in (5.0, -5.0):
        plan = Plan(coordinates="local", circle=Circle((10, 20), radius, laps=2), speed=0.5)
        reference = Mission.of_plan(plan).reference
        states = reference.at(np.linspace(0, reference.duration, 2000))
        np.testing.assert_allclose(np.hypot(states[:, 0] - 10, states[:, 1] - 20), 5, atol=1e-9)
        assert states[-1, 2] - states[0, 2] == pytest.approx(math.copysign(4 * math.pi, radius))
        assert states[:, 3].max() == pytest.approx(0.5)
        np.testing.assert_allclose(states[[0, -1], 3], 0, atol=1e-9)


def test_a_circle_or_station_has_its_stages_and_a_slower_circle_a_note():
    plan = Plan(coordinates="local", circle=Circle((10, 20), 1.0, laps=2.5), speed=3.0)
    mission = Mission.of_plan(plan)
    # 0.5 rad/s on 1 m.
    assert mission.notes == ("slower on the circle, 0.50 instead of 3 m/s: it turns at 0.5 rad/s at most",)
    assert [stage.label for stage in mission.reference.stages] == ["lap 1 of 2.5", "lap 2 of 2.5", "lap 3 of 2.5"]
    # A ramp of 0.5 m/s at 0.1 m/s² takes 2.5 s longer than its distance at full speed.
    np.testing.assert_allclose(
        [stage.start for stage in mission.reference.stages], [0, 4 * math.pi + 2.5, 8 * math.pi + 2.5]
    )
    wide = replace(plan, circle=Circle((10, 20), 100.0))
    mission = Mission.of_plan(wide, vessel=Vessel.load("platform-a"))
    # 36 N of 40 N at 36/54 m/s on a straight, and 4 N on 44 kg to accelerate; the turn takes a little more.
    assert mission.notes[0].startswith("acceleration 0.091 m/s²")
    assert mission.notes[1].startswith("slower on the circle, 0.67 instead of 3 m/s: Platform A may use 90 %")
    station = Mission.of_plan(Plan(coordinates="local", station=Station((1, 2), 60.0)))
    assert station.reference.stages == ((0.0, "station for 60 s"),)


def test_the_laps_of_a_circle_may_be_an_option():
    plan = Plan(coordinates="local", circle=Circle((10, 20), 5.0))
    stated = replace(plan, circle=Circle((10, 20), 5.0, 1.5))
    assert Mission.of_plan(plan, laps=1.5).digest == Mission.of_plan(stated).digest
    with pytest.raises(InputError, match="the file states 2"):
        Mission.of_plan(replace(plan, circle=Circle((10, 20), 5.0, 2.0)), laps=2)


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        ("circle", {"corridor": 0.5}, "corridor = 0.5: has no meaning for a circle: must be left out"),
        ("circle", {"radius": 3}, r"radius = 3: has no meaning for a circle: must be left out; \[circle\] has its own"),
        ("circle", {"closed": True}, "closed = True: has no meaning for a circle"),
        ("station", {"corridor": 0.5}, "corridor = 0.5: has no meaning for a station"),
        ("station", {"speed": 0.5}, "speed = 0.5: has no meaning for a station"),
        ("station", {"laps": 2}, "laps = 2: has no meaning for a station"),
        ("station", {"radius": 2}, "radius = 2: has no meaning for a station: must be left out$"),
    ],
)
def test_what_has_no_meaning_for_a_circle_or_station_is_refused(shape, options, words):
    table: Any = {"circle": Circle((0, 0), 5.0)} if shape == "circle" else {"station": Station((0, 0), 9.0)}
    with pytest.raises(InputError, match=words):
        Plan(coordinates="local", **table, **options)
    if "closed" not in options:
        with pytest.raises(InputError, match=words):
            Mission.of_plan(Plan(coordinates="local", **table), **options)


def test_the_digest_tells_missions_apart_and_does_not_change():
    one, again = (Mission.load(EXAMPLES / "waypoints.csv") for _ in range(2))
    assert re.fullmatch(r"[0-9a-f]{64}", one.digest)
    assert one.digest == again.digest
    others = [Mission.load(EXAMPLES / "waypoints.csv", corridor=0.5), Mission.load(EXAMPLES / "lawnmower.toml")]
    assert len({one.digest, *(other.digest for other in others), Mission.of(line()).digest}) == 4


def test_a_shape_is_a_mission_without_legs():
    mission = Mission.of(line(), "line")
    assert (mission.deviation, mission.waypoints, mission.corridor, mission.fence_corners) == (0.0, (), None, None)


LOCAL = 'coordinates = "local"\n'
BOMB = '<!DOCTYPE gpx [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>'
POINT = {"type": "Point", "coordinates": [10.4, 63.44]}
SQUARE = [[10.4, 63.44], [10.401, 63.44], [10.401, 63.441], [10.4, 63.441], [10.4, 63.44]]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.toml", "x =", ["not valid TOML"]),
        ("a.toml", "", ["coordinates is missing", "'local' or 'geographic'"]),
        ("a.toml", LOCAL, ["holds none", "one of waypoints, lawnmower"]),
        ("a.toml", LOCAL + "sped = 1", ["sped = 1", "did you mean 'speed'"]),
        ("a.toml", LOCAL + "home = [1, 2]", ["home = [1, 2]", "unknown key"]),
        ("a.toml", LOCAL + "qqq = 1", ["qqq = 1", "unknown key", "approach_distance, fence"]),
        ("a.toml", LOCAL + 'axes = "ned"', ["only for geographic"]),
        ("a.toml", 'coordinates = "geographic"\naxes = "nwu"', ["axes = 'nwu'", "'enu'"]),
        ("a.toml", LOCAL + "speed = -1", ["speed = -1", "from 0.001 to 100"]),
        ("a.toml", LOCAL + "[[waypoints]]\nat = [0, nan]", ["waypoints[0].at[1] = nan", "finite"]),
        ("a.toml", LOCAL + "[[waypoints]]\nat = [0, 0]", ["1 waypoint: must be two or more"]),
        ("a.toml", LOCAL + "waypoints = [{at = [0, 0]}, {at = [0, 2e5]}]", ["waypoint 2", "100 km"]),
        ("a.toml", LOCAL + "waypoints = [{at = [0, 0]}, {at = [0, 0]}]", ["waypoints 1 and 2", "apart"]),
        ("a.toml", LOCAL + "laps = 2\nwaypoints = [{at = [0, 0]}, {at = [0, 9]}]", ["laps = 2", "closed"]),
        ("a.toml", LOCAL + "speed = 0.01\nwaypoints = [{at = [0, 0]}, {at = [0, 9e4]}]", ["one day"]),
        ("a.toml", LOCAL + "[lawnmower]\narea = [[0, 0], [9, 0], [9, 9]]", ["spacing is missing"]),
        ("a.toml", LOCAL + "[lawnmower]\nspacing = 1\narea = [[0, 0], [9, 0]]", ["area of 2 corners", "three or more"]),
        ("a.toml", LOCAL + "[lawnmower]\nspacing = 1\narea = [[0, 0], [9, 9], [9, 0], [0, 8]]", ["cross"]),
        ("a.toml", LOCAL + "[lawnmower]\nspacing = 1e-4\narea = [[0, 0], [9, 0], [9, 9]]", ["spacing", "10000"]),
        ("a.toml", LOCAL + "[circle]\ncentre = [0, 0]\nradius = 0", ["circle.radius = 0", "from 0.1"]),
        ("a.toml", LOCAL + "[station]\npoint = [0, 0]", ["duration is missing"]),
        (
            "a.toml",
            LOCAL + "fence = [[0, 0], [9, 0], [9, 9]]\nwaypoints = [{at = [1, 0.5]}, {at = [1, 9]}]",
            ["fence", "the path leaves it", "x = 1.0 m"],
        ),
        ("a.csv", "", ["holds no waypoint"]),
        ("a.csv", "0,0\n1,1\n", ["column '0'", "x [m]"]),
        ("a.csv", "x [m];y [m]\n0;0\n1;1\n", ["line 1", "'x [m];y [m]'", "separator", "comma"]),
        ("a.csv", "x [m]\ty [m]\n0\t0\n", ["line 1", "separator", "comma"]),
        ("a.csv", "x,y\n0,0\n1,1\n", ["column 'x'", "with its unit"]),
        ("a.csv", "x [ft],y [ft]\n0,0\n1,1\n", ["column 'x [ft]'"]),
        ("a.csv", "x [m],lon [deg]\n0,0\n1,1\n", ["'x [m],lon [deg]'", "'lat [deg]' and 'lon [deg]'"]),
        ("a.csv", "x [m],y [m],x [m]\n0,0,1\n", ["each column once"]),
        ("a.csv", "x [m],y [m]\n0,0\n1,1,1\n", ["line 3", "2 columns"]),
        ("a.csv", "x [m],y [m]\n0,0\n1,inf\n", ["line 3", "y = 'inf'"]),
        ("a.csv", "x [m],y [m]\n0,0\n1,\n", ["line 3", "y is empty"]),
        ("a.csv", "x [m],y [m],hold [s]\n0,0,\n1,1,-1\n", ["line 3", "hold = -1"]),
        ("a.csv", "x [m],y [m]\n" + "0,0\n1,1\n" * 5001, ["10002 waypoints", "10000"]),
        ("a.gpx", "<gpx", ["not valid XML"]),
        ("a.gpx", BOMB + gpx("<wpt>&b;</wpt>").split("\n")[1], ["DOCTYPE"]),
        ("a.gpx", "<kml/>", ["'kml'", "must be gpx"]),
        ("a.gpx", gpx(""), ["0 routes", "one route"]),
        ("a.gpx", gpx(f"<rte>{points('rtept')}</rte>" * 2), ["2 routes"]),
        ("a.gpx", gpx('<wpt lat="x" lon="1"/>'), ["point 1", "'x'"]),
        ("a.gpx", gpx('<wpt lat="91" lon="1"/>'), ["point 1", "latitude 91"]),
        ("a.gpx", gpx('<wpt lat="1" lon="180.0001"/>'), ["point 1", "longitude 180.0001"]),
        ("a.gpx", gpx('<wpt lat="nan" lon="1"/>'), ["point 1", "nan"]),
        ("a.gpx", gpx('<wpt lat="10.4" lon="63.4"/>' + points("wpt")), ["waypoint 1", "km from the origin"]),
        ("a.gpx", gpx(points("wpt") + '<wpt lat="63.4409" lon="10.4010"/>'), ["waypoints 3 and 4", "apart"]),
        ("a.geojson", "[1]", ["JSON object"]),
        ("a.geojson", "{", ["not valid JSON"]),
        ("a.geojson", "[" * 100_000, ["not valid JSON"]),
        ("a.geojson", '{"type": "Point", "coordinates": [NaN, 1]}', ["NaN"]),
        ("a.geojson", {"type": "Topology"}, ["type = 'Topology'"]),
        ("a.geojson", {"type": "FeatureCollection", "features": []}, ["no geometry"]),
        ("a.geojson", {"type": "LineString", "coordinates": 3}, ["coordinates = 3"]),
        ("a.geojson", {"type": "LineString", "coordinates": [[1], [2]]}, ["position 1", "longitude, latitude"]),
        ("a.geojson", {"type": "LineString", "coordinates": [["1", 2], [1, 2]]}, ["position 1", "'1'"]),
        ("a.geojson", {"type": "MultiPolygon", "coordinates": [[SQUARE], [SQUARE]]}, ["2 Polygon"]),
        ("a.geojson", {"type": "Polygon", "coordinates": [SQUARE, SQUARE]}, ["2 rings", "holes"]),
        ("a.geojson", {"type": "Polygon", "coordinates": [SQUARE]}, ["spacing is missing"]),
        ("a.geojson", POINT, ["duration is missing", "[station] of a .toml file"]),
        ("a.geojson", POINT | {"crs": {"properties": {"name": "EPSG:25833"}}}, ["'EPSG:25833'", "WGS84"]),
        ("a.geojson", POINT | {"crs": {"properties": ["x"]}}, ["crs = ", "['x']", "WGS84"]),
        ("a.plan", {"fileType": "Mission"}, ["fileType = 'Mission'"]),
        ("a.plan", {"fileType": "Plan", "version": 1, "mission": {"version": 1}}, ["version 2"]),
        ("a.plan", qgc(), ["holds none"]),
        ("a.plan", qgc(item(22)), ["items[0]", "command 22", "16 waypoint"]),
        ("a.plan", qgc(item(177, 1, 2)), ["items[0]", "command 177", "not supported", "16 waypoint"]),
        ("a.plan", qgc(item(16, 0, 0, 0, None, None, 10)), ["items[0]", "latitude, longitude = None, 10", "degrees"]),
        ("a.plan", qgc(item(16, -1, 0, 0, None, 63, 10)), ["items[0]", "hold = -1"]),
        ("a.plan", qgc(item(16, 0, 0, 0, None, 63, 10, autoContinue=False)), ["items[0]", "autoContinue = False"]),
        ("a.plan", qgc(item([16])), ["command = [16]"]),
        ("a.plan", qgc(item(16, frame=1)), ["items[0]", "frame = 1"]),
        ("a.plan", qgc(item(178, 1, -5)), ["DO_CHANGE_SPEED", "m/s"]),
        ("a.plan", qgc(item(93, 5)), ["command 93", "after a waypoint"]),
        ("a.plan", qgc({"type": "ComplexItem", "complexItemType": "StructureScan"}), ["'StructureScan'"]),
        ("a.plan", qgc(item(16) | {"params": [1, 2]}), ["params = [1, 2]", "seven"]),
        ("a.plan", qgc(item(16, 0, 0, 0, 0, "a", 1)), ["items[0].params = 'a'"]),
        ("a.plan", qgc(fence={"circles": [{"circle": {}, "inclusion": False}]}), ["geoFence", "stay inside"]),
        ("a.plan", qgc(fence={"polygon": [[1, 2], [1, 3], [2, 3]], "version": 1}), ["geoFence: version = 1", "2"]),
        ("a.plan", qgc(fence={"polygons": [{"inclusion": True, "polygon": []}]}), ["polygon = []", "three or more"]),
        ("a.plan", qgc(fence={"polygons": {"a": 1}}), ["geoFence: polygons = {'a': 1}", "a list"]),
        ("a.plan", qgc(fence={"circles": None}), ["geoFence: circles = None", "a list"]),
        ("a.plan", qgc() | {"geoFence": [1]}, ["geoFence: [1]", "version 2"]),
    ],
)  # fmt: skip
def test_bad_input_gives_one_line_that_names_it(tmp_path, name, content, words):
    file = write(tmp_path, name, content)
    frame: Any = {} if name.endswith((".toml", ".csv")) else {"origin": HERE, "axes": "ned"}
    with pytest.raises(InputError) as caught:
        Mission.load(file, **frame)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(file))
    assert all(word in message for word in words), message
    assert "notes" not in message


def test_files_and_options_outside_their_bounds_are_refused(tmp_path):
    large = tmp_path / "a.gpx"
    large.write_bytes(b" " * 10_000_001)
    route, survey = EXAMPLES / "route.gpx", EXAMPLES / "lawnmower.toml"
    names: Any = ("a", "b")
    for make, words in (
        (lambda: Mission.load(large), "10 MB: must be at most 10 MB"),
        (lambda: Mission.load(tmp_path / "a.kml"), "one of these endings"),
        (lambda: Mission.load(route), "origin is missing"),
        (lambda: Mission.load(route, origin=HERE), "axes are missing"),
        (lambda: Mission.load(route, origin=HERE, axes="nwu"), "axes = 'nwu'"),
        (lambda: Mission.load(route, origin=(95, 0), axes="ned"), "latitude = 95"),
        (lambda: Mission.load(route, origin=(1, 2, 3), axes="ned"), "a latitude and a longitude"),
        (lambda: Mission.load(route, origin=names, axes="ned"), "origin = ('a', 'b'): must be a latitude"),
        (lambda: Mission.load(route, origin="home", axes="ned"), "only for a .plan file"),
        (lambda: Mission.load(route, origin="here", axes="ned"), "origin = 'here'"),
        (lambda: Mission.load(survey, origin=HERE, axes="ned"), "the file has x and y"),
        (lambda: Mission.load(survey, speed=1), "speed = 1: the file states 0.6"),
        (lambda: Mission.load(EXAMPLES / "inspection.toml", axes="enu"), "axes = 'enu': the file states 'ned'"),
        (lambda: Mission.load(EXAMPLES / "waypoints.csv", speed=1), "speed = 1: the waypoints state their own"),
        (lambda: Mission.load(EXAMPLES / "lake.plan", origin="home", axes="ned", speed=1), "state their own"),
        (lambda: Mission.load(EXAMPLES / "waypoints.csv", spacing=1), "only for a survey area"),
        (lambda: Mission.load(EXAMPLES / "waypoints.csv", sped=1), "option 'sped' is unknown"),
        (lambda: Mission.load(EXAMPLES / "waypoints.csv", laps=math.nan), "laps = nan: must be a whole number"),
        (lambda: Mission.load(EXAMPLES / "waypoints.csv", laps=math.inf), "laps = inf: must be a whole number"),
        (lambda: Waypoint((0, 0), speed=0), "speed = 0: must be from 0.001"),
        (lambda: Lawnmower(((0, 0),), spacing=0), "spacing = 0"),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            make()


def test_geographiclib_is_imported_on_demand():
    code = "import sys, anyhull, anyhull.cli; print('geographiclib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_every_example_is_a_mission_in_the_help_page():
    page = (EXAMPLES.parents[1] / "docs" / "missions.md").read_text()
    for file in EXAMPLES.iterdir():
        assert f"examples/missions/{file.name}" in page
