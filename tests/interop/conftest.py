"""Labs for the tests with stock Salt: those of the tests of roles."""

from __future__ import annotations

from tests.roles.conftest import module_labs, new_lab

__all__ = ["module_labs", "new_lab"]
