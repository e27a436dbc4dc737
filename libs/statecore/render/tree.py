"""The state tree of one minion: finds SLS files, renders each once, knows their lines when something is wrong."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from statecore.errors import Mark, SlsError, SlsFault
from statecore.match import Subject, TargetError, matches
from statecore.ports import Files
from statecore.render import python, yaml
from statecore.render.jinja import SaltFunctions, TemplateFault, excerpt, line_map, place
from statecore.render.jinja import render as render_jinja
from statecore.render.top import INCLUDE, STRATEGIES, Chosen, choose, verify

#: ``#!jinja|yaml`` in the first line names the pipe.
_SHEBANG = re.compile(r"#!\s*([\w| =-]+?)\s*$")


@dataclass(frozen=True, slots=True)
class Source:
    """An SLS file as it was found."""

    sls: str
    saltenv: str
    #: Path in the tree, ``web/init.sls``.
    path: str
    #: Path on disk.
    file: str
    text: str
    #: How people are told of it: by its path on disk, or by its URL where that path is a minion's cache.
    shown: str


@dataclass(frozen=True, slots=True)
class RenderedSls:
    """What one SLS file says."""

    sls: str
    saltenv: str
    file: str
    #: ID -> body, in the order of the file, without include, extend and exclude.
    high: dict[str, Any]
    include: Any = ()
    extend: Any = field(default_factory=dict)
    exclude: Any = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """What a renderer works with."""

    source: Source
    files: Files
    context: Mapping[str, Any]
    options: Mapping[str, Any]


Renderer = Callable[[Any, Stage], Any]


def _jinja(data: Any, stage: Stage) -> Any:
    source = stage.source
    return render_jinja(str(data), source.path, stage.files, source.saltenv, stage.context, stage.options)


def _yaml(data: Any, stage: Stage) -> Any:
    return yaml.load(str(data)) if not isinstance(data, Mapping) else data


def _py(data: Any, stage: Stage) -> Any:
    return python.run(str(data), stage.source.file, stage.context)


def _json(data: Any, stage: Stage) -> Any:
    try:
        return json.loads(str(data)) if str(data).strip() else {}
    except ValueError as error:
        raise yaml.YamlFault(f"not JSON: {error}", getattr(error, "lineno", 0)) from error


def _text(data: Any, stage: Stage) -> Any:
    return data


#: Name in a shebang -> what it does with what came out of the one before.
RENDERERS: Mapping[str, Renderer] = {"jinja": _jinja, "yaml": _yaml, "json": _json, "py": _py, "text": _text}


class SlsTree:
    """Renders SLS files of one tree for one minion. Files are fetched and rendered when they are asked for, each once."""

    def __init__(
        self,
        files: Files,
        *,
        opts: Mapping[str, Any],
        grains: Mapping[str, Any],
        pillar: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """``extra``: more names for templates (``tag`` and ``data`` of a reaction)."""
        self.files = files
        self._opts = opts
        self._grains, self._pillar = grains, pillar
        self._context = {
            "grains": grains,
            "pillar": pillar,
            "salt": SaltFunctions(functions),
            "opts": opts,
            **(extra or {}),
        }
        self._rendered: dict[tuple[str, str], RenderedSls] = {}
        self._sources: dict[tuple[str, str], Source] = {}
        self._paths: dict[str, frozenset[str]] = {}
        #: (sls, saltenv) -> {path of keys: (line, column) in the template}: made when the first fault needs it.
        self._lines: dict[tuple[str, str], dict[tuple[str, ...], tuple[int, int]]] = {}
        self._columns = False
        self._origins: dict[tuple[str, str], list[int]] = {}
        self.templates = TreeTemplates(files, self._context, opts)

    # --------------------------------------------------------------------------------------------------------------- top file

    def top(self) -> dict[str, list[str]]:
        """saltenv -> SLS references for this minion, as the top files say. Raises SlsError."""
        strategy = str(self._opts.get("top_file_merging_strategy") or "merge")
        return self.chosen(strategy, str(self._opts.get("saltenv") or "")).refs

    def chosen(self, strategy: str, only: str = "") -> Chosen:
        """What the top files give this minion, joined by a strategy; those of one environment alone if ``only`` names it.

        Raises SlsError with every fault of the top files.
        """
        tops = {env: self._tops_of(env) for env in self._envs() if not only or env == only}
        sections = STRATEGIES.get(strategy, STRATEGIES["merge"])(tops, str(self._opts.get("default_top") or "base"))
        if only:
            sections = {env: targets for env, targets in sections.items() if env == only}
        faults = [SlsFault(fault.message, self._in_top(fault.keys)) for fault in verify(sections)]
        if faults:
            raise SlsError(faults)
        found = choose(sections, self._meant, self.files.envs())
        return Chosen({env: refs for env, refs in found.refs.items() if refs}, found.optional)

    def _envs(self) -> list[str]:
        """Environments whose top files count: those of ``env_order`` where that is set, else all, base first."""
        known = self.files.envs()
        order = [str(env) for env in self._opts.get("env_order") or []]
        return [env for env in dict.fromkeys(order) if env in known] if order else known

    def _tops_of(self, saltenv: str) -> list[dict[Any, Any]]:
        """The top file of an environment and those that it includes; [] without."""
        name = str(self._opts.get("state_top") or "top.sls").removeprefix("salt://")
        path = self.files.fetch(name, saltenv)
        if path is None:
            return []
        tops = [self._rendered_top(self._source("top", saltenv, name, path, path.read_text("utf-8")))]
        seen: set[str] = set()
        # Appended to while it is walked over: included files may include.
        for top in tops:
            for pattern in top.get(INCLUDE) or ():
                for sls in self.find(str(pattern), saltenv):
                    if sls not in seen:
                        seen.add(sls)
                        tops.append(self._rendered_top(self.source(sls, saltenv)))
        return tops

    def _rendered_top(self, source: Source) -> dict[Any, Any]:
        self._sources[source.sls, source.saltenv] = source
        top = self._data(source)
        if not isinstance(top, dict):
            raise SlsError([SlsFault("The top file must be a map of environments", Mark(source.shown, 1))])
        return top

    def _in_top(self, keys: tuple[str, ...]) -> Mark | None:
        """Where in the top files a path of keys stands."""
        marks = [self.locate("top", env, *keys) for sls, env in self._sources if sls == "top"]
        return next((mark for mark in marks if mark is not None and mark.line), None)

    def _meant(self, target: str, tgt_type: str, delimiter: str) -> bool:
        subject = Subject(str(self._opts.get("id", "")), self._grains, self._pillar)
        nodegroups = self._opts.get("nodegroups") or {}
        try:
            return matches(target, tgt_type, subject, delimiter=delimiter, nodegroups=nodegroups)
        except TargetError as error:
            text = f"The top file's target '{target}' cannot be understood: {error}"
            raise SlsError([SlsFault(text)]) from error

    # -------------------------------------------------------------------------------------------------------------- SLS files

    def find(self, pattern: str, saltenv: str) -> list[str]:
        """SLS references that a name or glob means, sorted; [] when there are none."""
        if not any(char in pattern for char in "*?["):
            return [pattern] if self._path_of(pattern, saltenv) else []
        known = {_reference(path) for path in self._paths_in(saltenv) if path.endswith(".sls")}
        return sorted(ref for ref in known if fnmatchcase(ref, pattern))

    def render(self, sls: str, saltenv: str) -> RenderedSls:
        """One file, split into its parts. Raises SlsError, located."""
        known = self._rendered.get((sls, saltenv))
        if known is None:
            known = self._rendered[sls, saltenv] = self._split(self.source(sls, saltenv))
        return known

    def source(self, sls: str, saltenv: str) -> Source:
        """The file of a reference. Raises SlsError that says where it was looked for, and what is near."""
        known = self._sources.get((sls, saltenv))
        if known is not None:
            return known
        path = self._path_of(sls, saltenv)
        found = self.files.fetch(path, saltenv) if path else None
        if path is None or found is None:
            raise SlsError([self._missing(sls, saltenv)])
        try:
            text = found.read_text("utf-8")
        except UnicodeDecodeError as error:
            fault = SlsFault(
                f"SLS '{saltenv}:{sls}' is not UTF-8 text: byte {error.start}", Mark(self.files.shown(found)), sls
            )
            raise SlsError([fault]) from error
        source = self._sources[sls, saltenv] = self._source(sls, saltenv, path, found, text)
        return source

    def _source(self, sls: str, saltenv: str, path: str, found: Path, text: str) -> Source:
        return Source(sls, saltenv, path, str(found), text, self.files.shown(found))

    def hint(self, sls: str, saltenv: str) -> str:
        """What to do about a reference that names nothing: the nearest that there is, or the files it would be."""
        known = sorted({_reference(path) for path in self._paths_in(saltenv) if path.endswith(".sls")})
        near = difflib.get_close_matches(sls, known, n=1)
        if near:
            return f"the nearest is '{near[0]}'"
        stem = sls.replace(".", "/")
        return f"salt://{stem}.sls or salt://{stem}/init.sls would be it"

    def add(self, source: Source) -> None:
        """Makes a file that is not in the tree known by its reference (a reactor SLS)."""
        self._sources[source.sls, source.saltenv] = source

    def _missing(self, sls: str, saltenv: str) -> SlsFault:
        text = f"No matching sls found for '{sls}' in env '{saltenv}'"
        return SlsFault(text, sls=sls, hint=self.hint(sls, saltenv))

    def _path_of(self, sls: str, saltenv: str) -> str | None:
        stem = sls.replace(".", "/")
        paths = self._paths_in(saltenv)
        return next((path for path in (f"{stem}.sls", f"{stem}/init.sls") if path in paths), None)

    def _paths_in(self, saltenv: str) -> frozenset[str]:
        known = self._paths.get(saltenv)
        if known is None:
            known = self._paths[saltenv] = frozenset(self.files.paths(saltenv))
        return known

    def data(self, sls: str, saltenv: str, names: Mapping[str, Any] | None = None) -> dict[Any, Any]:
        """The map that one file renders to, as it is; ``names`` are there for its template besides the tree's own.

        Raises SlsError, located. Nothing is remembered: the same file may be asked for with other names.
        """
        source = self.source(sls, saltenv)
        data = self._data(source, names)
        if not isinstance(data, dict):
            text = f"SLS {source.sls} does not render to a dictionary"
            raise SlsError([SlsFault(text, Mark(source.shown, 1), source.sls)])
        return data

    def _split(self, source: Source) -> RenderedSls:
        high = dict(self.data(source.sls, source.saltenv))
        include, extend, exclude = (high.pop(name, None) for name in ("include", "extend", "exclude"))
        return RenderedSls(source.sls, source.saltenv, source.file, high, include or (), extend or {}, exclude or ())

    def _data(self, source: Source, names: Mapping[str, Any] | None = None) -> Any:
        """What comes out of the file's pipe. Raises SlsError with Salt's sentence, the line and an excerpt."""
        stage = Stage(source, self.files, {**self._names(source), **(names or {})}, _sls_options(self._opts))
        where = f"{source.saltenv}:{source.sls}"
        data: Any = source.text
        pipe, body = _pipe(source.text, str(self._opts.get("renderer") or "jinja|yaml"))
        data = body
        for name in pipe:
            renderer = RENDERERS.get(name)
            if renderer is None:
                text = (
                    f"Rendering SLS '{where}' failed: there is no renderer '{name}'; there are {', '.join(RENDERERS)}"
                )
                raise SlsError([SlsFault(text, Mark(source.shown, 1), source.sls)])
            try:
                data = renderer(data, stage)
            except TemplateFault as fault:
                line = f"; line {fault.mark.line}" if fault.mark.line else ""
                text = f"Rendering SLS '{where}' failed: {fault.reason}{line}"
                raise SlsError(
                    [SlsFault(text, _readable(fault.mark, source), source.sls, excerpt=fault.excerpt)]
                ) from fault
            except yaml.YamlFault as fault:
                mark = Mark(source.shown, self._origin(source, fault.line), fault.column if self._columns else 0)
                text = f"Rendering SLS '{where}' failed: {fault}"
                raise SlsError([SlsFault(text, mark, source.sls, excerpt=excerpt(source.text, mark.line))]) from fault
        return {} if data is None or data == "" else data

    def _names(self, source: Source) -> dict[str, Any]:
        """Names of templates: where the SLS is."""
        path = Path(source.path)
        directory = "" if str(path.parent) == "." else path.parent.as_posix()
        # slspath is the directory of an init.sls, and of a plain SLS too.
        return self._context | {
            "sls": source.sls,
            "saltenv": source.saltenv,
            "env": source.saltenv,
            "tplpath": source.file,
            **place(source.path),
            "slspath": directory,
            "slsdotpath": directory.replace("/", "."),
            "slscolonpath": directory.replace("/", ":"),
            "sls_path": directory.replace("/", "_"),
        }

    def names(self, sls: str, saltenv: str) -> frozenset[str]:
        """What the template of an SLS may use without defining it. Raises SlsError where there is no such file."""
        return frozenset(self._names(self.source(sls, saltenv)))

    # ------------------------------------------------------------------------------------------------------------------ lines

    def name_columns(self) -> None:
        """From now on marks name columns too. Salt's users know lines; tools that point into an editor want both."""
        self._columns = True

    def locate(self, sls: str, saltenv: str, *keys: str) -> Mark | None:
        """Line of an ID, of a state declaration of it, of an argument; of the nearest of these that is found. None without."""
        source = self._sources.get((sls, saltenv))
        if source is None:
            return None
        lines = self._lines.get((sls, saltenv))
        if lines is None:
            lines = self._lines[sls, saltenv] = self._key_lines(source)
        for depth in range(len(keys), 0, -1):
            for prefix in ((), ("extend",)):
                line, column = _line(lines, (*prefix, *keys[:depth]), len(prefix) + 1)
                if line:
                    return Mark(source.shown, line, column if self._columns else 0)
        return Mark(source.shown)

    def excerpt(self, mark: Mark | None) -> str:
        """Lines around a place."""
        source = next((one for one in self._sources.values() if mark is not None and one.shown == mark.file), None)
        return excerpt(source.text, mark.line) if source is not None and mark is not None else ""

    def _key_lines(self, source: Source) -> dict[tuple[str, ...], tuple[int, int]]:
        pipe, body = _pipe(source.text, str(self._opts.get("renderer") or "jinja|yaml"))
        if "jinja" not in pipe:
            return yaml.key_places(source.text) if "py" not in pipe else {}
        stage = Stage(source, self.files, self._names(source), _sls_options(self._opts))
        try:
            rendered = str(_jinja(body, stage))
        except SlsError:
            return {}
        places: dict[tuple[str, ...], tuple[int, int]] = {}
        before, after = source.text.splitlines(), rendered.splitlines()
        for path, (line, column) in yaml.key_places(rendered).items():
            origin = self._origin(source, line)
            written = before[origin - 1] if 0 < origin <= len(before) else ""
            places[path] = origin, _column(written, after[line - 1], column, path[-1])
        return places

    def _origin(self, source: Source, line: int) -> int:
        """The template's line behind a line of what it rendered to."""
        pipe, body = _pipe(source.text, str(self._opts.get("renderer") or "jinja|yaml"))
        if "jinja" not in pipe or not line:
            return line
        key = (source.sls, source.saltenv)
        origins = self._origins.get(key)
        if origins is None:
            names, options = self._names(source), _sls_options(self._opts)
            origins = self._origins[key] = line_map(body, source.path, self.files, source.saltenv, names, options)
        # What is missing at the very end (a bracket) is found behind the last line.
        return origins[min(line, len(origins)) - 1] if origins else 0


