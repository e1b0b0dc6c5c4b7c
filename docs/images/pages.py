"""Takes the pictures of pages: the demonstration, a notebook, and the live page of runs on the same landscape.

python docs/images/pages.py     # needs chromium and playwright
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import laconic as lc
from laconic.dashboard import Board, Gate, Lane, Play, make_app
from laconic.dashboard.serving import listen_on, server_of
from laconic.demo import landscape, render, show

HERE = Path(__file__).parent
NAMES = ("kitchen", "hall", "study", "attic", "cellar", "porch", "barn", "gate", "mill", "well")
#: For pictures: what is to be touched is left out, and labels beyond the rim of the chart are not cut off.
BARE = (
    "#knowledge { padding: 8px 14px 14px } #knowledge .controls, #knowledge .tip, #knowledge > p { display: none } "
    "#chart { padding-left: 24px }"
)


def main() -> None:
    """All of them."""
    with sync_playwright() as tool, tempfile.TemporaryDirectory() as folder:
        browser = tool.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take_demo(browser, Path(folder) / "demo.html")
        take_notebook(browser)
        quiet = lc.QCODKLA(0.5, 1.0, alpha=0.3, beta=0.9995, bits=3)
        take_dashboard(browser, "dashboard.png", "dark", "home", quiet, moments=tuple(range(5, 1001, 5)))
        title = "ten agents, one landscape"
        take_dashboard(browser, "live.png", "light", title, lc.WaveRLS(), quiet, moments=tuple(range(1, 123)))
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


def take_notebook(browser: Browser) -> None:
    """What a notebook shows of a run and of its network."""
    X, y = landscape.measure(800, seed=0)
    network = landscape.neighbourhood()
    quiet = lc.QCODKLA(0.5, 1.0, alpha=0.3, beta=0.9995, bits=3)
    trace = lc.simulate(quiet, lc.RandomFeatures.gaussian(2, 50, 0.2, seed=0), network, X, y)
    tab = browser.new_page(viewport={"width": 740, "height": 400}, device_scale_factor=1.5, color_scheme="light")
    shown = "".join(one._repr_html_() for one in (trace, network))
    tab.set_content(f"<body style='font: 14px system-ui; margin: 10px; width: fit-content'>{shown}</body>")
    tab.locator("body").screenshot(path=HERE / "gallery" / "notebook.png")
    tab.close()


def take_dashboard(
    browser: Browser, picture: str, scheme: str, title: str, *learners: lc.Learner, moments: tuple[int, ...]
) -> None:
    """A run, as its page shows it; who is there already sees the last rounds light up."""
    X, y = landscape.measure(moments[-1], seed=0)
    features = lc.RandomFeatures.gaussian(2, 50, 0.2, seed=0)
    network = landscape.neighbourhood()
    plays = [Play(Board(NAMES), learner, features, network, X, y) for learner in learners]
    lanes = [Lane(one.name, one.board, one.tree) for one in plays]
    server = server_of(make_app(title, lanes, network, Gate(), n_rounds=moments[-1] if len(lanes) > 1 else None))
    with listen_on("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        tab = browser.new_page(viewport={"width": 1440, "height": 1120}, color_scheme=scheme)
        tab.goto(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        tab.locator("#agents").select_option(NAMES[0])
        last = time.time()
        for k, stop in enumerate(moments):
            if k == len(moments) - 1:
                tab.wait_for_timeout(1500)
            for one in plays:
                one.advance(stop, last + k / 10)
                one.board.look(last + k / 10)
        tab.wait_for_timeout(350)
        tab.screenshot(path=HERE / picture)
        tab.close()
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
