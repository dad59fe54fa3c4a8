"""scripts/salt/rewrite on the shipped samples (../shared/bundles), and on a small tree."""

import os
import subprocess
import sys
import tempfile
import unittest

import real

BUNDLES = os.path.join(os.path.dirname(real.ROOT), "shared", "bundles")

TREE = {
    "addon/deployed.sls": """include:
  - .chart
  - addon.other

# A comment stays.
Settings:
  metalk8s_kubernetes.object_present:
    - manifest: {{ manifest | json }}
    - require:
      - metalk8s_kubernetes: Namespace
Cordon:
  module.run:
    - metalk8s_kubernetes.cordon_node:
      - name: {{ salt['metalk8s_kubernetes.get_object'](kind='Node', name='a', apiVersion='v1').metadata.name }}
""",
    "addon/chart.sls": "#!jinja | metalk8s_kubernetes kubeconfig=/etc/x\n\nkind: A\n",
    "other.txt": "metalk8s_kubernetes.object_present",
}


class Rewrite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.out = folder.name, os.path.join(folder.name, "out")

    def rewrite(self, *arguments):
        done = subprocess.run([sys.executable, os.path.join(real.HERE, "rewrite")] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        return done.returncode, done.stdout

    def read(self, *path):
        with open(os.path.join(*path), encoding="utf-8") as file:
            return file.read()

    def test_states_requisites_calls_and_what_is_left(self):
        tree = os.path.join(self.folder, "tree")
        for path, text in TREE.items():
            os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
            with open(os.path.join(tree, path), "w") as file:
                file.write(text)
        code, said = self.rewrite(tree, "--out", self.out, "--bundle", "kube-system/platform")
        self.assertEqual(code, 1)
        self.assertEqual(said.splitlines(), [
            "addon/chart.sls:1: a file of objects: a source of brine.applied",
            "addon/chart.sls:1: LEFT: arguments of the renderer are dropped: give kubeconfig and context to brine: #!jinja | metalk8s_kubernetes kubeconfig=/etc/x",
            "addon/deployed.sls:7: object_present", "addon/deployed.sls:10: requisite", "addon/deployed.sls:14: get_object",
            "addon/deployed.sls:13: LEFT: brine_object has no cordon_node",
            "addon/deployed.sls:2: LEFT: chart is a file of objects now, which brine.applied takes: remove this",
            "brine.sls: one state for 1 files of objects", "2 files changed, 1 of them files of objects; 3 places left"])
        want = TREE["addon/deployed.sls"].replace("metalk8s_kubernetes", "brine_object").replace("brine_object.cordon_node", "metalk8s_kubernetes.cordon_node")
        self.assertEqual(self.read(self.out, "addon/deployed.sls"), want)
        self.assertEqual(self.read(self.out, "addon/chart.sls"), "#!jinja\n\nkind: A\n")
        self.assertEqual(self.read(self.out, "other.txt"), TREE["other.txt"])
        self.assertIn("    - inventory: kube-system/platform\n", self.read(self.out, "brine.sls"))
        self.assertEqual(self.rewrite(tree, "--out", self.out)[0], 2)  # never over what is there
        again = self.rewrite(self.out)
        self.assertNotIn("object_present\n", again[1])

    @unittest.skipUnless(os.path.isdir(BUNDLES), "SKIPPED: no samples in ../shared/bundles")
    def test_the_samples(self):
        for name, files, objects, left in (("metalk8s-old", None, None, 0), ("metalk8s-new", 6, 6, 0), ("salt-output", 1, 0, 0)):
            out = os.path.join(self.folder, name)
            code, said = self.rewrite(os.path.join(BUNDLES, name), "--out", out, "--bundle", "kube-system/platform")
            self.assertEqual(code, 1 if left else 0, said)
            if files is not None:
                self.assertIn("{} files changed, {} of them files of objects; {} places left".format(files, objects, left), said)
            for folder, _, names in os.walk(out):
                for one in names:
                    if one.endswith((".yaml", ".sls")):
                        self.assertNotIn("metalk8s_kubernetes", self.read(folder, one))
        # Line by line the same, but for the names.
        before, after = (self.read(folder, "metalk8s-new/dex-chart.yaml").split("\n") for folder in (BUNDLES, self.folder))
        self.assertEqual(len(before), len(after))
        self.assertEqual([n for n, lines in enumerate(zip(before, after), 1) if lines[0] != lines[1]], [1, 169])

    @unittest.skipUnless(os.path.isdir(BUNDLES), "SKIPPED: no samples in ../shared/bundles")
    def test_brine_takes_the_rewritten_samples(self):
        out = os.path.join(self.folder, "new")
        self.rewrite(os.path.join(BUNDLES, "metalk8s-new"), "--out", out)
        done = subprocess.run([real.binary(), "check", "-f", out, "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stdout.decode()[-2000:] + done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
