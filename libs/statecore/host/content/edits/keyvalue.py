"""Keys with values in lines of a text (``file.keyvalue``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from statecore.host.content.edits.text import lines, with_unix_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValueEdit:
    """Which keys are to have which values, and how lines are read."""

    pairs: Mapping[str, Any]
    separator: str = "="
    append: bool = False
    prepend: bool = False
    #: How many lines of each key are kept, -1 for all.
    count: int = 1
    #: Characters that make a line a comment; without them, space in front of a line counts as one. Salt does so.
    uncomment: str | None = None
    key_ignore_case: bool = False
    value_ignore_case: bool = False
    prune: bool = False

    def line(self, key: str, value: Any) -> str:
        """A line of a key."""
        return f"{key}{self.separator}{value}\n"

    def folded(self, text: str, ignore_case: bool) -> str:
        """The text as it is compared."""
        return text.lower() if ignore_case else text


@dataclass(frozen=True, slots=True)
class Edited:
    """What came of it."""

    text: str
    #: Salt's own form of a difference, by lines.
    diff: tuple[str, ...]
    changed: int
    deleted: int
    #: Whether any key was there.
    found: bool


def edit(text: str, wish: KeyValueEdit) -> Edited:
    """The text with the values set."""
    plain, end = with_unix_ends(text)
    edit = _Edit(wish)
    for line in lines(plain):
        edit.take(line)
    edit.add_missing()
    whole = "".join(edit.kept)
    return Edited(whole.replace("\n", end), tuple(edit.told()), edit.changed, len(edit.pruned), edit.found)


class _Edit:
    """The lines that were read so far, and what became of them."""

    def __init__(self, wish: KeyValueEdit) -> None:
        self.wish = wish
        self.kept: list[str] = []
        self.pruned: list[str] = []
        self.changed = 0
        self.found = False
        self._diff: list[str] = []
        self._left = dict.fromkeys(wish.pairs, wish.count)

    def take(self, line: str) -> None:
        """Keeps, changes or drops a line."""
        wish = self.wish
        bare = line.lstrip(wish.uncomment)
        start = wish.folded(bare, wish.key_ignore_case)
        if wish.prune and not start.startswith(tuple(wish.folded(key, wish.key_ignore_case) for key in wish.pairs)):
            self.pruned.append(line)
            return
        key, separator, value = bare.partition(wish.separator)
        if separator == wish.separator:
            for name in self._meant(key):
                line = self._set(line, name, key, value, was_comment=bare != line)
        if line:
            self.kept.append(line)

    def _meant(self, key: str) -> Iterator[str]:
        fold, ignore = self.wish.folded, self.wish.key_ignore_case
        return (name for name in self.wish.pairs if fold(name, ignore) == fold(key, ignore))

    def _set(self, line: str, name: str, key: str, value: str, *, was_comment: bool) -> str:
        self.found = True
        wish, wanted = self.wish, self.wish.pairs[name]
        fold, ignore = wish.folded, wish.value_ignore_case
        same = fold(value.strip(), ignore) == fold(str(wanted).strip(), ignore)
        left = self._left[name]
        # A comment is made a line only where one is still wanted; a line too many is dropped.
        changes = left > 0 if was_comment else left == 0 or not same
        if left > 0:
            self._left[name] = left - 1
        if not changes:
            return line
        self.changed += 1
        self._diff.append(f"- {line}")
        if left == 0:
            return ""
        new = wish.line(key, wanted)
        kind = "" if isinstance(wanted, str) else f" (from {type(wanted).__name__} type)"
        self._diff.append(f"+ {new.rstrip()}{kind}\n" if kind else f"+ {new}")
        return new

    def add_missing(self) -> None:
        """Puts the keys that were not there at the end, or at the start."""
        wish = self.wish
        missing = [wish.line(key, value) for key, value in wish.pairs.items() if self._left[key] > 0]
        if not missing or not (wish.append or wish.prepend):
            return
        self.changed += len(missing)
        if wish.append:
            if self.kept and not self.kept[-1].endswith("\n"):
                self.kept[-1] += "\n"
            self.kept += missing
            self._diff += ["- <EOF>\n", *(f"+ {line}" for line in missing), "+ <EOF>\n"]
        else:
            self.kept[:0] = reversed(missing)
            self._diff[:0] = ["  <SOF>\n", *(f"+ {line}" for line in reversed(missing))]

    def told(self) -> list[str]:
        """The difference, with what was pruned behind its first line, the last first: Salt's order."""
        told = list(self._diff)
        for line in self.pruned:
            told.insert(1, f"- {line}")
        return told
