"""``site.toml``: everything that the agents of a site must agree on, and where each of them lives.

    site = Site.read("site.toml")
    agent = lc.Agent("kitchen", site.neighbours("kitchen"), site.features(), site.learner(), n_agents=site.n_agents)

All agents read the same file, so that they draw the same frequencies and know the same graph. Every mistake in it is
one sentence that names the table and the key.
"""

from __future__ import annotations

import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from laconic.defaults.labels import Labels
from laconic.deploy.settings.endpoints import Endpoint, read_endpoint
from laconic.deploy.settings.learning import Learning, Model, read_learning, read_model
from laconic.deploy.settings.limits import Limits, read_limits
from laconic.deploy.settings.sections import Section, check_name, near
from laconic.deploy.settings.sources import SourceSettings, read_source
from laconic.deploy.sources.base import Source
from laconic.deploy.sources.reading import Reader
from laconic.features import RandomFeatures
from laconic.guard import Guard
from laconic.learners import Learner
from laconic.network import Network

CLOCKS = ("lockstep", "slotted")
_TABLES = ("site", "model", "learner", "channel", "limits", "network", "agents", "source", "security")
_EPHEMERAL = 32_768  # from here on Linux takes ports for outgoing connections: one may be taken when an agent restarts
_MOST_PORT = 65_535


@final
@dataclass(frozen=True)
class AgentSettings:
    """``[agents.NAME]``.

    Attributes
    ----------
    name : str
    listen : Endpoint
        Where the agent listens.
    reach : Endpoint
        Where its neighbours find it: ``listen``, unless that is all addresses of a host or behind a gateway.
    source : SourceSettings
    metrics_port : int, optional
    metrics_host : str
        Address that metrics are served on: this machine alone, unless told otherwise.
    certificate, key : Path, optional
        None if there is no ``[security]``.
    """

    name: str
    listen: Endpoint
    reach: Endpoint
    source: SourceSettings
    metrics_port: int | None
    certificate: Path | None
    key: Path | None
    metrics_host: str = "127.0.0.1"


@final
@dataclass(frozen=True)
class SecuritySettings:
    """``[security]``: mutual TLS.

    Attributes
    ----------
    ca : Path
        Certificate of the authority that all agents trust.
    certificates : Path
        Folder of the agents' and guests' own.
    guests : tuple of str
        Those who are no agents and have certificates, to send samples to agents and to read their predictions.
    """

    ca: Path
    certificates: Path
    guests: tuple[str, ...] = ()

    @property
    def ca_key(self) -> Path:
        """The authority's private key, beside its certificate: needed to make certificates, never to run."""
        return self.ca.with_name(f"{self.ca.stem}-key{self.ca.suffix}")

    @property
    def revoked(self) -> Path:
        """List of certificates that are no longer good, if there is one; agents read it again when it changes."""
        return self.certificates / "revoked.txt"


