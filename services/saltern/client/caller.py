"""``Caller``: calls the execution functions of this host's minion in this process, as ``salt-call`` does."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from saltern.kit.command.command_line import CommandError as CommandLineError
from saltern.kit.config.minion_options import load_minion
from saltern.kit.config.reading import ConfigError
from statecore.clients.errors import SaltClientError, SaltConfigurationError
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from saltern.minion.call import call as salt_call
    from statecore.loader import dunders
    from statecore.runtime.runtime import Runtime
else:
    salt_call = lazy_module("saltern.minion.call.call")
    dunders = lazy_module("statecore.loader.dunders")


class Caller:
    """Calls execution functions of this host's minion, with its configuration, files and pillar."""

    def __init__(
        self, c_path: str | None = None, mopts: Mapping[str, object] | None = None, *, local: bool = False
    ) -> None:
        """Read the minion's configuration. ``c_path``: path of the file ``minion`` or of its directory; by default
        SALT_CONFIG_DIR, else /etc/salt. ``local``: use no master, as ``salt-call --local``. ``mopts``: options that
        replace those of the file.

        Raise SaltConfigurationError if the configuration is wrong.
        """
        path = None if c_path is None else Path(c_path)
        try:
            options = load_minion(None if path is None else str(path if path.is_dir() else path.parent))
            known = {each.name for each in dataclasses.fields(options)}
            given = {name: value for name, value in (mopts or {}).items() if name in known}
            self._options = dataclasses.replace(options, **given)  # type: ignore[arg-type]  # checked by their use
        except ConfigError as error:
            raise SaltConfigurationError(str(error)) from error
        self._local = local
        self._runtime: Runtime | None = None

    def cmd(self, fun: str, *args: object, **kwargs: object) -> object:
        """Call an execution function such as ``test.ping`` and return its result.

        Raise KeyError if the function does not exist, CommandError if it fails, SaltClientError if no master accepts
        this minion.
        """
        if self._runtime is None:
            try:
                self._runtime = salt_call.opened_runtime(self._options, fun, local=self._local).runtime
            except (CommandLineError, ConfigError) as error:
                raise SaltClientError(
                    f"this host's minion {self._options.id} cannot call {fun}: {error}; Caller(local=True) needs no master"
                ) from error
        return dunders.SaltTable(self._runtime.context.functions)[fun](*args, **kwargs)

    function = cmd
