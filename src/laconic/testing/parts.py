"""Rules that losses, censors, quantizers and data sets keep, so that they work with everything else."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.channel import can_code, decode_row, encode_row, remembers
from laconic.losses import Loss
from laconic.native.binding import INTEGER, POINTER, function

_ROWS, _FEATURES, _ROUNDS = 5, 16, 200
_NEAR = (1e-4, 1e-2, 1.0)


def require(condition: bool, rule: str) -> None:
    """Raise AssertionError with the rule that is broken, if it is."""
    if not condition:
        raise AssertionError(f"{rule}.")


def check_loss(loss: Loss) -> None:
    """A loss is convex, its derivative and its exact update are its own, and its kernel computes the same.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.checks.check_loss(lc.losses.get("hinge"))
    """
    random = np.random.default_rng(0)
    margin = random.normal(scale=3, size=400)
    label = random.choice([-1.0, 1.0], size=400) if loss.binary else random.normal(size=400)
    name = loss.name
    value, slope = loss.value(margin, label), loss.slope(margin, label)
    require(value.shape == slope.shape == margin.shape, f"value and derivative of {name} must keep the shape")
    require(_is_subgradient(loss, margin, label, slope), f"derivative of {name} must be that of a convex value")
    missing = np.full_like(label, np.nan)
    with np.errstate(invalid="ignore"):
        require(not loss.slope(margin, missing).any(), f"slope of {name} must be 0 where the label is missing")
    single = loss.slope(margin.astype(np.float32), label.astype(np.float32))
    require(single.dtype == np.float32, f"slope of {name} must keep single precision")
    a, c = random.normal(scale=4, size=400), random.uniform(0.05, 8, size=400)
    pulled = loss.prox(a, c, label)
    require(_is_subgradient(loss, (a - pulled) / c, label, pulled), f"prox of {name} must solve c m + l'(m) = a")
    with np.errstate(invalid="ignore"):
        require(not loss.prox(a, c, missing).any(), f"prox of {name} must be 0 where the label is missing")
    if loss.curvature:
        bend = (loss.slope(margin + 1e-4, label) - slope) / 1e-4
        require(bool((bend <= loss.curvature + 1e-6).all()), f"curvature of {name} must bound its second derivative")
    if loss.kernel is not None:
        _check_kernel(loss, margin, label, a, c)


def _is_subgradient(loss: Loss, margin: Array, label: Array, slope: Array) -> bool:
    """Whether l(m + h) >= l(m) + s h for steps h of either sign, small and large: s = l'(m), and l is convex."""
    here = loss.value(margin, label)
    return all(
        bool((loss.value(margin + h, label) >= here + slope * h - 1e-12 * (1 + np.abs(here) + np.abs(slope))).all())
        for near in _NEAR
        for h in (near, -near)
    )


def _check_kernel(loss: Loss, margin: Array, label: Array, a: Array, c: Array) -> None:
    from laconic.native.run import LOSSES

    code = LOSSES.get(str(loss.kernel))
    require(code is not None, f"the kernel {loss.kernel!r} of {loss.name} must be in native.run.LOSSES")
    given = [np.ascontiguousarray(array, dtype=np.float64) for array in (margin, label, a, c)]
    found = np.empty((3, len(margin)))
    probe = function("probe_loss_f64", INTEGER, INTEGER, *[POINTER] * 5, result=None)
    probe(code, len(margin), *(array.ctypes.data for array in [*given, found]))
    own = {"value": loss.value(margin, label), "slope": loss.slope(margin, label), "prox": loss.prox(a, c, label)}
    for (what, mine), compiled in zip(own.items(), found, strict=True):
        same = np.allclose(mine, compiled, rtol=1e-12, atol=1e-12)
        require(same, f"the kernel of {loss.name} must compute its {what}")


def check_censor(censor: Any) -> None:
    """A censor's thresholds are numbers, at least zero, and a function of the round alone; or it keeps a memory.

    Then it looks at each row on its own, changes none of its arguments, and sends only what it wishes to.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.checks.check_censor(lc.Budget(0.1))
    """
    if remembers(censor):
        _check_memory(censor)
        return
    rounds = range(1, _ROUNDS + 1)
    thresholds = np.array([float(censor.threshold(t)) for t in rounds])
    again = np.array([float(censor.threshold(t)) for t in reversed(rounds)])[::-1]
    require(bool((np.isfinite(thresholds) & (thresholds >= 0)).all()), f"thresholds of {censor!r} must be at least 0")
    require(np.array_equal(thresholds, again), f"thresholds of {censor!r} must depend on the round alone")
    if hasattr(censor, "thresholds"):
        at_once = np.asarray(censor.thresholds(1, _ROUNDS))
        require(np.allclose(at_once, thresholds, rtol=1e-14), f"thresholds of {censor!r} must be those of its rounds")


