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
import datetime
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

# Keys under brine: in pillar or configuration that are not flags, and their defaults.
_SETTINGS = {"binary": None, "events": True, "event_rate": 20, "sub_states": False, "template": "jinja", "pin": False}
# Arguments that are about rendering.
_RENDERING = ("saltenv", "pillar", "defaults", "allow_empty_sls")
# The most that a state prunes unless max_prune says otherwise.
_MAX_PRUNE = "30%"
# Flags whose value is a credential: never an argument, which ps and logs show.
_CREDENTIALS = ("token", "password")
# Flags whose file can be given as what it holds.
_RULES = ("ignore_fields", "readiness", "deny")
# Flags that are no arguments, and why.
_REFUSED = dict.fromkeys(("output", "o", "filename", "f", "input", "help"), "this module gives it to brine itself")
_REFUSED["recursive"] = "it has no effect: name the folders in source"
# Which program is run, and which cluster it is for.
_CONNECTION = (
    "binary", "kubeconfig", "context", "cluster", "user", "server", "token", "password", "proxy-url", "tls-server-name", "insecure-skip-tls-verify",
    "certificate-authority", "client-certificate", "client-key", "as", "as-group", "as-uid", "as-user-extra", "cache-dir",
)
# What only the minion's configuration says where it has `pin: True`.
_PINNED = _CONNECTION + ("pin", "template", "report", "plan-out", "profile-dir")
_ENDINGS = (".yaml", ".yml", ".json", ".sls")
_QUIET = ("acting",)  # event types that are not worth a place on the bus
_FLUSH_SECONDS = 30  # how long events that are still queued may take at the end
_STOP_SECONDS = 15  # how long brine may take to end after a signal
_PATTERN = re.compile(r"^\s*-\s+['\"]?(?!\[)[\w.-]*[*?\[][\w.*?\[\]-]*['\"]?\s*$", re.M)  # an include that takes what there is
_GRACE_SECONDS = 1  # whoever sends a signal to Salt and to brine has done so by then
_ERRORS = (CommandExecutionError, SaltInvocationError)
# What an error of rendering quotes: words that Salt and YAML give, then text of others.
_UNTRUSTED = re.compile(
    r"(Jinja error: ).*?(?=; line \d+\s*(?:\(the text around it is left out\))?\Z|\Z)|(HTTP response body: ).*|((?:alias|anchor|tag|tag handle) )(?:'[^'\n]*'|\"[^\"\n]*\")", re.DOTALL)


def __virtual__():
    return __virtualname__


# Whole bundles


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
    readiness
        Rules about when objects of a kind are ready, as in the file of ``--readiness``,
        or the path of such a file.
    deny
        Rules over what a run would do, as in the file of ``--deny``, or its path: a run
        in which they find something changes nothing.
    saltenv, pillar, defaults
        For rendering; defaults are variables for the templates.
    events, event_rate
        False fires nothing on the bus; the most events a second, 0 is no limit.
    sub_states
        True adds sub_state_run, an entry for each object that changed or failed.

    CLI Example:

    .. code-block:: bash

        salt-call brine.applied platform source=salt://platform/ test=True
    """
    return _state("apply", name, kwargs, (source, bundle, sls))


def absent(name, **kwargs):
    """
    Delete all objects of an inventory, and the inventory; return what a state
    returns.

    CLI Example:

    .. code-block:: bash

        salt-call brine.absent platform
    """
    ret = _state("destroy", name, kwargs)
    if ret["result"] and not ret["changes"] and ret.get("warnings"):
        ret["comment"] = "; ".join(ret.pop("warnings"))  # there is no such inventory, as it should be
    return ret


def rolled_back(name, revision=None, **kwargs):
    """
    The same as brine.rollback, and return what a state returns.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rolled_back platform test=True
    """
    return _state("rollback", name, kwargs, words=_revision(revision))


def apply(name, source=None, bundle=None, sls=None, **kwargs):
    """
    Make the cluster match a bundle and return brine's result, the document of
    ``brine apply -o json``. Arguments are those of brine.applied.

    CLI Example:

    .. code-block:: bash

        salt-call brine.apply platform source=salt://platform.yaml
    """
    return _result("apply", name, kwargs, (source, bundle, sls))


def preview(name, source=None, bundle=None, sls=None, **kwargs):
    """
    What brine.apply would do, as the server itself answers. Nothing changes.

    CLI Example:

    .. code-block:: bash

        salt-call brine.preview platform source=salt://platform.yaml
    """
    return _result("apply", name, dict(kwargs, test=True), (source, bundle, sls))


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
        path = _kept("plans", _inventory(name, kwargs.get("inventory"), _defaults().get("inventory")))
    elif _pinned():
        raise SaltInvocationError("path is not an argument here: `pin: True` in the configuration")
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)  # nobody takes an earlier one for this one
    ret = _state("apply", name, dict(kwargs, test=True), (source, bundle, sls), own={"plan_out": path})
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
    return _result("destroy", name, kwargs)


def rollback(name, revision=None, **kwargs):
    """
    Undo the last apply of an inventory, or apply an earlier revision, and return brine's result.

    revision
        A number of brine.history. Without it, or with ``previous``, the last apply
        is undone: the last good revision before it with another content is applied.
        Repeated, it is the same revision.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rollback platform revision=4
    """
    return _result("rollback", name, kwargs, words=_revision(revision))


def status(name, **kwargs):
    """
    The objects of an inventory as they are now.

    CLI Example:

    .. code-block:: bash

        salt-call brine.status platform
    """
    return _document(_Run("status", kwargs, name))


def history(name, **kwargs):
    """
    The revisions of an inventory.

    CLI Example:

    .. code-block:: bash

        salt-call brine.history platform
    """
    return _document(_Run("history", kwargs, name))


def drift(name, event=False, event_interval=300, **kwargs):
    """
    What others changed on the cluster since the last good revision of an inventory,
    field by field: the document of ``brine drift -o json``. Nothing is written.

    event
        True sends an event ``brine/<inventory>/drift`` if the drift is not the one of
        the last event: another field or value, or none any more.
    event_interval
        The least number of seconds between two such events. What changes meanwhile is
        in the next one.

    CLI Example:

    .. code-block:: bash

        salt-call brine.drift platform
    """
    run = _Run("drift", kwargs, name)
    document = _document(run, fine=(0, 2))
    if event and not any(o["action"] in ("failed", "skipped") for o in document["objects"]):  # of those, the drift is unknown
        _drift_event(run, document, float(event_interval))
    return document


def inventories(**kwargs):
    """
    The inventories of the cluster, or those of ``namespace``.

    CLI Example:

    .. code-block:: bash

        salt-call brine.inventories
    """
    return json.loads(_ask(_Run("inventory list", kwargs)))


def check(source=None, bundle=None, sls=None, **kwargs):
    """
    Read, order and validate a bundle without a cluster, and return all problems.
    The bundle is given as to brine.applied.

    CLI Example:

    .. code-block:: bash

        salt-call brine.check source=salt://platform/
    """
    return json.loads(_ask(_Run("check", kwargs, given=(source, bundle, sls)), fine=(0, 3)))


def rbac(source=None, bundle=None, sls=None, **kwargs):
    """
    The smallest roles with which a bundle can be applied, as YAML. They are named
    after the inventory, unless ``role`` says otherwise.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rbac source=salt://platform/ inventory=kube-system/platform --out=newline_values_only
    """
    return _ask(_Run("rbac", kwargs, given=(source, bundle, sls)), output=None)


def version(binary=None):
    """
    brine's version and what this build of it can do.

    CLI Example:

    .. code-block:: bash

        salt-call brine.version
    """
    if binary and _pinned():
        raise SaltInvocationError("binary is not an argument here: `pin: True` in the configuration")
    path = _binary(binary or _defaults().get("binary"))
    done = _communicate([path, "version", "--output=json"], dict(os.environ))
    try:
        return json.loads(done["stdout"])
    except ValueError:
        raise CommandExecutionError("{} does not report its version: {}".format(path, done["stderr"] or done["stdout"]))


# Single objects, as MetalK8s' module has them


def get(name=None, kind=None, apiVersion=None, namespace="default", show_secrets=False, manifest=None, **kwargs):
    """
    One object as it is now; None if there is none. The same as
    metalk8s_kubernetes.get_object, but values of Secrets are masked unless
    ``show_secrets`` is True.

    CLI Example:

    .. code-block:: bash

        salt-call brine.get kind=Deployment apiVersion=apps/v1 name=coredns namespace=kube-system
    """
    found = _one(name, kind, apiVersion, namespace, manifest, dict(kwargs, show_secrets=show_secrets or None))
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
    return _found(kind, None, dict(
        kwargs, api_version=apiVersion, all_namespaces=all_namespaces or None, namespace=None if all_namespaces else namespace,
        selector=label_selector, field_selector=field_selector, show_secrets=show_secrets or None,
    ))["objects"]


def ready(name=None, kind=None, apiVersion=None, namespace="default", manifest=None, **kwargs):
    """
    True if an object is ready, as brine waits for it, of every kind. Otherwise an
    error that says why not, as metalk8s_kubernetes.check_object_ready.
    ``ready_when`` is a CEL expression that decides instead.

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


