"""Salt's ``ini`` states: set and remove options and sections of INI files."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.hostfiles import ini

_SAME = "No anomaly detected"
_DONE = "Changes take effect"


def options_present(
    ctx: Context,
    name: str,
    sections: Mapping[str, object] | None = None,
    separator: str = "=",
    strict: bool = False,
    encoding: str | None = None,
    no_spaces: bool = False,
) -> Plan:
    """Set options of an INI file.

    sections
        ``{section: {option: value}}``; ``{option: value}`` for options before the first section
    strict
        True: remove options and sections that are not named
    separator, no_spaces
        text between option and value; True: no spaces around it
    """
    wanted = _as_text(sections or {})

    def plan(now: Mapping[str, object]) -> tuple[list[str], dict[str, object]]:
        return _present_lines(now, wanted, strict), _present_changes(now, wanted, strict, separator)

    def work() -> dict[str, object]:
        now = ctx.call("ini.get_ini", name, separator, encoding)
        options = {"separator": separator, "encoding": encoding}
        changes = _present_changes(now, wanted, strict, separator)
        if strict:
            for section, option in _surplus(now, wanted):
                if option is None:
                    ctx.call("ini.remove_section", name, section, **options)
                else:
                    ctx.call("ini.remove_option", name, section, option, **options)
        ctx.call("ini.set_option", name, wanted, no_spaces=no_spaces, **options)
        return changes

    return _plan(ctx, name, separator, encoding, plan, work)


def options_absent(
    ctx: Context,
    name: str,
    sections: Mapping[str, object] | None = None,
    separator: str = "=",
    encoding: str | None = None,
) -> Plan:
    """Remove options from an INI file: ``{section: [options]}``. For an option before the first section: its name with
    any value.
    """
    wanted = [
        (section, option)
        for section, options in (sections or {}).items()
        for option in (options if isinstance(options, list) else [None])
    ]

    def plan(now: Mapping[str, object]) -> tuple[list[str], dict[str, object]]:
        lines: list[str] = []
        changes: dict[str, Any] = {}
        for section, option in wanted:
            holder = now.get(section, {}) if option is not None else now
            key, where = (section, "") if option is None else (option, f" in section {section}")
            value = holder.get(key) if isinstance(holder, Mapping) else None
            if value is None or isinstance(value, Mapping):
                lines.append(f"Key {key}{where} does not exist.")
                continue
            lines.append(f"Deleted key {key}{where}.")
            if option is None:
                changes[section] = value
            else:
                changes.setdefault(section, {})[option] = value
        return lines, changes

    def work() -> dict[str, object]:
        changes = plan(ctx.call("ini.get_ini", name, separator, encoding))[1]
        for section, option in wanted:
            place = (None, section) if option is None else (section, option)
            if section in changes:
                ctx.call("ini.remove_option", name, *place, separator, encoding)
        return changes

    return _plan(ctx, name, separator, encoding, plan, work)


def sections_present(
    ctx: Context,
    name: str,
    sections: str | list[str] | Mapping[str, object] | None = None,
    separator: str = "=",
    encoding: str | None = None,
) -> Plan:
    """Add sections (a list of names) to an INI file if they are missing."""
    names = [str(each) for each in sections or ()]

    def plan(now: Mapping[str, object]) -> tuple[list[str], dict[str, object]]:
        new: dict[str, object] = {each: {"before": None, "after": {}} for each in names if each not in now}
        lines = [f"Created new section {each}." if each in new else f"Section unchanged {each}." for each in names]
        return lines, new

    def work() -> dict[str, object]:
        options = {"separator": separator, "encoding": encoding}
        changes: dict[str, object] = ctx.call("ini.set_option", name, {each: {} for each in names}, **options)
        return changes

    return _plan(ctx, name, separator, encoding, plan, work)


def sections_absent(
    ctx: Context,
    name: str,
    sections: str | list[str] | Mapping[str, object] | None = None,
    separator: str = "=",
    encoding: str | None = None,
) -> Plan:
    """Remove sections (a list of names) from an INI file. Missing sections are ignored."""
    names = [str(each) for each in sections or ()]

    def plan(now: Mapping[str, object]) -> tuple[list[str], dict[str, object]]:
        there = {each: now[each] for each in names if isinstance(now.get(each), Mapping)}
        lines = [f"Deleted section {each}." if each in there else f"Section {each} does not exist." for each in names]
        return lines, there

    def work() -> dict[str, object]:
        removed = {each: ctx.call("ini.remove_section", name, each, separator, encoding) for each in names}
        return {each: had for each, had in removed.items() if had is not None}

    return _plan(ctx, name, separator, encoding, plan, work)


def _plan(
    ctx: Context,
    name: str,
    separator: str,
    encoding: str | None,
    plan: Callable[[Mapping[str, object]], tuple[list[str], dict[str, object]]],
    work: Callable[[], dict[str, object]],
) -> Plan:
    """Return the plan of an edit of an INI file, with one step that calls ``work``.

    ``plan`` returns (comment lines, changes) for the file's current sections. Without changes the plan has no step.
    """
    try:
        lines, changes = plan(ctx.call("ini.get_ini", name, separator, encoding))
    except (CommandError, OSError) as error:
        return Plan.failed(str(error))
    comment = "\n".join(lines)
    if not changes:
        return Plan.unchanged((comment or "No changes detected.") if ctx.test else _SAME)

    def run() -> Outcome:
        try:
            return Outcome(_DONE, work())
        except HostError as error:
            return Outcome(str(error), ok=False)

    return Plan.change(comment, [Step(f"edit {name}", run)])


def _surplus(now: Mapping[str, object], wanted: Mapping[str, object]) -> list[tuple[str | None, str | None]]:
    """List of (section, option) of an INI file that ``strict`` removes.

    Section None: option before the first section. Option None: whole section.
    """
    found: list[tuple[str | None, str | None]] = []
    for key, value in now.items():
        body = wanted.get(key)
        if not isinstance(value, Mapping):
            found += [] if key in wanted and not isinstance(body, Mapping) else [(None, key)]
        elif not isinstance(body, Mapping):
            found.append((key, None))
        else:
            found += [(key, option) for option in value if option not in body]
    return found


def _present_lines(now: Mapping[str, object], wanted: Mapping[str, object], strict: bool) -> list[str]:
    lines = []
    for key, value in wanted.items():
        if not isinstance(value, Mapping):
            lines.append(f"{'Unchanged' if _same(now, key, value) else 'Changed'} key {key}.")
    extra = _surplus(now, wanted) if strict else []
    lines += [f"Removed key {option}." for section, option in extra if section is None]
    lines += [f"Removed section {section}." for section, option in extra if option is None]
    for section, body in wanted.items():
        if not isinstance(body, Mapping):
            continue
        where = f" in section {section}"
        lines += [f"Deleted key {option}{where}." for each, option in extra if each == section and option is not None]
        has = now.get(section)
        if not body and not isinstance(has, Mapping):
            lines.append(f"Created new section {section}.")
        for option, value in body.items():
            same = isinstance(has, Mapping) and _same(has, option, value)
            lines.append(f"{'Unchanged' if same else 'Changed'} key {option}{where}.")
    return lines


def _present_changes(
    now: Mapping[str, object], wanted: Mapping[str, object], strict: bool, separator: str
) -> dict[str, object]:
    top: dict[str, Any] = copy.deepcopy(dict(now))
    changes: dict[str, dict[str, object]] = {}
    for section, option in _surplus(now, wanted) if strict else ():
        if option is None:
            changes[str(section)] = {"before": top.pop(str(section)), "after": None}
        elif section is None:
            changes[option] = {"before": top.pop(option), "after": None}
        else:
            changes.setdefault(section, {})[option] = {"before": top[section].pop(option), "after": None}
    for name, change in ini.update(top, wanted, separator).items():
        changes[name] = {**changes.get(name, {}), **change}
    return {**changes}


def _as_text(sections: Mapping[str, object] | Mapping[object, object]) -> dict[str, object]:
    """Return the wanted sections of an INI file with all keys as text, because YAML reads ``on`` and ``80`` as other
    types.
    """
    return {str(key): _as_text(value) if isinstance(value, Mapping) else value for key, value in sections.items()}


def _same(holder: Mapping[str, object], option: str, value: object) -> bool:
    return option in holder and str(holder[option]) == str(value)
