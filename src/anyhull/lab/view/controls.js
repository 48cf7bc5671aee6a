// The page's controls: built once, then kept in step with the settings in force.

const $ = (id) => document.getElementById(id);

/** An element with attributes and children. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Symbol (HTML), name, unit, and the meaning of each component in kilograms and newtons for a boat. */
const COMPONENT_LABELS = [
  ["α<sub>u</sub>", "Surge thrust", "m/s²", (e, [m11]) => `F<sub>x</sub> = ${figures(e[0] * m11)} N`],
  ["α<sub>v</sub>", "Sway thrust", "m/s²", (e, [, m22]) => `F<sub>y</sub> = ${figures(e[1] * m22)} N`],
  ["α<sub>r</sub>", "Yaw thrust", "rad/s²", (e, [, , m66]) => `M<sub>z</sub> = ${figures(e[2] * m66)} N·m`],
  ["1/τ<sub>u</sub>", "Surge damping", "1/s", (e, [m11]) => `X<sub>u</sub> = ${figures(e[3] * m11)} kg/s`],
  ["1/τ<sub>v</sub>", "Sway damping", "1/s", (e, [, m22]) => `Y<sub>v</sub> = ${figures(e[4] * m22)} kg/s`],
  ["1/τ<sub>r</sub>", "Yaw damping", "1/s", (e, [, , m66]) => `N<sub>r</sub> = ${figures(e[5] * m66)} kg·m²/s`],
  ["c<sub>rv</sub>", "r·v to surge", "", (e, [, m22]) => `m<sub>22</sub> = ${figures(m22)} kg`],
  ["c<sub>ru</sub>", "r·u to sway", "", (e, [m11]) => `m<sub>11</sub> = ${figures(m11)} kg`],
  [
    "c<sub>uv</sub>",
    "u·v to yaw",
    "1/m²",
    (e, [, , m66]) => `Y<sub>v̇</sub> − X<sub>u̇</sub> = ${figures(e[8] * m66)} kg`,
  ],
];

/** The same of delay, current and wind force, in the body frame. */
const SEA_LABELS = [
  ["Delay", "Actuator delay", "s"],
  ["Current u", "Current, ahead", "m/s"],
  ["Current v", "Current, to port", "m/s"],
  ["Wind X", "Wind and waves, ahead, share of the limit", "%"],
  ["Wind Y", "Wind and waves, to port, share of the limit", "%"],
  ["Wind N", "Wind and waves, moment, share of the limit", "%"],
];

/** A slider with its label, value and meaning; `onInput` while it moves, `onChange` when it is let go. */
function slider(id, label, { min = 0, max = 1, step = 0.001 }, onInput, onChange) {
  const input = make("input", { type: "range", id, min, max, step });
  const value = make("output", { className: "value", htmlFor: id }),
    meaning = make("span", { className: "meaning" });
  const name = make("label", { htmlFor: id });
  name.innerHTML = label;
  input.addEventListener("input", () => onInput(Number(input.value)));
  input.addEventListener("change", () => onChange(Number(input.value)));
  const row = make("div", { className: "slider" }, make("div", {}, name, value), make("div", {}, input, meaning));
  return { row, input, value, meaning };
}

/** Set a text or a value only where it differs, so that the page is laid out no more than needed. */
function show(element, html) {
  if (element.shown !== html) element.innerHTML = element.shown = html;
}

/** Where a component lies on its slider, 0 to 1, and back; logarithmic, and through asinh for the Munk coupling. */
function componentScale(i, scale) {
  const [low, high] = DATA.envelope[COMPONENTS[i]],
    l = scale.length,
    T = scale.time;
  const unit = [l / T ** 2, l / T ** 2, 1 / T ** 2, 1 / T, 1 / T, 1 / T, 1, 1, 1 / l ** 2][i];
  const forward = i < 7 ? Math.log : i === 7 ? (c) => Math.log(-c) : (c) => Math.asinh(c);
  const backward = i < 7 ? Math.exp : i === 7 ? (x) => -Math.exp(x) : Math.sinh;
  const from = forward(low),
    to = forward(high);
  return {
    place: (value) => clip((forward(value / unit) - from) / (to - from), 0, 1),
    value: (place) => backward(from + place * (to - from)) * unit,
  };
}

/** The components with the one of index i moved; c_rv and c_ru move together, since c_rv · c_ru = -1. */
function movedComponent(e, i, value) {
  const moved = e.map((old, j) => (j === i ? value : old));
  if (i === 6) moved[7] = -1 / value;
  if (i === 7) moved[6] = -1 / value;
  return moved;
}

