"""Plans that a minion keeps, so that exactly what was shown can be applied later: ``state.plan keep=True`` and
``state.apply_plan``. They are plan files (``statecore.analysis.planfile``) in ``<cachedir>/plans``, mode 0600.

Source: docs/statecore.md#over-the-wire
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from statecore.analysis.planfile import PlanFault, PlanFile, opened
from statecore.host.content import data_files, private_files
from statecore.model.errors import CommandError, InvocationError

#: Most plans that a minion keeps; the oldest ones are deleted.
MOST = 20


class KeptPlans:
    """The plans in a directory of the minion's cache, by their ids."""

    def __init__(self, cachedir: str) -> None:
        """Use ``<cachedir>/plans``. Raise CommandError if the minion has no cachedir."""
        if not cachedir:
            raise CommandError("the plan cannot be kept: this minion has no cachedir")
        self._directory = Path(cachedir) / "plans"

    def keep(self, plan: PlanFile, name: str = "") -> str:
        """Store a plan under an id and return the id; without ``name`` it is new. A plan with this id is replaced.

        Raise InvocationError for a malformed id, CommandError if the plan cannot be written.
        """
        name = name or secrets.token_hex(8)
        path = self._path(name)
        try:
            private_files.write(path, json.dumps(plan))
            kept = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            for old in kept[MOST:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            raise CommandError(f"the plan cannot be kept in {self._directory}: {error.strerror}") from error
        return name

    def load(self, name: str) -> PlanFile:
        """Return the plan with this id. Raise InvocationError for a malformed id, CommandError if there is no such plan."""
        path = self._path(name)
        try:
            return opened(path.read_text("utf-8"))
        except FileNotFoundError as error:
            raise CommandError(
                f"there is no plan {name}: it was applied, or {MOST} newer ones replaced it. Make it anew:"
                " state.plan keep=True"
            ) from error
        except (OSError, UnicodeDecodeError, PlanFault) as error:
            raise CommandError(f"the plan {path} cannot be applied: {error}") from error

    def drop(self, name: str) -> None:
        """Delete the plan with this id, because it is applied."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        if not data_files.is_plain(name):
            raise InvocationError(f"'{name}' is no id of a plan: state.plan keep=True returns it as 'plan'")
        return self._directory / f"{name}.json"
