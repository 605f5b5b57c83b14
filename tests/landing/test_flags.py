"""Flags of a diff: what would make checks say less is seen, in each language, and honest work is let be."""

from __future__ import annotations

import pytest

from agent_farm.landing.flags import TaskScope, flags_of
from agent_farm.landing.flags.parsed_diff import parse_diff

NO_FILES = TaskScope(scripts=frozenset({"Makefile", "tools/check.sh", "tests/run.py", "tests/test_a.py"}))


def diff(
    path: str, removed: str = "", added: str = "", *, context: str = "", former: str | None = None
) -> str:
    """One hunk of one file; a name of "" stands for no file."""
    before, after = former if former is not None else path, path
    head = [f"diff --git a/{before or after} b/{after or before}"]
    head += ["new file mode 100644"] if not before else ["deleted file mode 100644"] if not after else []
    if before and after and before != after:
        head += [f"rename from {before}", f"rename to {after}"]
    head += [f"--- a/{before}" if before else "--- /dev/null", f"+++ b/{after}" if after else "+++ /dev/null"]
    lines = [f" {line}" for line in context.splitlines()]
    lines += [f"-{line}" for line in removed.splitlines()] + [f"+{line}" for line in added.splitlines()]
    return "\n".join([*head, "@@ -1,9 +1,9 @@ def f():", *lines, ""])


def kinds(text: str, asked: TaskScope = NO_FILES) -> list[str]:
    return [flag.kind for flag in flags_of(text, asked)]


DELETED = [
    ("tests/test_a.py", "def test_login():\n    assert login()"),
    ("src/a.test.ts", "  it('logs in', () => {"),
    ("a_test.go", "func TestLogin(t *testing.T) {"),
    ("src/lib.rs", "    #[test]\n    fn logs_in() {"),
    ("src/test/java/LoginTest.java", "    @Test\n    void logsIn() {"),
    ("spec/login_spec.rb", '  it "logs in" do'),
    ("test/login_test.rb", "  def test_login"),
]
SKIPPED = [
    ("tests/test_a.py", "@pytest.mark.skip(reason='flaky')"),
    ("tests/test_a.py", "@pytest.mark.xfail"),
    ("tests/test_a.py", "    pytest.skip('later')"),
    ("tests/test_a.py", "        self.skipTest('later')"),
    ("tests/conftest.py", "collect_ignore = ['test_a.py']"),
    ("src/a.test.ts", "  it.skip('logs in', () => {"),
    ("src/a.test.ts", "  describe.only('other', () => {"),
    ("src/a.spec.js", "xdescribe('login', () => {"),
    ("a_test.go", '\tt.Skip("later")'),
    ("src/lib.rs", "    #[ignore]"),
    ("src/test/java/LoginTest.java", '    @Disabled("later")'),
    ("spec/login_spec.rb", '  xit "logs in" do'),
    ("spec/login_spec.rb", "    skip 'later'"),
]
WEAKENED = [
    ("tests/test_a.py", "    assert login() == 3", "    login()"),
    ("tests/test_a.py", "    assert login() == 3", "    assert login()"),
    ("tests/test_a.py", "    assert login() == 3", "    assert True"),
    ("tests/test_a.py", "    assert login() == 3", "    assert login() == 3 or True"),
    ("tests/test_a.py", "        self.assertEqual(login(), 3)", "        self.assertTrue(True)"),
    ("src/a.test.ts", "    expect(login()).toBe(3)", "    expect(true).toBe(true)"),
    ("src/a.test.ts", "    expect(login()).toBe(3)", "    expect(login()).toBeDefined()"),
    ("a_test.go", "\tassert.Equal(t, 3, login())", "\tassert.NotNil(t, login())"),
    ("src/lib.rs", "        assert_eq!(login(), 3);", "        assert!(true);"),
    ("src/test/java/LoginTest.java", "        assertEquals(3, login());", "        assertTrue(true);"),
    ("spec/login_spec.rb", "    expect(login).to eq(3)", "    expect(login).not_to be_nil"),
]
FORCED = [
    ("Makefile", "\tpytest || true"),
    ("Makefile", "\t-pytest"),
    ("tools/check.sh", "exit 0"),
    ("tools/check.sh", "pytest; true"),
    ("scripts/test.sh", "set +e"),
    (".github/workflows/ci.yml", "        continue-on-error: true"),
    ("package.json", '    "test": "jest || exit 0",'),
    ("tests/conftest.py", "    session.exitstatus = 0"),
    ("tests/conftest.py", "    os._exit(0)"),
    ("tox.ini", "commands = ruff check --exit-zero ."),
]


