// Model predictive control with a model of the boat, as anyhull.control.mpc has it: the same cost, horizon, tunings and
// disturbance observer. Its problem is condensed to the commands and solved by Gauss-Newton steps with bounds.

class MPC {
  constructor(vessel, boat, tuning) {
    this.scale = vessel.scale;
    this.boat = scaledBoat(boat, vessel.scale);
    this.tuning = DATA.mpc[tuning];
    this.parts = Math.max(1, Math.ceil((vessel.scale.time * DATA.period * stiffness(boat)) / 0.7));
    this.horizon = DATA.preview - this.tuning.delay;
    this.rateWeight = this.boat.e.slice(0, 3).map((alpha) => this.tuning.rate * alpha * alpha);
    const unit = [0, 1, 2].map((axis) => [0, 1, 2].map((i) => (i === axis ? 1 : 0)));
    this.gain = unit.map((force, i) => this.after([0, 0, 0, 0, 0, 0], force)[3 + i]);
    this.reset();
  }

  reset() {
    this.force = [0, 0, 0]; // estimated disturbance, body frame, fractions of the limits
    this.plan = Array.from({ length: this.horizon }, () => [0, 0, 0]);
    this.remaining = 0; // commands of the plan not yet issued
    this.issued = Array.from({ length: Math.max(this.tuning.delay + 1, 3) }, () => [0, 0, 0]); // newest first
    this.previous = null; // state one period ago
  }

  step(pose, velocity, window) {
    const { delay } = this.tuning,
      ahead = window.map((row) => scaledState(row, this.scale));
    const now = scaledPose(pose, this.scale);
    // The reference heading is continuous; the measured heading is wrapped.
    now[2] += 2 * Math.PI * Math.round((ahead[0][2] - now[2]) / (2 * Math.PI));
    const boat = [...now, ...scaledVelocity(velocity, this.scale)];
    this.observe(boat);
    let start = boat;
    for (let i = delay - 1; i >= 0; i--) start = this.predict(start, this.issued[i]);
    const target = ahead.slice(delay + 1).map((row) => {
      const [dx, dy] = toBody(row[0] - start[0], row[1] - start[1], start[2]);
      return [dx, dy, row[2] - start[2], row[3], row[4], row[5]];
    });
    const guess = [...this.plan.slice(1), this.plan[this.horizon - 1]];
    let plan = this.solve(guess, start.slice(3), target);
    if (plan) this.remaining = this.horizon;
    else plan = this.remaining > 0 ? guess : guess.map(() => [0, 0, 0]);
    this.remaining = Math.max(this.remaining - 1, 0);
    this.plan = plan;
    const command = plan[0].map((value) => clip(value, -1, 1));
    this.issued = [command, ...this.issued.slice(0, -1)];
    this.previous = boat;
    return command;
  }

  /** The state one period later with this force, in still water. */
  after(state, force) {
    return step(state, new Array(this.parts).fill(force), this.boat, [0, 0], DATA.period);
  }

  /** The same with a command and the estimated disturbance. */
  predict(state, command) {
    return this.after(
      state,
      command.map((value, i) => value + this.force[i]),
    );
  }

  /** Disturbance observer: correct the estimated force by the last period's prediction error. */
  observe(boat) {
    if (!this.previous || this.tuning.observer === 0) return;
    const predicted = this.predict(this.previous, this.issued[this.tuning.delay]);
    this.force = this.force.map((value, i) => {
      const error = this.gain[i] > 0 ? (boat[3 + i] - predicted[3 + i]) / this.gain[i] : 0;
      return clip(value + this.tuning.observer * error, -1, 1);
    });
  }

  /** The states that commands lead to, from the origin of the boat's frame. */
  unroll(commands, velocity) {
    const states = [[0, 0, 0, ...velocity]];
    for (const command of commands) states.push(this.predict(states[states.length - 1], command));
    return states;
  }

