"""Rules of the kernel's packet filter, through the host's iptables and ip6tables: Salt's ``iptables`` execution
module.

The functions act on the network namespace of the minion. That is the host's own, if the minion shares it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError, InvocationError
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import iptables_rules, network_files

_PROGRAMS = {"ipv4": "iptables", "ipv6": "ip6tables"}

#: Exit codes that do not depend on the rule: resource problem, no permission to run the program, program not found.
_CANNOT = (4, 126, 127)

#: (grain, value, IPv4 file, IPv6 file) of the rules that are loaded at boot. Salt: salt/modules/iptables.py.
_PLACES = (
    ("os_family", "RedHat", "/etc/sysconfig/iptables", "/etc/sysconfig/ip6tables"),
    ("os_family", "Arch", "/etc/iptables/iptables.rules", "/etc/iptables/ip6tables.rules"),
    ("os_family", "Debian", "/etc/iptables/rules.v4", "/etc/iptables/rules.v6"),
    ("os", "Gentoo", "/var/lib/iptables/rules-save", "/var/lib/ip6tables/rules-save"),
    ("os_family", "Suse", "/etc/sysconfig/scripts/SuSEfirewall2-custom", "/etc/sysconfig/scripts/SuSEfirewall2-custom"),
    ("os_family", "Void", "/etc/iptables/iptables.rules", "/etc/iptables/ip6tables.rules"),
    ("os", "Alpine", "/etc/iptables/rules-save", "/etc/iptables/rules6-save"),
)


#: Internal: the state calls it.
ALIASES = {"_is_saved": "is_saved"}


def available(ctx: Context) -> str | None:
    """Return None if the host has the program ``iptables``; else return the reason as text."""
    return None if ctx.host.which("iptables") else "the host has no iptables"


def version(ctx: Context, family: str = "ipv4") -> str:
    """Return the version of the host's iptables, or with ``family="ipv6"`` of its ip6tables, as text.

    CLI Example:

        salt '*' iptables.version
    """
    _program(ctx, family)
    return network_files.run(ctx.host, [_PROGRAMS[family], "--version"]).split()[1]


def build_rule(
    ctx: Context,
    table: str = "filter",
    chain: str | None = None,
    command: str | None = None,
    position: object = "",
    full: object = None,
    family: str = "ipv4",
    **kwargs: object,
) -> str:
    """Return the text of a packet filter rule as arguments of iptables, or with ``full`` the whole command.

    The keyword arguments are long options of iptables. Special names: ``if`` and ``of`` are interfaces, ``connstate``
    is ``--state``, ``target`` is ``jump``, ``dports`` and ``sports`` add their match, ``match`` and ``match-set`` may
    be lists. A value that begins with ``!`` or ``not`` is inverted. An option without a value has an empty value.

    CLI Example:

        salt '*' iptables.build_rule match=state connstate=RELATED,ESTABLISHED jump=ACCEPT
    """
    rule = iptables_rules.build(kwargs)
    if not full:
        return rule
    for name, value in (("Table", table), ("Chain", chain), ("Command", command)):
        if not value:
            words = f"{name} needs to be specified"
            raise CallFailed(words, f"Error: {words}")
    flag = "-" if str(command) in "ACDIRLSFZNXPE" else "--"
    return f"{_program(ctx, family)} {_wait(ctx, family)} -t {table} {flag}{command} {chain} {position} {rule}"


def get_saved_rules(
    ctx: Context, conf_file: str | None = None, family: str = "ipv4"
) -> dict[str, dict[str, iptables_rules.Chain]]:
    """Return the packet filter rules in the file that is loaded at boot: a map of table to chain to policy, counters
    and rules.
    """
    return iptables_rules.parse(network_files.text(ctx.host, conf_file or _saved_path(ctx, family)))


def get_rules(ctx: Context, family: str = "ipv4") -> dict[str, dict[str, iptables_rules.Chain]]:
    """Return the kernel's packet filter rules: a map of table to chain to policy, counters and rules.

    CLI Example:

        salt '*' iptables.get_rules
    """
    return iptables_rules.parse(_saved(ctx, family))


def get_saved_policy(
    ctx: Context, table: str = "filter", chain: str | None = None, conf_file: str | None = None, family: str = "ipv4"
) -> str | None:
    """Return the policy (ACCEPT, DROP) of a packet filter chain in the file that is loaded at boot. Return None if the
    chain does not exist.
    """
    return _policy(get_saved_rules(ctx, conf_file, family), table, chain)


def get_policy(ctx: Context, table: str = "filter", chain: str | None = None, family: str = "ipv4") -> str | None:
    """Return the kernel's policy (ACCEPT, DROP) of a packet filter chain. Return None if the chain does not exist.

    CLI Example:

        salt '*' iptables.get_policy filter INPUT
    """
    return _policy(get_rules(ctx, family), table, chain)


def set_policy(
    ctx: Context, table: str = "filter", chain: str | None = None, policy: str | None = None, family: str = "ipv4"
) -> str:
    """Set the policy (ACCEPT, DROP) of a packet filter chain in the kernel. Return the error of iptables, "" on
    success.
    """
    _need(chain=chain, policy=policy)
    return _told(ctx, _do(ctx, family, table, ["-P", str(chain), str(policy)]))


def save(ctx: Context, filename: str | None = None, family: str = "ipv4") -> str:
    """Write the kernel's packet filter rules to the file that is loaded at boot, or to ``filename``. Return the
    sentence ``Wrote 1 lines to "PATH"``.

    Rules that match a regular expression of the option ``iptables.save_filters`` are left out.

    CLI Example:

        salt '*' iptables.save /etc/sysconfig/iptables
    """
    file = filename or _saved_path(ctx, family)
    kept = _kept(ctx, family)
    managed_file.make_directories(ctx.host, ctx.host.path(file).parent, Attributes(), ctx.host.root)
    network_files.write(ctx.host, file, kept)
    return f'Wrote 1 lines to "{file}"'


def is_saved(ctx: Context, filename: str | None = None, family: str = "ipv4") -> bool:
    """Return whether the file that is loaded at boot (or ``filename``) has the kernel's packet filter rules. Salt does
    not have this function.
    """
    return iptables_rules.same(network_files.text(ctx.host, filename or _saved_path(ctx, family)), _kept(ctx, family))


def check(
    ctx: Context, table: str = "filter", chain: str | None = None, rule: str | None = None, family: str = "ipv4"
) -> bool:
    """Return whether a packet filter chain has a rule, written as arguments of iptables.

    CLI Example:

        salt '*' iptables.check filter INPUT rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'
    """
    _need(chain=chain, rule=rule)
    return _do(ctx, family, table, ["-C", str(chain), *_words(rule)]).retcode == 0


def check_chain(ctx: Context, table: str = "filter", chain: str | None = None, family: str = "ipv4") -> bool:
    """Return whether a packet filter table has a chain."""
    _need(chain=chain)
    return str(chain) in iptables_rules.parse(_saved(ctx, family, table)).get(table, {})


def new_chain(ctx: Context, table: str = "filter", chain: str | None = None, family: str = "ipv4") -> object:
    """Create a packet filter chain. Return True, or the error of iptables as text."""
    _need(chain=chain)
    return _told(ctx, _do(ctx, family, table, ["-N", str(chain)])) or True


def delete_chain(ctx: Context, table: str = "filter", chain: str | None = None, family: str = "ipv4") -> object:
    """Delete an empty packet filter chain. Return True, or the error of iptables as text."""
    _need(chain=chain)
    return _told(ctx, _do(ctx, family, table, ["-X", str(chain)])) or True


def append(
    ctx: Context, table: str = "filter", chain: str | None = None, rule: str | None = None, family: str = "ipv4"
) -> bool:
    """Append a rule to a packet filter chain. Return True; False if the chain has the rule already, or iptables refuses
    it.

    CLI Example:

        salt '*' iptables.append filter INPUT rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'
    """
    if check(ctx, table, chain, rule, family):
        return False
    return not _told(ctx, _do(ctx, family, table, ["-A", str(chain), *_words(rule)]))


def insert(
    ctx: Context,
    table: str = "filter",
    chain: str | None = None,
    position: object = None,
    rule: str | None = None,
    family: str = "ipv4",
) -> object:
    """Insert a rule at a position of a packet filter chain. Return "" on success, the error of iptables, or False if
    the chain has the rule already.

    position
        number from 1; a negative number counts from the end: -1 is before the last rule

    CLI Example:

        salt '*' iptables.insert filter INPUT position=3 rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'
    """
    _need(chain=chain, position=position, rule=rule)
    at = _number("position", position)
    if check(ctx, table, chain, rule, family):
        return False
    if at < 0:
        found = get_rules(ctx, family).get(table, {}).get(str(chain))
        if found is None:
            raise CommandError(f"table {table} has no chain {chain}")
        at = max(len(found["rules"]) + at + 1, 1)
    return _told(ctx, _do(ctx, family, table, ["-I", str(chain), str(at), *_words(rule)]))


def delete(
    ctx: Context,
    table: str,
    chain: str | None = None,
    position: object = None,
    rule: str | None = None,
    family: str = "ipv4",
) -> str:
    """Delete a packet filter rule, given by its position in the chain or by its text. Return the error of iptables, ""
    on success.
    """
    _need(chain=chain)
    if position and rule:
        raise InvocationError("Only specify a position or a rule, not both")
    words = [str(_number("position", position))] if position else _words(rule)
    return _told(ctx, _do(ctx, family, table, ["-D", str(chain), *words]))


def flush(ctx: Context, table: str = "filter", chain: str = "", family: str = "ipv4") -> str:
    """Delete all rules of a packet filter chain, or without ``chain`` of a table. Return the error of iptables, "" on
    success.
    """
    return _told(ctx, _do(ctx, family, table, ["-F", *([chain] if chain else [])]))


# ------------------------------------------------------------------------------------------ helpers


def _program(ctx: Context, family: str) -> str:
    if family not in _PROGRAMS:
        raise InvocationError(f"family: {family!r} is neither ipv4 nor ipv6")
    found = ctx.host.which(_PROGRAMS[family])
    if found is None:
        raise CommandError(f"the host has no {_PROGRAMS[family]}")
    return found


def _wait(ctx: Context, family: str) -> str:
    """Return the option (``--wait``) that makes iptables wait for the lock of other instances, "" for versions before
    1.4.20, which have no such option.
    """
    program = _program(ctx, family)
    key = f"iptables.wait.{program}"
    if key not in ctx.scratch:
        ctx.scratch[key] = "--wait" if "--wait" in ctx.host.run([_PROGRAMS[family], "--help"]).stdout else ""
    return str(ctx.scratch[key])


def _do(ctx: Context, family: str, table: str, words: Sequence[str]) -> CommandResult:
    _program(ctx, family)
    done = ctx.host.run([_PROGRAMS[family], *_wait(ctx, family).split(), "-t", table, *words])
    if done.retcode in _CANNOT:
        raise CommandError(f"{_PROGRAMS[family]} {shlex.join(words)}: {_complaint(done)}")
    return done


def _saved(ctx: Context, family: str, table: str | None = None) -> str:
    _program(ctx, family)
    words = [f"{_PROGRAMS[family]}-save", *(["-t", table] if table else [])]
    return network_files.run(ctx.host, words) + "\n"


def _kept(ctx: Context, family: str) -> str:
    """Return the text of the kernel's packet filter rules without those that a regular expression of the option
    ``iptables.save_filters`` matches.
    """
    try:
        filters = [re.compile(pattern) for pattern in ctx.call("config.option", "iptables.save_filters") or []]
    except re.error as error:
        raise CommandError(
            f"iptables.save_filters: {error.pattern!r} is not a valid regular expression: {error}"
        ) from error
    lines = lines_of(_saved(ctx, family), keepends=True)
    return "".join(line for line in lines if not any(each.search(line) for each in filters))


def _told(ctx: Context, done: CommandResult) -> str:
    """Return the error of iptables, "" on success. An error also becomes the exit code of the call."""
    if done.retcode:
        ctx.scratch["retcode"] = done.retcode
    return _complaint(done)


def _complaint(done: CommandResult) -> str:
    if done.retcode == 0:
        return ""
    return done.stderr.strip() or done.stdout.strip() or f"it failed with exit code {done.retcode}"


def _words(rule: str | None) -> list[str]:
    try:
        return shlex.split(str(rule))
    except ValueError as error:
        raise InvocationError(f"{rule} is not a valid rule: {error}") from error


def _need(**given: object) -> None:
    for name, value in given.items():
        if not value:
            words = f"{name.capitalize()} needs to be specified"
            raise CallFailed(words, f"Error: {words}")


def _number(name: str, value: object) -> int:
    if re.fullmatch(r"-?\d+", str(value)) is None:
        raise InvocationError(f"{name}: {value!r} is not a number")
    return int(str(value))


def _policy(rules: dict[str, dict[str, iptables_rules.Chain]], table: str, chain: str | None) -> str | None:
    _need(chain=chain)
    found = rules.get(table, {}).get(str(chain))
    policy = found["policy"] if found and "policy" in found else None
    return None if policy is None else str(policy)


def _saved_path(ctx: Context, family: str) -> str:
    for grain, value, *files in _PLACES:
        if ctx.grains.get(grain) == value:
            return files[family == "ipv6"]
    raise CommandError(f"Saving iptables to file is not supported on {ctx.grains.get('os')}: name a file")
