"""``salt.utils.files``. It opens files of this machine; a managed host's are reached through ``__salt__["file.*"]``."""

from __future__ import annotations

from typing import IO, Any


def fopen(*args: Any, **kwargs: Any) -> IO[Any]:
    """``open``; text is UTF-8 unless said otherwise."""
    mode = kwargs.get("mode", args[1] if len(args) > 1 else "r")
    if "b" not in mode:
        kwargs.setdefault("encoding", "utf-8")
    opened: IO[Any] = open(*args, **kwargs)  # noqa: SIM115 - the caller closes it
    return opened
