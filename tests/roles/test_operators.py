"""Operators with keys of their own, and a master that has its say in state runs: as people and minions find them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
import zmq

from saltern.kit.keys.keygen import make_keys
from saltern.kit.links.control import ControlClient, ControlError
from saltern.kit.links.event_bus import EventSubscriber
from saltern.kit.links.sockets import LinkKeys
from tests.roles.conftest import NewLab
from tests.roles.lab import BIN, COMMAND, ROOT, SOON, Answer, Lab, until

pytestmark = pytest.mark.roles

RIGHTS = {"eve": ["test.*"], "ann": ["test.*", {"web1": ["grains.item"]}, {"@runner": ["manage.up"]}]}

#: A line that only trimmed blocks make whole.
SAID = """/etc/said:
  file.managed:
    - contents: "sa{% if True %}
id"
{%- endif %}
"""

#: What a returner of the site's has to say.
RETURNER = """
def get_load(jid):
    return {"fun": "test.ping", "tgt": "*", "arg": [], "Minions": ["old1"]}

def get_jid(jid):
    return {"old1": {"return": "from elsewhere"}}
"""


@pytest.fixture(scope="module")
def lab(module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    returners = tmp_path_factory.mktemp("returners")
    (returners / "archive.py").write_text(RETURNER)
    made = module_labs(
        options={
            "publisher_acl": RIGHTS,
            "publisher_acl_blacklist": {"modules": ["test.exception"]},
            "returner_dirs": [str(returners)],
            "state_top": "other.sls",
            "nodegroups": {"front": "web1"},
            "jinja_trim_blocks": True,
        }
    )
    make_keys(made.etc / "keys", operators=["ann", "bob"])
    (made.tree / "salt" / "other.sls").write_text("base:\n  front:\n    - match: nodegroup\n    - said\n")
    (made.tree / "salt" / "said.sls").write_text(SAID)
    made.start_all()
    yield made
    assert made.tracebacks() == []


def as_operator(lab: Lab, name: str, *words: str) -> Answer:
    """A command with somebody's own key."""
    environment = lab.environment_of("cli") | {"SALTERN_KEY_DIR": str(lab.etc / "keys" / name)}
    done = subprocess.run(
        [str(BIN / words[0]), *words[1:]],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND,
        check=False,
    )
    return Answer(" ".join(words), done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("ann", ("salt", "web1", "grains.item", "id"), ""),
        ("ann", ("salt", "*", "grains.item", "id"), "ann may not run grains.item on * (option publisher_acl)"),
        ("ann", ("salt", "*", "cmd.run", "id"), "ann may not run cmd.run on * (option publisher_acl)"),
        ("ann", ("salt", "*", "test.exception"), "test.exception is barred (option publisher_acl_blacklist)"),
        ("ann", ("salt-run", "manage.up"), ""),
        ("ann", ("salt-run", "jobs.active"), "ann may not use @runner for jobs.active (option publisher_acl)"),
        ("ann", ("salt-key", "-L"), "ann may not use @wheel for key.list_all (option publisher_acl)"),
        (
            "bob",
            ("salt", "*", "test.ping"),
            "bob may not run test.ping on * (option publisher_acl: it gives this key no right",
        ),
    ],
    ids=str,
)
def test_operators(lab: Lab, name: str, words: tuple[str, ...], said: str) -> None:
    answer = as_operator(lab, name, *words)
    assert (answer.code != 0) is bool(said), answer
    assert said in answer.err, answer


def test_a_key_counts_while_it_is_there(lab: Lab) -> None:
    """Nothing is restarted: a key that comes counts, one that goes does not, for a connection that stands either."""
    make_keys(lab.etc / "keys", operators=["eve"])
    words = ("salt", "--out", "json", "--static", "web1", "test.ping")
    assert as_operator(lab, "eve", *words).data == {"web1": True}
    options = lab.master_options
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    keys = LinkKeys.load(lab.etc / "keys" / "eve")
    control, events = ControlClient(context, options, keys), EventSubscriber(context, options, keys)
    events.subscribe("")
    try:
        assert events.ready(SOON)
        for role in ("reqserver", "eventpublisher"):
            (lab.etc / "keys" / role / "known" / "eve.pub").unlink()

        def refused() -> str:
            try:
                control.call("publish", timeout=SOON)
            except ControlError as error:
                return str(error) if "taken back" in error.message else ""
            return ""

        until(refused, SOON, "the connection is refused")
        until(lambda: "listeners connect anew: eve" in lab.log("eventpublisher"), SOON, "eve hears no more")
        while events.next(0):
            pass
        # The others hear: this command waits for its return's event, and the job cache is the last resort.
        assert lab.salt("web1", "test.ping") == {"web1": True}
        assert events.next(0.2) is None
    finally:
        control.close()
        events.close()
        context.term()


