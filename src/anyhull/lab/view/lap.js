// One run of all controllers from one set of settings, with the traces that the page draws.

const SHAPES = {
  rectangle: { label: "Rectangle, as in the paper", make: (l, v) => roundedRectangle(10 * l, 6 * l, 2 * l, v) },
  circle: { label: "Circle", make: (l, v) => circle(3 * l, v) },
  eight: { label: "Figure eight", make: (l, v) => figureEight(10 * l, 5 * l, v) },
  hold: { label: "Station keeping", make: (l, v, T) => hold(60 * T) },
  drawn: {
    label: "Drawn by hand",
    make: (l, v, T, path) =>
      through(
        path.map((p) => p.map((x) => x * l)),
        v,
      ),
  },
};

const CONTROLLERS = ["student", "ppo", "mpc", "pid"].filter(
  (name) => name in DATA.policies || ["mpc", "pid"].includes(name),
);
const NAMES = { student: "Student", ppo: "PPO (general)", mpc: "MPC", pid: "PID" };
const KEPT = 4000; // periods of a trace
const RECENT = 50; // periods of the recent mean

/** The boat of the settings before it is laden: the vessel's own, or one of the sliders' components. */
function chosenBoat(settings) {
  const own = boatOf(DATA.vessels[settings.vessel]);
  return settings.e ? withComponents(own, settings.e) : own;
}

/** The boat as it is under these settings. */
function plantOf(settings) {
  return laden(chosenBoat(settings), settings.mass);
}

/** A sea's bounds in SI for a vessel's scale. */
function seaOf(settings, scale) {
  return {
    current: (settings.current * scale.length) / scale.time,
    force: settings.waves,
    currentDecay: DATA.sea.currentDecay / scale.time,
    forceDecay: DATA.sea.forceDecay / scale.time,
  };
}

class Lap {
  constructor(start, events) {
    this.start = start;
    this.events = events;
    const vessel = DATA.vessels[start.vessel],
      { length, time } = vessel.scale;
    this.vessel = vessel;
    this.scale = vessel.scale;
    this.reference = SHAPES[start.shape].make(length, (start.speed * length) / time, time, start.path);
    // Controllers with a model know the boat as it starts.
    const known = plantOf(settingsAt(start, events, 0)),
      made = {};
    for (const name of CONTROLLERS) {
      if (name in DATA.policies) made[name] = new Pilot(DATA.policies[name], vessel);
      else made[name] = name === "mpc" ? new MPC(vessel, known, start.tuning) : new PID(vessel, known);
    }
    this.world = startWorld({
      vessel,
      reference: this.reference,
      controllers: made,
      sea: seaOf(settingsAt(start, events, 0), vessel.scale),
      normals: normalStream(start.seed),
      delayBound: BOUNDS.delay[1] * time,
    });
    this.traces = Object.fromEntries(CONTROLLERS.map((name) => [name, newTrace()]));
  }

  get time() {
    return this.world.k * this.world.period;
  }

  /** The settings in force. */
  get settings() {
    return settingsAt(this.start, this.events, this.world.k);
  }

  /** Number of changes in force. */
  get inForce() {
    return this.events.filter((event) => event.k <= this.world.k).length;
  }

  /** One control period of all boats. */
  step() {
    const settings = this.settings,
      { world } = this;
    const key = JSON.stringify([settings.e, settings.mass]);
    if (key !== this.plantKey) [this.plantKey, this.plant] = [key, plantOf(settings)];
    stepWorld(world, {
      plant: this.plant,
      sea: seaOf(settings, this.scale),
      delay: settings.delay * this.scale.time,
      wind: { strength: settings.wind, direction: (settings.bearing * Math.PI) / 180 },
      authority: [settings.surge, settings.sway, settings.yaw],
      dead: settings.dead,
    });
    for (const name of CONTROLLERS) record(this.traces[name], world.boats[name], world.window[0]);
    if (this.traces.student.error.length > KEPT) {
      for (const trace of Object.values(this.traces)) for (const list of trace.lists) list.splice(0, KEPT / 4);
    }
  }

  /** Change a setting under way, from the next period on. */
  change(key, value) {
    const k = this.world.k,
      last = this.events[this.events.length - 1];
    if (last && last.k === k && last.key === key) this.events.pop();
    if (this.events.length < MOST_EVENTS) this.events.push({ k, key, value });
  }
}

function newTrace() {
  const trace = { x: [], y: [], error: [], ahead: [], aside: [], command: [], count: 0, sum: 0, headingSum: 0 };
  trace.lists = [trace.x, trace.y, trace.error, trace.ahead, trace.aside, trace.command];
  return trace;
}

/** The state at the start of the period and its errors, as the package's log has them. */
function record(trace, boat, reference) {
  const found = errorsOf(boat.before, reference);
  trace.x.push(boat.before[0]);
  trace.y.push(boat.before[1]);
  trace.error.push(found.position);
  trace.ahead.push(found.offset[0]);
  trace.aside.push(found.offset[1]);
  trace.command.push(boat.command);
  trace.count += 1;
  trace.sum += found.position;
  trace.headingSum += found.heading;
}

/** Mean errors over the whole run and recently, m and rad. */
function meansOf(trace) {
  const recent = trace.error.slice(-RECENT);
  return {
    position: trace.count ? trace.sum / trace.count : NaN,
    heading: trace.count ? trace.headingSum / trace.count : NaN,
    recent: recent.length ? recent.reduce((sum, value) => sum + value, 0) / recent.length : NaN,
  };
}

/** The largest share of an actuator limit that the reference needs in still water, of what is `left`, and its axis. */
function needOf(reference, boat, left) {
  let worst = { share: 0, axis: 0, ratio: 0 };
  for (let i = 0; i < 200; i++) {
    const velocity = reference.at((i / 200) * reference.duration).slice(3);
    inverseDynamics(velocity, [0, 0, 0], boat).forEach((force, axis) => {
      const share = Math.abs(force),
        ratio = share === 0 ? 0 : share / left[axis];
      if (ratio > worst.ratio) worst = { share, axis, ratio };
    });
  }
  return worst;
}
