/**
 * Writes each call of this page as a `curl` and as a `salt` command, for the drawer.
 */

/** @typedef {{method: string, path: string, body?: any}} Call */

/**
 * Characters that no shell and no reader shall meet in a word: control characters, and marks that are not seen or change
 * the direction of text.
 */
const UNSEEN = /[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;

/**
 * A word as a shell reads it back unchanged. No shell reads a second command in it: bash, zsh and ksh read the word; dash
 * and fish, which do not know the form `$'...'`, read other text or refuse the line.
 * @param {string} word
 */
export function quoted(word) {
  if (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word)) return word;
  if (word.includes("\\") || UNSEEN.test(word)) {
    // Neither quotes nor backslashes stand for themselves: where this form is unknown, they would end the word.
    const escaped = [...word].map((char) => {
      const code = char.codePointAt(0) ?? 0;
      if (/[\\'!]/.test(char) || code < 32 || code === 127) return `\\x${code.toString(16).padStart(2, "0")}`;
      return UNSEEN.test(char) ? `\\u${code.toString(16).padStart(4, "0")}` : char;
    });
    return `$'${escaped.join("")}'`;
  }
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * A command line. `options` are words of this page; `words` may come from anybody, and none of them becomes an option.
 * @param {string} program
 * @param {string[]} options
 * @param {string[]} words
 */
function commandOf(program, options, words) {
  const end = words.some((word) => word.startsWith("-")) ? ["--"] : [];
  return [program, ...options, ...end, ...words.map(quoted)].join(" ");
}

/**
 * A runner as a command of salt-run.
 * @param {string} fun
 * @param {string[]} words
 */
export function runnerOf(fun, ...words) {
  return commandOf("salt-run", [], [fun, ...words]);
}

/**
 * The call as a command of curl. The token is left to the reader's shell.
 * @param {Call} call
 * @param {string} origin
 */
export function curlOf(call, origin) {
  const words = ["curl", "-s"];
  if (call.path === "/events") words.push("-N");
  words.push(quoted(`${origin}${call.path}`));
  if (call.path !== "/login") words.push("-H", '"X-Auth-Token: $TOKEN"');
  if (call.body !== undefined) {
    words.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(call.body)));
  }
  return words.join(" ");
}

/** Target type -> option of `salt`. */
const FLAGS = new Map([
  ["compound", "-C"],
  ["list", "-L"],
  ["grain", "-G"],
  ["grain_pcre", "--grain-pcre"],
  ["pcre", "-E"],
  ["nodegroup", "-N"],
  ["ipcidr", "-S"],
  ["pillar", "-I"],
  ["pillar_pcre", "--pillar-pcre"],
]);

/**
 * A value as a word on Salt's command line, which is read as YAML there.
 * @param {any} value
 */
function argument(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  // Text that YAML would read as another type, or that looks like a keyword argument, is quoted for YAML.
  const plain = /^[A-Za-z_./*@-][\w./*@:,\- ]*$/.test(value) && !/^(true|false|yes|no|on|off|null|y|n|~)$/i.test(value) && !/: |:$/.test(value);
  return plain ? value : JSON.stringify(value);
}

/**
 * @param {any} chunk
 * @returns {string[]}
 */
function argumentsOf(chunk) {
  const given = chunk.arg === undefined ? [] : Array.isArray(chunk.arg) ? chunk.arg : [chunk.arg];
  const named = Object.entries(chunk.kwarg ?? {}).map(([name, value]) => `${name}=${argument(value)}`);
  return [...given.map(argument), ...named];
}

/** Wheel functions of keys -> option of `salt-key`, short and long. */
const KEY_FLAGS = new Map([
  ["key.accept_dict", ["-a", "--accept"]],
  ["key.reject_dict", ["-r", "--reject"]],
  ["key.delete_dict", ["-d", "--delete"]],
  ["key.list_all", ["-L", ""]],
  ["key.finger", ["-F", ""]],
]);

/**
 * A chunk of low data as a command of salt, salt-run or salt-key.
 * @param {any} chunk
 */
export function saltOf(chunk) {
  const client = String(chunk.client);
  if (client.startsWith("local")) {
    const target = Array.isArray(chunk.tgt) ? chunk.tgt.join(",") : String(chunk.tgt);
    const options = [client === "local_async" ? "--async" : "", FLAGS.get(chunk.tgt_type) ?? ""].filter(Boolean);
    return commandOf("salt", options, [target, String(chunk.fun), ...argumentsOf(chunk)]);
  }
  if (client.startsWith("runner")) {
    const known = new Set(["client", "fun", "arg", "kwarg"]);
    const flat = Object.fromEntries(Object.entries(chunk).filter(([name]) => !known.has(name)));
    return runnerOf(String(chunk.fun), ...argumentsOf({ ...chunk, kwarg: { ...flat, ...chunk.kwarg } }));
  }
  const [flag, long] = KEY_FLAGS.get(chunk.fun) ?? ["", ""];
  if (!flag) return "";
  if (!long) return `salt-key ${flag}`;
  const ids = Object.values(chunk.match ?? {}).flat().map(String);
  const lists = Object.keys(chunk.match ?? {});
  const more = flag === "-a" && lists.some((name) => name !== "minions_pre") ? " --include-all" : "";
  return ids.map((id) => `salt-key ${id.startsWith("-") ? `${long}=` : `${flag} `}${quoted(id)}${more}`).join("; ");
}

/**
 * The target options of salt-run's functions, as words.
 * @param {string} tgt
 * @param {string} type
 */
export function targetWords(tgt, type) {
  return type === "glob" ? [tgt] : [tgt, type];
}
