"""The house's policies for manifests: each a function from objects to complaints, in one table.

A complaint names the object, and what would mend it. What is exempt stands here by name, with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import yaml

from saltern.kit.config.master import ConfigError, MasterOptions, check_master_option
from saltern.kit.config.minion_options import load_minion
from saltern.kit.links.sockets import LINKS
from tests.k8s.pools import REST_POOL, pool_of, pooled
from tests.k8s.rendered import ROOT, Object, Pod, of_kind, pods

Policy: TypeAlias = Callable[[Sequence[Object]], Iterator[str]]

#: The one that manages the node it runs on: root, the node's processes, the node's disk.
MINION = "minion"

#: What comes, does one thing and goes has nobody to probe it.
ONE_SHOT = frozenset({"keygen"})

#: Images of others, by their name; all else is a target of docker/Dockerfile.
FOREIGN_IMAGES = frozenset({"registry.k8s.io/git-sync/git-sync"})

#: Secrets that are brought, not made: who mounts them says so in docs/operations/kubernetes.md.
BROUGHT = frozenset({"saltern-redis", "saltern-tree-git-login"})

#: ConfigMaps that every namespace has.
GIVEN = frozenset({"kube-root-ca.crt"})

#: What a minion may have (libs/statecore/host/namespaces.py, and what package managers need); a thirteenth needs a reason here.
MINION_CAPABILITIES = frozenset(
    {
        *("SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT"),
        *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETUID"),
    }
)

#: Volumes that Pod Security's profile "restricted" allows.
_RESTRICTED_VOLUMES = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
)

#: Roles that remember: who may reach Redis (compose.yaml's network `store`).
REMEMBER = frozenset({"publisher", "mworker", "reactor", "maintenance"})

#: The links between roles: (client, server, port). The internal ones are the table LINKS of services/saltern/kit/links/sockets.py.
ALLOWED = (
    {(client, row.server, row.port(MasterOptions())) for row in LINKS.values() for client in row.clients}
    | {("front", "publisher", 4505), ("front", "reqserver", 4506), ("minion", "front", 4505), ("minion", "front", 4506)}
    | {(role, "redis", 6379) for role in REMEMBER}
)

_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/component", "app.kubernetes.io/part-of")

#: What secrets look like, in text that everybody may read.
_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|://[^/\s:@]*:[^/\s@]+@|(?im:^\s*[\w.-]*(password|passwd|token|secret)[\w.-]*\s*[:=]\s*\S)"
)


def _all(found: Sequence[Object]) -> Iterator[tuple[Pod, Object]]:
    for pod in pods(found):
        for container in pod.containers():
            yield pod, container


def _security(pod: Pod, container: Object) -> Mapping[str, Any]:
    return {**pod.spec.get("securityContext", {}), **container.get("securityContext", {})}


def _main(pod: Pod, container: Object) -> bool:
    """A container that the minion's exemptions are for: not one that runs before it."""
    return pod.component == MINION and container in pod.spec["containers"]


def non_root(found: Sequence[Object]) -> Iterator[str]:
    for pod, container in _all(found):
        security = _security(pod, container)
        if not _main(pod, container) and not (security.get("runAsNonRoot") and security.get("runAsUser", 0) > 10000):
            yield f"{pod}: {container['name']} may be root: set runAsNonRoot and a runAsUser above 10000"


def locked(found: Sequence[Object]) -> Iterator[str]:
    for pod, container in _all(found):
        own = container.get("securityContext", {})
        if not own.get("readOnlyRootFilesystem"):
            yield f"{pod}: {container['name']} can write its image: set readOnlyRootFilesystem"
        if own.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"{pod}: {container['name']} keeps capabilities: drop ALL"
        if _security(pod, container).get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{pod}: {container['name']} has no seccomp profile: RuntimeDefault"
        if own.get("privileged"):
            yield f"{pod}: {container['name']} is privileged"
        added = frozenset(own.get("capabilities", {}).get("add", ()))
        allowed = MINION_CAPABILITIES if _main(pod, container) else frozenset()
        if added - allowed:
            yield f"{pod}: {container['name']} adds {', '.join(sorted(added - allowed))}"
        if not _main(pod, container) and own.get("allowPrivilegeEscalation") is not False:
            yield f"{pod}: {container['name']} may gain privileges: set allowPrivilegeEscalation: false"


