"""Keep the rules of the nodes those of the API's NetworkPolicies: a process beside the control plane."""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import time
from typing import Any

from tests.cluster import policy
from tests.cluster.control_plane import KEYS
from tests.cluster.places import API, NODES, PODS, ClusterError, namespace, run

#: Seconds between two looks.
_PAUSE = 0.5

#: What is looked at, in the order of `policy.ruleset`.
_LISTS = ("/apis/networking.k8s.io/v1/networkpolicies", "/api/v1/pods", "/api/v1/namespaces")


def _listed(path: str, context: ssl.SSLContext) -> list[Any]:
    connection = http.client.HTTPSConnection(API, 6443, timeout=10, context=context)
    try:
        connection.request("GET", f"{path}?resourceVersion=0")
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise ClusterError(f"{path}: {answer.status} {text[:200]!r}")
        found: list[Any] = json.loads(text)["items"]
        return found
    finally:
        connection.close()


def main() -> None:
    """Look, and write the table of each node where it differs from the last one. What fails is said, and tried again."""
    context = ssl.create_default_context(cafile=str(KEYS / "ca.crt"))
    context.load_cert_chain(KEYS / "policies.crt", KEYS / "policies.key")
    written: dict[str, str] = {}
    while True:
        try:
            policies, pods, namespaces = (_listed(path, context) for path in _LISTS)
            rules = policy.ruleset(policies, pods, namespaces, PODS)
            for node in NODES:
                if written.get(node) != rules:
                    words = ["nsenter", f"--net=/run/netns/{namespace(node)}", "nft", "-f", "-"]
                    run(words, stdin=rules, seconds=30)
                    written[node] = rules
        except (OSError, http.client.HTTPException, ClusterError, ValueError) as error:
            sys.stderr.write(f"policies: {error}\n")
            sys.stderr.flush()
        time.sleep(_PAUSE)


if __name__ == "__main__":
    main()
