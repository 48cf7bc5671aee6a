"""Missions of other programs -> `Plan`: GPX 1.0 and 1.1, GeoJSON (RFC 7946) and QGroundControl plans."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from anyhull.errors import InputError
from anyhull.mission.plan import MOST_WAYPOINTS, Lawnmower, Place, Plan, Station, Waypoint
from anyhull.schema import decode, shown
from anyhull.trajectory import positive

GPX = ("", "{http://www.topografix.com/GPX/1/0}", "{http://www.topografix.com/GPX/1/1}")
"""Namespaces of GPX; some programs write none."""

GLOBAL_FRAMES = (0, 3, 5, 6, 10, 11)
"""MAV_FRAMEs with latitude and longitude; they differ in altitude, which a boat ignores."""

PAYLOAD = {203, 205, 206, 530, 532, 534, 2000, 2001, 2500, 2501}
"""MAV_CMDs of cameras and their mounts, which QGroundControl writes into surveys: left out, with a note."""

FENCE_SIDES = 36
"""Sides of the polygon inside a circular fence."""


def read_gpx(content: bytes) -> Plan:
    """The one route of a GPX file, or its one track, or its waypoints in order."""
    try:
        guard = expat.ParserCreate()
        guard.StartDoctypeDeclHandler = _refuse_doctype
        guard.Parse(content, True)
        root = ElementTree.fromstring(content)
    except (expat.ExpatError, ElementTree.ParseError, ValueError, LookupError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"not valid XML: {error}") from None
    space, _, name = root.tag.rpartition("}")
    space = f"{space}}}" if space else ""
    if name != "gpx" or space not in GPX:
        raise InputError(f"root element {root.tag!r}: must be gpx of version 1.0 or 1.1")
    routes = [route.findall(f"{space}rtept") for route in root.findall(f"{space}rte")]
    tracks = [part.findall(f"{space}trkpt") for part in root.findall(f"{space}trk/{space}trkseg")]
    places = root.findall(f"{space}wpt")
    lines = [line for line in (*routes, *tracks) if line]
    if len(lines) > 1 or not (lines or places):
        held = f"{sum(map(bool, routes))} routes, {sum(map(bool, tracks))} track segments and {len(places)} waypoints"
        raise InputError(f"holds {held}: must hold one route, or one track of one segment, or waypoints only")
    points = lines[0] if lines else places
    notes = (f"left out: waypoints beside the route or track, {len(places)}",) if lines and places else ()
    _bounded(len(points))
    found = []
    for i, point in enumerate(points, 1):
        try:
            at = (float(point.attrib["lat"]), float(point.attrib["lon"]))
        except (KeyError, ValueError):
            raise InputError(
                f"point {i}: lat, lon = {point.get('lat')!r}, {point.get('lon')!r}: must be numbers"
            ) from None
        found.append(Waypoint(at=_place(at, f"point {i}")))
    return Plan(coordinates="geographic", waypoints=tuple(found), notes=notes)


def _refuse_doctype(*_: Any) -> None:
    raise InputError("has a DOCTYPE, whose entities may expand without bound: must have none")


def read_geojson(content: bytes) -> Plan:
    """A LineString or Points as waypoints, a Polygon as a survey area, or one Point as a station."""
    document = _json(content)
    if (crs := document.get("crs")) is not None:
        properties = crs.get("properties") if isinstance(crs, dict) else None
        name = properties.get("name") if isinstance(properties, dict) else crs
        if not (isinstance(name, str) and name.upper().endswith((":CRS84", ":4326"))):
            raise InputError(f"crs = {shown(name)}: must be WGS84, as GeoJSON has it")
    shapes = list(_geometries(document))
    kinds = Counter(kind for kind, _ in shapes)
    main = [(kind, value) for kind, value in shapes if kind != "Point"]
    notes = (f"left out: points beside the {main[0][0]}, {kinds['Point']}",) if main and kinds["Point"] else ()
    if len(main) > 1 or not shapes:
        held = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no geometry"
        raise InputError(f"holds {held}: must hold one LineString, or one Polygon, or Points only")
    if not main:
        _bounded(len(shapes))
        points = [_position(value, f"Point {i}") for i, (_, value) in enumerate(shapes, 1)]
        if len(points) == 1:
            return Plan(coordinates="geographic", station=Station(points[0]))
        return Plan(coordinates="geographic", waypoints=tuple(Waypoint(at=point) for point in points))
    kind, value = main[0]
    if kind == "Polygon":
        if not isinstance(value, list) or len(value) != 1:
            count = len(value) if isinstance(value, list) else 0
            raise InputError(f"Polygon with {count} rings: must have one ring; holes are not surveyed around")
        return Plan(coordinates="geographic", lawnmower=Lawnmower(area=_line(value[0], kind)), notes=notes)
    waypoints = tuple(Waypoint(at=place) for place in _line(value, kind))
    return Plan(coordinates="geographic", waypoints=waypoints, notes=notes)


def _geometries(document: Any) -> Iterator[tuple[str, Any]]:
    """The kind and coordinates of every geometry; parts of several are given one by one."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind in ("FeatureCollection", "GeometryCollection"):
        members = document.get("features" if kind == "FeatureCollection" else "geometries")
        for member in members if isinstance(members, list) else []:
            yield from _geometries(member)
    elif kind == "Feature":
        if document.get("geometry") is not None:
            yield from _geometries(document["geometry"])
    elif kind in ("Point", "LineString", "Polygon"):
        yield kind, document.get("coordinates")
    elif kind in ("MultiPoint", "MultiLineString", "MultiPolygon"):
        parts = document.get("coordinates")
        for part in parts if isinstance(parts, list) else []:
            yield kind.removeprefix("Multi"), part
    else:
        raise InputError(f"type = {kind!r}: must be a type of GeoJSON, such as FeatureCollection or LineString")


