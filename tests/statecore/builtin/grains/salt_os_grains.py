"""Run by the oracle's Python: the os grains that real Salt makes of os-release files.

Standard input: a JSON list of maps (the files' keys). Standard output: a JSON list of grains.
"""

import json
import sys

import salt.grains.core as core


def main() -> None:
    told = []
    for release in json.load(sys.stdin):
        grains = core._os_release_to_grains(release)
        if grains.get("osrelease"):
            grains.update(core._osrelease_data(grains["os"], grains["osfullname"], grains["osrelease"]))
        told.append(grains)
    json.dump(told, sys.stdout)


main()
