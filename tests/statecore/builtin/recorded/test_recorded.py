"""Functions that read the output of programs, as ``conftest.py`` tells: ours, and Salt's where it can be asked."""

from __future__ import annotations

import pytest

from tests.statecore.builtin.recorded.conftest import play


def test_case(recorded, tmp_path):
    _as_root(recorded)
    assert play(recorded, tmp_path / "case") == recorded.expected()


@pytest.mark.oracle
def test_case_is_as_salt_has_it(recorded, request):
    _as_root(recorded)
    told = request.getfixturevalue("salts")[recorded]
    assert recorded.agreed(told) == recorded.agreed(recorded.expected())


def _as_root(recorded):
    if not recorded.possible():
        pytest.skip("only root makes block devices")