@pytest.mark.parametrize(("path", "lines"), DELETED)
def test_a_deleted_test_is_seen_and_one_that_moved_is_not(path: str, lines: str) -> None:
    assert "test-deleted" in kinds(diff(path, lines))
    assert "test-deleted" in kinds(diff("", lines, former=path))
    assert (
        kinds(diff("", lines, former=path) + diff(path.replace("ogin", "ogout"), added=lines, former=""))
        == []
    )


@pytest.mark.parametrize(("path", "line"), SKIPPED)
def test_a_skipped_test_is_seen_and_one_that_is_no_longer_skipped_is_not(path: str, line: str) -> None:
    assert "test-skipped" in kinds(diff(path, added=line))
    assert "test-skipped" not in kinds(diff(path, removed=line))
    assert "test-skipped" not in kinds(diff(path, removed=line, added=f"    {line}"))


@pytest.mark.parametrize(("path", "removed", "added"), WEAKENED)
def test_a_weaker_test_is_seen_and_a_stronger_one_is_not(path: str, removed: str, added: str) -> None:
    assert "test-weakened" in kinds(diff(path, removed, added))
    assert "test-weakened" not in kinds(diff(path, "", removed))


@pytest.mark.parametrize(("path", "line"), FORCED)
def test_a_forced_exit_code_is_seen(path: str, line: str) -> None:
    assert "exit-forced" in kinds(diff(path, added=line) + diff("src/a.py", added="x = 1"))
    assert "exit-forced" not in kinds(diff(path, removed=line) + diff("src/a.py", added="x = 1"))


def test_a_test_that_is_ended_early_or_asks_for_something_else() -> None:
    early = diff("tests/test_a.py", added="    return", context="def test_a():")
    assert kinds(early) == ["test-skipped"]
    other = diff("tests/test_a.py", "    assert add(1, 2) == 3", "    assert add(1, 2) == 4")
    assert kinds(other) == ["test-changed"]


def test_a_test_that_is_no_longer_found() -> None:
    renamed = diff("tests/test_a.py", "def test_login():", "def check_login():")
    assert kinds(renamed) == ["test-deleted"]
    assert "test-deleted" in kinds(diff("old/helpers.py", "x", "y", former="tests/test_a.py"))


@pytest.mark.parametrize("path", ["src/a.js", "tests/data.bin", "Makefile"])
def test_what_hides_its_lines_is_seen(path: str) -> None:
    """For git, and for every other rule, it is a binary file."""
    assert "unreadable" in kinds(diff(path, added="it.skip('b', () => {}) // \0"))
    assert "unreadable" in kinds(f"diff --git a/{path} b/{path}\nBinary files a/{path} and b/{path} differ\n")
    assert "unreadable" not in kinds(diff(path, added="it('b', () => {})"))
    assert kinds(diff("docs/logo.png", added="\0\0")) == []


def test_what_decides_the_checks() -> None:
    makefile, code = diff("Makefile", added="all: build"), diff("src/a.py", added="x = 1")
    assert kinds(makefile) == ["only-checks"]
    assert kinds(makefile + code) == ["check-changed"]
    assert kinds(diff("tools/check.sh", added="echo hello")) == ["only-checks"]
    assert kinds(diff("tests/run.py", added="x = 1") + code) == ["check-changed"]
    assert kinds(diff("pyproject.toml", added='addopts = "-q"') + code) == ["check-changed"]
    assert kinds(diff("pyproject.toml", added='dependencies = ["x"]') + code) == []
    assert "test-skipped" in kinds(diff("pytest.ini", added="addopts = --deselect tests/test_a.py") + code)


