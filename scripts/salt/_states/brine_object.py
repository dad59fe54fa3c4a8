"""
Single Kubernetes objects as states: those that are in no bundle and belong to no
inventory.

.. code-block:: yaml

    Set the version of node-1:
      brine_object.patched:
        - name: node-1
        - kind: Node
        - apiVersion: v1
        - patch:
            metadata:
              labels:
                example.com/version: '2'

Arguments are those of the execution module's functions of the same names. ``test=True``
asks the server what would change. For a whole bundle there is brine.applied.
"""

import inspect

__virtualname__ = "brine_object"


def __virtual__():
    if "brine_object.present" in __salt__:
        for function in (patched, present, absent_object, waited, labels_exist):  # for sys.state_argspec
            function.__signature__ = inspect.signature(__salt__["brine_object." + function.__name__])
        return __virtualname__
    return False, "the execution module brine_object is not there: sync it with saltutil.sync_modules"


def patched(name, **kwargs):
    """
    Set fields of one existing object that is in no bundle. Only the given fields are
    sent. ``absent: True`` removes those that this state set.

    .. code-block:: yaml

        Set version of node-1:
          brine_object.patched:
            - name: node-1
            - kind: Node
            - apiVersion: v1
            - patch:
                metadata:
                  labels:
                    example.com/version: '2'

    Arguments are those of the execution module's brine_object.patched.
    """
    return __salt__["brine_object.patched"](name, **_more(kwargs))


def present(name, **kwargs):
    """
    One object that is in no bundle and belongs to no inventory.

    .. code-block:: yaml

        A token for the tests:
          brine_object.present:
            - manifest:
                apiVersion: v1
                kind: ServiceAccount
                metadata: {name: tests, namespace: default}
    """
    return __salt__["brine_object.present"](name, **_more(kwargs))


def absent_object(name, **kwargs):
    """
    Delete one object that is in no inventory.

    .. code-block:: yaml

        old-service:
          brine_object.absent_object:
            - kind: Service
            - apiVersion: v1
            - namespace: kube-system
    """
    return __salt__["brine_object.absent_object"](name, **_more(kwargs))


def waited(name, **kwargs):
    """
    Wait for an object, or for those that a label selector finds:

    .. code-block:: yaml

        coredns:
          brine_object.waited:
            - kind: Deployment
            - apiVersion: apps/v1
            - namespace: kube-system
            - timeout: 300

    Arguments are those of the execution module's brine_object.waited. It changes nothing.
    """
    return __salt__["brine_object.waited"](name, **dict(kwargs, test=_more(kwargs)["test"]))


def labels_exist(name, labels, **kwargs):
    """
    Labels that an object gets if it does not have them. Those that it has keep their
    values.

    .. code-block:: yaml

        node-1:
          brine_object.labels_exist:
            - kind: Node
            - apiVersion: v1
            - labels: {node-role.kubernetes.io/infra: ''}
    """
    return __salt__["brine_object.labels_exist"](name, labels, **_more(kwargs))


def mod_watch(name, sfun=None, **kwargs):
    """
    With ``watch`` and ``listen``: the state runs again, when a state that it watches changed.
    """
    return globals()[sfun or "present"](name, **kwargs)


# By the names that MetalK8s' states have.
object_present = present
object_absent = absent_object
object_updated = patched


def _more(kwargs):
    """The arguments, with what Salt knows of the state. One that says `test: True` is previewed in each run."""
    test = bool(__opts__["test"]) or str(kwargs.get("test")).lower() in ("true", "yes", "on", "1")
    return dict(kwargs, test=test, __low__=globals().get("__low__"), __env__=globals().get("__env__"))
