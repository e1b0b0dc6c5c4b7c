"""Every quirk of the raw files, on tiny files made by hand, and the sentences for wrong ones."""

import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest

from laconic import data
from laconic.data.sets import twitter

AIR_HEADER = (
    "Date;Time;CO(GT);PT08.S1(CO);NMHC(GT);C6H6(GT);PT08.S2(NMHC);NOx(GT);PT08.S3(NOx);NO2(GT);PT08.S4(NO2);"
    "PT08.S5(O3);T;RH;AH;;\r\n"
)
AIR = (
    AIR_HEADER
    + "10/03/2004;18.00.00;2,6;1360;150;11,9;1046;166;1056;113;1692;1268;13,6;48,9;0,7578;;\r\n"
    + "10/03/2004;19.00.00;-200;1292;112;9,4;955;103;1174;92;1559;972;13,3;47,7;0,7255;;\r\n"
    + "11/03/2004;00.00.00;2;1402;-200;9,0;939;131;1140;114;1555;1074;-200;54,0;0,7502;;\r\n"
    + ";;;;;;;;;;;;;;;;\r\n" * 3
)
ENERGY_COLUMNS = [
    "date", "Appliances", "lights", *[f"{kind}{k}" for k in range(1, 10) for kind in ("T", "RH_")],
    "T_out", "Press_mm_hg", "RH_out", "Windspeed", "Visibility", "Tdewpoint", "rv1", "rv2",
]  # fmt: skip


def energy(*labels):
    lines = [",".join(f'"{name}"' for name in ENERGY_COLUMNS)]
    for k, label in enumerate(labels):
        cells = [f"2016-01-11 {k:02d}:30:00", f"  {label}", "30", " 2.2e+01", *[f"{j}.5" for j in range(25)]]
        lines.append(",".join(f'"{cell}"' for cell in cells))
    return "\r\n".join(lines) + "\r\n"


