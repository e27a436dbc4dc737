"""Sources of ``file.managed`` behind http:// and https://, and the digests that they are held to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from statecore import downloads, managed_file
from statecore.context import Context
from statecore.errors import CommandError, InvocationError
from statecore.states.file.places import Refused

#: A digest in a line of a hash file.
_DIGEST = re.compile(r"(?<![a-z0-9])([a-f0-9]{32,128})(?![a-z0-9])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verification:
    """What a source has to be."""

    #: A digest, ``algorithm=digest``, or the place of a file that has it: http(s)://, salt://, file:// or a path of the host.
    source_hash: str = ""
    #: The name in that file; the target's and the source's are looked for otherwise.
    source_hash_name: str | None = None
    skip_verify: bool = False
    verify_ssl: bool = True

    def digest(self, ctx: Context, address: str, name: str, saltenv: str) -> tuple[str, str] | None:
        """(algorithm, digest) that the source has to have; None where nobody says. Raises Refused."""
        if not self.source_hash or self.skip_verify:
            return None
        given = str(self.source_hash)
        try:
            if not given.startswith(("/", "salt://", "file://", *downloads.SCHEMES)):
                return managed_file.parse_digest(given.strip())
            text = self._hash_file(ctx, given, saltenv).read_text("utf-8", "replace")
        except (CommandError, InvocationError, OSError) as error:
            raise Refused(f"Unable to manage file: {error}") from error
        found = _chosen(text, self.source_hash_name, name, address)
        if found is None:
            raise Refused(f"Unable to manage file: Source hash {downloads.shown(given)} holds no digest")
        return managed_file.parse_digest(found)

    def _hash_file(self, ctx: Context, given: str, saltenv: str) -> Path:
        if given.startswith(downloads.SCHEMES):
            place = downloads.cached_at(given, cache_of(ctx), saltenv)
            # A list of digests changes with what it lists: it is asked for each time.
            downloads.fetch(given, place, verify_ssl=self.verify_ssl)
            return place
        if given.startswith("salt://"):
            found = ctx.files.fetch(given.removeprefix("salt://").partition("?")[0], saltenv)
            if found is None:
                raise CommandError(f"Source hash file {given} not found in saltenv '{saltenv}'")
            return found
        return ctx.host.path(given.removeprefix("file://"))


def fetched(ctx: Context, address: str, name: str, saltenv: str, wanted: Verification) -> Path:
    """The file behind a URL, in the minion's cache, verified. Raises Refused, and CommandError when it cannot be had."""
    if not wanted.source_hash and not wanted.skip_verify:
        raise Refused(
            f"Unable to manage file: Unable to verify upstream hash of source file {downloads.shown(address)}, "
            "please set source_hash or set skip_verify to True"
        )
    digest = wanted.digest(ctx, address, name, saltenv)
    place = downloads.cached_at(address, cache_of(ctx), saltenv)
    if place.is_file() and digest is not None and managed_file.digest(place, digest[0]) == digest[1]:
        return place
    if digest is not None or not place.is_file() or wanted.skip_verify:
        downloads.fetch(address, place, verify_ssl=wanted.verify_ssl)
    if digest is not None and (found := managed_file.digest(place, digest[0])) != digest[1]:
        place.unlink(missing_ok=True)
        raise Refused(
            f"Specified {digest[0]} checksum for {name} ({digest[1]}) does not match actual checksum ({found})"
        )
    return place


def cache_of(ctx: Context) -> Path:
    """The directory of the minion's cache."""
    return Path(str(ctx.opts.get("cachedir") or "/var/cache/salt/minion"))


def _chosen(text: str, own_name: str | None, name: str, address: str) -> str | None:
    """The digest of the line that names the file; the first one where no line does."""
    listed = list(_listed(text))
    source = address.partition("?")[0].rstrip("/").rpartition("/")[2]
    for wanted in (own_name, Path(name).name, source):
        if wanted:
            ends = re.compile(rf"(?:^|[\s\\/*]){re.escape(str(wanted))}$|^{re.escape(str(wanted))}\s")
            found = next((digest for line, digest in listed if ends.search(line)), None)
            if found:
                return found
    return listed[0][1] if listed else None


def _listed(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        for found in _DIGEST.finditer(line):
            if len(found[1]) in managed_file.DIGEST_LENGTHS:
                yield line.strip(), found[1].lower()
                break
