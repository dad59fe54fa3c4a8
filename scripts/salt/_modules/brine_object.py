"""
Single Kubernetes objects that are in no bundle: read, write, delete, wait for them.

The functions return what those of ``metalk8s_kubernetes`` return, with the same
arguments. Others (``patched``, ``present``, ``absent_object``, ``labels_exist``,
``waited``) return what a state returns. ``kubeconfig``, ``context`` and the other flags
about the connection are arguments of each, with defaults as for the module brine, and so is
``namespace``: without it, that of pillar, of the kubeconfig's context, or ``default``.
"""

import datetime
import hashlib
import importlib.util
import json
import os
import re
import time

from salt.exceptions import CommandExecutionError, SaltInvocationError

__virtualname__ = "brine_object"

# _brine_parts.py and what it reads are files that Salt's loader passes over.
_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_brine_parts.py")
if not os.path.exists(_path):
    raise ImportError("{} is missing: brine_object.py needs all files of its folder".format(_path))
_spec = importlib.util.spec_from_file_location(__name__ + "._brine_parts", _path)
_parts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_parts)
_brine = _parts.Parts(globals())

_UNREACHABLE = 6  # brine's exit code


def __virtual__():
    return __virtualname__


def get(name=None, kind=None, apiVersion=None, namespace=None, show_secrets=False, manifest=None, **kwargs):
    """
    One object as it is now; None if there is none. The same as
    metalk8s_kubernetes.get_object, but values of Secrets are masked unless
    ``show_secrets`` is True.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.get kind=Deployment apiVersion=apps/v1 name=coredns namespace=kube-system
    """
    found = _one(name, kind, apiVersion, namespace, manifest, dict(kwargs, show_secrets=show_secrets or None))
    return found["objects"][0] if found["objects"] else None


def exists(kind, apiVersion, name, namespace=None, **kwargs):
    """
    Whether an object is there, as metalk8s_kubernetes.object_exists. What cannot be
    read is an error, never False.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.exists kind=Node apiVersion=v1 name=bootstrap
    """
    return get(name, kind, apiVersion, namespace, **kwargs) is not None


def list_objects(
    kind, apiVersion, namespace=None, all_namespaces=False, field_selector=None, label_selector=None, show_secrets=False, **kwargs
):
    """
    The objects of a kind, as metalk8s_kubernetes.list_objects. Values of Secrets are
    masked unless ``show_secrets`` is True.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.list_objects kind=Pod apiVersion=v1 all_namespaces=True field_selector=spec.nodeName=bootstrap
    """
    return _found(kind, None, dict(
        kwargs, api_version=apiVersion, all_namespaces=all_namespaces or None, namespace=None if all_namespaces else namespace,
        selector=label_selector, field_selector=field_selector, show_secrets=show_secrets or None,
    ))["objects"]


def ready(name=None, kind=None, apiVersion=None, namespace=None, manifest=None, **kwargs):
    """
    True if an object is ready, as brine waits for it, of every kind. Otherwise an
    error that says why not, as metalk8s_kubernetes.check_object_ready.
    ``ready_when`` is a CEL expression that decides instead.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.ready kind=Deployment apiVersion=apps/v1 name=coredns namespace=kube-system
    """
    found = _one(name, kind, apiVersion, namespace, manifest, kwargs)
    if not found["objects"]:
        raise CommandExecutionError("Unable to find the object")
    state = found["readiness"][0]
    if state["state"] != "ready":
        raise CommandExecutionError("Object is not yet Ready: {}".format(state.get("reason") or state["state"]))
    return True


def digest(path=None, checksum="sha256", name=None, kind=None, apiVersion=None, namespace=None, manifest=None, **kwargs):
    """
    The digest of an object, or of what is at a path of it (keys separated by ``:``),
    as metalk8s_kubernetes.get_object_digest. Secrets are digested with their values.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.digest kind=ConfigMap apiVersion=v1 name=settings path=data:config.yaml
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

        salt-call brine_object.create_object name=salt://settings.yaml
    """
    manifest = manifest or _manifest(name, kwargs)
    return _written(present(name, manifest, **kwargs), _which(name, manifest=manifest), kwargs)


def update_object(name=None, kind=None, apiVersion=None, namespace=None, patch=None, manifest=None, **kwargs):
    """
    Set fields of an existing object, and return it, as
    metalk8s_kubernetes.update_object. See brine_object.patched.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.update_object name=node-1 kind=Node apiVersion=v1 patch='{metadata: {labels: {a: b}}}'
    """
    if not manifest and not kind:
        manifest = _manifest(name, kwargs)
    which = _which(name, kind, apiVersion, namespace, manifest or patch)
    return _written(patched(name, kind, apiVersion, namespace, patch, manifest, **kwargs), which, kwargs)


