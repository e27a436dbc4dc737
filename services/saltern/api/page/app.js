/**
 * The page: sign-in, navigation, keys. Each view is a module of its own.
 */

import { calls, forgetCalls, get, logout, onCall, onSessionEnd } from "./api.js";
import { dialog, help, palette } from "./dialogs.js";
import { announce, byId, fill, h, isWriting, kbd, notice } from "./dom.js";
import { Drawer } from "./drawer.js";
import { events } from "./event_stream.js";
import { eventsView, forgetEvents } from "./views/events.js";
import { fleetView } from "./views/fleet.js";
import { jobView } from "./views/job.js";
import { jobsView } from "./views/jobs.js";
import { keysView } from "./views/keys.js";
import { loginView } from "./views/login.js";
import { minionView } from "./views/minion.js";
import { planView } from "./views/plan.js";
import { runView } from "./views/run.js";
import { topologyView } from "./views/topology.js";

/**
 * What a view gets: where it is, and how it goes elsewhere. `onLeave` takes what must end with the view, and does it at once if the
 * view was left; `gone` says whether it was. A view that was left has no title and goes nowhere. `keys` are commands of the view
 * by key.
 * @typedef {object} Place
 * @property {HTMLElement} main
 * @property {string[]} parts
 * @property {URLSearchParams} query
 * @property {(hash: string) => void} go
 * @property {(...ends: (() => void)[]) => void} onLeave
 * @property {() => boolean} gone
 * @property {Record<string, {text: string, run: () => void}>} keys
 * @property {(title: string, ...actions: (Node | null)[]) => void} title
 */

/** @typedef {(place: Place) => void | Promise<void>} View */

/** @type {[string, string, string, View][]} name, title, key after g, view */
const VIEWS = [
  ["fleet", "Fleet", "f", fleetView],
  ["jobs", "Jobs", "j", jobsView],
  ["run", "Run", "r", runView],
  ["plan", "Plan", "p", planView],
  ["keys", "Keys", "k", keysView],
  ["events", "Events", "e", eventsView],
  ["topology", "Topology", "t", topologyView],
];

/** Views of one thing -> the entry of the menu that they belong to. @type {Record<string, [string, View]>} */
const DETAILS = { job: ["jobs", jobView], minion: ["fleet", minionView] };

/** Icons of the menu, as paths in a box of 20. */
const ICONS = /** @type {Record<string, string>} */ ({
  fleet: "M3 4h14v4H3zM3 12h14v4H3zM6 6h.01M6 14h.01",
  jobs: "M4 5h12M4 10h12M4 15h7",
  run: "M6 4l10 6-10 6z",
  plan: "M5 3h7l3 3v11H5zM8 9h4M8 12h4",
  keys: "M7 13a3 3 0 1 1 2.800-4H17v3h-2v2h-3v-2H9.800A3 3 0 0 1 7 13z",
  events: "M3 10h3l2-5 4 10 2-5h3",
  topology: "M10 3v4M10 7L5 13M10 7l5 6M8 3h4M3 13h4v4H3zM13 13h4v4h-4z",
});

/** @type {Place | null} */
let here = null;
/** What ends with the view that is seen. @type {(() => void)[]} */
let ends = [];
let user = "";
const drawer = new Drawer();

/* ------------------------------------------------------------------------------------------------------------- theme */

const THEMES = ["auto", "light", "dark"];

function theme() {
  return localStorage.getItem("saltern.theme") ?? "auto";
}

/** @param {string} name */
function setTheme(name) {
  localStorage.setItem("saltern.theme", name);
  document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  if (button) {
    button.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[name] ?? "Auto";
    button.setAttribute("aria-label", `Colours: ${name}. Change`);
  }
}

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
}

/* ------------------------------------------------------------------------------------------------------------- frame */

/** @param {string} name */
function icon(name) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  made.setAttribute("viewBox", "0 0 20 20");
  made.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  made.append(path);
  return made;
}

/** Ends what the frame before watched. */
let unwatch = () => {};

