/**
 * A list of any length of which only the visible rows exist. Rows have one height; their elements are used again while one
 * scrolls. Keys: j, k, arrows, Page Up, Page Down, Home, End move; Enter opens.
 */

import { h } from "./dom.js";

/**
 * @template T
 * @typedef {object} ListOptions
 * @property {string} label what the list has, for screen readers
 * @property {number} height of a row, in pixels
 * @property {() => HTMLElement} make makes an empty row
 * @property {(row: HTMLElement, item: T, index: number) => void} draw writes an item into a row
 * @property {(item: T) => string} key tells items apart
 * @property {(item: T, event: Event) => void} [open] called for Enter and a click
 * @property {(item: T) => void} [move] called when the current item changes
 * @property {HTMLElement} [head] a row of headings
 * @property {string} [kind] class of the list
 */

/** @template T */
export class VirtualList {
  /** @param {ListOptions<T>} options */
  constructor(options) {
    this.options = options;
    /** @type {T[]} */
    this.items = [];
    this.current = -1;
    /** Keys that were typed before the first items came. @type {string[] | null} */
    this.early = [];
    this.body = h("div", { class: "vbody", role: "rowgroup" });
    this.element = h(
      "div",
      {
        class: `vlist ${options.kind ?? ""}`,
        role: "grid",
        tabindex: "0",
        "aria-label": options.label,
        on: {
          scroll: () => this.#later(),
          keydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
          pointerdown: (/** @type {PointerEvent} */ event) => { this.pressed = this.#under(event); },
          click: (/** @type {MouseEvent} */ event) => this.#click(event),
          focus: () => {
            if (this.current < 0 && this.items.length) this.go(0, false);
          },
        },
      },
      options.head ? h("div", { class: "vhead", role: "rowgroup" }, options.head) : null,
      this.body,
    );
    /** @type {Map<number, HTMLElement>} */
    this.rows = new Map();
    /** @type {HTMLElement[]} */
    this.spare = [];
    /** The item under the pointer when it was pressed: a live list may move before it is released. @type {T | undefined} */
    this.pressed = undefined;
    this.waiting = false;
    this.height = 0;
    this.number = VirtualList.#made++;
    this.watcher = new ResizeObserver(() => this.#later());
    this.watcher.observe(this.element);
  }

  static #made = 0;

  /**
   * Show other items. The current one stays current if it is still there.
   * @param {T[]} items
   */
  set(items) {
    const before = this.items[this.current];
    this.items = items;
    this.current = before === undefined ? -1 : this.#find(this.options.key(before));
    this.element.setAttribute("aria-rowcount", String(items.length));
    const height = items.length * this.options.height;
    if (height !== this.height) {
      this.height = height;
      this.body.style.height = `${height}px`;
    }
    this.redraw();
    if (items.length && this.early) {
      const early = this.early;
      this.early = null;
      // Once the list is shown.
      queueMicrotask(() => {
        if (!early.length || document.activeElement !== document.body) return;
        this.element.focus();
        for (const each of early.slice(1)) this.element.dispatchEvent(new KeyboardEvent("keydown", { key: each }));
      });
    }
  }

  /** @param {string} key */
  #find(key) {
    return this.items.findIndex((item) => this.options.key(item) === key);
  }

  get item() {
    return /** @type {T | undefined} */ (this.items[this.current]);
  }

  /** Write all visible rows anew. */
  redraw() {
    // Rows stay where they are, so that a click that has begun on one ends on it.
    for (const [index, row] of this.rows) {
      if (index < this.items.length) {
        this.options.draw(row, this.items[index], index);
        this.#mark(row, index);
      }
    }
    this.#draw();
  }

  #later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.#draw();
    });
  }

  #draw() {
    const { height } = this.options;
    const top = Math.max(0, this.element.scrollTop - (this.body.offsetTop || 0));
    const seen = this.element.clientHeight || 600;
    const first = Math.max(0, Math.floor(top / height) - 8);
    const last = Math.min(this.items.length, Math.ceil((top + seen) / height) + 8);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) {
        this.rows.delete(index);
        row.hidden = true;
        this.spare.push(row);
      }
    }
    for (let index = first; index < last; index += 1) {
      if (!this.rows.has(index)) this.#put(index);
    }
  }

  /** @param {number} index */
  #put(index) {
    let row = this.spare.pop();
    if (!row) {
      row = this.options.make();
      row.classList.add("vrow");
      row.setAttribute("role", "row");
      this.body.append(row);
    }
    row.hidden = false;
    row.style.transform = `translateY(${index * this.options.height}px)`;
    row.dataset.index = String(index);
    row.id = `v${this.number}-${index}`;
    row.setAttribute("aria-rowindex", String(index + 1));
    this.options.draw(row, this.items[index], index);
    this.#mark(row, index);
    this.rows.set(index, row);
  }

  /**
   * @param {HTMLElement} row
   * @param {number} index
   */
  #mark(row, index) {
    row.classList.toggle("current", index === this.current);
    row.setAttribute("aria-selected", String(index === this.current));
  }

  /**
   * Make a row current, and visible.
   * @param {number} index
   * @param {boolean} [told]
   */
  go(index, told = true) {
    if (!this.items.length) return;
    const next = Math.max(0, Math.min(this.items.length - 1, index));
    const before = this.rows.get(this.current);
    const old = this.current;
    this.current = next;
    if (before) this.#mark(before, old);
    const { height } = this.options;
    const head = this.body.offsetTop;
    const top = next * height + head;
    if (top - head < this.element.scrollTop) this.element.scrollTop = top - head;
    else if (top + height > this.element.scrollTop + this.element.clientHeight) {
      this.element.scrollTop = top + height - this.element.clientHeight;
    }
    this.#draw();
    const row = this.rows.get(next);
    if (row) {
      this.#mark(row, next);
      this.element.setAttribute("aria-activedescendant", row.id);
    }
    if (told) this.options.move?.(this.items[next]);
  }

  /**
   * Move by a key. Return whether the key was meant for the list.
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.options.height) - 2);
    const steps = /** @type {Record<string, number>} */ ({
      j: this.current + 1,
      ArrowDown: this.current + 1,
      k: this.current - 1,
      ArrowUp: this.current - 1,
      PageDown: this.current + page,
      PageUp: this.current - page,
      Home: 0,
      End: this.items.length - 1,
    });
    if (this.early && !this.items.length && (event.key in steps || (event.key === "Enter" && this.early.length))) {
      this.early.push(event.key);
      return true;
    }
    if (event.key in steps) {
      this.go(steps[event.key]);
      event.preventDefault();
      return true;
    }
    if (event.key === "Enter" && this.item !== undefined && this.options.open) {
      this.options.open(this.item, event);
      event.preventDefault();
      return true;
    }
    return false;
  }

  /**
   * The item that an event of the pointer is on.
   * @param {Event} event
   */
  #under(event) {
    const where = /** @type {HTMLElement} */ (event.target);
    const row = /** @type {HTMLElement | null} */ (where.closest(".vrow"));
    return row && !where.closest("button, a, input") ? this.items[Number(row.dataset.index)] : undefined;
  }

  /** @param {MouseEvent} event */
  #click(event) {
    if (this.#under(event) === undefined) return;
    const item = this.pressed ?? this.#under(event);
    this.pressed = undefined;
    if (item === undefined) return;
    const index = this.#find(this.options.key(item));
    if (index >= 0) this.go(index);
    this.options.open?.(item, event);
  }

  destroy() {
    this.watcher.disconnect();
  }
}
