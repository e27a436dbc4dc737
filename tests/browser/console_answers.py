"""What made-up minions answer: state runs, a plan, a graph, an explanation, and a fleet of any size."""

from __future__ import annotations

import hashlib
from typing import Any

SYSTEMS = (("Debian", "12"), ("Debian", "13"), ("Ubuntu", "24.04"), ("Rocky", "9.4"))
KINDS = ("web", "db", "cache", "edge", "build")

#: A name, value or text that is HTML, script, and words of a shell. A page must show it as it is.
HOSTILE = "<img src=x onerror=window.hacked=1>\"'`$(id)&amp;{{7*7}}"

Rows = dict[str, dict[str, Any]]


def fleet(count: int, now_ms: int) -> Rows:
    """Return {minion id: row of the fleet}; every fifteenth minion is away, every seventh is a stock minion."""
    found = {}
    for number in range(count):
        system, release = SYSTEMS[number * 7 % 4]
        away = number % 15 == 14
        name = f"{KINDS[number % 5]}-{number // 5:04}.example.net"
        found[name] = {
            "id": name,
            "seen": now_ms - (number * 977 % 90_000_000 + 200_000 if away else number * 37 % 50_000),
            "present": not away,
            "saltern": number % 7 != 6,
            "os": system,
            "release": release,
            "arch": "amd64" if number % 9 else "arm64",
            "virtual": "kvm",
            "salt": "3008.3" if number % 11 else "3007.1",
            "address": f"10.{number // 60000}.{number // 250 % 250}.{number % 250 + 1}",
            "cpus": 2 << (number % 4),
            "memory": 2048 << (number % 5),
        }
    return found


def finger(name: str) -> str:
    """Return a made-up fingerprint in the form of a real one."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return ":".join(digest[at : at + 2] for at in range(0, 64, 2))


DIFF = """--- /etc/nginx/nginx.conf
+++ /etc/nginx/nginx.conf
@@ -1,7 +1,7 @@
 user www-data;
-worker_processes 2;
+worker_processes auto;
 events {
-    worker_connections 512;
+    worker_connections 4096;
 }
