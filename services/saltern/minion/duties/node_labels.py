"""``saltern node-labels``: writes the labels of this pod's node as grains of its minion (k8s/components/node-labels).

The grain ``kubernetes`` has the keys ``node`` (name), ``labels`` ({label: value}) and ``version`` (of the kubelet). The labels
are read once, before the minion starts: a changed label takes effect with the next pod.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from saltern.kit.keys.kubernetes import Cluster, ClusterError
from statecore.model import yaml
from statecore.model.option_parser import OptionParser


def main(argv: Sequence[str] | None = None) -> int:
    """Write the grains file with the node's labels.

    Return exit code 0, or 1 if the API does not answer or the file cannot be written.
    """
    parser = OptionParser(
        prog="saltern node-labels", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--out", required=True, type=Path, metavar="FILE", help="configuration file to write (option grains)"
    )
    parser.add_argument(
        "--node",
        default=os.environ.get("NODE_NAME", ""),
        help="name of the node (default: $NODE_NAME)",
    )
    arguments = parser.parse_args(argv)
    try:
        if not arguments.node:
            raise ClusterError("no node: give --node, or NODE_NAME")
        node = Cluster.of_this_pod().get(f"/api/v1/nodes/{arguments.node}")
        if node is None:
            raise ClusterError(f"the cluster has no node {arguments.node}")
        arguments.out.write_text(yaml.dump({"grains": grains_of(node)}), "utf-8")
    except ClusterError as error:
        sys.stderr.write(f"saltern node-labels: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"saltern node-labels: {error.filename}: {error.strerror}\n")
        return 1
    return 0


def grains_of(node: Mapping[str, object]) -> dict[str, object]:
    """Return the grains for a Kubernetes Node object: {"kubernetes": {node, labels, version}}."""
    metadata = _part(node, "metadata")
    info = _part(_part(node, "status"), "nodeInfo")
    return {
        "kubernetes": {
            "node": metadata.get("name", ""),
            "labels": dict(_part(metadata, "labels")),
            "version": info.get("kubeletVersion", ""),
        }
    }


def _part(node: Mapping[str, object], name: str) -> Mapping[str, object]:
    part = node.get(name)
    return part if isinstance(part, Mapping) else {}
