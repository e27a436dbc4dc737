"""Tables, chains and rules of nftables, through the host's ``nft``: Salt's ``nftables`` execution module.

The functions act on the network namespace of the minion. That is the host's own, if the minion shares it. Most
functions return a map with ``result`` and ``comment``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import network_files, nftables_rules

#: Default path of saved rules. If it is a directory, rules are saved there as ``_FILE``. Salt:
#: salt/modules/nftables.py.
_PLACE = "/etc/nftables"
_FILE = "salt-all-in-one.nft"

_COUNTED = re.compile(r"\bpackets \d+ bytes \d+")

Answer = dict[str, object]


#: Internal: the state calls it.
ALIASES = {"_is_saved": "is_saved"}


def available(ctx: Context) -> str | None:
    """Return None if the host has the program ``nft``; else return the reason as text."""
    return None if ctx.host.which("nft") else "the host has no nft"


def version(ctx: Context) -> str:
    """Return the version of the host's program ``nft`` as text.

    CLI Example:

        salt '*' nftables.version
    """
    return network_files.run(ctx.host, ["nft", "--version"]).split()[1]


def build_rule(
    ctx: Context,
    table: str | None = None,
    chain: str | None = None,
    command: str | None = None,
    position: object = "",
    full: object = None,
    family: str = "ipv4",
    **kwargs: object,
) -> Answer:
    """Return a map with ``result``, ``comment`` and ``rule``: the text of an nftables rule, or with ``full`` the whole
    nft command.

    command
        insert, add or delete; used with ``full``

    Parts of the rule: if, of (interfaces), proto, connstate, icmp-type, icmpv6-type, pkttype, counter, source (saddr),
    destination (daddr), dport, sport, dports, sports, jump (target), redirect-to, to-source, to-destination,
    reject-with.

    CLI Example:

        salt '*' nftables.build_rule connstate=related,established jump=accept
    """
    rule = nftables_rules.build(family, kwargs)
    if full:
        for name, value in (("Table", table), ("Chain", chain), ("Command", command)):
            if not value:
                return {"comment": f"{name} needs to be specified", "rule": rule, "result": False}
        verb = str(command).lower()
        at = f"position {position} " if verb == "insert" and position else ""
        rule = f"nft {verb} rule {nftables_rules.of(family)} {table} {chain} {at}{rule}"
    return {"comment": "Successfully built rule" if rule else "", "rule": rule, "result": True}


def get_saved_rules(ctx: Context, conf_file: str | None = None) -> list[str]:
    """Return the lines of the file of saved nftables rules, without comments and empty lines."""
    lines = lines_of(network_files.text(ctx.host, conf_file or _file(ctx, None)), keepends=True)
    return [line for line in lines if line.strip() and not line.strip().startswith("#")]


def list_tables(ctx: Context, family: str = "ipv4") -> list[dict[str, Any]]:
    """Return the nftables tables of a family as a list of maps: name, family, handle.

    CLI Example:

        salt '*' nftables.list_tables
    """
    return [each["table"] for each in _listed(ctx, "tables", nftables_rules.of(family)) if "table" in each]


def get_rules(ctx: Context, family: str = "ipv4") -> list[str]:
    """Return a list with the text of each nftables table of a family. Ports, protocols and users appear as numbers."""
    at = nftables_rules.of(family)
    return [
        network_files.run(
            ctx.host, ["nft", "--numeric", "--numeric", "--numeric", "--", "list", "table", at, each["name"]]
        )
        for each in list_tables(ctx, family)
    ]


def get_rules_json(ctx: Context, family: str = "ipv4") -> list[dict[str, object]]:
    """Return the whole nftables ruleset of a family as ``nft --json`` lists it: a list of maps with one key each."""
    return _listed(ctx, "ruleset", nftables_rules.of(family))


def save(ctx: Context, filename: str | None = None, family: str = "ipv4") -> str:
    """Write the nftables rules of all families to a file. If ``filename`` is a directory, a file in it is written.
    Return the written rules as text.

    CLI Example:

        salt '*' nftables.save /etc/nftables
    """
    text = _all(ctx)
    network_files.write(ctx.host, _file(ctx, filename), text)
    return text


def is_saved(ctx: Context, filename: str | None = None) -> bool:
    """Return whether a file holds the current nftables rules of all families. Counter values are ignored. Salt does not
    have this function.
    """
    return _COUNTED.sub("", network_files.text(ctx.host, _file(ctx, filename))) == _COUNTED.sub("", _all(ctx))


def check_table(ctx: Context, table: str | None = None, family: str = "ipv4") -> Answer:
    """Return a map with ``result`` (whether an nftables table exists) and ``comment``.

    CLI Example:

        salt '*' nftables.check_table nat
    """
    if not table:
        return _needed("Table")
    there = any(each["name"] == table for each in list_tables(ctx, family))
    return _answer(there, f"Table {table} in family {family} {'exists' if there else 'does not exist'}")


def check_chain(ctx: Context, table: str = "filter", chain: str | None = None, family: str = "ipv4") -> Answer:
    """Return a map with ``result`` (whether an nftables chain exists) and ``comment``."""
    if not chain:
        return _needed("Chain")
    there = _chain_data(ctx, table, chain, family) is not None
    return _answer(
        there, f"Chain {chain} in table {table} in family {family} {'exists' if there else 'does not exist'}"
    )


def check(
    ctx: Context, table: str = "filter", chain: str | None = None, rule: str | None = None, family: str = "ipv4"
) -> Answer:
    """Return a map with ``result`` (whether an nftables chain has a rule) and ``comment``. Spelling variants of a rule
    that nft treats as equal match.

    CLI Example:

        salt '*' nftables.check filter input rule='tcp dport 22 log accept'
    """
    if absent := _absent(ctx, table, chain, family, rule=rule):
        return absent
    there = nftables_rules.handle(_listing(ctx, table, chain, family), str(rule)) is not None
    where = f"chain {chain} in table {table} in family {family}"
    return _answer(there, f"Rule {rule} in {where} {'exists' if there else 'does not exist'}")


def get_rule_handle(
    ctx: Context, table: str = "filter", chain: str | None = None, rule: str | None = None, family: str = "ipv4"
) -> Answer:
    """Return a map with ``result`` True and ``handle``, the number by which nft identifies a rule; ``result`` False and
    ``comment`` if the chain does not have the rule.
    """
    if absent := _absent(ctx, table, chain, family, rule=rule):
        return absent
    found = nftables_rules.handle(_listing(ctx, table, chain, family), str(rule))
    return {"result": True, "handle": found} if found else _answer(False, f"Could not find rule {rule}")


def new_table(ctx: Context, table: str, family: str = "ipv4") -> Answer:
    """Create an nftables table. Return a map with ``result`` and ``comment``."""
    known = check_table(ctx, table, family)
    if known["result"] or not table:
        return known
    done = _nft(ctx, ["add", "table", nftables_rules.of(family), table])
    return _outcome(
        done, f"Table {table} in family {family} created", f"Table {table} in family {family} could not be created"
    )


def delete_table(ctx: Context, table: str, family: str = "ipv4") -> Answer:
    """Delete an nftables table and all chains in it. Return a map with ``result`` and ``comment``."""
    known = check_table(ctx, table, family)
    if not known["result"]:
        return known
    done = _nft(ctx, ["delete", "table", nftables_rules.of(family), table])
    return _outcome(
        done, f"Table {table} in family {family} deleted", f"Table {table} in family {family} could not be deleted"
    )


def new_chain(
    ctx: Context,
    table: str = "filter",
    chain: str | None = None,
    table_type: str | None = None,
    hook: str | None = None,
    priority: object = None,
    family: str = "ipv4",
) -> Answer:
    """Create an nftables chain. Return a map with ``result`` and ``comment``. With ``table_type``, ``hook`` and
    ``priority`` it is a base chain, which packets pass through.

    CLI Example:

        salt '*' nftables.new_chain filter input table_type=filter hook=input priority=0
    """
    if not chain:
        return _needed("Chain")
    known = check_table(ctx, table, family)
    if not known["result"]:
        return known
    about = f"Chain {chain} in table {table} in family {family}"
    if _chain_data(ctx, table, chain, family) is not None:
        return _answer(False, f"{about} already exists")
    words = ["add", "chain", nftables_rules.of(family), table, chain]
    given = [value not in (None, "") for value in (table_type, hook, priority)]
    if any(given):
        if not all(given):
            return _answer(False, "Table_type, hook, and priority required.")
        words.append(f"{{ type {table_type} hook {hook} priority {priority}; }}")
    return _outcome(_nft(ctx, words), f"{about} created", f"{about} could not be created")


def delete_chain(ctx: Context, table: str = "filter", chain: str | None = None, family: str = "ipv4") -> Answer:
    """Delete an empty nftables chain. Return a map with ``result`` and ``comment``."""
    if absent := _absent(ctx, table, chain, family):
        return absent
    about = f"Chain {chain} in table {table} in family {family}"
    done = _nft(ctx, ["delete", "chain", nftables_rules.of(family), table, str(chain)])
    return _outcome(done, f"{about} deleted", f"{about} could not be deleted")


def append(
    ctx: Context, table: str = "filter", chain: str | None = None, rule: str | None = None, family: str = "ipv4"
) -> Answer:
    """Append a rule to an nftables chain. Return a map with ``result`` and ``comment``.

    CLI Example:

        salt '*' nftables.append filter input rule='tcp dport 22 log accept'
    """
    return _put(ctx, ["add"], [], table, chain, rule, family)


def insert(
    ctx: Context,
    table: str = "filter",
    chain: str | None = None,
    position: object = None,
    rule: str | None = None,
    family: str = "ipv4",
) -> Answer:
    """Insert a rule into an nftables chain: before the rule whose handle is ``position``, or without it at the
    beginning. Return a map with ``result`` and ``comment``.

    CLI Example:

        salt '*' nftables.insert filter input position=3 rule='tcp dport 22 log accept'
    """
    return _put(ctx, ["insert"], ["position", str(position)] if position else [], table, chain, rule, family)


def delete(
    ctx: Context,
    table: str,
    chain: str | None = None,
    position: object = None,
    rule: str | None = None,
    family: str = "ipv4",
) -> Answer:
    """Delete an nftables rule, given by its text or by its handle (``position``). Return a map with ``result`` and
    ``comment``.
    """
    if position and rule:
        return _answer(False, "Only specify a position or a rule, not both")
    if absent := _absent(ctx, table, chain, family, **({} if position else {"rule": rule})):
        return absent
    where = f"chain {chain} in table {table} in family {family}"
    found = str(position) if position else nftables_rules.handle(_listing(ctx, table, chain, family), str(rule))
    if found is None:
        return _answer(False, f"Rule {rule} in {where} does not exist")
    done = _nft(ctx, ["delete", "rule", nftables_rules.of(family), table, str(chain), "handle", found])
    return _outcome(done, f'Deleted rule "{rule}" in {where}.', f'Failed to delete rule "{rule}" in {where}')


def flush(ctx: Context, table: str = "filter", chain: str = "", family: str = "ipv4") -> Answer:
    """Delete all rules of an nftables chain, or without ``chain`` of a table. Return a map with ``result`` and
    ``comment``.

    CLI Example:

        salt '*' nftables.flush filter input
    """
    known = check_table(ctx, table, family)
    if known["result"] and chain:
        known = check_chain(ctx, table, chain, family)
    if not known["result"]:
        return known
    at = nftables_rules.of(family)
    where = f"from {f'chain {chain} in ' if chain else ''}table {table} in family {family}."
    done = _nft(ctx, ["flush", "chain", at, table, chain] if chain else ["flush", "table", at, table])
    return _outcome(done, f"Flushed rules {where}", f"Failed to flush rules {where}")


def get_policy(ctx: Context, table: str = "filter", chain: str | None = None, family: str = "ipv4") -> str | None:
    """Return the policy of an nftables chain for packets that no rule matches: accept or drop. Return None if the chain
    has no policy or does not exist.
    """
    if not chain:
        raise CallFailed("Chain needs to be specified", "Error: Chain needs to be specified")
    found = _chain_data(ctx, table, chain, family)
    return found.get("policy") if found else None


def set_policy(
    ctx: Context, table: str = "filter", chain: str | None = None, policy: str | None = None, family: str = "ipv4"
) -> bool:
    """Set the policy (accept or drop) of an nftables base chain. Return True; False if the chain does not exist or is
    not a base chain.

    CLI Example:

        salt '*' nftables.set_policy filter input accept
    """
    for name, value in (("Chain", chain), ("Policy", policy)):
        if not value:
            raise CallFailed(f"{name} needs to be specified", f"Error: {name} needs to be specified")
    found = _chain_data(ctx, table, str(chain), family)
    if not found or not {"type", "hook", "prio"} <= set(found):
        return False
    device = f'device "{found["dev"]}" ' if "dev" in found else ""
    parameters = f"type {found['type']} hook {found['hook']} {device}priority {found['prio']}; policy {policy};"
    done = _nft(ctx, ["add", "chain", nftables_rules.of(family), table, str(chain), f"{{ {parameters} }}"])
    return done.retcode == 0


# ------------------------------------------------------------------------------------------ helpers


def _absent(ctx: Context, table: str, chain: str | None, family: str, **needed: object) -> Answer | None:
    """Return the result map of an nftables function for a missing argument, table or chain. Return None if all
    exist.
    """
    if not chain:
        return _needed("Chain")
    for name, value in needed.items():
        if not value:
            return _needed(name.capitalize())
    for known in (check_table(ctx, table, family), check_chain(ctx, table, chain, family)):
        if not known["result"]:
            return known
    return None


def _put(
    ctx: Context, verb: list[str], position: list[str], table: str, chain: str | None, rule: str | None, family: str
) -> Answer:
    if absent := _absent(ctx, table, chain, family, rule=rule):
        return absent
    where = f"chain {chain} in table {table} in family {family}"
    if nftables_rules.handle(_listing(ctx, table, chain, family), str(rule)) is not None:
        return _answer(False, f"Rule {rule} {where} already exists")
    at = [nftables_rules.of(family), table, str(chain)]
    done = _nft(ctx, [*verb, "rule", *at, *position, str(rule)])
    if done.retcode:
        return _answer(False, f'Failed to add rule "{rule}" {where}. {done.stderr.strip()}')
    listing = _listing(ctx, table, chain, family)
    if nftables_rules.handle(listing, str(rule)) is not None:
        return _answer(True, f'Added rule "{rule}" {where}.')
    # A rule that nft lists in another spelling would be added again by every run, so it is removed and refused.
    new = _newest_rule(listing)
    if new is None:
        return _answer(False, f'nft accepted the rule "{rule}" but does not list it in {where}.')
    _nft(ctx, ["delete", "rule", *at, "handle", new[0]])
    return _answer(False, f'The rule "{rule}" was removed again: nft lists it as "{new[1]}". Use this spelling.')


def _all(ctx: Context) -> str:
    texts = [get_rules(ctx, family) for family in sorted(set(nftables_rules.FAMILIES.values()))]
    return "#! nft -f\n" + "".join("\n" + "\n".join(tables) for tables in texts if tables) + "\n"


def _file(ctx: Context, filename: str | None) -> str:
    file = filename or _PLACE
    return f"{file}/{_FILE}" if ctx.host.path(file).is_dir() else file


def _answer(result: bool, comment: str) -> Answer:
    return {"result": result, "comment": comment}


def _needed(name: str) -> Answer:
    return _answer(False, f"{name} needs to be specified")


def _outcome(done: CommandResult, good: str, bad: str) -> Answer:
    return _answer(True, good) if done.retcode == 0 else _answer(False, f"{bad}: {done.stderr.strip()}")


def _nft(ctx: Context, words: Sequence[str], *options: str) -> CommandResult:
    """Run the host's ``nft`` and return its result (exit code and output), also if its exit code is not 0."""
    # After `--`, nft takes no word for an option.
    return ctx.host.run(["nft", *options, "--", *words])


