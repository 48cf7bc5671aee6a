// Equations of motion in normalized form and their integration, as anyhull.dynamics has them.
// A state is (x, y, psi, u, v, r): pose in the inertial frame, velocity in the body frame. SI units.
// A boat is its nine components e with quadratic and cubic damping per unit of inertia.

/** Body-frame acceleration at a velocity through the water; force in fractions of the actuator limits. */
function acceleration(u, v, r, force, boat) {
  const [alphaU, alphaV, alphaR, dU, dV, dR, cRv, cRu, cUv] = boat.e;
  const [[qU, qV, qR], [kU, kV, kR]] = boat.drag;
  return [
    alphaU * force[0] - (dU + qU * Math.abs(u) + kU * u * u) * u + cRv * r * v,
    alphaV * force[1] - (dV + qV * Math.abs(v) + kV * v * v) * v + cRu * r * u,
    alphaR * force[2] - (dR + qR * Math.abs(r) + kR * r * r) * r + cUv * u * v,
  ];
}

/** The normalized command that gives a boat moving at this velocity this acceleration in still water. */
function inverseDynamics(velocity, change, boat) {
  const [u, v, r] = velocity;
  const [alphaU, alphaV, alphaR, dU, dV, dR, cRv, cRu, cUv] = boat.e;
  const [[qU, qV, qR], [kU, kV, kR]] = boat.drag;
  return [
    (change[0] + (dU + qU * Math.abs(u) + kU * u * u) * u - cRv * r * v) / alphaU,
    (change[1] + (dV + qV * Math.abs(v) + kV * v * v) * v - cRu * r * u) / alphaV,
    (change[2] + (dR + qR * Math.abs(r) + kR * r * r) * r - cUv * u * v) / alphaR,
  ];
}

/** Time derivative of the state: kinematics, and the acceleration relative to the water. */
function derivative(state, force, boat, current) {
  const sin = Math.sin(state[2]),
    cos = Math.cos(state[2]);
  const u = state[3],
    v = state[4],
    r = state[5];
  const through = [u - (cos * current[0] + sin * current[1]), v - (cos * current[1] - sin * current[0])];
  const a = acceleration(through[0], through[1], r, force, boat);
  return [cos * u - sin * v, sin * u + cos * v, r, a[0], a[1], a[2]];
}

/** One step of the classical fourth-order Runge-Kutta method. */
function rungeKutta(state, force, boat, current, dt) {
  const along = (h, slope) => state.map((value, i) => value + h * slope[i]);
  const k1 = derivative(state, force, boat, current);
  const k2 = derivative(along(dt / 2, k1), force, boat, current);
  const k3 = derivative(along(dt / 2, k2), force, boat, current);
  const k4 = derivative(along(dt, k3), force, boat, current);
  return state.map((value, i) => value + (dt / 6) * (k1[i] + 2 * (k2[i] + k3[i]) + k4[i]));
}

/** The state after dt: one Runge-Kutta step for each of the forces, held over equal parts of dt. */
function step(state, forces, boat, current, dt) {
  for (const force of forces) state = rungeKutta(state, force, boat, current, dt / forces.length);
  return state;
}
