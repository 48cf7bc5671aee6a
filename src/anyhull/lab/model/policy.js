// A trained policy as anyhull.pilot deploys it: observation, history, GRU, latent, actor. Networks are float32.

const f32 = Math.fround;

/** The scaled base observation (72) and history (9) of anyhull.observation. */
function features(pose, previousPose, velocity, window, previous, scales) {
  const [x, y, psi] = pose,
    cos = Math.cos(psi),
    sin = Math.sin(psi);
  const o = new Float32Array(6 * DATA.preview + 12),
    h = new Float32Array(9);
  window.forEach((row, i) => {
    const dx = row[0] - x,
      dy = row[1] - y;
    const relative = [cos * dx + sin * dy, cos * dy - sin * dx, wrap(row[2] - psi), row[3], row[4], row[5]];
    if (i > 0) o.set(relative, 9 + 6 * (i - 1));
    else for (let k = 0; k < 6; k++) o[k] = Math.asinh(scales.error * (relative[k] - (k < 3 ? 0 : velocity[k - 3])));
  });
  o.set(velocity, 6);
  o.set(previous, 9 + 6 * DATA.preview);

  const dx = x - previousPose[0],
    dy = y - previousPose[1];
  const moved = [cos * dx + sin * dy, cos * dy - sin * dx, wrap(psi - previousPose[2])];
  // An unchanged pose counts as unknown.
  const known = moved[0] ** 2 + moved[1] ** 2 + moved[2] ** 2 > DATA.still ** 2;
  for (let k = 0; k < 3; k++) {
    h[k] = Math.asinh(scales.gain * (known ? velocity[k] - moved[k] / DATA.period : 0));
    h[3 + k] = Math.asinh(scales.velocity * velocity[k]);
    h[6 + k] = Math.asinh(scales.command * previous[k]);
  }
  return { o, h };
}

/** An affine map, inputs first in the weight. */
function affine(layer, x) {
  const { weight, bias } = layer,
    n = bias.length,
    sum = new Float64Array(n);
  for (let i = 0; i < x.length; i++) {
    const value = x[i],
      row = i * n;
    if (value !== 0) for (let j = 0; j < n; j++) sum[j] += value * weight[row + j];
  }
  const y = new Float32Array(n);
  for (let j = 0; j < n; j++) y[j] = f32(sum[j]) + bias[j];
  return y;
}

/** Hidden layers with ELU and a linear output; `factors` multiply the input of the last layer. */
function network(layers, x, factors = null) {
  layers.forEach((layer, i) => {
    const last = i === layers.length - 1;
    if (last && factors) x = x.map((value, j) => value * factors[j]);
    x = affine(layer, x);
    if (!last) x = x.map((value) => (value > 0 ? value : Math.expm1(value)));
  });
  return x;
}

/** The memory of a GRU after input x; rows are those of reset gate, update gate and candidate. */
function recur(cell, memory, x) {
  const n = memory.length,
    next = new Float32Array(n);
  const product = (weight, row, vector) => {
    let sum = 0;
    for (let i = 0, at = row * vector.length; i < vector.length; i++) sum += weight[at + i] * vector[i];
    return f32(sum);
  };
  const logistic = (value) => f32(0.5 * f32(f32(Math.tanh(f32(0.5 * value))) + 1));
  for (let j = 0; j < n; j++) {
    const gate = (row) =>
      logistic(f32(f32(product(cell.weight_ih, row, x) + cell.bias[row]) + product(cell.weight_hh, row, memory)));
    const reset = gate(j),
      update = gate(n + j),
      row = 2 * n + j;
    const recurrent = f32(reset * f32(product(cell.weight_hh, row, memory) + cell.bias_n[j]));
    const candidate = f32(Math.tanh(f32(recurrent + f32(product(cell.weight_ih, row, x) + cell.bias[row]))));
    next[j] = f32(f32(f32(memory[j] - candidate) * update) + candidate);
  }
  return next;
}

