"""The events of a run on Salt's bus. Part of brine.py and brine_object.py."""

import collections
import functools
import logging
import os
import queue
import threading
import time
import uuid

try:
    import contextvars
except ImportError:  # Python 3.6; Salt has no use for it there
    contextvars = None

log = logging.getLogger(__name__)

_QUIET = ("acting",)  # event types that are not worth a place on the bus
_FLUSH_SECONDS = 30  # how long events that are still queued may take at the end


def name_object(o):
    """Kind.group/namespace/name, of what is not empty."""
    kind = ".".join(part for part in (o.get("kind"), o.get("group")) if part)
    return "/".join(part for part in (kind, o.get("namespace"), o.get("name")) if part)


class Bus(object):
    """
    Fires events from a thread of its own: a slow master must not hold up brine,
    and one that is not there is given up on.
    """

    def __init__(self, run):
        self.run, self.failures, self.sent = run, 0, 0
        self.second, self.count, self.left_out = 0, 0, collections.Counter()
        self.seq, self.name = 0, uuid.uuid4().hex[:16]  # an older binary does not name its runs
        self.queue = queue.Queue()
        self.send = _sender() if run.settings["events"] else None
        self.thread = None
        if self.send is not None:
            self.thread = _thread(self._work)

    def fire(self, event):
        kind = event.get("type")
        if self.thread is None or kind in _QUIET + (None,):
            return
        what, self.name = kind, event.get("run") or self.name
        if event.get("object"):
            if event.get("action") == "unchanged" and kind in ("acted", "ready"):
                return
            what = name_object(event["object"])
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
        if kind == "finished":  # "brine/*/finished" also fits the end of a preview
            self._queue("preview-finished" if self.run.dry else "run-finished", data)

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
        self.seq += 1
        data.update(preview=self.run.dry, seq=self.seq, run=self.name)
        self._queue(what, data)

    def _queue(self, what, data):
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
    if brine.opts.get("use_master_when_local"):
        return False
    if not (brine.opts.get("local") or brine.opts.get("file_client") == "local" or brine.opts.get("master_type") == "disable"):
        return False
    try:
        return not any(name.startswith("minion_event") for name in os.listdir(brine.opts["sock_dir"]))
    except (KeyError, OSError):
        return True


def _sender():
    """The function (tag, data) that puts an event on the bus of this process."""
    if brine.opts.get("__role") == "master":  # an orchestrate run
        try:
            import salt.utils.event  # pylint: disable=import-outside-toplevel

            bus = salt.utils.event.get_master_event(brine.opts, brine.opts["sock_dir"], listen=False)
        except Exception as exc:  # pylint: disable=broad-except
            log.debug("brine: no master's event bus: %s", exc)
            return None
        return lambda tag, data: bus.fire_event(data, tag)
    if "event.send" not in brine.salt or _masterless():
        return None
    send = brine.salt["event.send"]
    return lambda tag, data: send(tag, data)
