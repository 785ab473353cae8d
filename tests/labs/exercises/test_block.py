"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest

from labs.exercises import block as block_exercises


def right_block(x, norm_1, attend, norm_2, feed_forward):
    r = x + attend(norm_1(x))
    return r + feed_forward(norm_2(r))


def block_in_two_sums(x, norm_1, attend, norm_2, feed_forward):
    attn_out = attend(norm_1(x))
    return x + attn_out + feed_forward(norm_2(attn_out + x))


def block_by_position(x, norm_1, attend, norm_2, feed_forward):
    r = np.add(attend(np.stack([norm_1(row) for row in x])), x)
    y = np.empty_like(r)
    for place in np.ndindex(r.shape[:2]):
        y[place] = r[place] + feed_forward(norm_2(r[place]))
    return y


@pytest.mark.parametrize("block", [right_block, block_in_two_sums, block_by_position])
def test_right_blocks_are_accepted(block):
    assert block_exercises.check_block(block).passed


def stub_of_the_chapter(x, norm_1, attend, norm_2, feed_forward):
    z = norm_1(x)
    r = z + attend(z)
    n = norm_2(r)
    return x + feed_forward(n)


def for_one_size(x, norm_1, attend, norm_2, feed_forward):
    r = np.empty((3, 7, 24))
    r[:] = x + attend(norm_1(x))
    return r + feed_forward(norm_2(r))


def in_place(x, norm_1, attend, norm_2, feed_forward):
    x += attend(norm_1(x))
    return x + feed_forward(norm_2(x))


@pytest.mark.parametrize(
    ("block", "hint"),
    [
        (lambda x, n1, a, n2, f: None, "still needs its line"),  # noqa: ARG005
        (stub_of_the_chapter, "Both sums are not right yet"),
        (lambda x, n1, a, n2, f: right_block(n1(x), lambda z: z, a, n2, f), "normalised stream: it should"),
        (lambda x, n1, a, n2, f: x + f(n2(x + a(n1(x)))), "what attention adds is lost"),
        (lambda x, n1, a, n2, f: n2(x + a(n1(x))) + f(n2(x + a(n1(x)))), "it should start from r"),
        (lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x)), "what the first sum gave"),
        (lambda x, n1, a, n2, f: n2(n1(x + a(x)) + f(n1(x + a(x)))), "post-norm"),
        (lambda x, _, a, n2, f: right_block(x, np.copy, a, n2, f), "Attention reads x as it is"),
        (lambda x, n1, a, _, f: right_block(x, n1, a, np.copy, f), "reads r as it is"),
        (lambda x, n1, a, n2, f: a(n1(x)) + f(n2(a(n1(x)))), "no residual around attention"),
        (lambda x, n1, a, n2, f: f(n2(x + a(n1(x)))), "no residual around the feed-forward"),
        (lambda x, n1, a, n2, f: right_block(x, n2, a, n1, f), "swapped"),
        (lambda x, n1, a, n2, f: right_block(x, n1, f, n2, a), "r = x + attention"),
        (lambda x, n1, a, n2, f: right_block(x, n1, a, n2, f)[:2], "should have the shape (3, 7, 24)"),
        (in_place, "writes into its argument"),
        (for_one_size, "but not for x of shape (2, 5, 18) and the four parts"),
    ],
)
def test_wrong_blocks_are_rejected_with_a_hint(block, hint):
    verdict = block_exercises.check_block(block)
    assert not verdict.passed
    assert hint in verdict.message, verdict
