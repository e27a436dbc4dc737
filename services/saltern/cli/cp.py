"""The command ``salt-cp``: copies files of this machine to minions, in chunks.

Each chunk is a job. A chunk is sent only to the minions that confirmed the previous chunk.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import os
import posixpath
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from saltern.cli.context import CommandContext, no_bus, run_guarded, stock_codes
from saltern.cli.request import add_target_flags, names_of
from saltern.kit.command.arguments import on_the_wire
from saltern.kit.command.command_line import CommandError, CommandParser, Exit
from saltern.kit.command.output.flags import Printer, add_output_flags
from saltern.kit.config.master import ClientOptions
from saltern.kit.jobs.returns import NO_MATCH
from saltern.kit.jobs.watch import JobWatch
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlError, ControlTimeout

#: Bytes of a file in one job, as in Salt.
CHUNK = 98304

_NO_RETURN = "Minion did not return."

_EPILOG = """\
examples:
  salt-cp '*' app.conf /etc/app.conf
  salt-cp -G 'os:Debian' site/ logo.png /srv/www/

A directory comes with everything in it; a destination that ends in / is a directory, and so is one for several sources.

Exit codes: 0 done; 1 a minion did not take a file, or did not return; 2 no minion matched; 42 a source that is
not there or cannot be read; 64 wrong command line; 69 the master does not answer; 78 wrong configuration.
"""

#: Exit code for a missing source, as in Salt.
EX_SOURCE = 42


class Item(NamedTuple):
    """One file or empty directory that ``salt-cp`` copies: its source here, its path on the minion, and its permission bits."""

    #: File on this machine; None: an empty directory.
    source: Path | None
    #: Path on the minion.
    remote: str
    #: Permission bits of a file; None for a directory.
    mode: int | None


def main() -> int:
    """Run the command ``salt-cp`` and return the exit code."""
    return run(sys.argv[1:])


def run(argv: Sequence[str], context: CommandContext | None = None) -> int:
    """Run ``salt-cp`` with these arguments and return the exit code."""
    return run_guarded(lambda: _salt_cp(_parse(argv), context or CommandContext()))


def items(sources: Sequence[str], dest: str) -> list[Item]:
    """Return one Item for each file and each empty directory that ``salt-cp`` copies: its source, its destination and its mode.

    Raise CommandError (exit code 42) for a source that is missing or unreadable.
    """
    if "" in sources:
        # Path("") would be the current directory.
        raise CommandError("'' does not exist", EX_SOURCE)
    try:
        found = [(Path(source), list(_below(Path(source)))) for source in sources]
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}", EX_SOURCE) from error
    count = sum(len(below) for _, below in found)
    into = count > 1 or re.search(r"[\\/]$", dest) is not None or any(source.is_dir() for source, _ in found)
    listed = []
    for source, below in found:
        for path in below:
            # A directory keeps its name below the destination, as in Salt.
            relative = path.relative_to(source).as_posix() if path != source else ""
            remote = posixpath.join(dest, _own_name(source), relative) if into else dest
            directory = path.is_dir()
            mode = None if directory else stat.S_IMODE(path.stat().st_mode)
            listed.append(Item(None if directory else path, remote.rstrip("/") if not relative else remote, mode))
    return listed


def _own_name(source: Path) -> str:
    """Return the name under which a source is copied: for ``..`` the directory's real name, for a link the link's name."""
    return source.resolve().name if source.name in ("", "..") else source.name


def _below(path: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Yield the files and empty directories at and below ``path``. ``above``: real paths of the directories that
    contain it, to find links that lead in a circle. Raises CommandError.
    """
    if fault := _fault(path, above):
        raise CommandError(fault, EX_SOURCE)
    if not path.is_dir():
        yield path
        return
    inside = sorted(path.iterdir())
    for each in inside:
        yield from _below(each, (*above, path.resolve()))
    if not inside:
        yield path


def _fault(path: Path, above: tuple[Path, ...]) -> str:
    """Return the reason why a file or directory cannot be copied; empty text if it can.

    All sources are checked before the first is sent.
    """
    if not path.exists():
        leads = f" leads to {path.readlink()}, which" if path.is_symlink() else ""
        return f"{path}{leads} does not exist"
    if not os.access(path, os.R_OK):
        return f"{path} cannot be read: Permission denied"
    if path.is_dir():
        return f"{path} is a link to a directory that it lies in" if path.resolve() in above else ""
    # A pipe may be a source itself (<(command)). A pipe inside a directory would be waited for without end.
    if above and not path.is_file():
        return f"{path} is neither a file nor a directory"
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return f"the name {str(path)!r} cannot be sent: it is not UTF-8"
    return ""


def chunks(path: Path, *, compressed: bool) -> Iterator[bytes]:
    """Yield the content of a file in base64 chunks; an empty file is one empty chunk.

    Raise CommandError (exit code 42) if it is unreadable.
    """
    try:
        with path.open("rb") as file:
            piece = file.read(CHUNK)
            while True:
                following = file.read(CHUNK)
                yield base64.b64encode(gzip.compress(piece, mtime=0) if compressed else piece)
                if not following:
                    return
                piece = following
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", EX_SOURCE) from error


