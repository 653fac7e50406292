# SPDX-License-Identifier: Apache-2.0
"""understudy run --schedule: tasks of different streams in any legal order, repeated by its seed."""

import re

import pytest
from conftest import BUILD
from programs import python

PROGRAM = BUILD / "bin/command_scheduled_streams"
GRAPHS = BUILD / "bin/command_order_graphs"
SUMMARY = re.compile(r"understudy: schedule: (?P<spec>\S+) ran (?P<tasks>\d+) tasks? of "
                     r"(?P<streams>\d+) streams?, (?P<others>\d+) times? in another order than they "
                     r"were queued(?P<late>; \d+ ran because the program took long, and may come "
                     r"elsewhere)?; repeat with --schedule (?P=spec)\n")


@pytest.fixture
def scheduled(understudy):
    """scheduled(scenario, schedule): what the scenario prints, and what is told at the end."""
    def run(scenario, schedule):
        done = understudy("run", "--schedule", schedule, "--", PROGRAM, scenario)
        told = SUMMARY.fullmatch(done.stderr)
        assert done.returncode == 0 and told, done.stderr
        return done.stdout.strip(), told
    return run


def keeps_stream_order(order):
    """Whether the letters come in their order, and the digits in theirs."""
    return (re.sub("[^a-z]", "", order), re.sub("[^0-9]", "", order)) == ("abcde", "12345")


def test_seed_repeats_the_order(scheduled):
    for seed in range(20):
        for scenario in ("letters", "value", "polls", "destroyed", "nested"):
            first, told = scheduled(scenario, f"seed={seed}")
            if not told["late"]:
                assert scheduled(scenario, f"seed={seed}")[0] == first, (scenario, seed)


def test_seeds_have_different_orders_of_which_all_are_legal(scheduled):
    orders = [scheduled("letters", f"seed={seed}")[0] for seed in range(1, 21)]
    assert all(keeps_stream_order(order) for order in orders), orders
    assert len(set(orders)) > 5
    assert "abcde|12345" in orders, "a stream may be left alone until it is waited for"
    assert "12345abcde|" in orders, "or do all that it has before"


def test_seed_0_is_the_order_in_which_tasks_were_queued(scheduled):
    order, told = scheduled("many", "seed=0")
    assert order.split() == [str(stream) for stream in range(64) for _ in range(3)]
    assert told["others"] == "0"
    assert scheduled("letters", "seed=0")[0] == "abcde|12345"
    assert scheduled("missing", "seed=0,slow=0:9x")[0] == "2"


def test_what_was_done_is_told(scheduled, understudy):
    _, told = scheduled("letters", "seed=7")
    assert (told["spec"], told["tasks"], told["streams"]) == ("seed=7", "10", "2")
    _, told = scheduled("many", "seed=7,slow=3:4x")
    assert (told["spec"], told["tasks"], told["streams"]) == ("seed=7,slow=3:4x", "192", "64")
    assert int(told["others"]) > 100
    idle = understudy("run", "--schedule", "seed=1", "--",
                      *python("import ctypes; ctypes.CDLL('libascendcl.so').aclInit(None)"))
    assert SUMMARY.fullmatch(idle.stderr)["tasks"] == "0"
    assert understudy("run", "--", PROGRAM, "letters").stderr == ""


def test_it_is_told_before_a_check_ends_the_process(understudy):
    run = understudy("run", "--schedule", "seed=1", "--check=order", "--", GRAPHS, "planted", "1")
    assert run.returncode == 86 and SUMMARY.search(run.stderr), run.stderr
    assert run.stderr.index("schedule: ") < run.stderr.index("check: 1 finding")


@pytest.mark.parametrize("scenario, right, wrong", [("missing", "2", "1"),
                                                    ("wrong_stream", "x1", "x0")])
def test_missing_wait_shows(scheduled, scenario, right, wrong):
    seen = {scheduled(scenario, f"seed={seed}")[0] for seed in range(20)}
    assert seen == {right, wrong}


@pytest.mark.parametrize("scenario", ["event", "notify"])
def test_program_that_waits_is_right_with_every_seed(understudy, scenario):
    run = understudy("run", "--schedule", "sweep=100", "--", PROGRAM, scenario, timeout=300)
    assert (run.returncode, run.stdout) == (0, "2\n100 of 100 seeds change nothing\n"), run.stderr


def test_slow_stream_is_chosen_less_often(scheduled):
    def ahead(schedule):
        """How many tasks of the second stream run while the first one is waited for."""
        orders = (scheduled("letters", schedule.format(seed))[0] for seed in range(1, 41))
        return sum(len(re.sub("[^0-9]", "", order.split("|")[0])) for order in orders)
    assert ahead("seed={},slow=1:20x") < ahead("seed={}") < ahead("seed={},slow=0:20x")


