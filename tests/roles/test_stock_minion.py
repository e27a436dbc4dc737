"""An unmodified salt-minion 3008.3 joins the lab's master and applies the example's base role.

It manages this machine, for a stock minion knows no other host. So it runs in a mount namespace of its own: its /etc is a copy
in memory, and everything else that it could change is read-only there.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.conftest import Oracle
from tests.roles.conftest import NewLab
from tests.roles.lab import STARTUP, Lab, until

pytestmark = [pytest.mark.roles, pytest.mark.oracle]

MINION = "stock1"

#: $1 is a directory of the test's own; the rest is what runs in the namespace.
NAMESPACE = """\
set -e
mount --make-rprivate /
mkdir "$1/etc"
mount -t tmpfs tmpfs "$1/etc"
cp -a /etc/. "$1/etc/"
mount --bind "$1/etc" /etc
for directory in /var /root /srv /usr /home /opt /boot; do
    test -d "$directory" || continue
    mount --bind "$directory" "$directory"
    mount -o remount,bind,ro "$directory"
done
shift
exec "$@"
"""


@pytest.fixture(scope="module")
def joined(module_labs: NewLab, oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A master without minions of ours, and the stock minion signed in there."""
    if os.geteuid():
        pytest.skip("a mount namespace needs root")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root make a mount namespace")
    root = tmp_path_factory.mktemp("stock")
    lab = module_labs(minions=(), options={"auto_accept": False})
    lab.start_all()
    config = root / "minion"
    config.write_text(
        yaml.safe_dump(
            {
                "id": MINION,
                "master": "127.0.0.1",
                "master_port": lab.port["ret_port"],
                "publish_port": lab.port["publish_port"],
                "root_dir": str(root / "root"),
                "pki_dir": str(root / "root" / "pki"),
                "acceptance_wait_time": 1,
                "log_level": "info",
                "log_file": str(root / "log"),
                "user": "root",
            }
        )
    )
    words = ["unshare", "-m", "sh", "-c", NAMESPACE, "namespace", str(root)]
    words += [oracle.program("salt-minion"), "-c", str(root)]
    with (lab.root / "log" / MINION).open("wb") as log:
        minion = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=lab.environment, start_new_session=True
        )
    try:
        until(lambda: lab.keys()["minions_pre"] == [MINION], STARTUP, "the stock minion's key")
        lab.ok("salt-key", "-y", "-a", MINION)
        until(lambda: lab.run("salt", "-t", "2", MINION, "test.ping").code == 0, STARTUP, "the stock minion answers")
        yield lab
    finally:
        # It takes its time to end; nothing of it is needed any more, and its mounts go with it.
        os.killpg(minion.pid, signal.SIGKILL)
        minion.wait(10)


def test_it_answers(joined: Lab) -> None:
    assert joined.salt("*", "test.ping") == {MINION: True}
    assert joined.salt("*", "test.version") == {MINION: "3008.3"}
    assert joined.salt("-G", f"id:{MINION}", "test.echo", "hello") == {MINION: "hello"}
    assert joined.salt("-I", "owner:the platform team", "test.ping") == {MINION: True}


def test_it_applies_the_base_role(joined: Lab) -> None:
    machine = Path("/etc/motd").read_text() if Path("/etc/motd").exists() else None
    states = {"motd", "sysctl", "cron-tidy"}

    predicted = by_id(joined, "test=True")
    assert {name: result["result"] for name, result in predicted.items()} == dict.fromkeys(states)
    made = by_id(joined)
    assert {name: result["result"] for name, result in made.items()} == dict.fromkeys(states, True)
    assert all(result["changes"] for result in made.values())
    said = joined.salt(MINION, "cmd.run", "cat /etc/motd /etc/sysctl.d/60-managed.conf /etc/cron.d/tidy")[MINION]
    assert said.startswith(f"{MINION} belongs to the platform team.\n")
    assert "vm.swappiness = 10" in said
    assert "-mtime +14" in said
    again = by_id(joined)
    assert {name: (result["result"], result["changes"]) for name, result in again.items()} == dict.fromkeys(
        states, (True, {})
    )

    assert (Path("/etc/motd").read_text() if Path("/etc/motd").exists() else None) == machine
    assert not Path("/etc/sysctl.d/60-managed.conf").exists()


def by_id(lab: Lab, *words: str) -> dict[str, dict[str, object]]:
    run = lab.salt(MINION, "state.apply", "base", *words)[MINION]
    return {result["__id__"]: result for result in run.values()}


def test_its_jobs_are_in_the_job_cache(joined: Lab) -> None:
    jobs = joined.runner("jobs.list_jobs", "search_function=state.apply")
    assert len(jobs) == 3
    seen = joined.runner("jobs.list_job", max(jobs))
    assert seen["Minions"] == [MINION]
    assert seen["Result"][MINION]["success"] is True
    assert joined.runner("manage.up") == [MINION]


def test_it_keeps_up_with_rotated_keys_and_restarted_roles(joined: Lab) -> None:
    """The publication key changes, every role is another process: the minion is the same, and answers."""
    epoch = joined.redis().hget("salt:epochs", "aes")
    joined.redis().hset("salt:epochs", "aes", int(epoch or 0) + 1)
    for role in ("reqserver", "mworker", "publisher", "eventpublisher"):
        joined.restart(role)
    joined.await_ready(*joined.roles)
    until(
        lambda: joined.run("salt", "-t", "2", MINION, "test.ping").code == 0, STARTUP, "the stock minion answers again"
    )
    assert joined.tracebacks() == []
