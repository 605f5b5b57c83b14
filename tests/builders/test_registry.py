"""registry.json: what goes in comes out, also for many processes at a time; what is not ours is refused."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from agent_farm.builders.config import BUILDER_TYPES
from agent_farm.builders.record import BuilderRecord, RecordState, record_from_json, stored_record
from agent_farm.builders.registry import Registry
from agent_farm.errors import DamagedFile
from agent_farm.paths import FarmPaths
from tests.operations.test_spawn_request import JSON

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
MAYBE = st.none() | TEXT
WORD = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True)
RECORDS = st.builds(
    BuilderRecord,
    id=st.from_regex(r"[a-z0-9][a-z0-9-]{0,19}", fullmatch=True),
    type=st.sampled_from(BUILDER_TYPES),
    branch=st.from_regex(r"builder/[a-z0-9é]{1,20}", fullmatch=True),
    worktree=WORD.map("/farm/.builders/{}".format),
    session=WORD,
    runtime=WORD,
    model=st.none() | WORD,
    base=WORD,
    base_commit=st.from_regex(r"[0-9a-f]{40}", fullmatch=True),
    prompt_file=MAYBE,
    role=MAYBE,
    task_text=MAYBE,
    protocol_name=MAYBE,
    protocol_args=st.none() | st.dictionaries(TEXT, JSON.filter(lambda value: _is_unicode(value))),
    spec=MAYBE,
    files=st.lists(TEXT).map(tuple),
    ports=st.lists(st.integers(1, 65535)).map(tuple),
    conversation_id=st.none() | WORD,
    created_at=st.datetimes().map(lambda moment: moment.isoformat()),
    state=st.sampled_from(get_args(RecordState)),
    reason=MAYBE,
    run=st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    socket=WORD.map("/tmp/{}".format),
    permissions=TEXT,
    subdirectory=st.just("") | WORD,
    new_branch=st.booleans(),
    ephemeral=st.booleans(),
)
DESIGN_FIELDS = """id type branch worktree session runtime model base base_commit prompt_file role task_text
    protocol_name protocol_args spec files ports conversation_id created_at state reason"""


def _is_unicode(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def a_record(id: str = "task-a7f3-x9k2", **changes: Any) -> BuilderRecord:
    plain = BuilderRecord(
        id=id,
        type="task",
        branch=f"builder/{id}",
        worktree=f"/farm/.builders/{id}",
        session=f"af-farm-{id}",
        runtime="demo",
        model=None,
        base="main",
        base_commit="0" * 40,
        prompt_file=None,
        role=None,
        task_text="Fix it",
        protocol_name=None,
        protocol_args=None,
        spec=None,
        files=(),
        ports=(20000, 20001),
        conversation_id=None,
        created_at="2026-01-01T00:00:00+00:00",
        state="running",
        reason=None,
        run="0123456789ab",
        socket="/tmp/tmux-0/default",
        permissions="edit",
        subdirectory="",
        new_branch=True,
        ephemeral=False,
    )
    return replace(plain, **changes)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(FarmPaths(tmp_path))


def test_the_record_has_every_field_that_others_rely_on() -> None:
    names = [field.name for field in fields(BuilderRecord)]
    assert names[:21] == DESIGN_FIELDS.split()


@pytest.mark.slow
@given(st.lists(RECORDS, unique_by=lambda record: record.id))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
def test_round_trip(registry: Registry, records: list[BuilderRecord]) -> None:
    wanted = {record.id: record for record in records}
    with registry.edit() as stored:
        stored.clear()
        stored.update(wanted)
    assert registry.read() == {id: _at_home(record, registry.paths) for id, record in wanted.items()}


def _at_home(record: BuilderRecord, paths: FarmPaths) -> BuilderRecord:
    """A record is not asked where the farm is."""
    prompt = None if record.prompt_file is None else str(paths.run(record.id) / "prompt.md")
    role = None if record.role is None else str(paths.root / record.role)
    place, session = str(paths.worktree(record.id)), paths.session(record.id)
    return replace(record, worktree=place, session=session, prompt_file=prompt, role=role)


def test_what_is_stored_holds_no_path_that_the_place_gives(registry: Registry) -> None:
    root = registry.paths.root
    record = a_record("a", prompt_file=str(root / "x"), role=str(root / "codev/roles/builder.md"))
    with registry.edit() as records:
        records["a"] = record
    assert str(root) not in registry.path.read_text()
    assert registry.read()["a"] == _at_home(record, registry.paths)
    elsewhere = FarmPaths(Path("/elsewhere"))
    moved = record_from_json("a", json.loads(registry.path.read_text())["builders"]["a"], elsewhere)
    assert moved.worktree == "/elsewhere/.builders/a"
    assert moved.prompt_file == "/elsewhere/.agent-farm/runs/a/prompt.md"
    assert moved.role == "/elsewhere/codev/roles/builder.md"


def test_a_session_of_another_farm_is_nobodys(registry: Registry) -> None:
    """A copied farm has the original's records; it must not end the original's sessions."""
    here = registry.paths
    named = json.loads(json.dumps(stored_record(a_record("a", session="af-before-1234-a"), here)))
    assert record_from_json("a", named, here).session == here.session("a")
    moved = FarmPaths(here.root, former=("before-1234",))
    assert record_from_json("a", named, moved).session == "af-before-1234-a"


def test_no_file_is_no_builders(registry: Registry) -> None:
    assert registry.read() == {}
    assert not registry.path.exists()


def test_what_one_reader_changes_no_other_sees(registry: Registry) -> None:
    registry.put(a_record("a"))
    records = registry.read()
    records["b"] = a_record("b")
    del records["a"]
    assert list(registry.read()) == ["a"]


def test_what_another_process_wrote_is_read_and_kept(registry: Registry) -> None:
    registry.put(a_record("a"))
    document = json.loads(registry.path.read_text())
    document["builders"]["a"]["model"] = "other"
    registry.path.write_text(json.dumps(document))
    registry.put(a_record("b"))
    stored = json.loads(registry.path.read_text())["builders"]
    assert (stored["a"]["model"], registry.read()["a"].model) == ("other", "other")
    assert list(stored) == ["a", "b"]


def test_records_that_cannot_be_read_are_kept_though_no_other_is_there(registry: Registry) -> None:
    registry.put(a_record("a"))
    document = json.loads(registry.path.read_text())
    document["builders"]["a"]["model"] = 7
    registry.path.write_text(json.dumps(document))
    assert registry.read().ids == {"a"}
    registry.put(a_record("b"))
    assert json.loads(registry.path.read_text())["builders"]["a"]["model"] == 7


def test_a_name_that_is_no_utf8_comes_back(registry: Registry) -> None:
    files = ("bad\udcff.md",)
    registry.put(replace(a_record("a"), files=files))
    registry.put(a_record("b"))
    other = Registry(FarmPaths(registry.paths.root, former=("elsewhere",)))  # reads it for the first time
    assert (registry.read()["a"].files, other.read()["a"].files) == (files, files)


def test_it_has_a_version_and_is_the_users_alone(registry: Registry) -> None:
    with registry.edit() as records:
        records["task-a7f3-x9k2"] = a_record()
    document = json.loads(registry.path.read_text())
    assert document["version"] == 1
    assert list(document["builders"]) == ["task-a7f3-x9k2"]
    assert registry.path.stat().st_mode & 0o777 == 0o600


def test_an_edit_that_fails_changes_nothing(registry: Registry) -> None:
    with registry.edit() as records:
        records["a"] = a_record("a")
    with pytest.raises(KeyError), registry.edit() as records:  # noqa: PT012
        del records["a"]
        del records["b"]
    assert list(registry.read()) == ["a"]


def _add_many(path: Path, worker: int) -> None:
    for number in range(10):
        with Registry(FarmPaths(path)).edit() as records:
            id = f"task-{worker}-{number}"
            records[id] = a_record(id)


def test_many_processes_lose_nothing(registry: Registry) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add_many, args=(registry.paths.root, number)) for number in range(12)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 12
    assert len(registry.read()) == 120


def _newer(document: dict[str, Any]) -> None:
    document["version"] = 2


def _no_version(document: dict[str, Any]) -> None:
    del document["version"]


def _no_builders(document: dict[str, Any]) -> None:
    document["builders"] = []


def _unknown_field(document: dict[str, Any]) -> None:
    document["builders"]["a"]["invented"] = 1


def _lacking_field(document: dict[str, Any]) -> None:
    del document["builders"]["a"]["branch"]


def _unknown_type(document: dict[str, Any]) -> None:
    document["builders"]["a"]["type"] = "robot"


def _unknown_state(document: dict[str, Any]) -> None:
    document["builders"]["a"]["state"] = "dancing"


def _other_id(document: dict[str, Any]) -> None:
    document["builders"]["a"]["id"] = "b"


def _no_object(document: dict[str, Any]) -> None:
    document["builders"]["a"] = "x"


def _files_are_no_list(document: dict[str, Any]) -> None:
    document["builders"]["a"]["files"] = None


def _branch_is_no_text(document: dict[str, Any]) -> None:
    document["builders"]["a"]["branch"] = 7


def _ports_are_no_numbers(document: dict[str, Any]) -> None:
    document["builders"]["a"]["ports"] = ["x"]


@pytest.mark.parametrize(
    "damage",
    [_newer, _no_version, _no_builders],
)
def test_what_it_cannot_read_it_names_and_never_overwrites(
    registry: Registry, damage: Callable[[dict[str, Any]], None]
) -> None:
    with registry.edit() as records:
        records["a"] = a_record("a")
    document = json.loads(registry.path.read_text())
    damage(document)
    registry.path.write_text(json.dumps(document))
    before = registry.path.read_bytes()
    with pytest.raises(DamagedFile, match=r"registry\.json"):
        registry.read()
    with pytest.raises(DamagedFile, match=r"registry\.json"), registry.edit() as records:
        records["b"] = a_record("b")
    assert registry.path.read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [
        _unknown_field,
        _lacking_field,
        _unknown_type,
        _unknown_state,
        _other_id,
        _no_object,
        _files_are_no_list,
        _branch_is_no_text,
        _ports_are_no_numbers,
    ],
)
def test_one_record_that_cannot_be_read_is_named_and_kept_and_the_others_work(
    registry: Registry, damage: Callable[[dict[str, Any]], None]
) -> None:
    with registry.edit() as records:
        records["a"], records["b"] = a_record("a"), a_record("b")
    document = json.loads(registry.path.read_text())
    damage(document)
    registry.path.write_text(json.dumps(document))
    found = registry.read()
    assert (list(found), list(found.unreadable), found.ids) == (["b"], ["a"], {"a", "b"})
    with pytest.raises(DamagedFile, match="builder a "):
        found.match("a")
    registry.put(a_record("c"))
    registry.drop("b")
    after = json.loads(registry.path.read_text())["builders"]
    assert after["a"] == document["builders"]["a"]
    assert set(after) == {"a", "c"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("branch", text)
            for text in ("-x", "a..b", "a b", "/a", "a/", "a.lock", "a/.b", "a\nb", "", "HEAD")
        ),
        *(("base_commit", text) for text in ("0", "HEAD", "--all")),
        *(("subdirectory", text) for text in ("/etc", "../x", "a/../../b")),
        *(("run", text) for text in ("", "x", "a b")),
        *(("base", text) for text in ("--output=x", "a\nb")),
        *(("session", text) for text in ("-x", "=", "a:b", "#(touch x)")),
        *(("conversation_id", text) for text in ("--help", "a\x1bb")),
        *(("ports", value) for value in ([0], [70000], [True])),
        ("socket", "relative"),
        ("runtime", "../x"),
        ("model", "--dangerously-skip-permissions"),
    ],
)
def test_what_could_do_harm_where_it_is_used_is_damage(name: str, value: object) -> None:
    with pytest.raises(DamagedFile, match=name):
        record_from_json(
            "a", json.loads(json.dumps({**a_record("a").to_json(), name: value})), FarmPaths(Path("/farm"))
        )


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"null", b"[]", b"7", b"[" * 100_000])
def test_what_is_no_registry_at_all_is_refused(registry: Registry, content: bytes) -> None:
    registry.path.parent.mkdir()
    registry.path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"registry\.json"):
        registry.read()
    assert registry.path.read_bytes() == content


VERSION_1 = Path(__file__).with_name("registry-1.json")


def test_a_file_as_it_was_written_once_is_still_read(tmp_path: Path) -> None:
    """The file is kept as it is: a change of the form needs an upgrade, not a change of this test."""
    paths = FarmPaths(tmp_path)
    paths.state.mkdir()
    paths.registry.write_bytes(VERSION_1.read_bytes())
    records = Registry(paths).read()
    assert set(records) == {"0009", "task-a7f3-x9k2"}
    assert records["0009"].spec == "codev/specs/0009-login.md"
    assert records["task-a7f3-x9k2"] == record_from_json(
        "task-a7f3-x9k2", json.loads(VERSION_1.read_text())["builders"]["task-a7f3-x9k2"], paths
    )
