/** The sign-in. The session is a cookie that this page cannot read. */

import { ApiError, login } from "../api.js";
import { fill, h } from "../dom.js";

const KINDS = [["file", "File"], ["pam", "PAM"], ["ldap", "LDAP"], ["oidc", "OpenID Connect token"], ["sharedsecret", "Shared secret"]];

/**
 * @param {HTMLElement} where
 * @param {string} why
 * @param {() => void} done
 */
export function loginView(where, why, done) {
  document.title = "Log in - Saltern";
  const before = localStorage.getItem("saltern.eauth") ?? "file";
  const name = /** @type {HTMLInputElement} */ (h("input", { id: "username", name: "username", autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: true }));
  const password = /** @type {HTMLInputElement} */ (h("input", { id: "password", name: "password", type: "password", autocomplete: "current-password", required: true }));
  const kind = /** @type {HTMLSelectElement} */ (h("select", { id: "eauth", name: "eauth" }, KINDS.map(([value, text]) => h("option", { value, selected: value === before }, text))));
  const said = h("p", { class: "said", role: "alert" }, why);
  const button = h("button", { class: "primary", type: "submit" }, "Log in");
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    button.setAttribute("disabled", "");
    said.textContent = "";
    try {
      const session = await login({ username: name.value, password: password.value, eauth: kind.value });
      localStorage.setItem("saltern.eauth", kind.value);
      if (!Object.keys(session.perms ?? {}).length) {
        said.textContent = `${session.user} is known, but has no row in external_auth: ask for one.`;
        return;
      }
      done();
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      said.textContent =
        status === 401 ? "User, password or method is wrong." : status === 429 ? "Too many failed tries: wait a minute." : `${/** @type {Error} */ (error).message} ${error instanceof ApiError ? error.advice : ""}`;
      password.value = "";
      password.focus();
    } finally {
      button.removeAttribute("disabled");
    }
  };
  fill(
    where,
    h(
      "main",
      { class: "login", id: "main" },
      h(
        "form",
        { on: { submit } },
        h("div", { class: "brand" }, h("span", { class: "mark", "aria-hidden": "true" }), h("h1", {}, "Saltern")),
        said,
        h("label", { for: "username" }, "User"),
        name,
        h("label", { for: "password" }, "Password"),
        password,
        h("label", { for: "eauth" }, "Method"),
        kind,
        button,
      ),
    ),
  );
  name.focus();
}
