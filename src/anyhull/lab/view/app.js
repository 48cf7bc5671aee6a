// The page: the settings, the run, and the loop of time.

class App {
  constructor() {
    this.following = false;
    this.playing = true;
    this.drawing = false;
    this.share = 1; // of the present period, for smooth motion
    this.frames = [];
    Object.assign(this, fromHash(location.hash));
    this.panels = buildPanels(this);
    listen(this);
    readColours();
    this.restart();
    this.previous = performance.now();
    requestAnimationFrame((now) => this.frame(now));
  }

  /** The settings in force. */
  get now() {
    return this.lap.settings;
  }

  /** A new run from the start; changes under way come again at their times. */
  restart() {
    this.events.sort((a, b) => a.k - b.k);
    this.lap = new Lap(this.start, this.events);
    this.debt = 0;
    this.view = { bounds: boundsOf(this.lap), following: this.following, outline: outlineOf(this.lap.reference) };
    this.changed();
  }

  /** Start what a fragment of an address says. */
  open(hash) {
    Object.assign(this, fromHash(hash));
    this.restart();
  }

  /** After any change: the address and the controls follow the settings. */
  changed() {
    const hash = toHash(this);
    try {
      // An empty fragment means the top of the page, to which the page around a frame would scroll.
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    } catch {
      // Some browsers refuse this to a page from a disk, or when it comes too often; the page works without.
    }
    this.sync();
  }

  sync() {
    this.inForce = this.lap.inForce;
    syncPanels(this);
  }

  /** Change a setting: under way where it may change there, else at the start of a new run. */
  set(key, value) {
    if (LIVE.includes(key) && this.lap.world.k > 0) {
      this.lap.change(key, value);
      this.changed();
      return;
    }
    this.start[key] = value;
    if (key === "vessel") {
      // Components, thrusters and changes are those of the other boat.
      this.start.e = null;
      this.start.dead = [];
      this.events.length = 0;
    }
    this.restart();
  }

  takeBack(i) {
    this.events.splice(i, 1);
    this.restart();
  }

  turnWind() {
    if (this.now.wind === 0) this.set("wind", 0.1);
    else this.set("bearing", (this.now.bearing + 90) % 360);
  }

  toggle(name, visible) {
    this.start.hidden = CONTROLLERS.filter((other) => (other === name ? !visible : this.start.hidden.includes(other)));
    this.changed();
  }

  focus(name) {
    this.start.focus = name;
    this.start.hidden = this.start.hidden.filter((other) => other !== name);
    this.changed();
  }

  setRate(value) {
    this.start.rate = value;
    this.changed();
  }

  play(wanted) {
    this.playing = wanted;
    this.sync();
  }

  follow(wanted) {
    this.following = this.view.following = wanted;
    this.sync();
  }

  /** Begin or end the drawing of a path, with pointer or finger: one closed stroke. */
  draw(wanted) {
    const { stroke } = this.view,
      unit = this.lap.scale.length;
    this.drawing = wanted;
    this.view.stroke = null;
    const points = !wanted && stroke ? waypointsOf(stroke.map((point) => point.map((value) => value / unit))) : [];
    if (points.length < 4) return this.sync();
    this.start.path = points;
    this.set("shape", "drawn");
  }

  cancelDrawing() {
    this.view.stroke = null;
    this.draw(false);
  }

  copy() {
    const say = (text) => {
      $("share").textContent = text;
      setTimeout(() => ($("share").textContent = "Copy link"), 1500);
    };
    // A page from a file may not be allowed to write the clipboard.
    const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject();
    copied.then(() => say("Copied")).catch(() => say("In address"));
  }

  turnTheme() {
    const root = document.documentElement,
      system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme ?? system) === "dark" ? "light" : "dark";
    readColours();
  }

  /** One picture: as many control periods as time has passed, then the drawings. */
  frame(now) {
    const passed = Math.min((now - this.previous) / 1000, 0.25);
    this.previous = now;
    this.frames.push(now);
    if (this.frames.length > 600) this.frames.shift();
    if (this.playing && !this.drawing && this.lap.world.k < LONGEST_RUN) this.advance(passed * this.start.rate);
    this.show(now);
    requestAnimationFrame((next) => this.frame(next));
  }

  advance(time) {
    const { lap } = this,
      { period } = lap.world,
      began = performance.now();
    this.debt += time;
    while (this.debt >= period) {
      lap.step();
      this.debt -= period;
      // On a slow machine time runs slower, and the page stays responsive.
      if (performance.now() - began > 30) this.debt = Math.min(this.debt, 0.999 * period);
    }
    this.share = this.debt / period;
    if (lap.inForce !== this.inForce) this.sync();
  }

  /** The plan at every frame, charts at 20 Hz, numbers at 8 Hz. */
  show(now) {
    const { lap, start } = this;
    drawPlan($("plan"), lap, Object.assign(this.view, { settings: start, now: this.now, share: this.share }));
    if (now - (this.charted ?? 0) < 45) return;
    this.charted = now;
    drawErrors($("errors"), lap, start);
    drawCommands($("commands"), lap, start);
    drawLatent($("latent"), lap);
    if (now - (this.written ?? 0) < 120) return;
    this.written = now;
    this.write();
  }

  write() {
    const { lap, panels } = this,
      { unit } = shortLength(0, lap.scale);
    show($("time"), `${lap.time.toFixed(1)} s`);
    show($("recent"), `last ${Math.round(10 * RECENT * lap.world.period) / 10} s`);
    for (const element of document.querySelectorAll(".error-unit")) show(element, unit);
    for (const [name, { cells }] of Object.entries(panels.rows)) {
      const means = meansOf(lap.traces[name]),
        degrees = (180 / Math.PI) * means.heading,
        texts = [shortLength(means.recent, lap.scale).text, shortLength(means.position, lap.scale).text];
      texts.push(Number.isFinite(degrees) ? degrees.toFixed(2) : "–");
      const lost = lap.world.boats[name].lost;
      cells.forEach((cell, i) => show(cell, lost ? ["lost", "", ""][i] : texts[i]));
    }
    showDynamics(panels.estimate, estimateRows(lap, this.now));
  }
}

window.lab = { app: new App(), meansOf, CONTROLLERS };
