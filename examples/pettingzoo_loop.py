"""PettingZoo's usual loop on our environment: a random player against one that never bluffs."""

from __future__ import annotations

from collections import Counter

from kuhn_bridge import Action, kuhn_v0

HANDS = 2_000


def never_bluff(card: int, facing_bet: bool) -> Action:
    """Bet the king, call with queen and king, otherwise check or fold."""
    if facing_bet:
        return Action.FOLD if card == 0 else Action.CHECK_OR_CALL
    return Action.BET if card == 2 else Action.CHECK_OR_CALL


def main() -> None:
    """Play some hands and print what each agent won."""
    env = kuhn_v0.env()
    for agent in env.possible_agents:
        env.action_space(agent).seed(0)
    env.reset(seed=0)  # one seed; every later reset deals the next hand
    won: Counter[str] = Counter()
    for _ in range(HANDS):
        env.reset()
        for agent in env.agent_iter():
            observation, reward, termination, truncation, _ = env.last()
            won[agent] += reward
            mask = observation["action_mask"]
            if termination or truncation:
                env.step(None)
            elif agent == "player_0":
                env.step(env.action_space(agent).sample(mask))
            else:
                card = int(observation["observation"][:3].argmax())
                env.step(never_bluff(card, facing_bet=bool(mask[Action.FOLD])))
    assert won["player_0"] + won["player_1"] == 0  # a zero-sum game
    print(f"player_1 won {won['player_1'] / HANDS:+.3f} chips per hand from a random player")


if __name__ == "__main__":
    main()
