"""Checks for the exercises on the block: its two branches and its two sums."""

from collections.abc import Callable

import numpy as np

from labs.exercises.language import say
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm import model
from labs.llm.model import ModelConfig
from labs.llm.ops import rms_norm

Part = Callable[[np.ndarray], np.ndarray]


def check_block(my_block: Callable[[np.ndarray, Part, Part, Part, Part], np.ndarray]) -> Verdict:
    """Judge how my_block(x, norm_1, attend, norm_2, feed_forward) puts its four parts together, pre-norm."""
    rng = np.random.default_rng(9)
    return judge(
        my_block,
        _block_case(rng.normal(size=(3, 7, 24)), *_parts(ModelConfig(11, d_model=24, n_heads=4, d_ff=20))),
        _block_case(rng.normal(size=(2, 5, 18)), *_parts(ModelConfig(13, d_model=18, n_heads=3, d_ff=25))),
        call="check_block(my_block)",
        praise=say("Two sums, and each branch reads a normalised copy."),
        rtol=RTOL,
    )


def _block_case(x: np.ndarray, norm_1: Part, attend: Part, norm_2: Part, feed_forward: Part) -> Case:
    z = norm_1(x)
    r = x + attend(z)
    read = feed_forward(norm_2(r))
    post = norm_1(x + attend(x))
    return Case(
        (x, norm_1, attend, norm_2, feed_forward),
        given=say("x of shape {x} and the four parts", x=x.shape),
        expected=r + read,
        traps={
            say("The first sum starts from the normalised stream: it should start from x."): (
                z + attend(z) + feed_forward(norm_2(z + attend(z)))
            ),
            say("The second sum starts from x: what attention adds is lost there."): x + read,
            say("Both sums are not right yet: the first should start from x, the second from its result."): (
                x + feed_forward(norm_2(z + attend(z)))
            ),
            say("The second sum starts from the normalised stream: it should start from r."): norm_2(r)
            + read,
            say("The feed-forward reads x: it should read what the first sum gave."): (
                r + feed_forward(norm_2(x))
            ),
            say("This is post-norm: the norms stand behind the sums."): norm_2(post + feed_forward(post)),
            say("Attention reads x as it is: normalise first."): (
                x + attend(x) + feed_forward(norm_2(x + attend(x)))
            ),
            say("The feed-forward reads r as it is: normalise first."): r + feed_forward(r),
            say("There is no residual around attention."): attend(z) + feed_forward(norm_2(attend(z))),
            say("There is no residual around the feed-forward."): read,
            say("The two norms are swapped: each has its own gains."): (
                x + attend(norm_2(x)) + feed_forward(norm_1(x + attend(norm_2(x))))
            ),
        },
        hint=say("r = x + attention of the normalised x; y = r + feed-forward of the normalised r."),
    )


def _parts(config: ModelConfig) -> tuple[Part, Part, Part, Part]:
    """The four parts of a real block; the gains of the two norms are not one and differ."""
    w = model.block_weights(random_params(config), 0)

    def attend(z: np.ndarray) -> np.ndarray:
        q, k, v = (model.split_heads(z @ matrix, config.n_heads) for matrix in (w.wq, w.wk, w.wv))
        o, _ = model.attention(model.rope(q), model.rope(k), v, model.causal_mask(z.shape[1]))
        return model.merge_heads(o) @ w.wo

    return (
        lambda x: rms_norm(x, w.attn_norm)[0],
        attend,
        lambda r: rms_norm(r, w.ffn_norm)[0],
        lambda n: model.swiglu(n, w.w1, w.w3, w.w2)[0],
    )


def random_params(config: ModelConfig) -> dict[str, np.ndarray]:
    """Parameters whose gains are not one."""
    rng = np.random.default_rng(7)
    params = model.init_params(config, rng)
    return {
        key: array * rng.uniform(0.7, 1.3, size=array.shape) if key.endswith("norm") else array
        for key, array in params.items()
    }
