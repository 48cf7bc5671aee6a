// Forces of single thrusters, for vessels whose layout is known.

/** Least-squares forces [ahead, to port] (N) of the thrusters, in their limits' measure, that give a body force. */
function allocate(vessel, command) {
  const limits = [vessel.Fx, vessel.Fy, vessel.Mz],
    tau = command.map((share, i) => share * limits[i]),
    columns = columnsOf(vessel);
  const gram = [0, 1, 2].map((a) =>
    [0, 1, 2].map((b) => columns.reduce((sum, { wrench }) => sum + wrench[a] * wrench[b], 0) + regular(limits, a, b)),
  );
  const multipliers = solve(
    gram,
    tau.map((value) => [value]),
  );
  const forces = vessel.thrusters.map(() => [0, 0]);
  for (const { i, force, wrench } of columns) {
    const share = wrench.reduce((sum, value, a) => sum + value * multipliers[a][0], 0);
    forces[i][0] += share * force[0];
    forces[i][1] += share * force[1];
  }
  return forces;
}

/** Each direction that a thruster can push in: its largest force there, and the wrench (Fx, Fy, Mz) of it. */
function columnsOf(vessel) {
  return vessel.thrusters.flatMap(({ kind, x, y, angle, forward }, i) => {
    const turned = (angle * Math.PI) / 180,
      ways =
        kind === "azimuth"
          ? [
              [1, 0],
              [0, 1],
            ]
          : [[Math.cos(turned), Math.sin(turned)]];
    return ways.map(([c, s]) => {
      const force = [c * forward, s * forward];
      return { i, force, wrench: [...force, x * force[1] - y * force[0]] };
    });
  });
}

function regular(limits, a, b) {
  return a === b ? 1e-9 * limits[a] ** 2 : 0;
}

/** What reaches the water of a command when some thrusters are dead, and the allocation does not know. */
function delivered(vessel, command, dead) {
  if (!dead.length) return command;
  const lost = [0, 0, 0];
  allocate(vessel, command).forEach(([fx, fy], i) => {
    if (!dead.includes(i)) return;
    const { x, y } = vessel.thrusters[i];
    lost[0] += fx / vessel.Fx;
    lost[1] += fy / vessel.Fy;
    lost[2] += (x * fy - y * fx) / vessel.Mz;
  });
  return command.map((value, i) => value - lost[i]);
}
