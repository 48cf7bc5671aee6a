// The plan view: path, traces, and every boat from above at its true size with the forces that act on it.

/** Points of a path, or none. */
function outlineOf(reference) {
  if (!reference.path) return [];
  return Array.from({ length: 401 }, (_, i) => reference.at((i / 400) * reference.duration));
}

/** Bounds of the path with a margin, m. */
function boundsOf(lap) {
  const unit = lap.scale.length,
    margin = 1.6 * unit,
    points = outlineOf(lap.reference);
  if (!points.length) return [-3 * unit, -2.2 * unit, 3 * unit, 2.2 * unit];
  const xs = points.map((point) => point[0]),
    ys = points.map((point) => point[1]);
  return [Math.min(...xs) - margin, Math.min(...ys) - margin, Math.max(...xs) + margin, Math.max(...ys) + margin];
}

/** The map from metres to pixels: the whole path, or around the boat in focus. */
function cameraOf(lap, bounds, width, height, following, centre) {
  const [left, bottom, right, top] = bounds;
  if (following)
    return { zoom: Math.min(width, height) / (6 * sizeOf(lap.vessel)[0]), x: centre[0], y: centre[1], width, height };
  const zoom = Math.min(width / (right - left), height / (top - bottom));
  return { zoom, x: (left + right) / 2, y: (bottom + top) / 2, width, height };
}

const toPixels = (camera, x, y) => [
  camera.width / 2 + (x - camera.x) * camera.zoom,
  camera.height / 2 - (y - camera.y) * camera.zoom,
];
const toMetres = (camera, px, py) => [
  camera.x + (px - camera.width / 2) / camera.zoom,
  camera.y - (py - camera.height / 2) / camera.zoom,
];

/** A state between two, for smooth motion at the screen's rate. */
function between(before, after, share) {
  const state = before.map((value, i) => value + share * (after[i] - value));
  state[2] = before[2] + share * wrap(after[2] - before[2]);
  return state;
}

function drawPlan(canvas, lap, view) {
  const { pen, width, height } = prepare(canvas),
    { settings, share } = view;
  const states = {};
  for (const name of CONTROLLERS)
    states[name] = between(lap.world.boats[name].before, lap.world.boats[name].state, share);
  const camera = cameraOf(lap, view.bounds, width, height, view.following, states[settings.focus]);
  view.camera = camera;
  drawGrid(pen, camera);
  drawPath(pen, camera, view);
  const shown = CONTROLLERS.filter((name) => !settings.hidden.includes(name));
  const order = [
    ...shown.filter((name) => name !== settings.focus).reverse(),
    ...shown.filter((name) => name === settings.focus),
  ];
  for (const name of order) drawTrace(pen, camera, lap, name);
  drawGhost(pen, camera, lap, view);
  for (const name of order) {
    if (lap.world.boats[name].lost) continue;
    drawHull(pen, camera, lap.vessel, states[name], colours[name], name === settings.focus);
    if (name === settings.focus) drawForces(pen, camera, lap, states[name], lap.world.boats[name].acting, view.now);
  }
  drawWater(pen, camera, lap, view.now);
  drawScaleBar(pen, camera);
  if (width > 480) drawInset(pen, width, lap, order);
  if (view.stroke) drawStroke(pen, camera, view.stroke);
}