@pytest.mark.parametrize("scenario, right", [
    ("value", {"1w|2", "12w|", "1w2|"}),  # the last where a function takes long to return
    ("spins", {"1"}),
    ("callback", {"ab1", "a1b", "1ab"}),
    ("blocked", {"p"}),
    ("nested", {"(12)", "1(2)", "12()"}),
    ("aborted", {"b1", "1b"}),
    ("reset", {"aa"}),
    ("finalized", {""}),
    ("full", {"63"}),
])
def test_legal_programs_keep_their_meaning(scheduled, scenario, right):
    seen = {scheduled(scenario, f"seed={seed}")[0] for seed in range(8)}
    assert seen <= right


def test_polling_loops_end(scheduled):
    for seed in range(20):
        polled, told = scheduled("polls", f"seed={seed}")
        assert re.fullmatch(r"\.*a\.*b\.+", polled) and not told["late"], polled


def test_program_that_makes_no_call_is_told(scheduled):
    assert scheduled("spins", "seed=1")[1]["late"].startswith("; 1 ran")


def test_fork_child_has_its_own_schedule(understudy):
    run = understudy("run", "--schedule", "seed=5", "--", PROGRAM, "forked")
    child, parent = run.stdout.splitlines()
    assert parent == child + "/0" and keeps_stream_order(child)
    assert len(SUMMARY.findall(run.stderr)) == 2


def test_checks_hold_in_any_order(understudy):
    for seed in range(1, 6):
        run = understudy("run", "--check=order", "--schedule", f"seed={seed}", "--", GRAPHS,
                         "legal", seed, 10)
        assert run.returncode == 0 and "error" not in run.stderr, run.stderr
        planted = understudy("run", "--check=order", "--schedule", f"seed={seed}", "--", GRAPHS,
                             "planted", seed)
        assert planted.returncode != 0 and SUMMARY.search(planted.stderr)


def test_sweep_tells_which_seeds_change_the_outcome(understudy):
    run = understudy("run", "--memory", "2G", "--schedule", "sweep=12,slow=5:2x", "--", PROGRAM,
                     "missing", timeout=120)
    lines = run.stdout.splitlines()
    assert run.returncode == 1
    assert lines[0] == "2"  # of the run in the order of the queue
    assert lines[1].split() == ["SEED", "OUTCOME", "REPEAT", "WITH"]
    changed = [line.split(maxsplit=3) for line in lines[2:-1]]
    assert lines[-1] == f"{12 - len(changed)} of 12 seeds change nothing"
    seed, *outcome, command = changed[0]
    assert outcome == ["another", "output"]
    assert command == (f"understudy run --schedule seed={seed},slow=5:2x --memory=2G -- {PROGRAM} "
                       "missing")
    assert understudy(*command.split()[1:]).stdout.strip() != lines[0]


def test_sweep_tells_other_exit_statuses(understudy):
    run = understudy("run", "--schedule", "sweep=3", "--", "sh", "-c",
                     'case $UNDERSTUDY_SCHEDULE in *2) exit 7;; *3) kill -SEGV $$;; esac')
    rows = [re.split("  +", line.strip()) for line in run.stdout.splitlines()]
    assert run.returncode == 1
    assert [row[:2] for row in rows[1:-1]] == [["2", "ends with status 7"],
                                               ["3", "killed: Segmentation fault"]]
    assert rows[1][2].startswith("understudy run --schedule seed=2 -- sh -c 'case ")
    assert rows[-1] == ["1 of 3 seeds change nothing"]


def test_program_that_is_missing_is_not_swept(understudy):
    run = understudy("run", "--schedule", "sweep=3", "--", "no-such-program")
    assert run.returncode == 127 and run.stdout == ""


@pytest.mark.parametrize("schedule, words", [
    ("seed=x", '"seed=x" is not seed=N with a number'),
    ("7", '"7" is neither seed=N nor slow=STREAM:FACTORx'),
    ("slow=1:2x", "a seed is missing, such as seed=1"),
    ("seed=1,slow=3:0x", "a factor from 1 to 1000"),
    ("sweep=0", '"sweep=0" is not sweep=N with a number from 1 to 1000000'),
    ("sweep=2,seed=1", "a sweep has all seeds from 1 on, and no other"),
    ("sweep=2,fast", '"fast" is neither'),
])
def test_wrong_schedule_is_one_sentence(understudy, schedule, words):
    run = understudy("run", "--schedule", schedule, "--", "true")
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1 and words in run.stderr


def test_variable_does_not_sweep(understudy):
    run = understudy("run", "--", PROGRAM, "letters", env={"UNDERSTUDY_SCHEDULE": "sweep=3"})
    assert run.returncode == 2 and "a sweep of seeds is up to the command" in run.stderr


def test_two_sweeps_are_two_commands(understudy):
    run = understudy("run", "--schedule", "sweep=3", "--fail", "sweep", "--", "true")
    assert run.returncode == 2
    assert run.stderr == ("understudy run: --fail sweep and --schedule sweep are two commands\n")
