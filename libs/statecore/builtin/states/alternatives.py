"""Salt's ``alternatives`` states: which of several programs a common name starts (update-alternatives)."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step

ALIASES = {"set": "set_"}


def install(ctx: Context, name: str, link: str, path: str, priority: int) -> Plan:
    """Register the program ``path`` as an alternative of the group ``name`` (update-alternatives), with a priority.
    Nothing happens if it is registered already.

    link
        path of the common name, such as /usr/bin/editor
    priority
        in automatic mode, the alternative with the highest priority is used
    """
    if ctx.call("alternatives.check_exists", name, path):
        return Plan.unchanged(f"Alternative {path} for {name} is already registered")
    would = f"Alternative will be set for {name} to {path} with priority {priority}"

    def work() -> Outcome:
        try:
            ctx.call("alternatives.install", name, link, path, priority)
        except CommandError as error:
            return Outcome(f"Alternative for {name} not installed: {error}", ok=False)
        comment = f"Setting alternative for {name} to {path} with priority {priority}"
        if not ctx.call("alternatives.check_installed", name, path):
            comment = f"Alternative {path} for {name} registered with priority {priority} and not set to default"
        return Outcome(comment, {"name": name, "link": link, "path": path, "priority": priority})

    return Plan.change(would, [Step(f"register the alternative {path}", work)])


def remove(ctx: Context, name: str, path: str) -> Plan:
    """Remove the program ``path`` from the alternatives of the group ``name``. Nothing happens if it is not one of them."""
    if not ctx.call("alternatives.check_exists", name, path):
        there = ctx.call("alternatives.show_current", name)
        return Plan.unchanged(
            f"Alternative for {name} is set to it's default path {there}"
            if there
            else f"Alternative for {name} doesn't exist"
        )

    def work() -> Outcome:
        try:
            ctx.call("alternatives.remove", name, path)
        except CommandError as error:
            return Outcome(str(error), ok=False)
        if there := ctx.call("alternatives.show_current", name):
            comment = f"Alternative for {name} removed. Falling back to path {there}"
            return Outcome(comment, {"path": there})
        return Outcome(f"Alternative for {name} removed", {"path": ""})

    return Plan.change(f"Alternative for {name} will be removed", [Step(f"remove the alternative {path}", work)])


def auto(ctx: Context, name: str) -> Plan:
    """Set the group ``name`` to automatic mode: the alternative with the highest priority is used.

    The state fails if the group does not exist.
    """
    shown = ctx.call("alternatives.display", name)
    first = shown.split("\n", 1)[0]
    if first == f"{name} - auto mode":
        return Plan.unchanged(f"{name} already in auto mode")
    if not first.startswith(f"{name} - "):
        return Plan.failed(f"Alternative for {name} doesn't exist")

    def work() -> Outcome:
        try:
            return Outcome("", {"result": ctx.call("alternatives.auto", name)})
        except CommandError as error:
            return Outcome(str(error), ok=False)

    return Plan.change(f"{name} will be put in auto mode", [Step(f"put {name} in auto mode", work)])


def set_(ctx: Context, name: str, path: str) -> Plan:
    """Use the program ``path`` for the group ``name``. The state fails if it is not an alternative of the group."""
    now = ctx.call("alternatives.show_current", name)
    if now == path:
        return Plan.unchanged(f"Alternative for {name} already set to {path}")
    if not ctx.call("alternatives.check_exists", name, path):
        if ctx.call("alternatives.display", name).startswith(f"{name} - "):
            return Plan.failed(f"Alternative {path} for {name} doesn't exist")
        return Plan.failed(f"Alternative for {name} doesn't exist")

    def work() -> Outcome:
        try:
            ctx.call("alternatives.set", name, path)
        except CommandError as error:
            return Outcome(str(error), ok=False)
        if ctx.call("alternatives.show_current", name) != path:
            return Outcome(f"Alternative for {name} not updated", ok=False)
        return Outcome(f"Alternative for {name} set to path {path}", {"path": path})

    return Plan.change(
        f"Alternative for {name} will be set to path {path}", [Step(f"set the alternative {path}", work)]
    )
