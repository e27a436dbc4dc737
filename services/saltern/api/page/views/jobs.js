/** The list of jobs, newest first, with how each went. */

import { get } from "../api.js";
import { calmly, fill, h, notice, refill } from "../dom.js";
import { ago, jidTime, number } from "../format.js";
import { events } from "../event_stream.js";
import { runnerOf } from "../shell_words.js";
import { VirtualList } from "../virtual_list.js";

/** @typedef {{jid: string, load: Record<string, any>, meta: Record<string, string>}} Job */

const PAGE = 200;

/** Name of a choice -> title, and filters of the API. @type {[string, string, Record<string, any>][]} */
const CHOICES = [
  ["all", "All", {}],
  ["failed", "Failed", { success: false }],
  ["running", "Running", { state: "running" }],
  ["states", "State runs", { function: "state.*" }],
];

/** Jobs of the master about other jobs, and of pages that only look. */
const NOISE = new Set(["saltutil.find_job"]);

/** @param {string | undefined} text */
const whole = (text) => Number(text ?? 0) || 0;

/**
 * The bar of a job: how many succeeded, failed, and are missing.
 * @param {number} good
 * @param {number} bad
 * @param {number} left
 */
export function bar(good, bad, left) {
  const all = Math.max(1, good + bad + left);
  const part = (/** @type {string} */ kind, /** @type {number} */ count) => {
    const made = h("span", { class: kind });
    made.style.width = `${(100 * count) / all}%`;
    return made;
  };
  return h("span", { class: "progress", "aria-hidden": "true" }, part("good", good), part("bad", bad), part("left", left));
}

/** @param {any} tgt */
export function targetText(tgt) {
  return Array.isArray(tgt) ? (tgt.length > 3 ? `${tgt.slice(0, 3).join(", ")} and ${tgt.length - 3} more` : tgt.join(", ")) : String(tgt ?? "");
}

/** @param {any} fun */
export function functionText(fun) {
  return Array.isArray(fun) ? fun.join(", ") : String(fun ?? "");
}