def restricted(found: Sequence[Object]) -> Iterator[str]:
    """What Pod Security asks of the namespace that a pod is in."""
    profiles = {
        one["metadata"]["name"]: one["metadata"].get("labels", {}).get("pod-security.kubernetes.io/enforce", "")
        for one in of_kind(found, "Namespace")
    }
    for pod in pods(found):
        profile = profiles.get(pod.namespace)
        if profile is None:
            yield f"{pod}: the namespace {pod.namespace} is not made here"
        elif pod.component == MINION:
            if profile != "privileged" or {one.component for one in pods(found) if one.namespace == pod.namespace} != {
                MINION
            }:
                yield f"{pod}: a minion needs a privileged namespace of its own"
        elif profile != "restricted":
            yield f"{pod}: the namespace {pod.namespace} is '{profile}', not restricted"
        else:
            kinds = {kind for volume in pod.spec.get("volumes", ()) for kind in volume if kind != "name"}
            for kind in sorted(kinds - _RESTRICTED_VOLUMES):
                yield f"{pod}: a restricted namespace takes no volume of kind {kind}"
            for field in ("hostPID", "hostIPC", "hostNetwork"):
                if pod.spec.get(field):
                    yield f"{pod}: a restricted namespace takes no {field}"


def roomy(found: Sequence[Object]) -> Iterator[str]:
    """A stranger's largest request, or a full queue, does not reach a memory limit: the options bite before the kernel does."""
    options = MasterOptions()
    largest, base = options.max_request_bytes, 64 * 1024 * 1024
    needs = {"reqserver": base + 2 * options.max_waiting_bytes + 3 * largest, "mworker": base + 8 * largest}
    for pod, container in _all(found):
        limit = str(container.get("resources", {}).get("limits", {}).get("memory", ""))
        need = needs.get(container["name"])
        if need is not None and container["name"] == "mworker":
            # Each worker of the parent may have the largest request.
            need *= int(
                next((one["value"] for one in container["env"] if one["name"] == "SALTERN_WORKER_PROCESSES"), 1)
            )
        if need is not None and limit and bytes_of(limit) < need:
            yield f"{pod}: {container['name']} may need {need} bytes, its limit is {limit}"


def bytes_of(quantity: str) -> int:
    """The number of bytes that a memory quantity of Kubernetes or of compose means."""
    number, unit = re.fullmatch(r"(\d+)([KMG]i|[kmg])", quantity).groups()  # type: ignore[union-attr]
    return int(number) * 1024 ** ("kmg".index(unit[0].lower()) + 1)


def bounded(found: Sequence[Object]) -> Iterator[str]:
    for pod, container in _all(found):
        given = container.get("resources", {})
        for what, name in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
            if name not in given.get(what, {}):
                yield f"{pod}: {container['name']} has no resources.{what}.{name}"


def probed(found: Sequence[Object]) -> Iterator[str]:
    for pod in pods(found):
        if pod.component in ONE_SHOT or pod.kind == "Job":
            continue
        for container in pod.containers(init=False):
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if probe not in container:
                    yield f"{pod}: {container['name']} has no {probe}"
            named = {port["name"] for port in container.get("ports", ())}
            for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
                get = container.get(probe, {}).get("httpGet", {})
                if get and get["port"] not in named:
                    yield f"{pod}: {container['name']}: {probe} asks a port that is not its own: {get['port']}"
                if get.get("port") == "metrics" and get["path"] != path:
                    yield f"{pod}: {container['name']}: {probe} asks {get['path']}, not {path}"


