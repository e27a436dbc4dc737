"""Mode, booleans, policy modules, and rules for files and ports of SELinux: Salt's ``selinux`` execution module.

The host needs the programs semanage, setsebool and semodule (packages policycoreutils and policycoreutils-python-utils).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TypedDict

from statecore.host.content import managed_file, private_files
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system import selinux_output
from statecore.system.program_runs import RunResult, run_all
from statecore.system.selinux_output import FILE_TYPES

_PROGRAMS = ("semanage", "setsebool", "semodule")

#: Where the kernel shows SELinux.
_KERNEL = ("/sys/fs/selinux", "/selinux")

_CONFIG = "/etc/selinux/config"

#: Mode -> what the kernel's file ``enforce`` contains. A disabled SELinux needs a restart; until then it is permissive.
_MODES: Mapping[str, str] = {"enforcing": "1", "permissive": "0", "disabled": "0"}

_PORT = re.compile(r"(tcp|udp)/(\d+(?:-\d+)?)")


class ModuleState(TypedDict):
    """State of one policy module of SELinux: ``Enabled`` (bool) and ``Version`` (always None), as
    ``selinux.list_semod`` returns it.
    """

    Enabled: bool
    Version: str | None


def available(ctx: Context) -> str | None:
    """Return None if the host has the programs of SELinux; else return the reason as text."""
    missing = [program for program in _PROGRAMS if ctx.host.which(program) is None]
    return f"{missing[0]} is not in the path" if missing else None


# ---------------------------------------------------------------------------------------------------------------- mode


def selinux_fs_path(ctx: Context) -> str | None:
    """Return the directory in which the kernel shows the state of SELinux, such as /sys/fs/selinux; None if SELinux
    is disabled.

    CLI Example:

        salt '*' selinux.selinux_fs_path
    """
    return next((place for place in _KERNEL if ctx.host.path(f"{place}/enforce").is_file()), None)


def getenforce(ctx: Context) -> str:
    """Return the mode in which SELinux runs: Enforcing, Permissive or Disabled.

    CLI Example:

        salt '*' selinux.getenforce
    """
    place = selinux_fs_path(ctx)
    if place is None:
        return "Disabled"
    try:
        text = ctx.host.path(f"{place}/enforce").read_text("utf-8")
    except OSError:
        return "Disabled"
    return "Permissive" if text.strip() == "0" else "Enforcing"


def getconfig(ctx: Context) -> str | None:
    """Return SELinux's mode after the next start, from /etc/selinux/config: Enforcing, Permissive or Disabled; None
    if the file has no line SELINUX.

    CLI Example:

        salt '*' selinux.getconfig
    """
    text = (managed_file.read(ctx.host.path(_CONFIG), _CONFIG) or b"").decode("utf-8", "replace")
    found = re.search(r"^\s*SELINUX=(.*)$", text, re.MULTILINE)
    return found[1].strip().capitalize() if found else None


def setenforce(ctx: Context, mode: str) -> str:
    """Set SELinux's mode, now and in /etc/selinux/config. Return the mode in which SELinux then runs. Raise
    InvocationError for an unknown mode.

    mode
        enforcing, permissive, or disabled. A disabled SELinux is permissive until the next start; a host that runs
        without SELinux gets another mode at its next start.

    CLI Example:

        salt '*' selinux.setenforce enforcing
    """
    word = mode.lower() if isinstance(mode, str) else ""
    if word not in _MODES:
        raise InvocationError(f"Invalid mode {mode}")
    place = selinux_fs_path(ctx)
    if place is not None:
        try:
            ctx.host.path(f"{place}/enforce").write_text(_MODES[word])
        except OSError as error:
            raise CommandError(f"Could not write SELinux enforce file: {error}") from error
    file = ctx.host.path(_CONFIG)
    data = managed_file.read(file, _CONFIG)
    if data is None:
        raise CommandError(f"Could not read SELinux config file: the host has no {_CONFIG}")
    new = re.sub(rb"^SELINUX=.*$", f"SELINUX={word}".encode(), data, flags=re.MULTILINE)
    if new != data:
        managed_file.replace(ctx.host, file, new, Attributes())
    return getenforce(ctx)


# ------------------------------------------------------------------------------------------------------------ booleans


def list_sebool(ctx: Context) -> dict[str, selinux_output.BooleanState]:
    """Return the booleans of the SELinux policy: a map of boolean to a map of State, Default (on or off) and
    Description.

    CLI Example:

        salt '*' selinux.list_sebool
    """
    return selinux_output.booleans(ctx.host.run(["semanage", "boolean", "--list"]).stdout)


def getsebool(ctx: Context, boolean: str) -> selinux_output.BooleanState | dict[str, str]:
    """Return a map of State, Default and Description of a boolean of the SELinux policy; {} if the policy does not
    have it.

    CLI Example:

        salt '*' selinux.getsebool virt_use_usb
    """
    return list_sebool(ctx).get(boolean) or {}


def setsebool(ctx: Context, boolean: str, value: object, persist: bool = False) -> bool:
    """Set a boolean of the SELinux policy. Return whether this succeeded.

    value
        on, off, true, false, 1 or 0
    persist
        True: also after the next start

    CLI Example:

        salt '*' selinux.setsebool virt_use_usb off
    """
    return _succeeds(ctx, ["setsebool", *(["-P"] if persist else []), str(boolean), str(value)])


def setsebools(ctx: Context, pairs: Mapping[str, object], persist: bool = False) -> bool:
    """Set several booleans of the SELinux policy at once: a map of boolean to value. Return whether this succeeded.

    persist
        True: also after the next start

    CLI Example:

        salt '*' selinux.setsebools '{virt_use_usb: on, squid_use_tproxy: off}'
    """
    words = [f"{boolean}={value}" for boolean, value in pairs.items()]
    return _succeeds(ctx, ["setsebool", *(["-P"] if persist else []), *words])


# ------------------------------------------------------------------------------------------------------ policy modules


def list_semod(ctx: Context) -> dict[str, ModuleState]:
    """Return the installed policy modules of SELinux: a map of module to a map of Enabled (bool) and Version (always
    None: semodule no longer shows it).

    CLI Example:

        salt '*' selinux.list_semod
    """
    text = ctx.host.run(["semodule", "--list-modules=full"]).stdout
    return {name: {"Enabled": on, "Version": None} for name, on in selinux_output.modules(text).items()}


def getsemod(ctx: Context, module: str) -> ModuleState | dict[str, object]:
    """Return a map of Enabled (bool) and Version (None) of a policy module of SELinux; {} if it is not installed.

    CLI Example:

        salt '*' selinux.getsemod mysql
    """
    return list_semod(ctx).get(module) or {}


def setsemod(ctx: Context, module: str, state: str) -> bool:
    """Enable or disable a policy module of SELinux. Return whether this succeeded.

    state
        Enabled or Disabled

    CLI Example:

        salt '*' selinux.setsemod nagios Enabled
    """
    option = {"enabled": "--enable", "disabled": "--disable"}.get(str(state).lower())
    if option is None:
        raise InvocationError(f"Invalid state {state}")
    return _succeeds(ctx, ["semodule", option, str(module)])


def install_semod(ctx: Context, module_path: str) -> bool:
    """Install a policy module of SELinux from a file. Return whether this succeeded. Raise CommandError if the state
    tree does not have the file.

    module_path
        path on the host, or a file of the state tree (salt://)

    CLI Example:

        salt '*' selinux.install_semod salt://selinux/my_module.pp
    """
    if not module_path.startswith("salt://"):
        return _succeeds(ctx, ["semodule", "--install", module_path])
    # The policy module is called like its file, so a directory of its own keeps the file's name.
    place = f"/tmp/.saltern-selinux-{os.urandom(8).hex()}"
    directory = ctx.host.path(place, follow=False)
    directory.mkdir(mode=private_files.DIRECTORY_MODE)
    file = f"{place}/{module_path.partition('?')[0].rpartition('/')[2]}"
    try:
        if not ctx.call("cp.get_file", module_path, file):
            raise CommandError(f"The state tree has no {module_path}")
        return _succeeds(ctx, ["semodule", "--install", file])
    finally:
        ctx.host.path(file, follow=False).unlink(missing_ok=True)
        directory.rmdir()


def remove_semod(ctx: Context, module: str) -> bool:
    """Remove a policy module of SELinux. Return whether this succeeded.

    CLI Example:

        salt '*' selinux.remove_semod my_module
    """
    return _succeeds(ctx, ["semodule", "--remove", str(module)])


# ------------------------------------------------------------------------------------------------------ rules for files


def filetype_id_to_string(ctx: Context, filetype: str = "a") -> str:
    """Return the name of the kind of file that a letter means, such as "regular file" for f, as ``semanage fcontext
    --list`` shows it. Raise InvocationError for another letter.

    filetype
        a (all files), f, d, c, b, s, l or p

    CLI Example:

        salt '*' selinux.filetype_id_to_string d
    """
    if filetype not in FILE_TYPES:
        raise InvocationError(f"Invalid file type code {filetype!r}; expected one of: {', '.join(FILE_TYPES)}")
    return FILE_TYPES[filetype]


def fcontext_get_policy(
    ctx: Context,
    name: str,
    filetype: str | None = None,
    sel_type: str | None = None,
    sel_user: str | None = None,
    sel_level: str | None = None,
) -> dict[str, str] | None:
    """Return the rule of the SELinux policy for a file specification: a map of filespec, filetype, sel_user,
    sel_role, sel_type and sel_level. Return None if there is no rule with all given parts.

    name
        the file specification, a regular expression
    filetype
        a (all files), f, d, c, b, s, l or p

    CLI Example:

        salt '*' selinux.fcontext_get_policy '/srv/web(/.*)?'
    """
    kind = filetype_id_to_string(ctx, filetype) if filetype else None
    wanted = {"filetype": kind, "sel_type": sel_type, "sel_user": sel_user, "sel_level": sel_level}
    return next(
        (rule for rule in _rules(ctx, name) if all(rule[key] == each for key, each in wanted.items() if each)), None
    )


def fcontext_add_policy(
    ctx: Context,
    name: str,
    filetype: str | None = None,
    sel_type: str | None = None,
    sel_user: str | None = None,
    sel_level: str | None = None,
) -> RunResult:
    """Add a rule for a file specification to the SELinux policy, or change the existing rule. Return a map with pid,
    retcode, stdout and stderr of semanage.

    The files get the new context by ``selinux.fcontext_apply_policy``.

    CLI Example:

        salt '*' selinux.fcontext_add_policy '/srv/web(/.*)?' sel_type=httpd_sys_content_t
    """
    kind = filetype_id_to_string(ctx, filetype or "a")
    known = any(rule["filetype"] == kind for rule in _rules(ctx, name))
    return _fcontext(ctx, "modify" if known else "add", name, filetype, sel_type, sel_user, sel_level)


def fcontext_delete_policy(
    ctx: Context,
    name: str,
    filetype: str | None = None,
    sel_type: str | None = None,
    sel_user: str | None = None,
    sel_level: str | None = None,
) -> RunResult:
    """Delete a rule for a file specification from the SELinux policy. Return a map with pid, retcode, stdout and
    stderr of semanage.

    CLI Example:

        salt '*' selinux.fcontext_delete_policy '/srv/web(/.*)?'
    """
    return _fcontext(ctx, "delete", name, filetype, sel_type, sel_user, sel_level)


def fcontext_policy_is_applied(ctx: Context, name: str, recursive: bool = False) -> str:
    """Return the changes that restorecon would make, as its text; "" if the files have the contexts of the SELinux
    policy.

    name
        path of a file or directory
    recursive
        True: also everything below the directory

    CLI Example:

        salt '*' selinux.fcontext_policy_is_applied /srv/web recursive=True
    """
    return run_all(ctx.host, ["restorecon", "-n", "-v", *(["-R"] if recursive else []), name])["stdout"]


def fcontext_apply_policy(ctx: Context, name: str, recursive: bool = False) -> dict[str, object]:
    """Give a file the context of the SELinux policy. Return a map with pid, retcode, stdout and stderr of
    restorecon, and, if there are any, ``changes``: a map of path to the old and new parts of its context.

    recursive
        True: also everything below the directory

    CLI Example:

        salt '*' selinux.fcontext_apply_policy /srv/web recursive=True
    """
    would = fcontext_policy_is_applied(ctx, name, recursive)
    done: dict[str, object] = {**run_all(ctx.host, ["restorecon", "-v", "-F", *(["-R"] if recursive else []), name])}
    if done["retcode"]:
        return done
    changes = selinux_output.relabelled(would)
    if changes is None:
        return {**done, "retcode": 1, "error": "Unrecognized response from restorecon command."}
    return {**done, "changes": changes} if changes else done


# ------------------------------------------------------------------------------------------------------ rules for ports


def port_get_policy(
    ctx: Context, name: str, sel_type: str | None = None, protocol: str | None = None, port: str | int | None = None
) -> dict[str, str] | None:
    """Return the rule of the SELinux policy for a port: a map of sel_type, protocol and port (all ports of the rule
    as text); None if there is none.

    name
        ``tcp/8080``, ``udp/20-21``; any other name needs ``protocol`` and ``port``
    sel_type
        only a rule with this type

    CLI Example:

        salt '*' selinux.port_get_policy tcp/80
    """
    kind, number = _protocol_port(name, protocol, port)
    rules = selinux_output.ports(ctx.host.run(["semanage", "port", "--list"]).stdout)
    return next(
        (
            {"sel_type": rule.sel_type, "protocol": rule.protocol, "port": ", ".join(rule.ports)}
            for rule in rules
            if rule.protocol == kind and number in rule.ports and sel_type in (None, "", rule.sel_type)
        ),
        None,
    )


def port_add_policy(
    ctx: Context,
    name: str,
    sel_type: str | None = None,
    protocol: str | None = None,
    port: str | int | None = None,
    sel_range: str | None = None,
) -> RunResult:
    """Add a rule for a port to the SELinux policy. Return a map with pid, retcode, stdout and stderr of semanage.

    sel_type
        the type, required
    sel_range
        the range of security levels

    CLI Example:

        salt '*' selinux.port_add_policy tcp/8080 http_port_t
    """
    if not sel_type:
        raise InvocationError("SELinux Type is required to add a policy")
    return _port_rule(ctx, "add", name, sel_type, protocol, port, sel_range)


def port_modify_policy(
    ctx: Context,
    name: str,
    sel_type: str | None = None,
    protocol: str | None = None,
    port: str | int | None = None,
    sel_range: str | None = None,
) -> RunResult:
    """Change the rule for a port in the SELinux policy. Return a map with pid, retcode, stdout and stderr of
    semanage. The arguments are those of ``selinux.port_add_policy``.

    CLI Example:

        salt '*' selinux.port_modify_policy tcp/8080 http_port_t
    """
    return _port_rule(ctx, "modify", name, sel_type, protocol, port, sel_range)


def port_delete_policy(
    ctx: Context, name: str, protocol: str | None = None, port: str | int | None = None
) -> RunResult:
    """Delete the rule for a port from the SELinux policy. Return a map with pid, retcode, stdout and stderr of
    semanage.

    CLI Example:

        salt '*' selinux.port_delete_policy tcp/8080
    """
    return _port_rule(ctx, "delete", name, None, protocol, port, None)


# -------------------------------------------------------------------------------------------------------------- helpers


def _succeeds(ctx: Context, words: list[str]) -> bool:
    return ctx.host.run(words).retcode == 0


def _rules(ctx: Context, name: str) -> list[dict[str, str]]:
    rules = selinux_output.file_rules(ctx.host.run(["semanage", "fcontext", "--list"]).stdout)
    return [rule for rule in rules if rule["filespec"] == name]


def _fcontext(
    ctx: Context,
    action: str,
    name: str,
    filetype: str | None,
    sel_type: str | None,
    sel_user: str | None,
    sel_level: str | None,
) -> RunResult:
    words = ["semanage", "fcontext", f"--{action}"]
    if filetype is not None and filetype != "a":
        filetype_id_to_string(ctx, filetype)
        words += ["--ftype", filetype]
    options = (("--type", sel_type), ("--seuser", sel_user), ("--range", sel_level))
    words += [word for option, value in options if value is not None for word in (option, str(value))]
    return run_all(ctx.host, [*words, name])


def _port_rule(
    ctx: Context,
    action: str,
    name: str,
    sel_type: str | None,
    protocol: str | None,
    port: str | int | None,
    sel_range: str | None,
) -> RunResult:
    kind, number = _protocol_port(name, protocol, port)
    options = (("--type", sel_type), ("--range", sel_range))
    given = [word for option, value in options if value for word in (option, str(value))]
    return run_all(ctx.host, ["semanage", "port", f"--{action}", "--proto", kind, *given, number])


def _protocol_port(name: str, protocol: str | None, port: str | int | None) -> tuple[str, str]:
    """Return (protocol, port or range of ports) from a name like ``tcp/80``, else from the two arguments. Raise
    InvocationError if neither names a port.
    """
    found = _PORT.fullmatch(str(name)) or _PORT.fullmatch(f"{protocol}/{port}")
    if found is None:
        raise InvocationError(
            f'Invalid name "{name}" format and protocol and port not provided or invalid: "{protocol}" "{port}".'
        )
    return found[1], found[2]