def create_object(name=None, manifest=None, **kwargs):
    """
    Create an object, or make it as the manifest says, and return it, as
    metalk8s_kubernetes.create_object and replace_object.

    name
        A file with the manifest, rendered as those of brine.applied.

    CLI Example:

    .. code-block:: bash

        salt-call brine.create_object name=salt://settings.yaml
    """
    manifest = manifest or _manifest(name, kwargs)
    return _written(present(name, manifest, **kwargs), manifest, kwargs)


def update_object(name=None, kind=None, apiVersion=None, namespace=None, patch=None, manifest=None, **kwargs):
    """
    Set fields of an existing object, and return it, as
    metalk8s_kubernetes.update_object. See brine.patched.

    CLI Example:

    .. code-block:: bash

        salt-call brine.update_object name=node-1 kind=Node apiVersion=v1 patch='{metadata: {labels: {a: b}}}'
    """
    if not manifest and not kind:
        manifest = _manifest(name, kwargs)
    which = manifest or {"apiVersion": apiVersion, "kind": kind, "metadata": {"name": name, "namespace": namespace or "default"}}
    return _written(patched(name, kind, apiVersion, namespace, patch, manifest, **kwargs), which, kwargs)


def delete_object(name=None, kind=None, apiVersion=None, namespace="default", manifest=None, **kwargs):
    """
    Delete an object, and return it as it was; None if there was none, as
    metalk8s_kubernetes.delete_object.

    CLI Example:

    .. code-block:: bash

        salt-call brine.delete_object name=old kind=Service apiVersion=v1 namespace=kube-system
    """
    if not manifest and not kind:
        manifest = _manifest(name, kwargs)
    before = get(name, kind, apiVersion, namespace, manifest=manifest, **_connection(kwargs))
    if before is not None:
        _written(absent_object(name, kind, apiVersion, namespace, manifest, **kwargs))
    return before


def rollout_restart(name, kind="Deployment", apiVersion="apps/v1", namespace="default", **kwargs):
    """
    Restart the pods of a Deployment, DaemonSet or StatefulSet, and return it, as
    metalk8s_kubernetes.rollout_restart.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rollout_restart name=coredns namespace=kube-system
    """
    now = {"kubectl.kubernetes.io/restartedAt": datetime.datetime.now().isoformat()}
    patch = {"spec": {"template": {"metadata": {"annotations": now}}}}
    return update_object(name, kind, apiVersion, namespace, patch, field_manager="brine-restart", force_conflicts=True, **kwargs)


get_object = get
object_exists = exists
get_object_digest = digest
check_object_ready = ready
replace_object = create_object


