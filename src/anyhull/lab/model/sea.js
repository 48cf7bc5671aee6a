// Current, wind and waves as Ornstein-Uhlenbeck processes, and the actuator delay, as anyhull.sea has them.

/** One exact step of an Ornstein-Uhlenbeck process of standard deviation bound / 2, before clipping. */
function drift(value, normal, bound, decay, dt) {
  const keep = Math.exp(-decay * dt);
  return keep * value + Math.sqrt(1 - keep * keep) * (bound / 2) * normal;
}

/** A current with its magnitude limited. */
function clipCurrent([x, y], bound) {
  const scale = Math.min(1, bound / Math.sqrt(x * x + y * y + 1e-12));
  return [x * scale, y * scale];
}

/** Current (inertial frame, m/s) and wind force (body frame, fractions of the limits) in their stationary state. */
function startSea(sea, normals) {
  return {
    current: clipCurrent([(sea.current / 2) * normals[0], (sea.current / 2) * normals[1]], sea.current),
    force: [2, 3, 4].map((i) => clip((sea.force / 2) * normals[i], -sea.force, sea.force)),
  };
}

/** The same one control period later. */
function driftSea(water, sea, normals, dt) {
  const current = water.current.map((c, i) => drift(c, normals[i], sea.current, sea.currentDecay, dt));
  const force = water.force.map((f, i) =>
    clip(drift(f, normals[2 + i], sea.force, sea.forceDecay, dt), -sea.force, sea.force),
  );
  return { current: clipCurrent(current, sea.current), force };
}

/**
 * The active command in each of `parts` equal parts of the coming control period. `commands` are those issued at the
 * start of this and of earlier periods, newest first; a part in which the command changes gets the time average.
 */
function delayed(commands, delay, parts, period) {
  const width = period / parts,
    active = [];
  for (let part = 0; part < parts; part++) {
    const begin = part * width,
      end = (part + 1) * width,
      sum = [0, 0, 0];
    commands.forEach((command, i) => {
      const overlap = Math.min(end, delay - (i - 1) * period) - Math.max(begin, delay - i * period);
      const share = clip(overlap, 0, width) / width;
      for (let axis = 0; axis < 3; axis++) sum[axis] += share * command[axis];
    });
    active.push(sum);
  }
  return active;
}

/** A steady wind's force in the body frame, fractions of the limits; `strength` is a fraction of the surge limit. */
function steadyWind(strength, direction, psi, boat) {
  if (strength === 0) return [0, 0, 0];
  const [ahead, aside] = toBody(strength * Math.cos(direction), strength * Math.sin(direction), psi);
  // The same force in newtons is another fraction of the sway limit: alpha · inertia is the limit.
  return [ahead, (aside * boat.e[0]) / (boat.e[1] * boat.e[6]), 0];
}
