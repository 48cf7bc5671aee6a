"""The pilot's link and an ArduPilot-like vehicle at the two ends of a pipe in simulated time."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

from pymavlink.dialects.v20 import ardupilotmega as dialect

from anyhull.control import PID
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.link import MAVLink
from anyhull.onboard.messages import Command, Odometry, Operator, Status
from anyhull.onboard.setup import Setup
from anyhull.reference import line
from anyhull.twin import WATERS, TwinConfig
from anyhull.twin.ardupilot import ArduPilot
from anyhull.twin.ardupilot_rover import ADVISED
from anyhull.twin.byte_pipe import byte_pipe
from anyhull.twin.link_trial import SimulatedClock, link_trial

BOAT = Path(__file__).parents[1] / "examples" / "boat-ardupilot.toml"
LIGHT_AIR = TwinConfig(water=WATERS["light-air"])
TICK = 0.005


class Rig:
    """Both ends, and a boat that lies still at a pose; commands are what a test says."""

    def __init__(self, *, armed=True, parameters=None, receiver=True, frame=None, key=None, boat_key=None, **options):
        self.config = MAVLinkConfig(**options)
        self.clock = SimulatedClock(10.0)
        self.pilot_end, self.boat_end = byte_pipe(self.clock)
        self.link = MAVLink(self.config, self.pilot_end, frame=frame, key=key, clock=self.clock)
        given = ADVISED | (parameters or {})
        self.double = ArduPilot(
            self.config, [self.boat_end], parameters=given, armed=armed, key=boat_key or key, clock=self.clock
        )
        self.rover = self.double.rover
        self.rover.transmitter = {} if receiver else None
        self.state = (3.0, 4.0, 0.5, 0.0, 0.0, 0.0)
        self.boat_time, self.boat_session = 5.0, 1
        self.wrench, self.engaged, self.commanding = (0.0, 0.0, 0.0), True, True
        self.received, self.commands = [], []
        self._seq, self._numbers = itertools.count(), itertools.count()

    def run(self, seconds):
        """Let time pass; the messages received."""
        first = len(self.received)
        for tick in range(round(seconds / TICK)):
            self.received += [message for message, _ in self.link.receive(0.0)]
            if self.commanding and tick % 20 == 0:
                self.link.send(Command(7, next(self._seq), 0.0, (), (), self.wrench, self.engaged))
            self.commands += [command for command, _ in self.double.receive(0.0)]
            if tick % 4 == 0:
                self.double.send(
                    Odometry(self.boat_session, next(self._numbers), self.boat_time, self.state[:3], self.state[3:])
                )
            self.clock.now += TICK
            self.boat_time += TICK
        return self.received[first:]

    def last(self, kind):
        return next(message for message in reversed(self.received) if isinstance(message, kind))

    @property
    def status(self):
        return self.last(Status)

    @property
    def operator(self):
        return self.last(Operator).mode

    def sent(self, kind="RC_CHANNELS_OVERRIDE", since=0.0):
        """What the link has written, as pymavlink reads it: times and messages."""
        return sent(self.pilot_end, kind, since)

    def overrides(self, since=0.0):
        """Time and (steering, throttle, lateral) of the overrides written."""
        return [(at, (m.chan1_raw, m.chan3_raw, m.chan4_raw)) for at, m in self.sent(since=since)]


def sent(end, kind, since=0.0):
    """Times and messages of a kind that were written at an end of a pipe."""
    parser, found = dialect.MAVLink(None), []
    for at, data in end.written:
        for message in parser.parse_buffer(data) or []:
            if at >= since and message.get_type() == kind:
                found.append((at, message))
    return found


def packed(message, system=1, component=1, seq=0):
    """A message of another sender, as bytes."""
    sender = dialect.MAVLink(None, system, component)
    sender.seq = seq
    return bytes(message.pack(sender))


class Trial:
    """A boat that follows a line, with a hook for what is to happen to it."""

    def __init__(self, on_tick=None, reference=None, **options):
        setup = Setup.load(BOAT)
        assert isinstance(setup.link, MAVLinkConfig)
        self.config: MAVLinkConfig = replace(setup.link, **options)
        self.setup = replace(setup, link=self.config)
        self.clock = SimulatedClock()
        self.pilot_end, self.boat_end = byte_pipe(self.clock)
        self.link = MAVLink(self.config, self.pilot_end, clock=self.clock)
        self.double = self.new_double()
        self._on_tick, self._reference = on_tick, reference or line(4.0, speed=0.4)
        self.history = []
        """Time, whether the pilot may steer, and the guard's reaction, at each tick."""

    def new_double(self):
        double = ArduPilot(self.config, [self.boat_end], parameters=ADVISED, armed=True, clock=self.clock)
        double.rover.transmitter = {}
        return double

    def tick(self, now, autopilot, twin):
        rover = self.double and self.double.rover
        allowed = rover is not None and rover.armed and rover.mode == 0
        self.history.append((now, allowed, autopilot.guard.reaction))
        if self._on_tick is not None:
            self._on_tick(self, now, autopilot, twin)

    def run(self, seed=0):
        self.log = link_trial(
            PID(self.setup.vessel),
            self.setup,
            self._reference,
            LIGHT_AIR,
            pilot_end=self.link,
            boat_end=self,
            clock=self.clock,
            seed=seed,
            lead_in=4.0,
            checks=(self.link.unready,),
            on_tick=self.tick,
        )
        return self.log

    # The boat's end: the double may be killed and started again.
    rejected = property(lambda self: self.double.rejected if self.double else Counter())

    def receive(self, timeout):
        return self.double.receive(timeout) if self.double else []

    def send(self, message):
        if self.double:
            self.double.send(message)

    def close(self): ...

    def check_overrides(self, reaction_time=0.3):
        """All pulses were in range, and none was sent while the operator had the boat, but for a moment."""
        mine = {now: allowed for now, allowed, _ in self.history}
        times = sorted(mine)
        forbidden = 0.0
        last = 0.0
        overrides = [
            (at, (m.chan1_raw, m.chan3_raw, m.chan4_raw)) for at, m in sent(self.pilot_end, "RC_CHANNELS_OVERRIDE")
        ]
        assert overrides
        steering = [at for at, pulses in overrides if pulses != (0, 0, 0)]
        for _, pulses in overrides:
            assert all(pulse == 0 or 1100 <= pulse <= 1900 for pulse in pulses)
        queue = iter(steering)
        at = next(queue, None)
        for now in times:
            forbidden = 0.0 if mine[now] else forbidden + now - last
            last = now
            while at is not None and at <= now:
                assert forbidden <= reaction_time, (
                    f"an override at {at} s, {forbidden} s after the operator took the boat"
                )
                at = next(queue, None)
