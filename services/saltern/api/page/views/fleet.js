/** The fleet: all accepted minions, filtered by a target expression. */

import { get } from "../api.js";
import { calmly, fill, h, inOrder, notice, refill } from "../dom.js";
import { events } from "../event_stream.js";
import { ago, number } from "../format.js";
import { runnerOf } from "../shell_words.js";
import { TargetField } from "../target_field.js";
import { VirtualList } from "../virtual_list.js";

/**
 * @typedef {{id: string, seen: number | null, present: boolean, saltern: boolean, os?: string, release?: string, arch?: string,
 *   salt?: string, address?: string, cpus?: number, memory?: number}} Minion
 */

/** Milliseconds between two looks at the fleet while it is seen. */
const AGAIN = 30000;

/** @type {[string, string, (minion: Minion) => string | number][]} title, class, value that is sorted by */
const COLUMNS = [
  ["Minion", "c-id", (minion) => minion.id],
  ["Seen", "c-seen", (minion) => -(minion.seen ?? 0)],
  ["System", "c-os", (minion) => `${minion.os ?? ""} ${minion.release ?? ""}`],
  ["Salt", "c-salt", (minion) => minion.salt ?? ""],
  ["Address", "c-address", (minion) => minion.address ?? ""],
  ["CPU", "c-cpu num", (minion) => -(minion.cpus ?? 0)],
  ["Memory", "c-memory num", (minion) => -(minion.memory ?? 0)],
];

/** @type {import("../app.js").View} */
export async function fleetView(place) {
  /** @type {Minion[]} */
  let all = [];
  /** @type {Set<string> | null} null: every minion */
  let matched = null;
  let presence = "all";
  let sorted = 0;
  let up = true;
  let now = Date.now();

  const chips = h("div", { class: "chips", role: "group", "aria-label": "Presence" });
  const empty = h("div", {});
  const head = h(
    "div",
    { class: "frow", role: "row" },
    COLUMNS.map(([title, kind], index) =>
      h("div", { role: "columnheader", class: kind }, h("button", { class: "plain sort", type: "button", tabindex: "-1", on: { click: () => sort(index) } }, title)),
    ),
  );
  /** @type {VirtualList<Minion>} */
  const list = new VirtualList({
    label: "Minions",
    kind: "fleet",
    height: 34,
    head,
    key: (minion) => minion.id,
    make: () => h("div", { class: "frow" }, COLUMNS.map(([, kind]) => h("div", { role: "gridcell", class: kind }))),
    draw: (row, minion) => {
      const cells = row.children;
      cells[0].textContent = minion.id;
      cells[1].textContent = minion.present ? "present" : ago(minion.seen, now);
      cells[2].textContent = minion.os ? `${minion.os} ${minion.release}` : "unknown";
      cells[3].textContent = minion.salt ? (minion.saltern ? `${minion.salt} · Saltern` : minion.salt) : "";
      cells[4].textContent = minion.address ?? "";
      cells[5].textContent = minion.cpus ? String(minion.cpus) : "";
      cells[6].textContent = minion.memory ? `${(minion.memory / 1024).toFixed(1)} GiB` : "";
      row.classList.toggle("away", !minion.present);
    },
    open: (minion) => place.go(`#/minion/${encodeURIComponent(minion.id)}`),
  });
  place.onLeave(() => list.destroy());

  const field = new TargetField({
    id: "fleet-target",
    tgt: place.query.get("tgt") ?? "*",
    type: place.query.get("type") ?? "compound",
    label: "Filter by a target",
    onLeave: place.onLeave,
    changed: (match) => {
      list.element.classList.toggle("stale", match === null);
      if (!match) return;
      matched = field.isAll ? null : new Set(match.minions);
      remember();
      show();
    },
  });

  const remember = () => {
    const query = new URLSearchParams();
    if (!field.isAll) query.set("tgt", field.tgt);
    if (field.tgtType !== "compound") query.set("type", field.tgtType);
    const words = query.toString();
    history.replaceState(null, "", words ? `#/fleet?${words}` : "#/fleet");
  };

  /** @param {string} where */
  const withTarget = (where) => {
    const query = new URLSearchParams({ tgt: field.tgt || "*", type: field.tgtType });
    place.go(`#/${where}?${query}`);
  };

  /** @param {number} index */
  const sort = (index) => {
    up = index === sorted ? !up : true;
    sorted = index;
    show();
  };

  const show = calmly(() => {
    now = Date.now();
    const found = matched ? all.filter((minion) => matched?.has(minion.id)) : all;
    const present = found.reduce((count, minion) => count + Number(minion.present), 0);
    const counts = /** @type {Record<string, number>} */ ({ all: found.length, present, away: found.length - present });
    refill(
      chips,
      ["all", "present", "away"].map((name) =>
        h("button", { class: "chip", type: "button", "aria-pressed": String(presence === name), on: { click: () => { presence = name; show(); } } }, `${name[0].toUpperCase()}${name.slice(1)} `, h("strong", {}, number(counts[name]))),
      ),
    );
    const value = COLUMNS[sorted][2];
    const shown = found.filter((minion) => presence === "all" || minion.present === (presence === "present"));
    const keyed = shown.map((minion) => ({ minion, at: value(minion) }));
    keyed.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0) * (up ? 1 : -1));
    head.querySelectorAll("[role=columnheader]").forEach((cell, index) => {
      if (index === sorted) cell.setAttribute("aria-sort", up ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    });
    list.set(keyed.map((each) => each.minion));
    list.element.hidden = shown.length === 0;
    if (shown.length) fill(empty);
    else if (!all.length) fill(empty, notice("No minion is accepted yet", ["Start a minion whose ", h("code", {}, "master"), " is this master. Its key then waits under Keys."], { actions: [h("a", { class: "button", href: "#/keys" }, "Keys")] }));
    else fill(empty, notice("No minion matches", `${number(all.length)} minions are accepted. Widen the target, or choose All.`, { actions: [h("button", { type: "button", on: { click: () => { presence = "all"; void field.set("*", "compound"); } } }, "Show all")] }));
  });

  const load = inOrder(
    () => get("/v1/fleet", { query: { tgt: "*" }, salt: runnerOf("manage.fleet", "*") }),
    (found) => {
      all = found.minions;
      show();
    },
  );

  place.title(
    "Fleet",
    h("button", { type: "button", on: { click: () => withTarget("run") } }, "Run"),
    h("button", { type: "button", on: { click: () => withTarget("plan") } }, "Plan"),
  );
  place.keys.r = { text: "Run a function on these minions", run: () => withTarget("run") };
  place.keys.p = { text: "Plan states for these minions", run: () => withTarget("plan") };
  fill(place.main, h("div", { class: "bar" }, field.element, chips), list.element, empty);
  list.element.hidden = true;
  fill(empty, h("p", { class: "muted pad" }, "Loading the fleet ..."));
  const timer = window.setInterval(() => {
    if (!document.hidden) load().catch(() => {});
  }, AGAIN);
  // A minion that signs in or starts is shown soon; many at once are one look.
  let due = 0;
  const stop = events.listen((event) => {
    if (!due && /^(salt\/(auth|key|presence)|minion_start|salt\/minion\/)/.test(event.tag)) {
      due = window.setTimeout(() => { due = 0; load().catch(() => {}); }, 3000);
    }
  });
  place.onLeave(() => { clearInterval(timer); clearTimeout(due); stop(); });
  // Last: a minion that arrives during the first look is shown by the next.
  await Promise.all([load(), field.look()]);
}
