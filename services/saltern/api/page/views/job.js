/** One job: a matrix of minions and states that fills while returns come, and what each minion returned. */

import { get, run } from "../api.js";
import { announce, calmly, fill, h, notice, refill } from "../dom.js";
import { events } from "../event_stream.js";
import { cameBefore } from "./events.js";
import { block, counted, dateAndTime, duration, jidTime, number, shown } from "../format.js";
import { bar, functionText, targetText } from "./jobs.js";
import { runnerOf } from "../shell_words.js";
import { VirtualList } from "../virtual_list.js";

/**
 * @typedef {{tag: string, id: string, function: string, name: string, sls: string}} Column
 * @typedef {{id: string, failed: boolean, retcode: number, cells: string, seconds: number, preview: string, digest: string}} Answer
 * @typedef {{id: string, state: string, answer: Answer | null, cells: Map<string, string>}} Row `cells`: tag -> letter
 */

/** Most ids in one question. */
const TOGETHER = 100;

/** Milliseconds between two looks at the states of a job that goes on. */
const LOOK = 4000;

/** Letter of a cell -> class and word. */
const LETTERS = /** @type {Record<string, [string, string]>} */ ({
  "=": ["same", "as wanted"],
  "~": ["changed", "changed"],
  "!": ["failed", "failed"],
  "?": ["would", "would change"],
  x: ["blocked", "not run: a requisite failed"],
  "-": ["skipped", "skipped"],
});

/** Order in which minions are shown: the lower first. @param {Row} row */
function rank(row) {
  if (row.answer?.failed) return 0;
  if (!row.answer) return row.state === "lost" || row.state === "expired" ? 1 : row.state === "offline" ? 3 : 2;
  return [...row.cells.values()].some((letter) => letter === "~" || letter === "?") ? 4 : 5;
}

const WAITING = /** @type {Record<string, string>} */ ({
  expected: "published",
  delivered: "has the job",
  started: "works on it",
  offline: "offline",
  lost: "lost: it fell silent",
  cancelled: "cancelled",
  expired: "expired",
});

