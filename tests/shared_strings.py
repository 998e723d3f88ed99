"""A small Python OpenSpiel game in which both players have information states of the same name.

Chance is loaded and moves in the middle too, a player moves twice in a row, and the payoffs are
general-sum: what no game of cards shows at once.
"""

import numpy as np
import pyspiel

SHARED = "python_shared_strings"

_TYPE = pyspiel.GameType(
    SHARED,
    "Two players, one string",
    pyspiel.GameType.Dynamics.SEQUENTIAL,
    pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    pyspiel.GameType.Utility.GENERAL_SUM,
    pyspiel.GameType.RewardModel.TERMINAL,
    *(2, 2),  # players
    *(True, True, False, False),  # information state string and tensor, observation
)
# 3 actions, 3 chance outcomes, 2 players, returns from -6 to 6 of no fixed sum, 3 moves
_INFO = pyspiel.GameInfo(3, 3, 2, -6.0, 6.0, None, 3)
# Who moves after so many steps, and how likely chance's outcomes are.
_TURNS = (-1, 0, 0, -1, 1)
_CHANCE = {0: (0.7, 0.3), 3: (0.25, 0.25, 0.5)}


class SharedGame(pyspiel.Game):
    def __init__(self, params=None):
        super().__init__(_TYPE, _INFO, params or {})

    def new_initial_state(self):
        return SharedState(self)

    def make_py_observer(self, iig_obs_type=None, params=None):
        return SharedObserver()


class SharedState(pyspiel.State):
    def __init__(self, game):
        super().__init__(game)
        self.steps = []

    def current_player(self):
        return (*_TURNS, int(pyspiel.PlayerId.TERMINAL))[len(self.steps)]

    def is_terminal(self):
        return len(self.steps) == len(_TURNS)

    def chance_outcomes(self):
        return list(enumerate(_CHANCE[len(self.steps)]))

    def _legal_actions(self, player):
        return [0, 2] if len(self.steps) == 1 else [0, 1, 2]

    def _apply_action(self, action):
        self.steps.append(action)

    def _action_to_string(self, player, action):
        return f"move {action}"

    def returns(self):
        if not self.is_terminal():
            return [0.0, 0.0]
        coin, first, second, die, last = self.steps
        fits = float((first + second + die) % 3 == last)
        return [2.0 * coin - fits + 0.5 * first, 3.0 * fits - second]

    def __str__(self):
        return " ".join(map(str, self.steps))


class SharedObserver:
    """Player 0 sees the coin and its moves; player 1 sees the die, and calls it the same."""

    def __init__(self):
        self.tensor = np.zeros(9, np.float32)
        self.dict = {"seen": self.tensor}

    def set_from(self, state, player):
        seen = self._seen(state, player)
        self.tensor[:] = 0
        self.tensor[player] = 1
        self.tensor[2 : 2 + len(seen)] = np.array(seen) + 1
        self.tensor[8] = len(seen)

    def string_from(self, state, player):
        return "saw " + " ".join(map(str, self._seen(state, player)))

    def _seen(self, state, player):
        return state.steps[:3] if player == 0 else state.steps[3:4]


if SHARED not in pyspiel.registered_names():
    pyspiel.register_game(_TYPE, SharedGame)
