"""``salt.utils.doc``."""

from __future__ import annotations

import re
from typing import Any

#: What reStructuredText says -> what a terminal shows.
_PLAIN = (
    (r" *.. code-block:: \S+\n{1,2}", ""),
    (r".. note::", "Note:"),
    (r".. warning::", "Warning:"),
    (r".. versionadded::", "New in version"),
    (r".. versionchanged::", "Changed in version"),
)


def strip_rst(docs: dict[str, Any]) -> dict[str, Any]:
    """Remove reStructuredText markup from {name: docstring}. Change and return the map."""
    for name, text in docs.items():
        for pattern, plain in _PLAIN if text else ():
            text = re.sub(pattern, plain, text)
        docs[name] = text
    return docs
