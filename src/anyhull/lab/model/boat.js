// A boat as its nine components e, its nonlinear drag, and what they mean in kilograms and newtons.

const COMPONENTS = ["alpha_u", "alpha_v", "alpha_r", "inv_tau_u", "inv_tau_v", "inv_tau_r", "c_rv", "c_ru", "c_uv"];

const NO_DRAG = [
  [0, 0, 0],
  [0, 0, 0],
];

/** The boat of a vessel's physical parameters. */
function boatOf(vessel) {
  const h = vessel.hydrodynamics;
  const m11 = vessel.m - h.X_udot,
    m22 = vessel.m - h.Y_vdot,
    m66 = h.I_comb;
  return {
    e: [
      vessel.Fx / m11,
      vessel.Fy / m22,
      vessel.Mz / m66,
      h.X_u / m11,
      h.Y_v / m22,
      h.N_r / m66,
      m22 / m11,
      -m11 / m22,
      (h.Y_vdot - h.X_udot) / m66,
    ],
    drag: [
      [h.X_uu / m11, h.Y_vv / m22, h.N_rr / m66],
      [h.X_uuu / m11, h.Y_vvv / m22, h.N_rrr / m66],
    ],
    mass: vessel.m,
    m11,
    m66,
  };
}

/** Inertia in surge, sway and yaw (kg, kg, kg·m²): e fixes it up to the two scales m11 and m66. */
function inertiaOf(boat) {
  return [boat.m11, boat.e[6] * boat.m11, boat.m66];
}

/** The boat with other components e, at the same inertia in surge and yaw. */
function withComponents(boat, e) {
  return { ...boat, e: [...e] };
}

/** The boat with `times` its mass, spread as its own is: m and the yaw inertia grow, added mass stays. */
function laden(boat, times) {
  if (times === 1) return boat;
  const [m11, m22, m66] = inertiaOf(boat),
    load = (times - 1) * boat.mass;
  const shares = [m11 / (m11 + load), m22 / (m22 + load), 1 / times];
  const scaled = (values) => values.map((value, i) => value * shares[i]);
  const cRv = (m22 + load) / (m11 + load);
  return {
    e: [...scaled(boat.e.slice(0, 3)), ...scaled(boat.e.slice(3, 6)), cRv, -1 / cRv, boat.e[8] / times],
    drag: [scaled(boat.drag[0]), scaled(boat.drag[1])],
    mass: times * boat.mass,
    m11: m11 + load,
    m66: times * m66,
  };
}

/** The boat in the policy's units of `length` m and `time` s, of whose limits the shares `derating` are used. */
function scaledBoat(boat, scale, derating = [1, 1, 1]) {
  const l = scale.length,
    T = scale.time,
    linear = (T * T) / l,
    cubic = (l * l) / T;
  const e = boat.e,
    [q, k] = boat.drag;
  return {
    ...boat,
    e: [
      e[0] * linear * derating[0],
      e[1] * linear * derating[1],
      e[2] * T * T * derating[2],
      e[3] * T,
      e[4] * T,
      e[5] * T,
      e[6],
      e[7],
      e[8] * l * l,
    ],
    drag: [
      [q[0] * l, q[1] * l, q[2]],
      [k[0] * cubic, k[1] * cubic, k[2] / T],
    ],
  };
}

/** The speed s at which linear·s + quadratic·s² + cubic·s³ = alpha, by bisection. */
function terminalSpeed(alpha, linear, quadratic, cubic) {
  if (alpha === 0) return 0;
  if (linear === 0 && quadratic === 0 && cubic === 0) return Infinity;
  const drag = (s) => (linear + (quadratic + cubic * s) * s) * s;
  let low = 0,
    high = 1;
  while (drag(high) < alpha) high *= 2;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if (drag(middle) < alpha) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Terminal speeds under full command on one axis at a time. */
function topSpeeds(boat) {
  return [0, 1, 2].map((i) => terminalSpeed(boat.e[i], boat.e[3 + i], boat.drag[0][i], boat.drag[1][i]));
}

/** Upper bound on the damping rate at all speeds that the actuators can reach, 1/s. */
function stiffness(boat) {
  const [u, , r] = topSpeeds(boat).map((speed) => Math.min(speed, 30));
  const [quadratic, cubic] = boat.drag;
  const sway = terminalSpeed(boat.e[1] - boat.e[7] * u * r, boat.e[4], quadratic[1], cubic[1]);
  const speeds = [u, Math.min(sway, 30), r];
  const rates = speeds.map((s, i) => boat.e[3 + i] + 2 * quadratic[i] * s + 3 * cubic[i] * s * s);
  return Math.max(...rates);
}

/** Number of Runge-Kutta steps in a period: each at most 20 ms of the boat's time unit, and 0.7 / damping rate. */
function substeps(boat, scale, period) {
  const longest = DATA.substep * scale.time;
  return Math.max(Math.ceil(period / longest - 1e-9), Math.ceil((period * stiffness(boat)) / 0.7));
}
