"""What ``laconic init`` writes: a settings file with a word on every key, and data to learn from."""

from __future__ import annotations

import json
import textwrap

import numpy as np

from laconic import _validate, learners
from laconic.deploy.settings.learning import own_keys
from laconic.features import KERNELS
from laconic.losses import LOSSES

_ROOMS = ("kitchen", "hall", "study", "bedroom", "cellar", "attic", "garage", "garden", "porch", "bath")
_FIRST_PORT = 7450  # 7447 is where a zenoh router would listen
_MOST_AGENTS = 1000
_ROWS = 1000
_NOISE = 0.02
_WIDTH, _REMARKS = 120, 27  # columns of the file, and the column where its remarks begin

_SITE = """\
# A site: agents that learn one model together. Start them all here with
#
#     laconic up {file}
#
# or one of them on its own device, with a copy of this file:
#
#     laconic agent --config {file} --name {first}

[site]
name = "home"              # first part of every zenoh key: home/{first}/sample, ...
clock = "lockstep"         # a round ends when all neighbours are heard; or "slotted": when `slot` seconds are over
slot = 1.0                 # seconds
patience = 10.0            # seconds until a neighbour that vanished is given up
lease = 1.0                # seconds of silence after which it counts as vanished; longer: less traffic on idle links
checkpoint = "state"       # folder where agents save their state; without it, neighbours remind them after a restart
checkpoint_every = 100     # rounds
publish_inputs = false     # whether predictions are published with the inputs that they were made from

{model}
[limits]                   # no sample may ruin the model: what is beyond is counted, and an alert tells of it
deviations = 20            # labels: so many of an agent's own so far are usual; inputs: ten times as many
beyond = "clip"            # to the limits; or "drop": do not learn from such a sample; or "off"
# label = [-40, 60]        # limits of what can be, instead of learned ones
# inputs = [0, 1]          # of all inputs; or a pair for each

[network]                  # who hears whom; there must be a way from each agent to every other
edges = [
{edges}
]
{security}
[source]                   # of samples; {{name}} is the agent's name. An agent may have a `source` of its own
kind = "file"              # replayed, JSON lines or CSV
path = "data/{{name}}.csv"
rate = 50                  # samples a second; without it, as fast as they are learned
loop = {loop}
inputs = {inputs}
target = {target}

# Other sources. A sample is {{"x": [0.1, 0.2], "y": 0.3}} or [0.1, 0.2, 0.3] in JSON or CBOR, or, with `inputs` and
# `target`, an object with these names. Without a label (null) an agent predicts and does not learn.
#
# kind = "stdin"           # JSON lines or CSV; for `laconic agent`, not for `laconic up`
#
# kind = "zenoh"
# key = "{{site}}/{{name}}/sample"
#
# kind = "mqtt"
# host = "broker.local"
# topic = "sensors/{{name}}"
# port = 1883              # 8883 with tls
# user = "{{name}}"
# password_env = "MQTT_PASSWORD"   # the environment variable that holds it
# ca = "broker-ca.pem"     # trust this authority and speak TLS; `tls = true` trusts the system's

{agents}
"""

_MODEL = """\
[model]                    # all agents draw the same random features from the seed
kernel = "gaussian"        # or {kernels}
n_inputs = 2
n_frequencies = 50         # a model has twice as many numbers
bandwidth = 0.3            # distance within which inputs resemble each other; scale your inputs to about [0, 1]
seed = 1
dtype = "float64"          # or "float32"

[learner]
{algorithms}
rho = 0.5                  # how strongly neighbours are pulled together
eta = 2.0                  # larger: smaller, safer steps
regularization = 1e-5
loss = "squared"           # {losses}

[channel]                  # what is said; leave out alpha and beta, or bits, with any learner but {usual}, to say all
alpha = 0.05               # silent while the model has moved less than alpha * beta^round since it was last sent
beta = 1.0                 # below 1 agents speak ever more often: 0.999 is for runs of some thousand rounds
bits = 3                   # for each number of a message
range = "adaptive"         # or [low, high]
# With a learner other than {usual}, instead of alpha and beta, and instead of bits:
# rate = 0.1               # messages a round, at most; or bits_per_round = 50
# coarseness = 1.4         # messages as long as what they say: half of three bits a number, at the same error
"""

_SECURITY = """
[security]                 # mutual TLS: only who has a certificate of this authority gets in, and only by its own name
certificates = "certs"     # NAME.crt and NAME.key, made by `laconic certs {file}`
ca = "certs/ca.pem"
# guests = ["sensor"]      # not agents, but with certificates: they may send samples, read predictions and ask
"""

_NO_SECURITY = """
# Mutual TLS: uncomment, make every endpoint tls/..., and run `laconic certs {file}`.
# [security]
# certificates = "certs"
# ca = "certs/ca.pem"
"""

