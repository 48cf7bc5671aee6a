// The page: settings, the loop of time, and what each control does.

class App {
  constructor() {
    Object.assign(this, fromHash(location.hash));
    this.following = false;
    this.playing = true;
    this.share = 1;
    this.frames = [];
    this.rows = controllerRows(this);
    this.estimate = dynamicsRows();
    this.buildSelects();
    this.buildSliders();
    this.buildChanges();
    this.buildTransport();
    this.listen();
    readColours();
    this.restart();
    this.previous = performance.now();
    requestAnimationFrame((now) => this.frame(now));
  }

  /** Settings in force; before the first step those of the start. */
  get now() {
    return settingsAt(this.start, this.events, Math.max(this.lap.world.k, 0));
  }

  /** A new run from the start; changes under way come again at their times. */
  restart() {
    this.events.sort((a, b) => a.k - b.k);
    this.lap = new Lap(this.start, this.events);
    this.debt = 0;
    this.view = { bounds: boundsOf(this.lap), following: this.following, outline: this.outline() };
    this.remember();
    this.sync();
  }

  outline() {
    if (!this.lap.reference.path) return [];
    return Array.from({ length: 401 }, (_, i) => this.lap.reference.at((i / 400) * this.lap.reference.duration));
  }

  remember() {
    const hash = toHash(this);
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  /** Change a setting: under way where it may change there, else at the start of a new run. */
  set(key, value) {
    if (LIVE.includes(key) && this.lap.world.k > 0) {
      this.lap.change(key, value);
      this.remember();
      this.sync();
      return;
    }
    this.start[key] = value;
    if (!LIVE.includes(key)) this.events.length = 0;
    if (key === "vessel") this.start.e = null;
    this.restart();
  }

  toggle(name, visible) {
    this.start.hidden = CONTROLLERS.filter((other) => (other === name ? !visible : this.start.hidden.includes(other)));
    this.remember();
    this.sync();
  }

  focus(name) {
    this.start.focus = name;
    this.start.hidden = this.start.hidden.filter((other) => other !== name);
    this.remember();
    this.sync();
  }

  buildSelects() {
    for (const [name, vessel] of Object.entries(DATA.vessels)) $("vessel").append(make("option", { value: name, textContent: vessel.name }));
    for (const [name, shape] of Object.entries(SHAPES)) $("shape").append(make("option", { value: name, textContent: shape.label }));
    $("vessel").addEventListener("change", () => this.set("vessel", $("vessel").value));
    $("shape").addEventListener("change", () => {
      if ($("shape").value === "drawn" && !this.start.path) this.beginDrawing();
      else this.set("shape", $("shape").value);
    });
    $("tuning").addEventListener("change", () => this.set("tuning", $("tuning").value));
    $("seed").addEventListener("change", () => this.set("seed", clip(Math.round(Number($("seed").value) || 0), ...BOUNDS.seed)));
    $("without").textContent = `${DATA.withoutSway.length} vessels of the catalogue cannot push sideways. They need a policy of their own, which this page leaves out for its size.`;
  }

  buildSliders() {
    this.sliders = {};
    const add = (panel, key, label, options, text) => {
      const moved = (value) => show(made.value, text(value));
      const made = slider(`set-${key}`, label, options, moved, (value) => this.set(key, value));
      $(panel).append(made.row);
      this.sliders[key] = { ...made, text };
    };
    const speed = () => this.lap.scale.length / this.lap.scale.time, time = () => this.lap.scale.time;
    const range = (key, step) => ({ min: BOUNDS[key][0], max: BOUNDS[key][1], step });
    add("path-sliders", "speed", "Speed", range("speed", 0.05), (v) => `${figures(v * speed())} m/s`);
    add("sea-sliders", "current", "Current, up to", range("current", 0.01), (v) => `${(v * speed()).toFixed(2)} m/s`);
    add("sea-sliders", "waves", "Wind and waves, up to", range("waves", 0.01), (v) => `${Math.round(100 * v)} % of limits`);
    add("sea-sliders", "wind", "Steady wind", range("wind", 0.01), (v) => `${figures(v * this.lap.vessel.Fx)} N`);
    add("sea-sliders", "bearing", "Steady wind blows to", range("bearing", 5), (v) => `${Math.round(v)}°`);
    add("sea-sliders", "delay", "Actuator delay", range("delay", 0.005), (v) => `${figures(1000 * v * time())} ms`);
    this.components = COMPONENT_LABELS.map(([symbol, name], i) => {
      const value = (place) => componentScale(i, this.lap.scale).value(place);
      const moved = (place) => this.showComponents(movedComponent(chosenBoat(this.now).e, i, value(place)), i);
      const made = slider(`set-e${i}`, `<span class="symbol">${symbol}</span>${name}`, {}, moved, (place) =>
        this.set("e", movedComponent(chosenBoat(this.now).e, i, value(place))));
      $("component-sliders").append(made.row);
      return made;
    });
    $("own").addEventListener("click", () => this.set("e", null));
  }

  /** Show components on their sliders, but do not move the one that the visitor holds. */
  showComponents(e, held = -1) {
    const inertia = inertiaOf(withComponents(chosenBoat(this.now), e));
    this.components.forEach((made, i) => {
      const [, , unit, meaning] = COMPONENT_LABELS[i];
      if (i !== held && made.input !== document.activeElement) made.input.value = componentScale(i, this.lap.scale).place(e[i]);
      if (i !== held && made.input === document.activeElement && held < 0) made.input.value = componentScale(i, this.lap.scale).place(e[i]);
      show(made.value, `${figures(e[i])} ${unit}`);
      show(made.meaning, meaning(e, inertia));
    });
  }

  buildChanges() {
    const shares = [[1, "100 %"], [0.6, "60 %"], [0.3, "30 %"], [0, "0 %"]];
    this.changes = {
      mass: segments("Mass", [[1, "× 1"], [1.5, "× 1.5"], [2, "× 2"], [3, "× 3"]], (value) => this.set("mass", value)),
      surge: segments("Surge thrust", shares, (value) => this.set("surge", value)),
      sway: segments("Sway thrust", shares, (value) => this.set("sway", value)),
      yaw: segments("Yaw thrust", shares, (value) => this.set("yaw", value)),
    };
    for (const [key, { group }] of Object.entries(this.changes)) $(`change-${key}`).append(group);
    $("turn-wind").addEventListener("click", () => {
      if (this.now.wind === 0) this.set("wind", 0.1);
      this.set("bearing", (this.now.bearing + 90) % 360);
    });
  }

  buildTransport() {
    this.rates = segments("Speed of time", [[1, "× 1"], [4, "× 4"], [16, "× 16"]], (value) => this.setRate(value));
    $("rates").append(this.rates.group);
    $("play").addEventListener("click", () => this.play(!this.playing));
    $("restart").addEventListener("click", () => this.restart());
    $("follow").addEventListener("click", () => this.follow(!this.following));
    $("draw").addEventListener("click", () => (this.drawing ? this.endDrawing() : this.beginDrawing()));
    $("share").addEventListener("click", () => this.copy());
    $("theme").addEventListener("click", () => this.turnTheme());
  }

  setRate(value) {
    this.start.rate = value;
    this.remember();
    this.sync();
  }

  play(wanted) {
    this.playing = wanted;
    this.sync();
  }

  follow(wanted) {
    this.following = this.view.following = wanted;
    this.sync();
  }

  copy() {
    this.remember();
    const done = (text) => { $("share").textContent = text; setTimeout(() => { $("share").textContent = "Copy link"; }, 1500); };
    const copied = navigator.clipboard?.writeText(location.href);
    if (copied) copied.then(() => done("Copied"), () => done("See address"));
    else done("See address");
  }

  turnTheme() {
    const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const present = root.dataset.theme ?? (dark ? "dark" : "light");
    root.dataset.theme = present === "dark" ? "light" : "dark";
    readColours();
  }

  /** A path drawn with pointer or finger: closed, smoothed by a spline through its waypoints. */
  beginDrawing() {
    this.drawing = true;
    this.sync();
  }

  endDrawing() {
    const stroke = this.view.stroke, unit = this.lap.scale.length;
    this.drawing = false;
    this.view.stroke = null;
    const points = stroke ? waypointsOf(stroke.map((p) => p.map((value) => value / unit))) : [];
    if (points.length >= 4) {
      this.start.path = points;
      this.set("shape", "drawn");
    } else this.sync();
  }

  listen() {
    const canvas = $("plan"), at = (event) => {
      const box = canvas.getBoundingClientRect();
      return toMetres(this.view.camera, event.clientX - box.left, event.clientY - box.top);
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.drawing) return;
      canvas.setPointerCapture(event.pointerId);
      this.view.stroke = [at(event)];
      event.preventDefault();
    });
    canvas.addEventListener("pointermove", (event) => { if (this.drawing && this.view.stroke) this.view.stroke.push(at(event)); });
    canvas.addEventListener("pointerup", () => { if (this.drawing && this.view.stroke) this.endDrawing(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);
    window.addEventListener("hashchange", () => { Object.assign(this, fromHash(location.hash)); this.restart(); });
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
    const keys = {
      " ": () => this.play(!this.playing), r: () => this.restart(), f: () => this.follow(!this.following),
      m: () => this.set("mass", this.now.mass === 3 ? 1 : 3), w: () => $("turn-wind").click(),
      1: () => this.setRate(1), 4: () => this.setRate(4), 6: () => this.setRate(16),
      Escape: () => { if (this.drawing) { this.view.stroke = null; this.endDrawing(); } },
    };
    const act = keys[event.key];
    if (!act || (event.key === " " && event.target.tagName === "BUTTON")) return;
    event.preventDefault();
    act();
  }

  /** Controls as the settings are. */
  sync() {
    const now = this.now, { lap } = this;
    this.syncedAt = this.lap.events.filter((event) => event.k <= lap.world.k).length;
    $("vessel").value = now.vessel;
    $("shape").value = now.shape;
    $("tuning").value = now.tuning;
    $("seed").value = now.seed;
    for (const [key, made] of Object.entries(this.sliders)) {
      made.input.value = now[key];
      show(made.value, made.text(now[key]));
    }
    this.showComponents(chosenBoat(now).e);
    for (const [key, { press }] of Object.entries(this.changes)) press(now[key]);
    this.rates.press(this.start.rate);
    $("own").disabled = !now.e;
    $("play").textContent = this.playing ? "Pause" : "Drive";
    $("follow").setAttribute("aria-pressed", String(this.following));
    $("draw").textContent = this.drawing ? "Cancel" : "Draw a path";
    $("plan").classList.toggle("drawing", Boolean(this.drawing));
    $("hint").hidden = !this.drawing;
    for (const [name, { row, shown, focus }] of Object.entries(this.rows)) {
      shown.checked = !now.hidden.includes(name);
      row.classList.toggle("focused", name === now.focus);
      row.classList.toggle("off", now.hidden.includes(name));
      focus.setAttribute("aria-pressed", String(name === now.focus));
    }
    $("commands-of").textContent = NAMES[now.focus];
    const { length, time } = lap.scale, sized = lap.vessel.length ? `${figures(lap.vessel.length)} m long` : "size not published";
    const period = `period ${figures(1000 * lap.world.period)} ms`;
    show($("vessel-note"), `${figures(lap.vessel.m)} kg, ${sized}, ${period}${length > 1 ? `, scale ${figures(length)} m and ${figures(time)} s` : ""}.`);
    const need = needOf(lap.reference, plantOf(now)), axis = ["surge", "sway", "yaw"][need.axis];
    const left = [now.surge, now.sway, now.yaw][need.axis];
    show($("need"), `Needs ${Math.round(100 * need.share)} % of the ${axis} limit in still water${need.share > left ? ": more than is left" : ""}.`);
    $("need").classList.toggle("warning", need.share > left);
    showEvents($("events"), lap, (i) => { this.events.splice(i, 1); this.restart(); });
  }

  /** One picture: as many control periods as time has passed, then the drawings. */
  frame(now) {
    const passed = Math.min((now - this.previous) / 1000, 0.25), { lap } = this;
    this.previous = now;
    this.frames.push(now);
    if (this.frames.length > 600) this.frames.shift();
    if (this.playing && !this.drawing && lap.world.k < LONGEST_RUN) {
      this.debt += passed * this.start.rate;
      const began = performance.now();
      while (this.debt >= lap.world.period) {
        lap.step();
        this.debt -= lap.world.period;
        // A slow machine shows every frame late rather than none.
        if (performance.now() - began > 40) this.debt = Math.min(this.debt, lap.world.period * 0.999);
      }
      this.share = this.debt / lap.world.period;
    }
    this.draw(now);
    requestAnimationFrame((next) => this.frame(next));
  }

  draw(now) {
    const { lap } = this, settings = this.start;
    drawPlan($("plan"), lap, Object.assign(this.view, { settings, now: this.now, share: this.share }));
    if (now - (this.charted ?? 0) < 45) return;
    this.charted = now;
    drawErrors($("errors"), lap, settings);
    drawCommands($("commands"), lap, settings);
    drawLatent($("latent"), lap);
    if (now - (this.written ?? 0) < 120) return;
    this.written = now;
    this.write();
  }

  /** The numbers, a few times a second. */
  write() {
    const { lap } = this;
    show($("time"), `${lap.time.toFixed(1)} s`);
    for (const [name, { cells }] of Object.entries(this.rows)) {
      const means = meansOf(lap.traces[name]), lost = lap.world.boats[name].lost;
      show(cells[0], lost ? "lost" : shortLength(means.recent, lap.scale).text);
      show(cells[1], lost ? "" : shortLength(means.position, lap.scale).text);
      show(cells[2], lost ? "" : Number.isFinite(means.heading) ? ((180 / Math.PI) * means.heading).toFixed(2) : "–");
    }
    for (const unit of document.querySelectorAll(".error-unit")) show(unit, shortLength(0, lap.scale).unit);
    showDynamics(this.estimate, estimateRows(lap, this.now));
    if (lap.events.filter((event) => event.k <= lap.world.k).length !== this.syncedAt) this.sync();
  }
}

/** Waypoints along a stroke, evenly spaced, so that a spline through them is smooth. */
function waypointsOf(stroke) {
  const closed = [...stroke, stroke[0]], along = [0];
  for (let i = 1; i < closed.length; i++) along.push(along[i - 1] + Math.hypot(closed[i][0] - closed[i - 1][0], closed[i][1] - closed[i - 1][1]));
  const total = along.at(-1), count = clip(Math.round(total / 2.2), 4, MOST_WAYPOINTS);
  if (!(total > 4)) return [];
  const rounded = (value) => Math.round(100 * value) / 100;
  return Array.from({ length: count }, (_, i) => [0, 1].map((axis) =>
    rounded(interpolate((i / count) * total, along, closed.map((p) => p[axis])))));
}

const app = new App();
window.lab = { app, meansOf, CONTROLLERS };
