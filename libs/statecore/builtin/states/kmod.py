"""Salt's ``kmod`` states: kernel modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def present(ctx: Context, name: str, persist: bool = False, mods: Sequence[str] | None = None) -> Plan:
    """Load the kernel module ``name``, or those of the list ``mods``. ``persist``: also load them at each boot.

    The state fails for a module that the kernel does not have.
    """
    wanted = _wanted(name, mods)
    loaded = set(ctx.call("kmod.mod_list"))
    if persist:
        loaded &= set(ctx.call("kmod.mod_list", True))
    there = [each for each in wanted if each in loaded]
    missing = [each for each in wanted if each not in loaded]
    notes = [_sentence(there, "is already present", "are already present")] if there else []
    if not missing:
        return Plan.unchanged("\n".join(notes))

    def work() -> Outcome:
        known = set(ctx.call("kmod.available"))
        unknown = [each for each in missing if each not in known]
        lines = [_sentence(unknown, "is unavailable", "are unavailable")] if unknown else []
        able = [each for each in missing if each in known]
        done = _each(able, lambda each: ctx.call("kmod.load", each, persist), "loaded", "Loaded", "load")
        comment = "\n".join(part for part in (*lines, done.comment) if part)
        return Outcome(comment, done.changes, ok=done.ok and not unknown)

    would = _sentence(missing, "is set to be loaded", "are set to be loaded")
    return Plan.change(would, [Step(f"load {', '.join(missing)}", work)], {}, notes)


def absent(
    ctx: Context, name: str, persist: bool = False, comment: bool = True, mods: Sequence[str] | None = None
) -> Plan:
    """Unload the kernel module ``name``, or those of the list ``mods``.

    persist
        True: also do not load them at boot
    comment
        True: comment out the module's line in the configuration. False: remove the line.
    """
    wanted = _wanted(name, mods)
    loaded = set(ctx.call("kmod.mod_list")) | set(ctx.call("kmod.mod_list", True) if persist else ())
    there = [each for each in wanted if each in loaded]
    if not there:
        return Plan.unchanged(_sentence(wanted, "is already removed", "are already removed"))

    def work() -> Outcome:
        return _each(
            there, lambda each: ctx.call("kmod.remove", each, persist, comment), "removed", "Removed", "remove"
        )

    would = _sentence(there, "is set to be removed", "are set to be removed")
    return Plan.change(would, [Step(f"unload {', '.join(there)}", work)])


def _each(
    names: Sequence[str], act: Callable[[str], str | Sequence[str]], change: str, done: str, verb: str
) -> Outcome:
    changes: dict[str, str] = {}
    good, bad = [], []
    for each in names:
        answer = [] if changes.get(each) else act(each)
        if isinstance(answer, str):
            bad.append(f"Failed to {verb} kernel module {each}: {answer}")
        elif answer or each in changes:
            changes |= dict.fromkeys(answer, change)
            good.append(each)
        else:
            bad.append(f"Failed to {verb} kernel module {each}")
    lines = [f"{done} kernel module{'s' if len(good) > 1 else ''} {', '.join(good)}"] if good else []
    return Outcome("\n".join([*lines, *bad]), changes, ok=not bad)


def _wanted(name: str, mods: Sequence[str] | None) -> list[str]:
    return [str(each) for each in mods] if isinstance(mods, list | tuple) else [name]


def _sentence(names: Sequence[str], one: str, many: str) -> str:
    return f"Kernel module {names[0]} {one}" if len(names) == 1 else f"Kernel modules {', '.join(names)} {many}"
