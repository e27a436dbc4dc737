"""Salt's ``nftables`` states: tables, chains and rules of nftables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.hostfiles import nftables_rules


def table_present(ctx: Context, name: str, family: str = "ipv4") -> Plan:
    """Create a table of nftables in a family (ipv4, ipv6, inet, arp, bridge or netdev), unless it exists."""
    if ctx.call("nftables.check_table", name, family=family)["result"]:
        return Plan.unchanged(f"nftables table {name} already exists in family {family}")
    return _plan(
        f"nftables table {name} would be created in family {family}",
        name,
        lambda: ctx.call("nftables.new_table", name, family=family),
        f"nftables table {name} successfully created in family {family}",
        f"Failed to create table {name} for family {family}",
    )


def table_absent(ctx: Context, name: str, family: str = "ipv4") -> Plan:
    """Remove a table of nftables with its chains and rules. Nothing happens if it does not exist."""
    if not ctx.call("nftables.check_table", name, family)["result"]:
        return Plan.unchanged(f"nftables table {name} is already absent from family {family}")
    return _plan(
        f"nftables table {name} would be deleted from family {family}",
        name,
        lambda: ctx.call("nftables.delete_table", name, family=family),
        f"nftables table {name} successfully deleted from family {family}",
        f"Failed to delete table {name} from family {family}",
    )


def chain_present(
    ctx: Context,
    name: str,
    table: str = "filter",
    table_type: str | None = None,
    hook: str | None = None,
    priority: object = None,
    family: str = "ipv4",
) -> Plan:
    """Create a chain in a table of nftables, unless it exists.

    With ``table_type``, ``hook`` and ``priority`` it is a base chain, which receives packets.
    """
    if ctx.call("nftables.check_chain", table, name, family=family)["result"]:
        return Plan.unchanged(f"nftables {name} chain is already exist in {table} table for {family}")
    given = [value not in (None, "") for value in (table_type, hook, priority)]
    if any(given) and not all(given):
        text = "Table_type, hook, and priority required."
        return Plan.failed(f"Failed to create {name} chain in {table} table: {text} for {family}")
    how = {"table_type": table_type, "hook": hook, "priority": priority, "family": family}

    def work() -> Outcome:
        done = ctx.call("nftables.new_chain", table, name, **how)
        if not done["result"]:
            return Outcome(f"Failed to create {name} chain in {table} table: {done['comment']} for {family}", ok=False)
        return Outcome(f"nftables {name} chain in {table} table create success for {family}", {"locale": name})

    would = f"nftables chain {name} would be created in table {table} for family {family}"
    return Plan.change(would, [Step(f"make the chain {name}", work)])


def chain_absent(ctx: Context, name: str, table: str = "filter", family: str = "ipv4") -> Plan:
    """Remove a chain of nftables and its rules from a table. Nothing happens if the chain does not exist."""
    if not ctx.call("nftables.check_chain", table, name, family)["result"]:
        return Plan.unchanged(f"nftables {name} chain is already absent in {table} table for {family}")

    def work() -> Outcome:
        for function, verb in (("flush", "flush"), ("delete_chain", "delete")):
            done = ctx.call(f"nftables.{function}", table, name, family)
            if not done["result"]:
                return Outcome(
                    f"Failed to {verb} {name} chain in {table} table: {done['comment']} for {family}", ok=False
                )
        return Outcome(f"nftables {name} chain in {table} table delete success for {family}", {"locale": name})

    would = f"nftables chain {name} would be deleted from table {table} for family {family}"
    return Plan.change(would, [Step(f"remove the chain {name}", work)])


#: Function -> arguments that its ``**kwargs`` takes.
OPTIONS: Mapping[str, frozenset[str]] = dict.fromkeys(
    ("append", "insert", "delete"), frozenset({*nftables_rules.OPTIONS.split(), *nftables_rules.NO_OPTIONS})
)


def append(ctx: Context, name: str, family: str = "ipv4", **kwargs: object) -> Plan:
    """Append a rule to a chain, unless the chain already contains it.

    table, chain
        table (default ``filter``) and chain
    save
        True: save all rules to /etc/nftables; or a path: save them to this file

    All other arguments are options of ``nftables.build_rule``.
    """
    return _put(ctx, name, family, kwargs, insert=False)


def insert(ctx: Context, name: str, family: str = "ipv4", **kwargs: object) -> Plan:
    """Insert a rule at the beginning of a chain, or before the rule with the handle ``position``.

    All other arguments are as in ``nftables.append``.
    """
    return _put(ctx, name, family, kwargs, insert=True)


def delete(ctx: Context, name: str, family: str = "ipv4", **kwargs: object) -> Plan:
    """Delete an nftables rule from a chain.

    ``position``: handle of the rule, in place of its options. Else as in ``nftables.append``.
    """
    try:
        table, chain, rule = _rule(ctx, family, kwargs)
        by_handle = kwargs.get("position")
        rule = f"handle {by_handle}" if by_handle else rule
        there = (
            _has_handle(ctx, table, chain, family, by_handle)
            if by_handle
            else ctx.call("nftables.check", table, chain, rule, family)["result"]
        )
        if not there:
            return Plan.unchanged(f"nftables rule for {name} already absent for {family} ({rule})")
    except InvocationError as error:
        return Plan.failed(str(error))
    which = {"position": by_handle} if by_handle else {"rule": rule}

    def work() -> Outcome:
        done = ctx.call("nftables.delete", table, chain, family=family, **which)
        if not done["result"]:
            text = f"Failed to delete nftables rule for {name}.\nAttempted rule was {rule}"
            return Outcome(f"{text}\n{done['comment']}", ok=False)
        if not kwargs.get("save"):
            return Outcome(f"Delete nftables rule for {name} {rule}", {"locale": name})
        return _saved(ctx, kwargs["save"], f"Deleted and Saved nftables rule for {name} for {rule}{family}", name)

    would = f"nftables rule for {name} needs to be deleted for {family} ({rule})"
    return Plan.change(would, [Step(f"delete a rule of {chain}", work)])


def flush(
    ctx: Context,
    name: str,
    family: str = "ipv4",
    ignore_absence: bool = False,
    table: str = "filter",
    chain: str = "",
) -> Plan:
    """Remove all rules of a chain, or of a whole table. ``ignore_absence``: a missing table or chain is no failure."""
    absent = f"Failed to flush table {table} in family {family}, table does not exist."
    there = ctx.call("nftables.check_table", table, family=family)["result"]
    if there and chain:
        absent = f"Failed to flush chain {chain} in table {table} in family {family}, chain does not exist."
        there = ctx.call("nftables.check_chain", table, chain, family=family)["result"]
    if not there and not ignore_absence:
        return Plan.failed(absent)
    about = f"nftables rules in {table} table {chain} chain {family} family"
    if not there or not _has_rules(ctx, table, chain, family):
        return Plan.unchanged(f"{about} are flushed")
    return _plan(
        f"{about} would be flushed",
        name,
        lambda: ctx.call("nftables.flush", table, chain, family),
        f"Flush {about}",
        "Failed to flush nftables rules",
    )


def set_policy(
    ctx: Context,
    name: str,
    chain: str,
    policy: str,
    table: str = "filter",
    family: str = "ipv4",
    save: object = None,
    save_filename: str | None = None,
) -> Plan:
    """Set the default policy of a chain (accept or drop) for packets that match no rule.

    ``save`` is as in ``nftables.append``; ``save_filename`` is another way to name its file.
    """
    about = f"nftables default policy for chain {chain} on table {table} for {family}"
    current = ctx.call("nftables.get_policy", table, chain, family)
    if (current or "").lower() == str(policy).lower():
        return Plan.unchanged(f"{about} already set to {policy}")

    def work() -> Outcome:
        if not ctx.call("nftables.set_policy", table, chain, str(policy).lower(), family):
            return Outcome(f"Failed to set nftables default policy: no base chain {chain} takes {policy}", ok=False)
        if not save:
            return Outcome(f"Set default policy for {chain} to {policy} family {family}", {"locale": name})
        text = f"Set and saved default policy for {chain} to {policy} family {family}"
        return _saved(ctx, save_filename or save, text, name)

    return Plan.change(f"{about} needs to be set to {policy}", [Step(f"set the policy of {chain}", work)])


# ----------------------------------------------------------------------------------------------------------------------------


def _plan(would: str, name: str, act: Callable[[], dict[str, object]], good: str, bad: str) -> Plan:
    def work() -> Outcome:
        done = act()
        return Outcome(good, {"locale": name}) if done["result"] else Outcome(f"{bad}: {done['comment']}", ok=False)

    return Plan.change(would, [Step(f"change nftables for {name}", work)])


def _put(ctx: Context, name: str, family: str, kwargs: Mapping[str, object], *, insert: bool) -> Plan:
    try:
        table, chain, rule = _rule(ctx, family, kwargs)
        there = ctx.call("nftables.check", table, chain, rule, family)["result"]
        file = None if kwargs.get("save") is True else kwargs.get("save")
        unsaved = bool(there and kwargs.get("save") and not ctx.call("nftables._is_saved", file))
    except InvocationError as error:
        return Plan.failed(str(error))
    # Salt's comments differ for insert and append.
    about = f"for {family} ({rule})" if insert else f"({rule}) for {family}"
    if there and not unsaved:
        return Plan.unchanged(f"nftables rule for {name} already set {about}")

    def work() -> Outcome:
        if there:
            return _saved(ctx, kwargs["save"], f"Saved nftables rule for {name} to: {rule} for {family}", None)
        if insert:
            done = ctx.call("nftables.insert", table, chain, kwargs.get("position"), rule, family)
        else:
            done = ctx.call("nftables.append", table, chain, rule, family)
        if not done["result"]:
            text = (
                f"Failed to set nftables rule for {name}.\nAttempted rule was {rule} for {family}.\n{done['comment']}"
            )
            return Outcome(text, ok=False)
        if not kwargs.get("save"):
            return Outcome(f"Set nftables rule for {name} to: {rule} for {family}", {"locale": name})
        return _saved(ctx, kwargs["save"], f"Set and Saved nftables rule for {name} to: {rule} for {family}", name)

    notes = [f"nftables rule for {name} already set {about}"] if there else []
    would = f"nftables rule for {name} needs to be {'saved' if there else 'set'} {about}"
    return Plan.change(would, [Step(f"put a rule into {chain}", work)], {}, notes)


def _rule(ctx: Context, family: str, kwargs: Mapping[str, object]) -> tuple[str, str, str]:
    """Return (table, chain, rule) for the arguments of an ``nftables`` state; the rule is one text. Raise
    InvocationError if ``chain`` is missing, or if an argument cannot be part of a rule.
    """
    chain = kwargs.get("chain")
    if not isinstance(chain, str) or not chain:
        raise InvocationError("Chain needs to be specified")
    if reserved := [key for key in ("command", "full") if key in kwargs]:
        raise InvocationError(f"'{reserved[0]}' is not an option of a rule")
    options = {key: value for key, value in kwargs.items() if key not in ("table", "chain")}
    return str(kwargs.get("table", "filter")), chain, ctx.call("nftables.build_rule", family=family, **options)["rule"]


def _has_rules(ctx: Context, table: str, chain: str, family: str) -> bool:
    rules = (each["rule"] for each in ctx.call("nftables.get_rules_json", family) if "rule" in each)
    return any(each["table"] == table and (not chain or each["chain"] == chain) for each in rules)


def _has_handle(ctx: Context, table: str, chain: str, family: str, handle: object) -> bool:
    rules = (each["rule"] for each in ctx.call("nftables.get_rules_json", family) if "rule" in each)
    return any((each["table"], each["chain"], str(each["handle"])) == (table, chain, str(handle)) for each in rules)


def _saved(ctx: Context, save: object, text: str, name: str | None) -> Outcome:
    file = None if save is True else save
    try:
        ctx.call("nftables.save", filename=file)
    except CommandError as error:
        changes = {"locale": name} if name is not None else {}
        return Outcome(f"{text}\nFailed to save nftables rules: {error}", changes, ok=False)
    return Outcome(text, {"locale": name} if name is not None else {"saved": file or True})
