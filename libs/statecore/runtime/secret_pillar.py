"""The secret values of one minion's pillar: hides them in the returns, events and logs of this process.

``Contexts`` passes each compiled pillar to ``PillarSecrets.learn``; ``Runtime.call`` and state runs hide the values in
their results. Logs hide more than returns: values under keys that name a secret (``password``), in pillar, in states
and in the arguments of jobs.

Source: docs/pillar.md#secret-values, docs/security.md#secrets
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecore.model.lazy import lazy_module
from statecore.model.ports import Events
from statecore.model.secret_values import SECRET_PILLAR, SecretValues, secret_paths, values_at

if TYPE_CHECKING:
    from statecore.model import log_text
else:
    # Needed once something is logged.
    log_text = lazy_module("statecore.model.log_text")

log = logging.getLogger(__name__)


class PillarSecrets:
    """Finds the secret values in the pillars of a minion, and hides them."""

    def __init__(self, opts: Mapping[str, object]) -> None:
        self._own = opts.get(SECRET_PILLAR)
        self._values = SecretValues()
        #: Values under keys that name a secret: hidden in logs only.
        self._named = SecretValues()
        #: Data that was not searched for such values yet: it is searched when the next line is logged.
        self._unread: list[object] = []

    def learn(self, pillar: Mapping[str, object]) -> None:
        """Find the secret values of a pillar and hide them from now on, also in this process's logs. Those of earlier
        pillars stay secret.

        A malformed ``secret_pillar`` is logged as an error, and none of its values is hidden.
        """
        self.learn_for_logs(pillar)
        paths = []
        for given in (self._own, pillar.get(SECRET_PILLAR)):
            try:
                paths += secret_paths(given)
            except ValueError as error:
                log.error("%s; its values are not hidden", error)
        if not paths:
            return
        self._values.add(value for path in paths for value in values_at(pillar, path))

    def learn_for_logs(self, data: object) -> None:
        """From now on hide in this process's logs the values of those keys in ``data`` that name a secret
        (``password``).

        ``data`` is pillar, low chunks or arguments of a job. It is searched when the next line is logged.
        """
        if len(self._unread) >= _MOST_UNREAD:
            self._read()
        self._unread.append(data)
        for handler in logging.getLogger().handlers:
            _filter_of(handler).sources.add(self)

    def logged(self, text: str) -> str:
        """Return the text of a log line with ``**********`` in place of the secrets that are known so far."""
        if self._unread:
            self._read()
        return self._named.text(self._values.text(text))

    def _read(self) -> None:
        unread, self._unread = self._unread, []
        for data in unread:
            self._named.add(log_text.secrets_of(data))

    def hide(self, value: object) -> object:
        """Return a value with ``**********`` in place of secrets; the same object if no secret is known."""
        return self._values.hide(value)

    def close(self) -> None:
        """Stop hiding the secrets of this minion in the logs of this process."""
        for handler in logging.getLogger().handlers:
            _filter_of(handler).sources.discard(self)


class HidingEvents:
    """An event bus that hides the secret values of pillar in each event before it passes the event to the real bus."""

    def __init__(self, events: Events, secrets: PillarSecrets) -> None:
        self._events = events
        self._secrets = secrets

    def fire(self, tag: str, data: Mapping[str, object]) -> bool:
        """Send an event, with ``**********`` in place of secrets in its tag and data. Return True if the bus accepted it."""
        shown = self._secrets.hide(data)
        return self._events.fire(str(self._secrets.hide(tag)), shown if isinstance(shown, Mapping) else data)


#: Data that may wait to be searched; a process that logs nothing must not keep all pillars that it saw.
_MOST_UNREAD = 8


def _filter_of(handler: logging.Handler) -> _LogFilter:
    """Return the log filter of a handler that hides secrets (_LogFilter). A handler without one gets a new one."""
    for one in handler.filters:
        if isinstance(one, _LogFilter):
            return one
    made = _LogFilter()
    handler.addFilter(made)
    return made


class _LogFilter(logging.Filter):
    """Log filter that replaces secret values by ``**********`` in messages and tracebacks, for all minions of the process."""

    def __init__(self) -> None:
        super().__init__()
        #: Kept by their runtimes: the secrets of a minion that the process no longer serves are forgotten.
        self.sources: weakref.WeakSet[PillarSecrets] = weakref.WeakSet()

    def _hidden(self, text: str) -> str:
        for source in list(self.sources):
            text = source.logged(text)
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        shown = self._hidden(said)
        if record.exc_info:
            trace = logging.Formatter().formatException(record.exc_info)
            hidden = self._hidden(trace)
            if hidden != trace:
                shown = f"{shown}\n{hidden}"
                record.exc_info = record.exc_text = None
        if shown != said:
            record.msg, record.args = shown, ()
        return True