function frame() {
  const live = h("button", { id: "live", class: "plain live", type: "button", on: { click: () => go("#/events") } });
  const callCount = h("span", { class: "muted" });
  const shell = h(
    "div",
    { class: "shell" },
    h(
      "nav",
      { class: "rail", "aria-label": "Views" },
      h("a", { class: "brand", href: "#/fleet" }, h("span", { class: "mark", "aria-hidden": "true" }), h("span", {}, "Saltern")),
      h("ul", {}, VIEWS.map(([name, title]) => h("li", {}, h("a", { href: `#/${name}`, id: `to-${name}` }, icon(name), h("span", {}, title))))),
      h(
        "div",
        { class: "rail-foot" },
        live,
        h("button", { class: "plain", type: "button", on: { click: () => drawer.toggle() } }, "API calls ", callCount, kbd("c")),
        h("button", { class: "plain", type: "button", on: { click: showHelp } }, "Keys ", kbd("?")),
        h("button", { class: "plain", id: "theme", type: "button", on: { click: nextTheme } }),
        h("div", { class: "who" }, h("span", { class: "muted clip", title: user }, user), h("button", { class: "plain", type: "button", on: { click: signOut } }, "Log out")),
      ),
    ),
    h(
      "div",
      { class: "content" },
      h(
        "header",
        { class: "top" },
        h("h1", { id: "title", tabindex: "-1" }),
        h("div", { class: "actions", id: "actions" }),
        h("button", { class: "find", type: "button", on: { click: showPalette } }, h("span", { class: "wide-only" }, "Go to or run"), h("span", { class: "narrow-only" }, "Find"), kbd("Ctrl", "K")),
      ),
      h("main", { id: "main", tabindex: "-1" }),
    ),
    drawer.element,
  );
  fill(byId("app"), shell);
  unwatch();
  const stopCalls = onCall(() => { callCount.textContent = calls.length ? String(calls.length) : ""; });
  const stopEvents = events.watch((state) => {
    const words = /** @type {Record<string, string>} */ ({ live: "Live", waiting: "Connecting", closed: "No events" });
    live.dataset.state = state;
    fill(live, h("span", { class: "dot", "aria-hidden": "true" }), words[state]);
    live.setAttribute("aria-label", `Events: ${words[state]}`);
  });
  unwatch = () => { stopCalls(); stopEvents(); };
  setTheme(theme());
}

/* -------------------------------------------------------------------------------------------------------- navigation */

/** @param {string} hash */
function go(hash) {
  // At once: by the event hashchange, keys that are typed meanwhile would still go to the old view.
  if (location.hash !== hash) history.pushState(null, "", hash);
  route();
}

function leave() {
  here = null;
  for (const end of ends.splice(0)) end();
}