_FIRST_AGENT = """\
[agents.{name}]
listen = "{protocol}/127.0.0.1:{port}"   # across hosts: this device's address, or 0.0.0.0 and `reach = "..."`
# metrics_port = 9101      # Prometheus metrics, for this machine; `metrics_host = "0.0.0.0"` serves others, too
"""

_AGENT = """
[agents.{name}]
listen = "{protocol}/127.0.0.1:{port}"
"""


def agent_names(n_agents: int) -> tuple[str, ...]:
    """Names for so many agents: rooms of a house, numbered when the house has no more.

    >>> agent_names(2)
    ('kitchen', 'hall')
    """
    n_agents = _validate.integer("n_agents", n_agents, least=1, most=_MOST_AGENTS)
    return (*_ROOMS[:n_agents], *(f"room-{k}" for k in range(len(_ROOMS) + 1, n_agents + 1)))


def settings(
    n_agents: int,
    file: str = "site.toml",
    secure: bool = False,
    *,
    names: tuple[str, ...] | None = None,
    model: str | None = None,
    inputs: tuple[str, ...] = ("hour", "sunshine"),
    target: str = "warmth",
) -> str:
    """The text of a settings file: agents in a ring with one chord, on this machine.

    ``names``, ``model`` (the tables that say what is learned), ``inputs`` and ``target`` are those of data of one's
    own; without them it is about the warmth of rooms.
    """
    names = agent_names(n_agents) if names is None else names
    ring = [(names[k], names[(k + 1) % n_agents]) for k in range(n_agents if n_agents > 2 else n_agents - 1)]
    chord = [(names[0], names[n_agents // 2])] if n_agents > 3 else []
    edges = ", ".join(f'["{a}", "{b}"]' for a, b in ring + chord)
    lines = textwrap.wrap(edges.replace('", "', '",_"'), 100, break_long_words=False, break_on_hyphens=False)
    protocol = "tls" if secure else "tcp"
    agents = "".join(
        (_AGENT if k else _FIRST_AGENT).format(name=name, protocol=protocol, port=_FIRST_PORT + k)
        for k, name in enumerate(names)
    )
    choices = _choices()
    return _SITE.format(
        file=file,
        model=(_MODEL.format(**choices) if model is None else model).rstrip() + "\n",
        loop="true" if model is None else "false",
        inputs=json.dumps(list(inputs)),
        target=json.dumps(target),
        first=names[0],
        edges="\n".join(f"  {line.replace(',_', ', ')}" for line in lines),
        security=(_SECURITY if secure else _NO_SECURITY).format(file=file),
        agents=agents.rstrip(),
    )


def _choices() -> dict[str, str]:
    """What can be chosen by name, as remarks beside what is chosen."""
    usual = learners.written(learners.QCODKLA)
    keys: dict[str, list[str]] = {}
    for learner in learners.every():
        if learner is not learners.QCODKLA:
            silent = (", never speaks") * (learner.speech is learners.Speech.NEVER)
            keys.setdefault(", ".join(own_keys(learner)) + silent, []).append(f'"{learners.written(learner)}"')
    others = ", ".join(f"{', '.join(names)} ({takes})" for takes, names in keys.items())
    numbers, classes = ([f'"{n}"' for n, loss in LOSSES.items() if loss.binary == b] for b in (False, True))
    return {
        "usual": usual,
        "algorithms": _remarked(
            f'algorithm = "{usual}"', f'or {others}, or a class of your own: "package.module:Class"'
        ),
        "kernels": ", ".join(f'"{kernel}"' for kernel in list(KERNELS)[1:]),
        "losses": "; ".join([*numbers[1:], f"{', '.join(classes)}: labels are -1 and +1"]),
    }


def _remarked(line: str, remark: str) -> str:
    """A line of settings and a remark beside it, on as many lines as it takes."""
    first, *rest = textwrap.wrap(remark, _WIDTH - _REMARKS - 2, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{line:<{_REMARKS}}# {first}", *(f"{'':<{_REMARKS}}# {more}" for more in rest)])


def samples(n_agents: int, n_rows: int = _ROWS) -> dict[str, str]:
    """CSV text for each agent: hour of the day and sunshine in [0, 1], and how warm it then is, with a little noise.

    All agents see the same nonlinear function, each with draws and noise of its own.
    """
    tables = {}
    for k, name in enumerate(agent_names(n_agents)):
        random = np.random.default_rng([k, 0])
        hour, sunshine = random.uniform(size=(2, n_rows))
        warmth = 0.5 + 0.3 * np.sin(2 * np.pi * (hour - 0.3)) + 0.4 * sunshine * np.sin(np.pi * hour)
        warmth += _NOISE * random.standard_normal(n_rows)
        rows = (f"{a:.4f},{b:.4f},{c:.4f}" for a, b, c in zip(hour, sunshine, warmth, strict=True))
        tables[name] = "\n".join(("hour,sunshine,warmth", *rows)) + "\n"
    return tables
