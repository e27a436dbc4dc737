"""Run by the oracle's Python: whom real Salt's master expects for a target.

First line of standard input: ``directory``, ``accepted`` (ids), ``grains`` and ``pillar`` by minion, ``nodegroups``, ``pub`` (a
public key). Every further line: [expression, target type, delimiter]; each is answered with a line, ``{"minions", "missing"}``.
"""

import json
import logging
import pathlib
import sys

import salt.cache
import salt.config
import salt.utils.minions


def main() -> None:
    logging.disable(logging.CRITICAL)
    asked = json.loads(sys.stdin.readline())
    root = pathlib.Path(asked["directory"])
    opts = salt.config.master_config(None)
    opts.update(
        cachedir=str(root / "cache"),
        pki_dir=str(root / "pki"),
        sock_dir=str(root / "sock"),
        nodegroups=asked["nodegroups"],
        minion_data_cache=True,
    )
    for state in ("minions", "minions_pre", "minions_rejected", "minions_denied"):
        (root / "pki" / state).mkdir(parents=True)
    for minion in asked["accepted"]:
        (root / "pki" / "minions" / minion).write_text(asked["pub"])
    cache = salt.cache.factory(opts)
    for bank in ("grains", "pillar"):
        for minion, data in asked[bank].items():
            cache.store(bank, minion, data)
    expected = salt.utils.minions.CkMinions(opts)
    for line in sys.stdin:
        expression, kind, delimiter = json.loads(line)
        try:
            found = expected.check_minions(expression, kind, delimiter=delimiter, greedy=True)
            answer = {"minions": sorted(found["minions"]), "missing": sorted(set(found["missing"]))}
        except Exception:  # noqa: BLE001 - whatever it is, nobody is expected
            answer = {"minions": [], "missing": []}
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer


main()
