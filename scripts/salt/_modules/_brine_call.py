"""From the arguments of a function to a command line of brine: settings, flags, environment. Part of brine.py and brine_object.py."""

import contextlib
import difflib
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
import time

from salt.exceptions import CommandExecutionError, SaltInvocationError

log = logging.getLogger(__name__)

_OF_DEFAULTS = "brine: {}: in pillar, grains or configuration"
# Keys under brine: in pillar or configuration that are not flags, and their defaults.
_SETTINGS = {"binary": None, "events": True, "event_rate": 20, "sub_states": False, "template": "jinja", "pin": False}
# Arguments that are about rendering.
RENDERING = ("saltenv", "pillar", "defaults", "allow_empty_sls")
# The most that a state prunes unless max_prune says otherwise.
MAX_PRUNE = "30%"
# Flags whose value is a credential, or may hold one: never an argument, which ps and logs show.
_CREDENTIALS = ("token", "password", "proxy_url")
# Arguments that keep a run from doing more: empty, as from a template, they are a mistake.
_LIMITS = ("plan", "plan_digest", "only", "deny", "dry_run", "inventory_id", "revision", "prune", "no_prune", "max_prune", "refuse_removed")
# Flags whose file can be given as what it holds.
_RULES = ("ignore_fields", "readiness", "deny")
# Flags that are no arguments, and why.
_REFUSED = dict.fromkeys(("output", "o", "filename", "f", "input", "help"), "this module gives it to brine itself")
_REFUSED["recursive"] = "it has no effect: name the folders in source"
# Flags that say what one call does, with which object: a default of them would do it in each call.
_OF_A_CALL = dict.fromkeys((
    "create", "delete", "remove", "show_secrets", "all_namespaces", "selector", "field_selector", "ignore_not_found", "ready_when", "api_version", "name",
), "it is an argument of a call only")
# Which program is run, and which cluster it is for.
CONNECTION = (
    "binary", "kubeconfig", "context", "cluster", "user", "server", "token", "password", "proxy_url", "tls_server_name", "insecure_skip_tls_verify",
    "certificate_authority", "client_certificate", "client_key", "as", "as_group", "as_uid", "as_user_extra", "cache_dir",
)
# What only the minion's configuration says where it has `pin: True`.
_PINNED = CONNECTION + ("pin", "template", "report", "plan_out", "profile_dir")

# What is given to some arguments: Python's types, a pattern for what is no list, and words.
_NAME, _SWITCH, _TIME = ((str,), r"[^\n]*\Z", "a name"), ((bool, str, int), r"(?i)^(true|false|yes|no|on|off|0|1)$", "True or False"), (
    (int, float, str), r"^([0-9]+(\.[0-9]+)?|([0-9]+(\.[0-9]+)?(ms|h|m|s))+)$", "a number of seconds, or like 20m")
_FILES = ((str, list, tuple), None, "one or a list")
_TYPES = {
    "source": _FILES, "sls": _FILES, "bundle": ((str, bytes, dict, list, tuple), None, "text, an object or a list of objects"),
    "inventory": ((str, int), None, "NAME or NAMESPACE/NAME"), "namespace": _NAME, "kubeconfig": ((str,), r"[^\n]*\Z", "the path of a file"), "context": _NAME, "plan": _NAME, "plan_digest": _NAME, "plan_lifetime": _TIME,
    "wait": ((bool, str), r"(?i)^(ready|applied|true|false)$", "ready or applied (or True, False)"), "prune": _SWITCH, "events": _SWITCH, "sub_states": _SWITCH,
    "force_conflicts": _SWITCH, "ignore_foreign_states": _SWITCH, "removed": _FILES, "refuse_removed": _SWITCH, "timeout": _TIME, "lock_timeout": _TIME, "retry_timeout": _TIME,
    "max_prune": ((int, str), r"^[0-9]+%?$", "a number of objects, or a share like 30%"), "event_rate": ((int, float, str), r"^[0-9]+(\.[0-9]+)?$", "a number"),
    "pillar": ((dict,), None, "a mapping"), "defaults": ((dict,), None, "a mapping"), "allow_empty_sls": ((bool, list, tuple, str), None, "True or a list of SLS"),
    "ignore_fields": ((list, tuple, str), None, "a list of rules, or the path of a file"),
    "readiness": ((dict, str), None, "a mapping, or the path of a file"), "deny": ((dict, str), None, "a mapping, or the path of a file"),
}


