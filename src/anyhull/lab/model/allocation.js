// Thruster forces that give a body force.

/** Forces of the thrusters in their limits' measure, least squares of all that give the body force. */
function allocate(vessel, acting) {
  const columns = [];
  vessel.thrusters.forEach(({ kind, x, y, angle, forward }, i) => {
    const turned = (angle * Math.PI) / 180;
    const ways =
      kind === "azimuth"
        ? [
            [1, 0],
            [0, 1],
          ]
        : [[Math.cos(turned), Math.sin(turned)]];
    for (const [c, s] of ways)
      columns.push({
        i,
        c: c * forward,
        s: s * forward,
        column: [c, s, x * s - y * c].map((value) => value * forward),
      });
  });
  const limits = [vessel.Fx, vessel.Fy, vessel.Mz],
    tau = acting.map((share, i) => share * limits[i]);
  const gram = [0, 1, 2].map((a) =>
    [0, 1, 2].map(
      (b) =>
        columns.reduce((sum, { column }) => sum + column[a] * column[b], 0) + (a === b ? 1e-9 * limits[a] ** 2 : 0),
    ),
  );
  const multipliers = solve(
    gram,
    tau.map((value) => [value]),
  );
  const forces = vessel.thrusters.map(() => [0, 0]);
  for (const { i, c, s, column } of columns) {
    const share = column.reduce((sum, value, a) => sum + value * multipliers[a][0], 0);
    forces[i][0] += share * c;
    forces[i][1] += share * s;
  }
  return forces;
}
