"""The Salt modules without Salt: its dunders and exceptions are given here, brine is a script."""

import ast
import collections.abc
import contextlib
import datetime
import glob
import hashlib
import importlib.util
import io
import json
import logging
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import traceback
import time
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import real  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = "hunter2-in-the-bundle"
MODULES = tuple(sorted(os.path.relpath(path, HERE) for folder in ("_beacons", "_modules", "_states", "_runners") for path in glob.glob(os.path.join(HERE, folder, "*.py"))))
LOADED = tuple(path for path in MODULES if not os.path.basename(path).startswith("_"))  # by Salt


def stub_salt():
    """salt.exceptions is all that the modules import of Salt."""
    if "salt.exceptions" in sys.modules:
        return
    salt, exceptions = types.ModuleType("salt"), types.ModuleType("salt.exceptions")
    for name in ("CommandExecutionError", "SaltInvocationError"):
        setattr(exceptions, name, type(name, (Exception,), {}))
    sys.modules.update({"salt": salt, "salt.exceptions": exceptions})


def load(path, name):
    stub_salt()
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def join_objects(module, functions):
    """Gives a module brine its brine_object, which sees the same dunders."""
    other = load("_modules/brine_object.py", "brine_object_module")

    def forwarded(name):
        def call(*args, **kwargs):
            vars(other).update((key, vars(module)[key]) for key in ("__opts__", "__pillar__", "__grains__", "__context__", "__salt__") if key in vars(module))
            return getattr(other, name)(*args, **kwargs)

        return call

    functions.update(("brine_object." + name, forwarded(name)) for name in vars(other) if not name.startswith("_") and callable(getattr(other, name)))


# A brine that writes down how it was called and plays what the test wrote.
FAKE = '''#!{python}
import json, os, signal, sys, time
home = {home!r}
if sys.argv[1] == "version":
    open(os.path.join(home, "versions"), "a").write("x")
    print(open(os.path.join(home, "version.json")).read())
    sys.exit(0)
if sys.argv[1] == "status" and ("--wait=ready" in sys.argv or os.environ.get("BRINE_WAIT", "true") not in ("true", "false")):
    print(json.dumps({{"errors": ["--wait=ready: invalid value: use true or false"]}}))
    sys.exit(3)
told = {{"argv": sys.argv[1:], "env": {{k: v for k, v in os.environ.items() if k.startswith("BRINE_")}}}}
if sys.argv[1] == "status" and os.path.exists(os.path.join(home, "status.json")):
    print(open(os.path.join(home, "status.json")).read())
    sys.exit(4)
if sys.argv[1] == "history" and os.path.exists(os.path.join(home, "history.json")):
    print(open(os.path.join(home, "history.json")).read())
    sys.exit(0)
told["stdin"] = "" if sys.stdin.closed else sys.stdin.read()
json.dump(told, open(os.path.join(home, "call.json"), "w"))
exec(open(os.path.join(home, "play.py")).read())
'''


def event(kind, **more):
    return dict({"type": kind, "time": "2026-07-01T01:02:03Z", "elapsedSeconds": 1}, **more)


def of(kind, name, group="", namespace="shop"):
    return {"group": group, "version": "v1", "kind": kind, "namespace": namespace, "name": name}


RETURN = {
    "name": "platform",
    "result": True,
    "changes": {"v1/ConfigMap shop/a": {"old": "absent", "new": "present"}},
    "comment": "Changed inventory shop/platform: 1 created",
    "warnings": ["policy/v1beta1 is deprecated"],
    "sub_state_run": [{"low": {}, "changes": {}, "result": True, "comment": "created"}],
    "a key of a later release": [1],
}
RETURNED = {key: value for key, value in RETURN.items() if key != "sub_state_run"}
FLAGS = {
    "apply": ["namespace", "kubeconfig", "max-prune", "no-prune", "timeout", "token", "recursive", "take-over-from"],
    "destroy": ["kubeconfig", "timeout"], "history": ["kubeconfig"], "rollback": ["kubeconfig", "max-prune"],
}
RESULT = {"apiVersion": "brine.dev/v1", "kind": "Result", "objects": [], "exitCode": 0, "new": {"field": 1}}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name
        self.cache = os.path.join(self.home, "cache")
        os.mkdir(self.cache)
        self.builds = 0
        self.binary = os.path.join(self.home, "brine")
        with open(self.binary, "w") as file:
            file.write(FAKE.format(python=sys.executable, home=self.home))
        os.chmod(self.binary, stat.S_IRWXU)
        self.say_version({"version": "v0.1.0", "features": ["apply", "output=salt", "output=salt-events"]})
        self.brine = load("_modules/brine.py", "brine_module")
        self.sent = []
        self.rendered = {}
        self.unread = set()
        self.asked = []
        self.brine.__opts__ = {"test": False, "saltenv": None, "cachedir": self.cache, "brine": {"binary": self.binary}}
        self.brine.__pillar__ = {}
        self.brine.__grains__ = {}
        self.brine.__context__ = {}
        self.brine.__salt__ = {
            "event.send": lambda tag, data: self.sent.append((tag, data)) or True,
            "slsutil.renderer": self.renderer,
            "cp.list_master": lambda saltenv, prefix: [],
            "cp.cache_file": self.cache_file,
            "publish.runner": lambda fun, arg: {"roots": arg[0]["saltenv"]},
        }
        join_objects(self.brine, self.brine.__salt__)
        self.play([event("finished", **{"return": RETURN})])

    def cache_file(self, path, saltenv):
        """The master's file in the minion's cache; its content, of those that are not rendered, is its saltenv."""
        if path in self.unread:
            return False
        file = os.path.join(self.cache, "files", path[len("salt://"):])
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w") as content:
            content.write("{{ $labels }} " + saltenv)
        return file

    def renderer(self, path=None, default_renderer=None, saltenv=None, **kwargs):
        if not path.startswith("salt://"):  # it was fetched before
            path = "salt://" + os.path.relpath(path, os.path.join(self.cache, "files"))
        self.asked.append((path, default_renderer, saltenv, kwargs))
        return self.rendered.get(path, {})

    def say_version(self, document):
        with open(os.path.join(self.home, "version.json"), "w") as file:
            json.dump(document, file)
        self.builds += 1
        os.utime(self.binary, (self.builds, self.builds))

    def play(self, events=(), code=0, then=""):
        """What the fake does: print events, run some Python, exit."""
        lines = ["print({!r}, flush=True)".format(json.dumps(e)) for e in events]
        with open(os.path.join(self.home, "play.py"), "w") as file:
            file.write("\n".join(lines + [textwrap.dedent(then), "sys.exit({})".format(code)]))

    def called(self):
        with open(os.path.join(self.home, "call.json")) as file:
            call = json.load(file)
        first, _, rest = (call["stdin"] or "").partition("\n")
        if first.startswith("# brine.dev/rendering: "):
            call.update(stdin=rest, rendering=json.loads(first.split(": ", 1)[1]))
        return call


