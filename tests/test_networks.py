"""The policy classes of training: SB3's own numbers, from fewer rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from algorithms.games import load_game
from algorithms.learning.networks import DistinctPolicy, RowPolicy, distinct
from algorithms.learning.rows import ObservationIndex
from algorithms.learning.selfplay import SelfPlayVecEnv
from kuhn_bridge import BridgeError

GAMES = ("kuhn", "leduc_poker")


def batch(name: str, size: int = 3000) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows, what is seen there, and what is legal."""
    game = load_game(name)
    rows = torch.as_tensor(np.random.default_rng(0).integers(0, len(game.tree.keys), size))
    return rows, torch.tensor(game.observations)[rows], torch.tensor(game.tree.legal)[rows]


def policy(kind: type, name: str, **kwargs) -> MaskableActorCriticPolicy:
    environment = SelfPlayVecEnv(1, name)
    torch.manual_seed(3)
    spaces = environment.observation_space, environment.action_space
    made = kind(*spaces, lambda _: 0.1, **kwargs)
    with torch.no_grad():
        made.action_net.weight.mul_(100)  # far from uniform
    return made


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("size", [300, 3000])  # fewer and more than Leduc has rows
def test_losses_and_gradients_are_those_of_sb3(name: str, size: int) -> None:
    rows, seen, masks = batch(name, size)
    theirs = policy(MaskableActorCriticPolicy, name)
    ours = {
        policy(DistinctPolicy, name): seen,
        policy(RowPolicy, name, game=load_game(name)): rows[:, None].float(),
    }
    actions = theirs(seen, action_masks=masks.numpy())[0]
    weights = torch.linspace(-1, 1, size)
    for made, shown in (*ours.items(), (theirs, seen)):
        values, log_probs, entropy = made.evaluate_actions(shown, actions, masks)
        (weights @ (values[:, 0] + log_probs + entropy)).backward()
    for made in ours:
        for mine, other in zip(made.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(mine.grad, other.grad, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", [DistinctPolicy, RowPolicy])
def test_actions_come_with_their_probabilities(kind: type) -> None:
    rows, seen, masks = batch("leduc_poker", 1)
    game = load_game("leduc_poker")
    theirs = policy(MaskableActorCriticPolicy, "leduc_poker")
    made = policy(kind, "leduc_poker", **({"game": game} if kind is RowPolicy else {}))
    made.set_training_mode(False)
    shown = rows[:, None].float() if kind is RowPolicy else seen
    torch.manual_seed(0)
    many = 20_000
    actions, values, log_probs = made(shown.expand(many, -1), action_masks=masks.expand(many, -1))
    wanted = theirs.get_distribution(seen, masks.numpy()).distribution.probs[0]
    assert torch.allclose(torch.bincount(actions, minlength=3) / many, wanted, atol=0.02)
    assert torch.allclose(log_probs.exp(), wanted[actions], atol=1e-6)
    assert torch.allclose(values, theirs.predict_values(seen), atol=1e-6)
    if kind is RowPolicy:
        assert np.allclose(made.probabilities()[rows[0]], wanted.detach(), atol=1e-6)
        assert torch.allclose(made.predict_values(shown), values[:1])


def test_a_row_policy_plays_what_it_has_just_learned() -> None:
    game = load_game("kuhn")
    made = policy(RowPolicy, "kuhn", game=game, table=True, net_arch=[])
    row = torch.zeros(1, 1)
    made.set_training_mode(False)
    assert made.probabilities()[0].tolist() == [0.5, 0.5, 0]
    made(row)
    made.set_training_mode(True)
    with torch.no_grad():
        made.action_net.weight[0, 1] = 50.0
    made.set_training_mode(False)
    assert made(row.expand(100, 1))[0].tolist() == [1] * 100


@pytest.mark.parametrize("size", [1, 10, 53, 54, 200])
def test_distinct_rows_and_their_places(size: int) -> None:
    rows = torch.randint(0, 2, (200, size)).float()
    rows[0], rows[1] = 0, 0
    rows[1, -1] = 1  # two rows that differ in the last bit alone
    some, which = distinct(rows)
    assert (some[which] == rows).all()
    assert len(torch.unique(some, dim=0)) == len(some)
    assert which[0] != which[1]


def test_distinct_rows_of_any_numbers() -> None:
    rows = torch.randn(50, 7).repeat(3, 1)
    some, which = distinct(rows)
    assert (some[which] == rows).all()
    assert len(some) == 50


@pytest.mark.parametrize(
    "name", ["kuhn", "leduc_poker", "goofspiel(imp_info=True,num_cards=4,points_order=descending)"]
)
def test_every_tensor_is_found_again(name: str) -> None:
    seen = load_game(name).observations
    find, order = ObservationIndex(seen), np.random.default_rng(0).permutation(len(seen))
    assert (find(seen[order]) == order).all()
    with pytest.raises(BridgeError, match="no player"):
        find(seen[:1] + 0.5)


def test_a_negative_zero_is_a_zero_and_no_strange_tensor_is_found() -> None:
    seen = load_game("kuhn").observations
    find = ObservationIndex(seen)
    assert find(np.where(seen == 0, np.float32(-0.0), seen)).tolist() == list(range(12))
    for strange in np.random.default_rng(0).random((100, 1, 10), np.float32):
        with pytest.raises(BridgeError, match="no player to act can see"):
            find(strange)
