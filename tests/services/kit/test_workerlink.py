"""The frames of 4516: told apart by their first byte."""

from __future__ import annotations

from saltern.kit import workerlink
from saltern.kit.config import MasterOptions


def test_kinds_are_told_apart() -> None:
    kinds = [value for name, value in vars(workerlink).items() if name.isupper() and isinstance(value, bytes)]
    assert len(kinds) == len(set(kinds)) == 9


def test_two_pulses_may_be_lost() -> None:
    assert MasterOptions().worker_silence > workerlink.PULSE_SECONDS * 3
