/** Run a function on the minions of a target. */

import { publish } from "../api.js";
import { confirmed } from "../dialogs.js";
import { fill, h, notice } from "../dom.js";
import { counted } from "../format.js";
import { saltOf } from "../shell_words.js";
import { TargetField } from "../target_field.js";

/**
 * Words of a line as arguments: `a "b c" x=1 y='[1, 2]'` gives positional and named ones. Numbers, true, false, null, lists and
 * maps are read as JSON; everything else is text.
 * @param {string} line
 * @returns {{arg: any[], kwarg: Record<string, any>}}
 */
export function parsed(line) {
  /** @type {any[]} */
  const arg = [];
  /** @type {Record<string, any>} */
  const kwarg = {};
  const words = line.match(/(?:[^\s"'[{]+|"(?:\\.|[^"\\])*"|'[^']*'|\[[^\]]*\]|\{[^}]*\})+/g) ?? [];
  for (const word of words) {
    const [, name, rest] = /^([A-Za-z_]\w*)=([^]*)$/.exec(word) ?? [];
    if (name) kwarg[name] = value(rest);
    else arg.push(value(word));
  }
  return { arg, kwarg };
}

/** @param {string} word */
function value(word) {
  if (/^'[^]*'$/.test(word)) return word.slice(1, -1);
  if (/^(True|False|None)$/.test(word)) return { True: true, False: false, None: null }[/** @type {"True"} */ (word)];
  try {
    return JSON.parse(word);
  } catch {
    return word;
  }
}

/** Functions that change nothing: nobody is asked. */
const READS = /^(test\.|grains\.(items|get|item)|sys\.|state\.(show|plan|test|check)|.*\.(list|get|version|status)$)/;

/** @type {import("../app.js").View} */
export async function runView(place) {
  /** @type {number | null} null: not known now */
  let count = null;
  let running = false;
  const fun = /** @type {HTMLInputElement} */ (h("input", { type: "text", id: "fun", value: place.query.get("fun") ?? "test.ping", spellcheck: "false", autocomplete: "off", autocapitalize: "none" }));
  const given = place.query.get("arg");
  const args = /** @type {HTMLInputElement} */ (h("input", { type: "text", id: "args", value: given ? written(given) : "", spellcheck: "false", autocomplete: "off", placeholder: "nginx test=True" }));
  const preview = h("code", {});
  const said = h("div", {});
  const field = new TargetField({
    id: "run-target",
    tgt: place.query.get("tgt") ?? "*",
    type: place.query.get("type") ?? "compound",
    onLeave: place.onLeave,
    changed: (match) => { count = match?.minions.length ?? null; show(); },
  });
  const button = h("button", { class: "primary", type: "submit" }, "Run");

  const chunk = () => {
    const { arg, kwarg } = parsed(args.value);
    return { ...field.chunk(), fun: fun.value.trim(), arg, ...(Object.keys(kwarg).length ? { kwarg } : {}) };
  };
  const show = () => {
    preview.textContent = saltOf({ client: "local_async", ...chunk() });
    button.textContent = count ? `Run on ${counted(count, "minion")}` : "Run";
  };

  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    if (running) return;
    fill(said);
    const wanted = chunk();
    running = true;
    button.setAttribute("disabled", "");
    try {
      if (await agreed(wanted)) {
        const job = await publish(wanted);
        place.go(`#/job/${job.jid}`);
      }
    } catch (error) {
      const fault = /** @type {any} */ (error);
      fill(said, notice(fault.message, fault.advice ?? "", { kind: "bad" }));
    } finally {
      running = false;
      button.removeAttribute("disabled");
    }
  };

  /**
   * Return whether the user wants this on so many minions. The target is the one in the field now: the count that the button shows
   * may be an earlier target's.
   * @param {Record<string, any>} wanted
   */
  const agreed = async (wanted) => {
    if (READS.test(wanted.fun)) return true;
    const match = await field.match();
    if (match && match.minions.length < 2) return true;
    const where = match ? counted(match.minions.length, "minion") : `an unknown number of minions (${wanted.tgt})`;
    return confirmed({ title: `Run ${wanted.fun} on ${where}?`, text: [h("code", { class: "block" }, saltOf({ client: "local_async", ...wanted }))], act: "Run", danger: true });
  };
  for (const input of [fun, args]) input.addEventListener("input", show);
  field.input.addEventListener("input", () => { count = null; show(); });
  place.title("Run");
  fill(
    place.main,
    h(
      "form",
      { class: "sheet", on: { submit } },
      h("div", { class: "field" }, h("span", { class: "label" }, "Target"), field.element),
      h("div", { class: "field" }, h("label", { for: "fun" }, "Function"), fun),
      h("div", { class: "field" }, h("label", { for: "args" }, "Arguments"), args, h("p", { class: "muted" }, "Words as on the command line; name=value for named arguments.")),
      h("div", { class: "field" }, h("span", { class: "label" }, "Command"), h("div", { class: "block" }, preview)),
      h("div", { class: "row" }, button, h("span", { class: "muted" }, "The job goes on if you close this page.")),
      said,
    ),
  );
  show();
  fun.focus();
  await field.look();
}

/** @param {string} given arguments as JSON */
function written(given) {
  try {
    const words = JSON.parse(given).flatMap((/** @type {any} */ each) => {
      if (each && typeof each === "object" && "__kwarg__" in each) {
        return Object.entries(each).filter(([name]) => name !== "__kwarg__").map(([name, one]) => `${name}=${word(one)}`);
      }
      return [word(each)];
    });
    return words.join(" ");
  } catch {
    return "";
  }
}

/** @param {any} one */
function word(one) {
  return typeof one === "string" && /^[^\s"'[{=]+$/.test(one) ? one : JSON.stringify(one);
}
