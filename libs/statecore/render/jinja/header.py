"""The header line ``#jinja2: {...}`` of a template: Jinja options for the file that contains the line."""

from __future__ import annotations

import json
import logging

log = logging.getLogger(__name__)

#: Start of the header line. A JSON object follows.
_HEADER = "#jinja2:"

#: Number of characters at the start of a text in which the header is searched.
_BEGINNING = 4096


def has_header(text: str) -> bool:
    """Return whether a template's text may have a header line ``#jinja2: {...}``."""
    return _HEADER in text[:_BEGINNING]


def split_header(text: str) -> tuple[str, dict[str, object]]:
    """Return (template's text without the header line ``#jinja2: {...}``, Jinja options in that line).

    The header is the first line, or the second after a ``#!`` line. The line numbers of the other lines stay the same.
    """
    if not has_header(text):
        return text, {}
    shebang = text.startswith("#!") and not text.startswith("#!/")
    before, begin = (text[: text.find("\n") + 1], text.find("\n") + 1) if shebang else ("", 0)
    end = text.find("\n", begin)
    end = len(text) if end < 0 else end
    line, rest = text[begin:end], text[end + 1 :]
    if not line.startswith(_HEADER) or not line.removeprefix(_HEADER).strip():
        return text, {}
    try:
        options = json.loads(line.removeprefix(_HEADER))
    except ValueError:
        options = None
    if not isinstance(options, dict):
        log.warning("Ignoring '#jinja2:' header in template: it is not a JSON object: %s", line)
        return text, {}
    # The header is replaced by a comment that spans its newline, so that the line vanishes and line numbers stay.
    opening, closing = options.get("comment_start_string", "{#"), options.get("comment_end_string", "#}")
    return f"{before}{opening}\n+{closing}{rest}", options
