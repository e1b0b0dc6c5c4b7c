"""A site's settings: what they mean, what is refused and in which words, and that `laconic init` writes good ones."""

import pickle
import re

import numpy as np
import pytest

import laconic as lc
from laconic.cli import main
from laconic.deploy.settings.site import Site
from laconic.deploy.settings.sources import FileSettings, MqttSettings, StdinSettings, ZenohSettings

FULL = """
[site]
name = "house"
clock = "slotted"
slot = 0.25
patience = 3
checkpoint = "state"
checkpoint_every = 20
[model]
kernel = "matern"
nu = 2.5
n_inputs = 2
n_frequencies = 11
bandwidth = 0.4
seed = 7
dtype = "float32"
[learner]
algorithm = "DOKL"
rho = 0.3
eta = 4
regularization = 0.01
loss = "logistic"
[channel]
alpha = 2
beta = 0.9
bits = 5
range = [-1, 1]
rounding = "tread"
[network]
edges = [["hall", "cellar"], ["kitchen", "hall"], ["hall", "kitchen"]]
[security]
certificates = "keys"
guests = ["sensor"]
[source]
kind = "mqtt"
host = "broker"
topic = "{site}/rooms/{name}"
inputs = ["warm", "damp"]
target = "power"
[agents.kitchen]
listen = "tls/127.0.0.1:7447"
metrics_port = 9100
[agents.hall]
listen = "tls/0.0.0.0:7448"
reach = "tls/hall.local:7449"
certificate = "elsewhere/hall.pem"
key = "/etc/hall.key"
source = { topic = "own/{name}", qos = 0 }
[agents.cellar]
listen = "tls/[::1]:7447"
source = { kind = "file", path = "{name}.csv", rate = 5, loop = true, buffer = 10 }
"""

SMALL = """
[model]
n_inputs = 2
[agents.kitchen]
listen = "tcp/127.0.0.1:7447"
"""

PAIR = """
[site]
[model]
n_inputs = 2
[learner]
[channel]
[network]
edges = [["kitchen", "hall"]]
[source]
[agents.kitchen]
listen = "tcp/127.0.0.1:7447"
[agents.hall]
listen = "tcp/127.0.0.1:7448"
"""


def test_every_key_is_taken_in(tmp_path):
    file = tmp_path / "site.toml"
    file.write_text(FULL)
    site = Site.read(file)
    assert (site.name, site.clock, site.slot, site.patience) == ("house", "slotted", 0.25, 3.0)
    assert (site.checkpoint_every, site.checkpoint_path("hall")) == (20, tmp_path / "state" / "hall.checkpoint")
    assert site.names == ("kitchen", "hall", "cellar") and site.n_agents == 3

    expected = lc.RandomFeatures.matern(2, 11, nu=2.5, bandwidth=0.4, seed=7)
    np.testing.assert_array_equal(site.features().frequencies, expected.frequencies)
    assert site.model.dtype == "float32"
    channel = lc.Channel(lc.Censor(2.0, 0.9), lc.Quantizer(5, (-1.0, 1.0), "tread"))
    twin = lc.DOKL(0.3, 4.0, regularization=0.01, loss="logistic", channel=channel)
    assert repr(site.learner()) == repr(twin)

    assert site.network() == lc.Network(3, [(0, 1), (1, 2)], ["kitchen", "hall", "cellar"])
    assert site.neighbours("hall") == ("kitchen", "cellar") and site.neighbours("cellar") == ("hall",)

    assert site.security.ca == tmp_path / "keys" / "ca.pem" and site.security.ca_key == tmp_path / "keys" / "ca-key.pem"
    assert site.security.guests == ("sensor",)
    kitchen, hall, cellar = site.agents
    assert kitchen.certificate == tmp_path / "keys" / "kitchen.crt" and kitchen.key.name == "kitchen.key"
    assert hall.certificate == tmp_path / "elsewhere" / "hall.pem" and str(hall.key) == "/etc/hall.key"
    assert (kitchen.metrics_port, hall.metrics_port) == (9100, None)
    assert site.endpoint("kitchen") == "tls/127.0.0.1:7447"
    assert (hall.listen, site.endpoint("hall")) == ("tls/0.0.0.0:7448", "tls/hall.local:7449")
    assert (cellar.listen.host, cellar.listen.port, cellar.listen.protocol) == ("::1", 7447, "tls")

    assert isinstance(kitchen.source, MqttSettings) and kitchen.source.topic == "house/rooms/kitchen"
    assert (kitchen.source.inputs, kitchen.source.target) == (("warm", "damp"), "power")
    assert (hall.source.topic, hall.source.qos, hall.source.host) == ("own/hall", 0, "broker")
    # A kind of its own: nothing of the shared table remains.
    assert cellar.source == FileSettings(None, None, 10, path=tmp_path / "cellar.csv", rate=5.0, loop=True)


