"""Rules that every learner keeps, as a battery to run over one's own: ``lc.checks.check_learner(MyLearner())``.

Each check is a function of a learner that raises AssertionError with a sentence saying what is wrong. What a learner is
combined with, losses, censors and quantizers, has checks too, and so have data sets: see ``laconic.testing.parts``.
``every_learner`` finds whatever is registered.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from laconic import _validate, learners, losses
from laconic._validate import Array
from laconic.channel import CENSORS, QUANTIZERS, Channel
from laconic.engine import Diverged, simulate
from laconic.features import RandomFeatures
from laconic.learners import Learner, Sample
from laconic.learners.base import SPOKEN
from laconic.network import Heard, Network
from laconic.testing.parts import check_censor, check_data_set, check_loss, check_quantizer, require

__all__ = [
    "CHECKS",
    "channels",
    "check_censor",
    "check_data_set",
    "check_learner",
    "check_loss",
    "check_quantizer",
    "every_learner",
]

_ROUNDS, _AGENTS, _INPUTS = 40, 5, 2
_BEFORE = 6  # rounds until the state in which steps are looked at

Check = Callable[[Learner], None]


def check_learner(learner: Learner) -> None:
    """Run every check; raise AssertionError with the first rule that ``learner`` breaks.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.checks.check_learner(lc.ODKLA(rho=0.5, eta=2.0))
    """
    _check_kind(learner)
    for check in CHECKS:
        check(learner)


def every_learner(loss: str = "squared") -> dict[str, Learner]:
    """Every registered learner, in each of its variants, with its usual steps for that loss.

    >>> list(every_learner())[:5]
    ['odkla', 'qc-odkla', 'dokl', 'rff-dokl combine-then-adapt', 'rff-dokl adapt-then-combine']
    """
    found = {}
    for kind in learners.every():
        for variant in kind.variants:
            given = {"loss": loss, **kind.usual_steps(losses.get(loss)), **variant}
            name = " ".join([learners.written(kind), *map(str, variant.values())])
            found[name] = kind(**{argument: value for argument, value in given.items() if argument in kind.arguments()})
    return found


def channels() -> dict[str, Channel]:
    """A channel for each registered censor, for each registered quantizer, for both at once, and the lossless one."""
    both = Channel(CENSORS[0], QUANTIZERS[0])
    made = [*(Channel(censor=censor) for censor in CENSORS), *(Channel(quantizer=q) for q in QUANTIZERS), both]
    return {"lossless": Channel()} | {repr(channel): channel for channel in made}


def check_parameters(learner: Learner) -> None:
    """Parameters are kept under the names of their arguments, and make the same learner again."""
    _check_kind(learner)
    arguments = learner.arguments()
    for name in arguments:
        kept = "step_size" if name == "step" else name
        require(hasattr(learner, kept), f"the argument {name} must be kept as self.{kept}")
    again = type(learner)(**learner.get_params(deep=False))
    require(repr(again) == repr(learner), "its parameters must make the same learner again")
    for name in (*learner.grid, *learner.usual_steps(learner.loss), *(n for v in learner.variants for n in v)):
        require(name in arguments, f"{name} is in its grid, usual steps or variants, so it must be an argument")


def check_state(learner: Learner) -> None:
    """``init`` gives a NamedTuple of arrays with a row an agent, ``weights`` (n_agents, n_features) among them."""
    _check_kind(learner)
    state = learner.init(_AGENTS, 8)
    require(hasattr(state, "_asdict"), "init must return a NamedTuple, so that its fields can be saved by name")
    fields = state._asdict()
    require("weights" in fields, "the state must have a field 'weights', the models that predict and are sent")
    require(np.shape(fields["weights"]) == (_AGENTS, 8), "weights must have shape (n_agents, n_features)")
    for name, value in fields.items():
        require(isinstance(value, np.ndarray), f"state.{name} must be an array")
        require(len(value) == _AGENTS, f"state.{name} must have a row for each agent")
        require(bool(np.isfinite(value).all()), f"state.{name} must start finite")


def check_step_is_pure(learner: Learner) -> None:
    """``step`` and ``hear`` change none of their arguments, and give the same answer to the same question."""
    _check_kind(learner)
    state, sample, heard = _situation(learner)
    before = copy.deepcopy((state, sample, heard))
    moved, info = learner.step(state, sample, heard)
    again, _ = learner.step(state, sample, heard)
    settled = learner.hear(moved, heard)
    _check_finite(settled)
    require(_equal(before, (state, sample, heard)), "step and hear must not change their arguments: copy, then change")
    require(_equal(moved, again), "step must give the same answer to the same question: pass generators in the state")
    require(_equal(settled, learner.hear(moved, heard)), "hear must give the same answer to the same question")
    require(type(moved) is type(state), "step must return a state of the type that init returns")
    require(type(settled) is type(state), "hear must return a state of the type that init returns")
    require(isinstance(info, dict), "step must return (state, info) with info a dict")
    for name, value in info.items():
        require(np.shape(value) == (_AGENTS,), f"info[{name!r}] must have one number for each row")


def check_rows_are_agents(learner: Learner) -> None:
    """N rows at once give what each row gives alone: nothing leaks between agents except through ``heard``."""
    _check_kind(learner)
    state, sample, heard = _situation(learner)
    together, _ = learner.step(state, sample, heard)
    together = learner.hear(together, heard)
    for i in range(_AGENTS):
        parts = heard._asdict()
        rows: dict[str, Any] = {name: part[i : i + 1] for name, part in parts.items() if isinstance(part, np.ndarray)}
        row_heard = heard._replace(**rows)
        row_state = type(state)(*(part[i : i + 1] for part in state))
        alone, _ = learner.step(row_state, Sample(sample.phi[i : i + 1], sample.label[i : i + 1], sample.t), row_heard)
        alone = learner.hear(alone, row_heard)
        for name, value in alone._asdict().items():
            close = np.allclose(getattr(together, name)[i : i + 1], value, rtol=1e-12, atol=1e-14)
            require(close, f"row {i} of state.{name} must not depend on the other rows")


def check_order_of_agents(learner: Learner) -> None:
    """Numbering the agents differently numbers the results differently, and nothing else."""
    _check_kind(learner)
    features, network, X, y = _stream(learner)
    order = np.random.default_rng(1).permutation(_AGENTS)
    place = np.argsort(order)
    renamed = Network.from_edges(_AGENTS, place[network.edges])
    one = simulate(learner, features, network, X, y, engine="reference")
    other = simulate(learner, features, renamed, X[:, order], y[:, order], engine="reference")
    close = np.allclose(one.predictions[:, order], other.predictions, rtol=1e-9, atol=1e-11)
    require(close, "permuting the agents must permute the predictions")


def check_resume(learner: Learner) -> None:
    """T rounds have the bits of T/2 rounds, a pause, and T/2 rounds: all that matters is in the state."""
    _check_kind(learner)
    features, network, X, y = _stream(learner)
    half = _ROUNDS // 2
    for name, variant in _variants(learner):
        whole = simulate(variant, features, network, X, y, engine="reference")
        first = simulate(variant, features, network, X[:half], y[:half], engine="reference")
        rest = simulate(variant, features, network, X[half:], y[half:], engine="reference", state=first.state)
        same = np.array_equal(whole.predictions[half:], rest.predictions) and np.array_equal(
            whole.weights, rest.weights
        )
        require(same, f"a resumed run must have the bits of an uninterrupted one ({name} channel)")


def check_missing_labels(learner: Learner) -> None:
    """An agent without a label predicts, mixes and speaks; a NaN never reaches the state."""
    _check_kind(learner)
    features, network, X, y = _stream(learner)
    y = np.where(np.random.default_rng(2).uniform(size=y.shape) < 0.5, np.nan, y)
    y[:, 0] = np.nan
    for name, variant in _variants(learner):
        try:
            simulate(variant, features, network, X, y, engine="reference")
            finite = True
        except Diverged:
            finite = False
        require(
            finite, f"a missing label must leave the state finite: use loss.slope, which is 0 there ({name} channel)"
        )


def check_learning(learner: Learner) -> None:
    """On an easy stream the loss falls: it ends well below that of a model that never learns, through any channel."""
    _check_kind(learner)
    features, network, X, y = _stream(learner, rounds=600)
    never = float(learner.loss.value(np.zeros_like(y), y)[-100:].mean())
    for name, variant in _variants(learner):
        trace = simulate(variant, features, network, X, y)  # by kernels if there are, which are checked apart
        late = float(learner.loss.value(np.asarray(trace.predictions), y)[-100:].mean())
        require(
            late < 0.7 * never, f"the loss must fall: {late:.3g} late against {never:.3g} untrained ({name} channel)"
        )


def check_engines_agree(learner: Learner) -> None:
    """Where there are compiled kernels, they give the reference's numbers, sends and bits."""
    _check_kind(learner)
    from laconic.engine.support import supports

    features, network, X, y = _stream(learner)
    for name, variant in _variants(learner):
        if not supports(variant):
            return
        slow = simulate(variant, features, network, X, y, engine="reference")
        fast = simulate(variant, features, network, X, y, engine="compiled")
        close = np.allclose(slow.predictions, fast.predictions, rtol=1e-12, atol=1e-12)
        require(close, f"the engines must agree ({name} channel)")
        require(np.array_equal(slow.sent, fast.sent), f"the engines must send in the same rounds ({name} channel)")
        require(np.array_equal(slow.bits, fast.bits), f"the engines must count the same bits ({name} channel)")


