"""Bits against error for your data: quantizers, each with censors from none to strict, and where that ends.

A threshold says how far a model must have moved from what was last heard of it before an agent speaks. A coarse
quantizer leaves more unsaid, so that the next word is due sooner: with 0.5 an agent speaks 760, 521 and 501 times in
1000 rounds at 2, 4 and 8 bits an entry, and neighbours that hear less learn less. So thresholds are no scale on which
quantizers can be compared; bits are.
"""

from shared import ENGINE, axes, save, size

import laconic as lc

ALPHAS = (None, 0.1, 0.3, 0.5, 1.0)


def main() -> None:
    data = lc.data.synthetic(n_rounds=size(1000, 40), n_agents=8, n_inputs=3, seed=1)  # your X and y here
    features = lc.RandomFeatures.gaussian(3, n_frequencies=size(40, 5), bandwidth=0.5)
    figure, panel = axes()
    for bits in (2, 3, 4, 8):
        quantizer = lc.Quantizer(bits=bits)
        learners = {}
        for alpha in ALPHAS:
            censor = None if alpha is None else lc.Censor(alpha=alpha, beta=0.999)
            learners[str(alpha)] = lc.ODKLA(eta=1.0, channel=lc.Channel(censor, quantizer))
        traces = lc.sweep(learners, features, lc.Network.ring(8), data.X, data.y, collective=True, engine=ENGINE)
        spent = [trace.bits.sum() / 8e3 for trace in traces.values()]
        panel.loglog(spent, [trace.global_mse()[-1] for trace in traces.values()], "o-", label=f"{bits} bits an entry")
    panel.set(xlabel="kbit an agent (from the right: thresholds 0 to 1)", ylabel="error on everybody's data")
    panel.legend(frameon=False)
    save(figure, "bits_against_error")


if __name__ == "__main__":
    main()
