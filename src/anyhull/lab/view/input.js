// Pointer, touch and keys: a path drawn on the plan, and shortcuts.

/** Listen for pointer, keys, the address and the system's colour scheme. */
function listen(app) {
  const canvas = $("plan");
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return toMetres(app.view.camera, event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!app.drawing) return;
    canvas.setPointerCapture(event.pointerId);
    app.view.stroke = [at(event)];
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (app.drawing && app.view.stroke) app.view.stroke.push(at(event));
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, () => {
      if (app.drawing && app.view.stroke) app.draw(false);
    });
  document.addEventListener("keydown", (event) => onKey(app, event));
  window.addEventListener("hashchange", () => app.open(location.hash));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);
}

function onKey(app, event) {
  const { tagName, type } = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || tagName === "SELECT" || type === "number") return;
  const keys = {
    " ": () => app.play(!app.playing),
    r: () => app.restart(),
    f: () => app.follow(!app.following),
    m: () => app.set("mass", app.now.mass === 3 ? 1 : 3),
    w: () => app.turnWind(),
    1: () => app.setRate(1),
    4: () => app.setRate(4),
    6: () => app.setRate(16),
    Escape: () => app.cancelDrawing(),
  };
  const act = keys[event.key];
  // A button or a box in focus has the space bar for itself.
  if (!act || (event.key === " " && (tagName === "BUTTON" || type === "checkbox"))) return;
  event.preventDefault();
  act();
}

/** Waypoints along a stroke in units of the scale, evenly spaced so that a spline through them is smooth. */
function waypointsOf(stroke) {
  const closed = [...stroke, stroke[0]],
    along = [0];
  for (let i = 1; i < closed.length; i++)
    along.push(along[i - 1] + Math.hypot(closed[i][0] - closed[i - 1][0], closed[i][1] - closed[i - 1][1]));
  const total = along.at(-1);
  if (!(total > 4)) return [];
  const count = clip(Math.round(total / 2.2), 4, MOST_WAYPOINTS);
  return Array.from({ length: count }, (_, i) =>
    [0, 1].map((axis) => {
      const value = interpolate(
        (i / count) * total,
        along,
        closed.map((point) => point[axis]),
      );
      return Math.round(100 * value) / 100;
    }),
  );
}
