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
import importlib.util
import inspect
import json
import os

from salt.exceptions import CommandExecutionError, SaltInvocationError

__virtualname__ = "brine"

# _brine_parts.py and what it reads are files that Salt's loader passes over.
_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_brine_parts.py")
if not os.path.exists(_path):
    raise ImportError("{} is missing: brine.py needs all files of its folder".format(_path))
_spec = importlib.util.spec_from_file_location(__name__ + "._brine_parts", _path)
_parts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_parts)
_brine = _parts.Parts(globals())


_ACTIONS = ("created", "configured", "recreated", "pruned", "detached", "unchanged", "skipped", "failed")


def __virtual__():
    return __virtualname__


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
    return _brine.returning.run_for_state("apply", name, kwargs, (source, bundle, sls))


def absent(name, **kwargs):
    """
    Delete all objects of an inventory, and the inventory; return what a state
    returns.

    CLI Example:

    .. code-block:: bash

        salt-call brine.absent platform
    """
    ret = _brine.returning.run_for_state("destroy", name, kwargs)
    if ret["result"] and not ret["changes"] and ret.get("warnings"):
        ret["comment"] = "; ".join(ret.pop("warnings"))  # there is no such inventory, as it should be
    return ret


def rolled_back(name, revision=None, only_of=None, **kwargs):
    """
    The same as brine.rollback, and return what a state returns.

    only_of
        Ids of jobs: if the last revision is not of one of them, or of this job, nothing is undone.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rolled_back platform test=True
    """
    if only_of is not None:
        try:
            last, jid = _brine.returning.last_revision(name, kwargs)
        except _brine.returning.ERRORS as exc:
            return {"name": name, "result": False, "changes": {}, "comment": "Nothing was undone: whether there is something to undo is not known: {}".format(exc)}
        ids = {str(one) for one in list(only_of) + [jid] if one}
        if last is not None and not ids:
            return {"name": name, "result": False, "changes": {}, "comment": "Nothing was undone: this run has no job id, so its revisions are not known: see brine.history, and give a revision"}
        if last is None or str(last.get("jid")) not in ids:
            which = "there is no revision" if last is None else "the last revision, {}, is of {}".format(
                last["number"], "the job {}".format(last["jid"]) if last.get("jid") else "no job of Salt")
            return {"name": name, "result": True, "changes": {}, "comment": "Nothing to undo: this run applied no revision; {}".format(which)}
    return _brine.returning.run_for_state("rollback", name, kwargs, words=_brine.call.revision_words(revision))


def keep_return():
    """
    Called by the states where one runs in a process of its own (``parallel: True``): the
    process of the job survives saltutil.term_job, to return what its states did, as brine
    itself does. No further state begins.
    """
    _brine.running.keep_return()


def apply(name, source=None, bundle=None, sls=None, **kwargs):
    """
    Make the cluster match a bundle and return brine's result, the document of
    ``brine apply -o json``. Arguments are those of brine.applied.

    CLI Example:

    .. code-block:: bash

        salt-call brine.apply platform source=salt://platform.yaml
    """
    return _brine.returning.run_for_result("apply", name, kwargs, (source, bundle, sls))


def preview(name, source=None, bundle=None, sls=None, **kwargs):
    """
    What brine.apply would do, as the server itself answers. Nothing changes.

    CLI Example:

    .. code-block:: bash

        salt-call brine.preview platform source=salt://platform.yaml
    """
    return _brine.returning.run_for_result("apply", name, dict(kwargs, test=True), (source, bundle, sls))


def plan(name, source=None, bundle=None, sls=None, path=None, **kwargs):
    """
    Preview what brine.applied would do, and save it as a plan. ``brine.applied`` with the
    same bundle and ``plan: PATH`` carries out exactly that. A plan that is there and still
    holds stays as it is. Returns where the plan is and its digest (for ``plan_digest``),
    whether it was ``kept``, ``was``, the digest of an earlier one, when it ``expires``, the
    inventory, the number of objects by action, and changes, comment and warnings as of
    brine.applied.

    path
        Of the plan. ``secret`` is a Secret beside the inventory, which every machine with
        this cluster can take (``plan: secret``). The default is
        ``brine/plans/INVENTORY.json`` below Salt's cachedir, on this machine; of a call that
        names the cluster (``kubeconfig``, ``context``, …) it has a file of its own.
    plan_lifetime
        How long it may be carried out: seconds, or like ``12h``. The default is a day for a
        Secret, and no limit for a file.

    CLI Example:

    .. code-block:: bash

        salt-call brine.plan platform source=salt://platform/ path=secret
    """
    made, ret = _plan(name, kwargs, (source, bundle, sls), path)
    return dict(made, changes=ret["changes"], comment=ret["comment"], warnings=ret.get("warnings", []))