class _Answers:
    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        self.found[minion] = load["return"]

    def add_silent(self, minion: str, jid: str) -> None:
        self.found[minion] = _NO_RETURN


def _salt_cp(flags: argparse.Namespace, context: CommandContext) -> int:
    *sources, dest = flags.words
    brought = items(sources, dest)
    options = context.started("salt-cp", flags)
    printer = Printer(flags, options, context.env)
    control = context.control(options, config_dir=flags.config_dir)
    bus, heard = context.connect_bus(options, flags.config_dir, "salt/job/")
    if not heard:
        sys.stderr.write(f"[WARNING ] {no_bus(options)} The returns are read from the job cache.\n")
    watch = JobWatch(control, bus, context.clock, context.user(options), heard=heard)
    follow = partial(watch.follow, timeout=flags.timeout or options.timeout, gather_timeout=options.gather_job_timeout)
    send = partial(_send, control, options, context, watch, follow, flags.delimiter)
    tgt = names_of(flags.target) if flags.tgt_type == "list" else flags.target
    results: dict[str, dict[str, Any]] = {}
    try:
        for item in brought:
            for minion, outcome in _bring(item, (tgt, flags.tgt_type), send, compressed=not flags.plain).items():
                results.setdefault(minion, {})[item.remote] = outcome
    except (CommandError, ControlError, ControlTimeout, KeyboardInterrupt):
        if results:
            # Show which minions have which files by now.
            printer.show(results)
        raise
    if not results:
        printer.say(NO_MATCH)
        return Exit.OK if stock_codes() else Exit.NO_RETURN
    printer.show(results)
    return Exit.OK if all(outcome is True for files in results.values() for outcome in files.values()) else Exit.GENERIC


def _bring(item: Item, target: tuple[Any, str], send: Any, *, compressed: bool) -> dict[str, object]:
    """Copy one file or directory to the minions. Return {minion id: True, or the text of the minion's first error}."""
    if item.source is None:
        directory: dict[str, Any] = send(*target, {"dest": item.remote, "chunk": None})
        return directory
    outcome: dict[str, Any] = {}
    for number, chunk in enumerate(chunks(item.source, compressed=compressed)):
        piece = {"dest": item.remote, "chunk": chunk, "append": number > 0, "compressed": compressed, "mode": item.mode}
        answers = send(*target, piece)
        # A minion that stopped answering has an incomplete file.
        outcome |= {
            minion: _NO_RETURN for minion, before in outcome.items() if before is True and minion not in answers
        }
        outcome |= answers
        taken = sorted(minion for minion, answer in answers.items() if answer is True)
        if not taken:
            break
        target = (taken, "list")
    return outcome


def _send(
    control: ControlClient,
    options: ClientOptions,
    context: CommandContext,
    watch: JobWatch,
    follow: Any,
    delimiter: str,
    tgt: object,
    tgt_type: str,
    kwarg: dict[str, object],
) -> dict[str, Any]:
    # As a keyword argument: minions read text with "=", which base64 has, as a named argument.
    arg = on_the_wire([], kwarg)
    job = control.call(
        "publish",
        timeout=CONTROL_PATIENCE,
        tgt=tgt,
        tgt_type=tgt_type,
        fun="cp.recv_chunked",
        arg=arg,
        kwargs={} if delimiter == ":" else {"delimiter": delimiter},
        user=context.user(options),
        request_id=os.urandom(16).hex(),
    )
    answers = _Answers()
    if job["jid"]:
        follow(job, answers)
        watch.run()
    return answers.found


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    made = parser()
    flags = made.parse(argv)
    if len(flags.words) < 3:
        made.error("a target, a source and a destination are needed, as in: salt-cp '*' app.conf /etc/app.conf")
    flags.target, *flags.words = flags.words
    return flags


def parser() -> CommandParser:
    """Return the parser for the command line of ``salt-cp``."""
    made = CommandParser(
        "salt-cp",
        "salt-cp [options] '<target>' SOURCE [SOURCE ...] DEST",
        "Copies files and directories of this machine to the minions that the target matches.",
        _EPILOG,
    )
    made.add_argument(
        "-t",
        "--timeout",
        type=int,
        metavar="SEC",
        help="seconds to wait for returns before asking the minions whether they still work (default: option timeout)",
    )
    made.add_argument(
        "-C",
        "--chunked",
        action="store_true",
        help="accepted for compatibility with Salt; files are always sent in chunks",
    )
    made.add_argument(
        "-n", "--no-compression", dest="plain", action="store_true", help="send files without compression"
    )
    add_target_flags(made, taken="-C").add_argument(
        "--delimiter",
        default=":",
        metavar="CHAR",
        help="separator between the parts of a nested grain or pillar key (default: a colon)",
    )
    add_output_flags(made)
    return made
