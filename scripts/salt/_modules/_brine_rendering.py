"""The bundle, as Salt renders it, without a Secret in a log. Part of brine.py and brine_object.py."""

import collections.abc
import contextlib
import datetime
import fnmatch
import functools
import json
import logging
import os
import re
import threading
import time

from salt.exceptions import CommandExecutionError, SaltInvocationError

log = logging.getLogger(__name__)

_ENDINGS = (".yaml", ".yml", ".json", ".sls")
_PATTERN = re.compile(r"^\s*-\s+['\"]?(?!\[)[\w.-]*[*?\[][\w.*?\[\]-]*['\"]?\s*$", re.M)  # an include that takes what there is
# What an error of rendering quotes: words that Salt and YAML give, then text of others.
_UNTRUSTED = re.compile(
    r"(Jinja error: ).*?(?=; line \d+\s*(?:\(the text around it is left out\))?\Z|\Z)|(HTTP response body: ).*|((?:alias|anchor|tag|tag handle) )(?:'[^'\n]*'|\"[^\"\n]*\")", re.DOTALL)


def render_bundle(given, run):
    """
    The bundle as bytes for standard input. A comment before each part names the
    file, and the number of its first line, for brine's messages.
    """
    if given is None:
        run.without_effect(brine.call.RENDERING + ("template",), "there is no bundle")
        return None
    source, bundle, sls = given
    named = [key for key, value in (("source", source), ("bundle", bundle), ("sls", sls)) if value]
    if len(named) != 1:
        raise SaltInvocationError("give one of source, bundle and sls; this has {}".format(" and ".join(named) or "none"))
    run.flags.append("--filename=-")
    saltenv = run.settings["saltenv"] or brine.opts.get("saltenv") or "base"
    origin = {"sls": [], "files": [], "pillar": _pillar_settings()}
    saltenvs = set() if source else {saltenv}
    if not sls:
        run.without_effect(("pillar", "allow_empty_sls"), "only sls takes it")
    if not source:
        run.without_effect(("defaults", "template"), "only source takes it")
    if sls:
        parts = [("compiled SLS", _show(sls, saltenv, run, origin))]
    elif not source:
        several = isinstance(bundle, (list, tuple)) and all(isinstance(one, dict) and "apiVersion" in one for one in bundle)
        objects = bundle if several else [bundle]
        parts = [("bundle" if len(objects) == 1 else "bundle[{}]".format(i), one) for i, one in enumerate(objects)]
    else:
        sources = [str(one) for one in (source if isinstance(source, (list, tuple)) else [source])]
        brine.call.refuse_pinned({}, sources)
        parts = []
        for one in sources:
            files, env, optional = _files(one, saltenv, run)
            origin["files"] += files
            saltenvs.add(env)
            parts += [part for part in (_render(path, env, run.settings, optional) for path in files) if part]
    text = "\n---\n".join(_part(*part) for part in parts)
    if run.command == "apply":  # a comment for a binary that does not know it
        origin.update(saltenv=", ".join(sorted(saltenvs)), tree=_tree(saltenvs))
        text = "# brine.dev/rendering: {}\n{}".format(json.dumps(origin, sort_keys=True), text)
    return text.encode("utf-8")


def _pillar_settings():
    """What pillar says about the inventory, for the revision."""
    values = (brine.pillar or {}).get("brine")
    names = ("inventory", "namespace", "prune", "no_prune", "max_prune", "removed", "refuse_removed")
    return {key: json.dumps(values[key]) for key in names if key in values} if isinstance(values, dict) else {}


def _tree(saltenvs):
    """
    All files of the saltenvs, by which brine sees whether an SLS or a file that the last run
    had was forgotten, or is gone. None where that is not known: salt-ssh sends some only.
    """
    if os.path.basename(str(brine.opts.get("root_dir") or "").rstrip("/")) == "running_data":
        return None
    try:
        found = [name for env in sorted(saltenvs) for name in brine.salt["cp.list_master"](saltenv=env, prefix="")]
    except Exception as exc:  # pylint: disable=broad-except
        log.warning("brine: the files of the saltenv cannot be listed: %s", cut_secrets(exc))
        return None
    return found or None


