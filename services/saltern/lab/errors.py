"""The errors of the lab."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot go on. str() says what, where, why and what next; it is shown as it is."""


class KeyStuckError(LabError):
    """A key that only the operator can forget, by the lab's own master: so that goes on running."""
