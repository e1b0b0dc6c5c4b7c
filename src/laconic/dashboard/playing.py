"""A simulation that can be watched: rounds pass at a pace for eyes, and what the engine records goes to a board."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.dashboard.board import Board
from laconic.engine.outcome import bad_input, message_bits
from laconic.engine.run import make_engine
from laconic.features import RandomFeatures
from laconic.learners import Learner, Speech
from laconic.network import Network
from laconic.waves import Routes

#: Seconds between two moments that are shown, and that a run without a pace of its own takes.
TICK, LENGTH = 0.1, 45.0
#: How much faster the last rounds pass than the first, where there is no pace: e to this power.
_HASTE = 4.0
_WINDOW = 100  # samples of which an agent's error is the moving mean, as of agents on devices
_TOLD, _ALL_TOLD = 12, 2000  # predictions that are told of one moment: of each agent, and of all together
_MOST_LINKS = 400  # messages of one moment that are drawn on their way


@final
class Play:
    """One learner on its way through a stream; ``advance`` runs rounds, and tells the board of them.

    Parameters
    ----------
    board : Board
        Its names are those of the agents, in order.
    learner, features, network, X, y
        As in ``laconic.simulate``.
    name : str, optional
        What it is called; the learner's name if not given.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(60, 3, 1))
    >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=5)
    >>> board = Board(["a", "b", "c"])
    >>> one = Play(board, lc.WaveRLS(), features, lc.Network.path(3), X, X[..., 0])
    >>> one.advance(30, now=1.0)
    >>> board.changes()["agents"][0][:3]
    [0, 1, 30]
    """

    def __init__(
        self,
        board: Board,
        learner: Learner,
        features: RandomFeatures,
        network: Network,
        X: Array,
        y: Array,
        name: str | None = None,
    ) -> None:
        self.board, self.learner, self.features, self.network = board, learner, features, network
        self.name, self.X, self.y = name or learner.name, X, y
        self.engine = make_engine(learner, features, network)
        self._each = message_bits(learner, features.n_features) or 0
        self.routes = Routes(network) if learner.speech is Speech.OWN and len(network.edges) else None
        n = network.n_agents
        self._errors, self._scored = np.full(n, np.nan), np.zeros(n, dtype=int)
        self._bits, self._sends = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self._wave, self.over = 0, False

    @property
    def tree(self) -> list[tuple[int, int]]:
        """The links that its waves run over, of a learner that has waves."""
        return [] if self.routes is None else self.routes.links

    def advance(self, stop: int, now: float) -> None:
        """Run all rounds before ``stop``, and tell what they brought at the time ``now``.

        A learner that diverges says so, and has no more rounds.
        """
        start = self.engine.round
        if stop <= start or self.over:
            return
        X, y = self.X[start:stop], self.y[start:stop]
        chunk = self.engine.advance(X, y)
        if chunk.n_rounds:
            self._tell(chunk.columns, y[: chunk.n_rounds], now)
        if chunk.ending == "diverged":
            self.over = True
            self.board.happened("fault", f"{self.name} has diverged in round {self.engine.round + 1:,}", now)
        elif chunk.ending:
            raise bad_input(self.engine.round + 1, chunk.agent, X[chunk.n_rounds, chunk.agent])

    def _tell(self, columns: dict[str, Array], y: Array, now: float) -> None:
        board, sent = self.board, columns["sent"]
        bits = columns["message_sizes"] if "message_sizes" in columns else sent * np.int64(self._each)
        self._bits += bits.sum(axis=0)
        self._sends += sent.sum(axis=0)
        guess, truth = columns["predictions"], y
        squares = (guess - truth) ** 2
        self._score(squares if squares.ndim == 2 else squares.mean(axis=2))
        if guess.ndim == 3:  # of classes, the one that most speaks for; where there is no label, nothing
            truth = np.where(np.isnan(truth[..., 0]), np.nan, truth.argmax(axis=2))
            guess = guess.argmax(axis=2).astype(float)
        self._waves(columns, bits, now)
        links = self._links(sent)
        done, names = self.engine.round, board.names
        first = max(0, len(y) - max(1, min(_TOLD, _ALL_TOLD // len(names))))
        for k, name in enumerate(names):
            said: dict[str, Any] = {"round": done, "mean_square_error": float(self._errors[k])}
            said |= {"bits": int(self._bits[k]), "sends": int(self._sends[k])}
            board.status(name, said | {"censored": done - int(self._sends[k]), "waves": self._wave}, now)
            for t in range(first, len(y)):
                one = {"round": done - len(y) + t + 1, "prediction": float(guess[t, k]), "label": float(truth[t, k])}
                board.prediction(name, one, now)
        board.spoken(links)
        energy = float(columns["energy"][-1])
        board.agree(float(columns["consensus_error"][-1]) / math.sqrt(energy) if energy > 0 else None)

    def _score(self, squares: Array) -> None:
        """Move the mean errors by each round's: over all samples at first, then over about the last hundred."""
        for row in squares:
            known = ~np.isnan(row)
            self._scored += known
            before = np.where(np.isnan(self._errors), row, self._errors)
            moved = before + (row - before) / np.minimum(np.maximum(self._scored, 1), _WINDOW)
            self._errors = np.where(known, moved, self._errors)

    def _links(self, sent: Array) -> list[tuple[int, int]]:
        """The ways of the messages along the tree; of those who tell everybody, the board knows who has spoken."""
        if self.routes is None:
            return []
        told = [(sender, receiver) for _, sender, to in self.routes.follow(sent) for receiver in to]
        return told[-_MOST_LINKS:]

    def _waves(self, columns: dict[str, Array], bits: Array, now: float) -> None:
        """A line for each wave that has begun."""
        wave = columns.get("info.wave")
        if wave is None:
            return
        for number, when, root, depth in wave[np.unique(wave[:, 0], return_index=True)[1]].tolist():
            if number > self._wave:
                self._wave = int(number)
                top = self.board.names[int(root)]
                words = (
                    f"wave {int(number)} began after round {int(when)}: {int(depth)} hops up to {top}, and down again"
                )
                self.board.happened("wave", words, now)


