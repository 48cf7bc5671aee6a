// The student's estimate of the dynamics beside the true.

/** Rows of the estimate: symbol, meaning, unit, the true value and the estimate, and where they lie in the range. */
function estimateRows(lap, now) {
  const { student } = lap.world.boats,
    found = student.controller.dynamics(),
    plant = plantOf(now);
  const { length, time } = lap.scale,
    policy = (e) =>
      scaledBoat(
        {
          e,
          drag: [
            [0, 0, 0],
            [0, 0, 0],
          ],
        },
        lap.scale,
        lap.vessel.derating,
      ).e;
  const truth = effectiveComponents(plant, lap).map((value, i) =>
    i < 3 ? value * [now.surge, now.sway, now.yaw][i] : value,
  );
  const mapped = (i, value) =>
    i < 7 ? Math.log(Math.max(value, 1e-12)) : i === 7 ? Math.log(Math.max(-value, 1e-12)) : Math.asinh(value);
  const [own, guess] = [policy(truth), policy(found.e)];
  const rows = COMPONENTS.map((name, i) => {
    const bounds = DATA.envelope[name].map((value) => mapped(i, value)).sort((a, b) => a - b);
    const place = (value) => (value - bounds[0]) / (bounds[1] - bounds[0]);
    const sigma =
      i === 8 ? (found.spread[8] * Math.hypot(length ** 2, guess[8])) / Math.hypot(1, guess[8]) : found.spread[i];
    return {
      truth: truth[i],
      guess: found.e[i],
      spread: i === 8 ? found.spread[8] * Math.hypot(1, found.e[8]) : found.spread[i] * Math.abs(found.e[i]),
      at: place(mapped(i, own[i])),
      middle: place(mapped(i, guess[i])),
      half: (2 * sigma) / (bounds[1] - bounds[0]),
    };
  });
  const psi = student.state[2],
    wind = steadyWind(now.wind, (now.bearing * Math.PI) / 180, psi, plant);
  const current = toBody(...lap.world.water.current, psi),
    { sea } = found;
  const linear = (truth, guess, sigma, low, high) => ({
    truth,
    guess,
    spread: sigma,
    at: (truth - low) / (high - low),
    middle: (guess - low) / (high - low),
    half: (2 * sigma) / (high - low),
  });
  if (!sea) return rows;
  const speed = (0.4 * length) / time;
  rows.push(linear(now.delay * time, sea.delay, sea.delaySpread, 0, 0.5 * time));
  for (let i = 0; i < 2; i++) rows.push(linear(current[i], sea.current[i], sea.currentSpread[i], -speed, speed));
  for (let i = 0; i < 3; i++)
    rows.push(
      linear(
        ...[lap.world.water.force[i] + wind[i], sea.force[i], sea.forceSpread[i]].map((share) => 100 * share),
        -30,
        30,
      ),
    );
  return rows;
}

/** e with nonlinear drag as damping rates at the working point. */
function effectiveComponents(boat, lap) {
  const [length, time] = [lap.scale.length, lap.scale.time],
    [u, v, r] = DATA.workingPoint;
  const speeds = [(u * length) / time, (v * length) / time, r / time];
  return boat.e.map((value, i) => {
    if (i < 3 || i > 5) return value;
    const s = speeds[i - 3];
    return value + boat.drag[0][i - 3] * s + boat.drag[1][i - 3] * s * s;
  });
}