def test_the_scaling_of_raw_inputs_is_a_setting():
    measured = lc.RandomFeatures.automatic([[20.0, 5.0], [24.0, 5.0]], n_frequencies=7, seed=3)
    keys = 'kernel = "automatic"\ncentre = [22, 5.0]\nscale = [2.0, 0]\nn_frequencies = 7\nseed = 3'
    site = Site.parse(in_table("model", keys))
    X = np.array([[21.0, 5.0], [30.0, -1.0]])
    np.testing.assert_array_equal(site.features()(X), measured(X))
    plain = Site.parse(in_table("model", keys + "\nlinear = false"))
    assert plain.features().n_features == 14


def test_defaults_are_a_site_that_works():
    site = Site.parse(SMALL)
    assert (site.name, site.clock, site.checkpoint, site.security) == ("site", "lockstep", None, None)
    assert site.checkpoint_path("kitchen") is None and site.neighbours("kitchen") == ()
    assert site.agent("kitchen").source == ZenohSettings(None, None, 256, key="site/kitchen/sample")
    assert site.agent("kitchen").certificate is None
    assert repr(site.learner()) == repr(lc.QCODKLA())
    assert site.features().n_inputs == 2 and site.model.dtype == "float64"


def test_a_site_travels_to_other_processes():
    site = Site.parse(FULL)
    assert pickle.loads(pickle.dumps(site)) == site


@pytest.mark.parametrize(
    ("learner", "channel", "expected"),
    [
        ("", "", lc.QCODKLA()),
        ('algorithm = "QC-ODKLA"', "alpha = 1\nrange = [-1, 2]", lc.QCODKLA(alpha=1.0, range=(-1.0, 2.0))),
        ('algorithm = "odkla"', "", lc.ODKLA()),
        ('algorithm = "odkla"\nrobust = "clip"\nreach = 2', "", lc.ODKLA(robust="clip", reach=2.0)),
        ('algorithm = "odkla"\nrho = 1', "bits = 4", lc.ODKLA(1.0, channel=lc.Channel(quantizer=lc.Quantizer(4)))),
        ('algorithm = "odkla"', "alpha = 0.5\nbeta = 1", lc.ODKLA(channel=lc.Channel(lc.Censor(0.5, 1.0)))),
        ('algorithm = "rffdokl"\nstep = 0.1\norder = "adapt-then-combine"', "", lc.RFFDOKL(0.1, "adapt-then-combine")),
        ('algorithm = "local"\nstep = 0.1\nloss = "hinge"', "", lc.Local(0.1, loss="hinge")),
    ],
)
def test_learners_and_channels(learner, channel, expected):
    text = PAIR.replace("[learner]", f"[learner]\n{learner}").replace("[channel]", f"[channel]\n{channel}")
    assert repr(Site.parse(text).learner()) == repr(expected)


def in_table(table, line, text=PAIR):
    """``text`` with one more line in a table."""
    assert f"[{table}]\n" in text
    return text.replace(f"[{table}]\n", f"[{table}]\n{line}\n")


SECURE = PAIR.replace("tcp/", "tls/") + "[security]\n"

