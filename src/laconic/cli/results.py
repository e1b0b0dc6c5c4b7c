"""What ``laconic run`` found, as a screen of text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Budget
from laconic.cli.inputs import Prepared
from laconic.cli.learners import describe_learner
from laconic.cli.words import count, dealt, facts, number, paragraph, plural, table
from laconic.experiments.streams import Stream
from laconic.learners import Learner, Local, Speech
from laconic.trace import Trace

_DENSE_BITS = 32
_LATE = 10  # the last tenth shows what the models are worth by now


@final
@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A run, its twin that never speaks, and the data they saw."""

    source: Prepared
    learner: Learner
    stream: Stream
    trace: Trace
    twin: Learner
    alone: Trace

    @property
    def speaks(self) -> bool:
        """Whether there is anything to compare with silence."""
        return self.learner.speech is not Speech.NEVER

    @property
    def twin_name(self) -> str:
        """What the twin that never speaks is called."""
        return f"{self.learner.name}, alone" if self.learner.speech is Speech.OWN else self.twin.name

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """The result as plain numbers; None where there is none."""
        trace, labels = self.trace, self.trace.labels[~np.isnan(self.trace.labels)]
        sent, everything = int(trace.bits.sum()), self._everything()
        if self.source.binary:
            share = float(np.mean(labels > 0))
            constant = {"error_rate_of_the_larger_class": min(share, 1 - share)}
        else:
            constant = {"mse_of_the_mean": float(np.var(labels))}
        return {
            **_scores(trace, self.source.binary),
            "local": None if self.alone.diverged else _scores(self.alone, self.source.binary),
            "local_step": self.twin.step_size(1) if isinstance(self.twin, Local) else None,
            **constant,
            "messages": int(trace.sent.sum()),
            "bits": sent,
            "bits_of_sending_everything": everything,
            "saving": everything / sent if sent else None,
            "saturated": float(trace.saturated.mean()),
            "seconds": trace.seconds,
            "engine": trace.about["engine"],
        }

    def _silence(self) -> str:
        """The reason why nothing was sent, in words."""
        channel = self.learner.channel
        if not self.speaks:
            return "Nothing was sent: Local never speaks."
        if not len(self.stream.network.edges):
            return "Nothing was sent: there is nobody to hear it."
        if channel is None:
            return f"Nothing was sent: the first wave starts after {plural(self.trace.n_rounds, 'round')} or more."
        censor = channel.censor
        assert censor is not None  # an uncensored channel always sends
        if isinstance(censor, Budget):
            return "Nothing was sent: no model moved, or the budget is less than one message."
        last = censor.threshold(self.trace.n_rounds)
        return (
            f"Nothing was sent: no model moved by {last:.3g}, the threshold of the last round. Try a smaller --alpha."
        )

    def _everything(self) -> int:
        """Bits if every agent with a neighbour sent its whole model in every round."""
        talkers = int((self.stream.network.degrees > 0).sum())
        return self.trace.n_rounds * talkers * _DENSE_BITS * self.stream.features.n_features

    def __str__(self) -> str:
        parts = (self._header(), self._table(), "\n".join(paragraph(line) for line in self._conclusions()))
        return "\n\n".join(parts)

    def _header(self) -> str:
        source, stream, dataset = self.source, self.stream, self.source.dataset
        target = f"target {dataset.target}"
        if dataset.classes:
            target += f" ({dataset.classes[0]} or {dataset.classes[1]})"
        network = source.network if len(source.network) < 30 else Path(source.network).name
        return facts(
            [
                (
                    "data",
                    f"{dataset.name}: {plural(len(dataset), 'row')}, {plural(dataset.n_inputs, 'input')}, {target}",
                ),
                ("learner", f"{self.learner.name}: {describe_learner(self.learner)}"),
                (
                    "network",
                    f"{plural(stream.network.n_agents, 'agent')}, {plural(len(stream.network.edges), 'link')} "
                    f"({network}); {plural(len(stream.y), 'round')}, rows {dealt(source.partition)}",
                ),
                (
                    "features",
                    f"{plural(source.n_frequencies, 'frequency').replace('ys', 'ies')}, {source.kernel}, bandwidth "
                    f"{source.setting.bandwidth:g} ({source.bandwidth_from}), scaled by {_scaled(source.scale)}",
                ),
            ]
        )

    def _table(self) -> str:
        numbers = self.numbers
        score, everywhere = ("error rate", "global loss") if self.source.binary else ("mse", "global mse")
        rows = [["", score, "last tenth", everywhere, "messages", "bits"], self._line(self.learner.name, self.trace)]
        if self.speaks:
            step = f", step {self.twin.step_size(1):.3g}" if isinstance(self.twin, Local) else ""
            rows.append(self._line(f"{self.twin_name}{step}", self.alone))
            rows += [] if self.alone.diverged else [self._changes()]
        if self.source.binary:
            rows.append(["the larger class", number(numbers["error_rate_of_the_larger_class"]), "", "", "", ""])
        else:
            rows.append(["the mean of all labels", number(numbers["mse_of_the_mean"]), "", "", "", ""])
        return table(rows, "<>>>>>", best=1)

    def _line(self, name: str, trace: Trace) -> list[str]:
        if trace.diverged:
            return [name, "diverged", f"in round {trace.n_rounds + 1}", "", "", ""]
        scores = _scores(trace, self.source.binary)
        cells = [number(value) for value in scores.values()][:3]
        return [name, *cells, count(trace.sent.sum()), count(trace.bits.sum())]

    def _changes(self) -> list[str]:
        """What talking bought: each score against that of the twin."""
        own, other = (_scores(trace, self.source.binary).values() for trace in (self.trace, self.alone))
        changes = [f"{a / b - 1:+.1%}" if b > 0 else "" for a, b in zip(own, other, strict=True)]
        return ["talking changed", *changes, "", ""]

    def _conclusions(self) -> list[str]:
        numbers, trace = self.numbers, self.trace
        lines = []
        if self.source.unit is not None:
            typical = np.sqrt(numbers["mse"]) * self.source.unit
            lines.append(f"Its root mean squared error is {number(typical)} in units of {self.source.dataset.target}.")
        if self.speaks:
            steps = f", with steps as long as {self.learner.name}'s" if isinstance(self.twin, Local) else ""
            lines.append(
                f"{self.twin_name}: every agent on its own{steps}. The global score is that of every model on "
                "everybody's data."
            )
        if numbers["bits"]:
            whole = f"{count(numbers['bits_of_sending_everything'])} bits"
            if self.learner.speech is Speech.OWN:
                lines += self._waves(whole)
            elif numbers["saving"] > 1:
                share = numbers["messages"] / trace.sent.size
                lines.append(
                    f"It sent {numbers['saving']:.1f} times fewer bits than sending every model whole ({whole}): "
                    f"{share:.0%} of the messages, each {_size(trace)} instead of "
                    f"{count(_DENSE_BITS * self.stream.features.n_features)} bits."
                )
            else:
                lines.append("It sent every model whole in every round; --learner qc-odkla sends less.")
        else:
            lines.append(self._silence())
        if numbers["saturated"] > 0.01:
            lines.append(f"{numbers['saturated']:.0%} of all entries lay outside the quantizer's range: widen --range.")
        each = numbers["seconds"] / trace.sent.size
        lines.append(f"It took {numbers['seconds']:.3g} seconds, {1e6 * each:.2g} microseconds a sample.")
        return lines

    def _waves(self, whole: str) -> list[str]:
        """What a learner with messages of its own has sent, and what it needs for that."""
        numbers, trace, waves = self.numbers, self.trace, self.trace.waves
        each = numbers["bits"] / numbers["messages"]
        a_head = numbers["messages"] / trace.n_agents
        return [
            f"It sent {numbers['saving']:.3g} times fewer bits than sending every model whole in every round "
            f"({whole}): "
            f"{plural(len(waves), 'wave')} over a tree of depth {int(waves['depth'].max(initial=0))}, "
            f"{a_head:.3g} messages an agent, {count(each)} bits each on the average.",
            f"For that it needs rounds that all agents count alike, and O(D^2) work and memory at each of them: D is "
            f"{self.stream.features.n_features} here.",
        ]


def _scores(trace: Trace, binary: bool) -> dict[str, float]:
    """The score so far, the score of the last tenth, and that of every model on everybody's data."""
    late = max(1, trace.n_rounds // _LATE)
    if not binary:
        return {
            "mse": float(trace.mse()[-1]),
            "mse_of_the_last_tenth": float(trace.windowed_mse(late)[-1]),
            "global_mse": float(trace.global_mse()[-1]),
        }
    assert trace.collective_loss is not None  # every run here is collective
    return {
        "error_rate": float(trace.error_rate()[-1]),
        "error_rate_of_the_last_tenth": float(np.nanmean(_wrong(trace)[-late:])),
        "global_loss": float(np.nanmean(trace.collective_loss)),
    }


def _wrong(trace: Trace) -> Array:
    return np.where(np.isnan(trace.labels), np.nan, (trace.predictions > 0) != (trace.labels > 0))


def _size(trace: Trace) -> str:
    return count(trace.about["message_bits"])


def _scaled(scale: str) -> str:
    return {"column": "column", "matrix": "the whole matrix", "running": "what was seen so far"}[scale]