def _line(value: Any, kind: str) -> tuple[Place, ...]:
    if not isinstance(value, list):
        raise InputError(f"{kind}: coordinates = {value!r}: must be a list of positions")
    _bounded(len(value))
    return tuple(_position(position, f"{kind}: position {i}") for i, position in enumerate(value, 1))


def _position(value: Any, where: str) -> Place:
    """A position of GeoJSON: longitude, latitude and perhaps an altitude."""
    if not isinstance(value, list) or len(value) < 2:
        raise InputError(f"{where}: {value!r}: must be longitude, latitude and perhaps an altitude")
    return _place((value[1], value[0]), where)


def read_qgc_plan(content: bytes) -> Plan:
    """The waypoints, speeds, holds and fence of a QGroundControl plan."""
    document = _json(content)
    mission = document.get("mission")
    if document.get("fileType") != "Plan" or document.get("version") != 1:
        stated = f"fileType = {document.get('fileType')!r}, version = {document.get('version')!r}"
        raise InputError(f"{stated}: must be 'Plan' and 1, as QGroundControl writes them")
    if not isinstance(mission, dict) or mission.get("version") != 2 or not isinstance(mission.get("items"), list):
        raise InputError("mission: must be a table of version 2 with a list of items")
    home = mission.get("plannedHomePosition")
    home = _place(tuple(home[:2]), "plannedHomePosition") if isinstance(home, list) and len(home) >= 2 else None
    waypoints: list[Waypoint] = []
    left_out: Counter[str] = Counter()
    speed: float | None = None
    for where, item in _items(mission["items"], "items"):
        command, params = item.get("command"), item.get("params")
        if not isinstance(params, list) or len(params) != 7:
            raise InputError(f"{where}: params = {params!r}: must be a list of seven numbers")
        values = [0.0 if value is None else decode(float, value, f"{where}.params") for value in params]
        if not isinstance(command, int):
            raise InputError(f"{where}: command = {command!r}: must be a whole number")
        if item.get("autoContinue", True) is not True:
            raise InputError(
                f"{where}: autoContinue = {item['autoContinue']!r}: must be true; a pause is not supported"
            )
        if command in PAYLOAD:
            left_out[f"camera commands {command}"] += 1
        elif command == 178:  # DO_CHANGE_SPEED: kind of speed, m/s, throttle, relative
            if values[0] not in (0, 1) or values[3] or (values[1] <= 0 and values[1] != -1):
                raise InputError(f"{where}: DO_CHANGE_SPEED {params!r}: must be an absolute speed in m/s")
            speed = speed if values[1] == -1 else values[1]
        elif command == 93 or (command == 19 and not any(values[4:6])):  # NAV_DELAY; NAV_LOITER_TIME where the boat is
            if not waypoints or values[0] < 0:
                raise InputError(f"{where}: command {command} {params!r}: must wait for seconds after a waypoint")
            waypoints[-1] = Waypoint(waypoints[-1].at, waypoints[-1].speed, waypoints[-1].hold + values[0])
        elif command in (16, 19):  # NAV_WAYPOINT and NAV_LOITER_TIME: time to wait first
            waypoints.append(Waypoint(_item_place(where, item), speed, values[0]))
            for name, value in zip(("acceptance radius", "pass radius", "yaw"), values[1:4], strict=True):
                left_out[f"{name} of waypoints"] += command == 16 and value != 0
        elif command == 20:  # NAV_RETURN_TO_LAUNCH
            if home is None:
                raise InputError(f"{where}: return to launch: needs a plannedHomePosition")
            waypoints.append(Waypoint(home, speed))
        else:
            accepted = "16 waypoint, 19 loiter for a time, 20 return, 93 delay, 178 change of speed"
            raise InputError(f"{where}: command {command!r}: not supported; accepted are {accepted}")
        _bounded(len(waypoints))
    rally = document.get("rallyPoints")
    points = rally.get("points") if isinstance(rally, dict) else None
    left_out["rally points"] += len(points) if isinstance(points, list) else 0
    return Plan(
        coordinates="geographic",
        waypoints=tuple(waypoints),
        fence=_fence(document.get("geoFence")),
        home=home,
        notes=tuple(f"left out: {what}, {times}" for what, times in left_out.items() if times),
    )


