"""Jinja as formulas use it: templates from ``salt://``, strict about what is undefined, errors at the line of the template.

For errors in what a template produced (YAML, high data) lines are found again by ``line_map``: the template is rendered a
second time with a mark in front of each of its own lines. Success pays nothing for that.
"""

from __future__ import annotations

import re
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment

from statecore.errors import Mark, NotAvailable, SlsError, SlsFault, StatecoreError
from statecore.ports import Files
from statecore.render.filters import FILTERS, TESTS
from statecore.render.filters.text import load_json, load_yaml, printable

#: Salt's arrow behind the faulty line of an excerpt.
ARROW = "    <======================"

#: Lines shown around a faulty one.
_AROUND = 4

#: Marks a line's origin in a second rendering; no text holds it by accident.
_MARKED = re.compile("\x01(\\d+)\x02")

_IMPORTERS: Mapping[str, Callable[[str], Any]] = {"yaml": load_yaml, "json": load_json, "text": str}


class SerializerExtension(Extension):
    """``{% import_yaml "x" as y %}``, ``{% load_json as y %}...{% endload %}`` and their kin."""

    tags = {  # noqa: RUF012 - Jinja's interface
        *(f"{verb}_{kind}" for verb in ("import", "load") for kind in _IMPORTERS),
        "profile",
    }

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        """One statement."""
        token = next(parser.stream)
        if token.value == "profile":
            # Salt logs how long the block took; here it is only its content.
            parser.stream.expect("name:as")
            parser.parse_expression()
            return parser.parse_statements(("name:endprofile",), drop_needle=True)
        verb, _, kind = token.value.partition("_")
        if verb == "import":
            source = parser.parse_expression()
            parser.stream.expect("name:as")
            target = parser.parse_assign_target(with_namespace=False)
            call = self.call_method(
                "_imported", [nodes.Const(kind), source, nodes.Const(parser.name or "")], lineno=token.lineno
            )
            return nodes.Assign(target, call, lineno=token.lineno)
        parser.stream.expect("name:as")
        target = parser.parse_assign_target(with_namespace=False)
        body = parser.parse_statements(("name:endload",), drop_needle=True)
        # The block's text is kept in a name of its own, then read.
        scratch = parser.free_identifier(lineno=token.lineno)
        return [
            nodes.AssignBlock(scratch, None, body, lineno=token.lineno),
            nodes.Assign(
                target,
                self.call_method("_loaded", [nodes.Const(kind), scratch], lineno=token.lineno),
                lineno=token.lineno,
            ),
        ]

    def _imported(self, kind: str, name: str, parent: str) -> Any:
        loader = self.environment.loader
        assert loader is not None
        real = self.environment.join_path(name, parent)
        # A rendered import: what is imported may be a template itself.
        text = self.environment.get_template(real).render(self.environment.globals)
        return self._loaded(kind, text)

    def _loaded(self, kind: str, text: Any) -> Any:
        return _IMPORTERS[kind](_MARKED.sub("", str(text)))


class FilesLoader(jinja2.BaseLoader):
    """Templates of one environment of the state tree. Fetched files are read once for each environment object."""

    def __init__(self, files: Files, saltenv: str) -> None:
        self._files = files
        self._saltenv = saltenv

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Text, path, and "still fresh"."""
        path = self._files.fetch(template.removeprefix("salt://"), self._saltenv)
        if path is None:
            raise jinja2.TemplateNotFound(template, f"{template} is not in saltenv '{self._saltenv}'")
        return path.read_text("utf-8"), str(path), lambda: True


class _Environment(SandboxedEnvironment):
    def get_template(self, name: Any, parent: str | None = None, globals: Any = None) -> jinja2.Template:
        """A template that is imported knows where it is itself, as in Salt; one that is included belongs to the SLS."""
        path = self.join_path(name, parent) if isinstance(name, str) and parent is not None else name
        return super().get_template(
            path, None, {**(globals or {}), **place(path)} if isinstance(path, str) else globals
        )

    def join_path(self, template: str, parent: str) -> str:
        """``./x`` and ``../x`` are meant from the importing file's directory."""
        if not template.startswith((".", "/")):
            return template.removeprefix("salt://")
        if template.startswith("/"):
            return template.lstrip("/")
        parts = parent.split("/")[:-1]
        for part in template.split("/"):
            if part == "..":
                if not parts:
                    raise jinja2.TemplateNotFound(template, f"{template} leads out of the tree from '{parent}'")
                parts.pop()
            elif part != ".":
                parts.append(part)
        return "/".join(parts)


