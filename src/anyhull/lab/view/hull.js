// A boat from above at its true size, and the forces of its thrusters.

const ASSUMED_LENGTH = 0.9,
  ASSUMED_BEAM = 0.42; // of boats whose size is not published: in units of scale, in lengths

/** Length and beam of a vessel, m. */
function sizeOf(vessel) {
  const length = vessel.length ?? ASSUMED_LENGTH * vessel.scale.length;
  return [length, vessel.beam ?? ASSUMED_BEAM * length];
}

/** The outline of a hull: a square stern and a pointed bow. */
function hullOutline(pen, length, beam) {
  const a = length / 2,
    b = beam / 2;
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

function drawArrow(pen, x, y, dx, dy, head) {
  const length = Math.hypot(dx, dy);
  if (length < head * 0.4) return;
  const ux = dx / length,
    uy = dy / length,
    tip = Math.min(head, length);
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

/** The thrusters' forces where the layout is known, else surge and sway force and yaw moment; a cross is a dead one. */
function drawForces(pen, camera, lap, state, acting, settings) {
  const [length] = sizeOf(lap.vessel),
    reach = Math.max(0.9 * length, 26 / camera.zoom),
    head = Math.max(0.12 * length, 6 / camera.zoom),
    dot = Math.max(0.025 * length, 2 / camera.zoom),
    left = acting.map((share, i) => share * [settings.surge, settings.sway, settings.yaw][i]);
  inBody(pen, camera, state, () => {
    pen.strokeStyle = pen.fillStyle = colours.ink;
    pen.lineWidth = Math.max(0.03 * length, 1.6 / camera.zoom);
    const thrusters = lap.vessel.thrusters;
    if (!thrusters.length) {
      drawArrow(pen, 0, 0, reach * left[0], 0, head);
      drawArrow(pen, 0, 0, 0, reach * left[1], head);
      drawMoment(pen, 0.42 * length, left[2], head);
      return;
    }
    allocate(lap.vessel, left).forEach(([fx, fy], i) => {
      const { x, y, forward } = thrusters[i];
      if (settings.dead.includes(i)) return drawCross(pen, x, y, 1.6 * dot);
      pen.beginPath();
      pen.arc(x, y, dot, 0, 7);
      pen.fill();
      drawArrow(pen, x, y, (0.6 * reach * fx) / forward, (0.6 * reach * fy) / forward, head);
    });
  });
}

function drawCross(pen, x, y, size) {
  pen.beginPath();
  pen.moveTo(x - size, y - size);
  pen.lineTo(x + size, y + size);
  pen.moveTo(x - size, y + size);
  pen.lineTo(x + size, y - size);
  pen.stroke();
}

function drawMoment(pen, radius, share, head) {
  const angle = share * Math.PI * 0.9;
  if (Math.abs(angle) * radius < head * 0.4) return;
  pen.beginPath();
  pen.arc(0, 0, radius, 0, angle, angle < 0);
  pen.stroke();
  const x = radius * Math.cos(angle),
    y = radius * Math.sin(angle),
    way = Math.sign(angle);
  drawArrow(pen, x, y, -way * Math.sin(angle) * head, way * Math.cos(angle) * head, head);
}
