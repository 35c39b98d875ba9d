"""Tells the story in the VM. Every step says what is tried, what happened, and which event tells of it."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

WORLD = "10.77.0.2"
WEIR = "/usr/local/bin/weir"
EVENTS = "/run/demo/events.jsonl"
POLICY = f"version: 1\nevents:\n  file: {EVENTS}\n"
PATIENCE = 30  # seconds for what takes one or two
SETUP = """
ip netns add world
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip netns exec world sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link add wv0 type veth peer name wv1 netns world
ip addr add 10.77.0.1/24 dev wv0
ip link set wv0 up
ip -n world addr add 10.77.0.2/24 dev wv1
ip -n world link set wv1 up
"""


class Failed(Exception):
    """Something did not behave, and the story cannot go on."""


class Lines:
    """What a process prints, as it comes."""

    def __init__(self, pipe, show=None):
        self.all, self.changed, self.show = [], threading.Condition(), show
        threading.Thread(target=self.read, args=(pipe,), daemon=True).start()

    def read(self, pipe):
        for line in pipe:
            line = line.rstrip("\n")
            with self.changed:
                self.all.append(line)
                self.changed.notify_all()
            if self.show:
                self.show(line)

    def mark(self):
        with self.changed:
            return len(self.all)

    def since(self, mark, pattern=""):
        with self.changed:
            return [line for line in self.all[mark:] if re.search(pattern, line)]

    def wait(self, mark, pattern, what):
        with self.changed:
            if not self.changed.wait_for(lambda: any(re.search(pattern, l) for l in self.all[mark:]), PATIENCE):
                raise Failed(f"{what}: not within {PATIENCE} s")
        return self.since(mark, pattern)[0]


class Demo:
    def __init__(self):
        self.begin, self.step, self.fails, self.told, self.sentinels = time.monotonic(), 0, 0, 0, 0

    # What is printed.

    def title(self, text):
        self.step += 1
        print(f"\n{self.step}. {text}  [{time.monotonic() - self.begin:.1f} s]")

    def say(self, what, text):
        for line in text.rstrip("\n").split("\n"):
            print(f"   {what:9}{line}")
            what = ""

    def check(self, good, text):
        self.say("PASS" if good else "FAIL", text)
        self.fails += not good
        return good

    # The world.

    def world_starts(self):
        subprocess.run(["bash", "-ec", SETUP], check=True)
        world = subprocess.Popen(["ip", "netns", "exec", "world", "python3", "-IS", "/out/world.py"], stdout=subprocess.PIPE, text=True)
        self.world = Lines(world.stdout)
        self.world.wait(0, "^ready$", "start the world")

    def arrived(self, mark):
        """What arrived since the mark: all that was sent before has arrived when the sentinel has."""
        self.sentinels += 1
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"%d" % self.sentinels, (WORLD, 7999))
        self.world.wait(mark, f"^sentinel {self.sentinels}$", "hear the demo's own packet")
        return [l for l in self.world.since(mark) if not l.startswith(("sentinel", "reset"))]

    def nothing(self, mark):
        got = self.arrived(mark)
        self.check(not got, "the world heard nothing" if not got else f"the world heard {got[:5]}")

    # The sensor.

    def weir(self, *args):
        r = subprocess.run([WEIR, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        if r.returncode:
            raise Failed(f"weir {' '.join(args)}: exit {r.returncode}: {r.stdout}")
        return r.stdout

    def order(self, *args):
        self.say("tried", "weir " + " ".join(args))
        self.say("", self.weir(*args))

    def sensor_starts(self):
        ready, far = os.pipe()
        self.sensor = subprocess.Popen([WEIR, "run", "--policy", "/run/demo/policy.yaml", "--ready-fd", str(far)], pass_fds=[far])
        os.close(far)
        if os.read(ready, 1) == b"":
            raise Failed(f"weir run: exit {self.sensor.wait()}")
        os.close(ready)

    def events(self, *patterns):
        """Shows the new events that match, which must be there."""
        for end in (False, False, False, True):
            lines = self.weir("events", "--file", EVENTS).splitlines()[self.told:]
            found = [[l for l in lines if re.search(p, l)] for p in patterns]
            if all(found) or end:
                break
            time.sleep(0.3)
        self.told += len(lines)
        for pattern, match in zip(patterns, found):
            if match:
                self.say("event", match[0].partition("T")[2])
            else:
                self.check(False, f"no event /{pattern}/ among:\n" + "\n".join(lines))

    def question(self, text):
        """The open question of the command that text is part of."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for q in json.loads(self.weir("pending", "--json")):
                if text in " ".join(q["process"]["argv"]):
                    return q
            time.sleep(0.1)
        raise Failed(f"nobody is asked about {text}")

    # The agent.

    def agent_starts(self):
        agent = subprocess.Popen([WEIR, "guard", "--name", "demo", "--", "bash", "/out/agent.sh"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        self.guard = agent
        self.agent = Lines(agent.stdout, lambda line: None if line.startswith("=") else self.say("agent", line))
        self.steps = os.fdopen(os.open("/run/demo/steps", os.O_RDWR), "w", buffering=1)

    def do(self, step, tried):
        self.say("tried", tried)
        mark = self.agent.mark()
        self.steps.write(step + "\n")
        return mark

    def status(self, mark):
        return int(self.agent.wait(mark, "^=", "end the agent's command").split()[-1])

    # The story.

    def tell(self):
        os.mkdir("/run/demo", 0o700)
        os.mkfifo("/run/demo/steps", 0o600)
        with open("/run/demo/policy.yaml", "w") as f:
            f.write(POLICY)
        shutil.copy(sys.argv[1], WEIR)
        print(f"Linux {os.uname().release}. The world is a server at {WORLD}, in a network namespace that hears every packet.")
        self.title("The sensor starts, and an agent runs under `weir guard`; nothing is tainted")
        self.world_starts()
        self.say("tried", "weir run --policy policy.yaml &")
        self.sensor_starts()
        self.say("tried", "weir guard --name demo -- bash agent.sh &")
        self.agent_starts()
        mark = self.do("fetch notes", f"curl http://{WORLD}/notes")
        self.check(self.status(mark) == 0 and self.world.since(0, "^http /notes$"), "curl got its page")
        self.status(self.do("udp before", f"echo > /dev/udp/{WORLD}/7001"))
        self.do("stream", f"exec 4<>/dev/tcp/{WORLD}/7000, kept open")
        self.world.wait(0, "^udp udp before$", "hear the agent's datagram")
        self.world.wait(0, "^stream heard", "hear the agent's stream")
        self.check(True, "the world hears its datagram, and what it says on the long-lived connection")
        self.events(r" start ", r"exec .*curl.*/notes")

        self.title("The agent has read something untrusted: its container is tainted")
        mark = self.agent.mark()
        self.order("taint", "demo", "corruption", "--why", "read /notes")
        heard = self.world.mark()
        self.agent.wait(mark, "connection .* is broken", "break the old connection")
        self.check(True, "the connection that was open is cut: its process got an error")
        time.sleep(0.7)
        self.nothing(heard)
        self.events(r" taint ")

        self.title("With one bit of taint, the embedded reviewer decides")
        heard = self.world.mark()
        mark = self.do("fetch public", f"curl http://{WORLD}/public")
        self.check(self.status(mark) == 0 and self.world.since(heard, "^http /public$"), "a plain download was not flagged: curl got its page")
        self.events(r"verdict .*/public.*not_flagged")
        heard = self.world.mark()
        mark = self.do("send /etc/hosts", f"curl --data-binary @/etc/hosts http://{WORLD}/upload")
        self.check(self.status(mark) == 7, "an upload was flagged: curl could not connect")
        self.nothing(heard)
        self.events(r"connect .*/upload.*flagged")

        self.title("It has read a secret too. With both bits, the next curl is held in its connect, and a person lets exactly that one out")
        self.order("taint", "demo", "secret", "--why", "read a key")
        heard = self.world.mark()
        mark = self.do("fetch plan", f"curl http://{WORLD}/plan")
        q = self.question("/plan")
        shown = self.weir("pending")
        self.say("pending", shown)
        self.check(all(w in shown for w in ("curl", f"http://{WORLD}/plan", "started by bash", f"{WORLD}:80")) and q["held"],
                   "curl is held; program, argv, ancestry and destination are shown")
        self.nothing(heard)
        self.order("approve", q["id"], "--why", "the plan is public")
        self.check(self.status(mark) == 0 and self.world.since(heard, "^http /plan$"), "curl went on unaware and got its page")
        self.events(r"hold .*/plan", r"verdict .*allow", r" grant ")

        self.title("Another curl is refused")
        heard = self.world.mark()
        mark = self.do("fetch secrets", f"curl http://{WORLD}/secrets")
        self.order("deny", self.question("/secrets")["id"])
        self.check(self.status(mark) == 7, "curl could not connect (its exit status 7)")
        self.nothing(heard)
        self.events(r"verdict .*deny")

        self.title("Other ways out are no better")
        for step, tried, pattern in (
            ("python", "python3: socket.create_connection()", "python"),
            ("devtcp", f"bash: echo > /dev/tcp/{WORLD}/80", ":80/tcp"),
            ("udp tainted", f"bash: echo > /dev/udp/{WORLD}/7001", ":7001/udp"),
            ("raw", "python3, as root: socket(AF_INET, SOCK_RAW)", "socket family 2, type 3"),
        ):
            heard = self.world.mark()
            mark = self.do(step, tried)
            self.refuse(mark)
            self.check(self.status(mark) != 0, "it failed")
            self.nothing(heard)
            self.events(f"verdict .*{pattern}.*deny" if step != "raw" else f"deny .*{pattern}")

        self.title("The daemon is killed: who is tainted stays denied")
        pid = json.loads(self.weir("status", "--json"))["pid"]
        self.say("tried", f"kill -9 {pid}")
        os.kill(pid, signal.SIGKILL)
        self.sensor.wait(PATIENCE)
        heard = self.world.mark()
        mark = self.do("fetch orphan", f"curl http://{WORLD}/orphan")
        self.check(self.status(mark) == 7, "curl could not connect, with nobody there to ask")
        self.nothing(heard)
        self.say("event", "none: nobody is there to write it")

        self.title("The daemon starts again, and knows the taint")
        self.say("tried", "weir run --policy policy.yaml &")
        self.sensor_starts()
        self.order("containers")
        known = [c for c in json.loads(self.weir("containers", "--json")) if c.get("name") == "demo"]
        self.check(len(known) == 1 and known[0].get("taint") == ["corruption", "secret"], "demo is tainted: corruption and secret")
        heard = self.world.mark()
        mark = self.do("fetch again", f"curl http://{WORLD}/again")
        q = self.question("/again")
        self.check(q["held"], "curl is held again")
        self.order("deny", q["id"])
        self.check(self.status(mark) == 7, "and refused")
        self.nothing(heard)
        self.events(r" start ", r"hold .*/again", r"verdict .*/again.*deny")

        print()
        self.steps.write("end\n")
        self.guard.wait(PATIENCE)

    def refuse(self, mark):
        """Denies what is asked until the agent's command has ended."""
        end = time.monotonic() + PATIENCE
        while not self.agent.since(mark, "^=") and time.monotonic() < end:
            for q in json.loads(self.weir("pending", "--json")):
                self.say("held", f"{' '.join(q['process']['argv'])[:60]!a}" if q["held"] else "refused at once, and asked")
                self.order("deny", q["id"])


demo = Demo()
try:
    demo.tell()
except (Failed, OSError, subprocess.SubprocessError) as e:
    demo.check(False, str(e))
if demo.fails:
    print("the log of the sensor:")
    try:
        with open(EVENTS) as f:
            print(f.read())
    except OSError as e:
        print(e)
print(f"Told in {time.monotonic() - demo.begin:.0f} s.")
sys.stdout.flush()
os._exit(1 if demo.fails else 0)
