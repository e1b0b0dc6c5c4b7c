"""Random Fourier features: a map phi whose inner product is a kernel, approximately.

For a shift-invariant kernel with spectral density p, draw frequencies w_1..w_L from p; then

    phi(x) = L^(-1/2) [cos(w_1.x) .. cos(w_L.x), sin(w_1.x) .. sin(w_L.x)],    phi(x).phi(x') -> kappa(x - x')

with an error of order 1/sqrt(L), and the norm of phi(x) is exactly 1 (eq. RF_map of the paper; the cosines stand before
the sines here). All agents draw the same frequencies from a shared seed: that is all they need to agree on beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._validate import Array

Kernel = Callable[[Array], Array]


@final
class RandomFeatures:
    """The feature map of a kernel, made of random frequencies.

    Parameters
    ----------
    frequencies : array of shape (n_frequencies, n_inputs)
        The frequencies w_l as rows. The class methods draw them for a kernel.

    Attributes
    ----------
    frequencies : array of shape (n_frequencies, n_inputs)
    n_inputs, n_frequencies, n_features : int
        d, L, and 2 L: the length of phi(x) and of every model.

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

    def __init__(self, frequencies: object) -> None:
        array = _validate.real_array("frequencies", frequencies, "(n_frequencies, n_inputs)", ndim=2)
        if 0 in array.shape:
            raise ValueError(f"frequencies must have at least one row and one column, got {array.shape}.")
        array = np.array(_validate.finite("frequencies", array), dtype=np.float64, order="C")
        array.flags.writeable = False
        self.frequencies: Array = array
        self._kernel: Kernel | None = None
        self._bandwidth = 1.0
        self._description = "RandomFeatures(frequencies)"

    @property
    def n_inputs(self) -> int:
        """Length d of an input."""
        return int(self.frequencies.shape[1])

    @property
    def n_frequencies(self) -> int:
        """Number L of frequencies."""
        return int(self.frequencies.shape[0])

    @property
    def n_features(self) -> int:
        """Length 2 L of phi(x), and so of every model and message."""
        return 2 * self.n_frequencies

    def __call__(self, X: object) -> Array:
        """Map inputs of shape (..., n_inputs) to features of shape (..., n_features)."""
        inputs = _validate.real_array("X", X, f"(..., {self.n_inputs})")
        if inputs.ndim == 0 or inputs.shape[-1] != self.n_inputs:
            raise ValueError(f"X must have shape (..., {self.n_inputs}), got {inputs.shape}.")
        _validate.finite("X", inputs)
        phases = inputs @ self.frequencies.T.astype(inputs.dtype)
        waves = np.concatenate([np.cos(phases), np.sin(phases)], axis=-1)
        waves *= self.n_frequencies**-0.5
        return waves

    def kernel(self, X: object, Z: object) -> Array:
        """The exact kernel matrix kappa(x - z) between the rows of ``X`` and of ``Z`` that this map approximates."""
        if self._kernel is None:
            raise ValueError("these features were made from bare frequencies: their kernel is not known.")
        left = _validate.real_array("X", X, f"(n, {self.n_inputs})", ndim=2)
        right = _validate.real_array("Z", Z, f"(m, {self.n_inputs})", ndim=2)
        return self._kernel((left[:, None, :] - right[None, :, :]) / self._bandwidth)

    def __repr__(self) -> str:
        return self._description

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
        draw = _Draw(n_inputs, n_frequencies, bandwidth, seed, orthogonal)
        return draw.finish(cls, draw.normal(), f"gaussian({draw})", _gaussian)

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
        draw = _Draw(n_inputs, n_frequencies, bandwidth, seed, orthogonal)
        frequencies = draw.normal()
        frequencies /= np.abs(draw.random.standard_normal(frequencies.shape))
        return draw.finish(cls, frequencies, f"laplacian({draw})", _laplacian)

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
        draw = _Draw(n_inputs, n_frequencies, bandwidth, seed, orthogonal)
        frequencies = draw.normal()
        frequencies *= np.sqrt(2 * nu / draw.random.chisquare(2 * nu, size=(draw.n_frequencies, 1)))
        return draw.finish(cls, frequencies, f"matern(nu={nu:g}, {draw})", partial(_matern, nu=nu))


@final
class _Draw:
    """The arguments common to all kernels, checked, and the standard normal frequencies they start from."""

    def __init__(self, n_inputs: int, n_frequencies: int, bandwidth: float, seed: int, orthogonal: bool) -> None:
        self.n_inputs = _validate.integer("n_inputs", n_inputs, least=1)
        self.n_frequencies = _validate.integer("n_frequencies", n_frequencies, least=1)
        larger = "n_inputs" if self.n_inputs > self.n_frequencies else "n_frequencies"
        _validate.allocatable(larger, self.n_frequencies, self.n_inputs)
        self.bandwidth = _validate.number("bandwidth", bandwidth, above=0)
        self.seed = _validate.integer("seed", seed, least=0)
        self.orthogonal = bool(orthogonal)
        self.random = np.random.default_rng(self.seed)

    def normal(self) -> Array:
        """(L, d) numbers each of whose rows is standard normal; within a block of d rows, orthogonal if so asked."""
        shape = (self.n_frequencies, self.n_inputs)
        if not self.orthogonal:
            return self.random.standard_normal(shape)
        blocks = []
        for start in range(0, self.n_frequencies, self.n_inputs):
            rotation, triangle = np.linalg.qr(self.random.standard_normal((self.n_inputs, self.n_inputs)))
            rotation *= np.sign(np.diag(triangle))  # without this the rotation would not be uniformly distributed
            blocks.append(rotation.T[: self.n_frequencies - start])
        lengths = np.sqrt(self.random.chisquare(self.n_inputs, size=(self.n_frequencies, 1)))
        return np.concatenate(blocks) * lengths

    def finish(self, cls: type[RandomFeatures], frequencies: Array, description: str, kernel: Kernel) -> RandomFeatures:
        """The features of the drawn, still unscaled, ``frequencies``."""
        features = cls(frequencies / self.bandwidth)
        features._kernel, features._bandwidth = kernel, self.bandwidth
        features._description = f"RandomFeatures.{description}"
        return features

    def __repr__(self) -> str:
        extra = ", orthogonal=True" if self.orthogonal else ""
        return (
            f"n_inputs={self.n_inputs}, n_frequencies={self.n_frequencies}, "
            f"bandwidth={self.bandwidth:g}, seed={self.seed}{extra}"
        )


def _square(gap: Array) -> Any:
    return (gap**2).sum(axis=-1)


def _gaussian(gap: Array) -> Array:
    values: Array = np.exp(-0.5 * _square(gap))
    return values


def _laplacian(gap: Array) -> Array:
    values: Array = np.exp(-np.abs(gap).sum(axis=-1))
    return values


def _matern(gap: Array, nu: float) -> Array:
    from scipy.special import gammaln, kve

    r = np.sqrt(2 * nu * _square(gap))
    safe = np.where(r > 0, r, 1.0)
    # kve is K_nu scaled by e^r: the product below stays finite where K_nu alone would vanish.
    log_scale = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(safe) - safe
    values: Array = np.where(r > 0, np.exp(log_scale) * kve(nu, safe), 1.0)
    return values


#: Kernels that can be chosen by name, and what draws their frequencies.
KERNELS: dict[str, Callable[..., RandomFeatures]] = {
    "gaussian": RandomFeatures.gaussian,
    "laplacian": RandomFeatures.laplacian,
    "matern": RandomFeatures.matern,
}
