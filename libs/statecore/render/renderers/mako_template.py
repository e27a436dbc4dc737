"""The renderer ``mako``: text from a template that may do what the minion may. Mako is there where somebody installed it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecore.model.errors import Mark
from statecore.model.ports import Files
from statecore.model.time_limit import ComputedTooMuch, computing_limit
from statecore.render.faults import TemplateFault
from statecore.render.limit import seconds_of, told
from statecore.render.stage import RenderContext

if TYPE_CHECKING:
    from mako.template import Template


_NAMED = re.compile("'(\\w+)' is not defined")


def render(data: Any, stage: RenderContext) -> str:
    """The rendered text."""
    source = stage.source
    return run(str(data), source.path or source.file, source.saltenv, stage.files, stage.names, seconds_of(stage.opts))


def run(text: str, path: str, saltenv: str, files: Files, names: Mapping[str, Any], seconds: float) -> str:
    """The rendered text of a template at a path of the tree, which may compute for so many seconds. Raises TemplateFault at
    its line."""
    try:
        # Not everybody has it, and it takes longer to import than all our renderers.
        from mako.exceptions import CompileException, SyntaxException
    except ImportError as error:
        text_ = "Mako is not installed here (the Python package 'Mako')"
        raise TemplateFault(text_, Mark(path, 1), text) from error
    try:
        # Mako finds lines by templates that are still there.
        with computing_limit(seconds):
            template = _Lookup(files, saltenv).template(text, path)
            rendered: str = template.render_unicode(**_passable(names))
            return rendered
    except (CompileException, SyntaxException) as error:
        where = path if error.filename is None else str(error.filename)
        raise TemplateFault(f"Mako error: {error}", Mark(where, error.lineno), _source(text, where)) from error
    except ComputedTooMuch as error:
        raise _fault(f"Mako error: {told(error)}", error, text, path) from error
    except Exception as error:
        raise _fault(f"Mako error: {error} ({type(error).__name__})", error, text, path) from error


def _fault(reason: str, error: BaseException, text: str, path: str) -> TemplateFault:
    """At the innermost line of a template that the error went through. Called while it is handled: Mako looks for it there."""
    from mako.exceptions import RichTraceback

    records = [record for record in RichTraceback(error=error).records if record[4] is not None]
    where, line, lines = (str(records[-1][4]), records[-1][5], records[-1][7]) if records else (path, 0, text)
    source = lines or text
    return TemplateFault(reason, Mark(where, line or _line_of(error, source)), source)


def _line_of(error: BaseException, source: str) -> int:
    """The first line with the name that is not defined: Mako asks for all names before its first line. 0 for other errors."""
    found = _NAMED.match(str(error)) if isinstance(error, NameError) else None
    if found is None:
        return 0
    named = re.compile(rf"\b{re.escape(found[1])}\b")
    return next((number for number, line in enumerate(source.splitlines(), 1) if named.search(line)), 0)


class _Lookup:
    """Mako's interface for ``<%include/>``, ``<%namespace/>`` and ``<%inherit/>``: files of the tree, or of the machine."""

    def __init__(self, files: Files, saltenv: str) -> None:
        self._files = files
        self._saltenv = saltenv
        self._known: dict[str, Template] = {}

    def template(self, text: str, uri: str) -> Template:
        from mako.template import Template

        return Template(text, uri=uri, filename=None, lookup=self, strict_undefined=True)

    def get_template(self, uri: str, relativeto: str | None = None) -> Template:
        """Raises TemplateLookupException."""
        from mako.exceptions import TemplateLookupException

        known = self._known.get(uri)
        if known is None:
            found = (
                Path(uri.removeprefix("file://"))
                if uri.startswith("file://")
                else self._files.fetch(uri.removeprefix("salt://").lstrip("/"), self._saltenv)
            )
            if found is None or not found.is_file():
                raise TemplateLookupException(f"{uri} is not in saltenv '{self._saltenv}'")
            known = self._known[uri] = self.template(found.read_text("utf-8"), uri)
        return known

    def has_template(self, uri: str) -> bool:
        return uri.startswith("file://") or self._files.fetch(uri.lstrip("/"), self._saltenv) is not None

    def adjust_uri(self, uri: str, filename: str | None) -> str:
        """An address as it is; a path from the directory of the template that names it."""
        if "://" in uri or uri.startswith("/") or not filename:
            return uri
        return posixpath.normpath(posixpath.join(posixpath.dirname(filename.removeprefix("salt://")), uri))

    def filename_to_uri(self, uri: str, filename: str) -> str:
        return uri


def _passable(names: Mapping[str, Any]) -> dict[str, Any]:
    """Names without those that Mako keeps for itself."""
    return {
        name: value for name, value in names.items() if name not in ("context", "loop", "UNDEFINED", "STOP_RENDERING")
    }


def _source(text: str, where: str) -> str:
    path = Path(where)
    return path.read_text("utf-8", "replace") if path.is_absolute() and path.is_file() else text