def spell(arguments, named="{}"):
    """Each name with "_", however it was spelled: what looks for a guard must not miss it. None is not given."""
    found = {}
    for key, value in arguments.items():
        name = str(key).replace("-", "_")
        if found.get(name) is not None and value is not None and found[name] != value:
            raise SaltInvocationError("{} is given with '-' and with '_', and the values differ: give it once".format(named.format(name)))
        if value is not None or name not in found:
            found[name] = value
    return found


def _refuse_empty(arguments, named="{}"):
    """None and "" are a mistake where a limit is meant; [] and {} say that there is none."""
    for key, value in arguments.items():
        if str(key).replace("-", "_") in _LIMITS and (value is None or isinstance(value, str) and not value.strip()):
            raise SaltInvocationError("{} is empty: give a value, or leave it out".format(named.format(key)))


def take_state(kwargs):
    """What a state passes on: its id, its environment and its job, for the return, the events and brine's history."""
    kwargs = spell(kwargs)
    if "__low__" not in kwargs:
        return kwargs
    low = kwargs.pop("__low__") or {}
    _refuse_empty(low)
    if type(low.get("parallel")) is int and low.get("fun") in ("applied", "planned", "absent", "rolled_back"):
        raise SaltInvocationError("parallel is an argument of Salt's own in a state, True or False: give brine's as `brine: {parallel: 8}` in pillar, grains or configuration")
    kwargs["saltenv"] = kwargs.get("saltenv") or kwargs.pop("__env__", None) or brine.opts.get("saltenv") or "base"
    state_id = low.get("__id__", "")
    if low.get("fun") == "mod_watch" and state_id.startswith("listener_"):  # as Salt calls it for listen
        state_id = state_id[len("listener_"):]
    kwargs["__id__"] = state_id
    jid = low.get("__orchestration_jid__") or low.get("__pub_jid")
    if jid:
        kwargs.setdefault("jid", jid)
    return kwargs


