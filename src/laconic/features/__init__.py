"""Feature maps: random Fourier features of a kernel, and the scaling of raw inputs that may stand before them."""

from laconic.features.maps import KERNELS, RandomFeatures
from laconic.features.scaling import Scaling

__all__ = ["KERNELS", "RandomFeatures", "Scaling"]
