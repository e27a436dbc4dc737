/** The events of the master's bus, live: filter, pause, look inside. */

import { calmly, fill, h, notice } from "../dom.js";
import { dataOf, events } from "../event_stream.js";
import { block, clock, number, readable } from "../format.js";
import { VirtualList } from "../virtual_list.js";

/** @typedef {import("../event_stream.js").RawEvent & {at: number, number: number}} Row */

const MOST = 5000;

/** Events are kept while other views are seen, too. @type {Row[]} */
const kept = [];
let count = 0;
/** @type {Set<() => void>} */
const watchers = new Set();

events.listen((event) => {
  count += 1;
  kept.push({ ...event, at: Number(event.id.split("-")[0]) || Date.now(), number: count });
  if (kept.length > MOST * 1.2) kept.splice(0, kept.length - MOST);
  for (const watcher of watchers) watcher();
});

/** Drop the events that came: the next user may not be allowed to see them. */
export function forgetEvents() {
  kept.length = 0;
  for (const watcher of watchers) watcher();
}

/**
 * The events that came since the page is open, the oldest first, whose tags start so.
 * @param {string} prefix
 * @returns {import("../event_stream.js").RawEvent[]}
 */
export function cameBefore(prefix) {
  return kept.filter((row) => row.tag.startsWith(prefix));
}

/**
 * A glob (`*`, `?`), or words that the event must have.
 * @param {string} text
 * @returns {(row: Row) => boolean}
 */
export function filterOf(text) {
  if (!text) return () => true;
  if (/[*?]/.test(text)) {
    const pattern = text.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
    const made = new RegExp(`^${pattern}$`);
    return (row) => made.test(row.tag);
  }
  const words = text.toLowerCase().split(/\s+/);
  return (row) => words.every((word) => row.tag.toLowerCase().includes(word) || row.text.toLowerCase().includes(word));
}

/** @type {import("../app.js").View} */
export async function eventsView(place) {
  let paused = false;
  let words = place.query.get("tag") ?? "";
  let seen = 0;
  let due = 0;
  const search = /** @type {HTMLInputElement} */ (h("input", { type: "search", value: words, placeholder: "salt/job/*/ret/*  or words", "aria-label": "Filter the events", spellcheck: "false", autocomplete: "off" }));
  const button = h("button", { type: "button", on: { click: () => pause() } });
  const counted = h("span", { class: "muted", role: "status" });
  const empty = h("div", {});
  const detail = h("section", { class: "detail", "aria-label": "The event", tabindex: "-1" });
  /** @type {VirtualList<Row>} */
  const list = new VirtualList({
    label: "Events, newest first",
    kind: "events",
    height: 30,
    key: (row) => String(row.number),
    make: () => h("div", { class: "erow" }, h("div", { role: "gridcell", class: "e-at muted num" }), h("div", { role: "gridcell", class: "e-tag mono clip" }), h("div", { role: "gridcell", class: "e-text muted clip" })),
    draw: (element, row) => {
      element.children[0].textContent = clock(row.at);
      element.children[1].textContent = row.tag;
      element.children[2].textContent = row.text.slice(row.tag.length + 20, row.tag.length + 260);
    },
    move: (row) => open(row),
    open: (row) => open(row),
  });
  place.onLeave(() => list.destroy());

  /** @param {Row} row */
  const open = (row) => {
    document.body.classList.add("with-detail");
    const jid = /^salt\/(?:job|run)\/(\d{20})\//.exec(row.tag)?.[1];
    fill(
      detail,
      h("header", {}, h("h2", { class: "mono clip", title: row.tag }, row.tag), h("button", { class: "small", type: "button", on: { click: close } }, "Close")),
      h("p", { class: "muted meta" }, new Date(row.at).toISOString(), row.id ? h("span", { class: "mono" }, `  ${row.id}`) : null),
      jid ? h("p", {}, h("a", { href: `#/job/${jid}` }, `Job ${jid}`)) : null,
      block(readable(dataOf(row))),
    );
  };
  const close = () => {
    document.body.classList.remove("with-detail");
    fill(detail);
    list.element.focus();
  };
  place.onLeave(() => document.body.classList.remove("with-detail"));

  const pause = () => {
    paused = !paused;
    show();
  };

  const show = calmly(() => {
    button.textContent = paused ? "Go on" : "Pause";
    button.setAttribute("aria-pressed", String(paused));
    if (!paused) {
      const filter = filterOf(words);
      const found = kept.filter(filter);
      found.reverse();
      seen = count;
      list.set(found);
      list.element.hidden = found.length === 0;
      fill(empty, found.length ? null : words && kept.length ? notice("No event matches", `${number(kept.length)} others came. A glob is compared with the whole tag.`) : notice("No event yet", "Events appear as they happen: jobs, returns, sign-ins, keys, and what you fire.", { actions: [h("a", { class: "button", href: "#/run" }, "Run test.ping")] }));
    }
    counted.textContent = paused ? `${number(count - seen)} came since` : `${number(list.items.length)} shown`;
  });

  const watcher = () => {
    if (!due) due = window.setTimeout(() => { due = 0; show(); }, 150);
  };
  watchers.add(watcher);
  place.onLeave(() => { watchers.delete(watcher); clearTimeout(due); });
  search.addEventListener("input", () => { words = search.value.trim(); paused = false; show(); });
  place.title("Events", button);
  place.keys[" "] = { text: "Pause, go on", run: pause };
  place.keys.p = { text: "Pause, go on", run: pause };
  fill(place.main, h("div", { class: "bar" }, h("div", { class: "target" }, search), counted), h("div", { class: "split" }, list.element, detail), empty);
  show();
}
