"""
The functions and states that write single objects, on a real control plane with the real
binary: called directly, and by a real, masterless Salt.
"""

import contextlib
import json
import os
import types
import unittest

import real
import test_brine
import test_salt_call


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


class Objects(unittest.TestCase):
    """Without Salt: the modules are loaded as Python."""

    @classmethod
    def setUpClass(cls):
        cls.brine, cls.kubeconfig = real.binary(), real.kubeconfig()
        cls.module, cls.module_of_states, cls.bundles = (
            test_brine.load(path, "brine_of_objects") for path in ("_modules/brine_object.py", "_states/brine_object.py", "_modules/brine.py"))
        dunders = {"__opts__": {"test": False, "cachedir": real.folder(), "brine": {"binary": cls.brine}}, "__pillar__": {}, "__grains__": {}, "__context__": {}}
        functions = {"brine_object." + name: function for name, function in vars(cls.module).items() if isinstance(function, types.FunctionType)}
        for module, salt in ((cls.module, {}), (cls.module_of_states, functions), (cls.bundles, {})):
            vars(module).update(dunders, __salt__=salt)

    def functions(self, *calls):
        """What these functions return, which are called in this order."""
        return [getattr(self.module, name)(kubeconfig=self.kubeconfig, **arguments) for name, arguments in calls]

    def states(self, *states, **options):
        """What these states return, which are run in this order."""
        found = []
        for number, (name, arguments) in enumerate(states):
            self.module_of_states.__low__ = {"__id__": "State {}".format(number)}
            self.module_of_states.__opts__["test"] = options.get("test", False)
            given = dict({"kubeconfig": self.kubeconfig, "name": "State {}".format(number)}, **arguments)
            found.append(getattr(self.module_of_states, name)(**given))
        return found

    def setUp(self):
        self.name = "objects-" + self._testMethodName[5:].replace("_", "-")[:30].strip("-")
        self.which = {"kind": "ConfigMap", "apiVersion": "v1", "name": self.name, "namespace": "default"}
        self.key = "v1/ConfigMap default/" + self.name
        for name in (self.name, self.name + "-web"):
            for kind, version in (("ConfigMap", "v1"), ("Secret", "v1"), ("Deployment", "apps/v1")):
                self.addCleanup(self.remove, dict(self.which, name=name, kind=kind, apiVersion=version))

    def remove(self, which):
        Objects.setUpClass() if not hasattr(self, "module") else None
        Objects.functions(self, ("delete_object", which))

    def test_functions_that_write(self):
        one = config_map(self.name, a="1")
        web = {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name + "-web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": self.name}}, "template": {
                "metadata": {"labels": {"app": self.name}}, "spec": {"containers": [{"name": "c", "image": "example.com/web:1"}]}}},
        }
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": one["metadata"], "stringData": {"password": test_brine.SECRET}}
        got = self.functions(
            ("create_object", {"manifest": one}),
            ("create_object", {"manifest": config_map(self.name, a="1", b="2")}),
            ("replace_object", {"manifest": config_map(self.name, b="3")}),
            ("update_object", dict(self.which, patch={"data": {"c": "4"}})),
            ("get", self.which),
            ("delete_object", self.which),
            ("exists", self.which),
            ("delete_object", self.which),
            ("create_object", {"manifest": secret}),
            ("digest", dict(self.which, kind="Secret", path="data:password")),
            ("create_object", {"manifest": web}),
            ("rollout_restart", {"name": self.name + "-web", "namespace": "default"}),
        )
        made, changed, replaced, updated, read, deleted, exists, again, made_secret, _, _, restarted = got
        self.assertEqual([one["data"] for one in (made, changed, replaced)], [{"a": "1"}, {"a": "1", "b": "2"}, {"b": "3"}])
        self.assertEqual(updated["data"], {"b": "3", "c": "4"})
        self.assertEqual({one["metadata"]["uid"] for one in (made, changed, replaced, updated, deleted)}, {made["metadata"]["uid"]})
        self.assertEqual((read["data"], deleted["data"], exists, again), (updated["data"], updated["data"], False, None))
        self.assertEqual(made_secret["data"], {"password": "***"})
        self.assertRegex(restarted["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"], r"^\d{4}-\d\d-\d\dT")
        real.hides(self, test_brine.SECRET, json.dumps(got))

    def test_states_that_write(self):
        first = {"manifest": config_map(self.name, a="1")}
        node = dict(kind="Node", apiVersion="v1", name=self.functions(("list_objects", {"kind": "Node", "apiVersion": "v1"}))[0][0]["metadata"]["name"])
        label = "example.com/" + self.name
        patch = {"patch": {"metadata": {"labels": {label: "1"}}}}
        preview = self.states(("present", first), ("patched", dict(node, **patch)), test=True)
        self.assertEqual([one["result"] for one in preview], [None, None], preview)
        self.assertFalse(self.functions(("exists", self.which))[0])

        ran = self.states(
            ("present", first), ("object_present", first), ("object_present", {"manifest": config_map(self.name, a="2")}),
            ("object_updated", dict(self.which, patch={"data": {"b": "1"}})), ("waited", self.which),
            ("labels_exist", dict(node, labels={label: "0"})), ("labels_exist", dict(node, labels={label: "9"})),
            ("patched", dict(node, field_manager="tests", force_conflicts=True, **patch)), ("patched", dict(node, field_manager="tests", absent=True)),
            ("absent_object", dict(self.which, wait=True)), ("object_absent", self.which), ("waited", dict(self.which, absent=True)),
        )
        self.assertEqual({one["result"] for one in ran}, {True}, ran)
        created = {self.key: {"old": "absent", "new": "present"}}
        self.assertEqual(preview[0]["changes"], created)
        on_node = "v1/Node " + node["name"]
        self.assertEqual([one["changes"] for one in ran], [
            created, {}, {self.key: {"old": {"data.a": "1"}, "new": {"data.a": "2"}}},
            {self.key: {"old": {}, "new": {"data.b": "1"}}}, {},
            {"labels added": {label: "0"}}, {},
            {on_node: {"old": {'metadata.labels["%s"]' % label: "0"}, "new": {'metadata.labels["%s"]' % label: "1"}}},
            {on_node: {"old": {'metadata.labels["%s"]' % label: "1"}, "new": {}}},
            {self.key: {"old": "present", "new": "absent"}}, {}, {},
        ])


