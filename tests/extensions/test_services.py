"""saltext-vault, -zabbix, -kubernetes, -mysql and -prometheus: listed, and their states run against a service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extensions.services import TOKEN, Kubernetes, Vault, Zabbix
from tests.statecore import database_servers


def results(minion: Any, fun: str, name: str, **given: Any) -> list[tuple[Any, bool]]:
    """Return (result, whether there are changes) of a state in test mode, then run, then run again."""
    runs = [
        minion.state(fun, name, **given, test=True),
        minion.state(fun, name, **given),
        minion.state(fun, name, **given),
    ]
    return [(row["result"], bool(row["changes"])) for row in runs]


#: Results of a state that changes something once.
ONCE = [(None, True), (True, True), (True, False)]

#: The same of a state that names no changes in test mode.
ONCE_UNNAMED = [(None, False), (True, True), (True, False)]


@pytest.fixture
def vault(minion: Callable[..., Any]) -> Iterator[tuple[Any, Vault]]:
    """A minion that reaches a Vault with a token of its own configuration, and the Vault."""
    service = Vault()
    with service.running() as url:
        settings = {"config_location": "local", "server": {"url": url}, "auth": {"method": "token", "token": TOKEN}}
        profile = {"myvault": {"driver": "vault"}}
        pillars = [{"vault": {"conf": "path=secret/pillar"}}]
        yield minion(vault=settings, ext_pillar=pillars, **profile), service


def test_vault_functions(vault: tuple[Any, Vault]) -> None:
    minion, service = vault
    assert {"read_secret", "write_secret", "list_secrets", "policy_write"} <= minion.functions("vault")
    assert {"policy_present", "policy_absent"} <= minion.functions("vault", "state_functions")
    assert minion.call("vault.write_secret", "secret/app", user="me", password="p1")
    assert service.secrets == {"app": {"user": "me", "password": "p1"}}
    assert minion.call("vault.read_secret", "secret/app") == {"user": "me", "password": "p1"}
    assert minion.call("vault.read_secret", "secret/app", "password") == "p1"
    assert minion.call("vault.list_secrets", "secret/dir", default=[]) == []
    missing = minion.runtime.call("vault.read_secret", ["secret/none"])
    assert missing.retcode == 1
    assert "VaultNotFoundError" in str(missing.value) or "not found" in str(missing.value).lower()


def test_vault_states(vault: tuple[Any, Vault]) -> None:
    minion, service = vault
    rules = 'path "secret/app" { capabilities = ["read"] }'
    assert results(minion, "vault.policy_present", "app", rules=rules) == ONCE
    assert service.policies == {"app": rules}
    assert results(minion, "vault.policy_absent", "app") == ONCE
    assert results(minion, "vault_secret.present", "secret/web", values={"a": "b"}) == ONCE
    assert service.secrets["web"] == {"a": "b"}


def test_vault_in_templates_pillar_and_sdb(vault: tuple[Any, Vault], tmp_path: Path) -> None:
    minion, service = vault
    service.secrets |= {"app": {"password": "p1"}, "pillar": {"from": "vault"}}
    (tmp_path / "tree/a.sls").write_text(
        f"{tmp_path}/conf:\n  file.managed:\n    - contents: {{{{ salt['vault.read_secret']('secret/app', 'password') }}}}\n"
    )
    minion.call("state.apply", "a")
    assert (tmp_path / "conf").read_text() == "p1\n"
    assert minion.runtime.context.pillar["from"] == "vault"
    assert minion.call("sdb.get", "sdb://myvault/secret/app?password") == "p1"


@pytest.fixture
def zabbix(minion: Callable[..., Any]) -> Iterator[tuple[Any, Zabbix]]:
    """A minion that reaches a Zabbix, and the Zabbix."""
    service = Zabbix()
    with service.running() as url:
        settings = {"zabbix.user": "Admin", "zabbix.password": "zabbix", "zabbix.url": f"{url}/api_jsonrpc.php"}
        yield minion(**settings), service


def test_zabbix(zabbix: tuple[Any, Zabbix]) -> None:
    minion, service = zabbix
    assert {"apiinfo_version", "host_create", "hostgroup_create"} <= minion.functions("zabbix")
    assert {"present", "absent"} <= minion.functions("zabbix_host", "state_functions")
    assert minion.call("zabbix.apiinfo_version") == "5.0.1"
    assert results(minion, "zabbix_hostgroup.present", "Web") == ONCE
    assert set(service.groups.values()) == {"Linux servers", "Web"}
    assert results(minion, "zabbix_hostgroup.absent", "Web") == ONCE
    wrong = minion.runtime.call("zabbix.hostgroup_exists", ["Web"], {"_connection_password": "no"})
    assert "Login name or password is incorrect." in str(wrong.value)


@pytest.fixture
def kubernetes(minion: Callable[..., Any], tmp_path: Path) -> Iterator[tuple[Any, Kubernetes]]:
    """A minion that reaches a Kubernetes API server by a kubeconfig file, and the server."""
    service = Kubernetes()
    with service.running() as url:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        yield minion(**{"kubernetes.kubeconfig": str(tmp_path / "kubeconfig"), "kubernetes.context": "x"}), service


def test_kubernetes(kubernetes: tuple[Any, Kubernetes]) -> None:
    minion, service = kubernetes
    assert {"namespaces", "create_configmap", "show_deployment", "ping"} <= minion.functions("kubernetes")
    assert {"configmap_present", "namespace_present", "deployment_absent"} <= minion.functions(
        "kubernetes", "state_functions"
    )
    assert results(minion, "kubernetes.namespace_present", "web") == ONCE
    assert sorted(minion.call("kubernetes.namespaces")) == ["default", "web"]
    assert results(minion, "kubernetes.configmap_present", "conf", namespace="web", data={"a": "b"}) == ONCE
    assert service.things["/api/v1/namespaces/web/configmaps/conf"]["data"] == {"a": "b"}
    assert results(minion, "kubernetes.configmap_absent", "conf", namespace="web") == ONCE


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a MariaDB server."""
    with database_servers.mariadb(tmp_path_factory.mktemp("mariadb")) as socket:
        yield socket


