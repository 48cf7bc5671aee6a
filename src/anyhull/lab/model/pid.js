// Cascaded PID with a feedforward force, as anyhull.control.pid has it, tuned from a model of the boat.

class PID {
  constructor(vessel, boat) {
    this.scale = vessel.scale;
    this.boat = scaledBoat(boat, vessel.scale);
    const { e, drag } = this.boat,
      speeds = DATA.workingPoint;
    this.alpha = e.slice(0, 3);
    const rates = speeds.map((s, i) => e[3 + i] + drag[0][i] * s + drag[1][i] * s * s);
    this.integralRate = rates.map((rate) => Math.max(rate, 1 / (4 * DATA.pid.T)));
    this.reset();
  }

  reset() {
    this.integral = [0, 0, 0];
  }

  step(pose, velocity, window) {
    const T = DATA.pid.T,
      now = scaledPose(pose, this.scale),
      nu = scaledVelocity(velocity, this.scale);
    const [here, next] = window.slice(0, 2).map((row) => scaledState(row, this.scale));
    const psi = here[2] - now[2];
    const error = [...toBody(here[0] - now[0], here[1] - now[1], now[2]), wrap(psi)];
    const desired = [...toInertial(here[3], here[4], psi), here[5]];
    const change = [3, 4, 5].map((i) => (next[i] - here[i]) / DATA.period);
    const feedforward = inverseDynamics(desired, change, this.boat);
    return feedforward.map((force, i) => {
      const velocityError = desired[i] + approach(error[i], this.alpha[i]) - nu[i];
      const asked = force + velocityError / (this.alpha[i] * T) + this.integral[i];
      const command = clip(asked, -1, 1);
      // Anti-windup: a saturated axis does not integrate further into saturation.
      if (command === asked || Math.sign(velocityError) !== Math.sign(asked)) {
        const gain = (this.integralRate[i] * DATA.period * velocityError) / (this.alpha[i] * T);
        this.integral[i] = clip(this.integral[i] + gain, -1, 1);
      }
      return command;
    });
  }
}

/** Desired velocity for a pose error: proportional, and at most one from which the boat brakes with half its force. */
function approach(error, alpha) {
  const gain = 1 / (4 * DATA.pid.T),
    brake = alpha / 2,
    size = Math.abs(error),
    linear = brake / gain ** 2;
  return Math.sign(error) * (size < linear ? gain * size : Math.sqrt(brake * Math.abs(2 * size - linear)));
}
