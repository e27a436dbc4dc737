"""Functions of ``pkg`` for APT's sources: lines of ``sources.list``, stanzas of ``.sources`` files, and their signing
keys.
"""

from __future__ import annotations

from statecore.builtin.modules.pkg_apt import keyservers, repository_keys, source_files
from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError, InvocationError
from statecore.system.hostfiles import apt_sources


def list_repos(ctx: Context, **kwargs: object) -> dict[str, list[dict[str, object]]]:
    """Return a map of URI to a list of maps, one for each APT source with that URI, disabled sources too. The maps are
    those of ``pkg.get_repo``.

    CLI Example:

        salt '*' pkg.list_repos
    """
    found: dict[str, list[dict[str, object]]] = {}
    for entry in source_files.entries(ctx.host):
        found.setdefault(entry.source.uri, []).append(source_files.described(entry))
    return found


def get_repo(ctx: Context, repo: str, exact: bool = False, **kwargs: object) -> dict[str, object]:
    """Return the APT source that has the type, URI and suite of a line and a component in common with it: a map with
    file, line, type, uri, dist, comps, architectures, signedby, enabled and more. Return {} if the host has none.

    exact
        True: the architectures must also be those of the line

    CLI Example:

        salt '*' pkg.get_repo 'deb http://deb.debian.org/debian bookworm main'
    """
    try:
        wanted = source_files.named(ctx, repo, kwargs)
    except InvocationError as error:
        raise CallFailed(str(error), {}) from error
    found = source_files.find(ctx.host, wanted)
    if found is None or (exact and {*found.source.architectures} != {*wanted.architectures}):
        return {}
    return source_files.described(found)


def repo_changes(ctx: Context, repo: str, **kwargs: object) -> dict[str, object]:
    """Return the changes that ``pkg.mod_repo`` would make to an APT source: {part: {"old", "new"}}. Return ``{"repo":
    repo}`` for a new one, {} for none.
    """
    return source_files.plan(ctx, repo, kwargs).changes


def mod_repo(
    ctx: Context,
    repo: str,
    saltenv: str = "base",
    aptkey: bool = True,
    comps: object = None,
    architectures: object = None,
    dist: str | None = None,
    trusted: object = None,
    file: str | None = None,
    disabled: object = None,
    enabled: object = None,
    comments: object = None,
    key_url: str | None = None,
    key_text: str | None = None,
    clean_file: bool = False,
    refresh: bool = True,
    refresh_db: bool = True,
    **kwargs: object,
) -> dict[str, object]:
    """Add or change an APT source. Return {repo: the map that ``pkg.get_repo`` returns for it}.

    repo
        a line: ``deb [signed-by=/etc/apt/keyrings/x.gpg] https://x.test/debian bookworm main``
    comps, architectures, dist, trusted, disabled
        values that replace those in the line; the first two are lists or text with commas
    file
        the file for a new source: ``/etc/apt/sources.list.d/x.list``, or ``.sources`` for a stanza
    key_url, key_text
        the signing key. It is kept in the file that ``signed-by`` names, else among the keys that are trusted for all
        sources
    keyid, keyserver
        ID or fingerprint of the signing key, or a list of these, and the server that has it (a host, or a URL)
    ppa, ppa_auth
        OWNER/NAME of an archive of Launchpad, on Ubuntu and its kin, in place of the line; user:password of a private one
    consolidate
        True: if the source changes, move all sources to /etc/apt/sources.list
    clean_file
        True: remove all other sources from the file
    refresh
        True: fetch the package lists afterwards

    CLI Example:

        salt '*' pkg.mod_repo 'deb http://deb.debian.org/debian bookworm main' comps=main,contrib
    """
    given = {
        "comps": comps,
        "architectures": architectures,
        "dist": dist,
        "trusted": trusted,
        "file": file,
        "disabled": disabled,
        "enabled": enabled,
        "comments": comments,
        "key_url": key_url,
        "key_text": key_text,
        "clean_file": clean_file,
        "aptkey": aptkey,
        **kwargs,
    }
    plan = source_files.plan(ctx, repo, given)
    if plan.changes and given.get("consolidate"):
        source_files.consolidate(ctx.host)
        plan = source_files.plan(ctx, repo, given)
    if plan.key:
        repository_keys.keep(ctx, plan.key)
    if plan.text is not None:
        source_files.write(ctx.host, plan.file, plan.text)
    if plan.changes and refresh and refresh_db:
        _fetch_lists(ctx, plan.changes)
    return {repo: get_repo(ctx, plan.wanted.line)}


