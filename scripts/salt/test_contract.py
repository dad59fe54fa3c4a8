"""What the real binary prints, put through what Salt does with it."""

import json
import os
import signal
import subprocess
import time
import unittest

import real

PASSWORD = "hunter2"


def stateful(stdout, stderr, retcode, test=False):
    """
    salt/states/cmd.py: run() with `stateful: True`, and _reinterpreted_state().
    The JSON branch only: brine never answers in name=value pairs.
    """
    ret = {"result": not bool(retcode), "changes": {}, "comment": "Command run"}
    data = json.loads(stdout)
    assert isinstance(data, dict), "script JSON output must be a JSON object"
    changed = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[str(data.get("changed", "no")).lower()]
    ret["comment"] = data.pop("comment")
    if changed:
        for key, value in {"pid": 1, "retcode": retcode, "stdout": stdout, "stderr": stderr}.items():
            assert key not in data, "%s is Salt's own key" % key
            data[key] = value
        data["stdout"] = ""
        ret["changes"] = data
    if test and retcode == 0 and ret["changes"]:
        ret["result"] = None
    return ret


def compiled(ret, name="platform"):
    """
    What the state compiler asks of a return and of sub_state_run:
    salt/utils/decorators/state.py content_check, salt/state.py call_chunk.
    """
    def content_check(part):
        assert isinstance(part.get("changes"), dict), "'Changes' should be a dictionary."
        missing = [key for key in ("name", "result", "changes", "comment") if key not in part]
        assert not missing, "The following keys were not present in the state return: %s" % missing
        for sub in part.get("sub_state_run", ()):
            content_check(sub)

    content_check(ret)
    running = {}
    for sub in ret.get("sub_state_run", ()):
        tag = "{0[state]}_|-{0[__id__]}_|-{0[name]}_|-{0[fun]}".format(sub["low"])
        assert tag not in running, "two entries are called " + tag
        assert isinstance(sub["duration"], (int, float)) and isinstance(sub["start_time"], str)
        running[tag] = sub
    return running


