// The panels of settings, changes and transport: built once, then kept as the settings are.

/** Build all controls; what they change goes through `app.set` and its kin. */
function buildPanels(app) {
  buildSelects(app);
  const sliders = buildSliders(app),
    components = buildComponents(app),
    changes = buildChanges(app),
    rates = buildTransport(app);
  return { sliders, components, changes, rates, rows: controllerRows(app), estimate: dynamicsRows() };
}

function buildSelects(app) {
  const fill = (id, options) =>
    $(id).append(...options.map(([value, text]) => make("option", { value, textContent: text })));
  fill(
    "vessel",
    Object.entries(DATA.vessels).map(([name, vessel]) => [name, vessel.name]),
  );
  fill(
    "shape",
    Object.entries(SHAPES).map(([name, shape]) => [name, shape.label]),
  );
  for (const id of ["vessel", "tuning"]) $(id).addEventListener("change", () => app.set(id, $(id).value));
  $("shape").addEventListener("change", () => {
    if ($("shape").value === "drawn" && !app.start.path) app.draw(true);
    else app.set("shape", $("shape").value);
  });
  $("seed").addEventListener("change", () =>
    app.set("seed", clip(Math.round(Number($("seed").value) || 0), ...BOUNDS.seed)),
  );
  $("own").addEventListener("click", () => app.set("e", null));
  $("without").textContent =
    `${DATA.withoutSway.length} vessels of the catalogue cannot push sideways. ` +
    "They need a policy of their own, which this page leaves out for its size.";
}

/** The sliders of path and sea, by setting. */
function buildSliders(app) {
  const sliders = {},
    unit = () => app.lap.scale,
    speed = (value) => (value * unit().length) / unit().time;
  const add = (panel, key, label, step, text) => {
    const [min, max] = BOUNDS[key];
    const moved = (value) => show(made.value, text(value));
    const made = slider(`set-${key}`, label, { min, max, step }, moved, (value) => app.set(key, value));
    $(panel).append(made.row);
    sliders[key] = { ...made, text };
  };
  add("path-sliders", "speed", "Speed", 0.05, (v) => `${figures(speed(v))} m/s`);
  add("sea-sliders", "current", "Current, up to", 0.01, (v) => `${speed(v).toFixed(2)} m/s`);
  add("sea-sliders", "waves", "Wind and waves, up to", 0.01, (v) => `${Math.round(100 * v)} % of limits`);
  add("sea-sliders", "wind", "Steady wind", 0.01, (v) => `${figures(v * app.lap.vessel.Fx)} N`);
  add("sea-sliders", "bearing", "Steady wind blows to", 5, (v) => `${Math.round(v)}°`);
  add("sea-sliders", "delay", "Actuator delay", 0.005, (v) => `${figures(1000 * v * unit().time)} ms`);
  return sliders;
}

/** The sliders of the nine components. */
function buildComponents(app) {
  return COMPONENT_LABELS.map(([symbol, name], i) => {
    const label = `<span class="symbol">${symbol}</span>${name}`;
    const moved = (place) => movedComponent(chosenBoat(app.now).e, i, componentScale(i, app.lap.scale).value(place));
    const made = slider(
      `set-e${i}`,
      label,
      {},
      (place) => showComponents(app, moved(place), i),
      (place) => app.set("e", moved(place)),
    );
    $("component-sliders").append(made.row);
    return made;
  });
}

/** Show components on their sliders, but do not move the one that the visitor holds. */
function showComponents(app, e, held = -1) {
  const inertia = inertiaOf(withComponents(chosenBoat(app.now), e));
  app.panels.components.forEach((made, i) => {
    const [, , unit, meaning] = COMPONENT_LABELS[i];
    if (i !== held) made.input.value = componentScale(i, app.lap.scale).place(e[i]);
    show(made.value, `${figures(e[i])} ${unit}`);
    show(made.meaning, meaning(e, inertia));
  });
}

function buildChanges(app) {
  const times = [1, 1.5, 2, 3].map((value) => [value, `× ${value}`]);
  const shares = [1, 0.6, 0.3, 0].map((value) => [value, `${100 * value} %`]);
  const changes = { mass: segments("Mass", times, (value) => app.set("mass", value)) };
  for (const axis of ["surge", "sway", "yaw"])
    changes[axis] = segments(`${axis} thrust`, shares, (value) => app.set(axis, value));
  for (const [key, { group }] of Object.entries(changes)) $(`change-${key}`).append(group);
  $("turn-wind").addEventListener("click", () => app.turnWind());
  return changes;
}

