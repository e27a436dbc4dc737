"""Salt's ``iptables`` states: chains and rules of the packet filter, for IPv4 and IPv6."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Low, Outcome, Plan, Step

#: Functions whose chunks ``mod_aggregate`` merges.
_GATHERED = ("append", "insert")

#: Keys of a low chunk that decide whether or how it is run. Chunks with them are not merged.
_CONDITIONS = ("onlyif", "unless", "creates", "check_cmd", "retry", "parallel", "runas", "umask", "fire_event")

_REQUISITES = ("require", "watch", "onchanges", "onfail", "prereq", "listen", "use")

#: Other keys of a low chunk that are not arguments of the state.
_ENGINE = (
    "state fun order name_order names aggregate prerequired onfail_stop cmd_opts_exclude failhard no_log saltenv"
    " runas_password reload_modules reload_grains reload_pillar force_reload_modules"
)


def chain_present(ctx: Context, name: str, table: str = "filter", family: str = "ipv4") -> Plan:
    """Create an iptables chain in a table. Nothing happens if the chain exists."""
    if ctx.call("iptables.check_chain", table, name, family):
        return Plan.unchanged(f"iptables {name} chain is already exist in {table} table for {family}")

    def work() -> Outcome:
        done = ctx.call("iptables.new_chain", table, name, family)
        if done is not True:
            return Outcome(f"Failed to create {name} chain in {table} table: {done} for {family}", ok=False)
        return Outcome(f"iptables {name} chain in {table} table create success for {family}", {"locale": name})

    would = f"iptables {name} chain in {table} table needs to be set for {family}"
    return Plan.change(would, [Step(f"make the chain {name}", work)])


def chain_absent(ctx: Context, name: str, table: str = "filter", family: str = "ipv4") -> Plan:
    """Remove an iptables chain and its rules from a table. Nothing happens if the chain does not exist."""
    if not ctx.call("iptables.check_chain", table, name, family):
        return Plan.unchanged(f"iptables {name} chain is already absent in {table} table for {family}")

    def work() -> Outcome:
        if error := ctx.call("iptables.flush", table, name, family):
            return Outcome(f"Failed to flush {name} chain in {table} table: {error} for {family}", ok=False)
        done = ctx.call("iptables.delete_chain", table, name, family)
        if done is not True:
            return Outcome(f"Failed to delete {name} chain in {table} table: {done} for {family}", ok=False)
        return Outcome(f"iptables {name} chain in {table} table delete success for {family}", {"locale": name})

    would = f"iptables {name} chain in {table} table needs to be removed {family}"
    return Plan.change(would, [Step(f"remove the chain {name}", work)])


def append(ctx: Context, name: str, table: str = "filter", family: str = "ipv4", **kwargs: object) -> Plan:
    """Append a rule to a chain, unless the chain already contains it.

    chain
        name of the chain
    save
        True: save all rules for the next boot; or a path: save them to this file
    rules
        list of maps with these arguments: several rules in place of one

    All other arguments are options of iptables, as in ``iptables.build_rule``.
    """
    if "rules" in kwargs:
        return _all(ctx, append, kwargs["rules"])
    return _put(ctx, name, table, family, kwargs, "A")


def insert(ctx: Context, name: str, table: str = "filter", family: str = "ipv4", **kwargs: object) -> Plan:
    """Insert a rule at ``position`` of a chain (-1: before the last rule), unless the chain already contains it.

    All other arguments are as in ``iptables.append``.
    """
    if "rules" in kwargs:
        return _all(ctx, insert, kwargs["rules"])
    if not kwargs.get("position"):
        return Plan.failed("Position needs to be specified or use append (-A)")
    return _put(ctx, name, table, family, kwargs, "I")


def delete(ctx: Context, name: str, table: str = "filter", family: str = "ipv4", **kwargs: object) -> Plan:
    """Delete a rule from a chain, or the rule at ``position``. All other arguments are as in ``iptables.append``."""
    if "rules" in kwargs:
        return _all(ctx, delete, kwargs["rules"])
    try:
        chain, rule, command = _rule(ctx, table, family, kwargs, "D")
        by_place = "position" in kwargs
        if not by_place and not ctx.call("iptables.check", table, chain, rule, family):
            return Plan.unchanged(f"iptables rule for {name} already absent for {family} ({command})")
    except InvocationError as error:
        return Plan.failed(str(error))
    how = {"position": kwargs["position"]} if by_place else {"rule": rule}

    def work() -> Outcome:
        if error := ctx.call("iptables.delete", table, chain, family=family, **how):
            text = f"Failed to delete iptables rule for {name}.\nAttempted rule was {command}"
            return Outcome(f"{text}: {error}", ok=False)
        if not kwargs.get("save"):
            return Outcome(f"Delete iptables rule for {name} {command}", {"locale": name})
        return _saved(ctx, family, kwargs, f"Deleted and saved iptables rule {name} for {family}\n{command}", name)

    would = f"iptables rule for {name} needs to be deleted for {family} ({command})"
    return Plan.change(would, [Step(f"delete a rule of {chain}", work)])


def set_policy(
    ctx: Context, name: str, chain: str, policy: str, table: str = "filter", family: str = "ipv4", save: object = None
) -> Plan:
    """Set the default policy of a chain:

    ``ACCEPT`` or ``DROP`` for packets that match no rule. ``save`` as in ``iptables.append``.
    """
    about = f"iptables default policy for chain {chain} on table {table} for {family}"
    if ctx.call("iptables.get_policy", table, chain, family) == policy:
        return Plan.unchanged(f"{about} already set to {policy}")

    def work() -> Outcome:
        if error := ctx.call("iptables.set_policy", table, chain, policy, family):
            return Outcome(f"Failed to set iptables default policy: {error}", ok=False)
        if save:
            ctx.call("iptables.save", filename=None if save is True else save, family=family)
        verb = "Set and saved" if save else "Set"
        return Outcome(f"{verb} default policy for {chain} to {policy} family {family}", {"locale": name})

    would = f"{about} needs to be set to {policy}"
    return Plan.change(would, [Step(f"set the policy of {chain}", work)])


def flush(ctx: Context, name: str, table: str = "filter", family: str = "ipv4", chain: str = "") -> Plan:
    """Remove all rules of a chain, or without ``chain`` of all chains of the table.

    The state fails if the chain does not exist.
    """
    chains = ctx.call("iptables.get_rules", family).get(table, {})
    if chain and chain not in chains:
        return Plan.failed(f"Failed to flush iptables rules: table {table} has no chain {chain}")
    if not any(found["rules"] for each, found in chains.items() if not chain or each == chain):
        return Plan.unchanged(f"iptables rules in {table} table {chain} chain {family} family are flushed")

    def work() -> Outcome:
        if error := ctx.call("iptables.flush", table, chain, family):
            return Outcome(f"Failed to flush iptables rules: {error}", ok=False)
        return Outcome(f"Flush iptables rules in {table} table {chain} chain {family} family", {"locale": name})

    would = f"iptables rules in {name} table {table} chain {family} family needs to be flushed"
    return Plan.change(would, [Step(f"flush {chain or table}", work)])


def mod_aggregate(ctx: Context, low: Low, chunks: Sequence[Low], running: Mapping[str, object]) -> Low:
    """Merge the rules of similar low chunks that are ready to run into one chunk with ``rules``, so that the rules are
    saved once.

    Chunks with conditions of their own, such as ``onlyif``, are not merged.
    """
    if low.get("fun") not in _GATHERED or "rules" in low:
        return low
    alike = [
        chunk
        for chunk in chunks
        if (chunk.get("state"), chunk.get("fun")) == (low["state"], low["fun"])
        and not chunk.get("__agg__")
        and not {"rules", *_CONDITIONS} & set(chunk)
    ]
    for chunk in alike:
        chunk["__agg__"] = True
    return {**low, "rules": [_plain(each) for each in (low, *alike)]} if alike else low


# ----------------------------------------------------------------------------------------------------------------------------


def _plain(low: Low) -> dict[str, object]:
    """Map of the arguments of an ``iptables`` state in a low chunk, without requisites and other keys of the engine."""
    requisite = re.compile(rf"({'|'.join(_REQUISITES)})(_in|_any|_all)?")
    engine = {*_ENGINE.split(), *_CONDITIONS}
    return {
        key: value
        for key, value in low.items()
        if not key.startswith("__") and key not in engine and not requisite.fullmatch(key)
    }


def _all(ctx: Context, function: Callable[..., Plan], rules: object) -> Plan:
    """Return one plan for several iptables ``rules``; the rules are saved once, at the end.

    ``function`` makes the plan of one rule. The plan fails if one of the rules' plans fails.
    """
    if not isinstance(rules, list) or not all(isinstance(rule, Mapping) and "name" in rule for rule in rules):
        return Plan.failed("rules must be a list of maps, each with a name")
    plans, saves = [], []
    for rule in rules:
        given = {
            key: value for key, value in rule.items() if key not in ("rules", "save") and not str(key).startswith("__")
        }
        plans.append(function(ctx, **given))
        if rule.get("save"):
            saves.append((given.get("family", "ipv4"), None if rule["save"] is True else rule["save"]))
    comment = "\n".join(plan.comment for plan in plans)
    if any(not plan.result for plan in plans):
        return Plan.failed(comment)
    saves = list(dict.fromkeys(saves))
    unsaved = [each for each in saves if not ctx.call("iptables._is_saved", each[1], each[0])]
    if not any(plan.steps for plan in plans) and not unsaved:
        return Plan.unchanged(comment)

    def work() -> Outcome:
        comments: list[str] = []
        named: list[str] = []
        for plan in plans:
            if not plan.steps:
                comments.append(plan.comment)
            for step in plan.steps:
                done = step.run()
                comments.append(done.comment)
                if not done.ok:
                    return Outcome("\n".join(comments), {"locale": named} if named else {}, ok=False)
                named.append(done.changes["locale"])
        for family, file in saves:
            ctx.call("iptables.save", filename=file, family=family)
        return Outcome(
            "\n".join(comments), {"locale": named} if named else {"saved": [file or True for _, file in unsaved]}
        )

    return Plan.change(comment, [Step("set rules of iptables", work)])


def _put(ctx: Context, name: str, table: str, family: str, kwargs: Mapping[str, object], letter: str) -> Plan:
    try:
        chain, rule, command = _rule(ctx, table, family, kwargs, letter)
        there = ctx.call("iptables.check", table, chain, rule, family)
        file = None if kwargs.get("save") is True else kwargs.get("save")
        unsaved = there and kwargs.get("save") and not ctx.call("iptables._is_saved", file, family)
    except InvocationError as error:
        return Plan.failed(str(error))
    # Salt's comments differ for append and insert.
    about = f"({command}) for {family}" if letter == "A" else f"for {family} ({command})"
    if there and not unsaved:
        return Plan.unchanged(f"iptables rule for {name} already set {about}")

    def work() -> Outcome:
        if there:
            return _saved(ctx, family, kwargs, f"Saved iptables rule {name} for {family}\n{command}", None)
        if letter == "A":
            failed = not ctx.call("iptables.append", table, chain, rule, family)
            behind = f" for {family}"
        else:
            failed, behind = bool(ctx.call("iptables.insert", table, chain, kwargs["position"], rule, family)), ""
        if failed:
            text = f"Failed to set iptables rule for {name}.\nAttempted rule was {command}{behind}"
            return Outcome(text, ok=False)
        if not kwargs.get("save"):
            return Outcome(f"Set iptables rule for {name} to: {command} for {family}", {"locale": name})
        return _saved(ctx, family, kwargs, f"Set and saved iptables rule {name} for {family}\n{command}", name)

    notes = [f"iptables rule for {name} already set {about}"] if there else []
    would = f"iptables rule for {name} needs to be {'saved' if there else 'set'} {about}"
    return Plan.change(would, [Step(f"put a rule into {chain}", work)], {}, notes)


def _rule(ctx: Context, table: str, family: str, kwargs: Mapping[str, object], letter: str) -> tuple[str, str, str]:
    """Return (chain, rule, whole iptables command) for the arguments of an ``iptables`` state. Raises InvocationError
    if the chain is missing or an argument is not an option of a rule.
    """
    chain = kwargs.get("chain")
    if not isinstance(chain, str) or not chain:
        raise InvocationError("Chain needs to be specified")
    if reserved := [key for key in ("command", "full") if key in kwargs]:
        raise InvocationError(f"'{reserved[0]}' is not an option of a rule")
    rule = ctx.call("iptables.build_rule", family=family, **kwargs)
    command = ctx.call("iptables.build_rule", table=table, full=True, family=family, command=letter, **kwargs)
    return chain, rule, command.strip()


def _saved(ctx: Context, family: str, kwargs: Mapping[str, object], text: str, name: str | None) -> Outcome:
    file = None if kwargs["save"] is True else kwargs["save"]
    changes = {"locale": name} if name is not None else {"saved": file or True}
    try:
        done = ctx.call("iptables.save", filename=file, family=family)
    except CommandError as error:
        return Outcome(f"{text}\nFailed to save iptables rules: {error}", {"locale": name} if name else {}, ok=False)
    return Outcome(f"{text}\n{done}", changes)
