"""``file.cached`` and ``file.not_cached``: copies of remote files in the minion's cache, for later states."""

from __future__ import annotations

from pathlib import Path

from statecore.builtin.states.file.arguments import Refused, local_path, step
from statecore.builtin.states.file.content import signers_of
from statecore.host.content import digests, managed_file
from statecore.model import tree_url
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError, StateFailure
from statecore.model.types import Outcome, Plan
from statecore.sources import downloads
from statecore.sources.file_source import FileVerification, cache_of

#: Hash algorithm of the reported changes if ``source_hash`` names none.
_USUAL = "sha256"


def cached(
    ctx: Context,
    name: str,
    source_hash: str = "",
    source_hash_name: str | None = None,
    skip_verify: bool = False,
    saltenv: str = "base",
    use_etag: bool = False,
    source_hash_sig: object = None,
    signed_by_any: object = None,
    signed_by_all: object = None,
    keyring: object = None,
    gnupghome: object = None,
    sig_backend: str = "gpg",
) -> Plan:
    """Keep a copy of a file (a URL or a path) in the minion's cache, and verify its hash.

    name
        URL of the file. ``http(s)://``: download the file into the cache. ``salt://``: the minion already caches the
        whole
        tree, so only check that the file exists. ``file://`` or a path: check that the file exists on the host.
    source_hash
        digest of the file, or the path or URL of a file that lists digests. Required for http(s), unless
        ``skip_verify``
        or ``use_etag`` is True.
    source_hash_name
        name to look up in the file of digests
    skip_verify
        True: accept a download without a digest
    use_etag
        True: download again only if the server reports another ETag than at the last download
    source_hash_sig, signed_by_any, signed_by_all, keyring, gnupghome, sig_backend
        require a signed file of digests, as in ``file.managed``
    """
    try:
        signers = signers_of(locals(), source_hash_sig)
        wanted = FileVerification(
            source_hash,
            source_hash_name,
            skip_verify,
            use_etag=use_etag,
            hash_signature=source_hash_sig,
            signers=signers,
        )
        if name.startswith(downloads.SCHEMES):
            return _behind_a_url(ctx, name, saltenv, wanted)
        place, shown = _local_source(ctx, name, saltenv)
        digest = wanted.digest(ctx, name, name, saltenv)
        if digest is None:
            return Plan.unchanged(shown)
        found = digests.digest_of(place, digest[0])
    except (Refused, CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if found != digest[1]:
        return Plan.failed(f"{shown}, but the hash ({found}) does not match the specified hash ({digest[1]})")
    return Plan.unchanged(f"{shown} and has hash {found}")


def not_cached(ctx: Context, name: str, saltenv: str = "base") -> Plan:
    """Remove the copy of a URL from the minion's cache. Local paths are left alone; ``salt://`` is not supported."""
    try:
        if not name.startswith(downloads.SCHEMES):
            if tree_url.is_tree_url(name):
                raise Refused(f"not supported: {name}; the minion keeps its copy of the tree itself")
            return Plan.unchanged(f"File {name.removeprefix('file://')} is a local path, no action taken")
        place = downloads.cached_at(name, cache_of(ctx), saltenv)
    except (Refused, CommandError) as error:
        return Plan.failed(str(error))
    if not place.is_file():
        return Plan.unchanged(f"{downloads.shown(name)} is not cached")

    def work() -> Outcome:
        managed_file.remove(place)
        return Outcome(f"{place} was deleted", {"deleted": True})

    return Plan.change(f"{place} would be deleted", (step(f"forget {downloads.shown(name)}", work),), {"deleted": True})


def _local_source(ctx: Context, name: str, saltenv: str) -> tuple[Path, str]:
    """Return (path of a file of the state tree or of the host, comment that names the file).

    Raises Refused if the file does not exist, and HostError if it is not a regular file.
    """
    if tree_url.is_tree_url(name):
        path, named = tree_url.split(name)
        found = ctx.files.fetch(path, named or saltenv)
        if found is None:
            raise Refused(f"Failed to cache {name}: there is no such file in saltenv '{named or saltenv}'")
        return found, f"File is cached to {found}"
    path = name.removeprefix("file://")
    place = local_path(ctx, path)
    if not place.exists():
        raise Refused(f"File {path} is not present on the minion")
    if not place.is_file():
        raise HostError(f"{path} is not a regular file")
    return place, f"File {path} is present on the minion"


def _behind_a_url(ctx: Context, name: str, saltenv: str, wanted: FileVerification) -> Plan:
    if not (wanted.source_hash or wanted.skip_verify or wanted.use_etag):
        raise Refused(
            f"Unable to verify upstream hash of source file {downloads.shown(name)}, "
            "please set source_hash or set skip_verify or use_etag to True"
        )
    digest = wanted.digest(ctx, name, name, saltenv)
    algorithm = digest[0] if digest else _USUAL
    place = downloads.cached_at(name, cache_of(ctx), saltenv)
    old = digests.digest_of(place, algorithm) if place.is_file() else None
    if digest is not None and old == digest[1] and not wanted.use_etag:
        return Plan.unchanged(f"File is already cached to {place} with hash {old}")

    def work() -> Outcome:
        try:
            downloads.fetch(name, place, verify_ssl=wanted.verify_ssl, use_etag=wanted.use_etag)
        except CommandError as error:
            raise StateFailure(f"Failed to cache {error}") from error
        new = digests.digest_of(place, algorithm)
        changes = {} if new == old else {"hash": {"old": old, "new": new}}
        if digest is not None and new != digest[1]:
            why = f"File is cached to {place}, but the hash ({new}) does not match the specified hash ({digest[1]})"
            return Outcome(why, changes, ok=False)
        return Outcome(f"File is cached to {place}", changes)

    return Plan.change(f"File will be cached: {downloads.shown(name)}", (step(f"fetch {downloads.shown(name)}", work),))
