"""Regular expressions that minions write, in an engine whose time grows with the text and not exponentially (RE2).

RE2 has no lookaround, no back references, no possessive quantifiers and no repetition above 1000. ``\\d``, ``\\w`` and
``\\s`` mean ASCII characters. Everything else means the same as in the module ``re`` for ids and grains of one line.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from statecore.model.errors import TargetError
from statecore.targeting.match import Pattern

#: Most characters of an expression, and most bytes that it may take compiled.
_LONGEST = 1000
_MOST_MEMORY = 1 << 20

#: ``\Z`` of the module ``re`` is ``\z`` in RE2. A backslash is read with its character, so that ``\\Z`` stays.
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def linear_regex(pattern: str, ignore_case: bool) -> Pattern:
    """Return the compiled form of a minion's regular expression, which has ``match``.

    Raises TargetError if the expression is invalid, too large, or needs backtracking, or if google-re2 is not installed.
    """
    if len(pattern) > _LONGEST:
        raise TargetError(f"a regular expression of {len(pattern)} characters; {_LONGEST} are allowed")
    try:
        engine, options = _engine(ignore_case)
    except ImportError as error:
        raise TargetError(
            f"regular expressions of minions need the package google-re2 (pip install 'saltern-services[master]'): {error}"
        ) from error
    try:
        return _Linear(engine.compile(_ESCAPE.sub(lambda pair: r"\z" if pair[1] == "Z" else pair[0], pattern), options))
    except (engine.error, UnicodeError) as error:
        why = error.args[0] if error.args else error
        text = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise TargetError(
            f"'{pattern}' is no regular expression that a minion may use ({text}); lookaround and back references are for operators"
        ) from error


class _Linear:
    """A pattern of RE2. Text that is no valid Unicode matches nothing."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern

    def match(self, text: str, /) -> object:
        try:
            return self._pattern.match(text)
        except UnicodeError:
            return None


@cache
def _engine(ignore_case: bool) -> tuple[Any, Any]:
    """Return the module re2 (google-re2) and its options for compiling a pattern. Raises ImportError if google-re2 is
    not installed.
    """
    # Imported here: it takes 4.4 MB, and few masters get a regular expression from a minion.
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    options.never_capture = True
    options.case_sensitive = not ignore_case
    return re2, options