CHECKS: tuple[Check, ...] = (
    check_parameters,
    check_state,
    check_step_is_pure,
    check_rows_are_agents,
    check_order_of_agents,
    check_resume,
    check_missing_labels,
    check_learning,
    check_engines_agree,
)


def _check_kind(learner: object) -> None:
    """Refuse what is no learner at all: the rules are for learners."""
    _validate.instance("learner", learner, Learner, "a laconic Learner")


def _variants(learner: Learner) -> Iterator[tuple[str, Learner]]:
    """The learner behind every channel, if it speaks at all."""
    if learner.channel is None:
        yield "no", learner
        return
    for name, channel in channels().items():
        variant = copy.copy(learner)
        if "channel" in learner.arguments():
            variant.set_params(channel=channel)
        else:  # it makes its channel itself
            variant.channel = channel
        yield name, variant


def _stream(learner: Learner, rounds: int = _ROUNDS) -> tuple[RandomFeatures, Network, Array, Array]:
    random = np.random.default_rng(0)
    X = random.uniform(size=(rounds, _AGENTS, _INPUTS))
    y = np.sin(4 * X[..., 0]) + X[..., 1] - 0.5
    if learner.loss.binary:
        y = np.where(y > 0, 1.0, -1.0)
    features = RandomFeatures.gaussian(n_inputs=_INPUTS, n_frequencies=20, bandwidth=0.5, seed=0)
    return features, Network.from_edges(_AGENTS, [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]), X, y