def waited(
    name, kind=None, apiVersion=None, namespace="default", label_selector=None, condition=None, ready_when=None, absent=False,
    timeout=600, interval=5, **kwargs
):
    """
    Wait until an object (or all that ``label_selector`` finds, and at least one) is
    ready, and return what a state returns.

    name
        Name of the object, where there is no label_selector.
    condition
        Wait for a condition of the status instead: ``Established``,
        ``Progressing=False``.
    ready_when
        Wait until this CEL expression about the object, ``self``, is true, as in the
        annotation ``brine.dev/ready-when``.
    absent
        Wait until there is none.
    timeout
        In seconds; ``interval`` is the time between two looks.

    CLI Example:

    .. code-block:: bash

        salt-call brine.waited coredns kind=Deployment apiVersion=apps/v1 namespace=kube-system timeout=120
    """
    test = kwargs.pop("test", None)
    test = __opts__.get("test", False) if test is None else test
    what = condition or ready_when
    if condition:
        kind_of, _, value = condition.partition("=")
        ready_when = "self.status.conditions.exists(c, c.type == {} && c.status == {})".format(json.dumps(kind_of), json.dumps(value or "True"))
    flags = dict(kwargs, api_version=apiVersion, namespace=namespace, selector=label_selector, ready_when=ready_when)
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    until = time.time() + float(timeout)
    while True:
        try:
            if not kind:
                raise SaltInvocationError("give kind and apiVersion of what is waited for")
            missing = _waits(_found(kind, None if label_selector else name, dict(flags)), condition, absent)
        except _ERRORS as exc:
            return dict(ret, result=False, comment=str(exc))
        if not missing:
            return dict(ret, comment="{} {}".format(name, "is absent" if absent else "is ready" if not what else "has " + what))
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
    state_id = str(kwargs.get("__id__") or name)
    kwargs.setdefault("field_manager", "brine-patch-" + re.sub(r"[^A-Za-z0-9._-]+", "-", state_id)[:100])
    if absent:
        kwargs["remove"] = True
    elif patch is not None and not (isinstance(patch, dict) and patch) or not (patch or manifest) and kind:
        return {"name": name, "result": False, "changes": {}, "comment": "give patch, a mapping of fields, or manifest"}
    return _object_state(name, kind, apiVersion, namespace, manifest or patch or ({} if kind else None), kwargs)


def labels_exist(name, labels, kind=None, apiVersion=None, namespace="default", **kwargs):
    """
    Add the labels that an object does not have. Those that it has keep their values.
    Returns what a state returns, as metalk8s_kubernetes.labels_exist.

    CLI Example:

    .. code-block:: bash

        salt-call brine.labels_exist node-1 kind=Node apiVersion=v1 labels='{a: b}'
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    try:
        found = get(name, kind, apiVersion, namespace, **_connection(kwargs))
    except _ERRORS as exc:
        return dict(ret, result=False, comment=str(exc))
    if found is None:
        return dict(ret, result=False, comment="The object {} does not exist".format(name))
    missing = {key: value for key, value in labels.items() if key not in (found["metadata"].get("labels") or {})}
    if not missing:
        return dict(ret, comment="All labels already exist on object {}".format(name))
    # A manager of its own for each set: the labels of an earlier one stay.
    owner = "brine-labels-" + hashlib.sha256(json.dumps(sorted(missing)).encode("utf-8")).hexdigest()[:12]
    ret = _object_state(name, kind, apiVersion, namespace, {"metadata": {"labels": missing}}, dict({"field_manager": owner}, **kwargs))
    return dict(ret, changes={"labels added": missing}) if ret["changes"] else ret


def present(name, manifest=None, **kwargs):
    """
    One object that is in no bundle: create it, or make it as the manifest says, and
    return what a state returns. Fields that the manifest had before, and has not any
    more, are removed. It belongs to no inventory: nothing prunes it.

    name
        A file with the manifest, where there is no ``manifest``.

    CLI Example:

    .. code-block:: bash

        salt-call brine.present a manifest='{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}'
    """
    if manifest is not None and not (isinstance(manifest, dict) and manifest):
        return {"name": name, "result": False, "changes": {}, "comment": "give manifest, the object as a mapping"}
    kwargs.setdefault("field_manager", "brine-present")
    return _object_state(name, None, None, None, manifest, dict(kwargs, create=True))


def absent_object(name, kind=None, apiVersion=None, namespace=None, manifest=None, wait=None, **kwargs):
    """
    Delete one object that is in no inventory, and return what a state returns.

    wait
        Wait until it is gone: True, or a number of seconds.

    CLI Example:

    .. code-block:: bash

        salt-call brine.absent_object old kind=Service apiVersion=v1 namespace=kube-system
    """
    state_id = kwargs.pop("__id__", None)
    ret = _object_state(name, kind, apiVersion, namespace, manifest or ({} if kind else None), dict(kwargs, __id__=state_id, delete=True))
    if wait and ret["result"] and ret["changes"]:
        metadata = (manifest or {}).get("metadata") or {}
        left = waited(
            metadata.get("name", name), kind or manifest.get("kind"), apiVersion or manifest.get("apiVersion"),
            namespace or metadata.get("namespace", "default"), absent=True, timeout=60 if wait is True else wait, **kwargs
        )
        if left["result"] is False:
            ret.update(result=False, comment=left["comment"])
    return ret


def _object_state(name, kind, apiVersion, namespace, manifest, kwargs):
    """What `brine patch` does with one object, as a state's return. Without a manifest, name is a file."""
    try:
        manifest = _manifest(name, kwargs) if manifest is None else manifest
        metadata = dict({"name": str(name)}, **(manifest.get("metadata") or {}))
        if namespace:
            metadata["namespace"] = namespace
        body = dict(manifest, apiVersion=apiVersion or manifest.get("apiVersion"), kind=kind or manifest.get("kind"), metadata=metadata)
        if not body["apiVersion"] or not body["kind"]:
            raise SaltInvocationError("give kind and apiVersion, or a manifest that has them")
        ret = json.loads(_ask(_Run("patch", kwargs, given=(None, body, None)), "salt", fine=None))
        ret.pop("sub_state_run", None)
        return _tidy(ret, name)
    except _ERRORS + (ValueError,) as exc:
        return {"name": name, "result": False, "changes": {}, "comment": _cut(exc)}


def _manifest(name, kwargs):
    """The manifest in a file; takes the arguments about rendering out of kwargs."""
    found = {key: kwargs.pop(key, None) for key in ("saltenv", "defaults", "template")}
    _refuse_pinned({"template": found["template"]} if found["template"] else {}, [str(name)])
    with _unlogged():
        try:
            manifest = __salt__["slsutil.renderer"](
                path=name, default_renderer=(found["template"] or "jinja") + "|yaml", saltenv=found["saltenv"] or "base", **(found["defaults"] or {})
            )
        except Exception as exc:  # pylint: disable=broad-except
            raise CommandExecutionError("{} could not be rendered: {}".format(name, _cut(exc))) from None
    if not isinstance(manifest, dict) or not manifest:
        raise SaltInvocationError("{} is no file with a manifest: give manifest, the object as a mapping".format(name))
    return manifest