def _part(name, content):
    if isinstance(content, bytes):
        content = content.decode("utf-8")
    line = 1
    if not isinstance(content, str):  # nobody has seen its lines
        line, content = 0, json.dumps(content, default=_plain, ensure_ascii=False)
    return "# brine.dev/source: {} {}\n{}".format(line, name, content.lstrip("\ufeff"))  # a byte order mark counts at the beginning only


def _plain(value):
    """What renderers give besides JSON's types, as these. What has no such form must not be applied as its Python text."""
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, collections.abc.Sequence) and not isinstance(value, (bytes, bytearray)):
        return list(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return str(value)
    hint = ": give what `!!binary` holds as text in base64" if isinstance(value, bytes) else ""
    raise CommandExecutionError("a value of the bundle is of Python's type {}, which Kubernetes does not have{}".format(type(value).__name__, hint))


def _files(source, saltenv, run):
    """
    The files that a source names: one, those of a folder (which ends in "/"), or
    those that fit a pattern; their saltenv; and whether one may render to nothing.
    """
    path, _, query = source.partition("?saltenv=")
    if query:
        saltenv = query
    if path.endswith("/"):
        folder, pattern = path, None
    elif any(c in path for c in "*?["):
        folder, _, pattern = path.rpartition("/")
        folder += "/"
        if any(c in folder for c in "*?["):
            raise SaltInvocationError("{}: only the last part of a path can be a pattern".format(source))
    else:
        return [path], saltenv, False
    if path.startswith("salt://"):
        if not _renewed(saltenv, run):
            _outlast(run)
        prefix = folder[len("salt://"):]
        names = [n[len(prefix):] for n in brine.salt["cp.list_master"](saltenv=saltenv, prefix=prefix) if n.startswith(prefix)]
    else:
        names = os.listdir(folder) if os.path.isdir(folder) else []
    names = sorted(n for n in names if "/" not in n and not n.startswith("."))
    if pattern is not None:
        names = fnmatch.filter(names, pattern)
    else:
        names = [n for n in names if n.endswith(_ENDINGS)]
    if not names:
        what = "fits" if pattern else "in it ends in " + ", ".join(_ENDINGS)
        raise CommandExecutionError("{}: no file {} (saltenv {})".format(path, what, saltenv))
    return [folder + n for n in names], saltenv, True


def _renewed(saltenv, run):
    """
    Salt keeps a list of the files for fileserver_list_cache_time (20 s). What was added
    since is not in it, and its objects would be pruned. Has it made anew once in a run,
    and says whether it is.
    """
    if saltenv not in run.renewed:
        brine.salt["cp.list_master"](saltenv=saltenv, prefix="//")  # one that somebody is making is ready then
        run.renewed[saltenv] = _clear(saltenv)
    return run.renewed[saltenv]


def _clear(saltenv):
    if brine.opts.get("file_client") == "local":  # its files are read by this process
        import salt.fileserver  # pylint: disable=import-outside-toplevel

        salt.fileserver.Fileserver(dict(brine.opts)).clear_file_list_cache({"saltenv": [saltenv]})
        return True
    if "publish.runner" not in brine.salt:
        return False
    # The master answers nothing to a minion that peer_run does not name.
    answer = brine.salt["publish.runner"]("fileserver.clear_file_list_cache", [{"saltenv": [saltenv], "__kwarg__": True}])
    return isinstance(answer, dict) and any(isinstance(envs, list) and saltenv in envs for envs in answer.values())


def _outlast(run):
    """Wait until no list is older than this job."""
    seconds = run.began + float(brine.opts.get("fileserver_list_cache_time", 20)) + 1 - time.time()
    if seconds > 0:
        log.warning(
            "brine: waiting %.0f s: the master's list of files may be older than this job. It is made anew at once where "
            "peer_run in the master's configuration allows this minion fileserver.clear_file_list_cache", seconds)
        time.sleep(seconds)


def _render(path, saltenv, settings, optional):
    """A file's name for messages, and its content; None for one of several that renders to nothing."""
    template = settings["template"]
    name = path
    file = path if path.startswith("/") else brine.salt["cp.cache_file"](path, saltenv=saltenv)
    if not file or not os.path.isfile(file):  # Salt renders such a file to nothing
        raise CommandExecutionError("{} is not there, or could not be read (saltenv {})".format(path, saltenv))
    if template in (None, False, "", "none"):
        try:
            with open(file, encoding="utf-8") as content:
                text = content.read()
        except (OSError, ValueError) as exc:
            raise CommandExecutionError("{} could not be read: {}".format(path, exc)) from None
    else:
        name += " (rendered)"
        with without_logs():
            try:
                text = brine.salt["slsutil.renderer"](path=file, default_renderer=template, saltenv=saltenv, **(settings["defaults"] or {}))
            except Exception as exc:  # pylint: disable=broad-except
                raise CommandExecutionError("{} could not be rendered: {}".format(path, cut_secrets(exc))) from None
    if not text or isinstance(text, str) and not text.strip():
        if optional:
            log.info("brine: %s renders to nothing", path)
            return None
        raise CommandExecutionError("{} renders to nothing (saltenv {})".format(path, saltenv))
    return name, text


def _show(sls, saltenv, run, origin):
    """
    Low data: includes, extends and requisites resolved by Salt itself. What Salt
    only logs must not pass: objects of an SLS that it left out would be pruned.
    """
    settings, renewed = run.settings, _renewed(saltenv, run)
    kwargs = {"saltenv": saltenv, "concurrent": True}  # a state run is under way: this one
    pillar = _merged(_given_pillar(run), settings["pillar"] or {})
    if pillar:
        kwargs["pillar"] = pillar
    while True:
        with without_logs() as errors, _compiled() as (rendered, content, files):
            low = brine.salt["state.show_low_sls"](sls, **kwargs)
        named = ["- {}".format(one) for one in (sls if isinstance(sls, (list, tuple)) else str(sls).split(","))]
        if renewed or not any(_PATTERN.search(text) for text in named + [found["text"] for found in files.values()]):
            break
        _outlast(run)
        renewed = True
    files = {one: found["source"] for one, found in files.items()}
    origin["sls"] = sorted(rendered)
    if not isinstance(low, list) or not low or any(not isinstance(chunk, dict) for chunk in low):
        why = "; ".join(cut_secrets(e) for e in (low if isinstance(low, list) else [low])) or "no states"
        raise CommandExecutionError("Salt did not render {}: {}".format(sls, why))
    if errors:
        raise CommandExecutionError("Salt logged errors while it compiled {}, so that states may be missing: {}".format(sls, "; ".join(errors)))
    allowed = settings["allow_empty_sls"] or []
    if isinstance(allowed, str):
        allowed = True if brine.call.is_true(allowed) else [one.strip() for one in allowed.split(",")]
    empty = ", ".join(sorted(one for one in rendered - content if allowed is not True and one not in allowed))
    if empty:
        raise CommandExecutionError("{0} gave no state: its objects would be pruned. If that is intended, give `allow_empty_sls: [{0}]`".format(empty))
    return [dict(chunk, __file__=files.get(chunk.get("__sls__")) or "") for chunk in low] if files else low


def _given_pillar(run):
    """
    What the state run was given as pillar, as in `state.apply pillar={…}`: Salt compiles the
    pillar of show_low_sls again, without it. It is where the pillar of this state run differs.
    """
    if not run.in_state or not brine.pillar or "pillar.items" not in brine.salt:
        return {}
    try:
        with without_logs():
            return _differing(dict(brine.pillar), brine.salt["pillar.items"]() or {})
    except Exception as exc:  # pylint: disable=broad-except
        raise CommandExecutionError("the pillar could not be compiled: {}".format(cut_secrets(exc))) from None


def _differing(mine, other):
    found = {}
    for key, value in mine.items():
        if key not in other or other[key] != value:
            both = isinstance(value, dict) and isinstance(other.get(key), dict)
            found[key] = _differing(value, other[key]) if both else value
    return found


def _merged(mine, over):
    found = dict(mine)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = _merged(found[key], value) if both else value
    return found


@contextlib.contextmanager
def without_logs():
    """
    Salt logs all that it renders, Secrets too: meanwhile this thread logs nothing, and
    afterwards the warnings and errors, without rendered text. Gives the errors.
    """
    thread, logger, errors, later = threading.current_thread(), logging.getLogger("salt"), [], []

    class Handler(logging.Handler):
        def emit(self, record):
            if threading.current_thread() is not thread:
                logging.getLogger().callHandlers(record)
            elif record.levelno >= logging.WARNING:
                later.append((record.levelno, cut_secrets(record.getMessage())))
                if record.levelno >= logging.ERROR and not record.name.startswith("salt.loader"):
                    errors.append(later[-1][1])

    handler, before = Handler(), (logger.level, logger.propagate)
    if logger.getEffectiveLevel() > logging.ERROR:
        logger.setLevel(logging.ERROR)  # --log-level=quiet
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield errors
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
        for level, message in later:
            log.log(level, "%s", message)


@contextlib.contextmanager
def _compiled():
    """
    The SLS that Salt compiles while this lasts, those of them that have content (states, or
    only an include), and their files.

    Methods of Salt are wrapped for it. Its low and high data (state.show_low_sls, show_sls,
    show_states) name an SLS only where it gave a state, so that one that rendered to nothing
    looks like one that nobody included, and its objects would be pruned; a function that
    tells them apart was not found. The sources of 3002.7, 3003.3, 3004, 3005.1, 3006.0 and
    3007 have the methods. Where one is missing, nothing is wrapped.
    """
    thread, rendered, content, files = threading.current_thread(), set(), set(), {}
    notes = {
        "render_state": lambda _, sls, *args, **kwargs: rendered.add(sls),
        "_handle_extend": lambda _, state, sls, *args, **kwargs: content.add(sls),
        "get_state": lambda found, sls, *args, **kwargs: files.update({sls: {"source": found.get("source"), "text": _text(found.get("dest"))}}),
    }

    def noting(note, function):
        @functools.wraps(function)
        def call(self, *args, **kwargs):
            found = function(self, *args, **kwargs)
            if threading.current_thread() is thread:
                note(found, *args, **kwargs)
            return found

        return call

    compiler, client = _compiler()
    before = []
    try:
        wrapped = ((compiler, "render_state"), (compiler, "_handle_extend"), (client, "get_state"))
        if all(hasattr(of, name) for of, name in wrapped):
            for of, name in wrapped:
                before.append((of, name, getattr(of, name)))
                setattr(of, name, noting(notes[name], before[-1][2]))
        yield rendered, content, files
    finally:
        for one in before:
            setattr(*one)


def _text(path):
    with contextlib.suppress(OSError, TypeError, ValueError), open(path, encoding="utf-8") as file:
        return file.read()
    return ""


def _compiler():
    """The classes of Salt that render SLS and read their files; None without a Salt, in tests."""
    try:
        import salt.fileclient  # pylint: disable=import-outside-toplevel
        import salt.state  # pylint: disable=import-outside-toplevel

        return salt.state.BaseHighState, salt.fileclient.Client
    except ImportError:
        return None, None


def cut_secrets(error):
    """
    An error of rendering without what may hold Secrets: the rendered text, which Salt puts
    behind a line of dashes, the words of an exception that a template's own call raised,
    what YAML quotes, and the body of a server's answer.
    """
    text = str(error)
    head = text.split("\n---\n")[0]
    shown = _UNTRUSTED.sub(lambda found: next(filter(None, found.groups())) + "(left out: it may hold Secrets)", head)
    return shown if head == text else shown + " (the text around it is left out)"
