"""For clusters that are not here: a manifest by KubeRay's fields, a batch script with a Slurm of ours."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until

DEPLOY = Path(__file__).parents[2] / "deploy"
FIELDS = Path(__file__).with_name("kuberay_fields.json")
TOKEN = "0123456789abcdef"
KINDS = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}


def problems(schema: dict[str, Any], value: Any, place: str) -> Iterator[str]:
    """What of the value is not as the schema has it."""
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str):
            yield f"{place} is neither a number nor a text"
        return
    if not isinstance(value, KINDS[schema["type"]]):
        yield f"{place} is not of type {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is none of {schema['enum']}"
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from problems(schema["items"], one, f"{place}[{number}]")
    if isinstance(value, dict):
        yield from (f"{place} has no {name}" for name in schema.get("required", ()) if name not in value)
        for name, one in value.items():
            own = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if own is None and "properties" in schema:
                yield f"{place}.{name} is unknown"
            elif own is not None:
                yield from problems(own, one, f"{place}.{name}")


def manifest() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="Ray brings it along")
    return list(yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text()))


def test_the_manifest_has_fields_that_kuberay_knows() -> None:
    cluster = manifest()[0]
    schema = json.loads(FIELDS.read_text())["schema"]
    assert list(problems(schema, cluster, "")) == []
    assert list(problems(schema, {**cluster, "spec": {}}, "")) == [".spec has no headGroupSpec"]
    wrong = {**cluster["spec"], "rayVersion": 2, "authOption": {}, "authOptions": {"mode": "none"}}
    assert len(list(problems(schema, {**cluster, "spec": wrong}, ""))) == 3


def test_the_manifest_gives_slots_and_one_token() -> None:
    cluster, claim, home = manifest()
    spec = cluster["spec"]
    slots = [
        json.loads(json.loads(group["rayStartParams"]["resources"]))
        for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])
    ]
    assert slots == [{"builder": 0}, {"builder": 8}]
    volumes = {one["name"]: one for one in home["spec"]["volumes"]}
    assert volumes["token"]["secret"]["secretName"] == spec["authOptions"]["secretName"]
    assert volumes["home"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    wanted = re.search(r'"ray>=([0-9.]+)"', (DEPLOY.parent / "pyproject.toml").read_text())
    assert wanted
    assert spec["rayVersion"].startswith(wanted[1])


_SRUN = """\
for word; do
    case "$word" in --nodelist=*) ON_NODE=${word#*=};; --*) ;; *) break;; esac
    shift
done
export ON_NODE
exec "$@\"
"""
FAKES = {
    "scontrol": "printf 'Node1\\nNode2\\nNode3\\n'",
    "hostname": 'case "$1" in -s) echo "$ON_NODE";; *) echo 10.0.0.1 fe80::1;; esac',
    "srun": _SRUN,
    "af": 'case "$2" in join) token=$(cat);; *) token=;; esac\n'
    'echo "$ON_NODE ${XDG_STATE_HOME#$AF_MACHINES} $* $token" >>"$SAID"',
}


def test_the_batch_script_makes_a_cluster_of_an_allocation(tmp_path: Path) -> None:
    """With a Slurm that runs each step here."""
    script = DEPLOY / "slurm.sbatch"
    subprocess.run(["bash", "-n", script], check=True)
    for name, body in FAKES.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    token = tmp_path / "state/agent-farm/ray/token"
    token.parent.mkdir(parents=True)
    token.write_text(TOKEN)
    said = tmp_path / "said"
    said.touch()
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "AF_MACHINES": str(tmp_path / "machines"),
        "SAID": str(said),
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "Node[1-3]",
    }
    job = subprocess.Popen(["bash", script], env=environment, start_new_session=True)
    try:
        wait_until(lambda: said.read_text().count(" join ") == 2, what="the machines")
        head, *members = said.read_text().splitlines()
        assert head.split() == [
            "Node1",
            str(tmp_path / "state"),
            *["fleet", "up", "--host", "10.0.0.1", "--port", "6379", "--slots", "0"],
        ]
        assert sorted(members) == [
            f"Node{number} /node{number} fleet join 10.0.0.1:6379 --name node{number} --slots 8 {TOKEN}"
            for number in (2, 3)
        ]
        job.send_signal(signal.SIGTERM)
        job.wait(60)
        assert said.read_text().count("fleet down") == 3
        assert not list((tmp_path / "machines").glob("ready-*"))
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
