// Cover pictures, drawn from an episode's colours: sky, sun and three lines of water.

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

let drawn = 0;

export function cover({ sky, water }) {
  const svg = shape("svg", { viewBox: "0 0 200 120", preserveAspectRatio: "xMidYMid slice", "aria-hidden": "true" });
  // Gradients are found by id across the whole page, so every picture needs its own.
  const id = `sky-${(drawn += 1)}`;
  const gradient = shape("linearGradient", { id, x1: 0, y1: 0, x2: 0, y2: 1 });
  gradient.append(shape("stop", { offset: 0, "stop-color": sky[0] }), shape("stop", { offset: 0.75, "stop-color": sky[1] }));
  svg.append(gradient, shape("rect", { width: 200, height: 120, fill: `url(#${id})` }));
  svg.append(shape("circle", { cx: 128, cy: 66, r: 21, fill: "#fff", opacity: 0.85 }));
  [72, 84, 97].forEach((y, index) => {
    const d = `M-10 ${y}c20-9 35-9 55 0s35 9 55 0 35-9 55 0 35 9 55 0 35-9 55 0V124H-10z`;
    svg.append(shape("path", { d, fill: water, opacity: 0.45 + index * 0.25, transform: `translate(${index * -12} 0)` }));
  });
  return svg;
}
