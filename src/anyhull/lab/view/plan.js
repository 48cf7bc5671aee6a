// The plan view: path, traces, and every boat from above at its true size with the forces that act on it.

const ASSUMED_LENGTH = 0.9, ASSUMED_BEAM = 0.42; // of boats whose size is not published: in units of scale, in lengths

/** Length and beam of a vessel, m. */
function sizeOf(vessel) {
  const length = vessel.length ?? ASSUMED_LENGTH * vessel.scale.length;
  return [length, vessel.beam ?? ASSUMED_BEAM * length];
}

/** Bounds of the path with a margin, m. */
function boundsOf(lap) {
  const unit = lap.scale.length, margin = 1.6 * unit, points = [];
  if (!lap.reference.path) return [-3 * unit, -2.2 * unit, 3 * unit, 2.2 * unit];
  for (let i = 0; i <= 240; i++) points.push(lap.reference.at((i / 240) * lap.reference.duration));
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  return [Math.min(...xs) - margin, Math.min(...ys) - margin, Math.max(...xs) + margin, Math.max(...ys) + margin];
}

/** The map from metres to pixels: the whole path, or around the boat in focus. */
function cameraOf(lap, bounds, width, height, following, centre) {
  const [left, bottom, right, top] = bounds;
  if (following) return { zoom: Math.min(width, height) / (6 * sizeOf(lap.vessel)[0]), x: centre[0], y: centre[1], width, height };
  const zoom = Math.min(width / (right - left), height / (top - bottom));
  return { zoom, x: (left + right) / 2, y: (bottom + top) / 2, width, height };
}

const toPixels = (camera, x, y) => [camera.width / 2 + (x - camera.x) * camera.zoom, camera.height / 2 - (y - camera.y) * camera.zoom];
const toMetres = (camera, px, py) => [camera.x + (px - camera.width / 2) / camera.zoom, camera.y - (py - camera.height / 2) / camera.zoom];

/** A state between two, for smooth motion at the screen's rate. */
function between(before, after, share) {
  const state = before.map((value, i) => value + share * (after[i] - value));
  state[2] = before[2] + share * wrap(after[2] - before[2]);
  return state;
}

