"""Register a game of your own with OpenSpiel, solve it, train on it and measure the result.

The game: player_0 gets an ace or a king and either folds, which costs its ante of 1, or bets 1. If
player_1 calls, the ace wins 2 and the king loses 2; if player_1 folds, player_0 wins 1. In
equilibrium player_0 always bets the ace and bets the king one time in three, player_1 calls two
times in three, and player_0 wins 1/3 of a chip per hand.

Importing this file registers the game, and every command can import it:

    kuhn-bridge train-ppo --game python_ace_king --import own_game.py --steps 500000
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import torch
from sb3_contrib import MaskablePPO

import kuhn_bridge as kb
from kuhn_bridge.sb3 import SelfPlay, SelfPlayVecEnv

NAME = "python_ace_king"
FOLD = 0
BET_OR_CALL = 1
ACE = 1
STEPS = 200_000  # few, to be quick

_TYPE = pyspiel.GameType(
    short_name=NAME,
    long_name="Ace or king",
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
_INFO = pyspiel.GameInfo(
    num_distinct_actions=2,
    max_chance_outcomes=2,
    num_players=2,
    min_utility=-2.0,
    max_utility=2.0,
    utility_sum=0.0,
    max_game_length=2,
)


class AceKing(pyspiel.Game):
    """The game, as OpenSpiel needs it."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        super().__init__(_TYPE, _INFO, params or {})

    def new_initial_state(self) -> AceKingState:
        """The state before the deal."""
        return AceKingState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Observer:
        """What the players observe."""
        return Observer()


class AceKingState(pyspiel.State):
    """The steps so far: the card, player_0's action, player_1's action."""

    def __init__(self, game: AceKing) -> None:
        super().__init__(game)
        self.steps: list[int] = []

    def current_player(self) -> int:
        """Chance, player 0, player 1, in this order."""
        if self.is_terminal():
            return int(pyspiel.PlayerId.TERMINAL)
        return (int(pyspiel.PlayerId.CHANCE), 0, 1)[len(self.steps)]

    def is_terminal(self) -> bool:
        """After player_0's fold, or when player_1 has acted."""
        return len(self.steps) == 3 or self.steps[1:] == [FOLD]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """King or ace."""
        return [(0, 0.5), (ACE, 0.5)]

    def returns(self) -> list[float]:
        """The net chips of both players."""
        if not self.is_terminal():
            return [0.0, 0.0]
        card, *moves = self.steps
        if moves == [FOLD]:
            won = -1.0
        elif moves == [BET_OR_CALL, FOLD]:
            won = 1.0
        else:
            won = 2.0 if card == ACE else -2.0
        return [won, -won]

    def _legal_actions(self, player: int) -> list[int]:
        return [FOLD, BET_OR_CALL]

    def _apply_action(self, action: int) -> None:
        self.steps.append(action)

    def _action_to_string(self, player: int, action: int) -> str:
        return ("king", "ace")[action] if player < 0 else ("fold", ("bet", "call")[player])[action]

    def __str__(self) -> str:
        return " ".join(map(str, self.steps))


class Observer:
    """player_0 observes its card, player_1 nothing; as a tensor of two numbers and as a string."""

    def __init__(self) -> None:
        self.tensor = np.zeros(2, np.float32)
        self.dict = {"card": self.tensor}

    def set_from(self, state: AceKingState, player: int) -> None:
        """[king, ace] for player_0, [0, 0] for player_1."""
        self.tensor[:] = 0
        if player == 0 and state.steps:
            self.tensor[state.steps[0]] = 1

    def string_from(self, state: AceKingState, player: int) -> str:
        """The same as a string."""
        return ("king", "ace")[state.steps[0]] if player == 0 and state.steps else "faces a bet"


if NAME not in pyspiel.registered_names():
    pyspiel.register_game(_TYPE, AceKing)


def main() -> None:
    """Solve the game, train on it for a few seconds, and print both results."""
    solved = kb.solve(NAME, "pcfr+", iterations=1_000)
    game = solved.game
    print(f"solved: value {solved.measure().values[0]:+.4f}")
    for infoset, row in enumerate(solved.table):
        label = game.infoset_label(infoset)
        action = game.action_label(infoset, BET_OR_CALL)
        print(f"  {label}: {action} {row[BET_OR_CALL]:.3f}")

    torch.set_num_threads(1)
    callback = SelfPlay()
    model = MaskablePPO(
        "MlpPolicy",
        SelfPlayVecEnv(1_024, NAME),
        n_steps=2,
        batch_size=2_048,
        n_epochs=1,
        learning_rate=1.0,
        policy_kwargs={"optimizer_class": torch.optim.SGD, "optimizer_kwargs": {}},
        seed=0,
        device="cpu",
    )
    model.learn(STEPS, callback=callback)
    first = callback.curve[0]
    last = callback.curve[-1]
    print(
        f"trained: NashConv {first.last:.3f} at the start, {last.average:.3f} after {last.steps:,}"
    )


if __name__ == "__main__":
    main()
