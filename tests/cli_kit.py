"""What tests of the command line share: a terminal, small files of one's own, and commands that succeed or fail."""

import re

import numpy as np

from laconic.cli import main


def set_terminal(monkeypatch, folder):
    """Eighty columns, an empty cache, no folder of data, and ``folder`` to work in."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    monkeypatch.chdir(folder)


def write_files(tmp_path):
    """Small files of one's own, good and bad."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    rent = 100 + 50 * np.sin(4 * X[:, 0]) + 20 * X[:, 1]
    big = rent > 120

    def write(name, header, rows):
        lines = [header, *(",".join(str(cell) for cell in row) for row in rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    write("flats.csv", "a,b,c,rent", np.column_stack([X, rent]).tolist())
    rows = [[*x, f"s{k % 7}", "big" if above else "small"] for k, (x, above) in enumerate(zip(X, big, strict=True))]
    write("words.csv", "a,b,c,street,kind", rows)
    write("signs.csv", "a,b,c,hit", [[*x, int(above)] for x, above in zip(X, big, strict=True)])
    write("text.csv", "a,b,city", [[*x[:2], "abc"[k % 3]] for k, x in enumerate(X)])
    write("holes.csv", "a,b,y", [(1, 2, 3), (1, "", 3), (4, 5, 6), (7, 8, 8)])
    write("constant.csv", "a,y", [(1, 2), (3, 2), (5, 2)])
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("a,b\n")
    (tmp_path / "village.txt").write_text("north south\nsouth west\n")
    (tmp_path / "shed").mkdir()
    (tmp_path / "shed" / "site.toml").write_text("")
    (tmp_path / "broken.txt").write_text("north south west\n")
    return tmp_path


def run(capsys, *words):
    """A command that must succeed: what it prints on stdout and on stderr."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out, err


def fail(capsys, *words, code=2):
    """A command that must fail: the one sentence that it says."""
    assert main([str(word) for word in words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("laconic: ") and err.count("\n") == 1 and err.endswith("\n")
    assert "Traceback" not in err
    return err.strip()


def cells(screen, name):
    """The cells of the table's line that starts with ``name``."""
    line = next(line for line in screen.split("\n") if line.startswith(name) and re.search(r"\d", line))
    return line[len(name) :].split()