WRONG = {
    "unknown table": (PAIR + "[modle]\n", "has no table [modle]; did you mean 'model'?"),
    "unknown table, no guess": (PAIR + "[zzz]\n", "has no table [zzz]; its tables are site, model, "),
    "table is a value": ("model = 3\n", "[model] must be a table, got 3."),
    "unknown key": (in_table("learner", "rh = 1"), "[learner] has no key 'rh'; did you mean 'rho'?"),
    "unknown key, no guess": (in_table("site", "q = 1"), "[site] has no key 'q'; its keys are name, clock, slot"),
    "unknown channel key": (in_table("channel", "bit = 3"), "[channel] has no key 'bit'; did you mean 'bits'?"),
    "unknown agent key": (
        in_table("agents.hall", "lisen = 1"),
        "[agents.hall] has no key 'lisen'; did you mean 'listen'",
    ),
    "no inputs": (PAIR.replace("n_inputs = 2", ""), "[model] must have a key 'n_inputs'."),
    "text for a number": (in_table("site", 'slot = "1"'), "[site] slot must be a number, got '1'."),
    "nan": (in_table("site", "slot = nan"), "[site] slot must be finite, got nan."),
    "no time": (in_table("site", "slot = 0"), "[site] slot must be larger than 0, got 0."),
    "no lease": (in_table("site", "lease = 0"), "[site] lease must be at least 0.1, got 0."),
    "no patience": (in_table("site", "patience = -1"), "[site] patience must be larger than 0, got -1."),
    "bool for a number": (in_table("learner", "rho = true"), "[learner] rho must be a number, got True."),
    "negative": (in_table("learner", "eta = -2"), "[learner] eta must be larger than 0, got -2."),
    "clock": (
        in_table("site", 'clock = "lockstop"'),
        "clock must be one of 'lockstep', 'slotted', got 'lockstop'; did",
    ),
    "site name": (in_table("site", 'name = "a/b"'), "[site] name must be made of letters, digits, - and _"),
    "site name is a number": (in_table("site", "name = 3"), "[site] name must be made of letters"),
    "checkpoints": (in_table("site", "checkpoint_every = 0"), "[site] checkpoint_every must be at least 1, got 0."),
    "empty path": (in_table("site", 'checkpoint = ""'), "[site] checkpoint must be a text of at least one letter"),
    "kernel": (in_table("model", 'kernel = "rbf"'), "[model] kernel must be one of 'gaussian', 'laplacian', 'matern'"),
    "too many": (in_table("model", "n_frequencies = 1_000_000_000"), "n_frequencies must be from 1 to 1000000"),
    "too many together": (
        in_table("model", "n_frequencies = 1_000_000").replace("n_inputs = 2", "n_inputs = 1000"),
        "[model] n_inputs times n_frequencies must be at most",
    ),
    "nu": (in_table("model", "nu = 1.5"), "[model] nu is for the kernel 'matern', not for 'gaussian'."),
    "algorithm": (in_table("learner", 'algorithm = "okdla"'), "got 'okdla'; did you mean 'odkla'?"),
    "algorithm is a number": (in_table("learner", "algorithm = 1"), "[learner] algorithm must be one of 'odkla'"),
    "step of odkla": (in_table("learner", "step = 1"), "[learner] step is not for qc-odkla, which takes rho, eta,"),
    "order": (
        in_table("learner", 'algorithm = "rffdokl"\norder = "first"'),
        "[learner] order must be one of 'combine-then-adapt', 'adapt-then-combine'",
    ),
    "loss": (in_table("learner", 'loss = "square"'), "[learner] loss must be one of 'squared'"),
    "half a censor": (
        in_table("channel", "alpha = 1", in_table("learner", 'algorithm = "odkla"')),
        "both alpha and beta",
    ),
    "beta": (in_table("channel", "beta = 1.5"), "[channel] beta must be at most 1, got 1.5."),
    "bits": (in_table("channel", "bits = 17"), "[channel] bits must be from 1 to 16, got 17."),
    "range": (in_table("channel", "range = [1, -1]"), "[channel] range must be a pair (u, v) with u < v"),
    "range of three": (in_table("channel", "range = [1, 2, 3]"), "[channel] range must be 'adaptive' or a pair"),
    "range without bits": (
        in_table("channel", 'range = "adaptive"', in_table("learner", 'algorithm = "odkla"')),
        "[channel] must have bits where it has range.",
    ),
    "channel of local": (
        in_table("channel", "bits = 3", in_table("learner", 'algorithm = "local"')),
        "[channel] must be empty or absent with the algorithm local",
    ),
    "no scale": (in_table("model", 'kernel = "automatic"\ncentre = [1, 2]'), "[model] must have a key 'scale'."),
    "scale of another length": (
        in_table("model", 'kernel = "automatic"\ncentre = [1]\nscale = [1]'),
        "[model] centre and scale must have n_inputs = 2 entries, got 1.",
    ),
    "scale below zero": (
        in_table("model", 'kernel = "automatic"\ncentre = [1, 1]\nscale = [1, -1]'),
        "[model] scale must be at least 0 everywhere.",
    ),
    "scale without need": (in_table("model", "scale = [1, 1]"), "[model] scale is not for the kernel 'gaussian'."),
    "bandwidth without need": (
        in_table("model", 'kernel = "automatic"\ncentre = [1, 1]\nscale = [1, 1]\nbandwidth = 2'),
        "[model] bandwidth is not for the kernel 'automatic'.",
    ),
    "no agents": ("[model]\nn_inputs = 2\n", "must have a table [agents.NAME] for each agent."),
    "agent is a value": ("[model]\nn_inputs = 2\n[agents]\nkitchen = 1\n", "[agents.kitchen] must be a table, got 1."),
    "agent name": (PAIR + '[agents."a b"]\nlisten = "tcp/h:1"\n', "[agents] a name must be made of letters"),
    "long name": (PAIR + f'[agents.{"a" * 65}]\nlisten = "tcp/h:1"\n', "a name must have at most 64 letters, got 65."),
    "same name": (
        PAIR + '[agents.Hall]\nlisten = "tcp/h:1"\n',
        "[agents.hall] and [agents.Hall] have the same name but",
    ),
    "no endpoint": (PAIR.replace('listen = "tcp/127.0.0.1:7448"', ""), "[agents.hall] must have a key 'listen'."),
    "endpoint": (PAIR.replace("tcp/127.0.0.1:7448", "127.0.0.1:7448"), "listen must be 'tcp/HOST:PORT' with a port"),
    "port": (
        PAIR.replace(":7448", ":70000"),
        "[agents.hall] listen must be 'tcp/HOST:PORT' with a port from 1 to 65535",
    ),
    "port zero": (
        PAIR.replace(":7448", ":0"),
        "[agents.hall] listen must be 'tcp/HOST:PORT' with a port from 1 to 65535",
    ),
    "udp": (
        PAIR.replace("tcp/127.0.0.1:7448", "udp/127.0.0.1:7448"),
        "listen must begin with 'tcp/' since there is no",
    ),
    "tls without security": (
        PAIR.replace("tcp/127.0.0.1:7448", "tls/h:7448"),
        "must begin with 'tcp/' since there is no",
    ),
    "tcp with security": (PAIR + "[security]\n", "[agents.kitchen] listen must begin with 'tls/' since there is a"),
    "same endpoint": (
        PAIR.replace(":7448", ":7447"),
        "[agents.kitchen] and [agents.hall] share the address 127.0.0.1:7447",
    ),
    "everywhere": (
        PAIR.replace("127.0.0.1:7448", "0.0.0.0:7448"),
        "[agents.hall] reach must say where neighbours find",
    ),
    "metrics on the same port": (
        in_table("agents.hall", "metrics_port = 7448"),
        "metrics_port must differ from the port",
    ),
    "metrics of both": (
        in_table("agents.hall", "metrics_port = 9100", in_table("agents.kitchen", "metrics_port = 9100")),
        "[agents.kitchen] and [agents.hall] share the address 127.0.0.1:9100.",
    ),
    "certificate without security": (in_table("agents.hall", 'key = "k"'), "[agents.hall] has no key 'key'"),
    "security key": (SECURE + "cert = 1\n", "[security] has no key 'cert'; did you mean 'certificates'?"),
    "guest": (SECURE + 'guests = ["a b"]\n', "[security] guests: a name must be made of letters"),
    "guests are text": (SECURE + 'guests = "sensor"\n', "[security] guests must be a list of names, got 'sensor'."),
    "guest is an agent": (
        SECURE + 'guests = ["Hall"]\n',
        "[security] guests must not have the name of another, got 'Hall'.",
    ),
    "guest twice": (SECURE + 'guests = ["a", "A"]\n', "[security] guests must not have the name of another, got 'A'."),
    "edge to nobody": (
        PAIR.replace('["kitchen", "hall"]', '["kitchen", "hal"]'),
        "edges join 'hal', which is no agent; did",
    ),
    "edge to oneself": (
        PAIR.replace('["kitchen", "hall"]', '["hall", "hall"]'),
        "edges must join two different agents",
    ),
    "edge of three": (PAIR.replace('["kitchen", "hall"]', '["hall"]'), "[network] edges must be pairs of names, as in"),
    "edges are text": (PAIR.replace('[["kitchen", "hall"]]', '"all"'), "[network] edges must be pairs of names, as in"),
    "not connected": (
        PAIR.replace('["kitchen", "hall"]', ""),
        "[network] the network must be connected, but it falls into 2",
    ),
    "source kind": (
        in_table("source", 'kind = "fil"'),
        "[source] kind must be one of 'stdin', 'file', 'zenoh', 'mqtt', got",
    ),
    "source without path": (in_table("source", 'kind = "file"'), "[source] must have a key 'path'."),
    "home of nobody": (
        in_table("source", 'kind = "file"\npath = "~no-such-user/x"'),
        "[source] path = '~no-such-user/x' begins with the home of a user that is not known here.",
    ),
    "source key": (in_table("source", 'kind = "file"\npath = "a"\nspeed = 1'), "[source] has no key 'speed'"),
    "source rate": (
        in_table("source", 'kind = "file"\npath = "a"\nrate = 0'),
        "[source] rate must be larger than 0, got 0.",
    ),
    "source loop": (
        in_table("source", 'kind = "file"\npath = "a"\nloop = 1'),
        "[source] loop must be true or false, got 1.",
    ),
    "own source": (
        in_table("agents.hall", "source = { kind = 3 }"),
        "[agents.hall] source kind must be one of 'stdin'",
    ),
    "own source is a value": (in_table("agents.hall", "source = 3"), "[agents.hall] source must be a table, got 3."),
    "inputs": (
        in_table("source", 'inputs = ["a"]'),
        "[source] inputs must be 2 names, as [model] n_inputs says; got 1.",
    ),
    "same inputs": (in_table("source", 'inputs = ["a", "a"]'), "[source] inputs must be a list of different names"),
    "inputs are text": (in_table("source", 'inputs = "ab"'), "[source] inputs must be a list of names, got 'ab'."),
    "target alone": (in_table("source", 'target = "y"'), "[source] target is for named inputs"),
    "target is an input": (
        in_table("source", 'inputs = ["a", "b"]\ntarget = "b"'),
        "target must not be one of the inputs",
    ),
    "buffer": (in_table("source", "buffer = 0"), "[source] buffer must be from 1 to"),
    "zenoh key": (in_table("source", 'key = "/a"'), "[source] key must be a zenoh key such as"),
    "mqtt topic": (in_table("source", 'kind = "mqtt"\nhost = "h"\ntopic = "a/#/b"'), "topic must be an MQTT topic"),
    "mqtt topic plus": (in_table("source", 'kind = "mqtt"\nhost = "h"\ntopic = "a+"'), "topic must be an MQTT topic"),
    "mqtt host": (
        in_table("source", f'kind = "mqtt"\nhost = "{"h" * 70}"\ntopic = "a"'),
        "[source] host must be the name",
    ),
    "mqtt password": (
        in_table("source", 'kind = "mqtt"\nhost = "h"\ntopic = "a"\nuser = "u"\npassword = "p"'),
        "[source] password must not stand in a file: name an environment variable as password_env.",
    ),
    "mqtt password without user": (
        in_table("source", 'kind = "mqtt"\nhost = "h"\ntopic = "a"\npassword_env = "P"'),
        "[source] password_env needs a user.",
    ),
    "not toml": ("[model\n", "is not valid TOML: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_every_mistake_is_one_sentence(case):
    text, expected = WRONG[case]
    with pytest.raises(ValueError, match=re.escape(expected)) as raised:
        Site.parse(text, "my/site.toml")
    said = str(raised.value)
    assert said.startswith("my/site.toml") and "\n" not in said and said.endswith((".", "?"))


def test_unreadable_files_are_refused(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b'[site]\nname = "k\xfcche"\n')
    with pytest.raises(ValueError, match="must be text in UTF-8"):
        Site.read(tmp_path / "latin.toml")
    with pytest.raises(FileNotFoundError):
        Site.read(tmp_path / "absent.toml")
    with pytest.raises(ValueError, match=r"has no agent 'hal'; did you mean 'hall'\?"):
        Site.parse(PAIR).neighbours("hal")


def test_high_ports_are_warned_of():
    with pytest.warns(UserWarning, match="hall listen on ports from 32768 on"):
        Site.parse(PAIR.replace(":7448", ":40000"))


def test_a_pipe_for_one_agent_among_others():
    site = Site.parse(in_table("agents.hall", 'source = { kind = "stdin" }'))
    assert isinstance(site.agent("hall").source, StdinSettings)
    assert isinstance(site.agent("kitchen").source, ZenohSettings)


# ---- laconic init -----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def said(capsys, code, *words):
    assert main([str(word) for word in words]) == code
    out, err = capsys.readouterr()
    assert (out == "") == (code != 0) and (err == "") == (code == 0)
    return out or err


@pytest.mark.parametrize(("n_agents", "n_edges"), [(1, 0), (2, 1), (3, 3), (5, 6), (12, 13)])
def test_init_writes_a_site_whose_agents_learn(n_agents, n_edges, capsys, tmp_path):
    out = said(capsys, 0, "init", "home", "--agents", n_agents)
    assert "laconic up home/site.toml" in out and max(map(len, out.splitlines())) <= 80
    site = Site.read("home/site.toml")
    network = site.network()
    assert (network.n_agents, len(network.edges)) == (n_agents, n_edges)
    assert max(map(len, (tmp_path / "home" / "site.toml").read_text().splitlines())) <= 120

    streams = []
    for name in site.names:
        source = site.source(name)
        assert source.rate == 50 and source.loop
        source.rate, source.loop = None, False
        streams.append(take_all(source))
        assert source.counts == {"samples": 1000, "unlabelled": 0, "dropped": 0, "lost": 0}
    X = np.array([[sample.x for sample in stream] for stream in streams]).swapaxes(0, 1)
    y = np.array([[sample.y for sample in stream] for stream in streams]).T
    trace = lc.simulate(site.learner(), site.features(), network, X, y)
    errors = ((trace.predictions - y) ** 2).mean(axis=1)
    assert errors[:20].mean() > 0.05  # within a few seconds, at 50 samples a second:
    assert errors[150:250].mean() < 0.01


def take_all(source):
    """All samples of a source, in order."""
    import queue

    events = queue.SimpleQueue()
    source.start(lambda: events.put(None))
    samples = []
    while not source.ended:
        sample = source.next()
        if sample is None:
            events.get(timeout=300)
        else:
            samples.append(sample)
    source.close()
    return samples


def test_init_overwrites_nothing_unless_forced(capsys, tmp_path):
    said(capsys, 0, "init")
    (tmp_path / "site.toml").write_text("mine")
    assert "site.toml is there already: --force overwrites it" in said(capsys, 2, "init")
    assert (tmp_path / "site.toml").read_text() == "mine"
    (tmp_path / "site.toml").unlink()
    for path in (tmp_path / "data").iterdir():
        path.unlink()
    (tmp_path / "data" / "hall.csv").write_text("mine, too")
    assert "data/hall.csv is there already" in said(capsys, 2, "init")
    assert not (tmp_path / "site.toml").exists() and (tmp_path / "data" / "hall.csv").read_text() == "mine, too"
    said(capsys, 0, "init", "--force")
    assert Site.read("site.toml").n_agents == 5 and "hour" in (tmp_path / "data" / "hall.csv").read_text()


def test_init_is_the_same_every_time(capsys, tmp_path):
    for place in ("one", "two"):
        said(capsys, 0, "init", place)
    for file in ("site.toml", "data/kitchen.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert (tmp_path / "one/data/hall.csv").read_bytes() != (tmp_path / "one/data/kitchen.csv").read_bytes()


def test_init_refuses_nonsense(capsys, tmp_path):
    assert "--agents must be from 1 to 1000, got 0" in said(capsys, 2, "init", "--agents", "0")
    assert "--agents must be a whole number" in said(capsys, 2, "init", "--agents", "many")
    (tmp_path / "file").write_text("")
    assert "file" in said(capsys, 2, "init", "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_the_comments_of_init_name_real_keys(capsys):
    """Whoever uncomments a line gets what it says."""
    said(capsys, 0, "init")
    text = Site.read("site.toml").file.read_text()
    head, rest = text.split("[source]", 1)
    middle, tail = rest.split("[agents.kitchen]", 1)
    kinds = []
    for block in middle.split("# Other sources.")[1].split("\n#\n"):
        lines = [line.removeprefix("# ") for line in block.splitlines() if " = " in line and line.startswith("# ")]
        if lines:
            site = Site.parse("\n".join((head, "[source]", *lines, "[agents.kitchen]", tail)))
            kinds.append(site.agent("hall").source.kind)
    assert kinds == ["stdin", "zenoh", "mqtt"]


# Limits of samples ---------------------------------------------------------------------------------------------------


def test_limits_are_learned_unless_they_are_given():
    guard = Site.parse(SMALL).guard()
    assert (guard.n_inputs, guard.deviations, guard.beyond) == (2, 20.0, "clip")
    given = "[limits]\nlabel = [-40, 60]\ninputs = [[0, 1], [-5.5, 5]]\ndeviations = 30\nbeyond = 'drop'\n"
    guard = Site.parse(SMALL + given).guard()
    assert guard.limits.tolist() == [[-40, 60], [0, 1], [-5.5, 5]]
    assert (guard.deviations, guard.beyond) == (30.0, "drop")


def test_init_names_limits_that_can_be_uncommented(capsys):
    said(capsys, 0, "init")
    whole = Site.read("site.toml").file.read_text()
    shown = whole.replace("# label = [", "label = [").replace("# inputs = [0", "inputs = [0")
    assert Site.parse(shown).guard().limits.tolist() == [[-40, 60], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ("deviations = 0", "deviations must be at least 1, got 0."),
        ("beyond = 'cut'", "beyond must be one of 'clip', 'drop', 'off', got 'cut'."),
        ("label = 3", "label must be two numbers, [low, high], got 3."),
        ("label = [1, 0]", "label must have the lower limit first"),
        ("label = [0, 1e15]", "label must be at most 1e+12 in size"),
        ("label = [0, 'much']", "label must be a number, got 'much'."),
        ("inputs = [[0, 1]]", "inputs must have a pair for each of 2 inputs, got 1."),
        ("input = [0, 1]", "has no key 'input'; did you mean 'inputs'?"),
    ],
)
def test_a_limit_that_makes_no_sense_is_named(limits, why):
    with pytest.raises(ValueError, match=re.escape(f"site.toml: [limits] {why}")):
        Site.parse(f"{SMALL}[limits]\n{limits}\n")


def test_classes_have_no_limits():
    classes = "[learner]\nloss = 'logistic'\n"
    guard = Site.parse(SMALL + classes).guard()
    assert [guard([0, 0], y).y for y in [-1] * 1000 + [1]][-1] == 1
    with pytest.raises(ValueError, match=r"\[limits\] label is not for a loss whose labels are -1 and \+1\."):
        Site.parse(f"{SMALL}{classes}[limits]\nlabel = [-1, 1]\n")