def _written(ret, manifest=None, kwargs=()):
    """The object after a state that changed it."""
    if ret["result"] is False:
        raise CommandExecutionError(ret["comment"])
    return get(manifest=manifest, **_connection(kwargs)) if manifest else None


def _connection(kwargs):
    return {key: value for key, value in kwargs.items() if key.replace("_", "-") in _CONNECTION}


def _one(name, kind, apiVersion, namespace, manifest, kwargs):
    if manifest:
        metadata = manifest.get("metadata") or {}
        name, kind, apiVersion = metadata.get("name"), manifest.get("kind"), manifest.get("apiVersion")
        namespace = metadata.get("namespace") or namespace
    if not (name and kind and apiVersion):
        raise SaltInvocationError("give manifest, or name and kind and apiVersion")
    return _found(kind, name, dict(kwargs, api_version=apiVersion, namespace=namespace))


def _found(kind, name, kwargs):
    """The document of `brine get`."""
    if name is not None:
        kwargs["ignore_not_found"] = True
    return json.loads(_ask(_Run("get", kwargs, words=[str(kind)] + ([] if name is None else [str(name)]))))


def _waits(found, condition, absent):
    """What is waited for, or ""."""
    objects = found["objects"]
    if absent:
        return ", ".join(o["metadata"]["name"] for o in objects[:5]) + " still there" if objects else ""
    if not objects:
        return "there is no such object"
    for one, state in zip(objects, found["readiness"]):
        if state["state"] != "ready":
            why = "condition {} is not met".format(condition) if condition else state.get("reason") or state["state"]
            return "{}: {}".format(one["metadata"]["name"], why)
    return ""


# From arguments to a command line


class _Run(object):
    """
    A call of brine: command line, environment, standard input, settings. name is that
    of an inventory, given the bundle (source, bundle, sls), words are arguments of the
    command, own the flags that this module gives itself.
    """

    def __init__(self, command, kwargs, name=None, given=None, words=(), own=None, state=False):
        self.command = command
        self.direct = str(kwargs.get("__pub_fun", "")).startswith("brine.")
        self.in_state = kwargs.get("__id__") is not None
        self.jid = kwargs.get("__pub_jid") or kwargs.get("jid") or __opts__.get("jid") or _job()
        self.began = _began(self.jid)
        flags = {key: value for key, value in kwargs.items() if value is not None and key != "jid" and not key.startswith("__")}
        _refuse_pinned(flags)
        defaults = _defaults()
        self.settings = {key: flags.pop(key, defaults.pop(key, default)) for key, default in _SETTINGS.items()}
        if "template" in kwargs and kwargs["template"] is None:
            self.settings["template"] = None
        self.settings.update((key, flags.pop(key, None)) for key in _RENDERING)
        self.given = {"template"} if "template" in kwargs else set()
        self.given |= {key for key in tuple(_SETTINGS) + _RENDERING if kwargs.get(key) is not None}
        if not state and "sub_states" in self.given:
            raise SaltInvocationError("sub_states has no effect: only states return sub-states")
        if _true(self.settings["pin"]) and not _pinned():
            raise SaltInvocationError("pin has no effect in calls, pillar and grains: put it into the configuration of the minion or master")
        test = flags.pop("test", None)
        self.binary = _binary(self.settings["binary"])
        self.inventory = None
        place = defaults.pop("inventory", None)
        if name is not None:
            self.inventory = _inventory(name, flags.pop("inventory", None), place)
        elif command == "rbac" and "/" in str(place):  # the roles are named after it
            flags.setdefault("inventory", place)
        if command in ("apply", "destroy", "rollback", "patch"):
            flags.setdefault("dry_run", "server" if (__opts__.get("test", False) if test is None else test) else "none")
        self.dry = flags.get("dry_run", "none") != "none"
        _approved(flags.get("plan"), flags.pop("plan_digest", None))
        self.files = [_rules(values, key) for values in (flags, defaults) for key in _RULES]  # which last as long as this
        _check_defaults(defaults, self.binary)

        self.env = dict(os.environ)
        if state and command == "apply" and "plan" not in flags:  # what a plan prunes was checked when it was made
            self.env.setdefault("BRINE_MAX_PRUNE", _MAX_PRUNE)
        for values in (defaults, {key: flags.pop(key) for key in _CREDENTIALS if key in flags}):
            for key, value in values.items():
                values = [_value(key, one) for one in (value if isinstance(value, (list, tuple)) else [value])]
                self.env["BRINE_" + key.upper().replace("-", "_")] = ",".join(values)
        for key, value in (("BRINE_YES", "true"), ("BRINE_JID", self.jid), ("BRINE_MINION", __opts__.get("id"))):
            if value:
                self.env[key] = str(value)
        self.flags = _flags(flags) + _flags(own or {})
        if self.inventory is not None:
            self.flags.insert(0, ("--inventory=" if "/" in self.inventory else "--name=") + self.inventory)
        self.words = list(words)
        self.renewed = {}  # whether the list of the files of a saltenv is
        self.stdin = _bundle(given, self)

    def argv(self, output):
        flags = self.flags + (["--output=" + output] if output else [])
        return [self.binary] + self.command.split() + flags + (["--"] + self.words if self.words else [])

    def without_effect(self, keys, why):
        for key in keys:
            if key in self.given and (key != "saltenv" or self.direct):
                raise SaltInvocationError("{} has no effect here: {}".format(key, why))


def _defaults():
    """What stands under brine: in pillar, grains and configuration, the last over the first."""
    pinned = _pinned()
    found = {}
    for where in (globals().get("__pillar__"), globals().get("__grains__"), __opts__):
        values = where.get("brine") if where else None
        if isinstance(values, dict):
            found.update((k, v) for k, v in values.items() if v is not None and not (pinned and where is not __opts__ and _is_pinned(k)))
    if "prune" in found:
        found["no_prune"] = not _true(found.pop("prune"))
    return found


