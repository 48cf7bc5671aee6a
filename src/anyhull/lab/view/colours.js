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

/** So many figures, with a power of ten for very large and very small numbers. */
function figures(value, count = 3) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(value)) + 1e-12);
  if (power < 5 && power > -4) return value.toFixed(clip(count - 1 - power, 0, 6)).replace("-", "−");
  const raised = [...String(power)].map((digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)])).join("");
  return `${(value / 10 ** power).toFixed(1)}·10${raised}`.replace("-", "−");
}

/** A short length in cm for models and m for ships, in at most five characters. */
function shortLength(metres, scale) {
  const unit = scale.length >= 3 ? "m" : "cm",
    value = unit === "m" ? metres : 100 * metres;
  return { text: Number.isFinite(value) ? value.toFixed(value < 100 ? 2 : value < 1000 ? 1 : 0) : "–", unit };
}
