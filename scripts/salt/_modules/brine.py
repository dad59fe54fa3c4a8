"""
Make Kubernetes clusters match whole bundles with brine.

The bundle goes to brine over standard input, so that no Secret touches the
disk; what happens is fired on Salt's event bus as it happens, under
``brine/<inventory>/<object>``.

Every argument that is not named in a signature is one of brine's flags:
``force_conflicts: True`` is ``--force-conflicts``, a list repeats its flag.
Defaults for all of them come from pillar or configuration, explicit arguments
go over them:

.. code-block:: yaml

    brine:
      binary: /usr/local/bin/brine
      kubeconfig: /etc/kubernetes/admin.conf
      timeout: 20m

Works with Salt 3002 to 3007 (Python 3.6 on) and needs nothing but Salt.
"""

import collections
import contextlib
import ctypes
import difflib
import fnmatch
import functools
import hashlib
import json
import logging
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from salt.exceptions import CommandExecutionError, SaltInvocationError

try:
    import contextvars
except ImportError:  # Python 3.6; Salt has no use for it there
    contextvars = None

log = logging.getLogger(__name__)

__virtualname__ = "brine"

# Keys under brine: in pillar or configuration that are not flags.
_SETTINGS = ("binary", "events", "sub_states", "template")
# The most that a state prunes unless max_prune says otherwise.
_MAX_PRUNE = "30%"
# Flags whose value is a credential: never an argument, which ps and logs show.
_CREDENTIALS = ("token", "password")
# Flags that this module gives itself.
_OWN_FLAGS = ("output", "o", "filename", "f", "input", "help")
# Flags that have no effect here, and why.
_NO_EFFECT = {"recursive": "name the folders in source"}
_ENDINGS = (".yaml", ".yml", ".json", ".sls")
_QUIET = ("acting",)  # event types that are not worth a place on the bus
_FLUSH_SECONDS = 30  # how long events that are still queued may take at the end
_STOP_SECONDS = 15  # how long brine may take to end after a signal
_GRACE_SECONDS = 1  # whoever sends a signal to Salt and to brine has done so by then


def __virtual__():
    return __virtualname__


# What is called from states, the command line, other modules


def applied(name, source=None, bundle=None, sls=None, **kwargs):
    """
    Make the cluster match a bundle, and return what a state returns: name,
    result, changes, comment, warnings, sub_state_run. ``test=True`` is a
    server-side dry run.

    name
        Name of the inventory, unless ``inventory`` says otherwise.
    source
        File or files of the bundle (``salt://``, or a path on this machine),
        a folder when it ends in ``/``. They go through Salt's renderers: what
        their shebang says, ``template`` (jinja) where there is none;
        ``template: none`` takes them as they are.
    bundle
        The bundle itself: text, an object, or a list of objects.
    sls
        SLS whose states are objects (object_present and the like), as
        state.show_low_sls compiles them.
    inventory
        ``NAME`` or ``NAMESPACE/NAME``.
    namespace, kubeconfig, context
        As in kubectl.
    wait
        ``ready`` or ``applied`` (or True, False).
    timeout
        Of the whole run: seconds, or like ``10m``.
    prune
        False keeps what is no longer in the bundle.
    plan
        Path of a plan of brine.plan: do exactly what it says, or nothing if the
        bundle, the cluster or a flag has changed. ``plan_digest`` refuses every other
        plan than the one that was approved.
    ignore_fields
        Rules about fields that are left to others, as in the file of
        ``--ignore-fields``, or the path of such a file on this machine.
    saltenv, pillar, defaults
        For rendering; defaults are variables for the templates.
    events
        False fires nothing on the bus.
    sub_states
        False leaves out sub_state_run, the entry an object.

    CLI Example:

    .. code-block:: bash

        salt-call brine.applied platform source=salt://platform/ test=True
    """
    return _state("apply", name, source, bundle, sls, kwargs)


def absent(name, **kwargs):
    """
    Delete all objects of an inventory, and the inventory; return what a state
    returns.

    CLI Example:

    .. code-block:: bash

        salt-call brine.absent platform
    """
    return _state("destroy", name, None, None, None, kwargs)


def apply(name, source=None, bundle=None, sls=None, **kwargs):
    """
    Make the cluster match a bundle and return brine's result, the document of
    ``brine apply -o json``. Arguments are those of brine.applied.

    CLI Example:

    .. code-block:: bash

        salt-call brine.apply platform source=salt://platform.yaml
    """
    return _result("apply", name, source, bundle, sls, kwargs)


def preview(name, source=None, bundle=None, sls=None, **kwargs):
    """
    What brine.apply would do, as the server itself answers. Nothing changes.

    CLI Example:

    .. code-block:: bash

        salt-call brine.preview platform source=salt://platform.yaml
    """
    kwargs["test"] = True
    return _result("apply", name, source, bundle, sls, kwargs)


def plan(name, source=None, bundle=None, sls=None, path=None, **kwargs):
    """
    Preview what brine.applied would do, and write it to a plan file on this machine.
    ``brine.applied`` with the same bundle and ``plan: PATH`` carries out exactly that.
    Returns the plan's path and digest (for ``plan_digest``), the inventory, the number
    of objects by action, and changes, comment and warnings as of brine.applied.

    path
        Of the plan. The default is ``brine/plans/INVENTORY.json`` below Salt's cachedir.

    CLI Example:

    .. code-block:: bash

        salt-call brine.plan platform source=salt://platform/
    """
    if path is None:
        inventory = _inventory(name, kwargs.get("inventory"), _defaults().get("inventory"))
        folder = os.path.join(__opts__["cachedir"], "brine", "plans")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, inventory.replace("/", ".") + ".json")
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)  # nobody takes an earlier one for this one
    ret = _state("apply", name, source, bundle, sls, dict(kwargs, test=True, plan_out=path))
    if ret["result"] is False or not os.path.exists(path):
        raise CommandExecutionError("no plan was written: " + "\n".join([ret["comment"]] + ret.get("warnings", [])))
    with open(path, encoding="utf-8") as file:
        saved = json.load(file)
    return {
        "plan": path, "digest": _digest(path), "inventory": "{namespace}/{name}".format(**saved["inventory"]),
        "summary": dict(collections.Counter(step["action"] for step in saved["steps"])),
        "changes": ret["changes"], "comment": ret["comment"], "warnings": ret.get("warnings", []),
    }


def destroy(name, **kwargs):
    """
    Delete all objects of an inventory, and return brine's result.

    CLI Example:

    .. code-block:: bash

        salt-call brine.destroy platform
    """
    return _result("destroy", name, None, None, None, kwargs)


