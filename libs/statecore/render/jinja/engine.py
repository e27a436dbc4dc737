"""The Jinja engine: renders the Jinja templates of a state tree, and reports errors with the line of the template.

If the rendered text is faulty (YAML, high data), ``Engine.line_map`` finds the template's line: it renders the template
again with a mark before each of its lines. A successful rendering costs nothing extra.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

import jinja2
import jinja2.defaults
import jinja2.parser

from statecore.model.errors import Mark, SlsError, StatecoreError
from statecore.model.ports import Files
from statecore.model.time_limit import JINJA_TIME_LIMIT, ComputedTooLarge, ComputedTooMuch, computing_limit
from statecore.render.faults import TemplateFault
from statecore.render.jinja.closed import Limits
from statecore.render.jinja.header import split_header
from statecore.render.jinja.sandbox import Rendering, TimeLimit, TreeEnvironment
from statecore.render.jinja.tags import MARKED
from statecore.render.jinja.variables import Variables
from statecore.render.limit import limit_message, time_limit_of
from statecore.render.memory import RenderMemory

log = logging.getLogger(__name__)

#: Seconds after the time limit at which a template is interrupted from outside, if it reached no check in a loop or
#: call.
_GRACE = 1.0


def environment(
    files: Files, saltenv: str, names: Mapping[str, object], options: Mapping[str, object]
) -> jinja2.Environment:
    """Return a jinja2.Environment for the templates of a state tree, for callers that analyse templates without
    rendering them.
    """
    return TreeEnvironment(files, saltenv, names, _known(options))


class Engine:
    """Renders the Jinja templates of one state tree."""

    def __init__(
        self,
        files: Files,
        names: Mapping[str, object],
        opts: Mapping[str, object],
        memory: RenderMemory | None = None,
        *,
        untrusted: bool = False,
    ) -> None:
        """Prepare the Jinja engine of one state tree. ``names`` maps the variables of every template to their values.
        ``untrusted``: templates get plain data.

        Options used: jinja_time_limit, allow_undefined, host_root, jinja_dns_check, jinja_http_query.
        """
        self._memory = RenderMemory() if memory is None else memory
        self._files = files
        self._variables = Variables(names, plain=untrusted)
        self._names = self._variables.seen(names)
        self._undefined = jinja2.Undefined if opts.get("allow_undefined") else jinja2.StrictUndefined
        self._limit = time_limit_of(opts)
        #: Read from the options once, before any template runs.
        self._limits = Limits.of(opts)
        self._environments: dict[tuple[str, str], TreeEnvironment] = {}

    def render(
        self, text: str, name: str, saltenv: str, names: Mapping[str, object], options: Mapping[str, object]
    ) -> str:
        """Return the rendered text of a Jinja template.

        ``name`` is the template's path in the state tree, or "". ``names`` are this template's own variables;
        ``options`` are Jinja's options. Raise TemplateFault with file and line.
        """
        text, own = split_header(text)
        env = self._environment(saltenv, {**options, **own})
        if _is_plain(text, env):
            return text
        rendered = self._run(env, text, name, saltenv, names)
        # Jinja removes the last newline of every template. The file's own newline is restored, those of included files
        # are not.
        return rendered + "\n" if text.endswith("\n") and not env.keep_trailing_newline else rendered

    def line_map(
        self, text: str, name: str, saltenv: str, names: Mapping[str, object], options: Mapping[str, object]
    ) -> list[int]:
        """Return the template's line number for each line of the rendered text (0: unknown). Used for errors only.

        The template is rendered a second time. [] if the second rendering fails.
        """
        text, own = split_header(text)
        env = self._environment(saltenv, {**options, **own})
        if _is_plain(text, env):
            return list(range(1, len(text.splitlines()) + 1))
        try:
            rendered = self._run(env, _marked(text, env), name, saltenv, names)
        except SlsError:
            # Without a map the first error is shown without a line. It must not be hidden by this second error.
            return []
        origins, last = [], 0
        for line in rendered.splitlines():
            found = MARKED.findall(line)
            last = int(found[-1]) if found else last
            origins.append(last)
        return origins

    def _environment(self, saltenv: str, options: Mapping[str, object]) -> TreeEnvironment:
        known = _known(options)
        key = (saltenv, repr(sorted(known.items())))
        env = self._environments.get(key)
        if env is None:
            options = {"undefined": self._undefined, **known}
            env = TreeEnvironment(self._files, saltenv, self._names, options, self._memory, self._limits)
            self._environments[key] = env
        return env

    def _run(self, env: TreeEnvironment, text: str, name: str, saltenv: str, names: Mapping[str, object]) -> str:
        # A template may call a function that renders another template. The inner one gets the remaining time of the
        # outer one.
        names = self._variables.seen(names)
        outer = env.rendering
        env.rendering = Rendering(names, min(outer.deadline, time.thread_time() + self._limit))
        path = self._files.fetch(name, saltenv) if name and not name.startswith("/") else None
        try:
            with computing_limit(self._limit + _GRACE):
                return env.template(text, name or None, str(path) if path is not None else None, names).render()
        except SlsError:
            raise
        except ComputedTooMuch as error:
            env.restart_counter()
            raise self._fault(error, text, name) from error
        except Exception as error:
            raise self._fault(error, text, name) from error
        finally:
            env.rendering = outer

    def _fault(self, error: BaseException, text: str, name: str) -> TemplateFault:
        file, line = _position(error, name)
        reason = self._reason(error)
        if isinstance(error, RecursionError) and not line:
            # The recursion happened in the parser, before the rendering.
            reason, line = "Jinja error: it nests too deep", _line_read(error)
        path = Path(file)
        if not path.is_absolute():
            return TemplateFault(reason, Mark(file, line), text)
        source = path.read_text("utf-8", "replace") if path.is_file() else text
        return TemplateFault(reason, Mark(self._files.shown(path), line), source)

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, ComputedTooLarge):
            return f"Jinja error: {limit_message(error)}"
        if isinstance(error, ComputedTooMuch) and error.option != JINJA_TIME_LIMIT:
            return f"Jinja error: {limit_message(error)}"
        if isinstance(error, TimeLimit | ComputedTooMuch):
            return (
                f"Jinja error: rendering takes longer than {self._limit:g} seconds: a loop or a macro without end?"
                " (jinja_time_limit)"
            )
        unknown = f"Jinja error: {{}} ({type(error).__name__})"
        sentence = next((words for kind, words in _SENTENCES if isinstance(error, kind)), unknown)
        return sentence.format(error.message if isinstance(error, jinja2.TemplateError) else error)


#: Exception type -> Salt's error message; the first that fits. Other exceptions are named by their class.
_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (jinja2.TemplateSyntaxError, "Jinja syntax error: {}"),
    (jinja2.UndefinedError, "Jinja variable {}"),
    (jinja2.TemplateNotFound, "Jinja error: {}"),
    (jinja2.TemplateRuntimeError, "Jinja syntax error: {}"),
    (jinja2.TemplateError, "Jinja error: {}"),
    (StatecoreError, "Problem running salt function in Jinja template: {}"),
    (RecursionError, "Jinja error: a macro or an include calls itself without end"),
)


def _position(error: BaseException, name: str) -> tuple[str, int]:
    """Return (file, line) of the innermost template in an exception's traceback; line 0 if it names none.

    Jinja rewrites its frames to template lines.
    """
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.filename or name, error.lineno
    position = (name, 0)
    for frame, line in traceback.walk_tb(error.__traceback__):
        template = frame.f_globals.get("__jinja_template__")
        if template is not None:
            # Jinja rewrites the frames of Exceptions only, so the frame of an interrupted template is translated here.
            position = (template.filename or name, template.get_corresponding_lineno(line))
        elif "__jinja_exception__" in frame.f_globals:
            file = frame.f_code.co_filename
            position = (name if file == "<template>" else file, line)
            if isinstance(error, RecursionError):
                # For an endless recursion the outermost line is useful, the innermost is arbitrary.
                break
    return position


def _line_read(error: BaseException) -> int:
    """Return the line that Jinja's parser had reached when the exception was raised; 0 if parsing was finished."""
    parsers = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((parser.stream.current.lineno for parser in parsers if isinstance(parser, jinja2.parser.Parser)), 0)


