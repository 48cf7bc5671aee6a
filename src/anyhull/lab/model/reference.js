// Desired pose and velocity as functions of time, as anyhull.reference has them: closed paths at one speed, and a hold.

/** A closed path followed at one speed with the heading along it. */
function follow(path, speed) {
  const duration = path.length / speed,
    ends = [path.on(0)[2], path.on(path.length)[2]];
  return {
    path,
    speed,
    duration,
    at(t) {
      const laps = Math.floor(t / duration);
      const s = laps * path.length + speed * clip(t - laps * duration, 0, duration);
      const lap = Math.floor(s / path.length);
      const [x, y, course, curvature] = path.on(s - lap * path.length);
      return [x, y, course + lap * (ends[1] - ends[0]), speed, 0, speed * curvature];
    },
  };
}

/** The paper's rectangle, counter-clockwise from the middle of a long side. */
function roundedRectangle(length, width, radius, speed) {
  const corner = (Math.PI / 2) * radius,
    half = length / 2 - radius,
    side = width - 2 * radius;
  const lengths = [half, corner, side, corner, 2 * half, corner, side, corner, half];
  return follow(
    arcs(
      lengths,
      [0, 1, 0, 1, 0, 1, 0, 1, 0].map((arc) => arc / radius),
    ),
    speed,
  );
}

/** A circle to the left. */
function circle(radius, speed) {
  return follow(arcs([2 * Math.PI * Math.abs(radius)], [1 / radius]), speed);
}

/** The curve (L/2·sin p, W/2·sin 2p), starting at its crossing. */
function figureEight(length, width, speed) {
  const a = length / 2,
    b = width;
  const eight = (p) => [
    [a * Math.sin(p), (b / 2) * Math.sin(2 * p)],
    [a * Math.cos(p), b * Math.cos(2 * p)],
    [-a * Math.sin(p), -2 * b * Math.sin(2 * p)],
  ];
  return follow(smoothCurve(eight, [0, 2 * Math.PI]), speed);
}

/** A smooth closed path through waypoints (x, y). */
function through(waypoints, speed) {
  const points = [...waypoints, waypoints[0]],
    knots = [0];
  for (let i = 1; i < points.length; i++) {
    const gap = Math.sqrt((points[i][0] - points[i - 1][0]) ** 2 + (points[i][1] - points[i - 1][1]) ** 2);
    knots.push(knots[i - 1] + gap);
  }
  return follow(smoothCurve(periodicSpline(knots, points), knots), speed);
}

/** Station keeping at the origin. */
function hold(duration) {
  return { path: null, speed: 0, duration, at: () => [0, 0, 0, 0, 0, 0] };
}

/** The reference now and over the next ten control periods. */
function windowOf(reference, t, period) {
  return Array.from({ length: DATA.preview + 1 }, (_, i) => reference.at(t + period * i));
}
