// What the visitor chose, as one plain object: at the start, and changed under way at known periods. It is the URL.

const DEFAULTS = {
  vessel: "platform-b",
  shape: "rectangle",
  speed: 0.6, // of the reference, in the policy's units, as all lengths and times below
  current: 0.2, // bound of the current
  waves: 0.1, // bound of the wind and wave force, fraction of the limits
  delay: 0.1,
  wind: 0, // steady wind, fraction of the surge limit
  bearing: 90, // where it blows to, degrees from the x axis
  mass: 1, // times the mass
  surge: 1, // share of the command that reaches the water
  sway: 1,
  yaw: 1,
  dead: [], // thrusters without thrust, by index
  e: null, // the nine components in SI where they are not the vessel's own
  path: null, // waypoints of a drawn path
  seed: 0,
  tuning: "field",
  rate: 1, // speed of time
  focus: "student",
  hidden: [], // controllers that are not drawn
};

/** Settings that may change while the boat drives; any other starts a new run. */
const LIVE = ["current", "waves", "delay", "wind", "bearing", "mass", "surge", "sway", "yaw", "dead", "e"];

/** Bounds of the numbers, which also bound what a URL may ask for. */
const BOUNDS = {
  speed: [0.1, 1.2],
  current: [0, 0.5],
  waves: [0, 0.4],
  delay: [0, 0.5],
  wind: [0, 0.4],
  bearing: [0, 360],
  mass: [0.5, 5],
  surge: [0, 1],
  sway: [0, 1],
  yaw: [0, 1],
  seed: [0, 99999],
  rate: [1, 16],
};

const LONGEST_RUN = 100000; // periods
const MOST_EVENTS = 60,
  MOST_WAYPOINTS = 60,
  FARTHEST = 60;

/** The settings in force at period k: those of the start with the changes up to then. */
function settingsAt(start, events, k) {
  const now = { ...start };
  for (const event of events) if (event.k <= k) now[event.key] = event.value;
  return now;
}

/** Start and events as the fragment of a URL; what is at its default is left out. */
function toHash({ start, events }) {
  const parts = [];
  for (const [key, value] of Object.entries(start)) {
    if (JSON.stringify(value) !== JSON.stringify(DEFAULTS[key])) parts.push(`${key}=${written(value)}`);
  }
  if (events.length) parts.push(`at=${events.map(({ k, key, value }) => `${k}:${key}:${written(value)}`).join(";")}`);
  return parts.join("&");
}

function written(value) {
  return Array.isArray(value) ? value.flat().map(written).join(",") : String(value);
}

/** Start and events from a fragment; what is not understood is left at its default. */
function fromHash(hash) {
  const start = { ...DEFAULTS },
    events = [];
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("="),
      key = part.slice(0, at),
      text = decodeURIComponent(part.slice(at + 1));
    if (key === "at") {
      for (const event of text.split(";").slice(0, MOST_EVENTS)) {
        const [k, name, value] = event.split(":"),
          read = readSetting(name, value);
        if (/^\d{1,6}$/.test(k) && LIVE.includes(name) && read !== undefined)
          events.push({ k: Number(k), key: name, value: read });
      }
    } else if (at > 0 && key in DEFAULTS) {
      const read = readSetting(key, text);
      if (read !== undefined) start[key] = read;
    }
  }
  start.dead = start.dead.filter((i) => i < DATA.vessels[start.vessel].thrusters.length);
  if (start.shape === "drawn" && !start.path) start.shape = DEFAULTS.shape;
  events.sort((a, b) => a.k - b.k);
  return { start, events };
}

/** The value of a setting from its text; undefined where it is not one. */
function readSetting(key, text = "") {
  if (key in BOUNDS) {
    const value = Number(text),
      [low, high] = BOUNDS[key];
    return text !== "" && Number.isFinite(value) ? clip(value, low, high) : undefined;
  }
  const options = {
    vessel: Object.keys(DATA.vessels),
    shape: Object.keys(SHAPES),
    tuning: Object.keys(DATA.mpc),
    focus: CONTROLLERS,
  };
  if (key in options) return options[key].includes(text) ? text : undefined;
  if (key === "hidden") return text.split(",").filter((name) => CONTROLLERS.includes(name));
  const numbers = text === "" ? [] : text.split(",").map(Number);
  if (!numbers.every((value) => Number.isFinite(value))) return undefined;
  if (key === "dead") return numbers.every((i) => i >= 0 && i < 20 && i % 1 === 0) ? numbers : undefined;
  if (key === "e") {
    const signs = numbers.every((value, i) => i === 8 || (i === 7 ? value < 0 : value > 0));
    return numbers.length === 9 && signs && numbers.every((value) => Math.abs(value) < 1e4) ? numbers : undefined;
  }
  if (key !== "path" || numbers.length < 6 || numbers.length > 2 * MOST_WAYPOINTS || numbers.length % 2)
    return undefined;
  const points = numbers.slice(0, numbers.length / 2).map((_, i) => [numbers[2 * i], numbers[2 * i + 1]]);
  const apart = points.every((p, i) => Math.hypot(p[0] - points.at(i - 1)[0], p[1] - points.at(i - 1)[1]) > 0.05);
  return apart && numbers.every((value) => Math.abs(value) <= FARTHEST) ? points : undefined;
}
