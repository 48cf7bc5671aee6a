// A small quadratic program with bounds: projected Newton steps on the free variables.

/** The Cholesky factor of the rows and columns `free` of a symmetric matrix (n wide); null if not positive. */
function cholesky(matrix, n, free) {
  const size = free.length,
    factor = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = matrix[free[i] * n + free[j]];
      for (let k = 0; k < j; k++) sum -= factor[i * size + k] * factor[j * size + k];
      if (i !== j) factor[i * size + j] = sum / factor[j * size + j];
      else if (sum > 0) factor[i * size + i] = Math.sqrt(sum);
      else return null;
    }
  }
  return factor;
}

/** x with factor · factorᵀ · x = right. */
function choleskySolve(factor, right) {
  const n = right.length,
    x = Float64Array.from(right);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i] -= factor[i * n + k] * x[k];
    x[i] /= factor[i * n + i];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= factor[k * n + i] * x[k];
    x[i] /= factor[i * n + i];
  }
  return x;
}

/** The minimum of dᵀ H d / 2 + gᵀ d over low <= d <= high, from d = 0; null if H is not positive definite. */
function boxQuadratic(H, g, low, high, iterations = 50) {
  const n = g.length;
  let d = new Float64Array(n);
  const gradientAt = (point) => {
    const gradient = Float64Array.from(g);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) gradient[i] += H[i * n + j] * point[j];
    return gradient;
  };
  const valueAt = (point, gradient) => point.reduce((sum, value, i) => sum + (value * (gradient[i] + g[i])) / 2, 0);
  let gradient = gradientAt(d),
    value = 0;
  for (let iteration = 0; iteration < iterations; iteration++) {
    const free = [];
    let residual = 0;
    for (let i = 0; i < n; i++) {
      const held = (d[i] <= low[i] && gradient[i] > 0) || (d[i] >= high[i] && gradient[i] < 0);
      if (held) continue;
      free.push(i);
      residual = Math.max(residual, Math.abs(gradient[i]));
    }
    if (residual < 1e-11) break;
    const factor = cholesky(H, n, free);
    if (!factor) return null;
    const newton = choleskySolve(
      factor,
      free.map((i) => -gradient[i]),
    );
    let share = 1,
      better = null;
    for (; share > 1e-6 && !better; share /= 2) {
      const point = Float64Array.from(d);
      free.forEach((i, k) => {
        point[i] = clip(d[i] + share * newton[k], low[i], high[i]);
      });
      const slope = gradientAt(point),
        reached = valueAt(point, slope);
      if (reached < value) better = { point, slope, reached };
    }
    if (!better) break;
    ({ point: d, slope: gradient, reached: value } = better);
  }
  return d;
}
