"""The summary below the states in ``highstate``: numbers of succeeded, failed and changed states, and the total time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from saltern.kit.command.output.options import OutputOptions
from saltern.kit.command.output.state_lines import StateReturn

_LABEL_WIDTH = len("Succeeded")


@dataclass(eq=False, repr=False)
class Tally:
    """The numbers of succeeded, failed and changed states of one host's state run, and their total time."""

    #: Result -> states.
    results: Counter[object] = field(default_factory=Counter)
    changed: int = 0
    #: States whose warnings were shown: terse lines are not counted, as in Salt.
    warnings: int = 0
    milliseconds: float = 0.0
    #: States that ran in parallel count with the longest of them.
    longest_parallel: float = 0.0

    def add(self, state: StateReturn, count: int) -> None:
        """Count the result of a state, ``count`` times if several states were joined.

        Raises TypeError if the duration is neither a number nor a text.
        """
        self.results[state["result"]] += count
        took = _milliseconds(state.get("duration", 0))
        if "__parallel__" in state:
            self.longest_parallel = max(self.longest_parallel, took)
        else:
            self.milliseconds += took


def _milliseconds(duration: float | str) -> float:
    try:
        return float(duration.partition(" ms")[0]) if isinstance(duration, str) else float(duration)
    except ValueError:
        # The text of a user's module is no number. The total then lacks this duration.
        return 0.0


def lines(host: object, tally: Tally, options: OutputOptions) -> Iterator[str]:
    """Yield the summary of one host's state run line by line: counts of succeeded, failed and changed states, total time."""
    colors, end = options.colors, options.colors.endc
    failed, undecided = tally.results[False], tally.results[None]
    succeeded = tally.results[True] + undecided
    total = sum(tally.results.values())
    bad = colors.red if failed else colors.cyan
    # The rule is as wide as the longest label plus the longest count.
    width = (
        _LABEL_WIDTH + 2 + max(len(str(count)) if total else 0 for count in (*tally.results.values(), tally.warnings))
    )
    rule = "-" * width

    def counted(color: str, label: str, count: float) -> str:
        return f"{color}{label}: {count:>{width - len(label) - 2}}{end}"

    yield f"{colors.cyan}\nSummary for {host}\n{rule}{end}"
    notes = [f"{colors.light_yellow}unchanged={undecided}{end}"] if undecided else []
    notes += [f"{colors.green}changed={tally.changed}{end}"] if tally.changed else []
    yield counted(colors.green, "Succeeded", succeeded) + (f" ({', '.join(notes)})" if notes else "")
    yield counted(bad, "Failed", failed)
    if options.state_output_pct and total:
        yield counted(colors.green, "Success %", round(succeeded / total * 100, 2))
        yield counted(bad, "Failure %", round(failed / total * 100, 2))
    if tally.warnings:
        yield counted(colors.light_red, "Warnings", tally.warnings)
    yield f"{colors.cyan}{rule}\nTotal states run: {total:>{width - 7}}{end}"
    if options.state_output_profile:
        took, unit = tally.milliseconds + tally.longest_parallel, "ms"
        if took > 999:
            took, unit = took / 1000, "s"
        yield f"{colors.cyan}Total run time: {f'{took:.3f}'.rjust(width - 5)} {unit}{end}"