@final
@dataclass(frozen=True)
class Site:
    """All agents of a site and what they agree on. Read one with ``Site.read``.

    Attributes
    ----------
    file : Path
        Where it came from.
    name : str
        First part of every zenoh key.
    clock : "lockstep" or "slotted"
    slot : float
        Seconds of a round in slotted time.
    patience : float
        Seconds until a neighbour that vanished is given up.
    lease : float
        Seconds of silence after which a neighbour counts as vanished; links give four signs of life in that time.
    checkpoint : Path, optional
        Folder for the agents' checkpoints; None if they have no disk.
    checkpoint_every : int
        Rounds between two checkpoints.
    model : Model
    learning : Learning
    agents : tuple of AgentSettings
        In the order of the file, which is the order of the network.
    edges : tuple of pairs of names
    security : SecuritySettings, optional
    limits : Limits
        Of samples.
    publish_inputs : bool
        Whether published predictions carry the inputs that they were made from.

    Examples
    --------
    >>> site = Site.parse('''
    ... [model]
    ... n_inputs = 2
    ... [network]
    ... edges = [["kitchen", "hall"]]
    ... [agents.kitchen]
    ... listen = "tcp/127.0.0.1:7447"
    ... [agents.hall]
    ... listen = "tcp/127.0.0.1:7448"
    ... ''')
    >>> site.neighbours("kitchen"), site.endpoint("hall"), site.learner().name
    (('hall',), 'tcp/127.0.0.1:7448', 'QC-ODKLA')
    """

    file: Path
    name: str
    clock: str
    slot: float
    patience: float
    lease: float
    checkpoint: Path | None
    checkpoint_every: int
    model: Model
    learning: Learning
    agents: tuple[AgentSettings, ...]
    edges: tuple[tuple[str, str], ...]
    security: SecuritySettings | None
    limits: Limits
    publish_inputs: bool = False

    @classmethod
    def read(cls, path: str | Path) -> Site:
        """The site that a file describes."""
        path = Path(path)
        if (path / "site.toml").is_file():
            raise ValueError(f"{path} is a folder: name the file in it, {path / 'site.toml'}.")
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be text in UTF-8: {error}.") from None
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: str | Path = "site.toml") -> Site:
        """The site that ``text`` describes, as if it stood in the file ``path``."""
        path = Path(path)
        try:
            values = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ValueError(f"{path} is not valid TOML: {error}.") from None
        return _read_site(path, values)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the agents, in the network's order."""
        return tuple(agent.name for agent in self.agents)

    @property
    def n_agents(self) -> int:
        """Number N of agents."""
        return len(self.agents)

    def agent(self, name: str) -> AgentSettings:
        """The settings of one agent."""
        for agent in self.agents:
            if agent.name == name:
                return agent
        raise ValueError(f"{self.file} has no agent {name!r}{near(name, self.names)}")

    def features(self) -> RandomFeatures:
        """The feature map that all agents share."""
        return self.model.features()

    def learner(self) -> Learner:
        """The learner that all agents run."""
        return self.learning.learner()

    @property
    def labels(self) -> Labels | None:
        """How classes are learned, and the way back; None where labels are numbers."""
        return self.model.labels

    def network(self) -> Network:
        """The network of the site's agents."""
        index = {name: k for k, name in enumerate(self.names)}
        return Network(self.n_agents, [(index[a], index[b]) for a, b in self.edges], self.names)

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Those that an agent hears, in the network's order."""
        self.agent(name)
        beside = {b if a == name else a for a, b in self.edges if name in (a, b)}
        return tuple(other for other in self.names if other in beside)

    def endpoint(self, name: str) -> Endpoint:
        """Where the neighbours of an agent find it."""
        return self.agent(name).reach

    def source(self, name: str, session: Any = None) -> Source:
        """An agent's source of samples, not yet started; one that listens on zenoh needs the agent's session."""
        settings = self.agent(name).source
        binary, classes = self.learner().loss.binary, self.model.classes
        reader = Reader(self.model.n_inputs, settings.inputs, settings.target, binary, classes)
        return settings.open(reader, name, session)

    def guard(self) -> Guard:
        """What holds an agent's samples to the limits, and knows nothing yet of those that are to be learned."""
        return self.limits.guard(self.model.n_inputs, self.labels is not None or self.learner().loss.binary)

    def limits_path(self, name: str) -> Path | None:
        """The file that an agent keeps its learned limits in, beside its checkpoint, if any."""
        path = self.checkpoint_path(name)
        return None if path is None else path.with_suffix(".limits")

    def checkpoint_path(self, name: str) -> Path | None:
        """The file that an agent checkpoints to, if any."""
        self.agent(name)
        return None if self.checkpoint is None else self.checkpoint / f"{name}.checkpoint"


def _read_site(file: Path, values: dict[str, Any]) -> Site:
    if "run" in values and "agents" not in values:
        raise ValueError(f"{file} is a run and not a site: `laconic run {file}` starts it.")
    unknown = next((key for key in values if key not in _TABLES), None)
    if unknown is not None:
        hint = near(unknown, _TABLES)
        hint = f"; its tables are {', '.join(_TABLES)}." if hint == "." else hint
        raise ValueError(f"{file} has no table [{unknown}]{hint}")
    tables = {key: Section(file, f"[{key}]", values.get(key, {})) for key in _TABLES}
    site = tables["site"]
    name = site.identifier("name", "site")
    clock = site.choice("clock", CLOCKS, "lockstep")
    slot, patience = site.number("slot", 1.0, above=0), site.number("patience", 10.0, above=0)
    lease = site.number("lease", 1.0, least=0.1)
    checkpoint = site.path("checkpoint", None)
    checkpoint_every = site.integer("checkpoint_every", 100, least=1)
    publish_inputs = site.flag("publish_inputs")
    site.end()
    model = read_model(tables["model"])
    learning = read_learning(tables["learner"], tables["channel"], model.labels)
    limits = read_limits(tables["limits"], model.n_inputs, learning.learner().loss.binary, bool(model.classes))
    security = _read_security(tables["security"]) if "security" in values else None
    agents = _read_agents(tables["agents"], tables["source"], model, name, security)
    edges = _read_edges(tables["network"], [agent.name for agent in agents])
    times = (clock, slot, patience, lease, checkpoint, checkpoint_every)
    read = Site(file, name, *times, model, learning, agents, edges, security, limits, publish_inputs)
    with tables["network"].blame():
        read.network()
    return read