def tokenless(found: Sequence[Object]) -> Iterator[str]:
    """Nobody has a token of the API but by a volume, and a ServiceAccount that exists."""
    accounts = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in of_kind(found, "ServiceAccount")}
    for one in of_kind(found, "ServiceAccount"):
        if one.get("automountServiceAccountToken") is not False:
            yield f"ServiceAccount {one['metadata']['name']}: automountServiceAccountToken must be false"
    for pod in pods(found):
        if (pod.namespace, pod.spec.get("serviceAccountName", "default")) not in accounts:
            yield f"{pod}: its ServiceAccount is not made here"
        if pod.spec.get("automountServiceAccountToken") is not False:
            yield f"{pod}: automountServiceAccountToken must be false"
        if pod.spec.get("enableServiceLinks") is not False:
            yield f"{pod}: enableServiceLinks must be false: variables of Services look like options"


def explained(found: Sequence[Object]) -> Iterator[str]:
    """`kubectl describe pod` shows why a container ended; /readyz says why one cannot start, also where no file can be read."""
    for pod, container in _all(found):
        if container.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            yield f"{pod}: {container['name']}: set terminationMessagePolicy: FallbackToLogsOnError"
        if container.get("readinessProbe", {}).get("httpGet", {}).get("path") != "/readyz":
            continue
        said = {row["name"]: row.get("value", "") for row in container.get("env", ())}
        if said.get("SALTERN_HEALTH_HOST") != "0.0.0.0":
            yield f"{pod}: {container['name']}: SALTERN_HEALTH_HOST must be 0.0.0.0, whatever files say"
        held, probe = int(said.get("SALTERN_CONFIG_ERROR_PAUSE", 0)), container["startupProbe"]
        if not 10 <= held < probe["periodSeconds"] * probe["failureThreshold"]:
            yield f"{pod}: {container['name']}: SALTERN_CONFIG_ERROR_PAUSE must be 10 or more, below what startupProbe waits"


