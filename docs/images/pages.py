"""Takes the pictures of pages: the demonstration, and the dashboard of a run of QC-ODKLA on the same landscape.

python docs/images/pages.py     # needs chromium and playwright
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import laconic as lc
from laconic.dashboard import Board, Gate, make_app
from laconic.dashboard.serving import listen_on, server_of
from laconic.demo import landscape, render, show

HERE = Path(__file__).parent
NAMES = ("kitchen", "hall", "study", "attic", "cellar", "porch", "barn", "gate", "mill", "well")
#: For a picture of what one agent knows: what is to be touched is left out.
BARE = "#knowledge { padding: 8px 14px 14px } #knowledge .controls, #knowledge .tip, #knowledge > p { display: none }"


def main() -> None:
    """All of them."""
    with sync_playwright() as tool, tempfile.TemporaryDirectory() as folder:
        browser = tool.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take_demo(browser, Path(folder) / "demo.html")
        take_dashboard(browser)
        browser.close()


def take_demo(browser: Browser, page: Path) -> None:
    """What one agent knows, and what it cost."""
    page.write_text(render(show()))
    tab = browser.new_page(viewport={"width": 1100, "height": 900}, device_scale_factor=1, color_scheme="light")
    tab.goto(page.as_uri())
    tab.add_style_tag(content=BARE)
    tab.evaluate("dispatchEvent(new Event('resize'))")
    tab.locator("#knowledge").screenshot(path=HERE / "first-minute.png")
    tab.locator("#chart").screenshot(path=HERE / "first-minute-cost.png")
    tab.close()


def take_dashboard(browser: Browser) -> None:
    """The end of a run, as agents would have told it."""
    X, y = landscape.measure(1000, seed=0)
    features = lc.RandomFeatures.gaussian(2, 50, 0.2, seed=0)
    network = landscape.neighbourhood()
    trace = lc.simulate(lc.QCODKLA(0.5, 1.0, alpha=0.3, beta=0.9995, bits=3), features, network, X, y)
    board = Board(NAMES)
    server = server_of(make_app("home", board, network, Gate()))
    with listen_on("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        started = time.time() - len(y) / 10
        for t in range(len(y)):
            tell(board, trace, t, started + t / 10)
            if t == len(y) - 2:  # who is there already sees the last round light up
                tab = browser.new_page(viewport={"width": 1300, "height": 960}, color_scheme="dark")
                tab.goto(f"http://127.0.0.1:{listener.getsockname()[1]}/")
                tab.locator("#network").press("ArrowRight")
                tab.wait_for_timeout(1500)
        tab.wait_for_timeout(500)
        tab.screenshot(path=HERE / "dashboard.png", full_page=True)
        tab.close()
        server.should_exit = True
        thread.join()


def tell(board: Board, trace: lc.Trace, t: int, now: float) -> None:
    """What all agents say of a round; errors over the last hundred samples, as agents count them."""
    errors = trace.squared_errors()[max(0, t - 99) : t + 1].mean(axis=0)
    sends, bits = trace.sent[: t + 1].sum(axis=0), trace.bits[: t + 1].sum(axis=0)
    for k, name in enumerate(board.names):
        said = {"round": t + 1, "mean_square_error": float(errors[k]), "bits": int(bits[k]), "sends": int(sends[k])}
        board.status(name, said | {"censored": t + 1 - int(sends[k])}, now)
        guess, label = float(trace.predictions[t, k]), float(np.asarray(trace.labels)[t, k])
        board.prediction(name, {"round": t + 1, "prediction": guess, "label": label}, now)
    if t % 10 == 0:
        board.look(now)


if __name__ == "__main__":
    main()