function route() {
  leave();
  const [path, words] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const named = VIEWS.find(([name]) => name === parts[0]);
  const detail = Object.hasOwn(DETAILS, parts[0]) ? DETAILS[parts[0]] : undefined;
  const [menu, title, view] = named ? [named[0], named[1], named[3]] : detail ? [detail[0], "", detail[1]] : ["fleet", "Fleet", fleetView];
  for (const link of document.querySelectorAll(".rail a[id]")) {
    if (link.id === `to-${menu}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const main = byId("main");
  main.className = `view-${named || detail ? parts[0] : "fleet"}`;
  fill(main);
  /** @type {Place} */
  const place = {
    main,
    parts: parts.slice(1),
    query: new URLSearchParams(words ?? ""),
    go: (hash) => {
      if (here === place) go(hash);
    },
    onLeave: (...work) => {
      if (here === place) ends.push(...work);
      else for (const end of work) end();
    },
    gone: () => here !== place,
    keys: {},
    title: (text, ...actions) => {
      if (here !== place) return;
      byId("title").textContent = text;
      document.title = `${text} - Saltern`;
      fill(byId("actions"), actions);
    },
  };
  here = place;
  place.title(title);
  announce(title);
  Promise.resolve(view(place)).catch((error) => {
    if (here === place) fill(main, failure(error, route));
  });
}

/**
 * An error in place of a view.
 * @param {any} error
 * @param {() => void} again
 */
function failure(error, again) {
  const button = h("button", { type: "button", on: { click: again } }, "Try again");
  return notice(error?.message ?? String(error), error?.advice ?? "This is a fault of the page.", { kind: "bad", actions: [button] });
}

/* ---------------------------------------------------------------------------------------------------------------- keys */

/** When g was pressed, in milliseconds of the page, which begin at 0. */
let afterG = -Infinity;

/** @param {KeyboardEvent} event */
function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) showPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (isWriting(event)) {
    if (event.key === "Escape") {
      /** @type {HTMLElement} */ (event.target).blur();
      /** @type {HTMLElement | null} */ (document.querySelector("main .vlist"))?.focus();
    }
    return;
  }
  const list = /** @type {HTMLElement | null} */ (document.querySelector("main .vlist"));
  const named = VIEWS.find(([, , key]) => key === event.key);
  if (performance.now() - afterG < 1500 && named) {
    afterG = -Infinity;
    event.preventDefault();
    go(`#/${named[0]}`);
  } else if (event.key === "g") {
    afterG = performance.now();
  } else if (event.key === "?") {
    showHelp();
  } else if (event.key === "/") {
    const field = /** @type {HTMLInputElement | null} */ (document.querySelector("main input[type=text], main input[type=search]"));
    field?.focus();
    field?.select();
    event.preventDefault();
  } else if (event.key === "c") {
    drawer.toggle();
  } else if (here && Object.hasOwn(here.keys, event.key)) {
    event.preventDefault();
    here.keys[event.key].run();
  } else if ((event.key === "j" || event.key === "k") && list && !list.contains(document.activeElement)) {
    // The list takes the key as if it had had the focus; a list that is still loading keeps it until then.
    if (list.hidden) list.dispatchEvent(new KeyboardEvent("keydown", { key: event.key }));
    else list.focus();
    event.preventDefault();
  } else if (event.key === "Enter" && list?.hidden && event.target === document.body) {
    list.dispatchEvent(new KeyboardEvent("keydown", { key: event.key }));
  } else if (event.key === "Escape" && !drawer.element.hidden) {
    drawer.toggle();
  }
}

function showHelp() {
  const own = Object.entries(here?.keys ?? {}).map(([key, { text }]) => /** @type {[string[], string]} */ ([[key === " " ? "Space" : key], text]));
  help([
    ["Everywhere", [[["Ctrl", "K"], "Command palette"], [["?"], "These keys"], [["/"], "To the filter"], [["c"], "API calls"], [["Esc"], "Out of a field; close"]]],
    ["Lists", [[["j"], "Down"], [["k"], "Up"], [["Enter"], "Open"], [["Home"], "First"], [["End"], "Last"]]],
    ["Go to", VIEWS.map(([, title, key]) => /** @type {[string[], string]} */ ([["g", key], title]))],
    ...(own.length ? [/** @type {[string, [string[], string][]]} */ (["This view", own])] : []),
  ]);
}

function showPalette() {
  const own = Object.entries(here?.keys ?? {}).map(([key, { text, run }]) => ({ name: text, keys: [key === " " ? "Space" : key], run }));
  palette(
    [
      ...own,
      ...VIEWS.map(([name, title, key]) => ({ name: `Go to ${title}`, keys: ["g", key], run: () => go(`#/${name}`) })),
      { name: "Show API calls", keys: ["c"], run: () => drawer.toggle() },
      { name: "Show keys", keys: ["?"], run: showHelp },
      ...THEMES.map((each) => ({ name: `Colours: ${each}`, run: () => setTheme(each) })),
      { name: "Log out", run: signOut },
    ],
    (query) => [
      ...(/^\d{20}$/.test(query) ? [{ name: `Open job ${query}`, run: () => go(`#/job/${query}`) }] : []),
      { name: `Filter the fleet by ${query}`, run: () => go(`#/fleet?tgt=${encodeURIComponent(query)}`) },
      { name: `Open minion ${query}`, run: () => go(`#/minion/${encodeURIComponent(query)}`) },
      { name: `Run on ${query}`, run: () => go(`#/run?tgt=${encodeURIComponent(query)}`) },
      { name: `Plan for ${query}`, run: () => go(`#/plan?tgt=${encodeURIComponent(query)}`) },
    ],
  );
}

/* ------------------------------------------------------------------------------------------------------------- session */

async function signOut() {
  try {
    await logout();
  } catch (error) {
    // Without an answer the session, and its cookie, may still be there.
    if (/** @type {any} */ (error)?.status !== 401) return announceFailure(error);
  }
  showLogin("You are logged out.");
}

/** @param {any} error */
function announceFailure(error) {
  const made = dialog("Log out", "ask", notice("You are still logged in", [error?.message ?? String(error), " ", error?.advice ?? ""], { kind: "bad" }), h("div", { class: "row end" }, h("button", { type: "button", on: { click: () => made.close() } }, "Close")));
}

/**
 * Show the sign-in. Questions that fail together end a session once: what is being typed stays.
 * @param {string} why
 */
function showLogin(why) {
  if (signingIn) return;
  signingIn = true;
  leave();
  events.stop();
  forgetEvents();
  forgetCalls();
  for (const open of document.querySelectorAll("dialog[open]")) /** @type {HTMLDialogElement} */ (open).close();
  loginView(byId("app"), why, start);
}

let signingIn = false;
let starts = 0;

async function start() {
  starts += 1;
  const mine = starts;
  let session;
  try {
    session = await get("/v1/session", { quiet: true });
    if (mine !== starts) return;
  } catch (error) {
    if (mine !== starts) return;
    const status = /** @type {any} */ (error)?.status;
    if (status === 401) return showLogin("");
    signingIn = false;
    fill(byId("app"), h("div", { class: "lonely" }, failure(error, () => void start())));
    window.setTimeout(() => { if (mine === starts) void start(); }, 3000);
    return;
  }
  signingIn = false;
  user = session.user;
  frame();
  events.start();
  route();
}

document.documentElement.dataset.theme = theme();
onSessionEnd(() => showLogin("Your session has ended. What you started goes on; log in to see it."));
window.addEventListener("hashchange", () => {
  if (here) route();
});
window.addEventListener("keydown", onKey);
void start();
