"""The files of ``deploy/``: they are read, parsed, and, where that can be done here, started."""

import itertools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import yaml
from test_runner import WAIT, House

from laconic.cli import make_parser
from laconic.deploy.running.driver import Driver
from laconic.deploy.running.metrics import Tally, make_registry
from laconic.deploy.running.service import Service
from laconic.deploy.settings.site import Site

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
pytestmark = pytest.mark.skipif(not DEPLOY.is_dir(), reason="the files of deploy/ are not here")

UNIT = DEPLOY / "systemd" / "laconic@.service"
ANALYZE = shutil.which("systemd-analyze")


# A service -----------------------------------------------------------------------------------------------------------


def setting(name):
    """What a unit says of a key."""
    return [line.partition("=")[2] for line in UNIT.read_text().splitlines() if line.startswith(f"{name}=")]


class Manager:
    """The socket of a service manager, as systemd has it."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(WAIT)

    def next(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().split("\n"))


@pytest.fixture
def manager(tmp_path_factory):
    made = Manager(str(tmp_path_factory.mktemp("run") / "notify"))
    yield made
    made.socket.close()


@pytest.mark.sockets
@pytest.mark.slow
def test_the_unit_starts_an_agent_that_tells_how_it_is(tmp_path, manager):
    source = 'kind = "file"\nloop = true\nrate = 200'
    house = House(tmp_path, ("ada",), (), source=source, site='checkpoint = "disk"')
    (line,) = setting("ExecStart")
    words = shlex.split(line.replace("%i", "ada").replace("/etc/laconic/site.toml", str(house.file)))
    assert words[0] == "/opt/laconic/bin/laconic"
    environment = {**os.environ, "NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "200000"}
    command = [sys.executable, "-m", "laconic", *words[1:]]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    guard = threading.Timer(WAIT, process.kill)
    guard.start()
    try:
        assert manager.next() == {"READY": "1"}
        beats = [manager.next() for _ in range(5)]
        assert {beat["WATCHDOG"] for beat in beats} == {"1"}
        rounds = [int(re.match(r"round (\d+), mean square error", beat["STATUS"])[1]) for beat in beats]
        assert rounds == sorted(rounds) and rounds[-1] > rounds[0]
        process.send_signal(signal.SIGTERM)
        while (news := manager.next()) != {"STOPPING": "1"}:
            assert "WATCHDOG" in news
        process.communicate(timeout=WAIT)
        assert str(process.returncode) in setting("SuccessExitStatus")[0].split()
        assert (tmp_path / "disk" / "ada.checkpoint").exists()
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


def test_only_whom_the_manager_means_gives_signs_of_life(manager):
    address = manager.socket.getsockname()
    own = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "10000000", "WATCHDOG_PID": str(os.getpid())}
    assert Service.of(own).every == 5.0
    assert Service.of({**own, "WATCHDOG_PID": "1"}).every == 10.0  # as usual, for what it has to say
    assert not Service.of({"NOTIFY_SOCKET": "vsock:2:1"}).hears
    Service.of(own).notify("READY=1", "STATUS=here")
    assert manager.next() == {"READY": "1", "STATUS": "here"}
    Service(str(Path(address).with_name("gone"))).notify("READY=1")  # nobody is there, and nothing happens
    Service().notify("READY=1")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="abstract sockets are Linux's")
def test_abstract_sockets_are_found():
    made = Manager(f"\0laconic-{os.getpid()}")
    Service.of({"NOTIFY_SOCKET": f"@laconic-{os.getpid()}"}).notify("READY=1")
    assert made.next() == {"READY": "1"}
    made.socket.close()


def test_a_loop_that_hangs_is_silent(manager):
    """Signs of life come from the loop itself, when they are due, and not from a thread beside it."""

    class Pacer:
        over, deadline, wants_sample = False, 1e9, False
        agent = type("Agent", (), {"round": 7, "waiting": ()})()

        def actions(self):
            return []

    class Inbox:
        def take(self, sleep, enough):
            assert sleep <= 2.5  # soon enough for the next sign
            return []

    outlet = type("Outlet", (), {"source": None, "tally": Tally(), "do": lambda self, actions: None})()
    service = Service.of({"NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "10000000"})
    driver = Driver(Pacer(), outlet, service=service)
    times = iter((0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 1000.0, 1000.0, 1001.0, 1001.0))  # it hung from 2 to 1000
    turns = itertools.count()
    driver.drive(Inbox(), lambda: next(turns) >= 8, lambda: next(times))
    manager.socket.settimeout(0.0)
    beats = []
    while True:
        try:
            beats.append(manager.next())
        except BlockingIOError:
            break
    assert [beat["WATCHDOG"] for beat in beats] == ["1", "1"]  # at 0, and at 1000
    assert beats[0]["STATUS"].startswith("round 7")


@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd-analyze here")
def test_systemd_finds_nothing_wrong_with_the_unit_and_little_that_it_may_do(tmp_path):
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/laconic/bin/laconic", "/bin/true"))
    done = subprocess.run([ANALYZE, "verify", copy], capture_output=True, text=True, check=False, timeout=WAIT)
    assert (done.returncode, done.stderr) == (0, "")
    command = [ANALYZE, "security", "--offline=true", "--no-pager", copy]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT)
    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert float(found[1]) <= 2.0


# Containers ----------------------------------------------------------------------------------------------------------


def compose():
    return yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())


def test_compose_runs_every_agent_of_its_site_by_commands_that_exist():
    site = Site.read(DEPLOY / "docker" / "site.toml")
    services, volumes = compose()["services"], compose()["volumes"]
    parser, agents = make_parser(), {}
    for name, service in services.items():
        if service["image"] != "laconic":
            continue
        arguments = parser.parse_args(service["command"])
        assert callable(arguments.command)
        if service["command"][0] == "agent":
            agents[name] = arguments
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in volumes or (DEPLOY / "docker" / source).exists()
    assert set(agents) == {arguments.name for arguments in agents.values()} == set(site.names) and len(agents) == 5
    for name in agents:
        settings = site.agent(name)
        assert settings.reach.host == name and settings.listen.everywhere
        assert settings.metrics_host == "0.0.0.0" and site.checkpoint == Path("/var/lib/laconic")
        assert f":{settings.metrics_port}/metrics" in services[name]["healthcheck"]["test"][-1]
        assert str(settings.source.path).startswith("/var/lib/laconic/home/data/")
        assert any(volume.endswith("/var/lib/laconic") for volume in services[name]["volumes"])
    compile(services["kitchen"]["healthcheck"]["test"][-1], "healthcheck", "exec")


def test_the_site_of_the_containers_learns_what_its_data_container_writes(tmp_path):
    site = Site.read(DEPLOY / "docker" / "site.toml")
    arguments = make_parser().parse_args(compose()["services"]["data"]["command"])
    arguments.path = str(tmp_path / "home")
    assert arguments.command(arguments) == 0
    for name in site.names:
        header = (tmp_path / "home" / "data" / f"{name}.csv").read_text().split("\n")[0].split(",")
        assert header == [*site.agent(name).source.inputs, site.agent(name).source.target]


def test_the_dockerfile_copies_what_is_there_and_starts_the_command():
    text = (DEPLOY / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in lines} <= known and lines[0][0] == "FROM"
    for word, rest in lines:
        if word == "COPY" and "--from" not in rest:
            assert all((ROOT / source).exists() for source in rest.split()[:-1])
    last = dict(lines)
    assert json.loads(last["ENTRYPOINT"]) == ["laconic"] and last["USER"] == "laconic"
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    assert {"!pyproject.toml", "!README.md", "!LICENSE", "!src"} <= set(kept)


# What to watch -------------------------------------------------------------------------------------------------------


def metrics():
    """Names of all metrics that an agent serves, with their labels."""
    tally = Tally()
    tally.learned(1.0, 1.0)
    tally.alerts["diverged"] += 1
    tally.beyond["label", "clipped"] += 1
    registry = make_registry("ada", tally, lambda: {"refusals": {"version": 1}})
    return {sample.name: set(sample.labels) for family in registry.collect() for sample in family.samples}


def expressions():
    board = json.loads((DEPLOY / "monitoring" / "grafana.json").read_text())
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yml").read_text())
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return shown, [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def test_dashboard_and_rules_name_metrics_and_labels_that_there_are():
    known = metrics()
    shown, watched = expressions()
    for expression in shown + watched:
        for name, within in re.findall(r"\b((?:laconic|process)_\w+)(\{[^}]*\})?", expression):
            assert name in known, (name, expression)
            labels = set(re.findall(r"(\w+)\s*=", within)) - {"job"}
            assert labels <= known[name], (name, labels)
        assert expression.count("(") == expression.count(")")
    named = set(re.findall(r"laconic_\w+", " ".join(shown)))
    families = {re.sub(r"_(total|created|bucket|count|sum)$", "", name) for name in known if name.startswith("laconic")}
    assert families - {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in named} == {"laconic_loss"}


def test_every_rule_is_on_the_page_and_says_something():
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yml").read_text())["groups"][0]["rules"]
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert [rule["alert"] for rule in rules] == re.findall(r"^\| `(Laconic\w+)` \|", page, re.MULTILINE)
    known = set().union(*metrics().values()) | {"instance", "job"}
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= known


def test_prometheus_scrapes_the_agents_of_the_containers():
    settings = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text())
    site = Site.read(DEPLOY / "docker" / "site.toml")
    (job,) = settings["scrape_configs"]
    targets = [f"{agent.reach.host}:{agent.metrics_port}" for agent in site.agents]
    assert job["job_name"] == "laconic" and job["static_configs"][0]["targets"] == targets
    assert all((DEPLOY / "monitoring" / file).exists() for file in settings["rule_files"])


def test_the_panels_of_the_dashboard_do_not_overlap():
    panels = json.loads((DEPLOY / "monitoring" / "grafana.json").read_text())["panels"]
    taken = np.zeros((200, 24), dtype=int)
    for panel in panels:
        at = panel["gridPos"]
        taken[at["y"] : at["y"] + at["h"], at["x"] : at["x"] + at["w"]] += 1
    assert taken.max() == 1 and len({panel["id"] for panel in panels}) == len(panels)
