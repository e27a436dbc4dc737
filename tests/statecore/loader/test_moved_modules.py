"""Messages for modules that Salt 3008 moved out of its core, and the table of packages in the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from statecore.loader import Loader, moved_modules
from statecore.runtime.runtime import local_runtime

PAGE = (Path(__file__).parents[3] / "docs/modules.md").read_text("utf-8")

DOCKER = "is in the Salt extension saltext-dockermod: pip install --no-deps saltext-dockermod && pip install docker"

#: (kind, name, advice)
CASES: list[tuple[str, str, str]] = [
    ("states", "docker_container", f"docker_container {DOCKER}"),
    ("modules", "docker", f"docker {DOCKER}"),
    ("modules", "zabbix", "zabbix is in the Salt extension saltext-zabbix: pip install --no-deps saltext-zabbix"),
    (
        "states",
        "boto_s3_bucket",
        "boto_s3_bucket is now boto3_s3_bucket, which is in the Salt extension saltext-boto3: "
        "pip install --no-deps saltext-boto3 && pip install boto3",
    ),
    (
        "states",
        "rvm",
        "Salt 3008 no longer has rvm, and no package on PyPI does: put salt/states/rvm.py of Salt 3007 into salt://_states",
    ),
    (
        "modules",
        "augeas",
        "Salt 3008 no longer has augeas, and no package on PyPI does: put salt/modules/augeas.py of Salt 3007 into "
        "salt://_modules",
    ),
    ("states", "nosuch", ""),
    ("beacons", "rvm", ""),
]


@pytest.mark.parametrize(("kind", "name", "text"), CASES)
def test_the_advice(kind: str, name: str, text: str) -> None:
    assert moved_modules.advice(kind, name) == text


def test_calls_name_the_package() -> None:
    runtime = local_runtime({"id": "web1"})
    assert runtime.call("docker.ps").value == f"'docker.ps' is not available. Reason: docker {DOCKER}"
    done: Any = runtime.call("state.single", ["docker_image.present", "x"]).value
    assert done[1] == f"Reason: docker_image {DOCKER}"
    assert not runtime.loader.has("modules", "docker.ps", runtime.context)


def test_the_page_has_the_table() -> None:
    rows = re.findall(r"^\| `(saltext-[\w-]+)` \| (.+?) \|(.*)\|$", PAGE, re.MULTILINE)
    shown = {name: (tuple(names.split(", ")), tuple(re.findall(r"`(.+?)`", needs))) for name, names, needs in rows}
    assert shown == {name: (row.names, row.needs) for name, row in moved_modules.PACKAGES.items()}


@pytest.mark.parametrize("kind", ["modules", "states"])
def test_a_module_is_in_a_package_or_gone(kind: str) -> None:
    assert not moved_modules._GONE[kind][0] & {name for row in moved_modules.PACKAGES.values() for name in row.names}


@pytest.mark.parametrize(("kind", "name"), [("modules", "gem"), ("states", "npm"), ("states", "mysql_user")])
def test_what_is_built_in_needs_no_package(kind: str, name: str) -> None:
    assert Loader().known(kind, name)
    assert name not in moved_modules._GONE[kind][0]