def test_rows_count_without_a_restart(lab: Lab) -> None:
    """docs/security.md: "Rows count at once"."""
    words = ("salt", "web1", "test.ping")
    assert as_operator(lab, "bob", *words).code != 0
    rows = lab.etc / "master.d" / "rows.conf"
    rows.parent.mkdir(exist_ok=True)
    rows.write_text(yaml.safe_dump({"publisher_acl": RIGHTS | {"bob": ["test.ping"]}}))
    until(lambda: as_operator(lab, "bob", *words).code == 0, SOON, "the new row counts")
    rows.write_text("publisher_acl: [broken\n")
    # Commands on this machine read the same file, and cannot start.
    until(lambda: "rows.conf" in lab.log("mworker"), SOON, "the log names the file")
    rows.unlink()
    until(lambda: "may not run" in as_operator(lab, "bob", *words).err, SOON, "the row counts no more")


def test_a_job_is_who_published_its(lab: Lab) -> None:
    assert as_operator(lab, "ann", "salt", "*", "test.echo", "hers").code == 0
    (job,) = lab.runner("jobs.list_jobs", "function=test.echo", "limit=1").values()
    assert job["User"] == "ann"
    # Whoever has the key of the master's own commands may do what control_acl says.
    assert lab.salt("web2", "grains.item", "id") == {"web2": {"id": "web2"}}


def test_the_master_has_its_say_in_state_runs(lab: Lab) -> None:
    run = lab.run("salt", "--out", "json", "--static", "*", "state.apply").data
    assert [entry["__id__"] for entry in run["web1"].values()] == ["/etc/said"]
    assert (lab.host("web1") / "etc" / "said").read_text() == "said\n"
    assert [entry["result"] for entry in run["web2"].values()] == [False]


def test_a_job_of_another_database(lab: Lab) -> None:
    jid = "20200101000000000000"
    assert lab.runner("jobs.lookup_jid", jid, "ext_source=archive") == {"old1": "from elsewhere"}
    assert lab.runner("jobs.list_job", jid, "ext_source=archive")["Minions"] == ["old1"]


def test_ids_of_jobs_are_text_wherever_they_stand(lab: Lab) -> None:
    jid = "20260101000000000000"
    assert lab.runner("salt.execute", "web1", "test.echo", "[x]", f"jid={jid}") == {"web1": "x"}
    assert lab.runner("jobs.lookup_jid", f"jid={jid}") == {"web1": "x"}
    assert jid not in lab.runner("jobs.list_jobs", f"cursor={jid}")
    assert lab.runner("network.wol", "08:00:27:13:69:77", "127.0.0.1") is True


def test_the_example_of_a_laptop_is_true(new_lab: NewLab, tmp_path: Path) -> None:
    """docs/security.md, "Example: an operator's laptop": each command and both configurations."""
    page = (ROOT / "docs" / "security.md").read_text()
    section = page.partition("### Example: an operator's laptop\n")[2].partition("\n## ")[0]
    rights, laptop = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL))
    keygen, export, *words = [shlex.split(line) for line in re.findall(r"^ +\$ (.*)$", section, re.MULTILINE)]
    lab = new_lab(minions=("web1", "db1"), options=rights)
    (lab.tree / "salt" / "motd.sls").write_text("/etc/motd:\n  file.managed:\n    - contents: hello\n")
    made = lab.run(*(word.replace("/srv/saltern/etc", str(lab.etc)) for word in keygen))
    assert made.code == 0, str(made)
    lab.start_all()
    home = tmp_path / ".salt"
    (home / "keys").mkdir(parents=True)
    shutil.copytree(lab.etc / "keys" / "ann", home / "keys" / "ann")
    here = {
        "reqserver_host": "127.0.0.1",
        "eventpublisher_host": "127.0.0.1",
        "key_dir": str(home / "keys" / "ann"),
        # The lab's ports are not the usual ones.
        "control_port": lab.port["control_port"],
        "event_pub_port": lab.port["event_pub_port"],
    }
    assert laptop.keys() <= here.keys()
    (home / "master").write_text(yaml.safe_dump(here))
    assert export == ["export", "SALT_CONFIG_DIR=~/.salt"]

    def typed(*command: str) -> Answer:
        environment = {name: value for name, value in lab.environment.items() if not name.startswith("SALTERN_")}
        environment |= {"SALT_CONFIG_DIR": str(home)}
        words = [str(BIN / command[0]), *command[1:]]
        done = subprocess.run(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND,
            check=False,
        )
        return Answer(" ".join(command), done.returncode, done.stdout, done.stderr)

    for command in words:
        answer = typed(*command)
        assert answer.code == 0, str(answer)
    for line in re.search(r"audit record: (.*)", section)[1].rstrip(".").split(", "):  # type: ignore[index]
        refused = typed(*shlex.split(line.strip("`")))
        assert refused.code == 1, str(refused)
        assert "publisher_acl" in refused.err, str(refused)
