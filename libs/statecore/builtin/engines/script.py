"""Engine ``script``: runs a program again and again, and fires an event for each line that it prints.

```yaml
engines:
  - script:
      cmd: /some/script.py -a 1 -b 2
      output: json      # any serializer
      interval: 5       # seconds between two runs
      onchange: false   # true: fire a tag only if its data has changed
```

A line such as ``{"tag": "lots/of/tacos", "data": {"toppings": "cilantro"}}`` fires the event ``lots/of/tacos``. Lines
without a tag are skipped.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, NotAvailable

_LOG = logging.getLogger(__name__)


def start(ctx: Context, cmd: object, output: str = "json", interval: float = 1, onchange: bool = False) -> None:
    """Run the program and fire events for its lines. Never return.

    cmd
        the program and its arguments; it runs on the managed host
    output
        the serializer that reads a line (``json``, ``yaml``, ``msgpack`` ...)
    interval
        seconds between the end of the program and its next start
    onchange
        True: an event whose data is the same as the last data of its tag is not fired

    Raises CommandError for an unknown serializer.
    """
    try:
        read = ctx.tables["serializers"][f"{output}.deserialize"]
    except NotAvailable as error:
        raise CommandError(f"output: there is no serializer {output}") from error
    words = shlex.split(str(cmd))
    last: dict[str, object] = {}
    while True:
        for line in _lines(ctx, words):
            event = _event(read, line)
            if event is None:
                continue
            tag, data = event
            if data:
                data.setdefault("id", ctx.opts.get("id"))
            if onchange and last.get(tag) == data:
                continue
            _LOG.info("%s prints the event %s", words[0], tag)
            ctx.events.fire(tag, data)
            if onchange:
                last[tag] = data
        time.sleep(float(interval))


def _lines(ctx: Context, words: list[str]) -> Iterator[bytes]:
    """Yield the lines of one run of a program as it prints them, also those of its standard error."""
    try:
        code = yield from ctx.host.lines(words)
        if code:
            _LOG.error("%s ended with exit code %d", words[0], code)
    except HostError as error:
        _LOG.error("%s cannot be run: %s", words[0], error)


def _event(read: Callable[..., Any], line: bytes) -> tuple[str, dict[str, object]] | None:
    """Return (tag, data) of the event that a printed line describes; None for a line without a tag. A line that cannot
    be read is logged as an error, and None is returned.
    """
    try:
        event = read(line)
    except Exception as error:  # noqa: BLE001 - users' serializers may raise anything, and programs print anything
        _LOG.error("a line cannot be read: %s: %s", error, line[:200].decode("utf-8", "replace").strip())
        return None
    if not isinstance(event, Mapping) or not event.get("tag"):
        return None
    data = event.get("data")
    return str(event["tag"]), dict(data) if isinstance(data, Mapping) else {"data": data} if data else {}
