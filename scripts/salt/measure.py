"""
What Salt adds to brine, and what the modules add: times of a run of 300 objects that
changes nothing, as a table, and the size of what a run that changes all of them returns.
By hand: python3 scripts/salt/measure.py [RUNS]
"""

import json
import subprocess
import sys
import time

import real
import test_salt_call


class Measure(test_salt_call.SaltCall):
    def runTest(self):
        runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
        self.name = "salt-measure"
        maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m-%d" % i, "namespace": "default"}, "data": {"k": "v"}} for i in range(300)]
        self.write("states/bundle.yaml", "\n---\n".join(json.dumps(m) for m in maps))
        self.write("states/deploy.sls", test_salt_call.STATE.format(name=self.name, kubeconfig=self.kubeconfig))
        self.write("states/nothing.sls", "Nothing:\n  test.nop: []\n")
        self.addCleanup(self.call, "brine.absent", self.name, "inventory=default/" + self.name, "kubeconfig=" + self.kubeconfig)
        for what in "creates", "changes":
            print("what a run returns that %s 300 objects: %.1f KB" % (what, len(json.dumps(self.apply()[0])) / 1024.0))
            self.write("states/bundle.yaml", "\n---\n".join(json.dumps(dict(m, data={"k": what, "more": "v"})) for m in maps))
        self.apply()
        bare = [self.brine, "apply", "-f", self.states + "/bundle.yaml", "--inventory=default/" + self.name, "--kubeconfig=" + self.kubeconfig, "-o", "json"]
        rows = {"the binary alone": [], "salt-call, a state that does nothing": [], "salt-call, brine.applied": [], "of it the state": [], "of it the module and the pipe": []}
        for _ in range(runs):
            alone = self.timed(lambda: subprocess.run(bare, stdout=subprocess.DEVNULL, check=True))[0]
            nothing = self.timed(lambda: self.call("state.apply", "nothing"))[0]
            whole, (ret, _) = self.timed(self.apply)
            state = ret["duration"] / 1000.0
            rendering = self.timed(lambda: self.call("slsutil.renderer", "salt://bundle.yaml", "default_renderer=jinja"))[0]
            for row, value in zip(rows.values(), (alone, nothing, whole, state, state - alone)):
                row.append(value)
            print("rendering alone, with salt-call: %.2f s" % rendering)
        for what, values in rows.items():
            print("%-40s %6.2f s (least of %d)" % (what, min(values), runs))

    @staticmethod
    def timed(function):
        started = time.time()
        got = function()
        return time.time() - started, got

    def setUp(self):
        pass


if __name__ == "__main__":
    Measure.setUpClass()
    try:
        measure = Measure()
        measure.runTest()
    finally:
        measure.doCleanups()
        Measure.doClassCleanups()
