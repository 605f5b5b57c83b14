"""A program that is a node of a Ray cluster on this machine, for as long as it runs."""

from __future__ import annotations

import sys

from agent_farm.disk import file_lock
from agent_farm.engine.ray_files import node_lock


def main(arguments: list[str]) -> int:
    """`arguments` are those of `ray start`."""
    with file_lock(node_lock(), wait=0):
        from ray.scripts.scripts import start

        from agent_farm.engine.ray_loopback import stay_on_loopback

        stay_on_loopback()
        start(["--block", *arguments], prog_name="af-ray-node")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
