/**
 * Values as text and elements: times, sizes, data, diffs.
 */

import { h } from "./dom.js";

/**
 * How long ago a time was.
 * @param {number | null | undefined} ms since 1970
 * @param {number} [now]
 */
export function ago(ms, now = Date.now()) {
  if (!ms) return "never";
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** @param {number} ms */
export function clock(ms) {
  const at = new Date(ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/**
 * The time in a JID (UTC), milliseconds since 1970; 0 if it is none.
 * @param {string} jid
 */
export function jidTime(jid) {
  const found = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{6})/.exec(jid);
  if (!found) return 0;
  const [year, month, day, hour, minute, second, micro] = found.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second, Math.floor(micro / 1000));
}

/** @param {number} ms */
export function dateAndTime(ms) {
  if (!ms) return "";
  const at = new Date(ms);
  const day = `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
  return new Date().toDateString() === at.toDateString() ? clock(ms) : `${day} ${clock(ms)}`;
}

/** @param {number} count */
export function number(count) {
  return Number(count || 0).toLocaleString("en");
}

/** @param {number} bytes */
export function bytes(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = Number(bytes || 0);
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size >= 100 || unit === 0 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds >= 86400) return `${Math.floor(seconds / 86400)} d`;
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/**
 * Data in the form of YAML, to be read.
 * @param {any} value
 * @param {string} [indent]
 * @returns {string}
 */
export function readable(value, indent = "") {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") {
    if (value.includes("\n")) return `|\n${value.replace(/\n$/, "").split("\n").map((line) => `${indent}  ${line}`).join("\n")}`;
    return value === "" || /^[\s\-?:,[\]{}#&*!|>'"%@`]|: |\s$|^(true|false|null|~|[\d.]+)$/i.test(value) ? JSON.stringify(value) : value;
  }
  if (typeof value !== "object") return String(value);
  const entries = Array.isArray(value) ? value.map((each) => ["-", each]) : Object.entries(value).map(([name, each]) => [`${name}:`, each]);
  if (!entries.length) return Array.isArray(value) ? "[]" : "{}";
  const lines = entries.map(([head, each]) => {
    const nested = each !== null && typeof each === "object" && Object.keys(each).length > 0;
    if (!nested) return `${indent}${head} ${readable(each, indent)}`;
    if (head === "-") return `${indent}- ${readable(each, `${indent}  `).trimStart()}`;
    return `${indent}${head}\n${readable(each, `${indent}  `)}`;
  });
  return lines.join("\n");
}

/** Most lines of a text that are shown at once. */
const MOST_LINES = 400;

/**
 * A unified diff with coloured lines; the signs stay, so that colour is not the only sign.
 * @param {string} text
 */
export function diff(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = lines.slice(0, MOST_LINES).map((line) => {
    const kind = line.startsWith("@@") ? "hunk" : /^(\+\+\+|---)( |$)/.test(line) ? "file" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
    return h("span", { class: `line ${kind}` }, line || " ");
  });
  const more = lines.length - MOST_LINES;
  return h("pre", { class: "diff", tabindex: "0", "aria-label": "Changes as a diff" }, shown, more > 0 ? h("span", { class: "line file" }, `... ${number(more)} more lines`) : null);
}

/** @param {string} text */
export function looksLikeDiff(text) {
  return /^(--- |\+\+\+ |@@ )/m.test(text);
}

/**
 * Data, and the diffs in it, as elements.
 * @param {any} value
 */
export function shown(value) {
  if (typeof value === "string" && looksLikeDiff(value)) return diff(value);
  if (value && typeof value === "object" && !Array.isArray(value) && typeof value.diff === "string" && looksLikeDiff(value.diff)) {
    const { diff: text, ...rest } = value;
    return h("div", {}, diff(text), Object.keys(rest).length ? block(readable(rest)) : null);
  }
  return block(readable(value));
}

/** @param {string} text */
export function block(text) {
  const cut = text.length > 60000 ? `${text.slice(0, 60000)}\n... ${number(text.length - 60000)} more characters` : text;
  return h("pre", { class: "data", tabindex: "0" }, cut);
}
