"""Body and headers of an HTTP request: given directly, read from a file, or rendered from a template."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from statecore.host.content import managed_file
from statecore.model import tree_url
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of


@dataclass(frozen=True, slots=True)
class Body:
    """Source of the body or the headers of an HTTP request: plain data or a file, which may be rendered as a template.
    If ``file`` is set, ``data`` is ignored.
    """

    data: object
    file: str | None
    render: bool = False
    renderer: str | None = None
    values: Mapping[str, object] | None = None

    def content(self, ctx: Context) -> object:
        """Return ``data``, the bytes of ``file``, or the data that the rendered file gives. Raise CommandError for a
        missing file, SlsError for a template that cannot be rendered.
        """
        if self.file is None:
            return self.data
        data = _read(ctx, str(self.file))
        if not self.render:
            return data
        if self.values is not None and not isinstance(self.values, Mapping):
            raise InvocationError(f"template_dict is a map, not {self.values!r}")
        pipe = self.renderer or str(ctx.opts.get("renderer") or "jinja|yaml")
        text = data.decode("utf-8", "replace")
        return ctx.templates.data(text, pipe, dict(self.values or {}), saltenv=ctx.saltenv, source=str(self.file))


@dataclass(frozen=True, slots=True)
class Made:
    """Body of an HTTP request as bytes (None without a body), and the map of headers that this body needs."""

    data: bytes | None
    headers: Mapping[str, str] = field(default_factory=dict)


def body(ctx: Context, given: Body, form: tuple[str, str | None] | None = None) -> Made:
    """Return an HTTP request's body as bytes (None without a body), with the headers that it needs. A map is encoded as
    form fields.

    form
        (field name, file name): send the body as a file of a multipart form
    """
    content = given.content(ctx)
    if form is not None:
        return _multipart(_bytes("" if content is None else content), *form)
    return Made(None if content is None else _bytes(content))


def headers_of(ctx: Context, named: object, listed: object, file: Body) -> dict[str, str]:
    """Return the headers of an HTTP request: a map of header name to value. Headers of the file replace ``named`` (a
    map) or ``listed`` (lines). Raise InvocationError for a line that is not a header.
    """
    read = file.content(ctx)
    if isinstance(read, Mapping):
        named = read
    elif read is not None:
        listed = lines_of(read.decode("utf-8", "replace") if isinstance(read, bytes) else str(read))
    if named is not None and not isinstance(named, Mapping):
        raise InvocationError(f"header_dict is a map, not {named!r}")
    if isinstance(listed, str) or not isinstance(listed or (), Sequence):
        raise InvocationError(f"header_list is a list of 'Name: value', not {listed!r}")
    found = {str(name): str(value) for name, value in (named or {}).items()}
    for line in listed if isinstance(listed, Sequence) else ():
        name, colon, value = str(line).partition(":")
        if colon:
            found[name.strip()] = value.strip()
    for name, value in found.items():
        if not name or any(each in name + value for each in "\r\n\0"):
            raise InvocationError(f"the header {name!r} contains a line break, or its name is empty")
    return found


def _bytes(content: object) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, Mapping):
        return urllib.parse.urlencode(dict(content)).encode()
    return str(content).encode()


def _multipart(content: bytes, name: str, file_name: str | None) -> Made:
    boundary = os.urandom(16).hex()
    quoted = [each.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A") for each in (name, file_name or name)]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{quoted[0]}"; filename="{quoted[1]}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    data = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return Made(data, {"Content-Type": f"multipart/form-data; boundary={boundary}"})


def _read(ctx: Context, name: str) -> bytes:
    if tree_url.is_tree_url(name):
        path, saltenv = tree_url.split(name)
        fetched = ctx.files.fetch(path, saltenv or ctx.saltenv)
        data = None if fetched is None else fetched.read_bytes()
    else:
        data = managed_file.read(ctx.host.path(name), name)
    if data is None:
        raise CommandError(f"there is no file {name}")
    return data
