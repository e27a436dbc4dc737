"""What is wrong with a pillar: all of it in the log, and to the minion what it may know.

The words of an error may hold what another minion may not see (a template that fails on a secret quotes it), so a minion is
told the place alone, unless ``pillar_safe_render_error`` is off.
"""

from __future__ import annotations

import logging
import re

from statecore.model.errors import Mark, SlsError, SlsFault

log = logging.getLogger("statecore.pillar")

#: What a fault of rendering begins with, said already.
REPEATED = re.compile(r"^Rendering SLS '[^']*' failed: ")

#: What faults of a top file's form, not of its rendering, begin with: they hold nothing but names.
_FORM = ("The top file", "Malformed topfile", "Improperly formatted", "Environment ", "Empty saltenv")


class Errors:
    """The errors of one compilation, each once."""

    def __init__(self, *, safe: bool) -> None:
        """``safe``: reasons of render errors are for the log."""
        self._safe = safe
        #: One sentence each, as the minion gets them under ``_errors``.
        self.told: list[str] = []

    def add(self, error: str) -> None:
        """Notes an error that anybody may read."""
        if error not in self.told:
            log.error("%s", error)
            self.told.append(error)

    def log(self, error: str) -> None:
        """Notes what is for the log alone."""
        log.error("%s", error)

    def of_sls(self, sls: str, error: SlsError) -> None:
        """Notes why an SLS gives nothing."""
        for fault in error.faults:
            if fault.message.startswith(f"SLS {fault.sls} "):
                # It is not of the kind that holds data. Salt quotes the name here.
                self.add(fault.message.replace(f"SLS {fault.sls} ", f"SLS '{fault.sls}' ", 1) + _place(fault.mark))
            else:
                self._tell(
                    fault,
                    f"Rendering SLS '{sls}' failed, render error: ",
                    f"Rendering SLS '{sls}' failed. Please see master log for details.",
                )

    def of_top(self, error: SlsError) -> None:
        """Notes why there is no top file."""
        for fault in error.faults:
            if fault.message.startswith(_FORM):
                self.add(f"Error encountered while rendering pillar top file. {fault.message}{_place(fault.mark)}")
            else:
                what = "Rendering Primary Top file failed, render error: "
                self._tell(fault, what, f"{what}Please see master log for details.")

    def _tell(self, fault: SlsFault, what: str, instead: str) -> None:
        """The whole into the log, and to the minion where it may know; else ``instead``, with the place."""
        reason, place = REPEATED.sub("", fault.message), _place(fault.mark)
        log.error("%s%s%s", what, reason, place)
        told = f"{instead}{place}" if self._safe else f"{what}{reason}{place}"
        if told not in self.told:
            self.told.append(told)


def _place(mark: Mark | None) -> str:
    return f" ({mark})" if mark is not None else ""
