"""
A real Salt master and two minions with these modules, the real binary and a real control
plane: what is left when jobs, minions, the master or an orchestrate end early.

The folder of Salt's programs is BRINE_TEST_SALT; skipped without. Each test prints what
it did with its times.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import real
import test_readme

VERSIONS = ("2.11", "2.12")
PROGRAM = os.path.join(real.HERE, "example", "master")
PATIENCE = 180  # seconds; how long things take is printed, and no test fails because of it


class Master(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bin, cls.brine, cls.kubeconfig = real.salt(), real.binary(), real.kubeconfig()
        cls.root = tempfile.mkdtemp(prefix="brine-master-", dir="/tmp")  # sockets have short paths
        cls.addClassCleanup(shutil.rmtree, cls.root, True)
        cls.states = os.path.join(cls.root, "states")
        os.makedirs(cls.states)
        for folder in ("minions/a/etc/minion.d", "minions/b/etc/minion.d", "master/etc/master.d"):
            os.makedirs(os.path.join(cls.root, "salt", folder))
            with open(os.path.join(cls.root, "salt", folder, "brine.conf"), "w") as file:
                json.dump({"brine": {"binary": cls.brine, "kubeconfig": cls.kubeconfig}}, file)
        cls.failed = os.path.join(cls.root, "failed.log")
        reactor = "# /etc/salt/master.d/reactor.conf"
        for path, beginning in ("salt/master/etc/master.d/reactor.conf", reactor), *(("states/" + one, "# " + one) for one in ("reactor/brine_drift.sls", "reactor/brine_failed.sls")):
            os.makedirs(os.path.dirname(os.path.join(cls.root, path)), exist_ok=True)
            with open(os.path.join(cls.root, path), "w") as file:
                file.write(test_readme.example(beginning).replace("/var/log/brine-failed.log", cls.failed))
        with open(os.path.join(cls.root, "salt/master/etc/master.d/peer_run.conf"), "w") as file:
            file.write(test_readme.example("# /etc/salt/master.d/peer_run.conf").replace(".*:", "b:"))
        cls.addClassCleanup(cls.program, "down")
        roots = {"base": [real.HERE, cls.states]}
        for version in VERSIONS:
            roots["metalk8s-" + version] = [real.HERE, cls.tree(version)]
        pillar = os.path.join(cls.root, "pillar")
        os.makedirs(pillar)
        for name, content in ("top", {"base": {"p": ["proxy"]}}), ("proxy", {"proxy": {"proxytype": "dummy"}}):
            with open(os.path.join(pillar, name + ".sls"), "w") as file:
                json.dump(content, file)
        cls.program("up", "--minions", "a,b", "--file-roots", json.dumps(roots), "--pillar-roots", json.dumps({"base": [pillar]}))
        assert cls.salt("*", "saltutil.sync_all").keys() == {"a", "b"}
        assert cls.salt_run("saltutil.sync_all")["runners"] == ["runners.brine"]

    @classmethod
    def tree(cls, version):
        """The states of a version, as the README's orchestrates want them."""
        def config_map(name):
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "readme"}, "data": {"version": version}}

        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "readme"}}
        files = {
            "platform/namespaces.yaml": namespace, "platform/charts/map.yaml": config_map("version"),
            "metalk8s/deployed/platform.sls": {"platform": {"brine.applied": [
                {"inventory": "kube-system/platform"}, {"bundle": [namespace, config_map("version")]}]}},
        }
        folder = os.path.join(cls.root, "tree-" + version)
        for path, content in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w") as file:
                json.dump(content, file)
        return folder

    @classmethod
    def program(cls, *arguments):
        done = subprocess.run(
            [PROGRAM] + list(arguments) + ["--dir", os.path.join(cls.root, "salt")], env=dict(os.environ, SALT_BIN=cls.bin),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout.decode()

    @classmethod
    def argv(cls, program, *arguments):
        return [os.path.join(cls.bin, program), "--config-dir=" + os.path.join(cls.root, "salt/master/etc"), "--log-level=quiet"] + list(arguments)

    @classmethod
    def salt(cls, *arguments):
        done = subprocess.run(cls.argv("salt", "--out=json", "--static", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            return json.loads(done.stdout.decode())
        except ValueError:
            raise AssertionError("salt {} printed {!r}, {!r}".format(arguments, done.stdout, done.stderr))

    @classmethod
    def salt_run(cls, *arguments):
        done = subprocess.run(cls.argv("salt-run", "--out=json", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            return json.loads(done.stdout.decode())
        except ValueError:
            raise AssertionError("salt-run {} printed {!r}, {!r}".format(arguments, done.stdout, done.stderr))

    def setUp(self):
        self.name = "end-" + self._testMethodName[5:].replace("_", "-")[:40].strip("-")
        self.addCleanup(self.command, "destroy", "--timeout=2m")
        self.began = time.time()

    def did(self, what, since):
        print("  {}: {} after {:.1f} s".format(self._testMethodName, what, time.time() - since))

    def command(self, *arguments):
        done = subprocess.run(
            [self.brine] + list(arguments) + ["--inventory=default/" + self.name, "--kubeconfig=" + self.kubeconfig, "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        return json.loads(done.stdout.decode() or "{}")

    def sls(self, objects, **arguments):
        """An SLS with a bundle and a state after it."""
        given = dict({"inventory": "default/" + self.name, "bundle": real.bundle("one", self.name, objects), "timeout": 600}, **arguments)
        with open(os.path.join(self.states, "deploy.sls"), "w") as file:
            json.dump({"Deploy": {"brine.applied": [{key: value} for key, value in given.items()]}, "Next": {"test.nop": [{"order": "last"}]}}, file)

    def job(self, seconds):
        """A Job whose pod takes that long."""
        job = real.late_job(self.name)
        spec = job["spec"]["template"]
        del spec["spec"]["nodeSelector"]
        spec["metadata"] = {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "{}s".format(seconds)}}
        return job

    def until(self, what, found):
        end = time.time() + PATIENCE
        while time.time() < end:
            value = found()
            if value:
                return value
            time.sleep(0.3)
        self.fail("not within {} seconds: {}".format(PATIENCE, what))

    def brines(self):
        """The processes of brine for this inventory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = real.command(pid)
            except OSError:
                continue
            if "apply" in words[1:2] and "--inventory=default/" + self.name in words:
                found.append(int(pid))
        return found

    def waits(self):
        """Until the run has created everything, and waits for the Job."""
        self.until("the Job", lambda: self.brines() and any(o["kind"] == "Job" and o["ready"] != "gone" for o in self.command("status").get("objects", [])))

    def start(self, minion="a", fun=("state.apply", "deploy")):
        """Begin a job, and wait until brine waits in it."""
        out = subprocess.run(self.argv("salt", "--async", minion, *fun), stdout=subprocess.PIPE, check=True).stdout.decode()
        jid = re.search(r"\d{20}", out).group(0)
        self.waits()
        return jid

    def gone(self, since):
        self.until("the end of brine", lambda: not self.brines())
        self.did("brine was gone", since)

    def returned(self, jid, minion="a"):
        found = self.until("the return", lambda: self.salt_run("jobs.lookup_jid", jid).get(minion))
        return {key.split("_|-")[1]: one for key, one in found.items()}

    def goes_on(self, minion="b"):
        """Everything that was created is in the inventory, and the next run, of another minion, finishes it."""
        self.assertEqual(len([o for o in self.command("status")["objects"] if o["ready"] != "gone"]), 5)
        self.sls([])
        since = time.time()
        run = self.salt(minion, "state.apply", "deploy")[minion]
        deploy = [one for key, one in run.items() if "_|-Deploy_|-" in key][0]
        self.assertIs(deploy["result"], True, deploy["comment"])
        self.assertEqual(len(self.command("status")["objects"]), 4)
        self.did("the next run had finished", since)

    def test_term_job(self):
        self.sls([real.late_job(self.name)])
        jid = self.start()
        since = time.time()
        self.salt("a", "saltutil.term_job", jid)
        self.gone(since)
        run = self.returned(jid)
        self.assertIn("Interrupted by SIGTERM", run["Deploy"]["comment"])
        self.assertEqual(len(run["Deploy"]["changes"]), 5)
        self.assertNotIn("Next", run)
        self.goes_on()

    def test_term_job_of_parallel_states(self):
        """The states have processes of their own, and the job has to collect what they did."""
        self.sls([real.late_job(self.name)], parallel=True)
        jid = self.start()
        since = time.time()
        self.salt("a", "saltutil.term_job", jid)
        self.gone(since)
        run = self.returned(jid)
        self.assertIn("Interrupted by SIGTERM", run["Deploy"]["comment"])
        self.assertEqual(len(run["Deploy"]["changes"]), 5)
        self.assertIs(run["Next"]["result"], True)  # it began beside the other
        self.goes_on()

    def write(self, name, content):
        with open(os.path.join(self.states, name + ".sls"), "w") as file:
            json.dump(content, file)

    def orchestrate(self, name):
        """The states of an orchestrate by their ids."""
        return {key.split("_|-")[1]: one for states in self.salt_run("state.orchestrate", name)["data"].values() for key, one in states.items()}

    def test_a_plan_that_another_minion_carries_out(self):
        """Made twice, it is no change the second time. Its report has what it does."""
        self.sls([])
        self.salt("a", "state.apply", "deploy")
        given = [{"inventory": "default/" + self.name}, {"bundle": real.bundle("two", self.name)}]
        def carry(digest):
            self.write("carry", {"Deploy": {"brine.applied": given + [{"plan": "secret"}, {"plan_digest": digest}]}})
            return list(self.salt("b", "state.apply", "carry")["b"].values())[0]

        self.write("carry", {})
        self.write("planned", {"Plan": {"brine.planned": given}})
        self.write("plans", {"Plan it": {"salt.state": [{"tgt": "a"}, {"sls": "planned"}]}})
        first = self.orchestrate("plans")["Plan it"]
        made = list(first["changes"]["ret"]["a"].values())[0]
        self.assertIs(made["result"], True, made)
        again = self.orchestrate("plans")["Plan it"]
        self.assertEqual((again["result"], again["changes"]), (True, {}), again)
        row = [one for one in self.salt_run("brine.report", "out=data") if one["minion"] == "a"][0]
        self.assertEqual((row["digest"], row["kept"]), (made["plan"]["digest"], True))
        text = json.dumps(self.salt_run("brine.report"))
        self.assertIn("v1/ConfigMap {}/settings: data.mode: one -> two".format(self.name), text)
        real.hides(self, "hunter2", text + json.dumps([first, again]))

        self.assertIn("is not the approved one, and nothing was changed", carry("sha256:0")["comment"])
        done = carry(made["plan"]["digest"])
        self.assertEqual((done["result"], sorted(done["changes"])), (True, sorted(made["plan"]["changes"])), done["comment"])

    def test_a_rollback_in_an_orchestrate_undoes_only_what_its_run_did(self):
        """An upgrade on a minion is refused before it writes: nothing is undone. One that fails later is."""
        self.sls([])
        self.salt("a", "state.apply", "deploy")
        self.sls([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more", "namespace": self.name}}])
        self.salt("a", "state.apply", "deploy")
        self.write("upgrade", {
            "Deploy it": {"salt.state": [{"tgt": "a"}, {"sls": "deploy"}]},
            "Back": {"brine.rolled_back": [{"inventory": "default/" + self.name}, {"timeout": 600}, {"onfail": [{"salt": "Deploy it"}]}]},
        })
        members = lambda: sorted(one["name"] for one in self.command("status")["objects"])
        before = members()
        self.sls([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "No Name", "namespace": self.name}}])
        run = self.orchestrate("upgrade")
        self.assertIs(run["Deploy it"]["result"], False)
        self.assertEqual((run["Back"]["result"], run["Back"]["changes"], members()), (True, {}, before), run["Back"])
        self.assertIn("Nothing to undo: this run applied no revision; the last revision, 2, is of the job ", run["Back"]["comment"])
        self.sls([real.late_job(self.name)], timeout=2)
        run = self.orchestrate("upgrade")
        self.assertEqual((run["Deploy it"]["result"], run["Back"]["result"], members()), (False, True, before), run["Back"])
        self.assertTrue(run["Back"]["changes"])

    def test_proxy_minion(self):
        """A proxy of Salt's own kind for tests: states, functions and events are those of a minion."""
        folder = os.path.join(self.root, "salt/minions/p")
        os.makedirs(os.path.join(folder, "etc"))
        with open(os.path.join(self.root, "salt/minions/a/etc/minion")) as file:
            config = file.read().replace("/minions/a", "/minions/p").replace("id: a\n", "")
        with open(os.path.join(folder, "etc/proxy"), "w") as file:
            file.write(config + json.dumps({"brine": {"binary": self.brine, "kubeconfig": self.kubeconfig}})[1:-1].replace('"brine": ', "brine: ") + "\n")
        log = open(os.path.join(self.root, "proxy.log"), "w")
        self.addCleanup(log.close)
        proxy = subprocess.Popen(
            [os.path.join(self.bin, "salt-proxy"), "--proxyid=p", "--config-dir=" + os.path.join(folder, "etc"), "--log-level=error"],
            stdout=log, stderr=log, start_new_session=True,
        )
        self.addCleanup(proxy.wait)
        self.addCleanup(os.killpg, proxy.pid, signal.SIGKILL)
        self.until("the proxy", lambda: self.pinged("p") == {"p"})
        self.salt("p", "saltutil.sync_all")
        events = subprocess.Popen(self.argv("salt-run", "state.event", "brine/default.{}/run-finished".format(self.name), "count=1"), stdout=subprocess.PIPE)
        self.addCleanup(events.kill)
        time.sleep(3)  # until it listens
        self.sls([])
        run = [one for key, one in self.salt("p", "state.apply", "deploy")["p"].items() if "_|-Deploy_|-" in key][0]
        self.assertEqual((run["result"], len(run["changes"])), (True, 4), run["comment"])
        self.assertEqual(len(self.salt("p", "brine.status", self.name, "namespace=default")["p"]["objects"]), 4)
        dry = self.salt("p", "state.apply", "deploy", "test=True")["p"]
        self.assertEqual({one["result"] for one in dry.values()}, {True}, dry)
        self.assertIn('"success": true', events.communicate(timeout=PATIENCE)[0].decode())

    def test_kill_job(self):
        """SIGKILL, for brine as well: there is no return, and the lock expires."""
        self.sls([real.late_job(self.name)])
        jid = self.start()
        since = time.time()
        self.salt("a", "saltutil.kill_job", jid)
        self.gone(since)
        self.assertFalse(self.salt_run("jobs.lookup_jid", jid))
        self.goes_on()

    def test_minion_stopped(self):
        """SIGTERM for the minion, as systemd sends it: Salt leaves the job alone, and it goes on to its end."""
        self.sls([self.job(20)])
        self.start()
        since = time.time()
        self.program("stop", "a")
        self.did("the minion had stopped", since)
        self.gone(since)
        self.addCleanup(self.answers)
        self.assertEqual([o["ready"] for o in self.command("status")["objects"]], ["ready"] * 5)
        self.goes_on()

    def answers(self):
        self.program("start", "a")
        self.until("minion a", lambda: self.salt("a", "test.ping").get("a") is True)

    def test_minion_killed(self):
        """The minion, not its job: that is a process of its own, and goes on to its end."""
        self.sls([self.job(20)])
        jid = self.start()
        since = time.time()
        self.program("kill", "a")
        self.gone(since)
        self.addCleanup(self.answers)
        self.assertEqual([o["ready"] for o in self.command("status")["objects"]], ["ready"] * 5)
        self.goes_on()
        self.did("the job cache has the return of {}".format(sorted(self.salt_run("jobs.lookup_jid", jid)) or "nobody"), since)

    def test_master_gone(self):
        """The job needs no master: it goes on to its end."""
        self.sls([self.job(20)])
        self.start()
        since = time.time()
        self.program("kill", "master")
        self.gone(since)
        self.assertEqual([o["ready"] for o in self.command("status")["objects"]], ["ready"] * 5)
        self.program("start", "master")
        self.until("both minions", lambda: self.pinged() == {"a", "b"})
        self.did("both minions answered again", since)
        self.goes_on()

    def pinged(self, target="*"):
        try:
            return {minion for minion, value in self.salt("--timeout=10", target, "test.ping").items() if value is True}
        except AssertionError:
            return set()

    def test_salt_gives_up(self):
        """Salt stops waiting, by a time-out or because it is ended; the job goes on, and the job cache has its return."""
        self.sls([self.job(15)])
        process = subprocess.Popen(self.argv("salt", "a", "state.apply", "deploy"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.waits()
        since = time.time()
        process.terminate()
        process.communicate(timeout=PATIENCE)
        self.did("salt had ended", since)
        self.until("the Job", lambda: any(o["kind"] == "Job" and o["ready"] == "ready" for o in self.command("status").get("objects", [])))
        self.gone(since)
        self.until("the return", lambda: "a" in {row["minion"] for row in self.salt_run("brine.report", "out=data", "since=5m") if row["result"] == "changed"})
        self.goes_on()

    def test_two_minions_with_one_inventory(self):
        self.sls([real.late_job(self.name)], lock_timeout=1)
        jid = self.start()
        run = self.salt("b", "state.apply", "deploy")["b"]
        deploy = [one for key, one in run.items() if "_|-Deploy_|-" in key][0]
        self.assertEqual((deploy["result"], deploy["changes"]), (False, {}))
        self.assertIn("exit code 5", deploy["comment"])
        self.assertRegex(deploy["comment"], r"minion a\b")
        self.assertIn(jid, deploy["comment"])
        print("  " + deploy["comment"].replace("\n", "\n  "))
        self.salt("a", "saltutil.term_job", jid)
        self.gone(time.time())
        self.goes_on()

    def orchestrated(self, number):
        process = subprocess.Popen(
            [one for one in self.argv("salt-run", "state.orchestrate", "deploy") if one != "--log-level=quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        self.waits()
        since = time.time()
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        self.did("salt-run had ended with exit code {}".format(process.returncode), since)
        self.gone(since)
        self.assertNotIn("Traceback", err.decode() + out.decode())
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("Interrupted by " + signal.Signals(number).name, out.decode())
        rows = [row for row in self.salt_run("brine.report", "out=data", "since=5m") if row["minion"].endswith("_master")]
        self.assertIn(signal.Signals(number).name, rows[-1]["comment"])
        self.goes_on()

    def test_orchestrate_terminated(self):
        self.sls([real.late_job(self.name)])
        self.orchestrated(signal.SIGTERM)

    def test_orchestrate_interrupted(self):
        self.sls([real.late_job(self.name)])
        self.orchestrated(signal.SIGINT)

    def test_orchestrate_ends_while_minions_work(self):
        """The minions' jobs go on: salt-run only waits for them. No code of brine runs there, and Salt prints a traceback."""
        self.sls([self.job(15)])
        with open(os.path.join(self.states, "all.sls"), "w") as file:
            json.dump({"All": {"salt.state": [{"tgt": "a"}, {"sls": "deploy"}]}}, file)
        process = subprocess.Popen(self.argv("salt-run", "state.orchestrate", "all"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.waits()
        since = time.time()
        process.terminate()
        process.communicate(timeout=PATIENCE)
        self.did("salt-run had ended with exit code {}".format(process.returncode), since)
        self.gone(since)
        self.assertEqual([o["ready"] for o in self.command("status")["objects"]], ["ready"] * 5)
        self.goes_on()

    def test_objects_move_to_a_file_that_is_new(self):
        """With Salt's default settings, where the master keeps a list of the files for 20 seconds: nothing is pruned."""
        def write(**files):
            folder = os.path.join(self.states, "moves")
            os.makedirs(folder, exist_ok=True)
            for name, objects in files.items():
                with open(os.path.join(folder, name + ".yaml"), "w") as file:
                    file.write("\n---\n".join(json.dumps({
                        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": one, "namespace": "default"}}) for one in objects))
        def apply(target):
            if target == "orchestrate":
                run = list(self.salt_run("state.orchestrate", "moves")["data"].values())[0]
            else:
                run = self.salt(target, "state.apply", "moves")[target]
            return list(run.values())[0]

        with open(os.path.join(self.states, "moves.sls"), "w") as file:
            json.dump({"Deploy": {"brine.applied": [{"inventory": "default/" + self.name}, {"source": "salt://moves/"}, {"max_prune": "100%"}]}}, file)
        names = [self.name + "-1", self.name + "-2"]
        for target in ("orchestrate", "b", "a"):  # a is not in peer_run
            write(one=names)
            self.assertIs(apply(target)["result"], True)
            write(one=names[:1], two=names[1:])
            since = time.time()
            again = apply(target)
            self.did(target + " had the new file", since)
            self.assertEqual((again["result"], again["changes"]), (True, {}), again["comment"])
            os.remove(os.path.join(self.states, "moves/two.yaml"))

    def test_runner_calls_read_the_masters_configuration(self):
        self.sls([])
        self.salt("a", "state.apply", "deploy")
        found = self.salt_run("salt.cmd", "brine.status", self.name, "namespace=default")
        self.assertEqual(len(found["objects"]), 4)

    def test_beacon_and_reactor_of_the_readme(self):
        """Somebody changes a field, the beacon finds it, and the reactor applies the platform again."""
        key = {"kind": "ConfigMap", "apiVersion": "v1", "name": "drifts", "namespace": "default"}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "drifts", "namespace": "default"}, "data": {"value": "wanted"}}

        def value():
            return self.salt("b", "brine.get", *["{}={}".format(*one) for one in key.items()])["b"]["data"]["value"]

        with open(os.path.join(self.states, "platform.sls"), "w") as file:
            json.dump({"platform": {"brine.applied": [{"inventory": "kube-system/platform"}, {"bundle": [manifest]}, {"force_conflicts": True}]}}, file)
        self.addCleanup(self.salt_run, "salt.cmd", "brine.absent", "platform", "inventory=kube-system/platform")
        self.salt("a", "state.apply", "platform")
        beacon = test_readme.example("beacons:").replace("interval: 600", "interval: 1").replace("event_interval: 3600", "event_interval: 0")
        with open(os.path.join(self.states, "beacons.sls"), "w") as file:
            file.write(beacon)
        (name, config), = self.salt("a", "slsutil.renderer", "salt://beacons.sls")["a"]["beacons"].items()
        self.addCleanup(self.salt, "a", "beacons.delete", name)
        added = self.salt("a", "beacons.add", name, json.dumps(config))["a"]
        self.assertIs(added["result"], True, added)
        self.salt("a", "saltutil.refresh_modules")
        self.salt("a", "saltutil.refresh_beacons")
        started = time.strftime("%Y%m%d%H%M%S")  # as job ids begin
        other = self.salt("b", "brine_object.update_object", "force_conflicts=True", "patch=" + json.dumps({"data": {"value": "of others"}}), *["{}={}".format(*one) for one in key.items()])["b"]
        self.assertIsInstance(other, dict, other)  # else nothing drifts
        since = time.time()
        self.until("the platform as it should be", lambda: value() == "wanted")
        self.did("the platform was applied again", since)
        # What ran is the platform, and not all states of the minion.
        ran = [job["Arguments"] for jid, job in self.salt_run("jobs.list_jobs", "search_function=state.apply").items() if jid > started]
        self.assertTrue(ran)
        self.assertEqual([[one for one in arguments if one.get("mods") != "platform"] for arguments in ran], [[]] * len(ran), ran)

    def test_reaction_of_the_readme_to_a_run_that_failed(self):
        """By its tag and the values of its event. The preview that fails before it has another tag."""
        wrong = "bundle=" + json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name, "namespace": "default"}, "data": {"a": "b"}, "immutable": "no"})
        for more in ("test=True", "test=False"):
            self.assertIs(self.salt("a", "brine.applied", self.name, "inventory=default/" + self.name, wrong, more)["a"]["result"], False)

        def noted():
            with contextlib.suppress(OSError), open(self.failed) as file:
                return file.read()

        note = re.compile("run [^ ]+ of default/{}\\b".format(self.name))
        self.until("the run that failed is noted", lambda: note.match(noted() or ""))
        notes = note.findall(json.dumps(self.salt_run("jobs.list_jobs", "search_function=file.write")))  # other tests have theirs
        self.assertEqual(len(notes), 1, notes)  # not the preview

    def test_the_orchestrates_of_the_readme(self):
        """Upgrade, preview, downgrade, and both minions as a fleet, as the README has them."""
        def orchestrate(name, *arguments):
            run = self.salt_run("state.orchestrate", "orchestrate." + name, *arguments)
            self.assertEqual(run["retcode"], 0, run)
            return list(list(run["data"].values())[0].values())

        def version():
            return self.salt_run("salt.cmd", "brine.get", "kind=ConfigMap", "apiVersion=v1", "name=version", "namespace=readme")["data"]["version"]

        os.makedirs(os.path.join(self.states, "orchestrate"))
        for name in ("deploy", "preview", "fleet"):
            with open(os.path.join(self.states, "orchestrate", name + ".sls"), "w") as file:
                file.write(test_readme.example("# orchestrate/{}.sls".format(name)).replace("tgt: bootstrap", "tgt: a"))
        with open(os.path.join(self.states, "platform.sls"), "w") as file:
            json.dump({"platform": {"brine.applied": [{"inventory": "kube-system/platform"}, {"source": "salt://platform/charts/"}, {"saltenv": "metalk8s-2.11"}, {"prune": False}]}}, file)
        self.addCleanup(self.salt_run, "salt.cmd", "brine.absent", "platform", "inventory=kube-system/platform")
        text = real.documents()
        upgrade, downgrade = re.findall(r"^    salt-run state.orchestrate orchestrate.deploy (pillar=)'(.*?)'$", text, re.M)
        orchestrate("deploy", "".join(downgrade))
        self.assertEqual(version(), "2.11")
        dry = orchestrate("deploy", "".join(upgrade), "test=True")
        self.assertIn("1 configured", [one["comment"] for one in dry if one["__id__"].startswith("Deploy")][0])
        orchestrate("preview", "".join(upgrade))
        self.assertEqual(version(), "2.11")
        orchestrate("deploy", "".join(upgrade))
        self.assertEqual(version(), "2.12")
        self.salt("*", "grains.setvals", "{roles: bootstrap, stage: production}")
        orchestrate("fleet")
        self.assertEqual(version(), "2.11")
        rows = self.salt_run("brine.report", "out=data", "since=10m")
        self.assertLessEqual({"a", "b"}, {row["minion"] for row in rows if row["run"] == "platform"}, rows)


if __name__ == "__main__":
    unittest.main()
