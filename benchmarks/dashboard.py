"""What the live page costs: a site of N agents that all change four times a second, its server, and a real browser.

    python benchmarks/dashboard.py --agents 1000

Needs chromium and playwright. Prints frames a second, the time that the page computes in each second, and the CPU of
the server's process, which feeds the board as well.
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time

import numpy as np
from playwright.sync_api import sync_playwright

import laconic as lc
from laconic.dashboard import Board, Gate, Lane, make_app
from laconic.dashboard.serving import listen_on, server_of


def feed(board: Board, stop: threading.Event) -> None:
    """What agents would say: every one of them has had three rounds, and an eighth of them have spoken."""
    rng, n = np.random.default_rng(0), len(board.names)
    errors, sends = rng.uniform(0.2, 1.0, n), np.zeros(n, dtype=int)
    turn = 0
    while not stop.wait(0.25):
        turn += 1
        now = time.time()
        errors = 0.012 * rng.uniform(0.8, 1.3, n) + 0.97 * (errors - 0.012)
        sends += rng.uniform(size=n) < 0.125
        for k, name in enumerate(board.names):
            said = {"round": 3 * turn, "mean_square_error": float(errors[k]), "sends": int(sends[k])}
            board.status(name, said | {"bits": 332 * int(sends[k]), "censored": 3 * turn - int(sends[k])}, now)
            board.prediction(name, {"round": 3 * turn, "prediction": 0.5, "label": 0.6}, now)
        if turn % 4 == 0:
            board.look(now)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for n in options.agents:
            measure(browser, n, options.seconds)
        browser.close()


def measure(browser: object, n: int, seconds: float) -> None:
    network = lc.Network.geometric(n, radius=1.9 / n**0.5, seed=1, connect=True)
    board, stop = Board([f"a{k}" for k in range(n)]), threading.Event()
    server = server_of(make_app("field", [Lane("QC-ODKLA", board)], network, Gate()))
    with listen_on("127.0.0.1", 0) as listener:
        threads = [
            threading.Thread(target=server.run, kwargs={"sockets": [listener]}),
            threading.Thread(target=feed, args=(board, stop)),
        ]
        for thread in threads:
            thread.start()
        tab = browser.new_page(viewport={"width": 1400, "height": 950})  # type: ignore[attr-defined]
        tab.goto(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        probe = tab.context.new_cdp_session(tab)
        probe.send("Performance.enable")
        tab.wait_for_timeout(3000)
        before, cpu = look(tab, probe), time.process_time()
        tab.wait_for_timeout(1000 * seconds)
        after, used = look(tab, probe), time.process_time() - cpu
        span = after["Timestamp"] - before["Timestamp"]
        rate = {name: (after[name] - before[name]) / span for name in after}
        print(
            f"{n:5} agents, {len(network.edges):5} edges: {rate['frames']:5.1f} frames, {rate['updates']:4.1f} updates "
            f"a second; the page computes {100 * rate['ScriptDuration']:.0f}% of the time, all its tasks "
            f"{100 * rate['TaskDuration']:.0f}%; server and feed {100 * used / span:.0f}% of a core"
        )
        tab.close()
        stop.set()
        server.should_exit = True
        for thread in threads:
            thread.join()


def look(tab: object, probe: object) -> dict[str, float]:
    told = {one["name"]: one["value"] for one in probe.send("Performance.getMetrics")["metrics"]}  # type: ignore[attr-defined]
    frames, updates = tab.evaluate("[laconic.view.frames, laconic.view.updates]")  # type: ignore[attr-defined]
    wanted = ("Timestamp", "ScriptDuration", "TaskDuration")
    return {name: told[name] for name in wanted} | {"frames": frames, "updates": updates}


if __name__ == "__main__":
    main()