def labelled(found: Sequence[Object]) -> Iterator[str]:
    """Pods have the house's labels, and are found by the selector of who makes them."""
    selectors = {
        (one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"]
        .get("selector", {})
        .get("matchLabels")
        for one in found
        if one["kind"] in ("Deployment", "StatefulSet", "DaemonSet")
    }
    for pod in pods(found):
        for label in _LABELS:
            if not pod.labels.get(label):
                yield f"{pod}: its pods have no label {label}"
        selector = selectors.get((pod.kind, pod.namespace, pod.name))
        if selector is not None and not selector.items() <= pod.labels.items():
            yield f"{pod}: selects {selector}, its pods are {dict(pod.labels)}"
        named = "-".join(("saltern", pod.component, *([pool] if (pool := pool_of(pod)) not in ("", REST_POOL) else [])))
        if pod.kind != "Job" and pod.name != named:
            yield f"{pod}: is not named after its component {pod.component}: {named}"
        for (kind, namespace, name), other in selectors.items():
            # Pods of Jobs are nobody's to keep running.
            others = (kind, namespace, name) != (pod.kind, pod.namespace, pod.name) and pod.kind != "Job"
            if others and namespace == pod.namespace and _selects(other or {}, pod):
                yield f"{pod}: {kind} {name} selects its pods, too"


def served(found: Sequence[Object]) -> Iterator[str]:
    """Every port of a Service is a port of the pods that it selects, and some NetworkPolicy lets it in."""
    for service in of_kind(found, "Service"):
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        if service["spec"].get("publishNotReadyAddresses") and service["spec"].get("sessionAffinity", "None") != "None":
            yield f"Service {name}: its affinity would keep clients at a pod of a lost node, which stays one of its addresses"
        behind = [
            pod for pod in pods(found) if pod.namespace == namespace and _selects(service["spec"]["selector"], pod)
        ]
        if len(behind) != 1:
            yield f"Service {name}: selects {len(behind)} kinds of pods, not one"
            continue
        ports = {port["name"]: port["containerPort"] for one in behind[0].containers() for port in one.get("ports", ())}
        for port in service["spec"]["ports"]:
            if port["targetPort"] not in ports:
                yield f"Service {name}: no container has the port {port['targetPort']}"
            elif not any(
                ports[port["targetPort"]] in entry[1]
                for entry in _rules(found, behind[0], "ingress")
                if entry[0] is not _NOBODY
            ):
                yield f"Service {name}: no NetworkPolicy lets {port['targetPort']} in"


_NOBODY: frozenset[str] = frozenset({"nobody"})

#: Any peer at all.
ANYBODY: frozenset[str] = frozenset({"*"})


def _selects(selector: Mapping[str, str], pod: Pod) -> bool:
    return selector.items() <= pod.labels.items()


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if not dict(selector.get("matchLabels", {})).items() <= labels.items():
        return False
    for row in selector.get("matchExpressions", ()):
        if row["operator"] != "In":
            raise ValueError(f"policies read no operator {row['operator']}")
        if labels.get(row["key"]) not in row["values"]:
            return False
    return True


def _rules(found: Sequence[Object], pod: Pod, direction: str) -> list[tuple[frozenset[str], frozenset[int]]]:
    """(components of the peers, ports) of every rule for a pod; outside addresses are ANYBODY."""
    key = "from" if direction == "ingress" else "to"
    rules = []
    for policy in of_kind(found, "NetworkPolicy"):
        if policy["metadata"]["namespace"] != pod.namespace or not matches(policy["spec"]["podSelector"], pod.labels):
            continue
        for rule in policy["spec"].get(direction, ()):
            ports = frozenset(port["port"] for port in rule.get("ports", ()))
            peers = rule.get(key)
            rules.append((ANYBODY if not peers else frozenset(_peers(found, peers, pod.namespace)), ports))
    return rules


def _peers(found: Sequence[Object], peers: Iterable[Mapping[str, Any]], namespace: str) -> Iterator[str]:
    for peer in peers:
        if "ipBlock" in peer:
            yield "*"
            continue
        spaces = peer.get("namespaceSelector")
        name = spaces["matchLabels"]["kubernetes.io/metadata.name"] if spaces else namespace
        matched = [
            pod.component
            for pod in pods(found)
            if pod.namespace == name and matches(peer.get("podSelector", {}), pod.labels)
        ]
        yield from matched or [f"{name}:other"]


def denied(found: Sequence[Object]) -> Iterator[str]:
    """Each namespace with pods denies everything first."""
    for namespace in sorted({pod.namespace for pod in pods(found)}):
        if not any(
            policy["metadata"]["namespace"] == namespace
            and policy["spec"]["podSelector"] == {}
            and set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
            and not policy["spec"].get("ingress")
            and not policy["spec"].get("egress")
            for policy in of_kind(found, "NetworkPolicy")
        ):
            yield f"namespace {namespace}: no NetworkPolicy denies everything first"


def linked(found: Sequence[Object]) -> Iterator[str]:
    """Between pods of the house exactly the links of the house are open, each at both ends."""
    running = {pod.component: pod for pod in pods(found)}
    wanted = {(client, server, port) for client, server, port in ALLOWED if client in running and server in running}
    out = {
        (client, server, port)
        for client, pod in running.items()
        for servers, ports in _rules(found, pod, "egress")
        for server in servers
        for port in ports
        if server in running
    }
    into = {
        (client, server, port)
        for server, pod in running.items()
        for clients, ports in _rules(found, pod, "ingress")
        for client in clients
        for port in ports
        if client in running
    }
    # Minions are anywhere: the front's door is open to all.
    door = {
        (MINION, "front", port)
        for clients, ports in _rules(found, running["front"], "ingress")
        for port in ports
        if clients == ANYBODY
    }
    for what, have in (("out of its client", out), ("into its server", into | (door & wanted))):
        for link in sorted(wanted - have):
            yield f"NetworkPolicies: the link {link} is not open {what}"
        for link in sorted(have - wanted):
            yield f"NetworkPolicies: {link} is open {what}, and is no link of the house"


def configured(found: Sequence[Object]) -> Iterator[str]:
    """Every key of a configuration file is an option, of the right type; and so is every SALTERN_ variable."""
    for one in of_kind(found, "ConfigMap"):
        name = one["metadata"]["name"]
        for file, text in one.get("data", {}).items():
            if name.startswith("saltern-master"):
                for option, value in (yaml.safe_load(text) or {}).items():
                    if option not in MASTER_OPTIONS:
                        yield f"ConfigMap {name}: {file}: {option}: no such option"
                    try:
                        check_master_option(option, value)
                    except ConfigError as error:
                        yield f"ConfigMap {name}: {file}: {error}"
            elif name.startswith("saltern-minion"):
                variables = {
                    f"SALTERN_{option.upper()}": yaml.safe_dump(value) for option, value in yaml.safe_load(text).items()
                }
                yield from (f"ConfigMap {name}: {file}: {why}" for why in _unknown(variables, MINION_OPTIONS))
                try:
                    load_minion("/nowhere", variables)
                except ConfigError as error:
                    yield f"ConfigMap {name}: {file}: {error}"
    for pod, container in _all(found):
        variables = {row["name"]: "" for row in container.get("env", ()) if row["name"].startswith("SALTERN_")}
        options = MINION_OPTIONS if pod.component == MINION else MASTER_OPTIONS
        yield from (f"{pod}: {container['name']}: {why}" for why in _unknown(variables, options))


MASTER_OPTIONS = frozenset(MasterOptions.__dataclass_fields__)
MINION_OPTIONS = frozenset(load_minion("/nowhere", {}).__dataclass_fields__)


def _unknown(variables: Iterable[str], options: frozenset[str]) -> Iterator[str]:
    for variable in variables:
        name = variable.removeprefix("SALTERN_").lower()
        if name not in options and name.removesuffix("_file") not in options:
            yield f"{variable}: there is no such option"


def secretless(found: Sequence[Object]) -> Iterator[str]:
    for one in of_kind(found, "ConfigMap"):
        # The trees of the example are templates: what they name `password` is a variable.
        if one["metadata"]["name"].startswith("saltern-tree-"):
            continue
        for file, text in one.get("data", {}).items():
            if hit := _SECRETS.search(text):
                yield f"ConfigMap {one['metadata']['name']}: {file} holds a secret: {hit[0].strip()!r}"
    for pod, container in _all(found):
        for row in container.get("env", ()):
            if _SECRETS.search(f"{row['name']}={row.get('value', '')}") and not row["name"].endswith("_FILE"):
                yield f"{pod}: {container['name']}: {row['name']} holds a secret: mount a file"
    for one in of_kind(found, "Secret"):
        yield f"Secret {one['metadata']['name']} is in the manifests: secrets are made or brought"


def built(found: Sequence[Object]) -> Iterator[str]:
    """Every image is a target of docker/Dockerfile, or one of others by its digest."""
    targets = frozenset(
        re.findall(r"^FROM .* AS (\S+)$", (ROOT / "docker/Dockerfile").read_text("utf-8"), re.MULTILINE)
    )
    for pod, container in _all(found):
        name = re.sub(r"(@sha256:[0-9a-f]+|:[^:/]+)$", "", container["image"])
        if name.partition(":")[0] in FOREIGN_IMAGES:
            if not re.search(r"@sha256:[0-9a-f]{64}$", container["image"]):
                yield f"{pod}: {container['name']}: {container['image']} is an image of others: name it by digest"
        elif name.rpartition("/")[2] not in targets:
            yield f"{pod}: {container['name']}: docker/Dockerfile has no target for {container['image']}"
        elif container["image"] == name or container["image"].endswith(":latest"):
            yield f"{pod}: {container['name']}: {container['image']} is no certain image: give a tag or a digest"


def apart(found: Sequence[Object]) -> Iterator[str]:
    """In a pod with containers of several images, a volume has one image that writes it, and /tmp is of one image alone."""
    for pod in pods(found):
        mounts = [
            (container["image"], mount) for container in pod.containers() for mount in container.get("volumeMounts", ())
        ]
        for name in sorted({mount["name"] for _, mount in mounts}):
            of_it = [(image, mount) for image, mount in mounts if mount["name"] == name]
            writers = {image for image, mount in of_it if not mount.get("readOnly")}
            images = {image for image, _ in of_it}
            if len(writers) > 1:
                yield f"{pod}: {' and '.join(sorted(writers))} write the volume {name}: give each a volume of its own"
            elif len(images) > 1 and any(mount["mountPath"] == "/tmp" for _, mount in of_it):
                yield f"{pod}: {' and '.join(sorted(images))} share /tmp: give each a volume of its own"


def mounted(found: Sequence[Object]) -> Iterator[str]:
    """What is mounted is a volume of the pod; what a volume names exists here, is made by the Job, or is known to be brought."""
    maps = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): set(one.get("data", {}))
        for one in of_kind(found, "ConfigMap")
    }
    claims = {
        (one["metadata"]["namespace"], one["metadata"]["name"]) for one in of_kind(found, "PersistentVolumeClaim")
    }
    made = {
        name
        for role in of_kind(found, "Role")
        for rule in role["rules"]
        for name in rule.get("resourceNames", ())
        if "get" in rule["verbs"]
    }
    templates = {
        claim["metadata"]["name"]
        for one in of_kind(found, "StatefulSet")
        for claim in one["spec"].get("volumeClaimTemplates", ())
    }
    for pod in pods(found):
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", ())}
        used = {mount["name"] for one in pod.containers() for mount in one.get("volumeMounts", ())}
        for name in sorted(used - set(volumes) - templates):
            yield f"{pod}: mounts {name}, which is no volume of it"
        for name in sorted(set(volumes) - used):
            yield f"{pod}: the volume {name} is mounted nowhere"
        sources = [
            source
            for volume in volumes.values()
            for source in (volume, *volume.get("projected", {}).get("sources", ()))
        ]
        for source in sources:
            secret = source.get("secret", {}).get("secretName")
            if secret and secret not in made | BROUGHT:
                yield f"{pod}: the Secret {secret} is neither made nor brought"
            config = source.get("configMap", {})
            if config and config["name"] not in GIVEN:
                keys = maps.get((pod.namespace, config["name"]))
                missing = {item["key"] for item in config.get("items", ())} - (keys or set())
                if keys is None:
                    yield f"{pod}: the ConfigMap {config['name']} is not made here"
                elif missing:
                    yield f"{pod}: the ConfigMap {config['name']} has no {', '.join(sorted(missing))}"
            claim = source.get("persistentVolumeClaim", {}).get("claimName")
            if claim and (pod.namespace, claim) not in claims:
                yield f"{pod}: the claim {claim} is not made here"
        for container in pod.containers():
            for row in container.get("env", ()):
                kind, reference = next(iter(row.get("valueFrom", {}).items()), ("", {}))
                if kind == "secretKeyRef" and reference["name"] not in made | BROUGHT:
                    yield f"{pod}: the Secret {reference['name']} is neither made nor brought"
                if kind == "configMapKeyRef" and reference["key"] not in maps.get(
                    (pod.namespace, reference["name"]), ()
                ):
                    yield f"{pod}: the ConfigMap {reference['name']} has no {reference['key']}"


