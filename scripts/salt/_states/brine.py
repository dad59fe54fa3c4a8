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
    Apply the last good revision of an inventory again. Nothing changes if that is
    the present one, so that this state can follow every failure:

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
    return __salt__["brine.rolled_back"](name, revision=revision, test=__opts__["test"], **_more(kwargs))


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
    for key in ("__orchestration_jid__", "__pub_jid"):
        jid = low.get(key)
        if jid:
            kwargs.setdefault("jid", jid)
    return kwargs