def rollback(name, revision=None, **kwargs):
    """
    Apply an earlier revision of an inventory's bundle, and return brine's result.

    revision
        A number of brine.history, or ``previous``: the last good one that is not
        the present one. Without it the last good revision is applied. If that is
        the present one, because the upgrade that failed was refused, nothing
        changes.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rollback platform revision=4
    """
    return _result("rollback", name, None, None, None, kwargs, _revision(name, revision, kwargs))


def rolled_back(name, revision=None, **kwargs):
    """
    The same as brine.rollback, and return what a state returns.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rolled_back platform test=True
    """
    try:
        words = _revision(name, revision, kwargs)
    except (CommandExecutionError, SaltInvocationError) as exc:
        return {"name": name, "result": False, "changes": {}, "comment": _cut(exc)}
    return _state("rollback", name, None, None, None, kwargs, words)


def status(name, **kwargs):
    """
    The objects of an inventory as they are now.

    CLI Example:

    .. code-block:: bash

        salt-call brine.status platform
    """
    return _document("status", name, kwargs)


def history(name, **kwargs):
    """
    The revisions of an inventory.

    CLI Example:

    .. code-block:: bash

        salt-call brine.history platform
    """
    return _document("history", name, kwargs)


def drift(name, **kwargs):
    """
    What others changed on the cluster since the last good revision of an inventory,
    field by field: the document of ``brine drift -o json``. Nothing is written.

    CLI Example:

    .. code-block:: bash

        salt-call brine.drift platform
    """
    return _document("drift", name, kwargs, fine=(0, 2))


def inventories(**kwargs):
    """
    The inventories of the cluster, or those of ``namespace``.

    CLI Example:

    .. code-block:: bash

        salt-call brine.inventories
    """
    return json.loads(_plain(["inventory", "list", "--output=json"], kwargs))


def check(source=None, bundle=None, sls=None, **kwargs):
    """
    Read, order and validate a bundle without a cluster, and return all problems.
    The bundle is given as to brine.applied.

    CLI Example:

    .. code-block:: bash

        salt-call brine.check source=salt://platform/
    """
    return json.loads(_plain(["check", "--output=json"], kwargs, (source, bundle, sls), fine=(0, 3)))


def rbac(source=None, bundle=None, sls=None, **kwargs):
    """
    The smallest roles with which a bundle can be applied, as YAML.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rbac source=salt://platform/ inventory=kube-system/platform --out=newline_values_only
    """
    return _plain(["rbac"], kwargs, (source, bundle, sls))


def get(name=None, kind=None, apiVersion=None, namespace="default", show_secrets=False, manifest=None, **kwargs):
    """
    One object as it is now; None if there is none. The same as
    metalk8s_kubernetes.get_object, but values of Secrets are masked unless
    ``show_secrets`` is True.

    CLI Example:

    .. code-block:: bash

        salt-call brine.get kind=Deployment apiVersion=apps/v1 name=coredns namespace=kube-system
    """
    found = _one(name, kind, apiVersion, namespace, manifest, dict(kwargs, show_secrets=show_secrets))
    return found["objects"][0] if found["objects"] else None


def exists(kind, apiVersion, name, namespace="default", **kwargs):
    """
    Whether an object is there, as metalk8s_kubernetes.object_exists. What cannot be
    read is an error, never False.

    CLI Example:

    .. code-block:: bash

        salt-call brine.exists kind=Node apiVersion=v1 name=bootstrap
    """
    return get(name, kind, apiVersion, namespace, **kwargs) is not None


def list_objects(
    kind, apiVersion, namespace="default", all_namespaces=False, field_selector=None, label_selector=None, show_secrets=False, **kwargs
):
    """
    The objects of a kind, as metalk8s_kubernetes.list_objects. Values of Secrets are
    masked unless ``show_secrets`` is True.

    CLI Example:

    .. code-block:: bash

        salt-call brine.list_objects kind=Pod apiVersion=v1 all_namespaces=True field_selector=spec.nodeName=bootstrap
    """
    flags = dict(
        kwargs, api_version=apiVersion, all_namespaces=all_namespaces, namespace=None if all_namespaces else namespace,
        selector=label_selector, field_selector=field_selector, show_secrets=show_secrets,
    )
    return json.loads(_plain(["get", "--output=json", kind], flags))["objects"]


def ready(name=None, kind=None, apiVersion=None, namespace="default", manifest=None, **kwargs):
    """
    True if an object is ready, as brine waits for it, of every kind. Otherwise an
    error that says why not, as metalk8s_kubernetes.check_object_ready.

    CLI Example:

    .. code-block:: bash

        salt-call brine.ready kind=Deployment apiVersion=apps/v1 name=coredns namespace=kube-system
    """
    found = _one(name, kind, apiVersion, namespace, manifest, kwargs)
    if not found["objects"]:
        raise CommandExecutionError("Unable to find the object")
    state = found["readiness"][0]
    if state["state"] != "ready":
        raise CommandExecutionError("Object is not yet Ready: {}".format(state.get("reason") or state["state"]))
    return True


def digest(path=None, checksum="sha256", name=None, kind=None, apiVersion=None, namespace="default", manifest=None, **kwargs):
    """
    The digest of an object, or of what is at a path of it (keys separated by ``:``),
    as metalk8s_kubernetes.get_object_digest. Secrets are digested with their values.

    CLI Example:

    .. code-block:: bash

        salt-call brine.digest kind=ConfigMap apiVersion=v1 name=settings path=data:config.yaml
    """
    found = get(name, kind, apiVersion, namespace, True, manifest, **kwargs)
    if not found:
        raise CommandExecutionError("Unable to find the object")
    for key in path.split(":") if path else ():
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            found = found.get(key) if isinstance(found, dict) else None
        if not found:
            raise CommandExecutionError('Unable to find key "{}" in the object'.format(path))
    if isinstance(found, dict):
        found = json.dumps(found, sort_keys=True)
    return hashlib.new(checksum, str(found).encode("utf-8")).hexdigest()


