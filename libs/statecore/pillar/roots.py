"""The files of the pillar tree, its environments in the order of ``pillar_roots``, and which environment is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statecore.sources.local_tree import LocalFiles, tree_options

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
