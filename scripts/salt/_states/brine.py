"""
Kubernetes clusters as states: a whole bundle is one state.

.. code-block:: yaml

    platform:
      brine.applied:
        - source: salt://platform/
        - kubeconfig: /etc/kubernetes/admin.conf
        - timeout: 20m

    old-addon:
      brine.absent:
        - require:
          - brine: platform

Arguments are those of the execution module's functions of the same names.
``test=True`` is brine's server-side dry run: the result is None and the changes
are those that a run would make.
"""

import inspect

__virtualname__ = "brine"


def __virtual__():
    if "brine.applied" in __salt__:
        for function in (applied, planned, absent, rolled_back):  # for sys.state_argspec
            function.__signature__ = inspect.signature(__salt__["brine." + function.__name__])
        return __virtualname__
    return False, "the execution module brine is not there: sync it with saltutil.sync_modules"


def applied(name, source=None, bundle=None, sls=None, **kwargs):
    """
    Make the cluster match a bundle: everything in it applied in order and
    ready, everything that is no longer in it gone.

    name
        Name of the inventory, unless ``inventory`` says otherwise.
    source, bundle, sls
        The bundle: files, the objects themselves, or SLS whose states are
        objects. One of them.
    kwargs
        ``inventory``, ``namespace``, ``kubeconfig``, ``context``, ``wait``,
        ``timeout``, ``prune``, and every other flag of ``brine apply``.
    """
    return __salt__["brine.applied"](name, source=source, bundle=bundle, sls=sls, **_more(kwargs))


def planned(name, source=None, bundle=None, sls=None, path="secret", **kwargs):
    """
    A saved plan of what brine.applied would do with a bundle, for people to approve: what
    brine.applied with ``plan`` then carries out, or refuses. A plan that is there and still
    holds stays, with its digest, and is no change.

    .. code-block:: yaml

        Plan the platform:
          brine.planned:
            - inventory: kube-system/platform
            - source: salt://platform/

    path
        ``secret``, a Secret beside the inventory, or the path of a file on this machine.
    plan_lifetime
        How long it may be carried out: seconds, or like ``12h``.
    """
    return __salt__["brine.planned"](name, source=source, bundle=bundle, sls=sls, path=path, **_more(kwargs))


def absent(name, **kwargs):
    """
    Delete all objects of an inventory, and the inventory.
    """
    return __salt__["brine.absent"](name, **_more(kwargs))


def rolled_back(name, revision=None, **kwargs):
    """
    Undo the last apply of an inventory: the last good revision before that apply with
    another content is applied. With ``onfail`` it undoes what this state run did: where
    no state brine.applied of the run changed anything in this inventory, as after an
    upgrade that was refused, there is nothing to undo, and nothing changes:

    .. code-block:: yaml

        Back to the last good revision:
          brine.rolled_back:
            - inventory: kube-system/platform
            - onfail:
              - brine: Deploy the platform

    revision
        A number of brine.history. Without it, or with ``previous``, the last apply
        is undone.
    """
    if revision in (None, "previous", "last-good") and any(key in _low() for key in ("onfail", "onfail_any", "onfail_all")):
        changed = _changed_here(dict(kwargs, name=name))
        if changed is False:
            return {"name": name, "result": True, "changes": {}, "comment": "Nothing to undo: no state brine.applied of this run changed anything in this inventory"}
        if changed is None:
            comment = "It is not known whether brine.applied of this run changed anything, so nothing was undone: see brine.history, and give a revision"
            return {"name": name, "result": False, "changes": {}, "comment": comment}
        if isinstance(changed, list):
            kwargs["only_of"] = changed
    return __salt__["brine.rolled_back"](name, revision=revision, **_more(kwargs))


def _changed_here(low):
    """
    Whether the upgrade that failed wrote anything to the inventory of low; else the last apply
    is an earlier one, which was good. None where it ended without saying so. Where only the history
    knows, the ids of the run's jobs: what they applied has one of them, or that of this job. So it is
    where other machines apply, as in an orchestrate, and with `retry`: Salt keeps the changes of the
    last attempt only.
    """
    if __opts__["test"]:  # Salt runs it after a preview that would change something: its result is None
        return False
    running = globals().get("__running__") or {}
    chunks = {"_|-".join(str(one.get(key)) for key in ("state", "__id__", "name", "fun")): one for one in globals().get("__lowstate__") or ()}
    applied = {tag for tag in running if tag.startswith("brine_|-") and tag.endswith("_|-applied")}
    # A preview's changes were not made.
    others = {tag for tag in applied if running[tag].get("result") is None or running[tag].get("preview") or tag in chunks and (_of_another(low, chunks[tag]) or _is_preview(chunks[tag]))}
    applied_here = [running[tag] for tag in applied - others]
    if any(one.get("changes") for one in applied_here):
        return True
    failed = applied_here or [one for tag, one in running.items() if one.get("result") is False and tag not in others]
    # brine's words, and Salt's.
    if any(end in str(one) for one in failed for end in ("bjects may have changed", "An exception occurred in this state", "inion did not return")):
        return None
    if applied_here and not any(chunks.get(tag, {}).get("retry") for tag in applied - others):
        return False
    jids = [_low().get("__orchestration_jid__")] + [one.get("__jid__") for one in running.values()]
    return [jid for jid in jids if jid]


def _is_preview(low):
    """Whether a state with these arguments writes nothing."""
    return _more(low)["test"] or str(low.get("dry_run") or low.get("dry-run") or "none") != "none"


def _of_another(low, other):
    """Whether two states cannot be about the same inventory. One without a namespace may be in any."""
    places = []
    for one in (low, other):
        namespace, _, name = str(one.get("inventory") or one.get("name")).rpartition("/")
        places.append((name, namespace or one.get("namespace"), one.get("kubeconfig"), one.get("context"), one.get("server")))
    return places[0][0] != places[1][0] or any(mine and its and mine != its for mine, its in zip(*places))


def mod_init(low):
    """
    Salt calls it before the first state: a run with parallel states returns what they did
    also where it is ended.
    """
    if low.get("parallel"):
        __salt__["brine.keep_return"]()
    return bool(low.get("parallel"))


def mod_watch(name, sfun=None, **kwargs):
    """
    With ``watch`` and ``listen``: the state runs again, when a state that it watches changed.

    .. code-block:: yaml

        platform:
          brine.applied:
            - source: salt://platform/
            - listen:
              - file: /etc/kubernetes/admin.conf
    """
    return globals()[sfun or "applied"](name, **kwargs)


# The names that states of brine_object had here before version 0.3.


def _forwarding(function):
    def call(name, **kwargs):
        return __states__["brine_object." + function](name, **kwargs)

    call.__name__, call.__doc__ = function, "The same as brine_object.{}.".format(function)
    return call


for _name in ("patched", "present", "absent_object", "waited", "labels_exist", "object_present", "object_absent", "object_updated"):
    globals()[_name] = _forwarding(_name)


def _low():
    return globals().get("__low__") or {}


def _more(kwargs):
    """The arguments, with what Salt knows of the state. One that says `test: True` is previewed in each run."""
    test = bool(__opts__["test"]) or str(kwargs.get("test")).lower() in ("true", "yes", "on", "1")
    return dict(kwargs, test=test, __low__=_low(), __env__=globals().get("__env__"))
