"""``statecore fmt``: rewrite SLS files in the usual form, or tell which are not in it."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator
from pathlib import Path

from statecore.analysis.commands.exit_codes import CommandFault, Exit
from statecore.analysis.sls_text.formatting import formatted
from statecore.host.content import atomic_file
from statecore.model.text_lines import lines_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``statecore fmt``."""
    parser.add_argument("path", nargs="+", metavar="FILE|DIR", help="SLS file, or directory whose *.sls are formatted")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a file would change")
    parser.add_argument("--diff", action="store_true", help="change nothing; print what would change")


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Format the files and return (exit code, output). Raise CommandFault for files that cannot be read or written."""
    lines: list[str] = []
    changed = 0
    for path in _files(given.path):
        text = _text(path)
        made = formatted(text)
        if made == text:
            continue
        changed += 1
        if given.diff:
            before, after = lines_of(text, keepends=True), lines_of(made, keepends=True)
            lines.append("".join(difflib.unified_diff(before, after, str(path), str(path))).rstrip("\n"))
        else:
            lines.append(f"{path}: {'would be' if given.check else 'was'} formatted")
        if not given.check and not given.diff:
            _write(path, made)
    return (Exit.ERRORS if given.check and changed else Exit.OK), "\n".join(lines)


def _files(named: list[str]) -> Iterator[Path]:
    for text in named:
        path = Path(text)
        if path.is_dir():
            # A link may lead out of a stranger's tree; what it leads to inside is found by its own name.
            yield from sorted(each for each in path.rglob("*.sls") if each.is_file() and not each.is_symlink())
        elif path.is_file():
            yield path
        else:
            raise CommandFault(f"there is no {text}")


def _text(path: Path) -> str:
    try:
        # Line ends of Windows stay as they are.
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CommandFault(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandFault(f"{path} is not UTF-8 text: byte {error.start}") from error


def _write(path: Path, text: str) -> None:
    try:
        atomic_file.write(path, text, path.stat().st_mode & 0o7777)
    except OSError as error:
        raise CommandFault(f"{path} cannot be written: {error.strerror}") from error
