"""The real binary and a real control plane, for the tests that need them."""

import atexit
import contextlib
import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCUMENTS = ("README.md", "reference.md", "from-metalk8s.md", "example/README.md")
_made = {}


def documents():
    """The text of all documents of the modules."""
    texts = []
    for name in DOCUMENTS:
        with open(os.path.join(HERE, name)) as file:
            texts.append(file.read())
    return "\n".join(texts)


def _skip(why):
    if os.environ.get("BRINE_TEST_REQUIRED") == "1":
        raise AssertionError(why)
    raise unittest.SkipTest("SKIPPED: " + why)


def folder():
    if "folder" not in _made:
        _made["folder"] = tempfile.mkdtemp(prefix="brine-salt-")
        atexit.register(shutil.rmtree, _made["folder"], True)
    return _made["folder"]


def binary():
    """BRINE_TEST_BINARY, or one that is built here."""
    path = os.environ.get("BRINE_TEST_BINARY") or _made.get("binary")
    if path:
        return path
    if shutil.which("go") is None:
        _skip("no brine: there is no go to build it, and no BRINE_TEST_BINARY")
    path = os.path.join(folder(), "brine")
    built = subprocess.run(
        ["go", "build", "-o", path, "./cmd/brine"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    if built.returncode:
        raise AssertionError("brine does not build:\n" + built.stdout.decode())
    _made["binary"] = path
    return path


def kubeconfig():
    """BRINE_TEST_KUBECONFIG, or that of a cluster which is started for these tests."""
    path = os.environ.get("BRINE_TEST_KUBECONFIG") or _made.get("kubeconfig")
    if path:
        return path
    cluster = os.path.join(ROOT, "scripts", "cluster")
    where = os.path.join(folder(), "cluster")
    atexit.register(subprocess.call, [cluster, "down", "--dir", where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    up = subprocess.run(
        [cluster, "up", "--dir", where, "--port", "0", "--nodes", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    if up.returncode:
        raise AssertionError("scripts/cluster up: " + up.stderr.decode())
    _made["kubeconfig"] = up.stdout.decode().strip()
    return _made["kubeconfig"]


def salt_call():
    path = os.environ.get("BRINE_TEST_SALT_CALL") or shutil.which("salt-call")
    if not path:  # always optional
        raise unittest.SkipTest("SKIPPED: no salt-call on PATH, and BRINE_TEST_SALT_CALL names none")
    return path


def salt():
    """The folder of a real Salt's programs."""
    path = os.environ.get("BRINE_TEST_SALT") or os.path.dirname(shutil.which("salt-master") or "")
    if not path:  # always optional
        raise unittest.SkipTest("SKIPPED: no salt-master on PATH, and BRINE_TEST_SALT names no folder of Salt's programs")
    return path


def children(pid):
    """The processes that a process started, of all its threads."""
    found = []
    for task in glob.glob("/proc/{}/task/*/children".format(pid)):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            with open(task) as file:
                found += [int(child) for child in file.read().split()]
    return found


def command(pid):
    with contextlib.suppress(OSError):  # it has ended meanwhile
        with open("/proc/{}/cmdline".format(pid)) as file:
            return file.read().split("\0")
    return []


def hides(test, secret, text):
    """Without the words of unittest, which would show it."""
    test.assertFalse(secret in text, "a Secret's value is shown")


def bundle(mode, namespace, more=(), secret="hunter2"):
    """A namespace, a ConfigMap, a Secret and a Deployment that follows both; JSON is YAML."""
    def at(**extra):
        return dict({"namespace": namespace}, **extra)

    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": at(name="settings"), "data": {"mode": mode}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": at(name="login"), "stringData": {"password": secret + "-" + mode}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": at(name="web", annotations={"brine.dev/digest-of": "configmaps/settings,secrets/login"}),
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "example.com/web:1"}]},
                },
            },
        },
    ]
    return "\n---\n".join(json.dumps(o) for o in objects + list(more))


def late_job(namespace, name="late"):
    """A Job whose pod no node can take: never done."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "nodeSelector": {"no-such": "node"},
                    "containers": [{"name": "c", "image": "example.com/late:1"}],
                }
            }
        },
    }