def _item_place(where: str, item: dict[str, Any]) -> Place:
    """Where the waypoint of an item lies, if its time to wait there is valid too."""
    hold, latitude, longitude = (item["params"][i] for i in (0, 4, 5))
    if item.get("frame") not in GLOBAL_FRAMES:
        raise InputError(f"{where}: frame = {item.get('frame')!r}: must be one with latitude and longitude")
    if hold is not None and hold < 0:
        raise InputError(f"{where}: hold = {hold:g}: must be zero or more seconds")
    if latitude is None or longitude is None:
        raise InputError(f"{where}: latitude, longitude = {latitude}, {longitude}: must be two numbers of degrees")
    return _place((latitude, longitude), where)


def _items(items: list[Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Simple items in order, with those that a survey or corridor scan has generated."""
    for i, item in enumerate(items):
        where = f"{path}[{i}]"
        if not isinstance(item, dict):
            raise InputError(f"{where} = {item!r}: must be a table")
        if item.get("type") == "SimpleItem":
            yield where, item
            continue
        inner = item.get("TransectStyleComplexItem")
        generated = inner.get("Items") if isinstance(inner, dict) else None
        if item.get("type") != "ComplexItem" or path != "items" or not isinstance(generated, list) or not generated:
            kind = item.get("complexItemType", item.get("type"))
            raise InputError(f"{where}: {kind!r}: must be a SimpleItem, or a survey or corridor scan with its Items")
        yield from _items(generated, f"{where}.Items")


def _fence(fence: Any) -> tuple[Place, ...]:
    """The corners of a plan's one fence, which the boat must stay inside; empty without one."""
    if fence in (None, {}):
        return ()
    if not isinstance(fence, dict) or fence.get("version") != 2:
        stated = f"version = {fence.get('version')!r}" if isinstance(fence, dict) else shown(fence)
        raise InputError(f"geoFence: {stated}: must be version 2; save the plan with a current QGroundControl")
    every = []
    for name in ("polygons", "circles"):
        if not isinstance(entries := fence.get(name, []), list):
            raise InputError(f"geoFence: {name} = {shown(entries)}: must be a list")
        every += entries
    if not every:
        return ()
    if len(every) > 1 or not isinstance(every[0], dict) or not every[0].get("inclusion"):
        raise InputError(f"geoFence: {len(every)} fences: must be one polygon or circle to stay inside")
    (only,) = every
    if "polygon" in only:
        corners = only["polygon"]
        if not isinstance(corners, list) or len(corners) < 3:
            raise InputError(f"geoFence: polygon = {shown(corners)}: must be a list of three or more corners")
        return tuple(_corner(corner, f"geoFence: corner {i}") for i, corner in enumerate(corners, 1))
    circle = only.get("circle")
    if not isinstance(circle, dict):
        raise InputError("geoFence: must have a polygon or a circle")
    latitude, longitude = _corner(circle.get("center"), "geoFence: center")
    radius = positive("geoFence: radius", decode(float, circle.get("radius"), "geoFence: radius"))
    from geographiclib.geodesic import Geodesic

    around = (Geodesic.WGS84.Direct(latitude, longitude, 360.0 * i / FENCE_SIDES, radius) for i in range(FENCE_SIDES))
    return tuple((point["lat2"], point["lon2"]) for point in around)


def _corner(value: Any, where: str) -> Place:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f"{where}: {value!r}: must be latitude, longitude")
    return _place((value[0], value[1]), where)


def _place(value: tuple[Any, ...], where: str) -> Place:
    """Latitude and longitude that are numbers in range."""
    latitude, longitude = (decode(float, number, where) for number in value)
    if not (abs(latitude) <= 90 and abs(longitude) <= 180 and math.isfinite(latitude)):
        raise InputError(f"{where}: latitude {latitude}, longitude {longitude}: must be at most 90 and 180 degrees")
    return latitude, longitude


def _bounded(count: int) -> None:
    if count > MOST_WAYPOINTS:
        raise InputError(f"holds {count} points: must be at most {MOST_WAYPOINTS}")


def _json(content: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise InputError(f"{constant}: must be a finite number")

    try:
        document = json.loads(content.decode("utf-8-sig"), parse_constant=refuse)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # also an integer of thousands of digits
        raise InputError(f"not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise InputError("not a JSON object: must be one")
    return document
