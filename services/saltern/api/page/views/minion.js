/** One minion: what is known about it, its jobs, the graph of its states, and why each state is as it is. */

import { ask, get } from "../api.js";
import { fill, h, notice } from "../dom.js";
import { ago, block, number, readable } from "../format.js";
import { graph } from "../graph.js";
import { runnerOf } from "../shell_words.js";
import { bar, functionText } from "./jobs.js";

/** @type {[string, string][]} */
const TABS = [["states", "States"], ["jobs", "Jobs"], ["grains", "Grains"], ["pillar", "Pillar"]];

/** @type {import("../app.js").View} */
export async function minionView(place) {
  const id = place.parts[0] ?? "";
  place.onLeave(() => document.body.classList.remove("with-detail"));
  const tab = TABS.some(([name]) => name === place.query.get("tab")) ? String(place.query.get("tab")) : "states";
  const body = h("div", { class: "tab-body" });
  const facts = h("dl", { class: "facts" });
  const here = `#/minion/${encodeURIComponent(id)}`;
  const target = new URLSearchParams({ tgt: id, type: "list" });
  place.title(id, h("a", { class: "button", href: `#/run?${target}` }, "Run"), h("a", { class: "button", href: `#/plan?${target}` }, "Plan"));
  place.keys.r = { text: "Run a function on this minion", run: () => place.go(`#/run?${target}`) };
  place.keys.p = { text: "Plan states for this minion", run: () => place.go(`#/plan?${target}`) };
  fill(
    place.main,
    facts,
    h("nav", { class: "tabs", "aria-label": "About this minion" }, TABS.map(([name, title]) => h("a", { href: `${here}?tab=${name}`, "aria-current": name === tab ? "page" : null }, title))),
    body,
  );
  void about();
  const tabs = /** @type {Record<string, () => Promise<void>>} */ ({ states, jobs, grains: () => data("grains.items"), pillar: () => data("pillar.items") });
  await tabs[tab]();

  async function about() {
    try {
      const found = await get("/v1/fleet", { query: { tgt: id, tgt_type: "list" }, salt: runnerOf("manage.fleet", id, "list") });
      const [minion] = found.minions;
      if (!minion) {
        fill(facts, h("div", {}, h("dt", {}, "Key"), h("dd", { class: "bad" }, "not accepted")));
        return;
      }
      const rows = [
        ["Seen", minion.present ? "present" : ago(minion.seen)],
        ["System", minion.os ? `${minion.os} ${minion.release} ${minion.arch}` : "unknown"],
        ["Salt", minion.salt ? `${minion.salt}${minion.saltern ? ", Saltern" : ""}` : ""],
        ["Address", minion.address],
        ["CPU", minion.cpus ? number(minion.cpus) : ""],
        ["Memory", minion.memory ? `${(minion.memory / 1024).toFixed(1)} GiB` : ""],
      ];
      fill(facts, rows.filter(([, text]) => text).map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));
    } catch (error) {
      fill(facts, h("div", {}, h("dt", {}, "Facts"), h("dd", { class: "bad" }, /** @type {Error} */ (error).message)));
    }
  }

  /** @param {string} fun */
  async function data(fun) {
    fill(body, h("p", { class: "muted pad" }, `Asking ${id} ...`));
    const { value } = await ask(id, fun, []);
    fill(body, block(readable(value)));
  }

  async function jobs() {
    fill(body, h("p", { class: "muted pad" }, "Loading jobs ..."));
    const found = await get("/v1/jobs", { query: { minion: id, limit: 100 }, salt: runnerOf("jobs.list_jobs", `minion=${id}`, "limit=100") });
    if (!found.jobs.length) {
      fill(body, notice("No job for this minion is kept", "Jobs are kept for keep_jobs_seconds.", { actions: [h("a", { class: "button", href: `#/run?${target}` }, "Run a function")] }));
      return;
    }
    fill(
      body,
      h(
        "table",
        { class: "plain-table" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Function"), h("th", { scope: "col" }, "Went"), h("th", { scope: "col" }, "User"), h("th", { scope: "col", class: "num" }, "When"))),
        h(
          "tbody",
          {},
          found.jobs.map((/** @type {any} */ job) => {
            const returned = Number(job.meta.returned ?? 0);
            const failed = Number(job.meta.failed ?? 0);
            return h(
              "tr",
              {},
              h("td", {}, h("a", { href: `#/job/${job.jid}?minion=${encodeURIComponent(id)}` }, functionText(job.load.fun))),
              h("td", {}, bar(returned - failed, failed, Math.max(0, Number(job.meta.expected ?? 0) - returned))),
              h("td", { class: "muted" }, String(job.load.user ?? "")),
              h("td", { class: "muted num" }, ago(Number(job.meta.created))),
            );
          }),
        ),
      ),
    );
  }

  async function states() {
    const sls = /** @type {HTMLInputElement} */ (h("input", { type: "text", id: "graph-sls", value: place.query.get("sls") ?? "", placeholder: "SLS; empty: highstate", spellcheck: "false", autocomplete: "off", "aria-label": "States to draw" }));
    const drawing = h("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": "Graph of the states" });
    const detail = h("section", { class: "detail", "aria-label": "Explanation", tabindex: "-1" });
    const mods = () => sls.value.split(/[\s,]+/).filter(Boolean).join(",");

    // The newest question is answered: an older answer may come after it.
    let drawn = 0;
    let explains = 0;
    const draw = async () => {
      drawn += 1;
      explains += 1;
      const mine = drawn;
      fill(drawing, h("p", { class: "muted pad" }, `Asking ${id} ...`));
      fill(detail);
      document.body.classList.remove("with-detail");
      try {
        const { value } = await ask(id, "state.graph", mods() ? [mods()] : [], { format: "json" });
        if (mine !== drawn) return;
        if (value && typeof value === "object" && !Array.isArray(value) && Array.isArray(value.states)) {
          fill(drawing, graph(value.states, value.requisites ?? [], (box) => void explain(box)));
        } else if (/is not available/.test(String(value))) {
          fill(drawing, notice("This minion cannot draw its states", "It is a stock minion: state.graph is a function of Saltern's minions."));
        } else {
          fill(drawing, notice("These states do not compile", "Mend the tree, or name another SLS.", { kind: "bad" }), block(Array.isArray(value) ? value.join("\n") : readable(value)));
        }
      } catch (error) {
        const fault = /** @type {any} */ (error);
        if (mine === drawn) fill(drawing, notice(fault.message, fault.advice ?? "", { kind: "bad", actions: [h("button", { type: "button", on: { click: () => void draw() } }, "Try again")] }));
      }
    };

    /** @param {import("../graph.js").Box} box */
    const explain = async (box) => {
      explains += 1;
      const mine = explains;
      document.body.classList.add("with-detail");
      const close = h("button", { class: "small", type: "button", on: { click: () => { explains += 1; fill(detail); document.body.classList.remove("with-detail"); } } }, "Close");
      const heading = h("header", {}, h("h2", { class: "clip" }, box.id), close);
      fill(detail, heading, h("p", { class: "muted pad" }, "Asking why ..."));
      try {
        const { value } = await ask(id, "state.explain", [mods() || "highstate", box.id]);
        if (mine !== explains) return;
        fill(detail, heading, value && !Array.isArray(value) && Array.isArray(value.states) ? explained(value) : block(Array.isArray(value) ? value.join("\n") : readable(value)));
      } catch (error) {
        const fault = /** @type {any} */ (error);
        if (mine === explains) fill(detail, heading, notice(fault.message, fault.advice ?? "", { kind: "bad" }));
      }
    };

    fill(
      body,
      h("form", { class: "bar", on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); void draw(); } } }, h("div", { class: "target" }, h("div", { class: "joined" }, sls, h("button", { type: "submit" }, "Draw"))), h("p", { class: "muted hint" }, "Choose a state to see why it is as it is.")),
      h("div", { class: "split" }, drawing, detail),
    );
    await draw();
  }
}

