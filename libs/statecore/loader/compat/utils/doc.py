"""``salt.utils.doc``."""

from __future__ import annotations

import re

#: What reStructuredText says -> what a terminal shows.
_PLAIN = (
    (r" *.. code-block:: \S+\n{1,2}", ""),
    (r".. note::", "Note:"),
    (r".. warning::", "Warning:"),
    (r".. versionadded::", "New in version"),
    (r".. versionchanged::", "Changed in version"),
)


def strip_rst(docs: dict[str, str | None]) -> dict[str, str | None]:
    """Remove reStructuredText markup from {name: docstring}. Change and return the map."""
    for name, text in docs.items():
        for pattern, plain in _PLAIN:
            text = re.sub(pattern, plain, text) if text else text
        docs[name] = text
    return docs
