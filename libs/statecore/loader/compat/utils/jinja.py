"""``salt.utils.jinja`` for users' modules: the loader of templates in the state tree, the Jinja extension with
``load_yaml`` and similar statements, and filters as functions.
"""

from __future__ import annotations

import json
import pprint
import re
import shlex
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from jinja2 import BaseLoader, Environment, TemplateNotFound
from jinja2.exceptions import SecurityError

from statecore.loader.compat.filter_aliases import filter_getattr
from statecore.loader.current_context import context_of
from statecore.render.jinja.tags import SerializerExtension

__all__ = [
    "PrintableDict",
    "SaltCacheLoader",
    "SerializerExtension",
    "lst_max",
    "lst_min",
    "method_call",
    "quote",
    "regex_escape",
    "tojson",
]

#: Salt's function -> ``file.function`` of our filter.
_FILTERS = {
    **{name: f"text.{name}" for name in ("regex_match", "regex_replace", "regex_search", "to_bool")},
    **{name: f"lists.{name}" for name in ("difference", "intersect", "symmetric_difference", "union", "unique")},
}

#: Python's functions that Salt has under other names.
quote = shlex.quote
regex_escape = re.escape
lst_min, lst_max = min, max

__getattr__ = filter_getattr(__name__, _FILTERS)


class SaltCacheLoader(BaseLoader):
    """Loader of Jinja templates from the state tree of the minion on which the module runs."""

    def __init__(
        self,
        opts: object,
        saltenv: str = "base",
        encoding: str = "utf-8",
        pillar_rend: bool = False,
        _file_client: object = None,
    ) -> None:
        """Load templates from the saltenv ``saltenv``; ``encoding`` is the encoding of the files. The other arguments
        are ignored.
        """
        self.opts = opts
        self.saltenv = saltenv
        self.encoding = encoding

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Return (text of a template, its local path, a function that always returns True: the text is current). Raise
        TemplateNotFound if the state tree has no such file.
        """
        files = context_of("salt.utils.jinja.SaltCacheLoader").files
        path = files.fetch(template.removeprefix("salt://").lstrip("/"), self.saltenv)
        if path is None:
            raise TemplateNotFound(template)
        return path.read_text(self.encoding), str(path), lambda: True

    def destroy(self) -> None:
        """Do nothing: the loader holds no resources."""


class PrintableDict(OrderedDict[Any, Any]):
    """An ordered dict that templates print as a plain dict."""

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {value!r}" for key, value in self.items()) + "}"

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{pprint.saferepr(key)}: {value!r}" for key, value in self.items()) + "}"


def method_call(obj: object, f_name: str, *f_args: object, **f_kwargs: object) -> object:
    """Call a public method of a value and return the result; None if the value has no such method. Raise SecurityError for
    a name that begins with ``_``.
    """
    if f_name.startswith("_"):
        raise SecurityError(f"'{f_name}' is not a public method")
    found = getattr(obj, f_name, None)
    return found(*f_args, **f_kwargs) if found is not None else None


def tojson(val: object, indent: int | None = None, **options: Any) -> str:
    """Return a value as JSON text in which ``<``, ``>``, ``&`` and ``'`` are escaped, for a page of HTML."""
    text = json.dumps(val, indent=indent, **{"ensure_ascii": True, **options})
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
