"""Sources of files for states: the state tree, the host, and http(s) servers; with checks of digests and signatures.

Salt: salt/modules/file.py, source_list, get_source_sum, extract_hash, _check_sig
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from statecore.host.content import digests
from statecore.model import tree_url
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError, NotAvailable
from statecore.model.text_lines import lines_of, text_of
from statecore.sources import downloads, openpgp_signatures

#: A hexadecimal digest in a line of a hash file.
_DIGEST = re.compile(r"(?<![a-z0-9])([a-f0-9]{32,128})(?![a-z0-9])", re.IGNORECASE)

#: URL schemes that Salt supports and statecore does not.
_FOREIGN = ("ftp://", "s3://", "swift://")


class WrongDigest(CommandError):
    """Error: the digest of a source file differs from the digest that the state expects."""

    def __init__(self, name: str, algorithm: str, wanted: str, actual: str) -> None:
        super().__init__(
            f"Specified {algorithm} checksum for {name} ({wanted}) does not match actual checksum ({actual})"
        )
        self.wanted = wanted


class Missing(CommandError):
    """Error: the source of a state names a file that neither the state tree nor the host has."""


class Unverifiable(CommandError):
    """Error: the source of a state is a URL, and the state has neither ``source_hash`` nor ``skip_verify``."""


class FileSource(NamedTuple):
    """A source file of a state that exists: its address (URL or path), its path for this process, and its permission
    bits.
    """

    #: The source as the state names it.
    address: str
    #: Path of the file for this process.
    path: Path
    #: Permission bits; None when the source has none (http).
    mode: int | None


@dataclass(frozen=True, slots=True)
class Signers:
    """The signers whose OpenPGP signature a source file needs. Without names, a valid signature by any known key is
    enough.
    """

    any_of: Sequence[str] = ()
    all_of: Sequence[str] = ()
    #: Host's paths of a gpg keyring file and of gpg's home directory.
    keyring: str | None = None
    gnupghome: str | None = None
    #: Execution module whose function ``verify`` checks signatures.
    backend: str = "gpg"

    @classmethod
    def of(
        cls,
        signed_by_any: object = None,
        signed_by_all: object = None,
        keyring: str | None = None,
        gnupghome: str | None = None,
        sig_backend: str = "gpg",
    ) -> Signers:
        """Return the required signers that the arguments ``signed_by_any``, ``signed_by_all``, ``keyring`` and
        ``gnupghome`` of a state describe.
        """
        return cls(_texts(signed_by_any), _texts(signed_by_all), keyring, gnupghome, sig_backend)

    def check(self, ctx: Context, file: Path, signature: object, saltenv: str, *, verify_ssl: bool = True) -> None:
        """Raise CommandError when the file does not have a valid signature of the required signers.

        signature
            True: the file contains its signature; else the source of a detached one: salt://, file://, http(s):// or a path
        """
        detached = [] if signature is True else list(_texts(signature))
        if len(detached) > 1 and self.backend == "gpg":
            raise CommandError("not supported: several detached signatures; gpg takes one file, which may hold several")
        places = [self._fetched(ctx, each, saltenv, verify_ssl) for each in detached]
        if self.backend == "gpg":
            seen = openpgp_signatures.signatures_of(
                file,
                places[0] if places else None,
                home=self._home(ctx),
                keyring=None if self.keyring is None else ctx.host.path(str(self.keyring)),
            )
            verdict = openpgp_signatures.verdict_of(seen, self.any_of, self.all_of)
        else:
            result = self._asked(
                ctx,
                filename=str(file),
                signature=None if signature is True else [str(each) for each in places],
                keyring=self.keyring,
                gnupghome=self.gnupghome,
                signed_by_any=list(self.any_of) or None,
                signed_by_all=list(self.all_of) or None,
            )
            verdict = openpgp_signatures.SignatureVerdict(result.get("res") is True, str(result.get("message") or ""))
        if not verdict.good:
            for address in detached:
                forget(ctx, address, saltenv)
            raise CommandError(f"The file's signature could not be verified: {verdict.message}")

    def _asked(self, ctx: Context, **given: object) -> Mapping[str, object]:
        try:
            result: Mapping[str, object] = ctx.call(f"{self.backend}.verify", **given)
        except NotAvailable as error:
            raise CommandError(f"Signature verification requires the {self.backend} module: {error}") from error
        return result

    def _fetched(self, ctx: Context, address: str, saltenv: str, verify_ssl: bool) -> Path:
        try:
            return path_of(ctx, address, saltenv, verify_ssl=verify_ssl)
        except (CommandError, HostError) as error:
            raise CommandError(f"Detached signature file {downloads.shown(address)} not found: {error}") from error

    def _home(self, ctx: Context) -> Path | None:
        if self.gnupghome is not None:
            return ctx.host.path(str(self.gnupghome))
        return ctx.host.path("/root/.gnupg") if ctx.host.mounted and self.keyring is None else None


@dataclass(frozen=True, slots=True)
class FileVerification:
    """The digest and the signature that a source file of a state must have."""

    #: A digest, ``algorithm=digest``, or the source of a hash file: http(s)://, salt://, file:// or a path of the host.
    source_hash: str = ""
    #: Name to search in the hash file; None: the names of the target and of the source.
    source_hash_name: str | None = None
    skip_verify: bool = False
    verify_ssl: bool = True
    #: True: ask the server each time whether the file has changed, by its ETag.
    use_etag: bool = False
    #: Signature of the hash file: True, or the source of a detached signature.
    hash_signature: object = None
    signers: Signers = field(default_factory=Signers)

    def digest(self, ctx: Context, address: str, name: str, saltenv: str) -> tuple[str, str] | None:
        """Return (hash algorithm, hexadecimal digest) that the source ``address`` must have; None when the state
        requires none.

        Raise CommandError if the argument ``source_hash`` or the hash file that it names is unusable, HostError if the
        path of the hash file cannot be resolved.
        """
        if not self.source_hash or self.skip_verify:
            return None
        given = str(self.source_hash).strip()
        try:
            if not given.startswith(("/", "salt://", "file://", *downloads.SCHEMES)):
                if self.hash_signature:
                    raise CommandError(f"source_hash_sig: '{given}' is no file that could be signed")
                return digests.parse_digest(given)
            # A hash file changes with the files that it lists, so it is fetched each time.
            place = path_of(ctx, given, saltenv, verify_ssl=self.verify_ssl)
            if self.hash_signature:
                self._check_signature(ctx, given, place, saltenv)
            text = text_of(place)
        except (InvocationError, OSError) as error:
            raise CommandError(str(error)) from error
        found = chosen_digest(text, self.source_hash_name, name, address)
        if found is None:
            raise CommandError(f"Source hash {downloads.shown(given)} holds no digest")
        return digests.parse_digest(found)

    def _check_signature(self, ctx: Context, given: str, place: Path, saltenv: str) -> None:
        try:
            self.signers.check(ctx, place, self.hash_signature, saltenv, verify_ssl=self.verify_ssl)
        except CommandError as error:
            forget(ctx, given, saltenv)
            raise CommandError(f"{downloads.shown(given)}: {error}") from error

    def is_met(self, ctx: Context, source: object, content: bytes | Path) -> bool:
        """Return whether a file has the digest that is required of its one http(s) source, so that no download is needed.

        Hash files are not read: they change with the files that they list.
        """
        given = str(self.source_hash).strip()
        if not isinstance(source, str) or not source.startswith(downloads.SCHEMES) or self.use_etag:
            return False
        if given.startswith(("/", "salt://", "file://", *downloads.SCHEMES)):
            return False
        wanted = self.digest(ctx, source, "", "")
        if wanted is None:
            return False
        if isinstance(content, Path):
            return digests.digest_of(content, wanted[0]) == wanted[1]
        return hashlib.new(wanted[0], content).hexdigest() == wanted[1]

    def check(self, found: FileSource, digest: tuple[str, str] | None, name: str) -> None:
        """Raise WrongDigest when the source file ``found`` of the state ``name`` does not have the required ``digest``."""
        if digest is not None and (actual := digests.digest_of(found.path, digest[0])) != digest[1]:
            raise WrongDigest(name, *digest, actual)


def path_of(ctx: Context, address: str, saltenv: str, *, verify_ssl: bool = True) -> Path:
    """Return the path, for this process, of the file at ``address``: a ``salt://`` URL, a path of the host, or another
    URL, which is downloaded each time.

    Raise CommandError if there is no such file or the download fails, HostError if a path of the host cannot be
    resolved.
    """
    if address.startswith(downloads.SCHEMES):
        place = downloads.cached_at(address, cache_of(ctx), saltenv)
        downloads.fetch(address, place, verify_ssl=verify_ssl)
        return place
    found = _local_source(ctx, address, saltenv)
    if isinstance(found, str):
        raise CommandError(found)
    return found.path


def forget(ctx: Context, address: str, saltenv: str) -> None:
    """Remove the copy of a source from the minion's cache, because its signature was refused.

    Files of the host, and of a state tree on this machine, are no copies and stay.
    """
    if address.startswith(downloads.SCHEMES):
        downloads.remove(downloads.cached_at(address, cache_of(ctx), saltenv))
    elif tree_url.is_tree_url(address):
        relative, named = tree_url.split(address)
        found = ctx.files.fetch(relative, named or saltenv)
        if found is not None and found.is_relative_to(cache_of(ctx) / "files"):
            found.unlink(missing_ok=True)


def fetch_url(ctx: Context, address: str, name: str, saltenv: str, wanted: FileVerification) -> Path:
    """Download the file of a URL into the minion's cache, verify its digest, and return its path. A cached file with
    the required digest is not downloaded again.

    Raise CommandError if the download fails, WrongDigest if the file has another digest, Unverifiable if the state
    requires no digest.
    """
    if not (wanted.source_hash or wanted.skip_verify or wanted.use_etag):
        raise Unverifiable(
            f"Unable to verify upstream hash of source file {downloads.shown(address)}, "
            "please set source_hash or set skip_verify to True"
        )
    digest = wanted.digest(ctx, address, name, saltenv)
    place = downloads.cached_at(address, cache_of(ctx), saltenv)
    kept = place.is_file() and not wanted.use_etag
    if kept and digest is not None and digests.digest_of(place, digest[0]) == digest[1]:
        return place
    downloads.fetch(address, place, verify_ssl=wanted.verify_ssl, use_etag=wanted.use_etag)
    try:
        wanted.check(FileSource(address, place, None), digest, name)
    except WrongDigest:
        downloads.remove(place)
        raise
    return place


def find(ctx: Context, source: object, saltenv: str, name: str, wanted: FileVerification) -> FileSource:
    """Return the FileSource (address, local path, mode) of the first available file among a state's ``source`` argument.

    ``source`` is one source or a list of sources. An item of the list may be a map of the source to its own source_hash. Only the
    first available source is verified: a wrong digest does not make the search go on.

    Raises CommandError with the reason for each source if none is available; WrongDigest and Unverifiable for the first available
    source.
    """
    tried = []
    for entry in source if isinstance(source, list) else [source]:
        address = str(next(iter(entry)) if isinstance(entry, Mapping) else entry)
        own = wanted
        if isinstance(entry, Mapping) and entry[address]:
            own = replace(wanted, source_hash=str(entry[address]))
        if address.startswith(downloads.SCHEMES):
            try:
                return FileSource(address, fetch_url(ctx, address, name, saltenv, own), None)
            except (WrongDigest, Unverifiable):
                raise
            except CommandError as error:
                tried.append(f"Failed to cache {downloads.shown(address)}: {error}")
                continue
        found = _local_source(ctx, address, saltenv)
        if isinstance(found, FileSource):
            own.check(found, own.digest(ctx, address, name, saltenv), name)
            return found
        tried.append(found)
    if isinstance(source, list):
        raise CommandError("\n".join(["none of the specified sources were found", *tried]))
    raise CommandError(tried[0]) if tried[0].startswith("Failed to cache ") else Missing(tried[0])


def cache_of(ctx: Context) -> Path:
    """Return the minion's cache directory (option ``cachedir``)."""
    return Path(str(ctx.opts.get("cachedir") or "/var/cache/salt/minion"))