/** The tensors of a policy from its base64, in the order of its layout. */
function unpackPolicy(policy) {
  const bytes = Uint8Array.from(atob(policy.weights), (character) => character.charCodeAt(0));
  const numbers = new Float32Array(bytes.buffer);
  const parts = { actor: [], head: [], dynamics_head: [], modulation: null, cell: null };
  let at = 0;
  const take = (size) => numbers.subarray(at, (at += size));
  for (const [name, inputs, outputs] of policy.layout) {
    if (name === "cell") {
      const n = outputs;
      parts.cell = { weight_ih: take(3 * n * inputs), weight_hh: take(3 * n * n), bias: take(3 * n), bias_n: take(n) };
      continue;
    }
    const layer = { weight: take(inputs * outputs), bias: take(outputs) };
    if (name === "modulation") parts.modulation = layer;
    else parts[name].push(layer);
  }
  return parts;
}

/** A controller that steers a boat with a trained policy, in the units of the vessel's scale. */
class Pilot {
  constructor(policy, vessel) {
    this.scale = vessel.scale;
    this.derating = vessel.derating;
    this.scales = policy.scales;
    this.parts = policy.parts ??= unpackPolicy(policy);
    this.reset();
  }

  reset() {
    const { cell, head } = this.parts;
    this.memory = cell ? new Float32Array(cell.bias_n.length) : null;
    this.latent = new Float32Array(head.length ? head[head.length - 1].bias.length : 0);
    this.previous = [0, 0, 0];
    this.previousPose = null;
  }

  /** The normalized command for the coming period. */
  step(pose, velocity, window) {
    const now = scaledPose(pose, this.scale),
      nu = scaledVelocity(velocity, this.scale);
    const ahead = window.map((row) => scaledState(row, this.scale));
    const { o, h } = features(now, this.previousPose ?? now, nu, ahead, this.previous, this.scales);
    const { actor, modulation, cell, head } = this.parts;
    if (cell) {
      this.memory = recur(cell, this.memory, h);
      this.latent = network(head, this.memory);
    }
    const inputs = new Float32Array(o.length + this.latent.length);
    inputs.set(o);
    inputs.set(this.latent, o.length);
    const [low, high] = DATA.modulation;
    const factors = modulation && affine(modulation, this.latent).map((value) => Math.exp(clip(value, low, high)));
    const command = Array.from(network(actor, inputs, factors), (value) => clip(value, -1, 1));
    this.previous = command;
    this.previousPose = now;
    return command.map((value, i) => value * this.derating[i]);
  }

  /** The dynamics head's estimate in SI: components e with their spread on the logarithmic scale, and the sea. */
  dynamics() {
    if (!this.parts.dynamics_head.length) return null;
    const out = Array.from(network(this.parts.dynamics_head, this.memory)),
      n = out.length / 2;
    const [low, high] = DATA.logStd,
      mean = out.slice(0, n);
    const spread = out.slice(n).map((value) => Math.exp(clip(value, low, high)));
    const own = mean
      .slice(0, 9)
      .map((value) => clip(value, -50, 50))
      .map((value, i) => (i < 7 ? Math.exp(value) : i === 7 ? -Math.exp(value) : Math.sinh(value)));
    const { length, time } = this.scale,
      inverse = { length: 1 / length, time: 1 / time };
    const back = this.derating.map((share) => 1 / share),
      e = scaledBoat({ e: own, drag: NO_DRAG }, inverse, back).e;
    // The spread of asinh(c) is that of c over sqrt(1 + c²), and c_uv is in 1/m².
    spread[8] *= Math.hypot(1, own[8]) / Math.hypot(length ** 2, own[8]);
    const sea = n > 9 && {
      delay: (mean[9] / DATA.seaScales.delay) * time,
      delaySpread: (spread[9] / DATA.seaScales.delay) * time,
      current: mean.slice(10, 12).map((value) => ((value / DATA.seaScales.current) * length) / time),
      currentSpread: spread.slice(10, 12).map((value) => ((value / DATA.seaScales.current) * length) / time),
      force: mean.slice(12, 15).map((value, i) => (value / DATA.seaScales.force) * this.derating[i]),
      forceSpread: spread.slice(12, 15).map((value, i) => (value / DATA.seaScales.force) * this.derating[i]),
    };
    return { e, spread: spread.slice(0, 9), sea };
  }
}

/** A pose, a velocity and a state in the policy's units. */
function scaledPose([x, y, psi], { length }) {
  return [x * (1 / length), y * (1 / length), psi];
}

function scaledVelocity([u, v, r], { length, time }) {
  const speed = length / time;
  return [u * (1 / speed), v * (1 / speed), r * time];
}

function scaledState(state, scale) {
  return [...scaledPose(state.slice(0, 3), scale), ...scaledVelocity(state.slice(3), scale)];
}
