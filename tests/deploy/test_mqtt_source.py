"""Samples by an MQTT topic, from a real broker that comes late, goes, comes back, and asks for a password."""

import gc
import os
import subprocess

import cbor2
import pytest
from conftest import MOSQUITTO
from ports import free_port
from source_kit import GOOD, LONG, Gathered, await_event, closes, logged_by_sources, values

from laconic.deploy.operations.certificates import make_certificates
from laconic.deploy.settings.site import Site
from laconic.deploy.sources import Reader
from laconic.deploy.sources.mqtt import MqttSource

pytestmark = [pytest.mark.broker, pytest.mark.sockets]


@pytest.fixture
def logged():
    with logged_by_sources() as records:
        yield records


class Broker:
    """A mosquitto of our own on loopback, and somebody who publishes there."""

    def __init__(self, folder, *lines):
        self.port, self.process = free_port(), None
        self.settings = folder / "mosquitto.conf"
        user = ["user root"] if os.geteuid() == 0 else []  # else it steps down, and cannot read our files
        self.settings.write_text("\n".join([*user, f"listener {self.port} 127.0.0.1", *lines]) + "\n")

    def start(self):
        self.process = subprocess.Popen([MOSQUITTO, "-c", self.settings], stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            if " running" in line:
                return
        pytest.fail(f"mosquitto did not start: {said}")

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate(timeout=LONG)
            self.process = None

    def publish(self, *messages, **options):
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for topic, payload in messages:
            client.publish(topic, payload, qos=1, **options).wait_for_publish(LONG)
        client.disconnect()
        client.loop_stop()


@pytest.fixture
def broker(tmp_path):
    made = Broker(tmp_path, "allow_anonymous true")
    yield made
    made.stop()


def test_samples_come_by_an_mqtt_topic(broker, logged):
    broker.start()
    broker.publish(("rooms/kitchen", b"[0, 0, -1]"), retain=True)  # of yesterday
    text = f"""
    [model]
    n_inputs = 2
    [source]
    kind = "mqtt"
    host = "127.0.0.1"
    port = {broker.port}
    topic = "rooms/{{name}}"
    [agents.kitchen]
    listen = "tcp/127.0.0.1:7447"
    """
    source = Site.parse(text).source("kitchen")
    gathered = Gathered(source)
    assert await_event(logged, "broker connected").topic == "rooms/kitchen"
    messages = [b'{"x": [1, 2], "y": 3}', b"", b"\x00", b'{"x": [1]}', cbor2.dumps([4, 5, 6])]
    broker.publish(("rooms/hall", b"[9, 9, 9]"), *(("rooms/kitchen", message) for message in messages))
    assert values(gathered.take(2)) == GOOD
    assert source.counts == {"samples": 2, "unlabelled": 0, "dropped": 3, "lost": 0}
    closes(source)
    assert source.ended


@pytest.mark.slow
def test_a_broker_may_come_late_and_go_and_come_back(broker, logged):
    source = MqttSource(Reader(2), "kitchen", host="127.0.0.1", port=broker.port, topic="rooms/+")
    gathered = Gathered(source)
    lost = await_event(logged, "broker not connected")
    assert (lost.why, lost.agent, lost.levelname) == ("it does not answer", "kitchen", "WARNING")
    broker.start()
    await_event(logged, "broker connected")
    broker.publish(("rooms/a", b"[1, 2, 3]"))
    assert values(gathered.take(1)) == GOOD[:1]
    broker.stop()
    assert "it is gone" in await_event(logged, "broker not connected").why
    broker.start()
    await_event(logged, "broker connected")
    broker.publish(("rooms/b", b"[4, 5, 6]"))
    assert values(gathered.take(1)) == GOOD[1:]
    closes(source)


# paho leaves the socket of a failed handshake to the garbage collector, which closes it and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broker_with_tls_and_passwords(tmp_path, logged, monkeypatch):
    text = '[model]\nn_inputs = 2\n[security]\n[agents.broker]\nlisten = "tls/127.0.0.1:7447"\n'
    site = Site.parse(text, tmp_path / "site.toml")
    make_certificates(site)
    stranger = Site.parse(text + "\n", tmp_path / "stranger" / "site.toml")
    make_certificates(stranger)
    ours = site.agent("broker")
    subprocess.run(["mosquitto_passwd", "-b", "-c", tmp_path / "users", "kitchen", "secret"], check=True)
    broker = Broker(
        tmp_path,
        "allow_anonymous false",
        f"password_file {tmp_path / 'users'}",
        f"cafile {site.security.ca}",
        f"certfile {ours.certificate}",
        f"keyfile {ours.key}",
    )
    broker.start()
    options = {"host": "127.0.0.1", "port": broker.port, "topic": "t", "user": "kitchen", "password_env": "BROKER_WORD"}

    def opened(ca, password):
        monkeypatch.setenv("BROKER_WORD", password)
        return Gathered(MqttSource(Reader(2), "kitchen", ca=ca, **options))

    try:
        good = opened(site.security.ca, "secret")
        await_event(logged, "broker connected")
        good.source._client.publish("t", b"[1, 2, 3]", qos=1)
        assert values(good.take(1)) == GOOD[:1]
        good.source.close()
        wrong = opened(site.security.ca, "guess")
        assert "it refuses" in await_event(logged, "broker not connected").why
        wrong.source.close()
        elsewhere = opened(stranger.security.ca, "secret")  # to whom we do not tell our password
        assert await_event(logged, "broker not connected").why == "it does not answer"
        elsewhere.source.close()
    finally:
        broker.stop()
        gc.collect()

    monkeypatch.delenv("BROKER_WORD")
    with pytest.raises(ValueError, match="the environment variable BROKER_WORD is not set"):
        MqttSource(Reader(2), "kitchen", **options).start(lambda: None)
    (tmp_path / "empty.pem").write_text("no certificate")
    monkeypatch.setenv("BROKER_WORD", "secret")
    with pytest.raises(ValueError, match=r"empty.pem holds no certificate that can be read"):
        MqttSource(Reader(2), "kitchen", ca=tmp_path / "empty.pem", **options).start(lambda: None)
    with pytest.raises(FileNotFoundError):
        MqttSource(Reader(2), "kitchen", ca=tmp_path / "absent.pem", **options).start(lambda: None)