def _check_memory(censor: Any) -> None:
    memory = np.asarray(censor.begin(_ROWS), dtype=np.float64)
    shape = (_ROWS, len(censor.memory))
    require(memory.shape == shape, f"begin of {censor!r} must give a row for each agent, a number for each name")
    random = np.random.default_rng(0)
    norms = np.abs(random.normal(size=(_ROUNDS, _ROWS))) * 10.0 ** random.integers(-3, 4, size=_ROWS)
    norms[::7] = 0.0
    bits = random.integers(1, 200, size=(_ROUNDS, _ROWS))
    for norm, length in zip(norms, bits, strict=True):
        before = memory.copy(), norm.copy(), length.copy()
        wish = np.asarray(censor.wishes(memory, norm))
        sent, after = censor.spend(memory, norm, length)
        kept = all(np.array_equal(*pair) for pair in zip(before, (memory, norm, length), strict=True))
        require(kept, f"{censor!r} must not change what it is given")
        require(wish.shape == sent.shape == (_ROWS,) and after.shape == shape, f"{censor!r} must answer row by row")
        require(not (sent & ~wish).any(), f"{censor!r} must send only what it wishes to")
        require(bool(np.isfinite(after).all()), f"what {censor!r} remembers must be finite")
        alone = [censor.spend(memory[[k]], norm[[k]], length[[k]]) for k in range(_ROWS)]
        same = np.allclose(after, np.concatenate([rest for _, rest in alone]), rtol=1e-14)
        same = same and np.array_equal(sent, np.concatenate([one for one, _ in alone]))
        require(same, f"{censor!r} must look at each row on its own")
        memory = after


def check_quantizer(quantizer: Any, n_features: int = _FEATURES) -> None:
    """A quantizer answers row by row, always the same, in the precision it is asked in, and says what it costs.

    Examples
    --------
    >>> import laconic as lc
    >>> lc.checks.check_quantizer(lc.Quantizer(3))
    """
    random = np.random.default_rng(0)
    whole = random.normal(size=(_ROWS, n_features))
    whole[2] = 0.0
    for dtype in (np.float64, np.float32):
        innovation = whole.astype(dtype)
        kept = innovation.copy()
        said = coded = _code(quantizer, innovation) if can_code(quantizer) else None
        if callable(quantizer):
            said = quantizer(innovation)
        assert said is not None, "a quantizer has __call__, or encode and decode"
        require(np.array_equal(kept, innovation), f"{quantizer!r} must not change what it is given")
        require(said.shape == kept.shape and said.dtype == dtype, f"{quantizer!r} must keep shape and precision")
        require(bool(np.isfinite(said).all()), f"{quantizer!r} must give finite numbers")
        if callable(quantizer):
            require(np.array_equal(said, quantizer(innovation)), f"{quantizer!r} must give the same answer again")
            alone = np.concatenate([quantizer(innovation[k : k + 1]) for k in range(_ROWS)])
            require(np.array_equal(said, alone), f"{quantizer!r} must look at each row on its own")
        if coded is not None:
            require(np.array_equal(coded, _code(quantizer, innovation)), f"{quantizer!r} must code the same again")
            # In single precision lc.Quantizer decodes with a rounding less.
            near = np.array_equal(said, coded) if dtype is np.float64 else np.allclose(said, coded, rtol=1e-6)
            require(near, f"{quantizer!r} must answer what decode(encode(h)) does")
        if hasattr(quantizer, "outside"):
            outside = np.asarray(quantizer.outside(innovation))
            require(outside.shape == (_ROWS,), f"outside of {quantizer!r} must have one number for each row")
            counted = bool(((outside >= 0) & (outside <= n_features)).all())
            require(counted, f"outside of {quantizer!r} must count entries")
    if hasattr(quantizer, "message_bits"):
        bits = [quantizer.message_bits(n) for n in (n_features, 2 * n_features)]
        require(all(int(b) == b for b in bits), f"message_bits of {quantizer!r} must be whole numbers")
        require(0 < bits[0] <= bits[1], f"message_bits of {quantizer!r} must be positive and not fall with the length")


def _code(quantizer: Any, innovation: Array) -> Array:
    """What each row says after a journey as bytes."""
    n_features, dtype = innovation.shape[1], innovation.dtype
    said = [decode_row(quantizer, encode_row(quantizer, row.copy()), n_features, dtype) for row in innovation]
    return np.stack(said)


def check_data_set(name: str) -> None:
    """A data set has the facts that people ask for and, if it is at hand, holds what it promises."""
    from laconic import data

    entry = data.info(name)
    require(bool(entry.title and entry.description), f"{name} must have a title and a description")
    require(entry.n_inputs > 0, f"{name} must say how many inputs it has")
    if entry.files:
        require(entry.url.startswith("https://") and bool(entry.size), f"{name} must say where its file is to be had")
        require(entry.target_range[0] < entry.target_range[1], f"{name} must say between which bounds its labels lie")
    try:
        one, other = (data.load(name, n_rows=50, download=False) for _ in range(2))
    except data.Unavailable:
        return
    require(one.X.shape == (50, entry.n_inputs) == (50, len(one.names)), f"{name} must have the inputs it promises")
    require(
        one.y.shape == (50,) and one.target == entry.target, f"{name} must have one label a row, of the entry's name"
    )
    require(bool(np.isfinite(one.X).all() and np.isfinite(one.y).all()), f"{name} must be finite")
    require(np.array_equal(one.X, other.X) and np.array_equal(one.y, other.y), f"{name} must be the same each time")
    if one.classes is not None:
        require(set(np.unique(one.y)) <= {-1.0, 1.0}, f"{name} must have labels -1 and +1")
