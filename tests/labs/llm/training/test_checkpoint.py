"""A checkpoint comes back bit for bit, or is refused; the file on disk is always a whole one."""

import json
import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from labs.llm import tiny
from labs.llm.training.checkpoint import Checkpoint, fcntl, load, save
from labs.llm.training.optim import AdamWConfig, adamw, adamw_init


def a_checkpoint(dtype=np.float64, seed=0):
    """One step after the example's parameters, with a random gradient."""
    rng = np.random.default_rng(seed)
    params = {key: array.astype(dtype) for key, array in tiny.params().items()}
    grads = {key: rng.standard_normal(array.shape).astype(dtype) for key, array in params.items()}
    params, optimizer = adamw(params, grads, adamw_init(params), 0.01, AdamWConfig())
    return Checkpoint(tiny.CONFIG, tiny.VOCABULARY, params, optimizer, rng.bit_generator.state)


def assert_equal(found, expected):
    assert (found.config, found.vocabulary, found.step) == (
        expected.config,
        expected.vocabulary,
        expected.step,
    )
    assert found.rng == expected.rng
    groups = [(c.params, c.optimizer.mean, c.optimizer.square) for c in (found, expected)]
    for one, other in zip(*groups, strict=True):
        assert list(one) == list(other)
        for key in one:
            assert one[key].dtype == other[key].dtype
            assert np.array_equal(one[key], other[key])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


# There and back


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_comes_back_bit_for_bit(path, dtype):
    checkpoint = a_checkpoint(dtype)
    save(path, checkpoint)
    assert_equal(load(path), checkpoint)
    assert load(str(path)).step == 1


def test_the_generator_goes_on_where_it_was(path):
    checkpoint = a_checkpoint()
    save(path, checkpoint)
    numbers = []
    for rng in (checkpoint.rng, load(path).rng):
        generator = np.random.default_rng()
        generator.bit_generator.state = rng
        numbers.append(generator.integers(0, 10**9, 5).tolist())
    assert numbers[0] == numbers[1]


def test_a_character_that_needs_escapes_comes_back(path):
    checkpoint = a_checkpoint()._replace(vocabulary=("\x00", "\n", '"', "é", "…", "\ud800", "😀", "a", "b"))
    save(path, checkpoint)
    assert load(path).vocabulary == checkpoint.vocabulary


def test_a_later_checkpoint_replaces_the_earlier_one_and_leaves_nothing_else(path):
    save(path, a_checkpoint(seed=0))
    save(path, a_checkpoint(seed=1))
    assert_equal(load(path), a_checkpoint(seed=1))
    assert os.listdir(path.parent) == ["run.npz"]


# Whole or not at all


@pytest.mark.parametrize("failing", ["numpy.savez", "os.fsync", "os.replace"])
def test_a_failure_on_the_way_leaves_the_old_file(path, monkeypatch, failing):
    save(path, a_checkpoint(seed=0))
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(failing, fail)
        with pytest.raises(OSError, match="no space left"):
            save(path, a_checkpoint(seed=1))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["run.npz"]


