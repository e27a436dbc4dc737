"""Ranges (``-R``, ``R@`` of a compound target): names that a range server knows. The master asks; minions are sent a list.

Source: the client that Salt asks with (``seco.range``): ``GET /range/list?EXPRESSION``, a name a line; what is wrong is said in
a header.
"""

from __future__ import annotations

from urllib.parse import quote

from statecore.model.errors import TargetError

#: Seconds that a range server has. A worker waits for it.
_PATIENCE = 5.0

#: Names of the largest answer together, bytes.
_MOST_BYTES = 4 * 1024 * 1024


def expand(server: str, expression: str) -> list[str]:
    """The names behind an expression, in the server's order, once each. ``server``: ``host:port``. Raises TargetError."""
    if not server:
        raise TargetError(
            f"the range '{expression}' cannot be resolved: no range server is given (option range_server)"
        )
    # Only here: few have a range server, and it takes a megabyte.
    import http.client

    try:
        link = http.client.HTTPConnection(server, timeout=_PATIENCE)
        try:
            link.request("GET", f"/range/list?{quote(expression)}")
            answer = link.getresponse()
            wrong, body = answer.getheader("RangeException"), answer.read(_MOST_BYTES + 1)
        finally:
            link.close()
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"the range server {server} (option range_server) does not answer: {error!r}") from error
    if wrong or answer.status != http.client.OK:
        raise TargetError(
            f"the range server {server} refuses '{expression}': {wrong or f'HTTP status {answer.status}'}"
        )
    if len(body) > _MOST_BYTES:
        raise TargetError(f"the range server {server} answers more than {_MOST_BYTES} bytes to '{expression}'")
    return list(dict.fromkeys(body.decode("utf-8", "replace").split()))
