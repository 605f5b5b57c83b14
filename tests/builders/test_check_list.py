"""Check lists in the forms in which spec-kit, Kiro, OpenSpec and people write them.

They are made up, after some 150 public ones: what is peculiar in those is in these.
"""

from __future__ import annotations

import pytest

from agent_farm.builders.check_list import marked, open_items, read_items
from agent_farm.errors import UsageError

SPEC_KIT = """\
# Tasks: Login

**Format**: `[ID] [P?] [Story] Description`

## Phase 1: Setup

- [x] T001 Create project structure
- [ ] T002 [P] Configure linting in `pyproject.toml`
- [ ] T003 [P] Configure tests

## Phase 2: User Story 1 (Priority: P1)

- [ ] T004 [P] [US1] Contract test in tests/contract/test_login.py
- [ ] T005 [US1] Implement service in src/login.py
  It needs the model.
- [ ] T005a Undo it

**Checkpoint**

- [ ] All contract tests pass
- [ ] Linting is clean

```markdown
- [ ] T999 An example, and no task
```
"""
KIRO = """\
# Implementation Plan

- [ ] 1. Set up project structure
  - Create directories
  - _Requirements: 1.1_
- [ ] 2. Implement models
- [ ] 2.1 Create interfaces
  - _Requirements: 2.1, 3.3_
- [ ]* 2.2 Write property tests
"""
KIRO_BELOW = """\
# Implementation Plan

- [x] 1. Set up project structure
- [-] 2. Implement models
  - [x] 2.1 Create interfaces
    - _Requirements: 2.1, 3.3_
  - [~] 2.2 Validate
    - [ ] also dates

  - [ ]* 2.3 Write property tests
    ```
    - [ ] 2.4 An example
    ```

- [ ] 2.3 Document them
- [ ] Checkpoint
"""
NESTED = "- [ ] 1. Models\n  - [ ] 1.1 User\n  - [x] 1.2 Role\n\n- [X] 2. Views\n"
PLAIN = "# Todo\n* [ ] Fix the login\r\n  when the cookie is old\n* [x] Done\n* [ ] 2 retries, not 3\n"


def test_spec_kit_waits_by_its_marks() -> None:
    items = open_items(SPEC_KIT)
    assert {item.key: item.after for item in items} == {
        "T002": (),
        "T003": (),
        "T004": ("T002", "T003"),
        "T005": ("T004",),
        "T005a": ("T005",),
    }
    assert items[-2].text == "Implement service in src/login.py\nIt needs the model."
    assert items[2].title == "Contract test in tests/contract/test_login.py"


def test_kiro_has_headings_that_are_no_tasks_and_optional_ones_that_are() -> None:
    items = open_items(KIRO)
    assert [(item.key, item.after) for item in items] == [("1", ()), ("2.1", ("1",)), ("2.2", ("2.1",))]
    assert items[0].text == "Set up project structure\n- Create directories\n- _Requirements: 1.1_"


def test_what_kiro_indents_is_a_task_of_its_own_by_its_number() -> None:
    items = {item.key: item for item in open_items(KIRO_BELOW)}
    assert list(items) == ["2.2", "2.3", "2.3-2", "item-7"]
    assert items["2.2"].text == "Validate\n- [ ] also dates"
    assert "2.4 An example" in items["2.3"].text
    assert items["2.3-2"].after == ("2.3",)
    text = KIRO_BELOW
    for key, item in items.items():
        text = marked(text, key, item.title) or ""
        assert ("[x] 2. Implement" in text) == (key in ("2.3-2", "item-7"))
    assert [line for line in text.splitlines() if "[ ]" in line] == ["    - [ ] 2.4 An example"]


def test_a_list_whose_items_are_mostly_without_a_number_is_numbered() -> None:
    assert [(one.key, one.title, one.is_done) for one in read_items(PLAIN)] == [
        ("1", "Fix the login", False),
        ("2", "Done", True),
        ("3", "2 retries, not 3", False),
    ]


def test_a_mark_changes_its_own_boxes_and_no_other_byte() -> None:
    assert marked(SPEC_KIT, "T005", "Implement service in src/login.py") == SPEC_KIT.replace(
        "[ ] T005 ", "[x] T005 "
    )
    assert marked(PLAIN, "1", "Fix the login") == PLAIN.replace("[ ] Fix", "[x] Fix")
    assert marked(NESTED, "1.1", "User") == NESTED.replace("[ ]", "[x]")
    first = marked(KIRO, "2.1", "Create interfaces")
    assert first == KIRO.replace("[ ] 2.1", "[x] 2.1")
    assert marked(first, "2.2", "Write property tests") == first.replace("[ ]* 2.2", "[x]* 2.2").replace(
        "[ ] 2. ", "[x] 2. "
    )


@pytest.mark.parametrize(
    ("key", "title"), [("T001", "Create project structure"), ("T005", "Another"), ("T9", "")]
)
def test_what_is_done_renamed_or_gone_is_not_marked(key: str, title: str) -> None:
    assert marked(SPEC_KIT, key, title) is None


def test_a_list_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="1001 items"):
        read_items("- [ ] a\n" * 1001)