function buildTransport(app) {
  const rates = segments(
    "Speed of time",
    [1, 4, 16].map((value) => [value, `× ${value}`]),
    (value) => app.setRate(value),
  );
  $("rates").append(rates.group);
  $("play").addEventListener("click", () => app.play(!app.playing));
  $("restart").addEventListener("click", () => app.restart());
  $("follow").addEventListener("click", () => app.follow(!app.following));
  $("draw").addEventListener("click", () => app.draw(!app.drawing));
  $("share").addEventListener("click", () => app.copy());
  $("theme").addEventListener("click", () => app.turnTheme());
  return rates;
}

/** Controls as the settings in force are. */
function syncPanels(app) {
  const { now, lap, panels } = app;
  for (const id of ["vessel", "shape", "tuning", "seed"]) $(id).value = now[id];
  for (const [key, made] of Object.entries(panels.sliders)) {
    made.input.value = now[key];
    show(made.value, made.text(now[key]));
  }
  showComponents(app, chosenBoat(now).e);
  for (const [key, { press }] of Object.entries(panels.changes)) press(now[key]);
  panels.rates.press(app.start.rate);
  for (const [name, { row, shown, focus }] of Object.entries(panels.rows)) {
    shown.checked = !app.start.hidden.includes(name);
    row.classList.toggle("focused", name === app.start.focus);
    row.classList.toggle("off", app.start.hidden.includes(name));
    focus.setAttribute("aria-pressed", String(name === app.start.focus));
  }
  $("own").disabled = !now.e;
  $("play").textContent = app.playing ? "Pause" : "Drive";
  $("follow").setAttribute("aria-pressed", String(app.following));
  $("draw").textContent = app.drawing ? "Cancel" : "Draw a path";
  $("plan").classList.toggle("drawing", app.drawing);
  $("hint").hidden = !app.drawing;
  $("turn-wind").textContent = now.wind === 0 ? "Start at 10 %" : "Turn by 90°";
  $("commands-of").textContent = NAMES[app.start.focus];
  showThrusters(app);
  showVessel(lap);
  showNeed(lap, now);
  showEvents($("events"), lap, (i) => app.takeBack(i));
}

/** A button for each thruster of a vessel whose layout is known: pressed, it is dead. */
function showThrusters(app) {
  const { vessel } = app.lap,
    { dead } = app.now,
    key = `${vessel.name} ${dead}`;
  if ($("thrusters").shown === key) return;
  $("thrusters").shown = key;
  $("change-thrusters").hidden = vessel.thrusters.length === 0;
  const buttons = vessel.thrusters.map((_, i) => {
    const button = make("button", { type: "button", textContent: i + 1, "aria-pressed": dead.includes(i) });
    const others = dead.filter((other) => other !== i);
    button.addEventListener("click", () => app.set("dead", dead.includes(i) ? others : [...dead, i].sort()));
    return button;
  });
  $("thrusters").replaceChildren(...buttons);
}

function showVessel({ vessel, scale, world }) {
  const [long] = sizeOf(vessel);
  const facts = [
    `${figures(vessel.m)} kg`,
    `${vessel.length ? "" : "size not published, drawn "}${figures(long, 2)} m long`,
  ];
  facts.push(`control period ${figures(1000 * world.period)} ms`);
  if (scale.length > 1) facts.push(`scale ${figures(scale.length)} m and ${figures(scale.time)} s`);
  show($("vessel-note"), `${facts.join(", ")}.`);
}

/** What the path needs of the limits, and whether so much is left. */
function showNeed(lap, now) {
  const left = [now.surge, now.sway, now.yaw],
    need = needOf(lap.reference, plantOf(now), left),
    short = need.ratio > 1,
    text = `Needs ${Math.round(100 * need.share)} % of the ${["surge", "sway", "yaw"][need.axis]} limit in still water`;
  show($("need"), `${text}${short ? `: ${Math.round(100 * left[need.axis])} % is there` : ""}.`);
  $("need").classList.toggle("warning", short);
}
