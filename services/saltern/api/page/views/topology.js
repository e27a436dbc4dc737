/** The parts of the master: roles, queues, Redis, as they are now, and how they were in the last minutes. */

import { get } from "../api.js";
import { calmly, fill, h, refill, s } from "../dom.js";
import { events } from "../event_stream.js";
import { ago, bytes, counted, duration, number } from "../format.js";

const AGAIN = 3000;
const KEPT = 60;

/** Name of a figure -> its last values. @type {Map<string, number[]>} */
const history = new Map();

/**
 * @param {string} name
 * @param {number} value
 */
function noted(name, value) {
  const values = history.get(name) ?? [];
  values.push(value);
  if (values.length > KEPT) values.shift();
  history.set(name, values);
  return values;
}

/**
 * A small line of the last values.
 * @param {number[]} values
 */
function line(values) {
  const most = Math.max(1, ...values);
  const points = values.map((value, index) => `${(100 * (index + KEPT - values.length)) / (KEPT - 1)},${22 - (20 * value) / most}`);
  return s("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, s("polyline", { points: points.join(" ") }));
}

/**
 * @param {string} title
 * @param {string} about
 * @param {string} state ok, bad or unknown
 * @param {(Node | null)[]} children
 */
function part(title, about, state, ...children) {
  const words = /** @type {Record<string, string>} */ ({ ok: "works", bad: "does not work", unknown: "not known from here" });
  return h("section", { class: `part ${state}`, "aria-label": `${title}: ${words[state]}` }, h("header", {}, h("span", { class: "dot", "aria-hidden": "true" }), h("h3", {}, title)), h("p", { class: "muted" }, about), ...children);
}

/** @param {[string, string | Node][]} rows */
function figures(rows) {
  return h("dl", { class: "figures" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Clients of Redis by role. @param {any} found @param {string} role */
function replicas(found, role) {
  return found.clients.filter((/** @type {any} */ each) => each.name === role || each.name.startsWith(`${role}-`));
}

/** @type {import("../app.js").View} */
export async function topologyView(place) {
  const body = h("div", { class: "topology" });
  place.title("Topology");
  fill(place.main, body);

  /** @param {any} found */
  const draw = (found) => {
    const { now } = found;
    const lanes = [];
    const requests = Object.entries(found.reqservers);
    const api = found.api;
    const lag = (/** @type {any} */ each) => Math.max(0, found.newest_publication - each.sent);
    const publishers = Object.entries(found.publishers).filter(([, each]) => now - /** @type {any} */ (each).seen < 120000);
    lanes.push(
      lane("Doors", "What minions and operators reach", [
        part("publisher", "4505: jobs to minions", publishers.length ? "ok" : "bad", figures([
          ["Replicas", number(publishers.length)],
          ...publishers.slice(0, 4).map(([name, each]) => /** @type {[string, string]} */ ([name, `sign ${ago(/** @type {any} */ (each).seen, now)}, ${lag(each) ? `${duration(lag(each) / 1000)} behind` : "nothing to send"}`])),
        ])),
        ...(requests.length
          ? requests.map(([name, told]) => {
              const each = /** @type {any} */ (told);
              const pools = Object.entries(each.pools ?? {});
              const waiting = pools.reduce((sum, [, pool]) => sum + /** @type {any} */ (pool).waiting, 0);
              return part("reqserver", `4506, 4507: ${name}`, waiting > 100 ? "bad" : "ok", figures([
                ["Queue", h("span", {}, number(waiting), line(noted(`queue ${name}`, waiting)))],
                ...pools.map(([pool, one]) => /** @type {[string, string]} */ ([pools.length > 1 ? `Pool ${pool}` : "Workers", `${/** @type {any} */ (one).busy} of ${/** @type {any} */ (one).workers} busy`])),
                ["Minions connected", number(each.connections)],
                ["Told", `${ago(each.at, now)}`],
              ]));
            })
          : [part("reqserver", "4506, 4507: requests", "unknown", h("p", { class: "muted" }, "No report yet: it tells a worker every 5 seconds."))]),
        part("event publisher", "4513: the event bus", events.state === "live" ? "ok" : "bad", figures([["This page's stream", events.state], ["Events seen", h("span", {}, number(events.count), line(noted("events", events.count - (history.get("events seen")?.at(-1) ?? events.count))))], ["Streams resumed", number(events.resumed)]])),
        part("api", "This page, and salt-api", "ok", figures([["Requests", number(api.requests)], ["Listeners", number(api.listeners)], ["Up", ago(api.started * 1000, api.now * 1000)]])),
      ]),
    );
    noted("events seen", events.count);
    const workers = replicas(found, "mworker");
    const reactors = replicas(found, "reactor");
    const maintenance = replicas(found, "maintenance");
    lanes.push(
      lane("Work", "What does the work, behind the doors", [
        part("mworker", "answers requests, runs runners", workers.length ? "ok" : "bad", figures([...where(workers), ["Runners running", number(found.lengths.runners)]])),
        part("reactor", "runs reactions, engines, schedules", reactors.length ? (found.reactor.dead ? "bad" : "ok") : "unknown", figures([...where(reactors), ["Backlog", h("span", {}, number(found.reactor.waiting), line(noted("backlog", found.reactor.waiting)))], ["In hand", number(found.reactor.in_hand)], ["Given up", number(found.reactor.dead)]])),
        part("maintenance", "expires jobs, rotates keys", maintenance.length ? "ok" : "unknown", figures(where(maintenance))),
      ]),
    );
    const redis = found.redis;
    const limit = redis.maxmemory || redis.total_system_memory || 0;
    lanes.push(
      lane("Memory", "Everything that must outlive a role", [
        part("Redis", `${redis.redis_version ?? ""}, ${redis.role ?? ""}`, redis.aof_last_write_status === "err" || redis.evicted_keys > 0 ? "bad" : "ok", figures([
          ["Memory", `${bytes(redis.used_memory)}${limit ? ` of ${bytes(limit)}` : ""}`],
          ["Commands a second", h("span", {}, number(redis.instantaneous_ops_per_sec), line(noted("ops", redis.instantaneous_ops_per_sec)))],
          ["Append-only file", redis.aof_enabled ? "on" : "off"],
          ["Replicas", number(redis.connected_slaves)],
          ["Up", ago(now - redis.uptime_in_seconds * 1000, now)],
          ["Keys", number(redis.keys)],
        ])),
        part("Kept", "What Redis keeps now", "ok", figures([["Jobs", number(found.lengths.jobs)], ["Waiting jobs", number(found.lengths.waiting_jobs)], ["Publications", number(found.lengths.publications)], ["Events", number(found.lengths.events)]])),
        part("Minions", counted(found.minions.accepted ?? 0, "accepted key"), "ok", figures([["Present", number(found.minions.present)], ["Pending", h("a", { href: "#/keys" }, number(found.minions.pending ?? 0))], ["Rejected", number(found.minions.rejected ?? 0)], ["Denied", number(found.minions.denied ?? 0)]])),
      ]),
    );
    refill(body, lanes);
    place.title(`Topology of ${found.master}`);
  };

  /** @param {any[]} found @returns {[string, string][]} */
  const where = (found) => [
    ["Replicas", number(found.length)],
    ...found.slice(0, 4).map((each) => /** @type {[string, string]} */ ([each.address || "here", `up ${duration(each.age)}`])),
  ];

  /**
   * @param {string} title
   * @param {string} about
   * @param {Node[]} parts
   */
  const lane = (title, about, parts) => h("div", { class: "lane" }, h("header", {}, h("h2", {}, title), h("p", { class: "muted" }, about)), h("div", { class: "parts" }, parts));

  const load = async () => {
    const found = await get("/v1/topology", { salt: "salt-run manage.topology" });
    calmly(() => draw(found))();
  };
  fill(body, h("p", { class: "muted pad" }, "Looking ..."));
  await load();
  const again = async () => {
    if (place.gone()) return;
    try {
      if (!document.hidden) await load();
      body.classList.remove("stale");
    } catch {
      body.classList.add("stale");
    }
    if (!place.gone()) timer = window.setTimeout(again, AGAIN);
  };
  let timer = window.setTimeout(again, AGAIN);
  place.onLeave(() => clearTimeout(timer));
}
