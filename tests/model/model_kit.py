"""Models of every form, for tests that take them away."""

import numpy as np

import laconic as lc
from laconic.model import FeatureMap
from laconic.model.stages import Constant, Lift, Linear, Scale, Waves

NASTY = ('a "quoted" one', "*/ int main(void) { return 1; } /*", "tab\tand\\backslash ??/", "ünïcode 温度")


def every_part(rng, n_outputs=None):
    """A map of four inputs with every kind of part, one scale of 0 among them; and weights for it."""
    scale = Scale(np.array([0, 2, 3]), rng.normal(size=3), np.array([1.0, 0.0, 2.0]))
    blocks = [Waves(rng.normal(size=(20, 6))), Linear(3, 5.0, 3**-0.5), Constant()]
    made = FeatureMap(4, [scale, Lift()], blocks)
    return made, rng.normal(size=made.n_features if n_outputs is None else (made.n_features, n_outputs))


def forms(rng):
    """Models by name: numbers and classes, one output and several, plain maps and those with every part."""
    raw = rng.normal([20.0, 1e5, 7.0, -3.0], [5.0, 2e4, 0.0, 0.1], size=(40, 4))
    automatic = FeatureMap.of(lc.RandomFeatures.automatic(raw, 20, seed=1))
    plain = FeatureMap.of(lc.RandomFeatures.matern(4, 30, nu=1.5, bandwidth=2.0, seed=3))
    words = {"inputs": list(NASTY), "target": "*/", "about": {"name": "*/", "why": NASTY[1]}}
    return {
        "plain": lc.Model(plain, rng.normal(size=60), centre=300.0, scale=20.0),
        "automatic": lc.Model(automatic, rng.normal(size=automatic.n_features)),
        "parts": lc.Model(*every_part(rng), centre=-2.0, scale=0.5, **words),
        "outputs": lc.Model(*every_part(rng, 3), **words),
        "two classes": lc.Model(*every_part(rng), loss="logistic", classes=["small", "big */ one"], **words),
        "signs": lc.Model(plain, rng.normal(size=60), loss="hinge"),
        "classes": lc.Model(*every_part(rng, 4), loss="logistic", classes=list(NASTY), **words),
        "numbers": lc.Model(*every_part(rng, 3), loss="squared", classes=[1, 2, 5]),
    }
