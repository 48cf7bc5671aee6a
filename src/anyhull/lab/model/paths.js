// Plane curves by arc length, as anyhull.paths has them: straights and arcs, smooth curves, splines.
// A path gives `on(s)`: x, y, course and curvature at a distance s along one lap.

/** A closed sequence of straights and circular arcs from the origin along x. */
function arcs(lengths, curvatures) {
  const starts = [0],
    poses = [[0, 0, 0]];
  for (let i = 0; i < lengths.length; i++) {
    starts.push(starts[i] + lengths[i]);
    poses.push(alongArc(...poses[i], lengths[i], curvatures[i]));
  }
  return {
    length: starts[lengths.length],
    on(s) {
      const i = clip(searchSorted(starts, s) - 1, 0, curvatures.length - 1);
      return [...alongArc(...poses[i], s - starts[i], curvatures[i]), curvatures[i]];
    },
  };
}

/** The pose after a length along an arc: a chord in the direction of the mean course. */
function alongArc(x, y, course, length, curvature) {
  const turn = length * curvature;
  const chord = length * (turn === 0 ? 1 : Math.sin(turn / 2) / (turn / 2));
  return [x + chord * Math.cos(course + turn / 2), y + chord * Math.sin(course + turn / 2), course + turn];
}

/** A smooth closed curve p -> [point, first, second derivative], reparameterized by arc length; `knots` span p. */
function smoothCurve(curve, knots, samples = 4000) {
  const first = knots[0],
    last = knots[knots.length - 1],
    width = (last - first) / (samples - 1);
  const even = Array.from({ length: samples }, (_, i) => (i === samples - 1 ? last : first + i * width));
  const parameter = [...new Set([...even, ...knots])].sort((a, b) => a - b);
  const slope = (p) => Math.hypot(...curve(p)[1]);
  const distance = [0],
    course = [];
  for (let i = 0; i + 1 < parameter.length; i++) {
    const p = parameter[i],
      q = parameter[i + 1];
    // Simpson's rule on each interval makes the arc length exact to rounding at this spacing.
    distance.push(distance[i] + ((q - p) * (slope(p) + 4 * slope((p + q) / 2) + slope(q))) / 6);
  }
  for (const p of parameter) {
    const d = curve(p)[1],
      angle = Math.atan2(d[1], d[0]),
      before = course[course.length - 1];
    course.push(before === undefined ? angle : before + wrap(angle - before));
  }
  return {
    length: distance[distance.length - 1],
    on(s) {
      const [point, d1, d2] = curve(interpolate(s, distance, parameter));
      const near = interpolate(s, distance, course);
      const speed = Math.hypot(...d1);
      const curvature = (d1[0] * d2[1] - d1[1] * d2[0]) / speed ** 3;
      return [...point, near + wrap(Math.atan2(d1[1], d1[0]) - near), curvature];
    },
  };
}

/** The periodic cubic spline through `values` at `knots`, whose last value is the first: p -> value and derivatives. */
function periodicSpline(knots, values) {
  const n = knots.length,
    h = [],
    slope = [];
  for (let i = 0; i + 1 < n; i++) {
    h.push(knots[i + 1] - knots[i]);
    slope.push(values[i].map((value, axis) => (values[i + 1][axis] - value) / h[i]));
  }
  const difference = (a, b) => a.map((value, axis) => 6 * (value - b[axis]));
  const matrix = Array.from({ length: n }, () => new Array(n).fill(0)),
    right = values.map(() => [0, 0]);
  for (let i = 1; i + 1 < n; i++) {
    matrix[i][i - 1] = h[i - 1];
    matrix[i][i] = 2 * (h[i - 1] + h[i]);
    matrix[i][i + 1] = h[i];
    right[i] = difference(slope[i], slope[i - 1]);
  }
  matrix[0][0] = 2 * (h[0] + h[n - 2]);
  matrix[0][1] = h[0];
  matrix[0][n - 2] = h[n - 2];
  right[0] = difference(slope[0], slope[n - 2]);
  matrix[n - 1][0] = -1;
  matrix[n - 1][n - 1] = 1;
  const second = solve(matrix, right);
  return (p) => {
    const i = clip(searchSorted(knots, p) - 1, 0, n - 2);
    const a = knots[i + 1] - p,
      b = p - knots[i],
      w = h[i],
      at = [0, 1];
    const l = second[i],
      r = second[i + 1],
      v = values[i],
      next = values[i + 1];
    return [
      at.map(
        (k) =>
          (l[k] * a ** 3 + r[k] * b ** 3) / (6 * w) +
          ((v[k] / w - (l[k] * w) / 6) * a + (next[k] / w - (r[k] * w) / 6) * b),
      ),
      at.map((k) => (r[k] * b ** 2 - l[k] * a ** 2) / (2 * w) + slope[i][k] - ((r[k] - l[k]) * w) / 6),
      at.map((k) => (l[k] * a + r[k] * b) / w),
    ];
  };
}