def play(
    plays: Sequence[Play],
    *,
    pace: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    rest: Callable[[float], object] = time.sleep,
    wall: Callable[[], float] = time.time,
) -> None:
    """Let learners run side by side through the same rounds, at a pace that eyes can follow.

    Parameters
    ----------
    plays : sequence of Play
        All with as many rounds.
    pace : float, optional
        Rounds a second; if not given the first ones pass slowly, one each moment, and the last quickly, all of them
        within ``LENGTH`` seconds.
        Where the engine is slower than that, it takes as long as it takes.
    clock, rest, wall : callable
        Seconds that pass, what waits for some of them, and the time of day.
    """
    n_rounds, started = len(plays[0].y), clock()
    done = 0
    while done < n_rounds and not all(one.over for one in plays):
        share = clock() - started
        due = math.ceil(pace * share) if pace is not None else at(share / LENGTH, n_rounds)
        stop = min(n_rounds, max(done + (pace is None), due))
        if stop > done:
            now = wall()
            for one in plays:
                one.advance(stop, now)
            for one in plays:
                if not one.over:
                    one.board.look(now)
            done = stop
        rest(max(0.0, TICK - (clock() - started - share)))
    for one in plays:
        if not one.over:
            one.board.happened("done", f"{one.name}: all {n_rounds:,} rounds are over", wall())
        one.over = True


def at(share: float, n_rounds: int) -> int:
    """The round that is reached after a share of the time: the first rounds pass slowly.

    >>> [at(share, 2000) for share in (0.0, 0.02, 0.5, 1.0)]
    [0, 4, 239, 2000]
    """
    if share >= 1:
        return n_rounds
    return math.ceil(n_rounds * math.expm1(_HASTE * share) / math.expm1(_HASTE))
