"""
What brine did on many minions, as one table.

The runner reads the master's job cache: it asks no minion and no cluster.
Put this file into ``_runners`` of the file roots and run ``salt-run
saltutil.sync_all``, or install the extension saltext-brine.
"""

import datetime
import html
import logging
import os
import re
import tempfile

from salt.exceptions import SaltInvocationError

log = logging.getLogger(__name__)

__virtualname__ = "brine"

_ACTIONS = ("created", "configured", "recreated", "pruned", "detached", "unchanged", "skipped", "failed")
_COUNTS = re.compile(r"(\d+) ({}|not ready|ready)\b".format("|".join(_ACTIONS)))
_HEADLINE = re.compile(
    r"^(Changed|Would change|Nothing to change|Failed|Failed, and [a-z ]+|Interrupted by \w+|Not ready in time|Nothing was changed)\b"
)
_COLUMNS = ("minion", "run", "result", "exit", "objects", "not ready", "seconds")
_CAUSES = 5  # lines of a failed run
_CHANGES = 100  # lines of a plan


def __virtual__():
    return __virtualname__


def report(jid=None, out="text", file=None, since=None):
    """
    A table of the runs of brine in jobs or orchestrates: the minion, the exit code,
    the objects by action, those that are not ready, and the seconds. Below it are the
    causes of failures. Each minion that was asked is in it: changed, unchanged, failed,
    or ``no answer``. The exit code of salt-run is 1 if a run failed or a minion has not
    answered; with ``out=data``, which returns the rows alone, it is 0.

    jid
        A job id, or several (a list, or with commas). Without any, it is the last job or orchestrate that ran
        brine. The jobs that an orchestrate started are part of it.
    since
        All jobs since then, in place of job ids: ``30m``, ``2h``, or a job id. Each
        batch of ``salt --batch-size`` is a job of its own.
    out
        ``text``, ``html``, or ``data``: the rows as a list.
    file
        Write it there instead. A name that ends in ``.html`` is a page.

    CLI Example:

    .. code-block:: bash

        salt-run brine.report 20261122090848994568
        salt-run brine.report since=1h file=/srv/www/platform.html
    """
    if file and str(file).endswith(".html"):
        out = "html"
    if out not in ("text", "html", "data") or file and out == "data":
        raise SaltInvocationError("out is {!r}: give text, html or data (data cannot be written to a file)".format(out))
    if jid and since:
        raise SaltInvocationError("give jid or since, not both")
    jids = [str(one).strip() for one in (jid if isinstance(jid, (list, tuple)) else str(jid or "").split(",")) if one]
    cache = _Cache(__opts__)
    if since:
        jids = cache.between(_first(since), None)
    elif not jids:
        jids = _last(cache)
    rows = [row for one in jids for row in _rows(cache, one, asked=True)]
    if since:
        rows = _once(rows)
    rows.sort(key=lambda row: (row["minion"], row["jid"]))
    jids = sorted({row["jid"] for row in rows}) or jids
    if out == "data":
        return rows
    if not rows:
        return _printed("No run of brine in {}.".format("the jobs " + ", ".join(jids) if jids else "the job cache"), 0)
    code = int(any(row["result"] in (None, "failed") for row in rows))
    text = _page(jids, rows) if out == "html" else _text(rows)
    if not file:
        return _printed(text, code)
    _write(str(file), text)
    return _printed("{} of brine, written to {}".format("1 run" if len(rows) == 1 else "{} runs".format(len(rows)), file), code)


def _printed(text, code):
    """salt-run ends with the retcode in data, and prints values of data: of all keys beside it and the outputter, too."""
    return {"outputter": "newline_values_only", "data": {"report": text + "\n\nexit code:", "retcode": code} if code else text}


# The job cache


