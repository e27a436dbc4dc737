"""Grains of the hardware: processors, memory, disks, firmware and virtualization, read from the kernel that the minion
runs on.

No program is run. Where Salt runs systemd-detect-virt, dmidecode or lspci, the files that these programs read are read
directly.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles.plain_text import host_text, text

_SYS, _PROC = Path("/sys"), Path("/proc")

#: Grain -> file of /sys/class/dmi/id.
_DMI: Mapping[str, str] = {
    "biosversion": "bios_version",
    "biosvendor": "bios_vendor",
    "biosreleasedate": "bios_date",
    "boardname": "board_name",
    "productname": "product_name",
    "manufacturer": "sys_vendor",
    "uuid": "product_uuid",
    "serialnumber": "product_serial",
}

#: (text in product, vendor or BIOS name, virtual, virtual_subtype). The first match counts.
_PRODUCTS: tuple[tuple[str, str, str], ...] = (
    ("amazon ec2", "Nitro", "Amazon EC2"),
    ("google", "gce", ""),
    ("ovirt", "kvm", "ovirt"),
    ("rhev hypervisor", "kvm", "rhev"),
    ("nutanix", "kvm", "Nutanix AHV"),
    ("kvm", "kvm", ""),
    ("openstack", "kvm", ""),
    ("qemu", "kvm", ""),
    ("vmware", "VMware", ""),
    ("virtualbox", "VirtualBox", ""),
    ("innotek gmbh", "VirtualBox", ""),
    ("hvm domu", "xen", "Xen HVM DomU"),
    ("xen", "xen", ""),
    ("bochs", "kvm", ""),
    ("parallels", "Parallels", ""),
    ("bhyve", "bhyve", ""),
    ("virtual machine", "VirtualPC", ""),
)

#: Word of ``container=`` in the environment of process 1 -> virtual_subtype.
_CONTAINERS: Mapping[str, str] = {
    "lxc": "LXC",
    "lxc-libvirt": "LXC",
    "docker": "Docker",
    "podman": "Podman",
    "oci": "Podman",
}

#: Marker file of a container engine -> the engine.
_MARKER_FILES: Mapping[str, str] = {"/run/.containerenv": "Podman", "/.dockerenv": "Docker"}

#: PCI vendor id -> Salt's name of the vendor.
_GPU_VENDORS: Mapping[str, str] = {
    "0x1002": "amd",
    "0x1013": "cirrus logic",
    "0x102b": "matrox",
    "0x10de": "nvidia",
    "0x15ad": "vmware",
    "0x1a03": "aspeed",
    "0x8086": "intel",
}

#: Paths of the list of PCI device names.
_PCI_IDS = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")


def processors(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains num_cpus, cpu_model, cpu_flags, mem_total and swap_total (both in MiB)."""
    cpuinfo = text(_PROC / "cpuinfo")
    memory = dict(re.findall(r"^(\w+):\s+(\d+) kB", text(_PROC / "meminfo"), re.MULTILINE))
    model = re.search(r"^(?:model name|Processor|cpu)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    if model:
        model_name = model[1].strip()
    else:
        # Imported here to save memory: nearly every kernel has the name in cpuinfo.
        import platform

        model_name = platform.processor()
    return {
        "num_cpus": len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)) or os.cpu_count() or 1,
        "cpu_model": model_name or "Unknown",
        "cpu_flags": flags[1].split() if flags else [],
        "mem_total": int(memory.get("MemTotal", 0)) // 1024,
        "swap_total": int(memory.get("SwapTotal", 0)) // 1024,
    }


