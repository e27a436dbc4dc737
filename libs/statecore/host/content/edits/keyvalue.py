"""Edit of the values of keys in the lines of a text (``file.keyvalue``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from statecore.host.content.edits.text import lines, with_unix_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValueEdit:
    """Arguments of ``file.keyvalue``: the wanted value of each key, and the syntax of the file's lines."""

    pairs: Mapping[str, object]
    separator: str = "="
    append: bool = False
    prepend: bool = False
    #: Number of lines to keep for each key; -1: all.
    count: int = 1
    #: Characters that start a comment. None: a line with leading space counts as a comment, as in Salt.
    uncomment: str | None = None
    key_ignore_case: bool = False
    value_ignore_case: bool = False
    prune: bool = False

    def line(self, key: str, value: object) -> str:
        """Return the line that sets a key to a value, in the syntax of the file ("key = value")."""
        return f"{key}{self.separator}{value}\n"

    def folded(self, text: str, ignore_case: bool) -> str:
        """Return a text in the form in which keys and values are compared: in lower case if ``ignore_case`` is set."""
        return text.lower() if ignore_case else text


@dataclass(frozen=True, slots=True)
class Edited:
    """Result of ``file.keyvalue``: the new text, the difference, and the numbers of changed, removed and found keys."""

    text: str
    #: Lines of the difference in Salt's own format.
    diff: tuple[str, ...]
    changed: int
    deleted: int
    #: Whether the old text had any of the keys.
    found: bool


def edit(text: str, arguments: KeyValueEdit) -> Edited:
    """Set the wanted values of the keys in a file's text. Return the Edited: the new text, the difference as lines
    with + and -, and the numbers of changed, removed and found keys.
    """
    plain, end = with_unix_ends(text)
    edit = _Edit(arguments)
    for line in lines(plain):
        edit.take(line)
    edit.add_missing()
    whole = "".join(edit.kept)
    return Edited(whole.replace("\n", end), tuple(edit.difference()), edit.changed, len(edit.pruned), edit.found)


class _Edit:
    """Progress of ``file.keyvalue`` while it reads the lines of a file in order: lines kept, lines removed, keys still
    missing.
    """

    def __init__(self, arguments: KeyValueEdit) -> None:
        self.arguments = arguments
        self.kept: list[str] = []
        self.pruned: list[str] = []
        self.changed = 0
        self.found = False
        self._diff: list[str] = []
        self._left = dict.fromkeys(arguments.pairs, arguments.count)

    def take(self, line: str) -> None:
        """Process the next line of the file that ``file.keyvalue`` edits, and append the line's new form to ``self.kept``.

        A line that sets one of the keys gets the wanted value; with ``uncomment`` also a line that is commented out. It is
        removed if the file has more lines of the key than ``count``. With ``prune``, a line that starts with none of the keys
        goes into ``self.pruned`` instead. Other lines stay as they are.
        """
        arguments = self.arguments
        bare = line.lstrip(arguments.uncomment)
        start = arguments.folded(bare, arguments.key_ignore_case)
        if arguments.prune and not start.startswith(
            tuple(arguments.folded(key, arguments.key_ignore_case) for key in arguments.pairs)
        ):
            self.pruned.append(line)
            return
        key, separator, value = bare.partition(arguments.separator)
        if separator == arguments.separator:
            for name in self._meant(key):
                line = self._set(line, name, key, value, was_comment=bare != line)
        if line:
            self.kept.append(line)

    def _meant(self, key: str) -> Iterator[str]:
        fold, ignore = self.arguments.folded, self.arguments.key_ignore_case
        return (name for name in self.arguments.pairs if fold(name, ignore) == fold(key, ignore))

    def _set(self, line: str, name: str, key: str, value: str, *, was_comment: bool) -> str:
        self.found = True
        arguments, wanted = self.arguments, self.arguments.pairs[name]
        fold, ignore = arguments.folded, arguments.value_ignore_case
        same = fold(value.strip(), ignore) == fold(str(wanted).strip(), ignore)
        left = self._left[name]
        # Uncomment a line only while lines of the key are missing. Drop lines beyond the wanted number.
        changes = left > 0 if was_comment else left == 0 or not same
        if left > 0:
            self._left[name] = left - 1
        if not changes:
            return line
        self.changed += 1
        self._diff.append(f"- {line}")
        if left == 0:
            return ""
        new = arguments.line(key, wanted)
        kind = "" if isinstance(wanted, str) else f" (from {type(wanted).__name__} type)"
        self._diff.append(f"+ {new.rstrip()}{kind}\n" if kind else f"+ {new}")
        return new

    def add_missing(self) -> None:
        """Add a line for each wanted key that the edited text lacks, at the end of the text or at its start. Without
        the arguments ``append_if_not_found`` and ``prepend_if_not_found``, add nothing.
        """
        arguments = self.arguments
        missing = [arguments.line(key, value) for key, value in arguments.pairs.items() if self._left[key] > 0]
        if not missing or not (arguments.append or arguments.prepend):
            return
        self.changed += len(missing)
        if arguments.append:
            if self.kept and not self.kept[-1].endswith("\n"):
                self.kept[-1] += "\n"
            self.kept += missing
            self._diff += ["- <EOF>\n", *(f"+ {line}" for line in missing), "+ <EOF>\n"]
        else:
            self.kept[:0] = reversed(missing)
            self._diff[:0] = ["  <SOF>\n", *(f"+ {line}" for line in reversed(missing))]

    def difference(self) -> list[str]:
        """Return the lines of the difference between the old and the edited text. Removed lines follow the first line
        in reverse order, as in Salt.
        """
        lines_of_diff = list(self._diff)
        for line in self.pruned:
            lines_of_diff.insert(1, f"- {line}")
        return lines_of_diff
