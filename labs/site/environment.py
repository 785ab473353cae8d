"""What surrounds a build: the folder that `labs` comes from, and where other programs keep their files."""

import os
import subprocess
import sys
from pathlib import Path

#: The top of the repository; labs is installed from there.
ROOT = Path(__file__).resolve().parents[2]

#: Asks as a kernel would: without the working directory, which Python otherwise puts first on its path.
WHERE_LABS_IS = (sys.executable, "-P", "-c", "import labs; print(labs.__path__[0])")


class SiteError(RuntimeError):
    """Something keeps the book from being built or refreshed; the message says what, and what to do."""


def read_text(path: Path) -> str:
    """The text of one of the book's files.

    Raises: SiteError if it is not UTF-8.
    """
    try:
        return path.read_text("utf8")
    except UnicodeDecodeError as error:
        raise SiteError(
            f"{path} is damaged: expected UTF-8 text, got something else from byte {error.start} on. "
            "Save it as UTF-8, or restore it with `git restore`"
        ) from error


def require_own_code(root: Path = ROOT) -> None:
    """Refuse an environment that imports `labs` from elsewhere: notebooks would show that code's numbers.

    This happens to a folder that was copied or moved together with its `.venv`.

    Raises: SiteError, which names both folders and the command that fixes it.
    """
    found = subprocess.run(WHERE_LABS_IS, capture_output=True, text=True).stdout.strip()
    if found and Path(found).resolve() == (root / "labs").resolve():
        return
    told = f"would import labs from {found}, not from {root}" if found else f"cannot import labs from {root}"
    raise SiteError(
        f"Notebooks {told}, because the environment {sys.prefix} was not set up for this folder. "
        f"Set it up with:\n  {sys.executable} -m pip install --no-deps --no-build-isolation -e {root}"
    )


def leave_home_alone(folder: Path = ROOT / "_build/home") -> None:
    """Make matplotlib and IPython use this folder, here and in every process started from here.

    Both complain on stderr if they cannot write to the home directory, and the personal settings that they
    find there would change what a notebook shows.
    """
    folders = {"MPLCONFIGDIR": folder / "matplotlib", "IPYTHONDIR": folder / "ipython"}
    for name, path in folders.items():
        path.mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(path)
    if not any(folders["MPLCONFIGDIR"].glob("fontlist*")):
        # if a notebook has to look for fonts and that takes long, matplotlib says so on stderr
        subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], stderr=subprocess.DEVNULL)