class Refused(Objects):
    """What is not written, and why."""

    test_functions_that_write = test_states_that_write = None

    def test_a_patch_of_what_is_not_there(self):
        ret = self.states(("patched", dict(self.which, patch={"data": {"a": "1"}})))[0]
        self.assertEqual((ret["result"], ret["changes"]), (False, {}))
        self.assertIn("only an existing object can be patched", ret["comment"])
        with self.assertRaisesRegex(Exception, "only an existing object can be patched"):
            self.functions(("update_object", dict(self.which, patch={"data": {"a": "1"}})))
        self.assertFalse(self.functions(("exists", self.which))[0])

    def test_fields_of_others(self):
        self.functions(("create_object", {"manifest": config_map(self.name, a="1")}))
        patch = dict(self.which, patch={"data": {"a": "2"}})
        ret = self.states(("patched", patch))[0]
        self.assertEqual((ret["result"], ret["changes"]), (False, {}))
        self.assertIn("brine-present", ret["comment"])
        self.assertIn("data.a", ret["comment"])
        self.assertEqual(self.functions(("get", self.which))[0]["data"], {"a": "1"})
        self.assertIs(self.states(("patched", dict(patch, force_conflicts=True)))[0]["result"], True)

    def test_objects_of_an_inventory(self):
        bundle = {"kubeconfig": self.kubeconfig, "inventory": "default/inventory-of-" + self.name}
        ret = self.bundles.applied(self.name, bundle=config_map(self.name, a="1"), **bundle)
        self.addCleanup(self.bundles.absent, self.name, **bundle)
        self.assertIs(ret["result"], True, ret["comment"])
        for state in (("present", {"manifest": config_map(self.name, a="2")}), ("absent_object", self.which)):
            ret = self.states(state)[0]
            self.assertEqual((ret["result"], ret["changes"]), (False, {}), ret)
            self.assertIn("default/" + self.name, ret["comment"])
        with self.assertRaisesRegex(Exception, "default/" + self.name):
            self.functions(("delete_object", self.which))
        self.assertEqual(self.functions(("get", self.which))[0]["data"], {"a": "1"})

    def remove(self, which):
        with contextlib.suppress(Exception):  # of an inventory, which is deleted after this
            super(Refused, self).remove(which)

    def test_an_invalid_object(self):
        ret = self.states(("present", {"manifest": dict(config_map(self.name), dada={})}))[0]
        self.assertEqual((ret["result"], ret["changes"]), (False, {}))
        self.assertIn("dada", ret["comment"])
        self.assertFalse(self.functions(("exists", self.which))[0])


class ObjectsBySalt(Objects):
    """By a real Salt: all functions in one template, all states in one SLS."""

    @classmethod
    def setUpClass(cls):
        super(ObjectsBySalt, cls).setUpClass()
        cls.salt = type("Salt", (test_salt_call.SaltCall,), {})
        cls.addClassCleanup(cls.salt.doClassCleanups)
        cls.salt.setUpClass()

    def functions(self, *calls):
        lines = ["{%- set all = [] %}"]
        for name, arguments in calls:
            lines.append("{%%- do all.append(salt['brine.%s'](kubeconfig=%r, **%s)) %%}" % (name, self.kubeconfig, json.dumps(arguments)))
        self.salt.write("states/template.jinja", "\n".join(lines + ["{{ all | tojson }}"]))
        got = self.salt.call("slsutil.renderer", "salt://template.jinja", "default_renderer=jinja")
        return json.loads(got) if isinstance(got, str) else got

    def states(self, *states, **options):
        sls = {}
        for number, (name, arguments) in enumerate(states):
            given = dict({"kubeconfig": self.kubeconfig, "order": number + 1}, **arguments)
            sls["State {}".format(number)] = {"brine." + name: [{key: value} for key, value in given.items()]}
        self.salt.write("states/run.sls", json.dumps(sls))
        run = self.salt.call("state.apply", "run", "test={}".format(options.get("test", False)))
        self.assertIsInstance(run, dict, run)
        self.assertEqual(len(run), len(states), run)
        return sorted(run.values(), key=lambda one: one["__run_num__"])

    def test_a_manifest_in_a_file(self):
        self.salt.write("states/map.yaml", json.dumps(config_map("{{ which }}", a="{{ value }}")))
        given = {"name": "salt://map.yaml", "defaults": {"which": self.name, "value": "1"}}
        made, again, gone = self.states(("object_present", given), ("present", given), ("absent_object", self.which))
        self.assertEqual([one["result"] for one in (made, again, gone)], [True] * 3, (made, again, gone))
        self.assertEqual((len(made["changes"]), again["changes"], len(gone["changes"])), (1, {}, 1))
        got = self.functions(("create_object", given), ("delete_object", self.which))
        self.assertEqual([one["data"] for one in got], [{"a": "1"}] * 2)


if __name__ == "__main__":
    unittest.main()
