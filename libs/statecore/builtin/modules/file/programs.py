"""Functions that run the host's own programs on files: sed, grep and patch."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError


def sed(
    ctx: Context,
    path: str,
    before: str,
    after: str,
    limit: str = "",
    backup: str = ".bak",
    options: str = "-r -e",
    flags: str = "g",
    escape_all: bool = False,
    negate_match: bool = False,
) -> object:
    """Replace matches of a pattern in a file with the host's ``sed``. Return a map with pid, retcode, stdout and
    stderr, False if the file does not exist.
    """
    if not ctx.host.path(path).exists():
        return False
    where = f"/{_slashed(limit, escape_all)}/ " if limit else ""
    command = (
        f"{where}{'!' if negate_match else ''}s/{_slashed(before, escape_all)}/{_slashed(after, escape_all)}/{flags}"
    )
    return _run(ctx, ["sed", f"-i{backup or ''}", *shlex.split(options), command, path])


def sed_contains(ctx: Context, path: str, text: str, limit: str = "", flags: str = "g") -> bool:
    """Return whether the host's ``sed`` finds the pattern ``text`` in a file. Return False if the file does not exist."""
    if not ctx.host.path(path).exists():
        return False
    where = f"/{_slashed(limit)}/ " if limit else ""
    result = _run(ctx, ["sed", "-n", "-r", "-e", f"{where}s/{_slashed(text)}/$/p{flags}", path])
    return bool(result["stdout"])


def grep(ctx: Context, path: str, pattern: str, *opts: object) -> object:
    """Run the host's ``grep`` on a file, or on the files that a glob matches. Return a map with pid, retcode, stdout
    and stderr.

    Each of ``opts`` is one option of grep.
    """
    words = [shlex.split(str(each)) for each in opts]
    if several := [" ".join(each) for each in words if len(each) > 1]:
        raise InvocationError(f"file.grep takes one option in each argument, not {several[0]}")
    top, name = path.rpartition("/")[::2]
    found = [path]
    if any(letter in name for letter in "*?["):
        directory = ctx.host.path(top or "/")
        names = [entry.name for entry in directory.iterdir()] if directory.is_dir() else []
        found = [f"{top}/{each}" for each in sorted(names) if fnmatch.fnmatchcase(each, name)] or found
    return _run(ctx, ["grep", *(word for each in words for word in each), pattern, *found])


def patch(ctx: Context, originalfile: str, patchfile: str, options: str = "", dry_run: bool = False) -> object:
    """Apply a patch file with the host's ``patch``. Return a map with pid, retcode, stdout and stderr.

    originalfile
        path of a file, or of a directory that the patch's paths are relative to
    dry_run
        True: only check whether the patch applies
    """
    words = ["patch", *shlex.split(options), *(["--dry-run"] if dry_run else [])]
    if not {"-N", "--forward"} & set(words):
        words.append("--forward")
    if not any(word == "-r" or word.startswith("--reject-file") for word in words):
        words.append("--reject-file=-")
    words += ["-i", patchfile]
    if not ctx.host.path(originalfile).is_dir():
        return _run(ctx, [*words, originalfile])
    stripped = any(word.startswith(("-p", "--strip=")) for word in words[1:])
    return _run(ctx, [*words, "-d", originalfile, *([] if stripped else ["--strip=0"])])


def _run(ctx: Context, words: list[str]) -> Mapping[str, object]:
    if ctx.host.which(words[0]) is None:
        raise CommandError(f"{words[0]} executable not found. Is the distribution's {words[0]} package installed?")
    result: Mapping[str, object] = ctx.call("cmd.run_all", words, python_shell=False)
    return result


def _slashed(text: str, escape_all: bool = False) -> str:
    """Return a pattern escaped for use between the slashes of a sed command."""
    plain = str(text).replace("/", "\\/")
    return re.sub(r"([\^.\[$()|*+?{])", r"\\\1", plain) if escape_all else plain
