package report

import (
	"context"
	"errors"
	"slices"
	"time"

	"brine/bundle"
)

// Exit codes of a run, as the developers' guide fixes them.
const (
	ExitOK          = 0
	ExitFailed      = 1 // some object failed
	ExitChanges     = 2 // changes exist (--detailed-exitcode)
	ExitBadBundle   = 3 // bad bundle or usage
	ExitNotReady    = 4 // applied, but not ready in time, or failed
	ExitLocked      = 5 // another run holds the lock
	ExitUnreachable = 6 // cluster unreachable, or not permitted
	ExitRolledBack  = 7 // some object failed or was not ready, and the last good revision was applied again
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// Succeeded says whether a command did all that it was asked for.
func Succeeded(code int) bool { return code == ExitOK || code == ExitChanges }

// Grace is the time in which a command ends after its --timeout or a signal, even if the
// server does not answer.
const Grace = 10 * time.Second

// Causes of the end of a run's context.
var (
	ErrTimeout     = errors.New("time ran out") // the run took longer than --timeout
	ErrInterrupted = errors.New("SIGINT")
	ErrTerminated  = errors.New("SIGTERM")
)

// Stop is an error that ends a run before its first write, with its exit code.
type Stop struct {
	Code   int
	Errors []error
}

func (s *Stop) Error() string {
	if err := errors.Join(s.Errors...); err != nil {
		return err.Error()
	}
	return "the objects say why"
}

func (s *Stop) Unwrap() []error { return s.Errors }

// BadBundle ends a run because of problems of its bundle.
func BadBundle(problems ...bundle.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &Stop{Code: ExitBadBundle, Errors: bundle.Each(problems, func(p bundle.Problem) error { return p })}
}

// Lines are the messages of an error, one each.
func Lines(err error) []string {
	var s *Stop
	var problems bundle.Problems
	switch {
	case errors.As(err, &s):
		return slices.Concat(bundle.Each(s.Errors, Lines)...)
	case errors.As(err, &problems):
		return bundle.Each(problems, bundle.Problem.Error)
	}
	return []string{err.Error()}
}

// SignalExit is the exit code of a command that a signal ended, and the signal's
// name; 0 for every other.
func SignalExit(ctx context.Context) (code int, name string) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrTerminated):
		return ExitTerminated, ErrTerminated.Error()
	case errors.Is(cause, ErrInterrupted):
		return ExitInterrupted, ErrInterrupted.Error()
	}
	return ExitOK, ""
}

// exitCode is the exit code of a run that ended with ctx's cause, and with code
// where an error ended it early. It notes the signal in the result.
func (r *Recorder) exitCode(ctx context.Context, code int) int {
	s := &r.Result.Summary
	if signalled, name := SignalExit(ctx); signalled != ExitOK {
		r.Result.Interrupted = name
		return signalled
	}
	switch {
	case code != ExitOK:
		return code
	case s.Failed > 0 || len(r.Result.Errors) > 0:
		return ExitFailed
	case s.NotReady > 0 || r.timedOut:
		return ExitNotReady
	case r.detailed && s.Created+s.Configured+s.Recreated+s.Pruned+s.Detached > 0:
		return ExitChanges
	}
	return ExitOK
}
