"""A node: a Debian tree in namespaces of its own, with a real systemd as process 1, containerd, a kubelet and kube-proxy.

What the node writes lies in STATE/nodes/NAME: a layer over the tree, and the directories of containerd and the kubelet, which
cannot lie on a layer. The kubelet works with the machine's cgroups of version 1, in a branch of its own. What namespaces do not
divide is withheld: modules, the clock, and /proc/sys but for the network.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from tests.cluster import control_plane
from tests.cluster.places import (
    ADDRESSES,
    CACHE,
    DNS,
    POD_RANGES,
    PODS,
    STATE,
    ClusterError,
    inside,
    namespace,
    run,
    until,
)

#: Packages of a node's tree.
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "procps", "iproute2", "kmod", "netbase", "ca-certificates"),
    *("containerd", "runc", "nftables", "python3", "cron", "apt-utils"),
)

#: Packages that the example's highstate installs: a node has no way out, they lie in a repository on its own disk.
OFFERED = ("nginx-light",)

#: Of the processors, where the machine has other work: what sixteen processes of it get.
_SHARES = 16 * 1024

#: Seconds for a boot.
_BOOT_SECONDS = 240.0

#: Capabilities whose effects leave the namespaces. The kubelet reads the kernel's log, so syslog stays.
_WITHHELD = "-sys_time,-sys_module,-mac_admin,-wake_alarm,-block_suspend"

#: What the kubelet wants of the whole machine, which it finds to be so already.
_PRETENDED = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}

#: $1 tree, $2 directory of the node, $3 name, $4 programs, $5 keys, $6 volumes, $7 capabilities to withhold, $8 cgroups as lines
#: "DIRECTORY OPTIONS", $9 pretended values as lines "FILE VALUE".
_BOOT = r"""
set -eu
tree=$1 own=$2 name=$3 programs=$4 keys=$5 volumes=$6 withheld=$7 cgroups=$8 pretended=$9
mount --make-rprivate /
mkdir -p "$own/upper" "$own/work" "$own/root" "$own/containerd" "$own/kubelet" "$own/pretended"
mount -t overlay overlay -o "xino=on,lowerdir=$tree,upperdir=$own/upper,workdir=$own/work" "$own/root"
cd "$own/root"
shown() {  # FROM TO [ro]
    mkdir -p ".$2"
    mount --rbind "$1" ".$2"
    [ -z "${3:-}" ] || mount -o remount,bind,ro ".$2"
}
shown "$own/containerd" /var/lib/containerd
shown "$own/kubelet" /var/lib/kubelet
shown "$volumes" /var/lib/volumes
shown "$programs" /opt/cluster/bin ro
shown "$keys" "$keys" ro
mount -t proc proc proc -o nosuid,noexec,nodev
mount --bind proc/sys proc/sys
mount --bind proc/sys/net proc/sys/net
echo "$pretended" | while read -r file value; do
    echo "$value" >"$own/pretended/$(echo "$file" | tr / .)"
    mount --bind "$own/pretended/$(echo "$file" | tr / .)" "proc/sys/$file"
done
mount -o remount,bind,ro proc/sys
mount -t sysfs sysfs sys -o ro,nosuid,noexec,nodev
mount -t tmpfs tmpfs sys/fs/cgroup -o mode=755,nosuid,noexec,nodev
echo "$cgroups" | while read -r directory options; do
    mkdir "sys/fs/cgroup/$directory"
    if [ "$options" = 2 ]; then
        mount -t cgroup2 cgroup2 "sys/fs/cgroup/$directory" -o nosuid,noexec,nodev
    else
        mount -t cgroup cgroup "sys/fs/cgroup/$directory" -o "nosuid,noexec,nodev,$options"
    fi
done
# systemd would mount what hierarchies there are besides, and both nodes would share their roots.
mount -o remount,ro sys/fs/cgroup
mount -t tmpfs tmpfs run -o mode=755,nosuid,nodev
mount -t tmpfs tmpfs dev -o mode=755,nosuid
for device in null zero full random urandom tty kmsg; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm .old
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666,mode=620,gid=5
mount -t tmpfs tmpfs dev/shm -o mode=1777
mount -t mqueue mqueue dev/mqueue 2>/dev/null || true
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
pivot_root . .old
umount -l /.old
rmdir /.old
# Volumes of pods are mounted by the kubelet, and seen by containers that run already.
mount --make-rshared /
hostname "$name"
exec env -i container=saltern-cluster PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    setpriv --bounding-set "$withheld" /sbin/init --log-target=console
"""

#: Namespaces of a node, besides that of its network.
_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child")

_UNIT = """[Unit]
Description={what}
After={after}

[Service]
ExecStart={words}
Restart=always
RestartSec=2
KillMode={kill}
Delegate=yes
LimitNOFILE=1048576
Environment=PATH=/opt/cluster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

