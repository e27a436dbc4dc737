/**
 * The field for a target: an expression, its type, and how many minions it matches now.
 */

import { ApiError, get } from "./api.js";
import { debounced, fill, h } from "./dom.js";
import { number } from "./format.js";
import { runnerOf, targetWords } from "./shell_words.js";

export const TYPES = ["compound", "glob", "list", "grain", "pcre", "grain_pcre", "nodegroup", "ipcidr", "pillar"];

/**
 * @typedef {{minions: string[], missing: string[]}} Match
 * @typedef {{id: string, tgt?: string, type?: string, label?: string, changed: (match: Match | null) => void, onLeave: (end: () => void) => void}} TargetOptions
 */

export class TargetField {
  /** @param {TargetOptions} options */
  constructor(options) {
    this.options = options;
    this.input = /** @type {HTMLInputElement} */ (
      h("input", {
        id: options.id,
        type: "text",
        value: options.tgt ?? "*",
        placeholder: "web* and G@os:Debian",
        spellcheck: "false",
        autocomplete: "off",
        autocapitalize: "none",
        "aria-describedby": `${options.id}-count`,
      })
    );
    this.type = /** @type {HTMLSelectElement} */ (
      h("select", { "aria-label": "Type of the target" }, TYPES.map((type) => h("option", { value: type, selected: type === (options.type ?? "compound") }, type)))
    );
    this.count = h("span", { class: "count", id: `${options.id}-count`, "aria-live": "polite" });
    this.element = h(
      "div",
      { class: "target" },
      h("label", { for: options.id, class: "unseen" }, options.label ?? "Target"),
      h("div", { class: "joined" }, this.input, this.type),
      this.count,
    );
    /** @type {AbortController | null} */
    this.asking = null;
    /** What the target matches now; undefined: not known yet. @type {Match | null | undefined} */
    this.found = undefined;
    /** The question that is on its way. @type {Promise<void> | null} */
    this.pending = null;
    const later = debounced(200, () => { void (this.found === undefined && (this.pending ?? this.look())); });
    this.input.addEventListener("input", () => { this.#forget(); later(); });
    this.type.addEventListener("change", () => this.look());
    options.onLeave(() => { this.left = true; this.#forget(); });
    this.left = false;
  }

  get tgt() {
    return this.input.value.trim();
  }

  get tgtType() {
    return this.type.value;
  }

  /** Whether every minion is meant. */
  get isAll() {
    return this.tgt === "" || this.tgt === "*";
  }

  /**
   * @param {string} tgt
   * @param {string} type
   */
  set(tgt, type) {
    this.input.value = tgt;
    this.type.value = type;
    return this.look();
  }

  /** The fields of a chunk of low data for this target. */
  chunk() {
    return { tgt: this.tgt || "*", tgt_type: this.tgtType };
  }

  /** An answer about another target than the one in the field does not count. */
  #forget() {
    this.asking?.abort();
    this.found = undefined;
    this.pending = null;
  }

  /** Return what the target in the field matches; null if that cannot be said. */
  async match() {
    if (this.found === undefined) await (this.pending ?? this.look());
    return this.found ?? null;
  }

  /** Ask which minions the target matches now. */
  look() {
    this.#forget();
    const asked = this.left ? Promise.resolve() : this.#ask();
    this.pending = asked;
    return asked;
  }

  async #ask() {
    const own = (this.asking = new AbortController());
    const { tgt, tgt_type } = this.chunk();
    try {
      const query = { tgt, tgt_type, ids: true };
      const found = await get("/v1/fleet", { query, salt: runnerOf("manage.fleet", ...targetWords(tgt, tgt_type)), signal: own.signal });
      if (own.signal.aborted) return;
      this.found = found;
      this.count.classList.remove("bad");
      const missing = found.missing.length ? `, ${number(found.missing.length)} without an accepted key` : "";
      fill(this.count, h("strong", {}, number(found.minions.length)), found.minions.length === 1 ? " minion" : " minions", missing);
      this.options.changed(found);
    } catch (error) {
      if (own.signal.aborted) return;
      this.found = null;
      this.count.classList.add("bad");
      fill(this.count, error instanceof ApiError ? error.message : String(error));
      this.options.changed(null);
    }
  }
}
