"""Settings of all tests: which are slow, and their order."""

import os
import signal

import pytest
from hypothesis import settings

from algorithms.support.command import collect_seldom

settings.register_profile("anywhere", deadline=None)  # a busy machine is slow, not wrong
settings.load_profile("anywhere")

collect_seldom()

# Tests run in parallel processes, so more than one thread each would slow them down.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# A shell ignores Ctrl-C in background jobs, and processes that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """No test reads or leaves anything in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def refused(capfd):
    """A function that runs a command's `main` and returns the one line of its exit 2."""

    def line(main, arguments):
        capfd.readouterr()
        try:
            code = main(arguments)
        except SystemExit as stopped:  # by argparse
            code = stopped.code
        out, err = capfd.readouterr()
        assert (code, out, err.count("\n")) == (2, "", 1), err
        return err

    return line


# Tests that take seconds: a browser, training runs, compilation, all of `parity.check`.
SLOW = {
    *("test_page", "test_web", "test_terminal", "test_examples", "test_own_game", "test_main"),
    *("test_train_ppo", "test_learner", "test_sweep", "test_checkpoint", "test_figures"),
    *("test_training", "test_any_order"),
    *("test_export_onnx", "test_strangers", "test_networks", "test_lower_bound", "test_matches"),
    *(
        "test_parity_candidate",
        "test_parity_command",
        "test_parity_tree_games",
        "test_parity_policies",
    ),
    *("test_phantom", "test_liars_dice", "test_large_game_commands", "test_sampled_games"),
    *("test_compiled_cfr", "test_cfr", "test_mccfr", "test_evaluate", "test_solve", "test_rps"),
    *(
        "test_nashconv_command",
        "test_pettingzoo",
        "test_games",
        "test_tree_cache",
        "test_openspiel",
    ),
    *("test_report", "test_report_page", "test_site"),
    "onnx",  # the page of the documentation
}


# The longest tests start first, so that all processes finish at about the same time.
LONGEST = (
    *("test_sweep", "test_page", "test_report_page", "test_parity_large_games", "test_train_ppo"),
    *("test_lower_bound", "test_large_game", "test_parity_tree_games", "test_parity_command"),
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker(pytest.mark.slow)
    order = {stem: place for place, stem in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))