def _read_security(table: Section) -> SecuritySettings:
    folder = table.path("certificates", table.file.parent / "certs")
    security = SecuritySettings(table.path("ca", folder / "ca.pem"), folder, table.texts("guests", ()))
    table.end()
    with table.blame():
        for guest in security.guests:
            check_name("guests: a name", guest)
    return security


def _read_edges(table: Section, names: list[str]) -> tuple[tuple[str, str], ...]:
    listed = table.take("edges", [])
    table.end()
    expected = 'edges must be pairs of names, as in [["kitchen", "hall"]]'
    if not isinstance(listed, list):
        raise table.wrong(f"{expected}; got {listed!r}.")
    for edge in listed:
        if not (isinstance(edge, list) and len(edge) == 2 and all(isinstance(end, str) for end in edge)):
            raise table.wrong(f"{expected}; got {edge!r}.")
        for end in edge:
            if end not in names:
                raise table.wrong(f"edges join {end!r}, which is no agent{near(end, names)}")
        if edge[0] == edge[1]:
            raise table.wrong(f"edges must join two different agents, got {edge!r}.")
    return tuple((a, b) for a, b in listed)


def _read_agents(
    table: Section, shared: Section, model: Model, site: str, security: SecuritySettings | None
) -> tuple[AgentSettings, ...]:
    if not table.values:
        raise ValueError(f"{table.file} must have a table [agents.NAME] for each agent.")
    agents = []
    for name, values in table.values.items():
        with table.blame():
            check_name("a name", name)
        agents.append(_read_agent(Section(table.file, f"[agents.{name}]", values), name, shared, model, site, security))
    _check_apart(table, agents, () if security is None else security.guests)
    high = [agent.name for agent in agents if agent.listen.port >= _EPHEMERAL]
    if high:
        warnings.warn(
            f"{table.file}: {', '.join(high)} listen on ports from {_EPHEMERAL} on, which the system also uses for "
            "outgoing connections: a port may be taken when its agent restarts.",
            stacklevel=2,
        )
    return tuple(agents)


def _read_agent(
    table: Section, name: str, shared: Section, model: Model, site: str, security: SecuritySettings | None
) -> AgentSettings:
    protocol = "tcp" if security is None else "tls"
    listen = read_endpoint(table, "listen", protocol)
    reach = read_endpoint(table, "reach", protocol) if "reach" in table else listen
    if reach.everywhere:
        raise table.wrong(f"reach must say where neighbours find this agent, since it listens on {reach.host}.")
    port = table.integer("metrics_port", None, least=1, most=_MOST_PORT)
    host = table.text("metrics_host", "127.0.0.1")
    if security is None:
        certificate = key = None
    else:
        certificate = table.path("certificate", security.certificates / f"{name}.crt")
        key = table.path("key", security.certificates / f"{name}.key")
    own = table.table("source", f"[agents.{name}] source")
    # With a kind an agent's own source stands alone; without, it only changes what all sources share.
    values = own.values if "kind" in own else {**shared.values, **own.values}
    where = own.name if own.values else shared.name if shared.values else own.name
    source = read_source(Section(table.file, where, values), model.n_inputs, site, name)
    table.end(elsewhere=() if security else ("certificate", "key"))
    return AgentSettings(name, listen, reach, source, port, certificate, key, host)


def _check_apart(table: Section, agents: list[AgentSettings], guests: tuple[str, ...]) -> None:
    """No two share a name (whatever the case: names are names of files, too) or a place to listen."""
    names = [agent.name.lower() for agent in agents]
    for k, guest in enumerate(guests):
        if guest.lower() in (*names, *(other.lower() for other in guests[:k])):
            raise ValueError(f"{table.file}: [security] guests must not have the name of another, got {guest!r}.")
    seen: dict[object, str] = {}
    for agent in agents:
        places: list[tuple[object, str]] = [
            (agent.name.lower(), "have the same name but for the case of letters"),
            ((agent.reach.host, agent.reach.port), f"share the address {agent.reach.host}:{agent.reach.port}"),
        ]
        if agent.metrics_port is not None:
            address = f"{agent.reach.host}:{agent.metrics_port}"
            places.append(((agent.reach.host, agent.metrics_port), f"share the address {address}"))
        for place, what in places:
            if place in seen:
                both = f"[agents.{seen[place]}] and [agents.{agent.name}]"
                raise ValueError(
                    f"{table.file}: {both} {what}."
                    if seen[place] != agent.name
                    else f"{table.file}: [agents.{agent.name}] metrics_port must differ from the port it listens on."
                )
            seen[place] = agent.name
