"""PEM as text: found in files, brought into form, written."""

from __future__ import annotations

import re

from statecore.builtin.modules.x509.host_files import put
from statecore.builtin.modules.x509.inspection import _matching
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.system.certificates import references

_ENTRY = (
    r"(-----BEGIN {kind}-----)\s+(?:(Proc-Type: 4,ENCRYPTED)\s*)?"
    r"(?:(DEK-Info: (?:DES-[3A-Z\-]+,[0-9A-F]{{16}}|[0-9A-Z\-]+,[0-9A-F]{{32}}))\s*)?(.+?)\s+(-----END {kind}-----)"
)


def get_pem_entry(ctx: Context, text: str, pem_type: str | None = None) -> str:
    """The first entry (of this type) of a text or file, its lines as they should be.

    CLI Example:

        salt '*' x509.get_pem_entry "-----BEGIN CERTIFICATE REQUEST-----MIICyzCC Ar8CAQI...-----END CERTIFICATE REQUEST-----"
    """
    data = references.content(ctx.host, text).decode("utf-8", "replace").replace("\\n", "\n")
    if len(data.splitlines()) == 1:
        data = re.sub(r"(-----BEGIN [^-]*-----)\s*(.*?)\s*(-----END [^-]*-----)", r"\1\n\2\n\3", data)
    kind = r"[0-9A-Z ]+" if pem_type is None else pem_type
    found = re.search(_ENTRY.format(kind=kind), data, re.DOTALL)
    if found is None:
        # Not what it is: it may be a key.
        wanted = f"PEM does not contain a single entry of type {pem_type}" if pem_type else "PEM text not valid"
        raise InvocationError(f"{wanted} ({len(data)} characters)")
    head, kept, key_info, *_, body, foot = found.groups()
    packed = "".join(body.split())
    lines = [head, *([kept] if kept else []), *([key_info, ""] if key_info else [])]
    return "\n".join([*lines, *(packed[at : at + 64] for at in range(0, len(packed), 64)), foot, ""])


def get_pem_entries(ctx: Context, glob_path: str) -> dict[str, str]:
    """Path -> entry, of those files of the host whose paths match and that hold one."""
    found = {}
    for name in _matching(ctx, glob_path):
        try:
            found[name] = get_pem_entry(ctx, name)
        except InvocationError:
            continue
    return found


def write_pem(ctx: Context, text: str, path: str, overwrite: bool = True, pem_type: str | None = None) -> str:
    """Writes an entry to a file of the host. Not to ``overwrite`` keeps the key and DH parameters that are in it.

    CLI Example:

        salt '*' x509.write_pem "-----BEGIN CERTIFICATE-----MIIGMzCCBBugA..." path=/etc/pki/mycert.crt
    """
    before, behind = "", ""
    if pem_type == "CERTIFICATE" and not overwrite and ctx.host.path(path).is_file():
        before, behind = (_entry(ctx, path, kind) for kind in ("(?:RSA )?PRIVATE KEY", "DH PARAMETERS"))
    put(ctx, path, f"{before}{get_pem_entry(ctx, text, pem_type)}{behind}".encode())
    return f"PEM written to {path}"


def _entry(ctx: Context, path: str, kind: str) -> str:
    try:
        return get_pem_entry(ctx, path, kind)
    except InvocationError:
        return ""