def _pinned():
    """Whether calls, pillar (which a call can override) and grains are not asked for program and cluster."""
    values = __opts__.get("brine")
    return isinstance(values, dict) and _true(values.get("pin"))


def _is_pinned(key):
    return str(key).replace("_", "-") in _PINNED


def _refuse_pinned(flags, paths=()):
    if not _pinned():
        return
    for key in [key for key in sorted(flags) if _is_pinned(key)] + [key for key in _RULES if isinstance(flags.get(key), str)]:
        raise SaltInvocationError("{} is not an argument here: `pin: True` in the configuration".format(key))
    for path in paths:
        if not path.startswith("salt://"):
            raise SaltInvocationError("{} is not a salt:// file: `pin: True` in the configuration".format(path))


def _check_defaults(defaults, binary):
    """Every default is a flag of brine: a mistake must not pass in silence."""
    takes = defaults and _features(binary).get("flags")
    known = {"prune", "no-prune"}.union(*takes.values()) if takes else None  # else of a build that does not list them
    for key in defaults:
        flag = str(key).replace("_", "-")
        why = _REFUSED.get(flag)
        if why is None and known and flag not in known:
            close = difflib.get_close_matches(flag, sorted(known | set(_SETTINGS) | {"inventory"}), 1)
            why = "it is not a setting" + (": did you mean {}?".format(close[0].replace("-", "_")) if close else "")
        if why:
            raise SaltInvocationError("brine: {}: in pillar, grains or configuration: {}".format(key, why))


def _flags(flags):
    """Arguments as flags. Which of them there are, brine says."""
    argv = []
    for key in sorted(flags):
        flag, value = key.replace("_", "-"), flags[key]
        if flag in _REFUSED:
            raise SaltInvocationError("{} is not an argument: {}".format(key, _REFUSED[flag]))
        if not re.match(r"^[a-z][a-z0-9-]*$", flag) or isinstance(value, dict):
            raise SaltInvocationError("{} cannot be a flag of brine".format(key))
        if flag == "prune":
            flag, value = "no-prune", not _true(value)
        argv += ["--{}={}".format(flag, _value(flag, one)) for one in (value if isinstance(value, (list, tuple)) else [value])]
    return argv


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


def _revision(revision):
    """The argument of `brine rollback`; without one it undoes the last apply, as with last-good."""
    return {None: ["last-good"], "previous": []}.get(revision, [str(revision)])


def _inventory(name, given, default):
    """
    The inventory of a call. A name that is given in a state or a call is never
    replaced by a default from pillar: it may name another inventory.
    """
    name, default = str(name), str(default or "")
    inventory = str(given or name)
    if not given and default:
        if name not in (default, default.rsplit("/", 1)[-1]):
            raise SaltInvocationError(
                "the name {!r} is not that of the default inventory {}: give `inventory: {}`, or the inventory that is "
                "meant (the default is `brine: {{inventory: …}}` in pillar, grains or configuration)".format(name, default, default)
            )
        inventory = default
    if not re.match(r"^([a-z0-9][a-z0-9-]*/)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", inventory):
        raise SaltInvocationError(  # the state's name, which may be a sentence
            "{!r} cannot be the name of an inventory: give `inventory: NAME` or `inventory: NAMESPACE/NAME` "
            "(lower case letters, digits, '-')".format(inventory)
        )
    return inventory


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


def _digest(path):
    with open(path, "rb") as file:
        return "sha256:" + hashlib.sha256(file.read()).hexdigest()


def _rules(values, key):
    """Rules that are no file go into one, which lasts as long as what is returned."""
    rules = values.get(key)
    if rules is None or isinstance(rules, str):
        return None
    if not rules:
        del values[key]
        return None
    file = tempfile.NamedTemporaryFile("w", prefix="brine-{}-".format(key), suffix=".yaml")
    json.dump(rules, file, indent=1)
    file.flush()
    values[key] = file.name
    return file


def _began(jid):
    """When this job first came here: it has to see every file that was there then."""
    if not jid or __context__.get("brine.job", (None,))[0] != jid:
        __context__["brine.job"] = (jid, time.time())
    return __context__["brine.job"][1]


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


def _binary(binary):
    path = shutil.which(str(binary or "brine"))
    if path is None:
        raise CommandExecutionError(
            "{} is not an executable file here: install brine, or say where it is with "
            "`brine: {{binary: PATH}}` in pillar or configuration".format(binary or "brine")
        )
    return path


def _features(path):
    """What `brine version -o json` prints, kept for later jobs, which are processes of their own; {} where that fails."""
    stat = os.stat(path)
    key = "{} {} {}".format(os.path.realpath(path), stat.st_mtime, stat.st_size)
    kept = _kept("cache", "version")
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        with open(kept) as file:
            document = json.load(file)
        if document.get("key") == key:
            return dict(document["version"])
    try:
        found = dict(json.loads(_communicate([path, "version", "--output=json"], dict(os.environ))["stdout"]))
    except (CommandExecutionError, ValueError, TypeError):
        return {}
    _keep(kept, {"key": key, "version": found})
    return found


def _kept(kind, name):
    """The path of what is kept between jobs."""
    folder = os.path.join(__opts__["cachedir"], "brine", kind)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, name.replace("/", ".") + ".json")


def _keep(path, document):
    with contextlib.suppress(OSError):
        handle, made = tempfile.mkstemp(dir=os.path.dirname(path))
        with os.fdopen(handle, "w") as file:
            json.dump(document, file)
        os.rename(made, path)


# What a run returns


def _state(command, name, kwargs, given=None, words=(), own=None):
    """A run whose end is a state's return; whatever goes wrong is in it."""
    try:
        run = _Run(command, kwargs, name, given, words, own, state=True)
        done = _stream(run, "salt-events")
    except _ERRORS as exc:
        return {"name": name, "result": False, "changes": {}, "comment": _cut(exc)}
    ret = done["last"].get("return") or _lost(done)
    if "--max-prune={} ".format(_MAX_PRUNE) in str(ret.get("comment")):
        ret["comment"] += "\nIf this is intended, give `max_prune: 80%`, or a number of objects."
    if command == "apply" and run.dry and ret["result"] is not False:
        ret["warnings"] = (ret.get("warnings") or []) + _not_ready(run)
    subs = ret.pop("sub_state_run", None)
    if run.settings["sub_states"] and subs:
        state_id = kwargs.get("__id__", name)
        ret["sub_state_run"] = [_sub_state(sub, state_id) for sub in subs if sub.get("changes") or not sub.get("result")]
        # These show the changes of each object: this only says how many there are.
        ret["changes"] = {"objects": "{} changed".format(len(ret["changes"]))} if ret["changes"] else {}
    return _tidy(ret, name)


