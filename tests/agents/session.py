"""Starts the agents, kills the server while they send, and counts. Called by run.py in its environment.

usage: session.py BINARY DIRECTORY_OF_NODE SCRATCH_DIRECTORY [AGENT ...]
"""
import concurrent.futures
import os
import pathlib
import random
import sys
import threading
import time

from agent import Agent, Outcome
from lines import InfluxDb1, InfluxDb2, Telegraf
from messages import Mqtt
from otlp import Collector, JavaScript, Python
from scrapes import Collectd, NodeExporter
from service import Service

AGENTS: tuple[type[Agent], ...] = (
    NodeExporter, Collectd, Mqtt, InfluxDb2, InfluxDb1, Telegraf, Python, JavaScript, Collector,
)
# One kill in so many seconds, and two at least.
SECONDS_PER_KILL = 15
# The part of the load in which the server is killed: at its end the agents must get rid of what they have.
KILLING = 0.75
# For an agent to have a request under way.
MOMENT_SECONDS = 5
FAULTS_SHOWN = 10


def kills(service: Service, agents: list[Agent], seconds: float, chance: random.Random) -> int:
    """Kills the server again and again, each time while another agent is being answered.

    Where it starts slowly, the load is over before all kills are done.
    """
    began = time.monotonic()
    count = max(2, round(seconds / SECONDS_PER_KILL))
    pause = threading.Event()
    # Each once before any is there twice.
    victims = [agent for _ in range(count) for agent in chance.sample(agents, len(agents))]
    done = 0
    for number in range(count):
        moment = seconds * KILLING * (number + chance.uniform(0.2, 1)) / count
        pause.wait(max(0.0, began + moment - time.monotonic()))
        if done and time.monotonic() > began + seconds * KILLING:
            break
        # One that is silent for so long is not waited for.
        victims[number].wire.wait_for_request(MOMENT_SECONDS)
        # Somewhere within the request.
        pause.wait(chance.uniform(0, 0.01))
        service.kill()
        for agent in agents:
            agent.wire.close()
        service.start()
        for agent in agents:
            agent.wire.open()
        done += 1
    pause.wait(max(0.0, began + seconds - time.monotonic()))
    return done


def session(service: Service, agents: list[Agent], seconds: float, chance: random.Random) -> bool:
    with concurrent.futures.ThreadPoolExecutor(len(agents)) as pool:
        list(pool.map(lambda agent: agent.start(), agents))
        killed = kills(service, agents, seconds, chance)
        list(pool.map(lambda agent: agent.finish(), agents))
    print(f"agents: {seconds:.0f} s, {killed} kills of the server")
    print(f"{'':38}{'requests':>9}{'repeated':>9}{'sent':>9}{'acknowl.':>9}{'stored':>9}{'lost':>6}{'doubled':>8}")
    outcomes = [report(agent) for agent in agents]
    return all(not outcome.faults for outcome in outcomes)


def report(agent: Agent) -> Outcome:
    outcome = agent.check()
    if outcome.sent == 0:
        outcome.faults.append("it has sent nothing")
    exchanges = agent.wire.exchanges
    # Of these the agent had no answer, although they were or may have been stored.
    untold = sum(not exchange.told for exchange in exchanges)
    figures = (outcome.sent, outcome.acknowledged, outcome.stored)
    print(f"  {agent.name:36}{len(exchanges):9}{untold:9}" + "".join(f"{figure:9}" for figure in figures)
          + f"{outcome.lost:6}{outcome.doubled:8}")
    for fault in outcome.faults[:FAULTS_SHOWN]:
        print(f"    {fault}")
    if len(outcome.faults) > FAULTS_SHOWN:
        print(f"    and {len(outcome.faults) - FAULTS_SHOWN} more")
    return outcome


def main() -> None:
    binary, node, scratch = map(pathlib.Path, sys.argv[1:4])
    wanted = set(sys.argv[4:])
    kinds = {kind.name.split(" ")[0]: kind for kind in AGENTS}
    if wanted - kinds.keys():
        sys.exit(f"no such agent: {', '.join(wanted - kinds.keys())}; there are {', '.join(kinds)}")
    seconds = float(os.environ.get("AGENTS_SECONDS", 20))
    seed = int(os.environ.get("AGENTS_SEED", random.SystemRandom().randrange(2**31)))
    print(f"AGENTS_SEED={seed}", flush=True)
    JavaScript.node, Mqtt.binary = node, binary
    service = Service(binary, scratch)
    agents: list[Agent] = []
    try:
        agents += [kind(service, scratch, seconds) for name, kind in kinds.items() if not wanted or name in wanted]
        is_well = session(service, agents, seconds, random.Random(seed))
    finally:
        for agent in agents:
            agent.stop()
        service.stop()
    for fault in service.faults:
        print(fault)
    sys.exit(0 if is_well and not service.faults else 1)


if __name__ == "__main__":
    main()
