"""
The modules over a real salt-ssh, which sends them and the states to the target: this
machine, by a program in place of ssh that runs what it is given.
"""

import json
import os
import subprocess
import sys
import unittest

import real
import test_salt_call

SSH = """#!{python}
import os, subprocess, sys
words = sys.argv[1:]
if os.path.basename(sys.argv[0]) == "scp":
    sys.exit(subprocess.call(["cp", "-p", words[-2], words[-1].split(":", 1)[1]]))
words = words[1:]  # the host
while words[:1] == ["-o"]:
    words = words[2:]
os.environ["PATH"] = {folder!r} + os.pathsep + os.environ["PATH"]
sys.exit(subprocess.call(["/bin/sh", "-c", " ".join(words)]) if words else 0)
"""


class SaltSSH(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.salt_ssh = os.path.join(os.path.dirname(real.salt_call()), "salt-ssh")
        if not os.path.exists(cls.salt_ssh):
            raise unittest.SkipTest("SKIPPED: no salt-ssh beside salt-call")
        cls.salt = type("Salt", (test_salt_call.SaltCall,), {})
        cls.addClassCleanup(cls.salt.doClassCleanups)
        cls.salt.setUpClass()
        with open(cls.salt_ssh) as file:
            python = file.readline()[2:].strip()  # that of Salt, for the target, too
        root = cls.salt.root
        os.makedirs(os.path.join(root, "ssh"))
        for name in ("ssh", "scp"):
            cls.salt.write("ssh/" + name, SSH.format(python=sys.executable, folder=os.path.dirname(python)))
            os.chmod(os.path.join(root, "ssh", name), 0o755)
        cls.salt.write("key", "")
        cls.salt.write("master", json.dumps({
            "root_dir": root, "file_roots": {"base": [cls.salt.states]}, "pillar_roots": {"base": [os.path.join(root, "pillar")]}}))
        cls.salt.write("roster", json.dumps({
            "target": {"host": "target.example.com", "user": "root", "priv": os.path.join(root, "key"), "thin_dir": os.path.join(root, "thin"),
                       "minion_opts": {"brine": {"binary": cls.salt.brine, "kubeconfig": cls.salt.kubeconfig}}}}))

    def ssh(self, *arguments):
        root = self.salt.root
        done = subprocess.run(
            [self.salt_ssh, "--config-dir=" + root, "--ignore-host-keys", "--out=json", "--log-level=quiet"] + list(arguments),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, PATH=os.path.join(root, "ssh") + os.pathsep + os.environ["PATH"]),
        )
        try:
            return json.loads(done.stdout.decode())["target"]
        except (ValueError, KeyError):
            raise AssertionError("salt-ssh printed {!r}, {!r}".format(done.stdout, done.stderr))

    def test_states_and_functions(self):
        def config_map(name):
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssh-" + name, "namespace": "default"}, "data": {"id": "{{ grains.id }}"}}

        os.makedirs(os.path.join(self.salt.states, "folder"))
        self.salt.write("states/folder/map.yaml", "#!jinja\n" + json.dumps(config_map("folder")))
        self.salt.write("states/objects.sls", json.dumps({"Map": {"k8s.object_present": [{"manifest": config_map("sls")}]}}))
        self.salt.write("states/run.sls", json.dumps({
            "Folder": {"brine.applied": [{"inventory": "default/by-ssh-folder"}, {"source": "salt://folder/"}, {"order": 1}]},
            "SLS": {"brine.applied": [{"inventory": "default/by-ssh-sls"}, {"sls": "objects"}, {"order": 2}]},
            "One": {"brine.present": [{"manifest": config_map("one")}, {"order": 3}]},
        }))
        for test, want in (("test=True", None), ("test=False", True)):
            run = self.ssh("--extra-filerefs=salt://objects.sls", "target", "state.apply", "run", test)
            self.addCleanup(self.salt.call, "brine.delete_object", "name=ssh-one", "kind=ConfigMap", "apiVersion=v1", "kubeconfig=" + self.salt.kubeconfig)
            for name in ("by-ssh-folder", "by-ssh-sls"):
                self.addCleanup(self.salt.call, "brine.absent", name, "inventory=default/" + name, "kubeconfig=" + self.salt.kubeconfig)
            self.assertIsInstance(run, dict, run)
            found = [(one["result"], len(one["changes"])) for one in sorted(run.values(), key=lambda one: one["__run_num__"])]
            self.assertEqual(found, [(want, 1)] * 3, run)
        got = self.ssh("target", "brine.get", "kind=ConfigMap", "apiVersion=v1", "name=ssh-folder")
        self.assertEqual(got.get("data"), {"id": "target"}, got)


if __name__ == "__main__":
    unittest.main()
