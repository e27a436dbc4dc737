/** Follows a job until no minion is waited for: returns as rows of the matrix, group by group. */

import { get } from "./api.js";
import { events } from "./event_stream.js";
import { runnerOf } from "./shell_words.js";

const TOGETHER = 100;

/**
 * @typedef {import("./views/job.js").Answer} Answer
 * @typedef {{done: boolean, expected: string[], answers: Map<string, Answer>, states: Map<string, string>, columns: Map<string, any>}} Progress
 */

/**
 * Call `told` whenever something came, and resolve at the end. `gone` says that nobody looks any more.
 * @param {string} jid
 * @param {(progress: Progress) => void} told
 * @param {() => boolean} gone
 * @returns {Promise<Progress>}
 */
export async function follow(jid, told, gone) {
  /** @type {Progress} */
  const progress = { done: false, expected: [], answers: new Map(), states: new Map(), columns: new Map() };
  const salt = runnerOf("jobs.list_job", jid);
  let wake = () => {};
  // A return that arrives while a question is on its way is asked about at once.
  let came = false;
  const stop = events.listen((event) => {
    if (event.tag.startsWith(`salt/job/${jid}/ret/`)) {
      came = true;
      wake();
    }
  });
  try {
    let pause = 200;
    while (!gone()) {
      came = false;
      try {
        const status = await get(`/v1/jobs/${jid}`, { salt });
        for (const [id, state] of Object.entries(status.minions)) progress.states.set(id, /** @type {any} */ (state).state);
        progress.expected = Object.keys(status.minions);
        const fresh = [...progress.states].filter(([id, state]) => state === "returned" && !progress.answers.has(id)).map(([id]) => id);
        for (let at = 0; at < fresh.length && !gone(); at += TOGETHER) {
          const page = await get(`/v1/jobs/${jid}/matrix`, { query: { minions: fresh.slice(at, at + TOGETHER).join(",") }, salt });
          for (const column of page.columns) progress.columns.set(column.tag, column);
          for (const row of page.rows) progress.answers.set(row.id, { ...row, columns: page.columns });
        }
        progress.done = status.complete && progress.expected.every((id) => progress.answers.has(id) || progress.states.get(id) !== "returned");
        if (fresh.length || progress.done) pause = 200;
        told(progress);
        if (progress.done) break;
      } catch (error) {
        const fault = /** @type {any} */ (error);
        // A replica that dies, or a master that restarts, is back soon; any other error is final.
        if (fault.status !== 0 && fault.status !== 503) throw error;
      }
      pause = Math.min(pause * 1.5, 3000);
      await new Promise((done) => {
        const timer = setTimeout(done, came ? 100 : pause);
        wake = () => { clearTimeout(timer); setTimeout(done, 100); };
      });
    }
    return progress;
  } finally {
    stop();
  }
}