def waited(
    name, kind=None, apiVersion=None, namespace="default", label_selector=None, condition=None, absent=False, timeout=600, interval=5, **kwargs
):
    """
    Wait until an object (or all that ``label_selector`` finds, and at least one) is
    ready, and return what a state returns.

    name
        Name of the object, where there is no label_selector.
    condition
        Wait for a condition of the status instead: ``Established``,
        ``Progressing=False``.
    absent
        Wait until there is none.
    timeout
        In seconds; ``interval`` is the time between two looks.

    CLI Example:

    .. code-block:: bash

        salt-call brine.waited coredns kind=Deployment apiVersion=apps/v1 namespace=kube-system timeout=120
    """
    test = kwargs.pop("test", None)
    if test is None:
        test = __opts__.get("test", False)
    kwargs.pop("__id__", None)
    kwargs.pop("jid", None)
    flags = dict(kwargs, api_version=apiVersion, namespace=namespace, selector=label_selector)
    words = ["get", "--output=json", kind] + ([] if label_selector else [str(name)])
    if not label_selector:
        flags["ignore_not_found"] = True
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    until = time.time() + float(timeout)
    while True:
        try:
            if not kind:
                raise SaltInvocationError("give kind and apiVersion of what is waited for")
            missing = _waits(json.loads(_plain(words, dict(flags))), condition, absent)
        except (CommandExecutionError, SaltInvocationError) as exc:
            return dict(ret, result=False, comment=str(exc))
        if not missing:
            return dict(ret, comment="{} {}".format(name, "is absent" if absent else condition or "is ready"))
        if test:
            return dict(ret, result=None, comment="Would wait: " + missing)
        if time.time() >= until:
            return dict(ret, result=False, comment="Not in {} seconds: {}".format(timeout, missing))
        time.sleep(min(float(interval), max(until - time.time(), 0)))


def patched(name, kind=None, apiVersion=None, namespace=None, patch=None, manifest=None, absent=False, **kwargs):
    """
    Set fields of one existing object that is in no bundle, and return what a state
    returns. Only the given fields are sent, by server-side apply. Those that the
    same state set before, and that are not given any more, are removed.

    name
        Name of the object, unless ``manifest`` names it.
    patch
        The fields: ``{metadata: {labels: {a: b}}}``.
    manifest
        The fields with apiVersion, kind and metadata.name, in place of patch.
    absent
        Remove the fields that this state set.
    field_manager
        Owner of the fields: the default is made of the state's id.
    force_conflicts
        Overwrite fields that others own.

    CLI Example:

    .. code-block:: bash

        salt-call brine.patched node-1 kind=Node apiVersion=v1 patch='{metadata: {labels: {a: b}}}'
    """
    state_id = str(kwargs.pop("__id__", None) or name)
    kwargs.setdefault("field_manager", "brine-patch-" + re.sub(r"[^A-Za-z0-9._-]+", "-", state_id)[:100])
    if absent:
        kwargs["remove"] = True
    elif not manifest and not (isinstance(patch, dict) and patch):
        return {"name": name, "result": False, "changes": {}, "comment": "give patch, a mapping of fields, or manifest"}
    return _object_state(name, kind, apiVersion, namespace, manifest or dict(patch or {}), kwargs)


def present(name, manifest=None, **kwargs):
    """
    One object that is in no bundle: create it, or make it as the manifest says, and
    return what a state returns. Fields that the manifest had before, and has not any
    more, are removed. It belongs to no inventory: nothing prunes it.

    CLI Example:

    .. code-block:: bash

        salt-call brine.present a manifest='{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}'
    """
    kwargs.pop("__id__", None)
    if not isinstance(manifest, dict) or not manifest:
        return {"name": name, "result": False, "changes": {}, "comment": "give manifest, the object as a mapping"}
    kwargs.setdefault("field_manager", "brine-present")
    return _object_state(name, None, None, None, manifest, dict(kwargs, create=True))


def absent_object(name, kind=None, apiVersion=None, namespace=None, manifest=None, **kwargs):
    """
    Delete one object that is in no inventory, and return what a state returns.

    CLI Example:

    .. code-block:: bash

        salt-call brine.absent_object old kind=Service apiVersion=v1 namespace=kube-system
    """
    kwargs.pop("__id__", None)
    return _object_state(name, kind, apiVersion, namespace, manifest or {}, dict(kwargs, delete=True))


def _object_state(name, kind, apiVersion, namespace, manifest, kwargs):
    """What `brine patch` does with one object, as a state's return."""
    test = kwargs.pop("test", None)
    if test is None:
        test = __opts__.get("test", False)
    kwargs.pop("jid", None)
    if test:
        kwargs["dry_run"] = "server"
    try:
        metadata = dict({"name": str(name)}, **(manifest.get("metadata") or {}))
        if namespace:
            metadata["namespace"] = namespace
        body = dict(manifest, apiVersion=apiVersion or manifest.get("apiVersion"), kind=kind or manifest.get("kind"), metadata=metadata)
        if not body["apiVersion"] or not body["kind"]:
            raise SaltInvocationError("give kind and apiVersion, or a manifest that has them")
        ret = json.loads(_plain(["patch", "--output=salt"], kwargs, (None, body, None), fine=(0, 1, 3, 6, 130, 143)))
    except (CommandExecutionError, SaltInvocationError, ValueError) as exc:
        return {"name": name, "result": False, "changes": {}, "comment": _cut(exc)}
    ret["name"] = name
    ret.pop("sub_state_run", None)
    if not ret.get("warnings"):
        ret.pop("warnings", None)
    return ret


def _waits(found, condition, absent):
    """What is waited for, or ""."""
    objects = found["objects"]
    if absent or not objects:
        left = ", ".join(o["metadata"]["name"] for o in objects[:5])
        return "{} still there".format(left) if absent and objects else "" if absent else "there is no such object"
    kind, _, status = (condition or "").partition("=")
    for one, state in zip(objects, found["readiness"]):
        if not condition:
            why = None if state["state"] == "ready" else state.get("reason") or state["state"]
        else:
            have = [c.get("status") for c in (one.get("status") or {}).get("conditions") or () if c.get("type") == kind]
            why = None if have == [status or "True"] else "condition {} is {}".format(kind, have[0] if have else "not there")
        if why:
            return "{}: {}".format(one["metadata"]["name"], why)
    return ""


def _one(name, kind, apiVersion, namespace, manifest, kwargs):
    if manifest:
        metadata = manifest.get("metadata") or {}
        name, kind, apiVersion = metadata.get("name"), manifest.get("kind"), manifest.get("apiVersion")
        namespace = metadata.get("namespace") or namespace
    if not (name and kind and apiVersion):
        raise SaltInvocationError("give manifest, or name and kind and apiVersion")
    flags = dict(kwargs, api_version=apiVersion, namespace=namespace, ignore_not_found=True)
    return json.loads(_plain(["get", "--output=json", kind, str(name)], flags))