/** Choices in place of a slider: buttons of which one is pressed. */
function segments(name, options, onChoose) {
  const buttons = options.map(([value, label]) => {
    const button = make("button", { type: "button", textContent: label });
    button.dataset.value = value;
    button.addEventListener("click", () => onChoose(value));
    return button;
  });
  const group = make("div", { className: "segments", role: "group", "aria-label": name }, ...buttons);
  const press = (value) =>
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.value === String(value))));
  return { group, press };
}

/** The table of controllers: what to draw, which one is in focus, and the errors of each. */
function controllerRows(app) {
  const rows = {},
    notes = { student: "adaptive, no model", ppo: "no model", mpc: "model at the start", pid: "model at the start" };
  for (const name of CONTROLLERS) {
    const shown = make("input", { type: "checkbox", "aria-label": `Show ${NAMES[name]}` });
    const focus = make("button", { type: "button", className: "focus" });
    focus.innerHTML = `<i class="swatch ${name}"></i><span><b>${NAMES[name]}</b><small>${notes[name]}</small></span>`;
    const cells = [0, 1, 2].map(() => make("td", { className: "number" }));
    shown.addEventListener("change", () => app.toggle(name, shown.checked));
    focus.addEventListener("click", () => app.focus(name));
    const row = make("tr", {}, make("td", {}, shown), make("td", {}, focus), ...cells);
    $("controllers").append(row);
    rows[name] = { row, shown, focus, cells };
  }
  return rows;
}

/** The rows of the estimated dynamics. */
function dynamicsRows() {
  return [...COMPONENT_LABELS, ...SEA_LABELS].map(([symbol, name, unit]) => {
    const band = make("i", { className: "band" }),
      dot = make("i", { className: "dot" }),
      tick = make("i", { className: "tick" });
    const truth = make("td", { className: "number" }),
      guess = make("td", { className: "number" });
    const head = make("th", { scope: "row", title: name });
    head.innerHTML = `<span>${symbol}</span><small>${unit}</small>`;
    const range = make("td", {}, make("div", { className: "range" }, band, dot, tick));
    $("dynamics").append(make("tr", {}, head, truth, guess, range));
    return { truth, guess, band, dot, tick };
  });
}

function showDynamics(rows, values) {
  rows.forEach((row, i) => {
    const found = values[i];
    if (!found) return;
    // Two figures of the standard deviation say how many of the values mean anything.
    const digits = 1 - Math.floor(Math.log10(found.spread)),
      text = (value) => (digits > 5 ? figures(value, 2) : value.toFixed(Math.max(digits, 0)).replace("-", "−"));
    show(row.truth, text(found.truth));
    show(row.guess, `${text(found.guess)} <small>± ${figures(found.spread, 2)}</small>`);
    const left = clip(found.middle - found.half, 0, 1),
      right = clip(found.middle + found.half, 0, 1);
    row.band.style.transform = `translateX(${100 * left}%) scaleX(${Math.max(right - left, 0.005)})`;
    row.dot.style.left = `${100 * clip(found.middle, 0, 1)}%`;
    row.tick.style.left = `${100 * clip(found.at, 0, 1)}%`;
  });
}

const EVENT_NAMES = {
  mass: (v) => `mass × ${v}`,
  surge: (v) => `surge ${Math.round(100 * v)} %`,
  sway: (v) => `sway ${Math.round(100 * v)} %`,
  yaw: (v) => `yaw ${Math.round(100 * v)} %`,
  dead: (v) => (v.length ? `thruster ${v.map((i) => i + 1).join(", ")} dead` : "all thrusters"),
  current: () => "current",
  waves: () => "wind and waves",
  delay: () => "delay",
  wind: () => "steady wind",
  bearing: (v) => `wind to ${Math.round(v)}°`,
  e: () => "dynamics",
};

/** The changes under way, each of which can be taken back. */
function showEvents(list, lap, remove) {
  const key = JSON.stringify(lap.events);
  if (list.shown === key) return;
  list.shown = key;
  list.replaceChildren(
    ...lap.events.map((event, i) => {
      const text = `${(event.k * lap.world.period).toFixed(1)} s  ${EVENT_NAMES[event.key](event.value)}`;
      const chip = make("button", {
        type: "button",
        className: "chip",
        title: "Take back and start again",
        textContent: `${text}  ×`,
      });
      chip.addEventListener("click", () => remove(i));
      return chip;
    }),
  );
}
