/**
 * Makes elements. Text always becomes a text node: nothing in this page is ever put in as HTML.
 */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element. `props`: attributes; `on`: listeners; `class`: class names; a property that is null, undefined or false is
 * left out.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  decorate(made, props);
  made.append(...nodes(children));
  return made;
}

/**
 * The same for an element of SVG.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function s(tag, props = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  decorate(made, props);
  made.append(...nodes(children));
  return made;
}

/**
 * @param {Element} made
 * @param {Record<string, any>} props
 */
function decorate(made, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (name === "value" || name === "checked" || name === "selected" || name === "disabled") {
      /** @type {any} */ (made)[name] = value;
    } else {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  /** @type {(Node | string)[]} */
  const found = [];
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    found.push(child instanceof Node ? child : String(child));
  }
  return found;
}

/**
 * Replace everything in an element.
 * @param {Element} where
 * @param {...(Child | Child[])} children
 */
export function fill(where, ...children) {
  where.replaceChildren(...nodes(children));
}

/**
 * Replace everything in an element, and leave the keyboard's focus where it was: on the new element with the same `data-key`, else
 * on the one at the same position.
 * @param {Element} where
 * @param {...(Child | Child[])} children
 */
export function refill(where, ...children) {
  const active = document.activeElement;
  const at = active && active !== where && where.contains(active) ? focusable(where).indexOf(/** @type {HTMLElement} */ (active)) : -1;
  const key = at >= 0 ? /** @type {HTMLElement} */ (active).dataset.key : undefined;
  fill(where, ...children);
  if (at < 0) return;
  const found = focusable(where);
  (found.find((each) => key !== undefined && each.dataset.key === key) ?? found[at])?.focus({ preventScroll: true });
}

/**
 * @param {Element} where
 * @returns {HTMLElement[]}
 */
function focusable(where) {
  return [...where.querySelectorAll("a[href], button, input, select, summary, [tabindex]")].map((each) => /** @type {HTMLElement} */ (each));
}

/** Milliseconds after a pointer was released in which its click comes. */
const CLICK = 50;

let pressed = false;
let releasing = 0;
/** @type {Set<() => void>} */
const held = new Set();

function releaseSoon() {
  clearTimeout(releasing);
  releasing = window.setTimeout(release, CLICK);
}

window.addEventListener("pointerdown", () => { pressed = true; clearTimeout(releasing); }, true);
for (const name of ["pointerup", "pointercancel", "dragend", "blur"]) window.addEventListener(name, releaseSoon, true);
// After all other listeners of the click.
window.addEventListener("click", release);
// Released where this page did not see it.
window.addEventListener("pointermove", (event) => { if (pressed && !event.buttons) releaseSoon(); }, true);

function release() {
  pressed = false;
  const waiting = [...held];
  held.clear();
  for (const work of waiting) work();
}

/**
 * Return a function that redraws at once, or, while a pointer is pressed, after its click: an element that is replaced
 * between press and release never gets the click.
 * @param {() => void} work
 * @returns {() => void}
 */
export function calmly(work) {
  return () => {
    if (pressed) held.add(work);
    else work();
  };
}

/**
 * Return a function that asks, and shows the answer unless the answer to a later question was shown already.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {(answer: T) => void} show
 * @returns {() => Promise<void>}
 */
export function inOrder(ask, show) {
  let asked = 0;
  let shown = 0;
  return async () => {
    asked += 1;
    const mine = asked;
    const answer = await ask();
    if (mine < shown) return;
    shown = mine;
    show(answer);
  };
}

/**
 * Return the element with an id, which must be there.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no #${id}`);
  return found;
}

/**
 * Say something to screen readers.
 * @param {string} text
 */
export function announce(text) {
  byId("announce").textContent = text;
}

/** A key as it is shown: `kbd("g", "f")`.
 * @param {...string} keys
 */
export function kbd(...keys) {
  return h("span", { class: "kbds" }, ...keys.map((key) => h("kbd", {}, key)));
}

/**
 * A message in place of content: what is the case, and what to do.
 * @param {string} title
 * @param {Child | Child[]} text
 * @param {{kind?: string, actions?: Child[]}} [more]
 */
export function notice(title, text, more = {}) {
  return h(
    "div",
    { class: `notice ${more.kind ?? ""}`, role: more.kind === "bad" ? "alert" : null },
    h("h2", {}, title),
    h("p", {}, text),
    more.actions ? h("div", { class: "row" }, more.actions) : null,
  );
}

/**
 * Whether the user is writing, so that single keys are not commands.
 * @param {Event} event
 */
export function isWriting(event) {
  const where = /** @type {HTMLElement} */ (event.target);
  return where instanceof HTMLInputElement
    ? where.type !== "checkbox" && where.type !== "radio"
    : where instanceof HTMLTextAreaElement || where instanceof HTMLSelectElement;
}

/**
 * Call a function when it was not asked for again for some milliseconds.
 * @template {any[]} T
 * @param {number} ms
 * @param {(...args: T) => void} work
 * @returns {(...args: T) => void}
 */
export function debounced(ms, work) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => work(...args), ms);
  };
}