function drawPlan(canvas, lap, view) {
  const { pen, width, height } = prepare(canvas), { settings, share } = view;
  const states = {};
  for (const name of CONTROLLERS) states[name] = between(lap.world.boats[name].before, lap.world.boats[name].state, share);
  const camera = cameraOf(lap, view.bounds, width, height, view.following, states[settings.focus]);
  view.camera = camera;
  drawGrid(pen, camera);
  drawPath(pen, camera, lap, view);
  const shown = CONTROLLERS.filter((name) => !settings.hidden.includes(name));
  const order = [...shown.filter((name) => name !== settings.focus).reverse(), ...shown.filter((name) => name === settings.focus)];
  for (const name of order) drawTrace(pen, camera, lap, name);
  drawGhost(pen, camera, lap, view);
  for (const name of order) {
    if (lap.world.boats[name].lost) continue;
    drawHull(pen, camera, lap.vessel, states[name], colours[name], name === settings.focus);
    if (name === settings.focus) drawForces(pen, camera, lap, states[name], lap.world.boats[name].acting, colours[name], view.now);
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
  const step = niceStep(60 / camera.zoom), [left, top] = toMetres(camera, 0, 0), [right, bottom] = toMetres(camera, camera.width, camera.height);
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

function drawPath(pen, camera, lap, view) {
  pen.strokeStyle = colours.path;
  pen.lineWidth = 1.5;
  pen.setLineDash([]);
  pen.beginPath();
  view.outline.forEach(([x, y], i) => (i ? pen.lineTo(...toPixels(camera, x, y)) : pen.moveTo(...toPixels(camera, x, y))));
  pen.stroke();
}

function drawTrace(pen, camera, lap, name) {
  const { x, y } = lap.traces[name], period = lap.world.period;
  const duration = lap.reference.path ? lap.reference.duration : 30 * period / DATA.period;
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

/** The outline of a hull: a square stern and a pointed bow. */
function hullOutline(pen, length, beam) {
  const a = length / 2, b = beam / 2;
  pen.beginPath();
  pen.moveTo(-a, -0.82 * b);
  pen.quadraticCurveTo(-0.2 * a, -1.12 * b, 0.35 * a, -0.86 * b);
  pen.quadraticCurveTo(0.8 * a, -0.5 * b, a, 0);
  pen.quadraticCurveTo(0.8 * a, 0.5 * b, 0.35 * a, 0.86 * b);
  pen.quadraticCurveTo(-0.2 * a, 1.12 * b, -a, 0.82 * b);
  pen.closePath();
}

/** Draw in the boat's frame: metres, x ahead, y to port. */
function inBody(pen, camera, [x, y, psi], draw) {
  pen.save();
  pen.translate(...toPixels(camera, x, y));
  pen.scale(camera.zoom, -camera.zoom);
  pen.rotate(psi);
  draw();
  pen.restore();
}

function drawHull(pen, camera, vessel, state, colour, focused) {
  inBody(pen, camera, state, () => {
    hullOutline(pen, ...sizeOf(vessel));
    pen.fillStyle = colours.panel;
    pen.globalAlpha = focused ? 0.92 : 0.25;
    pen.fill();
    pen.globalAlpha = focused ? 0.2 : 0;
    pen.fillStyle = colour;
    pen.fill();
    pen.globalAlpha = focused ? 1 : 0.75;
    pen.strokeStyle = colour;
    pen.lineWidth = (focused ? 2 : 1.2) / camera.zoom;
    pen.stroke();
    pen.globalAlpha = 1;
  });
}

/** Where the boat should be: a cross at the reference. */
function drawGhost(pen, camera, lap, view) {
  const t = (lap.world.k - 1 + view.share) * lap.world.period, size = 0.5 * sizeOf(lap.vessel)[0];
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

function drawArrow(pen, x, y, dx, dy, head) {
  const length = Math.hypot(dx, dy);
  if (length < head * 0.4) return;
  const ux = dx / length, uy = dy / length, tip = Math.min(head, length);
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + dx - ux * tip * 0.7, y + dy - uy * tip * 0.7);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(x + dx, y + dy);
  pen.lineTo(x + dx - ux * tip - uy * tip * 0.45, y + dy - uy * tip + ux * tip * 0.45);
  pen.lineTo(x + dx - ux * tip + uy * tip * 0.45, y + dy - uy * tip - ux * tip * 0.45);
  pen.fill();
}

/** The thrusters' forces where the layout is known, else surge and sway force and yaw moment. */
function drawForces(pen, camera, lap, state, acting, colour, settings) {
  const [length] = sizeOf(lap.vessel), reach = Math.max(0.9 * length, 26 / camera.zoom), head = Math.max(0.12 * length, 6 / camera.zoom);
  inBody(pen, camera, state, () => {
    pen.strokeStyle = pen.fillStyle = colours.ink;
    pen.lineWidth = Math.max(0.035 * length, 1.6 / camera.zoom);
    const thrusters = lap.vessel.thrusters;
    if (thrusters.length) {
      allocate(lap.vessel, acting).forEach(([fx, fy], i) => {
        const { x, y, forward } = thrusters[i];
        pen.beginPath();
        pen.arc(x, y, 0.035 * length, 0, 7);
        pen.fill();
        drawArrow(pen, x, y, (reach * fx) / forward, (reach * fy) / forward, head);
      });
    } else {
      drawArrow(pen, 0, 0, reach * acting[0], 0, head);
      drawArrow(pen, 0, 0, 0, reach * acting[1], head);
      drawMoment(pen, 0.42 * length, acting[2], head);
    }
  });
}

function drawMoment(pen, radius, share, head) {
  const angle = share * Math.PI * 0.9;
  if (Math.abs(angle) * radius < head * 0.4) return;
  pen.beginPath();
  pen.arc(0, 0, radius, 0, angle, angle < 0);
  pen.stroke();
  const x = radius * Math.cos(angle), y = radius * Math.sin(angle), way = Math.sign(angle);
  drawArrow(pen, x, y, -way * Math.sin(angle) * head, way * Math.cos(angle) * head, head);
}

/** Forces of the thrusters in their limits' measure, least squares of all that give the body force. */
function allocate(vessel, acting) {
  const columns = [];
  vessel.thrusters.forEach(({ kind, x, y, angle, forward }, i) => {
    const turned = (angle * Math.PI) / 180;
    const ways = kind === "azimuth" ? [[1, 0], [0, 1]] : [[Math.cos(turned), Math.sin(turned)]];
    for (const [c, s] of ways) columns.push({ i, c: c * forward, s: s * forward, column: [c, s, x * s - y * c].map((value) => value * forward) });
  });
  const limits = [vessel.Fx, vessel.Fy, vessel.Mz], tau = acting.map((share, i) => share * limits[i]);
  const gram = [0, 1, 2].map((a) => [0, 1, 2].map((b) =>
    columns.reduce((sum, { column }) => sum + column[a] * column[b], 0) + (a === b ? 1e-9 * limits[a] ** 2 : 0)));
  const multipliers = solve(gram, tau.map((value) => [value]));
  const forces = vessel.thrusters.map(() => [0, 0]);
  for (const { i, c, s, column } of columns) {
    const share = column.reduce((sum, value, a) => sum + value * multipliers[a][0], 0);
    forces[i][0] += share * c;
    forces[i][1] += share * s;
  }
  return forces;
}

/** Present current and steady wind as arrows in the corner. */
function drawWater(pen, camera, lap, settings) {
  const [cx, cy] = lap.world.water.current, speed = Math.hypot(cx, cy), unit = lap.scale.length / lap.scale.time;
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
  const angle = (settings.bearing * Math.PI) / 180, reach = clip(settings.wind * 120, 6, 24);
  row(58, "Steady wind", reach * Math.cos(angle), reach * Math.sin(angle), `${figures(settings.wind * lap.vessel.Fx)} N`);
}

function drawScaleBar(pen, camera) {
  const metres = niceStep(70 / camera.zoom), length = metres * camera.zoom, x = 14, y = camera.height - 14;
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

/** The last seconds of the position error, magnified: ahead is up, in the reference's frame. */
function drawInset(pen, width, lap, names) {
  const radius = 52, x = width - radius - 14, y = radius + 14, recent = 30;
  let largest = 1e-4;
  for (const name of names) {
    const { error } = lap.traces[name];
    if (!lap.world.boats[name].lost) largest = Math.max(largest, ...error.slice(-recent));
  }
  const ring = niceStep(largest);
  pen.save();
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fillStyle = colours.panel;
  pen.globalAlpha = 0.85;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.stroke();
  pen.beginPath();
  pen.arc(x, y, radius / 2, 0, 7);
  pen.moveTo(x - radius, y);
  pen.lineTo(x + radius, y);
  pen.moveTo(x, y - radius);
  pen.lineTo(x, y + radius);
  pen.stroke();
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.clip();
  for (const name of names) {
    const { ahead, aside } = lap.traces[name], first = Math.max(0, ahead.length - recent);
    pen.strokeStyle = pen.fillStyle = colours[name];
    pen.lineWidth = 1.6;
    pen.beginPath();
    for (let i = first; i < ahead.length; i++) pen.lineTo(x - (aside[i] / ring) * radius, y - (ahead[i] / ring) * radius);
    pen.stroke();
    if (!ahead.length) continue;
    pen.beginPath();
    pen.arc(x - (aside.at(-1) / ring) * radius, y - (ahead.at(-1) / ring) * radius, 3, 0, 7);
    pen.fill();
  }
  pen.restore();
  const { unit } = shortLength(ring, lap.scale), value = unit === "m" ? ring : 100 * ring;
  pen.fillStyle = colours.muted;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.fillText(`Error, ring ${Number(value.toPrecision(1))} ${unit}`, x, y + radius + 5);
  pen.textAlign = "left";
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
