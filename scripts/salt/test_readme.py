"""
The examples of the documents, run by a real, masterless Salt with the real binary on a real
control plane. Those that need a master are run by test_master.py.
"""

import functools
import hashlib
import http.server
import json
import os
import re
import shlex
import textwrap
import threading
import unittest

import real
import test_salt_call

# The first words of the examples that are not run here, and where they are.
ELSEWHERE = {
    "beacons:": "test_master.py", "# /etc/salt/master.d/reactor.conf": "test_master.py", "# reactor/brine_drift.sls": "test_master.py", "# reactor/brine_failed.sls": "test_master.py",
    "# orchestrate/deploy.sls": "test_master.py", "# orchestrate/preview.sls": "test_master.py", "# orchestrate/fleet.sls": "test_master.py",
    "# /etc/salt/master.d/brine.conf": "test_master.py", "# /etc/salt/master.d/peer_run.conf": "test_master.py",
    "# metalk8s/addons/prometheus-operator/post-cleanup.sls": "a file to delete, of a module that is not here",
}


def examples():
    return [textwrap.dedent(one) for one in re.findall(r"^ *```yaml\n(.*?)^ *```", real.documents(), re.S | re.M)]


def example(beginning):
    """The one example that begins so."""
    found = [one for one in examples() if one.startswith(beginning)]
    assert len(found) == 1, "{} examples begin with {!r}".format(len(found), beginning)
    return found[0]


def carry_out(case, digest):
    return case.example("Carry out the approved plan:").replace("{{ pillar.plan_digest }}", digest)


