"""Functions of ``x509`` for PEM text: find it in files, format it and write it."""

from __future__ import annotations

import re

from statecore.builtin.modules.x509.inspection import _matching
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.certificates import references
from statecore.system.certificates.host_files import write_file

_ENTRY = (
    r"(-----BEGIN {kind}-----)\s+(?:(Proc-Type: 4,ENCRYPTED)\s*)?"
    r"(?:(DEK-Info: (?:DES-[3A-Z\-]+,[0-9A-F]{{16}}|[0-9A-Z\-]+,[0-9A-F]{{32}}))\s*)?(.+?)\s+(-----END {kind}-----)"
)


def get_pem_entry(ctx: Context, text: str, pem_type: str | None = None) -> str:
    """Return the first PEM entry (of the type ``pem_type``) of a text or file, with lines of 64 characters. Raise
    InvocationError if there is none.

    CLI Example:

        salt '*' x509.get_pem_entry "-----BEGIN CERTIFICATE REQUEST-----MIICyzCC Ar8CAQI...-----END CERTIFICATE REQUEST-----"
    """
    data = references.content(ctx.host, text).decode("utf-8", "replace").replace("\\n", "\n")
    if len(lines_of(data)) == 1:
        data = re.sub(r"(-----BEGIN [^-]*-----)\s*(.*?)\s*(-----END [^-]*-----)", r"\1\n\2\n\3", data)
    kind = r"[0-9A-Z ]+" if pem_type is None else pem_type
    found = re.search(_ENTRY.format(kind=kind), data, re.DOTALL)
    if found is None:
        # The text itself is not shown: it may be a key.
        wanted = f"PEM does not contain a single entry of type {pem_type}" if pem_type else "PEM text not valid"
        raise InvocationError(f"{wanted} ({len(data)} characters)")
    head, kept, key_info, *_, body, foot = found.groups()
    packed = "".join(body.split())
    lines = [head, *([kept] if kept else []), *([key_info, ""] if key_info else [])]
    return "\n".join([*lines, *(packed[at : at + 64] for at in range(0, len(packed), 64)), foot, ""])


def get_pem_entries(ctx: Context, glob_path: str) -> dict[str, str]:
    """Return a map of path to first PEM entry for each file of the host that matches a glob. Files without a PEM entry
    are left out.
    """
    found = {}
    for name in _matching(ctx, glob_path):
        try:
            found[name] = get_pem_entry(ctx, name)
        except InvocationError:
            continue
    return found


def write_pem(ctx: Context, text: str, path: str, overwrite: bool = True, pem_type: str | None = None) -> str:
    """Write a PEM entry to a file of the host. Return the sentence "PEM written to PATH". With ``overwrite=False`` a
    private key and DH parameters in the file are kept.

    CLI Example:

        salt '*' x509.write_pem "-----BEGIN CERTIFICATE-----MIIGMzCCBBugA..." path=/etc/pki/mycert.crt
    """
    before, behind = "", ""
    if pem_type == "CERTIFICATE" and not overwrite and ctx.host.path(path).is_file():
        before, behind = (_entry(ctx, path, kind) for kind in ("(?:RSA )?PRIVATE KEY", "DH PARAMETERS"))
    write_file(ctx, path, f"{before}{get_pem_entry(ctx, text, pem_type)}{behind}".encode())
    return f"PEM written to {path}"


def _entry(ctx: Context, path: str, kind: str) -> str:
    try:
        return get_pem_entry(ctx, path, kind)
    except InvocationError:
        return ""
