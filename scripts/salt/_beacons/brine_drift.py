"""
Send an event ``brine/<inventory>/drift`` when others changed objects of an inventory.

.. code-block:: yaml

    beacons:
      brine_drift:
        - interval: 600
        - event_interval: 3600
        - inventories:
            kube-system/platform: {}
            edge/sensors: {kubeconfig: /etc/kubernetes/edge.conf}

``interval`` is Salt's: the seconds between two comparisons. ``event_interval`` is the
least number of seconds between two events of an inventory (default 300). Each inventory
takes the arguments of ``brine.drift``. There is one event when the drift begins, when
another field or value drifts, and when there is no drift any more (``drift: false``).

The comparison runs beside the minion's loop, which it does not hold up.
"""

import functools
import logging
import threading

try:
    import contextvars
except ImportError:  # Python 3.6; Salt has no use for it there
    contextvars = None

log = logging.getLogger(__name__)

__virtualname__ = "brine_drift"

_running = {}


def __virtual__():
    if "brine.drift" in __salt__:
        return __virtualname__
    return False, "the execution module brine is not there: sync it with saltutil.sync_modules"


def validate(config):
    """
    Whether the configuration is a list with inventories, and nothing that has no effect.
    """
    if not isinstance(config, list) or any(not isinstance(one, dict) for one in config):
        return False, "Configuration for brine_drift beacon must be a list of mappings."
    settings = _settings(config)
    unknown = sorted(set(settings) - {"inventories", "event_interval", "interval", "enabled", "disable_during_state_run", "run_once", "beacon_module"})
    if unknown:
        return False, "Configuration for brine_drift beacon: {} has no effect.".format(", ".join(unknown))
    inventories = settings.get("inventories")
    if not isinstance(inventories, dict) or not inventories:
        return False, "Configuration for brine_drift beacon requires inventories, a mapping of names to arguments of brine.drift."
    for name, arguments in inventories.items():
        if arguments is not None and not isinstance(arguments, dict):
            return False, "Configuration for brine_drift beacon: the arguments of {} must be a mapping.".format(name)
    try:
        float(settings.get("event_interval", 0))
    except (TypeError, ValueError):
        return False, "Configuration for brine_drift beacon: event_interval must be a number of seconds."
    return True, "Valid beacon configuration."


def beacon(config):
    """
    Compare the inventories. Returns no events: brine.drift sends them, by a tag without
    the prefix that Salt gives those of beacons.
    """
    settings = _settings(config)
    for name, arguments in settings["inventories"].items():
        if name in _running and _running[name].is_alive():
            continue  # the cluster is slow
        arguments = dict({"event_interval": settings.get("event_interval", 300)}, **(arguments or {}))
        target = functools.partial(_compare, __salt__["brine.drift"], name, arguments)
        if contextvars is not None:  # Salt keeps its dunders in the context
            target = functools.partial(contextvars.copy_context().run, target)
        _running[name] = threading.Thread(target=target, daemon=True)
        _running[name].start()
    return []


def _settings(config):
    settings = {}
    for one in config:
        settings.update(one)
    return settings


def _compare(drift, name, arguments):
    try:
        drift(name, event=True, **arguments)
    except Exception as exc:  # pylint: disable=broad-except
        log.error("brine_drift: inventory %s was not compared: %s", name, exc)
