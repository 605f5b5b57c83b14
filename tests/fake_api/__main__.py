"""By hand: `python -m tests.fake_api --port 8901 --log requests.jsonl`, until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from tests.fake_api.server import fake_api


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8901)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    with fake_api(options.port) as api, suppress(KeyboardInterrupt):
        print(f"fake API on {api.url}, MCP token {api.token}", flush=True)
        written = 0
        while True:
            threading.Event().wait(0.2)
            new = api.requests[written:]
            if options.log and new:
                with options.log.open("a") as file:
                    file.writelines(json.dumps(asdict(request)) + "\n" for request in new)
            written += len(new)


if __name__ == "__main__":
    main()
