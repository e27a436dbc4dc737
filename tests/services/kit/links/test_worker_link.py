"""The frames of 4516: told apart by their first byte."""

from __future__ import annotations

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.kit.links import worker_link


def test_kinds_are_told_apart() -> None:
    kinds = [
        value
        for name, value in vars(worker_link).items()
        if name.isupper() and isinstance(value, bytes) and len(value) == 1
    ]
    assert len(kinds) == len(set(kinds)) == 15


def test_two_pulses_may_be_lost() -> None:
    assert MasterOptions().worker_silence > worker_link.PULSE_SECONDS * 3


@pytest.mark.parametrize(("silence", "seconds"), [(60, 2), (4, 2), (3, 1.5), (2, 1), (1, 1)])
def test_an_idle_worker_reports_twice_within_the_silence(silence: int, seconds: float) -> None:
    assert worker_link.ready_seconds(silence) == seconds
