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

__virtualname__ = "brine"


def __virtual__():
    if "brine.applied" in __salt__:
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
    return __salt__["brine.applied"](name, source=source, bundle=bundle, sls=sls, test=__opts__["test"], **_more(kwargs))


def absent(name, **kwargs):
    """
    Delete all objects of an inventory, and the inventory.
    """
    return __salt__["brine.absent"](name, test=__opts__["test"], **_more(kwargs))


def rolled_back(name, revision=None, **kwargs):
    """
    Undo the last apply of an inventory: the last good revision before that apply with
    another content is applied. With ``onfail`` it undoes what this state run did: where
    no state brine.applied of the run changed anything, as after an upgrade that was
    refused, there is nothing to undo, and nothing changes:

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
    changed = revision not in (None, "previous") or _changed_here()
    if changed:
        return __salt__["brine.rolled_back"](name, revision=revision, test=__opts__["test"], **_more(kwargs))
    comment = "Nothing to undo: no state brine.applied of this run changed anything"
    if changed is None:
        comment = "It is not known whether brine.applied of this run changed anything, so nothing was undone: see brine.history, and give a revision"
    return {"name": name, "result": changed is False, "changes": {}, "comment": comment}


def _changed_here():
    """
    Whether the upgrade that failed wrote anything; else the last apply is an earlier one,
    which was good. None where it ended without saying so.
    """
    low = globals().get("__low__") or {}
    if not any(key in low for key in ("onfail", "onfail_any", "onfail_all")):
        return True
    if __opts__["test"]:  # Salt runs it after a preview that would change something: its result is None
        return False
    applied_here = [one for tag, one in (globals().get("__running__") or {}).items() if tag.startswith("brine_|-") and tag.endswith("_|-applied")]
    if not applied_here or any(one.get("changes") for one in applied_here):
        return True
    ends = [str(one.get("comment")) for one in applied_here]
    # brine's words, and Salt's.
    return None if any("Objects may have changed" in end or "An exception occurred in this state" in end for end in ends) else False


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


def _more(kwargs):
    """The state's id, its environment and the job's id go along, for the return, brine's history and the events."""
    kwargs["saltenv"] = kwargs.get("saltenv") or globals().get("__env__") or __opts__.get("saltenv") or "base"
    low = globals().get("__low__") or {}
    kwargs["__id__"] = low.get("__id__", "")
    if low.get("fun") == "mod_watch" and kwargs["__id__"].startswith("listener_"):  # as Salt calls it for listen
        kwargs["__id__"] = kwargs["__id__"][len("listener_"):]
    for key in ("__orchestration_jid__", "__pub_jid"):
        jid = low.get(key)
        if jid:
            kwargs.setdefault("jid", jid)
    return kwargs
