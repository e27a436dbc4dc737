"""Pillar SLS files of one pillarenv: renders each file and merges it over its includes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from statecore.model import values
from statecore.model.errors import SlsError
from statecore.model.time_limit import check_limit
from statecore.pillar.errors import Errors
from statecore.pillar.merging import Merging
from statecore.render import SlsTree
from statecore.sources.local_tree import LocalFiles, is_saltenv_name, tree_options
from statecore.sources.tree_roots import ANY_ENV, TreeRoot

_RELATIVE = re.compile(r"(\.+)(.*)")

#: Largest depth of includes. Python's recursion limit allows a few hundred.
_MAX_DEPTH = 200

#: Options of one include.
_OPTIONS = ("defaults", "key")


@dataclass(slots=True)
class PillarSls:
    """Renders the pillar SLS files of one pillarenv, each merged over its includes.

    As in Salt, a file that is included a second time contributes its own data, without its includes. It is rendered a
    second time only if the include gives it other defaults.
    """

    tree: SlsTree
    saltenv: str
    merging: Merging
    errors: Errors
    #: SLS references that may be missing without an error (``ignore_missing``).
    optional: frozenset[str] = frozenset()
    overrides: bool = False
    #: SLS -> its defaults -> its own data, without its includes.
    _own: dict[str, dict[str, dict[str, object]]] = field(default_factory=dict)
    #: SLS references whose includes are being rendered.
    _open: set[str] = field(default_factory=set)

    def render(self, sls: str, defaults: Mapping[str, object] | None = None) -> dict[str, object] | None:
        """Return the data of a pillar SLS file merged over its includes; None if it does not exist or cannot be
        rendered.

        ``defaults`` are variables for its template and for the templates of its includes.
        """
        given = dict(defaults or {})
        data = self._data(sls, given)
        self._own.setdefault(sls, {})[_key(given)] = data or {}
        if data is None:
            return None
        include = data.pop("include", None) or []
        if not isinstance(include, list):
            self.errors.add(f"Include Declaration in SLS '{sls}' is not formed as a list")
            return data
        if len(self._open) >= _MAX_DEPTH:
            self.errors.add(
                f"SLS '{sls}' includes more, but is included itself over {_MAX_DEPTH} levels: that is too deep"
            )
            return data
        self._open.add(sls)
        under = self._under(include, sls, given)
        self._open.discard(sls)
        both = (data, under) if self.overrides else (under, data)
        return self.merging.merged(*both) if both[0] else both[1]

    def _under(self, include: list[object], includer: str, given: dict[str, object]) -> dict[str, object]:
        """Return the merged data of all includes of a pillar SLS file, later over earlier."""
        under: dict[str, object] = {}
        for entry in include:
            read = self._read(entry, includer)
            if read is None:
                continue
            wanted, keys, own = read
            # As in Salt, the defaults also apply to the following includes and to nested includes.
            given = own if isinstance(entry, Mapping) else given
            for sls in self._found(wanted, includer):
                known = self._known(sls, own)
                data = known if known is not None else self.render(sls, given) or {}
                under = self.merging.merged(under, _below(keys, data))
        return under

    def _known(self, sls: str, own: Mapping[str, object]) -> dict[str, object] | None:

        rendered = self._own.get(sls)
        if not rendered:
            return None
        # In a circle of includes each SLS is rendered once, because its defaults could differ in every round.
        if not own or sls in self._open:
            return next(iter(rendered.values()))
        return rendered.get(_key(own))

    def _data(self, sls: str, defaults: Mapping[str, object]) -> dict[str, object] | None:
        check_limit()
        if not self.tree.find(sls, self.saltenv):
            if sls not in self.optional:
                text = f"Specified SLS '{sls}' in environment '{self.saltenv}' is not available on the salt master"
                self.errors.add(f"{text}: {self.tree.hint(sls, self.saltenv)}")
            return None
        try:
            if not self.tree.source(sls, self.saltenv).text.strip():
                # As in Salt, a file of white space is empty, even if YAML would reject it (tabs).
                return {}
            return dict(self.tree.data(sls, self.saltenv, defaults))
        except SlsError as error:
            self.errors.of_sls(sls, error)
            return None

    def _read(self, entry: object, includer: str) -> tuple[str, list[str], dict[str, object]] | None:
        """Return one include (``name`` or ``name: {defaults: {...}, key: a:b}``) as (name, keys, defaults).

        None (and an error) for any other form.
        """
        if isinstance(entry, str | int | float):
            return str(entry), [], {}
        if not isinstance(entry, Mapping):
            self.errors.add(f"The include of '{entry}' in SLS '{includer}' must be a name")
            return None
        wanted, options = next(iter(entry.items()), ("", None))
        where = f"The include of '{wanted}' in SLS '{includer}'"
        if len(entry) != 1 or not isinstance(options, Mapping):
            self.errors.add(f"{where} takes defaults and key, not {options!r}")
            return None
        if unknown := [str(name) for name in options if name not in _OPTIONS]:
            self.errors.add(f"{where} takes defaults and key, not {', '.join(unknown)}")
        given = options.get("defaults") or {}
        if not isinstance(given, Mapping):
            self.errors.add(f"{where}: its defaults are not formed as a dictionary")
            given = {}
        keys = str(options["key"]).split(values.DELIMITER) if options.get("key") not in (None, "") else []
        return str(wanted), keys, {str(name): value for name, value in given.items()}

    def _found(self, wanted: str, includer: str) -> list[str]:
        """List of the references of the pillar SLS files that one entry of an include list names.

        As in Salt, those of a glob are listed twice, so that each file's own data overrides the data that the files
        include.
        """
        reference = self._absolute(wanted.replace("/", "."), includer)
        found = self.tree.find(reference, self.saltenv)
        if wanted.startswith("."):
            return found or [reference]
        # An SLS that does not exist is reported as it is written in the include.
        return [*found, *found] if len(found) > 1 else found or [wanted]

    def _absolute(self, wanted: str, includer: str) -> str:
        """Return the full reference of an included pillar SLS such as ``..common``; each leading dot goes up one level."""
        found = _RELATIVE.fullmatch(wanted)
        if found is None:
            return wanted
        dots, rest = found.groups()
        levels = includer.split(".")
        if self.tree.source(includer, self.saltenv).path.endswith("/init.sls"):
            levels.append("init")
        return ".".join([*levels[: -len(dots)], rest])


def _below(keys: list[str], data: dict[str, object]) -> dict[str, object]:
    for key in reversed(keys if data else []):
        data = {key: data}
    return data


def _key(defaults: Mapping[str, object]) -> str:
    return repr(sorted(defaults.items(), key=lambda item: item[0]))


BASE = "base"


def environment_asked(opts: Mapping[str, object], saltenv: str | None, pillarenv: str | None) -> str | None:
    """Return the only pillarenv that a minion's pillar is compiled from; None if all pillarenvs are merged."""
    if pillarenv:
        return pillarenv
    found = (saltenv if opts.get("pillarenv_from_saltenv") else None) or opts.get("pillarenv")
    return str(found) if found else None


