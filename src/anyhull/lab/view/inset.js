// The position error, magnified.

/** The last seconds of the position error, magnified: ahead is up, in the reference's frame. */
function drawInset(pen, width, lap, names) {
  const radius = 52,
    x = width - radius - 14,
    y = radius + 14,
    recent = 30;
  let largest = 1e-4;
  for (const name of names) {
    const { error } = lap.traces[name];
    if (!lap.world.boats[name].lost) largest = Math.max(largest, ...error.slice(-recent));
  }
  const ring = niceStep(largest);
  pen.save();
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fillStyle = colours.panel;
  pen.globalAlpha = 0.85;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.stroke();
  pen.beginPath();
  pen.arc(x, y, radius / 2, 0, 7);
  pen.moveTo(x - radius, y);
  pen.lineTo(x + radius, y);
  pen.moveTo(x, y - radius);
  pen.lineTo(x, y + radius);
  pen.stroke();
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.clip();
  for (const name of names) {
    const { ahead, aside } = lap.traces[name],
      first = Math.max(0, ahead.length - recent);
    pen.strokeStyle = pen.fillStyle = colours[name];
    pen.lineWidth = 1.6;
    pen.beginPath();
    for (let i = first; i < ahead.length; i++)
      pen.lineTo(x - (aside[i] / ring) * radius, y - (ahead[i] / ring) * radius);
    pen.stroke();
    if (!ahead.length) continue;
    pen.beginPath();
    pen.arc(x - (aside.at(-1) / ring) * radius, y - (ahead.at(-1) / ring) * radius, 3, 0, 7);
    pen.fill();
  }
  pen.restore();
  const label = ring < 1 ? `${Number((100 * ring).toPrecision(1))} cm` : `${ring} m`;
  pen.fillStyle = colours.muted;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.fillText(`Error, ring ${label}`, x, y + radius + 5);
  pen.textAlign = "left";
}
