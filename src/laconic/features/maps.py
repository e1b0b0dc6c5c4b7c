"""Random Fourier features: a map phi whose inner product is a kernel, approximately.

For a shift-invariant kernel with spectral density p, draw frequencies w_1..w_L from p; then

    phi(x) = L^(-1/2) [cos(w_1.x) .. cos(w_L.x), sin(w_1.x) .. sin(w_L.x)],    phi(x).phi(x') -> kappa(x - x')

with an error of order 1/sqrt(L), and the norm of phi(x) is exactly 1 (eq. RF_map of the paper; the cosines stand before
the sines here). All agents draw the same frequencies from a shared seed: that is all they need to agree on beforehand.

A map may begin with a ``Scaling`` of raw inputs, and end with a linear block:

    phi(x) = [L^(-1/2) cos(w.lifted), L^(-1/2) sin(w.lifted), clip(u, +-5)/sqrt(d), 1],    lifted = [asinh(u), u]

Its norm is then no longer 1, but at least sqrt(2): what that asks of learners is said in ``learners.base.tempered``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.features import kernels
from laconic.features.draws import Draw
from laconic.features.kernels import Kernel
from laconic.features.scaling import REACH, Scaling

_WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of an automatic map, in units of the whole cloud of inputs
_FINE = ((5, 0.25), (2, 0.125))  # further ones, where there are at most so many inputs


class RandomFeatures:
    """The feature map of a kernel, made of random frequencies.

    Parameters
    ----------
    frequencies : array of shape (n_frequencies, n_inputs)
        The frequencies w_l as rows. The class methods draw them for a kernel.
    scaling : Scaling, optional
        What raw inputs go through first; frequencies are then (n_frequencies, scaling.n_lifted).
    linear : bool
        Whether a scaled map ends with the scaled inputs themselves and a 1.

    Attributes
    ----------
    frequencies : array of shape (n_frequencies, n_inputs)
    scaling : Scaling or None
    linear : bool
    n_inputs, n_frequencies, n_features : int
        d, L, and the length of phi(x) and of every model: 2 L without a linear block.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> features = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=2000, bandwidth=1.0, seed=0)
    >>> x, z = np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.0, 0.8])
    >>> features(x).shape
    (4000,)
    >>> round(float(features(x) @ features(z)), 2), round(float(np.exp(-((x - z) ** 2).sum() / 2)), 2)
    (0.82, 0.83)
    """

    def __init__(self, frequencies: object, scaling: Scaling | None = None, *, linear: bool = False) -> None:
        array = _validate.real_array("frequencies", frequencies, "(n_frequencies, n_inputs)", ndim=2)
        if 0 in array.shape:
            raise ValueError(f"frequencies must have at least one row and one column, got {array.shape}.")
        array = np.array(_validate.finite("frequencies", array), dtype=np.float64, order="C")
        array.flags.writeable = False
        if scaling is not None:
            _validate.instance("scaling", scaling, Scaling, "a laconic Scaling")
            if array.shape[1] != scaling.n_lifted:
                raise ArgumentError("frequencies", f"must have {scaling.n_lifted} columns, got {array.shape[1]}.")
        elif linear:
            raise ArgumentError("linear", "must be False for a map that does not scale its inputs.")
        self.frequencies: Array = array
        self.scaling, self.linear = scaling, bool(linear)
        self._kernel: Kernel | None = None
        self._bandwidth = 1.0
        self._description = "RandomFeatures(frequencies)"
        self._settings: dict[str, Any] | None = None
        self._drawn: tuple[str, dict[str, Any]] | None = None  # the class method that drew it, and its arguments

    @property
    def n_inputs(self) -> int:
        """Length of an input."""
        return int(self.frequencies.shape[1]) if self.scaling is None else self.scaling.n_inputs

    @property
    def n_frequencies(self) -> int:
        """Number L of frequencies."""
        return int(self.frequencies.shape[0])

    @property
    def n_direct(self) -> int:
        """How many scaled inputs stand at the end of phi(x), before its last entry: d, or 0 without a linear block."""
        return 0 if self.scaling is None or not self.linear else len(self.scaling.columns)

    @property
    def n_features(self) -> int:
        """Length of phi(x), and so of every model and message: 2 L, and with a linear block some more."""
        return 2 * self.n_frequencies + self.n_direct + int(self.linear)

    @property
    def unit(self) -> bool:
        """Whether phi(x) has norm 1, whatever x."""
        return not self.linear

    def __call__(self, X: object) -> Array:
        """Map inputs of shape (..., n_inputs) to features of shape (..., n_features)."""
        inputs = _validate.finite("X", self._checked("X", X))
        return self.join(self.phases(inputs), inputs)

    def phases(self, X: Array) -> Array:
        """w.x of each frequency, or w.lifted, in the precision of ``X``, which is not checked."""
        inputs = X if self.scaling is None else self.scaling.lift(X)
        phases: Array = inputs @ self.frequencies.T.astype(inputs.dtype)
        return phases

    def join(self, phases: Array, X: Array) -> Array:
        """Phi of inputs whose ``phases`` are known; neither is checked."""
        waves = np.concatenate([np.cos(phases), np.sin(phases)], axis=-1)
        waves *= self.n_frequencies**-0.5
        return np.concatenate([waves, self._tail(X)], axis=-1) if self.linear else waves

    def _tail(self, X: Array) -> Array:
        """What stands behind the waves: scaled inputs and a one."""
        one = np.ones((*X.shape[:-1], 1), dtype=X.dtype)
        if self.scaling is None:
            return one
        return np.concatenate([self.scaling.direct(X), one], axis=-1)

    def _checked(self, name: str, value: object) -> Array:
        inputs = _validate.real_array(name, value, f"(..., {self.n_inputs})")
        if inputs.ndim == 0 or inputs.shape[-1] != self.n_inputs:
            raise ValueError(f"{name} must have shape (..., {self.n_inputs}), got {inputs.shape}.")
        return inputs

    def kernel(self, X: object, Z: object) -> Array:
        """The exact kernel matrix kappa(x, z) between the rows of ``X`` and of ``Z`` that this map approximates."""
        if self._kernel is None:
            raise ValueError("these features were made from bare frequencies: their kernel is not known.")
        left = _validate.real_array("X", X, f"(n, {self.n_inputs})", ndim=2)
        right = _validate.real_array("Z", Z, f"(m, {self.n_inputs})", ndim=2)
        if self.scaling is None:
            return self._kernel((left[:, None, :] - right[None, :, :]) / self._bandwidth)
        values = self._kernel(self.scaling.lift(left)[:, None, :] - self.scaling.lift(right)[None, :, :])
        return values + self._tail(left) @ self._tail(right).T if self.linear else values

    def redrawn(self, seed: int) -> RandomFeatures:
        """The same map with other frequencies, those of another ``seed``.

        >>> import laconic as lc
        >>> lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=30, seed=0).redrawn(7)
        RandomFeatures.gaussian(n_inputs=2, n_frequencies=30, bandwidth=1, seed=7)
        """
        if self._drawn is None:
            raise ValueError("these features were made from bare frequencies: they cannot be drawn again.")
        method, arguments = self._drawn
        made: RandomFeatures = getattr(type(self), method)(**arguments, seed=seed)
        return made

    @property
    def has_seed(self) -> bool:
        """Whether the map was drawn from a seed, so that ``redrawn`` can draw it again."""
        return self._drawn is not None

    def settings(self) -> dict[str, Any] | None:
        """The arguments of ``scaled`` that make this map again, fit for JSON; None of a map that does not scale.

        >>> import numpy as np, laconic as lc
        >>> features = lc.RandomFeatures.automatic(np.array([[1.0], [3.0]]), n_frequencies=4)
        >>> features.settings()
        {'centre': [2.0], 'scale': [1.0], 'n_frequencies': 4, 'seed': 0, 'linear': True}
        """
        return None if self._settings is None else dict(self._settings)

    def __repr__(self) -> str:
        return self._description

    @classmethod
    def automatic(
        cls, X_first: object, n_frequencies: int = 50, seed: int = 0, *, linear: bool = True, reach: float = REACH
    ) -> RandomFeatures:
        """A map for raw inputs that needs no bandwidth: centre and scale from the first rows, then many widths at once.

        ``Scaling.measure`` finds centre m and deviation s of each column of ``X_first``; columns that do not vary are
        ignored, d are left. With u = (x - m)/s, half of the frequencies see asinh(u)/sqrt(d) and half of them see
        (x - m)/sqrt(sum s^2), each by a width from 0.5 to 4 (from 0.25 for at most 5 inputs, from 0.125 for at most
        2). Behind the waves stand clip(u, +-5)/sqrt(d) and a 1: so that what is linear is learned as such.
        ``linear=False`` leaves that out, and the norm of phi at 1.

        A handful of rows will do: 8 of each agent, say, pooled. All agents must use the same map, so one of them, or
        ``laconic init``, measures for all; ``settings`` gives what the others need for ``scaled``.

        Parameters
        ----------
        X_first : array (n, n_inputs) or (rounds, agents, n_inputs)
            Raw inputs, finite. Categories are not for it: they come as numbers, one column each.
        n_frequencies : int
            L; 100 are 0.008 of R2 better and cost twice the bits.
        seed : int
            Draws the frequencies.
        linear : bool
        reach : float
            The 5 of clip(u, +-5). Where ``X_first`` is a whole table its deviations can be relied upon, and 25 follows
            heavy tails further.

        Examples
        --------
        >>> import numpy as np, laconic as lc
        >>> X = np.random.default_rng(0).normal([20.0, 1e5, 7.0], [5.0, 2e4, 0.0], size=(40, 3))
        >>> features = lc.RandomFeatures.automatic(X, seed=1)
        >>> features
        RandomFeatures.automatic(n_inputs=3, n_frequencies=50, seed=1)
        >>> features(X).shape, features.scaling.columns
        ((40, 103), array([0, 1]))
        """
        return cls._spread(Scaling.measure(X_first, reach), n_frequencies, seed, linear)

    @classmethod
    def scaled(
        cls,
        centre: object,
        scale: object,
        n_frequencies: int = 50,
        seed: int = 0,
        *,
        linear: bool = True,
        reach: float = REACH,
    ) -> RandomFeatures:
        """The map of ``automatic`` for a centre and a scale that are known; an input of scale 0 is ignored.

        >>> import laconic as lc
        >>> lc.RandomFeatures.scaled(centre=[20.0, 1000.0], scale=[5.0, 10.0], n_frequencies=30).n_features
        63
        """
        return cls._spread(Scaling(centre, scale, reach), n_frequencies, seed, linear)

    @classmethod
    def _spread(cls, scaling: Scaling, n_frequencies: int, seed: int, linear: bool) -> RandomFeatures:
        """Normal frequencies, every other one for asinh(u), over widths that take turns."""
        kept = scaling.columns
        d = len(kept)
        draw = Draw(max(1, d), n_frequencies, 1.0, seed, False)
        choice = np.array([*_WIDTHS, *(width for most, width in _FINE if d <= most)])
        n = draw.n_frequencies
        widths = choice[np.arange(n) // 2 % len(choice)]
        normal = draw.normal() / widths[:, None] * min(d, 1)
        pooled = scaling.scale[kept] / np.sqrt((scaling.scale[kept] ** 2).sum()) if d else np.zeros(1)
        frequencies = np.zeros((n, scaling.n_lifted))
        half = scaling.n_lifted // 2
        frequencies[0::2, :half] = normal[0::2] * scaling.share
        frequencies[1::2, half:] = normal[1::2] * pooled
        features = cls(frequencies, scaling, linear=linear)
        features._kernel = partial(kernels.two_views, widths=widths, pooled=pooled)
        features._settings = {
            "centre": scaling.centre.tolist(),
            "scale": scaling.scale.tolist(),
            "n_frequencies": n,
            "seed": draw.seed,
            "linear": features.linear,
            **({} if scaling.reach == REACH else {"reach": scaling.reach}),
        }
        features._drawn = "scaled", {name: value for name, value in features._settings.items() if name != "seed"}
        extra = "" if features.linear else ", linear=False"
        about = f"n_inputs={scaling.n_inputs}, n_frequencies={n}, seed={draw.seed}{extra}"
        features._description = f"RandomFeatures.automatic({about})"
        return features

    @classmethod
    def mixture(
        cls,
        n_inputs: int,
        n_frequencies: int = 50,
        bandwidths: Sequence[float] = _WIDTHS,
        seed: int = 0,
        *,
        orthogonal: bool = False,
    ) -> RandomFeatures:
        """The mean of Gaussian kernels of several ``bandwidths``, which frequencies take in turns.

        For those who scale their inputs themselves, and know the kernel's width only roughly.

        >>> import laconic as lc
        >>> lc.RandomFeatures.mixture(n_inputs=2, n_frequencies=30, bandwidths=(0.5, 2.0))
        RandomFeatures.mixture(n_inputs=2, n_frequencies=30, bandwidths=(0.5, 2), seed=0)
        """
        draw = Draw(n_inputs, n_frequencies, 1.0, seed, orthogonal)
        choice = _validate.real_array("bandwidths", bandwidths, "(n,)", ndim=1)
        if not len(choice) or not (np.isfinite(choice) & (choice > 0)).all():
            raise ArgumentError("bandwidths", f"must be numbers larger than 0, got {_validate.shown(bandwidths)}.")
        widths = choice.astype(np.float64)[np.arange(draw.n_frequencies) % len(choice)]
        listed = ", ".join(f"{width:g}" for width in choice) + ("," if len(choice) == 1 else "")
        about = str(draw).replace("bandwidth=1", f"bandwidths=({listed})")
        kernel = partial(kernels.mixture, widths=widths)
        features = cls._of(draw, draw.normal() / widths[:, None], f"mixture({about})", kernel)
        return features._note("mixture", draw, bandwidths=tuple(choice.tolist()))

    def _note(self, method: str, draw: Draw, **more: Any) -> RandomFeatures:
        """Remember what drew the map."""
        shape = {"n_inputs": draw.n_inputs, "n_frequencies": draw.n_frequencies, "orthogonal": draw.orthogonal}
        self._drawn = method, shape | more
        return self

    @classmethod
    def _of(cls, draw: Draw, frequencies: Array, description: str, kernel: Kernel) -> RandomFeatures:
        """The features of the drawn, still unscaled, ``frequencies``."""
        features = cls(frequencies / draw.bandwidth)
        features._kernel, features._bandwidth = kernel, draw.bandwidth
        features._description = f"RandomFeatures.{description}"
        return features

    @classmethod
    def gaussian(
        cls,
        n_inputs: int,
        n_frequencies: int,
        bandwidth: float = 1.0,
        seed: int = 0,
        *,
        orthogonal: bool = False,
    ) -> RandomFeatures:
        """Gaussian kernel exp(-|x - x'|^2 / (2 bandwidth^2)): normal frequencies of deviation 1/bandwidth.

        With ``orthogonal=True`` the frequencies come in blocks of d mutually orthogonal directions, each with the
        length of a d-dimensional normal vector (chi with d degrees of freedom), which lowers the error and leaves the
        kernel as it is.
        """
        draw = Draw(n_inputs, n_frequencies, bandwidth, seed, orthogonal)
        features = cls._of(draw, draw.normal(), f"gaussian({draw})", kernels.gaussian)
        return features._note("gaussian", draw, bandwidth=draw.bandwidth)

    @classmethod
    def laplacian(
        cls,
        n_inputs: int,
        n_frequencies: int,
        bandwidth: float = 1.0,
        seed: int = 0,
        *,
        orthogonal: bool = False,
    ) -> RandomFeatures:
        """Laplacian kernel exp(-|x - x'|_1 / bandwidth): independent Cauchy frequencies of scale 1/bandwidth.

        A Cauchy number is the ratio of two normal ones; ``orthogonal=True`` couples the numerators as in ``gaussian``.
        The kernel that falls with the Euclidean distance instead is ``matern(nu=0.5)``.
        """
        draw = Draw(n_inputs, n_frequencies, bandwidth, seed, orthogonal)
        frequencies = draw.normal()
        frequencies /= np.abs(draw.random.standard_normal(frequencies.shape))
        features = cls._of(draw, frequencies, f"laplacian({draw})", kernels.laplacian)
        return features._note("laplacian", draw, bandwidth=draw.bandwidth)

    @classmethod
    def matern(
        cls,
        n_inputs: int,
        n_frequencies: int,
        nu: float = 1.5,
        bandwidth: float = 1.0,
        seed: int = 0,
        *,
        orthogonal: bool = False,
    ) -> RandomFeatures:
        """Matern kernel of smoothness ``nu``: frequencies from a multivariate t with 2 nu degrees of freedom.

        With r = sqrt(2 nu) |x - x'| / bandwidth the kernel is 2^(1-nu) / Gamma(nu) r^nu K_nu(r). ``nu=0.5`` falls off
        as exp(-|x - x'| / bandwidth); as nu grows it tends to the Gaussian kernel of the same bandwidth.
        """
        nu = _validate.number("nu", nu, above=0)
        draw = Draw(n_inputs, n_frequencies, bandwidth, seed, orthogonal)
        frequencies = draw.normal()
        frequencies *= np.sqrt(2 * nu / draw.random.chisquare(2 * nu, size=(draw.n_frequencies, 1)))
        features = cls._of(draw, frequencies, f"matern(nu={nu:g}, {draw})", partial(kernels.matern, nu=nu))
        return features._note("matern", draw, nu=nu, bandwidth=draw.bandwidth)


#: Kernels that can be chosen by name, and what draws their frequencies.
KERNELS: dict[str, Callable[..., RandomFeatures]] = {
    "gaussian": RandomFeatures.gaussian,
    "laplacian": RandomFeatures.laplacian,
    "matern": RandomFeatures.matern,
}
