"""The line ``#jinja2: {...}``: Jinja's options for the file it stands in."""

from __future__ import annotations

import json
import logging
from typing import Any

log = logging.getLogger(__name__)

#: Begins a line of JSON.
_HEADER = "#jinja2:"

#: Characters of a text among which the line is looked for.
_BEGINNING = 4096


def has_header(text: str) -> bool:
    """Whether a text may have such a line."""
    return _HEADER in text[:_BEGINNING]


def split_header(text: str) -> tuple[str, dict[str, Any]]:
    """The text without its line ``#jinja2: {...}`` (all others keep their numbers), and the options of that line.

    It stands in the first line, or in the second behind a shebang.
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
        log.warning("Ignoring '#jinja2:' header in template: it is no JSON object: %s", line)
        return text, {}
    # A comment over the end of its line: the line goes, and no newline of what follows.
    opening, closing = options.get("comment_start_string", "{#"), options.get("comment_end_string", "#}")
    return f"{before}{opening}\n+{closing}{rest}", options
