"""``salt-run jobs.export``: writes jobs as lines of JSON, newest first. At most one page of jobs is in memory."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.links.answers import FoundJob
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlError, ControlTimeout
from statecore.host.content import atomic_file

#: Jobs, and returns, in one request.
_PAGE, _RETURNS = 500, 100

#: Fields of a job's counters that are text, not numbers.
_TEXTS = ("user", "fun", "tgt", "where")


def export_jobs(control: ControlClient, printer: Printer, arg: Sequence[object], kwarg: Mapping[str, object]) -> int:
    """Write one line of JSON for each job that matches the filters, and return exit code 0.

    A line is {jid, fun, arg, tgt, ..., job: {created, expected, ...}}. ``file``: path of the output file, which is written
    completely or not at all; default: standard output. ``returns=True``: after each job one line for each return, with
    ``jid`` and ``id``. ``limit``: largest number of jobs; default: all. Raises CommandError, ControlError, ControlTimeout.
    """
    words = dict(kwarg)
    file, returns = words.pop("file", None), words.pop("returns", False)
    if arg or not isinstance(returns, bool):
        wrong = f"not {arg[0]!r}" if arg else f"and returns is True or False, not {returns!r}"
        raise CommandError(f"jobs.export takes named arguments, as in after=2h file=jobs.ndjson, {wrong}", Exit.USAGE)
    lines = _lines(control, words, returns=returns)
    if file is None:
        for page in lines:
            printer.say("\n".join(page))
        return Exit.OK
    path = Path(str(file))
    count = 0
    with _whole_file(path) as write:
        for page in lines:
            write("\n".join(page) + "\n")
            count += len(page)
    printer.say(f"{count} lines were written to {path}")
    return Exit.OK


def _lines(control: ControlClient, words: Mapping[str, object], *, returns: bool) -> Iterator[list[str]]:
    """Yield the lines of JSON for jobs in pages, one list of lines for each page; no page is empty."""
    left = _limit(words.get("limit"))
    cursor = words.get("cursor", "")
    while left is None or left > 0:
        wanted = _PAGE if left is None else min(left, _PAGE)
        found = control.call(
            "find_jobs", timeout=CONTROL_PATIENCE, filters={**words, "limit": wanted, "cursor": cursor}
        )
        if not returns and found["jobs"]:
            yield [_dumped(_job(job)) for job in found["jobs"]]
        for job in found["jobs"] if returns else ():
            yield [_dumped(_job(job))]
            yield from _returns(control, job["jid"])
        if left is not None:
            left -= len(found["jobs"])
        cursor = found["cursor"]
        if not cursor:
            return


def _returns(control: ControlClient, jid: str) -> Iterator[list[str]]:
    try:
        minions = control.call("job_status", timeout=CONTROL_PATIENCE, jid=jid)["minions"]
    except ControlError as error:
        if error.name == "UnknownJob":
            # The job expired after its line was written.
            return
        raise
    came = [minion for minion, told in sorted(minions.items()) if told["state"] == "returned"]
    for at in range(0, len(came), _RETURNS):
        found = control.call("job_returns", timeout=CONTROL_PATIENCE, jid=jid, minions=came[at : at + _RETURNS])
        if found:
            yield [_dumped({"jid": jid, "id": minion, **ret}) for minion, ret in sorted(found.items())]


def _job(job: FoundJob) -> dict[str, object]:
    counters: dict[str, object] = {
        name: int(value) if name not in _TEXTS and value.isdecimal() else value for name, value in job["meta"].items()
    }
    return {**job["load"], "jid": job["jid"], "job": counters}


def _dumped(line: Mapping[str, object]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)


def _limit(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not str(given).isdecimal() or not int(str(given)):
        raise CommandError(f"limit must be a whole number of 1 or more, not {given!r}", Exit.USAGE)
    return int(str(given))


@contextlib.contextmanager
def _whole_file(path: Path) -> Iterator[Callable[[str], object]]:
    """Context manager: yield a function that writes text to a temporary file; rename that file to ``path`` at the end
    of the block.

    If the block or a write fails, ``path`` is not changed. A failed write, ControlError and ControlTimeout become
    CommandError.
    """
    try:
        with (
            atomic_file.replacement(path) as new,
            open(new, "x", encoding="utf-8", errors="backslashreplace") as file,
        ):
            yield file.write
    except OSError as error:
        raise CommandError(f"file {path}: {error.strerror}; it was not written", Exit.USAGE) from error
    except (ControlError, ControlTimeout) as error:
        raise CommandError(f"{error}; {path} was not written") from error
