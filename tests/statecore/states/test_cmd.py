"""The cmd states: every case of ``cases/cmd.yaml``."""

from __future__ import annotations

import os

import pytest

CASES = "cmd"


def test_case(case, ours):
    if os.geteuid() != 0 and "runas" in case.args:
        pytest.skip("only root becomes another user")
    assert ours.apply(case) == case.expected()
