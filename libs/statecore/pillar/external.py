"""External pillars: run the plugins of the option ``ext_pillar`` in order and merge their data over the pillar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from statecore.model.errors import NotAvailable
from statecore.model.time_limit import check_limit
from statecore.pillar.errors import Errors
from statecore.pillar.merging import Merging


class ExternalPillars(Protocol):
    """Interface that calls the external pillar plugins (option ``ext_pillar``)."""

    def call(
        self, name: str, minion_id: str, pillar: dict[str, object], args: list[object], kwargs: Mapping[str, object]
    ) -> object:
        """Call an external pillar plugin and return its data, which should be a map.

        ``pillar`` is the minion's pillar as far as it is compiled. Raises NotAvailable for an unknown plugin,
        PluginError for a plugin that fails.
        """
        ...

    def names(self) -> list[str]:
        """List of the names of the available external pillar plugins."""
        ...


class PluginError(Exception):
    """An external pillar plugin failed. ``str()`` is the reason with file and line."""


class External:
    """Runs the external pillar plugins for one pillar compilation and merges their data over the pillar."""

    def __init__(
        self,
        plugins: ExternalPillars | None,
        opts: Mapping[str, object],
        merging: Merging,
        errors: Errors,
        minion_id: str,
    ) -> None:
        self._plugins = plugins
        self._opts = opts
        self._merging = merging
        self._errors = errors
        self._minion_id = minion_id

    def over(
        self, data: dict[str, object], override: Mapping[str, object] | None, on_demand: Mapping[str, object] | None
    ) -> dict[str, object]:
        """Return the minion's pillar ``data`` with the data of all external pillar plugins merged over it.

        The plugins see the ``override`` of the call merged into the pillar.
        """
        wanted = self._opts.get("ext_pillar") or []
        if self._plugins is None:
            return data
        if not isinstance(wanted, list):
            self._errors.add(f'The "ext_pillar" option is malformed: it must be a list, not {wanted!r}')
            return data
        wanted = [*wanted, *([on_demand] if on_demand and self._allowed(on_demand) else [])]
        if wanted and override:
            data = self._merging.merged(data, dict(override))
        for entry in wanted:
            if not isinstance(entry, Mapping):
                text = "an entry must be `name: arguments`, not"
                self._errors.add(f'The "ext_pillar" option is malformed: {text} {entry!r}')
                return data
            for name, arguments in entry.items():
                check_limit()
                data = self._merging.merged(data, self._asked(self._plugins, str(name), arguments, data))
        return data

    def _asked(
        self, plugins: ExternalPillars, name: str, arguments: object, data: dict[str, object]
    ) -> dict[str, object] | None:
        kwargs = {str(key): value for key, value in arguments.items()} if isinstance(arguments, Mapping) else {}
        args = arguments if isinstance(arguments, list) else [] if isinstance(arguments, Mapping) else [arguments]
        try:
            given = plugins.call(name, self._minion_id, data, args, kwargs)
        except NotAvailable as missing:
            reason = missing.reason or f"there are {', '.join(plugins.names())}"
            self._errors.add(f"Failed to load ext_pillar {name}: there is no such external pillar; {reason}")
            return None
        except PluginError as error:
            self._errors.add(f"Failed to load ext_pillar {name}: {error}")
            return None
        if isinstance(given, Mapping) and isinstance(given.get("_errors"), list):
            # Errors of a plugin that compiled a pillar itself (git_pillar). The rest of its data is valid.
            for message in given["_errors"]:
                self._errors.add(str(message))
            given = {key: value for key, value in given.items() if key != "_errors"}
        if given and not isinstance(given, Mapping):
            kind = type(given).__name__
            self._errors.add(f"Failed to load ext_pillar {name}: it gave {kind}, and must give a dictionary")
            return None
        return dict(given) if isinstance(given, Mapping) and given else None

    def _allowed(self, on_demand: Mapping[str, object]) -> bool:
        """Return True if the option ``on_demand_ext_pillar`` lists every external pillar in ``on_demand``, the request
        of the minion. Otherwise log the unlisted ones and return False.
        """
        known = self._opts.get("on_demand_ext_pillar") or []
        refused = sorted(str(name) for name in on_demand if not isinstance(known, list) or name not in known)
        if refused:
            self._errors.log(
                f"Minion {self._minion_id} requests the external pillar {', '.join(refused)}, which the option"
                " on_demand_ext_pillar does not list; the pillar is compiled without it"
            )
        return not refused