def test_the_new_file_is_complete_and_on_the_disk_before_it_is_renamed(path, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace

    def watch_fsync(descriptor):
        events.append(("fsync", os.fstat(descriptor).st_size))
        fsync(descriptor)

    def watch_replace(source, target):
        events.append(("replace", os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watch_fsync)
    monkeypatch.setattr(os, "replace", watch_replace)
    save(path, a_checkpoint())
    size = path.stat().st_size
    assert events == [("fsync", size), ("replace", size)]


# Refusals


def test_a_missing_file_or_folder_is_said_to_be_missing(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(FileNotFoundError):
        save(path.parent / "nowhere" / "run.npz", a_checkpoint())


def test_a_truncated_file_is_refused_wherever_it_ends(path):
    save(path, a_checkpoint())
    content = path.read_bytes()
    for size in [*range(0, len(content), 199), len(content) - 1]:
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"must be a checkpoint written by save, got '.*run\.npz'"):
            load(path)


def test_a_damaged_byte_is_refused_or_does_no_harm(path):
    """A zip archive holds a checksum of every array; some bytes of its bookkeeping are never read."""
    checkpoint = a_checkpoint()
    save(path, checkpoint)
    content = path.read_bytes()
    refused = 0
    places = range(0, len(content), 131)
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        try:
            found = load(path)
        except ValueError:
            refused += 1
        else:
            assert_equal(found, checkpoint)
    assert refused > len(places) / 2


class Bomb:
    """An object that, when unpickled, makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def foreign_files(folder):
    yield "empty", b""
    yield "text", b"not an archive"
    yield "pickle", pickle.dumps(Bomb(str(folder / "bomb")))
    for name, write in {
        "npy": lambda file: np.save(file, np.ones(3)),
        "another npz": lambda file: np.savez(file, weights=np.ones(3)),
        "pickle inside": lambda file: np.savez(file, header=np.array(Bomb(str(folder / "bomb")), object)),
        "zip": lambda file: zipfile.ZipFile(file, "w").close(),
    }.items():
        source = folder / "source"
        with source.open("wb") as file:
            write(file)
        yield name, source.read_bytes()


def test_a_foreign_file_is_refused_and_never_unpickled(path, tmp_path):
    for name, content in foreign_files(tmp_path):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="must be a checkpoint written by save"):
            load(path)
        assert not (tmp_path / "bomb").exists(), name


def rewrite(path, change):
    """Let `change` alter the header and the arrays of the file."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays.pop("header")))
    change(header, arrays)
    with path.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


MISMATCHES = {
    "format": (lambda header, _: header.update(format="other"), "format must be .*, got 'other'"),
    "no format": (lambda header, _: header.pop("format"), "KeyError: 'format'"),
    "config": (lambda header, _: header["config"].update(d_ff=24), r"must have shape \(D, F\) = \(8, 24\)"),
    "bad config": (lambda header, _: header["config"].update(n_heads=3), "d_model must be divisible"),
    "unknown field": (lambda header, _: header["config"].update(bias=True), "TypeError: .*'bias'"),
    "vocabulary": (lambda header, _: header["vocabulary"].pop(), "must hold V = 9 characters, got 8"),
    "repeated character": (lambda header, _: header.update(vocabulary=["a"] * 9), "characters, each once"),
    "vocabulary of numbers": (lambda header, _: header.update(vocabulary=[*range(9)]), "single characters"),
    "step": (lambda header, _: header.update(step=-1), "step must be at least 0"),
    "half a step": (lambda header, _: header.update(step=1.5), "step must be an int"),
    "generator": (lambda header, _: header["rng"].update(bit_generator="MT19937"), "PCG64"),
    "missing": (lambda _, arrays: arrays.pop("params.blocks.0.wq"), r"missing \['blocks.0.wq'\]"),
    "extra": (lambda _, arrays: arrays.update({"params.bias": np.ones(2)}), r"extra \['bias'\]"),
    "unknown part": (lambda _, arrays: arrays.update({"other.bias": np.ones(2)}), "KeyError: 'other'"),
    "mean": (lambda _, arrays: arrays.pop("mean.embedding"), r"mean must have .* missing \['embedding'\]"),
    "square": (
        lambda _, arrays: arrays.update({"square.final_norm": np.ones(8, np.float32)}),
        "state.square of 'final_norm' must have",
    ),
    "NaN": (
        lambda _, arrays: arrays.update({"params.final_norm": np.full(8, np.nan)}),
        "params of final_norm must hold finite numbers, got",
    ),
    "infinite": (
        lambda _, arrays: arrays.update({"mean.final_norm": np.full(8, np.inf)}),
        "mean of final_norm must hold finite numbers, got",
    ),
    "negative": (
        lambda _, arrays: arrays.update({"square.final_norm": np.full(8, -1e-9)}),
        "square of final_norm must hold finite numbers, none below zero, got",
    ),
    "rng": (lambda header, _: header["rng"].pop("has_uint32"), "rng must be the state of a PCG64 generator"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), MISMATCHES.values(), ids=MISMATCHES.keys())
def test_a_file_whose_parts_do_not_fit_is_refused(path, change, message):
    save(path, a_checkpoint())
    rewrite(path, lambda *_: None)
    assert load(path).step == 1  # so it is the change that is refused
    rewrite(path, change)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_what_does_not_fit_is_not_saved(path):
    save(path, a_checkpoint())
    before = path.read_bytes()
    for broken in (
        a_checkpoint()._replace(vocabulary=("a",)),
        a_checkpoint()._replace(params={}),
        a_checkpoint()._replace(rng=np.random.MT19937(0).state),
        a_checkpoint()._replace(optimizer=adamw_init({})),
        a_checkpoint()._replace(rng=None),
        a_checkpoint()._replace(params=a_checkpoint().params | {"final_norm": np.full(8, np.nan)}),
    ):
        with pytest.raises(ValueError, match="must"):
            save(path, broken)
    for broken in (
        None,
        {},
        a_checkpoint()._replace(config={}),
        a_checkpoint()._replace(vocabulary=set("ab")),
    ):
        with pytest.raises(TypeError, match="must be"):
            save(path, broken)
    assert path.read_bytes() == before


# Within bounds


def refused_within(path, megabytes):
    """Load a file that must be refused; return the message. Its memory, beyond what is there, is bounded."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="must be a checkpoint written by save") as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < megabytes * 2**20
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 1000
    return str(caught.value)


def test_a_small_file_does_not_grow_large(path):
    """256 KB on the disk, 256 MB when inflated."""
    save(path, a_checkpoint())
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["params.embedding"] = np.zeros((2**25,))
    np.savez_compressed(path, **arrays)
    assert path.stat().st_size < 2**19
    assert "must hold its arrays uncompressed" in refused_within(path, 4)


def test_an_array_that_claims_to_be_large_does_not_take_the_memory(path):
    save(path, a_checkpoint())
    content = path.read_bytes()
    shape = b"'shape': (9, 8), }        "
    assert content.count(shape) == 3
    path.write_bytes(content.replace(shape, b"'shape': (9, 80000000), } "))
    refused_within(path, 4)


def test_arrays_that_lie_on_top_of_each_other_are_refused(path):
    save(path, a_checkpoint())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("params.large.npy", b"0" * 2**20)
        large = archive.getinfo("params.large.npy")
        for i in range(99):
            copy = zipfile.ZipInfo(f"params.{i}.npy")
            for name in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(copy, name, getattr(large, name))
            archive.filelist.append(copy)
    assert "must hold its arrays uncompressed" in refused_within(path, 8)


@pytest.mark.parametrize("layers", [10**6, 10**15])
def test_a_header_of_a_million_layers_is_refused_cheaply_and_shortly(path, layers):
    save(path, a_checkpoint())
    rewrite(path, lambda header, _: header["config"].update(n_layers=layers))
    assert f"L = {layers} layers" in refused_within(path, 4)


def test_a_header_of_another_kind_is_refused_shortly(path):
    save(path, a_checkpoint())
    rewrite(path, lambda header, _: header.update(format="x" * 10**6))
    refused_within(path, 40)
    for value in ([], None, "x" * 10**6, {"config": {"x" * 10**6: 1}, "format": "labs.llm checkpoint 1"}):
        with path.open("wb") as file:
            np.savez(file, header=np.array(json.dumps(value)))
        refused_within(path, 40)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_second_array_of_the_same_name_is_refused(path):
    save(path, a_checkpoint())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("params.final_norm.npy", archive.read("params.embedding.npy"))
    with pytest.raises(ValueError, match="must have different names for its arrays, got the same name twice"):
        load(path)


# What a killed save leaves behind

KILLED = """
import os, signal, sys
from labs.llm.training import checkpoint
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save(sys.argv[1], checkpoint.load(sys.argv[1]))
"""

WAITS = """
import os, sys
from labs.llm.training import checkpoint
def fsync(_):
    print("at work", flush=True)
    sys.stdin.readline()
os.fsync = fsync
checkpoint.save(sys.argv[1], checkpoint.load(sys.argv[1]))
"""


def unfinished(path):
    return [entry for entry in path.parent.iterdir() if entry != path]


@pytest.mark.skipif(fcntl is None, reason="needs locks on folders")
def test_the_next_save_clears_up_after_killed_ones(path):
    save(path, a_checkpoint(seed=0))
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == -signal.SIGKILL
        assert len(unfinished(path)) == 1  # its own: that of the one before is gone
    save(path, a_checkpoint(seed=1))
    assert unfinished(path) == []
    assert_equal(load(path), a_checkpoint(seed=1))


@pytest.mark.skipif(fcntl is None, reason="needs locks on folders")
def test_a_save_leaves_alone_what_another_one_is_writing(path):
    save(path, a_checkpoint(seed=0))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", WAITS, path], **pipes) as other:
        assert other.stdout.readline() == "at work\n"
        save(path, a_checkpoint(seed=1))
        assert len(unfinished(path)) == 1
        assert_equal(load(path), a_checkpoint(seed=1))
        other.communicate("go on\n")
    assert other.returncode == 0
    assert_equal(load(path), a_checkpoint(seed=0))
    assert unfinished(path) == []


def test_clearing_up_spares_what_only_looks_alike(path):
    others = [f".{path.name}-backup", f"{path.name}.unfinished", f".{path.name}x-1.unfinished"]
    for name in others:
        (path.parent / name).mkdir()
    save(path, a_checkpoint())
    assert sorted(entry.name for entry in unfinished(path)) == sorted(others)