@pytest.mark.parametrize("pack", [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("below", ["", "airquality"])
def test_air_quality_quirks_in_any_wrapping_and_place(tmp_path, pack, below):
    ending, compress = pack
    (tmp_path / below).mkdir(exist_ok=True)
    (tmp_path / below / f"AirQualityUCI.csv{ending}").write_bytes(compress(AIR.encode()))
    air = data.load("air-quality", data_dir=tmp_path)
    np.testing.assert_array_equal(air.y, [2.6, 2.0])
    assert air.X.shape == (2, 13)
    np.testing.assert_array_equal(
        air.X[0], [0.75, 1360, 150, 11.9, 1046, 166, 1056, 113, 1692, 1268, 13.6, 48.9, 0.7578]
    )
    np.testing.assert_array_equal(air.X[1, [0, 2, 10]], [0.0, -200, -200])
    assert air.protocol == "paper"
    assert "De Vito" in air.citation and "carbon monoxide" in air.description


def test_air_quality_looks_at_nine_thousand_rows_only(tmp_path):
    row = "10/03/2004;18.00.00;{};1360;150;11,9;1046;166;1056;113;1692;1268;13,6;48,9;0,7578;;\r\n"
    (tmp_path / "AirQualityUCI.csv").write_text(
        AIR_HEADER + row.format("1,5") * 8999 + row.format("-200") + row.format(3)
    )
    assert len(data.load("air-quality", data_dir=tmp_path, protocol="prepared")) == 8999
    assert len(data.load("air-quality", data_dir=tmp_path)) == 7320


def test_energy_quirks(tmp_path):
    (tmp_path / "energydata_complete.csv").write_text(energy(60, 310, 300), newline="")
    paper = data.load("energy", data_dir=tmp_path)
    assert paper.X.shape == (2, 28)
    np.testing.assert_array_equal(paper.y, [60, 300])
    np.testing.assert_allclose(paper.X[:, 0], [0.5 / 24, 2.5 / 24], rtol=1e-15)
    np.testing.assert_array_equal(paper.X[0, 1:4], [30, 22, 0.5])
    prepared = data.load("energy", data_dir=tmp_path, protocol="prepared")
    np.testing.assert_array_equal(prepared.X, paper.X[:, 1:-2])
    assert prepared.names == paper.names[1:-2] == tuple(ENERGY_COLUMNS[2:-2])


def test_toms_hardware_rows_of_either_protocol(tmp_path):
    rows = np.zeros((10_002, 97))
    rows[:, 0] = np.arange(len(rows))
    rows[[3, 10_000], -1] = 27_612  # one among the first ten thousand
    rows[5, -1] = 27_611
    (tmp_path / "TomsHardware.data").write_text("\n".join(",".join(f"{x:g}" for x in row) for row in rows) + "\n")
    prepared = data.load("toms-hardware", data_dir=tmp_path, protocol="prepared")
    assert len(prepared) == 9999 and prepared.y.max() == 27_611
    paper = data.load("toms-hardware", data_dir=tmp_path)
    assert len(paper) == 10_002  # a file with fewer rows than the paper's is taken whole
    assert paper.names[0] == "NCD_0" and paper.names[-1] == "AS(NAC)_7"
    assert len(data.load("toms-hardware", data_dir=tmp_path, n_rows=7)) == 7


def test_prepared_twitter_rows_are_those_the_rule_gives_or_none(tmp_path):
    rows = np.zeros((15_000, 78))
    rows[:187, -1] = 2220
    rows[200, -1] = 2219.5
    chosen = twitter.prepared(rows, tmp_path)
    assert len(chosen) == 13_813 and chosen[:, -1].max() == 2219.5
    np.testing.assert_array_equal(twitter.prepared(chosen, tmp_path), chosen)
    with pytest.raises(ValueError, match="needs the 13813 rows .* gives 13812: pass protocol='paper'"):
        twitter.prepared(chosen[1:], tmp_path)


def test_paper_twitter_prefers_the_published_file_and_prepared_the_subset(tmp_path):
    line = ",".join(["1"] * 77)
    (tmp_path / "Twitter.data").write_text(f"{line},7\n{line},8\n")
    (tmp_path / "Twitter_subset13813.data").write_text(f"{line},9\n")
    np.testing.assert_array_equal(data.load("twitter", data_dir=tmp_path).y, [7, 8])
    with pytest.raises(ValueError, match="Twitter_subset13813.data gives 1"):
        data.load("twitter", data_dir=tmp_path, protocol="prepared")


def mat73(path, cells, name="Part_1"):
    """A cell array as MATLAB v7.3 writes it: a block of 512 bytes in front, references to transposed matrices."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        references = []
        for k, cell in enumerate(cells):
            references.append(file.create_dataset(f"#refs#/{k}", data=cell.T).ref)
        file.create_dataset(name, data=np.array(references, dtype=h5py.ref_dtype)[:, None])
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(512))


@pytest.mark.parametrize(("ending", "name"), [("", "Part_1"), (".xz", "p")])
def test_blood_from_matlab(tmp_path, ending, name):
    random = np.random.default_rng(0)
    cells = [np.stack([random.normal(size=n), random.uniform(60, 120, n), random.normal(size=n)]) for n in (5, 4)]
    path = tmp_path / "Part_1.mat"
    mat73(path, cells, name)
    if ending:
        (tmp_path / "Part_1.mat.xz").write_bytes(lzma.compress(path.read_bytes()))
        path.unlink()
    whole = np.concatenate(cells, axis=1)
    blood = data.load("blood", data_dir=tmp_path)
    np.testing.assert_array_equal(blood.X, whole[[0, 2]].T)
    np.testing.assert_array_equal(blood.y, whole[1])
    np.testing.assert_array_equal(data.load("blood", data_dir=tmp_path, n_rows=6).y, whole[1, :6])


def test_blood_needs_h5py_only_for_matlab(tmp_path, monkeypatch):
    (tmp_path / "patient_0.csv").write_text("ECG,Systolic,Diastolic\n1.5,80.25,-0.125\n1.25,81,-0.25\n")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)  # makes the import fail, as where it is not installed
    blood = data.load("blood", data_dir=tmp_path)
    np.testing.assert_array_equal(blood.X, [[1.5, -0.125], [1.25, -0.25]])
    np.testing.assert_array_equal(blood.y, [80.25, 81])
    (tmp_path / "Part_1.mat").write_bytes(b"anything")
    with pytest.raises(ValueError, match="h5py is needed: install it with 'pip install h5py'"):
        data.load("blood", data_dir=tmp_path)


@pytest.mark.parametrize("content", [b"not HDF5 at all", b""])
def test_blood_refuses_what_is_not_matlab(tmp_path, content):
    pytest.importorskip("h5py")
    (tmp_path / "Part_1.mat").write_bytes(content)
    with pytest.raises(ValueError, match="Part_1.mat is not the raw file of 'blood'"):
        data.load("blood", data_dir=tmp_path)


def test_blood_refuses_records_of_another_shape(tmp_path):
    mat73(tmp_path / "Part_1.mat", [np.ones((2, 5))])
    with pytest.raises(ValueError, match="must be a cell array of 3 x n records"):
        data.load("blood", data_dir=tmp_path)


def xlsx(rows):
    sheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    words, lines = [], []
    for r, row in enumerate(rows, 1):
        cells = []
        for c, value in zip("ABCDE", row, strict=False):
            if isinstance(value, str):
                words.append(value)
                cells.append(f'<c r="{c}{r}" t="s"><v>{len(words) - 1}</v></c>')
            else:
                cells.append(f'<c r="{c}{r}"><v>{value!r}</v></c>')
        lines.append(f'<row r="{r}">{"".join(cells)}</row>')
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        shared = "".join(f"<si><t>{word}</t></si>" for word in words)
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{sheet}">{shared}</sst>')
        body = "".join(lines)
        archive.writestr(
            "xl/worksheets/sheet1.xml", f'<worksheet xmlns="{sheet}"><sheetData>{body}</sheetData></worksheet>'
        )
    return buffer.getvalue()


def test_power_plant_from_its_workbook_and_from_csv(tmp_path):
    header, rows = (
        ["AT", "V", "AP", "RH", "PE"],
        [[14.96, 41.76, 1024.07, 73.17, 463.26], [25.18, 62.96, 1020.04, 59.08, 444.37]],
    )
    (tmp_path / "Folds5x2_pp.xlsx").write_bytes(xlsx([header, *rows]))
    plant = data.load("power-plant", data_dir=tmp_path)
    np.testing.assert_array_equal(np.column_stack([plant.X, plant.y]), rows)
    (tmp_path / "Folds5x2_pp.xlsx").unlink()
    (tmp_path / "Folds5x2_pp.csv").write_text("\n".join(",".join(map(str, row)) for row in [header, *rows]))
    np.testing.assert_array_equal(data.load("power-plant", data_dir=tmp_path).X, plant.X)


def test_power_plant_refuses_a_workbook_that_unpacks_to_too_much(tmp_path, monkeypatch):
    (tmp_path / "Folds5x2_pp.xlsx").write_bytes(xlsx([["AT", "V"], *[[1.0, 2.0]] * 1000]))
    monkeypatch.setattr("laconic.data.workbook._LARGEST_SHEET", 10_000)
    with pytest.raises(ValueError, match=r"not a workbook that can be read \(xl/worksheets/sheet1.xml unpacks to"):
        data.load("power-plant", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"junk", "not a workbook that can be read"),
        (xlsx([["AT", "V"]]), "must have a header and rows"),
        (xlsx([["AT", "V"], [1.0]]), "must have a header and rows"),
        (xlsx([["AT", "V"], [1.0, "x"]]), "has a cell that is not a number"),
        (xlsx([["a", "V", "AP", "RH", "PE"], [1.0, 1.0, 1.0, 1.0, 450.0]]), "it has no column 'AT'"),
    ],
)
def test_power_plant_refuses_other_workbooks(tmp_path, content, sentence):
    (tmp_path / "Folds5x2_pp.xlsx").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        data.load("power-plant", data_dir=tmp_path)


def test_electricity_and_eeg_map_classes(tmp_path):
    (tmp_path / "elec.csv").write_text(
        "period,nswprice,nswdemand,vicprice,vicdemand,transfer,class\n0.0,0.1,0.2,0.3,0.4,0.5,1\n0.5,0.1,0.2,0.3,0.4,0.5,0\n"
    )
    electricity = data.load("electricity", data_dir=tmp_path)
    np.testing.assert_array_equal(electricity.y, [1, -1])
    assert electricity.classes == ("down", "up")
    assert electricity.protocol is None
    names = ["AF3", "F7", "F3", "FC5", "T7", "P7", "O1", "O2", "P8", "T8", "FC6", "F4", "F8", "AF4"]
    header = "".join(f"@ATTRIBUTE {name} NUMERIC\n" for name in names) + "@ATTRIBUTE eyeDetection {0,1}\n"
    row = ",".join(["4329.23"] * 14)
    (tmp_path / "EEG Eye State.arff").write_bytes(
        f"@RELATION EEG_DATA\n\n{header}\n@DATA\n{row},0\n{row},1\n\n".replace("\n", "\r\n").encode()
    )
    eeg = data.load("eeg-eye-state", data_dir=tmp_path)
    np.testing.assert_array_equal(eeg.y, [-1, 1])
    assert eeg.names == tuple(names)


@pytest.mark.parametrize(
    ("name", "file", "content", "sentence"),
    [
        (
            "conductivity",
            "train.csv",
            b"a,b\n1,2\n",
            "is not the raw file of 'conductivity': it has 2 columns instead of 82",
        ),
        ("toms-hardware", "TomsHardware.data", b"1,2,3\n", "it has 3 columns instead of 97"),
        ("california-housing", "cal_housing.data", b"1,2,3,4,5,6,7,8,9\n", "must lie between 10000 and 510000"),
        (
            "california-housing",
            "cal_housing.data",
            b"1,2,3,4,5,6,7,8,x\n",
            "is not the raw file of 'california-housing'",
        ),
        ("california-housing", "cal_housing.data", b"1,,3,4,5,6,7,8,9e4\n", "missing or infinite cell in data row 1"),
        (
            "california-housing",
            "cal_housing.data",
            b"1,inf,3,4,5,6,7,8,9e4\n",
            "missing or infinite cell in data row 1",
        ),
        (
            "california-housing",
            "cal_housing.data",
            b"1,2,3,4,5,6,7,8,9e4\n1,2\n",
            "missing or infinite cell in data row 2",
        ),
        ("california-housing", "cal_housing.data", b"", "it has 1 columns instead of 9"),
        ("power-plant", "Folds5x2_pp.csv", b"AT,V,AP,RH,XX\n1,2,3,4,450\n", "it has no column 'PE'"),
        ("power-plant", "Folds5x2_pp.csv", b"AT,V,AP,RH,PE\n1,2,3,four,450\n", "'RH' has cells that are not numbers"),
        ("power-plant", "Folds5x2_pp.csv", b"AT,V,AP,RH,PE\n", "PE must lie between 400 and 520"),
        ("power-plant", "Folds5x2_pp.csv", b"", "is empty"),
        ("electricity", "elec.csv", b"a,nswprice,b,c,d,e,class\n1,2,3,4,5,6,2\n", "class must be 0 or 1"),
        ("twitter-classes", "Twitter-Absolute-Sigma-500.data", b"1," * 77 + b"0.5\n", "buzz must be 0 or 1"),
        (
            "air-quality",
            "AirQualityUCI.csv",
            AIR.replace("18.00.00", "18:00").encode(),
            "missing .* cell in data row 1",
        ),
        ("air-quality", "AirQualityUCI.csv", AIR.replace("Time", "Hour").encode(), "it has no column 'Time'"),
        (
            "energy",
            "energydata_complete.csv",
            energy(60).replace("2016-01-11 ", "").encode(),
            "missing .* cell in data row 1",
        ),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path, name, file, content, sentence):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        data.load(name, data_dir=tmp_path)
    assert file in str(caught.value)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_truncated_download_says_so(tmp_path, compress):
    ending = ".gz" if compress is gzip.compress else ".xz"
    packed = compress(AIR.encode())
    (tmp_path / f"AirQualityUCI.csv{ending}").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ValueError, match="is damaged or incomplete .*: fetch it again"):
        data.load("air-quality", data_dir=tmp_path)
    (tmp_path / f"AirQualityUCI.csv{ending}").write_bytes(AIR.encode())
    with pytest.raises(ValueError, match="is not compressed as its name says"):
        data.load("air-quality", data_dir=tmp_path)


def test_names_and_info_cover_twelve_sets():
    twelve = (
        "air-quality", "energy", "toms-hardware", "twitter", "conductivity", "blood", "twitter-classes",
        "california-housing", "power-plant", "electricity", "eeg-eye-state", "synthetic",
    )  # fmt: skip
    assert tuple(name for name in data.names() if name in twelve) == twelve
    for name in data.names():
        entry = data.info(name)
        assert len(entry.description) > 80 and len(entry.citation) > 40
        assert entry.draw or (entry.files and entry.url.startswith("https://") and entry.size)
    with pytest.raises(ValueError, match="Did you mean 'toms-hardware'"):
        data.info("toms_hardware")


def test_synthetic_is_always_at_hand():
    first, again = data.load("synthetic"), data.load("synthetic", protocol="prepared")
    assert first.X.shape == (10_000, 5)
    np.testing.assert_array_equal(first.y, again.y)
    assert data.load("synthetic", n_rows=3).X.shape == (3, 5)


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (("air-quality",), {"protocol": "raw"}, "protocol must be one of 'paper', 'prepared'"),
        (("synthetic",), {"n_rows": 0}, "n_rows must be at least 1"),
        (("synthetic",), {"n_rows": 2.5}, "n_rows must be a whole number"),
        (("synthetic",), {"target": "y"}, "target is for files of your own"),
        (("synthetic",), {"missing": "fill"}, "missing must be one of"),
        (("airquality",), {}, "name must be a file or one of .* Did you mean 'air-quality'"),
        (("nothing like it",), {}, "name must be a file or one of"),
        (("missing.csv",), {}, "there is no file 'missing.csv'"),
        (("folder/missing",), {}, "there is no file"),
        (("",), {}, "name_or_path must be a name or a file"),
        ((7,), {}, "name_or_path must be a name or a file, got 7"),
        (("air-quality",), {"data_dir": "/no/such/folder"}, "data_dir must name a folder"),
    ],
)
def test_arguments_are_named_when_they_make_no_sense(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        data.load(*arguments, **options)