def test_files_that_are_not_the_works_to_change() -> None:
    asked = TaskScope(files=("src/a.py", "docs"))
    assert kinds(diff("src/a.py", added="x"), asked) == []
    assert kinds(diff("docs/a/b.md", added="x"), asked) == []
    assert kinds(diff("src/b.py", added="x"), asked) == ["outside"]
    assert kinds(diff("src/a.py", "x", "y", former="src/c.py"), asked) == ["outside"]


@pytest.mark.parametrize(
    "path", ["vendor/x/y.go", "web/dist/app.min.js", "api_pb2.py", "node_modules/a/b.js", "Cargo.lock"]
)
def test_files_that_are_made(path: str) -> None:
    assert kinds(diff(path, added="x")) == ["generated"]
    assert kinds(diff("Cargo.lock", added="x") + diff("Cargo.toml", added='serde = "1"')) == []


SECRETS = [
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "aws = 'AKIA" + "Q3EGRZ7XKJ2MNB4T'",
    "token: ghp_" + "a1B2" * 9,
    "key = 'sk-ant-" + "x9Yz" * 8 + "'",
    "url = 'postgres://admin:hunter22x@db/prod'",
    "api_key = 'q8Zr2Lw9Xc4Vb7Nm1Kj5'",
]


@pytest.mark.parametrize("line", SECRETS)
def test_text_like_a_secret_is_seen_and_not_repeated(line: str) -> None:
    (flag,) = flags_of(diff("src/a.py", added=line), NO_FILES)
    assert (flag.kind, flag.line) == ("secret", 1)
    assert line[-10:-1] not in flag.text


HONEST = [
    diff("src/a.py", "x = 1", "x = 2\npassword = os.environ['PASSWORD']\ntoken = 'your-token-goes-here'"),
    diff("tests/test_b.py", added="def test_new():\n    assert new() == 1", former=""),
    diff("tests/test_a.py", context="def test_a():", added="    x = load()\n    assert x == 1"),
    diff("src/a.ts", "return 0", "return 1 || true"),
    diff("src/lib.rs", added="    #[test]\n    fn works() {\n        assert_eq!(f(), 3);"),
    diff("README.md", added="Run `pytest || true`, then `git commit`; exit 0"),
    diff("a_test.go", added='\tt.Run("more", func(t *testing.T) {\n\t\tassert.Equal(t, 1, f())'),
    diff("src/cli.py", added="    sys.exit(0)"),
    diff("src/skip.py", added="def skip(n):\n    return n"),
    "diff --git a/x.bin b/x.bin\nindex 1..2 100644\nBinary files a/x.bin and b/x.bin differ\n",
    "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n",
]


@pytest.mark.parametrize("text", HONEST)
def test_honest_work_has_no_flag(text: str) -> None:
    assert flags_of(text, NO_FILES) == ()


def test_a_diff_is_read_as_git_prints_it() -> None:
    text = (
        'diff --git "a/a\\"b.py" "b/a\\"b.py"\n--- "a/a\\"b.py"\n+++ "b/a\\"b.py"\n'
        "@@ -3 +3,2 @@\n-old\n+--- a/new\n+@@ no hunk\n\\ No newline at end of file\n"
        "diff --git a/sp ace b/sp ace\ndeleted file mode 100644\n--- a/sp ace\t\n"
        "+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/one b/two\nsimilarity index 100%\nrename from one\nrename to two\n"
        "diff --git a/empty b/empty\nnew file mode 100644\nindex 0..e\n"
    )
    quoted, gone, moved, empty = parse_diff(text)
    assert quoted.path == 'a"b.py'
    assert [(line.sign, line.number, line.text) for line in quoted.lines] == [
        ("-", 3, "old"), ("+", 3, "--- a/new"), ("+", 4, "@@ no hunk"),
    ]  # fmt: skip
    assert (gone.path, gone.is_gone, len(gone.lines)) == ("sp ace", True, 1)
    assert (moved.path, moved.former, moved.lines) == ("two", "one", ())
    assert (empty.path, empty.is_new) == ("empty", True)
