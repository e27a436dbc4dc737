"""Functions that read the output of programs, as ``conftest.py`` tells: ours, and Salt's where it can be asked."""

from __future__ import annotations

import pytest

from tests.statecore.builtin.recorded.conftest import play


def test_case(recorded, tmp_path):
    assert play(recorded, tmp_path / "case") == recorded.expected()


@pytest.mark.oracle
def test_case_is_as_salt_has_it(recorded, request):
    if recorded.differs.get("all"):
        pytest.skip(recorded.differs["why"])
    told = request.getfixturevalue("salts")[recorded]
    assert recorded.agreed(told) == recorded.agreed(recorded.expected())
