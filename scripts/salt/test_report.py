"""The runner without Salt: a job cache is given here."""

import json
import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_brine  # noqa: E402

CHANGED = "Changed inventory kube-system/platform: 1 created, 2 configured, 5 ready in 1.2 s, revision 2"
NOT_READY = (
    "Deployment.apps shop/web: configured, not-ready: time ran out (salt://web.yaml (rendered):13)\n"
    "Not ready in time: inventory kube-system/platform has 2 configured, 3 unchanged, 4 ready, 1 not ready (exit code 4). Run it again to continue"
)


def state(comment, result=True, changes=None, fun="applied", number=0, **more):
    return {"brine_|-Deploy it_|-Deploy it_|-" + fun: dict({
        "name": "Deploy it", "result": result, "changes": {"a": {}} if changes is None else changes, "comment": comment, "duration": 1300.0, "__run_num__": number}, **more)}


def orchestrate(jid, *states):
    run = {"salt_|-{0}_|-{0}_|-state".format(i): dict({"start_time": "09:00:01.000000", "duration": 60000.0, "result": True}, **one) for i, one in enumerate(states)}
    return {"vm_master": {"return": {"fun": "runner.state.orchestrate", "jid": jid, "return": {"outputter": "highstate", "data": {"vm_master": run}}}}}


