"""A city of 100,000 sensors, of which each measures the temperature at its own place, and in the end knows the map.

The weather moves on meanwhile. A sensor hears its four nearest, one anywhere in the city, and whoever hears it: some
seven. What it sends is how its model has changed, in three bits a number. Run it:

    python examples/city.py                            a picture and an animation in city/; some minutes
    python examples/city.py --agents 2000 --rounds 150
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import numpy as np

import laconic as lc

BLOCK = 10  # rounds between two looks
MEAN, SPREAD = 18.0, 6.0  # degrees: what a sensor of no experience would guess, and how far off it would be
NOISE = 0.5  # degrees
GRID = 90
#: Warm quarters: where, how wide, by how many degrees, and turns in a thousand rounds.
WARM = ((0.3, 0.65, 0.17, 9, 0.9), (0.72, 0.35, 0.14, 8, -0.7), (0.6, 0.8, 0.12, 6, 1.3))
#: One guess, tried on 2,000 sensors; nothing was searched.
LEARNER = {"rho": 0.2, "eta": 0.5, "alpha": 0.5, "beta": 0.995, "bits": 3}


def temperature(places: np.ndarray, t: float) -> np.ndarray:
    """Degrees at ``places`` (..., 2) of the unit square: warm quarters that wander, and a river that stays cool."""
    x, y = places[..., 0], places[..., 1]
    degrees = 15 + 3 * x + np.zeros_like(y)
    for across, up, width, heat, speed in WARM:
        turn = 2 * np.pi * speed * t / 1000
        centre_x, centre_y = across + 0.12 * np.sin(turn), up + 0.12 * (1 - np.cos(turn))
        degrees = degrees + heat * np.exp(-((x - centre_x) ** 2 + (y - centre_y) ** 2) / (2 * width**2))
    river = y - 0.45 - 0.12 * np.sin(2 * np.pi * x)
    return degrees - 6 * np.exp(-((river / 0.1) ** 2))


def build(n_agents: int, seed: int) -> tuple[np.ndarray, lc.Network]:
    """Where the sensors are, and who hears whom: each its four nearest and one by chance, and whoever hears it."""
    from scipy.spatial import cKDTree

    random = np.random.default_rng(seed)
    places = random.uniform(size=(n_agents, 2))
    near = cKDTree(places).query(places, k=5)[1][:, 1:]
    far = random.integers(0, n_agents, size=(n_agents, 1))
    ends = np.concatenate([near, far], axis=1)
    pairs = np.stack([np.repeat(np.arange(n_agents), ends.shape[1]), ends.ravel()], axis=1)
    return places, lc.Network.from_edges(n_agents, pairs[pairs[:, 0] != pairs[:, 1]])


def measure(places: np.ndarray, n_rounds: int, seed: int):
    """Block after block of what all sensors measure, in multiples of the spread."""
    agents = np.arange(len(places))
    bounds = [0, 1, *range(BLOCK, n_rounds, BLOCK), n_rounds]
    for first, last in itertools.pairwise(bounds):
        u = lc.uniforms(seed, agents, first, last, 2)
        noise = NOISE * np.sqrt(-2 * np.log1p(-u[..., 0])) * np.cos(2 * np.pi * u[..., 1])
        truth = np.stack([temperature(places, t) for t in range(first, last)])
        X = np.broadcast_to(places, (last - first, *places.shape))
        yield X.astype(np.float32), ((truth + noise - MEAN) / SPREAD).astype(np.float32)


def watch(n_agents: int, n_rounds: int, seed: int, tell=print) -> dict:
    """Run it; what the sensor nearest to the middle thinks of the whole city, block by block."""
    started = time.perf_counter()
    places, network = build(n_agents, seed)
    tell(f"{network}: {time.perf_counter() - started:.1f} s")
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=100, bandwidth=0.13, seed=seed)
    watched = int(np.argmin(((places - [0.28, 0.3]) ** 2).sum(axis=1)))
    axis = (np.arange(GRID) + 0.5) / GRID
    points = np.stack(np.meshgrid(axis, axis), axis=-1)
    phi = features(points.reshape(-1, 2))
    moments, maps, errors, said = [0], [np.full((GRID, GRID), MEAN)], [], []
    learner = lc.QCODKLA(**LEARNER)
    for trace in lc.stream(learner, features, network, measure(places, n_rounds, seed), dtype="float32"):
        maps.append(MEAN + SPREAD * (phi @ trace.weights[watched]).reshape(GRID, GRID))
        moments.append(trace.state.round)
        said.append((said[-1] if said else 0) + int(trace.bits[:, watched].sum()))
        errors.append(np.sqrt(((maps[-1] - temperature(points, moments[-1])) ** 2).mean()))
        if trace.state.round % 50 == 0:
            off = f"its map is off by {errors[-1]:.2f} degrees"
            tell(f"round {trace.state.round}: {off}, after {said[-1] / 8e3:.1f} kB said")
    tell(f"{time.perf_counter() - started:.0f} s in all")
    truths = [temperature(points, t) for t in moments]
    return {
        "moments": moments,
        "maps": maps,
        "truths": truths,
        "place": places[watched],
        "errors": errors,
        "said": said,
    }


def draw(found: dict, n_agents: int, folder: Path) -> None:
    """``city.png``: three moments; ``city.gif``: all of them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    moments, ink = found["moments"], "#30343b"
    look = {"origin": "lower", "extent": (0, 1, 0, 1), "cmap": "RdYlBu_r", "interpolation": "bilinear"}
    low, high = (f(np.array(found["truths"])) for f in (np.min, np.max))

    def show(panel, image, title):
        panel.set(xticks=[], yticks=[])
        panel.set_title(title, fontsize=9, color=ink, pad=4)
        for side in panel.spines.values():
            side.set_visible(False)
        return panel.imshow(image, vmin=low, vmax=high, **look)

    def mark(panel):
        panel.plot(*found["place"], "o", ms=5, mfc="white", mec=ink, mew=1.2)

    chosen = sorted({1, min(range(len(moments)), key=lambda k: abs(moments[k] - 100)), len(moments) - 1})
    figure, panels = plt.subplots(2, len(chosen), figsize=(2.6 * len(chosen) + 0.7, 5.6), layout="constrained")
    for column, k in enumerate(chosen):
        show(panels[0, column], found["truths"][k], f"round {moments[k]}")
        image = show(panels[1, column], found["maps"][k], f"off by {found['errors'][k - 1]:.1f} degrees")
        mark(panels[1, column])
    for row, words in enumerate(("the city", "what one sensor knows of it")):
        panels[row, 0].set_ylabel(words, fontsize=9, color=ink)
    bar = figure.colorbar(image, ax=panels, shrink=0.5, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("degrees", fontsize=9, color=ink)
    bar.ax.tick_params(labelsize=8, colors=ink, length=0)
    figure.savefig(folder / "city.png", dpi=130)
    plt.close(figure)

    shades = np.linspace(1, 0, 16)[:, None] * (1 - np.array(matplotlib.colors.to_rgb(ink)))  # of letters and marks
    degrees = plt.get_cmap(look["cmap"])(np.linspace(0, 1, 80))[:, :3]
    palette = Image.new("P", (1, 1))
    palette.putpalette((255 * np.concatenate([degrees, 1 - shades[::-1]])).round().astype(np.uint8).tobytes())

    figure, panels = plt.subplots(1, 2, figsize=(5.2, 2.85), layout="constrained")
    left = show(panels[0], found["truths"][0], "the city")
    right = show(panels[1], found["maps"][0], f"what one of {n_agents:,} sensors knows")
    mark(panels[1])
    label = figure.supxlabel("round 0", fontsize=9, color=ink)
    frames = []
    for k, moment in enumerate(moments):
        left.set_data(found["truths"][k])
        right.set_data(found["maps"][k])
        if k:
            said = found["said"][k - 1] / 8e3
            label.set_text(f"round {moment}: off by {found['errors'][k - 1]:.1f} degrees, {said:.1f} kB said")
        figure.set_dpi(90)
        figure.canvas.draw()
        picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
        # Without dithering: bands of one colour, which take a third of the room. And by one palette for all: of a few
        # very cold pixels a palette of their frame would make dark red ones.
        frames.append(picture.quantize(palette=palette, dither=Image.Dither.NONE))
    waits = [170] * (len(frames) - 1) + [2500]
    frames[0].save(folder / "city.gif", save_all=True, append_images=frames[1:], duration=waits, loop=0, optimize=True)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("city"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = watch(arguments.agents, arguments.rounds, arguments.seed)
    draw(found, arguments.agents, arguments.out)
    print(f"{arguments.out}/city.png and {arguments.out}/city.gif")


if __name__ == "__main__":
    main()