"""

#: Module, function, ID, name and SLS of the states of a run.
STATES = (
    ("pkg", "installed", "nginx", "nginx", "nginx"),
    ("file", "managed", "nginx-conf", "/etc/nginx/nginx.conf", "nginx"),
    ("file", "managed", "site", "/etc/nginx/sites-enabled/shop", "nginx.sites"),
    ("service", "running", "nginx", "nginx", "nginx"),
    *(("user", "present", f"user-{number}", f"user{number}", "users") for number in range(8)),
    *(("file", "managed", f"motd-{number}", f"/etc/motd.d/{number}", "motd") for number in range(6)),
    *(("sysctl", "present", f"net-{number}", f"net.core.{number}", "kernel") for number in range(6)),
    ("cmd", "run", "warm-cache", "/usr/local/bin/warm", "nginx.sites"),
)

_BUSY = "Job for nginx.service failed: bind() to 0.0.0.0:443 failed (98: Address already in use)"


def state_run(number: int, *, fails: bool = False) -> dict[str, Any]:
    """Return the running dictionary of one minion."""
    run = {}
    for order, (module, function, id_, name, sls) in enumerate(STATES):
        entry: dict[str, Any] = {
            "name": name,
            "__id__": id_,
            "__sls__": sls,
            "__run_num__": order,
            "result": True,
            "changes": {},
            "comment": "as it should be",
            "duration": 3.5 + number % 9,
        }
        if order == 1 and number % 3 == 0:
            entry |= {"changes": {"diff": DIFF}, "comment": "File /etc/nginx/nginx.conf updated"}
        if order == 0 and number % 4 == 0:
            entry |= {"changes": {"nginx": {"old": "1.22.1", "new": "1.24.0"}}, "comment": "1 package was installed"}
        if order == 6 and number % 5 == 0:
            entry |= {"changes": {"shell": "/bin/bash"}}
        if fails and order == 3:
            entry |= {"result": False, "comment": _BUSY}
        if fails and order == len(STATES) - 1:
            entry |= {"result": False, "__state_ran__": False, "comment": "One or more requisite failed: nginx.nginx"}
        run[f"{module}_|-{id_}_|-{name}_|-{function}"] = entry
    return run


def _planned(verdict: str, **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"comment": "", "warnings": [], "changes": {}, "steps": [], "files": [], "because": []}
    return {"tag": more["id"], "verdict": verdict, **empty, **more}


PLAN = {
    "summary": "2 to change, 23 unchanged",
    "states": [
        _planned(
            "change",
            id="nginx-conf",
            function="file.managed",
            name="/etc/nginx/nginx.conf",
            sls="nginx",
            at="/srv/salt/nginx/init.sls:8",
            steps=["write /etc/nginx/nginx.conf"],
            files=[{"path": "/etc/nginx/nginx.conf", "diff": DIFF}],
        ),
        _planned(
            "unknown",
            id="nginx",
            function="service.running",
            name="nginx",
            sls="nginx",
            at="/srv/salt/nginx/init.sls:16",
            comment="it is restarted if its configuration changes",
            because=[{"requisite": "watch", "state": "file", "id": "nginx-conf"}],
        ),
    ],
}

GRAPH = {
    "states": [
        {
            "number": number,
            "id": id_,
            "function": f"{module}.{function}",
            "name": name,
            "sls": sls,
            "at": f"/srv/salt/{sls.replace('.', '/')}.sls:{number * 4}",
            "label": id_,
        }
        for number, (module, function, id_, name, sls) in enumerate(STATES[:8], 1)
    ],
    "requisites": [
        {"first": 1, "then": 2, "kind": "require"},
        {"first": 1, "then": 3, "kind": "require"},
        {"first": 2, "then": 4, "kind": "watch"},
        {"first": 3, "then": 4, "kind": "watch"},
        {"first": 5, "then": 6, "kind": "require"},
    ],
}

EXPLAIN = {
    "id": "nginx-conf",
    "sls": "nginx",
    "at": "/srv/salt/nginx/init.sls:7",
    "included_through": [{"sls": "web", "includes": "nginx", "at": "/srv/salt/web.sls:2"}],
    "extended_by": [],
    "states": [
        {
            "function": "file.managed",
            "name": "/etc/nginx/nginx.conf",
            "at": "/srv/salt/nginx/init.sls:8",
            "position": 2,
            "of": 25,
            "order": 10001,
            "why": ["its order is 10001: states without one are counted as they are declared"],
            "requisites": [
                {
                    "kind": "require",
                    "on": "pkg: nginx",
                    "by": "",
                    "at": "/srv/salt/nginx/init.sls:13",
                    "means": "every target succeeded: it runs; otherwise it fails, naming the targets",
                    "states": [],
                }
            ],
            "required_by": [
                {"id": "nginx", "function": "service.running", "at": "/srv/salt/nginx/init.sls:16"}
                | {"position": 4, "kind": "watch"}
            ],
            "arguments": [
                {"name": "name", "value": "/etc/nginx/nginx.conf", "by": "", "at": "/srv/salt/nginx/init.sls:9"},
                {"name": "mode", "value": "0644", "by": "", "at": "/srv/salt/nginx/init.sls:11"},
            ],
        }
    ],
}

#: Function -> what every minion answers.
VALUES: dict[str, Any] = {
    "test.ping": True,
    "state.graph": GRAPH,
    "state.explain": EXPLAIN,
    "grains.items": {"os": "Debian", "osrelease": "12", "roles": ["web", "shop"]},
    "pillar.items": {"nginx": {"workers": "auto"}},
}


def answer(row: dict[str, Any], number: int, fun: str, arg: Any) -> tuple[Any, int]:
    """Return (return, return code) of a made-up minion, ``row`` of the fleet, for a function."""
    if fun in ("state.plan", "state.apply_plan") and not row["saltern"]:
        return f"'{fun}' is not available.", 254
    if fun == "state.plan":
        name = next((each["keep"] for each in arg if isinstance(each, dict) and "keep" in each), None)
        return {**PLAN, "plan": name}, 0
    if fun.startswith("state.apply"):
        test = any(isinstance(each, dict) and each.get("test") for each in arg)
        run = state_run(0 if test else number)
        if test:
            run = {tag: {**entry, "result": None if entry["changes"] else True} for tag, entry in run.items()}
        return run, 0
    return VALUES.get(fun, {"called": fun}), 0
