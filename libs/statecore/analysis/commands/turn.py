"""``statecore apply`` among the state runs of its host: one at a time, whoever started it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from statecore.analysis.commands.ending import CommandFault, Exit
from statecore.runtime.runtime import Runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory
from statecore.runtime.state_runs.state_queue import taken


@contextmanager
def job(cachedir: str, words: Sequence[str]) -> Iterator[ProcDirectory]:
    """The jobs of a host, this process among them as a ``state.apply`` of these words while the block runs.

    Raises CommandFault where nothing can be written to the directory: others would not know of this run.
    """
    try:
        jobs = ProcDirectory(Path(cachedir) / "proc")
        jid = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")
        record = jobs.record({"jid": jid, "fun": "state.apply", "arg": list(words), "tgt": "statecore"})
        with record:
            yield jobs
    except OSError as error:
        raise CommandFault(
            f"cachedir: {cachedir} cannot be written: {error.strerror} (--cachedir names another)"
        ) from error


@contextmanager
def turn(runtime: Runtime, *, queue: bool) -> Iterator[None]:
    """No other state run of this host is in progress while the block runs; with ``queue`` it waits for that.

    Raises CommandFault with a sentence for each run that is in the way.
    """
    with taken(runtime.context, True if queue else None) as refused:
        if refused:
            told = "\n".join(refused)
            raise CommandFault(f"nothing was done: {told}\nwait for it, or let apply do that: --queue", Exit.BUSY)
        yield
