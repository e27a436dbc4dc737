"""Pillar SLS of one environment: each file over what it includes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecore.model import values
from statecore.model.errors import SlsError
from statecore.pillar.errors import Errors
from statecore.pillar.merging import Merging
from statecore.render import SlsTree
from statecore.sources.local_tree import LocalFiles, tree_options

_RELATIVE = re.compile(r"(\.+)(.*)")

#: Levels of includes; Python would follow a few hundred.
_MAX_DEPTH = 200

#: What one include may say beside its name.
_OPTIONS = ("defaults", "key")


@dataclass(slots=True)
class PillarSls:
    """A walk over the SLS of one environment.

    As in Salt a file that is included again gives what it says itself, without what it includes. Only where it is given
    other defaults it is rendered again.
    """

    tree: SlsTree
    saltenv: str
    merging: Merging
    errors: Errors
    #: SLS whose absence is no error.
    optional: frozenset[str] = frozenset()
    overrides: bool = False
    #: SLS -> its defaults -> what it says itself.
    _own: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    #: SLS whose includes are being walked over.
    _open: set[str] = field(default_factory=set)

    def render(self, sls: str, defaults: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """An SLS over what it includes; None when there is none, or it cannot be rendered.

        ``defaults`` are names for its template, and for those of what it includes.
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

    def _under(self, include: list[Any], includer: str, given: dict[str, Any]) -> dict[str, Any]:
        """All that an SLS includes, later over earlier."""
        under: dict[str, Any] = {}
        for entry in include:
            read = self._read(entry, includer)
            if read is None:
                continue
            wanted, keys, own = read
            # Salt hands the defaults on to the includes behind, and to what is included in turn.
            given = own if isinstance(entry, Mapping) else given
            for sls in self._found(wanted, includer):
                known = self._known(sls, own)
                data = known if known is not None else self.render(sls, given) or {}
                under = self.merging.merged(under, _below(keys, data))
        return under

    def _known(self, sls: str, own: Mapping[str, Any]) -> dict[str, Any] | None:
        """What an SLS says itself, where it need not be rendered for these defaults."""
        rendered = self._own.get(sls)
        if not rendered:
            return None
        # In a circle it is rendered once, whatever its defaults: they could be others at every turn.
        if not own or sls in self._open:
            return next(iter(rendered.values()))
        return rendered.get(_key(own))

    def _data(self, sls: str, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self.tree.find(sls, self.saltenv):
            if sls not in self.optional:
                text = f"Specified SLS '{sls}' in environment '{self.saltenv}' is not available on the salt master"
                self.errors.add(f"{text}: {self.tree.hint(sls, self.saltenv)}")
            return None
        try:
            if not self.tree.source(sls, self.saltenv).text.strip():
                # Nothing but white space: as in Salt that is nothing, even where YAML would not have it.
                return {}
            return dict(self.tree.data(sls, self.saltenv, defaults))
        except SlsError as error:
            self.errors.of_sls(sls, error)
            return None

    def _read(self, entry: Any, includer: str) -> tuple[str, list[str], dict[str, Any]] | None:
        """One include, ``name`` or ``name: {defaults: {...}, key: a:b}``, as (name, keys, defaults).

        What is formed otherwise is an error, and not included.
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
        """The SLS that an include means. Those of a glob twice, as in Salt: so what each says itself counts more than what
        the others include."""
        reference = self._absolute(wanted.replace("/", "."), includer)
        found = self.tree.find(reference, self.saltenv)
        if wanted.startswith("."):
            return found or [reference]
        # What is not there is named as it was written.
        return [*found, *found] if len(found) > 1 else found or [wanted]

    def _absolute(self, wanted: str, includer: str) -> str:
        """The full reference of a relative one: dots count levels."""
        found = _RELATIVE.fullmatch(wanted)
        if found is None:
            return wanted
        dots, rest = found.groups()
        levels = includer.split(".")
        if self.tree.source(includer, self.saltenv).path.endswith("/init.sls"):
            levels.append("init")
        return ".".join([*levels[: -len(dots)], rest])


def _below(keys: list[str], data: dict[str, Any]) -> dict[str, Any]:
    for key in reversed(keys if data else []):
        data = {key: data}
    return data


def _key(defaults: Mapping[str, Any]) -> str:
    return repr(sorted(defaults.items(), key=lambda item: item[0]))


#: Environment whose directories stand in for one that has none of its own; in their names it stands for that one's.
_ANY_ENV = "__env__"

BASE = "base"


def environment_asked(opts: Mapping[str, Any], saltenv: str | None, pillarenv: str | None) -> str | None:
    """The one environment that pillar is limited to; None for all of them."""
    if pillarenv:
        return pillarenv
    found = (saltenv if opts.get("pillarenv_from_saltenv") else None) or opts.get("pillarenv")
    return str(found) if found else None


class PillarFiles(LocalFiles):
    """The pillar tree as one compilation sees it."""

    def __init__(self, opts: Mapping[str, Any], saltenv: str | None = None, pillarenv: str | None = None) -> None:
        """Options: pillar_roots, hash_type, pillarenv, pillarenv_from_saltenv, saltenv."""
        roots: Mapping[str, Sequence[str | Path]] = opts.get("pillar_roots") or {}
        env = environment_asked(opts, saltenv, pillarenv) or str(saltenv or opts.get("saltenv") or BASE)
        whole = _with_any(roots, env)
        super().__init__(whole, str(opts.get("hash_type") or "sha256"), **tree_options(opts))
        self._envs = list(dict.fromkeys([BASE, *whole]))

    def envs(self) -> list[str]:
        """Base, then as ``pillar_roots`` has them: later ones count more."""
        return list(self._envs)


def _with_any(roots: Mapping[str, Sequence[str | Path]], env: str) -> dict[str, list[str | Path]]:
    """The roots, with those of ``__env__`` for the environment, where it has none."""
    whole = {name: list(paths) for name, paths in roots.items() if name != _ANY_ENV}
    if _ANY_ENV in roots and env not in whole and not _leads_out(env):
        whole[env] = [str(path).replace(_ANY_ENV, env) for path in roots[_ANY_ENV]]
    return whole


def _leads_out(env: str) -> bool:
    """Whoever asks names the environment: it must not become a way out of the roots."""
    return env in (".", "..") or "/" in env or "\0" in env