class Run(object):
    """
    A call of brine: command line, environment, standard input, settings. name is that
    of an inventory, given the bundle (source, bundle, sls), words are arguments of the
    command, own the flags that this module gives itself.
    """

    def __init__(self, command, kwargs, name=None, given=None, words=(), own=None, state=False):
        kwargs = spell(kwargs)
        self.command = command
        self.direct = str(kwargs.get("__pub_fun", "")).startswith(("brine.", "brine_object."))
        self.in_state = kwargs.get("__id__") is not None
        self.jid = kwargs.get("__pub_jid") or kwargs.get("jid") or brine.opts.get("jid") or find_job()
        self.began = _began(self.jid)
        flags = {key: value for key, value in kwargs.items() if value is not None and key != "jid" and not key.startswith("__")}
        refuse_pinned(flags)
        _check_types(dict(flags, **dict(zip(("source", "bundle", "sls"), given or ()))))
        defaults = read_defaults()
        _check_types(defaults, _OF_DEFAULTS)
        self.settings = {key: flags.pop(key, defaults.pop(key, default)) for key, default in _SETTINGS.items()}
        for key in ("events", "sub_states"):
            self.settings[key] = is_true(self.settings[key])
        if "template" in kwargs and kwargs["template"] is None:
            self.settings["template"] = None
        self.settings.update((key, flags.pop(key, None)) for key in RENDERING)
        self.given = {"template"} if "template" in kwargs else set()
        self.given |= {key for key in tuple(_SETTINGS) + RENDERING if kwargs.get(key) is not None}
        if not state and "sub_states" in self.given:
            raise SaltInvocationError("sub_states has no effect: only states return sub-states")
        if is_true(self.settings["pin"]) and not has_pin():
            raise SaltInvocationError("pin has no effect in calls, pillar and grains: put it into the configuration of the minion or master")
        test = flags.pop("test", None)
        self.binary = find_binary(self.settings["binary"])
        self.inventory = None
        place = defaults.pop("inventory", None)
        if name is not None:
            self.inventory = name_inventory(name, flags.pop("inventory", None), place)
        elif command == "rbac" and "/" in str(place):  # the roles are named after it
            flags.setdefault("inventory", place)
        if "plan-digest" not in (read_features(self.binary).get("flags") or {}).get(command, ()):
            _approved(flags.get("plan"), flags.pop("plan_digest", None))  # an older binary
        _check_names(command, set(flags), given, self.binary)
        if command in ("apply", "destroy", "rollback", "patch"):
            asked = flags.setdefault("dry_run", str(defaults.pop("dry_run", "none")))
            if asked == "none" and (brine.opts.get("test", False) if test is None else test):
                flags["dry_run"] = "server"  # no argument makes a preview write
        self.dry = flags.get("dry_run", "none") != "none"
        for key in [key for key, value in flags.items() if value in ([], (), {})]:  # none, also none of the defaults
            defaults.pop(key, None)
        self.files = [_rules(values, key) for values in (flags, defaults) for key in _RULES]  # which last as long as this
        _check_defaults(defaults, self.binary)
        if isinstance(defaults.get("only"), (list, tuple)):  # each is a flag: the environment has room for one
            chosen = defaults.pop("only")
            if "only" in ((read_features(self.binary).get("flags") or {}).get(command) or ("only",)):
                flags.setdefault("only", chosen)
        defaults.pop({"status": "wait", "rbac": "user"}.get(command), None)  # which mean something else there
        if "plan_out" not in set().union(defaults, flags, own or ()):
            defaults.pop("plan_lifetime", None)  # brine refuses it where no plan is saved

        self.env = dict(os.environ)
        if state and command == "apply" and "plan" not in flags:  # what a plan prunes was checked when it was made
            self.env.setdefault("BRINE_MAX_PRUNE", MAX_PRUNE)
        credentials = {key: flags.pop(key) for key in _CREDENTIALS if key in flags}
        for key in [key for key, value in credentials.items() if value == ""]:
            raise SaltInvocationError("{} is empty: give a value, or leave it out".format(key))
        for values in (defaults, credentials):
            for key, value in values.items():
                values = [_value(key, one, command) for one in (value if isinstance(value, (list, tuple)) else [value])]
                name, text = "BRINE_" + key.upper(), ",".join(values)
                if text:
                    self.env[name] = text
                else:  # brine takes an empty guard for a mistake
                    self.env.pop(name, None)
        for key, value in (("BRINE_YES", "true"), ("BRINE_JID", self.jid), ("BRINE_MINION", brine.opts.get("id"))):
            if value:
                self.env[key] = str(value)
        self.flags = _flags(flags, command) + _flags(own or {}, command)
        if self.inventory is not None:
            self.flags.insert(0, ("--inventory=" if "/" in self.inventory else "--name=") + self.inventory)
        self.words = list(words)
        self.renewed = {}  # whether the list of the files of a saltenv is
        self.stdin = brine.rendering.render_bundle(given, self)

    def argv(self, output):
        flags = self.flags + (["--output=" + output] if output else [])
        return [self.binary] + self.command.split() + flags + (["--"] + self.words if self.words else [])

    def without_effect(self, keys, why):
        for key in keys:
            if key in self.given and (key != "saltenv" or self.direct):
                raise SaltInvocationError("{} has no effect here: {}".format(key, why))


def read_defaults():
    """What stands under brine: in pillar, grains and configuration, the last over the first."""
    pinned, found = has_pin(), {}
    for where in (brine.pillar, brine.grains, brine.opts):
        values = where.get("brine") if where else None
        if isinstance(values, dict):
            _refuse_empty(values, _OF_DEFAULTS)
            found.update((k, v) for k, v in spell(values, _OF_DEFAULTS).items() if v is not None and not (pinned and where is not brine.opts and k in _PINNED))
    if "prune" in found:
        found["no_prune"] = not is_true(found.pop("prune"))
    return found


def has_pin():
    """Whether calls, pillar (which a call can override) and grains are not asked for program and cluster."""
    values = brine.opts.get("brine")
    return isinstance(values, dict) and is_true(values.get("pin"))


def refuse_pinned(flags, paths=()):
    if not has_pin():
        return
    for key in [key for key in sorted(flags) if key in _PINNED] + [key for key in _RULES if isinstance(flags.get(key), str)]:
        raise SaltInvocationError("{} is not an argument here: `pin: True` in the configuration".format(key))
    for path in paths:
        if not path.startswith("salt://"):
            raise SaltInvocationError("{} is not a salt:// file: `pin: True` in the configuration".format(path))


