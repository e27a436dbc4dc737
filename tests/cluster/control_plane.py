"""etcd, the API server, the controllers and the scheduler: processes of this machine, in a network namespace of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.cluster import pki
from tests.cluster.places import (
    ADDRESSES,
    API,
    NODES,
    POD_RANGES,
    ROOT,
    SERVICES,
    STATE,
    ClusterError,
    inside,
    namespace,
    run,
    until,
)

KEYS = STATE / "pki"

#: Where the numbers of the processes are kept.
PIDS = STATE / "pids"

#: Seconds for a process to end.
_ENDING = 30.0


def etcd(program: Path, data: Path, port: int) -> Sequence[str | Path]:
    """The command of an etcd on loopback; its peers' port is the next one."""
    return [
        program,
        f"--data-dir={data}",
        "--name=cluster",
        f"--listen-client-urls=http://127.0.0.1:{port}",
        f"--advertise-client-urls=http://127.0.0.1:{port}",
        f"--listen-peer-urls=http://127.0.0.1:{port + 1}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{port + 1}",
        f"--initial-cluster=cluster=http://127.0.0.1:{port + 1}",
        # What is lost with the machine may be lost: nothing of it is kept.
        "--unsafe-no-fsync",
        # A machine that has other work is no dead leader.
        "--heartbeat-interval=1000",
        "--election-timeout=10000",
    ]


def api_server(program: Path, etcd_port: int, port: int, directory: Path) -> Sequence[str | Path]:
    """The command of an API server on API:port; ``directory``: what it writes."""
    return [
        program,
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        f"--advertise-address={API}",
        f"--secure-port={port}",
        f"--service-cluster-ip-range={SERVICES}",
        f"--tls-cert-file={KEYS}/apiserver.crt",
        f"--tls-private-key-file={KEYS}/apiserver.key",
        f"--client-ca-file={KEYS}/ca.crt",
        f"--kubelet-client-certificate={KEYS}/apiserver-kubelet.crt",
        f"--kubelet-client-key={KEYS}/apiserver-kubelet.key",
        f"--kubelet-certificate-authority={KEYS}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={KEYS}/service.pub",
        f"--service-account-signing-key-file={KEYS}/service.key",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--requestheader-client-ca-file={KEYS}/ca.crt",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={KEYS}/front-proxy.crt",
        f"--proxy-client-key-file={KEYS}/front-proxy.key",
        "--enable-aggregator-routing=true",
        f"--cert-dir={directory}",
    ]


def _words(programs: Path) -> dict[str, Sequence[str | Path]]:
    """The commands of the processes, in the order of their start."""
    of = {name: f"--kubeconfig={KEYS}/{name}.kubeconfig" for name in ("controller-manager", "scheduler")}
    return {
        "etcd": etcd(programs / "etcd", STATE / "etcd", 2379),
        "kube-apiserver": api_server(programs / "kube-apiserver", 2379, 6443, STATE / "apiserver"),
        "kube-controller-manager": [
            programs / "kube-controller-manager",
            of["controller-manager"],
            f"--authentication-kubeconfig={KEYS}/controller-manager.kubeconfig",
            f"--authorization-kubeconfig={KEYS}/controller-manager.kubeconfig",
            f"--service-account-private-key-file={KEYS}/service.key",
            f"--root-ca-file={KEYS}/ca.crt",
            f"--cluster-signing-cert-file={KEYS}/ca.crt",
            f"--cluster-signing-key-file={KEYS}/ca.key",
            "--use-service-account-credentials=true",
            "--allocate-node-cidrs=false",
            "--leader-elect=false",
            f"--cert-dir={STATE}/controller-manager",
        ],
        "kube-scheduler": [
            programs / "kube-scheduler",
            of["scheduler"],
            f"--authentication-kubeconfig={KEYS}/scheduler.kubeconfig",
            f"--authorization-kubeconfig={KEYS}/scheduler.kubeconfig",
            "--leader-elect=false",
            f"--cert-dir={STATE}/scheduler",
        ],
    }


def start(programs: Path) -> None:
    """Lay the network, make keys, start every process; return when the API server is ready."""
    for directory in (STATE, PIDS, STATE / "log"):
        directory.mkdir(parents=True, exist_ok=True)
    _lay_wires()
    pki.make(KEYS)
    kubectl = write_kubectl(STATE / "kubectl", programs)
    for name, words in _words(programs).items():
        spawn(name, inside("", words))
        if name == "kube-apiserver":
            await_ready(kubectl, name)


