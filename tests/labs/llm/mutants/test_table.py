"""No mutant survives all checks, no check is idle, the stored table is true, and PyTorch and JAX agree."""

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from labs.llm import checks
from labs.llm.checks import CANNOT_TELL, FAILED, PASSED, Finding
from labs.llm.model import ModelConfig
from labs.llm.mutants import table as mutants
from labs.llm.mutants import torch_jax
from labs.llm.mutants.catalogue import MISTAKES
from labs.llm.mutants.planting import ORIGINAL, Edit, plant, planted
from labs.llm.mutants.table import (
    CHECKS,
    EXAMPLES,
    GRADCHECKED,
    TABLE_PATH,
    as_text,
    examine,
    load_table,
    row,
    values,
)


@pytest.fixture(scope="module")
def table():
    return load_table()


def framework_values(example_name, framework):
    """Return a framework's logits, loss and gradients under the names of mutants.values."""
    found = torch_jax.values(example_name, framework)
    grads = {f"gradient of {key}": array for key, array in found.grads.items()}
    return {"logits": found.logits, "loss": found.loss, **grads}


# Two other implementations


@pytest.mark.parametrize("framework", torch_jax.VERSIONS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_model_agrees_with_frameworks(name, framework, record_property):
    example = EXAMPLES[name](ORIGINAL)
    finding = checks.agreement(values(ORIGINAL, example), framework_values(name, framework))
    record_property(f"worst relative error against {framework}", f"{finding.numbers['relative_error']:.1e}")
    assert finding.numbers["relative_error"] <= 1e-10, finding


# The examples


def test_distinct_has_no_coincidences():
    example = EXAMPLES["distinct"](ORIGINAL)
    config, (B, T) = example.config, example.ids.shape
    sizes = [
        B,
        T,
        config.d_model,
        config.n_heads,
        config.d_head,
        config.d_ff,
        config.vocab_size,
        config.n_layers,
    ]
    assert sizes == [3, 7, 24, 4, 6, 20, 11, 2]
    assert len(set(sizes)) == len(sizes)
    default = ModelConfig(vocab_size=11)
    assert config.rope_base != default.rope_base
    assert config.norm_eps != default.norm_eps
    assert config.n_heads != math.sqrt(config.d_head)
    gains = [array for key, array in example.params.items() if key.endswith("norm")]
    assert min(np.abs(gain - 1).max() for gain in gains) > 0.1
    assert len(np.unique(example.ids)) < example.ids.size


def test_tiny_has_the_coincidences_that_the_text_names():
    config, (B, _) = EXAMPLES["tiny"](ORIGINAL).config, EXAMPLES["tiny"](ORIGINAL).ids.shape
    assert B == config.n_heads == math.sqrt(config.d_head)
    assert config.n_layers == 1


# The table


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_package_passes_every_check(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for check_name, check in CHECKS.items():
            finding = check(ORIGINAL, EXAMPLES[name](ORIGINAL))
            assert isinstance(finding, Finding)
            assert finding, f"{check_name}: {finding}"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_the_table_is_true(mistake, table):
    (entry,) = [entry for entry in table["mistakes"] if entry["name"] == mistake.name]
    assert row(mistake) == entry, "run: python -m labs.llm.mutants"


def test_every_backward_has_its_gradients_checked():
    functions = {*dir(ORIGINAL.ops), *dir(ORIGINAL.model)}
    names = {name.removesuffix("_backward") for name in functions if name.endswith("_backward")}
    assert names - set(GRADCHECKED) == set(), "add each of these to `pairs` in labs/llm/mutants/table.py"


def test_no_mistake_survives(table):
    for entry in table["mistakes"]:
        noticed = any(entry[name][outcome] for name in EXAMPLES for outcome in ("caught", "raised"))
        assert noticed, (
            f"no check catches {entry['name']!r}: see `pairs` and `CHECKS` in labs/llm/mutants/table.py"
        )


@pytest.mark.parametrize(
    ("name", "example", "checks_that_see_it"),
    [
        ("mask: given mask ignored", "distinct", {"switches"}),
        ("mask: given mask in the first layer only", "distinct", {"switches"}),
        ("rope: given positions in the first layer only", "distinct", {"switches"}),
        ("rope: rotate=False ignored", "distinct", {"switches"}),
        ("rope backward: rotate=False ignored", "distinct", {"gradcheck model without rotation"}),
        ("rope backward: given positions ignored", "distinct", {"gradcheck model with mask and positions"}),
        ("rope: frequencies in single precision", "tiny", {"hand values", "agreement"}),
        ("linear: no dtype check", "tiny", {"refusals"}),
        ("loss backward: two axes counted", "tiny", {"gradcheck cross_entropy of other axes"}),
        ("loss backward: outer axes counted", "tiny", {"gradcheck cross_entropy of other axes"}),
        ("mask: -50 instead of -inf", "tiny", {"causality"}),
        ("mask: dropped for one token", "tiny", {"causality"}),
    ],
)
def test_one_kind_of_check_alone_sees_it(name, example, checks_that_see_it, table):
    """Each of these mistakes survived until the check was there."""
    (entry,) = [entry for entry in table["mistakes"] if entry["name"] == name]
    assert set(entry[example]["caught"]) == checks_that_see_it


def test_every_check_catches_something(table):
    caught = {check for entry in table["mistakes"] for name in EXAMPLES for check in entry[name]["caught"]}
    assert caught == set(CHECKS)


def test_each_example_hides_mistakes_that_the_other_shows(table):
    hidden = {name: set() for name in EXAMPLES}
    for entry in table["mistakes"]:
        for name in EXAMPLES:
            if not entry[name]["caught"] and not entry[name]["raised"]:
                hidden[name].add(entry["name"])
    assert {"mask: first layer only", "model: layer 0 in every layer"} <= hidden["tiny"]
    assert hidden["distinct"]
    assert not hidden["tiny"] & hidden["distinct"]


def test_a_wrong_scale_hides_from_the_gradient_where_it_equals_the_right_one(table):
    (entry,) = [
        entry for entry in table["mistakes"] if entry["name"] == "attention: scaled by the number of heads"
    ]
    assert "agreement" not in entry["tiny"]["caught"]
    assert {"agreement", "gradcheck attention"} <= set(entry["distinct"]["caught"])


def test_the_table_is_whole(table):
    assert table["checks"] == list(CHECKS), "run: python -m labs.llm.mutants"
    assert table["examples"] == list(EXAMPLES)
    names = [mistake.name for mistake in MISTAKES]
    assert [entry["name"] for entry in table["mistakes"]] == names, "run: python -m labs.llm.mutants"
    assert TABLE_PATH.read_text("utf8") == as_text(table["mistakes"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_agreement_with_pytorch_catches_the_same_mistakes(name, table):
    """In the table the package stands in for the other implementation; here it is PyTorch itself."""
    expected = framework_values(name, "torch")
    example, _ = mutants.original_example(name)
    caught = []
    for mistake in MISTAKES:
        library = plant(mistake)
        config = library.model.ModelConfig(**vars(example.config))
        try:
            with np.errstate(all="raise", under="ignore"):
                finding = checks.agreement(values(library, example._replace(config=config)), expected)
        except Exception:  # a mutant may raise anything
            continue
        if finding.failed:
            caught.append(mistake.name)
    assert caught == [entry["name"] for entry in table["mistakes"] if "agreement" in entry[name]["caught"]]


# The machinery


def warn(*_):
    warnings.warn("something overflowed", RuntimeWarning, stacklevel=1)
    return Finding(PASSED, "")


def fail(*_):
    raise IndexError("whatever a mutant does")


def test_examine_tells_five_outcomes_apart(monkeypatch):
    outcomes = {
        "right": lambda *_: Finding(PASSED, ""),
        "wrong": lambda *_: Finding(FAILED, ""),
        "unsure": lambda *_: Finding(CANNOT_TELL, ""),
        "warning": warn,
        "error": fail,
    }
    monkeypatch.setattr(mutants, "CHECKS", outcomes)
    expected = {"right": "passed", "wrong": "caught", "unsure": "cannot tell"}
    expected |= {"warning": "raised", "error": "raised"}
    assert examine(ORIGINAL, tuple(outcomes)) == dict.fromkeys(EXAMPLES, expected)
    assert examine(ORIGINAL, ("wrong",)) == {name: {"wrong": "caught"} for name in EXAMPLES}


def test_a_mutant_without_a_mistake_is_not_noticed():
    edit = Edit("model.block", "# (B,H,T,dh) -> (B,T,D)", "# joined")
    found = row(planted("none", "Nothing is wrong.", edit))
    assert found["tiny"] == found["distinct"] == {"caught": [], "cannot tell": [], "raised": []}


def test_main_writes_what_it_finds(monkeypatch, tmp_path, capsys):
    path = tmp_path / "table.json"
    monkeypatch.setattr(mutants, "TABLE_PATH", path)
    monkeypatch.setattr(mutants, "MISTAKES", MISTAKES[:1])
    monkeypatch.setattr(
        mutants, "row", lambda mistake: {"name": mistake.name} | dict.fromkeys(EXAMPLES, FOUND)
    )
    mutants.main()
    assert load_table()["mistakes"] == [{"name": MISTAKES[0].name, "tiny": FOUND, "distinct": FOUND}]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["caught", "of", "1", "mistakes", "tiny", "distinct"]
    assert [line.split()[-2:] for line in lines if line.startswith("training")] == [["1", "1"]]
    assert [line.split()[-2:] for line in lines if line.startswith("extremes")] == [["0", "0"]]


FOUND = {"caught": ["training"], "cannot tell": ["taylor_slope"], "raised": []}


def test_an_overflow_is_a_finding_of_extremes():
    library = ORIGINAL._replace(ops=SimpleNamespace(softmax=np.exp))
    finding = CHECKS["extremes"](library, None)
    assert finding.failed
    assert "overflow" in finding.message
