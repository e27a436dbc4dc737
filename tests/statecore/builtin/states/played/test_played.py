"""States of a whole host, as ``conftest.py`` tells: ours, and Salt's where it can be asked."""

from __future__ import annotations

import os

import pytest


def test_case(played, ours):
    _as_root(played)
    assert ours(played) == played.expected()


@pytest.mark.oracle
def test_case_is_as_salt_has_it(played, request):
    _as_root(played)
    told = request.getfixturevalue("salts")[played]
    assert played.agreed(told) == played.agreed(played.expected())


def _as_root(played):
    if os.geteuid() != 0 and played.state.startswith(("ssh", "cron")):
        pytest.skip("only root has other users' files")
