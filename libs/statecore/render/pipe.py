"""The render pipe: runs an SLS file through the renderers that its first line (``#!jinja|yaml``) or the option
``renderer`` names.

Source: docs/state-system.md#sls-rendering.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from statecore.model import yaml
from statecore.model.errors import DataFault, Mark, NotAvailable, SlsError, SlsFault, StatecoreError
from statecore.model.lazy import lazy_module
from statecore.model.log_levels import PROFILE
from statecore.model.ports import Files
from statecore.model.secret_values import SecretValues
from statecore.model.time_limit import ComputedTooMuch, computing_limit
from statecore.render.context import RenderContext, Renderer, SlsSource, StateNames
from statecore.render.faults import TemplateFault, excerpt
from statecore.render.jinja import Jinja, whitespace
from statecore.render.limit import limit_message, time_limit_of
from statecore.render.memory import RenderMemory
from statecore.render.renderers import BINARY, RENDERERS, TEMPLATES, inner_pipe
from statecore.render.yaml_cache import YamlCache

if TYPE_CHECKING:
    from statecore.model import log_text
    from statecore.render.renderers import stateconf
else:
    log_text = lazy_module("statecore.model.log_text")
    stateconf = lazy_module("statecore.render.renderers.stateconf")

log = logging.getLogger(__name__)

_DEFAULT = "jinja|yaml"

#: Old names of pipes of two renderers (``yaml_jinja``) -> the pipe.
_PAIRS: Mapping[str, str] = {
    f"{data}_{template}": f"{template}|{data}" for data in ("yaml", "json", "yamlex") for template in ("jinja", "mako")
}


class PipeStep(NamedTuple):
    """One renderer of a render pipe (``jinja|yaml``): its name, and the text of arguments after the name."""

    name: str
    arguments: str


def steps(text: str, default: str) -> list[PipeStep]:
    """Return the renderers that the first line of a text (``#!jinja|yaml``) names; without such a line those of
    ``default``.
    """
    end = text.find("\n")
    first = text if end < 0 else text[:end]
    if not first.startswith("#!") or first.startswith("#!/"):
        return _steps(default)
    return _steps(first.strip().removeprefix("#!").strip())


def _steps(pipe: str) -> list[PipeStep]:
    named = (name.strip().partition(" ") for name in _PAIRS.get(pipe, pipe).split("|"))
    return [PipeStep(name, arguments.strip()) for name, _, arguments in named]


class Pipes:
    """Runs the SLS files of one state tree through their renderers."""

    def __init__(
        self,
        files: Files,
        opts: Mapping[str, Any],
        names: Mapping[str, object],
        users: Mapping[str, Callable[..., object]] | None = None,
        memory: RenderMemory | None = None,
        yaml_cache: YamlCache | None = None,
        states: StateNames | None = None,
        *,
        secret: bool = False,
        untrusted: bool = False,
    ) -> None:
        """Prepare the renderers of one state tree. ``secret``: its files are pillar, whose values the log hides by more names.
        ``untrusted``: templates get plain data.

        ``names`` maps the variables of every template to their values. ``users`` maps "name.render" to a user's
        renderer from ``_renderers``. ``states`` are the minion's state modules. Options used: renderer,
        renderer_blacklist, renderer_whitelist, jinja_sls_env, jinja_trim_blocks, jinja_lstrip_blocks, and the options
        of the renderers.
        """
        self.jinja = Jinja(files, names, opts, memory, untrusted=untrusted)
        self._memory = memory
        self._secret = secret
        #: Arguments of hidden states, which must not appear in the log of other files either.
        self._hidden = SecretValues()
        #: True if the marks of faults have a column as well as a line.
        self.columns = False
        self._files = files
        self._opts = opts
        self._users = {} if users is None else users
        self._states = states
        #: Data that renderers keep between the files of this tree.
        self._kept: dict[str, object] = {}
        self._yaml_cache = YamlCache("") if yaml_cache is None else yaml_cache
        self._default = str(opts.get("renderer") or _DEFAULT)
        self._jinja_options = {**whitespace(opts), **(opts.get("jinja_sls_env") or {})}
        self._renderers: dict[str, Renderer | None] = {}
        #: (sls, saltenv) -> line of the template for each line of the rendered text.
        self._origins: dict[tuple[str, str], list[int]] = {}

    def binary(self, data: bytes) -> bool:
        """Return whether the renderer that a file's first line names reads bytes (such as msgpack), so that the file
        need not be text.
        """
        first = data.partition(b"\n")[0].decode("ascii", "replace")
        return steps(first, self._default)[0].name in BINARY

    def data(
        self,
        source: SlsSource,
        names: Mapping[str, object],
        default: str | None = None,
        jinja_options: Mapping[str, object] | None = None,
    ) -> object:
        """Return the data that the renderers make of an SLS file; {} if they make nothing.

        ``names`` maps the template's own variables to their values. ``default`` replaces the option ``renderer``
        (default ``jinja|yaml``), ``jinja_options`` the Jinja options of SLS files. Raise SlsError with Salt's
        message, the line and an excerpt of the file.
        """
        data: object = source.text
        context = RenderContext(
            source,
            self._files,
            names,
            self._opts,
            self.jinja,
            self._jinja_options if jinja_options is None else jinja_options,
            self._yaml_cache,
            self._renderer,
            self._kept,
            memory=self._memory,
            states=self._states,
        )
        decrypts = False
        for step in self._allowed(steps(source.text, default or self._default)):
            renderer = self._renderer(step.name)
            if renderer is None:
                raise self._unknown(step.name, source)
            own = context
            if step.arguments:
                own = context._replace(jinja_options=self._jinja_options, arguments=step.arguments)
            started = time.monotonic()
            try:
                data = renderer(data, own)
            except TemplateFault as fault:
                line = f"; line {fault.mark.line}" if fault.mark.line else ""
                raise self._failed(f"{fault.reason}{line}", fault.mark, fault.excerpt, source) from fault
            except DataFault as fault:
                raise self._unreadable(fault, source, names) from fault
            except ComputedTooMuch as error:
                reason = f"the renderer '{step.name}': {limit_message(error)}"
                raise self._failed(reason, Mark(source.shown, 1), excerpt(source.text, 1), source) from error
            if log.isEnabledFor(PROFILE):
                took = (time.monotonic() - started) * 1000
                log.log(PROFILE, "Rendered %s by '%s' in %.3f ms", source.shown, step.name, took)
            decrypts = decrypts or step.name == "gpg"
        if log.isEnabledFor(logging.DEBUG):
            what = "pillar" if self._secret else "data"
            text = self._logged(data, decrypts=decrypts)
            log.debug(
                "Rendered %s of SLS '%s' (saltenv %s, %s):\n%s", what, source.sls, source.saltenv, source.shown, text
            )
        return {} if data is None or data == "" else data

    def _logged(self, data: object, *, decrypts: bool) -> str:
        """Return the data of an SLS as YAML text for the log, without secrets. ``decrypts``: the data was decrypted,
        so only its keys are shown.
        """
        if decrypts:
            return log_text.keys_text(data)
        return log_text.pillar_text(data) if self._secret else log_text.data_text(data, self._hidden)

    def _allowed(self, pipe: list[PipeStep]) -> list[PipeStep]:
        """Return the renderers of a pipe that ``renderer_blacklist`` and ``renderer_whitelist`` allow. As in Salt, the
        others are logged and skipped.
        """
        blacklist, whitelist = self._opts.get("renderer_blacklist") or (), self._opts.get("renderer_whitelist") or ()
        if not blacklist and not whitelist:
            return pipe
        allowed = [step for step in pipe if step.name not in blacklist and (not whitelist or step.name in whitelist)]
        for step in pipe:
            if step not in allowed:
                log.warning('The renderer "%s" is disallowed by configuration and will be skipped.', step.name)
        return allowed

    def _renderer(self, name: str) -> Renderer | None:
        """Return the user's renderer of this name, else the built-in renderer, else None."""
        if name not in self._renderers:
            self._renderers[name] = self._users_renderer(name) or RENDERERS.get(name)
        return self._renderers[name]

    def _users_renderer(self, name: str) -> Renderer | None:
        try:
            render = self._users[f"{name}.render"]
        except (KeyError, NotAvailable):
            return None
        users = self._users

        def renderer(data: object, context: RenderContext) -> object:
            source = context.source
            given = {"renderers": users, "tmplpath": source.file}
            given |= {"argline": context.arguments} if context.arguments else {}
            try:
                with computing_limit(time_limit_of(self._opts)):
                    text = io.StringIO(data) if isinstance(data, str) else data
                    made = render(text, source.saltenv, source.sls, **given)
                    return made.read() if hasattr(made, "read") else made
            except SlsError:
                raise
            except ComputedTooMuch as error:
                raise DataFault(f"the renderer '{name}': {limit_message(error)} ({error.place})", 0) from error
            except Exception as error:
                reason = str(error) if isinstance(error, StatecoreError) else f"{error} ({type(error).__name__})"
                raise DataFault(f"the renderer '{name}': {reason}", 0) from error

        return renderer

    def _unknown(self, name: str, source: SlsSource) -> SlsError:
        reason = ""
        try:
            self._users[f"{name}.render"]
        except NotAvailable as missing:
            reason = f" ({missing.reason})" if missing.reason else ""
        except KeyError:
            pass
        text = f"there is no renderer '{name}'{reason}; there are {', '.join(RENDERERS)}"
        return self._failed(text, Mark(source.shown, 1), excerpt(source.text, 1), source)

    def _unreadable(self, fault: DataFault, source: SlsSource, names: Mapping[str, object]) -> SlsError:
        text = str(fault)
        if fault.earlier:
            text += f"; the first one is in line {self.origin(source, names, fault.earlier)}"
        mark = Mark(source.shown, self.origin(source, names, fault.line), fault.column if self.columns else 0)
        return self._failed(text, mark, excerpt(source.text, mark.line), source)

    def _failed(self, reason: str, mark: Mark, around: str, source: SlsSource) -> SlsError:
        # Jinja reports the SLS itself by its path in the tree.
        own = mark.file in (source.path, source.file, source.sls, source.shown, "", "<template>")
        text = f"Rendering SLS '{source.saltenv}:{source.sls}' failed: {reason}"
        shown = Mark(source.shown, mark.line, mark.column) if own else mark
        return SlsError([SlsFault(text, shown, source.sls, excerpt=around)])

    # ----------------------------------------------------------------------------------------------------------- lines

    def key_positions(self, source: SlsSource, names: Mapping[str, object]) -> dict[tuple[str, ...], tuple[int, int]]:
        """Map of the path of keys in the SLS file's data to (line, column) in the file, such as ("nginx",
        "pkg.installed") to (3, 1).

        {} if the file's pipe does not end in YAML or JSON.
        """
        names_of_pipe = self._inner_pipe(source)
        if names_of_pipe[-1] not in ("yaml", "json", "gpg", "yamlex") or "py" in names_of_pipe:
            return {}
        if not TEMPLATES.intersection(names_of_pipe):
            return yaml.key_positions(source.text)
        if "jinja" not in names_of_pipe:
            return {}
        try:
            rendered = self.jinja.render(
                source.text, source.path, source.saltenv, self._with_kept(source, names), self._jinja_options
            )
        except SlsError:
            return {}
        positions: dict[tuple[str, ...], tuple[int, int]] = {}
        before, after = source.text.splitlines(), rendered.splitlines()
        origins = self._map(source, names)
        for path, (line, column) in yaml.key_positions(rendered).items():
            origin = _template_line(origins, line)
            written = before[origin - 1] if 0 < origin <= len(before) else ""
            positions[path] = origin, _column(written, after[line - 1], column, path[-1])
        if steps(source.text, self._default)[-1].name == "stateconf":
            positions = stateconf.with_full_ids(positions, source.sls)
        return positions

    def template_text(self, source: SlsSource, names: Mapping[str, object], text: str) -> str:
        """Return the text that Jinja makes of ``text``, with the name, variables and options of an SLS file. Raise
        TemplateFault with file and line.
        """
        return self.jinja.render(text, source.path, source.saltenv, self._with_kept(source, names), self._jinja_options)

    def _inner_pipe(self, source: SlsSource) -> list[str]:
        """Return the names of the renderers that an SLS runs through, with those that ``stateconf`` runs in place of
        ``stateconf``.
        """
        found = steps(source.text, self._default)
        return [name for step in found for name in inner_pipe(step.name, step.arguments)] or [found[-1].name]

    def _with_kept(self, source: SlsSource, names: Mapping[str, object]) -> Mapping[str, object]:
        """Return the template variables ``names`` of an SLS, with the variables that the renderer ``stateconf`` adds
        if the SLS uses it.
        """
        if all(step.name != "stateconf" for step in steps(source.text, self._default)):
            return names
        return {**names, **stateconf.variables(source.sls, self._kept)}

    def origin(self, source: SlsSource, names: Mapping[str, object], line: int) -> int:
        """Return the template's line number for a line number of the rendered text of an SLS file; 0 if it cannot be
        determined.
        """
        templates = [name for name in self._inner_pipe(source) if name in TEMPLATES]
        if not templates or not line:
            return line
        if templates != ["jinja"]:
            return 0
        return _template_line(self._map(source, names), line)

    def _map(self, source: SlsSource, names: Mapping[str, object]) -> list[int]:
        key = (source.sls, source.saltenv)
        origins = self._origins.get(key)
        if origins is None:
            origins = self._origins[key] = self.jinja.line_map(
                source.text, source.path, source.saltenv, self._with_kept(source, names), self._jinja_options
            )
        return origins


def _template_line(origins: list[int], line: int) -> int:
    # A parser reports a missing closing bracket one line after the last line.
    return origins[min(line, len(origins)) - 1] if origins else 0


def _column(written: str, rendered: str, column: int, key: str) -> int:
    """Return the column of a key in the template's line ``written``, from the rendered line and the key's column in the
    rendered line.
    """
    if written[: column - 1] == rendered[: column - 1]:
        return column
    found = written.find(key)
    return (found if found >= 0 else len(written) - len(written.lstrip())) + 1
