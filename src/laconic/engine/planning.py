"""A learner's numbers as the kernels take them, and the kernel that takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.channel import Budget, Channel, EntropyQuantizer, Quantizer
from laconic.engine import budgeting, coding, rounds, rounds_abreast, single, steps
from laconic.engine.support import kernel_of
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.learners.base import SPOKEN

_ROUNDING_CODES = {"rise": coding.RISE, "tread": coding.TREAD}


def make_plan(learner: Learner, features: RandomFeatures, n_agents: int, real: Any) -> rounds.Plan:
    """The learner's numbers, in the working precision."""
    kernel, loss = kernel_of(learner), learner.loss.kernel
    assert loss is not None  # ``supports`` has been asked
    quantizer = learner.channel.quantizer if learner.channel else None
    rounding, cells, low, high, coarseness, dead_zone = coding.DENSE, 0, 0.0, 0.0, 0.0, 0.0
    if isinstance(quantizer, Quantizer):
        rounding, cells = _ROUNDING_CODES[quantizer.rounding], quantizer.cells
        if not isinstance(quantizer.range, str):
            low, high = quantizer.range
    if isinstance(quantizer, EntropyQuantizer):
        rounding, coarseness, dead_zone = coding.ENTROPY, quantizer.coarseness, quantizer.dead_zone
    return rounds.Plan(
        steps.STEPS[kernel.step],
        steps.LOSSES[loss],
        real(kernel.rho),
        real(learner.shrink(n_agents)),
        real(kernel.mixing),
        rounding,
        cells,
        real(low),
        real(high),
        real(features.n_frequencies**-0.5),
        features.n_features,
        features.n_frequencies,
        features.unit,
        float(kernel.reach),
        learner.listen == SPOKEN,
        (learner.channel.message_bits(features.n_features) or 0) if learner.channel else 0,
        make_purse(learner.channel),
        coarseness,
        dead_zone,
        n_agents,
    )


def goes_abreast(plan: rounds.Plan, collective: bool = False) -> bool:
    """Whether rows are learned abreast: those of ODKLA, but for clipped pulls, entropy codes and collective scores."""
    linearized = plan.algorithm == steps.LINEARIZED and plan.reach == 0.0 and plan.rounding != coding.ENTROPY
    return linearized and not collective


def run_stages(
    abreast: bool,
    where: tuple[int, int, int, int, int],
    about: tuple[Any, ...],
    panel: Any,
    kept: tuple[Any, ...],
    scores: tuple[Array, Array],
    stream: tuple[Any, ...],
) -> tuple[int, int]:
    """Some stages of some rounds, by ``rounds.advance`` or, ``abreast``, by the kernel that does that and no more.

    Arguments are in the order of theirs: ``where`` is up to the last round, ``about`` from the plan to the rows,
    ``kept`` scratch, sums and record, ``stream`` what comes behind the scores.
    """
    ended: tuple[int, int]
    if abreast:
        ended = rounds_abreast.advance_abreast(*where, *about, *kept, *stream)
    else:
        ended = rounds.advance(*where, *about, True if panel is None else None, panel, *kept, scores, *stream)
    return ended


def make_purse(channel: Channel | None) -> budgeting.Purse:
    """How a channel's censor decides."""
    censor = channel.censor if channel else None
    if not isinstance(censor, Budget):
        return budgeting.Purse()
    kind = budgeting.BY_BIT if censor.in_bits else budgeting.BY_MESSAGE
    return budgeting.Purse(kind, censor.income, censor.most, censor.gain)


def for_one(plan: rounds.Plan, largest: float, degree: int = 0) -> tuple[Array, Array]:
    """A plan as the two arrays, real and whole numbers, that the kernels for a single agent take.

    ``largest`` is the yardstick of divergence to begin with.
    """
    numbers = np.zeros(single.N_NUMBERS)
    numbers[[single.RHO, single.SHRINK, single.SCALE]] = plan.rho, plan.shrink, plan.scale
    numbers[[single.LARGEST, single.DEGREE, single.MIXING]] = largest, degree, plan.mixing
    numbers[[single.LOW, single.HIGH, single.REACH]] = plan.low, plan.high, plan.reach
    numbers[[single.INCOME, single.BURST, single.GAIN]] = plan.purse[1:]
    numbers[[single.COARSENESS, single.DEAD_ZONE]] = plan.coarseness, plan.dead_zone
    bits = max(0, plan.cells.bit_length() - 1)
    shape = plan.n_frequencies, plan.rounding, bits, plan.n_features, int(plan.unit)
    codes = np.array([plan.algorithm, plan.loss, *shape, plan.purse.kind, plan.message_bits], dtype=np.int64)
    return numbers, codes