def _plain(words, kwargs, given=None, fine=(0,)):
    """What a command without an inventory prints. words are the command, its arguments and its output."""
    takes = _features(_binary(kwargs.get("binary"))).get("flags") or {}
    command = next((c for c in (" ".join(words[:2]), words[0]) if c in takes), words[0])
    settings = {key: kwargs.pop(key, None) for key in ("saltenv", "pillar", "defaults", "allow_empty_sls")}
    run = {"given": {key for key in settings if settings[key] is not None}, "settings": settings, "direct": False, "argv": []}
    defaults = _defaults()
    settings["template"] = kwargs.pop("template", None) or defaults.get("template") or "jinja"
    binary = _binary(kwargs.pop("binary", None) or defaults.get("binary"))
    flags = {key: value for key, value in kwargs.items() if value is not None and value is not False and not key.startswith("__")}
    defaults = {key: value for key, value in defaults.items() if key not in _SETTINGS and key != "inventory"}
    _check(command, flags, defaults, takes)
    env = dict(os.environ)
    for values in (defaults, {key: flags.pop(key) for key in _CREDENTIALS if key in flags}):
        for key, value in values.items():
            if key != "ignore_fields":
                env["BRINE_" + key.upper().replace("-", "_")] = _default(key, value)
    stdin = None if given is None else _bundle(command, given[0], given[1], given[2], run)
    done = _simple([binary] + words + run["argv"] + _flags(flags), env, stdin)
    if done["exit"] not in fine:
        raise CommandExecutionError("brine {} failed (exit code {}): {}".format(command, done["exit"], done["stderr"].strip() or done["stdout"].strip()))
    return done["stdout"]


def _revision(name, revision, kwargs):
    """The argument of `brine rollback`; its own default is the revision before the present one."""
    if revision == "previous":
        return []
    if revision is not None:
        try:
            return [str(int(revision))]
        except (TypeError, ValueError):
            raise SaltInvocationError("revision is {!r}: give a number of brine.history, or previous".format(revision))
    takes = (_features(_binary(kwargs.get("binary"))).get("flags") or {}).get("history") or ("namespace", "kubeconfig", "context")
    same = {key: value for key, value in kwargs.items() if key in ("inventory", "binary") or key.replace("_", "-") in takes}
    revisions = history(name, **same).get("revisions") or []
    good = [one["number"] for one in revisions if one.get("result") == "applied"]
    if not good:
        raise CommandExecutionError("{} has no revision that was applied without an error: there is nothing to go back to".format(name))
    return [str(max(good))]


def version(binary=None):
    """
    brine's version and what this build of it can do.

    CLI Example:

    .. code-block:: bash

        salt-call brine.version
    """
    path = _binary(binary)
    done = _simple([path, "version", "--output=json"], dict(os.environ))
    try:
        return json.loads(done["stdout"])
    except ValueError:
        raise CommandExecutionError(
            "{} does not report its version: {}".format(path, done["stderr"] or done["stdout"])
        )


# From arguments to a command line


def _state(command, name, source, bundle, sls, kwargs, words=()):
    """A run whose end is a state's return; whatever goes wrong is in it."""
    try:
        state_id = kwargs.pop("__id__", None)
        run = _prepare(command, name, kwargs, state=True)
        run["in_state"] = state_id is not None
        run["argv"] += words
        run["stdin"] = _bundle(command, source, bundle, sls, run)
        done = _stream(run, "salt-events" if _can(run, "output=salt-events") else "salt")
    except (CommandExecutionError, SaltInvocationError) as exc:
        return {"name": name, "result": False, "changes": {}, "comment": _cut(exc)}
    last = done["last"]
    ret = last.get("return")
    if ret is None:  # -o salt, from a build without salt-events, is the return itself
        ret = last if "changes" in last and "comment" in last else _lost(done)
    ret["name"] = name
    if "--max-prune={} ".format(_MAX_PRUNE) in str(ret.get("comment")):
        ret["comment"] += "\nIf this is intended, give `max_prune: 80%`, or a number of objects."
    if command == "apply" and run["dry"] and ret["result"] is not False:
        ret["warnings"] = (ret.get("warnings") or []) + _not_ready(run)
    if command == "destroy" and ret["result"] and not ret["changes"] and ret.get("warnings"):
        ret["comment"], ret["warnings"] = "; ".join(ret["warnings"]), []  # there is no such inventory, as it should be
    if not ret.get("warnings"):
        ret.pop("warnings", None)  # Salt's outputter counts the key, not what is in it
    subs = ret.pop("sub_state_run", None)
    if run["settings"]["sub_states"] and subs:
        ret["sub_state_run"] = [_sub_state(sub, name if state_id is None else state_id) for sub in subs if sub.get("changes") or not sub.get("result")]
        ret["changes"] = _counts(ret["changes"])
    return ret


def _not_ready(run):
    """A preview of nothing to change does not say that what is there works: the objects that are not ready now."""
    try:
        takes = (_features(run["argv"][0]).get("flags") or {}).get("status") or ()
        if not takes:
            return []  # of an older build
        flags = [one for one in run["argv"][2:] if one[2:].split("=")[0] in takes]
        objects = json.loads(_simple([run["argv"][0], "status", "--output=json"] + flags, run["env"])["stdout"])["objects"]
    except (CommandExecutionError, ValueError, KeyError, TypeError):
        return []  # there is no inventory yet
    found = ["{}: {}".format(_object(o), o.get("reason") or o["ready"]) for o in objects if o["ready"] != "ready"]
    if not found:
        return []
    more = ["and {} more".format(len(found) - 20)] if len(found) > 20 else []
    return ["Not ready now: " + "; ".join(found[:20] + more)]


def _sub_state(sub, state_id):
    """
    Its id names this state: another one in the same run may have the same object,
    or the same inventory, which brine's own id begins with.
    """
    own = str(sub["low"].get("__id__")).split(": ", 1)[-1]
    return dict(sub, low=dict(sub["low"], __id__="{}: {}".format(state_id, own)))


def _counts(changes):
    """The sub-states show the changes of each object; this only says how many there are."""
    return {"objects": "{} changed".format(len(changes))} if changes else {}


def _result(command, name, source, bundle, sls, kwargs, words=()):
    """A run whose end is brine's own result."""
    run = _prepare(command, name, kwargs)
    run["argv"] += words
    run["stdin"] = _bundle(command, source, bundle, sls, run)
    done = _stream(run, "events")
    if done["exit"]:
        __context__["retcode"] = done["exit"]
    result = done["last"].get("result")
    if result is None:
        raise CommandExecutionError(_lost(done)["comment"])
    return result


def _document(command, name, kwargs, fine=(0,)):
    run = _prepare(command, name, kwargs)
    done = _simple(run["argv"] + ["--output=json"], run["env"])
    if done["exit"] not in fine:
        __context__["retcode"] = done["exit"]
    try:
        document = json.loads(done["stdout"])
        why = "\n".join(document.get("errors") or [])
    except ValueError:
        document, why = None, done["stderr"].strip()
    if document is None or why:
        raise CommandExecutionError("brine {} failed (exit code {}): {}".format(command, done["exit"], why))
    return document


