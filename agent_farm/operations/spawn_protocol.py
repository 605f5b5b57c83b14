"""A protocol as committed on the base: its prompt, and what its `protocol.json` requires."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders import ids, prompts
from agent_farm.builders.config import BuilderType
from agent_farm.builders.ids import Name
from agent_farm.builders.protocol_file import Input, ProtocolFile, parse_protocol_file
from agent_farm.builders.templates import Template
from agent_farm.errors import NotFound, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.inside import require_inside
from agent_farm.operations.spawn_request import ProtocolMode
from agent_farm.operations.spawn_work import Work, require_own, uncommitted

if TYPE_CHECKING:
    from agent_farm.forge.issues import Issue

Subject = Literal["spec", "issue"]
_REQUIRED = {"github-issue": "issue", "gitlab-issue": "issue", "issue": "issue", "spec": "spec"}
PROMPT_NAME, FILE_NAME = "builder-prompt.md", "protocol.json"
_GIVEN = {"issue": "--issue 42", "spec": "--project 0009"}


class Protocol(Struct, frozen=True):
    """`template` is its builder-prompt.md, None if it has none; includes are read from its own folder."""

    name: str
    args: Mapping[str, Any] | None
    phases: tuple[str, ...]
    template: str | None
    read: Callable[[str], str]

    def work(self, type: BuilderType, names: Callable[[], Iterator[Name]], prompt: str) -> Work:
        return Work(
            type,
            names,
            prompt,
            protocol_name=self.name,
            protocol_args=self.args,
            phases=self.phases,
            reads=(prompts.protocol_folder(self.name),),
        )

    def prompt(self) -> str:
        """The project id is a variable in the builder's shell, because the id is chosen later."""
        return self._rendered({"project_id": "$AF_BUILDER_ID"}, f"running the {self.name.upper()} protocol")

    def with_spec(self, work: Work, spec: ids.Spec, *, has_plan: bool) -> Work:
        values: dict[str, object] = {
            "project_id": spec.id,
            "spec": {"path": spec.spec_path, "name": f"{spec.id}-{spec.name}"},
        }
        if has_plan:
            values["plan"] = {"path": spec.plan_path, "name": f"{spec.id}-{spec.name}"}
        described = f"the feature specified in {spec.spec_path}"
        own = self.work(work.type, work.names, self._rendered(values, described, "spec", work.prompt))
        return replace(own, spec=work.spec, reads=(*work.reads, *own.reads))

    def issue_prompt(self, issue: Issue) -> str:
        values = {
            "project_id": str(issue.number),
            "issue": {
                "number": issue.number,
                "title": issue.title,
                "url": issue.url,
                "body": issue.quoted,
            },
        }
        subject = prompts.issue_prompt(issue.name, issue.url, issue.quoted)
        return self._rendered(values, f"work for issue #{issue.number}", "issue", subject)

    def _rendered(
        self,
        values: Mapping[str, object],
        described: str,
        subject: Subject | None = None,
        subject_text: str | None = None,
    ) -> str:
        """From its own template; subject and arguments are appended if that does not mention them."""
        if self.template is None:
            return "\n\n".join(
                [prompts.protocol_prompt(self.name, self.args, subject_text), *self._how_to_report()]
            )
        template = Template(f"{prompts.protocol_folder(self.name)}/{PROMPT_NAME}", self.read)
        known = {
            "protocol_name": self.name.upper(),
            "mode": "soft",
            "mode_soft": True,
            "mode_strict": False,
            "input_description": described,
            "args": self.args,
            **_task_of(self.args),
            **values,
        }
        if "protocol_reference" in self.template:
            reference = Template(prompts.protocol_path(self.name), self.read)
            known["protocol_reference"] = reference.render(self.read("protocol.md"), known)
        text = template.render(self.template, known)
        path = prompts.protocol_path(self.name)
        said = template.used & {"task", "task_text"} and self.args and self.args.keys() == {"task"}
        missing = [
            subject_text if subject not in template.used else None,
            prompts.args_block(self.args) if "args" not in template.used and not said else None,
            None if "protocol_reference" in known or path in text else f"The protocol itself is in {path}",
            *self._how_to_report(),
        ]
        return "\n\n".join([text, *(part for part in missing if part)])

    def _how_to_report(self) -> list[str]:
        """How to report phases, so that `af status` can show them."""
        return [prompts.phases_text(self.phases)] if self.phases else []


