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
