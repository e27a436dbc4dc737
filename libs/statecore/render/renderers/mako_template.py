"""The renderer ``mako``. It needs the Python package Mako. A Mako template can run any Python code in the minion."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.model import tree_url
from statecore.model.errors import Mark
from statecore.model.ports import Files
from statecore.model.time_limit import ComputedTooMuch, computing_limit
from statecore.render.context import RenderContext
from statecore.render.faults import TemplateFault
from statecore.render.limit import limit_message, time_limit_of

if TYPE_CHECKING:
    from mako.template import Template


_NAMED = re.compile("'(\\w+)' is not defined")


def render(data: object, context: RenderContext) -> str:
    """Renderer ``mako``: return the rendered text of a Mako template. Raise TemplateFault with the template's line."""
    source = context.source
    return run(
        str(data), source.path or source.file, source.saltenv, context.files, context.names, time_limit_of(context.opts)
    )


def run(text: str, path: str, saltenv: str, files: Files, names: Mapping[str, object], seconds: float) -> str:
    """Return the rendered text of a Mako template. ``path`` is its path in the state tree, ``names`` are its variables.

    The template may compute for ``seconds`` seconds. Raise TemplateFault with the template's line.
    """
    try:
        # Optional, and slower to import than all other renderers together.
        from mako.exceptions import CompileException, SyntaxException
    except ImportError as error:
        text_ = "Mako is not installed here (the Python package 'Mako')"
        raise TemplateFault(text_, Mark(path, 1), text) from error
    try:
        # Mako needs the live template objects to find the lines of an error.
        with computing_limit(seconds):
            template = _Lookup(files, saltenv).template(text, path)
            rendered: str = template.render_unicode(**_without_reserved(names))
            return rendered
    except (CompileException, SyntaxException) as error:
        where = path if error.filename is None else str(error.filename)
        raise TemplateFault(f"Mako error: {error}", Mark(where, error.lineno), _source(text, where)) from error
    except ComputedTooMuch as error:
        raise _fault(f"Mako error: {limit_message(error)}", error, text, path) from error
    except Exception as error:
        raise _fault(f"Mako error: {error} ({type(error).__name__})", error, text, path) from error


def _fault(reason: str, error: BaseException, text: str, path: str) -> TemplateFault:
    """Return the TemplateFault for an exception of Mako, with the innermost template line of its traceback.

    Call it in the except block of the exception, as Mako requires.
    """
    from mako.exceptions import RichTraceback

    records = [record for record in RichTraceback(error=error).records if record[4] is not None]
    where, line, lines = (str(records[-1][4]), records[-1][5], records[-1][7]) if records else (path, 0, text)
    source = lines or text
    return TemplateFault(reason, Mark(where, line or _line_of(error, source)), source)


def _line_of(error: BaseException, source: str) -> int:
    """Return the first line of a template that uses the undefined name of a NameError; 0 for other errors.

    Mako reads all names before the template's first line, so its traceback has no line for these errors.
    """
    found = _NAMED.match(str(error)) if isinstance(error, NameError) else None
    if found is None:
        return 0
    named = re.compile(rf"\b{re.escape(found[1])}\b")
    return next((number for number, line in enumerate(source.splitlines(), 1) if named.search(line)), 0)


class _Lookup:
    """Mako's lookup of the files in ``<%include/>``, ``<%namespace/>`` and ``<%inherit/>``: files of the state tree, or
    ``file://`` paths.
    """

    def __init__(self, files: Files, saltenv: str) -> None:
        self._files = files
        self._saltenv = saltenv
        self._known: dict[str, Template] = {}

    def template(self, text: str, uri: str) -> Template:
        """Return the Mako template of a text. ``uri`` is the template's path or URL."""
        from mako.template import Template

        return Template(text, uri=uri, filename=None, lookup=self, strict_undefined=True)

    def get_template(self, uri: str, relativeto: str | None = None) -> Template:
        """Return the Mako template at ``uri`` (``salt://``, ``file://`` or a path in the tree). Raise
        TemplateLookupException if there is none.
        """
        from mako.exceptions import TemplateLookupException

        known = self._known.get(uri)
        if known is None:
            found = (
                Path(uri.removeprefix("file://"))
                if uri.startswith("file://")
                else self._files.fetch(tree_url.split(uri).path, self._saltenv)
            )
            if found is None or not found.is_file():
                raise TemplateLookupException(f"{uri} is not in saltenv '{self._saltenv}'")
            known = self._known[uri] = self.template(found.read_text("utf-8"), uri)
        return known

    def has_template(self, uri: str) -> bool:
        """Return whether there may be a Mako template at ``uri``."""
        return uri.startswith("file://") or self._files.fetch(uri.lstrip("/"), self._saltenv) is not None

    def adjust_uri(self, uri: str, filename: str | None) -> str:
        """Return a relative path joined to the directory of the Mako template that contains it. URLs and absolute paths
        are unchanged.
        """
        if "://" in uri or uri.startswith("/") or not filename:
            return uri
        return posixpath.normpath(posixpath.join(posixpath.dirname(filename.removeprefix("salt://")), uri))

    def filename_to_uri(self, uri: str, filename: str) -> str:
        """Return the URI unchanged. Mako's interface requires this method."""
        return uri


def _without_reserved(names: Mapping[str, object]) -> dict[str, object]:
    """Return the template variables without the names that Mako reserves."""
    return {
        name: value for name, value in names.items() if name not in ("context", "loop", "UNDEFINED", "STOP_RENDERING")
    }


def _source(text: str, where: str) -> str:
    path = Path(where)
    return path.read_text("utf-8", "replace") if path.is_absolute() and path.is_file() else text