def delete_object(name=None, kind=None, apiVersion=None, namespace=None, manifest=None, **kwargs):
    """
    Delete an object, and return it as it was; None if there was none, as
    metalk8s_kubernetes.delete_object.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.delete_object name=old kind=Service apiVersion=v1 namespace=kube-system
    """
    if not manifest and not kind:
        manifest = _manifest(name, kwargs)
    before = get(*_which(name, kind, apiVersion, namespace, manifest), **_connection(kwargs))
    if before is not None:
        _written(absent_object(name, kind, apiVersion, namespace, manifest, **kwargs))
    return before


def rollout_restart(name, kind="Deployment", apiVersion="apps/v1", namespace=None, **kwargs):
    """
    Restart the pods of a Deployment, DaemonSet or StatefulSet, and return it, as
    metalk8s_kubernetes.rollout_restart.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.rollout_restart name=coredns namespace=kube-system
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
    name, kind=None, apiVersion=None, namespace=None, label_selector=None, condition=None, ready_when=None, absent=False,
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
        In seconds, or like ``20m``; ``interval`` is the time between two looks. A server that does
        not answer is asked again until then.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.waited coredns kind=Deployment apiVersion=apps/v1 namespace=kube-system timeout=120
    """
    test = kwargs.pop("test", None)
    test = __opts__.get("test", False) if test is None else test
    what = condition or ready_when
    if condition:
        kind_of, _, value = condition.partition("=")
        ready_when = "self.status.conditions.exists(c, c.type == {} && c.status == {})".format(json.dumps(kind_of), json.dumps(value or "True"))
    flags = dict(kwargs, api_version=apiVersion, namespace=namespace, selector=label_selector, ready_when=ready_when)
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    absent = _brine.call.is_true(absent)
    try:
        timeout, interval = _brine.call.read_seconds("timeout", timeout), _brine.call.read_seconds("interval", interval)
        if not kind:
            raise SaltInvocationError("give kind and apiVersion of what is waited for")
    except _brine.returning.ERRORS as exc:
        return _brine.returning.failed(name, exc)
    until = time.time() + timeout
    while True:
        try:
            missing = _waits(_found(kind, None if label_selector else name, dict(flags), noted=False), condition, absent)
        except _brine.returning.ERRORS as exc:
            if test or getattr(exc, "exit", None) != _UNREACHABLE:
                return dict(ret, result=False, comment=str(exc))
            missing = str(exc)  # a server that restarts comes back
        if not missing:
            return dict(ret, comment="{} {}".format(name, "is absent" if absent else "is ready" if not what else "has " + what))
        if test:
            return dict(ret, result=None, comment="Would wait: " + missing)
        if time.time() >= until:
            return dict(ret, result=False, comment="Not in {:g} seconds: {}".format(timeout, missing))
        time.sleep(min(interval, max(until - time.time(), 0)))


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

        salt-call brine_object.patched node-1 kind=Node apiVersion=v1 patch='{metadata: {labels: {a: b}}}'
    """
    kwargs = _brine.call.take_state(kwargs)
    state_id = str(kwargs.get("__id__") or name)
    kwargs.setdefault("field_manager", "brine-patch-" + re.sub(r"[^A-Za-z0-9._-]+", "-", state_id)[:100])
    if _brine.call.is_true(absent):
        kwargs["remove"] = True
    elif patch is not None and not (isinstance(patch, dict) and patch) or not (patch or manifest) and kind:
        return {"name": name, "result": False, "changes": {}, "comment": "give patch, a mapping of fields, or manifest"}
    return _object_state(name, kind, apiVersion, namespace, manifest or patch or ({} if kind else None), kwargs)


def labels_exist(name, labels, kind=None, apiVersion=None, namespace=None, **kwargs):
    """
    Add the labels that an object does not have. Those that it has keep their values.
    Returns what a state returns, as metalk8s_kubernetes.labels_exist.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.labels_exist node-1 kind=Node apiVersion=v1 labels='{a: b}'
    """
    kwargs = _brine.call.take_state(kwargs)
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    try:
        _brine.call.check_type("labels", labels, (dict,), None, "a mapping")
        found = (_one(name, kind, apiVersion, namespace, None, _connection(kwargs), noted=False)["objects"] or [None])[0]
    except _brine.returning.ERRORS as exc:
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

        salt-call brine_object.present a manifest='{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}'
    """
    if manifest is not None and not (isinstance(manifest, dict) and manifest):
        return {"name": name, "result": False, "changes": {}, "comment": "give manifest, the object as a mapping"}
    kwargs = _brine.call.take_state(kwargs)
    kwargs.setdefault("field_manager", "brine-present")
    return _object_state(name, None, None, None, manifest, dict(kwargs, create=True))