def place(path: str) -> dict[str, str]:
    """Names of templates that say where in the tree they are."""
    directory = path.rpartition("/")[0]
    return {
        "tplfile": path,
        "tpldir": directory or ".",
        "tpldot": directory.replace("/", "."),
        "tplroot": path.split("/")[0],
    }


class SaltFunctions(Mapping[str, Callable[..., Any]]):
    """``salt`` in templates: ``salt['x.y']()`` and ``salt.x.y()``."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = functions

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function; what is not available is undefined: a template may ask, and calling it says why."""
        try:
            return self._functions[name]
        except NotAvailable as missing:
            return jinja2.StrictUndefined(hint=str(missing), name=name)
        except KeyError:
            return jinja2.StrictUndefined(hint=str(NotAvailable(name)), name=name)

    def __getattr__(self, module: str) -> Any:
        if module.startswith("__"):
            raise AttributeError(module)
        return _Module(self, module)

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:
        try:
            return name in self._functions and self._functions[str(name)] is not None
        except (KeyError, NotAvailable):
            return False

    def get(self, name: str, default: Any = None) -> Any:
        """The function, or the default when it is not available."""
        found = self[name]
        return default if isinstance(found, jinja2.Undefined) else found


class _Module:
    def __init__(self, functions: SaltFunctions, module: str) -> None:
        self._functions = functions
        self._module = module

    def __getattr__(self, function: str) -> Callable[..., Any]:
        if function.startswith("__"):
            raise AttributeError(function)
        return self._functions[f"{self._module}.{function}"]


def environment(
    files: Files, saltenv: str, context: Mapping[str, Any], options: Mapping[str, Any]
) -> jinja2.Environment:
    """A Jinja environment over a state tree. ``options``: Jinja's own names (jinja_env, jinja_sls_env)."""
    env = _Environment(
        loader=FilesLoader(files, saltenv),
        undefined=jinja2.StrictUndefined,
        finalize=printable,
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols", SerializerExtension],
        **{name: value for name, value in options.items() if name not in ("extensions", "loader", "undefined")},
    )
    env.filters.update(FILTERS)
    env.tests.update(TESTS)
    env.globals.update(context)
    env.globals["raise"] = _raise
    env.globals["odict"] = OrderedDict
    env.globals["show_full_context"] = lambda: dict(context)
    return env


def render(
    text: str, name: str, files: Files, saltenv: str, context: Mapping[str, Any], options: Mapping[str, Any]
) -> str:
    """The rendered text. ``name``: path of the template in the tree. Raises TemplateFault, located."""
    env = environment(files, saltenv, context, options)
    rendered = _run(lambda: _template(env, text, name, files, saltenv), text, name, files)
    # Jinja drops the last newline; that of the file itself stays, those of what it includes do not.
    return rendered + "\n" if text.endswith("\n") and not env.keep_trailing_newline else rendered


def line_map(
    text: str, name: str, files: Files, saltenv: str, context: Mapping[str, Any], options: Mapping[str, Any]
) -> list[int]:
    """For each line of the rendered text, the line of the template it came from (0: from elsewhere). For errors only."""
    env = environment(files, saltenv, context, options)
    lines = text.splitlines(keepends=True)
    marked = "".join(
        f"{line}" if not _markable(text, lines, i) else f"\x01{i + 1}\x02{line}" for i, line in enumerate(lines)
    )
    try:
        rendered = _template(env, marked, name, files, saltenv).render()
    except Exception:  # noqa: BLE001 - without a map the error is shown without a line, never hidden by another one
        return []
    origins, last = [], 0
    for line in rendered.splitlines():
        found = _MARKED.findall(line)
        last = int(found[-1]) if found else last
        origins.append(last)
    return origins


