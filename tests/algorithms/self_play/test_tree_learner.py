"""Learning on a tree: what is played, what a stock network is fitted to, averages, a good start."""

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO

import kuhn_bridge as kb
from algorithms.compiled.nashconv import nash_conv
from algorithms.games import load_game
from algorithms.self_play.callback import SelfPlay
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.self_play.settings import configure
from algorithms.self_play.table_ppo import TableActorPolicy, TablePPO
from algorithms.self_play.training_run import Training
from algorithms.self_play.tree_learner import AveragePolicy, others_reach
from tests.games import LEDUC

KUHN = load_game("kuhn")


def trained(**settings):
    made = Training(configure(settings))
    made.run()
    return made


def stock_model(n_envs=64, game="kuhn", **options):
    return MaskablePPO(
        "MlpPolicy",
        SelfPlayVecEnv(n_envs, game),
        n_steps=4,
        batch_size=128,
        n_epochs=1,
        device="cpu",
        seed=0,
        **options,
    )


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"steps": 1_000_000}, 0.02),
        ({"game": LEDUC, "steps": 1_000_000}, 0.5),
        ({"game": "kuhn_poker(players=3)", "steps": 500_000}, 0.1),
    ],
)
def test_training_approaches_an_equilibrium(settings, most):
    end = trained(**settings).recorder.points[-1]
    assert end.average < most


