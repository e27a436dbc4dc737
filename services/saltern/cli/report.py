"""Texts that ``salt`` prints around the returns. They are Salt's own where scripts may look for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from saltern.kit.jobs.returns import retcode_of
from saltern.kit.links.answers import MinionAnswer, MinionJobState

NO_RETURN = "ERROR: No return received"
FAILED = "ERROR: Minions returned with non-zero exit code"

_LATER = (
    "The minions may not have all finished running and any remaining minions will return upon completion. "
    "To look up the return data for this job later, run the following command:\n\n{run} jobs.lookup_jid {jid}"
)
_SILENT = "Minion did not return."


class JobPart(MinionJobState):
    """The state of a job on one minion, as the master answers it (MinionJobState), with the time of the answer."""

    #: Milliseconds since 1970 by the master's clock.
    now: int


def no_response(
    jid: str, known: MinionAnswer | None = None, part: JobPart | None = None, region: str = ""
) -> dict[str, object]:
    """Return the map that ``salt`` prints in place of a missing return: {return: text, out: "no_return", retcode: 1, state}.

    ``known``: the state of the minion's key, and its age. ``part``: state of the job on the minion, with ``now``. Salt's text
    "Minion did not return" is used only if the minion is not working on the job. ``region``: the region whose master says so,
    if several were asked.
    """
    state = part["state"] if part else "expected"
    first, why = _STATES.get(state, _STATES["expected"])
    lines = [first, *_told_by(region)]
    if why and part:
        lines.append(why.format(since=duration((part["now"] - part["since"]) / 1000)))
    if known and (state in _ABOUT_MINION or known["key"] != "accepted"):
        lines.append(about_minion(known, took=state != "expected"))
    return {"return": "\n".join([*lines, _later(jid, region)]), "out": "no_return", "retcode": 1, "state": state}


def waits(jid: str, until_ms: int, known: MinionAnswer | None = None, region: str = "") -> dict[str, object]:
    """Return the map that ``salt --when-back`` prints for a minion that is away and that the job waits for.

    It is {return: text, out: "no_return", retcode: 0, state: "waiting"}: the minion does not count as a failure.
    """
    until = datetime.fromtimestamp(until_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    lines = [f"The job waits for this minion until {until}.", *_told_by(region)]
    if known:
        lines.append(about_minion(known, took=True))
    run = _runner_command(region)
    lines.append(f"Who is waited for, and calling it off:\n\n{run} jobs.list_waiting\n{run} jobs.cancel {jid}")
    return {"return": "\n".join(lines), "out": "no_return", "retcode": 0, "state": "waiting"}


def region_lost(jid: str, region: str) -> dict[str, object]:
    """Return the map that ``salt`` prints for a minion of a region whose master stopped to answer while the job ran."""
    text = f"{_SILENT} [Region {region} does not answer]\n{_later(jid, region)}"
    return {"return": text, "out": "no_return", "retcode": 1, "state": "expected"}


def _told_by(region: str) -> list[str]:
    return [f"Told by the master of region {region}."] if region else []


def _later(jid: str, region: str = "") -> str:
    return _LATER.format(jid=jid, run=_runner_command(region))


def _runner_command(region: str) -> str:
    return f"salt-run --region {region}" if region else "salt-run"


#: States in which a minion has not received the job; ``--when-back`` waits for it.
WAITED_FOR = ("expected", "offline")


#: State of the job on a minion -> (first line, second line); ``{since}`` is the duration of the state.
_STATES: Mapping[str, tuple[str, str]] = {
    "expected": (f"{_SILENT} [No response]", ""),
    "offline": (f"{_SILENT} [Not connected]", "It was offline when the job was published."),
    "delivered": ("Minion has not returned yet. [Delivered]", "It took the job {since} ago."),
    "started": ("Minion has not returned yet. [Running]", "It has worked on the job for {since}."),
    "lost": (f"{_SILENT} [Lost]", "It had the job, and fell silent; it was given up {since} ago."),
    "cancelled": (f"{_SILENT} [Cancelled]", "The job was called off {since} ago, before the minion had begun."),
    "expired": (f"{_SILENT} [Expired]", "The job was not delivered in time, and is no longer sent."),
}

#: States in which the time of the last message from the minion is shown.
_ABOUT_MINION = ("expected", "offline", "delivered", "lost", "expired")


def about_minion(known: MinionAnswer, *, took: bool = False) -> str:
    """Return a sentence about a minion that does not return: the state of its key, or when the master last heard of it.

    ``known``: ``key`` is the state of the key, ``age`` the seconds since the last message (None: never). ``took``: True if
    the state of the job on the minion is known.
    """
    key, age = known["key"], known["age"]
    if key != "accepted":
        return f"Its key is {key}, not accepted." if key else "The master has no key of it."
    if age is None:
        return "The master has never heard of it."
    if age < _JUST_NOW and not took:
        return f"It is connected: it was heard of {duration(age)} ago. It did not say that it runs the job."
    return f"It was last heard of {duration(age)} ago."


#: Seconds within which a connected minion answers a question about the job.
_JUST_NOW = 20

#: Seconds of each unit, and its name. A duration shows its two largest units.
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """Return a duration in seconds as text with its two largest units, for example "2 h 5 min"."""
    left = int(seconds)
    parts: list[str] = []
    for size, name in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"


def later(jid: str, region: str = "") -> str:
    """Return the text with the JID of a job that is still running, and with the command that shows its returns."""
    return f"This job's jid is: {jid}\n{_later(jid, region)}"


def started(jid: str, *, verbose: bool, show_jid: bool) -> str:
    """Return the text about a job that ``salt`` prints before its returns; empty without ``--verbose`` and ``--show-jid``."""
    if verbose:
        line = f"Executing job with jid {jid}"
        return f"{line}\n{'-' * len(line)}\n"
    return f"jid: {jid}" if show_jid else ""


def is_silent(load: Mapping[str, object]) -> bool:
    """Return whether ``load``, an entry among the returns, was made by ``salt`` for a minion that did not return."""
    return load.get("out") == "no_return"


def summary(loads: Mapping[str, Mapping[str, object]], *, verbose: bool) -> str:
    """Return the text of ``salt --summary``. ``verbose``: also list the ids of minions that failed or did not return."""
    silent = [minion for minion, load in loads.items() if is_silent(load)]
    failed = [minion for minion, load in loads.items() if not is_silent(load) and retcode_of(load)]
    rule = "-" * 43
    lines = ["\n", rule, "Summary", rule]
    lines.append(f"# of minions targeted: {len(loads)}")
    lines.append(f"# of minions returned: {len(loads) - len(silent)}")
    lines.append(f"# of minions that did not return: {len(silent)}")
    counts = Counter(str(loads[minion].get("state", "expected")) for minion in silent)
    lines += [f"# of minions {word}: {counts[state]}" for state, word in _COUNTED.items() if counts[state]]
    lines.append(f"# of minions with errors: {len(failed)}")
    if verbose and silent:
        lines.append(f"Minions not responding: {' '.join(silent)}")
    if verbose and failed:
        lines.append(f"Minions with failures: {' '.join(failed)}")
    return "\n".join([*lines, rule])


#: States of missing returns that the summary counts separately -> words.
_COUNTED: Mapping[str, str] = {
    "waiting": "that are waited for",
    "delivered": "that have the job",
    "started": "running",
    "offline": "offline",
    "lost": "lost",
    "cancelled": "cancelled",
    "expired": "expired",
}


def documentation(loads: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, str]]:
    """Yield (function, documentation) from the minions' returns of sys.doc: each function once, sorted."""
    found: dict[str, str] = {}
    for load in loads.values():
        docs = load["return"]
        if isinstance(docs, Mapping):
            found.update({str(fun): str(text) for fun, text in docs.items() if text and fun not in found})
    yield from sorted(found.items())


#: Characters of the bar.
_WIDTH = 30


@dataclass
class Progress:
    """The progress bar of ``salt --progress``, drawn over the terminal's last line."""

    say: Callable[[str], object]
    expected: int = 0
    returned: int = 0
    failed: int = 0
    silent: int = 0

    def expect(self, minions: int) -> None:
        """Add ``minions`` to the number of minions that are expected to return."""
        self.expected += minions
        self._draw()

    def came(self, *, failed: bool) -> None:
        """Count a minion's return in the progress bar."""
        self.returned += 1
        self.failed += failed
        self._draw()

    def lost(self) -> None:
        """Count a minion that will not return in the progress bar."""
        self.silent += 1
        self._draw()

    def line(self) -> str:
        """Return the progress bar as text."""
        done = self.returned + self.silent
        filled = _WIDTH * done // self.expected if self.expected else 0
        bar = "#" * filled + "-" * (_WIDTH - filled)
        running = self.expected - done
        return f"[{bar}] {self.returned}/{self.expected} returned, {self.failed} failed, {running} running"

    def clear(self) -> None:
        """Remove the progress bar from the terminal."""
        if self.expected:
            self.say("\r\033[K")

    def _draw(self) -> None:
        self.say(f"\r\033[K{self.line()}")
