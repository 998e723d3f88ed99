"""Examples of the pages run in an empty folder, as in a notebook that a user starts anywhere."""

import pytest


@pytest.fixture(autouse=True)
def empty_folder_for_pages(request, tmp_path, monkeypatch):
    """Run the examples of a `.md` page in an empty folder."""
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(tmp_path)