def _tidy(ret, name):
    ret["name"] = name
    if not ret.get("warnings"):
        ret.pop("warnings", None)  # Salt's outputter counts the key, not what is in it
    return ret


def _not_ready(run):
    """A preview of nothing to change does not say that what is there works: the objects that are not ready now."""
    takes = (_features(run.binary).get("flags") or {}).get("status")
    if not takes:
        return []
    flags = [one for one in run.flags if one[2:].split("=")[0] in takes]
    try:
        objects = json.loads(_communicate([run.binary, "status", "--output=json"] + flags, run.env)["stdout"])["objects"]
    except _ERRORS + (ValueError, KeyError, TypeError):
        return []  # there is no inventory yet
    found = ["{}: {}".format(_object(o), o.get("reason") or o["ready"]) for o in objects if o["ready"] != "ready"]
    more = ["and {} more".format(len(found) - 20)] if len(found) > 20 else []
    return ["Not ready now: " + "; ".join(found[:20] + more)] if found else []


def _sub_state(sub, state_id):
    """
    Its id names this state: another one in the same run may have the same object,
    or the same inventory, which brine's own id begins with.
    """
    own = str(sub["low"].get("__id__")).split(": ", 1)[-1]
    return dict(sub, low=dict(sub["low"], __id__="{}: {}".format(state_id, own)))


def _result(command, name, kwargs, given=None, words=()):
    """A run whose end is brine's own result."""
    done = _stream(_Run(command, kwargs, name, given, words), "events")
    if done["exit"]:
        __context__["retcode"] = done["exit"]
    result = done["last"].get("result")
    if result is None:
        raise CommandExecutionError(_lost(done)["comment"])
    return result


def _document(run, fine=(0,)):
    """What a command prints about an inventory. Its exit code becomes the function's, errors in it are raised."""
    done = _communicate(run.argv("json"), run.env)
    if done["exit"] not in fine:
        __context__["retcode"] = done["exit"]
    try:
        document = json.loads(done["stdout"])
        why = "\n".join(document.get("errors") or [])
    except ValueError:
        document, why = None, done["stderr"].strip()
    if document is None or why:
        raise CommandExecutionError("brine {} failed (exit code {}): {}".format(run.command, done["exit"], why))
    return document


def _ask(run, output="json", fine=(0,)):
    """What a command prints. fine are the exit codes that are no error, None is all of them."""
    done = _communicate(run.argv(output), run.env, run.stdin)
    if fine is not None and done["exit"] not in fine or not done["stdout"]:
        raise CommandExecutionError(
            "brine {} failed (exit code {}): {}".format(run.command, done["exit"], done["stderr"].strip() or done["stdout"].strip())
        )
    return done["stdout"]


def _lost(done):
    """A state's return for a run that ended without a result."""
    ends = {"created": ("absent", "present"), "pruned": ("present", "absent")}
    changes = {}
    for name, action in done["acted"].items():
        if action in ("created", "configured", "recreated", "pruned", "detached"):
            changes[name] = dict(zip(("old", "new"), ends.get(action, ("present", action))))
    code, printed = done["exit"], "".join(done["stderr"]).strip() or "it printed nothing on stderr"
    how = "killed by signal {}".format(-code) if code < 0 else "exit code {}".format(code)
    comment = "brine ended without a result ({}): {}".format(how, printed)
    if changes or code < 0:
        comment += "\nObjects may have changed. Run it again to continue."
    if "unknown flag" in printed or "unknown command" in printed:
        comment += "\nThis is brine {}: it may be older than this state expects.".format(_features(done["binary"]).get("version"))
    return {"result": False, "changes": changes, "comment": comment}


def _drift_event(run, document, interval):
    """Send the drift, if it is another one than that of the last event."""
    fields = ("path", "old", "new", "manager", "time")
    objects = [
        {
            "object": _object(o), "action": o["action"], "reason": o.get("reason", ""),
            "fields": [{key: str(c[key])[:200] for key in fields if c.get(key) is not None} for c in (o.get("changes") or [])[:20]],
        }
        for o in document["objects"] if o["action"] != "unchanged"
    ]
    now = hashlib.sha256(json.dumps(objects, sort_keys=True).encode("utf-8")).hexdigest() if objects else ""
    kept, before = _kept("drift", run.inventory), {}
    with contextlib.suppress(OSError, ValueError):
        with open(kept) as file:
            before = json.load(file)
    if now == before.get("digest", "") or time.time() - before.get("sent", 0) < interval:
        return
    data = {"drift": bool(objects), "wanted": document.get("wanted"), "count": len(objects), "objects": objects[:50]}
    with contextlib.closing(_Bus(run)) as bus:
        bus.put("drift", data)
    if bus.sent:
        _keep(kept, {"digest": now, "sent": time.time()})


# The bundle


def _bundle(given, run):
    """
    The bundle as bytes for standard input. A comment before each part names the
    file, and the number of its first line, for brine's messages.
    """
    if given is None:
        run.without_effect(_RENDERING + ("template",), "there is no bundle")
        return None
    source, bundle, sls = given
    named = [key for key, value in (("source", source), ("bundle", bundle), ("sls", sls)) if value]
    if len(named) != 1:
        raise SaltInvocationError("give one of source, bundle and sls; this has {}".format(" and ".join(named) or "none"))
    run.flags.append("--filename=-")
    saltenv = run.settings["saltenv"] or __opts__.get("saltenv") or "base"
    if not sls:
        run.without_effect(("pillar", "allow_empty_sls"), "only sls takes it")
    if not source:
        run.without_effect(("defaults", "template"), "only source takes it")
    if sls:
        parts = [("compiled SLS", _show(sls, saltenv, run))]
    elif not source:
        several = isinstance(bundle, (list, tuple)) and all(isinstance(one, dict) and "apiVersion" in one for one in bundle)
        objects = bundle if several else [bundle]
        parts = [("bundle" if len(objects) == 1 else "bundle[{}]".format(i), one) for i, one in enumerate(objects)]
    else:
        sources = [str(one) for one in (source if isinstance(source, (list, tuple)) else [source])]
        _refuse_pinned({}, sources)
        parts = []
        for one in sources:
            files, env, optional = _files(one, saltenv, run)
            parts += [part for part in (_render(path, env, run.settings, optional) for path in files) if part]
    return "\n---\n".join(_part(*part) for part in parts).encode("utf-8")


