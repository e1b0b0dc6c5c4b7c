"""What the paper fixes for each of its six data sets (its section on experiments), and how it fared in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from laconic.learners import DOKL, ODKLA, QCODKLA, RFFDOKL, Local, WaveRLS

#: The two halves of QC-ODKLA's channel, each on its own: ODKLA that censors, ODKLA that quantizes.
CENSORED, QUANTIZED = "C-ODKLA", "Q-ODKLA"
#: The paper's four algorithms, these halves, and the baseline that never speaks.
METHODS = (RFFDOKL.name, DOKL.name, ODKLA.name, QCODKLA.name, CENSORED, QUANTIZED, Local.name)
#: What this package sets beside them, with its defaults and with its frugal ones: nothing of it is tuned.
FRUGAL = f"{WaveRLS.name} frugal"
WAVES = (WaveRLS.name, FRUGAL)
#: The ends of the scale: each agent alone, a centre with the usual ridge, and one with the best ridge in hindsight.
LOCAL_RLS, CENTRALISED_RLS, BEST_CENTRE = "Local RLS", "Centralised RLS", "Best centre"
ENDS = (LOCAL_RLS, CENTRALISED_RLS, BEST_CENTRE)
#: What ``laconic run`` does where nothing is said: features and learner are chosen by the first rows.
DEFAULT = "Default"

N_FREQUENCIES = 50
REGULARIZATION = 1e-4
BITS = 3
EDGE_PROBABILITY = 0.5


@final
@dataclass(frozen=True)
class Setting:
    """One data set as the paper runs it.

    Attributes
    ----------
    name, title : str
    n_agents : int
        N.
    bandwidth : float
        sigma of the Gaussian kernel.
    alpha, beta : float
        The censoring threshold alpha beta^t.
    paper_seconds : dict
        Running times of the paper's table (Matlab 2021, Intel at 3.6 GHz).
    paper_rows : int
        Samples that those times are for.
    """

    name: str
    title: str
    n_agents: int
    bandwidth: float
    alpha: float = 4.0
    beta: float = 0.99
    paper_seconds: dict[str, float] = field(default_factory=dict)
    paper_rows: int = 0


def _seconds(rff_dokl: float, dokl: float, odkla: float, qc_odkla: float) -> dict[str, float]:
    return {RFFDOKL.name: rff_dokl, DOKL.name: dokl, ODKLA.name: odkla, QCODKLA.name: qc_odkla}


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            "toms-hardware",
            "Tom's hardware",
            n_agents=5,
            bandwidth=0.5,
            paper_seconds=_seconds(0.3541, 2.0613, 0.4455, 0.7247),
            paper_rows=11_000,
        ),
        Setting(
            "twitter",
            "Twitter",
            n_agents=10,
            bandwidth=0.5,
            paper_seconds=_seconds(4.6148, 21.8808, 6.2351, 9.4218),
            paper_rows=98_700,
        ),
        Setting(
            "energy",
            "Energy",
            n_agents=5,
            bandwidth=0.1,
            alpha=2.0,
            beta=0.9,
            paper_seconds=_seconds(0.8584, 4.2681, 1.1600, 1.7928),
            paper_rows=18_600,
        ),
        Setting(
            "air-quality",
            "Air quality",
            n_agents=5,
            bandwidth=0.5,
            paper_seconds=_seconds(0.2760, 1.6808, 0.4717, 0.5510),
            paper_rows=7_320,
        ),
        Setting(
            "conductivity",
            "Conductivity",
            n_agents=10,
            bandwidth=1.0,
            paper_seconds=_seconds(0.7952, 4.4285, 0.9784, 1.6201),
            paper_rows=21_260,
        ),
        Setting(
            "blood",
            "Blood",
            n_agents=10,
            bandwidth=0.5,
            paper_seconds=_seconds(2.6194, 13.6249, 3.6104, 5.4290),
            paper_rows=61_000,
        ),
    )
}
