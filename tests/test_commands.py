"""The commands: README gives each target of the Makefile plainly, and .ci/run installs what is missing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import busy

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf8")
MAKEFILE = (ROOT / "Makefile").read_text("utf8")
CI_RUN = ROOT / ".ci/run"

TARGETS = re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE)


def commands(target):
    """The commands of a target, as `make --dry-run` shows them, without those that set up or tidy up."""
    shown = subprocess.run(
        [
            "make",
            "--dry-run",
            "--no-print-directory",
            "--assume-old=.venv/.installed",
            "--assume-old=.venv/.installed-test",
            "--assume-old=.lint/node_modules",
            target,
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTHON"))},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = shown.replace("\\\n", "").splitlines()
    commands = [re.sub(r"; code=.*| \|\| \{ echo .*", "", line).removeprefix(".venv/bin/") for line in lines]
    return [
        line
        for line in commands
        if not re.match(r"echo|rm -rf _build$|python -P -c|.* -m uv pip freeze", line)
    ]


def plain_commands(target):
    """What README says a target is short for: the commands in the last cell of its line, or `as below`."""
    (line,) = re.findall(rf"^\| `make {target}` \|(.*)\|$", README, re.MULTILINE)
    return re.findall(r"`([^`]+)`", line.split(" | ")[-1])


needs_make = pytest.mark.skipif(not shutil.which("make"), reason="there is no make on this machine")


def test_every_target_is_in_the_readme():
    assert set(re.findall(r"^\| `make ([a-z-]+)`", README, re.MULTILINE)) == set(TARGETS)
    assert set(re.findall(r"make ([a-z-]+)", README)) == set(TARGETS)


def test_every_target_is_listed_and_phony():
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert sorted(phony.split()) == sorted([*TARGETS, "own-code"])


@needs_make
@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"help", "test-newest", "test-oldest"}))
def test_the_readme_has_the_commands_of_a_target(target):
    assert commands(target) == plain_commands(target)


@needs_make
def test_the_readme_has_the_commands_of_both_ends_of_the_ranges():
    (block,) = re.findall(r"```\n(python3 -m venv --clear .*?)```", README, re.DOTALL)
    oldest = block.splitlines()
    newest = block.replace("-oldest", "-newest").replace("lowest-direct", "highest").splitlines()
    quiet = re.compile(r" --quiet| --disable-pip-version-check")
    assert [quiet.sub("", line) for line in commands("test-oldest")] == oldest
    assert [quiet.sub("", line) for line in commands("test-newest")] == newest
    assert plain_commands("test-newest") == [".venv-newest", "highest"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_workflows_call_targets_that_exist(path):
    jobs = yaml.safe_load(path.read_text("utf8"))["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert {run.removesuffix(" ${{ matrix.target }}") for run in runs} == {"bash .ci/run"}
    matrix = jobs["check"]["strategy"]["matrix"]
    assert {entry["target"] for entry in matrix.get("include", [])} <= set(TARGETS)


# .ci/run, on a machine whose programs are stand-ins that write down how they were called


@pytest.fixture
def run_ci(tmp_path):
    """A function `run_ci(*arguments, installed=(), browser=True)` that returns its calls, line by line."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("there is no bash on this machine")
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    for name in ("bash", "dirname", "env"):
        (folder / name).symlink_to(shutil.which(name))

    def stand_in(name, text):
        (folder / name).write_text(f"#!{bash}\n{text}\n", "utf8")
        (folder / name).chmod(0o755)

    def run_ci(*arguments, installed=(), browser=True):
        stand_in("id", "echo 0")
        stand_in("python3", "exit 0")
        stand_in("dpkg-query", f'[[ " {" ".join(installed)} " == *" ${{@: -1}} "* ]] && printf installed')
        for name in ("apt-get", "make", "chromium"):
            stand_in(name, f'echo "{name} $*" >> {log}')
        if not browser:
            (folder / "chromium").unlink()
        log.write_text("", "utf8")
        subprocess.run([bash, CI_RUN, *arguments], env={"PATH": str(folder)}, check=True)
        return log.read_text("utf8").splitlines()

    return run_ci


#: The Debian packages that .ci/run looks for.
PACKAGES = re.search(r"^packages=\(\n(.*?)^\)", CI_RUN.read_text("utf8"), re.MULTILINE | re.DOTALL)[1].split()


def installs(calls):
    """The packages that apt-get was told to install."""
    words = [word for call in calls if call.startswith("apt-get install") for word in call.split()[2:]]
    return {word for word in words if not word.startswith("-")}


def test_packages_are_installed_also_where_a_browser_is(run_ci):
    assert installs(run_ci()) == set(PACKAGES)
    assert installs(run_ci(browser=False)) == {*PACKAGES, "chromium"}


@pytest.mark.parametrize("missing", PACKAGES)
def test_each_package_is_looked_for_by_itself(run_ci, missing):
    assert installs(run_ci(installed=set(PACKAGES) - {missing})) == {missing}


def test_nothing_is_installed_where_everything_is(run_ci):
    assert run_ci(installed=PACKAGES) == ["make lint", "make html", "make test"]
    assert run_ci("test-more", installed=PACKAGES) == ["make test-more"]


# Beside busy loops


def test_a_busy_run_repeats_until_it_fails_and_ends_its_loops(monkeypatch, capfd):
    loops, start_loop = [], busy.start_loop
    monkeypatch.setattr(busy, "start_loop", lambda: loops.append(start_loop()) or loops[-1])
    codes = iter([0, 0, 1])
    monkeypatch.setattr(subprocess, "call", lambda command: next(codes))  # noqa: ARG005
    assert busy.main(2, ["tests"]) == 0
    assert busy.main(2, ["tests"]) == 1
    assert capfd.readouterr().out.count("beside 2 busy loops") == 3
    assert len(loops) == 4
    assert all(loop.returncode for loop in loops)  # killed: on their own they end with 0


def test_a_busy_loop_ends_with_the_process_that_started_it():
    command = [sys.executable, "-c", "from tests import busy; busy.start_loop()"]
    # the pipe ends when every process that could write into it has ended
    subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=60, check=True)