def _listed(ctx: Context, *words: str) -> list[dict[str, Any]]:
    """Return the entries of ``nft --json list`` with the words ``words``: a list of maps with one key each. Raise
    CommandError if nft fails.
    """
    done = _nft(ctx, ["list", *words], "--json")
    if done.retcode:
        raise CommandError(f"nft list {' '.join(words)}: {done.stderr.strip()}")
    try:
        return list(json.loads(done.stdout or "{}").get("nftables", []))
    except ValueError as error:
        raise CommandError(f"nft list {' '.join(words)}: its output is not JSON: {error}") from error


def _chain_data(ctx: Context, table: str, name: str, family: str) -> dict[str, Any] | None:
    """Return the data of an nftables chain as nft lists it (name, handle, policy, ...), None if the chain does not
    exist.
    """
    for each in _listed(ctx, "chains", nftables_rules.of(family)):
        found = each.get("chain", {})
        if (found.get("table"), found.get("name")) == (table, name):
            return dict(found)
    return None


def _listing(ctx: Context, table: str, chain: str | None, family: str) -> str:
    """Return the text of an nftables chain's rules with their handles. Raise CommandError if nft fails."""
    done = _nft(ctx, ["list", "chain", nftables_rules.of(family), table, str(chain)], "--handle")
    if done.retcode:
        raise CommandError(f"nft list chain {table} {chain}: {done.stderr.strip()}")
    return done.stdout


def _newest_rule(listing: str) -> tuple[str, str] | None:
    """Return (handle, text) of the nftables rule with the highest handle in a listing, which was added last. Return
    None if there is no rule.
    """
    found = [(int(number), text) for text, number in nftables_rules.with_handles(listing)]
    return (str(max(found)[0]), max(found)[1]) if found else None