/** A step of 1, 2 or 5 times a power of ten, at least so large. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((times) => times * power).find((value) => value >= least * 0.999);
}

function drawGrid(pen, camera) {
  const step = niceStep(60 / camera.zoom),
    [left, top] = toMetres(camera, 0, 0),
    [right, bottom] = toMetres(camera, camera.width, camera.height);
  pen.strokeStyle = colours.faint;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let x = Math.ceil(left / step) * step; x < right; x += step) {
    const px = Math.round(toPixels(camera, x, 0)[0]) + 0.5;
    pen.moveTo(px, 0);
    pen.lineTo(px, camera.height);
  }
  for (let y = Math.ceil(bottom / step) * step; y < top; y += step) {
    const py = Math.round(toPixels(camera, 0, y)[1]) + 0.5;
    pen.moveTo(0, py);
    pen.lineTo(camera.width, py);
  }
  pen.stroke();
}

function drawPath(pen, camera, view) {
  pen.strokeStyle = colours.path;
  pen.lineWidth = 1.5;
  pen.setLineDash([]);
  pen.beginPath();
  view.outline.forEach(([x, y], i) =>
    i ? pen.lineTo(...toPixels(camera, x, y)) : pen.moveTo(...toPixels(camera, x, y)),
  );
  pen.stroke();
}

function drawTrace(pen, camera, lap, name) {
  const { x, y } = lap.traces[name],
    period = lap.world.period;
  const duration = lap.reference.path ? lap.reference.duration : (30 * period) / DATA.period;
  const first = Math.max(0, x.length - Math.ceil(duration / period));
  pen.strokeStyle = colours[name];
  pen.lineWidth = 1.6;
  pen.setLineDash(DASHES[name]);
  pen.beginPath();
  for (let i = first; i < x.length; i++) {
    const [px, py] = toPixels(camera, x[i], y[i]);
    if (i === first) pen.moveTo(px, py);
    else pen.lineTo(px, py);
  }
  pen.stroke();
  pen.setLineDash([]);
}

/** Where the boat should be: a cross at the reference. */
function drawGhost(pen, camera, lap, view) {
  const t = (lap.world.k - 1 + view.share) * lap.world.period,
    size = 0.5 * sizeOf(lap.vessel)[0];
  inBody(pen, camera, lap.reference.at(Math.max(t, 0)), () => {
    pen.strokeStyle = colours.muted;
    pen.lineWidth = 1 / camera.zoom;
    hullOutline(pen, ...sizeOf(lap.vessel));
    pen.setLineDash([3 / camera.zoom, 3 / camera.zoom]);
    pen.stroke();
    pen.setLineDash([]);
    pen.beginPath();
    pen.moveTo(-0.25 * size, 0);
    pen.lineTo(0.25 * size, 0);
    pen.moveTo(0, -0.25 * size);
    pen.lineTo(0, 0.25 * size);
    pen.stroke();
  });
}

/** Present current and steady wind as arrows in the corner. */
function drawWater(pen, camera, lap, settings) {
  const [cx, cy] = lap.world.water.current,
    speed = Math.hypot(cx, cy),
    unit = lap.scale.length / lap.scale.time;
  const row = (y, label, dx, dy, value) => {
    pen.fillStyle = pen.strokeStyle = colours.muted;
    pen.lineWidth = 1.4;
    pen.beginPath();
    pen.arc(26, y, 13, 0, 7);
    pen.globalAlpha = 0.35;
    pen.stroke();
    pen.globalAlpha = 1;
    drawArrow(pen, 26 - dx / 2, y + dy / 2, dx, -dy, 6);
    pen.textBaseline = "middle";
    pen.fillText(`${label} ${value}`, 46, y);
  };
  const length = clip((speed / (0.2 * unit)) * 22, 0, 24);
  row(24, "Current", speed ? (length * cx) / speed : 0, speed ? (length * cy) / speed : 0, `${speed.toFixed(2)} m/s`);
  if (settings.wind === 0) return;
  const angle = (settings.bearing * Math.PI) / 180,
    reach = clip(settings.wind * 120, 6, 24);
  row(
    58,
    "Steady wind",
    reach * Math.cos(angle),
    reach * Math.sin(angle),
    `${figures(settings.wind * lap.vessel.Fx)} N`,
  );
}

function drawScaleBar(pen, camera) {
  const metres = niceStep(70 / camera.zoom),
    length = metres * camera.zoom,
    x = 14,
    y = camera.height - 14;
  pen.strokeStyle = pen.fillStyle = colours.muted;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x, y - 4);
  pen.lineTo(x, y);
  pen.lineTo(x + length, y);
  pen.lineTo(x + length, y - 4);
  pen.stroke();
  pen.textBaseline = "bottom";
  pen.fillText(`${metres >= 1 ? metres : metres.toFixed(1)} m`, x + 5, y - 3);
}

function drawStroke(pen, camera, stroke) {
  pen.strokeStyle = colours.ink;
  pen.lineWidth = 2;
  pen.setLineDash([4, 4]);
  pen.beginPath();
  for (const [x, y] of stroke) pen.lineTo(...toPixels(camera, x, y));
  pen.stroke();
  pen.setLineDash([]);
}
