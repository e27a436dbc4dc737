"""Salt's ``selinux`` states: mode, booleans, policy modules, and rules for files and ports.

/srv/web(/.*)?:
  selinux.fcontext_policy_present:
    - sel_type: httpd_sys_content_t

/srv/web:
  selinux.fcontext_policy_applied:
    - recursive: True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.types import Low, Outcome, Plan, Step

_MODES: Mapping[str, tuple[str, ...]] = {
    "Enforcing": ("e", "1", "on"),
    "Permissive": ("p", "0", "off"),
    "Disabled": ("d",),
}

_ON = ("1", "on", "yes", "true")
_OFF = ("0", "off", "no", "false")


def available(ctx: Context) -> str | None:
    """Return None if the host has the programs of SELinux; else return the reason as text."""
    return None if "selinux.getenforce" in ctx.functions else "the host has no semanage, setsebool or semodule"


def mode(ctx: Context, name: str) -> Plan:
    """Set the mode of SELinux, now and in /etc/selinux/config. Nothing happens if it is set; the state fails if it
    cannot be set.

    name
        enforcing, permissive or disabled; in YAML, quote the last
    """
    wanted = _mode(name)
    if wanted is None:
        return Plan.failed(f"{name} is not an accepted mode")
    now, later = ctx.call("selinux.getenforce"), ctx.call("selinux.getconfig")
    # The mode of the next start counts if only that is another one.
    old = later if now == wanted != later else now
    if old == wanted:
        return Plan.unchanged(f"SELinux is already in {wanted} mode")

    def work() -> Outcome:
        new = ctx.call("selinux.setenforce", wanted)
        if new == wanted or (wanted == "Disabled" and ctx.call("selinux.getconfig") == wanted):
            return Outcome(f"SELinux has been set to {wanted} mode", {"old": old, "new": new})
        return Outcome(f"Failed to set SELinux to {wanted} mode", ok=False)

    would = f"SELinux mode is set to be changed to {wanted}"
    return Plan.change(would, [Step(f"set SELinux to {wanted}", work)], {"old": old, "new": wanted})


def boolean(
    ctx: Context,
    name: str,
    value: object = None,
    booleans: Mapping[str, object] | Sequence[str | Mapping[str, object]] | None = None,
    persist: bool = False,
) -> Plan:
    """Set one boolean of the SELinux policy, or several. The state fails if the policy does not have one of them.

    value
        on or off
    booleans
        a map of boolean to value, or a list of booleans (they get ``value``) and such maps. ``name`` is then only a name.
    persist
        True: also after the next start
    """
    known = ctx.call("selinux.list_sebool")
    wanted = _combined(value, booleans) if booleans else {name: value}
    todo: dict[str, str] = {}
    correct: list[str] = []
    for each, given in wanted.items():
        if each not in known:
            return Plan.failed(f"Boolean {each} is not available")
        word = _switch(given, "on", "off")
        if word is None:
            return Plan.failed(f"{given} is not a valid value for the boolean {each}")
        if known[each]["State"] == word and (known[each]["Default"] == word or not persist):
            correct.append(each)
        else:
            todo[each] = word
    notes = ["The following booleans were in the correct state: " + ", ".join(sorted(correct))] if correct else []
    if not todo:
        return Plan.unchanged("\n".join(notes))

    def state(each: str) -> object:
        return [known[each]["State"], known[each]["Default"]] if persist else known[each]["State"]

    changes = {each: {"old": state(each), "new": [word, word] if persist else word} for each, word in todo.items()}
    names = ", ".join(sorted(todo))

    def work() -> Outcome:
        if not ctx.call("selinux.setsebools", todo, persist):
            return Outcome(f"Failed to set the following booleans: {wanted}", ok=False)
        return Outcome(f"The following booleans have been changed: {names}", changes)

    would = f"The following booleans would be changed: {names}"
    return Plan.change(would, [Step(f"set the booleans {names}", work)], changes, notes)


def module(ctx: Context, name: str, module_state: object = "Enabled", version: str = "any", **opts: object) -> Plan:
    """Enable or disable the SELinux policy module ``name``; install or remove it if ``install`` or ``remove`` is True.

    module_state
        Enabled or Disabled
    version
        the wanted version, for semodule before 2.4
    install
        True: first install the module, from ``source``
    source
        the module's file: a path on the host, or a file of the state tree (salt://)
    remove
        True: remove the module
    """
    if opts.get("install") and opts.get("remove"):
        return Plan.failed("Cannot install and remove at the same time")
    if opts.get("remove"):
        return module_remove(ctx, name)
    path = str(opts.get("source", name)) if opts.get("install") else ""
    if path and ctx.test:
        return module_install(ctx, path)

    def work() -> Outcome:
        if path and not ctx.call("selinux.install_semod", path):
            return Outcome(f"Failed to install module {path}", ok=False)
        verdict = _toggle(ctx, name, module_state, version)
        return Outcome(verdict.comment, ok=verdict.result) if not verdict.steps else verdict.steps[0].run()

    if path:
        return Plan.change("", [Step(f"install the policy module {path}", work)])
    return _toggle(ctx, name, module_state, version)


def module_install(ctx: Context, name: str) -> Plan:
    """Install an SELinux policy module from the file ``name``: a path on the host, or a file of the state tree
    (salt://). The state fails if semodule refuses it.

    The module is installed in each run.
    """

    def work() -> Outcome:
        done = ctx.call("selinux.install_semod", name)
        return Outcome(f"Module {name} has been installed" if done else f"Failed to install module {name}", ok=done)

    return Plan.change(f"Module {name} would be installed", [Step(f"install the policy module {name}", work)])


def module_remove(ctx: Context, name: str) -> Plan:
    """Remove the SELinux policy module ``name``. The state fails if it is not installed."""
    if name not in ctx.call("selinux.list_semod"):
        return Plan.failed(f"Module {name} is not available")

    def work() -> Outcome:
        done = ctx.call("selinux.remove_semod", name)
        return Outcome(f"Module {name} has been removed" if done else f"Failed to remove module {name}", ok=done)

    return Plan.change(f"Module {name} would be removed", [Step(f"remove the policy module {name}", work)])


def fcontext_policy_present(
    ctx: Context,
    name: str,
    sel_type: str,
    filetype: str = "a",
    sel_user: str | None = None,
    sel_level: str | None = None,
) -> Plan:
    """Add a rule to the SELinux policy that gives files a type, or change the rule. Nothing happens if the policy has
    it; the state fails if semanage fails.

    name
        the file specification, a regular expression: ``/srv/web(/.*)?``
    sel_type
        the type
    filetype
        a (all files), f, d, c, b, s, l or p
    sel_user, sel_level
        user and range of security levels
    """
    kind = ctx.call("selinux.filetype_id_to_string", filetype)
    parts = {"name": name, "filetype": filetype, "sel_type": sel_type, "sel_user": sel_user, "sel_level": sel_level}
    if ctx.call("selinux.fcontext_get_policy", **parts):
        return Plan.unchanged(
            f'SELinux policy for "{name}" already present with specified filetype "{kind}" and sel_type "{sel_type}".'
        )
    changes = {"old": {}, "new": {name: {"filetype": kind, "sel_type": sel_type}}}

    def work() -> Outcome:
        done = ctx.call("selinux.fcontext_add_policy", **parts)
        if done["retcode"]:
            return Outcome(f"Error adding new rule: {done}", ok=False)
        return Outcome("", changes)

    return Plan.change("", [Step(f"add a rule for {name}", work)])


def fcontext_policy_absent(
    ctx: Context,
    name: str,
    filetype: str = "a",
    sel_type: str | None = None,
    sel_user: str | None = None,
    sel_level: str | None = None,
) -> Plan:
    """Delete the rule for a file specification from the SELinux policy. Nothing happens if there is none; the state
    fails if semanage fails.

    The arguments are those of ``selinux.fcontext_policy_present``.
    """
    parts = {"name": name, "filetype": filetype, "sel_type": sel_type, "sel_user": sel_user, "sel_level": sel_level}
    now = ctx.call("selinux.fcontext_get_policy", **parts)
    if not now:
        return Plan.unchanged(
            f'SELinux policy for "{name}" already absent with specified filetype "{filetype}" and sel_type "{sel_type}".'
        )
    changes = {"old": {name: now}, "new": {}}

    def work() -> Outcome:
        done = ctx.call("selinux.fcontext_delete_policy", **{**parts, "sel_type": sel_type or now["sel_type"]})
        if done["retcode"]:
            return Outcome(f"Error removing policy: {done}", ok=False)
        return Outcome("", changes)

    return Plan.change("", [Step(f"delete the rule for {name}", work)], changes)


def fcontext_policy_applied(ctx: Context, name: str, recursive: bool = False) -> Plan:
    """Set the SELinux context of the file or directory ``name`` to the one that the policy has for it (restorecon).
    Nothing happens if it is set.

    recursive
        True: also everything below the directory
    """
    if not ctx.call("selinux.fcontext_policy_is_applied", name, recursive):
        return Plan.unchanged(f'SElinux policies are already applied for filespec "{name}"')

    def work() -> Outcome:
        done = ctx.call("selinux.fcontext_apply_policy", name, recursive)
        if done["retcode"]:
            return Outcome(str(done.get("error") or done["stderr"] or done["stdout"]), ok=False)
        return Outcome("", done.get("changes") or {})

    return Plan.change("", [Step(f"apply the policy to {name}", work)])


def port_policy_present(
    ctx: Context,
    name: str,
    sel_type: str,
    protocol: str | None = None,
    port: str | int | None = None,
    sel_range: str | None = None,
) -> Plan:
    """Add a rule to the SELinux policy that gives a port a type, or change the rule. Nothing happens if the policy has
    it; the state fails if semanage fails.

    name
        ``tcp/8080``, ``udp/20-21``; any other name needs ``protocol`` and ``port``
    sel_type
        the type
    sel_range
        the range of security levels
    """
    where = {"name": name, "protocol": protocol, "port": port}
    if ctx.call("selinux.port_get_policy", sel_type=sel_type, **where):
        return Plan.unchanged(
            f'SELinux policy for "{name}" already present with specified sel_type "{sel_type}", protocol "{protocol}" '
            f'and port "{port}".'
        )

    def work() -> Outcome:
        old = ctx.call("selinux.port_get_policy", **where)
        function = "selinux.port_modify_policy" if old else "selinux.port_add_policy"
        done = ctx.call(function, sel_type=sel_type, sel_range=sel_range, **where)
        if done["retcode"]:
            return Outcome(f"Error adding new policy: {done}", ok=False)
        return Outcome("", {"old": old, "new": ctx.call("selinux.port_get_policy", sel_type=sel_type, **where)})

    return Plan.change("", [Step(f"add a rule for {name}", work)])


def port_policy_absent(
    ctx: Context,
    name: str,
    sel_type: str | None = None,
    protocol: str | None = None,
    port: str | int | None = None,
) -> Plan:
    """Delete the rule for a port from the SELinux policy. Nothing happens if there is none; the state fails if semanage
    fails.

    sel_type
        only a rule with this type; the other arguments are those of ``selinux.port_policy_present``
    """
    where = {"name": name, "sel_type": sel_type, "protocol": protocol, "port": port}
    old = ctx.call("selinux.port_get_policy", **where)
    if not old:
        return Plan.unchanged(
            f'SELinux policy for "{name}" already absent with specified sel_type "{sel_type}", protocol "{protocol}" '
            f'and port "{port}".'
        )

    def work() -> Outcome:
        done = ctx.call("selinux.port_delete_policy", name=name, protocol=protocol, port=port)
        if done["retcode"]:
            return Outcome(f"Error deleting policy: {done}", ok=False)
        return Outcome("", {"old": old, "new": ctx.call("selinux.port_get_policy", **where)})

    return Plan.change("", [Step(f"delete the rule for {name}", work)])


def mod_aggregate(ctx: Context, low: Low, chunks: Sequence[Low], running: Mapping[str, object]) -> Low:
    """Merge the booleans of similar low chunks that are ready to run into one call of setsebool, which rebuilds the
    policy only once.

    Merged chunks get ``__agg__: True``. Return the chunk with all booleans in ``booleans``.
    """
    if low.get("fun") != "boolean":
        return low
    gathered: dict[str, object] = {}
    for chunk in chunks:
        alike = chunk.get("state") == "selinux" and all(chunk.get(key) == low.get(key) for key in ("fun", "persist"))
        if alike and not chunk.get("__agg__"):
            gathered |= _of_chunk(chunk)
            chunk["__agg__"] = True
    return {**low, "booleans": _of_chunk(low) | gathered} if gathered else low


def _of_chunk(chunk: Low) -> dict[str, object]:
    if chunk.get("booleans"):
        return _combined(chunk.get("value"), chunk["booleans"])
    return {chunk["name"]: chunk.get("value")}


def _combined(
    value: object, booleans: Mapping[str, object] | Sequence[str | Mapping[str, object]]
) -> dict[str, object]:
    """Return the argument ``booleans`` (a map, or a list of names and maps) as one map of boolean to value. A name
    alone gets ``value``.
    """
    rows = [booleans] if isinstance(booleans, Mapping) else booleans
    found: dict[str, object] = {}
    for row in rows:
        found |= dict(row) if isinstance(row, Mapping) else {str(row): value}
    return found


def _toggle(ctx: Context, name: str, module_state: object, version: str) -> Plan:
    modules = ctx.call("selinux.list_semod")
    if name not in modules:
        return Plan.failed(f"Module {name} is not available")
    wanted = _switch(module_state, "enabled", "disabled")
    if wanted is None:
        return Plan.failed(f"{module_state} is not a valid state for the {name} module.")
    if version not in ("any", modules[name]["Version"]):
        return Plan.failed(
            f"Module version is {modules[name]['Version']} and does not match the desired version of {version} or you "
            "are using semodule >= 2.4"
        )
    if wanted == _switch(modules[name]["Enabled"], "enabled", "disabled"):
        return Plan.unchanged(f"Module {name} is in the desired state")

    def work() -> Outcome:
        if ctx.call("selinux.setsemod", name, wanted):
            return Outcome(f"Module {name} has been set to {module_state}")
        return Outcome(f"Failed to set the Module {name} to {module_state}", ok=False)

    would = f"Module {name} is set to be toggled to {module_state}"
    return Plan.change(would, [Step(f"set the policy module {name} to {wanted}", work)])


def _mode(name: object) -> str | None:
    word = str(name).lower()
    for found, (start, *others) in _MODES.items():
        if word.startswith(start) or word in others:
            return found
    return None


def _switch(value: object, on: str, off: str) -> str | None:
    word = str(value).lower()
    return on if word in (*_ON, on) else off if word in (*_OFF, off) else None
