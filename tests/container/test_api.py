"""The profile `api` of compose.yaml: salt-pepper, unmodified, asks the container from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.container.compose_lab import Lab

pytestmark = [pytest.mark.container, pytest.mark.timeout(1200)]

#: salt-pepper's command, in the environment of the tests.
PEPPER = Path(sys.executable).parent / "pepper"


@pytest.fixture(scope="module")
def url(accepted: Lab) -> str:
    """Address of the API's container, which runs healthily."""
    accepted.compose("--profile", "api", "up", "--detach", "--no-build", "--no-recreate", "api", seconds=300)
    accepted.until(lambda: not accepted.unhealthy(("api",)), 120, "the API is healthy")
    return "http://" + accepted.compose("--profile", "api", "port", "api", "8000").strip()


def pepper(url: str, password: str, *words: str) -> tuple[int, Any]:
    """Return (exit code, the answer's `return`, or the text where it is no JSON) of a command of salt-pepper."""
    login = ("-u", url, "-a", "file", "--username", "admin", "--password", password, "--non-interactive")
    command = [str(PEPPER), *login, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, stdin=subprocess.DEVNULL)
    try:
        return done.returncode, json.loads(done.stdout)["return"][0]
    except ValueError:
        return done.returncode, done.stdout + done.stderr


def test_pepper_asks_minions_runners_and_keys(url: str, accepted: Lab) -> None:
    code, answer = pepper(url, accepted.password, "*", "test.ping")
    assert code == 0, answer
    assert {minion: one["ret"] for minion, one in answer.items()} == {"web1": True, "web2": True}
    code, answer = pepper(url, accepted.password, "--client", "runner", "manage.up")
    assert (code, sorted(answer["data"]["return"])) == (0, ["web1", "web2"])
    code, answer = pepper(url, accepted.password, "--client", "wheel", "key.list_all")
    assert (code, answer["data"]["return"]["minions"]) == (0, ["web1", "web2"])
    code, answer = pepper(url, accepted.password, "web1", "state.apply", "base.motd", "test=True")
    assert (code, [one["__id__"] for one in answer["web1"]["ret"].values()]) == (0, ["motd"])


def test_a_wrong_password_is_refused(url: str) -> None:
    code, said = pepper(url, "wrong", "*", "test.ping")
    assert code != 0
    assert "denied" in said


def test_two_replicas_know_one_session(url: str, accepted: Lab) -> None:
    program = (
        "import json, urllib.request as u\n"
        "def ask(host, path, body, **headers):\n"
        "    headers |= {'Content-Type': 'application/json', 'Accept': 'application/json'}\n"
        "    request = u.Request(f'http://{host}:8000{path}', json.dumps(body).encode(), headers)\n"
        "    with u.urlopen(request, timeout=60) as answer:\n"
        "        return json.loads(answer.read())['return'][0]\n"
        "login = {'username': 'admin', 'password': '%s', 'eauth': 'file'}\n"
        "token = ask('%s', '/login', login)['token']\n"
        "ping = {'client': 'local', 'tgt': 'web1', 'fun': 'test.ping'}\n"
        "print(json.dumps(ask('%s', '/', ping, **{'X-Auth-Token': token})))\n"
    )
    # Each replica would want the port of compose.yaml for itself, but the engine chooses it here.
    accepted.compose("--profile", "api", "up", "--detach", "--no-build", "--scale", "api=2", "api", seconds=300)
    accepted.until(lambda: not accepted.unhealthy(("api",)), 120, "both replicas are healthy")
    first, second = (accepted.inspect(one)["Id"][:12] for one in accepted.containers("api"))
    text = accepted.inside("api", "python3", "-c", program % (accepted.password, first, second))
    assert json.loads(text) == {"web1": True}
