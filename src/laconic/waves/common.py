"""What everybody knows, equal to the bit: C, theta, the last step d, e, and how thin; made of what came down alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.waves.arithmetic import Arithmetic
from laconic.waves.message import Said, Term, on_grid
from laconic.waves.rule import Numbers, Rule


class Following(NamedTuple):
    """What came down: what it says, its length in bits, and what everybody knows after it."""

    said: Said
    bits: int
    common: Common


class Common:
    """The common state after a wave; it never changes, ``after`` gives the next.

    Nodes that start from the very same object share what follows from it, which saves a simulator the work of all but
    one; nodes that start from objects of their own each make it of the bytes that they have heard.

    Attributes
    ----------
    information : array (D, D)
        C, the mean information of a sample.
    theta, step : array (D,), or (K, D) for several outputs
        The common model, and its last change d.
    energy : float, or array (K,)
        e = |k s|^2 / n of that change.
    thin : float
        By how much less than floor n + ridge is added to the diagonal: a power of two, at most 1.
    """

    def __init__(
        self,
        rule: Rule,
        arithmetic: Arithmetic,
        information: Array,
        theta: Array,
        step: Array,
        energy: Numbers,
        thin: float,
    ) -> None:
        self.rule, self.arithmetic = rule, arithmetic
        self.information, self.theta, self.step, self.energy, self.thin = information, theta, step, energy, thin
        self._whiteners: dict[float, tuple[Array, bool]] = {}
        self._inverses: dict[float, tuple[Array, Array]] = {}
        self._following: dict[bytes, Following] = {}

    @classmethod
    def first(cls, rule: Rule, arithmetic: Arithmetic, n_features: int) -> Common:
        """All zero."""
        nothing = np.zeros(rule.models(n_features))
        energy = 0.0 if rule.outputs == 1 else np.zeros(rule.outputs)
        return cls(rule, arithmetic, np.zeros((n_features, n_features)), nothing, nothing, energy, 1.0)

    def thick(self, n: float) -> float:
        """What is added to the diagonal of n samples' information: thin (floor n + ridge)."""
        return self.thin * self.rule.thick(n)

    def thinned(self, thin: float) -> Common:
        """The same, with another ``thin``."""
        if thin == self.thin:
            return self
        return Common(self.rule, self.arithmetic, self.information, self.theta, self.step, self.energy, thin)

    def whitener(self, n: float) -> tuple[Array, bool]:
        """chol(n C + thick(n) I, thick(n)), and whether a pivot was raised."""
        if n not in self._whiteners:
            self._whiteners[n] = self.arithmetic.factor(self.information, n, self.thick(n))
        return self._whiteners[n]

    def inverse(self, n: float) -> tuple[Array, Array]:
        """P = (L L')^-1 of that factor, which an agent adopts; and P theta."""
        if n not in self._inverses:
            P = self.arithmetic.inverse(self.whitener(n)[0])
            self._inverses[n] = P, self.theta @ P
        return self._inverses[n]

    def revised(self, n: float, terms: Sequence[Term], lift: int | None, raised: Array | None = None) -> Common:
        """C + (1/n) sum sign (L k s)(L k s)', L = chol(n C + thick(n) I, thick(n)); C + lift I where there is one.

        ``raised`` is that sum, of somebody who has it already.
        """
        information = self.information if raised is None else raised
        if terms and raised is None:
            information = self.arithmetic.raised(information, self.whitener(n)[0], terms, n)
        if lift is not None:
            information = information.copy()
            information[np.diag_indices_from(information)] += on_grid(lift)
        return Common(self.rule, self.arithmetic, information, self.theta, self.step, self.energy, self.thin)

    def moved(self, n: float, step: int | Array, codes: Array) -> Common:
        """d = L'^-1 k s; theta + d; e = |k s|^2 / n."""
        change = self.arithmetic.back_each(self.whitener(n)[0], step, codes)
        return self._moved(n, change, self.arithmetic.square(step, codes))

    def _moved(self, n: float, change: Array, square: Numbers) -> Common:
        energy = square / n if n > 0 else 0.0 * self.energy
        made = Common(self.rule, self.arithmetic, self.information, self.theta + change, change, energy, self.thin)
        made._whiteners = self._whiteners
        return made

    def stepped(
        self, n: float, change: Array, residual: Array, trust: Numbers, size: Numbers
    ) -> tuple[int | Array, Array, Common]:
        """Step and codes of what the root is to say of a change, and ``moved`` by it."""
        made = self.arithmetic.stepped(self.information, n, self.thick(n), change, residual, trust, size)
        self._whiteners[n] = made.factor
        return made.step, made.codes, self._moved(n, made.change, made.square)

    def after(self, data: bytes) -> Following:
        """What a message down says, and the common state after it; ValueError if it is none."""
        if data not in self._following:
            said, bits = self.arithmetic.decode(data, len(self.information), down=True, outputs=self.rule.outputs)
            thinned = self.thinned(self.thin if said.thin is None else said.thin)
            made = thinned.revised(said.n, said.terms, said.lift).moved(said.n, said.step, said.codes)
            self._following = {data: Following(said, bits, made)}
        return self._following[data]

    def keep(self, data: bytes, following: Following) -> Common:
        """Let it be known what a message says, to its sender, who need not read it."""
        self._following = {data: following}
        return following.common

    def parts(self) -> dict[str, Array]:
        """All of it as arrays, for a state that can be saved."""
        return {
            "information": self.information,
            "theta": self.theta,
            "step": self.step,
            "energy": np.array(self.energy),
            "thin": np.array(self.thin),
        }