[Install]
WantedBy=multi-user.target
"""

_CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/saltern-cluster/pause:1"
  # As containerd 2 does by itself: the name server binds port 53, and is nobody.
  enable_unprivileged_ports = true
  # Root of this machine may have no CAP_SYS_RESOURCE, and no container may then be spared more than containerd itself.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cluster/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def tree() -> Path:
    """The Debian tree of all nodes, made once by debootstrap. Raises ClusterError with its last words."""
    made = CACHE / "tree"
    if (made / "complete").exists():
        return made / "root"
    run(["rm", "-rf", made])
    made.mkdir(parents=True)
    root = made / "root"
    included = f"--include={','.join(PACKAGES)}"
    run(["nice", "-n", "10", "debootstrap", "--variant=minbase", included, "bookworm", root], seconds=3600)
    script = f"""
        set -e
        apt-get update -qq
        mkdir -p /opt/packages
        cd /opt/packages
        apt-get install -qq -y --no-install-recommends --download-only -o Dir::Cache::archives=/opt/packages {" ".join(OFFERED)}
        rm -rf partial lock
        apt-ftparchive packages . >Packages
        echo 'deb [trusted=yes] file:/opt/packages ./' >/etc/apt/sources.list
        apt-get clean
        rm -rf /var/lib/apt/lists/*
        apt-get update -qq
        systemctl mask systemd-resolved.service systemd-networkd.service systemd-logind.service getty.target
        : >/etc/machine-id
    """
    run(["chroot", root, "sh", "-c", script], seconds=1800)
    (made / "complete").touch()
    return root


def hierarchies() -> list[tuple[Path, str]]:
    """The machine's cgroup hierarchies: where each is mounted, and its options; "2" for that of version 2."""
    found = []
    for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
        _, point, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found.append((Path(point), "2"))
        elif kind == "cgroup":
            kept = [
                word for word in options.split(",") if word not in ("rw", "ro", "relatime", "nosuid", "nodev", "noexec")
            ]
            found.append((Path(point), ",".join(["none", *kept] if kept[0].startswith("name=") else kept)))
    return found


class Node:
    """A node by its name; it may run or not, and it is the same one for every process that asks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.directory = STATE / "nodes" / name
        self._process = f"node-{name}"

    # --------------------------------------------------------------------------------------------------------------- start, end

    def start(self, programs: Path, lower: Path) -> None:
        """Boot the node; return when its containerd answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        volumes = STATE / "volumes"
        volumes.mkdir(exist_ok=True)
        self._write_files()
        self._enter = self._make_cgroups()
        cgroups = "\n".join(f"{point.name} {options}" for point, options in hierarchies())
        pretended = "\n".join(f"{file} {value}" for file, value in _PRETENDED.items())
        script = f'{self._enter}exec unshare {" ".join(_NAMESPACES)} sh -c "$0" sh "$@"'
        arguments: list[str | Path] = [
            lower,
            self.directory,
            self.name,
            programs,
            control_plane.KEYS,
            volumes,
            _WITHHELD,
            cgroups,
            pretended,
        ]
        control_plane.spawn(self._process, inside(self.name, ["sh", "-c", script, _BOOT, *map(str, arguments)]))
        self.await_boot()

    def await_boot(self) -> None:
        """Wait until systemd runs and containerd answers."""

        def answers() -> bool:
            if not control_plane.running(self._process):
                raise ClusterError(f"node {self.name} ended: {STATE}/log/{self._process}.log")
            return bool(self.pid and "server" in self.run("ctr", "version").lower())

        until(answers, _BOOT_SECONDS, f"containerd of {self.name} answers ({STATE}/log/{self._process}.log)")

    @property
    def pid(self) -> int:
        """Number of the node's process 1, as this machine sees it; 0 while there is none."""
        parent = control_plane.running(self._process)
        if not parent:
            return 0
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii").split()
        for child in children:
            with contextlib.suppress(FileNotFoundError):
                if Path(f"/proc/{child}/comm").read_text("utf-8").strip() in ("systemd", "init"):
                    return int(child)
        return 0

    def stop(self, *, cleanly: bool = True) -> None:
        """End everything of the node. ``cleanly``: services are asked first, as at a shutdown; else it is a power cut."""
        first = self.pid
        if first and cleanly:
            # What systemd takes for a halt of a container.
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGRTMIN + 4)
            deadline = time.monotonic() + 60
            while control_plane.running(self._process) and time.monotonic() < deadline:
                time.sleep(0.2)
        if first:
            self._kill_all()
            # The end of process 1 is the end of all.
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
        control_plane.end([self._process])
        self._remove_cgroups()

    # ---------------------------------------------------------------------------------------------------------------- commands

    def run(self, *words: str, stdin: str | None = None, seconds: float = 300, check: bool = True) -> str:
        """stdout of a program of the node. Raises ClusterError."""
        own = ["env", "-i", "PATH=/opt/cluster/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/root"]
        entered = ["nsenter", "--all", "--target", str(self.pid), *own, *words]
        return run(entered, stdin=stdin, seconds=seconds, check=check)

    def path(self, inner: str) -> Path:
        """A file of the node, as this machine reaches it while the node runs."""
        return Path(f"/proc/{self.pid}/root{inner}")

    def log(self, unit: str, lines: int = 40) -> str:
        """The last lines of a unit."""
        return self.run("journalctl", "--no-pager", "-u", unit, "-n", str(lines), check=False)

    def bring(self, archive: Path) -> None:
        """Import an archive of images."""
        with archive.open("rb") as opened:
            done = subprocess.run(
                [
                    *("nsenter", "--all", "--target", str(self.pid), "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"),
                    *("ctr", "-n", "k8s.io", "images", "import", "-"),
                ],
                stdin=opened,
                capture_output=True,
                text=True,
                timeout=1800,
                check=False,
            )
        if done.returncode:
            raise ClusterError(f"{archive} into {self.name}: {done.stdout}{done.stderr}")

    # ------------------------------------------------------------------------------------------------------------------- parts

    def _write_files(self) -> None:
        """The files of the node, in its layer, before its first boot."""
        keys = control_plane.KEYS
        kubelet = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "cgroupfs",
            # This machine's cgroups are of version 1.
            "failCgroupV1": False,
            "clusterDNS": [DNS],
            "clusterDomain": "cluster.local",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{keys}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{keys}/node-{self.name}.crt",
            "tlsPrivateKeyFile": f"{keys}/node-{self.name}.key",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "resolvConf": "/etc/resolv.conf",
            # The disk is the machine's, and others fill it; images are brought once.
            "evictionHard": {"nodefs.available": "1Gi", "memory.available": "100Mi"},
            "imageGCHighThresholdPercent": 100,
            "imageMinimumGCAge": "24h",
            "serializeImagePulls": True,
        }
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clusterCIDR": PODS,
            "hostnameOverride": self.name,
            "clientConnection": {"kubeconfig": f"{keys}/proxy.kubeconfig"},
            # Values of the whole machine are left as they are.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
        network = {
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "ptp",
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": POD_RANGES[self.name]}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                }
            ],
        }
        words = {
            "kubelet": "/opt/cluster/bin/kubelet --config=/etc/kubernetes/kubelet.json "
            f"--kubeconfig={keys}/node-{self.name}.kubeconfig --node-ip={ADDRESSES[self.name]} --hostname-override={self.name}",
            "kube-proxy": "/opt/cluster/bin/kube-proxy --config=/etc/kubernetes/proxy.json",
        }
        hosts = "".join(f"{address} {node}\n" for node, address in ADDRESSES.items())
        files = {
            "/etc/kubernetes/kubelet.json": json.dumps(kubelet, indent=1),
            "/etc/kubernetes/proxy.json": json.dumps(proxy, indent=1),
            "/etc/cni/net.d/10-pods.conflist": json.dumps(network, indent=1),
            "/etc/containerd/config.toml": _CONTAINERD,
            "/etc/hostname": f"{self.name}\n",
            "/etc/hosts": f"127.0.0.1 localhost\n{hosts}",
            "/etc/resolv.conf": "",
        }
        for name, command in words.items():
            unit = _UNIT.format(what=name, after="containerd.service", words=command, kill="process")
            files[f"/etc/systemd/system/{name}.service"] = unit
        upper = self.directory / "upper"
        for name, text in files.items():
            path = upper / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        wanted = upper / "etc/systemd/system/multi-user.target.wants"
        wanted.mkdir(parents=True, exist_ok=True)
        for name in words:
            link = wanted / f"{name}.service"
            link.unlink(missing_ok=True)
            link.symlink_to(f"../{name}.service")

    def _make_cgroups(self) -> str:
        """Make the node's branch of each hierarchy; return the script by which a process enters it."""
        script = ""
        for point, _ in hierarchies():
            branch = point / namespace(self.name)
            branch.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):
                if point.name == "cpuset":
                    (branch / file).write_text((point / file).read_text())
            if point.name == "cpuset":
                (branch / "cgroup.clone_children").write_text("1")
            if (shares := branch / "cpu.shares").exists():
                # A node beside processes of the machine would get what one of them gets.
                shares.write_text(f"{_SHARES}")
            script += f'echo $$ >"{branch}/cgroup.procs"; '
        return script

    def _kill_all(self) -> None:
        """End all processes at one moment: none may see another one's end, and report it."""
        (freezer,) = (point for point, options in hierarchies() if "freezer" in options.split(","))
        branch = freezer / namespace(self.name)
        state = branch / "freezer.state"
        state.write_text("FROZEN")
        try:
            until(lambda: state.read_text().strip() == "FROZEN", 20, f"all processes of {self.name} are frozen", 0.05)
            for group in (branch, *(one for one in branch.rglob("*") if one.is_dir())):
                for pid in (group / "cgroup.procs").read_text("ascii").split():
                    os.kill(int(pid), signal.SIGKILL)
        finally:
            state.write_text("THAWED")

    def _remove_cgroups(self) -> None:
        deadline = time.monotonic() + 20
        branches = [point / namespace(self.name) for point, _ in hierarchies()]
        while any(branch.exists() for branch in branches) and time.monotonic() < deadline:
            for branch in branches:
                found = [branch, *(one for one in branch.rglob("*") if one.is_dir())] if branch.exists() else []
                for path in sorted(found, reverse=True):
                    with contextlib.suppress(OSError):
                        path.rmdir()
            time.sleep(0.1)
