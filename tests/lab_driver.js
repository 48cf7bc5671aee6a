// Runs closed loops of the page's model under node: cases as JSON on stdin, states by controller as JSON on stdout.
const fs = require("node:fs");

const { model, cases } = JSON.parse(fs.readFileSync(0, "utf8"));
const names =
  "DATA, startWorld, stepWorld, boatOf, laden, normalStream, Pilot, PID, MPC, windowOf, substeps, delivered," +
  " roundedRectangle, circle, figureEight, through, hold";
const lab = new Function(`"use strict";\n${model}\nreturn { ${names} };`)();

function controllerOf(name, vessel, boat) {
  if (name in lab.DATA.policies) return new lab.Pilot(lab.DATA.policies[name], vessel);
  return name === "pid" ? new lab.PID(vessel, boat) : new lab.MPC(vessel, boat, name);
}

function run({ lost, vessel, reference, sea, delay, normals, seed, controllers, steps, change, at = [] }) {
  if (lost) return { delivered: lost.map(({ command, dead }) => lab.delivered(vessel, command, dead)) };
  const boat = lab.boatOf(vessel),
    [shape, ...sizes] = reference,
    path = lab[shape](...sizes);
  if (at.length) return { reference: at.map((t) => path.at(t)) };
  let drawn = 0;
  const next = normals ? () => normals[drawn++] : lab.normalStream(seed);
  const made = Object.fromEntries(controllers.map((name) => [name, controllerOf(name, vessel, boat)]));
  const world = lab.startWorld({ vessel, reference: path, controllers: made, sea, normals: next, delayBound: delay });
  const states = Object.fromEntries(controllers.map((name) => [name, []]));
  for (let k = 0; k < steps; k++) {
    for (const name of controllers) states[name].push(world.boats[name].state);
    const plant = change && k >= change.step ? lab.laden(boat, change.mass) : boat;
    lab.stepWorld(world, { plant, sea, delay });
  }
  const estimate = made.student && made.student.dynamics();
  return {
    states,
    estimate,
    latent: made.student && Array.from(made.student.latent),
    parts: lab.substeps(boat, vessel.scale, world.period),
  };
}

process.stdout.write(JSON.stringify(cases.map(run)));
