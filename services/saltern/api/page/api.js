/**
 * Calls of the API. The session is the cookie that no script can read; each call is recorded for the drawer.
 */

import { curlOf, saltOf } from "./shell_words.js";

/** The path of the API: where this page is, without `/console/`. */
export const BASE = new URL("..", import.meta.url).pathname.replace(/\/$/, "");

/** An answer that is an error, or none at all. */
export class ApiError extends Error {
  /**
   * @param {number} status 0: no answer came
   * @param {string} text
   */
  constructor(status, text) {
    super(text);
    this.status = status;
  }

  /** What to do next, in words. */
  get advice() {
    return ADVICE[this.status] ?? "Try again. The log of the role `api` says more.";
  }
}

const ADVICE = /** @type {Record<number, string>} */ ({
  0: "The API cannot be reached. This page tries again by itself; what already runs on minions goes on.",
  400: "Change the request.",
  401: "Your row in external_auth does not allow it. For lists of minions and jobs it needs @jobs, for keys @wheel, for runners @runner.",
  404: "It may have expired: jobs are kept for keep_jobs_seconds.",
  413: "The answer or the request is too large.",
  429: "Wait a minute.",
  503: "The master or Redis does not answer. This page tries again by itself.",
  504: "It goes on; look at Jobs.",
});

/**
 * One call, as the drawer shows it.
 * @typedef {{at: number, method: string, path: string, body?: any, curl: string, salt: string, status: number | string, ms: number}} Recorded
 */

/** @type {Recorded[]} */
export const calls = [];
const MOST = 100;

/** @type {Set<() => void>} */
const watchers = new Set();

/** Call a function whenever a call was made or answered. @param {() => void} watcher */
export function onCall(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** Drop the recorded calls: the next user does not see them. */
export function forgetCalls() {
  calls.length = 0;
  for (const watcher of watchers) watcher();
}

/** Called when the session has ended. @type {() => void} */
let ended = () => {};

/** Counts the sign-ins: what is said about a session of before says nothing about the one of now. */
let logins = 0;

/** @param {() => void} work */
export function onSessionEnd(work) {
  ended = work;
}

/**
 * Record a call for the drawer; a call that is repeated by itself is recorded once.
 * @param {string} method
 * @param {string} path
 * @param {any} body
 * @param {string} salt
 * @returns {Recorded}
 */
export function record(method, path, body, salt) {
  const shown = path === "/login" && body ? { ...body, password: "..." } : body;
  const known = calls.findIndex((each) => each.method === method && each.path === path && each.salt === salt && !each.body);
  if (known >= 0) calls.splice(known, 1);
  const curl = curlOf({ method, path, body: shown }, location.origin + BASE);
  const made = { at: Date.now(), method, path, body: shown, curl, salt, status: "...", ms: 0 };
  calls.unshift(made);
  calls.length = Math.min(calls.length, MOST);
  for (const watcher of watchers) watcher();
  return made;
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{body?: any, salt?: string, signal?: AbortSignal, quiet?: boolean}} more
 * @returns {Promise<any>}
 */
async function request(method, path, more) {
  const row = record(method, path, more.body, more.salt ?? "");
  const started = performance.now();
  const login = logins;
  /** @type {RequestInit} */
  const init = { method, headers: { Accept: "application/json" }, credentials: "same-origin", cache: "no-store" };
  if (more.signal) init.signal = more.signal;
  if (more.body !== undefined) {
    init.body = JSON.stringify(more.body);
    init.headers = { ...init.headers, "Content-Type": "application/json" };
  }
  let answer;
  try {
    answer = await fetch(BASE + path, init);
  } catch (error) {
    row.status = "none";
    if (more.signal?.aborted) throw error;
    throw new ApiError(0, "No answer came from the API.");
  } finally {
    row.ms = Math.round(performance.now() - started);
    for (const watcher of watchers) watcher();
  }
  row.status = answer.status;
  for (const watcher of watchers) watcher();
  const text = await answer.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ApiError(answer.status, `The answer is not JSON (status ${answer.status}).`);
  }
  if (!answer.ok) {
    const said = value && typeof value === "object" && "return" in value ? String(value.return) : `Status ${answer.status}`;
    if (answer.status === 401 && path !== "/login" && !more.quiet) await sessionHolds(login);
    throw new ApiError(answer.status, said);
  }
  return value.return;
}

/**
 * A 401 means: not allowed, or no longer signed in. The session itself says which.
 * @param {number} login the sign-in of which the question came
 */
async function sessionHolds(login) {
  try {
    const answer = await fetch(`${BASE}/v1/session`, { credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401 && login === logins) ended();
  } catch {
    // Without an answer nothing is known about the session.
  }
}

/**
 * @param {string} path
 * @param {{query?: Record<string, string | number | boolean | null | undefined>, salt?: string, signal?: AbortSignal, quiet?: boolean}} [more]
 * @returns {Promise<any>} the value below `return`
 */
export function get(path, more = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(more.query ?? {})) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const words = query.toString();
  return request("GET", words ? `${path}?${words}` : path, more);
}

/**
 * Run one chunk of low data. Never repeated by itself: it may have been carried out although no answer came.
 * @param {Record<string, any>} chunk
 * @returns {Promise<any>}
 */
export async function run(chunk) {
  const found = await request("POST", "/", { body: chunk, salt: saltOf(chunk) });
  return Array.isArray(found) ? found[0] : found;
}

/**
 * Publish a job and return its JID, and its minions.
 * @param {Record<string, any>} chunk
 * @returns {Promise<{jid: string, minions: string[]}>}
 */
export async function publish(chunk) {
  const found = await run({ client: "local_async", ...chunk });
  if (!found?.jid) throw new ApiError(400, "No minion matches this target: nothing was published.");
  return found;
}

/**
 * Publish a job and wait for the return of one minion.
 * @param {string} minion
 * @param {string} fun
 * @param {any[]} arg
 * @param {Record<string, any>} [kwarg]
 */
export async function ask(minion, fun, arg, kwarg) {
  const chunk = { client: "local", tgt: [minion], tgt_type: "list", fun, arg, ...(kwarg ? { kwarg } : {}), full_return: true };
  const found = await run(chunk);
  const own = found?.[minion];
  if (!own || own.out === "no_return") throw new ApiError(504, own?.ret ? String(own.ret) : `${minion} did not answer.`);
  return { value: own.ret, retcode: own.retcode ?? 0 };
}

/**
 * A wheel function and its value.
 * @param {string} fun
 * @param {Record<string, any>} [more]
 */
export async function wheel(fun, more = {}) {
  const found = await run({ client: "wheel", fun, ...more });
  if (found?.data?.success === false) throw new ApiError(400, String(found.data.return));
  return found?.data?.return;
}

/** @param {{username: string, password: string, eauth: string}} credentials */
export async function login(credentials) {
  const [session] = await request("POST", "/login", { body: credentials, quiet: true });
  logins += 1;
  return session;
}

export async function logout() {
  await request("POST", "/logout", { body: {}, quiet: true });
}
