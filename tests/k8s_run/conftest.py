"""One cluster for the whole run, on the podman that ``.ci/podman start`` brings."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.k8s.rendered import ROOT, objects
from tests.k8s_run.cluster import Cluster

_STARTED = pytest.StashKey[list[Cluster]]()


@pytest.fixture(scope="session")
def program() -> Path:
    """The podman of .ci/podman, with the images of this checkout. Without it the tests are skipped."""
    directory = Path(os.environ.get("SALTERN_PODMAN_DIR", "/var/tmp/saltern-podman"))
    if not (directory / "podman").exists():
        pytest.skip(f"no podman in {directory}: .ci/podman start brings it")
    if not os.environ.get("SALTERN_KEEP_IMAGES"):
        # On a busy machine that has built none of them before: a quarter of an hour.
        subprocess.run([ROOT / ".ci" / "podman", "images"], timeout=3000, check=True, stdin=subprocess.DEVNULL)
    return directory / "podman"


@pytest.fixture(scope="session")
def cluster(
    program: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """overlays/lab, every pod ready; no minion's key is accepted yet."""
    root = tmp_path_factory.mktemp("cluster")
    # Roles read their files as users of their own.
    for directory in (root, *root.parents[:2]):
        directory.chmod(0o755)
    made = Cluster(program, root, objects("overlays/lab"))
    request.session.stash[_STARTED] = [made]
    try:
        made.start()
        made.await_ready(
            *(pod for name, pods in made.pods.items() if made.workloads[name].kind != "DaemonSet" for pod in pods)
        )
        yield made
    finally:
        if not os.environ.get("SALTERN_KEEP_LAB"):
            made.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows what the pods said."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for made in item.session.stash.get(_STARTED, []):
            report.sections.append(("pods", made.logs()))
