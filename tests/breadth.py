"""How much of what could be tried is tried: enough for every change, all of it with ``LACONIC_TESTS=all``.

A test over learners, losses, channels and graphs has hundreds of cases, and what goes wrong in one of them goes wrong,
nearly always, because of two of its parts. So ``crossed`` chooses cases in which any two of them meet; the same ones
in every run. Of two dimensions that would be all; ``each`` tries every value of both.
"""

import itertools
import os

EVERYTHING = os.environ.get("LACONIC_TESTS") == "all"


def crossed(*dimensions):
    """Cases, with a value of each dimension, in which any two values of two dimensions meet; or all there are.

    The first case that brings most of the pairs that are still missing is taken, until none is.
    """
    values = [list(dimension) for dimension in dimensions]
    product = list(itertools.product(*(range(len(dimension)) for dimension in values)))
    if not EVERYTHING:
        brings = {case: set(itertools.combinations(enumerate(case), 2)) for case in product}
        missing, product = set().union(*brings.values()), []
        while missing:
            product.append(max(brings, key=lambda case: len(brings[case] & missing)))
            missing -= brings[product[-1]]
    return [tuple(map(list.__getitem__, values, case)) for case in sorted(product)]


def each(*dimensions):
    """Cases in which every value of each dimension comes at least once; or all there are. For two dimensions."""
    if EVERYTHING:
        return list(itertools.product(*dimensions))
    values = [list(dimension) for dimension in dimensions]
    most = max(map(len, values))
    return [tuple(dimension[k % len(dimension)] for dimension in values) for k in range(most)]


def examples(most):
    """How many examples Hypothesis draws for a property: a quarter of ``most``, or all of them."""
    return most if EVERYTHING else max(10, most // 4)
