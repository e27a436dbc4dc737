"""``file.managed``: one file with content, owner and mode; and ``file.accumulated``, which collects texts for such a
file.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from statecore.builtin.states.file.arguments import (
    NOTE,
    Refused,
    attributes,
    ensure_parent,
    local_path,
    parent_attributes,
    refuse_windows,
    step,
)
from statecore.builtin.states.file.content import (
    Accumulators,
    Content,
    Literal,
    Signing,
    Spec,
    signers_of,
    wanted_bytes,
)
from statecore.host.content import managed_file
from statecore.host.content.diffs import Ignored
from statecore.host.content.managed_file import Attributes
from statecore.host.content.special_attributes import SpecialAttributes
from statecore.host.content.write_plan import Write, reported_attributes
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError, SlsError
from statecore.model.types import FileChange, Outcome, Plan
from statecore.sources import downloads, file_source
from statecore.sources.file_source import FileVerification


def managed(
    ctx: Context,
    name: str,
    source: object = None,
    source_hash: str = "",
    source_hash_name: str | None = None,
    keep_source: bool = True,
    user: str | int | None = None,
    group: str | int | None = None,
    mode: object = None,
    attrs: object = None,
    template: str | None = None,
    makedirs: bool = False,
    dir_mode: object = None,
    context: object = None,
    replace: bool = True,
    defaults: object = None,
    backup: object = "",
    show_changes: bool = True,
    create: bool = True,
    contents: object = None,
    tmp_dir: str = "",
    tmp_ext: str = "",
    contents_pillar: object = None,
    contents_grains: object = None,
    contents_newline: bool = True,
    contents_delimiter: str = ":",
    encoding: str | None = None,
    encoding_errors: str = "strict",
    allow_empty: bool = True,
    follow_symlinks: bool = True,
    check_cmd: str | None = None,
    skip_verify: bool = False,
    selinux: object = None,
    win_owner: object = None,
    win_perms: object = None,
    win_deny_perms: object = None,
    win_inheritance: bool = True,
    win_perms_reset: bool = False,
    verify_ssl: bool = True,
    use_etag: bool = False,
    signature: object = None,
    source_hash_sig: object = None,
    signed_by_any: object = None,
    signed_by_all: object = None,
    keyring: object = None,
    gnupghome: object = None,
    ignore_ordering: bool = False,
    ignore_whitespace: bool = False,
    ignore_comment_characters: object = None,
    new_file_diff: bool = False,
    sig_backend: str = "gpg",
    saltenv: str | None = None,
) -> Plan:
    """Manage one file: its content, owner and mode.

    source
        ``salt://``, ``file://`` or ``http(s)://`` URL, or a path of the host; of a list, the first source that exists
    source_hash
        digest of the source (``sha256=…``), or the path or URL of a file that lists digests. Required for http(s),
        unless ``skip_verify`` or ``use_etag`` is True.
    contents, contents_pillar, contents_grains
        the content itself; pillar keys, or grains, that contain it. These arguments and ``source`` exclude each other.
    template, context, defaults
        renderer of the content, such as ``jinja``; values for the template
    keep_source
        False: remove the copy of an http(s) source from the minion's cache after use
    new_file_diff
        True: report a new text file as a diff, unless ``show_changes`` is False
    mode
        octal digits, or ``keep``: the mode of the source
    attrs
        letters of chattr(1): the file gets exactly these attributes. The host needs the programs lsattr and chattr.
    selinux
        map with seuser, serole, setype and serange. The host needs the programs semanage and chcon.
    use_etag
        True: download an http(s) source only if the server reports another ETag than at the last download
    signature, source_hash_sig
        require a signature of the content, or of the file of digests: True if it contains its signature, else the URL
        of a detached signature
    signed_by_any, signed_by_all, keyring, gnupghome, sig_backend
        fingerprints of accepted or required signers; keyring and GnuPG directory of the host; execution module that
        verifies
    ignore_ordering, ignore_whitespace, ignore_comment_characters
        differences that are written, but do not trigger ``watch`` or ``onchanges``
    replace
        False: an existing file's content is not changed
    create
        False: a missing file is not created
    backup
        ``minion``: keep a copy of the old file in the minion's cache
    check_cmd
        command that must accept the new file before it replaces the old one
    """
    try:
        refuse_windows(locals())
        signing = Signing(signature, signers_of(locals(), signature, source_hash_sig), verify_ssl)
        ignored = Ignored.of(ignore_ordering, ignore_whitespace, ignore_comment_characters)
        place, real = local_path(ctx, name, follow=follow_symlinks), local_path(ctx, name)
        if real.is_dir():
            raise Refused(f"Specified target {name} is a directory")
        if not create and not real.is_file():
            return Plan.unchanged(f"File {name} is not present and is not set for creation")
        literal = Literal(
            contents, contents_pillar, contents_grains, contents_delimiter, allow_empty, contents_newline
        ).read(ctx, source)
        owner_and_mode, keep = attributes(user, group, mode)
        shown_mode = None if keep or mode is None else f"{str(mode).lstrip('0'):>04}"
        seen = {"user": user, "group": group, "mode": shown_mode, "attrs": attrs}
        texts = Accumulators.of_file(ctx, name)
        spec = Spec(saltenv or ctx.saltenv, template, context, defaults, encoding, encoding_errors, texts, seen)
        old = managed_file.read_or_path(real, name)
        marks = SpecialAttributes.of(ctx.host, place, attrs, selinux)
        file = _File(ctx, name, place, owner_and_mode, marks)
        no_content = literal is None and source in (None, "", False)
        if old is not None and (no_content or not replace):
            return file.attributes_alone()
        if no_content:
            return file.empty(makedirs, dir_mode)
        wanted = FileVerification(
            source_hash, source_hash_name, skip_verify, verify_ssl, use_etag, source_hash_sig, signing.signers
        )
        if source and template and _is_same_file(ctx, source, real):
            raise Refused("Unable to manage file: Source file cannot be the same as destination")
        made = template or encoding or signature or keep
        if old is not None and not made and wanted.is_met(ctx, source, old):
            # The server may be away: the file has the digest already.
            return file.attributes_alone()
        content = wanted_bytes(ctx, spec, literal, source, name, wanted=wanted)
        if not managed_file.same(old, content.data):
            signing.check(ctx, content.data, content.address, spec.saltenv)
        if keep:
            owner_and_mode = Attributes(owner_and_mode.user, owner_and_mode.group, content.mode)
        elif old is None and owner_and_mode.mode is None and literal is None:
            # As in Salt: a new file from a source gets the default mode, and the changes report the mode.
            owner_and_mode = Attributes(owner_and_mode.user, owner_and_mode.group, managed_file.default_mode())
        plan = Write(
            ctx=ctx,
            name=name,
            real_path=place,
            real=real,
            old=old,
            new=content.data,
            attributes=owner_and_mode,
            makedirs=makedirs,
            dir_mode=dir_mode,
            backup=str(backup or ""),
            show_changes=show_changes,
            check_cmd=check_cmd,
            tmp_dir=tmp_dir,
            tmp_ext=tmp_ext,
            new_file_diff=new_file_diff,
            marks=marks,
            ignored=ignored,
        ).plan()
        return plan if keep_source else _without_cached_copy(ctx, spec.saltenv, content, plan)
    except Refused as error:
        return Plan.failed(str(error), in_test=error.in_test)
    except (InvocationError, HostError) as error:
        return Plan.failed(str(error))
    except SlsError as error:
        return Plan.failed(f"Unable to manage file: {error}")
    except OSError as error:
        return Plan.failed(f"Unable to manage file: {name}: {error.strerror}")


def accumulated(ctx: Context, name: str, filename: str, text: object) -> Plan:
    """Collect text for a file. ``file.managed`` and ``file.blockreplace`` of the same run can use it.

    filename
        path of the file. The template of its ``file.managed`` gets all texts in ``accumulator``, by the accumulators'
        names.
    text
        text, or list of texts; a text that is already collected is not added again
    require_in, watch_in
        at least one of them must name the file state that uses the text
    """
    if text is None:
        return Plan.failed("No text supplied for accumulator")
    readers = [*_listed(ctx.low.get("require_in")), *_listed(ctx.low.get("watch_in"))]
    # As in Salt: a plain ID counts if it contains the word.
    if not any("file" in reader for reader in readers if isinstance(reader, Mapping | str)):
        return Plan.failed(f"Orphaned accumulator {name} in {ctx.low.get('__sls__')}:{ctx.low.get('__id__')}")
    texts = list(text) if isinstance(text, list | tuple) else [text]
    gathered = Accumulators.of(ctx).texts.setdefault(filename, {}).setdefault(name, [])
    Accumulators.of(ctx).readers.setdefault(filename, {}).setdefault(name, []).extend(_named(readers))
    new = [one for one in texts if one not in gathered]
    gathered += new
    # Collecting texts does not change the host, so it also happens in test mode: later states need the texts.
    return Plan.unchanged(f"Accumulator {name} for file {filename} was charged by text" if new else "")


class _File(NamedTuple):
    """The file of one ``file.managed`` state, and the owner, mode and other attributes that it is to have."""

    ctx: Context
    name: str
    #: Path of the file: the link itself when links are not followed.
    place: Path
    owner_and_mode: Attributes
    marks: SpecialAttributes

    def attributes_alone(self) -> Plan:
        """Return a plan that leaves the content of the file as it is."""
        name, host = self.name, self.ctx.host
        changes = managed_file.attribute_changes(host, self.place, self.owner_and_mode) | self.marks.changes()
        if not changes:
            return Plan.unchanged(
                f"File {name} exists with proper permissions. No changes made.", in_test=f"File {name} not updated"
            )

        def work() -> Outcome:
            self.marks.unseal()
            managed_file.set_attributes(host, self.place, self.owner_and_mode)
            self.marks.put()
            return Outcome(f"File {name} updated", changes)

        would = f"The file {name} is set to be changed\n{NOTE}"
        if "mode" in changes:
            now = managed_file.shown_mode(stat.S_IMODE(self.place.lstat().st_mode))
            would = f"File {name} will be updated with permissions {changes['mode']} from its current state of {now}"
        return Plan.change(would, (step(f"set owner and mode of {name}", work),), changes)

    def empty(self, makedirs: bool, dir_mode: object) -> Plan:
        """Return a plan that creates an empty file, for a state without content whose file does not exist."""
        self.marks.possible(self.place)

        def work() -> Outcome:
            ensure_parent(self.ctx, self.place, makedirs, parent_attributes(self.owner_and_mode, dir_mode))
            managed_file.replace(self.ctx.host, self.place, b"", self.owner_and_mode)
            changes = {"new": f"file {self.name} created"} | reported_attributes(self.ctx, self.owner_and_mode)
            return Outcome("Empty file", changes | self.marks.put())

        return Plan.change(
            f"The file {self.name} is set to be changed\n{NOTE}",
            (step(f"create {self.name}", work, FileChange(self.name, None, b"")),),
            {"newfile": self.name},
        )


def _is_same_file(ctx: Context, source: object, real: Path) -> bool:
    """Return True if the source of a file is a path of the host that leads to the file itself."""
    if not isinstance(source, str) or not source.removeprefix("file://").startswith("/"):
        return False
    found = ctx.host.path(source.removeprefix("file://"))
    return found.exists() and real.exists() and found.samefile(real)


def _without_cached_copy(ctx: Context, saltenv: str, content: Content, plan: Plan) -> Plan:
    """Return the plan of ``file.managed`` with a last step that removes the cached copy of an http(s) source.

    Copies of the tree are shared and stay.
    """
    if not content.address.startswith(downloads.SCHEMES):
        return plan
    place = downloads.cached_at(content.address, file_source.cache_of(ctx), saltenv)
    if plan.steps and isinstance(content.data, Path):

        def work() -> Outcome:
            downloads.remove(place)
            return Outcome()

        return plan._replace(steps=(*plan.steps, step(f"forget the copy of {downloads.shown(content.address)}", work)))
    downloads.remove(place)
    return plan


def _named(readers: list[object]) -> Iterator[object]:
    for reader in readers:
        yield from reader.values() if isinstance(reader, Mapping) else [reader]


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