def planned(name, source=None, bundle=None, sls=None, path="secret", **kwargs):
    """
    The same as brine.plan, and return what a state returns. A plan that is there and still
    holds is no change. The return also has ``plan``, for the report that people approve.

    CLI Example:

    .. code-block:: bash

        salt-call brine.planned platform source=salt://platform/
    """
    ret = {"name": name, "result": True, "changes": {}}
    test = kwargs.get("test")
    try:
        if __opts__.get("test") if test is None else test:  # saves no plan, which would have a lifetime
            preview_of = dict(_brine.call.spell(kwargs), test=True, plan_lifetime=None)
            found = _brine.returning.run_for_state("apply", name, preview_of, (source, bundle, sls))
            return dict(ret, result=found["result"] and None, comment="Would save a plan, unless there is one that still holds. " + found["comment"])
        made, found = _plan(name, kwargs, (source, bundle, sls), path)
    except _brine.returning.ERRORS as exc:
        return dict(ret, result=False, comment=str(exc))
    if found.get("warnings"):
        ret["warnings"] = found["warnings"]
    if not made.get("kept"):
        ret["changes"] = {"plan": {"old": made.get("was") or "absent", "new": made["digest"]}}
    comment = "{}: {}".format("The plan still holds" if made.get("kept") else "Saved a plan", made["digest"])
    if made.get("expires"):
        comment += ", to be carried out until " + made["expires"]
    return dict(ret, comment="{}\n{}".format(found["comment"], comment), plan=dict(made, changes=found["changes"]))


def _plan(name, kwargs, given, path):
    """Make a plan: what is known about it, and the return of the preview."""
    kwargs = _brine.call.take_state(kwargs)
    inventory = _brine.call.name_inventory(name, kwargs.get("inventory"), _brine.call.read_defaults().get("inventory"))
    if path is None:
        path = _brine.call.place_document("plans", _brine.call.name_kept(inventory, _brine.call.flags_of_cluster(kwargs)))
    elif path != "secret" and _brine.call.has_pin():
        raise SaltInvocationError("path is not an argument here, except secret: `pin: True` in the configuration")
    before = os.stat(path).st_mtime_ns if path != "secret" and os.path.exists(path) else None
    ret = _brine.returning.run_for_state("apply", name, dict(kwargs, test=True), given, own={"plan_out": path})
    made = ret.pop("plan", None)
    if ret["result"] is not False and made is None and path != "secret" and os.path.exists(path) and os.stat(path).st_mtime_ns != before:
        made = {"digest": _brine.call.digest_file(path)}  # an older binary does not say what it saved
    if ret["result"] is False or made is None:
        raise CommandExecutionError("no plan was written: " + "\n".join([ret["comment"]] + ret.get("warnings", [])))
    known = {key: made[key] for key in ("digest", "created", "expires", "kept", "was") if key in made}
    counts = ret.pop("summary", None)
    if counts is None:
        with open(path, encoding="utf-8") as file:
            counts = collections.Counter(step["action"] for step in json.load(file)["steps"])
    return dict(known, plan=path, inventory=inventory, summary={key: counts[key] for key in _ACTIONS if counts.get(key)}), ret


def destroy(name, **kwargs):
    """
    Delete all objects of an inventory, and return brine's result.

    CLI Example:

    .. code-block:: bash

        salt-call brine.destroy platform
    """
    return _brine.returning.run_for_result("destroy", name, kwargs)


def rollback(name, revision=None, **kwargs):
    """
    Undo the last apply of an inventory, or apply an earlier revision, and return brine's result.

    revision
        A number of brine.history. Without it, or with ``previous``, the last apply
        is undone: the last good revision before that apply with another content is
        applied. A failed, partial or automatically rolled-back apply counts as the last
        one. Repeated, it is the same revision.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rollback platform revision=4
    """
    return _brine.returning.run_for_result("rollback", name, kwargs, words=_brine.call.revision_words(revision))


def status(name, **kwargs):
    """
    The objects of an inventory as they are now.

    CLI Example:

    .. code-block:: bash

        salt-call brine.status platform
    """
    return _brine.returning.read_document(_brine.call.Run("status", kwargs, name))


def history(name, **kwargs):
    """
    The revisions of an inventory.

    CLI Example:

    .. code-block:: bash

        salt-call brine.history platform
    """
    return _brine.returning.read_document(_brine.call.Run("history", kwargs, name))


