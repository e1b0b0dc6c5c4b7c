"""The facts about the twelve data sets, in words and numbers."""

from __future__ import annotations

from laconic.data.entry import Entry

_UCI = "https://archive.ics.uci.edu/static/public"

_KAWALA = (
    "F. Kawala, A. Douzal-Chouakria, E. Gaussier, E. Diemert. Prédictions d'activité dans les réseaux sociaux en "
    "ligne. 4ième conférence sur les modèles et l'analyse des réseaux (MARAMI), 2013."
)

ENTRIES = (
    Entry(
        name="air-quality",
        title="Air quality",
        description=(
            "Hourly answers of a gas multi-sensor device in an Italian city, 2004-2005; the label is the reference "
            "concentration of carbon monoxide in mg/m3. Rows: the first 9000 whose label is present; inputs: hour/24 "
            "and the 12 other columns, in which -200 still stands for a missing value."
        ),
        citation=(
            "S. De Vito, E. Massera, M. Piga, L. Martinotto, G. Di Francia. On field calibration of an electronic nose "
            "for benzene estimation in an urban pollution monitoring scenario. Sensors and Actuators B: Chemical "
            "129(2):750-757, 2008. doi:10.24432/C59K5F"
        ),
        target="CO(GT)",
        files=("AirQualityUCI.csv",),
        url=f"{_UCI}/360/air+quality.zip",
        sha256="13277ae5d8581e80b7be09d47c7d3d06fe9b8e957078f2cf6e859f955e62f996",
        size="1.5 MB",
        n_columns=15,
        target_range=(0.0, 50.0),
        paper_rows=7320,
        protocols=True,
    ),
    Entry(
        name="energy",
        title="Appliances energy",
        description=(
            "Temperature and humidity in the rooms of a low-energy house and the weather outside, every ten minutes "
            "for 4.5 months; the label is the energy use of the appliances in Wh. Rows: those with at most 300 Wh. The "
            "paper counts 28 inputs, all other columns: the date enters as the time of day, a fraction of 24 hours. "
            "The prepared set has 25, without date, rv1 and rv2 (the last two are random noise)."
        ),
        citation=(
            "L. M. Candanedo, V. Feldheim, D. Deramaix. Data driven prediction models of energy use of appliances in a "
            "low-energy house. Energy and Buildings 140:81-97, 2017. doi:10.24432/C5VC8G"
        ),
        target="Appliances",
        files=("energydata_complete.csv",),
        url=f"{_UCI}/374/appliances+energy+prediction.zip",
        sha256="2820bf712ad0275cb18b85a05250926100d8e65ebb9f4d2d016ca91ea152a25d",
        size="12 MB",
        n_columns=29,
        target_range=(0.0, 300.0),
        paper_rows=18600,
        protocols=True,
    ),
    Entry(
        name="toms-hardware",
        title="Tom's hardware",
        description=(
            "Eight weeks of activity around a topic in a forum on computer hardware; the label is the mean number of "
            "displays of the topic in the weeks after. The paper takes the first 11000 rows; the prepared set those of "
            "the first 10000 whose label is at most 27611 (9725 rows)."
        ),
        citation=_KAWALA,
        target="mean ND",
        files=("TomsHardware.data",),
        url=f"{_UCI}/248/buzz+in+social+media.zip",
        sha256="eb18c0265e669813c6a9d32d11eb4d01125970fa46a7d4f75c3da0f0ccb3110c",
        size="33 MB",
        n_columns=97,
        target_range=(0.0, 1e7),
        paper_rows=11000,
        protocols=True,
    ),
    Entry(
        name="twitter",
        title="Twitter",
        description=(
            "Seven weeks of activity around a topic on Twitter; the label is the mean number of active discussions in "
            "the weeks after. The paper takes 98700 rows (here the first ones, or all if the file has fewer); the "
            "prepared set has 13813."
        ),
        citation=_KAWALA,
        target="mean NAD",
        files=("Twitter.data", "Twitter_subset13813.data"),
        url=f"{_UCI}/248/buzz+in+social+media.zip",
        size="33 MB",
        n_columns=78,
        target_range=(0.0, 1e7),
        paper_rows=98700,
        protocols=True,
    ),
    Entry(
        name="conductivity",
        title="Superconductivity",
        description=(
            "81 properties of the elements in a superconductor (masses, radii, densities, valences and their means and "
            "spreads); the label is its critical temperature in kelvin. The paper takes the first 21260 rows; under "
            "'prepared' all 21263 come."
        ),
        citation=(
            "K. Hamidieh. A data-driven statistical model for predicting the critical temperature of a superconductor. "
            "Computational Materials Science 154:346-354, 2018. doi:10.24432/C53P47"
        ),
        target="critical_temp",
        files=("train.csv",),
        url=f"{_UCI}/464/superconductivty+data.zip",
        sha256="4dfb6e3a1f6ffd969e5a5e42f093c4800d1e2a6c8b1e309f8fcd9f23d86952f3",
        size="8.3 MB",
        n_columns=82,
        target_range=(0.0, 250.0),
        paper_rows=21260,
        protocols=True,
    ),
    Entry(
        name="blood",
        title="Blood pressure",
        description=(
            "Photoplethysmogram (PPG) and electrocardiogram (ECG) of one patient at 125 Hz; the label is the arterial "
            "blood pressure in mmHg at the same instant. 61000 samples, in time order, from the first record of the "
            "first part on."
        ),
        citation=(
            "M. Kachuee, M. M. Kiani, H. Mohammadzade, M. Shabany. Cuff-less high-accuracy calibration-free blood "
            "pressure estimation using pulse transit time. IEEE International Symposium on Circuits and Systems "
            "(ISCAS), 1006-1009, 2015. doi:10.24432/C5B602"
        ),
        target="ABP",
        files=("Part_1.mat", "patient_0.csv"),
        url=f"{_UCI}/340/cuff+less+blood+pressure+estimation.zip",
        size="3.4 GB",
        n_columns=3,
        target_range=(10.0, 350.0),
        paper_rows=61000,
    ),
    Entry(
        name="twitter-classes",
        title="Twitter, buzz or not",
        description=(
            "The inputs of 'twitter'; the label says whether the activity around the topic then rose by 500 or more "
            "(+1, a buzz) or not (-1)."
        ),
        citation=_KAWALA,
        target="buzz",
        files=("Twitter-Absolute-Sigma-500.data", "Twitter-Absolute-Sigma-500_8000samples.data"),
        url="https://archive.ics.uci.edu/ml/machine-learning-databases/00248/classification.tar.gz",
        size="about 30 MB",
        n_columns=78,
        target_range=(-1.0, 1.0),
    ),
    Entry(
        name="california-housing",
        title="California housing",
        description=(
            "Block groups of the 1990 census of California: place, age and size of the houses, people and income; the "
            "label is the median value of a house in dollars, cut at 500001."
        ),
        citation=(
            "R. K. Pace, R. Barry. Sparse spatial autoregressions. Statistics and Probability Letters 33(3):291-297, "
            "1997."
        ),
        target="medianHouseValue",
        files=("cal_housing.data",),
        url="https://ndownloader.figshare.com/files/5976036",
        archive_sha256="aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
        size="0.4 MB",
        n_columns=9,
        target_range=(1e4, 5.1e5),
    ),
    Entry(
        name="power-plant",
        title="Combined cycle power plant",
        description=(
            "Hourly means of temperature (AT), exhaust vacuum (V), pressure (AP) and humidity (RH) at a power plant "
            "under full load, 2006-2011; the label is its electrical output in MW."
        ),
        citation=(
            "P. Tüfekci. Prediction of full load electrical power output of a base load operated combined cycle power "
            "plant using machine learning methods. International Journal of Electrical Power and Energy Systems "
            "60:126-140, 2014. doi:10.24432/C5002N"
        ),
        target="PE",
        files=("Folds5x2_pp.xlsx", "Folds5x2_pp.csv"),
        url=f"{_UCI}/294/combined+cycle+power+plant.zip",
        size="3.7 MB",
        n_columns=5,
        target_range=(400.0, 520.0),
    ),
    Entry(
        name="electricity",
        title="Electricity market",
        description=(
            "Prices and demand in New South Wales and Victoria every half hour, May 1996 to December 1998, in time "
            "order and with drift; the label says whether the price is above (+1) or below (-1) its mean of the last "
            "24 hours."
        ),
        citation=(
            "M. Harries. Splice-2 comparative evaluation: electricity pricing. Technical report UNSW-CSE-TR-9905, 1999."
        ),
        target="class",
        files=("elec.csv",),
        url="https://raw.githubusercontent.com/scikit-multiflow/streaming-datasets/master/elec.csv",
        sha256="cdf901433885f29eca6911f70c0eeafb50d90596c879c30c5b99f5a2e8e734ff",
        size="3.2 MB",
        n_columns=7,
        target_range=(-1.0, 1.0),
    ),
    Entry(
        name="eeg-eye-state",
        title="EEG eye state",
        description=(
            "Fourteen electrodes on one head for 117 seconds, in time order; the label says whether the eyes were "
            "closed (+1) or open (-1)."
        ),
        citation=(
            "O. Rösler, D. Suendermann. A first step towards eye state prediction using EEG. Applied Informatics for "
            "Health and Life Sciences (AIHLS), 2013. doi:10.24432/C57G7J"
        ),
        target="eyeDetection",
        files=("EEG Eye State.arff", "eeg_eye_state.arff"),
        url=f"{_UCI}/264/eeg+eye+state.zip",
        size="0.4 MB",
        n_columns=15,
        target_range=(-1.0, 1.0),
    ),
    Entry(
        name="synthetic",
        title="A known function",
        description=(
            "Drawn, not measured: y = sum_m b_m kappa(c_m, x) + noise with a Gaussian kernel of bandwidth 0.5, 20 "
            "centres and uniform inputs. See laconic.data.synthetic for the truth behind it, for drift and for unlike "
            "agents."
        ),
        citation=(
            "P. Xu, Y. Wang, X. Chen, Z. Tian. COKE: Communication-censored decentralized kernel learning. Journal of "
            "Machine Learning Research 22(196):1-35, 2021 (a function of this form)."
        ),
    ),
)