def _part(name, content):
    if isinstance(content, bytes):
        content = content.decode("utf-8")
    line = 1
    if not isinstance(content, str):  # nobody has seen its lines
        line, content = 0, json.dumps(content, default=str, ensure_ascii=False)
    return "# brine.dev/source: {} {}\n{}".format(line, name, content)


def _files(source, saltenv, run):
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
        if not _renewed(saltenv, run):
            _outlast(run)
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


def _renewed(saltenv, run):
    """
    Salt keeps a list of the files for fileserver_list_cache_time (20 s). What was added
    since is not in it, and its objects would be pruned. Has it made anew once in a run,
    and says whether it is.
    """
    if saltenv not in run.renewed:
        __salt__["cp.list_master"](saltenv=saltenv, prefix="//")  # one that somebody is making is ready then
        run.renewed[saltenv] = _clear(saltenv)
    return run.renewed[saltenv]


def _clear(saltenv):
    if __opts__.get("file_client") == "local":  # its files are read by this process
        import salt.fileserver  # pylint: disable=import-outside-toplevel

        salt.fileserver.Fileserver(dict(__opts__)).clear_file_list_cache({"saltenv": [saltenv]})
        return True
    if "publish.runner" not in __salt__:
        return False
    # The master answers nothing to a minion that peer_run does not name.
    answer = __salt__["publish.runner"]("fileserver.clear_file_list_cache", [{"saltenv": [saltenv], "__kwarg__": True}])
    return isinstance(answer, dict) and any(isinstance(envs, list) and saltenv in envs for envs in answer.values())


def _outlast(run):
    """Wait until no list is older than this job."""
    seconds = run.began + float(__opts__.get("fileserver_list_cache_time", 20)) + 1 - time.time()
    if seconds > 0:
        log.warning(
            "brine: waiting %.0f s: the master's list of files may be older than this job. It is made anew at once where "
            "peer_run in the master's configuration allows this minion fileserver.clear_file_list_cache", seconds)
        time.sleep(seconds)


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
        with _unlogged():
            try:
                text = __salt__["slsutil.renderer"](path=path, default_renderer=template, saltenv=saltenv, **(settings["defaults"] or {}))
            except Exception as exc:  # pylint: disable=broad-except
                raise CommandExecutionError("{} could not be rendered: {}".format(path, _cut(exc))) from None
    if not text or isinstance(text, str) and not text.strip():
        if optional:
            log.info("brine: %s renders to nothing", path)
            return None
        raise CommandExecutionError("{} is not there (saltenv {}), or renders to nothing".format(path, saltenv))
    return name, text


def _show(sls, saltenv, run):
    """
    Low data: includes, extends and requisites resolved by Salt itself. What Salt
    only logs must not pass: objects of an SLS that it left out would be pruned.
    """
    settings, renewed = run.settings, _renewed(saltenv, run)
    kwargs = {"saltenv": saltenv, "concurrent": True}  # a state run is under way: this one
    if settings["pillar"]:
        kwargs["pillar"] = settings["pillar"]
    while True:
        with _unlogged() as errors, _compiled() as (rendered, content, files):
            low = __salt__["state.show_low_sls"](sls, **kwargs)
        named = ["- {}".format(one) for one in (sls if isinstance(sls, (list, tuple)) else str(sls).split(","))]
        if renewed or not any(_PATTERN.search(text) for text in named + [found["text"] for found in files.values()]):
            break
        _outlast(run)
        renewed = True
    files = {one: found["source"] for one, found in files.items()}
    if not isinstance(low, list) or not low or any(not isinstance(chunk, dict) for chunk in low):
        why = "; ".join(_cut(e) for e in (low if isinstance(low, list) else [low])) or "no states"
        raise CommandExecutionError("Salt did not render {}: {}".format(sls, why))
    if errors:
        raise CommandExecutionError("Salt logged errors while it compiled {}, so that states may be missing: {}".format(sls, "; ".join(errors)))
    allowed = settings["allow_empty_sls"] or []
    empty = ", ".join(sorted(one for one in rendered - content if allowed is not True and one not in allowed))
    if empty:
        raise CommandExecutionError("{0} gave no state: its objects would be pruned. If that is intended, give `allow_empty_sls: [{0}]`".format(empty))
    return [dict(chunk, __file__=files.get(chunk.get("__sls__")) or "") for chunk in low] if files else low


@contextlib.contextmanager
def _unlogged():
    """
    Salt logs all that it renders, Secrets too: meanwhile this thread logs nothing, and
    afterwards the warnings and errors, without rendered text. Gives the errors.
    """
    thread, logger, errors, later = threading.current_thread(), logging.getLogger("salt"), [], []

    class Handler(logging.Handler):
        def emit(self, record):
            if threading.current_thread() is not thread:
                logging.getLogger().callHandlers(record)
            elif record.levelno >= logging.WARNING:
                later.append((record.levelno, _cut(record.getMessage())))
                if record.levelno >= logging.ERROR and not record.name.startswith("salt.loader"):
                    errors.append(later[-1][1])

    handler, before = Handler(), (logger.level, logger.propagate)
    if logger.getEffectiveLevel() > logging.ERROR:
        logger.setLevel(logging.ERROR)  # --log-level=quiet
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield errors
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
        for level, message in later:
            log.log(level, "%s", message)


