"""A game of one's own, from its rules in Python to the NashConv of a trained model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyspiel
import pytest

from algorithms import nashconv, train_ppo

NAME = "python_one_card_of_two"
TYPE = pyspiel.GameType(
    short_name=NAME,
    long_name="One card of two, one bet",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=False,
    provides_observation_tensor=False,
)
INFO = pyspiel.GameInfo(
    num_distinct_actions=2,
    max_chance_outcomes=2,
    num_players=2,
    min_utility=-2.0,
    max_utility=2.0,
    utility_sum=0.0,
    max_game_length=2,
)


class OneCard(pyspiel.Game):
    """Player 0 is dealt a good or a bad card and may bet; player 1, who has none, may call.

    Without a bet the card decides over 1 chip, and a called bet over 2; who folds loses 1.
    """

    def __init__(self, params=None):
        super().__init__(TYPE, INFO, params or {})

    def new_initial_state(self):
        return OneCardState(self)

    def make_py_observer(self, iig_obs_type=None, params=None):
        return OneCardSight()


class OneCardState(pyspiel.State):
    def __init__(self, game):
        super().__init__(game)
        self.moves = []

    def current_player(self):
        if self.is_terminal():
            return pyspiel.PlayerId.TERMINAL
        return [pyspiel.PlayerId.CHANCE, 0, 1][len(self.moves)]

    def _legal_actions(self, player):
        return [0, 1]

    def chance_outcomes(self):
        return [(0, 0.5), (1, 0.5)]

    def _apply_action(self, action):
        self.moves.append(action)

    def is_terminal(self):
        return self.moves[1:2] == [0] or len(self.moves) == 3

    def returns(self):
        if not self.is_terminal():
            return [0.0, 0.0]
        card, *bets = self.moves
        won = 1.0 if bets == [1, 0] else (1 + sum(bets) // 2) * (2.0 * card - 1)
        return [won, -won]

    def _action_to_string(self, player, action):
        return ["stay", "go"][action]

    def __str__(self):
        return str(self.moves)


class OneCardSight:
    """What a player sees: who it is, its card, and whether there was a bet."""

    def __init__(self):
        self.tensor = np.zeros(5, np.float32)
        self.dict = {"sight": self.tensor}

    def set_from(self, state, player):
        self.tensor[:] = 0
        self.tensor[player] = 1
        if player == 0 and state.moves:
            self.tensor[2 + state.moves[0]] = 1
        self.tensor[4] = len(state.moves) > 1

    def string_from(self, state, player):
        return f"{player}:{state.moves[:1] if player == 0 else ''}{state.moves[1:]}"


if NAME not in pyspiel.registered_names():
    pyspiel.register_game(TYPE, OneCard)


@pytest.mark.parametrize("net", ["table", "mlp"])
def test_a_game_of_ones_own_is_trained_and_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], net: str
) -> None:
    """With a bad card bet one time in three, call two times in three: worth 1/3 to player 0."""
    out = str(tmp_path / "model.zip")
    steps = ["--steps", "400000", "--n-envs", "1024", "--quiet"]
    assert train_ppo.main(["--game", NAME, "--net", net, "--out", out, *steps]) == 0
    assert nashconv.main([out, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["game"] == NAME
    assert result["nash_conv"] < 0.1  # uniform: 0.75; measured over seeds 0 to 4: below 0.03
    assert result["values"][0] == pytest.approx(1 / 3, abs=0.05)
    players = result["players"]
    assert players[0]["0:[0][]"]["1"] == pytest.approx(1 / 3, abs=0.1)
