"""Network files of all formats, made from arguments of ``network.managed`` and compared with Salt's providers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecore.model.errors import InvocationError
from statecore.system.hostfiles import ifcfg, ifupdown, kernel_network, netplan
from statecore.system.hostfiles import interface_options as options
from tests import case_files

_HERE = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = case_files.read(_HERE / "interfaces.yaml")
GRAINS = {
    "debian_ip": {"os": "Debian", "osrelease": "12", "os_family": "Debian"},
    "rh_ip": {"os": "Rocky", "osrelease": "9.3", "osmajorrelease": 9, "os_family": "RedHat", "num_cpus": 8},
    "netplan_ip": {"os": "Ubuntu", "osrelease": "22.04", "os_family": "Debian"},
}


def _grains(case) -> dict[str, Any]:
    return {**GRAINS[case["of"]], **case.get("grains", {})}


def made(plain, case) -> Any:
    """Return the lines that the module of a case's OS family makes, or the error."""
    plain.grains.update(_grains(case))
    if case["of"] == "netplan_ip":
        for name in ("etc/netplan", "usr/sbin"):
            (plain.root / name).mkdir(parents=True)
        (plain.root / "usr/sbin/netplan").touch(0o755)
    ctx = plain.context()
    try:
        return ctx.call(f"ip.{case.get('function', 'build_interface')}", *case["what"], **case["settings"], test=True)
    except InvocationError as error:
        return {"error": str(error)}


@pytest.fixture(scope="module")
def salts(oracle, tmp_path_factory) -> dict[str, Any]:
    """Salt's results for all cases."""
    asked = [
        [each["of"], each.get("function", "build_interface"), each["what"], each["settings"], _grains(each)]
        for each in CASES.values()
    ]
    host = tmp_path_factory.mktemp("host")
    done = subprocess.run(
        [oracle.program("python"), _HERE / "salt_interfaces.py", host],
        input=json.dumps(asked),
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_what_arguments_make(plain, monkeypatch, name):
    one_interface(monkeypatch)
    told = made(plain, CASES[name])
    assert told == CASES[name]["makes"]


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "differs" not in case])
def test_salt_makes_the_same(name, salts):
    assert salts[name] == CASES[name]["makes"]


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "differs" in case])
def test_a_difference_is_still_one(name, salts):
    assert salts[name] != CASES[name]["makes"]


def one_interface(monkeypatch) -> None:
    """Make this machine appear to have one interface, eth0, with a known MAC address."""
    found = {"eth0": kernel_network.KernelInterface(hardware="02:00:00:00:00:01")}
    monkeypatch.setattr(kernel_network, "interfaces", lambda host: found)


FILE = """\
# The loopback
auto lo eth0
iface lo inet loopback

# lan
iface eth0 inet static
    address 10.0.0.1   # kept with it
    netmask 255.255.255.0
      up  ip route add  10.9.0.0/16

iface eth0 inet6 auto
# wan
allow-hotplug eth1
iface eth1 inet dhcp
source interfaces.d/*
"""


def test_stanzas_are_put_in_place_and_all_else_stays():
    text = ifupdown.put(FILE, "eth0", "auto eth0\niface eth0 inet dhcp\n")
    assert (
        text
        == (
            "# The loopback\nauto lo\nauto eth0\niface eth0 inet dhcp\niface lo inet loopback\n\n# lan\n\n"
            "# wan\nallow-hotplug eth1\niface eth1 inet dhcp\nsource interfaces.d/*\n"
        )
        or "auto eth0\niface eth0 inet dhcp\n" in text
    )
    assert ifupdown.find(text, "eth0").families == {"inet": {"proto": "dhcp"}}
    for name in ("lo", "eth1"):
        assert ifupdown.find(text, name) == ifupdown.find(FILE, name)
    for line in ("# The loopback", "# lan", "# wan", "source interfaces.d/*"):
        assert line in text.splitlines()
    assert ifupdown.put(text, "eth0", "auto eth0\niface eth0 inet dhcp\n") == text


def test_a_file_is_read():
    found = ifupdown.find(FILE, "eth0")
    assert found.auto is True
    assert found.families["inet"]["up_cmds"] == ["ip route add 10.9.0.0/16"]
    assert found.families["inet6"] == {"proto": "auto"}
    assert ifupdown.find(FILE, "eth9") is None
    with pytest.raises(InvocationError, match="malformed"):
        ifupdown.find("iface eth0 inet\n", "eth0")


@given(
    st.sampled_from([each for each in CASES.values() if each["of"] == "debian_ip" and "function" not in each]),
    st.booleans(),
)
def test_what_was_written_reads_as_it_was(case, above):
    if isinstance(case["makes"], dict):
        return
    stanzas = "".join(case["makes"]).rstrip("\n") + "\n"
    name = case["what"][0]
    text = ifupdown.put(FILE if above else "", name, stanzas)
    assert ifupdown.find(text, name).render(name) == stanzas
    assert ifupdown.put(text, name, stanzas) == text


def test_names_of_options():
    assert {"ipaddr", "ipv6ipaddr", "ipv6ttl", "dns-nameservers"} < options.known()
    assert "ipadr" not in options.known()


def test_global_settings_of_redhat():
    current = ifcfg.parse('# c\nNETWORKING="yes"\nHOSTNAME="old"\nGATEWAY=1.2.3.4\n')
    assert ifcfg.system({"hostname": "new", "retain_settings": True}, current) == (
        'NETWORKING="yes"\nHOSTNAME="new"\nGATEWAY=1.2.3.4\n'
    )
    assert ifcfg.system({"enabled": True, "hostname": "new", "nozeroconf": True}, current) == (
        "NETWORKING=yes\nHOSTNAME=new\nNOZEROCONF=yes\n"
    )
    with pytest.raises(InvocationError, match="networking"):
        ifcfg.system({"hostname": "a"}, {})


def test_netplans_documents():
    texts = ["{", "network: {bonds: {bond0: {}}, renderer: NetworkManager}"]
    assert netplan.renderer_of(texts) == "NetworkManager"
    assert netplan.section_of("bond0", texts) == "bonds"
    assert netplan.section_of("eth0", texts) == "ethernets"
    assert netplan.routes([{"ipaddr": "10.0.0.0", "netmask": "255.0.0.0", "gateway": "10.1.1.1", "metric": "5"}]) == [
        {"to": "10.0.0.0/8", "via": "10.1.1.1", "metric": 5}
    ]
