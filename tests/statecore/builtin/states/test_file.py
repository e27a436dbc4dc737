"""The file states: every case of ``cases/file_*.yaml`` on this machine's root and on a mounted one."""

from __future__ import annotations

import os

import pytest

CASES = "file_"


def _skip_what_only_root_may(case):
    if os.geteuid() != 0 and any(name in case.args for name in ("user", "group")):
        pytest.skip("only root gives files away")


def test_case(case, ours):
    _skip_what_only_root_may(case)
    assert ours.apply(case) == case.expected()


def test_case_in_a_mounted_host(case, ours_mounted):
    _skip_what_only_root_may(case)
    assert ours_mounted.apply(case) == case.expected()


def test_case_in_a_whole_run(case, runtimes):
    _skip_what_only_root_may(case)
    assert runtimes[case.id] == case.expected()


@pytest.mark.oracle
def test_case_is_as_salt_has_it(case, salts):
    told = salts[case.id]
    assert case.agreed(told) == case.agreed(case.expected())