def _prepare(command, name, kwargs, state=False):
    """Sort arguments into settings, flags and environment."""
    jid = kwargs.get("__pub_jid") or kwargs.pop("jid", None) or __opts__.get("jid") or _job()
    direct = str(kwargs.get("__pub_fun", "")).startswith("brine.")
    kwargs = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    defaults = _defaults()
    settings = {"binary": None, "events": True, "sub_states": False, "template": "jinja"}
    given = set()
    for key in _SETTINGS:
        if defaults.get(key) is not None:
            settings[key] = defaults.pop(key)
        if key in kwargs and (kwargs[key] is not None or key == "template"):
            settings[key] = kwargs[key]
            given.add(key)
        kwargs.pop(key, None)
    for key in ("saltenv", "pillar", "defaults", "allow_empty_sls"):
        settings[key] = kwargs.pop(key, None)
        if settings[key] is not None:
            given.add(key)
    if not state and "sub_states" in given:
        raise SaltInvocationError("sub_states has no effect: only states return sub-states")
    test = kwargs.pop("test", None)
    if test is None:
        test = __opts__.get("test", False)

    flags = {key: value for key, value in kwargs.items() if value is not None}
    _approved(flags.get("plan"), flags.pop("plan_digest", None))
    binary = _binary(settings["binary"])
    inventory = _inventory(name, flags.pop("inventory", None), defaults.pop("inventory", None))
    _check(command, flags, defaults, _features(binary).get("flags"))
    argv = [binary, command]
    argv.append(("--inventory=" if "/" in inventory else "--name=") + inventory)
    if command in ("apply", "destroy", "rollback") and "dry_run" not in flags:
        flags["dry_run"] = "server" if test else "none"
    files = [_rules(values) for values in (flags, defaults)]

    env = dict(os.environ)
    if state and command == "apply" and "plan" not in flags:  # what a plan prunes was checked when it was made
        env.setdefault("BRINE_MAX_PRUNE", _MAX_PRUNE)
    for values in (defaults, {key: flags.pop(key) for key in _CREDENTIALS if key in flags}):
        for key, value in values.items():
            env["BRINE_" + key.upper().replace("-", "_")] = _default(key, value)
    if jid:
        env["BRINE_JID"] = str(jid)
    if __opts__.get("id"):
        env["BRINE_MINION"] = str(__opts__["id"])
    argv += _flags(flags)
    return {
        "argv": argv, "env": env, "settings": settings, "given": given, "inventory": inventory, "jid": jid, "stdin": None,
        "files": files, "dry": flags.get("dry_run", "none") != "none", "direct": direct,
    }


def _digest(path):
    with open(path, "rb") as file:
        return "sha256:" + hashlib.sha256(file.read()).hexdigest()


def _approved(path, digest):
    """Refuse a plan that is not the approved one."""
    if digest is None:
        return
    if not path:
        raise SaltInvocationError("plan_digest has no effect without plan")
    try:
        found = _digest(path)
    except OSError as exc:
        raise CommandExecutionError("read the plan: {}".format(exc))
    if found != digest:
        raise CommandExecutionError("the plan {} is not the approved one, and nothing was changed: its digest is {}, plan_digest is {}".format(path, found, digest))


def _inventory(name, given, default):
    """
    The inventory of a call. A name that is given in a state or a call is never
    replaced by a default from pillar: it may name another inventory.
    """
    name = str(name)
    inventory = str(given or name)
    if not given and default:
        default = str(default)
        if name not in (default, default.rsplit("/", 1)[-1]):
            raise SaltInvocationError(
                "the name {!r} is not that of the default inventory {}: give `inventory: {}`, or the inventory that is "
                "meant (the default is `brine: {{inventory: …}}` in pillar, grains or configuration)".format(name, default, default)
            )
        inventory = default
    _check_inventory(inventory)
    return inventory


def _check(command, flags, defaults, takes):
    """Every argument and every default is a flag of brine: a mistake must not pass in silence."""
    for key in flags:
        flag = key.replace("_", "-")
        if flag in _NO_EFFECT:
            raise SaltInvocationError("{} has no effect: {}".format(key, _NO_EFFECT[flag]))
    for key in defaults:
        flag = key.replace("_", "-")
        if flag in _OWN_FLAGS or flag in _NO_EFFECT or not isinstance(key, str):
            raise SaltInvocationError("brine: {}: in pillar, grains or configuration has no effect".format(key))
    if not takes:
        return  # of a build that does not list them: it refuses flags itself
    known = set(takes.get(command, ())) | {"prune"}
    for key in flags:
        if key.replace("_", "-") not in known:
            raise SaltInvocationError(
                "{} is not an argument: brine {} takes no --{}{}".format(key, command, key.replace("_", "-"), _meant(key, known))
            )
    known = {"prune"}.union(*takes.values())
    for key in defaults:
        if key.replace("_", "-") not in known:
            raise SaltInvocationError(
                "brine: {}: in pillar, grains or configuration is not a setting{}".format(key, _meant(key, known | set(_SETTINGS) | {"inventory"}))
            )


def _meant(key, known):
    close = difflib.get_close_matches(key.replace("_", "-"), sorted(known), 1)
    return ": did you mean {}?".format(close[0].replace("-", "_")) if close else ""


def _rules(values):
    """Rules of ignore_fields that are no file go into one, which lasts as long as what is returned."""
    rules = values.get("ignore_fields")
    if rules is None or isinstance(rules, str):
        return None
    if not rules:
        del values["ignore_fields"]
        return None
    file = tempfile.NamedTemporaryFile("w", prefix="brine-ignore-fields-", suffix=".yaml")
    json.dump(rules, file, indent=1)
    file.flush()
    values["ignore_fields"] = file.name
    return file


def _job():
    """
    The id of the job that this process runs: minions note it in a file named by
    it, and report it to no state.
    """
    try:
        import salt.utils.msgpack  # pylint: disable=import-outside-toplevel

        folder = os.path.join(__opts__["cachedir"], "proc")
        found = []
        for jid in os.listdir(folder):
            with open(os.path.join(folder, jid), "rb") as file:
                if salt.utils.msgpack.unpackb(file.read(), raw=False).get("pid") == os.getpid():
                    found.append(jid)
    except Exception as exc:  # pylint: disable=broad-except
        log.debug("brine: no job id: %s", exc)
        return None
    return found[0] if len(found) == 1 else None


def _check_inventory(inventory):
    """The default is the state's name, which may be a sentence."""
    if not re.match(r"^([a-z0-9][a-z0-9-]*/)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", inventory):
        raise SaltInvocationError(
            "{!r} cannot be the name of an inventory: give `inventory: NAME` or `inventory: NAMESPACE/NAME` "
            "(lower case letters, digits, '-')".format(inventory)
        )


