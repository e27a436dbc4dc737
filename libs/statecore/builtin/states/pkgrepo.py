"""Salt's ``pkgrepo`` states: package repositories, with any supported package manager of the host."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step
from statecore.system.hostfiles import apt_sources

#: Salt's note in comments of test mode.
_LATER = (
    "This may cause pkg states to behave differently than stated if this action is repeated without test=True, due to the "
    "differences in the configured repositories."
)


def available(ctx: Context) -> str | None:
    """Return None if a ``pkg`` execution module supports repositories of the host's package manager, else the reason as
    text.
    """
    try:
        ctx.functions["pkg._repo_changes"]
    except NotAvailable as missing:
        return f"Repo management not implemented on this platform: {missing}"
    return None


def managed(
    ctx: Context,
    name: str,
    ppa: str | None = None,
    copr: str | None = None,
    aptkey: bool = True,
    enabled: object = None,
    disabled: object = None,
    refresh: bool | None = None,
    refresh_db: bool = True,
    clean_file: bool = False,
    comments: object = None,
    key_url: str | None = None,
    key_text: str | None = None,
    allow_insecure_key: bool = True,
    **options: object,
) -> Plan:
    """Configure a package repository.

    name
        APT: the whole line, ``deb [signed-by=/etc/apt/keyrings/x.gpg] https://x.test/debian bookworm main``.
        RPM and zypper: the repository's id, which is also the name of its file. apk: the whole line.
    enabled, disabled
        whether the repository is used; only one of the two arguments may be given
    comments
        APT: comments beside the line. RPM: comments in the section.
    refresh
        False: do not fetch the package lists afterwards (APT, apk). zypper: whether it fetches old metadata of the repository by
        itself
    clean_file
        True: remove all other lines from ``file`` (APT)
    key_url, key_text
        APT: URL, or text, of the repository's key
    keyid, keyserver
        APT: ID or fingerprint of the key, or a list of these, and the key server (a host, or a URL) that has it
    ppa, ppa_auth
        Ubuntu: OWNER/NAME of an archive of Launchpad, in place of ``name``; user:password of a private one
    consolidate
        APT: True: if the repository changes, move all sources to /etc/apt/sources.list
    allow_insecure_key
        APT: False: refuse a key over http
    aptkey
        APT: True: if the line has no signed-by, trust the key for all repositories
    file, comps, architectures, dist, trusted
        APT: see ``pkg.mod_repo``
    humanname, baseurl, mirrorlist, metalink, gpgkey, gpgcheck and others
        RPM: options of the repository's section; empty options are removed
    humanname, baseurl, mirrorlist, enabled, gpgcheck, priority, cache, gpgautoimport
        zypper: see ``pkg.mod_repo``
    """
    if "repo" in options:
        return Plan.failed(
            "'repo' is not a supported argument for this state. The 'name' argument is probably what was intended."
        )
    if enabled is not None and disabled is not None:
        return Plan.failed("Only one of enabled/disabled is allowed")
    for argument, value in (("key_url", key_url), ("key_text", key_text)):
        if value and any(key in options for key in ("keyid", "keyserver")):
            return Plan.failed(f'You may not use both "keyid"/"keyserver" and "{argument}" argument.')
    strange = sorted(options.keys() - apt_sources.ARGUMENTS) if ctx.grains.get("os_family") == "Debian" else []
    warnings = [f"'{each}' is not an argument of pkgrepo.managed with APT and is ignored" for each in strange]
    if warnings and ctx.opts.get("state_unknown_arguments") == "error":
        return Plan.failed("\n".join(warnings))
    if key_url and key_url.strip().startswith("http:") and not allow_insecure_key:
        return Plan.failed("Cannot have 'key_url' using http with 'allow_insecure_key' set to True")
    known = {"ppa": ppa, "copr": copr, "comments": comments, "key_url": key_url, "key_text": key_text}
    suse = ctx.grains.get("os_family") == "Suse"
    wanted = {
        "humanname": name,
        **({"refresh": refresh} if suse and refresh is not None else {}),
        **options,
        **{key: value for key, value in known.items() if value is not None},
        **({"clean_file": True} if clean_file else {}),
        **({"aptkey": False} if not aptkey else {}),
        "enabled": not disabled if disabled is not None else True if enabled is None else enabled,
    }
    try:
        changes = ctx.call("pkg._repo_changes", name, **wanted)
    except InvocationError as error:
        return Plan.failed(str(error))
    except CommandError as error:
        return Plan.failed(f"Failed to examine repo '{name}': {error}")
    if not changes:
        return Plan.unchanged(f"Package repo '{name}' already configured")._replace(warnings=tuple(warnings))

    def work() -> Outcome:
        try:
            ctx.call(
                "pkg.mod_repo", name, **({} if suse else {"refresh": refresh is not False and refresh_db}), **wanted
            )
        except (CommandError, InvocationError) as error:
            return _failed(f"Failed to configure repo '{name}': ", error)
        return Outcome(f"Configured package repo '{name}'", changes)

    step = Step(f"configure {name}", work)
    would = f"Package repo '{name}' would be configured. {_LATER}"
    return Plan.change(would, [step], changes)._replace(warnings=tuple(warnings))


def absent(
    ctx: Context,
    name: str,
    ppa: str | None = None,
    ppa_auth: str | None = None,
    copr: str | None = None,
    keyid: str | None = None,
    keyid_ppa: bool | None = None,
    refresh: bool = True,
) -> Plan:
    """Remove a package repository. Nothing happens if it is not configured.

    For APT, ``name`` is the whole line of the source; the components that the line names are removed.

    ppa, ppa_auth
        Ubuntu: OWNER/NAME of an archive of Launchpad, in place of ``name``; user:password of a private one
    keyid, keyid_ppa
        APT: also remove the key with this ID from the keys that are trusted for all sources; True: the archive's key
    """
    if copr:
        return Plan.failed("not supported: copr; name the repository as it is written in its file")
    if ppa and ctx.grains.get("os") in ("Ubuntu", "Mint"):
        name = ppa if ppa.startswith("ppa:") else f"ppa:{ppa}"
    login = {"ppa_auth": ppa_auth, "keyid": keyid} if ppa_auth else {}
    remove_key = keyid is not None or bool(keyid_ppa)
    if remove_key and "pkg.del_repo_key" not in ctx.functions:
        return Plan.failed("Repo key management is not implemented for this platform")
    try:
        there = ctx.call("pkg.get_repo", name, exact=True, **login)
    except InvocationError as error:
        return Plan.failed(str(error))
    except CommandError as error:
        return Plan.failed(f"Failed to configure repo '{name}': {error}")
    if not there:
        return Plan.unchanged(f"Package repo {name} is absent")

    def work() -> Outcome:
        try:
            ctx.call("pkg.del_repo", name, refresh=refresh, **login)
        except (CommandError, InvocationError) as error:
            return _failed("", error)
        if not remove_key:
            return Outcome(f"Removed repo {name}", {"repo": name})
        try:
            removed = ctx.call("pkg.del_repo_key", name, keyid=keyid, keyid_ppa=bool(keyid_ppa))
        except (CommandError, InvocationError) as error:
            return Outcome(f"Removed repo {name}, but failed to remove key: {error}", {"repo": name}, ok=False)
        return Outcome(f"Removed repo {name}, and keyid {removed}", {"repo": name, "keyid": removed})

    step = Step(f"remove {name}", work)
    return Plan.change(f"Package repo '{name}' will be removed. {_LATER}", [step])


def _failed(before: str, error: Exception) -> Outcome:
    """Return the failed outcome of a ``pkgrepo`` step, with the changes made before the error."""
    info = error.info if isinstance(error, CommandError) else None
    changes = info.get("changes", {}) if isinstance(info, Mapping) else {}
    message = error.strerror_without_changes if isinstance(error, CommandError) else str(error)
    return Outcome(f"{before}{message}", changes, ok=False)
