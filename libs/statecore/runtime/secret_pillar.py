"""The secret values of one minion's pillar: hides them in the returns, events and logs of this process.

``Contexts`` passes each compiled pillar to ``PillarSecrets.learn``; ``Runtime.call`` and state runs hide the values in
their results.

Source: docs/pillar.md#secret-values
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from statecore.model.ports import Events
from statecore.model.secret_values import SECRET_PILLAR, SecretValues, secret_paths, values_at

log = logging.getLogger(__name__)


class PillarSecrets:
    """Finds the secret values in the pillars of a minion, and hides them."""

    def __init__(self, opts: Mapping[str, object]) -> None:
        self._own = opts.get(SECRET_PILLAR)
        self._values = SecretValues()
        self._filter = _LogFilter(self._values)

    def learn(self, pillar: Mapping[str, object]) -> None:
        """Find the secret values of a pillar and hide them from now on, also in this process's logs. Those of earlier
        pillars stay secret.

        A malformed ``secret_pillar`` is logged as an error, and none of its values is hidden.
        """
        paths = []
        for given in (self._own, pillar.get(SECRET_PILLAR)):
            try:
                paths += secret_paths(given)
            except ValueError as error:
                log.error("%s; its values are not hidden", error)
        if not paths:
            return
        self._values.add(value for path in paths for value in values_at(pillar, path))
        if self._values:
            for handler in logging.getLogger().handlers:
                handler.addFilter(self._filter)

    def hide(self, value: object) -> object:
        """Return a value with ``**********`` in place of secrets; the same object if no secret is known."""
        return self._values.hide(value)

    def close(self) -> None:
        """Remove the filter that hides the secrets from the log handlers of this process."""
        for handler in logging.getLogger().handlers:
            handler.removeFilter(self._filter)


class HidingEvents:
    """An event bus that hides the secret values of pillar in each event before it passes the event to the real bus."""

    def __init__(self, events: Events, secrets: PillarSecrets) -> None:
        self._events = events
        self._secrets = secrets

    def fire(self, tag: str, data: Mapping[str, object]) -> bool:
        """Send an event, with ``**********`` in place of secrets in its tag and data. Return True if the bus accepted it."""
        shown = self._secrets.hide(data)
        return self._events.fire(str(self._secrets.hide(tag)), shown if isinstance(shown, Mapping) else data)


class _LogFilter(logging.Filter):
    """Log filter that replaces the secret values of pillar by ``**********`` in messages and tracebacks."""

    def __init__(self, values: SecretValues) -> None:
        super().__init__()
        self._values = values

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        shown = self._values.text(said)
        if record.exc_info:
            trace = logging.Formatter().formatException(record.exc_info)
            hidden = self._values.text(trace)
            if hidden != trace:
                shown = f"{shown}\n{hidden}"
                record.exc_info = record.exc_text = None
        if shown != said:
            record.msg, record.args = shown, ()
        return True