def _defaults():
    """What stands under brine: in pillar, grains and configuration, the last over the first."""
    found = {}
    for where in (globals().get("__pillar__"), globals().get("__grains__"), __opts__):
        values = where.get("brine") if where else None
        if isinstance(values, dict):
            found.update(values)
    found = {key: value for key, value in found.items() if value is not None}
    if "prune" in found:
        found["no_prune"] = not _true(found.pop("prune"))
    return found


def _flags(flags):
    argv = []
    for key in sorted(flags):
        flag = key.replace("_", "-")
        value = flags[key]
        if flag in _OWN_FLAGS:
            raise SaltInvocationError("{} is not an argument: this module gives it to brine itself".format(key))
        if not re.match(r"^[a-z][a-z0-9-]*$", flag) or isinstance(value, dict):
            raise SaltInvocationError("{} cannot be a flag of brine".format(key))
        if flag == "prune":
            flag, value = "no-prune", not _true(value)
        for one in value if isinstance(value, (list, tuple)) else [value]:
            argv.append("--{}={}".format(flag, _value(flag, one)))
    return argv


def _default(key, value):
    if isinstance(value, (list, tuple)):
        return ",".join(_value(key, one) for one in value)
    return _value(key.replace("_", "-"), value)


def _value(flag, value):
    if flag == "wait" and isinstance(value, bool):
        return "ready" if value else "applied"
    if isinstance(value, bool):
        return "true" if value else "false"
    if flag.endswith("timeout") and re.match(r"^[0-9]+(\.[0-9]+)?$", str(value)):
        return "{}s".format(value)
    return str(value)


def _true(value):
    return str(value).lower() in ("true", "yes", "on", "1")


def _binary(binary=None):
    binary = binary or _defaults().get("binary") or "brine"
    path = shutil.which(str(binary))
    if path is None:
        raise CommandExecutionError(
            "{} is not an executable file here: install brine, or say where it is with "
            "`brine: {{binary: PATH}}` in pillar or configuration".format(binary)
        )
    return path


def _features(path):
    """What `brine version -o json` prints, asked once for a build; {} where that fails."""
    try:
        stat = os.stat(path)
        key = "brine.version {} {} {}".format(os.path.realpath(path), stat.st_mtime, stat.st_size)
    except OSError:
        return {}
    if key in __context__:
        return __context__[key]
    # Every job is a process of its own: a file keeps the answer between them.
    cache = os.path.join(__opts__["cachedir"], "brine-version.json") if __opts__.get("cachedir") else None
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        with open(cache) as file:
            kept = json.load(file)
        if kept.get("key") == key and isinstance(kept.get("version"), dict):
            __context__[key] = kept["version"]
            return kept["version"]
    try:
        __context__[key] = version(path)
    except CommandExecutionError:
        return {}
    if cache:
        with contextlib.suppress(OSError):
            handle, made = tempfile.mkstemp(prefix="brine-version-", dir=os.path.dirname(cache))
            with os.fdopen(handle, "w") as file:
                json.dump({"key": key, "version": __context__[key]}, file)
            os.rename(made, cache)
    return __context__[key]


def _can(run, feature):
    """Whether this build has a feature; a build that does not list its features has all."""
    features = _features(run["argv"][0]).get("features")
    return not features or feature in features or not any(f.startswith("output=") for f in features)


# The bundle


def _bundle(command, source, bundle, sls, run):
    """
    The bundle as bytes for standard input. A comment before each part names the
    file, and the number of its first line, for brine's messages.
    """
    given = [key for key, value in (("source", source), ("bundle", bundle), ("sls", sls)) if value]
    if command not in ("apply", "check", "rbac", "patch"):
        _without_effect(run, ("pillar", "defaults", "template", "saltenv", "allow_empty_sls"), "there is no bundle")
        return None
    if len(given) != 1:
        raise SaltInvocationError(
            "give one of source, bundle and sls; this has {}".format(" and ".join(given) or "none")
        )
    run["argv"].append("--filename=-")
    settings = run["settings"]
    saltenv = settings["saltenv"] or __opts__.get("saltenv") or "base"
    if not sls:
        _without_effect(run, ("pillar", "allow_empty_sls"), "only sls takes it")
    if not source:
        _without_effect(run, ("defaults", "template"), "only source takes it")
    if sls:
        parts = [("compiled SLS", _show(sls, saltenv, settings))]
    elif not source:
        objects = bundle if _are_objects(bundle) else [bundle]
        parts = [("bundle" if len(objects) == 1 else "bundle[{}]".format(i), one) for i, one in enumerate(objects)]
    else:
        parts = []
        for one in source if isinstance(source, (list, tuple)) else [source]:
            files, env, optional = _files(str(one), saltenv)
            parts += [part for part in (_render(path, env, settings, optional) for path in files) if part]
    return "\n---\n".join(_part(*part) for part in parts).encode("utf-8")


def _without_effect(run, keys, why):
    for key in keys:
        if key in run["given"] and (key != "saltenv" or run["direct"]):
            raise SaltInvocationError("{} has no effect here: {}".format(key, why))


def _are_objects(bundle):
    return isinstance(bundle, (list, tuple)) and all(isinstance(one, dict) and "apiVersion" in one for one in bundle)


def _part(name, content):
    if isinstance(content, bytes):
        content = content.decode("utf-8")
    line = 1
    if not isinstance(content, str):  # nobody has seen its lines
        line, content = 0, json.dumps(content, default=str, ensure_ascii=False)
    return "# brine.dev/source: {} {}\n{}".format(line, name, content)


def _files(source, saltenv):
    """
    The files that a source names: one, those of a folder (which ends in "/"), or
    those that fit a pattern; their saltenv; and whether one may render to nothing.
    """
    path, _, query = source.partition("?saltenv=")
    if query:
        saltenv = query
    if path.endswith("/"):
        folder, pattern = path, None
    elif any(c in path for c in "*?["):
        folder, _, pattern = path.rpartition("/")
        folder += "/"
        if any(c in folder for c in "*?["):
            raise SaltInvocationError("{}: only the last part of a path can be a pattern".format(source))
    else:
        return [path], saltenv, False
    if path.startswith("salt://"):
        prefix = folder[len("salt://"):]
        names = [n[len(prefix):] for n in __salt__["cp.list_master"](saltenv=saltenv, prefix=prefix) if n.startswith(prefix)]
    else:
        names = os.listdir(folder) if os.path.isdir(folder) else []
    names = sorted(n for n in names if "/" not in n and not n.startswith("."))
    if pattern is not None:
        names = fnmatch.filter(names, pattern)
    else:
        names = [n for n in names if n.endswith(_ENDINGS)]
    if not names:
        what = "fits" if pattern else "in it ends in " + ", ".join(_ENDINGS)
        raise CommandExecutionError("{}: no file {} (saltenv {})".format(path, what, saltenv))
    return [folder + n for n in names], saltenv, True


