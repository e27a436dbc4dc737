"""Run by the oracle's Python: reads words as real Salt does. A JSON list of words in, repr of the arguments out, line by line."""

import json
import sys

from salt.utils.args import parse_input


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(repr(parse_input(json.loads(line))) + "\n")
        sys.stdout.flush()


main()
