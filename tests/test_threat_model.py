"""The page on who is trusted with what: its numbers are the code's, and it knows every alert that there is."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import laconic
from laconic._reports import LARGEST_COUNT, LARGEST_MEASUREMENT
from laconic.deploy.running import desk, inbox, questions, scrapes
from laconic.guard.given import LARGEST_LABEL
from laconic.protocol import dialogue, ends, handshake, ledger, session, wave_dialogue, waving, wire
from laconic.protocol.actions import Terms
from laconic.waves import plausible, roving
from laconic.waves.node import CREDIBLE

PACKAGE = Path(laconic.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "threat-model.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no documents")

DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def ten(value):
    return "10" + str(len(f"{value:.0f}") - 1).translate(DIGITS)


def two(value):
    assert value & (value - 1) == 0
    return "2" + str(value.bit_length() - 1).translate(DIGITS)


def limits():
    from laconic.transport import zenoh_renewal

    return {
        "a label, larger ones being refused by `learn`": ten(LARGEST_LABEL),
        "running deviations that a label may be off, by default; inputs ten times as many": (
            f"{inspect.signature(laconic.Guard).parameters['deviations'].default:.0f}"
        ),
        "an entry of a model, the scale of a difference": ten(wire.MODEL_LIMIT),
        "an entry of a share": ten(wire.SHARE_LIMIT),
        "a counter": two(handshake.COUNT_LIMIT),
        "a model that is told, or the dual of an edge, in yardsticks of who is told": ten(ledger.REACH),
        "a model beyond which a step that neighbours have dragged is shortened, in yardsticks": f"{ledger.STRAIN:.0f}",
        "a neighbour's model beyond which it is quarantined for that, in yardsticks": f"{ledger.AWAY:.0f}",
        "the same two of an agent without labels": f"{ledger.STRAIN_UNLABELLED:.0f}, {ledger.AWAY_UNLABELLED:.0f}",
        "labels after which an agent judges by them alone": str(ledger.FEW),
        "times that the model of an agent without labels may be larger than those by which its yardstick grows": (
            f"{ledger.SIMILAR:.0f}"
        ),
        "waves: an entry of the common model of an agent without labels, in norms of the one before": (
            f"{roving.FARTHER:.0f}"
        ),
        "rounds by which fewer than most neighbours can move a lockstep agent, one more for each round it lives": two(
            handshake.FURTHEST
        ),
        "the round that most of them can move it to": two(handshake.ROUND_LIMIT),
        "steps by which the generation of an edge may grow at once": two(handshake.FURTHEST),
        "edge rounds that the two ends of a live edge on slots may be apart": str(session.APART),
        "slots by which messages may be late before an agent with duals shortens its steps": str(dialogue.ON_TIME),
        "slots beyond which steps are not shortened further": str(dialogue.LATEST),
        "rounds in a row in which a neighbour is late before that is reported": str(dialogue.TARDY),
        "own statements kept to be said again": str(session.LOGGED),
        "waves: an entry of C or of a U": ten(roving.FURTHEST),
        "waves: an entry of C or of a U where features have norm 1, in weights of a sample": f"{plausible.ENTRY:.0f}",
        "waves: the trace of a U beyond twice that of C, in the same": f"{plausible.MORE:.0f}",
        "waves: the mean square error of a child that the size of a step goes by, in that of own labels or errors, "
        "from the second wave on": f"{CREDIBLE:.0f}",
        "waves: what may be left out of a child's information, in its tolerances": f"{plausible.LEFT_OUT:.0f}",
        "waves: an entry of a residual, in yardsticks and samples; an entry of the common model, in yardsticks": ten(
            roving.FURTHEST
        ),
        "waves: the root mean square error of a common model on an agent's own samples, in yardsticks": (
            f"{roving.ASTRAY:.0f}"
        ),
        f"waves: how many times an agent's own rounds, and {waving.MARGIN} more, others can have lived, "
        "or have samples": str(waving.LATER),
        "waves, lockstep: by how much another's clock may be ahead of the round, and of a quarter more": str(
            waving.NEAR
        ),
        "waves: rounds waited for a silent child, for each level of the tree below": str(roving.WAIT),
        "waves: messages of a wave refused after which a neighbour is quarantined": str(wave_dialogue.STRIKES),
        "waves: messages down kept for those who missed them": str(roving.LOGGED),
        "waves: parts of a neighbour's statements between two rounds": str(waving.MOST_WAITING),
        "statements of a neighbour kept that came too early": str(session.HELD),
        "earlier processes of a neighbour that are remembered": str(session.SUPERSEDED),
        "calls in a row, and nothing else, that a process answers which was refused for a later one of its name": str(
            dialogue.SOUGHT
        ),
        "rounds and reminders after which such a process asks of itself, at first; each time twice as many": str(
            handshake.FENCED
        ),
        "tokens of a neighbour, filled by each reminder": str(ends.ALLOWANCE),
        "tokens that a round brings back, and that an offer or a decision costs; a statement said again costs one": str(
            ends.WHOLE
        ),
        "refusals or doubts in a row, of who is vouched for, after which it is quarantined": str(dialogue.ENOUGH),
        "rounds and reminders that a quarantine lasts at first; each time twice as many": str(dialogue.QUARANTINE),
        "seconds until lockstep gives a vanished neighbour up, `patience`, by default; "
        "one that is there and does not answer: thrice": (f"{Terms().patience:.0f}"),
        "the same where an agent without labels judged its neighbours by each other": str(dialogue.BRIEFLY),
        "rounds and reminders until the same alert about the same neighbour is raised again": str(dialogue.TOLD),
        "messages of a neighbour that may wait": str(inbox.MOST_MESSAGES),
        "bytes of a neighbour that may wait": str(inbox.MOST_BYTES),
        "messages taken in before an agent looks up": str(inbox.AT_A_TIME),
        "seconds that a connection to the metrics port may take": f"{scrapes.SECONDS:.0f}",
        "connections to it at a time": str(scrapes.MOST),
        "bytes of a request to it": str(scrapes.LONGEST),
        "bytes of a question to an agent": str(questions.LONGEST),
        "inputs in a question": str(questions.MOST_ROWS),
        "questions answered a second": f"{desk.A_SECOND:.0f}",
        "questions that may come at once after a pause": f"{desk.AT_ONCE:.0f}",
        "questions that may wait": str(desk.MOST_WAITING),
        "a count that an agent reports to the live page or to `laconic up`": two(LARGEST_COUNT),
        "a measurement that it reports there": ten(LARGEST_MEASUREMENT),
        "days before its end that a certificate is warned about": f"{zenoh_renewal.SOON / zenoh_renewal.DAY:.0f}",
    }


def rows(title):
    """The rows of the table under a heading of the page."""
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines[2:]]


def test_what_once_broke_has_a_test_each_that_bears_its_letter():
    page = (PAGE.parent / "protocol.md").read_text()
    named = re.findall(r"^\| (\w+) \| .+ \| `(.+\.py)::(test_\w+)` \|$", page, re.M)
    assert len({letter for letter, _, _ in named}) == 16
    for letter, path, name in named:
        source = Path(__file__).with_name(path.split("/")[0]).joinpath(path.split("/")[1]).read_text()
        assert re.search(rf'^def {name}\(.*\n    """\({letter}\)', source, re.M), (letter, name)


def test_the_limits_on_the_page_are_those_of_the_code():
    assert dict(rows("Limits in numbers")) == limits()


def alerts():
    """What the code can raise: the words that are given to whatever makes an alert."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        named = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                given = list(node.args)
                if called == "append" and given and isinstance(given[0], ast.Tuple) and is_news(node.func):
                    given = given[0].elts
                elif called not in ("Alert", "tell", "_alert", "_tell"):
                    continue
                given = [named.get(word.id) if isinstance(word, ast.Name) else word for word in given[:3]]
                found |= {word.value for word in given if isinstance(word, ast.Constant) and word.value}
    return {word for word in found if isinstance(word, str)} - {"open"}  # of which thing, not of what


def is_news(function):
    return "news" in ast.unparse(function)


def test_every_alert_that_the_code_can_raise_is_on_the_page():
    known = {re.fullmatch(r"`(.+)`", row[0]).group(1) for row in rows("When an alert comes")}
    assert known == alerts()
    assert {"quarantined", "checkpoint refused", "neighbour is silent", "certificates refused"} <= known
    assert all(len(row) == 3 and all(row) for row in rows("When an alert comes"))