def _situation(learner: Learner) -> tuple[Any, Sample, Heard]:
    """A state, sample and neighbourhood from the middle of a run: a state that the learner itself has come to."""
    features, network, X, y = _stream(learner)
    random = np.random.default_rng(3)
    state = learner.init(_AGENTS, features.n_features)
    for t in range(_BEFORE):
        said = state.weights + 0.01 * random.standard_normal(state.weights.shape)
        if learner.clips():  # as the engine adds up what was said
            state = state._replace(sums=state.sums + said)
        heard = _heard(learner, network, state, said)
        state, _ = learner.step(state, Sample(features(X[t]), y[t], t + 1), heard)
        state = learner.hear(state, heard)
        _check_finite(state)
    said = state.weights + 0.01 * random.standard_normal(state.weights.shape)
    return state, Sample(features(X[_BEFORE]), y[_BEFORE], _BEFORE + 1), _heard(learner, network, state, said)


def _heard(learner: Learner, network: Network, state: Any, said: Array) -> Heard:
    """What the neighbours have ``said``, in the way in which this learner listens."""
    if learner.listen == SPOKEN:
        return network.listen_to_spoken(said, state.weights, np.array([True, False, True, True, False]))
    reach = learner.clips()
    return network.listen_with_care(said, state.sums, reach) if reach else network.listen(said)


def _check_finite(state: Any) -> None:
    """NaN differs from itself, so every later check would blame something else."""
    for name, value in state._asdict().items():
        bad = "NaN" if np.isnan(value).any() else "infinite"
        require(bool(np.isfinite(value).all()), f"step and hear must keep state.{name} finite: it became {bad}")


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(_equal(x, z) for x, z in zip(a, b, strict=True))
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(a, b, equal_nan=True))
