"""Labs for the tests of roles: one for everybody who only looks, fresh ones where things are broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from tests.roles.lab import STARTUP, Lab, until

NewLab: TypeAlias = Callable[..., Lab]

_LABS = pytest.StashKey[list[Lab]]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows what the processes said."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for lab in item.session.stash.get(_LABS, []):
            if lab.processes:
                report.sections.append((f"processes of {lab.root.name}", lab.logs()))


def _labs(request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> Iterator[NewLab]:
    made: list[Lab] = []

    def make(kind: type[Lab] = Lab, **more: Any) -> Lab:
        lab = kind(factory.mktemp("lab"), **more)
        made.append(lab)
        request.session.stash.setdefault(_LABS, []).append(lab)
        return lab

    yield make
    for lab in made:
        lab.close()


@pytest.fixture(scope="session")
def session_labs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewLab]:
    """Makes labs that live as long as the session."""
    yield from _labs(request, tmp_path_factory)


@pytest.fixture(scope="module")
def module_labs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewLab]:
    """Makes labs that live as long as a module."""
    yield from _labs(request, tmp_path_factory)


@pytest.fixture
def new_lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewLab]:
    """Makes labs that end with the test."""
    yield from _labs(request, tmp_path_factory)


@pytest.fixture(scope="session")
def lab(session_labs: NewLab) -> Lab:
    """A whole lab that every test may use and none may break. Its keys were accepted by an operator, as in life."""
    made = session_labs(options={"auto_accept": False})
    made.start_all(*made.roles)
    for minion in made.minions:
        made.start(minion)
    until(lambda: made.keys()["minions_pre"] == list(made.minions), STARTUP, "the minions' keys wait for acceptance")
    for minion in made.minions:
        status, why = made.probe(minion)
        assert (status, why.partition(":")[0]) == (503, "master"), why
    accepted = made.ok("salt-key", "-y", "-A")
    assert all(f"Key for minion {minion} accepted." in accepted.out for minion in made.minions), accepted
    made.await_ready(*made.minions)
    assert made.keys() == {
        "minions": list(made.minions),
        "minions_pre": [],
        "minions_rejected": [],
        "minions_denied": [],
    }
    made.salt("*", "saltutil.sync_all")
    return made
