"""The type for names of files that come out of configurations, archives and answers."""

from __future__ import annotations

#: Bytes of the longest file name on Linux.
_MOST_BYTES = 255


class FileName(str):
    """The name of a file inside one directory: 1 to 255 bytes, no ``/``, no control character, not ``.`` or ``..``.

    Raise ValueError for any other text; the message shows the text, without its control characters.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> FileName:
        why = _fault(text)
        if why:
            raise ValueError(f"{text!r} is no file name: {why}")
        return super().__new__(cls, text)


def _fault(text: str) -> str:
    """Return why a text cannot be the name of a file in one directory; "" if it can."""
    if not text:
        return "it is empty"
    if text in (".", ".."):
        return "it names a directory"
    if "/" in text:
        return "it contains '/'"
    # isprintable is false for a byte that is no UTF-8, too: such names exist on disks, but in no option.
    if not text.isprintable():
        return "it contains a control character"
    if len(text.encode()) > _MOST_BYTES:
        return f"it is longer than {_MOST_BYTES} bytes"
    return ""