class Report(unittest.TestCase):
    def setUp(self):
        self.runner = test_brine.load("_runners/brine.py", "brine_runner")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home, self.jobs, self.loads = folder.name, {}, {}
        returners = {
            "local_cache.get_jid": lambda jid: self.jobs.get(jid, {}), "local_cache.get_jids": lambda: {jid: {} for jid in self.loads},
            "local_cache.get_load": lambda jid: self.loads.get(jid, {}),
        }
        self.runner.__opts__ = {"cachedir": self.home, "master_job_cache": "local_cache"}
        minion = types.ModuleType("salt.minion")
        minion.MasterMinion = lambda opts: types.SimpleNamespace(returners=returners)
        before = sys.modules.get("salt.minion")
        sys.modules["salt.minion"] = minion
        self.addCleanup(lambda: sys.modules.pop("salt.minion") if before is None else sys.modules.update({"salt.minion": before}))

    def job(self, jid, returns, minions=None, fun="state.sls"):
        folder = os.path.join(self.home, "jobs", jid[:2], jid)
        os.makedirs(folder)
        with open(os.path.join(folder, "jid"), "w") as file:
            file.write(jid)
        self.jobs[jid] = returns if minions is None else {minion: {"return": value} for minion, value in returns.items()}
        if minions is not None:
            self.loads[jid] = {"fun": fun, "arg": ["platform"], "Minions": minions}

    def text(self, *args, **kwargs):
        data = self.runner.report(*args, **kwargs)["data"]
        if not isinstance(data, dict):
            return data
        self.assertEqual((sorted(data), data["retcode"], data["report"].splitlines()[-2:]), (["report", "retcode"], 1, ["", "exit code:"]))
        return data["report"][:-len("\n\nexit code:")]

    def test_a_job_of_states(self):
        self.job("20261122090001000000", {"east": state(CHANGED), "west": state(NOT_READY, False)}, ["east", "north", "west"])
        self.assertEqual(self.text("20261122090001000000").splitlines(), [
            "minion  run        result     exit  objects                    not ready  seconds",
            "east    Deploy it  changed       0  1 created, 2 configured                   1.2",
            "north              no answer",
            "west    Deploy it  failed        4  2 configured, 3 unchanged          1      1.3",
            "", "north:", "  the minion has not returned",
            "", "west, Deploy it:", "  Deployment.apps shop/web: configured, not-ready: time ran out (salt://web.yaml (rendered):13)",
            "", "3 runs on 3 minions: 1 changed, 1 failed, 1 no answer",
        ])

    def test_a_preview_says_what_is_not_ready_now(self):
        dry = state("Would change inventory a/b: 1 pruned", None, warnings=["Not ready now: Pod a: waits; Pod b: waits"])
        self.job("20261122090001000000", {"east": dry}, ["east"])
        row, = self.runner.report(20261122090001000000, out="data")
        self.assertEqual((row["result"], row["objects"], row["notReadyCount"]), ("would change", {"pruned": 1}, 2))

    def test_an_orchestrate_has_what_salt_leaves_out(self):
        """Minions without changes are not in its changes; in a batch, Salt takes an event of a failed state for the return."""
        self.job("20261122090000000000", orchestrate("20261122090000000000", {
            "comment": "States ran successfully. Updating b. No changes made to a, c.",
            "changes": {"out": "highstate", "ret": {"b": state(CHANGED), "d": "Error: brine.applied"}}}))
        self.job("20261122090002000000", {"a": state("Nothing to change: inventory a/b has 5 unchanged in 0.1 s", changes={})}, ["a"])
        self.job("20261122090003000000", {"b": state(CHANGED), "d": state(NOT_READY, False)}, ["b", "d", "e"])
        self.job("20261122090400000000", {"c": state(CHANGED)}, ["c"])  # after it
        rows = self.runner.report("20261122090000000000", out="data")
        self.assertEqual([(row["minion"], row["result"]) for row in rows], [("a", "unchanged"), ("b", "changed"), ("d", "failed"), ("e", None)])
        self.assertIn("4 runs on 4 minions", self.text("20261122090000000000"))
        self.assertEqual(len(self.runner.report("20261122090000000000,20261122090400000000", out="data")), 5)
        del self.jobs["20261122090400000000"]
        self.assertEqual(self.runner.report(out="data"), rows)  # the last
        once = self.runner.report(since="20261122090000000000", out="data")
        self.assertEqual(sorted(row["minion"] for row in once if row["result"]), ["a", "b", "d"])

    def test_each_minion_that_was_asked_is_in_it(self):
        """By the job that an orchestrate names: who was silent, who changed nothing, who failed before brine ran. The exit code tells."""
        nothing = state("Nothing to change: inventory a/b has 5 unchanged in 0.1 s", changes={})
        self.job("20261122090000000000", orchestrate("20261122090000000000", {
            "comment": "States ran successfully. Updating b.", "__jid__": "20261122090002000000", "changes": {"out": "highstate", "ret": {"b": state(CHANGED)}}}))
        self.job("20261122090002000000", {"a": nothing, "b": state(CHANGED), "bad": ["Rendering SLS 'base:platform' failed: x"], "other": {"test_|-a_|-a_|-nop": {"result": True}}},
                 ["a", "b", "bad", "other", "silent"])
        rows = self.runner.report("20261122090000000000", out="data")
        self.assertEqual([(row["minion"], row["result"]) for row in rows], [("a", "unchanged"), ("b", "changed"), ("bad", "failed"), ("other", "unchanged"), ("silent", None)])
        shown = self.runner.report("20261122090000000000")["data"]
        self.assertEqual(shown["retcode"], 1)
        self.assertIn("bad:\n  Rendering SLS 'base:platform' failed: x\n", shown["report"])
        self.assertIn("5 runs on 5 minions: 1 changed, 2 unchanged, 1 failed, 1 no answer", shown["report"])
        self.assertEqual(self.runner.report(since="20261122090000000000")["data"]["retcode"], 1)
        del self.jobs["20261122090002000000"]["bad"]
        self.loads["20261122090002000000"]["Minions"] = ["a", "b", "other"]
        self.assertNotIn("exit code", self.runner.report("20261122090000000000")["data"])

    def test_a_rollback_that_had_nothing_to_do_is_no_run(self):
        back = dict(state("Changed inventory a/b: 2 configured in 0.5 s", fun="rolled_back", number=1), **state(NOT_READY, False))
        self.job("20261122090001000000", {"a": back, "b": dict(state(CHANGED), **state("onfail", fun="rolled_back", changes={}))}, ["a", "b"])
        rows = self.runner.report("20261122090001000000", out="data")
        self.assertEqual([(row["minion"], row["result"]) for row in rows], [("a", "failed"), ("a", "changed"), ("b", "changed")])

    def test_what_onlyif_skipped_is_no_run(self):
        """It was not carried out: it has no exit code. A minion that has nothing else ran no state of brine."""
        for jid, comment, why in (("20261122090001000000", "onlyif condition is false", {"skip_watch": True}), ("20261122090002000000", "State was not run because none of the onchanges reqs changed", {"__state_ran__": False})):
            skipped = state(comment, changes={}, number=1, **why)
            self.job(jid, {"a": dict(skipped, **state(CHANGED, fun="absent")), "b": skipped}, ["a", "b"])
            rows = self.runner.report(jid, out="data")
            self.assertEqual([(row["minion"], row["result"], row["exit"], row["comment"]) for row in rows], [
                ("a", "changed", 0, CHANGED), ("b", "unchanged", None, "no state of brine ran")], comment)

    def test_results_and_plans(self):
        result = {
            "kind": "Result", "command": "apply", "dryRun": "none", "exitCode": 1, "inventory": {"name": "shop"}, "errors": ["broken"],
            "summary": {"created": 1, "failed": 1, "seconds": 2.0}, "objects": [{"kind": "Service", "namespace": "shop", "name": "web", "action": "failed", "error": "port 0"}]}
        plan = {"plan": "/p", "digest": "sha256:1", "summary": {"created": 2}, "inventory": "a/b", "changes": {"a": {}}, "comment": ""}
        self.job("20261122090001000000", {"east": result, "west": plan}, ["east", "west"])
        text = self.text("20261122090001000000")
        self.assertIn("east    apply shop   failed           1  1 created, 1 failed                 2.0\n", text)
        self.assertIn("  broken\n  Service shop/web: port 0\n", text)
        self.assertIn("west, plan of a/b:\n  sha256:1\n", text)

    def test_the_exit_code_of_changes_is_no_failure(self):
        result = {"kind": "Result", "command": "apply", "dryRun": "none", "exitCode": 2, "inventory": {"name": "shop"}, "summary": {"created": 1, "seconds": 2.0}}
        self.job("20261122090001000000", {"east": result, "west": dict(result, dryRun="server")}, ["east", "west"])
        rows = self.runner.report("20261122090001000000", out="data")
        self.assertEqual([(row["exit"], row["result"]) for row in rows], [(2, "changed"), (2, "would change")])

    def test_a_page_is_written_and_escaped(self):
        self.job("20261122090001000000", {"east": state("<script>alert(1)</script>\n" + NOT_READY, False)}, ["east"])
        path = os.path.join(self.home, "report.html")
        self.assertEqual(self.text(file=path), "1 run of brine, written to " + path)
        with open(path) as file:
            page = file.read()
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        self.assertIn("&lt;script&gt;alert", page)
        self.assertNotIn("<script", page)
        self.assertEqual([name for name in os.listdir(self.home) if name.startswith(".brine")], [])

    def test_arguments(self):
        self.assertEqual(self.text(), "No run of brine in the job cache.")
        self.assertEqual(self.text("20261122090001000000"), "No run of brine in the jobs 20261122090001000000.")
        for given, says in (({"out": "xml"}, "give text, html or data"), ({"out": "data", "file": "/x"}, "cannot be written"),
                            ({"since": "soon"}, "give a time such as 30m"), ({"jid": 1, "since": "1h"}, "not both")):
            with self.assertRaisesRegex(Exception, says):
                self.runner.report(**given)
        self.assertEqual(self.runner.report(since="30m", out="data"), [])

    def test_rows_are_json(self):
        self.job("20261122090001000000", {"east": state(CHANGED)}, ["east"])
        self.assertEqual(json.loads(json.dumps(self.runner.report(out="data")))[0]["objects"], {"created": 1, "configured": 2})


if __name__ == "__main__":
    unittest.main()
