"""Signing keys from OpenPGP key servers (HKP), and personal package archives (PPA) of Launchpad. Helpers of ``pkg``."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.hostfiles import openpgp_keys
from statecore.system.packages import package_requests

log = logging.getLogger(__name__)

#: Operating systems whose releases Launchpad's archives serve (grain ``os``).
PPA_SYSTEMS = frozenset({"Ubuntu", "Mint", "Linux Mint", "neon"})

#: Server of the keys of Launchpad's archives.
UBUNTU = "https://keyserver.ubuntu.com"

_LAUNCHPAD = "https://api.launchpad.net/1.0"

#: Scheme of a key server's address -> scheme of its requests, and its port without one in the address.
_HKP = {"hkp": ("http", ":11371"), "hkps": ("https", ""), "http": ("http", ""), "https": ("https", "")}

_KEY_ID = re.compile(r"[0-9A-F]{8,64}")

#: Digits of a key ID that anybody can make a second key for.
_SHORT = 8


def key_ids(given: object) -> tuple[str, ...]:
    """Return the argument ``keyid`` (text, number or a list of these) as a tuple of OpenPGP key IDs in capital
    hexadecimal digits.

    Raises InvocationError for anything else.
    """
    listed = given if isinstance(given, list) else [given]
    found = []
    for each in listed:
        # YAML reads 0x1234ABCD as a number.
        text = f"{each:08X}" if isinstance(each, int) else re.sub(r"\s", "", str(each)).upper().removeprefix("0X")
        if not _KEY_ID.fullmatch(text):
            raise InvocationError(f"keyid: {each!r} is not the ID of an OpenPGP key: at least 8 hexadecimal digits")
        found.append(text)
    return tuple(found)


def fetched(ctx: Context, server: str, wanted: Sequence[str]) -> bytes:
    """Return the OpenPGP keys with the IDs ``wanted`` from a key server, in binary form. Raises CommandError if the
    server does not have one of them, or sends another key.

    Each key's fingerprint is compared with its ID, so the server need not be trusted, unless the ID has only 8 digits.
    """
    return b"".join(_fetched(ctx, server, each) for each in wanted)


def _fetched(ctx: Context, server: str, key_id: str) -> bytes:
    failed = f"Error: key retrieval failed: {key_id} from {server}"
    try:
        data = openpgp_keys.dearmoured(package_requests.fetched(ctx, lookup_url(server, key_id)).read_bytes())
        names = openpgp_keys.fingerprints(data)
    except (CommandError, ValueError) as error:
        raise CommandError(f"{failed}: {error}") from error
    if not any(openpgp_keys.belongs(key_id, each) for each in names):
        raise CommandError(f"{failed}: the server sent another key: {', '.join(names) or 'none'}")
    if len(key_id) == _SHORT:
        log.warning(
            "keyid %s is so short that others can make a key for it; write the fingerprint %s", key_id, names[0]
        )
    return data


def lookup_url(server: str, key_id: str) -> str:
    """Return the URL of an OpenPGP key on a key server. ``server`` is a host name or a URL (hkp, hkps, http, https).

    Raises InvocationError for another scheme.
    """
    parts = urlsplit(server if "://" in server else f"hkp://{server}")
    if parts.scheme not in _HKP or not parts.hostname:
        raise InvocationError(f"keyserver: {server} is neither a host nor a URL of {', '.join(_HKP)}")
    scheme, port = _HKP[parts.scheme]
    host = parts.netloc if parts.port else f"{parts.netloc}{port}"
    return f"{scheme}://{host}{parts.path.rstrip('/')}/pks/lookup?op=get&options=mr&search=0x{key_id}"


@dataclass(frozen=True, slots=True)
class Ppa:
    """A personal package archive of Launchpad: its owner and name."""

    owner: str
    name: str

    @classmethod
    def of(cls, ctx: Context, text: str) -> Ppa:
        """Return the Ppa (archive of Launchpad) that ``ppa:OWNER/NAME`` names. Raises InvocationError for another
        form, or on an operating system that such archives do not serve.
        """
        if ctx.grains.get("os") not in PPA_SYSTEMS:
            systems = ", ".join(sorted(PPA_SYSTEMS))
            raise InvocationError(
                f'cannot parse "ppa:" style repo definitions: {text} on {ctx.grains.get("os")};'
                f" archives of Launchpad serve {systems}"
            )
        owner, _, name = text.removeprefix("ppa:").removeprefix("~").partition("/")
        if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", owner) or not re.fullmatch(
            r"[A-Za-z0-9][A-Za-z0-9.+-]*", name or "ppa"
        ):
            raise InvocationError(
                'Unable to get PPA info from argument. Expected format "<PPA_OWNER>/<PPA_NAME>" (e.g. saltstack/salt) not'
                f" found.  Received '{text.removeprefix('ppa:')}' instead."
            )
        return cls(owner, name or "ppa")

    def addresses(self) -> list[str]:
        """Return the URIs by which APT sources may name this archive of Launchpad, the current one first."""
        names = ("ppa.launchpadcontent.net", "ppa.launchpad.net")
        hosts = [f"{scheme}://{name}" for name in names for scheme in ("https", "http")]
        return [f"{host}/{self.owner}/{self.name}/ubuntu" for host in hosts]

    def private_address(self, login: str) -> str:
        """Return the URI of this archive of Launchpad as a private one, with the login ``user:password`` in it."""
        return f"https://{login}@private-ppa.launchpadcontent.net/{self.owner}/{self.name}/ubuntu"

    def file(self, release: str) -> str:
        """Return the path of the ``.list`` file for this archive of Launchpad, named as by add-apt-repository."""
        return f"/etc/apt/sources.list.d/{self.stem}-{release}.list"

    @property
    def stem(self) -> str:
        """Beginning of the names of this archive's files, such as ``OWNER-ubuntu-NAME``."""
        return re.sub(r"[^A-Za-z0-9_-]", "_", f"{self.owner}-ubuntu-{self.name}")

    def fingerprint(self, ctx: Context) -> str:
        """Ask Launchpad for the fingerprint of the archive's signing key. Raises CommandError if Launchpad does not
        know the archive, or returns no fingerprint.
        """
        url = f"{_LAUNCHPAD}/~{quote(self.owner)}/+archive/ubuntu/{quote(self.name)}"
        try:
            told = json.loads(package_requests.fetched(ctx, url).read_bytes())
        except (CommandError, ValueError) as error:
            raise CommandError(f"Launchpad does not know about {self.owner}/{self.name}: {error}") from error
        found = told.get("signing_key_fingerprint") if isinstance(told, dict) else None
        if not found:
            raise CommandError(
                f"Launchpad knows about {self.owner}/{self.name} but did not return a fingerprint. Please set keyid manually"
            )
        return str(found)
