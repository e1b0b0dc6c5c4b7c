"""Bits against error for your data: a sweep over quantizers and censors, and where each ends."""

from shared import ENGINE, axes, save, size

import laconic as lc


def main() -> None:
    data = lc.data.synthetic(n_rounds=size(1000, 40), n_agents=8, n_inputs=3, seed=1)  # your X and y here
    features = lc.RandomFeatures.gaussian(3, n_frequencies=size(40, 5), bandwidth=0.5)
    figure, panel = axes()
    for words, censor in (("every round", None), ("when it matters", lc.Censor(alpha=0.5, beta=0.999))):
        learners = {
            bits: lc.ODKLA(eta=1.0, channel=lc.Channel(censor, lc.Quantizer(bits=bits))) for bits in (2, 3, 4, 8)
        }
        traces = lc.sweep(learners, features, lc.Network.ring(8), data.X, data.y, collective=True, engine=ENGINE)
        spent = [trace.bits.sum() / 8e3 for trace in traces.values()]
        panel.loglog(spent, [trace.global_mse()[-1] for trace in traces.values()], "o-", label=words)
        for bits, trace in traces.items():
            panel.annotate(f" {bits}", (trace.bits.sum() / 8e3, trace.global_mse()[-1]), fontsize=8)
    panel.set(xlabel="kbit an agent (numbers: bits an entry)", ylabel="error on everybody's data")
    panel.legend(frameon=False)
    save(figure, "bits_against_error")


if __name__ == "__main__":
    main()