class _Cache:
    """The jobs that the master's returner keeps."""

    def __init__(self, opts):
        from salt.minion import MasterMinion  # pylint: disable=import-outside-toplevel

        self.opts = opts
        returners = MasterMinion(opts).returners
        name = opts.get("ext_job_cache") or opts["master_job_cache"]
        self.get_jid, self.get_jids = returners[name + ".get_jid"], returners[name + ".get_jids"]
        self.get_load = returners[name + ".get_load"]
        self.ids, self.jobs = None, set()

    def returns(self, jid):
        """What each minion returned, and the master for an orchestrate: that is wrapped twice."""
        found = {}
        for minion, one in (self.get_jid(jid) or {}).items():
            value = one.get("return") if isinstance(one, dict) else one
            if isinstance(value, dict) and str(value.get("fun")).startswith("runner."):
                value = value.get("return")
            found[minion] = value
        return found

    def expected(self, jid):
        """The minions that were asked; an orchestrate has none."""
        load = self.get_load(jid) or {}
        return load.get("Minions") or [], str(load.get("fun", "")), load.get("arg") or []

    def between(self, first, last):
        """The ids of the jobs in this time, the oldest first. get_jids leaves out orchestrates."""
        if self.ids is None:
            self.jobs = set(self.get_jids() or ())
            ids = set(self.jobs)
            for folder, _, files in os.walk(os.path.join(self.opts["cachedir"], "jobs")):
                if "jid" in files:
                    with open(os.path.join(folder, "jid")) as file:
                        ids.add(file.read().strip())
            self.ids = sorted(ids)
        return [jid for jid in self.ids if jid >= first and (last is None or jid <= last)]


def _first(since):
    """The first job id of a time: ids begin with the local time, or with UTC if utc_jid is set."""
    text = str(since)
    if re.match(r"^\d{14,}(_\d+)?$", text):
        return text
    match = re.match(r"^(\d+)\s*([smhd])$", text)
    if not match:
        raise SaltInvocationError("since is {!r}: give a time such as 30m, 2h or 1d, or a job id".format(since))
    seconds = int(match.group(1)) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match.group(2)]
    now = datetime.datetime.utcnow() if __opts__.get("utc_jid") else datetime.datetime.now()
    return (now - datetime.timedelta(seconds=seconds)).strftime("%Y%m%d%H%M%S%f")


# From returns to rows


def _last(cache):
    """The last job with a run of brine, or the orchestrate that started it."""
    job = next((one for one in reversed(cache.between("", None)) if _rows(cache, one)), None)
    for one in reversed(cache.between("", job) if job else ()):
        if one not in cache.jobs:  # a runner's
            end = _end(one, cache.returns(one))
            if end:
                return [one] if end >= job else [job]
    return [job] if job else []


def _rows(cache, jid, asked=False):
    """The runs of a job; with asked, also the minions that returned nothing, or no run."""
    rows, open_minions, jobs = [], [], []
    returns = cache.returns(jid)
    for minion, value in sorted(returns.items()):
        if not _orchestrated(value):
            rows += _runs(minion, value)
            continue
        for states in value["data"].values():
            rows += _runs(minion, states)
            for state in _states(states).values():
                found, others = _of_minions(state)
                if state.get("__jid__") and _asks_brine(cache, str(state["__jid__"])):
                    jobs.append(str(state["__jid__"]))
                    found = []  # its job has them, and who was asked
                rows += found
                open_minions += others
    for row in rows:
        row["jid"] = jid
    for job in jobs:
        rows += _rows(cache, job, asked)
    # A batch has several jobs, and an orchestrate knows the first: theirs have what it leaves out.
    begun = cache.between(jid, _end(jid, returns) or None) if open_minions or jobs else []
    for job in begun:
        if job not in jobs and any(_runs(minion, cache.returns(job).get(minion)) for minion in open_minions):
            rows += [row for row in _rows(cache, job, asked) if row["minion"] not in {one["minion"] for one in rows}]
    if asked:
        minions = cache.expected(jid)[0] if rows or _asks_brine(cache, jid) else ()
        have = {row["minion"] for row in rows}
        rows += [dict(_without_run(minion, returns), jid=jid) for minion in minions if minion not in have]
    return rows


def _asks_brine(cache, jid):
    """Whether a job has to do with brine: by its function, its arguments, or what a minion returned."""
    _, fun, arguments = cache.expected(jid)
    if fun.startswith(("brine.", "brine_object.")) or any("brine" in str(one) for one in arguments):
        return True
    return any(_runs(minion, value) for minion, value in cache.returns(jid).items())