/** @type {import("../app.js").View} */
export async function jobView(place) {
  const jid = place.parts[0] ?? "";
  /** @type {Map<string, Column>} */
  const columns = new Map();
  /** @type {Map<string, Row>} */
  const rows = new Map();
  /** @type {Column[]} */
  let seen = [];
  let show = "all";
  let folded = true;
  let chosen = place.query.get("minion") ?? "";
  /** @type {any} */
  let job = null;
  const gone = place.gone;
  let closed = false;

  const summary = h("div", { class: "summary" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Which minions" });
  const legend = h("div", { class: "legend" });
  const headCells = h("div", { class: "cells" });
  const status = h("div", { class: "hint", "aria-hidden": "true" }, "Point at a cell to see its state");
  const head = h("div", { class: "mrow mhead", role: "row" }, h("div", { role: "columnheader", class: "m-id" }, "Minion"), h("div", { role: "columnheader", class: "m-cells" }, headCells), h("div", { role: "columnheader", class: "m-sum" }, "Result"));
  const detail = h("section", { class: "detail", "aria-label": "Return of the minion", tabindex: "-1" });
  /** @type {VirtualList<Row>} */
  const list = new VirtualList({
    label: "Minions of this job",
    kind: "matrix",
    height: 28,
    head,
    key: (row) => row.id,
    make: () => h("div", { class: "mrow" }, h("div", { role: "gridcell", class: "m-id" }), h("div", { role: "gridcell", class: "m-cells" }, h("div", { class: "cells" })), h("div", { role: "gridcell", class: "m-sum" })),
    draw: (element, row) => {
      const [id, cells, sum] = element.children;
      id.textContent = row.id;
      element.classList.toggle("bad", row.answer?.failed ?? false);
      element.classList.toggle("away", !row.answer);
      drawCells(/** @type {HTMLElement} */ (cells.firstElementChild), row);
      fill(sum, result(row));
    },
    move: (row) => choose(row.id, false),
    open: (row) => choose(row.id, true),
  });
  place.onLeave(() => list.destroy());

  /**
   * @param {HTMLElement} where
   * @param {Row} row
   */
  const drawCells = (where, row) => {
    if (!seen.length) {
      if (where.className !== "preview") where.className = "preview";
      where.textContent = row.answer?.preview ?? "";
      return;
    }
    where.className = "cells";
    while (where.children.length > seen.length) where.lastElementChild?.remove();
    while (where.children.length < seen.length) where.append(h("span", { "aria-hidden": "true" }));
    for (let index = 0; index < seen.length; index += 1) {
      const letter = row.cells.get(seen[index].tag) ?? "";
      const cell = /** @type {HTMLElement} */ (where.children[index]);
      const kind = LETTERS[letter]?.[0] ?? (row.answer ? "none" : "open");
      if (cell.className !== kind) cell.className = kind;
      const sign = letter === "=" || letter === "-" ? "" : letter;
      if (cell.textContent !== sign) cell.textContent = sign;
      cell.dataset.column = String(index);
    }
  };

  /** @param {Row} row */
  const result = (row) => {
    if (!row.answer) {
      const done = row.cells.size;
      return h("span", { class: row.state === "lost" || row.state === "expired" ? "bad" : "muted" }, done ? `${counted(done, "state")} done` : WAITING[row.state] ?? row.state);
    }
    if (!row.cells.size) return h("span", { class: row.answer.failed ? "bad" : "muted" }, row.answer.failed ? `failed (${row.answer.retcode})` : "ok");
    const counts = countsOf(row);
    const parts = [];
    if (counts["!"]) parts.push(h("span", { class: "bad" }, `${counts["!"]} failed`));
    if (counts["~"]) parts.push(h("span", { class: "accent" }, `${counts["~"]} changed`));
    if (counts["?"]) parts.push(h("span", { class: "accent" }, `${counts["?"]} would change`));
    if (!parts.length) parts.push(h("span", { class: "muted" }, "as wanted"));
    parts.push(h("span", { class: "muted num" }, duration(row.answer.seconds)));
    return h("span", { class: "sum" }, ...parts);
  };

  /** @param {Row} row */
  const countsOf = (row) => {
    const counts = /** @type {Record<string, number>} */ ({});
    for (const letter of row.cells.values()) counts[letter] = (counts[letter] ?? 0) + 1;
    return counts;
  };

  list.element.addEventListener("pointerover", (event) => {
    const cell = /** @type {HTMLElement} */ (event.target).closest?.("[data-column]");
    const at = cell instanceof HTMLElement ? Number(cell.dataset.column) : -1;
    const column = seen[at];
    if (!column || !(cell instanceof HTMLElement)) return;
    const row = rows.get(cell.closest(".vrow")?.querySelector(".m-id")?.textContent ?? "");
    const word = row ? LETTERS[row.cells.get(column.tag) ?? ""]?.[1] : "";
    fill(status, h("strong", {}, column.function), " ", column.name, h("span", { class: "muted" }, column.sls ? `  ${column.sls}.sls` : "", word ? `  ${word}` : ""));
  });

  const draw = calmly(() => {
    if (gone()) return;
    const every = [...rows.values()];
    const failed = every.filter((row) => row.answer?.failed);
    const changed = every.filter((row) => row.answer && !row.answer.failed && [...row.cells.values()].some((letter) => letter === "~" || letter === "?"));
    const open = every.filter((row) => !row.answer);
    const choices = /** @type {[string, string, Row[]][]} */ ([["all", "All", every], ["failed", "Failed", failed], ["changed", "Changed", changed], ["open", "Not returned", open]]);
    refill(
      chips,
      choices.map(([name, title, found]) => h("button", { class: "chip", type: "button", "aria-pressed": String(show === name), on: { click: () => { show = name; draw(); } } }, `${title} `, h("strong", {}, number(found.length)))),
      columns.size > 1 ? h("label", { class: "check" }, h("input", { type: "checkbox", checked: folded, on: { change: (/** @type {Event} */ event) => { folded = /** @type {HTMLInputElement} */ (event.target).checked; draw(); } } }), "Hide states that are as wanted everywhere") : null,
    );
    const all = [...columns.values()];
    const odd = new Set();
    for (const row of every) for (const [tag, letter] of row.cells) if (letter !== "=" && letter !== "-") odd.add(tag);
    seen = folded && odd.size ? all.filter((column) => odd.has(column.tag)) : all.length > 400 ? all.slice(0, 400) : all;
    drawHead(all.length);
    const found = (choices.find(([name]) => name === show) ?? choices[0])[2];
    const ordered = found.map((row) => ({ row, at: rank(row) }));
    ordered.sort((one, other) => one.at - other.at || (one.row.id < other.row.id ? -1 : 1));
    list.set(ordered.map((each) => each.row));
    drawSummary(every, failed, open);
    // The first failure is shown by itself where there is room, until the user closes it.
    if (!chosen && !closed && failed.length && innerWidth > 900) void choose(ordered.find((each) => each.row.answer?.failed)?.row.id ?? failed[0].id, false);
    if (chosen && list.item?.id !== chosen) {
      const index = list.items.findIndex((row) => row.id === chosen);
      if (index >= 0) list.go(index, false);
    }
  });

  /** @param {number} all */
  const drawHead = (all) => {
    /** @type {{sls: string, count: number}[]} */
    const groups = [];
    for (const column of seen) {
      const last = groups[groups.length - 1];
      if (last && last.sls === column.sls) last.count += 1;
      else groups.push({ sls: column.sls, count: 1 });
    }
    fill(
      headCells,
      groups.map((group) => {
        const made = h("span", { class: "group clip", title: group.sls }, group.count > 2 ? group.sls : "");
        made.style.width = `${group.count * 18}px`;
        return made;
      }),
    );
    head.children[1].setAttribute("aria-label", "States");
    const hidden = all - seen.length;
    fill(
      legend,
      columns.size
        ? Object.values({ same: LETTERS["="], changed: LETTERS["~"], would: LETTERS["?"], failed: LETTERS["!"], blocked: LETTERS.x }).map(([kind, word]) =>
            h("span", {}, h("i", { class: kind, "aria-hidden": "true" }, { changed: "~", would: "?", failed: "!", blocked: "x" }[kind] ?? ""), word),
          )
        : null,
      hidden ? h("span", { class: "muted" }, `${counted(hidden, "state")} as wanted everywhere`) : null,
    );
  };

  /**
   * @param {Row[]} every
   * @param {Row[]} failed
   * @param {Row[]} open
   */
  const drawSummary = (every, failed, open) => {
    const lost = open.filter((row) => ["lost", "expired", "offline", "cancelled"].includes(row.state)).length;
    const left = open.length - lost;
    const words = [`${number(every.length - open.length)} of ${counted(every.length, "minion")} returned`];
    if (failed.length) words.push(`${number(failed.length)} failed`);
    if (left) words.push(`${number(left)} to come`);
    if (lost) words.push(`${number(lost)} away or lost`);
    fill(
      summary,
      h(
        "dl",
        { class: "facts" },
        fact("Target", targetText(job.tgt)),
        fact("Arguments", argumentsText(job.arg)),
        fact("User", String(job.user ?? "")),
        fact("Started", dateAndTime(job.created || jidTime(jid))),
        fact("JID", jid),
      ),
      h("div", { class: "progress-line" }, bar(every.length - open.length - failed.length, failed.length, open.length), h("span", { id: "progress", role: "status" }, words.join(", "))),
    );
  };

  /**
   * @param {string} name
   * @param {string} text
   */
  const fact = (name, text) => (text ? h("div", {}, h("dt", {}, name), h("dd", { class: "clip", title: text }, text)) : null);

  /** @param {any} arg */
  const argumentsText = (arg) => (Array.isArray(arg) && arg.length ? arg.map((each) => (typeof each === "string" ? each : JSON.stringify(withoutMark(each)))).join(" ") : "");

  /** @param {any} value */
  const withoutMark = (value) => {
    if (!value || typeof value !== "object" || Array.isArray(value)) return value;
    const { __kwarg__: _, ...rest } = value;
    return rest;
  };

  /* ------------------------------------------------------------------------------------------------------- loading */

  const salt = runnerOf("jobs.list_job", jid);

  /** @param {any} page */
  const take = (page) => {
    if (gone()) return;
    for (const column of page.columns) if (!columns.has(column.tag)) columns.set(column.tag, column);
    for (const answer of page.rows) {
      const row = rows.get(answer.id) ?? { id: answer.id, state: "returned", answer: null, cells: new Map() };
      row.state = "returned";
      row.answer = answer;
      row.cells = new Map();
      for (let index = 0; index < answer.cells.length; index += 1) {
        const letter = answer.cells[index];
        if (letter !== " ") row.cells.set(page.columns[index].tag, letter);
      }
      rows.set(answer.id, row);
      if (answer.id === chosen && !detail.dataset.loaded) void choose(chosen, false);
    }
  };

  const loadStatus = async () => {
    job = await get(`/v1/jobs/${jid}`, { salt });
    for (const [id, told] of Object.entries(job.minions)) {
      const row = rows.get(id) ?? { id, state: "", answer: null, cells: new Map() };
      row.state = /** @type {any} */ (told).state;
      rows.set(id, row);
    }
    return [...rows.values()].filter((row) => row.state === "returned" && !row.answer).map((row) => row.id);
  };

  const loadAll = async () => {
    let cursor = "";
    do {
      const page = await get(`/v1/jobs/${jid}/matrix`, { query: { cursor }, salt });
      take(page);
      cursor = page.cursor ?? "";
      draw();
    } while (cursor && !gone());
  };

  /** @type {Set<string>} */
  const fresh = new Set();
  let fetching = false;
  let due = 0;

  /** Ask for the returns of these minions soon, many of them in one question. @param {string[]} ids */
  const want = (ids) => {
    for (const id of ids) if (!id.includes(",")) fresh.add(id);
    if (!due && !fetching && fresh.size) due = window.setTimeout(fetchFresh, 150);
  };

  const fetchFresh = async () => {
    due = 0;
    fetching = true;
    const some = [...fresh].slice(0, TOGETHER);
    for (const id of some) fresh.delete(id);
    try {
      take(await get(`/v1/jobs/${jid}/matrix`, { query: { minions: some.join(",") }, salt }));
      draw();
    } catch {
      // The next look at the job's status finds these minions again.
    } finally {
      fetching = false;
      if (!gone()) want([]);
    }
  };

  /** @param {import("../event_stream.js").RawEvent} event */
  const heard = (event) => {
    if (!event.tag.startsWith(`salt/job/${jid}/`)) return;
    const [, , , kind, id] = event.tag.split("/");
    if (kind === "ret" && id) {
      const row = rows.get(id);
      if (!row?.answer) want([id]);
    } else if (kind === "prog" && id) {
      progress(id, event);
    }
  };

  /**
   * One state of a minion is done (the option state_events).
   * @param {string} id
   * @param {import("../event_stream.js").RawEvent} event
   */
  const progress = (id, event) => {
    const row = rows.get(id);
    if (!row || row.answer) return;
    let ret;
    try {
      ret = JSON.parse(event.text).data?.data?.ret;
    } catch {
      return;
    }
    if (!ret || typeof ret !== "object") return;
    const column = [...columns.values()].find((each) => each.id === ret.__id__ && each.name === ret.name);
    const tag = column?.tag ?? `live_|-${ret.__id__}_|-${ret.name}_|-${ret.__run_num__}`;
    row.cells.set(tag, ret.result === false ? "!" : ret.result === null ? "?" : Object.keys(ret.changes ?? {}).length ? "~" : "=");
    drawSoon();
  };

  let drawing = 0;
  const drawSoon = () => {
    if (!drawing && !gone()) drawing = window.setTimeout(() => { drawing = 0; draw(); }, 200);
  };

  /* -------------------------------------------------------------------------------------------------------- detail */

  /**
   * Show the return of a minion.
   * @param {string} id
   * @param {boolean} focus
   */
  const choose = async (id, focus) => {
    chosen = id;
    history.replaceState(null, "", `#/job/${jid}?minion=${encodeURIComponent(id)}`);
    const row = rows.get(id);
    document.body.classList.toggle("with-detail", true);
    const close = h("button", { class: "small", type: "button", on: { click: closeDetail } }, "Close");
    const heading = h("header", {}, h("h2", { class: "clip" }, h("a", { href: `#/minion/${encodeURIComponent(id)}` }, id)), close);
    if (!row?.answer) {
      delete detail.dataset.loaded;
      fill(detail, heading, h("p", { class: "muted pad" }, row ? `Nothing came yet: ${WAITING[row.state] ?? row.state}.` : "This minion is not in the job."));
      return;
    }
    detail.dataset.loaded = id;
    fill(detail, heading, h("p", { class: "muted pad" }, "Loading ..."));
    try {
      const found = await get(`/v1/jobs/${jid}/returns/${encodeURIComponent(id)}`, { salt: runnerOf("jobs.lookup_jid", jid) });
      if (chosen !== id || gone()) return;
      fill(detail, heading, returned(found, row));
      if (focus) detail.focus();
    } catch (error) {
      const fault = /** @type {any} */ (error);
      if (chosen === id) fill(detail, heading, notice(fault.message, fault.advice ?? "", { kind: "bad" }));
    }
  };

  const closeDetail = () => {
    closed = true;
    chosen = "";
    delete detail.dataset.loaded;
    fill(detail);
    document.body.classList.remove("with-detail");
    history.replaceState(null, "", `#/job/${jid}`);
    list.element.focus();
  };
  place.onLeave(() => document.body.classList.remove("with-detail"));

  /**
   * @param {any} load
   * @param {Row} row
   */
  const returned = (load, row) => {
    if (!row.cells.size) return shown(load.return);
    const entries = Object.entries(load.return).map(([tag, entry]) => ({ tag, entry: /** @type {any} */ (entry), letter: row.cells.get(tag) ?? "=" }));
    const order = "!x~?-=";
    entries.sort((one, other) => order.indexOf(one.letter) - order.indexOf(other.letter) || (one.entry.__run_num__ ?? 0) - (other.entry.__run_num__ ?? 0));
    const calm = entries.filter((each) => each.letter === "=" || each.letter === "-");
    return h(
      "div",
      { class: "states" },
      entries.filter((each) => !calm.includes(each)).map(stateOf),
      calm.length ? h("details", { open: calm.length === entries.length }, h("summary", {}, counted(calm.length, "state"), " as wanted"), calm.map(stateOf)) : null,
    );
  };

  /** @param {{tag: string, entry: any, letter: string}} each */
  const stateOf = ({ tag, entry, letter }) => {
    const column = columns.get(tag);
    const [kind, word] = LETTERS[letter] ?? ["same", ""];
    const changes = entry.changes && Object.keys(entry.changes).length ? entry.changes : null;
    return h(
      "article",
      { class: `state ${kind}` },
      h("h3", {}, h("i", { class: kind, "aria-hidden": "true" }, letter === "=" ? "" : letter), h("span", { class: "unseen" }, `${word}: `), column?.function ?? tag, h("span", { class: "mono" }, String(entry.name ?? ""))),
      h("p", { class: "muted meta" }, `${entry.__id__ ?? ""}${entry.__sls__ ? ` in ${entry.__sls__}` : ""}${entry.duration ? `, ${duration(parseFloat(entry.duration) / 1000)}` : ""}`),
      letter === "=" ? null : entry.comment ? h("p", { class: "comment" }, String(entry.comment)) : null,
      changes ? shown(changes) : null,
      Array.isArray(entry.warnings) && entry.warnings.length ? block(entry.warnings.join("\n")) : null,
    );
  };

  /* --------------------------------------------------------------------------------------------------------- start */

  let rerunning = false;
  const rerun = async () => {
    if (rerunning) return;
    const failed = [...rows.values()].filter((row) => row.answer?.failed).length;
    if (!failed) {
      announce("No minion failed");
      return;
    }
    rerunning = true;
    try {
      const found = await run({ client: "runner", fun: "jobs.rerun", jid, failed: true });
      if (!found?.jid) throw new Error(typeof found === "string" ? found : "The job was not published again.");
      place.go(`#/job/${found.jid}`);
    } catch (error) {
      const fault = /** @type {any} */ (error);
      summary.append(notice(fault.message, fault.advice ?? "", { kind: "bad" }));
    } finally {
      rerunning = false;
    }
  };

  if (!/^\d{20}$/.test(jid)) {
    fill(place.main, notice("This is no JID", "A JID has 20 digits: the UTC time of the job to the microsecond.", { kind: "bad", actions: [h("a", { class: "button", href: "#/jobs" }, "Jobs")] }));
    return;
  }
  place.title("Job");
  fill(place.main, h("p", { class: "muted pad" }, "Loading the job ..."));
  await loadStatus();
  if (gone()) return;
  place.title(
    functionText(job.fun),
    h("button", { type: "button", id: "rerun", on: { click: rerun } }, "Rerun failed"),
    h("a", { class: "button", href: `#/run?${new URLSearchParams({ tgt: Array.isArray(job.tgt) ? job.tgt.join(",") : String(job.tgt), type: Array.isArray(job.tgt) ? "list" : String(job.tgt_type ?? "glob"), fun: functionText(job.fun), arg: JSON.stringify(job.arg ?? []) })}` }, "Again"),
  );
  place.keys.F = { text: "Rerun on the minions that failed", run: rerun };
  place.keys.f = { text: "Only failures", run: () => { show = show === "failed" ? "all" : "failed"; draw(); } };
  place.keys.h = { text: "Hide or show states that are as wanted", run: () => { folded = !folded; draw(); } };
  fill(place.main, summary, h("div", { class: "bar" }, chips), h("div", { class: "legend-line" }, legend, status), h("div", { class: "split" }, list.element, detail));
  place.onLeave(events.listen(heard));
  // States that were done between the publication and now.
  for (const event of cameBefore(`salt/job/${jid}/prog/`)) heard(event);
  draw();
  await loadAll();
  const look = async () => {
    if (gone()) return;
    try {
      if (!document.hidden && [...rows.values()].some((row) => !row.answer)) {
        want(await loadStatus());
        draw();
      }
    } catch {
      // The API is away for a moment; the page goes on when it is back.
    }
    if (!gone()) timer = window.setTimeout(look, LOOK);
  };
  let timer = window.setTimeout(look, LOOK / 4);
  place.onLeave(() => { clearTimeout(timer); clearTimeout(due); clearTimeout(drawing); });
}