def test_mysql(minion: Callable[..., Any], database: Path) -> None:
    made = minion(**{"mysql.unix_socket": str(database), "mysql.user": "root", "mysql.pass": ""})
    # The built-in module of this name has no db_check.
    assert {"query", "db_create", "user_create", "db_check"} <= made.functions("mysql")
    assert {"run", "run_file"} == made.functions("mysql_query", "state_functions")
    assert results(made, "mysql_database.present", "app", character_set="utf8mb4") == ONCE_UNNAMED
    assert "app" in made.call("mysql.db_list")
    assert results(made, "mysql_user.present", "me", host="localhost", password="p1") == ONCE_UNNAMED
    given = {"grant": "select,insert", "database": "app.*", "user": "me", "host": "localhost"}
    assert results(made, "mysql_grants.present", "rights", **given) == ONCE_UNNAMED
    assert made.call("mysql.user_grants", "me", "localhost")[1] == "GRANT SELECT, INSERT ON `app`.* TO `me`@`localhost`"
    assert results(made, "mysql_user.absent", "me", host="localhost") == ONCE_UNNAMED
    assert results(made, "mysql_database.absent", "app") == ONCE_UNNAMED


def test_prometheus(minion: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "out/salt.prom"
    made = minion(**{"prometheus_textfile.filename": str(file)})
    returned = made.runtime.call("state.single", ["test.nop", "a"]).value
    served, function = made.runtime.loader.function("returners", "prometheus_textfile.returner", made.runtime.context)
    served.bound(function, made.runtime.context)(
        {"fun": "state.apply", "fun_args": [], "return": returned, "id": "web1"}
    )
    numbers = dict(re.findall(r"^(salt_states_\w+) ([\d.]+)$", file.read_text(), re.MULTILINE))
    assert (numbers["salt_states_succeeded"], numbers["salt_states_failed"]) == ("1.0", "0.0")
