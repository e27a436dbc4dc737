"""The state tree of one minion: finds SLS files, renders each file once, and finds the file and line of an error."""

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
from statecore.model.time_limit import ComputedTooMuch
from statecore.render.context import SlsSource, StateNames
from statecore.render.faults import excerpt_of
from statecore.render.jinja import SaltFunctions
from statecore.render.memory import RenderMemory
from statecore.render.path_variables import sls_variables
from statecore.render.pipe import Pipes
from statecore.render.templates import TreeTemplates
from statecore.render.top import INCLUDE, STRATEGIES, Chosen, Sections, choose, verify
from statecore.render.yaml_cache import YamlCache
from statecore.targeting.match import Subject, matches, users_matcher


@dataclass(frozen=True, slots=True)
class RenderedSls:
    """One rendered SLS file: its high data, and its ``include``, ``extend`` and ``exclude``."""

    sls: str
    saltenv: str
    file: str
    #: ID -> map of state modules, in the order of the file, without include, extend and exclude.
    high: dict[str, Any]
    include: Any = ()
    extend: Any = field(default_factory=dict)
    exclude: Any = ()


class SlsTree:
    """Renders the SLS files of one state tree for one minion. Each file is fetched and rendered on first use, and only
    once.
    """

    def __init__(
        self,
        files: Files,
        *,
        opts: Mapping[str, Any],
        grains: Mapping[str, object],
        pillar: Mapping[str, object],
        functions: Mapping[str, Callable[..., object]],
        extra: Mapping[str, object] | None = None,
        renderers: Mapping[str, Callable[..., object]] | None = None,
        matchers: Mapping[str, Callable[..., object]] | None = None,
        memory: RenderMemory | None = None,
        yaml_cache: YamlCache | None = None,
        states: StateNames | None = None,
        secret: bool = False,
        untrusted: bool = False,
    ) -> None:
        """Prepare the state tree of one minion. ``secret``: it is a pillar tree, whose values the log hides by more names.
        ``untrusted``: a stranger wrote the tree, so its templates get plain data.

        ``extra`` are further template variables, such as ``tag`` and ``data`` of a reaction. ``renderers`` and
        ``matchers`` are functions of users' renderer and matcher modules. ``memory`` is a cache of compiled templates
        and parsed texts that many trees share. ``yaml_cache`` is the cache on disk for the data of large files, used if there
        is no ``memory``. ``states`` are the minion's state modules, for SLS files in Python that name them.
        """
        self.files = files
        self.renderers = renderers
        self.untrusted = untrusted
        self._matchers: Mapping[str, Callable[..., object]] = {} if matchers is None else matchers
        self._opts = opts
        self._grains, self._pillar = grains, pillar
        self._context = {
            "grains": grains,
            "pillar": pillar,
            "salt": SaltFunctions(functions, plain=untrusted),
            "opts": opts,
            **(extra or {}),
        }
        self._rendered: dict[tuple[str, str], RenderedSls] = {}
        self._sources: dict[tuple[str, str], SlsSource] = {}
        self._paths: dict[str, frozenset[str]] = {}
        #: (sls, saltenv) -> {path of keys: (line, column) in the template}. Computed at the first fault.
        self._lines: dict[tuple[str, str], dict[tuple[str, ...], tuple[int, int]]] = {}
        #: Displayed file name -> its lines. Split at the first fault.
        self._texts: dict[str, list[str]] = {}
        self._pipes = Pipes(
            files, opts, self._context, renderers, memory, yaml_cache, states, secret=secret, untrusted=untrusted
        )
        self.templates = TreeTemplates(files, self._context, opts, self._pipes)

    # -------------------------------------------------------------------------------------------------------- top file

    def top(self) -> dict[str, list[str]]:
        """Map of saltenv to the SLS references that the top files assign to this minion. Raise SlsError if a top file
        is faulty.
        """
        strategy = str(self._opts.get("top_file_merging_strategy") or "merge")
        return self.chosen(strategy, str(self._opts.get("saltenv") or "")).refs

    def chosen(self, strategy: str, only: str = "") -> Chosen:
        """Return the Chosen of this minion: its SLS references by saltenv, from the top files merged by
        ``strategy``.

        ``strategy``: merge, same, merge_all or replace. ``only`` limits the result to one saltenv. Raise SlsError
        with all errors of the top files.
        """
        found = choose(
            self.sections(strategy, only), self.matches_minion, self.files.envs(), ordered=strategy == "replace"
        )
        return Chosen({env: refs for env, refs in found.refs.items() if refs}, found.optional)

    def sections(self, strategy: str, only: str = "") -> Sections:
        """Return {saltenv: {target: list of SLS references and options}}, from the top files merged by ``strategy``,
        for all minions.

        ``strategy``: merge, same, merge_all or replace. ``only`` limits the result to one saltenv. Raise SlsError
        with all errors of the top files.
        """
        # state_top_saltenv does not apply to pillar, which has its own top files.
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
        """Return the saltenvs whose top files count: those of the option ``env_order`` if it is set, else all, base
        first.
        """
        known = self.files.envs()
        order = [str(env) for env in self._opts.get("env_order") or []]
        return [env for env in dict.fromkeys(order) if env in known] if order else known

    def _tops_of(self, saltenv: str) -> list[dict[object, object]]:
        """Return the data of a saltenv's top file and of the top files that it includes; [] if the saltenv has no top
        file.
        """
        name = str(self._opts.get("state_top") or "top.sls").removeprefix("salt://")
        path = self.files.fetch(name, saltenv)
        if path is None:
            return []
        tops = [self._rendered_top(self._read("top", saltenv, name, path))]
        seen: set[str] = set()
        # The loop appends to the list that it walks over, because included files may include others.
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

    def _rendered_top(self, source: SlsSource) -> dict[object, object]:
        self._sources[source.sls, source.saltenv] = source
        # As in Salt, a top file's path variables are those of a file in the tree's root, without an SLS reference.
        names = sls_variables(posixpath.basename(source.path), "", source.saltenv, source.file)
        top = self._pipes.data(source, self._context | names, jinja_options=self.templates.jinja_options)
        if not isinstance(top, dict):
            raise SlsError([SlsFault("The top file must be a map of environments", Mark(source.shown, 1))])
        return top

    def _in_top(self, keys: tuple[str, ...]) -> Mark | None:
        """Return the position (file and line) in the top files to which these nested keys lead; None if no top file
        has them.
        """
        marks = [self.locate("top", env, *keys) for sls, env in self._sources if sls == "top"]
        return next((mark for mark in marks if mark is not None and mark.line), None)

    def _of_target(self, target: str) -> Mark | None:
        """Return the first position of a target in the top files; None if no top file has it."""
        found = [self.locate("top", env, env, target) for sls, env in self._sources if sls == "top"]
        return next((mark for mark in found if mark is not None and mark.line), None)

    def matches_minion(self, target: str, tgt_type: str, delimiter: str) -> bool:
        """Return whether a target of a top file matches this minion. Raise SlsError if the target is invalid."""
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
        except ComputedTooMuch as error:
            text = f"The top file's target '{target}' ({tgt_type}): comparing it with the minion takes too long ({error.option})"
            raise SlsError([SlsFault(text, self._of_target(target))]) from error
        except TargetError as error:
            text = f"The top file's target '{target}' cannot be understood: {error}"
            raise SlsError([SlsFault(text)]) from error

    # ------------------------------------------------------------------------------------------------------- SLS files

    def find(self, pattern: str, saltenv: str) -> list[str]:
        """Return the sorted SLS references in a saltenv that equal ``pattern`` or match it as a glob."""
        if not any(char in pattern for char in "*?["):
            return [pattern] if self._path_of(pattern, saltenv) else []
        known = {_reference(path) for path in self._paths_in(saltenv) if path.endswith(".sls")}
        return sorted(ref for ref in known if fnmatchcase(ref, pattern))

    def package(self, ref: str, saltenv: str) -> str:
        """Return the SLS reference of the file ``init.sls`` in a directory ``d``: ``d`` itself, or ``d.init`` if a
        file ``d.sls`` exists, because ``d`` then refers to that file.
        """
        stem, paths = ref.replace(".", "/"), self._paths_in(saltenv)
        return f"{ref}.init" if {f"{stem}.sls", f"{stem}/init.sls"} <= paths else ref

    def render(self, sls: str, saltenv: str) -> RenderedSls:
        """Return the rendered SLS file of an SLS reference. Raise SlsError with file and line."""
        known = self._rendered.get((sls, saltenv))
        if known is None:
            known = self._rendered[sls, saltenv] = self._split(self.source(sls, saltenv))
        return known

    def source(self, sls: str, saltenv: str) -> SlsSource:
        """Return the SlsSource of an SLS reference: the paths and the text of its file, not yet rendered.

        Raise SlsError with the searched paths and the most similar reference if there is no such file.
        """
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
        """Read a fetched SLS file and return its SlsSource: its paths and its text.

        Raise SlsError if it cannot be read, or is not UTF-8 although its renderer needs text.
        """
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
        """Return advice for an SLS reference that does not exist: the most similar reference, or the paths that its
        file could have.
        """
        known = sorted({_reference(path) for path in self._paths_in(saltenv) if path.endswith(".sls")})
        near = close_matches(sls, known, n=1)
        if near:
            return f"the nearest is '{near[0]}'"
        stem = sls.replace(".", "/")
        return f"there is neither salt://{stem}.sls nor salt://{stem}/init.sls"

    def add(self, source: SlsSource) -> None:
        """Add an SLS file that is not in the state tree, such as a reactor's SLS file, under its SLS reference."""
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

    def data(self, sls: str, saltenv: str, names: Mapping[str, object] | None = None) -> dict[Any, Any]:
        """Return the map that one SLS file renders to, including its ``include``, ``extend`` and ``exclude``.

        ``names`` are further variables for its template. Nothing is cached, so the file can be rendered again with
        other variables. Raise SlsError with file and line.
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

    def _data(self, source: SlsSource, names: Mapping[str, object] | None = None) -> object:
        return self._pipes.data(source, {**self._names(source), **(names or {})})

    def _names(self, source: SlsSource) -> dict[str, object]:
        return self._context | sls_variables(source.path, source.sls, source.saltenv, source.file)

    def names(self, sls: str, saltenv: str) -> frozenset[str]:
        """Return the names of the variables that the template of an SLS may use without defining them. Raise SlsError
        if there is no such file.
        """
        return frozenset(self._names(self.source(sls, saltenv)))

    # ----------------------------------------------------------------------------------------------------------- lines

    def report_columns(self) -> None:
        """Report the column of all later errors, in addition to the line. Salt's messages have lines only; editors need
        both.
        """
        self._pipes.columns = True

    def locate(self, sls: str, saltenv: str, *keys: str) -> Mark | None:
        """Return the Mark (file, line and column) of the place in an SLS file to which nested keys (ID, state
        declaration, argument) lead.

        If the file lacks the last keys, the Mark of the last key that is there is returned; without any, a Mark with
        only the file. None if the SLS was never read.
        """
        source = self._sources.get((sls, saltenv))
        if source is None:
            return None
        lines = self._lines.get((sls, saltenv))
        if lines is None:
            lines = self._lines[sls, saltenv] = _by_module(self._pipes.key_positions(source, self._names(source)))
        for depth in range(len(keys), 0, -1):
            for prefix in ((), ("extend",)):
                line, column = lines.get((*prefix, *keys[:depth]), (0, 0))
                if line:
                    return Mark(source.shown, line, column if self._pipes.columns else 0)
        return Mark(source.shown)

    def positions(self, sls: str, saltenv: str) -> dict[tuple[str, ...], tuple[int, int]]:
        """Map of the path of keys in an SLS file's data to (line, column) in the file, from 1. Raise SlsError if there
        is no such file.
        """
        source = self.source(sls, saltenv)
        return self._pipes.key_positions(source, self._names(source))

    def rendered_text(self, sls: str, saltenv: str, text: str) -> str:
        """Return the text that Jinja makes of ``text`` in place of an SLS file's own text, with the file's variables.

        Raise SlsError if there is no such file, TemplateFault if it cannot be rendered.
        """
        source = self.source(sls, saltenv)
        return self._pipes.template_text(source, self._names(source), text)

    def excerpt(self, mark: Mark | None) -> str:
        """Return the lines of an SLS file around a position, its line marked with an arrow (``<====``) as in Salt; ""
        for None or an unknown file.
        """
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


def _by_module(positions: dict[tuple[str, ...], tuple[int, int]]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Add the keys of short declarations to a map of positions: an entry below ``file.managed`` is also entered below
    ``file``.

    The map is changed and returned.
    """
    for path, spot in list(positions.items()):
        at = 2 if path[0] == "extend" else 1
        if len(path) > at and "." in path[at]:
            positions.setdefault((*path[:at], path[at].partition(".")[0], *path[at + 1 :]), spot)
    return positions
