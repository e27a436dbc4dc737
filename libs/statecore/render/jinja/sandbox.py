"""The sandbox for Jinja templates: loads templates from the state tree, is strict about undefined values, and limits
CPU time.

One environment serves all templates of a tree that have the same options. Data that belongs to one rendering
(variables, loaded templates, limit of CPU time) is in a ``Rendering``, so that a template may render another template
in between.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from itertools import chain, compress, repeat

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context

from statecore.model import tree_url
from statecore.model.ports import Files
from statecore.render.filters import FILTERS, GLOBALS, TESTS
from statecore.render.filters.machine import host_path
from statecore.render.filters.text import printable
from statecore.render.jinja.closed import ClosedEnvironment, Limits
from statecore.render.jinja.functions import SaltFunctions
from statecore.render.jinja.tags import SerializerExtension
from statecore.render.memory import RenderMemory
from statecore.render.path_variables import template_variables

#: Number of loop iterations and calls between two checks of the clock.
_ITERATIONS = 100

#: Code that Jinja's code generator writes at the beginning of each loop iteration.
_ITERATION_BEGINS = "_loop_vars = {}"

#: Code that Jinja's code generator writes for the values that a loop's ``if`` filters.
_FILTERED = "fiter"

#: Largest result of a multiplication or power, in characters, items or bits. Python computes it without a clock check.
_LARGEST = 100_000_000


class TimeLimit(Exception):
    """Raised in a Jinja template that used more CPU time than the option ``jinja_time_limit`` allows."""


@dataclass(slots=True)
class Rendering:
    """One rendering of a Jinja template in progress: its variables, its limit of CPU time (``deadline``) and the
    templates that it imported.
    """

    names: Mapping[str, object]
    #: Deadline in seconds of this thread's CPU time. Waiting for commands and requests does not count.
    deadline: float
    #: Path -> imported template. Each is evaluated once for each rendering.
    loaded: dict[str, jinja2.Template] = field(default_factory=dict)


class _CountingCode(CodeGenerator):
    """Jinja's code generator, changed so that the compiled template counts each loop iteration.

    After every 100 iterations and calls, the CPU time used so far is compared with the rendering's limit, so that an
    endless loop is stopped.
    """

    def writeline(self, x: str, node: nodes.Node | None = None, extra: int = 0) -> None:
        super().writeline(x, node, extra)
        if x == _ITERATION_BEGINS:
            super().writeline("next(iterations)")

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> str:
        # Compiled code is cached, and a filter's result may change. So only the template's own text is a constant.
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)

    def write(self, x: str) -> None:
        super().write("counted(fiter)" if x == _FILTERED else x)


class TreeLoader(jinja2.BaseLoader):
    """Jinja's loader for the templates of one saltenv of the state tree."""

    def __init__(self, files: Files, saltenv: str, host_root: str) -> None:
        self._files = files
        self._saltenv = saltenv
        self._host_root = host_root

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Return (text, path on disk, function that returns True) of a template in the state tree, as Jinja's interface
        requires. A path that begins with a slash may also be a file of the managed host.

        Raise TemplateNotFound if there is no such file, TemplateError if it cannot be read as UTF-8.
        """
        path = self._files.fetch(tree_url.split(template).path, self._saltenv)
        if path is None and template.startswith("/"):
            # As in Salt, an absolute path is also a file of the host.
            path = host_path(self._host_root, template)
        if path is None or not path.is_file():
            raise jinja2.TemplateNotFound(template, f"{template} is not in saltenv '{self._saltenv}'")
        try:
            return path.read_text("utf-8"), str(path), lambda: True
        except UnicodeDecodeError as error:
            raise jinja2.TemplateError(f"{template} is not UTF-8 text: byte {error.start}") from error
        except OSError as error:
            raise jinja2.TemplateError(f"{template} cannot be read: {error.strerror}") from error


class TreeEnvironment(ClosedEnvironment):
    """Jinja's environment for the templates of one saltenv, in a sandbox with a time limit."""

    code_generator_class = _CountingCode
    intercepted_binops = frozenset(("*", "**"))

    def __init__(
        self,
        files: Files,
        saltenv: str,
        names: Mapping[str, object],
        options: Mapping[str, object],
        memory: RenderMemory | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Prepare the environment for the templates of the saltenv ``saltenv``, which are read from ``files``.

        ``names`` maps the variables of every template to their values. ``options`` are arguments of
        jinja2.Environment, such as ``trim_blocks`` or ``undefined``. ``memory``: cache of compiled templates;
        None: a new one. ``limits``: what filters may do on the machine.
        """
        limits = Limits() if limits is None else limits
        salt = names.get("salt")
        super().__init__(
            limits=limits,
            functions=salt if isinstance(salt, SaltFunctions) else None,
            loader=TreeLoader(files, saltenv, limits.host_root),
            finalize=printable,
            extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols", SerializerExtension],
            **{"undefined": jinja2.StrictUndefined, **options, "optimized": False},
        )
        self.memory = RenderMemory() if memory is None else memory
        self._own = repr(sorted(options.items(), key=lambda item: item[0]))
        self.rendering = Rendering({}, float("inf"))
        #: Iterator that advances for each loop iteration and each call. Every ``_ITERATIONS`` items it checks the clock.
        self.iterations: Iterator[bool]
        self.restart_counter()
        self.filters.update(FILTERS)
        self.tests.update(TESTS)
        self.globals.update(GLOBALS)
        self.globals.update(names)
        self.globals["odict"] = OrderedDict
        self.globals["show_full_context"] = _show_full_context

    def _check_clock(self, _: None) -> Iterator[bool]:
        if time.thread_time() > self.rendering.deadline:
            self.restart_counter()
            raise TimeLimit
        return repeat(True, _ITERATIONS)

    def restart_counter(self) -> None:
        """Start a new iterator that counts loop iterations and calls, and compares the CPU time with the rendering's
        limit after every 100 of them.

        It is needed after TimeLimit, because an iterator that raised an exception cannot be used again.
        """
        self.iterations = chain.from_iterable(map(self._check_clock, repeat(None)))

    def counted(self, values: Iterable[object]) -> Iterator[object]:
        """Yield ``values`` unchanged and count each one, also those that the loop's ``if`` then filters out.

        After every 100 counted iterations and calls, the CPU time of the thread is compared with the rendering's
        limit. Raise TimeLimit if it is used up; the rendering then ends.
        """
        return compress(values, self.iterations)

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """Return the result of ``*`` or ``**`` in a template, such as ``left * right``.

        Raise TemplateRuntimeError, before Python computes it, if the result would have more than 100 million
        characters, items or bits.
        """
        if operator == "*":
            sizes = [(len(a), b) for a, b in ((left, right), (right, left)) if hasattr(a, "__len__")]
            too_large = any(isinstance(times, int) and size * times > _LARGEST for size, times in sizes)
        else:
            too_large = isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _LARGEST
        if too_large:
            raise jinja2.TemplateRuntimeError(f"the result of '{operator}' would be too large")
        return super().call_binop(context, operator, left, right)

    def template(self, text: str, name: str | None, file: str | None, names: Mapping[str, object]) -> jinja2.Template:
        """Return the Jinja template of the text ``text``. Each text is compiled once in this process.

        ``name`` is the template's path in the state tree, ``file`` its path on disk, for error messages.
        ``names`` maps the template's own variables to their values. Raise jinja2.TemplateSyntaxError for a
        malformed text.
        """
        code = self.memory.code((self._own, name, file, text), text, lambda: self.compile(text, name, file))
        return self.template_class.from_code(self, code, self.make_globals({**names}), None)

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        # Names that the loops use. Added after the last line, so that line numbers stay the same.
        return (
            super()._generate(source, name, filename, defer_init)
            + "\niterations, counted = environment.iterations, environment.counted"
        )

    def _load_template(self, name: str, globals: MutableMapping[str, object] | None) -> jinja2.Template:
        """Return the template called ``name`` for an import or include in a template.

        As in Salt, an imported template gets its own path variables, an included one those of the SLS.
        """
        rendering = self.rendering
        loaded = rendering.loaded.get(name)
        if loaded is None:
            next(self.iterations)
            loader = self.loader
            assert loader is not None
            text, file, _ = loader.get_source(self, name)
            loaded = self.template(text, name, file, {**rendering.names, **(globals or {}), **template_variables(name)})
            rendering.loaded[name] = loaded
        return loaded

    def is_safe_callable(self, obj: object) -> bool:
        """Return whether the sandbox allows a template to call the object.

        Jinja asks this before each call, so each call is counted here. Raise TimeLimit if the rendering has used up
        its CPU time.
        """
        next(self.iterations)
        return super().is_safe_callable(obj)

    def join_path(self, template: str, parent: str) -> str:
        """Return the path in the state tree of a template that another template imports; ``./x`` and ``../x`` are
        relative to ``parent``.

        Raise TemplateNotFound if the path is outside the tree.
        """
        if not template.startswith((".", "/")):
            return template.removeprefix("salt://")
        if template.startswith("/"):
            return template
        parts = parent.split("/")[:-1]
        for part in template.split("/"):
            if part == "..":
                if not parts:
                    raise jinja2.TemplateNotFound(template, f"{template} leads out of the tree from '{parent}'")
                parts.pop()
            elif part != ".":
                parts.append(part)
        return "/".join(parts)


@jinja2.pass_context
def _show_full_context(context: Context) -> dict[object, object]:
    return {key: _simple(context.resolve(key)) for key in context.get_all()}


def _simple(value: object) -> object:
    """Return a copy of nested maps and lists with every other object (not text, number, bool, None) replaced by its
    repr.
    """
    if isinstance(value, Mapping) and isinstance(value, dict):
        return {key if _is_plain(key) else repr(key): _simple(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_simple(item) for item in value]
    return value if _is_plain(value) else repr(value)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