class TreeTemplates:
    """Implements ports.Templates: file contents."""

    def __init__(self, files: Files, context: Mapping[str, Any], opts: Mapping[str, Any]) -> None:
        self._files = files
        self._context = context
        self._opts = opts

    def render(self, text: str, engine: str, context: Mapping[str, Any], *, saltenv: str, source: str = "") -> str:
        """Rendered text. Raises SlsError, located."""
        if engine != "jinja":
            fault = SlsFault(f"'{engine}' is no template engine here; there is jinja", Mark(source) if source else None)
            raise SlsError([fault])
        path = source.removeprefix("salt://").partition("?")[0] if source.startswith("salt://") else ""
        names = {
            **self._context,
            "saltenv": saltenv,
            "env": saltenv,
            **place(path),
            "tplfile": path or source,
            **context,
        }
        options = {**_whitespace(self._opts), **(self._opts.get("jinja_env") or {})}
        return render_jinja(text, path, self._files, saltenv, names, options)


def _pipe(text: str, default: str) -> tuple[list[str], str]:
    """Names of the renderers, and the text without its shebang (an empty line stays, so that lines keep their numbers)."""
    first, newline, rest = text.partition("\n")
    found = _SHEBANG.match(first.strip())
    if found is None:
        return [name.strip() for name in default.split("|")], text
    return [name.strip().split(" ")[0] for name in found[1].split("|")], newline + rest


