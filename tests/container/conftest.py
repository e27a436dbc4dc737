"""One lab for all container tests: compose.yaml as it is, on a real engine, with a copy of examples/srv that tests may change.

Without an engine the tests are skipped; SALTERN_REQUIRE_ENGINE=1 makes that a failure. The images are built by
``docker/images``. SALTERN_KEEP_LAB=1 leaves the containers running for a look at them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.container.compose_lab import MINIONS, RUN, Lab, copied_tree, require_engine


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed container test shows what the services said."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    lab = item.funcargs.get("lab") if isinstance(item, pytest.Function) else None
    if report.failed and isinstance(lab, Lab):
        report.sections.append(("services", lab.logs()))


@pytest.fixture(scope="session")
def engine() -> None:
    """A Docker engine that answers, and images that are built."""
    require_engine()


@pytest.fixture(scope="session")
def lab(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """compose.yaml, up; every service healthy, no key accepted yet."""
    with Lab(copied_tree(tmp_path_factory.mktemp("tree"))).running() as lab:
        yield lab


@pytest.fixture(scope="session")
def accepted(lab: Lab) -> Lab:
    """The lab after the operator accepted both minions."""
    lab.until(lambda: set(lab.keys()["minions_pre"]) == set(MINIONS), 60, "both minions' keys wait for acceptance")
    lab.cli("salt-key", "-yA")
    lab.until(lab.both_answer, 90, "both minions answer test.ping")
    return lab


@pytest.fixture(scope="session")
def first_apply(accepted: Lab) -> dict[str, RUN]:
    """Results of the first `salt '*' state.apply` on two fresh hosts."""
    return accepted.apply()