@contextlib.contextmanager
def _compiled():
    """The SLS that Salt compiles while this lasts, those of them that have content (states, or only an include), and their files."""
    thread, rendered, content, files = threading.current_thread(), set(), set(), {}
    notes = {
        "render_state": lambda _, sls, *args, **kwargs: rendered.add(sls),
        "_handle_extend": lambda _, state, sls, *args, **kwargs: content.add(sls),
        "get_state": lambda found, sls, *args, **kwargs: files.update({sls: {"source": found.get("source"), "text": _text(found.get("dest"))}}),
    }

    def noting(note, function):
        @functools.wraps(function)
        def call(self, *args, **kwargs):
            found = function(self, *args, **kwargs)
            if threading.current_thread() is thread:
                note(found, *args, **kwargs)
            return found

        return call

    compiler, client = _compiler()
    before = []
    try:
        if hasattr(compiler, "render_state") and hasattr(compiler, "_handle_extend"):
            for of, name in ((compiler, "render_state"), (compiler, "_handle_extend"), (client, "get_state")):
                before.append((of, name, getattr(of, name)))
                setattr(of, name, noting(notes[name], before[-1][2]))
        yield rendered, content, files
    finally:
        for one in before:
            setattr(*one)


def _text(path):
    with contextlib.suppress(OSError, TypeError, ValueError), open(path, encoding="utf-8") as file:
        return file.read()
    return ""


def _compiler():
    """The classes of Salt that render SLS and read their files; None without a Salt, in tests."""
    try:
        import salt.fileclient  # pylint: disable=import-outside-toplevel
        import salt.state  # pylint: disable=import-outside-toplevel

        return salt.state.BaseHighState, salt.fileclient.Client
    except ImportError:
        return None, None


def _cut(error):
    """
    An error of rendering without what may hold Secrets: the rendered text, which Salt puts
    behind a line of dashes, the words of an exception that a template's own call raised,
    what YAML quotes, and the body of a server's answer.
    """
    text = str(error)
    head = text.split("\n---\n")[0]
    shown = _UNTRUSTED.sub(lambda found: next(filter(None, found.groups())) + "(left out: it may hold Secrets)", head)
    return shown if head == text else shown + " (the text around it is left out)"


# Running


def _start(argv, env, **how):
    log.debug("running %s", argv)
    try:
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, **dict(_child(), **how))
    except OSError as exc:
        raise CommandExecutionError("{} cannot be run: {}".format(argv[0], exc))


def _communicate(argv, env, stdin=None):
    process = _start(argv, env, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
    with _forwarding(process):
        out, err = process.communicate(stdin)
    return {"exit": process.returncode, "stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace")}


def _stream(run, output):
    """
    Run brine, fire its events as they come, and return its last line, its exit
    code, the end of its standard error, and the changes that its events report.
    """
    done = {"binary": run.binary, "exit": None, "last": {}, "stderr": collections.deque(maxlen=50), "acted": {}}
    process = _start(run.argv(output), run.env, stdin=subprocess.PIPE)
    helpers = [
        threading.Thread(target=_feed, args=(process.stdin, run.stdin), daemon=True),
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
        if received and not _stopped(run):
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
    if run is None or run.direct:
        return run is not None
    if not run.in_state or not run.jid or "state.soft_kill" not in __salt__:
        return False
    try:
        __salt__["state.soft_kill"](run.jid)
    except Exception as exc:  # pylint: disable=broad-except
        log.debug("brine: the state run cannot be told to end: %s", exc)
        return False
    return True


# Events


def _object(o):
    """Kind.group/namespace/name, of what is not empty."""
    kind = ".".join(part for part in (o.get("kind"), o.get("group")) if part)
    return "/".join(part for part in (kind, o.get("namespace"), o.get("name")) if part)


class _Bus(object):
    """
    Fires events from a thread of its own: a slow master must not hold up brine,
    and one that is not there is given up on.
    """

    def __init__(self, run):
        self.run, self.failures, self.sent = run, 0, 0
        self.second, self.count, self.left_out = 0, 0, collections.Counter()
        self.queue = queue.Queue()
        self.send = _sender() if run.settings["events"] else None
        self.thread = None
        if self.send is not None:
            self.thread = _thread(self._work)

    def fire(self, event):
        kind = event.get("type")
        if self.thread is None or kind in _QUIET + (None,):
            return
        what = kind
        if event.get("object"):
            if event.get("action") == "unchanged" and kind in ("acted", "ready"):
                return
            what = _object(event["object"])
            if event.get("action") != "failed" and not event.get("error") and self._too_many():
                self.left_out[event.get("action") if kind == "acted" else kind] += 1
                return
        data = {key: value for key, value in event.items() if key not in ("result", "return")}
        for key in ("result", "return"):
            end = event.get(key)
            if isinstance(end, dict):
                data.update({k: end[k] for k in ("exitCode", "summary", "comment", "revision") if k in end})
                if key == "return":
                    data["success"] = end.get("result")
        if kind == "finished" and self.left_out:
            self.put("left-out", {"type": "left-out", "events": dict(self.left_out), "event_rate": self.run.settings["event_rate"]})
        self.put(what, data)

    def _too_many(self):
        """More events of objects in this second than event_rate."""
        second, limit = int(time.time()), float(self.run.settings["event_rate"] or 0)
        if second != self.second:
            self.second, self.count = second, 0
        self.count += 1
        return 0 < limit < self.count

    def put(self, what, data):
        if self.thread is None:
            return
        data["inventory"] = self.run.inventory
        if self.run.jid:
            data["jid"] = self.run.jid
        if self.run.dry:
            data["dryRun"] = True
        tag = "brine/preview/{}/{}" if self.run.dry else "brine/{}/{}"
        self.queue.put((tag.format(self.run.inventory.replace("/", "."), what), data))

    def close(self):
        if self.thread is None:
            return
        self.queue.put(None)
        self.thread.join(_FLUSH_SECONDS)
        if self.thread.is_alive():
            log.warning("brine: %s events were not sent in time", self.queue.qsize())

    def _work(self):
        for tag, data in iter(self.queue.get, None):
            if self.failures >= 3:
                continue
            started = time.time()
            try:
                sent = self.send(tag, data) is not False
            except Exception as exc:  # pylint: disable=broad-except
                log.debug("brine: event %s was not sent: %s", tag, exc)
                sent = False
            self.sent += sent
            self.failures = 0 if sent else self.failures + 1
            if not sent and time.time() - started > 2:
                self.failures = 3  # every one of them would take that long


def _thread(target):
    """A thread in which Salt's dunders are those of this one: Salt keeps them in the context."""
    if contextvars is not None:
        target = functools.partial(contextvars.copy_context().run, target)
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


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