def _sls_options(opts: Mapping[str, Any]) -> dict[str, Any]:
    return {**_whitespace(opts), **(opts.get("jinja_sls_env") or {})}


def _whitespace(opts: Mapping[str, Any]) -> dict[str, Any]:
    names = {"jinja_trim_blocks": "trim_blocks", "jinja_lstrip_blocks": "lstrip_blocks"}
    return {own: True for option, own in names.items() if opts.get(option)}


def _reference(path: str) -> str:
    return path.removesuffix(".sls").removesuffix("/init").replace("/", ".")


def _column(written: str, rendered: str, column: int, key: str) -> int:
    """Column in a template's line of a key that stands at ``column`` of what the line rendered to."""
    if written[: column - 1] == rendered[: column - 1]:
        return column
    found = written.find(key)
    return (found if found >= 0 else len(written) - len(written.lstrip())) + 1


def _line(lines: Mapping[tuple[str, ...], tuple[int, int]], path: tuple[str, ...], at: int) -> tuple[int, int]:
    """Place of a path of keys, (0, 0) without. The state module at position ``at`` may stand in the file with its function."""
    exact = lines.get(path, (0, 0))
    if exact[0] or len(path) <= at:
        return exact
    before, state, after = path[:at], path[at] + ".", path[at + 1 :]
    return next(
        (
            place
            for keys, place in lines.items()
            if len(keys) == len(path) and keys[:at] == before and keys[at].startswith(state) and keys[at + 1 :] == after
        ),
        (0, 0),
    )


def _readable(mark: Mark, source: Source) -> Mark:
    """A mark as people know the file: Jinja knows the SLS itself by its path in the tree."""
    return (
        Mark(source.shown, mark.line) if mark.file in (source.path, source.file, source.sls, "", "<template>") else mark
    )