def _render(path, saltenv, settings, optional):
    """A file's name for messages, and its content; None for one of several that renders to nothing."""
    template = settings["template"]
    name = path
    if template in (None, False, "", "none"):
        text = None
        if path.startswith("/"):
            with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
                text = file.read()
        else:
            text = __salt__["cp.get_file_str"](path, saltenv=saltenv)
    else:
        name += " (rendered)"
        try:
            text = __salt__["slsutil.renderer"](
                path=path, default_renderer=template, saltenv=saltenv, **(settings["defaults"] or {})
            )
        except Exception as exc:  # pylint: disable=broad-except
            raise CommandExecutionError("{} could not be rendered: {}".format(path, _cut(exc)))
    if not text or isinstance(text, str) and not text.strip():
        if optional:
            log.info("brine: %s renders to nothing", path)
            return None
        raise CommandExecutionError("{} is not there (saltenv {}), or renders to nothing".format(path, saltenv))
    return name, text


def _show(sls, saltenv, settings):
    """
    Low data: includes, extends and requisites resolved by Salt itself. What Salt
    only logs must not pass: objects of an SLS that it left out would be pruned.
    """
    kwargs = {"saltenv": saltenv, "concurrent": True}  # a state run is under way: this one
    if settings["pillar"]:
        kwargs["pillar"] = settings["pillar"]
    with _watching() as seen:
        low = __salt__["state.show_low_sls"](sls, **kwargs)
    if not isinstance(low, list) or not low or any(not isinstance(chunk, dict) for chunk in low):
        errors = low if isinstance(low, list) else [low]
        raise CommandExecutionError(
            "Salt did not render {}: {}".format(sls, "; ".join(_cut(e) for e in errors) or "no states")
        )
    if seen["errors"]:
        raise CommandExecutionError(
            "Salt logged errors while it compiled {}, so that states may be missing: {}".format(sls, "; ".join(_cut(e) for e in seen["errors"]))
        )
    allowed = settings["allow_empty_sls"] or []
    empty = sorted(one for one in seen["rendered"] - seen["content"] if allowed is not True and one not in allowed)
    if empty:
        raise CommandExecutionError(
            "{} gave no state: its objects would be pruned. If that is intended, give `allow_empty_sls: [{}]`".format(
                ", ".join(empty), ", ".join(empty)
            )
        )
    return low


@contextlib.contextmanager
def _watching():
    """
    The SLS that Salt compiles while this lasts, those of them that have content
    (states, or only an include), and the errors that it logs. Salt returns none of it.
    """
    seen = {"rendered": set(), "content": set(), "errors": []}
    thread = threading.current_thread()

    class Handler(logging.Handler):
        def emit(self, record):
            if threading.current_thread() is thread and not record.name.startswith("salt.loader"):
                seen["errors"].append(record.getMessage())

    def noting(into, function):
        @functools.wraps(function)
        def call(self, *args, **kwargs):
            if threading.current_thread() is thread:
                seen[into].add(kwargs["sls"] if "sls" in kwargs else args[position[into]])
            return function(self, *args, **kwargs)

        return call

    position = {"rendered": 0, "content": 1}
    logger, handler = logging.getLogger("salt"), Handler(logging.ERROR)
    compiler = _compiler()
    methods = {"rendered": "render_state", "content": "_handle_extend"}
    if not all(hasattr(compiler, method) for method in methods.values()):
        methods = {}
    before = {method: getattr(compiler, method) for method in methods.values()}
    level = logger.level
    if logger.getEffectiveLevel() > logging.ERROR:
        logger.setLevel(logging.ERROR)  # --log-level=quiet
    logger.addHandler(handler)
    try:
        for into, method in methods.items():
            setattr(compiler, method, noting(into, before[method]))
        yield seen
    finally:
        for method, function in before.items():
            setattr(compiler, method, function)
        logger.removeHandler(handler)
        logger.setLevel(level)


def _compiler():
    """The class of Salt that renders SLS; None without a Salt, in tests."""
    try:
        import salt.state  # pylint: disable=import-outside-toplevel

        return salt.state.BaseHighState
    except ImportError:
        return None


def _cut(error):
    """Salt puts the rendered text behind a line of dashes; that may hold Secrets."""
    text = str(error)
    head = text.split("\n---\n")[0]
    return head if head == text else head + " (the text around it is left out)"


# Running


def _simple(argv, env, stdin=None):
    try:
        done = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, **_child()
        )
    except OSError as exc:
        raise CommandExecutionError("{} cannot be run: {}".format(argv[0], exc))
    with _forwarding(done):
        out, err = done.communicate(stdin)
    return {
        "exit": done.returncode,
        "stdout": out.decode("utf-8", "replace"),
        "stderr": err.decode("utf-8", "replace"),
    }


def _stream(run, output):
    """
    Run brine, fire its events as they come, and return its last line, its exit
    code, the end of its standard error, and the changes that its events report.
    """
    argv = run["argv"] + ["--output=" + output]
    log.debug("running %s", argv)
    done = {"argv": argv, "exit": None, "last": {}, "stderr": collections.deque(maxlen=50), "acted": {}}
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=run["env"], **_child()
        )
    except OSError as exc:
        raise CommandExecutionError("{} cannot be run: {}".format(argv[0], exc))
    helpers = [
        threading.Thread(target=_feed, args=(process.stdin, run["stdin"]), daemon=True),
        threading.Thread(target=_drain, args=(process.stderr, done["stderr"]), daemon=True),
    ]
    with _forwarding(process, run), contextlib.closing(_Bus(run)) as bus, process.stdout:
        for helper in helpers:
            helper.start()
        for line in _lines(process.stdout):
            _line(line, done, bus)
        done["exit"] = process.wait()
        for helper in helpers:
            helper.join(_STOP_SECONDS)
    return done


def _lines(pipe):
    """
    The lines of a pipe, read by a thread: a signal that comes directly before a
    read does not interrupt it, and Python would handle it with the next line.
    """
    lines = queue.Queue()

    def read():
        with contextlib.suppress(OSError, ValueError):
            for line in pipe:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        with contextlib.suppress(queue.Empty):
            line = lines.get(timeout=0.5)
            if line is None:
                return
            yield line


def _line(line, done, bus):
    try:
        event = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        done["stderr"].append(line.decode("utf-8", "replace"))
        return
    if not isinstance(event, dict):
        return
    if event.get("type") in (None, "finished"):
        done["last"] = event
    if event.get("type") == "acted" and event.get("object"):
        done["acted"][_object(event["object"])] = event.get("action")
    bus.fire(event)


def _feed(pipe, data):
    # brine may end without reading it all; its exit code is the reason.
    with contextlib.suppress(OSError), pipe:
        if data:
            pipe.write(data)


