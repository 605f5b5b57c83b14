"""A runtime that weighs next to nothing: it reports that it is idle, commits once, and sleeps from then on.

Started in the place of the demo agent, as `runtimes.demo.command`. Standard library only. Of ten builders one
writes the time into a file that git knows, each five seconds: its work is never the same as in the last
checkpoint. Who is started again commits nothing, so that a commit that is lost or made twice shows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

_BEAT = 'while sleep 5; do printf "%s\\n" "$(date +%s)" >beat.txt; done'


def main(words: list[str]) -> None:
    id = os.environ["AF_BUILDER_ID"]
    if not os.path.exists("work.txt"):
        with open("work.txt", "w") as file:
            file.write(f"{id}\n")
        with open("beat.txt", "w") as file:
            file.write("0\n")
        subprocess.run(["git", "add", "work.txt", "beat.txt"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", f"Work of {id}"], check=True)
        with open("left.txt", "w") as file:
            file.write(f"{id}, not committed\n")
    hook = json.loads(words[words.index("--hook") + 1])
    said = {"hook_event_name": "SessionStart", "source": "startup"}
    subprocess.run(hook, input=json.dumps(said).encode(), check=True)
    if sum(id.encode()) % 10 == 0:
        os.execv("/bin/sh", ["sh", "-c", _BEAT])
    os.execvp("sleep", ["sleep", "infinity"])


if __name__ == "__main__":
    main(sys.argv[1:])
