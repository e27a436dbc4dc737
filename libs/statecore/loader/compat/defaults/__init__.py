"""``salt.defaults``."""

from __future__ import annotations

from typing import Final

#: Parts the keys of a path in targets.
DEFAULT_TARGET_DELIM: Final = ":"


class _Constant:
    """A unique marker value for "argument not given", compared by identity."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<Constant.{self.name}>"

    def __deepcopy__(self, memo: object) -> _Constant:
        # It is told by identity.
        return self


NOT_SET = _Constant("NOT_SET")
