"""What /proc and /sys say of machines of many kinds, laid out in a temporary directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecore.builtin.grains import hardware
from statecore.host.host import Host

#: What the machine shows -> (virtual, virtual_subtype)
MACHINES = {
    "bare": ({"proc/cpuinfo": "flags : fpu\n"}, ("physical", None)),
    "hypervisor alone": ({"proc/cpuinfo": "flags : fpu hypervisor\n"}, ("kvm", None)),
    "qemu": ({"sys/class/dmi/id/sys_vendor": "QEMU\n"}, ("kvm", None)),
    "vmware": ({"sys/class/dmi/id/product_name": "VMware Virtual Platform\n"}, ("VMware", None)),
    "virtualbox": ({"sys/class/dmi/id/product_name": "VirtualBox\n"}, ("VirtualBox", None)),
    "hyper-v": ({"sys/class/dmi/id/product_name": "Virtual Machine\n"}, ("VirtualPC", None)),
    "nitro": ({"sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, ("Nitro", "Amazon EC2")),
    "google": ({"sys/class/dmi/id/product_name": "Google Compute Engine\n"}, ("gce", None)),
    "ovirt": ({"sys/class/dmi/id/product_name": "oVirt Node\n"}, ("kvm", "ovirt")),
    "xen": ({"sys/class/dmi/id/product_name": "HVM domU\n"}, ("xen", "Xen HVM DomU")),
    "lxc": ({"proc/1/environ": "a=b\0container=lxc\0"}, ("container", "LXC")),
    "podman": ({"proc/1/environ": "container=podman\0"}, ("container", "Podman")),
    "docker by its group": ({"proc/1/cgroup": "0::/system.slice/docker-abc.scope\n"}, ("container", "Docker")),
    "kubernetes": (
        {"proc/1/cgroup": "0::/kubepods/pod1\n", "proc/cpuinfo": "flags : hypervisor\n"},
        ("kvm", "kubernetes"),
    ),
    "docker on kvm": (
        {"sys/class/dmi/id/sys_vendor": "QEMU\n", "proc/1/cgroup": "1:name=x:/docker/abc\n"},
        ("container", "Docker"),
    ),
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of which the kernel shows nothing yet."""
    monkeypatch.setattr(hardware, "_SYS", tmp_path / "sys")
    monkeypatch.setattr(hardware, "_PROC", tmp_path / "proc")
    # What this process is in must not be what the table says.
    monkeypatch.setattr(hardware, "_MARKER_FILES", {})
    return tmp_path


def _lay(machine: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = machine / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.mark.parametrize("name", MACHINES)
def test_what_a_machine_is(machine: Path, name: str) -> None:
    files, told = MACHINES[name]
    _lay(machine, files)
    grains = hardware.virtual(Host(machine), {})
    assert (grains["virtual"], grains.get("virtual_subtype")) == told


def test_processors_of_an_arm_machine(machine: Path) -> None:
    _lay(
        machine,
        {
            "proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd\n\nprocessor\t: 1\nFeatures\t: fp asimd\n",
            "proc/meminfo": "MemTotal:  2097152 kB\nMemFree: 1 kB\nSwapTotal: 1048576 kB\n",
        },
    )
    grains = hardware.processors(Host(machine), {})
    assert (grains["num_cpus"], grains["cpu_flags"], grains["mem_total"], grains["swap_total"]) == (
        2,
        ["fp", "asimd"],
        2048,
        1024,
    )


def test_firmware(machine: Path) -> None:
    _lay(
        machine,
        {
            "sys/class/dmi/id/product_uuid": "ABC-DEF\n",
            "sys/class/dmi/id/bios_version": "1.2\n",
            "sys/class/dmi/id/product_serial": "\n",
        },
    )
    assert hardware.firmware(Host(machine), {}) == {
        "uuid": "abc-def",
        "biosversion": "1.2",
        "efi": False,
        "efi-secure-boot": False,
    }


@pytest.mark.parametrize(("last", "secure"), [(b"\x01", True), (b"\x00", False)])
def test_secure_boot(machine: Path, last: bytes, secure: bool) -> None:
    folder = machine / "sys/firmware/efi/efivars"
    folder.mkdir(parents=True)
    (folder / "SecureBoot-1").write_bytes(b"\x06\0\0\0" + last)
    grains = hardware.firmware(Host(machine), {})
    assert (grains["efi"], grains["efi-secure-boot"]) == (True, secure)


def test_disks_and_raids(machine: Path) -> None:
    _lay(
        machine,
        {
            "sys/block/sda/queue/rotational": "1\n",
            "sys/block/nvme0n1/queue/rotational": "0\n",
            "sys/block/odd/queue/rotational": "x\n",
            "proc/mdstat": "Personalities : [raid1]\nmd1 : active raid1\n      1 blocks\nmd0 : active\nunused devices: <none>\n",
        },
    )
    assert hardware.disks(Host(machine), {}) == {"disks": ["sda"], "ssds": ["nvme0n1"], "mdadm": ["md0", "md1"]}


def test_graphics(machine: Path) -> None:
    _lay(
        machine,
        {
            "sys/bus/pci/devices/a/class": "0x030000\n",
            "sys/bus/pci/devices/a/vendor": "0x10de\n",
            "sys/bus/pci/devices/a/device": "0x2204\n",
            "sys/bus/pci/devices/b/class": "0x030000\n",
            "sys/bus/pci/devices/b/vendor": "0x1b36\n",
            "sys/bus/pci/devices/b/device": "0x0100\n",
            "sys/bus/pci/devices/c/class": "0x020000\n",
            "usr/share/misc/pci.ids": "10dd  Other\n\t2204  No\n10de  NVIDIA Corporation\n\t2203  Not\n\t2204  GA102\n",
        },
    )
    assert hardware.graphics(Host(machine), {}) == {
        "num_gpus": 2,
        "gpus": [{"vendor": "nvidia", "model": "GA102"}, {"vendor": "unknown", "model": "1b36:0100"}],
    }
    assert hardware.graphics(Host(machine), {"enable_gpu_grains": False}) == {}


def test_kernel_parameters(machine: Path) -> None:
    _lay(machine, {"proc/cmdline": 'quiet root=/dev/vda1 a="b c" x=y=z\n'})
    told = [("quiet", None), ("root", "/dev/vda1"), ("a", "b c"), ("x", None)]
    assert hardware.kernel_parameters(Host(machine), {}) == {"kernelparams": told}
    _lay(machine, {"proc/cmdline": "an 'open quote\n"})
    assert hardware.kernel_parameters(Host(machine), {})["kernelparams"][0] == ("an", None)