#: Seconds that each role may need after SIGTERM: finish what it holds, drain (saltern/kit/process/service.py), close its sockets.
_DRAIN = 5 + 2
DRAINS: Mapping[str, int] = {"mworker": MasterOptions().request_deadline + _DRAIN}


def drained(found: Sequence[Object]) -> Iterator[str]:
    """Who is asked to end has the time that it needs."""
    for pod in pods(found):
        if pod.component in (*ONE_SHOT, "cli"):
            continue
        pause = max(
            int(one["lifecycle"]["preStop"]["exec"]["command"][1]) if "lifecycle" in one else 0
            for one in pod.containers()
        )
        needed = pause + DRAINS.get(pod.component, _DRAIN)
        if pod.spec.get("terminationGracePeriodSeconds", 30) < needed:
            yield f"{pod}: terminationGracePeriodSeconds must be {needed} or more"


#: Roles with one pod, by decision (docs/operations/kubernetes.md): what they are away for is what it takes to start another.
SINGLE = frozenset({"reqserver", "eventpublisher"})

#: Taints of a node that has gone.
_GONE = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


def _hasty(found: Sequence[Object]) -> Iterator[str]:
    """One of a kind is elsewhere soon: it waits a short while for its node, and others make room for it."""
    classes = {one["metadata"]["name"] for one in of_kind(found, "PriorityClass")}
    for pod in pods(found):
        if pod.component not in SINGLE:
            continue
        waits = {row["key"]: row.get("tolerationSeconds", 300) for row in pod.spec.get("tolerations", ())}
        longest = max(waits.get(taint, 300) for taint in _GONE)
        if longest > 30:
            yield f"{pod}: waits {longest} s for a lost node: tolerations of 30 s or less"
        if "priorityClassName" not in pod.spec:
            yield f"{pod}: has no priorityClassName"
        elif pod.spec["priorityClassName"] not in classes:
            yield f"{pod}: there is no PriorityClass {pod.spec['priorityClassName']}"