def drift(name, event=False, event_interval=300, **kwargs):
    """
    What others changed on the cluster since the last apply of an inventory,
    field by field: the document of ``brine drift -o json``. Nothing is written.

    event
        True sends an event ``brine/<inventory>/drift`` if the drift is not the one of
        the last event: another field or value, or none any more.
    event_interval
        The least number of seconds (or like ``5m``) between two such events. What changes meanwhile is
        in the next one.

    CLI Example:

    .. code-block:: bash

        salt-call brine.drift platform
    """
    interval = _brine.call.read_seconds("event_interval", event_interval)
    run = _brine.call.Run("drift", kwargs, name)
    document = _brine.returning.read_document(run, fine=(0, 2))
    if _brine.call.is_true(event) and not any(o["action"] in ("failed", "skipped") for o in document["objects"]):  # of those, the drift is unknown
        _brine.returning.send_drift(run, document, interval)
    return document


def inventories(**kwargs):
    """
    The inventories of the cluster, or those of ``namespace``.

    CLI Example:

    .. code-block:: bash

        salt-call brine.inventories
    """
    return json.loads(_brine.returning.ask(_brine.call.Run("inventory list", kwargs)))


def check(source=None, bundle=None, sls=None, **kwargs):
    """
    Read, order and validate a bundle without a cluster, and return all problems. The
    return code is 3 where there are errors. The bundle is given as to brine.applied.

    CLI Example:

    .. code-block:: bash

        salt-call brine.check source=salt://platform/
    """
    return json.loads(_brine.returning.ask(_brine.call.Run("check", kwargs, given=(source, bundle, sls)), fine=(0, 3)))


def rbac(source=None, bundle=None, sls=None, **kwargs):
    """
    The smallest roles with which a bundle can be applied, as YAML. They are named
    after the inventory, unless ``role`` says otherwise.

    CLI Example:

    .. code-block:: bash

        salt-call brine.rbac source=salt://platform/ inventory=kube-system/platform --out=newline_values_only
    """
    return _brine.returning.ask(_brine.call.Run("rbac", kwargs, given=(source, bundle, sls)), output=None)


def version(binary=None):
    """
    brine's version and what this build of it can do.

    CLI Example:

    .. code-block:: bash

        salt-call brine.version
    """
    if binary and _brine.call.has_pin():
        raise SaltInvocationError("binary is not an argument here: `pin: True` in the configuration")
    path = _brine.call.find_binary(binary or _brine.call.read_defaults().get("binary"))
    done = _brine.running.communicate([path, "version", "--output=json"], dict(os.environ))
    try:
        return json.loads(done["stdout"])
    except ValueError:
        raise CommandExecutionError("{} does not report its version: {}".format(path, done["stderr"] or done["stdout"]))


# What sys.argspec shows besides; the other flags of brine are arguments, too.
_OF_RUNS = ("inventory", "namespace", "kubeconfig", "context", "timeout", "events", "event_rate", "sub_states")
_OF_BUNDLES = _OF_RUNS + (
    "wait", "prune", "max_prune", "removed", "refuse_removed", "recreate", "force_conflicts", "ignore_fields", "readiness", "deny", "ignore_foreign_states",
    "allow_empty_sls", "saltenv", "pillar", "defaults",
)
for _function, _names in (
    (applied, _OF_BUNDLES + ("plan", "plan_digest")), (apply, _OF_BUNDLES + ("plan", "plan_digest")), (preview, _OF_BUNDLES),
    (plan, _OF_BUNDLES + ("plan_lifetime",)), (planned, _OF_BUNDLES + ("plan_lifetime",)), (absent, _OF_RUNS), (destroy, _OF_RUNS), (rolled_back, _OF_RUNS + ("wait",)), (rollback, _OF_RUNS + ("wait",)),
):
    _shown = inspect.signature(_function)
    _known = list(_shown.parameters.values())
    _known[-1:-1] = [inspect.Parameter(_name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for _name in _names]
    _function.__signature__ = _shown.replace(parameters=_known)


# The names that functions of brine_object had here before version 0.3.


def _forwarding(name):
    def call(*args, **kwargs):
        return __salt__["brine_object." + name](*args, **kwargs)

    call.__name__, call.__doc__ = name, "The same as brine_object.{}.".format(name)
    return call


for _name in (
    "get", "get_object", "exists", "object_exists", "list_objects", "ready", "check_object_ready", "digest", "get_object_digest", "create_object",
    "replace_object", "update_object", "delete_object", "rollout_restart", "waited", "patched", "present", "absent_object", "labels_exist",
):
    globals()[_name] = _forwarding(_name)
