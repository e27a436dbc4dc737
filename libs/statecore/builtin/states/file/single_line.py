"""``file.line``: one line of a file."""

from __future__ import annotations

import time
from typing import Any

from statecore.builtin.states.file.edit_plan import Target
from statecore.builtin.states.file.places import Refused, need_parent, place_of, step
from statecore.host.content import managed_file
from statecore.host.content.edits.single_line import Line
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step


def line(
    ctx: Context,
    name: str,
    content: Any = None,
    match: str | None = None,
    mode: str | None = None,
    location: str | None = None,
    before: str | None = None,
    after: str | None = None,
    show_changes: bool = True,
    backup: bool = False,
    quiet: bool = False,
    indent: bool = True,
    create: bool = False,
    user: Any = None,
    group: Any = None,
    file_mode: Any = None,
) -> Plan:
    """One line of a file.

    mode
        ``ensure`` (there, between ``after`` and ``before``), ``insert`` (the same, or at the ``location`` start or end),
        ``replace`` or ``delete`` (the line that ``match`` finds, else the content itself)
    indent
        indents the content as the line beside it is
    create, user, group, file_mode
        makes a file that is not there; its owner and mode
    backup
        keeps the old file beside the new one, under its name and the time
    quiet
        a file that is not there is no failure of ``file.line`` the module; of the state it is one, as in Salt
    """
    try:
        wanted = Attributes(user, group, managed_file.parse_mode(file_mode))
        place = place_of(ctx, name)
        created = create and not place.exists()
        target = Target(ctx, name, place, b"") if created else Target.of(ctx, name)
        new = Line.of(locals()).put_into(target.text)
        owned = {} if created else managed_file.attribute_changes(ctx.host, place, wanted)
    except (Refused, CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    changed = new != target.text
    if not (changed or created or owned):
        return Plan.unchanged("No changes needed to be made")

    def prepare() -> Outcome:
        if created:
            need_parent(ctx, place, False, wanted)
            managed_file.replace(ctx.host, place, b"", wanted)
            return Outcome("", {"new": name})
        managed_file.set_attributes(ctx.host, place, wanted)
        return Outcome("", owned)

    told: dict[str, Any] = {"new": name} if created else dict(owned)
    steps: list[Step] = []
    if created or owned:
        steps.append(step(f"create {name}" if created else f"set owner and mode of {name}", prepare))
    if not changed:
        return Plan.change(
            "Changes would be made", [*steps, Step("say so", lambda: Outcome("Changes were made"))], told
        )
    kept = f".{time.strftime('%Y-%m-%d-%H-%M-%S')}" if backup else ""
    changes = told | {"diff": target.diff(new, shown=show_changes)}
    write = target.write(new, "Changes would be made", "Changes were made", changes, backup=kept, shown=show_changes)
    return Plan.change(write.comment, [*steps, *write.steps], changes)