  cost(states, commands, target) {
    const { q, r } = this.tuning;
    let sum = 0,
      last = this.issued[0];
    commands.forEach((command, k) => {
      for (let i = 0; i < 6; i++) sum += q[i] * (states[k + 1][i] - target[k][i]) ** 2;
      for (let i = 0; i < 3; i++) sum += r * command[i] ** 2 + this.rateWeight[i] * (command[i] - last[i]) ** 2;
      last = command;
    });
    return sum / 2;
  }

  /** The commands of the horizon with the least cost, or null where none better than the guess was found. */
  solve(guess, velocity, target) {
    let commands = guess.map((command) => command.map((value) => clip(value, -1, 1)));
    let states = this.unroll(commands, velocity),
      cost = this.cost(states, commands, target);
    if (!Number.isFinite(cost)) return null;
    for (let iteration = 0; iteration < 10; iteration++) {
      const flat = commands.flat(),
        { H, g } = this.condense(states, commands, target);
      const change = boxQuadratic(
        H,
        g,
        flat.map((value) => -1 - value),
        flat.map((value) => 1 - value),
      );
      if (!change) return null;
      let found = null,
        share = 1;
      for (; share > 1e-3 && !found; share /= 2) {
        const tried = commands.map((command, k) => command.map((value, i) => value + share * change[3 * k + i]));
        const reached = this.unroll(tried, velocity),
          value = this.cost(reached, tried, target);
        if (value < cost) found = { tried, reached, value };
      }
      if (!found) break;
      ({ tried: commands, reached: states, value: cost } = found);
      if (Math.max(...change.map(Math.abs)) < 1e-7) break;
    }
    return commands;
  }

  /** Gauss-Newton Hessian (row-major) and gradient of the cost in the commands. */
  condense(states, commands, target) {
    const { q, r } = this.tuning,
      n = 3 * this.horizon,
      H = new Float64Array(n * n),
      g = new Float64Array(n);
    let sensitivity = Array.from({ length: 6 }, () => new Float64Array(n));
    let last = this.issued[0];
    commands.forEach((command, k) => {
      sensitivity = this.propagate(sensitivity, states[k], command, k);
      const filled = 3 * (k + 1);
      for (let i = 0; i < 6; i++) {
        const row = sensitivity[i],
          error = states[k + 1][i] - target[k][i];
        for (let a = 0; a < filled; a++) {
          g[a] += q[i] * row[a] * error;
          for (let b = 0; b < filled; b++) H[a * n + b] += q[i] * row[a] * row[b];
        }
      }
      for (let i = 0; i < 3; i++) {
        const a = 3 * k + i,
          w = this.rateWeight[i],
          change = command[i] - last[i];
        H[a * n + a] += r + w;
        g[a] += r * command[i] + w * change;
        if (k === 0) continue;
        H[(a - 3) * n + a - 3] += w;
        H[(a - 3) * n + a] -= w;
        H[a * n + a - 3] -= w;
        g[a - 3] -= w * change;
      }
      last = command;
    });
    return { H, g };
  }

  /** Derivatives of the next state by all commands, by central differences of the prediction. */
  propagate(sensitivity, state, command, k) {
    const width = 1e-5,
      n = 3 * this.horizon,
      next = Array.from({ length: 6 }, () => new Float64Array(n));
    const slope = (low, high) => low.map((value, i) => (high[i] - value) / (2 * width));
    const moved = (values, i, by) => values.map((value, j) => (i === j ? value + by : value));
    for (let j = 2; j < 6; j++) {
      const by = slope(this.predict(moved(state, j, -width), command), this.predict(moved(state, j, width), command));
      for (let i = 0; i < 6; i++) for (let a = 0; a < 3 * k; a++) next[i][a] += by[i] * sensitivity[j][a];
    }
    // The position moves along with itself and changes nothing else.
    for (let i = 0; i < 2; i++) for (let a = 0; a < 3 * k; a++) next[i][a] += sensitivity[i][a];
    for (let j = 0; j < 3; j++) {
      const by = slope(this.predict(state, moved(command, j, -width)), this.predict(state, moved(command, j, width)));
      for (let i = 0; i < 6; i++) next[i][3 * k + j] = by[i];
    }
    return next;
  }
}
