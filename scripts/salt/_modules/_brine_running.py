"""Running the binary: its pipes, and the signals of a job. Part of brine.py and brine_object.py."""

import collections
import contextlib
import ctypes
import json
import logging
import multiprocessing
import os
import queue
import signal
import subprocess
import threading
import time

from salt.exceptions import CommandExecutionError

log = logging.getLogger(__name__)

_STOP_SECONDS = 15  # how long brine may take to end after a signal
_GRACE_SECONDS = 1  # whoever sends a signal to Salt and to brine has done so by then


def _start(argv, env, **how):
    log.debug("running %s", argv)
    try:
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, **dict(_child(), **how))
    except (OSError, ValueError) as exc:  # ValueError: a character that no argument can have
        raise CommandExecutionError("{} cannot be run: {}".format(argv[0], exc))


def communicate(argv, env, stdin=None, run=None):
    process = _start(argv, env, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
    with _forwarding(process, run):
        out, err = process.communicate(stdin)
    return {"exit": process.returncode, "stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace")}


def stream(run, output):
    """
    Run brine, fire its events as they come, and return its last line, its exit
    code, the end of its standard error, whether a write began, and the changes that its events report.
    """
    done = {"binary": run.binary, "exit": None, "last": {}, "stderr": collections.deque(maxlen=50), "began": False, "acted": {}}
    process = _start(run.argv(output), run.env, stdin=subprocess.PIPE)
    helpers = [
        threading.Thread(target=_feed, args=(process.stdin, run.stdin), daemon=True),
        threading.Thread(target=_drain, args=(process.stderr, done["stderr"]), daemon=True),
    ]
    with _forwarding(process, run), contextlib.closing(brine.events.Bus(run)) as bus, process.stdout:
        for helper in helpers:
            helper.start()
        for line in _lines(process.stdout):
            _line(line, done, bus)
        done["exit"] = process.wait()
        for helper in helpers:
            helper.join(_STOP_SECONDS)
        if not done["last"]:  # killed: a reactor that waits for the end of a run learns of it all the same
            bus.fire({"type": "finished", "return": {"result": False, "comment": "brine ended without a result"}})
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
    done["began"] = done["began"] or event.get("type") in ("acting", "acted")
    if event.get("type") == "acted" and isinstance(event.get("object"), dict):
        done["acted"][brine.events.name_object(event["object"])] = event.get("action")
    try:
        bus.fire(event)
    except Exception as exc:  # pylint: disable=broad-except
        log.debug("brine: an event was not sent: %s", exc)  # one of a later release may have another shape; the run goes on


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


def keep_return():
    """
    For parallel states: this process collects what they did. saltutil.term_job signals all
    processes of a job, and the states end by themselves.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if getattr(before, "of_brine", False) or before == signal.SIG_IGN:
            continue

        def handle(number, frame, before=before):
            if multiprocessing.active_children() and _end_states(brine.call.find_job()):
                return
            signal.signal(number, before if before is not None else signal.SIG_DFL)
            os.kill(os.getpid(), number)

        handle.of_brine = True
        signal.signal(number, handle)


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
    return run.in_state and _end_states(run.jid)


def _end_states(jid):
    """Tell the state run of a job to begin no further state."""
    if not jid or "state.soft_kill" not in brine.salt:
        return False
    told = os.path.join(brine.opts["cachedir"], "state_pause", str(jid))
    for _ in range(20):
        try:
            brine.salt["state.soft_kill"](jid)
            return True
        except Exception as exc:  # pylint: disable=broad-except
            # Parallel states do so at the same time: Salt reads what is half written, and cannot do it twice.
            log.debug("brine: the state run cannot be told to end: %s", exc)
            with contextlib.suppress(OSError), open(told, "rb") as file:
                if b"__all__" in file.read():
                    return True
            time.sleep(0.1)
    return False
