"""The cmd states: every case of ``cases/cmd.yaml``."""

from __future__ import annotations

import os

import pytest

CASES = "cmd"


def test_case(case, ours):
    if os.geteuid() != 0 and "runas" in case.args:
        pytest.skip("only root becomes another user")
    assert ours.apply(case) == case.expected()


def test_case_in_a_whole_run(case, runtimes):
    if os.geteuid() != 0 and "runas" in case.args:
        pytest.skip("only root becomes another user")
    assert runtimes[case.id] == case.expected()


@pytest.mark.oracle
def test_case_is_as_salt_has_it(case, salts):
    told = salts[case.id]
    assert case.agreed(told) == case.agreed(case.expected())
