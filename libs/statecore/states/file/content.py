"""The bytes that ``file.managed`` wants: literal, from pillar or grains, or from a source; rendered, encoded, verified."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from statecore import downloads, managed_file
from statecore.context import Context
from statecore.errors import CommandError
from statecore.states.file.places import Refused
from statecore.states.file.remote import Verification, fetched

#: Argument that names where the content is kept -> the function that has it, and what Salt calls such a name.
_KEPT: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "contents_pillar": ("pillar.get", "Pillar", {"unmask": True}),
    "contents_grains": ("grains.get", "Grain", {}),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """How a content is made. Raises Refused."""

    saltenv: str
    template: str | None
    context: Mapping[str, Any] | None
    defaults: Mapping[str, Any] | None
    encoding: str | None = None
    encoding_errors: str = "strict"
    #: What ``file.accumulated`` gathered for the file.
    accumulator: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name, value in (("Context", self.context), ("Defaults", self.defaults)):
            if value and not isinstance(value, Mapping):
                raise Refused(f"{name} must be formed as a dict")

    def rendered(self, ctx: Context, text: str, address: str, name: str) -> str:
        """A template's text. Raises SlsError, located."""
        gathered = {} if self.accumulator is None else {"accumulator": self.accumulator}
        values = {**(self.defaults or {}), **(self.context or {}), **gathered, "name": name, "source": address}
        return ctx.templates.render(text, str(self.template), values, saltenv=self.saltenv, source=address)

    def encoded(self, text: str) -> bytes:
        """The text as it is written. Raises Refused."""
        try:
            return text.encode(self.encoding or "utf-8", self.encoding_errors)
        except (LookupError, UnicodeEncodeError) as error:
            raise Refused(f"Unable to manage file: {error}") from error


@dataclass(frozen=True, slots=True)
class Literal:
    """The arguments of ``file.managed`` that hold the content, or say where it is kept."""

    contents: Any
    contents_pillar: Any
    contents_grains: Any
    delimiter: str
    allow_empty: bool
    newline: bool

    def read(self, ctx: Context, source: Any) -> str | bytes | None:
        """The content, its lines ended in one way; bytes that are no text as they are; None when no argument gives one."""
        given = {key: getattr(self, key) for key in ("contents", *_KEPT) if getattr(self, key) is not None}
        if not given:
            return None
        if len(given) > 1:
            raise Refused("Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted")
        if source:
            raise Refused(
                "'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'"
            )
        argument, value = next(iter(given.items()))
        shown = f"'{argument}'"
        if argument in _KEPT:
            shown = f"{argument} {value}"
            value = self._kept(ctx, argument, value)
        if not value and not self.allow_empty:
            raise Refused(
                f"{shown} value would result in empty contents. Set allow_empty to True to allow the managed file to be empty."
            )
        return self._text(value)

    def _kept(self, ctx: Context, argument: str, names: Any) -> Any:
        function, word, options = _KEPT[argument]
        parts = []
        for name in names if isinstance(names, list) else [names]:
            if not isinstance(name, str | int | float):
                raise Refused(f"{argument} is a name, or a list of names, not {name!r}")
            found = ctx.call(function, name, None, delimiter=self.delimiter, **options)
            if found is None:
                raise Refused(f"{word} {name} does not exist")
            parts.append(found)
        return parts if isinstance(names, list) else parts[0]

    def _text(self, value: Any) -> str | bytes:
        if isinstance(value, bytes):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                return bytes(value)
        parts = value if isinstance(value, list | tuple) else [value]
        text = "".join(f"{line}\n" for part in parts for line in str(part).splitlines())
        return text if self.newline else text.rstrip("\n")


def wanted_bytes(
    ctx: Context,
    spec: Spec,
    literal: str | bytes | None,
    source: Any,
    name: str,
    *,
    wanted: Verification,
) -> tuple[bytes | Path, int | None]:
    """The content that the file is to have, one of a large file as its path, and the mode of its source."""
    if isinstance(literal, bytes):
        return literal, None
    if literal is not None:
        return spec.encoded(spec.rendered(ctx, literal, "", name) if spec.template else literal), None
    address, place, source_mode = find_source(ctx, source, spec.saltenv, name, wanted)
    digest = None if address.startswith(downloads.SCHEMES) else wanted.digest(ctx, address, name, spec.saltenv)
    if digest is not None and (actual := managed_file.digest(place, digest[0])) != digest[1]:
        raise Refused(
            f"Specified {digest[0]} checksum for {name} ({digest[1]}) does not match actual checksum ({actual})"
        )
    try:
        if not (spec.template or spec.encoding):
            return managed_file.source(place), source_mode
        text = place.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise Refused(f"Unable to manage file: {address} is no UTF-8 text: {error}") from error
    except OSError as error:
        raise Refused(f"Unable to manage file: {address} cannot be read: {error.strerror}") from error
    return spec.encoded(spec.rendered(ctx, text, address, name) if spec.template else text), source_mode


def find_source(
    ctx: Context, source: Any, saltenv: str, name: str = "", wanted: Verification | None = None
) -> tuple[str, Path, int | None]:
    """(address, local file, mode) of the first source that exists. Without ``wanted`` none is looked for behind http."""
    tried = []
    for entry in source if isinstance(source, list) else [source]:
        address = str(next(iter(entry)) if isinstance(entry, Mapping) else entry)
        if wanted is not None and address.startswith(downloads.SCHEMES):
            own = replace(wanted, source_hash=str(entry[address])) if isinstance(entry, Mapping) else wanted
            try:
                return address, fetched(ctx, address, name, saltenv, own), None
            except CommandError as error:
                tried.append(f"Failed to cache {downloads.shown(address)}: {error}")
                continue
        if address.startswith(("http://", "https://", "ftp://", "s3://", "swift://")):
            raise Refused(f"not supported: the source {address}; use salt://, file:// or a path of the host")
        env = address.partition("?saltenv=")[2] or saltenv
        path = address.partition("?")[0]
        if path.startswith("salt://"):
            relative = path.removeprefix("salt://")
            found = ctx.files.fetch(relative, env)
            if found is not None:
                return address, found, ctx.files.mode(relative, env)
            tried.append(f"Source file {address} not found in saltenv '{env}'")
        else:
            found = ctx.host.path(path.removeprefix("file://"))
            if found.is_file():
                return address, found, stat.S_IMODE(found.stat().st_mode)
            tried.append(f"Local file source {address} does not exist")
    if isinstance(source, list):
        raise Refused("\n".join(["Unable to manage file: none of the specified sources were found", *tried]))
    raise Refused(f"Unable to manage file: {tried[0]}")
