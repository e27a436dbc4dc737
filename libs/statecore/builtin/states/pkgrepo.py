"""Salt's ``pkgrepo`` states: package repositories, with any supported package manager of the host."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step

#: Salt's note in comments of test mode.
_LATER = (
    "This may cause pkg states to behave differently than stated if this action is repeated without test=True, due to the "
    "differences in the configured repositories."
)


def available(ctx: Context) -> str | None:
    """Return None if a ``pkg`` execution module supports repositories of the host's package manager, else the reason."""
    try:
        ctx.functions["pkg.repo_changes"]
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
    refresh: bool = True,
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
        RPM: the repository's id, which is also the name of its file. apk: the whole line.
    enabled, disabled
        whether the repository is used; only one of the two arguments may be given
    comments
        APT: comments beside the line. RPM: comments in the section.
    refresh
        True: fetch the package lists afterwards (APT, apk)
    clean_file
        True: remove all other lines from ``file`` (APT)
    key_url, key_text
        APT: URL, or text, of the repository's key
    allow_insecure_key
        APT: False: refuse a key over http
    aptkey
        APT: True: if the line has no signed-by, trust the key for all repositories
    file, comps, architectures, dist, trusted
        APT: see ``pkg.mod_repo``
    humanname, baseurl, mirrorlist, metalink, gpgkey, gpgcheck and others
        RPM: options of the repository's section; empty options are removed
    """
    if "repo" in options:
        return Plan.failed(
            "'repo' is not a supported argument for this state. The 'name' argument is probably what was intended."
        )
    if enabled is not None and disabled is not None:
        return Plan.failed("Only one of enabled/disabled is allowed")
    if key_url and any(key in options for key in ("keyid", "keyserver")):
        return Plan.failed('You may not use both "keyid"/"keyserver" and "key_url" argument.')
    if key_url and key_url.strip().startswith("http:") and not allow_insecure_key:
        return Plan.failed("Cannot have 'key_url' using http with 'allow_insecure_key' set to True")
    known = {"ppa": ppa, "copr": copr, "comments": comments, "key_url": key_url, "key_text": key_text}
    wanted = {
        "humanname": name,
        **options,
        **{key: value for key, value in known.items() if value is not None},
        **({"clean_file": True} if clean_file else {}),
        **({"aptkey": False} if not aptkey else {}),
        "enabled": not disabled if disabled is not None else True if enabled is None else enabled,
    }
    try:
        changes = ctx.call("pkg.repo_changes", name, **wanted)
    except InvocationError as error:
        return Plan.failed(str(error))
    except CommandError as error:
        return Plan.failed(f"Failed to examine repo '{name}': {error}")
    if not changes:
        return Plan.unchanged(f"Package repo '{name}' already configured")

    def work() -> Outcome:
        try:
            ctx.call("pkg.mod_repo", name, refresh=refresh and refresh_db, **wanted)
        except (CommandError, InvocationError) as error:
            return _failed(f"Failed to configure repo '{name}': ", error)
        return Outcome(f"Configured package repo '{name}'", changes)

    step = Step(f"configure {name}", work)
    return Plan.change(f"Package repo '{name}' would be configured. {_LATER}", [step], changes)


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
    """
    for argument, value in (("ppa", ppa), ("ppa_auth", ppa_auth), ("copr", copr)):
        if value:
            return Plan.failed(f"not supported: {argument}; name the repository as it is written in its file")
    for argument, key in (("keyid", keyid), ("keyid_ppa", keyid_ppa)):
        if key:
            return Plan.failed(f"not supported: {argument}; remove the key's file with file.absent")
    try:
        there = ctx.call("pkg.get_repo", name, exact=True)
    except InvocationError as error:
        return Plan.failed(str(error))
    except CommandError as error:
        return Plan.failed(f"Failed to configure repo '{name}': {error}")
    if not there:
        return Plan.unchanged(f"Package repo {name} is absent")

    def work() -> Outcome:
        try:
            ctx.call("pkg.del_repo", name, refresh=refresh)
        except (CommandError, InvocationError) as error:
            return _failed("", error)
        return Outcome(f"Removed repo {name}", {"repo": name})

    step = Step(f"remove {name}", work)
    return Plan.change(f"Package repo '{name}' will be removed. {_LATER}", [step])


def _failed(before: str, error: Exception) -> Outcome:
    """Return the failed outcome of a ``pkgrepo`` step, with the changes made before the error."""
    info = error.info if isinstance(error, CommandError) else None
    changes = info.get("changes", {}) if isinstance(info, Mapping) else {}
    message = error.strerror_without_changes if isinstance(error, CommandError) else str(error)
    return Outcome(f"{before}{message}", changes, ok=False)
