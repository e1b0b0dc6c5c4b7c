"""Feature maps: random Fourier features of a kernel, the scaling of raw inputs that may stand before
them, and maps of one's own.
"""

from laconic.features.maps import KERNELS, RandomFeatures
from laconic.features.own import OwnFeatures, read
from laconic.features.scaling import Scaling

__all__ = ["KERNELS", "OwnFeatures", "RandomFeatures", "Scaling", "read"]
