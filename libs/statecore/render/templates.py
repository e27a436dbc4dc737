"""Renders the content of managed files and other texts with template engines. Implements the interface
``ports.Templates``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any

from statecore.model import tree_url
from statecore.model.errors import Mark, SlsError, SlsFault
from statecore.model.ports import Files
from statecore.render.context import SlsSource
from statecore.render.jinja import whitespace
from statecore.render.limit import time_limit_of
from statecore.render.path_variables import sls_variables, template_variables
from statecore.render.pipe import Pipes
from statecore.render.renderers import mako_template, python


class TreeTemplates:
    """The template engines (jinja, mako, py) for the managed files of one state tree."""

    def __init__(self, files: Files, context: Mapping[str, object], opts: Mapping[str, Any], pipes: Pipes) -> None:
        self._files = files
        self._context = context
        self._pipes = pipes
        self._seconds = time_limit_of(opts)
        #: Jinja's options for files that are not SLS files.
        self.jinja_options = {**whitespace(opts), **(opts.get("jinja_env") or {})}
        #: Engine name, as in ``template: jinja`` -> function that renders.
        self._engines: Mapping[str, Callable[[str, str, str, str, Mapping[str, object]], str]] = {
            "jinja": self._jinja,
            "mako": self._mako,
            "py": self._py,
        }

    def render(self, text: str, engine: str, context: Mapping[str, object], *, saltenv: str, source: str = "") -> str:
        """Return a text rendered by the template engine ``engine`` ("jinja", "mako" or "py"), such as the source of
        ``file.managed``.

        ``source`` is the URL or path of the text, for messages and relative imports. Raise SlsError with file and line
        if the template fails, or if the engine is unknown.
        """
        render = self._engines.get(engine)
        if render is None:
            known = ", ".join(self._engines)
            fault = SlsFault(
                f"'{engine}' is not a template engine; there are {known}", Mark(source) if source else None
            )
            raise SlsError([fault])
        path = tree_url.split(source).path if tree_url.is_tree_url(source) else ""
        names = {
            **self._context,
            "saltenv": saltenv,
            "env": saltenv,
            **template_variables(path),
            "tplfile": path or source,
            **context,
        }
        return render(text, path, source, saltenv, names)

    def data(self, text: str, pipe: str, names: Mapping[str, object], *, saltenv: str, source: str = "") -> object:
        """Return the data that renderers make of a text: the renderers of its first line (``#!jinja|yaml``), else those
        of ``pipe``.

        ``names`` are variables for the template. ``source`` is the URL or path of the text, for messages and relative
        imports. Raise SlsError with file and line.
        """
        path = tree_url.split(source).path if tree_url.is_tree_url(source) else ""
        found = self._files.fetch(path, saltenv) if path else None
        file = str(found) if found is not None else source
        shown = self._files.shown(found) if found is not None else source or "<string>"
        sls = str(names.get("sls", ""))
        # As in Salt, a file that is not an SLS of the run has its base name only, without directories, in its
        # variables.
        own = {"sls": "", **sls_variables(posixpath.basename(path or source), sls, saltenv, file)}
        seen = {**self._context, **own, **names}
        options = None if sls else self.jinja_options
        return self._pipes.data(SlsSource(sls, saltenv, path, file, text, shown), seen, pipe, options)

    def _jinja(self, text: str, path: str, source: str, saltenv: str, names: Mapping[str, object]) -> str:
        return self._pipes.jinja.render(text, path, saltenv, names, self.jinja_options)

    def _mako(self, text: str, path: str, source: str, saltenv: str, names: Mapping[str, object]) -> str:
        return mako_template.run(text, path or source, saltenv, self._files, names, self._seconds)

    def _py(self, text: str, path: str, source: str, saltenv: str, names: Mapping[str, object]) -> str:
        made = python.run(text, source or "<string>", {**names, "context": dict(names)}, self._seconds)
        return made.decode() if isinstance(made, bytes) else str(made)
