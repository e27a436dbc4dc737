"""The errors of a pillar compilation: full text in the log, safe text for the minion.

The text of an error may quote secrets of another minion (a failing template quotes its data). So the minion gets only
the file and line, unless ``pillar_safe_render_error`` is False.
"""

from __future__ import annotations

import logging
import re

from statecore.model.errors import Mark, SlsError, SlsFault
from statecore.model.time_limit import ComputedTooMuch

log = logging.getLogger("statecore.pillar")

#: Start of a render fault's message. It is removed, because the error text begins with the same words.
REPEATED = re.compile(r"^Rendering SLS '[^']*' failed: ")

#: Starts of the messages about a top file's form. They quote only names, so the minion may see them.
_FORM = ("The top file", "Malformed topfile", "Improperly formatted", "Environment ", "Empty saltenv")


class Errors:
    """Errors of one pillar compilation. The log gets their full text; the minion gets no text that could hold secrets."""

    def __init__(self, *, safe: bool) -> None:
        """Start without errors. With ``safe``, the minion gets only file and line of render errors; the log gets the
        reason.
        """
        self._safe = safe
        #: Error messages as the minion gets them under the pillar key ``_errors``.
        self.messages: list[str] = []

    def add(self, error: str) -> None:
        """Add an error of the pillar compilation whose full text the minion may see."""
        if error not in self.messages:
            log.error("%s", error)
            self.messages.append(error)

    def log(self, error: str) -> None:
        """Log an error of the pillar compilation that the minion must not see."""
        log.error("%s", error)

    def of_limit(self, error: ComputedTooMuch, minion_id: str) -> None:
        """Add the error that a pillar used up its limit of CPU time, beside those of the files in which it did."""
        place = f" at {error.place}" if error.place and not self._safe else ""
        log.error("the pillar of %s was stopped at %s", minion_id, error.place or "the next file")
        self.add(
            f"Compiling the pillar takes longer than {error.seconds:g} seconds of CPU time ({error.option}){place}"
        )

    def of_sls(self, sls: str, error: SlsError) -> None:
        """Add all errors in ``error``, raised while the pillar SLS ``sls`` was rendered, to this list of errors."""
        for fault in error.faults:
            if fault.message.startswith(f"SLS {fault.sls} "):
                # This kind of fault quotes no data, so the minion gets its full text. Salt quotes the SLS reference
                # here.
                self.add(fault.message.replace(f"SLS {fault.sls} ", f"SLS '{fault.sls}' ", 1) + _place(fault.mark))
            else:
                self._report(
                    fault,
                    f"Rendering SLS '{sls}' failed, render error: ",
                    f"Rendering SLS '{sls}' failed. Please see master log for details.",
                )

    def of_top(self, error: SlsError) -> None:
        """Add the errors because of which a pillar top file cannot be used."""
        for fault in error.faults:
            if fault.message.startswith(_FORM):
                self.add(f"Error encountered while rendering pillar top file. {fault.message}{_place(fault.mark)}")
            else:
                heading = "Rendering Primary Top file failed, render error: "
                self._report(fault, heading, f"{heading}Please see master log for details.")

    def _report(self, fault: SlsFault, heading: str, instead: str) -> None:

        reason, place = REPEATED.sub("", fault.message), _place(fault.mark)
        log.error("%s%s%s", heading, reason, place)
        message = f"{instead}{place}" if self._safe else f"{heading}{reason}{place}"
        if message not in self.messages:
            self.messages.append(message)


def _place(mark: Mark | None) -> str:
    return f" ({mark})" if mark is not None else ""