def _without_run(minion, returns):
    """A minion that was asked, and returned no run of brine."""
    if minion not in returns:
        return _row(minion, "", None, "the minion has not returned")
    value = returns[minion]
    states = _states(value)
    failed = ["{}: {}".format(key.split("_|-")[1], one.get("comment")) for key, one in states.items() if one.get("result") is False]
    if not states:  # an error of rendering, or the text of an exception
        failed = [str(one) for one in (value if isinstance(value, list) else [value])]
    row = _row(minion, "", "failed" if failed else "unchanged", "\n".join(failed) or "no state of brine ran")
    row["causes"] = failed
    return row


def _of_minions(state):
    """
    The runs of the minions that a salt.state or salt.function in an orchestrate has the
    returns of, and the names of the others: those without changes, and those of a batch
    whose failure stands for the return.
    """
    rows, others = [], []
    changes = state.get("changes") or {}
    returns = changes.get("ret") if isinstance(changes, dict) else None
    for minion, value in (returns if isinstance(returns, dict) else {}).items():
        found = _runs(minion, value)
        rows += found
        if not found:
            others.append(minion)
    match = re.search(r"No changes made to ([^.].*?)\.(?:\s|$)", str(state.get("comment") or ""))
    return rows, others + (match.group(1).split(", ") if match else [])


def _once(rows):
    """The jobs of an orchestrate are in the cache as well: each run counts once, as that of its own job."""
    found = {}
    for row in rows:
        found[(row["minion"], row["run"], row["comment"], str(row["seconds"]))] = row
    return list(found.values())


def _orchestrated(value):
    return isinstance(value, dict) and isinstance(value.get("data"), dict) and value.get("outputter") == "highstate"


def _states(value):
    """The states of a highstate return."""
    return {key: one for key, one in value.items() if "_|-" in str(key) and isinstance(one, dict)} if isinstance(value, dict) else {}


def _end(jid, returns):
    """A job id of the time when an orchestrate was over; "" for other jobs."""
    values = [value for value in returns.values() if _orchestrated(value)]
    return max([_ended(jid, state) for value in values for states in value["data"].values() for state in _states(states).values()] + [""])


def _ended(jid, state):
    """A job id of the time when a state of an orchestrate was over."""
    try:
        start = datetime.datetime.strptime(jid[:20], "%Y%m%d%H%M%S%f")
        clock = datetime.datetime.strptime(state["start_time"], "%H:%M:%S.%f").time()
        begun = datetime.datetime.combine(start.date(), clock)
        if begun < start - datetime.timedelta(hours=12):
            begun += datetime.timedelta(days=1)  # past midnight
        return (begun + datetime.timedelta(milliseconds=float(state["duration"]))).strftime("%Y%m%d%H%M%S%f")
    except (KeyError, TypeError, ValueError):
        return ""


def _runs(minion, value):
    """The runs of brine in what a minion returned."""
    if isinstance(value, dict) and value.get("kind") == "Result" and "exitCode" in value:
        return [_of_result(minion, value)]
    if isinstance(value, dict) and {"plan", "digest", "summary"} <= set(value):
        return [_of_plan(minion, value)]
    if isinstance(value, dict) and {"result", "changes", "comment", "name"} <= set(value):
        return [_of_state(minion, value.get("name"), value)]
    found = [(key, one) for key, one in _states(value).items() if key.split("_|-")[0] == "brine" and _is_run(key, one)]
    found.sort(key=lambda pair: pair[1].get("__run_num__") or 0)
    return [
        _of_plan(minion, one["plan"]) if isinstance(one.get("plan"), dict) else _of_state(minion, key.split("_|-")[1], one) for key, one in found
    ]


def _is_run(key, state):
    """Of a whole inventory. A rollback that had nothing to do is none, nor what `onlyif`, `unless`, `onchanges` or `onfail` skipped."""
    if state.get("__state_ran__") is False or state.get("skip_watch") and not state.get("changes"):
        return False
    function = key.rsplit("_|-", 1)[-1]
    return function in ("applied", "absent", "planned") or function == "rolled_back" and (bool(state.get("changes")) or state.get("result") is False)


def _row(minion, run, result, comment):
    return {
        "minion": minion, "run": run, "result": result, "exit": None, "objects": {}, "notReady": [], "notReadyCount": 0,
        "seconds": None, "comment": comment, "causes": [],
    }