def find_protocol(farm: Farm, asked: ProtocolMode, commit: str, *, has: Subject | None = None) -> Protocol:
    """The protocol with that name or alias; refused if an input that it requires is missing."""
    name = _require_there(farm, asked.name, commit)
    folder = prompts.protocol_folder(name)
    kinds = farm.repository.entry_kinds(commit, [f"{folder}/{PROMPT_NAME}", f"{folder}/{FILE_NAME}"])
    there = [path for path, kind in kinds.items() if kind == "blob"]
    require_own(farm, commit, [prompts.protocol_path(name), *there])

    def read(included: str) -> str:
        """Only reads from the protocol's own folder, whatever the name looks like."""
        paths = (included, f"codev/{included}", f"{folder}/{included}")
        plain = (posixpath.normpath(path) for path in paths)
        path = next((one for one in plain if one.startswith(f"{folder}/")), None)
        if path is None:
            raise UsageError(
                f"{folder} includes {included!r:.100}",
                why=f"A protocol includes files of its own folder, {folder}, and no others.",
            )
        require_own(farm, commit, [path])
        return farm.repository.read_blob(commit, path).decode("utf-8", "replace")

    has_file = f"{folder}/{FILE_NAME}" in there
    file = parse_protocol_file(read(FILE_NAME), f"{folder}/{FILE_NAME}") if has_file else ProtocolFile()
    _require_input(name, file.input or Input(), asked, has)
    template = read(PROMPT_NAME) if f"{folder}/{PROMPT_NAME}" in there else None
    return Protocol(name, asked.args, file.phase_names, template, read)


def _require_there(farm: Farm, name: str, commit: str) -> str:
    folder = prompts.PROTOCOLS
    require_inside(farm.repository.checkout, farm.repository.checkout / folder)
    known = [entry for entry in farm.repository.list_directory(commit, folder) if "/" not in entry]
    kinds = farm.repository.entry_kinds(commit, [prompts.protocol_path(entry) for entry in known])
    ready = [entry for entry in known if kinds[prompts.protocol_path(entry)] == "blob"]
    try:
        return ids.require_protocol(name, ready)
    except NotFound:
        if (farm.repository.checkout / prompts.protocol_path(name)).is_file():
            raise uncommitted(prompts.protocol_folder(name)) from None
        if called := _of_alias(farm, name, ready, commit):
            return called
        raise


def _of_alias(farm: Farm, alias: str, ready: Sequence[str], commit: str) -> str | None:
    """The protocol with that alias: codev's `spider` is its spir. A file that cannot be read has none."""
    files = {one: f"{prompts.protocol_folder(one)}/{FILE_NAME}" for one in ready}
    kinds = farm.repository.entry_kinds(commit, list(files.values()))
    for name, path in files.items():
        if kinds[path] == "blob":
            with suppress(UsageError):
                file = parse_protocol_file(farm.repository.read_blob(commit, path), path)
                if file.alias and file.alias.lower() == alias.lower():
                    return name
    return None


def _task_of(args: Mapping[str, Any] | None) -> dict[str, object]:
    """The names under which codev's templates know a task."""
    task = (args or {}).get("task")
    return {"task": task, "task_text": task} if isinstance(task, str) else {}


def _require_input(name: str, wanted: Input, asked: ProtocolMode, has: Subject | None) -> None:
    """Check the `input` that protocol.json declares: its type, and whether it is required."""
    needs = _REQUIRED.get(wanted.type) if wanted.required else None
    if needs and needs != has:
        article = "an issue" if needs == "issue" else "a spec"
        raise UsageError(
            f"The protocol {name} requires {article}",
            why=f"Its protocol.json says so: input is {wanted.type}, and required.",
            hint=f"af spawn {_GIVEN[needs]} --protocol {name}",
        )
    if wanted.type == "task" and wanted.required and has is None and not asked.args:
        raise UsageError(
            f"The protocol {name} requires a task",
            why="Its protocol.json says so: input is task, and required.",
            hint=f'af spawn --protocol {name} --args \'{{"task": "…"}}\'',
        )