def _greedy(found: Sequence[Object]) -> Iterator[str]:
    """Workers, whose number an autoscaler raises, take no room from pods that run."""
    classes = {one["metadata"]["name"]: one for one in of_kind(found, "PriorityClass")}
    for pod in pods(found):
        if pod.component != "mworker":
            continue
        chosen = classes.get(pod.spec.get("priorityClassName"))
        if chosen is not None and chosen.get("preemptionPolicy") != "Never":
            yield f"{pod}: its PriorityClass must have preemptionPolicy Never: a new worker would end other pods"


def disrupted(found: Sequence[Object]) -> Iterator[str]:
    """A budget finds its pods, and never forbids every eviction; where there are budgets, who is alone is elsewhere soon."""
    if of_kind(found, "PodDisruptionBudget"):
        yield from _hasty(found)
        yield from _greedy(found)
    for one in of_kind(found, "PodDisruptionBudget"):
        name = one["metadata"]["name"]
        if not any(
            matches(one["spec"]["selector"], pod.labels)
            for pod in pods(found)
            if pod.namespace == one["metadata"]["namespace"]
        ):
            yield f"PodDisruptionBudget {name}: finds no pod"
        for pod in pods(found):
            if pod.namespace == one["metadata"]["namespace"] and matches(one["spec"]["selector"], pod.labels):
                holding = [each["metadata"]["name"] for each in _budgets(found, pod)]
                if len(holding) > 1:
                    yield f"{pod}: is never evicted, under two budgets: {', '.join(holding)}"
        if one["spec"].get("maxUnavailable") != 1:
            yield f"PodDisruptionBudget {name}: maxUnavailable must be 1: a node must be able to be drained"


def _budgets(found: Sequence[Object], pod: Pod) -> list[Object]:
    return [
        one
        for one in of_kind(found, "PodDisruptionBudget")
        if one["metadata"]["namespace"] == pod.namespace and matches(one["spec"]["selector"], pod.labels)
    ]


def scaled(found: Sequence[Object]) -> Iterator[str]:
    """What an autoscaler scales is here, and says no number of its own."""
    for one in of_kind(found, "HorizontalPodAutoscaler"):
        target = one["spec"]["scaleTargetRef"]["name"]
        behind = [each for each in of_kind(found, "Deployment") if each["metadata"]["name"] == target]
        if not behind:
            yield f"HorizontalPodAutoscaler {one['metadata']['name']}: there is no {target}"
        elif "replicas" in behind[0]["spec"]:
            yield f"Deployment {target}: has replicas of its own: an apply would set back what the autoscaler does"


POLICIES: Mapping[str, Policy] = {
    policy.__name__: policy
    for policy in (
        *(non_root, locked, restricted, bounded, roomy, probed, tokenless, explained, labelled, pooled, served, denied),
        *(apart, linked, configured, secretless, built, mounted, drained, disrupted, scaled),
    )
}
