"""``salt.output.nested`` for users' modules: data as Salt's outputter ``nested`` shows them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from numbers import Number
from typing import Any

from statecore.loader.current_context import current

#: Name of a colour -> its escape sequence.
_COLOURS: Mapping[str, str] = {
    "BLACK": "0;30",
    "DARK_GRAY": "1;30",
    "RED": "0;31",
    "LIGHT_RED": "0;1;31",
    "GREEN": "0;32",
    "LIGHT_GREEN": "0;1;32",
    "YELLOW": "0;33",
    "LIGHT_YELLOW": "0;1;33",
    "BLUE": "0;34",
    "LIGHT_BLUE": "0;1;34",
    "MAGENTA": "0;35",
    "LIGHT_MAGENTA": "0;1;35",
    "CYAN": "0;36",
    "LIGHT_CYAN": "0;1;36",
    "WHITE": "0;1;37",
    "LIGHT_GRAY": "0;37",
    "DEFAULT_COLOR": "00",
    "ENDC": "0",
}


def _opts() -> Mapping[str, object]:
    ctx = current.get()
    return {} if ctx is None else ctx.opts


class NestDisplay:
    """Formats nested data as lines of text. Colours are its attributes (GREEN ...): escape sequences, or "" without
    colours.
    """

    LIGHT_YELLOW: str
    GREEN: str
    CYAN: str
    RED: str
    ENDC: str

    def __init__(self, retcode: int = 0) -> None:
        """Store the exit code of the function whose return is formatted: names are red if it is not 0."""
        coloured = bool(_opts().get("color"))
        self.__dict__.update({name: f"\x1b[{code}m" if coloured else "" for name, code in _COLOURS.items()})
        self.strip_colors = bool(_opts().get("strip_colors", True))
        self.retcode = retcode

    def ustring(
        self, indent: int, color: str, msg: object, prefix: str = "", suffix: str = "", endc: str | None = None
    ) -> str:
        """Return one line: a value with its indentation and colour."""
        return f"{indent * ' '}{color}{prefix}{msg}{self.ENDC if endc is None else endc}{suffix}"

    def display(self, ret: object, indent: int, prefix: str, out: list[str]) -> list[str]:
        """Append the lines for the value ``ret`` to the list ``out``, and return ``out``."""
        if isinstance(ret, bytes):
            try:
                ret = ret.decode()
            except UnicodeDecodeError:
                return out
        names = self.RED if self.retcode else self.CYAN
        if ret is None or isinstance(ret, bool):
            out.append(self.ustring(indent, self.LIGHT_YELLOW, ret, prefix=prefix))
        elif isinstance(ret, Number):
            out.append(self.ustring(indent, self.LIGHT_YELLOW, repr(ret), prefix=prefix))
        elif isinstance(ret, str):
            for number, line in enumerate(ret.splitlines()):
                shown = line.replace("\x1b", "?") if self.strip_colors else line
                out.append(self.ustring(indent, self.GREEN, shown, prefix=" " * len(prefix) if number else prefix))
        elif isinstance(ret, list | tuple):
            for item in ret:
                if isinstance(item, list | tuple | Mapping):
                    out.append(self.ustring(indent, self.RED if self.retcode else self.GREEN, "|_"))
                    self.display(item, indent + 2, "" if isinstance(item, Mapping) else "- ", out)
                else:
                    self.display(item, indent, "- ", out)
        elif isinstance(ret, Mapping):
            if indent:
                out.append(self.ustring(indent, names, "----------"))
            for key, value in _rows(ret):
                out.append(self.ustring(indent, names, key, prefix=prefix, suffix=":"))
                self.display(value, indent + 4, "", out)
        return out


def _rows(data: Mapping[Any, object]) -> list[tuple[object, object]]:
    if isinstance(data, OrderedDict):
        return list(data.items())
    try:
        return [(key, data[key]) for key in sorted(data)]
    except TypeError:
        named = {str(key): value for key, value in data.items()}
        return [(key, named[key]) for key in sorted(named)]


def output(ret: object, **kwargs: object) -> str:
    """Return a value as text in the format ``nested``. ``nested_indent``: spaces before each line; ``_retcode``: exit
    code.
    """
    indent = int(str(kwargs.get("nested_indent") or _opts().get("nested_indent") or 0))
    return "\n".join(NestDisplay(int(str(kwargs.get("_retcode", 0)))).display(ret, indent, "", []))