def test_another_seed_gives_another_policy_and_the_same_seed_the_same():
    first, again, other = (trained(steps=50_000, seed=seed).learner.average for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


# What is played


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_callback_can_ask_what_the_table_plays(deterministic):
    """The model that it sees plays what the learner has told it, and predicts the same."""
    env = SelfPlayVecEnv(1, LEDUC, infoset_numbers=True)
    model = TablePPO(TableActorPolicy, env, policy_kwargs={"game": env.game}, device="cpu")
    table = kb.Policy.random(LEDUC, 3).table
    model.policy.set_table(table)
    infoset = 17
    actions, _ = model.predict(np.full((20_000, 1), infoset), deterministic=deterministic)
    frequencies = np.bincount(actions, minlength=3) / len(actions)
    expected = np.eye(3)[table[infoset].argmax()] if deterministic else table[infoset]
    assert frequencies == pytest.approx(expected, abs=0.02)


def test_a_table_plays_its_probabilities_and_says_them():
    model = Training(configure({"n_envs": 2})).model
    policy = model.policy
    assert isinstance(policy, TableActorPolicy)
    table = KUHN.tree.random(3)
    policy.set_table(table)
    infosets = torch.arange(12).repeat(2000)
    actions, _, log_probabilities = policy(infosets[:, None].float())
    chosen = table[infosets, actions]
    assert log_probabilities.exp().numpy() == pytest.approx(chosen, abs=1e-6)
    counts = np.zeros(table.shape)
    np.add.at(counts, (infosets.numpy(), actions.numpy()), 1)
    assert np.abs(counts / 2000 - table).max() < 0.05


def test_what_is_played_explores():
    learner = trained(steps=50_000, exploration=0.4).learner
    uniform = KUHN.tree.uniform()
    assert learner.behaviour == pytest.approx(0.6 * learner.last + 0.4 * uniform)


def test_a_stock_policy_explores_while_it_plays_and_only_then():
    model = stock_model()
    callback = SelfPlay(exploration=0.5)
    callback.init_callback(model)
    learner = callback.learner
    with torch.no_grad():
        model.policy.action_net.bias.copy_(torch.tensor([9.0, 0.0, 0.0]))  # always to check or call
    observations = torch.tensor(KUHN.observations).repeat(500, 1)
    masks = np.tile(KUHN.tree.legal, (500, 1))
    before = model.policy.forward
    with learner.exploring(), torch.no_grad():
        actions, _, log_probabilities = model.policy(observations, action_masks=masks)
    assert model.policy.forward == before
    random = actions.numpy() != 0
    assert random.mean() == pytest.approx(0.25, abs=0.03)  # half of the random half
    assert log_probabilities.exp().numpy()[random] == pytest.approx(0.25, abs=0.01)
    assert masks[np.arange(len(masks)), actions.numpy()].all()


# What a stock network is fitted to


def test_the_gradient_of_a_stock_policy_is_that_of_a_cross_entropy_with_the_average():
    model = stock_model(vf_coef=0.0, ent_coef=0.0, max_grad_norm=1e9)
    callback = SelfPlay()
    gradients = []

    class Watched(torch.optim.SGD):
        """An optimizer that keeps the gradients of the actor's last layer."""

        def step(self, closure=None):
            gradients.append(model.policy.action_net.weight.grad.clone())

    model.policy.optimizer = Watched(model.policy.parameters(), lr=0.0)
    model.batch_size = 256  # a rollout is one batch, or a little less where decisions are carried
    model.learn(64 * 4 * 3, callback=callback)
    learner = callback.learner
    buffer = callback._buffer
    batch = buffer.batch
    targets = torch.from_numpy(learner.average).float()
    # The average was taken before the last rollout; it is what the rollout was fitted to.
    infosets = KUHN.tree.infoset[buffer.batch_nodes].astype(int)
    distribution = model.policy.get_distribution(batch.observations, batch.action_masks.numpy())
    logs = distribution.distribution.logits
    loss = -(targets[infosets] * torch.where(logs < -1e6, 0.0, logs)).sum(dim=1).mean()
    (expected,) = torch.autograd.grad(loss, [model.policy.action_net.weight])
    gradient = gradients[-1]
    cosine = torch.cosine_similarity(expected.flatten(), gradient.flatten(), dim=0)
    assert cosine > 0.98
    assert gradient.norm() / expected.norm() == pytest.approx(1, abs=0.3)


def test_a_stock_network_follows_the_average():
    model = stock_model(256, learning_rate=1e-3)
    model.n_epochs = 4
    callback = SelfPlay()
    model.learn(60_000, callback=callback)
    policy = kb.Policy.from_sb3(model)
    assert policy.nash_conv() < 0.2
    assert np.abs(policy.table - callback.average_policy.table).max() < 0.35


# Averages


def test_an_average_plays_like_one_of_its_policies_drawn_for_the_whole_hand():
    bets = np.where(KUHN.tree.legal[:, 1:2], np.eye(3)[1], np.eye(3)[0])
    checks = np.eye(3)[np.zeros(12, int)]
    average = AveragePolicy(KUHN.tree)
    average.add(bets)
    assert (average.table[9:] == KUHN.tree.uniform()[9:]).all()  # where no policy arrives
    average.add(checks)  # counts four times
    assert average.table[0].tolist() == pytest.approx([0.8, 0.2, 0])
    assert average.table[9:] == pytest.approx(checks[9:])  # only who checked is asked again


# A policy to start from


def test_others_reach_is_what_chance_and_the_others_play():
    tree = KUHN.tree
    table = tree.random(1)
    reach = others_reach(tree, table)
    after_a_bet = tree.keys.index("0b")  # player_1 with J, after a bet with Q or K
    bets = [table[tree.keys.index(card), 1] for card in "12"]
    assert reach[after_a_bet] == pytest.approx((bets[0] + bets[1]) / 6)
    assert reach[tree.keys.index("0")] == pytest.approx(1 / 3)


def test_a_good_policy_is_where_training_starts_and_a_bad_one_is_not():
    good = kb.solve("kuhn", iterations=100).table
    bad = np.where(KUHN.tree.legal[:, 1:2], np.eye(3)[1], np.eye(3)[2])  # bet, and fold to a bet
    assert nash_conv(KUHN.tree, bad) > nash_conv(KUHN.tree, KUHN.tree.uniform())
    for table, start in ((good, good), (bad, KUHN.tree.uniform())):
        training = Training(configure({"n_envs": 64}))
        learner = training.learner
        learner.start_from(table)
        learner.start(total_steps=1_000_000)
        assert learner.last == pytest.approx(start)
