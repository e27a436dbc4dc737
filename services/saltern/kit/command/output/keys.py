"""The outputters ``key`` (lists of salt-key) and ``no_return`` (minions that did not answer)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from saltern.kit.command.output.color import Palette, without_escapes
from saltern.kit.command.output.options import OutputOptions

#: State of a key as the wheel names it -> heading, colour of the heading, colour of the ids.
KEY_STATES: Mapping[str, tuple[str, Callable[[Palette], str], Callable[[Palette], str]]] = {
    "minions": ("Accepted Keys:", lambda color: color.light_green, lambda color: color.green),
    "minions_pre": ("Unaccepted Keys:", lambda color: color.light_red, lambda color: color.red),
    "minions_denied": ("Denied Keys:", lambda color: color.light_magenta, lambda color: color.magenta),
    "minions_rejected": ("Rejected Keys:", lambda color: color.light_blue, lambda color: color.blue),
    "local": ("Local Keys:", lambda color: color.light_magenta, lambda color: color.magenta),
}


def render_keys(data: Mapping[str, object], options: OutputOptions) -> str:
    """Return the text that salt-key prints for a map of key state to minion ids.

    In place of the ids there may be maps of minion id to fingerprint or key. Raises KeyError for an unknown key state, and
    TypeError for data that is no such map.
    """
    colors = options.colors
    lines: list[str] = []
    for state in sorted(data):
        heading, heading_color, id_color = KEY_STATES[state]
        lines.append(f"{heading_color(colors)}{heading}{colors.endc}")
        found = data[state]
        if not isinstance(found, list | Mapping):
            raise TypeError(f"{state} holds no keys")
        for minion in sorted(found):
            shown = without_escapes(minion) if options.strip_colors else minion
            detail = f":  {found[minion]}" if isinstance(found, Mapping) else ""
            lines.append(f"{id_color(colors)}{shown}{detail}{colors.endc}")
    return "\n".join(lines)


def render_no_return(data: object, options: OutputOptions) -> str:
    """Return the text for minions that did not return ({minion id: reason}): ids in cyan, reasons in red."""
    return "\n".join(_no_return(data, 0, options.colors))


def _no_return(data: object, indent: int, colors: Palette) -> Iterator[str]:
    margin = " " * indent
    if isinstance(data, str):
        for line in data.split("\n"):
            yield f"{colors.red}{margin}{line}{colors.endc}"
    elif isinstance(data, Mapping):
        for name in sorted(data):
            yield f"{colors.cyan}{margin}{name}{colors.endc}:"
            yield from _no_return(data[name], indent + 4, colors)
