/** Keys of minions: accept, reject, delete, by key or by drag. */

import { wheel } from "../api.js";
import { confirmed } from "../dialogs.js";
import { announce, calmly, fill, h, inOrder, isWriting, notice } from "../dom.js";
import { events } from "../event_stream.js";
import { number } from "../format.js";
import { VirtualList } from "../virtual_list.js";

/** @type {[string, string, string][]} list of the wheel function, title, what an empty one means */
const STATES = [
  ["minions_pre", "Pending", "A new minion appears here when it signs in."],
  ["minions", "Accepted", "Accept a pending key: its minion gets jobs from then on."],
  ["minions_rejected", "Rejected", "A rejected minion asks again, and is not heard."],
  ["minions_denied", "Denied", "A denied key came under an id that has another key: two machines may have one name."],
];

/** What is done by moving a key into a list. */
const VERBS = /** @type {Record<string, [string, string, string]>} */ ({
  minions: ["key.accept_dict", "Accept", "accepted"],
  minions_rejected: ["key.reject_dict", "Reject", "rejected"],
  "": ["key.delete_dict", "Delete", "deleted"],
});

/** @typedef {{id: string, state: string, finger: string}} Key */

/** @type {import("../app.js").View} */
export async function keysView(place) {
  /** @type {Key[]} */
  let all = [];
  let words = "";
  /** @type {Key | null} */
  let dragged = null;
  const said = h("div", {});
  const search = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: "id or fingerprint", "aria-label": "Filter the keys", spellcheck: "false" }));
  search.addEventListener("input", () => { words = search.value.trim().toLowerCase(); show(); });

  /** @type {Map<string, {list: VirtualList<Key>, count: HTMLElement, empty: HTMLElement, column: HTMLElement}>} */
  const columns = new Map();
  for (const [state, title, hint] of STATES) {
    /** @type {VirtualList<Key>} */
    const list = new VirtualList({
      label: `${title} keys`,
      kind: "keys",
      height: 52,
      key: (key) => key.id,
      make: () => {
        const row = h("div", { class: "krow", draggable: "true" }, h("div", { role: "gridcell", class: "k-text" }, h("strong", { class: "clip" }), h("span", { class: "mono muted clip" })), h("div", { role: "gridcell", class: "k-acts" }));
        row.addEventListener("dragstart", (event) => {
          dragged = list.items[Number(row.dataset.index)] ?? null;
          event.dataTransfer?.setData("text/plain", dragged?.id ?? "");
          document.body.classList.add("dragging");
        });
        row.addEventListener("dragend", () => {
          dragged = null;
          document.body.classList.remove("dragging");
        });
        return row;
      },
      draw: (row, key) => {
        row.children[0].children[0].textContent = key.id;
        row.children[0].children[1].textContent = key.finger || "...";
        /** @type {HTMLElement} */ (row.children[0].children[1]).title = key.finger;
        fill(
          row.children[1],
          state !== "minions" ? act("minions", key) : null,
          state === "minions_pre" ? act("minions_rejected", key) : null,
          state !== "minions_pre" ? act("", key) : null,
        );
      },
    });
    list.element.addEventListener("keydown", (event) => {
      const to = /** @type {Record<string, string>} */ ({ a: "minions", r: "minions_rejected", d: "", Delete: "" })[event.key];
      if (to !== undefined && list.item && !isWriting(event) && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        void move(list.item, to);
      }
    });
    place.onLeave(() => list.destroy());
    const count = h("span", { class: "muted" });
    const empty = h("p", { class: "muted pad" }, hint);
    const column = h("section", { class: "column", "aria-label": title }, h("h2", {}, title, " ", count), empty, list.element);
    column.addEventListener("dragover", (event) => {
      if (dragged && dragged.state !== state && state in VERBS) {
        event.preventDefault();
        column.classList.add("over");
      }
    });
    column.addEventListener("dragleave", () => column.classList.remove("over"));
    column.addEventListener("drop", (event) => {
      event.preventDefault();
      column.classList.remove("over");
      if (dragged && dragged.state !== state) void move(dragged, state);
    });
    columns.set(state, { list, count, empty, column });
  }

  /**
   * @param {string} to
   * @param {Key} key
   */
  const act = (to, key) => {
    const [, title] = VERBS[to];
    return h("button", { class: `small ${to === "minions" ? "primary" : ""}`, type: "button", tabindex: "-1", "aria-label": `${title} ${key.id}`, on: { click: () => void move(key, to) } }, title);
  };

  /**
   * Move a key to another list, after a look at its fingerprint. The id is named exactly: no id counts as a pattern.
   * @param {Key} key
   * @param {string} to
   */
  const move = async (key, to) => {
    const [fun, verb, done] = VERBS[to];
    if (key.state === to) return;
    const text = [h("p", {}, h("strong", { class: "mono" }, key.id)), h("p", {}, "Fingerprint"), h("code", { class: "block finger" }, key.finger || "unknown")];
    if (to === "minions") text.push(h("p", { class: "muted" }, "Compare it on the machine: ", h("code", {}, "salt-call --local key.finger")));
    if (to === "") text.push(h("p", { class: "muted" }, "The minion has to sign in again, and its new key waits for you."));
    if (!(await confirmed({ title: `${verb} this key?`, text, act: verb, danger: to !== "minions" }))) return;
    try {
      await wheel(fun, { match: { [key.state]: [key.id] }, ...(to === "minions" && key.state !== "minions_pre" ? { include_rejected: true, include_denied: true } : {}) });
      announce(`${key.id} is ${done}`);
      fill(said);
      await load();
    } catch (error) {
      const fault = /** @type {any} */ (error);
      fill(said, notice(fault.message, fault.advice ?? "", { kind: "bad" }));
    }
  };

  const show = calmly(() => {
    for (const [state, { list, count, empty }] of columns) {
      const found = all.filter((key) => key.state === state && (!words || key.id.toLowerCase().includes(words) || key.finger.includes(words)));
      count.textContent = number(found.length);
      list.set(found);
      list.element.hidden = found.length === 0;
      empty.hidden = found.length > 0;
    }
  });

  const load = inOrder(
    () => Promise.all([wheel("key.list_all"), wheel("key.finger", { match: "*" })]),
    ([lists, fingers]) => {
      all = STATES.flatMap(([state]) => (lists[state] ?? []).map((/** @type {string} */ id) => ({ id, state, finger: String(fingers?.[state]?.[id] ?? "") })));
      show();
    },
  );

  place.title("Keys");
  place.keys.a = { text: "Accept the current key", run: () => first("minions") };
  place.keys.r = { text: "Reject the current key", run: () => first("minions_rejected") };
  place.keys.d = { text: "Delete the current key", run: () => {} };
  /** Keys pressed outside a list mean the first pending key. @param {string} to */
  const first = (to) => {
    const list = columns.get("minions_pre")?.list;
    const key = list?.item ?? list?.items[0];
    if (key) void move(key, to);
    else announce("No key is pending");
  };
  fill(place.main, h("div", { class: "bar" }, h("div", { class: "target" }, search), h("p", { class: "muted hint" }, "Drag a key to another list, or move to it by j and k and press a, r or d.")), said, h("div", { class: "columns" }, [...columns.values()].map((each) => each.column)));
  for (const { list, empty } of columns.values()) list.element.hidden = empty.hidden = true;
  // Listened for before the first look: what happens during it is seen by the next.
  let due = 0;
  place.onLeave(
    events.listen((event) => {
      if (!due && /^salt\/(auth|key)/.test(event.tag)) due = window.setTimeout(() => { due = 0; load().catch(() => {}); }, 500);
    }),
    () => clearTimeout(due),
  );
  await load();
  if (!place.gone() && document.activeElement === document.body) columns.get("minions_pre")?.list.element.focus();
}