def write_kubectl(path: Path, programs: Path, *words: str) -> Path:
    """Write a program that is kubectl in the control plane's network, with some words before those of its user; return its path."""
    path.write_text(
        "#!/bin/sh\n# kubectl of this cluster, in the control plane's network.\n"
        f"export KUBECONFIG={KEYS}/admin.kubeconfig\n"
        f'exec nsenter --net=/run/netns/{namespace()} {" ".join([f"{programs}/kubectl", *words])} "$@"\n'
    )
    path.chmod(0o755)
    return path


def await_ready(kubectl: Path, name: str) -> None:
    """Return when an API server is ready; ``name``: that of its process."""
    what = f"{name} ready (its log: {STATE}/log/{name}.log)"
    until(lambda: run([kubectl, "get", "--raw", "/readyz"], seconds=30) == "ok", 300, what)


def spawn(name: str, words: Sequence[str | Path]) -> int:
    """Start a process that outlives this one, and note its number; what it says goes to STATE/log."""
    with (STATE / "log" / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=ROOT,
        )
    PIDS.mkdir(parents=True, exist_ok=True)
    (PIDS / name).write_text(json.dumps({"pid": process.pid, "started": _started(process.pid)}))
    return process.pid


def _started(pid: int) -> str:
    """When a process began, in ticks of the kernel: its number alone may be another process's by now."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def running(name: str) -> int:
    """Number of a process that `spawn` started and that runs; 0 if there is none."""
    try:
        noted = json.loads((PIDS / name).read_text())
    except FileNotFoundError:
        return 0
    pid = int(noted["pid"])
    return pid if noted["started"] and _started(pid) == noted["started"] and not _defunct(pid) else 0


def _defunct(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def end(names: Iterable[str]) -> None:
    """End processes that `spawn` started: SIGTERM, then SIGKILL."""
    for name in names:
        if pid := running(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + _ENDING
            while running(name) and time.monotonic() < deadline:
                time.sleep(0.1)
            if running(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        (PIDS / name).unlink(missing_ok=True)


def stop() -> None:
    """End the control plane, and remove its network."""
    end(["kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"])
    # API servers that an interrupted test left.
    end(sorted(path.name for path in PIDS.glob("*")))
    for name in ("", *NODES):
        if Path(f"/run/netns/{namespace(name)}").exists():
            run(["ip", "netns", "delete", namespace(name)])


def _lay_wires() -> None:
    """A bridge in the control plane's namespace, a namespace for each node, and routes to the pods."""
    present = {path.name for path in Path("/run/netns").glob("*")} if Path("/run/netns").exists() else set()
    if namespace() in present:
        raise ClusterError(f"the network namespace {namespace()} is there already: make cluster-down removes it")
    run(["ip", "netns", "add", namespace()])
    run(["ip", "-n", namespace(), "link", "set", "lo", "up"])
    run(["ip", "-n", namespace(), "link", "add", "wire", "type", "bridge"])
    run(["ip", "-n", namespace(), "address", "add", f"{API}/24", "dev", "wire"])
    run(["ip", "-n", namespace(), "link", "set", "wire", "up"])
    for node in NODES:
        run(["ip", "netns", "add", namespace(node)])
        words = ["ip", "-n", namespace(), "link", "add", node, "type", "veth", "peer", "eth0", "netns", namespace(node)]
        run(words)
        run(["ip", "-n", namespace(), "link", "set", node, "master", "wire", "up"])
        run(["ip", "-n", namespace(node), "link", "set", "lo", "up"])
        run(["ip", "-n", namespace(node), "address", "add", f"{ADDRESSES[node]}/24", "dev", "eth0"])
        run(["ip", "-n", namespace(node), "link", "set", "eth0", "up"])
        run(["ip", "-n", namespace(node), "route", "add", "default", "via", API])
        run(inside(node, ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"]))
        run(["ip", "-n", namespace(), "route", "add", POD_RANGES[node], "via", ADDRESSES[node]])
        for other in NODES:
            if other != node:
                run(["ip", "-n", namespace(node), "route", "add", POD_RANGES[other], "via", ADDRESSES[other]])


def clear() -> None:
    """Remove what the cluster wrote."""
    shutil.rmtree(STATE, ignore_errors=True)
    if STATE.exists():
        sys.stderr.write(f"cluster: {STATE} could not be removed whole\n")