class Arguments(Case):
    def test_every_flag_by_name(self):
        self.brine.applied(
            "platform", bundle="x", namespace="ns", kubeconfig="/k", context="c", wait="applied", timeout=600,
            prune=False, force_conflicts=True, recreate=["Job", "Deployment.apps"], max_prune="10%",
            detailed_exitcode=False, parallel=8, inventory_id=None, __pub_fun="brine.applied",
        )
        self.assertEqual(
            self.called()["argv"],
            [
                "apply", "--name=platform", "--context=c", "--detailed-exitcode=false", "--dry-run=none",
                "--force-conflicts=true", "--kubeconfig=/k", "--max-prune=10%", "--namespace=ns", "--parallel=8",
                "--no-prune=true", "--recreate=Job", "--recreate=Deployment.apps", "--timeout=600s",
                "--wait=applied", "--filename=-", "--output=salt-events",
            ],
        )

    def test_inventory_is_the_name_or_says_otherwise(self):
        for given, flag in (
            ({}, "--name=platform"), ({"inventory": "other"}, "--name=other"), ({"inventory": "ns/other"}, "--inventory=ns/other"),
        ):
            self.brine.applied("platform", bundle="x", **given)
            self.assertIn(flag, self.called()["argv"])
        ret = self.brine.applied("Deploy the platform", bundle="x")
        self.assertIs(ret["result"], False)
        self.assertIn("give `inventory: NAME`", ret["comment"])

    def test_wait_and_prune_as_booleans(self):
        for given, flag in (
            ({"wait": True}, "--wait=ready"), ({"wait": False}, "--wait=applied"), ({"prune": True}, "--no-prune=false"),
            ({"timeout": "10m"}, "--timeout=10m"), ({"lock_timeout": "30"}, "--lock-timeout=30s"), ({"fail_after": 300}, "--fail-after=300s"), ({"heartbeat": 0}, "--heartbeat=0s"),
            ({"timeout": 0}, "--timeout=0s"), ({"max_prune": 0}, "--max-prune=0"), ({"history_limit": 0}, "--history-limit=0"), ({"retry_timeout": 0}, "--retry-timeout=0s"),
        ):
            self.brine.applied("platform", bundle="x", **given)
            self.assertIn(flag, self.called()["argv"])

    def test_switches_as_text(self):
        """Quoted, or from a template."""
        for key, value, flag in (
            ("wait", "True", "--wait=ready"), ("wait", "false", "--wait=applied"), ("prune", "False", "--no-prune=true"), ("force_conflicts", "no", "--force-conflicts=false"),
            ("refuse_removed", "Yes", "--refuse-removed=true"),
        ):
            self.brine.applied("platform", bundle="x", **{key: value})
            self.assertIn(flag, self.called()["argv"])
            if key != "prune":
                self.brine.__pillar__ = {"brine": {key: value}}
                self.brine.applied("platform", bundle="x")
                self.assertEqual(self.called()["env"]["BRINE_" + key.upper()], flag.split("=")[1])
        self.brine.__pillar__ = {}
        del self.sent[:]
        self.assertNotIn("sub_state_run", self.brine.applied("platform", bundle="x", events="False", sub_states="no"))
        self.assertEqual(self.sent, [])
        self.brine.__pillar__ = {"brine": {"events": "off", "sub_states": "False"}}
        self.assertNotIn("sub_state_run", self.brine.applied("platform", bundle="x"))
        self.assertEqual(self.sent, [])

    def test_wait_of_status_is_another_flag(self):
        self.play(then="print(json.dumps({'objects': []}))")
        self.assertEqual(self.brine.status("platform", wait=True), {"objects": []})
        self.assertIn("--wait=true", self.called()["argv"])
        self.brine.__pillar__ = {"brine": {"wait": True, "user": "admin"}}
        self.assertEqual(self.brine.status("platform"), {"objects": []})
        self.assertEqual((self.called()["env"]["BRINE_USER"], self.called()["env"].get("BRINE_WAIT")), ("admin", None))
        self.brine.rbac(bundle="kind: A\n")
        self.assertNotIn("BRINE_USER", self.called()["env"])  # there it is who gets the rights
        # A preview that asks what is ready now does not wait, either.
        with open(os.path.join(self.home, "status.json"), "w") as file:
            json.dump({"objects": []}, file)
        self.say_version({"flags": {"apply": ["name", "wait"], "status": ["name", "wait"]}})
        self.play([event("finished", **{"return": dict(RETURN, warnings=[])})])
        self.brine.__pillar__ = {"brine": {"wait": "applied"}}
        for given in ({}, {"wait": True}):
            self.assertNotIn("warnings", self.brine.applied("platform", bundle="x", test=True, **given))

    def test_test_true_is_a_server_side_dry_run(self):
        self.brine.applied("platform", bundle="x", test=True)
        self.assertIn("--dry-run=server", self.called()["argv"])
        self.brine.__opts__["test"] = True
        self.brine.applied("platform", bundle="x")
        self.assertIn("--dry-run=server", self.called()["argv"])
        self.brine.applied("platform", bundle="x", test=False)
        self.assertIn("--dry-run=none", self.called()["argv"])
        self.brine.absent("platform")
        self.assertEqual(self.called()["argv"][0], "destroy")
        self.assertIn("--dry-run=server", self.called()["argv"])

    def test_no_argument_makes_a_preview_write(self):
        self.brine.applied("platform", bundle="x", test=True, dry_run="none")
        self.assertIn("--dry-run=server", self.called()["argv"])
        self.play([event("finished", result=RESULT)])
        self.brine.preview("platform", bundle="x", dry_run="none")
        self.assertIn("--dry-run=server", self.called()["argv"])
        self.play([event("finished", **{"return": RETURN})])
        self.brine.applied("platform", bundle="x", test=True, dry_run="client")
        self.assertIn("--dry-run=client", self.called()["argv"])
        # A default counts as every other, and the events are those of a preview.
        self.brine.__pillar__ = {"brine": {"dry_run": "server"}}
        del self.sent[:]
        self.brine.applied("platform", bundle="x", test=False)
        self.assertIn("--dry-run=server", self.called()["argv"])
        self.assertIn("brine/preview/platform/finished", [tag for tag, _ in self.sent])
        self.brine.applied("platform", bundle="x", dry_run="none")
        self.assertIn("--dry-run=none", self.called()["argv"])
        self.brine.__opts__["test"] = True
        self.assertIsNone(self.brine.planned("platform", bundle="x", test=None)["result"])
        self.assertNotIn("--plan-out=secret", self.called()["argv"])

    def test_a_guard_with_hyphens_is_the_same_guard(self):
        self.brine.applied("platform", bundle="x", **{"dry-run": "server"})
        self.assertEqual([one for one in self.called()["argv"] if "dry-run" in one], ["--dry-run=server"])
        self.brine.__pillar__ = {"brine": {"dry-run": "server"}}
        self.brine.applied("platform", bundle="x")
        self.assertEqual([one for one in self.called()["argv"] if "dry-run" in one], ["--dry-run=server"])
        self.brine.applied("platform", bundle="x", **{"dry-run": None, "max-prune": 3, "max_prune": 3})
        self.assertEqual([one for one in self.called()["argv"] if "prune" in one], ["--max-prune=3"])
        os.remove(os.path.join(self.home, "call.json"))
        ret = self.brine.applied("platform", bundle="x", dry_run="none", **{"dry-run": "server"})
        self.assertEqual((ret["result"], ret["comment"]), (False, "dry_run is given with '-' and with '_', and the values differ: give it once"))
        self.assertIn("plan_digest has no effect without plan", self.brine.applied("platform", bundle="x", **{"plan-digest": "sha256:0"})["comment"])
        self.brine.__pillar__ = {"brine": {"max-prune": 3, "max_prune": 4}}
        self.assertIn("brine: max_prune: in pillar, grains or configuration is given with '-'", self.brine.applied("platform", bundle="x")["comment"])
        self.brine.__pillar__ = {}
        self.brine.__opts__["brine"]["pin"] = True
        self.assertIn("is not an argument here: `pin: True`", self.brine.applied("platform", bundle="x", **{"ignore-fields": "/etc/shadow"})["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_defaults_from_pillar_and_configuration(self):
        self.brine.__pillar__ = {"brine": {"kubeconfig": "/pillar", "timeout": 60, "recreate": ["Job", "Pod"], "wait": False}}
        self.brine.__opts__["brine"]["kubeconfig"] = "/config"
        self.brine.applied("platform", bundle="x", timeout=5)
        call = self.called()
        # By the environment: a flag goes over it, and a command or an older
        # build that has no such flag passes over it.
        self.assertEqual(call["env"]["BRINE_KUBECONFIG"], "/config")
        self.assertEqual(call["env"]["BRINE_RECREATE"], "Job,Pod")
        self.assertEqual(call["env"]["BRINE_WAIT"], "applied")
        self.assertNotIn("BRINE_BINARY", call["env"])
        self.assertIn("--timeout=5s", call["argv"])

    def test_an_empty_list_goes_over_the_default(self):
        self.brine.__pillar__ = {"brine": {"recreate": ["Job"], "take-over-managers": ["a"], "ignore_fields": "/rules", "deny": {"none": "true"}}}
        self.brine.applied("platform", bundle="x")
        self.assertEqual({"BRINE_RECREATE", "BRINE_TAKE_OVER_MANAGERS", "BRINE_IGNORE_FIELDS", "BRINE_DENY"} - set(self.called()["env"]), set())
        self.brine.applied("platform", bundle="x", recreate=[], take_over_managers=[], ignore_fields=[], deny={})
        self.assertEqual([key for key in self.called()["env"] if "MAX_PRUNE" not in key and not key.startswith("BRINE_TEST_")], ["BRINE_YES"])
        self.assertFalse([one for one in self.called()["argv"] if "recreate" in one or "deny" in one])
        self.brine.__pillar__ = {"brine": {"deny": {}, "only": []}}
        self.assertIs(self.brine.applied("platform", bundle="x")["result"], True)
        self.assertEqual({"BRINE_DENY", "BRINE_ONLY"} & set(self.called()["env"]), set())

    def test_a_list_of_selectors_is_a_union(self):
        self.brine.__pillar__ = {"brine": {"only": ["app=web", "tier=db"]}}
        for given, flags in (({}, ["--only=app=web", "--only=tier=db"]), ({"only": "app=a"}, ["--only=app=a"])):
            self.brine.applied("platform", bundle="x", **given)
            self.assertEqual([one for one in self.called()["argv"] if one.startswith("--only")], flags)
            self.assertNotIn("BRINE_ONLY", self.called()["env"])

    def test_rules_go_through_a_file(self):
        rules = [{"kind": "Deployment", "fields": ["/spec/replicas"]}]
        copy = os.path.join(self.home, "rules")
        find = "next((a.split('=')[1] for a in sys.argv if a.startswith('--ignore-fields=')), os.environ.get('BRINE_IGNORE_FIELDS'))"
        self.play([event("finished", **{"return": RETURN})], then="import os, shutil\nshutil.copy({}, {!r})".format(find, copy))
        for given in ({"ignore_fields": rules}, {}):
            self.brine.__pillar__ = {"brine": {} if given else {"ignore_fields": rules}}
            self.assertIs(self.brine.applied("platform", bundle="x", **given)["result"], True)
            with open(copy) as file:
                self.assertEqual(json.load(file), rules)
            os.remove(copy)
        gone = self.called()["env"]["BRINE_IGNORE_FIELDS"]
        self.assertFalse(os.path.exists(gone), gone)
        self.assertEqual(self.brine.__pillar__, {"brine": {"ignore_fields": rules}})
        self.play([event("finished", **{"return": RETURN})])
        self.brine.applied("platform", bundle="x", ignore_fields="/etc/brine/rules.yaml")
        self.assertIn("--ignore-fields=/etc/brine/rules.yaml", self.called()["argv"])
        self.brine.applied("platform", bundle="x", ignore_fields=[])
        self.assertFalse([a for a in self.called()["argv"] if "ignore" in a])

    def test_rules_of_kinds_and_plans_go_through_files(self):
        for flag, rules in (("readiness", {"Widget.example.com": "self.status.ok"}), ("deny", {"none": "self.objects.filter(o, true)"})):
            copy = os.path.join(self.home, "rules")
            find = "next(a.split('=')[1] for a in sys.argv if a.startswith('--{}='))".format(flag)
            self.play([event("finished", **{"return": RETURN})], then="import os, shutil\nshutil.copy({}, {!r})".format(find, copy))
            self.assertIs(self.brine.applied("platform", bundle="x", **{flag: rules})["result"], True)
            with open(copy) as file:
                self.assertEqual(json.load(file), rules)

    def test_inventory_default_from_pillar_is_for_its_own_name_only(self):
        self.brine.__pillar__ = {"brine": {"inventory": "default/platform"}}
        for name in ("platform", "default/platform"):
            self.brine.absent(name)
            self.assertIn("--inventory=default/platform", self.called()["argv"])
        self.brine.absent("platform", inventory="other")
        self.assertIn("--name=other", self.called()["argv"])
        os.remove(os.path.join(self.home, "call.json"))
        for name in ("something-else", "Remove it all", "kube-system/platform"):
            ret = self.brine.absent(name)
            self.assertIs(ret["result"], False)
            self.assertIn("not that of the default inventory default/platform", ret["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_every_argument_and_every_default_is_known(self):
        self.say_version({"version": "v0.2.0", "features": ["apply", "output=salt-events"], "flags": FLAGS})
        for given, says in (
            ({"recursive": True}, "recursive is not an argument: it has no effect: name the folders in source"), ({"pillar": {"a": 1}}, "pillar has no effect here: only sls takes it"),
            ({"defaults": {"a": 1}}, "defaults has no effect"), ({"template": "none"}, "template has no effect"),
        ):
            ret = self.brine.applied("platform", bundle="x", **given)
            self.assertIs(ret["result"], False, given)
            self.assertIn(says, ret["comment"])
        for key in ("tiemout", "output", "recursive", "pruen"):
            self.brine.__pillar__ = {"brine": {key: 1}}
            self.assertIn("brine: %s: in pillar, grains or configuration: " % key, self.brine.applied("platform", bundle="x")["comment"])
        self.assertIn("did you mean prune?", self.brine.applied("platform", bundle="x")["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))
        # A default may be for another command than this one.
        self.brine.__pillar__ = {"brine": {"take_over_from": ["a"], "max_prune": "50%"}}
        self.assertIs(self.brine.absent("platform")["result"], True)
        with self.assertRaisesRegex(Exception, "sub_states has no effect"):
            self.brine.apply("platform", bundle="x", sub_states=True)

    def test_mistakes_in_arguments_are_named_before_anything_is_rendered(self):
        self.say_version({"version": "v0.3.0", "features": ["apply", "output=salt-events"], "flags": FLAGS})
        for given, says in (
            ({"tiemout": 5}, "tiemout is not an argument of this function, and brine apply has no such flag: did you mean timeout?"),
            ({"pruen": True}, "did you mean prune?"), ({"sourc": "x"}, "did you mean source?"), ({"max_pruned": 3}, "did you mean max_prune?"), ({"xyzzy": 1}, "has no such flag"),
            ({"timeout": "soon"}, "timeout is 'soon': it has to be a number of seconds, or like 20m"), ({"timeout": [1]}, "timeout is a list"), ({"timeout": True}, "timeout is True"),
            ({"prune": "maybe"}, "prune is 'maybe': it has to be True or False"), ({"wait": 5}, "wait is 5"), ({"max_prune": "a lot"}, "max_prune is 'a lot'"),
            ({"defaults": ["a"]}, "defaults is a list: it has to be a mapping"), ({"pillar": "{p: %s" % SECRET}, "pillar is text: it has to be a mapping"), ({"namespace": {"a": 1}}, "namespace is a mapping"), ({"source": 5}, "source is 5"),
        ):
            ret = self.brine.applied("platform", **dict({"source": "salt://a.yaml"}, **given))
            self.assertEqual((ret["result"], ret["changes"]), (False, {}), given)
            self.assertIn(says, ret["comment"])
        self.assertEqual(self.asked, [])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))
        # So are defaults.
        for values, says in (
            ({"event_rate": "fast"}, "brine: event_rate: in pillar, grains or configuration is 'fast': it has to be a number"), ({"events": "maybe"}, "it has to be True or False"),
            ({"event_rate": "1.2.3"}, "it has to be a number"), ({"timeout": "20 minutes"}, "a number of seconds"), ({"kubeconfig": {"a": 1}}, "is a mapping"),
        ):
            self.brine.__pillar__ = {"brine": values}
            ret = self.brine.applied("platform", bundle="x")
            self.assertIs(ret["result"], False, values)
            self.assertIn(says, ret["comment"])
        self.brine.__pillar__ = {}
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))
        for given in ({"timeout": "1h30m"}, {"timeout": 1.5}, {"max_prune": "80%"}, {"prune": "no"}, {"take_over_from": ["a"]}):
            self.assertIs(self.brine.applied("platform", bundle="x", **given)["result"], True, given)
        self.assertIn("did you mean kubeconfig?", self.brine.absent("platform", kubeconfg="/k")["comment"])

    def test_no_default_says_what_a_call_does(self):
        """`delete: True` in pillar would delete each object that a state patches."""
        for key in ("create", "delete", "remove", "show_secrets", "all-namespaces", "selector", "name"):
            self.brine.__pillar__ = {"brine": {key: True}}
            for ret in (self.brine.patched("a", kind="Node", apiVersion="v1", patch={"a": 1}), self.brine.applied("platform", bundle="x")):
                self.assertEqual((ret["result"], ret["comment"]), (False, "brine: %s: in pillar, grains or configuration: it is an argument of a call only" % key.replace("-", "_")))
            with self.assertRaisesRegex(Exception, "it is an argument of a call only"):
                self.brine.get("a", "Secret", "v1")
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_what_a_kubeconfig_holds_is_no_path(self):
        """It would be on the command line and in the error."""
        text = "apiVersion: v1\nusers: [{user: {token: %s}}]\n" % SECRET
        self.brine.__pillar__ = {}
        ret = self.brine.applied("platform", bundle="x", kubeconfig=text)
        self.assertEqual((ret["result"], ret["comment"]), (False, "kubeconfig is text: it has to be the path of a file"))
        self.brine.__pillar__ = {"brine": {"kubeconfig": text}}
        self.assertIn("in pillar, grains or configuration is text: it has to be the path of a file", self.brine.applied("platform", bundle="x")["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_prune_from_pillar(self):
        for value, flag in ((False, "true"), (True, "false")):
            self.brine.__pillar__ = {"brine": {"prune": value}}
            self.brine.applied("platform", bundle="x")
            self.assertEqual(self.called()["env"]["BRINE_NO_PRUNE"], flag)
            self.assertNotIn("BRINE_PRUNE", self.called()["env"])

    def test_states_prune_a_share_unless_told_otherwise(self):
        self.brine.applied("platform", bundle="x")
        self.assertEqual(self.called()["env"]["BRINE_MAX_PRUNE"], "30%")
        self.brine.applied("platform", bundle="x", max_prune="80%")
        self.assertIn("--max-prune=80%", self.called()["argv"])
        self.brine.__pillar__ = {"brine": {"max_prune": 7}}
        self.brine.applied("platform", bundle="x")
        self.assertEqual(self.called()["env"]["BRINE_MAX_PRUNE"], "7")
        self.brine.__pillar__ = {}
        self.brine.absent("platform")
        self.assertNotIn("BRINE_MAX_PRUNE", self.called()["env"])

    def test_credentials_are_in_the_environment_only(self):
        self.brine.__pillar__ = {"brine": {"proxy_url": "http://other"}}
        self.brine.applied("platform", bundle="x", token=SECRET, proxy_url="http://me:%s@proxy" % SECRET)
        self.assertEqual((self.called()["env"]["BRINE_TOKEN"], self.called()["env"]["BRINE_PROXY_URL"]), (SECRET, "http://me:%s@proxy" % SECRET))
        real.hides(self, SECRET, str(self.called()["argv"]))

    def test_the_connection_is_in_no_log(self):
        logged = []
        handler = logging.Handler(1)
        handler.emit = lambda record: logged.append(record.getMessage())
        logger = logging.getLogger()
        self.addCleanup(logger.setLevel, logger.level)
        self.addCleanup(logger.removeHandler, handler)
        logger.setLevel(1)
        logger.addHandler(handler)
        self.play([event("finished", **{"return": RETURN})], then="told['cmdline'] = open('/proc/self/cmdline').read() if os.path.exists('/proc') else ''\n"
                  "json.dump(told, open(os.path.join(home, 'call.json'), 'w'))")
        self.brine.applied("platform", bundle=SECRET, token=SECRET + "-token")
        self.assertIn("--name=platform", " ".join(logged))
        real.hides(self, SECRET, " ".join(logged) + self.called()["cmdline"])

    def test_pin_takes_program_and_cluster_from_the_configuration_only(self):
        self.brine.__opts__["brine"].update(pin=True, kubeconfig="/config")
        self.brine.__pillar__ = {"brine": {"binary": "/bin/false", "kubeconfig": "/pillar", "pin": False, "as": "root", "timeout": 5}}
        self.brine.__grains__ = {"brine": {"template": "py"}}
        self.say_version({"flags": {"apply": ["timeout", "kubeconfig"]}})
        self.assertIs(self.brine.applied("platform", bundle="x")["result"], True)
        env = self.called()["env"]
        self.assertEqual((env["BRINE_KUBECONFIG"], env["BRINE_TIMEOUT"]), ("/config", "5s"))
        self.assertNotIn("BRINE_AS", env)
        os.remove(os.path.join(self.home, "call.json"))
        for given in ({"binary": "/bin/false"}, {"kubeconfig": "/k"}, {"context": "c"}, {"server": "s"}, {"as": "a"}, {"as_user_extra": ["a"]}, {"pin": False},
                      {"certificate_authority": "a"}, {"insecure_skip_tls_verify": True}, {"report": "/etc/cron.d/x.html"}, {"template": "py"},
                      {"ignore_fields": "/etc/shadow"}, {"cache-dir": "/x"}, {"plan_out": "/x"}):
            ret = self.brine.applied("platform", bundle="x", **given)
            self.assertIs(ret["result"], False, given)
            self.assertIn("is not an argument here: `pin: True`", ret["comment"])
            for call in (self.brine.status, self.brine.inventories, self.brine.check):
                with self.assertRaisesRegex(Exception, "is not an argument here"):
                    call(**dict({"name": "platform"} if call is self.brine.status else {}, **given))
        with self.assertRaisesRegex(Exception, "is not an argument here"):
            self.brine.version(binary="/bin/false")
        with self.assertRaisesRegex(Exception, "is not an argument here"):
            self.brine.plan("platform", bundle="x", path="/etc/x")
        for source in ("/etc/shadow", "/etc/", ["salt://a.yaml", "/etc/*"]):
            self.assertIn("is not a salt:// file", self.brine.applied("platform", source=source)["comment"])
        self.assertIn("is not a salt:// file", self.brine.present("/etc/shadow")["comment"])
        self.brine.__opts__["brine"].pop("pin")
        self.assertIn("pin has no effect in calls, pillar and grains", self.brine.applied("platform", bundle="x", pin=True)["comment"])
        self.brine.__opts__["brine"]["pin"] = True
        # Words are no flags.
        self.found = Objects.found.__get__(self)
        self.found({"metadata": {"name": "a"}})
        self.brine.get("--kubeconfig=/x", "--server=/x", "v1")
        self.assertEqual(self.called()["argv"][-3:], ["--", "--server=/x", "--kubeconfig=/x"])

    def test_job_id_goes_along(self):
        self.brine.applied("platform", bundle="x", jid="20260701010203")
        self.assertEqual(self.called()["env"]["BRINE_JID"], "20260701010203")

    def test_job_id_of_a_function(self):
        self.brine.applied("platform", bundle="x", __pub_jid="7", __pub_fun="brine.applied")
        self.assertEqual(self.called()["env"]["BRINE_JID"], "7")

    def test_job_id_from_the_minions_own_notes(self):
        utils, packed = types.ModuleType("salt.utils"), types.ModuleType("salt.utils.msgpack")
        packed.unpackb = lambda data, raw: json.loads(data.decode())
        utils.msgpack = packed
        sys.modules["salt"].utils = utils
        sys.modules.update({"salt.utils": utils, "salt.utils.msgpack": packed})
        os.mkdir(os.path.join(self.cache, "proc"))
        for jid, pid in (("1", os.getppid()), ("2", os.getpid())):
            with open(os.path.join(self.cache, "proc", jid), "w") as file:
                json.dump({"pid": pid}, file)
        self.brine.applied("platform", bundle="x")
        self.assertEqual(self.called()["env"]["BRINE_JID"], "2")

    def test_what_is_not_a_flag(self):
        for given in ({"output": "json"}, {"filename": "/etc/passwd"}, {"a b": 1}, {"values": {"a": 1}}):
            ret = self.brine.applied("platform", bundle="x", **given)
            self.assertIs(ret["result"], False, given)
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_no_binary(self):
        self.brine.__opts__["brine"]["binary"] = os.path.join(self.home, "gone")
        ret = self.brine.applied("platform", bundle="x")
        self.assertIs(ret["result"], False)
        self.assertIn("install brine", ret["comment"])


class Bundle(Case):
    def test_an_error_of_rendering_shows_no_secret(self):
        for error, shown in (
            ("Jinja error: no login with " + SECRET + "; line 3\n\n---\np: " + SECRET, "; line 3"),
            ("Jinja error: no login with\n" + SECRET, "Jinja error: "),
            ("Rendering SLS 'base:web' failed: (500)\nHTTP response body: {\"a\":\n\"" + SECRET + "\"}", "base:web"),
            ("found undefined alias '" + SECRET + "'\n  in line 4", "in line 4"),
            ("could not determine a constructor for the tag \"!" + SECRET + "\"; line 4", "; line 4"),
        ):
            def renderer(error=error, **_):
                raise ValueError(error)

            self.brine.__salt__["slsutil.renderer"] = renderer
            ret = self.brine.applied("platform", source="salt://platform.yaml")
            self.assertIs(ret["result"], False)
            self.assertIn("salt://platform.yaml could not be rendered", ret["comment"])
            self.assertIn(shown, ret["comment"])
            real.hides(self, SECRET, ret["comment"])
            with self.assertRaises(Exception) as raised:
                self.brine.apply("platform", source="salt://platform.yaml")
            # Salt logs an exception with what it was raised from.
            real.hides(self, SECRET, "".join(traceback.format_exception(type(raised.exception), raised.exception, raised.exception.__traceback__)))
        undefined = "Jinja variable 'dict object' has no attribute 'version'; line 2"
        self.assertEqual(self.brine._brine.rendering.cut_secrets(undefined), undefined)

    def test_text_goes_over_standard_input_and_never_to_disk_or_arguments(self):
        text = "kind: Secret\nstringData: {p: " + SECRET + "}\n"
        scratch = os.path.join(self.home, "tmp")
        os.mkdir(scratch)
        before = (tempfile.tempdir, os.environ.get("TMPDIR"))
        tempfile.tempdir = os.environ["TMPDIR"] = scratch
        try:
            self.brine.applied("platform", bundle=text)
        finally:
            tempfile.tempdir = before[0]
            os.environ.pop("TMPDIR")
            if before[1] is not None:
                os.environ["TMPDIR"] = before[1]
        call = self.called()
        self.assertEqual(call["stdin"], "# brine.dev/source: 1 bundle\n" + text)
        real.hides(self, SECRET, " ".join(call["argv"]))
        real.hides(self, SECRET, str(call["env"]))
        self.assertEqual(os.listdir(scratch), [])

    def test_a_large_bundle_that_nobody_reads_does_not_hang(self):
        with open(self.binary, "w") as file:
            file.write("#!/bin/sh\necho 'brine: no cluster' >&2\nexit 6\n")
        ret = self.brine.applied("platform", bundle="x" * (4 << 20))
        self.assertIs(ret["result"], False)
        self.assertIn("no cluster", ret["comment"])
        self.assertIn("exit code 6", ret["comment"])

    def test_objects(self):
        objects = [{"apiVersion": "v1", "kind": "A"}, {"apiVersion": "v1", "kind": "B"}]
        self.brine.applied("platform", bundle=objects)
        self.assertEqual([json.loads(d.split("\n")[1]) for d in self.called()["stdin"].split("\n---\n")], objects)
        self.brine.applied("platform", bundle=objects[0])
        self.assertEqual(json.loads(self.called()["stdin"].split("\n")[1]), objects[0])

    def test_what_a_renderer_gives_besides_text(self):
        class Frozen(collections.abc.Mapping):  # as salt.utils.immutabletypes
            __getitem__, __iter__, __len__ = (lambda self, key: 1), (lambda self: iter("a")), (lambda self: 1)

        self.rendered = {"salt://a.sls": {"a": Frozen(), "d": datetime.date(2026, 7, 1)}}
        self.brine.applied("platform", source="salt://a.sls")
        self.assertEqual(self.texts(), ['{"a": {"a": 1}, "d": "2026-07-01"}'])
        os.remove(os.path.join(self.home, "call.json"))
        for value, says in ((b"hello", "type bytes, which Kubernetes does not have: give what `!!binary` holds"), ({"a"}, "type set"), (os, "type module")):
            self.rendered = {"salt://a.sls": {"a": [value]}}
            ret = self.brine.applied("platform", source="salt://a.sls")
            self.assertIs(ret["result"], False)
            self.assertIn(says, ret["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_a_byte_order_mark_of_the_second_file(self):
        self.rendered = {"salt://a.yaml": "kind: A", "salt://b.yaml": "\ufeffkind: B"}
        self.brine.applied("platform", source=["salt://a.yaml", "salt://b.yaml"])
        self.assertEqual(self.texts(), ["kind: A", "kind: B"])

    def test_source_goes_through_salts_renderers(self):
        self.rendered = {"salt://a.yaml": "kind: A\n", "salt://b.sls": {"B": {"k.object_present": []}}}
        self.brine.applied("platform", source=["salt://a.yaml", "salt://b.sls"], saltenv="dev", defaults={"v": 1})
        self.assertEqual(self.called()["stdin"], "# brine.dev/source: 1 salt://a.yaml (rendered)\nkind: A\n\n---\n"
                         '# brine.dev/source: 0 salt://b.sls (rendered)\n{"B": {"k.object_present": []}}')
        self.assertEqual(self.asked, [("salt://a.yaml", "jinja", "dev", {"v": 1}), ("salt://b.sls", "jinja", "dev", {"v": 1})])

    def test_source_folder(self):
        files = ["x/b.yaml", "x/a.yaml", "x/deep/c.yaml", "x/README.md", "x/.hidden.yaml", "xy/d.yaml"]
        self.brine.__salt__["cp.list_master"] = lambda saltenv, prefix: files
        self.rendered = {"salt://x/a.yaml": "a", "salt://x/b.yaml": "b"}
        self.brine.applied("platform", source="salt://x/")
        self.assertEqual(self.texts(), ["a", "b"])
        ret = self.brine.applied("platform", source="salt://y/")
        self.assertIn("salt://y/: no file in it ends in .yaml", ret["comment"])
        # One that a condition leaves empty is no mistake, as long as it is not alone.
        del self.rendered["salt://x/a.yaml"]
        self.brine.applied("platform", source="salt://x/")
        self.assertEqual(self.texts(), ["b"])

    def test_what_it_was_rendered_from_goes_along(self):
        """brine finds out by it which SLS and files the last run had, and this one forgot."""
        tree = ["x/a.yaml", "x/b.yaml", "x/old.yaml"]
        self.brine.__salt__["cp.list_master"] = lambda saltenv, prefix: [one for one in tree if one.startswith(prefix)]
        self.brine.__pillar__ = {"brine": {"inventory": "shop/platform", "max_prune": "10%", "token": SECRET}}
        self.rendered = {"salt://x/a.yaml": "a"}
        self.brine.applied("platform", source="salt://x/[ab].yaml?saltenv=dev")
        self.assertEqual(self.called()["rendering"], {
            "saltenv": "dev", "sls": [], "files": ["salt://x/a.yaml", "salt://x/b.yaml"], "tree": tree,
            "pillar": {"inventory": '"shop/platform"', "max_prune": '"10%"'},
        })
        # A list that is not there is not known to be empty.
        for listing in (lambda saltenv, prefix: [], lambda saltenv, prefix: 1 / 0):
            self.brine.__salt__["cp.list_master"] = listing
            self.brine.applied("platform", bundle="x")
            self.assertIs(self.called()["rendering"]["tree"], None)
        self.brine.__salt__["cp.list_master"] = lambda saltenv, prefix: tree
        self.brine.__opts__["root_dir"] = "/var/tmp/.root_thin/running_data"  # salt-ssh: some of the files
        self.brine.applied("platform", bundle="x")
        self.assertIs(self.called()["rendering"]["tree"], None)

    def test_what_is_meant_to_be_gone_is_said_in_the_words_of_a_state(self):
        said = "x.db is still in saltenv. If this is intended, give --removed=x.db"
        self.play([event("finished", **{"return": dict(RETURN, result=False, comment=said)})], code=3)
        ret = self.brine.applied("platform", bundle="x")
        self.assertTrue(ret["comment"].endswith("\nIn a state: `removed: [x.db]`."), ret["comment"])
        self.brine.applied("platform", bundle="x", removed=["x.db", "x.web"], refuse_removed=True)
        self.assertEqual([one for one in self.called()["argv"] if "removed" in one], ["--refuse-removed=true", "--removed=x.db", "--removed=x.web"])

    def texts(self):
        return [part.split("\n", 1)[1] for part in self.called()["stdin"].split("\n---\n")]

    def test_source_pattern_and_environment(self):
        asked = []
        files = ["x/b.yaml", "x/a.yaml", "x/a.txt", "x/deep/a.yaml"]
        self.brine.__salt__["cp.list_master"] = lambda saltenv, prefix: asked.append((saltenv, prefix)) or files
        self.rendered = {"salt://x/a.yaml": "a", "salt://x/b.yaml": "b"}
        self.brine.applied("platform", source="salt://x/*.yaml?saltenv=dev")
        self.assertEqual((self.texts(), asked), (["a", "b"], [("dev", "//"), ("dev", "x/"), ("dev", "")]))
        self.assertEqual([one[2] for one in self.asked], ["dev", "dev"])
        self.assertIn("no file fits", self.brine.applied("platform", source="salt://x/c*")["comment"])
        self.assertIn("only the last part", self.brine.applied("platform", source="salt://*/a.yaml")["comment"])

    def test_a_list_of_files_that_may_be_older_than_the_job(self):
        """It is waited for, once in a job, unless the master made it anew or no name depends on it."""
        slept, clock = [], [1000.0]
        for part in (self.brine._brine.rendering, self.brine._brine.call):
            part.time = types.SimpleNamespace(time=lambda: clock[0], sleep=slept.append)
        self.brine.__salt__["cp.list_master"] = lambda saltenv, prefix: ["x/a.yaml"]
        self.brine.__salt__["state.show_low_sls"] = lambda sls, **kwargs: [{"state": "k", "fun": "object_present"}]
        self.rendered = {"salt://x/a.yaml": "a"}

        def waited(jid, **given):
            del slept[:]
            self.assertTrue(self.brine.applied("platform", __pub_jid=jid, **given)["result"])
            return slept[:]

        self.assertEqual(waited("1", source=["salt://x/", "salt://x/*.yaml"]), [])
        for answer in ({}, {"roots": ["other"]}, "publish timed out"):
            self.brine.__salt__["publish.runner"] = lambda fun, arg, answer=answer: answer
            clock[0] += 100
            jid = str(clock[0])
            self.assertEqual(waited(jid, source="salt://x/"), [21])
            clock[0] += 15
            self.assertEqual(waited(jid, source="salt://x/"), [6])
            clock[0] += 6
            self.assertEqual(waited(jid, source="salt://x/"), [])
        self.brine.__opts__["fileserver_list_cache_time"] = 60
        self.assertEqual(waited("2", source="salt://x/"), [61])
        self.assertEqual(waited("2", source="salt://x/a.yaml"), [])
        self.assertEqual((waited("2", sls="x.a"), waited("2", sls=["x.a", "x.*"])), ([], [61]))
        for text, found in (("include:\n- .b\n- x.*\n", True), ("a: {b.c: [{d: '*'}]}\n- name: x*\n- [a]\n", False), ("- 'x.[ab]'", True)):
            self.assertEqual(bool(self.brine._brine.rendering._PATTERN.search(text)), found, text)

    def test_source_as_it_is(self):
        self.brine.applied("platform", source="salt://rules.yaml", template="none", saltenv="dev")
        self.assertEqual(self.called()["stdin"], "# brine.dev/source: 1 salt://rules.yaml\n{{ $labels }} dev")
        path = os.path.join(self.home, "local.yaml")
        with open(path, "w") as file:
            file.write("local")
        self.brine.applied("platform", source=path, template=None)
        self.assertEqual(self.texts(), ["local"])
        self.assertEqual(self.asked, [])

    def test_source_that_is_not_there(self):
        self.unread = {"salt://gone.yaml"}
        for source, why in (
            ("salt://gone.yaml", "is not there, or could not be read (saltenv base)"), ("/no/such.yaml", "is not there, or could not be read"),
            ("salt://empty.yaml", "renders to nothing (saltenv base)"),
        ):
            ret = self.brine.applied("platform", source=source)
            self.assertIs(ret["result"], False)
            self.assertIn("{} {}".format(source, why), ret["comment"])

    def test_a_file_of_a_folder_that_could_not_be_read_is_not_empty(self):
        """Else its objects would be pruned: it is in the list of the files, and the master did not give it."""
        self.brine.__salt__["cp.list_master"] = lambda saltenv, prefix: ["x/a.yaml", "x/b.yaml"]
        self.rendered = {"salt://x/a.yaml": "a", "salt://x/b.yaml": "b"}
        self.unread = {"salt://x/b.yaml"}
        for template in ("jinja", "none"):
            ret = self.brine.applied("platform", source="salt://x/", template=template)
            self.assertEqual((ret["result"], ret["comment"]), (False, "salt://x/b.yaml is not there, or could not be read (saltenv base)"))
        folder = os.path.join(self.home, "local")
        os.makedirs(os.path.join(folder, "b.yaml"))
        for name, content in (("a.yaml", b"a"), ("c.yaml", b"\xff")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        for source, why in (("[ab].yaml", "b.yaml is not there, or could not be read"), ("[ac].yaml", "c.yaml could not be read: 'utf-8' codec")):
            ret = self.brine.applied("platform", source=folder + "/" + source, template="none")
            self.assertIs(ret["result"], False)
            self.assertIn("local/" + why, ret["comment"])

    def test_rendering_error_keeps_the_rendered_text_to_itself(self):
        def fail(**_kwargs):
            raise ValueError("Jinja syntax error: line 3\n\n---\npassword: " + SECRET + "\n---")

        self.brine.__salt__["slsutil.renderer"] = fail
        ret = self.brine.applied("platform", source="salt://a.yaml")
        self.assertIn("Jinja syntax error: line 3", ret["comment"])
        real.hides(self, SECRET, str(ret))

    def test_sls_as_salt_compiles_it(self):
        low = [{"state": "k", "fun": "object_present", "name": "a", "__id__": "a", "manifest": {}}]
        asked = []
        self.brine.__salt__["state.show_low_sls"] = lambda sls, **kwargs: asked.append((sls, kwargs)) or low
        self.brine.applied("platform", sls=["one", "two"], saltenv="dev", pillar={"x": 1}, ignore_foreign_states=True)
        self.assertEqual(json.loads(self.texts()[0]), low)
        self.assertEqual(asked, [(["one", "two"], {"saltenv": "dev", "concurrent": True, "pillar": {"x": 1}})])
        self.assertIn("--ignore-foreign-states=true", self.called()["argv"])

    def test_sls_sees_the_pillar_that_the_state_run_was_given(self):
        """Salt compiles it again, without `state.apply pillar={…}`: the objects would be those of another version."""
        given = []
        self.brine.__salt__["state.show_low_sls"] = lambda sls, **kwargs: given.append(kwargs.get("pillar")) or [{"state": "k", "fun": "object_present"}]
        self.brine.__salt__["pillar.items"] = lambda: {"platform": {"version": "1.0", "size": 3}, "same": [1]}
        self.brine.__pillar__ = {"platform": {"version": "1.1", "size": 3}, "same": [1], "new": {"a": 1}}
        self.brine.applied("platform", sls="one", __id__="Deploy", __low__={})
        self.assertEqual(given.pop(), {"platform": {"version": "1.1"}, "new": {"a": 1}})
        self.brine.applied("platform", sls="one", __id__="Deploy", pillar={"new": 2, "platform": {"size": 5}})
        self.assertEqual(given.pop(), {"platform": {"version": "1.1", "size": 5}, "new": 2})
        self.brine.__pillar__ = self.brine.__salt__["pillar.items"]()
        self.brine.applied("platform", sls="one", __id__="Deploy")
        self.brine.__pillar__ = {"platform": "older"}  # of a function, it is only what the minion had before
        self.brine.applied("platform", sls="one")
        self.assertEqual(given, [None, None])
        self.brine.__salt__["pillar.items"] = lambda: 1 / 0
        ret = self.brine.applied("platform", sls="one", __id__="Deploy")
        self.assertEqual((ret["result"], ret["comment"]), (False, "the pillar could not be compiled: division by zero"))

    def test_allow_empty_sls_are_whole_names(self):
        self.brine.__salt__["state.show_low_sls"] = lambda sls, **kwargs: [{"state": "k", "fun": "object_present"}]

        @contextlib.contextmanager
        def compiled():
            yield {"platform", "top"}, {"top"}, {}

        self.brine._brine.rendering._compiled = compiled
        for allowed, result in ((None, False), ("platform.web", False), ("False", False), (["platform"], True), ("platform", True), ("other, platform", True), (True, True), ("True", True)):
            ret = self.brine.applied("platform", sls="top", allow_empty_sls=allowed)
            self.assertIs(ret["result"], result, (allowed, ret))

    def test_sls_of_which_salt_logs_an_error(self):
        low = [{"state": "k", "fun": "object_present", "name": "a", "__id__": "a", "manifest": {}}]

        def show(_sls, **_kwargs):
            logging.getLogger("salt.loader").error("not about the SLS")
            logging.getLogger("salt.template").error('The renderer "%s" is not available', "gone")
            return low

        self.brine.__salt__["state.show_low_sls"] = show
        for level in (logging.WARNING, 1000):
            logger = logging.getLogger()
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(level)
            with contextlib.redirect_stderr(io.StringIO()):
                ret = self.brine.applied("platform", sls="one")
            self.assertIs(ret["result"], False)
            self.assertIn('that states may be missing: The renderer "gone" is not available', ret["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))
        self.assertEqual((logging.getLogger("salt").handlers, logging.getLogger("salt").level), ([], 0))

    def test_what_salt_logs_while_it_renders_is_not_logged(self):
        logged = []
        handler = logging.Handler(1)
        handler.emit = lambda record: logged.append((record.levelname, record.getMessage()))
        root = logging.getLogger()
        self.addCleanup(root.setLevel, root.level)
        self.addCleanup(root.removeHandler, handler)
        root.setLevel(1)
        root.addHandler(handler)
        low = [{"state": "k", "fun": "object_present", "name": "a", "__id__": "a", "manifest": {}}]
        noise = logging.getLogger("salt.template")

        def render(*_args, **_kwargs):
            for level in (1, 5, logging.DEBUG, logging.INFO):
                noise.log(level, "Rendered data: %s", SECRET)
            noise.warning("a warning\n---\n%s", SECRET)
            other = threading.Thread(target=noise.info, args=("of another thread",))
            other.start()
            other.join()
            return low if _args else "kind: A\n"

        self.brine.__salt__.update({"state.show_low_sls": render, "slsutil.renderer": lambda **kwargs: render(**kwargs)})
        self.assertIs(self.brine.applied("platform", sls="one")["result"], True)
        self.assertIs(self.brine.applied("platform", source="salt://a.yaml")["result"], True)
        real.hides(self, SECRET, str(logged))
        self.assertEqual(logged.count(("INFO", "of another thread")), 2)
        self.assertEqual(logged.count(("WARNING", "a warning (the text around it is left out)")), 2)

    def test_sls_that_salt_cannot_render(self):
        for bad in (["Rendering SLS 'base:one' failed: x"], [], {}, None, "text"):
            self.brine.__salt__["state.show_low_sls"] = lambda sls, bad=bad, **kwargs: bad
            ret = self.brine.applied("platform", sls="one")
            self.assertIs(ret["result"], False)
            self.assertIn("Salt did not render one", ret["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_exactly_one_bundle(self):
        for given in ({}, {"bundle": "x", "source": "y"}, {"sls": "x", "source": "y"}):
            self.assertIn("one of source, bundle and sls", self.brine.applied("platform", **given)["comment"])


class Returns(Case):
    def test_applied_returns_what_o_salt_prints(self):
        self.assertEqual(self.brine.applied("Apply it", inventory="platform", bundle="x"), dict(RETURNED, name="Apply it"))

    def test_no_warnings_is_no_key(self):
        self.play([event("finished", **{"return": dict(RETURN, warnings=[])})])
        self.assertNotIn("warnings", self.brine.applied("platform", bundle="x"))

    def test_sub_states_are_the_changed_and_the_failed_objects(self):
        def sub(name, result, changes):
            return {"low": {"name": name, "__id__": "ns/platform: " + name, "state": "brine", "fun": "object_present"}, "name": name,
                    "result": result, "changes": changes, "comment": "", "duration": 1, "start_time": "1"}

        subs = [sub("a", True, {"old": "absent", "new": "present"}), sub("b", True, {}), sub("c", False, {})]
        self.play([event("finished", **{"return": dict(RETURN, sub_state_run=subs)})])
        self.assertNotIn("sub_state_run", self.brine.applied("platform", bundle="x"))
        first, second = [self.brine.applied("platform", bundle="x", sub_states=True, __id__=i) for i in ("First", "Second")]
        ids = [one["low"]["__id__"] for ret in (first, second) for one in ret["sub_state_run"]]
        self.assertEqual(ids, ["First: a", "First: c", "Second: a", "Second: c"])
        self.assertEqual(first["changes"], {"objects": "1 changed"})

    def test_a_failed_run_is_told_by_brine(self):
        failed = dict(RETURNED, result=False, comment="Failed: 1 failed")
        self.play([event("finished", **{"return": failed})], code=1)
        self.assertEqual(self.brine.applied("platform", bundle="x"), failed)

    def test_a_run_that_fails_after_its_result(self):
        """As with a report that cannot be written."""
        for result in (True, None):
            self.play([event("finished", **{"return": dict(RETURN, result=result)})], code=1, then="print('brine: write the report: no space left', file=sys.stderr)")
            ret = self.brine.applied("platform", bundle="x")
            self.assertEqual((ret["result"], ret["changes"]), (result, RETURN["changes"]))
            self.assertIn("brine failed after its result (exit code 1): brine: write the report: no space left", ret["warnings"])
        self.play([event("finished", **{"return": RETURN})], code=1, then="print('HTTP response body: %s', file=sys.stderr)" % SECRET)
        real.hides(self, SECRET, str(self.brine.applied("platform", bundle="x")))
        self.play([event("finished", **{"return": RETURN})], code=2)  # of detailed_exitcode
        self.assertIs(self.brine.applied("platform", bundle="x")["result"], True)

    def test_a_run_without_a_result(self):
        acted = [
            event("acted", object=of("ConfigMap", "a"), action="created"),
            event("acted", object=of("Deployment", "b", "apps"), action="unchanged"),
        ]
        self.play(acted, then="os.kill(os.getpid(), signal.SIGKILL)")
        ret = self.brine.applied("platform", bundle="x")
        self.assertIs(ret["result"], False)
        self.assertEqual(ret["changes"], {"ConfigMap/shop/a": {"old": "absent", "new": "present"}})
        self.assertIn("killed by signal 9", ret["comment"])
        self.assertIn("Run it again to continue", ret["comment"])
        ends = [data for tag, data in self.sent if tag.endswith("/run-finished")]  # who waits for the end learns of it
        self.assertEqual([(data["success"], data["comment"]) for data in ends], [(False, "brine ended without a result")])

    def test_a_preview_without_a_result_changed_nothing(self):
        self.play([event("acting", object=of("ConfigMap", "a")), event("acted", object=of("ConfigMap", "a"), action="created")], then="os.kill(os.getpid(), signal.SIGKILL)")
        ret = self.brine.applied("platform", bundle="x", test=True)
        self.assertEqual((ret["result"], ret["changes"]), (False, {}))
        self.assertNotIn("may have changed", ret["comment"])

    def test_a_write_that_began_may_have_changed_something(self):
        """brine ended by itself, with the answer to come: a rollback must not hear that nothing was changed."""
        self.play([event("started"), event("acting", object=of("ConfigMap", "a"))], code=2, then="print('panic: x', file=sys.stderr)")
        ret = self.brine.applied("platform", bundle="x")
        self.assertEqual((ret["result"], ret["changes"]), (False, {}))
        self.assertIn("(exit code 2): panic: x\nObjects may have changed.", ret["comment"])
        self.play([event("started")], code=2)
        self.assertNotIn("may have changed", self.brine.applied("platform", bundle="x")["comment"])

    def test_what_goes_wrong_before_brine_runs_is_in_the_return(self):
        """Else it is a stack trace, and what the run changed is not known."""
        def lost(**_kwargs):
            raise OSError("Salt request timed out. The master is not responding.")

        self.brine.__salt__["cp.list_master"] = lost
        ret = self.brine.applied("platform", source="salt://x/")
        self.assertEqual((ret["result"], ret["changes"], ret["comment"]), (False, {}, "OSError: Salt request timed out. The master is not responding."))
        for bundle in ("\udc80", b"\xff"):
            self.assertIn("codec can't", self.brine.applied("platform", bundle=bundle)["comment"])
        self.assertIn("cannot be run", self.brine.applied("platform", bundle="x", context="a\0b")["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_a_cache_that_cannot_be_written_stops_nothing(self):
        self.brine.__opts__["cachedir"] = os.path.join(self.binary, "a file is no folder")
        self.assertIs(self.brine.applied("platform", bundle="x")["result"], True)

    def test_usage_errors_come_from_standard_error(self):
        self.play(code=3, then="sys.stderr.write('brine: unknown flag: --shiny\\n')")
        ret = self.brine.applied("platform", bundle="x", shiny=True)
        self.assertIn("unknown flag: --shiny", ret["comment"])
        self.assertIn("this is brine v0.1.0" .replace("this", "This"), ret["comment"])

    def test_apply_and_preview_return_the_result(self):
        self.play([event("started"), event("finished", result=RESULT)])
        self.assertEqual(self.brine.apply("platform", bundle="x"), RESULT)
        self.assertIn("--dry-run=none", self.called()["argv"])
        self.assertEqual(self.brine.preview("platform", bundle="x"), RESULT)
        self.assertIn("--dry-run=server", self.called()["argv"])
        self.assertEqual(self.brine.destroy("platform"), RESULT)
        self.assertEqual(self.brine.rollback("platform", revision=3), RESULT)
        self.assertEqual(self.called()["argv"], ["rollback", "--name=platform", "--dry-run=none", "--output=events", "--", "3"])
        self.assertFalse(self.brine.__context__.get("retcode"))

    def test_rollback_goes_to_the_last_good_revision(self):
        ret = self.brine.rolled_back("platform", inventory="ns/platform", kubeconfig="/k", max_prune=3)
        self.assertEqual(ret, RETURNED)
        self.assertEqual(self.called()["argv"], [
            "rollback", "--inventory=ns/platform", "--dry-run=none", "--kubeconfig=/k", "--max-prune=3", "--output=salt-events", "--", "last-good"])
        self.play([event("finished", result=RESULT)])
        for revision, words in ((None, ["--", "last-good"]), ("previous", []), ("7", ["--", "7"]), ("--no-prune", ["--", "--no-prune"])):
            self.brine.rollback("platform", revision=revision)
            self.assertEqual(self.called()["argv"], ["rollback", "--name=platform", "--dry-run=none", "--output=events"] + words)

    def test_a_plan_is_written_and_only_that_is_applied(self):
        path = os.path.join(self.home, "cache", "brine", "plans", "ns.platform.json")
        saved = {"inventory": {"namespace": "ns", "name": "platform"}, "steps": [{"action": "created"}, {"action": "pruned"}, {"action": "created"}]}
        dry = event("finished", **{"return": dict(RETURN, result=None)})
        self.play([dry], then="json.dump({!r}, open(sys.argv[[a.split('=')[0] for a in sys.argv].index('--plan-out')].split('=')[1], 'w'))".format(saved))
        ret = self.brine.plan("platform", inventory="ns/platform", bundle="x")
        with open(path, "rb") as file:
            digest = "sha256:" + hashlib.sha256(file.read()).hexdigest()
        self.assertEqual(ret, {
            "plan": path, "digest": digest, "inventory": "ns/platform", "summary": {"created": 2, "pruned": 1},
            "changes": RETURN["changes"], "comment": RETURN["comment"], "warnings": RETURN["warnings"]})
        self.assertIn("--dry-run=server", self.called()["argv"])
        self.assertEqual(self.called()["env"]["BRINE_MAX_PRUNE"], "30%")

        self.play([event("finished", **{"return": RETURN})])
        self.assertEqual(self.brine.applied("platform", bundle="x", plan=path, plan_digest=digest), RETURNED)
        self.assertIn("--plan=" + path, self.called()["argv"])
        self.assertNotIn("BRINE_MAX_PRUNE", self.called()["env"])
        os.remove(os.path.join(self.home, "call.json"))
        for given, says in (({"plan": path, "plan_digest": "sha256:0"}, "is not the approved one, and nothing was changed"),
                            ({"plan": path + "x", "plan_digest": digest}, "read the plan"), ({"plan_digest": digest}, "no effect without plan")):
            ret = self.brine.applied("platform", bundle="x", **given)
            self.assertIs(ret["result"], False)
            self.assertIn(says, ret["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))

    def test_the_plans_of_two_clusters_are_two_files(self):
        dry = event("finished", **{"return": dict(RETURN, result=None)})
        self.play([dry], then="json.dump({'steps': []}, open(sys.argv[[a.split('=')[0] for a in sys.argv].index('--plan-out')].split('=')[1], 'w'))")
        paths = [self.brine.plan("platform", inventory="ns/platform", bundle="x", **which)["plan"] for which in (
            {}, {"kubeconfig": "/a"}, {"kubeconfig": "/b"}, {"kubeconfig": "/a", "token": SECRET}, {"kubeconfig": None})]
        self.assertEqual(([paths.index(one) for one in paths], os.path.basename(paths[0])), ([0, 1, 2, 1, 0], "ns.platform.json"))

    def test_a_preview_with_errors_leaves_no_plan(self):
        path = os.path.join(self.home, "plan")
        open(path, "w").close()  # an earlier one
        self.play([event("finished", **{"return": dict(RETURN, result=False, comment="Failed: a")})])
        with self.assertRaisesRegex(Exception, "no plan was written: Failed: a"):
            self.brine.plan("platform", bundle="x", path=path)
        self.assertTrue(os.path.exists(path))  # somebody may have approved it

    def test_a_plan_that_the_binary_tells_of(self):
        saved = {"place": "Secret ns/platform-brine-plan", "digest": "sha256:1", "created": "2026-07-01T00:00:00Z", "expires": "2026-07-02T00:00:00Z", "kept": False, "was": "sha256:0"}
        told = {"return": dict(RETURN, result=None, plan=saved, summary={"created": 2, "pruned": 0, "ready": 3})}
        self.play([event("finished", **told)])
        ret = self.brine.planned("platform", inventory="ns/platform", bundle="x", plan_lifetime=60)
        self.assertEqual((ret["result"], ret["changes"]), (True, {"plan": {"old": "sha256:0", "new": "sha256:1"}}))
        self.assertEqual((ret["plan"]["plan"], ret["plan"]["summary"], ret["plan"]["changes"]), ("secret", {"created": 2}, RETURN["changes"]))
        self.assertLessEqual({"--plan-out=secret", "--plan-lifetime=60s", "--dry-run=server"}, set(self.called()["argv"]))
        saved["kept"] = True
        self.play([event("finished", **told)])
        ret = self.brine.planned("platform", inventory="ns/platform", bundle="x")
        self.assertEqual((ret["result"], ret["changes"]), (True, {}))
        self.assertIn("The plan still holds: sha256:1, to be carried out until 2026-07-02T00:00:00Z", ret["comment"])
        self.play([event("finished", **{"return": dict(RETURN, result=None)})])  # an older binary
        self.assertIs(self.brine.planned("platform", inventory="ns/platform", bundle="x")["result"], False)
        self.assertIsNone(self.brine.planned("platform", inventory="ns/platform", bundle="x", test=True)["result"])
        self.assertNotIn("--plan-out=secret", self.called()["argv"])

    def test_a_lifetime_is_that_of_a_plan_which_is_saved(self):
        """brine refuses it in every other run."""
        for key in ("plan_lifetime", "plan-lifetime"):
            self.assertIsNone(self.brine.planned("platform", bundle="x", test=True, **{key: "12h"})["result"])
            self.assertEqual([one for one in self.called()["argv"] if "lifetime" in one], [])
            self.brine.__pillar__ = {"brine": {key: "12h"}}
            for call, lifetime in (
                (lambda: self.brine.applied("platform", bundle="x"), None), (lambda: self.brine.rolled_back("platform"), None),
                (lambda: self.brine.planned("platform", bundle="x", test=True), None), (lambda: self.brine.planned("platform", bundle="x"), "12h"),
            ):
                call()
                self.assertEqual(self.called()["env"].get("BRINE_PLAN_LIFETIME"), lifetime)
            self.brine.__pillar__ = {}

    def test_only_what_a_job_applied_is_undone(self):
        for revisions, code, undone in (([{"number": 1, "jid": "1"}, {"number": 2, "jid": "2"}], 0, True), ([{"number": 2, "jid": "3"}], 0, False), ([{"number": 2}], 0, False), ([], 0, False)):
            with open(os.path.join(self.home, "history.json"), "w") as file:
                json.dump({"revisions": revisions}, file)
            ret = self.brine.rolled_back("platform", only_of=["2", "4"], timeout=60)
            self.assertEqual((ret["result"], bool(ret["changes"])), (True, undone), ret)
        os.remove(os.path.join(self.home, "history.json"))
        for errors, result in ((["there is no inventory ns/platform"], True), (["reach the cluster: no"], False)):
            self.play(then="print(json.dumps({}))".format({"errors": errors}), code=3)
            self.assertIs(self.brine.rolled_back("platform", only_of=["2"])["result"], result)

    def test_exit_code_becomes_the_functions_retcode(self):
        self.play([event("finished", result=RESULT)], code=4)
        self.brine.apply("platform", bundle="x")
        self.assertEqual(self.brine.__context__["retcode"], 4)

    def test_no_retcode_is_left_for_what_follows(self):
        """Salt judges the onlyif of a later state by it."""
        which = {"kind": "Pod", "apiVersion": "v1"}
        self.play(code=6, then="sys.stderr.write('no cluster')")
        for ret in (
            self.brine.waited("a", timeout=0, **which), self.brine.waited("a", test=True, **which), self.brine.labels_exist("a", {"a": "b"}, **which),
            self.brine.rolled_back("platform", only_of=["1"]), self.brine.patched("a", patch={"a": 1}, test=True, **which),
        ):
            self.assertIs(ret["result"], False, ret)
            self.assertNotIn("retcode", self.brine.__context__)
        with self.assertRaisesRegex(Exception, "no cluster"):
            self.brine.exists(name="a", **which)
        self.assertEqual(self.brine.__context__["retcode"], 6)
        self.play(then="print(json.dumps({'objects': []}))")
        for call in (lambda: self.brine.exists(name="a", **which), lambda: self.brine.status("platform"), lambda: self.brine.apply("platform", bundle="x")):
            self.brine.__context__["retcode"] = 4  # of an earlier function
            with contextlib.suppress(Exception):
                call()
            self.assertEqual(self.brine.__context__["retcode"], 0)

    def test_status_and_history(self):
        self.play(then="print(json.dumps({'objects': []}))")
        self.assertEqual(self.brine.status("platform", kubeconfig="/k"), {"objects": []})
        self.assertEqual(self.called()["argv"], ["status", "--name=platform", "--kubeconfig=/k", "--output=json"])
        self.brine.history("platform")
        self.assertEqual(self.called()["argv"][0], "history")
        self.play(code=6, then="sys.stderr.write('brine: no cluster\\n')")
        with self.assertRaisesRegex(Exception, "no cluster"):
            self.brine.status("platform")
        self.play(code=6, then="print(json.dumps({'objects': [], 'errors': ['no cluster']}))")
        with self.assertRaisesRegex(Exception, "exit code 6.*no cluster"):
            self.brine.history("platform")


class VersionSkew(Case):
    def test_unknown_keys_are_kept_or_ignored(self):
        self.play([event("a type of a later release", what=1), event("ready", object="text"), event("acted", object="text"), event("acted", object=of("Pod", "a"), action=["x"]), "text", event("finished", more=1, **{"return": RETURN})])
        self.assertEqual(self.brine.applied("platform", bundle="x"), RETURNED)

    def test_a_build_that_does_not_list_its_flags(self):
        self.brine.__pillar__ = {"brine": {"whatever": 1}}
        for document in ({}, [], {"version": "v9", "features": ["one", "two"]}):
            self.say_version(document)
            self.assertIs(self.brine.applied("platform", bundle="x")["result"], True)

    def test_the_version_is_kept_between_jobs(self):
        self.brine.__pillar__ = {"brine": {"timeout": 1}}

        def asked():
            self.brine.applied("platform", bundle="x")
            with open(os.path.join(self.home, "versions")) as file:
                return len(file.read())

        self.assertEqual([asked(), asked()], [1, 1])
        os.utime(self.binary, (99, 99))  # another build
        self.assertEqual(asked(), 2)
        with open(os.path.join(self.cache, "brine", "cache", "version.json"), "w") as file:
            file.write("[]")
        self.assertEqual(asked(), 3)

    def test_version(self):
        self.assertEqual(self.brine.version()["version"], "v0.1.0")

    def trees(self):
        for path in MODULES:
            with open(os.path.join(HERE, path)) as file:
                source = file.read()
            yield path, ast.parse(source, **({"feature_version": (3, 6)} if sys.version_info >= (3, 8) else {}))

    def test_syntax_of_python_3_6(self):
        for path, tree in self.trees():
            self.assertFalse([n.lineno for n in ast.walk(tree) if isinstance(n, ast.JoinedStr)], path)

    # What Python 3.6 does not have: functions and methods, arguments, modules.
    LATER = {
        "removeprefix", "removesuffix", "isascii", "nullcontext", "cached_property", "singledispatchmethod", "time_ns", "monotonic_ns", "perf_counter_ns",
        "fromisoformat", "get_running_loop", "raise_signal", "is_relative_to", "pairwise", "batched", "isqrt", "prod",
        "file_digest", "add_note", "waitstatus_to_exitcode", "pidfd_open", "memfd_create", "get_native_id", "excepthook",
    }
    LATER_ARGUMENTS = {"capture_output", "text", "missing_ok", "dirs_exist_ok", "cancel_futures", "usedforsecurity", "delete_on_close", "strict", "stacklevel"}
    LATER_MODULES = {"dataclasses", "zoneinfo", "tomllib", "graphlib", "importlib.resources", "importlib.metadata"}

    def test_library_of_python_3_6(self):
        for path, tree in self.trees():
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    named = {k.arg for k in node.keywords} & self.LATER_ARGUMENTS
                    self.assertFalse(named, "{}:{}".format(path, node.lineno))
                if isinstance(node, ast.Attribute):
                    self.assertNotIn(node.attr, self.LATER, "{}:{}".format(path, node.lineno))
                if isinstance(node, ast.ImportFrom):
                    self.assertNotEqual(node.module, "__future__", path)
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
                self.assertFalse(self.LATER_MODULES & set(names), path)

    def test_modules_load_without_the_masters_parts_of_salt(self):
        """As over salt-ssh: what is not Python's own is imported where it is used, but for salt.exceptions."""
        for path, tree in self.trees():
            if path.startswith("_runners"):
                continue
            names = {name for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))
                     for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [node.module])}
            self.assertEqual({n for n in names if n.startswith("salt")} - {"salt.exceptions"}, set(), path)

    def test_loads_in_every_python_here(self):
        pythons = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))) or [sys.executable]
        for python in pythons:
            done = subprocess.run(
                [python, "-c", "import test_brine\nfor path in test_brine.LOADED:\n    if 'runners' not in path: test_brine.load(path, 'm')"],
                cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
            )
            self.assertEqual((done.returncode, done.stdout.decode()), (0, ""), python)


class Objects(Case):
    """Each of MetalK8s' functions and states has its test here, by its name, and returns what that returns."""

    POD = {"kind": "Pod", "metadata": {"name": "a"}, "data": {"config.yaml": "x", "list": ["y"]}}

    def found(self, *objects, **readiness):
        states = [dict({"state": "ready"}, **readiness) for _ in objects]
        self.play(then="print({!r})".format(json.dumps({"objects": objects, "readiness": states})))

    def test_get_object(self):
        self.found(self.POD)
        self.assertEqual(self.brine.get(name="a", kind="Pod", apiVersion="v1", kubeconfig="/k"), self.POD)
        self.assertEqual(self.called()["argv"], [
            "get", "--api-version=v1", "--ignore-not-found=true", "--kubeconfig=/k", "--output=json", "--", "Pod", "a"])
        self.assertEqual(self.brine.get(manifest={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "n"}}), self.POD)
        self.assertEqual(self.called()["argv"][1:], ["--api-version=v1", "--ignore-not-found=true", "--namespace=n", "--output=json", "--", "Pod", "b"])
        self.brine.get(name="a", kind="Secret", apiVersion="v1", show_secrets=True)
        self.assertIn("--show-secrets=true", self.called()["argv"])
        self.found()
        self.assertIsNone(self.brine.get(name="a", kind="Pod", apiVersion="v1"))
        with self.assertRaisesRegex(Exception, "give manifest, or name and kind"):
            self.brine.get(name="a")

    def test_object_exists(self):
        self.found(self.POD)
        self.assertIs(self.brine.exists("Pod", "v1", "a"), True)
        self.found()
        self.assertIs(self.brine.exists("Pod", "v1", "a"), False)
        self.play(code=6, then="sys.stderr.write('forbidden')")
        with self.assertRaisesRegex(Exception, "exit code 6.*forbidden"):
            self.brine.exists("Pod", "v1", "a")

    def test_list_objects(self):
        self.found(self.POD, self.POD)
        self.assertEqual(len(self.brine.list_objects("Pod", "v1", label_selector="a=b", field_selector="c=d")), 2)
        self.assertEqual(self.called()["argv"], [
            "get", "--api-version=v1", "--field-selector=c=d", "--selector=a=b", "--output=json", "--", "Pod"])
        self.brine.list_objects("Pod", "v1", all_namespaces=True)
        self.assertEqual(self.called()["argv"][1:3], ["--all-namespaces=true", "--api-version=v1"])

    def test_check_object_ready(self):
        self.found(self.POD)
        self.assertIs(self.brine.ready(name="a", kind="Pod", apiVersion="v1"), True)
        self.found(self.POD, state="not-ready", reason="0 of 1")
        with self.assertRaisesRegex(Exception, "Object is not yet Ready: 0 of 1"):
            self.brine.ready(name="a", kind="Pod", apiVersion="v1")
        self.found()
        with self.assertRaisesRegex(Exception, "Unable to find the object"):
            self.brine.ready(name="a", kind="Pod", apiVersion="v1")

    def test_get_object_digest(self):
        def sha(text):
            return hashlib.sha256(text.encode()).hexdigest()

        self.found(self.POD)
        which = {"name": "a", "kind": "Pod", "apiVersion": "v1"}
        self.assertEqual(self.brine.digest(**which), sha(json.dumps(self.POD, sort_keys=True)))
        self.assertIn("--show-secrets=true", self.called()["argv"])
        self.assertEqual(self.brine.digest("data:config.yaml", **which), sha("x"))
        self.assertEqual(self.brine.digest("data:list:0", "md5", **which), hashlib.md5(b"y").hexdigest())
        with self.assertRaisesRegex(Exception, 'Unable to find key "data:none" in the object'):
            self.brine.digest("data:none", **which)

    def answer(self):
        self.play(then="print({!r})".format(json.dumps(dict(RETURN, warnings=[]))))

    def test_object_updated(self):
        self.answer()
        want = {key: value for key, value in RETURNED.items() if key != "warnings"}
        labels = {"metadata": {"labels": {"a": "b"}}}
        ret = self.brine.patched("node-1", kind="Node", apiVersion="v1", patch=labels, __id__="Label it: now", jid="7")
        self.assertEqual(ret, dict(want, name="node-1"))
        self.assertEqual(self.called()["argv"], ["patch", "--dry-run=none", "--field-manager=brine-patch-Label-it-now", "--filename=-", "--output=salt"])
        self.assertEqual(json.loads(self.called()["stdin"].split("\n")[1]), {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {"a": "b"}}})
        self.brine.patched("node-1", kind="Node", apiVersion="v1", absent=True, test=True)
        self.assertEqual(self.called()["argv"][1:4], ["--dry-run=server", "--field-manager=brine-patch-node-1", "--remove=true"])
        for given in ({}, {"patch": [{"op": "remove"}]}):
            self.assertIn("give patch, a mapping", self.brine.patched("a", kind="Node", apiVersion="v1", **given)["comment"])
        self.assertIn("give kind and apiVersion", self.brine.patched("a", patch=labels)["comment"])

    def test_object_present(self):
        self.answer()
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": {"p": SECRET}}
        self.assertIs(self.brine.present("Some map", manifest=manifest)["result"], True)
        self.assertEqual(self.called()["argv"], ["patch", "--create=true", "--dry-run=none", "--field-manager=brine-present", "--filename=-", "--output=salt"])
        self.assertEqual(json.loads(self.called()["stdin"].split("\n")[1]), manifest)
        self.assertIn("give manifest", self.brine.present("a")["comment"])

    def test_object_absent(self):
        self.answer()
        self.assertIs(self.brine.absent_object("old", kind="Service", apiVersion="v1", namespace="n")["result"], True)
        self.assertEqual(self.called()["argv"], ["patch", "--delete=true", "--dry-run=none", "--filename=-", "--output=salt"])
        self.play(code=6, then="sys.stderr.write('no cluster')")
        ret = self.brine.absent_object("old", kind="Service", apiVersion="v1")
        self.assertIs(ret["result"], False)

    def test_wait(self):
        self.found(self.POD, state="not-ready", reason="0 of 1")
        which = {"kind": "Pod", "apiVersion": "v1"}
        ret = self.brine.waited("a", timeout=0, **which)
        self.assertEqual((ret["result"], ret["comment"]), (False, "Not in 0 seconds: a: 0 of 1"))
        self.assertIs(self.brine.waited("a", test=True, **which)["result"], None)
        self.assertIn("a still there", self.brine.waited("a", absent=True, timeout=0, **which)["comment"])
        self.assertIn("a: condition Ready is not met", self.brine.waited("a", condition="Ready", timeout=0, **which)["comment"])
        self.assertIn('--ready-when=self.status.conditions.exists(c, c.type == "Ready" && c.status == "True")', self.called()["argv"])
        self.found(self.POD)
        self.assertEqual(self.brine.waited("a", condition="Ready=False", timeout=0, **which)["comment"], "a has Ready=False")
        self.assertIn('--ready-when=self.status.conditions.exists(c, c.type == "Ready" && c.status == "False")', self.called()["argv"])
        self.assertIs(self.brine.waited("a", ready_when="self.spec.x", timeout=0, **which)["result"], True)
        self.assertIn("--ready-when=self.spec.x", self.called()["argv"])
        self.found()
        self.assertIs(self.brine.waited("a", absent=True, **which)["result"], True)
        self.assertIn("there is no such object", self.brine.waited("a", label_selector="x=y", timeout=0, **which)["comment"])
        self.assertNotIn("a", self.called()["argv"])

    def test_wait_for_a_server_that_does_not_answer(self):
        which = {"kind": "Pod", "apiVersion": "v1", "interval": 0}
        tries, found = os.path.join(self.home, "tries"), json.dumps({"objects": [self.POD], "readiness": [{"state": "ready"}]})
        self.play(then="""
            with open({0!r}, "a") as file:
                file.write("x")
            if len(open({0!r}).read()) < 3:
                sys.stderr.write("connection refused")
                sys.exit(6)
            print({1!r})
            """.format(tries, found))
        ret = self.brine.waited("a", timeout=60, **which)
        self.assertEqual((ret["result"], ret["comment"]), (True, "a is ready"))
        self.play(code=6, then="sys.stderr.write('connection refused')")
        ret = self.brine.waited("a", timeout=0, **which)
        self.assertEqual((ret["result"], ret["comment"]), (False, "Not in 0 seconds: brine get failed (exit code 6): connection refused"))
        self.assertIs(self.brine.waited("a", timeout=60, test=True, **which)["result"], False)
        self.play(code=3, then="sys.stderr.write('no such kind')")
        self.assertEqual(self.brine.waited("a", timeout=60, **which)["comment"], "brine get failed (exit code 3): no such kind")

    def cluster(self, *objects, **ret):
        """What `brine get` and `brine patch` print. Gives the calls as (command, flags, object)."""
        calls = os.path.join(self.home, "calls")
        open(calls, "w").close()
        found = {"objects": objects, "readiness": [{"state": "ready"} for _ in objects]}
        answer = dict({"name": "brine", "result": True, "changes": {"v1/ConfigMap n/a": {"old": {}, "new": {"data.k": "v"}}}, "comment": "c", "warnings": []}, **ret)
        self.play(then="""
            open({!r}, "a").write(json.dumps([sys.argv[1], sys.argv[2:], told["stdin"]]) + "\\n")
            print({!r} if sys.argv[1] == "get" else {!r})
            """.format(calls, json.dumps(found), json.dumps(answer)))

        def done():
            with open(calls) as file:
                return [(c, f, json.loads(i.split("\n", 1)[1]) if i else None) for c, f, i in map(json.loads, file)]

        return done

    MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": {"k": "v"}}

    def test_create_object(self):
        done = self.cluster(self.MAP)
        self.assertEqual(self.brine.create_object(manifest=self.MAP, kubeconfig="/k"), self.MAP)
        (command, flags, sent), (again, reads, _) = done()
        self.assertEqual((command, sent, again), ("patch", self.MAP, "get"))
        self.assertIn("--create=true", flags)
        for one in (flags, reads):
            self.assertIn("--kubeconfig=/k", one)
        self.assertNotIn("--field-manager=brine-present", reads)
        # A file, rendered.
        self.rendered = {"salt://a.yaml": self.MAP}
        self.assertEqual(self.brine.create_object("salt://a.yaml", saltenv="dev", defaults={"v": 1}), self.MAP)
        self.assertEqual(self.asked, [("salt://a.yaml", "jinja|yaml", "dev", {"v": 1})])
        with self.assertRaisesRegex(Exception, "salt://gone.yaml is no file with a manifest"):
            self.brine.create_object("salt://gone.yaml")
        self.cluster(self.MAP, result=False, comment="it is invalid")
        with self.assertRaisesRegex(Exception, "it is invalid"):
            self.brine.create_object(manifest=self.MAP)

    def test_replace_object(self):
        done = self.cluster(self.MAP)
        self.assertEqual(self.brine.replace_object(manifest=self.MAP), self.MAP)
        self.assertEqual([c for c, _, _ in done()], ["patch", "get"])

    def test_update_object(self):
        done = self.cluster(self.MAP)
        ret = self.brine.update_object(name="a", kind="ConfigMap", apiVersion="v1", namespace="n", patch={"data": {"k": "v"}}, force_conflicts=True)
        self.assertEqual(ret, self.MAP)
        self.assertEqual(done()[0][2], self.MAP)
        self.assertNotIn("--create=true", done()[0][1])
        self.assertEqual(self.brine.update_object(manifest=self.MAP), self.MAP)
        # What is read is what was written, wherever its name stands.
        which = {"kind": "ConfigMap", "apiVersion": "v1"}
        for given in ({"manifest": {"metadata": {"labels": {"a": "b"}}}, "namespace": "n"}, {"manifest": dict(self.MAP, metadata={"name": "a"}), "namespace": "n"}, {"patch": {"data": {}}, "namespace": "n"}):
            done = self.cluster(self.MAP)
            self.assertEqual(self.brine.update_object("a", **dict(which, **given)), self.MAP)
            (_, _, sent), (_, flags, _) = done()
            self.assertEqual((sent["metadata"]["name"], sent["metadata"]["namespace"], "--namespace=n" in flags), ("a", "n", True), given)
        self.cluster(result=False, comment="there is no such object")
        with self.assertRaisesRegex(Exception, "there is no such object"):
            self.brine.update_object(manifest=self.MAP)

    def test_delete_object(self):
        done = self.cluster(self.MAP)
        self.assertEqual(self.brine.delete_object(name="a", kind="ConfigMap", apiVersion="v1", namespace="n"), self.MAP)
        self.assertEqual([c for c, _, _ in done()], ["get", "patch"])
        self.assertIn("--delete=true", done()[1][1])
        done = self.cluster()
        self.assertIsNone(self.brine.delete_object(manifest=self.MAP))
        self.assertEqual([c for c, _, _ in done()], ["get"])

    def test_all_functions_go_by_the_same_namespace(self):
        """That of the manifest, of the call, or else of pillar, which brine reads itself."""
        here = dict(self.MAP, metadata={"name": "a"})
        which = {"kind": "ConfigMap", "apiVersion": "v1"}
        self.brine.__pillar__ = {"brine": {"namespace": "shop"}}
        done = self.cluster(self.MAP)
        for call in (
            lambda: self.brine.get("a", **which), lambda: self.brine.list_objects(**which), lambda: self.brine.ready("a", **which), lambda: self.brine.waited("a", **which),
            lambda: self.brine.labels_exist("a", {"a": "b"}, **which), lambda: self.brine.create_object(manifest=here), lambda: self.brine.delete_object("a", **which),
            lambda: self.brine.update_object("a", patch={"data": {}}, **which), lambda: self.brine.absent_object("a", wait=0.01, **which), lambda: self.brine.rollout_restart("a"),
        ):
            call()
            self.assertEqual(self.called()["env"].get("BRINE_NAMESPACE"), "shop")
        for command, flags, sent in done():
            self.assertEqual([one for one in flags if one.startswith("--namespace")], [], command)
            self.assertIsNone((sent or {"metadata": {}})["metadata"].get("namespace"), command)
        done = self.cluster(self.MAP)
        self.brine.delete_object(manifest=self.MAP)
        self.assertEqual(done()[-1][2]["metadata"]["namespace"], "n")
        done = self.cluster(self.MAP)
        self.brine.create_object(manifest=here, namespace="m")
        self.assertEqual([("--namespace=m" in flags) for _, flags, _ in done()], [True, True])

    def test_rollout_restart(self):
        done = self.cluster({"kind": "Deployment", "metadata": {"name": "web"}})
        self.assertEqual(self.brine.rollout_restart(name="web", kind="Deployment", apiVersion="apps/v1", namespace="n")["kind"], "Deployment")
        annotations = done()[0][2]["spec"]["template"]["metadata"]["annotations"]
        self.assertRegex(annotations["kubectl.kubernetes.io/restartedAt"], r"^\d{4}-\d\d-\d\dT")

    def test_labels_exist(self):
        node = {"kind": "Node", "metadata": {"name": "node-1", "labels": {"a": "mine"}}}
        which = {"kind": "Node", "apiVersion": "v1"}
        done = self.cluster(node)
        ret = self.brine.labels_exist("node-1", {"a": "b", "c": "d"}, __id__="Label it", saltenv="base", **which)
        self.assertEqual(ret, {"name": "node-1", "result": True, "changes": {"labels added": {"c": "d"}}, "comment": "c"})
        self.assertEqual(done()[1][2]["metadata"]["labels"], {"c": "d"})
        done = self.cluster(node)
        ret = self.brine.labels_exist("node-1", {"a": "b"}, **which)
        self.assertEqual(ret, {"name": "node-1", "result": True, "changes": {}, "comment": "All labels already exist on object node-1"})
        self.assertEqual([c for c, _, _ in done()], ["get"])
        done = self.cluster(node, result=None)
        self.assertIs(self.brine.labels_exist("node-1", {"c": "d"}, test=True, **which)["result"], None)
        self.assertIn("--dry-run=server", done()[1][1])
        self.cluster()
        ret = self.brine.labels_exist("node-1", {"c": "d"}, **which)
        self.assertEqual((ret["result"], ret["comment"]), (False, "The object node-1 does not exist"))

    def test_wait_of_object_absent(self):
        self.cluster(self.MAP)
        which = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": "n"}
        ret = self.brine.absent_object("a", wait=0.01, **which)
        self.assertEqual((ret["result"], ret["comment"]), (False, "Not in 0.01 seconds: a still there"))
        self.cluster()
        self.assertEqual(self.brine.absent_object("a", wait=True, **which)["result"], True)
        self.assertEqual(self.brine.absent_object("a", wait=True, manifest=self.MAP)["result"], True)

    def test_an_object_of_a_file_is_deleted_and_waited_for(self):
        self.rendered = {"salt://a.yaml": self.MAP}
        done = self.cluster()
        self.assertIs(self.brine.absent_object("salt://a.yaml", wait=True, kubeconfig="/k", grace="x")["result"], True)
        self.assertEqual([c for c, _, _ in done()], ["patch", "get"])
        self.assertIn("--kubeconfig=/k", done()[1][1])
        self.assertNotIn("--grace=x", done()[1][1])  # which is for the deletion
        self.assertEqual(done()[1][1][-2:], ["ConfigMap", "a"])
        done = self.cluster()
        self.assertIn("is no file with a manifest", self.brine.absent_object("salt://gone.yaml", wait=True)["comment"])
        self.assertIn("wait is 'soon': it has to be a number of seconds, or like 20m", self.brine.absent_object("a", kind="Pod", apiVersion="v1", wait="soon")["comment"])
        self.assertEqual(done(), [])

    def test_arguments_of_another_type_are_results(self):
        which = {"kind": "Pod", "apiVersion": "v1"}
        done = self.cluster(self.POD)
        for ret, says in (
            (self.brine.waited("a", timeout="soon", **which), "timeout is 'soon': it has to be a number of seconds, or like 20m"), (self.brine.waited("a", interval=[1], **which), "interval is a list"),
            (self.brine.labels_exist("a", ["a"], **which), "labels is a list: it has to be a mapping"), (self.brine.patched("a", manifest=["a"], **which), "manifest is a list: it has to be a mapping"),
            (self.brine.patched("a", manifest={"metadata": ["a"]}, **which), "TypeError: "),
        ):
            self.assertEqual((ret["result"], ret["changes"]), (False, {}))
            self.assertIn(says, ret["comment"])
        self.assertEqual(done(), [])
        for timeout, seconds in (("1h30m", 5400), ("90", 90), (1.5, 1.5), ("250ms", 0.25), (0, 0)):
            self.assertEqual(self.brine._brine.call.read_seconds("timeout", timeout), seconds)
        self.assertIs(self.brine.waited("a", timeout="1s", absent="False", **which)["result"], True)
        self.brine.patched("a", patch={"a": 1}, absent="False", **which)
        self.assertNotIn("--remove=true", done()[-1][1])

    def test_each_row_of_the_table_has_a_test_and_each_name_exists(self):
        states = load("_states/brine.py", "brine_state")
        with open(os.path.join(HERE, "from-metalk8s.md")) as file:
            table = file.read().split("| metalk8s_kubernetes |")[1].split("\n\n")[0]
        names = [name for line in table.splitlines() if line.startswith("| `") for name in re.findall("`([a-z_]+)`", line.split("|")[1])]
        self.assertGreater(len(names), 12)
        for name in names:
            self.assertTrue(hasattr(self, "test_" + name) or name == "wait", name)
            module = states if name in ("object_present", "object_absent", "object_updated", "labels_exist") else self.brine
            self.assertTrue(name == "wait" or callable(getattr(module, name, None)), name)

    def test_check_rbac_inventories_and_drift(self):
        self.play(then="print(json.dumps({'problems': []}))")
        self.brine.check(bundle="kind: A\n")
        self.assertEqual((self.called()["argv"], self.called()["stdin"]), (
            ["check", "--filename=-", "--output=json"], "# brine.dev/source: 1 bundle\nkind: A\n"))
        self.play(code=3, then="print(json.dumps({'errors': [1]}))")
        self.assertEqual(self.brine.check(bundle="kind: A\n"), {"errors": [1]})
        self.assertEqual(self.brine.__context__.pop("retcode"), 3)
        self.play(then="print(json.dumps({'problems': []}))")
        self.brine.rbac(bundle="kind: A\n", inventory="ns/platform")
        self.assertEqual(self.called()["argv"], ["rbac", "--inventory=ns/platform", "--filename=-"])
        self.brine.__pillar__ = {"brine": {"inventory": "kube-system/platform"}}
        self.brine.rbac(bundle="kind: A\n", role="brine")
        self.assertEqual(self.called()["argv"], ["rbac", "--inventory=kube-system/platform", "--role=brine", "--filename=-"])
        self.brine.__pillar__ = {}
        self.brine.inventories(namespace="ns")
        self.assertEqual(self.called()["argv"], ["inventory", "list", "--namespace=ns", "--output=json"])
        self.play(code=2, then="print(json.dumps({'objects': []}))")
        self.assertEqual(self.brine.drift("platform"), {"objects": []})
        self.assertFalse(self.brine.__context__.get("retcode"))


class Readme(Case):
    def test_examples_name_states_and_arguments_that_exist(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("SKIPPED: no PyYAML reads the examples of README.md")
        text = real.documents()
        states = {name: load("_states/{}.py".format(name), "brine_state") for name in ("brine", "brine_object")}
        arguments = set(re.findall("`([a-z_]+)`", "".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))))
        found = 0
        for block in re.findall("```yaml\n(.*?)```", text, re.S):
            block = re.sub("{{.*?}}", "x", re.sub("{%.*?%}", "", block))
            for declaration in (yaml.safe_load(textwrap.dedent(block)) or {}).values():
                for fun, values in declaration.items() if isinstance(declaration, dict) else ():
                    module, _, function = fun.partition(".")
                    if module not in states:
                        continue
                    found += 1
                    self.assertTrue(hasattr(states[module], function), fun)
                    for key in (key for value in values for key in value):
                        known = arguments | {"manifest", "patch", "kind", "apiVersion", "condition", "ready_when", "label_selector", "take_over_from", "take_over_managers", "recreate", "force_conflicts", "require", "onfail", "name"}
                        self.assertIn(key, known, "an argument of {} that README.md does not list".format(fun))
        self.assertGreater(found, 3)

    def test_the_examples_of_drift_are_valid(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("SKIPPED: no PyYAML reads the examples of README.md")
        blocks = re.findall("```yaml\n(.*?)```", real.documents(), re.S)
        beacon = load("_beacons/brine_drift.py", "brine_drift")
        config = next(yaml.safe_load(b) for b in blocks if b.startswith("beacons:"))["beacons"]["brine_drift"]
        self.assertEqual(beacon.validate(config), (True, "Valid beacon configuration."))
        self.say_version({"flags": {"drift": ["namespace", "kubeconfig"]}})
        self.play(then="print(json.dumps({'objects': []}))")
        for job in next(yaml.safe_load(b) for b in blocks if b.startswith("schedule:"))["schedule"].values():
            getattr(self.brine, job["function"].split(".")[1])(*job["args"], **job["kwargs"])
            self.assertIn("--inventory=" + job["args"][0], self.called()["argv"])
        for name in config[2]["inventories"]:
            self.brine.drift(name, event=True, **config[2]["inventories"][name])


class Drift(Case):
    def drift(self, *objects, **given):
        """What brine.drift sends if the cluster has these objects."""
        del self.sent[:]
        document = {"wanted": "revision 3", "objects": [dict(of("ConfigMap", "same"), action="unchanged")] + list(objects)}
        self.play(code=2 if objects else 0, then="print({!r})".format(json.dumps(document)))
        self.assertEqual(self.brine.drift("platform", inventory="ns/platform", event=True, **given), document)
        return [data for tag, data in self.sent if tag == "brine/ns.platform/drift"]

    @staticmethod
    def changed(value):
        fields = [{"path": "spec.replicas", "old": value, "new": 1, "manager": "kubectl", "time": "2026-07-01T01:02:03Z"}]
        return dict(of("Deployment", "web", "apps"), action="configured", changes=fields)

    def test_one_event_when_the_drift_changes(self):
        always = {"event_interval": 0}
        self.assertEqual(self.drift(**always), [])
        first = self.drift(self.changed(3), **always)
        self.assertEqual([(e["drift"], e["count"], e["wanted"], e["inventory"]) for e in first], [(True, 1, "revision 3", "ns/platform")])
        self.assertEqual(first[0]["objects"], [{"object": "Deployment.apps/shop/web", "action": "configured", "reason": "", "fields": [
            {"path": "spec.replicas", "old": "3", "new": "1", "manager": "kubectl", "time": "2026-07-01T01:02:03Z"}]}])
        self.assertEqual(self.drift(self.changed(3), **always), [])
        self.assertEqual(len(self.drift(self.changed(4), **always)), 1)
        self.assertEqual([e["drift"] for e in self.drift(**always)], [False])
        self.assertEqual(self.drift(**always), [])

    def test_events_are_rate_limited_and_nothing_is_lost(self):
        self.assertEqual(len(self.drift(self.changed(3))), 1)
        self.assertEqual(self.drift(self.changed(4)), [])
        self.assertEqual(len(self.drift(self.changed(4), event_interval=0)), 1)

    def test_two_clusters_with_an_inventory_of_one_name(self):
        for _ in range(2):
            ends = [len(self.drift(self.changed(3), kubeconfig="/a", event_interval=0)), len(self.drift(kubeconfig="/b", event_interval=0)), len(self.drift(event_interval=0))]
        self.assertEqual(ends, [0, 0, 0])

    def test_an_event_that_was_not_sent_is_sent_again(self):
        send = self.brine.__salt__["event.send"]
        self.brine.__salt__["event.send"] = lambda tag, data: False
        self.assertEqual(self.drift(self.changed(3)), [])
        self.brine.__salt__["event.send"] = send
        self.assertEqual(len(self.drift(self.changed(3))), 1)

    def test_what_could_not_be_compared_is_no_end_of_the_drift(self):
        self.drift(self.changed(3))
        self.play(code=1, then="print(json.dumps({'objects': [{'kind': 'ConfigMap', 'action': 'failed'}]}))")
        self.brine.drift("platform", inventory="ns/platform", event=True, event_interval=0)
        self.play(code=6, then="print(json.dumps({'objects': [], 'errors': ['no cluster']}))")
        with self.assertRaisesRegex(Exception, "no cluster"):
            self.brine.drift("platform", inventory="ns/platform", event=True, event_interval=0)
        self.assertEqual(len(self.sent), 1)

    def test_without_event_nothing_is_sent(self):
        self.play(code=2, then="print(json.dumps({'objects': []}))")
        self.brine.drift("platform")
        self.assertEqual(self.sent, [])

    def beacon(self):
        beacon = load("_beacons/brine_drift.py", "brine_drift")
        beacon.__salt__ = {"brine.drift": lambda name, **kwargs: self.sent.append((name, kwargs))}
        return beacon

    def test_the_configuration_of_the_beacon_is_validated(self):
        beacon = self.beacon()
        good = [{"interval": 600}, {"event_interval": 3600}, {"inventories": {"ns/platform": {"kubeconfig": "/k"}, "other": None}}]
        self.assertEqual(beacon.validate(good), (True, "Valid beacon configuration."))
        for config, says in (
            ({}, "must be a list"), ([], "requires inventories"), ([{"inventories": ["a"]}], "requires inventories"), ([{"inventories": {}}], "requires inventories"),
            (["a"], "must be a list"), ([{"inventories": {"a": "b"}}], "must be a mapping"), (good + [{"invental": 1}], "invental has no effect"),
            (good + [{"event_interval": "soon"}], "number of seconds"),
        ):
            valid, why = beacon.validate(config)
            self.assertIs(valid, False)
            self.assertIn(says, why)

    def test_the_beacon_compares_each_inventory_beside_the_loop(self):
        beacon = self.beacon()
        gate = threading.Event()
        beacon.__salt__ = {"brine.drift": lambda name, **kwargs: (gate.wait(60), self.sent.append((name, kwargs)))}
        config = [{"inventories": {"ns/a": {"kubeconfig": "/k"}, "b": None}}]
        self.assertEqual([beacon.beacon(config), beacon.beacon(config)], [[], []])  # the second finds both under way
        gate.set()
        for thread in beacon._running.values():
            thread.join(60)
        self.assertEqual(sorted(self.sent, key=str), sorted([
            ("ns/a", {"event": True, "event_interval": 300, "kubeconfig": "/k"}), ("b", {"event": True, "event_interval": 300})], key=str))

        def fail(_name, **_kwargs):
            raise OSError("no cluster")

        beacon.__salt__ = {"brine.drift": fail}
        with self.assertLogs("brine_drift", "ERROR"):
            beacon.beacon(config)
            for thread in beacon._running.values():
                thread.join(60)


class Events(Case):
    def test_events_are_fired_as_they_happen(self):
        first = threading.Event()
        seen = []
        gate = os.path.join(self.home, "go")

        def send(tag, data):
            seen.append((tag, data))
            if tag == "brine/platform/ConfigMap/shop/a":
                open(gate, "w").close()  # brine goes on only when this has been sent
                first.set()
            return True

        self.brine.__salt__["event.send"] = send
        self.play(
            [event("started", total=2), event("acting", object=of("ConfigMap", "a")),
             event("acted", object=of("ConfigMap", "a"), action="created", done=1, total=2)],
            then="""
            for _ in range(200):
                if os.path.exists({!r}):
                    break
                time.sleep(0.05)
            else:
                sys.exit(9)
            print({!r})
            """.format(gate, json.dumps(event("finished", **{"return": RETURN}))),
        )
        ret = self.brine.applied("platform", bundle="x", jid="77")
        self.assertTrue(first.is_set())
        self.assertIs(ret["result"], True, ret)
        tags = [tag for tag, _ in seen]
        self.assertEqual(tags, ["brine/platform/started", "brine/platform/ConfigMap/shop/a", "brine/platform/finished", "brine/platform/run-finished"])
        self.assertEqual(seen[1][1]["action"], "created")
        self.assertEqual(seen[1][1]["jid"], "77")
        self.assertEqual(seen[2][1]["success"], True)
        self.assertNotIn("return", seen[2][1])

    def test_tags_name_inventory_and_object(self):
        self.play([event("ready", object=of("Deployment", "web", "apps")), event("ready", object=of("Namespace", "shop", "", "")),
                   event("finished", **{"return": RETURN})])
        self.brine.applied("platform", inventory="ns/platform", bundle="x")
        self.assertEqual([t for t, _ in self.sent][:2], ["brine/ns.platform/Deployment.apps/shop/web", "brine/ns.platform/Namespace/shop"])

    def test_events_of_a_preview_say_so(self):
        self.play([event("acted", object=of("ConfigMap", "a"), action="created"), event("acted", object=of("ConfigMap", "b"), action="unchanged"),
                   event("ready", object=of("ConfigMap", "b"), action="unchanged"), event("finished", **{"return": RETURN})])
        self.brine.applied("platform", bundle="x", test=True)
        self.assertEqual([t for t, _ in self.sent], ["brine/preview/platform/ConfigMap/shop/a", "brine/preview/platform/finished", "brine/preview/platform/preview-finished"])
        self.assertEqual([d["dryRun"] for _, d in self.sent], [True] * 3)
        self.assertEqual([d["preview"] for _, d in self.sent], [True] * 3)
        del self.sent[:]
        self.brine.applied("platform", bundle="x")
        self.assertEqual([t for t, _ in self.sent], ["brine/platform/ConfigMap/shop/a", "brine/platform/finished", "brine/platform/run-finished"])
        self.assertNotIn("dryRun", self.sent[0][1])
        self.assertEqual([d["preview"] for _, d in self.sent], [False] * 3)

    def test_events_have_numbers_and_the_name_of_their_run(self):
        """Of a binary that names its runs, and of one that does not; what is left out leaves no gap."""
        for named in ({"run": "abc", "seq": 7, "preview": False}, {}):
            del self.sent[:]
            lines = [event("acted", object=of("ConfigMap", str(i)), action="created", **named) for i in range(30)]
            self.play([event("started", **named)] + lines + [event("finished", **dict(named, **{"return": RETURN}))])
            self.brine.applied("platform", bundle="x", event_rate=2)
            self.assertIn("brine/platform/left-out", [t for t, _ in self.sent])
            ended = self.sent.pop()
            self.assertEqual((ended[0], ended[1]["seq"]), ("brine/platform/run-finished", self.sent[-1][1]["seq"]))
            self.assertEqual([d["seq"] for _, d in self.sent], list(range(1, len(self.sent) + 1)))
            runs = {d["run"] for _, d in self.sent}
            self.assertEqual(len(runs), 1)
            self.assertTrue(all(runs) and (not named or runs == {"abc"}), runs)

    def test_events_can_be_turned_off(self):
        self.brine.applied("platform", bundle="x", events=False)
        self.brine.__pillar__ = {"brine": {"events": False}}
        self.brine.applied("platform", bundle="x")
        self.assertEqual(self.sent, [])

    def test_events_of_objects_are_limited_and_the_rest_is_counted(self):
        lines = [event("acted", object=of("ConfigMap", str(i)), action="created") for i in range(300)]
        lines.insert(250, event("acted", object=of("ConfigMap", "bad"), action="failed", error="no"))
        lines += [event("heartbeat", pending=[]), event("finished", **{"return": RETURN})]
        self.play(lines)
        self.brine.applied("platform", bundle="x", event_rate=5)
        tags = [t for t, _ in self.sent]
        self.assertIn("brine/platform/ConfigMap/shop/bad", tags)
        self.assertEqual(tags[-4:], ["brine/platform/heartbeat", "brine/platform/left-out", "brine/platform/finished", "brine/platform/run-finished"])
        summary = self.sent[-3][1]
        created = [d for _, d in self.sent if d.get("action") == "created"]
        self.assertGreaterEqual(len(created), 5)
        self.assertEqual(len(created) + summary["events"]["created"], 300)
        del self.sent[:]
        self.brine.applied("platform", bundle="x", event_rate=0)
        self.assertEqual(len(self.sent), 304)

    def test_masterless_there_is_no_bus_to_wait_for(self):
        self.brine.__opts__.update({"file_client": "local", "sock_dir": self.home, "id": "m1"})
        self.brine.applied("platform", bundle="x")
        self.assertEqual((self.sent, self.called()["env"]["BRINE_MINION"]), ([], "m1"))
        open(os.path.join(self.home, "minion_event_0123_pub.ipc"), "w").close()
        self.brine.applied("platform", bundle="x")
        self.assertEqual(len(self.sent), 2)

    def test_a_bus_that_is_not_there_does_not_stop_the_run(self):
        calls = []

        def broken(tag, data):
            calls.append(tag)
            raise OSError("no master")

        self.brine.__salt__["event.send"] = broken
        self.play([event("ready", object=of("ConfigMap", str(i))) for i in range(50)] + [event("finished", **{"return": RETURN})])
        self.assertEqual(self.brine.applied("platform", bundle="x"), RETURNED)
        self.assertEqual(len(calls), 3)

    def test_a_slow_bus_does_not_hold_up_brine(self):
        self.brine._brine.events._FLUSH_SECONDS = 0.2
        sent = []
        self.brine.__salt__["event.send"] = lambda tag, data: time.sleep(0.05) or sent.append(tag) or True
        lines = [event("waiting", object=of("ConfigMap", "x" * 1000 + str(i))) for i in range(400)]  # more than a pipe holds
        self.play(lines + [event("finished", **{"return": RETURN})])
        self.assertEqual(self.brine.applied("platform", bundle="x"), RETURNED)
        self.assertLess(len(sent), 400)

    def test_in_an_orchestrate_run_the_masters_bus(self):
        fired = []
        bus = types.SimpleNamespace(fire_event=lambda data, tag: fired.append(tag) or True)
        utils = types.ModuleType("salt.utils")
        events = types.ModuleType("salt.utils.event")
        events.get_master_event = lambda opts, sock_dir, listen: bus
        utils.event = events
        sys.modules["salt"].utils = utils
        sys.modules.update({"salt.utils": utils, "salt.utils.event": events})
        self.brine.__opts__.update({"__role": "master", "sock_dir": "/x"})
        self.brine.applied("platform", bundle="x")
        self.assertEqual(fired, ["brine/platform/finished", "brine/platform/run-finished"])
        self.assertEqual(self.sent, [])


class Signals(Case):
    """A process of its own, which gets the signal as Salt's would."""

    PARENT = '''
import sys
sys.path.insert(0, {here!r})
import test_brine
test_brine.stub_salt()
brine = test_brine.load("_modules/{module}.py", "brine_module")
brine.__opts__ = {{"test": False, "cachedir": {cache!r}, "brine": {{"binary": {binary!r}}}}}
brine.__context__ = {{}}
brine.__salt__ = {{"event.send": lambda tag, data: print(tag, flush=True) or True}}
kwargs = {{}}
{more}
ret = {call}
print("returned", ret["comment"], flush=True)
'''
    CHILD = """
        def end(number, frame):
            open(os.path.join(home, "got"), "a").write(str(number) + " ")
            time.sleep(0.3)
            print(json.dumps({"type": "finished", "return": {"changes": {}, "comment": "interrupted", "result": False}}), flush=True)
            sys.exit(143)
        signal.signal(signal.SIGTERM, end)
        print(json.dumps({"type": "started"}), flush=True)
        time.sleep(60)
        """

    def start(self, more="", module="brine", call='brine.applied("platform", bundle="x", jid="7", **kwargs)', child=CHILD):
        self.play(then=child)
        parent = subprocess.Popen(
            [sys.executable, "-c", self.PARENT.format(here=HERE, cache=self.cache, binary=self.binary, more=more, module=module, call=call)], stdout=subprocess.PIPE, universal_newlines=True,
        )
        self.addCleanup(parent.stdout.close)
        if child is self.CHILD:
            self.assertEqual(parent.stdout.readline(), "brine/platform/started\n")
        return parent

    def got(self):
        for _ in range(200):
            if os.path.exists(os.path.join(self.home, "got")):
                with open(os.path.join(self.home, "got")) as file:
                    told = file.read()
                if told:
                    return told
            time.sleep(0.05)
        return ""

    def test_sigterm_is_passed_on_and_the_end_still_told(self):
        parent = self.start()
        parent.terminate()
        self.assertEqual(parent.stdout.read(), "brine/platform/finished\nbrine/platform/run-finished\n")
        self.assertEqual(parent.wait(20), -signal.SIGTERM)
        self.assertEqual(self.got(), "15 ")

    def test_a_signal_that_brine_got_itself_is_not_sent_again(self):
        parent = self.start("brine._brine.running._GRACE_SECONDS = 20")
        with open("/proc/{}/task/{}/children".format(parent.pid, parent.pid)) as file:
            child = int(file.read().split()[0])
        os.kill(child, signal.SIGTERM)  # as saltutil.term_job: the children first
        parent.terminate()
        self.assertEqual(parent.stdout.read(), "brine/platform/finished\nbrine/platform/run-finished\n")
        self.assertEqual(parent.wait(20), -signal.SIGTERM)
        self.assertEqual(self.got(), "15 ")

    def test_a_state_run_is_told_to_end_and_returns_what_was_done(self):
        parent = self.start('kwargs["__id__"] = "Deploy"; brine.__salt__["state.soft_kill"] = lambda jid: print("soft_kill", jid, flush=True)')
        parent.terminate()
        self.assertEqual(parent.stdout.read(), "brine/platform/finished\nbrine/platform/run-finished\nsoft_kill 7\nreturned interrupted\n")
        self.assertEqual(parent.wait(20), 0)

    def test_a_state_of_a_single_object_returns_what_was_done(self):
        parent = self.start(
            'brine.__salt__["state.soft_kill"] = lambda jid: print("soft_kill", jid, flush=True)', "brine_object",
            'brine.patched("a", kind="Node", apiVersion="v1", patch={"a": 1}, __low__={"__id__": "Label", "__pub_jid": "7"})',
            """
            def end(number, frame):
                print(json.dumps({"changes": {}, "comment": "interrupted", "result": False}), flush=True)
                sys.exit(143)
            signal.signal(signal.SIGTERM, end)
            open(os.path.join(home, "begun"), "w").close()
            time.sleep(60)
            """)
        for _ in range(400):
            if os.path.exists(os.path.join(self.home, "begun")):
                break
            time.sleep(0.05)
        parent.terminate()
        self.assertEqual(parent.stdout.read(), "soft_kill 7\nreturned interrupted\n")
        self.assertEqual(parent.wait(20), 0)

    def test_a_function_that_is_the_whole_job_returns(self):
        parent = self.start('kwargs["__pub_fun"] = "brine.applied"')
        parent.terminate()
        self.assertEqual(parent.stdout.read(), "brine/platform/finished\nbrine/platform/run-finished\nreturned interrupted\n")

    @unittest.skipUnless(sys.platform.startswith("linux"), "SKIPPED: only Linux tells a child of its parent's death")
    def test_brine_ends_when_salt_is_killed_outright(self):
        parent = self.start()
        parent.kill()
        parent.wait(20)
        self.assertEqual(set(self.got().split()), {"15"})  # Linux sends it for each thread


class States(Case):
    def setUp(self):
        super(States, self).setUp()
        self.states = load("_states/brine.py", "brine_state")
        self.states.__opts__ = {"test": False}
        self.states.__env__ = "dev"
        self.states.__salt__ = {"brine." + name: getattr(self.brine, name) for name in ("applied", "absent", "planned", "rolled_back")}

    def test_loads_only_with_its_execution_module(self):
        self.assertEqual(self.states.__virtual__(), "brine")
        self.states.__salt__ = {}
        self.assertIs(self.states.__virtual__()[0], False)

    def test_applied(self):
        self.rendered = {"salt://a.yaml": "kind: A"}
        ret = self.states.applied("platform", source="salt://a.yaml", force_conflicts=True)
        self.assertEqual(ret, RETURNED)
        self.assertEqual(self.asked[0][2], "dev")
        self.assertIn("--force-conflicts=true", self.called()["argv"])

    def test_absent_of_what_is_absent_is_silent(self):
        self.play([event("finished", **{"return": dict(RETURN, changes={}, warnings=["there is no inventory default/a: nothing to destroy"])})])
        ret = self.states.absent("platform")
        self.assertNotIn("warnings", ret)
        self.assertIn("nothing to destroy", ret["comment"])

    def test_absent(self):
        self.assertEqual(self.states.absent("platform"), RETURNED)
        self.assertEqual(self.called()["argv"][0], "destroy")
        self.assertEqual(self.called()["stdin"], "")

    def test_test_mode(self):
        self.states.__opts__["test"] = True
        self.play([event("finished", **{"return": dict(RETURN, result=None)})])
        self.assertIs(self.states.applied("platform", bundle="x")["result"], None)
        self.assertIn("--dry-run=server", self.called()["argv"])

    def test_a_state_that_says_test_is_previewed_in_each_run(self):
        for test, dry in ((True, "server"), ("True", "server"), (False, "none"), ("False", "none")):
            self.states.applied("platform", bundle="x", test=test)
            self.assertIn("--dry-run=" + dry, self.called()["argv"])
        self.states.__opts__["test"] = True
        self.states.absent("platform", test=False)
        self.assertIn("--dry-run=server", self.called()["argv"])
        objects = load("_states/brine_object.py", "brine_object_state")
        objects.__opts__ = {"test": False}
        objects.__salt__ = {"brine_object." + name: lambda *args, **kwargs: kwargs["test"] for name in ("patched", "waited")}
        self.assertEqual([objects.patched("a", test=True), objects.waited("a", test=True), objects.waited("a")], [True, True, False])

    def test_an_empty_limit_is_a_mistake(self):
        """As `- plan_digest: {{ pillar.get('digest', '') }}`: without it, any plan would be carried out."""
        limits = ("plan", "plan_digest", "only", "deny", "dry_run", "inventory_id", "prune", "no_prune", "max_prune", "refuse_removed")
        for key in limits:
            for value in (None, "", " "):
                self.states.__low__ = {"__id__": "a", "fun": "applied", key: value}
                ret = self.states.applied("platform", bundle="x", **{key: value})
                self.assertEqual((ret["result"], ret["comment"]), (False, key + " is empty: give a value, or leave it out"))
        self.states.__low__ = {"__id__": "a", "fun": "applied"}
        for key in limits:
            for value in (None, ""):
                for where in ("__pillar__", "__opts__"):
                    self.brine.__pillar__, self.brine.__opts__["brine"] = {}, {"binary": self.binary}
                    getattr(self.brine, where)["brine"] = {"binary": self.binary, key: value}
                    ret = self.states.applied("platform", bundle="x")
                    self.assertEqual((ret["result"], ret["comment"]), (False, "brine: %s: in pillar, grains or configuration is empty: give a value, or leave it out" % key))
        self.brine.__pillar__, self.brine.__opts__["brine"] = {}, {"binary": self.binary}
        self.states.__low__ = {"__id__": "a", "fun": "applied", "plan-digest": None}
        self.assertIn("plan-digest is empty", self.states.applied("platform", bundle="x", plan="secret", **{"plan-digest": None})["comment"])
        self.states.__low__ = {"__id__": "a", "fun": "rolled_back", "revision": None}
        self.assertIn("revision is empty", self.states.rolled_back("platform", revision=None)["comment"])
        self.states.__low__ = {"__id__": "a", "fun": "applied"}
        for given, says in (({"inventory": ""}, "'' cannot be the name of an inventory"), ({"token": ""}, "token is empty")):
            self.assertIn(says, self.states.applied("platform", bundle="x", **given)["comment"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "call.json")))
        self.assertIs(self.states.applied("platform", bundle="x", plan=None, kubeconfig=None)["result"], True)

    def test_parallel_is_salts_own(self):
        for parallel, result in ((8, False), (True, True)):
            self.states.__low__ = {"__id__": "a", "fun": "applied", "parallel": parallel}
            ret = self.states.applied("platform", bundle="x")
            self.assertIs(ret["result"], result, ret)
        self.states.__low__["parallel"] = 8
        self.assertIn("parallel is an argument of Salt's own in a state", self.states.planned("platform", bundle="x")["comment"])

    def test_test_mode_says_what_is_not_ready_now(self):
        with open(os.path.join(self.home, "status.json"), "w") as file:
            json.dump({"objects": [dict(of("Deployment", "web", "apps"), ready="not-ready", reason="0 of 1 available"), dict(of("ConfigMap", "a"), ready="ready")]}, file)
        self.say_version({"version": "v0.2.0", "flags": dict(FLAGS, status=["name", "kubeconfig"], apply=FLAGS["apply"] + ["name"])})
        ret = self.brine.applied("platform", bundle="x", test=True)
        self.assertEqual(ret["warnings"][-1], "Not ready now: Deployment.apps/shop/web: 0 of 1 available")
        with open(os.path.join(self.home, "status.json"), "w") as file:  # what cannot be read is not called ready
            json.dump({"objects": [], "errors": ["reach the cluster: no"]}, file)
        ret = self.brine.applied("platform", bundle="x", test=True)
        self.assertEqual(ret["warnings"][-1], "What is ready now is not known: reach the cluster: no")
        self.assertEqual(self.brine.applied("platform", bundle="x")["warnings"], RETURN["warnings"])

    def test_watch_and_listen_run_it_again(self):
        self.states.__low__ = {"__id__": "listener_platform", "fun": "mod_watch"}
        given = []
        self.states.__salt__ = {"brine." + name: lambda *args, **kwargs: given.append((args, self.brine._brine.call.take_state(kwargs)["__id__"])) or RETURNED for name in ("applied", "absent")}
        self.assertEqual(self.states.mod_watch("platform", sfun="applied", source="salt://a.yaml"), RETURNED)
        self.assertEqual(self.states.mod_watch("other", sfun="absent"), RETURNED)
        self.assertEqual(given, [(("platform",), "platform"), (("other",), "platform")])

    def test_a_rollback_on_failure_undoes_only_what_this_run_did(self):
        refused, changed = {"changes": {}, "result": False}, {"changes": {"a": {}}, "result": False}
        for low, running, undone in (
            ({"onfail": [{"brine": "Deploy"}]}, {"brine_|-Deploy_|-p_|-applied": refused}, False),
            ({"onfail": [{"brine": "Deploy"}]}, {"brine_|-Deploy_|-p_|-applied": changed}, True),
            ({"onfail_any": [{"test": "Smoke"}]}, {"brine_|-Deploy_|-p_|-applied": dict(refused, result=True), "test_|-Smoke_|-a_|-nop": changed}, False),
            ({"onfail": [{"brine": "Deploy"}]}, {"brine_|-Deploy_|-p_|-applied": dict(refused, comment="brine ended without a result (killed by signal 9): Objects may have changed")}, None),
            ({"onfail": [{"brine": "Deploy"}]}, {"brine_|-Deploy_|-p_|-applied": dict(refused, comment="An exception occurred in this state: Traceback")}, None),
            ({}, {"brine_|-Deploy_|-p_|-applied": refused}, True),
        ):
            self.states.__low__, self.states.__running__ = low, running
            ret = self.states.rolled_back("platform")
            self.assertEqual((ret["result"], bool(ret["changes"])), (undone is not None, bool(undone)), (low, running))
        # Another inventory of the same run is none of its business.
        def chunk(state_id, **more):
            return dict({"state": "brine", "__id__": state_id, "name": state_id, "fun": "applied"}, **more)

        shop, web = "brine_|-shop_|-shop_|-applied", "brine_|-web_|-web_|-applied"
        self.states.__lowstate__ = [chunk("shop"), chunk("web", inventory="ns/web")]
        self.states.__running__ = {shop: changed, web: refused}
        for revision in (None, "previous", "last-good"):
            self.states.__low__ = {"onfail": [{"brine": "web"}]}
            self.assertEqual((self.states.rolled_back("web", revision=revision)["changes"], self.states.rolled_back("shop", revision=revision)["changes"]), ({}, RETURN["changes"]))
        for given, other in (({"inventory": "ns/web"}, False), ({"inventory": "web"}, False), ({"inventory": "other/web"}, True), ({"inventory": "web", "namespace": "other"}, True)):
            self.assertEqual(self.states._of_another(dict(given, name="Back"), self.states.__lowstate__[1]), other)
        self.assertTrue(self.states._of_another(chunk("a", kubeconfig="/a"), chunk("a", kubeconfig="/b")))
        self.states.__running__ = {shop: dict(refused, comment="brine ended without a result (killed by signal 9): Objects may have changed"), web: refused}
        self.assertIs(self.states.rolled_back("web")["result"], True)
        self.states.__lowstate__ = []
        # What others of the run applied has the id of one of its jobs.
        self.states.__salt__ = {"brine.rolled_back": lambda name, **kwargs: kwargs.get("only_of")}
        orchestrated = {"onfail": [{"salt": "Deploy"}], "__orchestration_jid__": "1"}
        for low, one, undone in (
            (orchestrated, {"result": False, "changes": {"a": {}}, "__jid__": "2"}, ["1", "2"]), ({"onfail": [{"salt": "Deploy"}]}, {"result": False}, []), ({}, {"result": False}, None),
        ):
            self.states.__low__, self.states.__running__ = low, {"salt_|-Deploy_|-a_|-state": one}
            self.assertEqual(self.states.rolled_back("platform"), undone)
        self.states.__low__ = orchestrated
        for lost in ({"comment": "Minion did not return. [No response]"}, {"changes": {"ret": {"a": {"comment": "Failed, and objects may have changed: inventory"}}}}):
            self.states.__running__ = {"salt_|-Deploy_|-a_|-state": dict(lost, result=False)}
            self.assertIs(self.states.rolled_back("platform")["result"], False)
        self.states.__salt__ = {"brine.rolled_back": self.brine.rolled_back}
        # Of an upgrade that is tried again, Salt keeps what the last attempt changed: the history knows more.
        self.states.__lowstate__ = [chunk("shop", retry={"attempts": 2})]
        self.states.__running__ = {shop: refused}
        for jid, last, result, undone in (("2", "2", True, True), ("2", "1", True, False), (None, "1", False, False)):
            with open(os.path.join(self.home, "history.json"), "w") as file:
                json.dump({"revisions": [{"number": 1, "jid": last}]}, file)
            self.states.__low__ = {"onfail": [{"brine": "shop"}], "__pub_jid": jid}
            ret = self.states.rolled_back("shop")
            self.assertEqual((ret["result"], bool(ret["changes"])), (result, undone), (jid, ret))
        # Nor does a preview that a state asks for write anything, whether it ended well or not.
        with open(os.path.join(self.home, "history.json"), "w") as file:
            json.dump({"revisions": [{"number": 2, "jid": "2"}]}, file)
        self.states.__low__ = {"onfail": [{"brine": "shop"}], "__pub_jid": "3"}
        for more in ({"test": True}, {"dry_run": "server"}, {"dry-run": "server"}, {}):
            for result in (None, False):
                self.states.__lowstate__ = [chunk("shop", **more)]
                self.states.__running__ = {shop: dict(changed, result=result)}
                ret = self.states.rolled_back("shop")
                self.assertEqual((ret["result"], bool(ret["changes"])), (True, result is False and not more), (more, ret))
        # With `prereq`, Salt lets what a preview returned that was refused stand as the state's return.
        self.states.__lowstate__ = [chunk("shop")]
        self.states.__running__ = {shop: dict(changed, preview=True)}
        self.assertEqual(self.states.rolled_back("shop")["changes"], {})
        self.states.__running__ = {shop: changed}
        self.states.__lowstate__ = [chunk("shop", test=False, dry_run="none")]
        self.assertEqual(self.states.rolled_back("shop")["changes"], RETURN["changes"])
        self.states.__lowstate__ = []
        # Salt takes a preview that would change something for a failure; nothing was written.
        self.states.__opts__["test"], self.states.__low__ = True, {"onfail": [{"brine": "Deploy"}]}
        self.states.__running__ = {"brine_|-Deploy_|-p_|-applied": {"changes": {"a": {}}, "result": None}}
        ret = self.states.rolled_back("platform")
        self.assertEqual((ret["result"], ret["changes"]), (True, {}), ret)
        self.states.__opts__["test"] = False
        self.states.__low__, self.states.__running__ = {"onfail": []}, {"brine_|-Deploy_|-p_|-applied": refused}
        self.assertEqual(self.states.rolled_back("platform", revision=3), RETURNED)  # which was named

    def test_an_error_is_that_of_the_document_in_one_line(self):
        self.play(then="""
            print(json.dumps({"errors": ["reach the cluster at x: refused"], "objects": []}), flush=True)
            print("retrying: refused", file=sys.stderr)
        """, code=6)
        for call in (lambda: self.brine.get("a", "ConfigMap", "v1"), lambda: self.brine.inventories(), lambda: self.brine.history("platform"), lambda: self.brine.status("platform")):
            with self.assertRaises(self.brine.CommandExecutionError) as raised:
                call()
            self.assertRegex(str(raised.exception), r"^brine [a-z ]+ failed \(exit code 6\): reach the cluster at x: refused$")

    def test_job_id_of_the_run(self):
        for low, jid in (({"__pub_jid": "1"}, "1"), ({"__pub_jid": "1", "__orchestration_jid__": "2"}, "2")):
            self.states.__low__ = low
            self.states.applied("platform", bundle="x")
            self.assertEqual(self.called()["env"]["BRINE_JID"], jid)


if __name__ == "__main__":
    unittest.main()