def _drain(pipe, lines):
    with contextlib.suppress(OSError, ValueError), pipe:
        for line in pipe:
            lines.append(line.decode("utf-8", "replace"))


def _lost(done):
    """A state's return for a run that ended without a result."""
    changes = {"created": ("absent", "present"), "pruned": ("present", "absent")}
    ret = {"result": False, "changes": {}}
    for name, action in done["acted"].items():
        if action in ("created", "configured", "recreated", "pruned", "detached"):
            old, new = changes.get(action, ("present", action))
            ret["changes"][name] = {"old": old, "new": new}
    code = done["exit"]
    how = "exit code {}".format(code)
    if code is not None and code < 0:
        how = "killed by signal {}".format(-code)
    printed = "".join(done["stderr"]).strip() or "it printed nothing on stderr"
    ret["comment"] = "brine ended without a result ({}): {}".format(how, printed)
    if ret["changes"] or (code is not None and code < 0):
        ret["comment"] += "\nObjects may have changed. Run it again to continue."
    if "unknown flag" in printed or "unknown command" in printed:
        try:
            ret["comment"] += "\nThis is brine {}: it may be older than this state expects.".format(
                version(done["argv"][0]).get("version")
            )
        except CommandExecutionError:
            pass
    return ret


try:
    _LIBC = ctypes.CDLL(None)
    _PRCTL = _LIBC.prctl
except (OSError, AttributeError, TypeError):
    _PRCTL = None


def _die_with_parent():
    _PRCTL(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _child():
    """A session of its own, so that each signal comes once, and SIGTERM if Salt is killed outright."""
    how = {"start_new_session": True}
    if _PRCTL is not None:
        how["preexec_fn"] = _die_with_parent
    return how


@contextlib.contextmanager
def _forwarding(process, run=None):
    """
    Pass SIGTERM and SIGINT on, and wait for brine's own end: it still prints its
    result. Salt signals the children of a job before the job, so that brine may
    have the signal already: it is passed on only if brine has not ended soon.
    """
    received, timers = [], []

    def forward(number, _frame):
        if received:
            return
        received.append(number)
        timer = threading.Timer(_GRACE_SECONDS, _send, (process, number))
        timer.daemon = True
        timers.append(timer)
        timer.start()

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            handler = signal.getsignal(number)
            if handler is not None and handler != signal.SIG_IGN:
                before[number] = handler
                signal.signal(number, forward)
    try:
        yield
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        if received and not _stopped(run or {}):
            os.kill(os.getpid(), received[0])


def _send(process, number):
    with contextlib.suppress(OSError):
        if process.poll() is None:
            process.send_signal(number)


def _stopped(run):
    """
    Whether Salt ends by itself after a signal, and still returns what was done: the
    function is the whole job, or the state run is told to begin no further state.
    """
    if run.get("direct"):
        return True
    if not run.get("in_state") or not run.get("jid") or "state.soft_kill" not in __salt__:
        return False
    try:
        __salt__["state.soft_kill"](run["jid"])
    except Exception as exc:  # pylint: disable=broad-except
        log.debug("brine: the state run cannot be told to end: %s", exc)
        return False
    return True


# Events


def _object(o):
    """Kind.group/namespace/name, of what is not empty."""
    kind = ".".join(part for part in (o.get("kind"), o.get("group")) if part)
    return "/".join(part for part in (kind, o.get("namespace"), o.get("name")) if part)


class _Bus:
    """
    Fires events from a thread of its own: a slow master must not hold up brine,
    and one that is not there is given up on.
    """

    def __init__(self, run):
        self.run = run
        self.failures = 0
        self.queue = queue.Queue()
        self.thread = None
        self.send = _sender() if run["settings"]["events"] else None
        if self.send is None:
            return
        target = self._work
        if contextvars is not None:  # Salt keeps its dunders in the context
            target = lambda context=contextvars.copy_context(): context.run(self._work)
        self.thread = threading.Thread(target=target, daemon=True)
        self.thread.start()

    def fire(self, event):
        if self.thread is None or event.get("type") in _QUIET + (None,):
            return
        what = event["type"]
        if event.get("object"):
            if event.get("action") == "unchanged" and what in ("acted", "ready"):
                return
            what = _object(event["object"])
        data = {key: value for key, value in event.items() if key not in ("result", "return")}
        for key in ("result", "return"):
            end = event.get(key)
            if isinstance(end, dict):
                data.update({k: end[k] for k in ("exitCode", "summary", "comment", "revision") if k in end})
                if key == "return":
                    data["success"] = end.get("result")
        data["inventory"] = self.run["inventory"]
        if self.run["jid"]:
            data["jid"] = self.run["jid"]
        if self.run["dry"]:
            data["dryRun"] = True
        tag = "brine/preview/{}/{}" if self.run["dry"] else "brine/{}/{}"
        self.queue.put((tag.format(self.run["inventory"].replace("/", "."), what), data))

    def close(self):
        if self.thread is None:
            return
        self.queue.put(None)
        self.thread.join(_FLUSH_SECONDS)
        if self.thread.is_alive():
            log.warning("brine: %s events were not sent in time", self.queue.qsize())

    def _work(self):
        while True:
            item = self.queue.get()
            if item is None:
                return
            if self.failures >= 3:
                continue
            started = time.time()
            try:
                sent = self.send(*item)
            except Exception as exc:  # pylint: disable=broad-except
                log.debug("brine: event %s was not sent: %s", item[0], exc)
                sent = False
            self.failures = 0 if sent is not False else self.failures + 1
            if sent is False and time.time() - started > 2:
                self.failures = 3  # every one of them would take that long


def _masterless():
    """There is no bus but that of a minion that runs here; without one, each event waits for it in vain."""
    if __opts__.get("use_master_when_local"):
        return False
    if not (__opts__.get("local") or __opts__.get("file_client") == "local" or __opts__.get("master_type") == "disable"):
        return False
    try:
        return not any(name.startswith("minion_event") for name in os.listdir(__opts__["sock_dir"]))
    except (KeyError, OSError):
        return True


def _sender():
    """The function (tag, data) that puts an event on the bus of this process."""
    if __opts__.get("__role") == "master":  # an orchestrate run
        try:
            import salt.utils.event  # pylint: disable=import-outside-toplevel

            bus = salt.utils.event.get_master_event(__opts__, __opts__["sock_dir"], listen=False)
        except Exception as exc:  # pylint: disable=broad-except
            log.debug("brine: no master's event bus: %s", exc)
            return None
        return lambda tag, data: bus.fire_event(data, tag)
    if "event.send" not in __salt__ or _masterless():
        return None
    send = __salt__["event.send"]
    return lambda tag, data: send(tag, data)