/** @param {any} value what state.explain returns */
function explained(value) {
  const head = [
    value.at ? `declared in ${value.at}` : "",
    ...(value.included_through ?? []).map((/** @type {any} */ each) => `came in through ${each.at}: ${each.sls} includes ${each.includes}`),
    ...(value.extended_by ?? []).map((/** @type {any} */ each) => `extended by ${each.sls}, ${each.at}`),
  ].filter(Boolean);
  return h(
    "div",
    {},
    h("ul", { class: "reasons" }, head.map((line) => h("li", {}, line))),
    value.states.map((/** @type {any} */ state) =>
      h(
        "article",
        { class: "state same" },
        h("h3", {}, state.function, h("span", { class: "mono" }, String(state.name))),
        h("p", { class: "muted meta" }, `runs as ${state.position} of ${state.of}`),
        h("ul", { class: "reasons" }, (state.why ?? []).map((/** @type {string} */ line) => h("li", {}, line))),
        (state.requisites ?? []).length ? h("h4", {}, "Waits for") : null,
        (state.requisites ?? []).map((/** @type {any} */ each) => h("p", { class: "comment" }, h("strong", {}, each.kind), ` ${each.on}${each.by ? `, by ${each.by}` : ""} `, h("span", { class: "muted" }, each.means), " ", h("span", { class: "mono muted" }, each.at))),
        (state.required_by ?? []).length ? h("h4", {}, "Others wait for it") : null,
        (state.required_by ?? []).map((/** @type {any} */ each) => h("p", { class: "comment" }, `${each.position}. ${each.kind} ${each.function} ${each.id} `, h("span", { class: "mono muted" }, each.at))),
        h("h4", {}, "Arguments"),
        h(
          "table",
          { class: "plain-table arguments" },
          h("tbody", {}, (state.arguments ?? []).map((/** @type {any} */ each) => h("tr", {}, h("th", { scope: "row" }, each.name), h("td", { class: "mono" }, typeof each.value === "string" ? each.value : JSON.stringify(each.value), (each.instead_of ?? []).map((/** @type {any} */ old) => h("div", { class: "muted" }, `instead of ${JSON.stringify(old.value)} (${old.at})`))), h("td", { class: "mono muted" }, `${each.at}${each.by ? ` by ${each.by}` : ""}`)))),
        ),
      ),
    ),
  );
}