def firmware(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains that the firmware provides and this user may read: biosversion, manufacturer, productname,
    serialnumber, uuid and others.

    Also return the grains efi and efi-secure-boot.
    """
    found = {grain: text(_SYS / "class/dmi/id" / name).strip() for grain, name in _DMI.items()}
    found = {grain: value for grain, value in found.items() if (_SYS / "class/dmi/id" / _DMI[grain]).exists() and value}
    if "uuid" in found:
        found["uuid"] = found["uuid"].lower()
    return {**found, **_efi(_SYS / "firmware/efi")}


def kernel_parameters(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grain kernelparams: a list of (name, value) for each word of the kernel's command line. The value is
    None for a word without "=".
    """
    line = text(_PROC / "cmdline")
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    parts = (word.split("=") for word in words)
    return {"kernelparams": [(each[0], each[1].strip('"') if len(each) == 2 else None) for each in parts]}


def disks(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains disks (names of rotating disks), ssds (names of other disks), and mdadm (names of software
    RAIDs, if the kernel supports them).
    """
    found: dict[str, list[str]] = {"disks": [], "ssds": []}
    for name in _names(_SYS / "block"):
        place = _SYS / "block" / name
        if not os.path.realpath(place).startswith("/sys/devices/virtual/"):
            kind = {"0": "ssds", "1": "disks"}.get(text(place / "queue/rotational")[:1])
            if kind:
                found[kind].append(name)
    raids = text(_PROC / "mdstat")
    if raids:
        lines = (line for line in lines_of(raids) if not line.startswith(("Personalities : ", "unused devices:")))
        found["mdadm"] = sorted({line.split(" : ")[0] for line in lines if " : " in line})
    return {**found}


def graphics(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains num_gpus and gpus, a list of ``{"vendor", "model"}`` of the graphics cards on the PCI bus.
    Return {} if the option ``enable_gpu_grains`` is False.
    """
    if opts.get("enable_gpu_grains", True) is False:
        return {}
    found = []
    for name in _names(_SYS / "bus/pci/devices"):
        place = _SYS / "bus/pci/devices" / name
        # PCI classes: display controllers, processing accelerators.
        if text(place / "class").startswith(("0x03", "0x12")):
            vendor, device = text(place / "vendor").strip(), text(place / "device").strip()
            found.append({"vendor": _GPU_VENDORS.get(vendor, "unknown"), "model": _model(host, vendor, device)})
    return {"num_gpus": len(found), "gpus": found}


def virtual(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grain virtual (physical, kvm, VMware, container, ...) and, if it is known, virtual_subtype."""
    product = _dmi_words()
    kind, subtype = next(((kind, more) for word, kind, more in _PRODUCTS if word in product), ("", ""))
    if not kind:
        kind = "kvm" if re.search(r"^flags\s*:.*\bhypervisor\b", text(_PROC / "cpuinfo"), re.MULTILINE) else "physical"
    if (contained := _container()) is not None:
        kind, subtype = contained[0] or kind, contained[1]
    return {"virtual": kind, **({"virtual_subtype": subtype} if subtype else {})}


def _container() -> tuple[str, str] | None:
    """Return the grains (virtual, virtual_subtype) of the container that the minion runs in, None outside of
    containers.

    ``virtual`` is "" for kinds of containers that only set virtual_subtype, as in Salt.
    """
    environment = text(_PROC / "1/environ").replace("\0", "\n")
    declared = re.search(r"^container=(\S+)", environment, re.MULTILINE)
    word = declared[1] if declared else ""
    engine = next((name for path, name in _MARKER_FILES.items() if Path(path).exists()), "")
    groups = text(_PROC / "1/cgroup")
    if word in _CONTAINERS:
        return "container", _CONTAINERS[word]
    if ":/lxc/" in groups:
        return "container", "LXC"
    if "/kubepods" in groups:
        return "container" if engine else "", "kubernetes"
    if ":/libpod_parent/" in groups:
        return "", "libpod"
    if engine or re.search(r":/(?:system\.slice/docker|docker(?:-ce)?/)", groups):
        return "container", engine or "Docker"
    return None


def _dmi_words() -> str:
    """Return the names of product, vendor and BIOS from the firmware in one lower-case text; "" if the kernel has no
    DMI data.
    """
    names = ("product_name", "sys_vendor", "bios_vendor", "board_vendor")
    return "\n".join(text(_SYS / "class/dmi/id" / name) for name in names).lower()


def _efi(place: Path) -> dict[str, bool]:
    variables = next((place / name for name in ("efivars", "vars") if (place / name).exists()), None)
    if variables is None:
        return {"efi": False, "efi-secure-boot": False}
    secure = [each for each in _names(variables) if each.startswith("SecureBoot-")]
    file = variables / secure[0] / ("data" if variables.name == "vars" else "") if len(secure) == 1 else None
    try:
        return {"efi": True, "efi-secure-boot": file is not None and file.read_bytes()[-1:] == b"\x01"}
    except OSError:
        return {"efi": True, "efi-secure-boot": False}


def _model(host: ManagedHost, vendor: str, device: str) -> str:
    """Return the model name of a PCI device from the host's pci.ids file. If the file does not have the device, return
    its vendor and device numbers as text.
    """
    numbers = f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}"
    for path in _PCI_IDS:
        own = re.search(rf"^{vendor.removeprefix('0x')}  .*\n((?:[\t#].*\n)*)", host_text(host, path), re.MULTILINE)
        named = re.search(rf"^\t{device.removeprefix('0x')}  (.*)$", own[1], re.MULTILINE) if own else None
        if named:
            return named[1].strip()
    return numbers


def _names(directory: Path) -> Iterator[str]:
    try:
        yield from sorted(entry.name for entry in directory.iterdir())
    except OSError:
        return
