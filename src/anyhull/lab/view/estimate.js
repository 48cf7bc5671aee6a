// The student's estimate of dynamics and sea beside the true.

/** Rows of the estimate: true value, estimate and its standard deviation in SI, and where they lie in their range. */
function estimateRows(lap, now) {
  const { student } = lap.world.boats,
    found = student.controller.dynamics(),
    plant = plantOf(now);
  return [...componentRows(lap, now, plant, found), ...seaRows(lap, now, plant, found.sea, student.state[2])];
}

/** The nine components; their range is that of the training, on the scale of the policy's privileged vector. */
function componentRows(lap, now, plant, found) {
  const left = [now.surge, now.sway, now.yaw],
    truth = effectiveComponents(plant, lap.scale).map((value, i) => (i < 3 ? value * left[i] : value)),
    forPolicy = (e) => scaledBoat({ e, drag: NO_DRAG }, lap.scale, lap.vessel.derating).e,
    own = forPolicy(truth),
    guess = forPolicy(found.e);
  return COMPONENTS.map((name, i) => {
    const [low, high] = DATA.envelope[name].map((value) => logarithmic(i, value)).sort((a, b) => a - b);
    const place = (value) => (logarithmic(i, value) - low) / (high - low);
    // The deviation of asinh(c) is that of c over sqrt(1 + c²), in the policy's units and in SI.
    const spread = found.spread[i] * (i < 8 ? Math.abs(found.e[i]) : Math.hypot(1, found.e[8])),
      half = i < 8 ? found.spread[i] : (spread * lap.scale.length ** 2) / Math.hypot(1, guess[8]);
    return {
      truth: truth[i],
      guess: found.e[i],
      spread,
      at: place(own[i]),
      middle: place(guess[i]),
      half: (2 * half) / (high - low),
    };
  });
}

/** A component on the scale of the privileged vector. */
function logarithmic(i, value) {
  return i === 8 ? Math.asinh(value) : Math.log(Math.max(i === 7 ? -value : value, 1e-12));
}

/** Delay, current and wind force in the body frame, forces in per cent of the limits. */
function seaRows(lap, now, plant, sea, psi) {
  if (!sea) return [];
  const { length, time } = lap.scale,
    { water } = lap.world,
    wind = steadyWind(now.wind, (now.bearing * Math.PI) / 180, psi, plant),
    speed = (0.4 * length) / time;
  const row = (truth, guess, spread, low, high) => {
    const place = (value) => (value - low) / (high - low);
    return { truth, guess, spread, at: place(truth), middle: place(guess), half: (2 * spread) / (high - low) };
  };
  return [
    row(now.delay * time, sea.delay, sea.delaySpread, 0, 0.5 * time),
    ...toBody(...water.current, psi).map((value, i) => row(value, sea.current[i], sea.currentSpread[i], -speed, speed)),
    ...water.force.map((value, i) =>
      row(100 * (value + wind[i]), 100 * sea.force[i], 100 * sea.forceSpread[i], -30, 30),
    ),
  ];
}

/** e with nonlinear drag as damping rates at the working point. */
function effectiveComponents(boat, { length, time }) {
  const [u, v, r] = DATA.workingPoint;
  const speeds = [(u * length) / time, (v * length) / time, r / time];
  return boat.e.map((value, i) => {
    if (i < 3 || i > 5) return value;
    const s = speeds[i - 3];
    return value + boat.drag[0][i - 3] * s + boat.drag[1][i - 3] * s * s;
  });
}
