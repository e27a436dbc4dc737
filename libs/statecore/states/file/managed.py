"""``file.managed``: one file with a content, an owner and a mode."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import HostError, InvocationError, SlsError
from statecore.file_write import Write, told_attributes
from statecore.managed_file import Attributes
from statecore.states.file import accumulators
from statecore.states.file.content import Literal, Spec, wanted_bytes
from statecore.states.file.places import (
    NOTE,
    Refused,
    attributes,
    need_parent,
    parent_attributes,
    place_of,
    refuse,
    step,
)
from statecore.states.file.remote import Verification
from statecore.types import FileChange, Outcome, Plan


def managed(
    ctx: Context,
    name: str,
    source: Any = None,
    source_hash: str = "",
    source_hash_name: str | None = None,
    keep_source: bool = True,
    user: Any = None,
    group: Any = None,
    mode: Any = None,
    attrs: Any = None,
    template: str | None = None,
    makedirs: bool = False,
    dir_mode: Any = None,
    context: Any = None,
    replace: bool = True,
    defaults: Any = None,
    backup: Any = "",
    show_changes: bool = True,
    create: bool = True,
    contents: Any = None,
    tmp_dir: str = "",
    tmp_ext: str = "",
    contents_pillar: Any = None,
    contents_grains: Any = None,
    contents_newline: bool = True,
    contents_delimiter: str = ":",
    encoding: str | None = None,
    encoding_errors: str = "strict",
    allow_empty: bool = True,
    follow_symlinks: bool = True,
    check_cmd: str | None = None,
    skip_verify: bool = False,
    selinux: Any = None,
    win_owner: Any = None,
    win_perms: Any = None,
    win_deny_perms: Any = None,
    verify_ssl: bool = True,
    use_etag: bool = False,
    signature: Any = None,
    source_hash_sig: Any = None,
    signed_by_any: Any = None,
    signed_by_all: Any = None,
    keyring: Any = None,
    gnupghome: Any = None,
    ignore_ordering: bool = False,
    ignore_whitespace: bool = False,
    ignore_comment_characters: Any = None,
    new_file_diff: bool = False,
    sig_backend: str = "gpg",
    saltenv: str | None = None,
) -> Plan:
    """A file with this content, owner and mode.

    source
        salt://, file://, http(s):// or a path of the host, or a list of which the first that can be had is taken
    source_hash
        a digest (``sha256=…``), or the place of a file of digests; what comes over http has to have one, or ``skip_verify``
    contents, contents_pillar, contents_grains
        the content itself, or where it is
    new_file_diff
        all of a new text file is shown as its difference, unless ``show_changes`` is off
    mode
        octal digits, or ``keep``: the source's own
    """
    try:
        refuse(
            {
                "attrs": attrs,
                "selinux": selinux,
                "win_owner": win_owner,
                "win_perms": win_perms,
                "win_deny_perms": win_deny_perms,
                "use_etag": use_etag,
                "signature": signature,
                "source_hash_sig": source_hash_sig,
                "signed_by_any": signed_by_any,
                "signed_by_all": signed_by_all,
                "keyring": keyring,
                "gnupghome": gnupghome,
                "ignore_ordering": ignore_ordering,
                "ignore_whitespace": ignore_whitespace,
                "ignore_comment_characters": ignore_comment_characters,
            }
        )
        place, real = place_of(ctx, name, follow=follow_symlinks), place_of(ctx, name)
        if real.is_dir():
            raise Refused(f"Specified target {name} is a directory")
        if not create and not real.is_file():
            return Plan.unchanged(f"File {name} is not present and is not set for creation")
        literal = Literal(
            contents, contents_pillar, contents_grains, contents_delimiter, allow_empty, contents_newline
        ).read(ctx, source)
        wish, keep = attributes(user, group, mode)
        gathered = accumulators.of_file(ctx, name)
        spec = Spec(saltenv or ctx.saltenv, template, context, defaults, encoding, encoding_errors, gathered)
        old = managed_file.held(real, name)
        no_content = literal is None and source in (None, "", False)
        if old is not None and (no_content or not replace):
            return _attributes_alone(ctx, name, place, wish)
        if no_content:
            return _empty(ctx, name, place, wish, makedirs, dir_mode)
        new, source_mode = wanted_bytes(
            ctx,
            spec,
            literal,
            source,
            name,
            wanted=Verification(source_hash, source_hash_name, skip_verify, verify_ssl),
        )
        if keep:
            wish = Attributes(wish.user, wish.group, source_mode)
        elif old is None and wish.mode is None and literal is None:
            # A file made from a source has its mode set, and told, though nobody asked for one; Salt does so.
            wish = Attributes(wish.user, wish.group, managed_file.usual_mode())
        return Write(
            ctx=ctx,
            name=name,
            place=place,
            real=real,
            old=old,
            new=new,
            wish=wish,
            makedirs=makedirs,
            dir_mode=dir_mode,
            backup=str(backup or ""),
            show_changes=show_changes,
            check_cmd=check_cmd,
            tmp_dir=tmp_dir,
            tmp_ext=tmp_ext,
            new_file_diff=new_file_diff,
        ).plan()
    except (Refused, InvocationError, HostError) as error:
        return Plan.failed(str(error))
    except SlsError as error:
        return Plan.failed(f"Unable to manage file: {error}")
    except OSError as error:
        return Plan.failed(f"Unable to manage file: {name}: {error.strerror}")


def _attributes_alone(ctx: Context, name: str, place: Path, wish: Attributes) -> Plan:
    changes = managed_file.attribute_changes(ctx.host, place, wish)
    if not changes:
        return Plan.unchanged(f"File {name} exists with proper permissions. No changes made.")

    def work() -> Outcome:
        managed_file.set_attributes(ctx.host, place, wish)
        return Outcome(f"File {name} updated", changes)

    would = f"The file {name} is set to be changed\n{NOTE}"
    if "mode" in changes:
        now = managed_file.shown_mode(stat.S_IMODE(place.lstat().st_mode))
        would = f"File {name} will be updated with permissions {changes['mode']} from its current state of {now}"
    return Plan.change(would, (step(f"set owner and mode of {name}", work),), changes)


def _empty(ctx: Context, name: str, place: Path, wish: Attributes, makedirs: bool, dir_mode: Any) -> Plan:
    """No content is asked for, and no file is there."""

    def work() -> Outcome:
        need_parent(ctx, place, makedirs, parent_attributes(wish, dir_mode))
        managed_file.replace(ctx.host, place, b"", wish)
        return Outcome("Empty file", {"new": f"file {name} created"} | told_attributes(ctx, wish))

    return Plan.change(
        f"The file {name} is set to be changed\n{NOTE}",
        (step(f"create {name}", work, FileChange(name, None, b"")),),
        {"newfile": name},
    )