def absent_object(name, kind=None, apiVersion=None, namespace=None, manifest=None, wait=None, **kwargs):
    """
    Delete one object that is in no inventory, and return what a state returns.

    wait
        Wait until it is gone: True, a number of seconds, or like ``5m``.

    CLI Example:

    .. code-block:: bash

        salt-call brine_object.absent_object old kind=Service apiVersion=v1 namespace=kube-system
    """
    kwargs = _brine.call.take_state(kwargs)
    try:
        seconds = {"true": 60, "false": 0, "none": 0}.get(str(wait).lower())
        if seconds is None:
            seconds = _brine.call.read_seconds("wait", wait)
        if manifest is None and not kind:
            manifest = _manifest(name, kwargs)
    except _brine.returning.ERRORS as exc:
        return _brine.returning.failed(name, exc)
    ret = _object_state(name, kind, apiVersion, namespace, manifest or {}, dict(kwargs, delete=True))
    if seconds and ret["result"] and ret["changes"]:
        left = waited(*_which(name, kind, apiVersion, namespace, manifest), absent=True, timeout=seconds, **_connection(kwargs))
        if left["result"] is False:
            ret.update(result=False, comment=left["comment"])
    return ret


def _object_state(name, kind, apiVersion, namespace, manifest, kwargs):
    """What `brine patch` does with one object, as a state's return. Without a manifest, name is a file."""
    try:
        manifest = _manifest(name, kwargs) if manifest is None else manifest
        _brine.call.check_type("manifest", manifest, (dict,), None, "a mapping")
        metadata = dict({"name": str(name)}, **(manifest.get("metadata") or {}))
        if namespace:
            metadata["namespace"] = namespace
        body = dict(manifest, apiVersion=apiVersion or manifest.get("apiVersion"), kind=kind or manifest.get("kind"), metadata=metadata)
        if not body["apiVersion"] or not body["kind"]:
            raise SaltInvocationError("give kind and apiVersion, or a manifest that has them")
        ret = json.loads(_brine.returning.ask(_brine.call.Run("patch", kwargs, given=(None, body, None)), "salt", fine=None, noted=False))
        ret.pop("sub_state_run", None)
        return _brine.returning.tidy_return(ret, name)
    except Exception as exc:  # pylint: disable=broad-except
        return _brine.returning.failed(name, exc)


def _manifest(name, kwargs):
    """The manifest in a file; takes the arguments about rendering out of kwargs."""
    found = {key: kwargs.pop(key, None) for key in ("saltenv", "defaults", "template")}
    _brine.call.refuse_pinned({"template": found["template"]} if found["template"] else {}, [str(name)])
    with _brine.rendering.without_logs():
        try:
            manifest = __salt__["slsutil.renderer"](
                path=name, default_renderer=(found["template"] or "jinja") + "|yaml", saltenv=found["saltenv"] or "base", **(found["defaults"] or {})
            )
        except Exception as exc:  # pylint: disable=broad-except
            raise CommandExecutionError("{} could not be rendered: {}".format(name, _brine.rendering.cut_secrets(exc))) from None
    if not isinstance(manifest, dict) or not manifest:
        raise SaltInvocationError("{} is no file with a manifest: give manifest, the object as a mapping".format(name))
    return manifest


def _which(name, kind=None, apiVersion=None, namespace=None, manifest=None):
    """Name, kind, apiVersion and namespace of the object that a call is about, as `brine patch` gets them."""
    manifest = manifest if isinstance(manifest, dict) else {}
    metadata = manifest.get("metadata") or {}
    return metadata.get("name", name), kind or manifest.get("kind"), apiVersion or manifest.get("apiVersion"), namespace or metadata.get("namespace")


def _written(ret, which=None, kwargs=()):
    """The object after a state that changed it."""
    if ret["result"] is False:
        raise CommandExecutionError(ret["comment"])
    if which is None:
        return None
    name, kind, api_version, namespace = which
    return get(name, kind, api_version, namespace or dict(kwargs).get("namespace"), **_connection(kwargs))


def _connection(kwargs):
    return {key: value for key, value in _brine.call.spell(kwargs).items() if key in _brine.call.CONNECTION}


def _one(name, kind, apiVersion, namespace, manifest, kwargs, noted=True):
    name, kind, apiVersion, namespace = _which(name, kind, apiVersion, namespace, manifest)
    if not (name and kind and apiVersion):
        raise SaltInvocationError("give manifest, or name and kind and apiVersion")
    return _found(kind, name, dict(kwargs, api_version=apiVersion, namespace=namespace), noted)


def _found(kind, name, kwargs, noted=True):
    """The document of `brine get`."""
    if name is not None:
        kwargs["ignore_not_found"] = True
    return json.loads(_brine.returning.ask(_brine.call.Run("get", kwargs, words=[str(kind)] + ([] if name is None else [str(name)])), noted=noted))


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
