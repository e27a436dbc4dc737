"""``file.blockreplace``: a block between two markers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.builtin.states.file import gathered
from statecore.builtin.states.file.content import Spec
from statecore.builtin.states.file.edit_plan import Target, suffix
from statecore.builtin.states.file.places import Refused
from statecore.builtin.states.file.texts import texts_of
from statecore.host.content.edits.block import END, START, Block
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, SlsError
from statecore.model.types import Plan


def blockreplace(
    ctx: Context,
    name: str,
    marker_start: str = START,
    marker_end: str = END,
    source: Any = None,
    source_hash: Any = None,
    template: str = "jinja",
    sources: list[Any] | None = None,
    source_hashes: Any = None,
    defaults: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    content: str = "",
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    backup: Any = ".bak",
    show_changes: bool = True,
    append_newline: bool | None = None,
    insert_before_match: Any = None,
    insert_after_match: Any = None,
) -> Plan:
    """What stands between two marked lines: the content, what ``file.accumulated`` gathered, the texts of sources.

    append_if_not_found, prepend_if_not_found, insert_before_match, insert_after_match
        where the block is put when its markers are not there; the last two are regular expressions for a line
    append_newline
        whether the end marker gets a line of its own; left out: unless the content ends its last line itself
    backup
        suffix of the old file's copy; False keeps none
    """
    try:
        spec = Spec(ctx.saltenv, template, context, defaults)
        target = Target.of(ctx, name)
        whole = "\n".join([*([str(content)] if content != "" else []), *gathered.for_state(ctx, name)])
        if source or sources:
            whole += "".join(texts_of(ctx, spec, name, source, sources, source_hash, source_hashes))
        old = target.text
        new = Block(
            marker_start=str(marker_start),
            marker_end=str(marker_end),
            content=whole,
            append_if_not_found=append_if_not_found,
            prepend_if_not_found=prepend_if_not_found,
            insert_before_match=insert_before_match,
            insert_after_match=insert_after_match,
            append_newline=append_newline,
        ).put_into(old)
    except (Refused, SlsError) as error:
        return Plan.failed(str(error))
    except (CommandError, InvocationError) as error:
        return Plan.failed(f"Encountered error managing block: {error}. See the log for details.")
    if new == old:
        return Plan.unchanged("No changes needed to be made")
    changes = {"diff": target.diff(new, shown=show_changes)}
    return target.write(
        new, "Changes would be made", "Changes were made", changes, backup=suffix(backup), shown=show_changes
    )
