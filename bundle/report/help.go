package report

import (
	"errors"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/remedy"
)

// Explain notes what brine's help has to say about an error.
func (r *Recorder) Explain(err error) { r.help(answers.Help(err)) }

func (r *Recorder) help(command string) {
	said := func(text string) bool { return strings.Contains(text, command) }
	if command != "" && !slices.Contains(r.Result.Help, command) && !slices.ContainsFunc(r.Result.Errors, said) {
		r.Result.Help = append(r.Result.Help, command)
	}
}

// explain does so at the end of a run: code is what err, which ended it early, stands for.
func (r *Recorder) explain(code int, err error) {
	var problem bundle.Problem
	var problems bundle.Problems
	res := r.Result
	switch about := answers.Help(err); {
	case about != "":
		r.help(about)
	case code == ExitUnreachable && err != nil:
		r.help(remedy.HelpConnection)
	case slices.ContainsFunc(res.Errors, func(e string) bool { return strings.Contains(e, "(see ") }): // one says more than a general word
	case code == ExitBadBundle && (res.Summary.Failed > 0 || errors.As(err, &problem) && problem.Source.File != "" || errors.As(err, &problems)):
		r.help(remedy.HelpInvalid)
	}
	if len(res.MissingRights) > 0 {
		r.help(remedy.HelpForbidden)
	}
	if res.DryRun == None && res.Summary.NotReady > 0 {
		r.help(remedy.HelpNotReady)
	}
	if slices.ContainsFunc(res.Objects, func(o *ObjectResult) bool {
		return o.Action == plan.Skipped && strings.HasPrefix(o.Reason, "kept")
	}) {
		r.help(remedy.HelpKept)
	}
}
