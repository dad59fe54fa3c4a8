"""What a run of brine gives back: a state's return, or brine's own document. Part of brine.py and brine_object.py."""

import contextlib
import hashlib
import json
import re
import time

from salt.exceptions import CommandExecutionError, SaltInvocationError

ERRORS = (CommandExecutionError, SaltInvocationError)


def run_for_state(command, name, kwargs, given=None, words=(), own=None):
    """A run whose end is a state's return; whatever goes wrong is in it."""
    try:
        kwargs = brine.call.take_state(kwargs)
        run = brine.call.Run(command, kwargs, name, given, words, own, state=True)
    except Exception as exc:  # pylint: disable=broad-except
        return failed(name, exc)  # brine was not run: a master or a disk that is not there
    try:
        done = brine.running.stream(run, "salt-events")
    except ERRORS as exc:
        return failed(name, exc)
    ret = done["last"].get("return") or _lost(run, done)
    if ret["result"] is not False and done["exit"] not in (0, 2):  # 2 is --detailed-exitcode's
        # As of a report that could not be written: no failure, which `onfail` would undo an upgrade for.
        ret["warnings"] = (ret.get("warnings") or []) + ["brine failed after its result ({}): {}".format(*_ending(done))]
    if "--max-prune={} ".format(brine.call.MAX_PRUNE) in str(ret.get("comment")):
        ret["comment"] += "\nIf this is intended, give `max_prune: 80%`, or a number of objects."
    removed = re.findall(r"--removed=(\S+)", str(ret.get("comment")))
    if removed:
        ret["comment"] += "\nIn a state: `removed: [{}]`.".format(", ".join(sorted(set(removed))))
    if run.dry:
        ret["preview"] = True  # with `prereq`, Salt lets what a refused preview returned stand as the state's return
    if command == "apply" and run.dry and ret["result"] is not False:
        ret["warnings"] = (ret.get("warnings") or []) + _not_ready(run)
    subs = ret.pop("sub_state_run", None)
    if run.settings["sub_states"] and subs:
        state_id = kwargs.get("__id__", name)
        ret["sub_state_run"] = [_sub_state(sub, state_id) for sub in subs if sub.get("changes") or not sub.get("result")]
        # These show the changes of each object: this only says how many there are.
        ret["changes"] = {"objects": "{} changed".format(len(ret["changes"]))} if ret["changes"] else {}
    return tidy_return(ret, name)


def failed(name, error):
    """The return of a state whose run did not begin."""
    comment = brine.rendering.cut_secrets(error)
    if not isinstance(error, ERRORS):
        comment = "{}: {}".format(type(error).__name__, comment)
    return {"name": name, "result": False, "changes": {}, "comment": comment}


def tidy_return(ret, name):
    ret["name"] = name
    if not ret.get("warnings"):
        ret.pop("warnings", None)  # Salt's outputter counts the key, not what is in it
    return ret


def _not_ready(run):
    """A preview of nothing to change does not say that what is there works: the objects that are not ready now."""
    takes = (brine.call.read_features(run.binary).get("flags") or {}).get("status")
    if not takes:
        return []
    flags = [one for one in run.flags if one[2:].split("=")[0] in takes and not one.startswith("--wait=")]  # which is another flag there
    env = {key: value for key, value in run.env.items() if key != "BRINE_WAIT"}
    done = {"exit": None, "stdout": "", "stderr": "it cannot be run"}
    try:
        done = brine.running.communicate([run.binary, "status", "--output=json"] + flags, env, run=run)
        document = json.loads(done["stdout"])
        objects = document["objects"]
    except ERRORS + (ValueError, KeyError, TypeError):
        document, objects = {"errors": True}, []
    if document.get("errors"):
        why = _why(done)
        return [] if done["exit"] == 3 and "there is no inventory" in why else ["What is ready now is not known: " + why]
    found = ["{}: {}".format(brine.events.name_object(o), o.get("reason") or o["ready"]) for o in objects if o["ready"] != "ready"]
    more = ["and {} more".format(len(found) - 20)] if len(found) > 20 else []
    return ["Not ready now: " + "; ".join(found[:20] + more)] if found else []


def _sub_state(sub, state_id):
    """
    Its id names this state: another one in the same run may have the same object,
    or the same inventory, which brine's own id begins with.
    """
    own = str(sub["low"].get("__id__")).split(": ", 1)[-1]
    return dict(sub, low=dict(sub["low"], __id__="{}: {}".format(state_id, own)))