/** @type {import("../app.js").View} */
export async function jobsView(place) {
  let choice = place.query.get("show") ?? "all";
  /** @type {Job[]} */
  let jobs = [];
  let cursor = "";
  let words = place.query.get("q") ?? "";
  let loading = false;
  // A choice while an answer is on its way: the newest question counts.
  let turn = 0;

  const chips = h("div", { class: "chips", role: "group", "aria-label": "Which jobs" });
  const empty = h("div", {});
  const search = /** @type {HTMLInputElement} */ (
    h("input", { type: "search", id: "job-search", value: words, placeholder: "function, user or minion", "aria-label": "Filter the jobs", spellcheck: "false" })
  );
  /** @type {VirtualList<Job>} */
  const list = new VirtualList({
    label: "Jobs",
    kind: "jobs",
    height: 44,
    key: (job) => job.jid,
    make: () =>
      h(
        "div",
        { class: "jrow" },
        h("div", { role: "gridcell", class: "j-fun" }, h("strong", {}), h("span", { class: "muted clip" })),
        h("div", { role: "gridcell", class: "j-bar" }),
        h("div", { role: "gridcell", class: "j-count" }),
        h("div", { role: "gridcell", class: "j-user muted" }),
        h("div", { role: "gridcell", class: "j-when muted num" }),
      ),
    draw: (row, job) => {
      const [fun, progress, count, by, when] = row.children;
      fun.children[0].textContent = functionText(job.load.fun);
      const args = Array.isArray(job.load.arg) ? job.load.arg.filter((each) => typeof each === "string").join(" ") : "";
      fun.children[1].textContent = `${args ? `${args}  ·  ` : ""}${targetText(job.load.tgt)}`;
      const expected = whole(job.meta.expected);
      const returned = whole(job.meta.returned);
      const failed = whole(job.meta.failed);
      const left = job.meta.ended ? 0 : Math.max(0, expected - whole(job.meta.answered));
      fill(progress, bar(returned - failed, failed, Math.max(0, expected - returned)));
      fill(
        count,
        failed ? h("span", { class: "bad" }, `${number(failed)} failed`) : left ? h("span", { class: "accent" }, `${number(left)} to come`) : h("span", { class: "muted" }, `${number(returned)} of ${number(expected)}`),
      );
      by.textContent = String(job.load.user ?? "");
      const at = jidTime(job.jid);
      when.textContent = at ? ago(at) : job.jid;
    },
    open: (job) => place.go(`#/job/${job.jid}`),
  });
  place.onLeave(() => list.destroy());

  const filters = () => {
    const more = /** @type {Record<string, any>} */ ({ ...CHOICES.find(([name]) => name === choice)?.[2] });
    // One field for three filters: a function has a dot, `user:` and `minion:` name theirs.
    for (const word of words.split(/\s+/).filter(Boolean)) {
      const [, kind, value] = /^(user|minion|target|function|after|before):(.+)$/.exec(word) ?? [];
      if (kind) more[kind] = value;
      else if (word.includes(".") && !more.function) more.function = word;
      else more.minion = word;
    }
    return more;
  };

  const load = async (/** @type {boolean} */ further) => {
    if (further && loading) return;
    turn += 1;
    const mine = turn;
    loading = true;
    try {
      /** @type {Record<string, any>} */
      const query = { ...filters(), limit: PAGE, ...(further ? { cursor } : {}) };
      const shell = Object.entries(query).map(([name, value]) => `${name}=${value === false ? "False" : value}`);
      const found = await get("/v1/jobs", { query, salt: runnerOf("jobs.list_jobs", ...shell) });
      if (mine !== turn) return;
      const fresh = found.jobs.filter((/** @type {Job} */ job) => !NOISE.has(functionText(job.load.fun)));
      jobs = further ? [...jobs, ...fresh] : fresh;
      cursor = found.cursor ?? "";
      show();
    } finally {
      if (mine === turn) loading = false;
    }
  };

  const show = calmly(() => {
    refill(
      chips,
      CHOICES.map(([name, title]) => h("button", { class: "chip", type: "button", "aria-pressed": String(choice === name), on: { click: () => { choice = name; void reload(); } } }, title)),
    );
    list.set(jobs);
    list.element.hidden = jobs.length === 0;
    if (jobs.length) fill(empty, cursor ? h("button", { class: "more", type: "button", on: { click: () => void load(true) } }, "Older jobs") : null);
    else if (choice === "all" && !words) fill(empty, notice("No job yet", "A job appears here when somebody runs a function: here, by salt, or by a schedule.", { actions: [h("a", { class: "button", href: "#/run" }, "Run a function")] }));
    else fill(empty, notice("No job matches", "Jobs are kept for keep_jobs_seconds. Widen the filter, or choose All.", { actions: [h("button", { type: "button", on: { click: () => { choice = "all"; words = search.value = ""; void reload(); } } }, "Show all")] }));
  });

  const reload = async () => {
    try {
      await load(false);
    } catch (error) {
      list.element.hidden = true;
      const fault = /** @type {any} */ (error);
      fill(empty, notice(fault.message, fault.advice ?? "", { kind: "bad", actions: [h("button", { type: "button", on: { click: () => void reload() } }, "Try again")] }));
    }
  };

  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => { words = search.value.trim(); void reload(); }, 250);
  });
  place.title("Jobs", h("a", { class: "button", href: "#/run" }, "Run"));
  place.keys.r = { text: "Run a function", run: () => place.go("#/run") };
  fill(place.main, h("div", { class: "bar" }, h("div", { class: "target" }, search), chips), list.element, empty);
  list.element.hidden = true;
  show();
  fill(empty, h("p", { class: "muted pad" }, "Loading jobs ..."));
  // New jobs and returns change the list; many of them at once are one look. Listened for before the first look.
  let due = 0;
  const again = () => {
    due = 0;
    // What the user asked for comes first, and is not asked anew.
    if (loading) due = window.setTimeout(again, 500);
    else if (!document.hidden && list.element.scrollTop < 100 && jobs.length <= PAGE) load(false).catch(() => {});
  };
  const seen = () => {
    if (!document.hidden) again();
  };
  document.addEventListener("visibilitychange", seen);
  place.onLeave(
    events.listen((event) => {
      if (!due && /^salt\/job\/\d+\/(new|ret)/.test(event.tag)) due = window.setTimeout(again, 1500);
    }),
    () => { clearTimeout(due); clearTimeout(timer); document.removeEventListener("visibilitychange", seen); },
  );
  await reload();
}
