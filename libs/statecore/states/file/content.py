"""The bytes that ``file.managed`` wants: literal, from pillar or grains, or from a source; rendered, encoded, verified."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.context import Context
from statecore.states.file.places import Refused


@dataclass(frozen=True, slots=True)
class Spec:
    """How a content is made."""

    saltenv: str
    template: str | None
    context: Mapping[str, Any] | None
    defaults: Mapping[str, Any] | None
    encoding: str | None
    encoding_errors: str
    newline: bool


def literal_content(
    ctx: Context, contents: Any, from_pillar: Any, from_grains: Any, delimiter: str, allow_empty: bool, source: Any
) -> str | bytes | None:
    """The literal content, None when there is none of the three arguments."""
    given = {"contents": contents, "contents_pillar": from_pillar, "contents_grains": from_grains}
    named = [key for key, value in given.items() if value is not None]
    if not named:
        return None
    if len(named) > 1 or source:
        raise Refused("Only one of 'source', 'contents', 'contents_pillar' and 'contents_grains' is permitted")
    value = contents
    if named[0] != "contents":
        function = "pillar.get" if named[0] == "contents_pillar" else "grains.get"
        names = given[named[0]]
        parts = [ctx.call(function, key, None, delimiter) for key in (names if isinstance(names, list) else [names])]
        if any(part is None for part in parts):
            raise Refused(f"{named[0].removeprefix('contents_').title()} {names} does not exist")
        value = parts[0] if len(parts) == 1 else parts
    if isinstance(value, bytes):
        return value
    text = "\n".join(str(line).rstrip("\n") for line in value) if isinstance(value, list) else str(value)
    if not text and not allow_empty:
        raise Refused(
            f"{named[0]} value would result in empty contents. Set allow_empty to True to allow the managed file to be empty."
        )
    return text


def wanted_bytes(
    ctx: Context,
    spec: Spec,
    literal: str | bytes | None,
    source: Any,
    name: str,
    *,
    skip_verify: bool,
    source_hash: str,
) -> tuple[bytes, int | None]:
    """The content that the file is to have, and the mode of its source."""
    if isinstance(literal, bytes):
        return literal, None
    if literal is not None:
        text = _rendered(ctx, spec, literal, "", name) if spec.template else literal
        if spec.newline and text and not text.endswith("\n"):
            text += "\n"
        return _encoded(text, spec), None
    address, place, source_mode = find_source(ctx, source, spec.saltenv)
    data = place.read_bytes()
    if source_hash and not skip_verify:
        _verify(place, source_hash, address)
    if spec.template:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise Refused(f"Source file {address} is not UTF-8 text: byte {error.start}; templates are text") from error
        return _encoded(_rendered(ctx, spec, text, address, name), spec), source_mode
    if spec.encoding:
        return _encoded(data.decode(), spec), source_mode
    return data, source_mode


def _rendered(ctx: Context, spec: Spec, text: str, address: str, name: str) -> str:
    values = {**(spec.defaults or {}), **(spec.context or {})}
    values |= {"name": name, "source": address}
    return ctx.templates.render(text, str(spec.template), values, saltenv=spec.saltenv, source=address)


def _encoded(text: str, spec: Spec) -> bytes:
    try:
        return text.encode(spec.encoding or "utf-8", spec.encoding_errors)
    except (LookupError, UnicodeEncodeError) as error:
        raise Refused(f"the content cannot be written as {spec.encoding}: {error}") from error


def find_source(ctx: Context, source: Any, saltenv: str) -> tuple[str, Path, int | None]:
    """(address, local file, mode) of the first source that exists."""
    tried = []
    for entry in source if isinstance(source, list) else [source]:
        address = str(next(iter(entry)) if isinstance(entry, Mapping) else entry)
        if address.startswith(("http://", "https://", "ftp://", "s3://", "swift://")):
            raise Refused(f"not supported: the source {address}; use salt://, file:// or a path of the host")
        env = address.partition("?saltenv=")[2] or saltenv
        path = address.partition("?")[0]
        if path.startswith("salt://"):
            relative = path.removeprefix("salt://")
            found = ctx.files.fetch(relative, env)
            if found is not None:
                return address, found, ctx.files.mode(relative, env)
        else:
            found = ctx.host.path(path.removeprefix("file://"))
            if found.is_file():
                return address, found, stat.S_IMODE(found.stat().st_mode)
        tried.append(address)
    if isinstance(source, list):
        raise Refused(f"none of the specified sources were found: {', '.join(tried)} (in saltenv '{saltenv}')")
    raise Refused(f"Source file {tried[0]} not found in saltenv '{saltenv}'")


def _verify(place: Path, source_hash: str, address: str) -> None:
    algorithm, _, digest = source_hash.partition("=") if "=" in source_hash else ("", "", source_hash)
    lengths = {32: "md5", 40: "sha1", 56: "sha224", 64: "sha256", 96: "sha384", 128: "sha512"}
    algorithm = algorithm or lengths.get(len(digest), "")
    if not algorithm:
        raise Refused(f"source_hash '{source_hash}' is no digest; write algorithm=hexadecimal")
    found = _digest(place, algorithm)
    if found.lower() != digest.lower():
        raise Refused(
            f"Specified {algorithm} checksum for {address} ({digest}) does not match actual checksum ({found})"
        )


def _digest(place: Path, algorithm: str) -> str:
    try:
        return hashlib.new(algorithm, place.read_bytes()).hexdigest()
    except ValueError as error:
        raise Refused(f"there is no digest '{algorithm}'") from error