def _known(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options that Jinja's environment has, with names in lower case. As in Salt, a warning is logged for
    each other option.
    """
    known = {}
    for name, value in options.items():
        if hasattr(jinja2.defaults, str(name).upper()):
            known[str(name).lower()] = value
        else:
            log.warning("Jinja2 environment %s is not recognized", name)
    return known


def _is_plain(text: str, env: TreeEnvironment) -> bool:
    """Return whether a text has no Jinja syntax. Such a text renders to itself and need not be parsed."""
    starts = (env.block_start_string, env.variable_start_string, env.comment_start_string, "\r")
    by_line = env.line_statement_prefix or env.line_comment_prefix
    return not by_line and not any(start in text for start in starts)


def _marked(text: str, env: TreeEnvironment) -> str:
    """Return a template's text with a mark before each line, so that the rendered text shows where each line comes
    from.

    Lines inside a tag or comment of several lines get no mark. Empty lines and lines that begin with ``{%-`` get none
    either: the mark would stop ``{%-`` and ``-%}`` from removing white space and newlines.
    """
    pairs = (
        (env.block_start_string, env.block_end_string),
        (env.variable_start_string, env.variable_end_string),
        (env.comment_start_string, env.comment_end_string),
    )
    greedy = tuple(f"{start}-" for start, _ in pairs)
    counts = [0] * len(pairs)
    marked = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        written = line.lstrip()
        free = all(count <= 0 for count in counts) and written and not written.startswith(greedy)
        marked.append(f"\x01{number}\x02{line}" if free else line)
        counts = [
            count + line.count(start) - line.count(end) for count, (start, end) in zip(counts, pairs, strict=True)
        ]
    return "".join(marked)
