"""The commands: what they call, what they print, how they end."""

from pathlib import Path

import pytest

from labs.site import __main__ as command
from labs.site import build, refresh


@pytest.fixture
def calls(monkeypatch):
    """What the commands did, in order, without doing it."""
    made = []

    def pretend_build():
        made.append("build")
        return Path("site")

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
        (refresh.RefreshError("why"), 1, "why\n"),
        (KeyboardInterrupt(), 130, "\nInterrupted"),
    ],
)
def test_troubles_are_told_and_end_with_an_exit_code(monkeypatch, capsys, error, code, said):
    def fail():
        raise error

    monkeypatch.setattr(build, "build", fail)
    assert command.main(["build"]) == code
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["build", "extra"]])
def test_other_words_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m labs.site" in capsys.readouterr().err
