"""The one error of the lab."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot go on. str() says what, where, why and what next; it is shown as it is."""
