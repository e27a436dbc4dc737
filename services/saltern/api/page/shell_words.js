/**
 * Writes each call of this page as a `curl` and as a `salt` command, for the drawer.
 */

/** @typedef {{method: string, path: string, body?: any}} Call */

/**
 * A word as a shell reads it back unchanged.
 * @param {string} word
 */
export function quoted(word) {
  if (word !== "" && /^[\w@%+=:,./-]+$/.test(word)) return word;
  if (/[\x00-\x1f\x7f-\x9f]/.test(word)) {
    const escaped = word.replace(/[\\'\x00-\x1f\x7f-\x9f]/g, (char) => {
      if (char === "\\" || char === "'") return `\\${char}`;
      const code = char.charCodeAt(0);
      return code < 128 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
    });
    return `$'${escaped}'`;
  }
  return `'${word.replaceAll("'", "'\\''")}'`;
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
const FLAGS = /** @type {Record<string, string>} */ ({
  compound: "-C",
  list: "-L",
  grain: "-G",
  grain_pcre: "--grain-pcre",
  pcre: "-E",
  nodegroup: "-N",
  ipcidr: "-S",
  pillar: "-I",
  pillar_pcre: "--pillar-pcre",
});

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
  const named = Object.entries(chunk.kwarg ?? {}).map(([name, value]) => quoted(`${name}=${argument(value)}`));
  return [...given.map((/** @type {any} */ each) => quoted(argument(each))), ...named];
}

/** Wheel functions of keys -> option of `salt-key`. */
const KEY_FLAGS = /** @type {Record<string, string>} */ ({
  "key.accept_dict": "-a",
  "key.reject_dict": "-r",
  "key.delete_dict": "-d",
  "key.list_all": "-L",
  "key.finger": "-F",
});

/**
 * A chunk of low data as a command of salt, salt-run or salt-key.
 * @param {any} chunk
 */
export function saltOf(chunk) {
  const client = String(chunk.client);
  if (client.startsWith("local")) {
    const flag = FLAGS[chunk.tgt_type];
    const target = Array.isArray(chunk.tgt) ? chunk.tgt.join(",") : String(chunk.tgt);
    const words = ["salt", client === "local_async" ? "--async" : "", flag ?? "", target.startsWith("-") ? "--" : ""];
    return [...words, quoted(target), String(chunk.fun), ...argumentsOf(chunk)].filter(Boolean).join(" ");
  }
  if (client.startsWith("runner")) {
    const known = new Set(["client", "fun", "arg", "kwarg"]);
    const flat = Object.fromEntries(Object.entries(chunk).filter(([name]) => !known.has(name)));
    return ["salt-run", String(chunk.fun), ...argumentsOf({ ...chunk, kwarg: { ...flat, ...chunk.kwarg } })].join(" ");
  }
  const flag = KEY_FLAGS[chunk.fun];
  if (!flag) return "";
  if (flag === "-L" || flag === "-F") return `salt-key ${flag}`;
  const ids = Object.values(chunk.match ?? {}).flat();
  const lists = Object.keys(chunk.match ?? {});
  const more = flag === "-a" && lists.some((name) => name !== "minions_pre") ? " --include-all" : "";
  return ids.map((id) => `salt-key ${flag} ${quoted(String(id))}${more}`).join("; ");
}

/**
 * The target options of salt-run's functions, as words.
 * @param {string} tgt
 * @param {string} type
 */
export function targetWords(tgt, type) {
  return type === "glob" ? quoted(tgt) : `${quoted(tgt)} ${type}`;
}
