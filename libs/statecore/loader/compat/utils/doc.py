"""``salt.utils.doc`` for users' modules: removal of reStructuredText markup from docstrings."""

from __future__ import annotations

import re

#: (pattern of reStructuredText markup, replacement for a terminal).
_PLAIN = (
    (r" *.. code-block:: \S+\n{1,2}", ""),
    (r".. note::", "Note:"),
    (r".. warning::", "Warning:"),
    (r".. versionadded::", "New in version"),
    (r".. versionchanged::", "Changed in version"),
)


def strip_rst(docs: dict[str, str | None]) -> dict[str, str | None]:
    """Remove reStructuredText markup from the docstrings in {name: docstring}. The map is changed and returned."""
    for name, text in docs.items():
        for pattern, plain in _PLAIN:
            text = re.sub(pattern, plain, text) if text else text
        docs[name] = text
    return docs
