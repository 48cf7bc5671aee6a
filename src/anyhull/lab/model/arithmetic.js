// Angles and rotations, as anyhull.backend has them.

/** The angle wrapped to [-pi, pi). */
function wrap(angle) {
  const turn = 2 * Math.PI;
  return ((((angle + Math.PI) % turn) + turn) % turn) - Math.PI;
}

/** An inertial-frame vector in the body frame at heading psi. */
function toBody(x, y, psi) {
  const sin = Math.sin(psi),
    cos = Math.cos(psi);
  return [cos * x + sin * y, cos * y - sin * x];
}

/** A body-frame vector at heading psi in the inertial frame. */
function toInertial(x, y, psi) {
  const sin = Math.sin(psi),
    cos = Math.cos(psi);
  return [cos * x - sin * y, sin * x + cos * y];
}

function clip(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** The number of sorted values that are at most x: where x would be inserted, to the right. */
function searchSorted(values, x) {
  let low = 0,
    high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Linear interpolation of (xs, ys) at x, constant beyond the ends. */
function interpolate(x, xs, ys) {
  const last = xs.length - 1;
  if (x <= xs[0]) return ys[0];
  if (x >= xs[last]) return ys[last];
  const i = Math.min(searchSorted(xs, x) - 1, last - 1);
  return ys[i] + ((ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i])) * (x - xs[i]);
}

/** The solution of the square system matrix · x = right for several right-hand columns, by elimination with pivots. */
function solve(matrix, right) {
  const n = matrix.length;
  const rows = matrix.map((row, i) => [...row, ...right[i]]);
  for (let i = 0; i < n; i++) {
    let pivot = i;
    for (let j = i + 1; j < n; j++) if (Math.abs(rows[j][i]) > Math.abs(rows[pivot][i])) pivot = j;
    [rows[i], rows[pivot]] = [rows[pivot], rows[i]];
    for (let j = i + 1; j < n; j++) {
      const share = rows[j][i] / rows[i][i];
      if (share !== 0) for (let k = i; k < rows[j].length; k++) rows[j][k] -= share * rows[i][k];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = n; k < rows[i].length; k++) {
      for (let j = i + 1; j < n; j++) rows[i][k] -= rows[i][j] * rows[j][k];
      rows[i][k] /= rows[i][i];
    }
  }
  return rows.map((row) => row.slice(n));
}
