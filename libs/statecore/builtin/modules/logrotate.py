"""Configuration of logrotate: Salt's ``logrotate`` execution module.

The configuration is a map of command to value; a block of a log file is a map of its own. A command without a value has
the value True.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of

ALIASES = {"set": "set_"}

_FILE = "/etc/logrotate.conf"

#: Commands whose value is the lines up to ``endscript``.
_SCRIPTS = ("firstaction", "lastaction", "prerotate", "postrotate", "preremove")


def show_conf(ctx: Context, conf_file: str = _FILE) -> dict[str, Any]:
    """Return logrotate's configuration as a map of command to value, and of log file to a map of its block, included
    files too. ``include files`` is a map of included file to the list of the commands and blocks in it.

    CLI Example:

        salt '*' logrotate.show_conf
    """
    return parse(_text(ctx, conf_file), lambda place: _included(ctx, place))


def get(ctx: Context, key: str, value: str | None = None, conf_file: str = _FILE) -> Any:
    """Return the value of a command of logrotate's configuration, or the map of a log file's block; False if there
    is none.

    key
        the command, or the log file of a block
    value
        the command within the block

    CLI Example:

        salt '*' logrotate.get rotate
        salt '*' logrotate.get /var/log/wtmp rotate /etc/logrotate.conf
    """
    found = show_conf(ctx, conf_file).get(key, False)
    if not value or not found:
        return found
    return found.get(value, False) if isinstance(found, Mapping) else False


def set_(ctx: Context, key: str, value: Any, setting: Any = None, conf_file: str = _FILE) -> bool:
    """Set the value of a command of logrotate's configuration, in the file that has it. Return whether the file was
    changed or has the value already.

    key
        the command, or the log file of a block
    value
        the command's value, True for one without a value, False to remove it; of a block, the command in it
    setting
        the value of the command in a block

    CLI Example:

        salt '*' logrotate.set rotate 2
        salt '*' logrotate.set /var/log/wtmp rotate 2 /etc/logrotate.conf
    """
    conf = show_conf(ctx, conf_file)
    for name, keys in conf.get("include files", {}).items():
        if key in keys:
            conf_file = f"{conf['include'].rstrip('/')}/{name}"
    now = conf.get(key, False)
    given: dict[str, Any] = {"path": conf_file, "backup": False, "show_changes": False}
    if setting is None:
        if isinstance(now, dict):
            raise InvocationError(
                f"Error: {key} includes a dict, and a specific setting inside the dict was not declared"
            )
        if value == now:
            return True
        line = key if value is True else f"{key} {value}" if value else ""
        given |= {"pattern": f"^{re.escape(key)}.*", "flags": re.MULTILINE, "prepend_if_not_found": True}
    else:
        if now and not isinstance(now, dict):
            raise InvocationError(
                "Error: A setting for a dict was declared, but the configuration line given is not a dict"
            )
        block = dict(now or {})
        if setting == block.get(value, False):
            return True
        block = {**block, value: setting} if setting else {name: each for name, each in block.items() if name != value}
        line = block_text(key, block)
        flags = re.MULTILINE | re.DOTALL
        given |= {"pattern": rf"^{re.escape(key)}.*?{{.*?}}", "flags": int(flags), "append_if_not_found": True}
    return bool(ctx.call("file.replace", repl=line.replace("\\", "\\\\"), **{**given, "flags": int(given["flags"])}))


def block_text(key: str, block: Mapping[str, Any]) -> str:
    """Return the block of a log file as text for logrotate's configuration, without a line end."""
    lines = []
    for name, value in block.items():
        if name in _SCRIPTS and isinstance(value, list):
            lines += [f"    {name}", *(f"        {line}" for line in value), "    endscript"]
        else:
            lines.append(f"    {name} {'' if value is True else value}")
    return "\n".join([f"{key} {{", *lines, "}"])


def parse(text: str, included: Callable[[str], Mapping[str, str]]) -> dict[str, Any]:
    """Return the text of one of logrotate's files as a map of command to value, and of log file to a map of its block.

    ``included`` is a function that returns the files that an ``include`` names: a map of file name to text.
    """
    found: dict[str, Any] = {}
    block: dict[str, Any] | None = None
    names: list[str] = []
    waiting: list[str] = []
    script: list[str] | None = None
    for line in (each.strip() for each in lines_of(text)):
        words = line.split()
        if script is not None:
            if line == "endscript":
                script = None
            else:
                script.append(line)
        elif not line or line.startswith("#"):
            continue
        elif "{" in line and "}" not in line:
            names, waiting, block = [*waiting, *(word for word in words if word != "{")], [], {}
        elif "}" in line:
            found.update(dict.fromkeys(names, block if block is not None else {}))
            names, block = [], None
        elif block is None and len(words) == 1 and _is_log_file(words[0]):
            waiting.append(words[0])
        elif words[0] in _SCRIPTS and len(words) == 1 and block is not None:
            script = block[words[0]] = []
        else:
            if words[0] == "include" and len(words) > 1:
                _include(found, words[1], included)
            place = found if block is None else block
            place[words[0]] = True if len(words) == 1 else _number(" ".join(words[1:]))
    return found | dict.fromkeys(waiting, True)


def _include(found: dict[str, Any], place: str, included: Callable[[str], Mapping[str, str]]) -> None:
    files = found.setdefault("include files", {})
    for name, text in included(place).items():
        inner = parse(text, included)
        files.setdefault(name, []).extend(inner)
        found.update(inner)


def _is_log_file(word: str) -> bool:
    return word.startswith(("/", "~", '"', "'")) or any(sign in word for sign in "*?[")


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else text


def _text(ctx: Context, name: str) -> str:
    data = managed_file.read(ctx.host.path(name), name)
    if data is None:
        raise CommandError(f"the host has no {name}")
    return data.decode("utf-8", "surrogateescape")


def _included(ctx: Context, place: str) -> dict[str, str]:
    path = ctx.host.path(place)
    if not path.is_dir():
        return {}
    names = sorted(each.name for each in path.iterdir())
    return {name: _text(ctx, f"{place.rstrip('/')}/{name}") for name in names}