def _check_defaults(defaults, binary):
    """Every default is a flag of brine: a mistake must not pass in silence."""
    takes = defaults and read_features(binary).get("flags")
    known = {one.replace("-", "_") for one in {"prune"}.union(*takes.values())} if takes else None  # else of a build that does not list them
    for key in defaults:
        why = _REFUSED.get(key) or _OF_A_CALL.get(key)
        if why is None and known and key not in known:
            close = difflib.get_close_matches(key, sorted(known | set(_SETTINGS) | {"inventory"}), 1)
            why = "it is not a setting" + (": did you mean {}?".format(close[0]) if close else "")
        if why:
            raise SaltInvocationError("{}: {}".format(_OF_DEFAULTS.format(key), why))


def _check_names(command, flags, given, binary):
    """Every argument is a flag of the command: said before anything is rendered, with the nearest that there is."""
    known = {one.replace("-", "_") for one in (read_features(binary).get("flags") or {}).get(command) or ()}
    if "no_prune" in known:
        known.add("prune")
    for key in flags if known else ():  # else a build that does not list them: brine says it
        if key not in known and key not in _REFUSED and re.match(r"^[a-z][a-z0-9_]*$", key):
            others = set(_SETTINGS) | {"inventory", "test"} | (set(RENDERING) | {"source", "bundle", "sls", "plan_digest"} if given else set())
            close = difflib.get_close_matches(key, sorted(known | others), 1)
            raise SaltInvocationError("{} is not an argument of this function, and brine {} has no such flag{}".format(
                key, command, ": did you mean {}?".format(close[0]) if close else ""))


def _check_types(arguments, named="{}"):
    """Said before anything runs: what a mistyped argument should be."""
    for key in sorted(arguments, key=str):
        value = arguments[key]
        if key in _TYPES and value is not None:
            check_type(named.format(key), value, *_TYPES[key])


def check_type(name, value, types, pattern, what):
    # True and False are numbers for Python.
    if not isinstance(value, types) or isinstance(value, bool) and bool not in types or pattern and not isinstance(value, (bool, list, tuple)) and not re.match(pattern, str(value)):
        shown = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, (list, tuple)) else "text" if types == (dict,) or "\n" in str(value) else repr(value)
        raise SaltInvocationError("{} is {}: it has to be {}".format(name, shown, what))


def _flags(flags, command):
    """Arguments as flags. Which of them there are, brine says."""
    argv = []
    for key in sorted(flags):
        value = flags[key]
        if key in _REFUSED:
            raise SaltInvocationError("{} is not an argument: {}".format(key, _REFUSED[key]))
        if not re.match(r"^[a-z][a-z0-9_]*$", key) or isinstance(value, dict):
            raise SaltInvocationError("{} cannot be a flag of brine".format(key))
        if key == "prune":
            key, value = "no_prune", not is_true(value)
        argv += ["--{}={}".format(key.replace("_", "-"), _value(key, one, command)) for one in (value if isinstance(value, (list, tuple)) else [value])]
    return argv


def _value(key, value, command):
    if key == "wait" and command != "status" and str(value).lower() in ("true", "false"):
        return "ready" if is_true(value) else "applied"
    if isinstance(value, bool) or _TYPES.get(key) is _SWITCH:  # also as text
        return "true" if is_true(value) else "false"
    if key.endswith(("timeout", "lifetime", "fail_after", "heartbeat")) and re.match(r"^[0-9]+(\.[0-9]+)?$", str(value)):
        return "{}s".format(value)
    return str(value)


