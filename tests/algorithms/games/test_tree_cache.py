"""Cached trees: the same tree again, and never a wrong one."""

import multiprocessing
import os
from dataclasses import fields
from importlib.metadata import PackageNotFoundError

import numpy as np
import pyspiel
import pytest

from algorithms.compiled.nashconv import nash_conv
from algorithms.games import openspiel_game
from algorithms.games import tree_cache as cache
from algorithms.solve import main
from tests.games import DICE, KUHN3, LEDUC, tree


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "MIN_NODES", 100)
    return tmp_path / "kuhn-bridge" / "trees"


def assert_same(one, other):
    for field in fields(one):
        mine = getattr(one, field.name)
        right = getattr(other, field.name)
        if isinstance(right, np.ndarray):
            assert mine.dtype == right.dtype
            assert np.array_equal(mine, right), field.name
            assert mine.flags.aligned
            assert not mine.flags.writeable
        elif field.name != "name":
            assert mine == right, field.name


def load(name, **options):
    return openspiel_game(pyspiel.load_game(name), name=name, cached=True, **options).tree


@pytest.mark.parametrize("name", [KUHN3, LEDUC, DICE])
def test_a_tree_comes_back_as_it_was(name, folder):
    cache.keep_tree(name, tree(name))
    again = cache.find_tree(name, "again")
    assert_same(again, tree(name))
    assert again.name == "again"
    assert nash_conv(again, again.random(1)) == nash_conv(tree(name), again.random(1))


def test_the_second_time_nothing_is_walked(folder, monkeypatch):
    first = load(LEDUC)
    (path,) = folder.iterdir()
    monkeypatch.setattr("algorithms.games.openspiel.openspiel_tree", None)
    assert_same(load(LEDUC), first)
    assert [path] == list(folder.iterdir())


def test_openspiel_built_from_source_has_a_cache_too(folder, monkeypatch):
    """It is found by PYTHONPATH, and no package of that name is installed."""

    def not_installed(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(cache, "version", not_installed)
    first = load(LEDUC)
    monkeypatch.setattr("algorithms.games.openspiel.openspiel_tree", None)
    assert_same(load(LEDUC), first)


@pytest.mark.parametrize("place", [0, 500, 0.5, 0.9])
def test_a_damaged_file_is_replaced(folder, place):
    first = load(LEDUC)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[int(place * len(whole)) if place < 1 else place] ^= 1
    for content in (damaged, whole[: len(whole) // 2], b""):
        path.write_bytes(content)
        assert_same(load(LEDUC), first)
        assert path.read_bytes() == whole


def test_another_version_is_another_file(folder, monkeypatch):
    load(LEDUC)
    monkeypatch.setattr(cache, "version", lambda _: "99")
    load(LEDUC)
    monkeypatch.setattr(cache, "FORMAT", 99)
    load(LEDUC)
    load(KUHN3)
    assert len(list(folder.iterdir())) == 4


@pytest.mark.parametrize(
    "name", ["efg_game(filename=/x)", "python_x()", "turn_based_simultaneous_game(game=python_x())"]
)
def test_games_that_may_change_are_not_cached(folder, name):
    """Games in Python change with their code, games from files with the files."""
    cache.keep_tree(name, tree(LEDUC))
    assert not folder.exists()


@pytest.mark.parametrize(("limit", "value"), [("MIN_NODES", 10_000), ("MAX_BYTES", 1_000)])
def test_small_and_huge_trees_are_not_kept(folder, monkeypatch, limit, value):
    monkeypatch.setattr(cache, limit, value)
    load(LEDUC)
    assert not folder.exists()


def test_the_oldest_make_room(folder, monkeypatch):
    load(KUHN3)
    monkeypatch.setattr(cache, "MAX_TOTAL_BYTES", 1)
    (first,) = folder.iterdir()
    load(LEDUC)
    (left,) = folder.iterdir()
    assert left != first


def test_a_directory_that_cannot_be_written_is_ignored(folder, tmp_path):
    (tmp_path / "kuhn-bridge").write_text("in the way")
    assert_same(load(LEDUC), tree(LEDUC))


def test_a_kept_tree_that_is_too_large_is_refused_all_the_same(folder):
    load(LEDUC)
    with pytest.raises(ValueError, match="too large for a tree"):
        load(LEDUC, max_nodes=1_000)


def _keep(home):
    os.environ["XDG_CACHE_HOME"] = home
    cache.MIN_NODES = 100
    for _ in range(10):
        load(KUHN3)
        for path in cache.directory().glob("*.tree"):
            path.unlink(missing_ok=True)


def test_two_writers_and_a_reader(folder, tmp_path):
    """Whatever others do to the file, what is read is the tree."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_keep, args=(str(tmp_path),)) for _ in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert_same(load(KUHN3), tree(KUHN3))
    assert [writer.exitcode for writer in writers] == [0, 0]


def test_the_command(folder, capsys):
    arguments = ["--game", DICE, "--iterations", "1", "--json"]
    assert main([*arguments, "--no-cache"]) == 0
    assert not folder.exists()
    assert main([*arguments, "--max-nodes", "20000"]) == 0
    assert len(list(folder.iterdir())) == 1
    capsys.readouterr()