class Contract(unittest.TestCase):
    """One namespace a test, so that they do not meet."""

    def setUp(self):
        self.brine, self.kubeconfig = real.binary(), real.kubeconfig()
        self.namespace = "contract-" + self._testMethodName.lower().replace("_", "-")[5:45].strip("-")
        self.addCleanup(self.run_brine, "destroy", "-o", "salt-cmd", "--timeout=60s")

    def command(self, verb, *flags, **how):
        argv = [self.brine, verb, "--name=" + self.namespace, "--namespace=default", "--kubeconfig=" + how.get("kubeconfig", self.kubeconfig)]
        return argv + (["-f", "-"] if verb == "apply" else []) + list(flags)

    def run_brine(self, verb, *flags, **how):
        done = subprocess.Popen(
            self.command(verb, *flags, **how), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
        )
        out, err = done.communicate(how.get("bundle", ""))
        real.hides(self, PASSWORD, out + err)
        return out, err, done.returncode

    def both(self, bundle, *flags, **how):
        """The same run for cmd.run and as a state; only the first finds something to do."""
        test = "--dry-run=server" in flags
        ret = stateful(*self.run_brine("apply", "-o", "salt-cmd", *flags, bundle=bundle, **how), test=test)
        out, err, code = self.run_brine("apply", "-o", "salt", *flags, bundle=bundle, **how)
        state = json.loads(out)
        compiled(state)
        self.assertEqual(err, "", "Salt keeps this among the changes")
        return ret, state, code

    def bundle(self, mode="one", *more):
        return real.bundle(mode, self.namespace, more)

    def keys(self, *names):
        return {name.replace("NS", self.namespace) for name in names}

    def test_success_then_no_change(self):
        ret, state, _ = self.both(self.bundle())
        self.assertIs(ret["result"], True)
        self.assertEqual(
            set(ret["changes"]["objects"]),
            self.keys("v1/Namespace NS", "v1/ConfigMap NS/settings", "v1/Secret NS/login", "apps/v1/Deployment NS/web"),
        )
        self.assertEqual(ret["changes"]["summary"]["created"], 4)
        self.assertEqual(ret["changes"]["stderr"], "")
        self.assertIs(state["result"], True)
        self.assertEqual(state["changes"], {})
        self.assertEqual(state["sub_state_run"], [])
        again = stateful(*self.run_brine("apply", "-o", "salt-cmd", bundle=self.bundle()))
        self.assertEqual((again["result"], again["changes"]), (True, {}))
        self.assertIn("unchanged", again["comment"])

    def test_dry_run_then_the_same_changes(self):
        self.run_brine("apply", "-o", "salt", bundle=self.bundle())
        dry, state, code = self.both(self.bundle("two"), "--dry-run=server")
        self.assertEqual((dry["result"], state["result"], code), (None, None, 0))
        ret = stateful(*self.run_brine("apply", "-o", "salt-cmd", bundle=self.bundle("two")))
        self.assertIs(ret["result"], True)
        self.assertEqual(ret["changes"]["objects"], dry["changes"]["objects"])
        self.assertEqual(ret["changes"]["objects"], state["changes"])
        settings = ret["changes"]["objects"]["v1/ConfigMap %s/settings" % self.namespace]
        self.assertEqual(settings, {"old": {"data.mode": "one"}, "new": {"data.mode": "two"}})
        for sub in state["sub_state_run"]:
            self.assertIs(sub["result"], None if sub["changes"] else True)

    def test_dry_run_of_nothing(self):
        self.run_brine("apply", "-o", "salt", bundle=self.bundle())
        dry, state, _ = self.both(self.bundle(), "--dry-run=server")
        self.assertEqual((dry["result"], dry["changes"], state["result"], state["changes"]), (True, {}, True, {}))

    def test_partial_failure(self):
        bad = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad", "namespace": self.namespace}, "spec": {"clusterIP": "203.0.113.7", "ports": [{"port": 80}]}}
        ret = stateful(*self.run_brine("apply", "-o", "salt-cmd", bundle=self.bundle("one", bad)))
        self.assertIs(ret["result"], False)
        self.assertIs(ret["changes"]["changed"], True)
        self.assertIn("Service %s/bad" % self.namespace, ret["comment"])
        self.assertIn("clusterIP", ret["comment"])

    def test_time_out(self):
        ret = stateful(*self.run_brine("apply", "-o", "salt-cmd", "--timeout=4s", bundle=self.bundle("one", real.late_job(self.namespace))))
        self.assertIs(ret["result"], False)
        self.assertEqual(ret["changes"]["retcode"], 4)
        self.assertIn("Job.batch %s/late" % self.namespace, ret["comment"])
        self.assertIn("Run it again to continue", ret["comment"])

    def test_bad_input(self):
        for bundle in ("a:\n\tb: 1\n", "", '{"local": {}}', '{"local": ["Rendering SLS failed: x"]}', "kind: A\n"):
            ret, state, code = self.both(bundle)
            self.assertEqual((ret["result"], ret["changes"], state["result"], state["changes"], code), (False, {}, False, {}, 3), bundle)

    def test_bad_usage(self):
        for flags in (["--no-such-flag"], ["--wait=never"], ["--timeout=soon"]):
            ret, state, code = self.both(self.bundle(), *flags)
            self.assertEqual((ret["result"], state["result"], code), (False, False, 3), flags)
            self.assertIn(flags[0].lstrip("-").split("=")[0], ret["comment"])

    def test_interrupted(self):
        for output in ("salt-cmd", "salt", "salt-events"):
            process = subprocess.Popen(
                self.command("apply", "-o", output, "--timeout=60s"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                universal_newlines=True,
            )
            process.stdin.write(self.bundle("one", real.late_job(self.namespace, "late-" + output)))
            process.stdin.close()
            process.stdin = None
            self.wait_for_job("late-" + output)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 143)
            if output == "salt-cmd":
                ret = stateful(out, err, 143)
            elif output == "salt":
                ret = json.loads(out)
                compiled(ret)
            else:
                ret = json.loads(out.splitlines()[-1])["return"]
                compiled(ret)
            self.assertIs(ret["result"], False)
            self.assertIn("Interrupted by SIGTERM", ret["comment"])

    def wait_for_job(self, name="late"):
        """It is there, so the run that applies it is well under way."""
        for _ in range(300):
            out = subprocess.run(
                [self.brine, "status", "--name=" + self.namespace, "--namespace=default", "--kubeconfig=" + self.kubeconfig, "-o", "json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            ).stdout
            try:
                if any(o["name"] == name and o["ready"] not in ("gone", "ready") for o in json.loads(out.decode())["objects"]):
                    return
            except ValueError:
                pass
            time.sleep(0.1)
        self.fail("the Job was never applied")

    def test_locked(self):
        first = subprocess.Popen(
            self.command("apply", "-o", "salt", "--timeout=60s"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, env=dict(os.environ, BRINE_MINION="edge-1", BRINE_JID="2026"),
        )
        self.addCleanup(first.communicate)
        self.addCleanup(first.terminate)
        first.stdin.write(self.bundle("one", real.late_job(self.namespace)))
        first.stdin.close()
        first.stdin = None
        self.wait_for_job()
        ret, state, code = self.both(self.bundle("two"))
        self.assertEqual((ret["result"], ret["changes"], state["result"], state["changes"], code), (False, {}, False, {}, 5))
        self.assertIn("lock", ret["comment"])
        self.assertIn(", minion edge-1, Salt job 2026)", ret["comment"])

    def test_cluster_away(self):
        away = os.path.join(real.folder(), "away")
        with open(away, "w") as file:
            json.dump({
                "apiVersion": "v1", "kind": "Config", "current-context": "x",
                "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "x", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            }, file)
        ret, state, code = self.both(self.bundle(), "--retry-timeout=1s", kubeconfig=away)
        self.assertEqual((ret["result"], ret["changes"], state["result"], code), (False, {}, False, 6))
        self.assertIn("127.0.0.1:1", ret["comment"])
        ret, _, code = self.both(self.bundle(), kubeconfig="/no/such/kubeconfig")
        self.assertEqual((ret["result"], ret["changes"], code), (False, {}, 6))

    def test_salt_events_end_with_what_o_salt_prints(self):
        self.run_brine("apply", "-o", "salt", bundle=self.bundle())
        out, err, _ = self.run_brine("apply", "-o", "salt-events", "--dry-run=server", bundle=self.bundle("two"))
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((lines[0]["type"], lines[-1]["type"], err), ("started", "finished", ""))
        state = json.loads(self.run_brine("apply", "-o", "salt", "--dry-run=server", bundle=self.bundle("two"))[0])
        self.assertEqual(lines[-1]["return"]["changes"], state["changes"])


if __name__ == "__main__":
    unittest.main()
