/** Draws the states of a run in layers: what waits for something stands below it. */

import { s } from "./dom.js";

/**
 * @typedef {{number: number, id: string, function: string, name: string, sls: string, at: string, label: string}} Box
 * @typedef {{first: number, then: number, kind: string}} Arrow
 */

const WIDTH = 190;
const HEIGHT = 46;
const GAP_X = 22;
const GAP_Y = 54;

/** Most boxes beside each other; states that wait for nothing are put into several rows. */
const ACROSS = 6;

/**
 * Number of each state -> its layer, by the longest way of requisites to it.
 * @param {Box[]} boxes
 * @param {Arrow[]} arrows
 * @returns {Map<number, number>}
 */
export function layers(boxes, arrows) {
  const found = new Map(boxes.map((box) => [box.number, 0]));
  const known = arrows.filter((arrow) => found.has(arrow.first) && found.has(arrow.then) && arrow.first !== arrow.then);
  // A compiled run has no rings; the bound keeps a malformed one from going on for ever.
  for (let round = 0; round < boxes.length; round += 1) {
    let moved = false;
    for (const arrow of known) {
      const least = (found.get(arrow.first) ?? 0) + 1;
      if ((found.get(arrow.then) ?? 0) < least && least < boxes.length) {
        found.set(arrow.then, least);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return found;
}

/**
 * @param {Box[]} boxes
 * @param {Arrow[]} arrows
 * @param {(box: Box) => void} choose
 */
export function graph(boxes, arrows, choose) {
  const layer = layers(boxes, arrows);
  /** @type {Box[][]} */
  const rows = [];
  const last = Math.max(0, ...layer.values());
  for (let at = 0; at <= last; at += 1) {
    const inLayer = boxes.filter((box) => layer.get(box.number) === at);
    for (let start = 0; start < inLayer.length; start += ACROSS) rows.push(inLayer.slice(start, start + ACROSS));
  }
  const across = Math.max(1, ...rows.map((row) => row.length));
  const width = across * (WIDTH + GAP_X) + GAP_X;
  const height = rows.length * (HEIGHT + GAP_Y) + 8;
  /** @type {Map<number, {x: number, y: number}>} */
  const spots = new Map();
  rows.forEach((row, index) => {
    const left = (width - row.length * (WIDTH + GAP_X) + GAP_X) / 2;
    row.forEach((box, place) => spots.set(box.number, { x: left + place * (WIDTH + GAP_X), y: 8 + index * (HEIGHT + GAP_Y) }));
  });
  /** Two states may have several requisites: one line, all their names. @type {Map<string, {arrow: Arrow, kinds: string[]}>} */
  const lines = new Map();
  for (const arrow of arrows) {
    const key = `${arrow.first} ${arrow.then}`;
    const known = lines.get(key);
    if (known) known.kinds.push(arrow.kind);
    else lines.set(key, { arrow, kinds: [arrow.kind] });
  }
  const paths = [...lines.values()].map(({ arrow, kinds }) => {
    const from = spots.get(arrow.first);
    const to = spots.get(arrow.then);
    if (!from || !to) return null;
    const [x1, y1, x2, y2] = [from.x + WIDTH / 2, from.y + HEIGHT, to.x + WIDTH / 2, to.y];
    const bend = Math.max(20, (y2 - y1) / 2);
    return s(
      "g",
      { class: "arrow", "data-first": arrow.first, "data-then": arrow.then },
      s("path", { d: `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2 - 5}`, "marker-end": "url(#tip)" }),
      s("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 + 3, "text-anchor": "middle" }, kinds.join(", ")),
    );
  });
  const svg = s(
    "svg",
    { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "States in their order" },
    s("defs", {}, s("marker", { id: "tip", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { d: "M0 0 L8 4 L0 8z" }))),
    paths.filter((path) => path !== null),
    boxes.map((box) => {
      const spot = spots.get(box.number);
      const made = s(
        "g",
        { class: "box", tabindex: "0", role: "button", "aria-label": `${box.number}. ${box.function} ${box.label || box.id}`, transform: `translate(${spot?.x ?? 0} ${spot?.y ?? 0})` },
        s("rect", { width: WIDTH, height: HEIGHT, rx: 6 }),
        s("text", { x: 10, y: 18, class: "what" }, cut(`${box.number}. ${box.function}`, 28)),
        s("text", { x: 10, y: 35 }, cut(box.label || box.id, 26)),
        s("title", {}, `${box.function} ${box.name}\n${box.at}`),
      );
      const pick = () => {
        for (const other of svg.querySelectorAll(".box")) other.classList.toggle("current", other === made);
        for (const each of svg.querySelectorAll(".arrow")) {
          const { first, then } = /** @type {any} */ (each).dataset;
          each.classList.toggle("near", Number(first) === box.number || Number(then) === box.number);
        }
        choose(box);
      };
      made.addEventListener("click", pick);
      made.addEventListener("keydown", (event) => {
        const { key } = /** @type {KeyboardEvent} */ (event);
        if (key === "Enter" || key === " ") {
          event.preventDefault();
          pick();
        }
      });
      return made;
    }),
  );
  return svg;
}

/**
 * @param {string} text
 * @param {number} most
 */
function cut(text, most) {
  const shown = [...text];
  return shown.length > most ? `${shown.slice(0, most - 1).join("")}…` : text;
}
