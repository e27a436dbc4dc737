"""``salt.defaults`` for users' modules: the separator of keys in targets (``DEFAULT_TARGET_DELIM``), and unique marker
values.
"""

from __future__ import annotations

from typing import Final

#: Separator of the keys in the path of a target, such as ``os:Debian``.
DEFAULT_TARGET_DELIM: Final = ":"


class _Constant:
    """A unique marker value, such as "argument not given", that is compared by identity."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<Constant.{self.name}>"

    def __deepcopy__(self, memo: object) -> _Constant:
        # The marker is compared by identity, so a copy would be another marker.
        return self


NOT_SET = _Constant("NOT_SET")
