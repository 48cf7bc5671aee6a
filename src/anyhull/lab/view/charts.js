// Charts of the last seconds: position error, commands, and the latent.

const SHOWN = 300; // periods

/** The frame of a chart: the plot's area, and time -> x. */
function chartFrame(width, height, lap, { left = 34, right = 6, top = 6, bottom = 18 } = {}) {
  const end = Math.max(lap.world.k, SHOWN),
    period = lap.world.period;
  const area = { left, right: width - right, top, bottom: height - bottom };
  return { ...area, x: (k) => area.right - ((end - k) / SHOWN) * (area.right - area.left), first: end - SHOWN, period };
}

function drawTimeAxis(pen, frame) {
  const step = niceStep((SHOWN * frame.period) / 6);
  pen.fillStyle = colours.muted;
  pen.strokeStyle = colours.faint;
  pen.lineWidth = 1;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.beginPath();
  for (
    let t = Math.ceil((frame.first * frame.period) / step) * step;
    t <= (frame.first + SHOWN) * frame.period;
    t += step
  ) {
    const x = frame.x(t / frame.period);
    if (x < frame.left - 0.5) continue;
    pen.moveTo(Math.round(x) + 0.5, frame.top);
    pen.lineTo(Math.round(x) + 0.5, frame.bottom);
    if (x > frame.left + 8 && x < frame.right - 14) pen.fillText(`${Number(t.toPrecision(6))}`, x, frame.bottom + 4);
  }
  pen.stroke();
  pen.textAlign = "right";
  pen.fillText("s", frame.right, frame.bottom + 4);
}

/** Vertical marks where something was changed. */
function drawChanges(pen, frame, lap) {
  pen.strokeStyle = colours.ink;
  pen.globalAlpha = 0.5;
  pen.setLineDash([2, 3]);
  pen.beginPath();
  for (const { k } of lap.events) {
    if (k < frame.first || k > lap.world.k) continue;
    pen.moveTo(frame.x(k), frame.top);
    pen.lineTo(frame.x(k), frame.bottom);
  }
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

/** Call with the index in a trace and the period of each value in view. */
function inView(lap, frame, trace, draw) {
  const offset = lap.world.k - trace.error.length;
  for (let i = Math.max(0, frame.first - offset); i < trace.error.length; i++) draw(i, i + offset);
}

function drawErrors(canvas, lap, settings) {
  const { pen, width, height } = prepare(canvas),
    frame = chartFrame(width, height, lap);
  const low = Math.log10(1e-4 * lap.scale.length),
    high = Math.log10(30 * lap.scale.length);
  const y = (metres) =>
    frame.bottom -
    ((clip(Math.log10(Math.max(metres, 1e-12)), low, high) - low) / (high - low)) * (frame.bottom - frame.top);
  drawTimeAxis(pen, frame);
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.fillStyle = colours.muted;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const large = lap.scale.length >= 3;
  for (let power = Math.ceil(low); power <= high; power++) {
    const at = Math.round(y(10 ** power)) + 0.5,
      value = 10 ** (large ? power : power + 2);
    pen.beginPath();
    pen.moveTo(frame.left, at);
    pen.lineTo(frame.right, at);
    pen.stroke();
    pen.fillText(`${Number(value.toPrecision(1))}`, frame.left - 5, at);
  }
  pen.fillText(large ? "m" : "cm", frame.left - 5, frame.top + 1);
  drawChanges(pen, frame, lap);
  const order = CONTROLLERS.filter((name) => !settings.hidden.includes(name)).sort((a) =>
    a === settings.focus ? 1 : -1,
  );
  for (const name of order) {
    pen.strokeStyle = colours[name];
    pen.lineWidth = name === settings.focus ? 2 : 1.3;
    pen.setLineDash(DASHES[name]);
    pen.beginPath();
    inView(lap, frame, lap.traces[name], (i, k) => pen.lineTo(frame.x(k), y(lap.traces[name].error[i])));
    pen.stroke();
  }
  pen.setLineDash([]);
}

function drawCommands(canvas, lap, settings) {
  const { pen, width, height } = prepare(canvas),
    frame = chartFrame(width, height, lap, { left: 44 });
  drawTimeAxis(pen, frame);
  const rows = ["Surge", "Sway", "Yaw"],
    gap = 6,
    tall = (frame.bottom - frame.top - 2 * gap) / 3;
  drawChanges(pen, frame, lap);
  rows.forEach((label, axis) => {
    const middle = frame.top + axis * (tall + gap) + tall / 2;
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.strokeRect(
      frame.left + 0.5,
      Math.round(middle - tall / 2) + 0.5,
      frame.right - frame.left - 1,
      Math.round(tall) - 1,
    );
    pen.beginPath();
    pen.moveTo(frame.left, Math.round(middle) + 0.5);
    pen.lineTo(frame.right, Math.round(middle) + 0.5);
    pen.stroke();
    pen.fillStyle = colours.muted;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText(label, frame.left - 6, middle);
    const trace = lap.traces[settings.focus];
    pen.strokeStyle = colours[settings.focus];
    pen.lineWidth = 1.4;
    pen.beginPath();
    let before = null;
    inView(lap, frame, trace, (i, k) => {
      const y = middle - trace.command[i][axis] * (tall / 2 - 1.5);
      if (before !== null) pen.lineTo(frame.x(k), before); // held over a period
      pen.lineTo(frame.x(k), y);
      before = y;
    });
    pen.stroke();
  });
}

function drawLatent(canvas, lap) {
  const { pen, width, height } = prepare(canvas),
    { latent } = lap.world.boats.student.controller;
  const middle = Math.round(height / 2) + 0.5,
    wide = (width - 36) / latent.length;
  const largest = Math.max(1, ...Array.from(latent, Math.abs));
  pen.strokeStyle = colours.line;
  pen.beginPath();
  pen.moveTo(0, middle);
  pen.lineTo(width - 36, middle);
  pen.stroke();
  pen.fillStyle = colours.muted;
  pen.textBaseline = "top";
  pen.textAlign = "right";
  pen.fillText(`± ${largest.toFixed(1)}`, width, 0);
  pen.fillStyle = colours.student;
  latent.forEach((value, i) => {
    const tall = (value / largest) * (height / 2 - 2);
    pen.fillRect(i * wide + 0.15 * wide, middle - Math.max(tall, 0), 0.7 * wide, Math.max(Math.abs(tall), 1));
  });
}
