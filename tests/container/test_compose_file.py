"""compose.yaml, read as text: the promises of a container's cage hold for every service, the next one too. No engine needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s.policies import bytes_of

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ROLES = {"publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance"}
MINIONS = {"web1", "web2"}
#: Run to the end and are gone.
ONE_SHOTS = {"keygen", "host-web1", "host-web2"}


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_service_can_write_its_image_or_keeps_a_capability_it_was_not_given(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "privileged" not in service


@pytest.mark.parametrize("name", sorted(set(SERVICES) - MINIONS))
def test_all_but_minions_gain_no_privilege(name: str) -> None:
    assert "no-new-privileges:true" in SERVICES[name]["security_opt"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - MINIONS - {"host-web1", "host-web2"}))
def test_all_but_the_managed_side_are_nobody_in_particular(name: str) -> None:
    user, _, group = SERVICES[name]["user"].partition(":")
    assert int(user) > 10000
    assert int(group) > 10000
    assert "cap_add" not in SERVICES[name]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - ONE_SHOTS - {"cli"}))
def test_what_runs_on_is_started_again_after_a_crash(name: str) -> None:
    assert SERVICES[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_has_a_memory_limit(name: str) -> None:
    assert bytes_of(SERVICES[name]["mem_limit"]) <= 2 * 1024**3


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_roles_memory_limit_is_that_of_kubernetes(role: str) -> None:
    manifest = yaml.safe_load_all((ROOT / "k8s" / "base" / f"{role}.yaml").read_text())
    (limit,) = [
        container["resources"]["limits"]["memory"]
        for one in manifest
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    assert bytes_of(SERVICES[role]["mem_limit"]) == bytes_of(limit)


def test_minions_share_no_network_with_redis_or_any_role() -> None:
    for minion in MINIONS:
        assert SERVICES[minion]["networks"] == ["minions"]
    on_minions = {name for name, service in SERVICES.items() if "minions" in service.get("networks", [])}
    assert on_minions == MINIONS | {"master"}
    assert SERVICES["redis"]["networks"] == ["store"]
    assert "store" not in SERVICES["master"]["networks"]


def test_what_is_inside_cannot_reach_out() -> None:
    assert COMPOSE["networks"]["internal"]["internal"] is True
    assert COMPOSE["networks"]["store"]["internal"] is True


@pytest.mark.parametrize("role", sorted(ROLES | {"cli"}))
def test_a_role_sees_its_own_keys_only_and_cannot_change_them(role: str) -> None:
    keys = [volume for volume in SERVICES[role]["volumes"] if volume.startswith("keys-")]
    assert keys == [f"keys-{role}:/keys/{role}:ro"]


#: Roles that use Redis: each has a user there.
REMEMBER = {"publisher", "mworker", "reactor", "maintenance"}


def having(volume: str) -> set[str]:
    """The services that have a volume."""
    return {name for name, service in SERVICES.items() if any(volume in one for one in service.get("volumes", []))}


def test_each_role_has_its_own_user_of_redis() -> None:
    assert having("redis-login:") == {"redis", "keygen"}
    assert having("redis-operator:") == {"keygen"}
    for name in REMEMBER:
        assert SERVICES[name]["environment"]["SALTERN_REDIS_URL_FILE"] == f"/keys/{name}/redis.url"
    named = {name for name, one in SERVICES.items() if "SALTERN_REDIS_URL_FILE" in (one.get("environment") or {})}
    assert named == REMEMBER


def test_no_service_names_redis_without_a_password() -> None:
    assert "redis://redis" not in (ROOT / "compose.yaml").read_text()
    assert SERVICES["keygen"]["command"] == ["keygen", "--out", "/keys", "--redis-host", "redis"]
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    assert '"--aclfile", "/run/secrets/redis/users.acl"]' in dockerfile


def test_redis_waits_for_its_password() -> None:
    assert SERVICES["redis"]["depends_on"] == {"keygen": {"condition": "service_completed_successfully"}}


def test_no_volume_that_a_service_can_write_is_in_another_service() -> None:
    """keygen, which has no network, fills the volumes of keys; a host's volume is filled before its minion starts."""
    mounted: dict[str, set[str]] = {}
    written: dict[str, set[str]] = {}
    for name in SERVICES.keys() - ONE_SHOTS:
        for text in SERVICES[name].get("volumes", []):
            volume, _, where = text.partition(":")
            mounted.setdefault(volume, set()).add(name)
            if not where.endswith(":ro"):
                written.setdefault(volume, set()).add(name)
    assert {volume: mounted[volume] for volume in written if len(mounted[volume]) > 1} == {}
    assert written.keys() >= {"cache-mworker", "cache-reactor", "cache-maintenance", "redis"}


def test_published_ports_stay_on_this_machine_unless_asked() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith(("127.0.0.1:", "${MASTER_ADDRESS:-127.0.0.1}:")) for port in published)
    assert not any("4507" in port for port in published)


def test_there_are_four_workers_in_two_containers() -> None:
    assert SERVICES["mworker"]["deploy"]["replicas"] == 2
    assert SERVICES["mworker"]["environment"]["SALTERN_WORKER_PROCESSES"] == "2"