class PillarFiles(LocalFiles):
    """The pillar tree: files of the directories in the option ``pillar_roots``."""

    def __init__(self, opts: Mapping[str, object], saltenv: str | None = None, pillarenv: str | None = None) -> None:
        """Read ``pillar_roots`` and the other options; list no files yet.

        Options used: pillar_roots, hash_type, pillarenv, pillarenv_from_saltenv, saltenv.
        """
        roots = opts.get("pillar_roots")
        env = environment_asked(opts, saltenv, pillarenv) or str(saltenv or opts.get("saltenv") or BASE)
        whole = _with_any(roots if isinstance(roots, Mapping) else {}, env)
        super().__init__(whole, str(opts.get("hash_type") or "sha256"), **tree_options(opts))
        self._envs = list(dict.fromkeys([BASE, *whole]))

    def envs(self) -> list[str]:
        """List of the pillarenvs: "base", then the others in the order of ``pillar_roots``. Later ones override earlier
        ones.
        """
        return list(self._envs)


def _with_any(roots: Mapping[str, Sequence[str | Path]], env: str) -> dict[str, list[str | Path | TreeRoot]]:
    """Return the directories of each pillarenv: ``roots`` without the key ``__env__``. If the pillarenv ``env`` has no
    directories of its own, it gets those of ``__env__``, with its name inserted.
    """
    whole: dict[str, list[str | Path | TreeRoot]] = {
        name: list(paths) for name, paths in roots.items() if name != ANY_ENV
    }
    # The minion chooses the name of its pillarenv.
    if ANY_ENV in roots and env not in whole and is_saltenv_name(env):
        whole[env] = [TreeRoot.of(path, env) for path in roots[ANY_ENV]]
    return whole
