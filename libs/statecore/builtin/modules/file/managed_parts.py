"""Functions of ``file`` that make and compare managed files, for users' states: the steps of the state ``file.managed``.

A typical user's state calls ``get_managed``, then ``manage_file`` with its results; in test mode ``check_managed``.
``source_sum`` is a map with ``hash_type`` and ``hsum``. Files that ``get_managed`` renders or downloads are temporary files of
the host (``/tmp/__salt.tmp.*``), which ``manage_file`` removes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.host.content import diffs, digests, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.sources import downloads, file_source
from statecore.sources.file_source import FileVerification, Signers

#: Beginning of the names of temporary files; Salt's own.
_TEMPORARY = "/tmp/__salt.tmp."

_IGNORED = ("ignore_ordering", "ignore_whitespace", "ignore_comment_characters")

_KEPT = ("user", "group", "mode", "attrs", "makedirs", "dir_mode", "follow_symlinks", "show_changes", "encoding")


def source_list(ctx: Context, source: object, source_hash: object, saltenv: str) -> list[object]:
    """Return [source, source_hash] of the first available file of a list of sources; of a single source, the two
    arguments unchanged. Raise CommandError if none is available.

    CLI Example:

        salt '*' file.source_list salt://http/httpd.conf '{hash_type: md5, hsum: <md5sum>}' base
    """
    if not isinstance(source, list):
        return [source, source_hash]
    for entry in source:
        address = str(next(iter(entry)) if isinstance(entry, Mapping) else entry)
        own = (entry[address] if isinstance(entry, Mapping) else None) or source_hash
        try:
            file_source.find(ctx, address, saltenv, address, FileVerification("", skip_verify=True))
        except CommandError:
            continue
        return [address, own]
    raise CommandError("none of the specified sources were found")


def extract_hash(
    ctx: Context,
    hash_fn: str,
    hash_type: str = "sha256",
    file_name: str = "",
    source: str = "",
    source_hash_name: str | None = None,
) -> dict[str, str] | None:
    """Return the digest that a file of digests of the host has for a file, as a map with ``hsum`` and ``hash_type``.

    The line is the first that names ``source_hash_name``, else ``file_name``, else ``source``; else the first with a
    digest. Return None if there is no digest.

    CLI Example:

        salt '*' file.extract_hash /srv/app.sha256 sha256 /srv/app.tar.gz
    """
    text = ctx.host.path(hash_fn).read_text("utf-8", "replace")
    length = digests.length_of(hash_type)
    found = file_source.chosen_digest(text, source_hash_name, file_name, source, length)
    return None if found is None else {"hsum": found, "hash_type": digests.parse_digest(found)[0]}


def get_source_sum(
    ctx: Context,
    file_name: str = "",
    source: str = "",
    source_hash: object = None,
    source_hash_name: str | None = None,
    saltenv: str = "base",
    verify_ssl: bool = True,
    source_hash_sig: object = None,
    signed_by_any: object = None,
    signed_by_all: object = None,
    keyring: str | None = None,
    gnupghome: str | None = None,
    sig_backend: str = "gpg",
) -> dict[str, str]:
    """Return the digest that ``source_hash`` gives for a file, as a map with ``hsum`` and ``hash_type``. Raise
    CommandError if it gives none.

    source_hash
        a digest, ``type=digest``, or a file of digests: a path of the host or a URL
    source_hash_name
        name of the file in the file of digests
    source_hash_sig
        signature of the file of digests: True, or the source of a detached one; ``signed_by_any``, ``signed_by_all``,
        ``keyring``, ``gnupghome`` and ``sig_backend`` say whose, as of ``file.managed``

    CLI Example:

        salt '*' file.get_source_sum /tmp/foo.tar.gz source=http://host/foo.tar.gz source_hash=sha256=<digest>
    """
    wanted = FileVerification(
        str(source_hash or ""),
        source_hash_name=source_hash_name,
        verify_ssl=verify_ssl,
        hash_signature=source_hash_sig,
        signers=Signers.of(signed_by_any, signed_by_all, keyring, gnupghome, sig_backend),
    )
    found = wanted.digest(ctx, source, file_name, saltenv)
    if found is None:
        raise CommandError(
            f"Source hash {source_hash} format is invalid: write a digest, type=digest, or the path or URL of a file of digests"
        )
    return {"hash_type": found[0], "hsum": found[1].lower()}


def apply_template_on_contents(
    ctx: Context, contents: str, template: str, context: Mapping[str, object] | None, defaults: object, saltenv: str
) -> object:
    """Return the text that a renderer such as ``jinja`` makes of ``contents``.

    context, defaults
        variables of the template; the first has precedence

    CLI Example:

        salt '*' file.apply_template_on_contents contents='{{ x }}' template=jinja context="{x: 1}" defaults="{}" saltenv=base
    """
    given = [each for each in (defaults, context) if isinstance(each, Mapping)]
    variables = {name: value for each in given for name, value in each.items()}
    return ctx.templates.render(str(contents), template, variables, saltenv=saltenv)


def get_managed(
    ctx: Context,
    name: str,
    template: str | None,
    source: str | None,
    source_hash: object,
    source_hash_name: str | None,
    user: object,
    group: object,
    mode: object,
    attrs: object,
    saltenv: str,
    context: Mapping[str, object] | None,
    defaults: Mapping[str, object] | None,
    skip_verify: bool = False,
    verify_ssl: bool = True,
    use_etag: bool = False,
    source_hash_sig: object = None,
    signed_by_any: object = None,
    signed_by_all: object = None,
    keyring: str | None = None,
    gnupghome: str | None = None,
    sig_backend: str = "gpg",
    **kwargs: object,
) -> list[object]:
    """Return [path of the source on the host, source_sum, error] of a managed file. The path is "" for a file of the
    state tree that is no template; the error is "" without one.

    source_hash_sig
        signature of the file of digests: True, or the source of a detached one; ``signed_by_any``, ``signed_by_all``,
        ``keyring``, ``gnupghome`` and ``sig_backend`` say whose, as of ``file.managed``

    CLI Example:

        salt '*' file.get_managed /etc/motd jinja salt://motd '' None root root '755' None base None None
    """
    if not source:
        return ["", {}, ""]
    wanted = FileVerification(
        str(source_hash or ""),
        source_hash_name=source_hash_name,
        skip_verify=skip_verify,
        verify_ssl=verify_ssl,
        use_etag=use_etag,
        hash_signature=source_hash_sig,
        signers=Signers.of(signed_by_any, signed_by_all, keyring, gnupghome, sig_backend),
    )
    try:
        found = file_source.find(ctx, source, saltenv, name, wanted)
    except CommandError as error:
        return ["", {}, str(error)]
    if template:
        variables = {"name": name, "source": source, "user": user, "group": group, "mode": mode, "attrs": attrs}
        variables |= {**(defaults or {}), **(context or {})}
        try:
            text = ctx.templates.render(
                found.path.read_text("utf-8"), template, variables, saltenv=saltenv, source=str(source)
            )
        except Exception as error:  # noqa: BLE001 - any error of a template is the answer, as in Salt
            return ["", {}, str(error)]
        place = _temporary(ctx, text.encode())
        return [place, {"hash_type": "sha256", "hsum": digests.digest_of(ctx.host.path(place), "sha256")}, ""]
    kind = (wanted.digest(ctx, source, name, saltenv) or ("sha256", ""))[0]
    summary = {"hash_type": kind, "hsum": digests.digest_of(found.path, kind)}
    if source.startswith("salt://"):
        return ["", summary, ""]
    if source.startswith(downloads.SCHEMES):
        return [_temporary(ctx, managed_file.source(found.path)), summary, ""]
    return [source.removeprefix("file://"), summary, ""]


def check_file_meta(
    ctx: Context,
    name: str,
    sfn: str,
    source: str | None,
    source_sum: Mapping[str, str] | None,
    user: object,
    group: object,
    mode: object,
    attrs: object,
    saltenv: str,
    contents: str | bytes | None = None,
    seuser: str | None = None,
    serole: str | None = None,
    setype: str | None = None,
    serange: str | None = None,
    verify_ssl: bool = True,
    follow_symlinks: bool = False,
    new_file_diff: bool = False,
    **ignored: object,
) -> dict[str, object]:
    """Return the changes that a managed file needs: a map with ``newfile``, or with ``diff``, ``user``, ``group``, ``mode``,
    ``attrs`` and ``selinux`` where they differ.

    CLI Example:

        salt '*' file.check_file_meta /etc/motd '' salt://motd '{hash_type: md5, hsum: <md5sum>}' root root 755 None base
    """
    _refuse(ignored)
    place = ctx.host.path(name, follow=follow_symlinks)
    if not os.path.lexists(place) if not ctx.host.mounted else not (place.exists() or place.is_symlink()):
        if not new_file_diff:
            return {"newfile": name}
        old: bytes | Path | None = b""
    else:
        old = managed_file.source(place) if place.is_file() else b""
    changes: dict[str, object] = {}
    new = (
        _new_content(ctx, name, sfn, source, saltenv, contents, verify_ssl)
        if _may_differ(place, source_sum, contents)
        else None
    )
    if new is not None and not managed_file.same(old, new):
        hidden = ctx.opts.get("obfuscate_templates")
        changes["diff"] = "<Obfuscated Template>" if hidden else diffs.unified(old, new)
    if not place.exists():
        return changes
    now = ctx.call("file.stats", name, follow_symlinks=follow_symlinks)
    for key, value, also in (("user", user, now["uid"]), ("group", group, now["gid"])):
        if value is not None and value not in (now[key], also):
            changes[key] = value
    wanted_mode = managed_file.parse_mode(mode)
    if wanted_mode is not None and wanted_mode != managed_file.parse_mode(now["mode"]):
        changes["mode"] = managed_file.shown_mode(wanted_mode)
    if attrs and set(str(attrs)) != set("".join(ctx.call("file.lsattr", name)[name])) - {"e"}:
        changes["attrs"] = attrs
    wanted_context = {"user": seuser, "role": serole, "type": setype, "range": serange}
    if any(wanted_context.values()):
        parts = str(ctx.call("file.get_selinux_context", name)).split(":", 3)
        context = dict(zip(wanted_context, parts, strict=False))
        differing = {key: value for key, value in wanted_context.items() if value and value != context.get(key)}
        changes |= {"selinux": differing} if differing else {}
    return changes


def check_managed_changes(
    ctx: Context,
    name: str,
    source: object,
    source_hash: object,
    source_hash_name: str | None,
    user: object,
    group: object,
    mode: object,
    attrs: object,
    template: str | None,
    context: Mapping[str, object] | None,
    defaults: Mapping[str, object] | None,
    saltenv: str,
    contents: str | bytes | None = None,
    skip_verify: bool = False,
    keep_mode: bool = False,
    seuser: str | None = None,
    serole: str | None = None,
    setype: str | None = None,
    serange: str | None = None,
    verify_ssl: bool = True,
    follow_symlinks: bool = False,
    new_file_diff: bool = False,
    **kwargs: object,
) -> object:
    """Return the changes that a managed file needs, as ``file.check_file_meta`` does; [False, error] if its source cannot
    be used.

    CLI Example:

        salt '*' file.check_managed_changes /etc/httpd.conf salt://httpd.conf '' None root root 755 None jinja None None base
    """
    _refuse(kwargs)
    chosen, digest = source_list(ctx, source, source_hash, saltenv)
    sfn: object = ""
    summary: object = {}
    if contents is None:
        sfn, summary, error = get_managed(
            ctx,
            name,
            template,
            str(chosen) if chosen else None,
            digest,
            source_hash_name,
            user,
            group,
            mode,
            attrs,
            saltenv,
            context,
            defaults,
            skip_verify,
            verify_ssl,
        )
        if error:
            return [False, error]
        if keep_mode and chosen and not str(chosen).startswith(downloads.SCHEMES):
            mode = ctx.call("cp.stat_file", str(chosen), saltenv=saltenv, octal=True)
    try:
        return check_file_meta(
            ctx,
            name,
            str(sfn),
            str(chosen) if chosen else None,
            summary if isinstance(summary, Mapping) else None,
            user,
            group,
            mode,
            attrs,
            saltenv,
            contents,
            seuser,
            serole,
            setype,
            serange,
            verify_ssl,
            follow_symlinks,
            new_file_diff,
        )
    finally:
        _clean(ctx, str(sfn))


def check_managed(
    ctx: Context,
    name: str,
    source: object,
    source_hash: object,
    source_hash_name: str | None,
    user: object,
    group: object,
    mode: object,
    attrs: object,
    template: str | None,
    context: Mapping[str, object] | None,
    defaults: Mapping[str, object] | None,
    saltenv: str,
    contents: str | bytes | None = None,
    skip_verify: bool = False,
    seuser: str | None = None,
    serole: str | None = None,
    setype: str | None = None,
    serange: str | None = None,
    follow_symlinks: bool = False,
    **kwargs: Any,
) -> list[object]:
    """Return [result, comment] of a managed file in test mode: True if nothing would change, None if something would,
    False if its source cannot be used.

    CLI Example:

        salt '*' file.check_managed /etc/httpd.conf salt://httpd.conf '' None root root 755 None jinja None None base
    """
    changes = check_managed_changes(
        ctx,
        name,
        source,
        source_hash,
        source_hash_name,
        user,
        group,
        mode,
        attrs,
        template,
        context,
        defaults,
        saltenv,
        contents,
        skip_verify,
        seuser=seuser,
        serole=serole,
        setype=setype,
        serange=serange,
        follow_symlinks=follow_symlinks,
        **kwargs,
    )
    if isinstance(changes, list):
        return changes
    if not isinstance(changes, Mapping) or not changes:
        return [True, f"The file {name} is in the correct state"]
    rows = [f"{key}: {value}\n" for key, value in changes.items()]
    return [None, "".join(["The following values are set to be changed:\n", *rows])]


def manage_file(
    ctx: Context,
    name: str,
    sfn: str | None,
    ret: dict[str, Any] | None,
    source: str | None,
    source_sum: Mapping[str, str] | None,
    user: object,
    group: object,
    mode: object,
    attrs: object,
    saltenv: str,
    backup: object,
    makedirs: bool = False,
    template: str | None = None,
    show_changes: bool = True,
    contents: str | bytes | None = None,
    dir_mode: object = None,
    follow_symlinks: bool = True,
    skip_verify: bool = False,
    keep_mode: bool = False,
    encoding: str | None = None,
    **kwargs: object,
) -> dict[str, Any]:
    """Make a managed file, with the source that ``get_managed`` returned (``sfn``), with ``contents``, or with a
    file of the state tree (``source``). Return a state's return (a map with name, changes, comment and result);
    if ``ret`` is such a map, it is completed.

    The work is done by the state ``file.managed``, whose arguments the other ones are. In test mode nothing is changed.

    CLI Example:

        salt '*' file.manage_file /etc/motd '' '{}' salt://motd '{hash_type: md5, hsum: <md5sum>}' root root '755' None base ''
    """
    given = dict(
        zip(_KEPT, (user, group, mode, attrs, makedirs, dir_mode, follow_symlinks, show_changes, encoding), strict=True)
    )
    arguments = {key: value for key, value in given.items() if value is not None}
    arguments |= {key: value for key, value in kwargs.items() if not key.startswith("__")}
    if keep_mode:
        arguments["mode"] = "keep"
    if contents is not None:
        arguments |= {"contents": contents, "contents_newline": False}
    elif sfn:
        arguments |= {"source": sfn, "skip_verify": True}
    elif source:
        digest = f"{source_sum['hash_type']}={source_sum['hsum']}" if source_sum and not skip_verify else ""
        tree = source.startswith("salt://")
        arguments |= {"source": source, "skip_verify": skip_verify or not digest} | (
            {} if tree else {"source_hash": digest}
        )
    else:
        arguments["replace"] = False
    try:
        entry = ctx.states["file.managed"](name=name, backup=backup or "", saltenv=saltenv, **arguments)
    finally:
        _clean(ctx, sfn or "")
    if not ret:
        return dict(entry)
    comments = [text for text in (ret.get("comment"), entry["comment"]) if text]
    ret["changes"] = {**(ret.get("changes") or {}), **entry["changes"]}
    ret["comment"] = "\n".join(str(text) for text in comments)
    ret["result"] = entry["result"] if ret.get("result", True) else ret["result"]
    return ret


# -------------------------------------------------------------------------------------------------- helpers


def _refuse(given: Mapping[str, object]) -> None:
    wrong = [name for name in _IGNORED if given.get(name)]
    if wrong:
        raise InvocationError(f"{', '.join(wrong)}: only the state file.managed ignores differences")


def _may_differ(place: Path, summary: Mapping[str, str] | None, contents: object) -> bool:
    if contents is not None or not summary or not place.is_file():
        return contents is not None or bool(summary)
    return digests.digest_of(place, summary["hash_type"]) != summary["hsum"].lower()


def _new_content(
    ctx: Context, name: str, sfn: str, source: str | None, saltenv: str, contents: str | bytes | None, verify_ssl: bool
) -> bytes | Path | None:
    if contents is not None:
        return contents.encode() if isinstance(contents, str) else contents
    if sfn:
        return managed_file.source(ctx.host.path(sfn))
    if not source:
        return None
    wanted = FileVerification("", skip_verify=True, verify_ssl=verify_ssl)
    return managed_file.source(file_source.find(ctx, source, saltenv, name, wanted).path)


def _temporary(ctx: Context, content: bytes | Path) -> str:
    name = f"{_TEMPORARY}{secrets.token_hex(4)}"
    real_path = ctx.host.path(name, follow=False)
    real_path.parent.mkdir(parents=True, exist_ok=True)
    managed_file.replace(ctx.host, real_path, content, Attributes(mode=0o600))
    return name


def _clean(ctx: Context, sfn: str) -> None:
    if sfn.startswith(_TEMPORARY):
        ctx.host.path(sfn, follow=False).unlink(missing_ok=True)