def last_revision(name, kwargs):
    """The newest of an inventory's history, None if there is none, and the id of this job. kwargs may be those of another command."""
    takes = ("inventory", "namespace", "jid") + brine.call.CONNECTION
    run = brine.call.Run("history", {key: value for key, value in brine.call.take_state(dict(kwargs)).items() if key in takes}, name)
    try:
        revisions = read_document(run, noted=False)["revisions"]
    except CommandExecutionError as exc:
        if "there is no inventory" in str(exc):
            return None, run.jid
        raise
    return max(revisions, key=lambda one: one["number"], default=None), run.jid


def run_for_result(command, name, kwargs, given=None, words=()):
    """A run whose end is brine's own result."""
    run = brine.call.Run(command, kwargs, name, given, words)
    done = brine.running.stream(run, "events")
    brine.context["retcode"] = done["exit"]
    result = done["last"].get("result")
    if result is None:
        raise CommandExecutionError(_lost(run, done)["comment"])
    return result


# A retcode outlasts its function: Salt goes by it in the onlyif of the states that follow. So it is
# always set, and never where a state's return says the same.


def read_document(run, fine=(0,), noted=True):
    """What a command prints about an inventory. Its exit code becomes the function's, errors in it are raised."""
    done = brine.running.communicate(run.argv("json"), run.env, run=run)
    if noted:
        brine.context["retcode"] = 0 if done["exit"] in fine else done["exit"]
    try:
        document = json.loads(done["stdout"])
        why = "\n".join(document.get("errors") or [])
    except ValueError:
        document, why = None, done["stderr"].strip()
    if document is None or why:
        raise CommandExecutionError("brine {} failed (exit code {}): {}".format(run.command, done["exit"], why))
    return document


def ask(run, output="json", fine=(0,), noted=True):
    """What a command prints. fine are the exit codes that are no error, None is all of them."""
    done = brine.running.communicate(run.argv(output), run.env, run.stdin, run)
    if noted:
        brine.context["retcode"] = done["exit"]
    if fine is not None and done["exit"] not in fine or not done["stdout"]:
        error = CommandExecutionError("brine {} failed (exit code {}): {}".format(run.command, done["exit"], _why(done)))
        error.exit = done["exit"]
        raise error
    return done["stdout"]


def _why(done):
    """The errors of a document; of another output what stands on stderr."""
    try:
        errors = json.loads(done["stdout"])["errors"]
    except (ValueError, KeyError, TypeError):
        errors = None
    return "\n".join(errors or []) or done["stderr"].strip() or done["stdout"].strip()


def _ending(done):
    """How brine ended, and what it printed on stderr."""
    code, printed = done["exit"], brine.rendering.cut_secrets("".join(done["stderr"]).strip()) or "it printed nothing on stderr"
    return "killed by signal {}".format(-code) if code < 0 else "exit code {}".format(code), printed


def _lost(run, done):
    """A state's return for a run that ended without a result."""
    ends = {"created": ("absent", "present"), "pruned": ("present", "absent")}
    changes = {}
    for name, action in done["acted"].items():
        if not run.dry and action in ("created", "configured", "recreated", "pruned", "detached"):
            changes[name] = dict(zip(("old", "new"), ends.get(action, ("present", action))))
    how, printed = _ending(done)
    comment = "brine ended without a result ({}): {}".format(how, printed)
    if not run.dry and (done["began"] or done["exit"] < 0):
        comment += "\nObjects may have changed. Run it again to continue."
    if "unknown flag" in printed or "unknown command" in printed:
        comment += "\nThis is brine {}: it may be older than this state expects.".format(brine.call.read_features(done["binary"]).get("version"))
    return {"result": False, "changes": changes, "comment": comment}


def send_drift(run, document, interval):
    """Send the drift, if it is another one than that of the last event."""
    fields = ("path", "old", "new", "manager", "time")
    objects = [
        {
            "object": brine.events.name_object(o), "action": o["action"], "reason": o.get("reason", ""),
            "fields": [{key: str(c[key])[:200] for key in fields if c.get(key) is not None} for c in (o.get("changes") or [])[:20]],
        }
        for o in document["objects"] if o["action"] != "unchanged"
    ]
    now = hashlib.sha256(json.dumps(objects, sort_keys=True).encode("utf-8")).hexdigest() if objects else ""
    kept, before = brine.call.place_document("drift", brine.call.name_kept(run.inventory, run.flags)), {}
    with contextlib.suppress(OSError, ValueError):
        with open(kept) as file:
            before = json.load(file)
    if now == before.get("digest", "") or time.time() - before.get("sent", 0) < interval:
        return
    data = {"drift": bool(objects), "wanted": document.get("wanted"), "count": len(objects), "objects": objects[:50]}
    with contextlib.closing(brine.events.Bus(run)) as bus:
        bus.put("drift", data)
    if bus.sent:
        brine.call.keep_document(kept, {"digest": now, "sent": time.time()})
