"""Notebooks import this folder's code, and what they show does not depend on a home directory."""

import os
import shutil
import subprocess
import sys

import pytest

from labs.site import environment
from labs.site.environment import SiteError


def test_root_is_the_repository():
    assert (environment.ROOT / "_config.yml").exists()
    assert (environment.ROOT / "labs/site/environment.py").exists()


def test_text_that_is_damaged_is_refused(tmp_path):
    (tmp_path / "page.md").write_bytes("für".encode("latin-1"))
    with pytest.raises(SiteError, match=r"page\.md is damaged: .* from byte 1 on"):
        environment.read_text(tmp_path / "page.md")


# Whose code


def test_this_folder_s_own_code_is_accepted(monkeypatch, tmp_path):
    environment.require_own_code()
    monkeypatch.chdir(tmp_path)
    environment.require_own_code()


def test_an_environment_of_another_folder_is_refused_with_the_command_that_mends_it(tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    (copy / "labs").mkdir(parents=True)
    (copy / "labs/__init__.py").touch()
    monkeypatch.chdir(copy)  # where `python -m labs.site` finds the copy's code, and a kernel does not
    with pytest.raises(SiteError) as refused:
        environment.require_own_code(copy)
    message = str(refused.value)
    assert f"would import labs from {environment.ROOT / 'labs'}, not from {copy}" in message
    command = message.splitlines()[-1].split()
    assert command[:3] == [sys.executable, "-m", "pip"]
    assert command[-2:] == ["-e", str(copy)]


def test_an_environment_without_labs_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "WHERE_LABS_IS", (sys.executable, "-I", "-S", "-c", "import labs"))
    with pytest.raises(SiteError, match=rf"cannot import labs from {tmp_path}, because the environment"):
        environment.require_own_code(tmp_path)


def test_pytest_refuses_it_too(tmp_path):
    shutil.copy(environment.ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_a.py").write_text("def test_a():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_a.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        f"ERROR: Notebooks would import labs from {environment.ROOT / 'labs'}, not from {tmp_path}"
        in run.stderr
    )


# Without a home


DRAW = """
import IPython.paths
import matplotlib.pyplot as plt

IPython.paths.get_ipython_dir()
plt.plot([1, 2])
plt.title("a")
plt.savefig("figure.svg")
"""


def test_programs_are_quiet_without_a_home(tmp_path, monkeypatch):
    for name in ("MPLCONFIGDIR", "IPYTHONDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "set again by the next line")
        monkeypatch.delenv(name)
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file/no-home"))  # not even root can make a folder there

    def draw():
        command = [sys.executable, "-c", DRAW]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr

    complaints = draw()
    assert "MPLCONFIGDIR" in complaints
    assert "IPython" in complaints
    environment.leave_home_alone(tmp_path / "ours")
    assert draw() == ""
    assert os.listdir(tmp_path / "ours/matplotlib"), "the fonts were not looked for in advance"