def config_map(name, namespace="default", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.salt = type("Salt", (test_salt_call.SaltCall,), {})
        cls.addClassCleanup(cls.salt.doClassCleanups)
        cls.salt.setUpClass()
        os.makedirs(os.path.join(cls.salt.states, "platform"))
        os.makedirs(os.path.join(cls.salt.root, "minion.d"))
        cls.salt.write("pillar/brine.sls", cls.example("brine:\n  binary"))

    @classmethod
    def example(cls, beginning):
        """The text of an example with the paths of this machine."""
        return example(beginning).replace("/etc/kubernetes/admin.conf", cls.salt.kubeconfig).replace("/usr/local/bin/brine", cls.salt.brine)

    def run_sls(self, text, *arguments):
        """The returns of an SLS, in order."""
        self.salt.write("states/run.sls", text)
        run = self.salt.call("state.apply", "run", *arguments)
        self.assertIsInstance(run, dict, run)
        return sorted(run.values(), key=lambda one: one["__run_num__"])

    def twice(self, text, *arguments):
        """An SLS in test mode, and then for real. Both report the same changes."""
        dry = self.run_sls(text, "test=True", *arguments)
        ran = self.run_sls(text, *arguments)
        self.assertEqual(({one["result"] for one in dry}, {one["result"] for one in ran}), ({None}, {True}), (dry, ran))
        return dry, ran

    def yaml(self, text):
        self.salt.write("states/data.yaml", text)
        return self.salt.call("slsutil.renderer", "salt://data.yaml", "default_renderer=yaml")

    def objects(self, *objects):
        which = [dict(apiVersion=one["apiVersion"], kind=one["kind"], **one["metadata"]) for one in objects]
        for one, key in zip(objects, which):
            self.salt.call("brine.create_object", "manifest=" + json.dumps(one))
            self.addCleanup(self.salt.call, "brine.delete_object", *["{}={}".format(k, key[k]) for k in ("name", "kind", "apiVersion", "namespace") if k in key])

    def platform(self, value):
        self.salt.write("states/platform/settings.yaml", json.dumps(config_map("readme-settings", value=value)))
        self.addCleanup(self.salt.call, "brine.absent", "platform")

    def test_a_bundle_a_plan_the_drift_and_the_way_back(self):
        self.platform("1")
        sls = self.example("platform:\n  brine.applied")
        dry, ran = self.twice(sls)
        self.assertEqual((len(ran[0]["changes"]), ran[0]["changes"]), (1, dry[0]["changes"]))
        self.assertEqual(self.run_sls(sls)[0]["changes"], {})

        self.salt.write("states/platform/settings.yaml", json.dumps(config_map("readme-settings", value="2")))
        planned = self.example("Plan the platform:")
        self.assertEqual((self.run_sls(planned, "test=True")[0]["result"], self.run_sls("# none\n" + carry_out(self, "sha256:0"))[0]["result"]), (None, False))
        plan, again = [self.run_sls(planned)[0] for _ in range(2)]
        self.assertEqual((plan["result"], plan["changes"]), (True, {"plan": {"old": "absent", "new": plan["plan"]["digest"]}}))
        self.assertEqual((again["result"], again["changes"], again["plan"]["digest"]), (True, {}, plan["plan"]["digest"]))
        command = re.search(r"^    salt-call (brine.plan .*)$", real.documents(), re.M).group(1)
        in_file = self.salt.call(*shlex.split(command))
        self.assertTrue(os.path.exists(in_file["plan"]))
        self.assertEqual((in_file["summary"], in_file["changes"]), (plan["plan"]["summary"], plan["plan"]["changes"]))
        self.assertIs(self.run_sls(carry_out(self, "sha256:0"))[0]["result"], False)
        self.twice(carry_out(self, plan["plan"]["digest"]))

        schedule = self.yaml(self.example("schedule:"))["schedule"]
        for job in schedule.values():
            found = self.salt.call(job["function"], *(job["args"] + ["{}={}".format(*one) for one in job["kwargs"].items()]))
            self.assertEqual((found["wanted"], {one["action"] for one in found["objects"]}), ("revision 2", {"unchanged"}), found)

        bad = dict(config_map("readme-settings", value="3"), data="not a mapping")
        back = self.example("Back to the last good revision:")
        self.salt.write("states/platform/settings.yaml", json.dumps(bad))
        upgrade = sls.replace("platform:\n", "Deploy the platform of 2:\n", 1) + "    - inventory: kube-system/platform\n"
        failed, rolled_back = self.run_sls("{% set version = 2 %}\n" + upgrade + back)
        self.assertIs(failed["result"], False)
        self.assertEqual((rolled_back["result"], rolled_back["changes"]), (True, {}), rolled_back["comment"])

    def test_the_binary_is_installed_by_its_checksum(self):
        path, folder = os.path.join(self.salt.root, "installed"), os.path.join(self.salt.root, "web")
        os.makedirs(folder)
        self.salt.write("web/brine-0.3.0", "#!/bin/sh\n")
        server = http.server.HTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        text = example("/usr/local/bin/brine:").replace("/usr/local/bin/brine", path)
        text = text.replace("https://files.example.com", "http://127.0.0.1:{}".format(server.server_port))
        right = hashlib.sha256(b"#!/bin/sh\n").hexdigest()
        self.assertIs(self.run_sls(text, "pillar=" + json.dumps({"brine_sha256": "0" * 64}))[0]["result"], False)
        self.assertFalse(os.path.exists(path))
        self.assertIs(self.run_sls(text, "pillar=" + json.dumps({"brine_sha256": right}))[0]["result"], True)
        self.assertTrue(os.access(path, os.X_OK))

    def test_pinned(self):
        self.salt.write("minion.d/brine.conf", self.example("# /etc/salt/minion.d/brine.conf"))
        self.addCleanup(os.remove, os.path.join(self.salt.root, "minion.d/brine.conf"))
        self.assertIsInstance(self.salt.call("brine.inventories", "namespace=default"), dict)
        got = self.salt.call("brine.absent", "platform", "kubeconfig=/tmp/other")
        self.assertEqual((got["result"], got["comment"]), (False, "kubeconfig is not an argument here: `pin: True` in the configuration"))

    def test_single_objects(self):
        labels = {"app": "readme"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        self.objects(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {"a": "b"}}},
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kube-proxy", "namespace": "kube-system"}, "spec": spec},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "etcd", "namespace": "kube-system"}, "spec": dict(spec, replicas=3, serviceName="etcd")},
        )
        patched, proxy, etcd = self.run_sls(self.example("Set the version of node-1:"))
        self.assertEqual([one["result"] for one in (patched, proxy, etcd)], [True] * 3, (patched, proxy, etcd))
        self.assertEqual(patched["changes"], {"v1/Node node-1": {"old": {}, "new": {'metadata.labels["example.com/version"]': "2.12"}}})

    def test_without_the_modules(self):
        folder = os.path.join(self.salt.root, "srv")
        os.makedirs(folder)
        self.salt.write("srv/map.yaml", json.dumps(config_map("readme-cmd")))
        self.addCleanup(self.salt.call, "brine.absent", "platform")
        text = self.example("Apply the platform:\n  cmd.run").replace("brine apply", self.salt.brine + " apply").replace("/srv/platform", folder)
        dry, ran = self.twice(text)
        self.assertEqual(dry[0]["changes"]["objects"], ran[0]["changes"]["objects"])
        self.assertEqual(ran[0]["changes"]["summary"]["created"], 1)

    def test_a_tree_whose_sls_are_compiled(self):
        """With the annotation that replaces the slot."""
        settings = config_map("dex-settings")
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dex", "namespace": "default"}}
        annotated = self.yaml(self.example("metadata:\n  annotations:"))
        web = json.loads(real.bundle("one", "default").split("\n---\n")[-1])
        web["metadata"] = dict(annotated["metadata"], name="dex", namespace="default")
        for name, objects in (("dex", [settings, secret, web]), ("nginx-ingress", [config_map("nginx")])):
            folder = "states/metalk8s/addons/{}/deployed".format(name)
            os.makedirs(os.path.join(self.salt.root, folder))
            self.salt.write(folder + "/chart.sls", json.dumps({
                "{kind} {metadata[name]}".format(**one): {"metalk8s_kubernetes.object_present": [{"manifest": one}]} for one in objects}))
        self.addCleanup(self.salt.call, "brine.absent", "platform")
        _, ran = self.twice(self.example("# metalk8s/deployed/platform.sls"))
        self.assertEqual(len(ran[0]["changes"]), 4)

    def test_every_example_is_run(self):
        with open(__file__) as file:
            run = re.findall(r'self\.example\("(.*?)"\)|cls\.example\("(.*?)"\)|= example\("(.*?)"\)|case\.example\("(.*?)"\)', file.read())
        beginnings = ["".join(one).replace("\\n", "\n") for one in run] + list(ELSEWHERE)
        self.assertEqual(sorted(example(one) for one in beginnings), sorted(examples()))


if __name__ == "__main__":
    unittest.main()
