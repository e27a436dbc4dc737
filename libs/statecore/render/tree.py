"""The state tree of one minion: finds SLS files, renders each once, knows their lines when something is wrong."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from statecore.model.errors import Mark, SlsError, SlsFault, TargetError
from statecore.model.nearest import close_matches
from statecore.model.ports import Files
from statecore.render.faults import excerpt_of
from statecore.render.jinja import SaltFunctions
from statecore.render.kept_yaml import KeptYaml
from statecore.render.memory import RenderMemory
from statecore.render.names import of_sls
from statecore.render.pipe import Pipes
from statecore.render.stage import SlsSource
from statecore.render.templates import TreeTemplates
from statecore.render.top import INCLUDE, STRATEGIES, Chosen, Sections, choose, verify
from statecore.targeting.match import Subject, matches, users_matcher


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
        renderers: Mapping[str, Callable[..., Any]] | None = None,
        matchers: Mapping[str, Callable[..., Any]] | None = None,
        memory: RenderMemory | None = None,
        kept: KeptYaml | None = None,
    ) -> None:
        """``extra``: more names for templates (``tag`` and ``data`` of a reaction). ``renderers``, ``matchers``: users' own.

        ``memory``: of texts that were compiled or parsed, for many trees. ``kept``: where the data of large files is kept for
        the next run, where there is no such memory.
        """
        self.files = files
        self.renderers = renderers
        self._matchers: Mapping[str, Callable[..., Any]] = {} if matchers is None else matchers
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
        self._sources: dict[tuple[str, str], SlsSource] = {}
        self._paths: dict[str, frozenset[str]] = {}
        #: (sls, saltenv) -> {path of keys: (line, column) in the template}: made when the first fault needs it.
        self._lines: dict[tuple[str, str], dict[tuple[str, ...], tuple[int, int]]] = {}
        #: File, as people are told of it -> its lines: split when the first fault needs them.
        self._texts: dict[str, list[str]] = {}
        self._pipes = Pipes(files, opts, self._context, renderers, memory, kept)
        self.templates = TreeTemplates(files, self._context, opts, self._pipes)

    # --------------------------------------------------------------------------------------------------------------- top file

    def top(self) -> dict[str, list[str]]:
        """saltenv -> SLS references for this minion, as the top files say. Raises SlsError."""
        strategy = str(self._opts.get("top_file_merging_strategy") or "merge")
        return self.chosen(strategy, str(self._opts.get("saltenv") or "")).refs

    def chosen(self, strategy: str, only: str = "") -> Chosen:
        """What the top files give this minion, joined by a strategy; those of one environment alone if ``only`` names it.

        Raises SlsError with every fault of the top files.
        """
        found = choose(self.sections(strategy, only), self.meant, self.files.envs(), ordered=strategy == "replace")
        return Chosen({env: refs for env, refs in found.refs.items() if refs}, found.optional)

    def sections(self, strategy: str, only: str = "") -> Sections:
        """Environment -> target -> its list, of the top files, for whomever. Raises SlsError."""
        # The pillar has top files of its own.
        speaks = only or (strategy != "replace" and self._opts.get("state_top_saltenv"))
        tops = {env: self._tops_of(env) for env in self._envs() if not speaks or env == speaks}
        sections = STRATEGIES.get(strategy, STRATEGIES["merge"])(tops, str(self._opts.get("default_top") or "base"))
        if only:
            sections = {env: targets for env, targets in sections.items() if env == only}
        faults = [SlsFault(fault.message, self._in_top(fault.keys)) for fault in verify(sections)]
        if faults:
            raise SlsError(faults)
        return sections

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
        tops = [self._rendered_top(self._read("top", saltenv, name, path))]
        seen: set[str] = set()
        # Appended to while it is walked over: included files may include.
        for top in tops:
            included = top.get(INCLUDE) or ()
            if not isinstance(included, list | tuple):
                text = "Include Declaration in the top file is not formed as a list"
                raise SlsError([SlsFault(text, self.locate("top", saltenv, INCLUDE))])
            for pattern in included:
                for sls in self.find(str(pattern), saltenv):
                    if sls not in seen:
                        seen.add(sls)
                        tops.append(self._rendered_top(self.source(sls, saltenv)))
        return tops

    def _rendered_top(self, source: SlsSource) -> dict[Any, Any]:
        self._sources[source.sls, source.saltenv] = source
        # To Salt a top file is a file by itself, no SLS.
        names = of_sls(posixpath.basename(source.path), "", source.saltenv, source.file)
        top = self._pipes.data(source, self._context | names, jinja_options=self.templates.jinja_options)
        if not isinstance(top, dict):
            raise SlsError([SlsFault("The top file must be a map of environments", Mark(source.shown, 1))])
        return top

    def _in_top(self, keys: tuple[str, ...]) -> Mark | None:
        """Where in the top files a path of keys stands."""
        marks = [self.locate("top", env, *keys) for sls, env in self._sources if sls == "top"]
        return next((mark for mark in marks if mark is not None and mark.line), None)

    def meant(self, target: str, tgt_type: str, delimiter: str) -> bool:
        """Whether a target of the top file means this minion. Raises SlsError for one that cannot be understood."""
        subject = Subject(str(self._opts.get("id", "")), self._grains, self._pillar)
        nodegroups = self._opts.get("nodegroups") or {}
        if (own := users_matcher(self._matchers, tgt_type)) is not None:
            try:
                return own(target, delimiter=delimiter)
            except Exception as error:
                text = f"The matcher of the top file's target '{target}' ({tgt_type}) failed: {error}"
                raise SlsError([SlsFault(text)]) from error
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

    def source(self, sls: str, saltenv: str) -> SlsSource:
        """The file of a reference. Raises SlsError that says where it was looked for, and what is near."""
        known = self._sources.get((sls, saltenv))
        if known is not None:
            return known
        path = self._path_of(sls, saltenv)
        found = self.files.fetch(path, saltenv) if path else None
        if path is None or found is None:
            raise SlsError([self._missing(sls, saltenv)])
        source = self._sources[sls, saltenv] = self._read(sls, saltenv, path, found)
        return source

    def _read(self, sls: str, saltenv: str, path: str, found: Path) -> SlsSource:
        """A file as it was fetched. Raises SlsError for what cannot be read, or is no text and ought to be."""
        try:
            data = found.read_bytes()
        except OSError as error:
            wrong = f"SLS '{saltenv}:{sls}' cannot be read: {error.strerror}"
            raise SlsError([SlsFault(wrong, Mark(self.files.shown(found)), sls)]) from error
        binary = self._pipes.binary(data)
        try:
            text = data.decode("utf-8", "surrogateescape" if binary else "strict")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            wrong = f"SLS '{saltenv}:{sls}' is not UTF-8 text: byte {error.start}"
            raise SlsError([SlsFault(wrong, Mark(self.files.shown(found), line), sls)]) from error
        if "\r" in text and not binary:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return SlsSource(sls, saltenv, path, str(found), text.removeprefix("\ufeff"), self.files.shown(found))

    def hint(self, sls: str, saltenv: str) -> str:
        """What to do about a reference that names nothing: the nearest that there is, or the files it would be."""
        known = sorted({_reference(path) for path in self._paths_in(saltenv) if path.endswith(".sls")})
        near = close_matches(sls, known, n=1)
        if near:
            return f"the nearest is '{near[0]}'"
        stem = sls.replace(".", "/")
        return f"salt://{stem}.sls or salt://{stem}/init.sls would be it"

    def add(self, source: SlsSource) -> None:
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

    def _split(self, source: SlsSource) -> RenderedSls:
        high = dict(self.data(source.sls, source.saltenv))
        include, extend, exclude = high.pop("include", ()), high.pop("extend", {}), high.pop("exclude", ())
        return RenderedSls(source.sls, source.saltenv, source.file, high, include, extend, exclude)

    def _data(self, source: SlsSource, names: Mapping[str, Any] | None = None) -> Any:
        return self._pipes.data(source, {**self._names(source), **(names or {})})

    def _names(self, source: SlsSource) -> dict[str, Any]:
        return self._context | of_sls(source.path, source.sls, source.saltenv, source.file)

    def names(self, sls: str, saltenv: str) -> frozenset[str]:
        """What the template of an SLS may use without defining it. Raises SlsError where there is no such file."""
        return frozenset(self._names(self.source(sls, saltenv)))

    # ------------------------------------------------------------------------------------------------------------------ lines

    def name_columns(self) -> None:
        """From now on marks name columns too. Salt's users know lines; tools that point into an editor want both."""
        self._pipes.columns = True

    def locate(self, sls: str, saltenv: str, *keys: str) -> Mark | None:
        """Line of an ID, of a state declaration of it, of an argument; of the nearest of these that is found. None without."""
        source = self._sources.get((sls, saltenv))
        if source is None:
            return None
        lines = self._lines.get((sls, saltenv))
        if lines is None:
            lines = self._lines[sls, saltenv] = _by_module(self._pipes.key_places(source, self._names(source)))
        for depth in range(len(keys), 0, -1):
            for prefix in ((), ("extend",)):
                line, column = lines.get((*prefix, *keys[:depth]), (0, 0))
                if line:
                    return Mark(source.shown, line, column if self._pipes.columns else 0)
        return Mark(source.shown)

    def excerpt(self, mark: Mark | None) -> str:
        """Lines around a place."""
        if mark is None:
            return ""
        if mark.file not in self._texts:
            found = next((source.text for source in self._sources.values() if source.shown == mark.file), None)
            if found is None:
                return ""
            self._texts[mark.file] = found.splitlines()
        return excerpt_of(self._texts[mark.file], mark.line)


def _reference(path: str) -> str:
    return path.removesuffix(".sls").removesuffix("/init").replace("/", ".")


def _by_module(places: dict[tuple[str, ...], tuple[int, int]]) -> dict[tuple[str, ...], tuple[int, int]]:
    """The places with those of short declarations twice: below ``file.managed``, as written, and below ``file``."""
    for path, spot in list(places.items()):
        at = 2 if path[0] == "extend" else 1
        if len(path) > at and "." in path[at]:
            places.setdefault((*path[:at], path[at].partition(".")[0], *path[at + 1 :]), spot)
    return places