def read_seconds(key, value):
    """A number of seconds, or a time like 20m."""
    check_type(key, value, *_TIME)
    text = str(value)
    if re.match(r"^[0-9.]+$", text):
        return float(text)
    return sum(float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", text))


def is_true(value):
    return str(value).lower() in ("true", "yes", "on", "1")


def revision_words(revision):
    """The argument of `brine rollback`; without one it undoes the last apply, as with last-good."""
    return {None: ["last-good"], "previous": []}.get(revision, [str(revision)])


def name_inventory(name, given, default):
    """
    The inventory of a call. A name that is given in a state or a call is never
    replaced by a default from pillar: it may name another inventory.
    """
    name, default = str(name), str(default or "")
    inventory = str(name if given is None else given)
    if given is None and default:
        if name not in (default, default.rsplit("/", 1)[-1]):
            raise SaltInvocationError(
                "the name {!r} is not that of the default inventory {}: give `inventory: {}`, or the inventory that is "
                "meant (the default is `brine: {{inventory: …}}` in pillar, grains or configuration)".format(name, default, default)
            )
        inventory = default
    if not re.match(r"^([a-z0-9][a-z0-9-]*/)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", inventory):
        raise SaltInvocationError(  # the state's name, which may be a sentence
            "{!r} cannot be the name of an inventory: give `inventory: NAME` or `inventory: NAMESPACE/NAME` "
            "(lower case letters, digits, '-')".format(inventory)
        )
    return inventory


def _approved(path, digest):
    """Refuse a plan that is not the approved one."""
    if digest is None:
        return
    if not path:
        raise SaltInvocationError("plan_digest has no effect without plan")
    try:
        found = digest_file(path)
    except OSError as exc:
        raise CommandExecutionError("read the plan: {}".format(exc))
    if found != digest:
        raise CommandExecutionError("the plan {} is not the approved one, and nothing was changed: its digest is {}, plan_digest is {}".format(path, found, digest))


def digest_file(path):
    with open(path, "rb") as file:
        return "sha256:" + hashlib.sha256(file.read()).hexdigest()


def _rules(values, key):
    """Rules that are no file go into one, which lasts as long as what is returned."""
    rules = values.get(key)
    if rules is None or isinstance(rules, str):
        return None
    if not rules:
        del values[key]
        return None
    file = tempfile.NamedTemporaryFile("w", prefix="brine-{}-".format(key), suffix=".yaml")
    json.dump(rules, file, indent=1)
    file.flush()
    values[key] = file.name
    return file


def _began(jid):
    """When this job first came here: it has to see every file that was there then."""
    if not jid or brine.context.get("brine.job", (None,))[0] != jid:
        brine.context["brine.job"] = (jid, time.time())
    return brine.context["brine.job"][1]


def find_job():
    """
    The id of the job that this process runs, or belongs to (parallel states): minions
    note it in a file named by it, and report it to no state.
    """
    try:
        import salt.utils.msgpack  # pylint: disable=import-outside-toplevel

        folder, found = os.path.join(brine.opts["cachedir"], "proc"), {}
        for jid in os.listdir(folder):
            with open(os.path.join(folder, jid), "rb") as file:
                found.setdefault(salt.utils.msgpack.unpackb(file.read(), raw=False).get("pid"), []).append(jid)
        jids = found.get(os.getpid()) or found.get(os.getppid()) or []
    except Exception as exc:  # pylint: disable=broad-except
        log.debug("brine: no job id: %s", exc)
        return None
    return jids[0] if len(jids) == 1 else None


def find_binary(binary):
    path = shutil.which(str(binary or "brine"))
    if path is None:
        raise CommandExecutionError(
            "{} is not an executable file here: install brine, or say where it is with "
            "`brine: {{binary: PATH}}` in pillar or configuration".format(binary or "brine")
        )
    return path


def read_features(path):
    """What `brine version -o json` prints, kept for later jobs, which are processes of their own; {} where that fails."""
    stat = os.stat(path)
    key = "{} {} {}".format(os.path.realpath(path), stat.st_mtime, stat.st_size)
    kept = None
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        kept = place_document("cache", "version")
        with open(kept) as file:
            document = json.load(file)
        if document.get("key") == key:
            return dict(document["version"])
    try:
        found = dict(json.loads(brine.running.communicate([path, "version", "--output=json"], dict(os.environ))["stdout"]))
    except (CommandExecutionError, ValueError, TypeError):
        return {}
    if kept:
        keep_document(kept, {"key": key, "version": found})
    return found


def place_document(kind, name):
    """The path of what is kept between jobs."""
    folder = os.path.join(brine.opts["cachedir"], "brine", kind)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, name.replace("/", ".") + ".json")


def name_kept(inventory, flags):
    """The name of what is kept of an inventory: of two clusters that calls name, inventories may have one name."""
    cluster = " ".join(one for one in flags if one[2:].split("=")[0].replace("-", "_") in CONNECTION)
    return "{}-{}".format(inventory, hashlib.sha256(cluster.encode("utf-8")).hexdigest()[:12]) if cluster else inventory


def flags_of_cluster(kwargs):
    """The arguments that name the cluster, as flags."""
    names = [key for key in kwargs if key in CONNECTION and key not in _CREDENTIALS + ("binary",)]
    return _flags({key: kwargs[key] for key in names if kwargs[key] is not None}, "apply")


def keep_document(path, document):
    with contextlib.suppress(OSError):
        handle, made = tempfile.mkstemp(dir=os.path.dirname(path))
        with os.fdopen(handle, "w") as file:
            json.dump(document, file)
        os.rename(made, path)