def _local_source(ctx: Context, address: str, saltenv: str) -> FileSource | str:
    """Return the source file of the state tree or of the host, or a sentence with the reason why it does not exist.
    Raises CommandError for unsupported URL schemes.
    """
    if address.startswith(_FOREIGN):
        raise CommandError(
            f"not supported: the source {address}; use salt://, http(s)://, file:// or a path of the host"
        )
    if tree_url.is_tree_url(address):
        relative, named = tree_url.split(address)
        env = named or saltenv
        found = ctx.files.fetch(relative, env)
        if found is not None:
            return FileSource(address, found, ctx.files.mode(relative, env))
        return f"Source file {address} not found in saltenv '{env}'"
    place = ctx.host.path(address.removeprefix("file://"))
    if place.is_file():
        return FileSource(address, place, stat.S_IMODE(place.stat().st_mode))
    return f"Local file source {address} does not exist"


def _texts(given: object) -> tuple[str, ...]:
    """Return the items of a list as texts in a tuple. A single text becomes a tuple of one; None an empty tuple."""
    return tuple(str(each) for each in (given if isinstance(given, list | tuple) else [given]) if each)


def chosen_digest(text: str, own_name: str | None, name: str, address: str, length: int = 0) -> str | None:
    """Return the digest for one file from the text of a hash file: the digest in the line that names the file, else the
    first digest; None if the text has none.

    ``length``: only digests of this number of characters; 0: of any number.
    """
    listed = [row for row in _listed(text) if not length or len(row[1]) == length]
    source = address.partition("?")[0].rstrip("/").rpartition("/")[2]
    for wanted in (own_name, Path(name).name, source):
        if wanted:
            ends = re.compile(rf"(?:^|[\s\\/*]){re.escape(str(wanted))}$|^{re.escape(str(wanted))}\s")
            found = next((digest for line, digest in listed if ends.search(line)), None)
            if found:
                return found
    return listed[0][1] if listed else None


def _listed(text: str) -> Iterator[tuple[str, str]]:
    for line in lines_of(text):
        for found in _DIGEST.finditer(line):
            if len(found[1]) in digests.DIGEST_LENGTHS:
                yield line.strip(), found[1].lower()
                break
