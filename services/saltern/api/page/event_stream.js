/**
 * The events of the master's bus, by Server-Sent Events. After a break the stream goes on after the last event that came,
 * at whatever replica answers: the header Last-Event-ID names that event.
 */

import { BASE, record } from "./api.js";

/** @typedef {{id: string, tag: string, text: string}} RawEvent `text`: JSON with tag and data, parsed only by those who need it */
/** @typedef {"live" | "waiting" | "closed"} StreamState */

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 5000;

/** Milliseconds after which a stream without even a sign of life counts as broken; the API sends one every 15 seconds. */
const SILENCE = 40000;

class EventStream {
  constructor() {
    /** @type {Set<(event: RawEvent) => void>} */
    this.listeners = new Set();
    /** @type {Set<(state: StreamState) => void>} */
    this.watchers = new Set();
    /** @type {StreamState} */
    this.state = "closed";
    this.last = "";
    /** Breaks after which the stream went on. */
    this.resumed = 0;
    this.count = 0;
    /** @type {AbortController | null} */
    this.stopper = null;
  }

  /** @param {(event: RawEvent) => void} listener */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** @param {(state: StreamState) => void} watcher */
  watch(watcher) {
    this.watchers.add(watcher);
    watcher(this.state);
    return () => this.watchers.delete(watcher);
  }

  start() {
    if (this.stopper) return;
    this.stopper = new AbortController();
    void this.#loop(this.stopper);
  }

  stop() {
    this.stopper?.abort();
    this.stopper = null;
    this.last = "";
    this.#set("closed");
  }

  /** @param {StreamState} state */
  #set(state) {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher(state);
  }

  /** @param {AbortController} stopper */
  async #loop(stopper) {
    let pause = FIRST_PAUSE;
    while (!stopper.signal.aborted) {
      const began = performance.now();
      try {
        const status = await this.#follow(stopper.signal);
        if (status === 401 && !stopper.signal.aborted) return this.stop();
      } catch {
        // The connection broke; below it is made anew.
      }
      if (stopper.signal.aborted) return;
      this.#set("waiting");
      if (performance.now() - began > 10000) pause = FIRST_PAUSE;
      await new Promise((done) => setTimeout(done, pause * (0.75 + Math.random() / 2)));
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  /**
   * Read one connection to its end. Return the status of its answer.
   * @param {AbortSignal} signal
   */
  async #follow(signal) {
    const broken = new AbortController();
    const stop = () => broken.abort();
    signal.addEventListener("abort", stop);
    let timer = window.setTimeout(stop, SILENCE);
    try {
      const headers = /** @type {Record<string, string>} */ ({ Accept: "text/event-stream" });
      if (this.last) headers["Last-Event-ID"] = this.last;
      const row = record("GET", "/events", undefined, "salt-run state.event pretty=True");
      const answer = await fetch(`${BASE}/events`, { headers, credentials: "same-origin", cache: "no-store", signal: broken.signal });
      row.status = answer.status;
      if (!answer.ok || !answer.body) return answer.status;
      if (this.last) this.resumed += 1;
      this.#set("live");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return answer.status;
        clearTimeout(timer);
        timer = window.setTimeout(stop, SILENCE);
        rest = this.#take(rest + value);
      }
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }

  /**
   * Hand out the whole events at the beginning of a text; return what is left of it.
   * @param {string} text
   */
  #take(text) {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end < 0) return text;
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      const event = { id: "", tag: "", text: "" };
      for (const line of block.split("\n")) {
        if (line.startsWith("tag: ")) event.tag = line.slice(5);
        else if (line.startsWith("data: ")) event.text = line.slice(6);
        else if (line.startsWith("id: ")) event.id = line.slice(4);
      }
      if (!event.tag) continue;
      if (event.id) this.last = event.id;
      this.count += 1;
      for (const listener of this.listeners) listener(event);
    }
  }
}

export const events = new EventStream();

/**
 * The data of an event; {} if it cannot be parsed.
 * @param {RawEvent} event
 * @returns {Record<string, any>}
 */
export function dataOf(event) {
  try {
    const found = JSON.parse(event.text);
    return found && typeof found.data === "object" && found.data ? found.data : {};
  } catch {
    return {};
  }
}