def del_repo(ctx: Context, repo: str, refresh: bool = True, **kwargs: object) -> str:
    """Remove an APT source, or only the components that the line names. An empty file is removed too. Return a sentence
    for each changed file. Raise CommandError if the source does not exist.

    CLI Example:

        salt '*' pkg.del_repo 'deb http://deb.debian.org/debian bookworm contrib'
    """
    gone = source_files.named(ctx, repo, kwargs)
    sentences = []
    for file, text in source_files.texts(ctx.host).items():
        stanzas = file.endswith(".sources")
        left = apt_sources.without(text, gone, stanzas=stanzas)
        if left == text:
            continue
        if apt_sources.sources(left, stanzas=stanzas) or not file.startswith(source_files.PARTS):
            source_files.write(ctx.host, file, left)
            sentences.append(f"Repo '{repo}' has been removed from {file}.")
        else:
            managed_file.remove(ctx.host.path(file))
            sentences.append(f"File {file} containing repo '{repo}' has been removed.")
    if not sentences:
        raise CommandError(f"Repo {repo} doesn't exist in the sources.list(s)")
    if refresh:
        _fetch_lists(ctx, {"repo": repo})
    return "\n".join(sentences)


def del_repo_key(
    ctx: Context,
    name: str | None = None,
    aptkey: bool = True,
    keydir: str | None = None,
    keyid: object = None,
    keyid_ppa: bool = False,
    **kwargs: object,
) -> str:
    """Remove the files of a signing key that is trusted for all sources, and return the key's ID. Raise CommandError if no
    file holds the key.

    keyid
        the key's ID or fingerprint
    keyid_ppa, name
        True: the key of the archive of Launchpad ``name`` (ppa:OWNER/NAME)

    CLI Example:

        salt '*' pkg.del_repo_key keyid=0123ABCD
    """
    if keyid_ppa and name and name.startswith("ppa:"):
        keyid = keyservers.Ppa.of(ctx, name).fingerprint(ctx)
    elif not keyid:
        raise InvocationError("keyid or keyid_ppa and PPA name must be passed")
    (key_id, *_) = keyservers.key_ids(keyid)
    files = [each for each in repository_keys.files_with(ctx, key_id) if each != repository_keys.OLD]
    if not files:
        raise CommandError(f"no file below {repository_keys.TRUSTED} holds the key {key_id}")
    for each in files:
        managed_file.remove(ctx.host.path(each))
    return key_id


def add_repo_key(
    ctx: Context,
    path: str | None = None,
    text: str | None = None,
    keyserver: str | None = None,
    keyid: str | None = None,
    aptkey: bool = True,
    keydir: str | None = None,
    keyfile: str | None = None,
    **kwargs: object,
) -> bool:
    """Store a signing key on the host as ``keydir``/``keyfile``. The key is in the file ``path`` (salt://, http:// or
    of the host), in ``text``, or on the server ``keyserver`` under ``keyid``. Return True. Raise CallFailed if there is no
    such file, or for data that is no key.

    keydir
        /etc/apt/keyrings, or with ``aptkey`` /etc/apt/trusted.gpg.d, whose keys are trusted for all sources
    """
    if (keyserver is None) != (keyid is None):
        raise InvocationError("both keyserver and keyid options required.")
    if [bool(path), bool(text), bool(keyid)].count(True) != 1:
        raise InvocationError("one of path, text and keyid is needed")
    ids = keyservers.key_ids(keyid) if keyid else ()
    location = repository_keys.KeyLocation.of(
        keydir or (repository_keys.TRUSTED if aptkey else repository_keys.KEYRINGS),
        keyfile or (f"{'-'.join(ids)}.gpg" if ids else None),
    )
    try:
        repository_keys.keep(ctx, repository_keys.Key(location, path, text, ids, keyserver or ""))
    except CommandError as error:
        raise CallFailed(str(error)) from error
    return True


def _fetch_lists(ctx: Context, changes: dict[str, object]) -> None:
    try:
        ctx.call("pkg.refresh_db")
    except CommandError as error:
        raise CommandError(f"the package lists could not be fetched: {error}", {"changes": changes}) from error