def excerpt(text: str, line: int) -> str:
    """Lines around a faulty one, with Salt's arrow."""
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    first = max(0, line - 1 - _AROUND)
    shown = [
        f"{one}{ARROW}" if number == line else one
        for number, one in enumerate(lines[first : line + _AROUND], first + 1)
    ]
    return "\n".join(shown)


class TemplateFault(SlsError):
    """A template that cannot be rendered; ``reason`` is Jinja's sentence in Salt's words."""

    def __init__(self, reason: str, mark: Mark, source: str) -> None:
        self.reason = reason
        self.mark = mark
        self.excerpt = excerpt(source, mark.line)
        super().__init__([SlsFault(reason, mark, excerpt=self.excerpt)])


#: What went wrong -> how Salt begins its sentence; the first that fits. What is none of these is named by its class.
_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (jinja2.TemplateSyntaxError, "Jinja syntax error: {}"),
    (jinja2.UndefinedError, "Jinja variable {}"),
    (jinja2.TemplateNotFound, "Jinja error: {}"),
    (jinja2.TemplateRuntimeError, "Jinja syntax error: {}"),
    (jinja2.TemplateError, "Jinja error: {}"),
    (StatecoreError, "Problem running salt function in Jinja template: {}"),
    (RecursionError, "Jinja error: a macro or an include calls itself without end"),
)


def _run(get: Callable[[], jinja2.Template], text: str, name: str, files: Files) -> str:
    try:
        return get().render()
    except SlsError:
        raise
    except Exception as error:
        unknown = f"Jinja error: {{}} ({type(error).__name__})"
        sentence = next((words for kind, words in _SENTENCES if isinstance(error, kind)), unknown)
        reason = sentence.format(error.message if isinstance(error, jinja2.TemplateError) else error)
        raise _fault(reason, *_place(error, name), text, files) from error


def _fault(reason: str, file: str, line: int, text: str, files: Files) -> TemplateFault:
    path = Path(file)
    if not path.is_absolute():
        return TemplateFault(reason, Mark(file, line), text)
    source = path.read_text("utf-8", "replace") if path.is_file() else text
    return TemplateFault(reason, Mark(files.shown(path), line), source)


def _place(error: BaseException, name: str) -> tuple[str, int]:
    """(file, line) of the innermost template in a traceback: Jinja rewrites its frames to template lines."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.filename or name, error.lineno
    place = (name, 0)
    if isinstance(error, RecursionError):
        return place
    for frame, line in traceback.walk_tb(error.__traceback__):
        if "__jinja_exception__" in frame.f_globals:
            file = frame.f_code.co_filename
            place = (name if file == "<template>" else file, line)
    return place


def _template(env: jinja2.Environment, text: str, name: str, files: Files, saltenv: str) -> jinja2.Template:
    """A text as the template of this name: its relative imports are meant from there, its errors name the file on disk."""
    path = files.fetch(name, saltenv) if name and not name.startswith("/") else None
    code = env.compile(text, name or None, str(path) if path is not None else None)
    return env.template_class.from_code(env, code, env.make_globals(None), None)


def _markable(text: str, lines: list[str], index: int) -> bool:
    """Whether a mark may stand before a line: not inside a Jinja tag or comment that goes over several lines."""
    before = "".join(lines[:index])
    return all(before.count(start) <= before.count(end) for start, end in (("{%", "%}"), ("{{", "}}"), ("{#", "#}")))


def _raise(message: str) -> None:
    raise jinja2.TemplateError(str(message))
