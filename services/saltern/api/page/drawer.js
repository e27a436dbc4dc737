/**
 * The drawer: each call that this page made, as `curl` and as a `salt` command, to be copied.
 */

import { calls, onCall } from "./api.js";
import { announce, calmly, h, refill } from "./dom.js";
import { clock } from "./format.js";

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied");
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {string} label
 * @param {string} text
 */
function command(label, text) {
  const shown = h("code", {}, text);
  const button = h("button", { class: "small", type: "button", "aria-label": `Copy the ${label} command` }, "Copy");
  button.addEventListener("click", async () => {
    if (await copy(text)) {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    } else {
      // Without HTTPS the browser gives no clipboard: the text is selected instead.
      getSelection()?.selectAllChildren(shown);
      button.textContent = "Ctrl+C";
    }
  });
  return h("div", { class: "command" }, h("span", { class: "label" }, label), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `${label} command` }, shown), button);
}

export class Drawer {
  constructor() {
    this.list = h("ol", { class: "calls" });
    this.element = h(
      "aside",
      { class: "drawer", "aria-label": "API calls", hidden: true },
      h(
        "div",
        { class: "drawer-head" },
        h("h2", {}, "API calls"),
        h("p", { class: "muted" }, "What this page did, for a shell. Log in once: ", h("code", {}, "TOKEN=..."), " is the header X-Auth-Token of ", h("code", {}, "POST /login"), "."),
        h("button", { class: "small", type: "button", on: { click: () => this.toggle() } }, "Close"),
      ),
      this.list,
    );
    this.waiting = false;
    const draw = calmly(() => this.draw());
    onCall(() => {
      if (this.element.hidden || this.waiting) return;
      this.waiting = true;
      setTimeout(() => { this.waiting = false; draw(); }, 300);
    });
  }

  toggle() {
    this.element.hidden = !this.element.hidden;
    document.body.classList.toggle("with-drawer", !this.element.hidden);
    if (!this.element.hidden) this.draw();
  }

  draw() {
    const before = this.list.scrollTop;
    refill(
      this.list,
      calls.map((call) => {
        const status = String(call.status);
        return h(
          "li",
          {},
          h(
            "div",
            { class: "call" },
            h("span", { class: "muted mono" }, clock(call.at)),
            h("strong", { class: "mono" }, `${call.method} ${call.path.split("?")[0]}`),
            h("span", { class: /^[45n]/.test(status) ? "bad" : "muted" }, status),
            h("span", { class: "muted" }, call.ms ? `${call.ms} ms` : ""),
          ),
          command("curl", call.curl),
          call.salt ? command("salt", call.salt) : null,
        );
      }),
    );
    this.list.scrollTop = before;
  }
}
