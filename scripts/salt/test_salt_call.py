"""A real, masterless Salt with these modules, the real binary and a real control plane."""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import real

STATE = """
Deploy it:
  brine.applied:
    - source: salt://bundle.yaml
    - inventory: default/{name}
    - kubeconfig: {kubeconfig}
"""


def run_changed(run):
    return any(one["changes"] for key, one in run.items() if key.endswith("_|-applied"))


class SaltCall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.salt_call, cls.brine, cls.kubeconfig = real.salt_call(), real.binary(), real.kubeconfig()
        cls.root = tempfile.mkdtemp(prefix="brine-salt-call-")
        cls.addClassCleanup(shutil.rmtree, cls.root, True)
        cls.states = os.path.join(cls.root, "states")
        for path in ("_beacons", "_modules", "_states"):
            shutil.copytree(os.path.join(real.HERE, path), os.path.join(cls.states, path))
        os.makedirs(os.path.join(cls.root, "var", "log", "salt"))
        cls.pillar()
        cls.write("minion", json.dumps({
            "file_client": "local", "root_dir": cls.root, "id": "test-minion", "file_roots": {"base": [cls.states]},
            "pillar_roots": {"base": [os.path.join(cls.root, "pillar")]}, "brine": {"binary": cls.brine},
        }))
        synced = cls.call("saltutil.sync_all")
        assert {"modules.brine", "modules.brine_object"} <= set(synced["modules"]), synced

    @classmethod
    def pillar(cls):
        os.makedirs(os.path.join(cls.root, "pillar"))
        cls.write("pillar/top.sls", "base: {'*': [brine]}\n")
        cls.write("pillar/brine.sls", "{}\n")

    @classmethod
    def write(cls, path, text):
        with open(os.path.join(cls.root, path), "w") as file:
            file.write(text)

    @classmethod
    def call(cls, *arguments):
        done = subprocess.run(
            [cls.salt_call, "--local", "--config-dir=" + cls.root, "--out=json", "--log-level=quiet"] + list(arguments),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        out = done.stdout.decode()
        assert real.bundle.__defaults__[-1] not in out + done.stderr.decode(), "a Secret's value is shown"
        try:
            return json.loads(out)["local"]
        except ValueError:
            raise AssertionError("salt-call printed {!r}, {!r}".format(out, done.stderr.decode()))

    def setUp(self):
        self.name = "salt-" + self._testMethodName[5:].replace("_", "-")[:40].strip("-")
        self.write("states/deploy.sls", STATE.format(name=self.name, kubeconfig=self.kubeconfig))
        self.addCleanup(self.call, "brine.absent", self.name, "namespace=default", "kubeconfig=" + self.kubeconfig, "timeout=60")

    def bundle(self, mode):
        self.write("states/bundle.yaml", "#!jinja\n" + real.bundle("{{ pillar.get('mode', '%s') }}" % mode, self.name))

    def apply(self, *arguments):
        """The state's own return, and those of the sub-states by their ids."""
        run = self.call("state.apply", "deploy", *arguments)
        self.assertIsInstance(run, dict, run)
        own = [v for k, v in run.items() if k.endswith("_|-applied")]
        self.assertEqual(len(own), 1, run)
        return own[0], {k.split("_|-")[1]: v for k, v in run.items() if not k.endswith("_|-applied")}

    def run_states(self, **states):
        """Run states, all of this cluster, and return theirs by id."""
        sls = {}
        for state_id, (fun, arguments) in states.items():
            sls[state_id] = {"brine." + fun: [{key: value} for key, value in dict({"kubeconfig": self.kubeconfig}, **arguments).items()]}
        self.write("states/run.sls", json.dumps(sls))
        run = self.call("state.apply", "run")
        self.assertIsInstance(run, dict, run)
        return {k.split("_|-")[1]: v for k, v in run.items()}

    def members(self):
        ret = self.call("brine.status", self.name, "namespace=default", "kubeconfig=" + self.kubeconfig)
        return sorted("{kind} {name}".format(**o) for o in ret["objects"] if o["ready"] != "gone")

    def test_a_state_run_twice_and_test_mode(self):
        self.bundle("one")
        first, subs = self.apply()
        self.assertIs(first["result"], True, first["comment"])
        self.assertEqual(subs, {})
        names = {o.replace("NS", self.name) for o in ("v1/Namespace NS", "v1/ConfigMap NS/settings", "v1/Secret NS/login", "apps/v1/Deployment NS/web")}
        self.assertEqual(set(first["changes"]), names)
        for one in first["changes"].values():
            self.assertEqual(one, {"old": "absent", "new": "present"})
        second, _ = self.apply()
        self.assertEqual((second["result"], second["changes"]), (True, {}), second["comment"])

        self.bundle("two")
        dry, _ = self.apply("test=True")
        self.assertIs(dry["result"], None, dry["comment"])
        real_run, _ = self.apply()
        self.assertIs(real_run["result"], True, real_run["comment"])
        self.assertEqual(dry["changes"], real_run["changes"])
        self.assertEqual(len(dry["changes"]), 3)

        dry, _ = self.apply("test=True", 'pillar={"mode": "three"}')
        self.assertEqual(dry["changes"]["v1/ConfigMap %s/settings" % self.name]["new"], {"data.mode": "three"})

    def test_objects_move_to_a_file_that_is_new(self):
        """With Salt's default settings, where a list of the files is kept for 20 seconds."""
        def config_map(name):
            return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})

        os.makedirs(os.path.join(self.states, "moves"))
        for given in ({"source": "salt://moves/"}, {"sls": ["moves.*"]}):
            self.write("states/moves/one.sls", "\n---\n".join(map(config_map, ("one", "two"))))
            if "sls" in given:
                self.write("states/moves/one.sls", json.dumps({one: {"k8s.object_present": [{"manifest": json.loads(config_map(one))}]} for one in ("one", "two")}))
            arguments = dict(given, inventory="default/" + self.name, max_prune="100%")
            self.assertIs(self.run_states(Deploy=("applied", arguments))["Deploy"]["result"], True)
            for name in ("one", "two"):
                text = config_map(name) if "source" in given else json.dumps({name: {"k8s.object_present": [{"manifest": json.loads(config_map(name))}]}})
                self.write("states/moves/{}.sls".format(name), text)
            again = self.run_states(Deploy=("applied", arguments))["Deploy"]
            self.assertEqual((again["result"], again["changes"]), (True, {}), again["comment"])
            os.remove(os.path.join(self.states, "moves/two.sls"))

    def test_sls_compiled_by_salt(self):
        self.write("states/objects.sls", json.dumps({
            "Namespace": {"k8s.object_present": [{"manifest": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}}]},
            "Settings": {"k8s.object_present": [
                {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": self.name}}},
                {"require": [{"test": "Barrier"}]}]},
            "Barrier": {"test.nop": [{"require": [{"k8s": "Namespace"}]}]},
        }))
        self.write("states/deploy.sls", STATE.format(name=self.name, kubeconfig=self.kubeconfig).replace(
            "source: salt://bundle.yaml", "sls: objects\n    - ignore_foreign_states: True"))
        ret, _ = self.apply()
        self.assertIs(ret["result"], True, ret["comment"])
        self.assertEqual(self.members(), ["ConfigMap a", "Namespace " + self.name])

    def test_an_sls_with_a_state_that_changes_other_objects_is_refused(self):
        os.makedirs(os.path.join(self.states, "tree/nodes"))
        one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name + "-a", "namespace": "default"}}
        self.write("states/tree/init.sls", json.dumps({"include": ["tree.nodes"], "Settings": {"k8s.object_present": [{"manifest": one}]}}))
        self.write("states/tree/nodes/init.sls", json.dumps({"Label it": {"k8s.object_updated": [
            {"name": "node-1"}, {"kind": "Node"}, {"apiVersion": "v1"}, {"patch": {"metadata": {"labels": {"a": "b"}}}}]}}))
        self.write("states/deploy.sls", STATE.format(name=self.name, kubeconfig=self.kubeconfig).replace(
            "source: salt://bundle.yaml", "sls: tree\n    - ignore_foreign_states: True"))
        for test in ("test=True", "test=False"):
            ret, _ = self.apply(test)
            self.assertEqual((ret["result"], ret["changes"]), (False, {}), ret)
            self.assertIn('salt://tree/nodes/init.sls (state "Label it", sls tree.nodes): k8s.object_updated changes objects that the bundle does not contain: '
                          "move it to an SLS that Salt runs itself, as brine_object.object_updated", ret["comment"])
        self.assertEqual(self.members_or_none(), [])
        self.assertIs(self.call("brine.exists", "name=%s-a" % self.name, "kind=ConfigMap", "apiVersion=v1", "kubeconfig=" + self.kubeconfig), False)

    def test_an_include_that_was_dropped_prunes_nothing(self):
        """Below the limit of pruning, too, as long as the saltenv still has it. With Salt's default settings."""
        def sls(name, objects=(), include=()):
            content = {n: {"k8s.object_present": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name + n, "namespace": "default"}}}]} for n in objects}
            self.write("states/dropped/{}.sls".format(name), json.dumps(dict(content, **({"include": list(include)} if include else {}))))

        def deploy(more=""):
            self.write("states/deploy.sls", STATE.format(name=self.name, kubeconfig=self.kubeconfig).replace(
                "source: salt://bundle.yaml", "sls: dropped" + more))
            return self.apply()[0]

        os.makedirs(os.path.join(self.states, "dropped"))
        sls("web", ["-a", "-b", "-c", "-d", "-e"])
        sls("db", ["-f"])
        sls("init", include=["dropped.web", "dropped.db"])
        ret = deploy()
        self.assertIs(ret["result"], True, ret["comment"])
        sls("init", include=["dropped.web"])
        for test in ("test=True", "test=False"):
            ret = self.apply(test)[0]
            self.assertEqual((ret["result"], ret["changes"] if test == "test=False" else {}), (False, {}), ret)
            self.assertIn('dropped.db, from which revision 1 was made, is still in saltenv "base"', ret["comment"])
            self.assertIn("ConfigMap default/{}-f".format(self.name), ret["comment"])
            self.assertIn("In a state: `removed: [dropped.db]`.", ret["comment"])
        self.assertEqual(len(self.members()), 6)
        # The same objects from another file are no removal; then its new name counts.
        sls("data", ["-f"])
        sls("init", include=["dropped.web", "dropped.data"])
        ret = deploy()
        self.assertEqual((ret["result"], ret["changes"]), (True, {}), ret["comment"])
        sls("init", include=["dropped.web"])
        self.assertIn("--removed=dropped.data", deploy()["comment"])
        ret = deploy("\n    - removed: [dropped.data]")
        self.assertEqual((ret["result"], list(ret["changes"])), (True, ["v1/ConfigMap default/{}-f".format(self.name)]), ret)
        # Gone from the tree, too: told, and refused where that is asked for.
        sls("init", include=["dropped.web", "dropped.db"])
        self.assertIs(deploy()["result"], True)
        sls("init", include=["dropped.web"])
        os.remove(os.path.join(self.states, "dropped/db.sls"))
        ret = deploy("\n    - refuse_removed: True")
        self.assertIs(ret["result"], False, ret)
        self.assertIn('dropped.db, from which revision', ret["comment"])
        ret = deploy()
        self.assertIs(ret["result"], True, ret["comment"])
        self.assertIn('is no longer in saltenv "base": pruned with it: 1 object', str(ret["warnings"]))

    def test_sls_that_salt_leaves_out_prunes_nothing(self):
        def sls(path, *names, **more):
            objects = {n: {"k8s.object_present": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "namespace": "default"}}}]} for n in names}
            self.write("states/" + path, json.dumps(dict(objects, **more)))

        prefix = self.name + "-"
        sls("chart.sls", prefix + "a", prefix + "b", prefix + "c")
        sls("addon.sls", prefix + "d")
        sls("again.sls", include=["chart"])
        sls("top_of_all.sls", include=["chart", "addon", "again"])
        self.write("states/deploy.sls", STATE.format(name=self.name, kubeconfig=self.kubeconfig).replace("source: salt://bundle.yaml", "sls: top_of_all"))
        ret, _ = self.apply()
        self.assertIs(ret["result"], True, ret["comment"])
        before = self.members()
        self.assertEqual(len(before), 4)

        self.write("states/addon.sls", "#!jinja|no_such_renderer\n{}\n")
        ret, _ = self.apply()
        self.assertEqual((ret["result"], ret["changes"]), (False, {}), ret)
        self.assertIn("no_such_renderer", ret["comment"])

        self.write("states/addon.sls", "{% if false %}\na: {}\n{% endif %}\n")
        ret, _ = self.apply()
        self.assertEqual((ret["result"], ret["changes"]), (False, {}), ret)
        self.assertIn("addon gave no state", ret["comment"])
        self.assertEqual(self.members(), before)

        self.write("states/deploy.sls", STATE.format(name=self.name, kubeconfig=self.kubeconfig).replace(
            "source: salt://bundle.yaml", "sls: top_of_all\n    - allow_empty_sls: [addon]"))
        ret, _ = self.apply()
        self.assertIs(ret["result"], True, ret["comment"])
        self.assertEqual(len(self.members()), 3)

        sls("chart.sls", prefix + "a")
        ret, _ = self.apply()
        self.assertIs(ret["result"], False, ret["comment"])
        self.assertIn("2 of 3 objects", ret["comment"])
        self.assertIn("max_prune", ret["comment"])
        self.assertEqual(len(self.members()), 3)

    def test_a_default_inventory_is_not_that_of_another_name(self):
        self.bundle("one")
        self.apply()
        ret = self.call("brine.absent", "something-else", "kubeconfig=" + self.kubeconfig, "pillar={}", "test=True")
        self.assertIs(ret["result"], False, ret)  # pillar has no effect
        self.write("pillar/brine.sls", "brine: {inventory: default/%s}\n" % self.name)
        self.addCleanup(self.write, "pillar/brine.sls", "{}\n")
        ret = self.call("brine.absent", "something-else", "kubeconfig=" + self.kubeconfig)
        self.assertIs(ret["result"], False, ret)
        self.assertIn("not that of the default inventory default/" + self.name, ret["comment"])
        self.assertEqual(len(self.members()), 4)

    def test_rollback_after_a_refused_upgrade_changes_nothing(self):
        self.bundle("one")
        self.apply()
        self.bundle("two")
        self.apply()
        upgrade = ("applied", {"inventory": "default/" + self.name, "bundle": "kind: ConfigMap\n"})
        back = ("rolled_back", {"inventory": "default/" + self.name, "onfail": [{"brine": "Upgrade"}]})
        run = self.run_states(Upgrade=upgrade, Back=back)
        self.assertIs(run["Upgrade"]["result"], False)
        self.assertEqual((run["Back"]["result"], run["Back"]["changes"]), (True, {}), run["Back"]["comment"])

        # One that was begun is undone.
        broken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad", "namespace": self.name}, "spec": {"clusterIP": "203.0.113.7", "ports": [{"port": 80}]}}
        upgrade[1]["bundle"] = real.bundle("three", self.name, [broken])
        run = self.run_states(Upgrade=upgrade, Back=back)
        self.assertIs(run["Upgrade"]["result"], False)
        self.assertIs(run["Back"]["result"], True, run["Back"]["comment"])
        self.assertEqual(run["Back"]["changes"]["v1/ConfigMap %s/settings" % self.name]["new"], {"data.mode": "two"})

    def test_watch_and_listen(self):
        """Salt runs it again where what it watches changed: at once with watch, at the end with listen."""
        self.bundle("one")
        path = os.path.join(self.root, "watched")
        state = ("applied", {"inventory": "default/" + self.name, "source": "salt://bundle.yaml"})
        for requisite in "watch", "listen":
            self.write("states/run.sls", json.dumps({
                "Watched": {"file.managed": [{"name": path}, {"contents": requisite}]},
                "Deploy": {"brine.applied": [{key: value} for key, value in dict(state[1], kubeconfig=self.kubeconfig).items()] + [{requisite: [{"file": "Watched"}]}]}}))
            for again in (True, False):
                run = self.call("state.apply", "run")
                self.assertIsInstance(run, dict, run)
                self.assertEqual({one["result"] for one in run.values()}, {True}, run)
                self.assertEqual([key for key in run if key.endswith("_|-mod_watch")] != [], again and not (requisite == "watch" and run_changed(run)), run)

    def test_two_states_with_the_same_object_in_one_run(self):
        def applied(mode):
            return ("applied", {"inventory": "default/" + self.name, "bundle": real.bundle(mode, self.name), "sub_states": True})

        run = self.run_states(First=applied("one"), Second=applied("two"))
        self.assertEqual(len([i for i in run if i.startswith("First: ")]), 4, sorted(run))
        self.assertEqual(len([i for i in run if i.startswith("Second: ")]), 3, sorted(run))
        self.assertEqual(run["First"]["changes"], {"objects": "4 changed"})

    def terminated(self, argv):
        """What a command of Salt prints that is terminated while brine waits for the Job: its children first, as saltutil.term_job does."""
        job, child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE), None
        while job.poll() is None and not (child and "Job late" in self.members_or_none()):
            time.sleep(0.1)
            child = child or next((pid for pid in real.children(job.pid) if "--output=salt-events" in real.command(pid)), None)
        if child and job.poll() is None:
            os.kill(child, signal.SIGTERM)
            job.terminate()
        out, err = (text.decode() for text in job.communicate())
        self.assertTrue(child, out + err)
        return out, err

    def test_a_signal_ends_the_run_and_the_job_still_returns(self):
        self.write("states/run.sls", json.dumps({
            "Deploy": {"brine.applied": [{"inventory": "default/" + self.name}, {"kubeconfig": self.kubeconfig}, {"timeout": 600},
                                         {"bundle": real.bundle("one", self.name, [real.late_job(self.name)])}]},
            "Next": {"test.nop": [{"require": [{"brine": "Deploy"}]}]}, "Unrelated": {"test.nop": [{"order": "last"}]},
        }))
        out, err = self.terminated([self.salt_call, "--local", "--config-dir=" + self.root, "--out=json", "--log-level=quiet", "state.apply", "run"])
        run = {k.split("_|-")[1]: v for k, v in json.loads(out)["local"].items()}
        self.assertIn("Interrupted by SIGTERM", run["Deploy"]["comment"])
        self.assertNotIn("Traceback", err)
        self.assertNotIn("Unrelated", run)
        again = self.run_states(Again=("applied", {"inventory": "default/" + self.name, "bundle": real.bundle("one", self.name)}))
        self.assertIs(again["Again"]["result"], True, again["Again"]["comment"])  # the lock was given back

    def test_no_value_of_a_secret_is_in_a_log_a_return_or_a_file(self):
        """At every log level, from a template and an SLS. The value is whole only in what is rendered: masterless, Salt logs pillar itself."""
        value, template = "n0t-to-be-seen", "{{ 'n0t-to' ~ '-be-seen' }}"
        self.write("states/bundle.yaml", "#!jinja\n" + real.bundle("one", self.name, secret=template))
        self.write("states/objects.sls", json.dumps({"Login": {"k.object_present": [{"manifest": {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of-sls", "namespace": "default"}, "stringData": {"password": template}}}]}}))
        seen, log = [], os.path.join(self.root, "audit.log")
        for arguments in (
            ["brine.applied", self.name, "inventory=default/" + self.name, "source=salt://bundle.yaml"],
            ["brine.applied", self.name + "-sls", "inventory=default/%s-sls" % self.name, "sls=objects"],
            ["brine.status", self.name, "namespace=default"], ["brine.get", "kind=Secret", "apiVersion=v1", "name=login", "namespace=" + self.name],
            ["brine.absent", self.name + "-sls", "inventory=default/%s-sls" % self.name],
        ):
            done = subprocess.run(
                [self.salt_call, "--local", "--config-dir=" + self.root, "--out=json", "--log-level=all", "--log-file=" + log, "--log-file-level=all"]
                + arguments + ["kubeconfig=" + self.kubeconfig], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            out = done.stdout.decode()
            self.assertEqual(done.returncode, 0, out)
            seen += [out, done.stderr.decode()]
        self.assertTrue(any("running [" in text for text in seen), "nothing is logged")
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    seen.append(path + ": " + file.read().decode("utf-8", "replace"))
        encoded = base64.b64encode((value + "-one").encode()).decode()[:16]
        for text in seen:
            for secret in (value, encoded):
                at = text.find(secret)
                self.assertEqual(at, -1, text[:80] + " … " + text[max(at - 200, 0):at] if at >= 0 else "")

    def test_an_orchestrate_run_that_is_killed_ends_without_a_traceback(self):
        salt_run = os.path.join(os.path.dirname(self.salt_call), "salt-run")
        if not os.path.exists(salt_run):
            self.skipTest("SKIPPED: no salt-run beside salt-call")
        self.write("master", json.dumps({
            "root_dir": self.root, "file_roots": {"base": [self.states]}, "user": "root",
            "brine": {"binary": self.brine, "kubeconfig": self.kubeconfig},
        }))
        self.addCleanup(os.remove, os.path.join(self.root, "master"))
        self.write("states/run.sls", json.dumps({
            "Deploy": {"brine.applied": [{"inventory": "default/" + self.name}, {"timeout": 600}, {"bundle": real.bundle("one", self.name, [real.late_job(self.name)])}]},
            "Other": {"test.nop": [{"order": "last"}]},
        }))
        run = [salt_run, "--config-dir=" + self.root, "--log-level=warning"]
        subprocess.run(run + ["saltutil.sync_all"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        out, err = self.terminated(run + ["state.orchestrate", "run"])
        self.assertIn("Interrupted by SIGTERM", out)
        self.assertNotIn("Traceback", out + err)
        self.assertNotIn("Other", out)

    def test_the_reactor_example_renders_to_a_reaction(self):
        text = real.documents()
        self.write("states/reaction.sls", text.split("# reactor/brine_drift.sls\n")[1].split("```")[0])
        for drift, want in ((True, {"Apply the platform again": {"local.state.apply": [{"tgt": "edge-1"}, {"args": [{"mods": "platform"}]}]}}), (False, {})):
            got = self.call("slsutil.renderer", "salt://reaction.sls", "data=" + json.dumps({"id": "edge-1", "data": {"drift": drift}}))
            self.assertEqual(got or {}, want)

    def members_or_none(self):
        done = subprocess.run(
            [self.brine, "status", "--inventory=default/" + self.name, "--kubeconfig=" + self.kubeconfig, "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        try:
            return ["{kind} {name}".format(**o) for o in json.loads(done.stdout.decode())["objects"] if o["ready"] != "gone"]
        except ValueError:
            return []

    def test_read_functions_in_a_template(self):
        self.bundle("one")
        self.apply()
        what = "apiVersion='v1', namespace='%s', kubeconfig='%s'" % (self.name, self.kubeconfig)
        calls = {
            "get": "salt['brine.get'](name='settings', kind='ConfigMap', %s).data" % what,
            "secret": "salt['brine.get'](name='login', kind='Secret', %s).data" % what,
            "gone": "salt['brine.get'](name='gone', kind='ConfigMap', %s)" % what,
            "exists": "salt['brine.exists'](name='settings', kind='ConfigMap', %s)" % what,
            "list": "salt['brine.list_objects'](kind='ConfigMap', label_selector='applyset.kubernetes.io/part-of', %s) | length" % what,
            "ready": "salt['brine.ready'](name='settings', kind='ConfigMap', %s)" % what,
            "digest": "salt['brine.digest'](name='settings', kind='ConfigMap', path='data:mode', %s)" % what,
            "inventories": "salt['brine.inventories'](kubeconfig='%s') | string" % self.kubeconfig,
            "drift": "salt['brine.drift']('%s', namespace='default', kubeconfig='%s').exitCode" % (self.name, self.kubeconfig),
            "rbac": "salt['brine.rbac'](source='salt://bundle.yaml')",
            "check": "salt['brine.check'](source='salt://bundle.yaml') | string",
        }
        text = "{%% set all = {%s} %%}{{ all | tojson }}" % ", ".join("%r: %s" % one for one in calls.items())
        self.write("states/template.jinja", text)
        got = self.call("slsutil.renderer", "salt://template.jinja", "default_renderer=jinja")
        got = json.loads(got) if isinstance(got, str) else got
        self.assertEqual(got["get"], {"mode": "one"})
        self.assertEqual(got["secret"], {"password": "***"})
        self.assertEqual((got["gone"], got["exists"], got["ready"], got["drift"]), (None, True, True, 0))
        self.assertGreater(got["list"], 0)
        self.assertEqual(got["digest"], "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed")
        self.assertIn(self.name, got["inventories"])
        self.assertIn("kind: ClusterRole", got["rbac"])
        self.assertIn("'errors': []", got["check"])
        run = self.run_states(settings=("waited", {"kind": "ConfigMap", "apiVersion": "v1", "namespace": self.name}))
        self.assertEqual((run["settings"]["result"], run["settings"]["changes"]), (True, {}), run)

    def test_single_objects(self):
        which = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": "default"}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name, "namespace": "default"}, "data": {"a": "1"}}
        made = ("present", {"manifest": manifest})
        patch = ("patched", dict(which, name=self.name, patch={"data": {"b": "2"}}))
        run = self.run_states(Make=made, Patch=patch)
        self.assertEqual([v["result"] for v in run.values()], [True, True], run)
        self.assertEqual(run["Patch"]["changes"], {"v1/ConfigMap default/" + self.name: {"old": {}, "new": {"data.b": "2"}}})
        again = self.run_states(Make=made, Patch=patch)
        self.assertEqual([(v["result"], v["changes"]) for v in again.values()], [(True, {}), (True, {})], again)
        gone = self.run_states(Patch=("patched", dict(which, name=self.name, absent=True)), Gone=("absent_object", dict(which, name=self.name)))
        self.assertEqual(gone["Patch"]["changes"], {"v1/ConfigMap default/" + self.name: {"old": {"data.b": "2"}, "new": {}}})
        self.assertEqual(gone["Gone"]["changes"], {"v1/ConfigMap default/" + self.name: {"old": "present", "new": "absent"}})
        missing = self.run_states(Patch=patch)
        self.assertIs(missing["Patch"]["result"], False)
        self.assertIn("only an existing object can be patched", missing["Patch"]["comment"])

    def test_messages_name_the_file_of_a_source(self):
        self.write("states/bundle.yaml", "#!jinja\n" + real.bundle("one", self.name))
        self.write("states/more.yaml", "{# gone #}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata:\n  port: 8080\n")
        ret = self.call("brine.applied", self.name, "source=[salt://bundle.yaml,salt://more.yaml]", "kubeconfig=" + self.kubeconfig)
        self.assertIs(ret["result"], False)
        self.assertIn("salt://more.yaml (rendered):6: ", ret["comment"])

    def test_what_salt_says_of_states_and_functions(self):
        """sys.argspec, sys.doc and state.sls_exists are what users look things up with."""
        for function, command in (("applied", "apply"), ("absent", "destroy"), ("rolled_back", "rollback"), ("planned", "apply")):
            spec = self.call("sys.state_argspec", "brine." + function)["brine." + function]
            self.assertLessEqual({"name", "inventory", "kubeconfig", "timeout"}, set(spec["args"]))
            self.assertEqual(spec, self.call("sys.argspec", "brine." + function)["brine." + function])
            takes = self.call("brine.version")["flags"][command]
            known = {one.replace("_", "-") for one in spec["args"]} - {"name", "source", "bundle", "sls", "path", "revision", "only-of"}
            own = {"prune", "events", "event-rate", "sub-states", "saltenv", "pillar", "defaults", "allow-empty-sls"}
            self.assertEqual(sorted(known - own - set(takes)), [])
        self.assertIn("labels", self.call("sys.state_argspec", "brine_object.labels_exist")["brine_object.labels_exist"]["args"])
        documented = self.call("sys.doc", "brine", "brine_object")
        self.assertEqual([name for name, text in documented.items() if not text], [])
        self.write("states/there.sls", "a:\n  brine.applied:\n    - bundle: 'a: b'\n")
        self.assertEqual([self.call("state.sls_exists", name) for name in ("there", "not_there")], [True, False])

    def test_a_plan_is_carried_out_exactly_or_refused(self):
        self.bundle("one")
        made = self.call("brine.plan", self.name, "inventory=default/" + self.name, "source=salt://bundle.yaml", "kubeconfig=" + self.kubeconfig)
        self.assertEqual((made["inventory"], made["summary"], len(made["changes"])), ("default/" + self.name, {"created": 4}, 4), made)
        self.assertTrue(made["plan"].startswith(self.root), made)
        state = STATE.format(name=self.name, kubeconfig=self.kubeconfig) + "    - plan: %(plan)s\n    - plan_digest: %(digest)s\n" % made
        self.write("states/deploy.sls", state)
        dry, _ = self.apply("test=True")
        self.assertEqual((dry["result"], dry["changes"]), (None, made["changes"]), dry["comment"])

        self.bundle("two")
        other, _ = self.apply()
        self.assertEqual((other["result"], other["changes"]), (False, {}))
        self.assertIn("the saved plan is out of date, and nothing was changed", other["comment"])
        self.assertIn("the bundle: the plan was made from", other["comment"])

        self.bundle("one")
        ret, _ = self.apply()
        self.assertEqual((ret["result"], ret["changes"]), (True, made["changes"]), ret["comment"])
        again, _ = self.apply()
        self.assertEqual((again["result"], again["changes"]), (False, {}))
        self.write("states/deploy.sls", state.replace(made["digest"], "sha256:0"))
        again, _ = self.apply()
        self.assertIn("is not the approved one", again["comment"])

    def test_absent(self):
        self.bundle("one")
        self.apply()
        self.write("states/gone.sls", "Remove it:\n  brine.absent:\n    - inventory: default/%s\n    - kubeconfig: %s\n" % (self.name, self.kubeconfig))
        run = self.call("state.apply", "gone")
        own = [v for k, v in run.items() if k.endswith("_|-absent")][0]
        self.assertIs(own["result"], True, own["comment"])
        self.assertEqual(len(own["changes"]), 4)

    def test_bad_bundle(self):
        self.write("states/bundle.yaml", "#!jinja\nkind: ConfigMap\nmetadata: {name: a}\n")
        ret, _ = self.apply()
        self.assertIs(ret["result"], False)
        self.assertIn("apiVersion", ret["comment"])


if __name__ == "__main__":
    unittest.main()
