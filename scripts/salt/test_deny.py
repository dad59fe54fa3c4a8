"""The deny rules of the README in Salt, with the real binary: `check`, `test=True` and a state."""

import os
import re
import unittest

import real
import test_brine

CASES = os.path.join(real.ROOT, "bundle", "run", "testdata", "deny.yaml")


def rules_of_the_readme():
    with open(os.path.join(real.ROOT, "bundle", "README.md")) as file:
        return re.search("<!-- deny rules -->\n```yaml\n(.*?)```", file.read(), re.DOTALL).group(1)


def changed(base, case):
    documents = [text for text in base.split("---\n") if "without" not in case or case["without"] not in text]
    text = "---\n".join(documents + ([case["more"]] if "more" in case else []))
    return text.replace(*case["instead"]) if "instead" in case else text


class Deny(test_brine.Case):
    def test_each_rule_of_the_readme(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("SKIPPED: no PyYAML reads the rules of the README")
        with open(CASES) as file:
            tests = yaml.safe_load(file)
        rules = yaml.safe_load(rules_of_the_readme())
        self.assertEqual({case["rule"] for case in tests["cases"]}, set(rules))
        namespace = "deny-in-salt"
        self.brine.__opts__["brine"] = {"binary": real.binary(), "kubeconfig": real.kubeconfig()}
        to = dict(inventory="default/" + namespace, deny=rules, wait="applied", max_prune="100%", timeout=120)

        def of(text):
            return text.replace("{ns}", namespace)

        own = "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}\"}\n---\n"
        base = own + tests["base"]
        self.addCleanup(self.brine.absent, "Clean up", inventory=to["inventory"], timeout=120, max_prune="100%")
        ret = self.brine.applied("Deploy", bundle=of(base), **to)
        self.assertIs(ret["result"], True, ret)
        for case in tests["cases"]:
            with self.subTest(case["rule"]):
                text, says = of(changed(base, case)), of('denied by rule "{}"{}'.format(case["rule"], ": " + case["says"] if "says" in case else ""))
                for test in (True, False):
                    ret = self.brine.applied("Deploy", bundle=text, test=test, **to)
                    self.assertIs(ret["result"], False, ret)
                    self.assertIn(says, ret["comment"])
                    self.assertFalse(ret["changes"] and not test, ret)
                if case.get("new"):
                    self.assertIn(says, str(self.brine.check(bundle=text, deny=rules)))
        ret = self.brine.applied("Deploy", bundle=of(base), **to)
        self.assertEqual((ret["result"], ret["changes"]), (True, {}), ret)


if __name__ == "__main__":
    unittest.main()
