// The closed loop as anyhull.simulate has it, for several controllers on the same sea, each with a boat of its own.

/**
 * The state of a run. `controllers` by name; `normals` returns the next standard normal; `delayBound` is the longest
 * actuator delay that will be asked for, s.
 */
function startWorld({ vessel, reference, controllers, sea, normals, delayBound }) {
  const period = vessel.scale.time * DATA.period,
    draw = (count) => Array.from({ length: count }, normals);
  const inTransit = 1 + Math.ceil(delayBound / period - 1e-9);
  const boats = {};
  for (const [name, controller] of Object.entries(controllers)) {
    const state = reference.at(0);
    boats[name] = {
      controller,
      state,
      before: state,
      commands: Array.from({ length: inTransit }, () => [0, 0, 0]),
      command: [0, 0, 0],
      acting: [0, 0, 0],
      lost: false,
    };
  }
  return { vessel, reference, period, draw, k: 0, boats, water: startSea(sea, draw(5)), sea };
}

const NO_WIND = { strength: 0, direction: 0 };

/**
 * One control period. `plant` is the boat as it is now, `sea` the bounds of current and force, `delay` in s, `wind` a
 * steady wind {strength, direction}, `authority` the share of the force that is left on each axis, and `dead` the
 * thrusters that give none.
 */
function stepWorld(world, { plant, sea, delay, wind = NO_WIND, authority = [1, 1, 1], dead = [] }) {
  const { period, reference } = world,
    window = windowOf(reference, world.k * period, period);
  const parts = substeps(plant, world.vessel.scale, period),
    { current, force } = world.water;
  world.window = window;
  for (const boat of Object.values(world.boats)) {
    boat.before = boat.state;
    if (boat.lost) continue;
    const state = boat.state;
    boat.command = boat.controller.step(state.slice(0, 3), state.slice(3), window);
    boat.commands = [boat.command, ...boat.commands.slice(0, -1)];
    const steady = steadyWind(wind.strength, wind.direction, state[2], plant);
    const active = delayed(boat.commands, delay, parts, period);
    const forces = active.map((tau) =>
      delivered(world.vessel, tau, dead).map((value, i) => value * authority[i] + force[i] + steady[i]),
    );
    boat.acting = active[active.length - 1];
    const next = step(state, forces, plant, current, period);
    const far = 300 * world.vessel.scale.length;
    boat.lost = !next.every(Number.isFinite) || Math.hypot(next[0] - window[0][0], next[1] - window[0][1]) > far;
    if (!boat.lost) boat.state = next;
  }
  world.water = driftSea(world.water, sea, world.draw(5), period);
  world.k += 1;
}

/** Errors in position (m) and heading (rad) from a reference state, and the offset in the reference's frame. */
function errorsOf(state, reference) {
  const offset = toBody(state[0] - reference[0], state[1] - reference[1], reference[2]);
  return { position: Math.hypot(...offset), heading: Math.abs(wrap(state[2] - reference[2])), offset };
}
