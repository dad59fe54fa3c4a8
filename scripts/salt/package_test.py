"""The Salt extension as a release has it (BRINE_TEST_DIST): installed with pip, found by Salt's loader.

With a real Salt the tests of test_salt_call.py are run again, on modules that
nobody synced. scripts/test release calls this file.
"""

import glob
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import real  # noqa: E402
import test_salt_call  # noqa: E402


def dist(pattern):
    found = glob.glob(os.path.join(os.environ.get("BRINE_TEST_DIST") or "/nowhere", pattern))
    if not found:
        raise unittest.SkipTest("SKIPPED: BRINE_TEST_DIST names no release; scripts/test release makes one")
    return found[0]


def pip(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check"] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout.decode()


class Package(test_salt_call.SaltCall):
    @classmethod
    def setUpClass(cls):
        cls.salt_call, wheel = real.salt_call(), dist("saltext_brine-*.whl")
        cls.root = tempfile.mkdtemp(prefix="brine-saltext-")
        cls.addClassCleanup(shutil.rmtree, cls.root, True)
        with tarfile.open(dist("brine_*_linux_*.tar.gz")) as archive:
            archive.extractall(cls.root)
        cls.brine, cls.kubeconfig = glob.glob(os.path.join(cls.root, "brine_*", "brine"))[0], real.kubeconfig()
        site = os.path.join(cls.root, "site")
        pip("install", "--quiet", "--no-index", "--no-deps", "--target", site, wheel)
        before = os.environ.get("PYTHONPATH")
        cls.addClassCleanup(lambda: os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before))
        os.environ["PYTHONPATH"] = site + (os.pathsep + before if before else "")
        cls.states = os.path.join(cls.root, "states")
        os.makedirs(cls.states)
        os.makedirs(os.path.join(cls.root, "var", "log", "salt"))
        cls.pillar()
        cls.write("minion", test_salt_call.json.dumps({
            "file_client": "local", "root_dir": cls.root, "id": "test-minion", "file_roots": {"base": [cls.states]},
            "pillar_roots": {"base": [os.path.join(cls.root, "pillar")]}, "brine": {"binary": cls.brine},
        }))

    def test_the_binary_is_that_of_the_release(self):
        self.assertIn("v" + os.path.basename(dist("saltext_brine-*.whl")).split("-")[1], self.call("brine.version")["version"])

    def test_the_loader_finds_the_runner(self):
        self.assertIn("brine.report", self.call("sys.list_runner_functions", "brine"))


class Project(unittest.TestCase):
    """pyproject.toml gives the same package as the release, to who builds it with pip."""

    def test_pip_builds_the_same_files(self):
        python = next((p for p in (sys.executable, "/usr/bin/python3") if subprocess.run(
            [p, "-c", "import setuptools, wheel, pip; assert int(setuptools.__version__.split('.')[0]) >= 61"], stderr=subprocess.DEVNULL).returncode == 0), None)
        if not python:
            raise unittest.SkipTest("SKIPPED: no Python here has pip, setuptools 61 and wheel")
        folder = tempfile.mkdtemp(prefix="brine-saltext-")
        self.addCleanup(shutil.rmtree, folder, True)
        copy = os.path.join(folder, "salt")
        shutil.copytree(real.HERE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        done = subprocess.run(
            [python, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, copy],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        files = []
        for wheel in (dist("saltext_brine-*.whl"), glob.glob(os.path.join(folder, "*.whl"))[0]):
            with zipfile.ZipFile(wheel) as archive:
                files.append({name: archive.read(name) for name in archive.namelist() if name.startswith("saltext/") and name != "saltext/brine/__init__.py"})
                point = [archive.read(name).split() for name in archive.namelist() if name.endswith("entry_points.txt")]
                self.assertEqual(point, [[b"[salt.loader]", b"saltext.brine", b"=", b"saltext.brine"]])
        self.assertEqual(files[0], files[1])


if __name__ == "__main__":
    # Not those that were imported: the part salt runs them.
    unittest.main(argv=sys.argv[:1] + [a for a in sys.argv[1:] if a.startswith("-")] + ["Package", "Project"])