def _of_state(minion, run, state):
    """From the return of a state: its comment ends with a line of counts."""
    comment = str(state.get("comment") or "")
    row = _row(minion, str(run), _word(state.get("result"), state.get("changes")), comment)
    lines = [line for line in comment.splitlines() if line.strip()]
    counted = [line for line in lines if _HEADLINE.match(line)]
    head = counted[-1] if counted else ""
    counts = {action: int(number) for number, action in _COUNTS.findall(head)}
    row["objects"] = {action: counts[action] for action in _ACTIONS if action in counts}
    row["notReadyCount"] = counts.get("not ready", 0)
    code = re.search(r"\(exit code (\d+)\)", comment)
    row["exit"] = int(code.group(1)) if code else None if state.get("result") is False else 0
    took = re.search(r" in (\d+\.\d+) s\b", head)
    if took:
        row["seconds"] = float(took.group(1))
    elif isinstance(state.get("duration"), (int, float)):
        row["seconds"] = round(state["duration"] / 1000, 1)
    causes = [line for line in lines if line not in counted]
    row["notReady"] = [line for line in causes if "not-ready" in line]
    now = [text[len("Not ready now: "):] for text in state.get("warnings") or () if str(text).startswith("Not ready now: ")]
    row["notReady"] += now
    if now and not row["notReadyCount"]:
        row["notReadyCount"] = now[0].count("; ") + 1
    if state.get("result") is False:
        row["causes"] = causes or lines
    return row


def _of_result(minion, result):
    """From brine's own result, as brine.apply returns it."""
    summary, code = result.get("summary") or {}, result["exitCode"]
    errors = list(result.get("errors") or [])
    changed = sum(summary.get(action, 0) for action in ("created", "configured", "recreated", "pruned", "detached"))
    inventory = result.get("inventory") or {}
    name = inventory.get("name", "") if isinstance(inventory, dict) else str(inventory)
    dry = result.get("dryRun", "none") != "none"
    row = _row(minion, "{} {}".format(result.get("command", ""), name).strip(), _word(False if code not in (0, 2) else None if dry else True, changed), "")
    row["exit"], row["seconds"] = code, summary.get("seconds")
    row["objects"] = {action: summary[action] for action in _ACTIONS if summary.get(action)}
    row["notReadyCount"] = summary.get("notReady", 0)
    for one in result.get("objects") or ():
        text = "{} {}: {}".format(
            one.get("kind"), "/".join(part for part in (one.get("namespace"), one.get("name")) if part), one.get("error") or one.get("reason") or one.get("ready")
        )
        if one.get("ready") in ("not-ready", "failed"):
            row["notReady"].append(text)
        if one.get("action") == "failed" or one.get("ready") in ("not-ready", "failed"):
            errors.append(text)
    if row["result"] == "failed":
        row["causes"] = errors
    return row


def _of_plan(minion, plan):
    """From what brine.plan returned: the digest is what a person approves."""
    row = _row(minion, "plan of {}".format(plan.get("inventory")), _word(None, plan.get("changes")), str(plan.get("comment") or ""))
    row["exit"], row["objects"] = 0, {action: plan["summary"][action] for action in _ACTIONS if plan["summary"].get(action)}
    row["digest"], row["changes"] = plan["digest"], plan.get("changes") or {}
    row["kept"], row["expires"] = bool(plan.get("kept")), plan.get("expires")
    return row


def _changes(changes):
    """What a plan does with each object, a line for each field."""
    lines = []
    for name in sorted(changes):
        old, new = [changes[name].get(key) for key in ("old", "new")] if isinstance(changes[name], dict) else ("", changes[name])
        if isinstance(old, dict) and isinstance(new, dict):
            lines += ["{}: {}: {} -> {}".format(name, path, *(_short(one.get(path, "(none)")) for one in (old, new))) for path in sorted(set(old) | set(new))]
        else:
            lines.append("{}: {} -> {}".format(name, _short(old), _short(new)))
    return lines


def _short(value):
    text = " ".join(str(value).split())
    return text if len(text) <= 100 else text[:97] + "..."


def _word(result, changes):
    if result is False:
        return "failed"
    if result is None:
        return "would change" if changes else "unchanged"
    return "changed" if changes else "unchanged"


# The table


def _cells(row):
    objects = ", ".join("{} {}".format(number, action) for action, number in row["objects"].items())
    return [
        row["minion"], row["run"], row["result"] or "no answer", "" if row["exit"] is None else str(row["exit"]), objects,
        str(row["notReadyCount"]) if row["notReadyCount"] else "", "" if row["seconds"] is None else "{:.1f}".format(row["seconds"]),
    ]


