"""Whatever a user's git does by itself, a checkout has the bytes that were committed."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_file_is_text_with_unix_line_ends_or_declared_binary():
    listing = subprocess.run(
        ["git", "ls-files", "--eol", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.partition("\t") for line in listing.stdout.splitlines()]
    assert len(lines) > 100
    text = {"i/lf": "eol=lf", "i/none": "eol=lf", "i/": "eol=lf", "i/-text": "attr/-text"}
    for kinds, _, name in lines:
        index, _, *attributes = kinds.split()
        assert text[index] in attributes, f"{name}: {kinds}"


def test_a_checkout_that_converts_line_ends_leaves_scripts_and_notebooks_alone(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    names = (
        ".gitattributes",
        ".ci/run",
        "Makefile",
        "book/01_shapes.ipynb",
        "labs/llm/mutants/torch_jax.npz",
    )
    git("init", "--quiet", "first")
    for name in names:
        (tmp_path / "first" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "first" / name).write_bytes((ROOT / name).read_bytes())
    git("-C", "first", "add", "--force", ".")
    git("-C", "first", "commit", "--quiet", "--message", "all")
    git("clone", "--quiet", "-c", "core.autocrlf=true", "first", "second")
    for name in names:
        assert (tmp_path / "second" / name).read_bytes() == (ROOT / name).read_bytes(), name
