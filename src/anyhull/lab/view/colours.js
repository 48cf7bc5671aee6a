// Colours of the canvases from the style sheet, numbers with units, and canvases at the screen's own resolution.

let colours = {};

/** Read the colours of the present theme. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const named = ["ink", "muted", "faint", "line", "water", "panel", "path", ...CONTROLLERS];
  colours = Object.fromEntries(named.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Line dashes, so that colour is not the only difference. */
const DASHES = { student: [], ppo: [9, 3, 2, 3], mpc: [7, 3], pid: [2, 2.5] };

/** A canvas's context in CSS pixels, cleared; the canvas keeps the size that the style gives it. */
function prepare(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const width = canvas.clientWidth,
    height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  return { pen, width, height };
}

/** Three figures, without an exponent for anything that a boat has. */
function figures(value, count = 3) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const digits = clip(count - 1 - Math.floor(Math.log10(Math.abs(value))), 0, 4);
  const text = Math.abs(value) >= 1e5 ? value.toExponential(1) : value.toFixed(digits);
  return text.replace("-", "−");
}

/** A short length: cm for models, m for ships. */
function shortLength(metres, scale) {
  const large = scale.length >= 3;
  return {
    text: !Number.isFinite(metres) ? "–" : (large ? metres : 100 * metres).toFixed(2),
    unit: large ? "m" : "cm",
  };
}