def _total(rows):
    words = {}
    for row in rows:
        word = row["result"] or "no answer"
        words[word] = words.get(word, 0) + 1
    return "{} on {}: {}".format(
        "1 run" if len(rows) == 1 else "{} runs".format(len(rows)),
        "1 minion" if len({row["minion"] for row in rows}) == 1 else "{} minions".format(len({row["minion"] for row in rows})),
        ", ".join("{} {}".format(words[word], word) for word in ("changed", "would change", "unchanged", "failed", "no answer") if word in words),
    )


def _details(row):
    """The causes of a failure, or what is not ready."""
    lines, most = row["causes"] or row["notReady"], _CAUSES
    if "digest" in row:
        notes = (["it was there, and still holds"] if row["kept"] else []) + (["to be carried out until {}".format(row["expires"])] if row["expires"] else [])
        lines, most = [row["digest"] + (" ({})".format(", ".join(notes)) if notes else "")] + _changes(row["changes"]), _CHANGES
    if not row["result"]:
        lines = [row["comment"]]
    if len(lines) > most:
        lines = lines[:most] + ["and {} more".format(len(lines) - most)]
    return lines


def _text(rows):
    table = [list(_COLUMNS)] + [_cells(row) for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(_COLUMNS))]
    right = ("exit", "not ready", "seconds")
    lines = [
        "  ".join(cell.rjust(width) if name in right else cell.ljust(width) for cell, width, name in zip(line, widths, _COLUMNS)).rstrip()
        for line in table
    ]
    for row in rows:
        found = _details(row)
        if found:
            lines += ["", "{}, {}:".format(row["minion"], row["run"]) if row["run"] else row["minion"] + ":"] + ["  " + line for line in found]
    return "\n".join(lines + ["", _total(rows)])


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #1c2430; background: #fff }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .4em .8em; border-bottom: 1px solid #d8dee6; vertical-align: top }
th { font-weight: 600; color: #5a6675 } .number { text-align: right; font-variant-numeric: tabular-nums }
.failed td:nth-child(3), .none td:nth-child(3) { color: #b3261e; font-weight: 600 } .changed td:nth-child(3) { color: #1b6e3c }
ul { margin: .3em 0; padding-left: 1.2em } .details td { color: #5a6675; border-top: none }
@media (prefers-color-scheme: dark) { body { color: #dde3ea; background: #14181d } th, td { border-color: #333c47 } th, .details td { color: #98a4b3 } }
"""


def _page(jids, rows):
    """One page that needs no network and runs no script."""
    text = lambda value: html.escape(str(value), quote=True)
    kind = lambda name: ' class="number"' if name in ("exit", "not ready", "seconds") else ""
    body = []
    for row in rows:
        word = (row["result"] or "none").split()[0]
        body.append('<tr class="{}">{}</tr>'.format(word, "".join("<td{}>{}</td>".format(kind(name), text(cell)) for name, cell in zip(_COLUMNS, _cells(row)))))
        found = _details(row)
        if found:
            body.append('<tr class="details"><td></td><td colspan="{}"><ul>{}</ul></td></tr>'.format(
                len(_COLUMNS) - 1, "".join("<li>{}</li>".format(text(line)) for line in found)))
    title = "brine: " + _total(rows)
    return "\n".join([
        '<!DOCTYPE html>', '<html lang="en"><head><meta charset="utf-8">', "<title>{}</title>".format(text(title)), "<style>{}</style></head><body>".format(_STYLE),
        "<h1>{}</h1>".format(text(_total(rows))), "<p>Jobs: {}</p>".format(text(", ".join(jids))), "<table><thead><tr>{}</tr></thead><tbody>".format(
            "".join("<th{}>{}</th>".format(kind(name), text(name)) for name in _COLUMNS)),
    ] + body + ["</tbody></table>", "</body></html>", ""])


def _write(path, text):
    """Whole or not at all."""
    handle, made = tempfile.mkstemp(prefix=".brine-report-", dir=os.path.dirname(os.path.abspath(path)))
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(made, 0o644)
        os.rename(made, path)
    except BaseException:
        os.unlink(made)
        raise
