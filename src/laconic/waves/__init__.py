"""Waves: what a centre would know, at every agent, for a hundredth of the bits.

Every agent does recursive least squares. Now and then, at rounds that grow by half, a wave runs up a spanning tree and
down again: up goes what each subtree knows, down comes what all of them know together. Vectors are cheap, matrices are
not: a matrix is said as a few rank-one terms of its change against what both ends already hold, whitened by what
everybody knows; the vector is the residual at a common model, so that an error in the matrix is of second order.

The files, from the ground up:

    tree         the tree, and an agent's place in it
    rule         parameters; when waves start, and how much they carry
    codes        whole numbers as bits
    message      what is said, as bytes and back
    terms        what a sender chooses to say of a matrix
    arithmetic   what two agents must share, in one written order; and a sender's own, which compiled code replaces
    describing   what the root chooses to say
    common       what everybody knows: C, theta, d, e
    own          an agent's own data and model: A, b, c, m; P, w
    forgetting   least squares that forget
    arms         an agent's own prediction beside the model that all share
    node         one agent, whole: samples, times and bytes in; predictions and bytes out
    fronts       what neighbours in a deep tree tell each other until the first wave has come
    routes       who a message went to, told from who spoke when

How to run a ``Node``, with a simulator or on a wire: ``node.learn(phi, label)`` in every round, which returns the
prediction; when t rounds are over ``node.receive(sender, data)`` for each message that was sent when t-1 were, and the
sender's ``acknowledged()`` if it was a message up; then ``node.tick(t)``, whose messages go out. Nothing else is
shared. ``saving`` makes arrays of nodes and nodes of arrays, and ``checking`` looks at arrays before; ``records`` tells
what a run's waves were.
"""

from laconic.waves.arithmetic import Arithmetic
from laconic.waves.arms import PersonalOwn
from laconic.waves.common import Common
from laconic.waves.node import Message, Node
from laconic.waves.own import Own
from laconic.waves.routes import Routes
from laconic.waves.rule import Rule
from laconic.waves.tree import Place, places

__all__ = [
    "Arithmetic",
    "Common",
    "Message",
    "Node",
    "Own",
    "Place",
    "Routes",
    "Rule",
    "make_node",
    "make_own",
    "places",
]


def make_node(
    rule: Rule, place: Place, n_features: int, arithmetic: Arithmetic | None = None, common: Common | None = None
) -> Node:
    """A node that knows nothing yet."""
    arithmetic = arithmetic or Arithmetic()
    common = common or Common.first(rule, arithmetic, n_features)
    return Node(rule, place, make_own(rule, arithmetic, n_features), common)


def make_own(rule: Rule, arithmetic: Arithmetic, n_features: int) -> Own:
    """An agent's own part: with arms of its own, if the rule has any."""
    kind = Own if rule.arms is None else PersonalOwn
    return kind(rule, arithmetic, n_features)
