"""Ctrl-C: the first one keeps what there is, the second one ends at once."""

import signal
import threading

import pytest

from clustruct import _interrupts
from clustruct._interrupts import asked, deaf_children, hold, in_part, keeping, waiting


def press():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Work is worth keeping from the beginning, and signals are handled as Python does."""
    monkeypatch.setattr(_interrupts, "PATIENCE", 0.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # always restored
    signal.signal(signal.SIGINT, before)


def test_the_first_one_is_noted_and_the_second_one_raises(capsys):
    with keeping() as watch:
        hold()
        assert not asked()
        press()
        assert asked()
        assert watch.came
        assert watch.cut
        assert "Press it again" in capsys.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            press()
    with pytest.raises(KeyboardInterrupt):
        press()


def test_nothing_to_keep():
    with keeping() as watch:
        with pytest.raises(KeyboardInterrupt):
            press()
        assert not watch.came


def test_short_work_is_not_kept(monkeypatch):
    monkeypatch.setattr(_interrupts, "PATIENCE", 1000.0)
    with keeping():
        hold()
        with pytest.raises(KeyboardInterrupt):
            press()


def test_a_part_is_of_no_use_unless_it_is_complete():
    with keeping() as watch:
        with in_part():
            hold()  # of the part, and not of all
            with pytest.raises(KeyboardInterrupt):
                press()
        watch.hold()
        with in_part():
            press()
            with pytest.raises(KeyboardInterrupt):
                asked()
        assert watch.heed()
        assert not asked()  # work goes on
        assert not watch.cut
        with pytest.raises(KeyboardInterrupt):
            press()
        assert not watch.heed()


def test_waits_end_at_once():
    with keeping() as watch:
        watch.hold()
        with pytest.raises(KeyboardInterrupt), waiting():
            press()
        with pytest.raises(KeyboardInterrupt), waiting():
            pytest.fail("a wait after it does not begin")
        assert watch.heed()
        with waiting():
            pass


def test_a_second_one_is_not_taken_care_of():
    with keeping() as watch:
        watch.hold()
        press()
        with pytest.raises(KeyboardInterrupt):
            press()
        assert not watch.heed()


def test_the_outermost_block_counts():
    with keeping() as outer:
        hold()
        with keeping() as inner:
            assert inner is outer
            press()
        assert asked()


def test_the_handler_is_restored_after_errors():
    with pytest.raises(ZeroDivisionError), keeping():
        raise ZeroDivisionError


def test_handlers_of_others_stay():
    heard = []
    signal.signal(signal.SIGINT, lambda *signals: heard.append(signals))
    with keeping() as watch:
        hold()
        press()
        assert not asked()
    assert len(heard) == 1
    assert not watch.came
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_are_left_alone():
    def work():
        with keeping():
            hold()
            seen.append((asked(), signal.getsignal(signal.SIGINT)))

    seen = []
    with keeping():
        hold()
        press()
        mine = signal.getsignal(signal.SIGINT)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [(False, mine)]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked")
def test_children_inherit_a_blocked_signal():
    def blocked():
        return signal.pthread_sigmask(signal.SIG_BLOCK, ())

    with deaf_children():
        assert signal.SIGINT in blocked()
    assert signal.SIGINT not in blocked()
