/**
 * Dialogs: a question, the help, the command palette. They are the browser's own `<dialog>`, which keeps the focus inside.
 */

import { fill, h, kbd } from "./dom.js";

/**
 * @param {string} label
 * @param {string} kind
 * @param {...(Node | string | null)} children
 * @returns {HTMLDialogElement}
 */
export function dialog(label, kind, ...children) {
  const made = /** @type {HTMLDialogElement} */ (h("dialog", { class: kind, "aria-label": label }, ...children));
  made.addEventListener("close", () => made.remove());
  made.addEventListener("click", (event) => {
    if (event.target === made) made.close();
  });
  document.body.append(made);
  made.showModal();
  return made;
}

/**
 * Ask before something is done. Resolves to whether it was confirmed.
 * @param {{title: string, text: (Node | string)[], act: string, danger?: boolean}} what
 * @returns {Promise<boolean>}
 */
export function confirmed(what) {
  return new Promise((done) => {
    let said = false;
    const act = h("button", { class: what.danger ? "danger" : "primary", type: "button", on: { click: () => { said = true; made.close(); } } }, what.act);
    const cancel = h("button", { type: "button", on: { click: () => made.close() } }, "Cancel");
    const made = dialog(what.title, "ask", h("h2", {}, what.title), h("div", { class: "asked" }, ...what.text), h("div", { class: "row end" }, cancel, act));
    made.addEventListener("close", () => done(said));
    act.focus();
  });
}

/** @typedef {{name: string, hint?: string, keys?: string[], run: () => void}} Command */

/**
 * How well words of a query fit a name: 0 does not, more is better.
 * @param {string} query
 * @param {string} name
 */
export function fits(query, name) {
  const low = name.toLowerCase();
  let score = 1;
  for (const word of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const at = low.indexOf(word);
    if (at < 0) return 0;
    score += at === 0 ? 3 : low[at - 1] === " " ? 2 : 1;
  }
  return score;
}

/**
 * The command palette.
 * @param {Command[]} commands
 * @param {(query: string) => Command[]} further commands that depend on what was typed
 */
export function palette(commands, further) {
  const list = h("div", { class: "choices", role: "listbox", id: "choices", "aria-label": "Commands" });
  const input = /** @type {HTMLInputElement} */ (
    h("input", {
      type: "text",
      placeholder: "Go to, run, filter ...",
      role: "combobox",
      "aria-label": "Command",
      "aria-expanded": "true",
      "aria-controls": "choices",
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: "false",
    })
  );
  /** @type {Command[]} */
  let found = [];
  let current = 0;
  const draw = () => {
    fill(
      list,
      found.length
        ? found.map((command, index) =>
            h(
              "div",
              { class: "choice", role: "option", id: `choice-${index}`, "aria-selected": String(index === current), on: { click: () => choose(index) } },
              h("span", {}, command.name),
              command.hint ? h("span", { class: "muted" }, command.hint) : null,
              command.keys ? kbd(...command.keys) : null,
            ),
          )
        : h("div", { class: "choice muted", role: "option", "aria-selected": "false" }, "No command has these words"),
    );
    input.setAttribute("aria-activedescendant", found.length ? `choice-${current}` : "");
    list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  };
  const search = () => {
    const query = input.value.trim();
    const scored = commands.map((command) => ({ command, score: fits(query, command.name) })).filter((each) => each.score);
    scored.sort((one, other) => other.score - one.score);
    found = [...scored.map((each) => each.command), ...(query ? further(query) : [])];
    current = 0;
    draw();
  };
  /** @param {number} index */
  const choose = (index) => {
    const command = found[index];
    made.close();
    command?.run();
  };
  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    const steps = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1 });
    if (event.key in steps && found.length) {
      current = (current + steps[event.key] + found.length) % found.length;
      draw();
      event.preventDefault();
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(current);
    }
  });
  const made = dialog("Command palette", "palette", input, list);
  search();
  input.focus();
}

/**
 * All keys, by place.
 * @param {[string, [string[], string][]][]} groups
 */
export function help(groups) {
  const made = dialog(
    "Keys",
    "help",
    h("h2", {}, "Keys"),
    h(
      "div",
      { class: "help-groups" },
      ...groups.map(([title, rows]) =>
        h("section", {}, h("h3", {}, title), h("dl", {}, rows.flatMap(([keys, text]) => [h("dt", {}, kbd(...keys)), h("dd", {}, text)]))),
      ),
    ),
    h("div", { class: "row end" }, h("button", { type: "button", on: { click: () => made.close() } }, "Close")),
  );
}
