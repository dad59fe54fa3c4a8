"""A real, masterless Salt with these modules, the real binary and a real control plane."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import real

STATE = """
Deploy it:
  brine.applied:
    - source: salt://bundle.yaml
    - inventory: default/{name}
    - kubeconfig: {kubeconfig}
"""


class SaltCall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.salt_call, cls.brine, cls.kubeconfig = real.salt_call(), real.binary(), real.kubeconfig()
        cls.root = tempfile.mkdtemp(prefix="brine-salt-call-")
        cls.addClassCleanup(shutil.rmtree, cls.root, True)
        cls.states = os.path.join(cls.root, "states")
        for path in ("_modules", "_states"):
            shutil.copytree(os.path.join(real.HERE, path), os.path.join(cls.states, path))
        os.makedirs(os.path.join(cls.root, "var", "log", "salt"))
        cls.write("minion", json.dumps({
            "file_client": "local", "root_dir": cls.root, "id": "test-minion", "file_roots": {"base": [cls.states]},
            "pillar_roots": {"base": []}, "brine": {"binary": cls.brine},
        }))
        synced = cls.call("saltutil.sync_all")
        assert synced["modules"] == ["modules.brine"], synced

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
        """The state's own return, and those of the objects by their ids."""
        run = self.call("state.apply", "deploy", *arguments)
        self.assertIsInstance(run, dict, run)
        own = [v for k, v in run.items() if k.endswith("_|-applied")]
        self.assertEqual(len(own), 1, run)
        return own[0], {k.split("_|-")[1]: v for k, v in run.items() if not k.endswith("_|-applied")}

    def test_a_state_run_twice_and_test_mode(self):
        self.bundle("one")
        first, objects = self.apply()
        self.assertIs(first["result"], True, first["comment"])
        names = {o.replace("NS", self.name) for o in ("v1/Namespace NS", "v1/ConfigMap NS/settings", "v1/Secret NS/login", "apps/v1/Deployment NS/web")}
        self.assertEqual(set(first["changes"]), names)
        self.assertEqual(set(objects), names)
        for one in objects.values():
            self.assertEqual((one["result"], one["changes"]), (True, {"old": "absent", "new": "present"}))
        second, objects = self.apply()
        self.assertEqual((second["result"], second["changes"]), (True, {}), second["comment"])
        self.assertEqual({json.dumps(o["changes"]) for o in objects.values()}, {"{}"})

        self.bundle("two")
        dry, _ = self.apply("test=True")
        self.assertIs(dry["result"], None, dry["comment"])
        real_run, _ = self.apply()
        self.assertIs(real_run["result"], True, real_run["comment"])
        self.assertEqual(dry["changes"], real_run["changes"])
        self.assertEqual(len(dry["changes"]), 3)

        dry, _ = self.apply("test=True", 'pillar={"mode": "three"}')
        self.assertEqual(dry["changes"]["v1/ConfigMap %s/settings" % self.name]["new"], {"data.mode": "three"})

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
        ret, objects = self.apply()
        self.assertIs(ret["result"], True, ret["comment"])
        self.assertEqual(set(objects), {"Namespace", "Settings"})

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
