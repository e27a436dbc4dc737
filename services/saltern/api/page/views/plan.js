/** Plan before apply: what states would change, minion by minion; approve; apply exactly this. */

import { get, publish } from "../api.js";
import { confirmed } from "../dialogs.js";
import { announce, calmly, fill, h, notice, refill } from "../dom.js";
import { follow } from "../follow.js";
import { block, counted, diff, readable, shown } from "../format.js";
import { runnerOf, saltOf } from "../shell_words.js";
import { TargetField } from "../target_field.js";
import { bar } from "./jobs.js";

/**
 * Minions with the same plan. `sealed`: the minions keep it, and apply it only as it is; else it is a stock minion's test run.
 * @typedef {{digest: string, minions: string[], jid: string, sealed: boolean, failed: boolean, plan: any, text: string, counts: Record<string, number>}} Group
 */

const WORDS = /** @type {Record<string, [string, string, string]>} */ ({
  change: ["~", "changed", "would change"],
  unknown: ["?", "would", "cannot be known before"],
  fail: ["!", "failed", "would fail"],
  unchanged: ["", "same", "as wanted"],
});

/** What a stock minion says of state.plan. */
const UNKNOWN_FUNCTION = /'state\.plan' is not available/;

/** @type {import("../app.js").View} */
export async function planView(place) {
  const gone = place.gone;
  /** @type {number | null} null: not known now */
  let count = null;
  /** @type {Map<string, Group>} */
  let groups = new Map();
  /** @type {Set<string>} */
  const approved = new Set();
  let current = "";
  let running = false;
  /** The plan that is seen: its name, and what it was made of. The fields may say something else since. */
  let id = "";
  /** @type {{arg: string[], pillar: Record<string, any>}} */
  let planned = { arg: [], pillar: {} };

  const field = new TargetField({
    id: "plan-target",
    tgt: place.query.get("tgt") ?? "*",
    type: place.query.get("type") ?? "compound",
    onLeave: place.onLeave,
    changed: (match) => { count = match?.minions.length ?? null; show(); },
  });
  const sls = /** @type {HTMLInputElement} */ (h("input", { type: "text", id: "sls", value: place.query.get("sls") ?? "", placeholder: "empty: highstate", spellcheck: "false", autocomplete: "off", autocapitalize: "none" }));
  const pillar = /** @type {HTMLInputElement} */ (h("input", { type: "text", id: "pillar", placeholder: '{"version": "1.2"}', spellcheck: "false", autocomplete: "off" }));
  const preview = h("code", {});
  const button = h("button", { class: "primary", type: "submit" }, "Plan");
  const said = h("div", { class: "said-here" });
  const progress = h("div", { class: "progress-line", hidden: true });
  const list = h("div", { class: "groups" });
  const detail = h("section", { class: "detail", "aria-label": "The plan", tabindex: "-1" });
  const approve = h("div", { class: "approve", hidden: true });
  const split = h("div", { class: "split plan", hidden: true }, list, detail);

  const mods = () => sls.value.split(/[\s,]+/).filter(Boolean).join(",");

  /** @param {Record<string, any>} more */
  const options = (more) => {
    const text = pillar.value.trim();
    return { ...more, ...(text ? { pillar: JSON.parse(text) } : {}) };
  };

  /** @param {string} name */
  const planChunk = (name) => ({ ...field.chunk(), fun: "state.plan", arg: mods() ? [mods()] : [], kwarg: options({ keep: name }) });

  const show = () => {
    try {
      preview.textContent = saltOf({ client: "local_async", ...planChunk("ID") });
      pillar.setCustomValidity("");
    } catch {
      pillar.setCustomValidity("Pillar is a map in JSON");
    }
    button.textContent = count ? `Plan for ${counted(count, "minion")}` : "Plan";
  };
  for (const input of [sls, pillar]) input.addEventListener("input", show);
  field.input.addEventListener("input", () => { count = null; show(); });

  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    if (running) return;
    running = true;
    button.setAttribute("disabled", "");
    groups = new Map();
    approved.clear();
    current = "";
    fill(said);
    fill(list);
    fill(detail);
    delete detail.dataset.key;
    approve.hidden = true;
    id = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    try {
      const chunk = planChunk(id);
      planned = { arg: chunk.arg, pillar: options({}) };
      const job = await publish(chunk);
      split.hidden = progress.hidden = false;
      const stock = await collect(job.jid, true);
      if (stock.length && !gone()) {
        const test = await publish({ tgt: stock, tgt_type: "list", fun: "state.apply", arg: planned.arg, kwarg: { ...planned.pillar, test: true } });
        await collect(test.jid, false);
      }
      if (!gone()) finished();
    } catch (error) {
      const fault = /** @type {any} */ (error);
      fill(said, notice(fault.message, fault.advice ?? "", { kind: "bad" }));
    } finally {
      running = false;
      button.removeAttribute("disabled");
    }
  };

  /**
   * Follow a job and group its returns. Resolves to the minions that do not have state.plan.
   * @param {string} jid
   * @param {boolean} sealed
   * @returns {Promise<string[]>}
   */
  const collect = async (jid, sealed) => {
    /** @type {Map<string, true>} */
    const known = new Map();
    /** @type {string[]} */
    const stock = [];
    /** @type {Promise<void>[]} */
    const loads = [];
    await follow(
      jid,
      (state) => {
        for (const [minion, answer] of state.answers) {
          if (known.has(minion)) continue;
          known.set(minion, true);
          if (sealed && UNKNOWN_FUNCTION.test(answer.preview)) {
            stock.push(minion);
            continue;
          }
          const cells = answer.cells ? answer.cells.replace(/[ ]/g, "") : "";
          const digest = sealed ? answer.digest : `test ${jid} ${answer.cells || answer.digest}${cells ? [.../** @type {any} */ (answer).columns].map((each) => each.tag).join() : ""}`;
          const group = groups.get(digest) ?? { digest, minions: [], jid, sealed, failed: answer.failed, plan: undefined, text: "", counts: {} };
          group.minions.push(minion);
          groups.set(digest, group);
          if (group.minions.length === 1) loads.push(load(group));
        }
        const done = [...groups.values()].reduce((sum, group) => sum + group.minions.length, 0);
        const away = state.expected.filter((minion) => ["offline", "lost", "expired"].includes(state.states.get(minion) ?? "")).length;
        const left = state.expected.length - known.size - away + stock.length;
        fill(progress, bar(done, 0, left + away), h("span", { role: "status" }, `${counted(done, "minion")} planned${left ? `, ${left} to come` : ""}${away ? `, ${away} away` : ""}`));
        draw();
      },
      gone,
    );
    await Promise.all(loads);
    return stock;
  };

  /** Read the plan of a group from its first minion. @param {Group} group */
  const load = async (group) => {
    try {
      const found = await get(`/v1/jobs/${group.jid}/returns/${encodeURIComponent(group.minions[0])}`, { salt: runnerOf("jobs.lookup_jid", group.jid) });
      group.plan = group.sealed ? found.return : ofTestRun(found.return);
    } catch (error) {
      group.text = /** @type {Error} */ (error).message;
    }
    if (group.plan && Array.isArray(group.plan.states)) {
      for (const state of group.plan.states) group.counts[state.verdict] = (group.counts[state.verdict] ?? 0) + 1;
    } else {
      group.failed = true;
      group.text = group.text || (Array.isArray(group.plan) ? group.plan.join("\n") : readable(group.plan));
    }
    draw();
  };

  /**
   * The running dictionary of a test run in the form of a plan.
   * @param {any} running
   */
  const ofTestRun = (running) => {
    if (!running || typeof running !== "object" || Array.isArray(running)) return running;
    const entries = Object.entries(running).sort((one, other) => (/** @type {any} */ (one[1]).__run_num__ ?? 0) - (/** @type {any} */ (other[1]).__run_num__ ?? 0));
    const states = entries
      .map(([tag, entry]) => ({ tag, entry: /** @type {any} */ (entry) }))
      .filter(({ entry }) => entry.result !== true)
      .map(({ tag, entry }) => ({
        verdict: entry.result === false ? "fail" : "change",
        function: `${tag.split("_|-")[0]}.${tag.split("_|-").pop()}`,
        name: entry.name,
        id: entry.__id__ ?? "",
        sls: entry.__sls__ ?? "",
        at: "",
        comment: entry.comment ?? "",
        changes: entry.changes ?? {},
        steps: [],
        files: [],
        because: [],
        warnings: entry.warnings ?? [],
      }));
    const change = states.filter((each) => each.verdict === "change").length;
    return { summary: `${change} to change, ${entries.length - states.length} unchanged`, states };
  };

  /** @param {Group} group */
  const changes = (group) => (group.counts.change ?? 0) + (group.counts.unknown ?? 0);

  /** Whether a group can be applied. @param {Group} group */
  const applicable = (group) => !group.failed && !group.text && changes(group) > 0;

  const draw = calmly(() => {
    if (gone()) return;
    const ordered = [...groups.values()].sort((one, other) => Number(other.failed) - Number(one.failed) || changes(other) - changes(one) || other.minions.length - one.minions.length);
    if (!current && ordered.length) current = ordered[0].digest;
    refill(
      list,
      ordered.map((group) => {
        const title = group.minions.length === 1 ? group.minions[0] : counted(group.minions.length, "minion");
        const words = group.text ? "cannot be planned" : group.plan ? group.plan.summary : "...";
        const box = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", "data-key": `box ${group.digest}`, "aria-label": `Approve for ${title}`, checked: approved.has(group.digest), disabled: !applicable(group) }));
        box.addEventListener("change", () => toggle(group, box.checked));
        return h(
          "div",
          { class: `group-row ${group.failed || group.text ? "bad" : ""} ${changes(group) ? "" : "calm"}` },
          box,
          h(
            "button",
            { class: "plain", type: "button", "data-key": group.digest, "aria-pressed": String(group.digest === current), on: { click: () => { current = group.digest; draw(); } } },
            h("strong", { class: "clip" }, title),
            h("span", { class: "muted" }, words, group.sealed ? "" : "  (stock minion: test run)"),
          ),
        );
      }),
    );
    drawDetail();
  });

  const drawDetail = () => {
    const group = groups.get(current);
    if (!group) return;
    const key = `${group.digest} ${Boolean(group.plan)} ${group.text} ${group.minions.length}`;
    if (detail.dataset.key === key) return;
    detail.dataset.key = key;
    const minions = group.minions.slice(0, 200).join(", ");
    fill(
      detail,
      h("header", {}, h("h2", { class: "clip" }, group.minions.length === 1 ? group.minions[0] : `${counted(group.minions.length, "minion")}, the same plan`)),
      group.minions.length > 1 ? h("details", {}, h("summary", {}, "Which minions"), h("p", { class: "mono small-text" }, minions, group.minions.length > 200 ? ` and ${group.minions.length - 200} more` : "")) : null,
      group.text ? notice("These states cannot be planned", "Mend the tree or the pillar, then plan again.", { kind: "bad" }) : null,
      group.text ? block(group.text) : null,
      group.plan?.states?.length === 0 ? notice("Nothing to change", "These minions are as the states want them.") : null,
      (group.plan?.states ?? []).map(stateOf),
    );
  };

  /** @param {any} state */
  const stateOf = (state) => {
    const [sign, kind, word] = WORDS[state.verdict] ?? WORDS.unknown;
    const diffs = state.files.filter((/** @type {any} */ file) => file.diff);
    const rest = state.changes && Object.keys(state.changes).length && !diffs.length ? shown(state.changes) : null;
    return h(
      "article",
      { class: `state ${kind}` },
      h("h3", {}, h("i", { class: kind, "aria-hidden": "true" }, sign), h("span", { class: "unseen" }, `${word}: `), state.function, h("span", { class: "mono" }, String(state.name))),
      h("p", { class: "muted meta" }, `${state.id}${state.at ? `, ${state.at}` : state.sls ? ` in ${state.sls}` : ""}`),
      state.because.map((/** @type {any} */ why) => h("p", { class: "comment" }, `reacts by ${why.requisite} to ${why.state}: ${why.id}`)),
      state.verdict !== "change" && state.comment ? h("p", { class: "comment" }, state.comment) : null,
      diffs.map((/** @type {any} */ file) => diff(file.diff)),
      rest,
      !diffs.length && !rest && state.steps.length ? block(state.steps.join("\n")) : null,
      state.warnings.length ? block(state.warnings.join("\n")) : null,
    );
  };

  /**
   * @param {Group} group
   * @param {boolean} on
   */
  const toggle = (group, on) => {
    if (on) approved.add(group.digest);
    else approved.delete(group.digest);
    drawApprove();
  };

  const finished = () => {
    draw();
    approve.hidden = false;
    drawApprove();
    const found = [...groups.values()].filter(applicable);
    const minions = found.reduce((sum, group) => sum + group.minions.length, 0);
    announce(minions ? `The plan is ready: ${counted(minions, "minion")} would change` : "The plan is ready: nothing to change");
  };

  const drawApprove = () => {
    const found = [...groups.values()].filter(applicable);
    const chosen = found.filter((group) => approved.has(group.digest));
    const minions = chosen.reduce((sum, group) => sum + group.minions.length, 0);
    const all = found.reduce((sum, group) => sum + group.minions.length, 0);
    refill(
      approve,
      found.length
        ? h("span", {}, minions ? `${counted(minions, "minion")} of ${all} approved` : "Approve what you have read, then apply it.")
        : h("span", {}, "Nothing to apply."),
      h("button", { type: "button", disabled: chosen.length === found.length, on: { click: () => { for (const group of found) approved.add(group.digest); draw(); drawApprove(); } } }, "Approve all"),
      h("button", { class: "primary", id: "apply", type: "button", disabled: !minions, on: { click: apply } }, minions ? `Apply on ${counted(minions, "minion")}` : "Apply"),
    );
  };

  const apply = async () => {
    const chosen = [...groups.values()].filter((group) => applicable(group) && approved.has(group.digest));
    const sealed = chosen.filter((group) => group.sealed).flatMap((group) => group.minions);
    const stock = chosen.filter((group) => !group.sealed).flatMap((group) => group.minions);
    const ok = await confirmed({
      title: `Apply the plan on ${counted(sealed.length + stock.length, "minion")}?`,
      text: [
        sealed.length ? h("p", {}, `${counted(sealed.length, "minion")} will do exactly what was shown, or nothing if tree, pillar or host have changed since.`) : "",
        stock.length ? h("p", {}, `${counted(stock.length, "stock minion")} cannot keep a plan: they apply what the tree says now.`) : "",
      ],
      act: "Apply",
    });
    if (!ok) return;
    try {
      const started = [];
      if (sealed.length) started.push(await publish({ tgt: sealed, tgt_type: "list", fun: "state.apply_plan", arg: [id] }));
      if (stock.length) started.push(await publish({ tgt: stock, tgt_type: "list", fun: "state.apply", arg: planned.arg, ...("pillar" in planned.pillar ? { kwarg: planned.pillar } : {}) }));
      place.go(`#/job/${started[0].jid}`);
    } catch (error) {
      const fault = /** @type {any} */ (error);
      fill(said, notice(fault.message, fault.advice ?? "", { kind: "bad" }));
    }
  };

  place.title("Plan");
  place.keys.A = { text: "Approve all", run: () => /** @type {HTMLElement | null} */ (approve.querySelector("button"))?.click() };
  fill(
    place.main,
    h(
      "form",
      { class: "sheet wide", on: { submit } },
      h("div", { class: "field" }, h("span", { class: "label" }, "Target"), field.element),
      h("div", { class: "field" }, h("label", { for: "sls" }, "States"), sls),
      h("details", { class: "field" }, h("summary", {}, "Pillar for this run, and the command"), h("label", { for: "pillar", class: "unseen" }, "Pillar for this run"), pillar, h("div", { class: "block" }, preview)),
      h("div", { class: "row" }, button, h("span", { class: "muted" }, "Nothing changes before you approve and apply.")),
      said,
    ),
    progress,
    split,
    approve,
  );
  show();
  await field.look();
}
