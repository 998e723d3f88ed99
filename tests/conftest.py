"""What holds for every test."""

import signal

import pytest
from hypothesis import settings

settings.register_profile("anywhere", deadline=None)  # a busy machine is no failure
settings.load_profile("anywhere")

# A shell starts what it runs in the background with Ctrl-C ignored, and so would our children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """No test reads or leaves anything in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
