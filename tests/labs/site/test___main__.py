"""The commands: what they call, what they print, how they end."""

from pathlib import Path

import pytest

from labs.site import __main__ as command
from labs.site import build, environment, refresh


@pytest.fixture
def calls(monkeypatch):
    """What the commands did, in order, without doing it."""
    made = []

    def pretend_build():
        made.append("build")
        return Path("site")

    monkeypatch.setattr(environment, "leave_home_alone", lambda: None)
    monkeypatch.setattr(build, "build", pretend_build)
    monkeypatch.setattr(build, "serve", lambda port: made.append(f"serve {port}"))
    monkeypatch.setattr(refresh, "refresh", lambda paths: made.append(paths))
    return made


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["build"], ["build"]),
        (["serve"], ["serve 8000"]),
        (["serve", "--port", "9000"], ["serve 9000"]),
        (["book"], ["build", "serve 8000"]),
        (["refresh"], [None]),
        (["refresh", "a.ipynb", "b.ipynb"], [[Path("a.ipynb").resolve(), Path("b.ipynb").resolve()]]),
    ],
)
def test_commands(calls, arguments, expected):
    assert command.main(arguments) == 0
    assert calls == expected


@pytest.mark.usefixtures("calls")
def test_build_ends_with_where_the_site_is_and_what_to_do(capsys):
    command.main(["build"])
    assert capsys.readouterr().out.splitlines() == [
        "The site is in site",
        "Read it: open index.html there, or run `python -m labs.site serve`.",
    ]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (build.BuildError("why"), 1, "why\n"),
        (environment.SiteError("why"), 1, "why\n"),
        (
            PermissionError(13, "Permission denied", "_build/x"),
            1,
            "_build/x cannot be read or written: ",
        ),
        (
            OSError(28, "No space left on device"),
            1,
            "A file cannot be read or written: No space",
        ),
        (KeyboardInterrupt(), 130, "\nInterrupted"),
    ],
)
def test_troubles_are_told_and_end_with_an_exit_code(monkeypatch, capsys, error, code, said):
    def fail():
        raise error

    monkeypatch.setattr(environment, "leave_home_alone", lambda: None)
    monkeypatch.setattr(build, "build", fail)
    assert command.main(["build"]) == code
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["build", "extra"]])
def test_other_words_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m labs.site" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["99999", "65536", "-1", "http", "80.5", ""])
def test_what_is_no_port_is_refused(port, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["serve", f"--port={port}"])
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(f"argument --port: expected a whole number from 0 to 65535, got {port!r}")


@pytest.mark.parametrize(
    ("words", "kept_off"), [("build", True), ("book", True), ("refresh", True), ("serve", False)]
)
@pytest.mark.usefixtures("calls")
def test_what_runs_notebooks_leaves_home_alone(words, kept_off, monkeypatch):
    asked = []
    monkeypatch.setattr(environment, "leave_home_alone", lambda: asked.append(True))
    command.main([words])
    assert asked == [True] * kept_off
