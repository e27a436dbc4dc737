"""Returner ``local``: prints returns and events to standard output, to see what a returner gets."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from statecore.model.context import Context


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Print one minion's return of a job to standard output."""
    sys.stdout.write(f"{ret}\n")
    sys.stdout.flush()


def event_return(ctx: Context, events: Sequence[Mapping[str, object]]) -> None:
    """Print a list of events, each a map of ``tag`` and ``data``, to standard output."""
    sys.stdout.write(f"{events}\n")
    sys.stdout.flush()
