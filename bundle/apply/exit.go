package apply

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/inventory"
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
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// stop is an error that ends a run before its first write, with its exit code.
type stop struct {
	code   int
	errors []error
}

func (s *stop) Error() string   { return errors.Join(s.errors...).Error() }
func (s *stop) Unwrap() []error { return s.errors }

func badBundle(problems []bundle.Problem) error {
	s := &stop{code: ExitBadBundle}
	for _, p := range problems {
		s.errors = append(s.errors, p)
	}
	return s
}

// exitCode is what an error that ended a run early stands for.
func exitCode(err error) int {
	var s *stop
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &s):
		return s.code
	case errors.Is(err, inventory.ErrLocked), errors.Is(err, inventory.ErrTaken), errors.Is(err, inventory.ErrLockLost), errors.Is(err, inventory.ErrConflict):
		return ExitLocked
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), cluster.Unreachable(err), cluster.Misdirected(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrTimeout):
		return ExitUnreachable
	}
	return ExitFailed
}

// Lines are the messages of an error, one each.
func Lines(err error) []string {
	var lines []string
	var s *stop
	var problems bundle.Problems
	switch {
	case errors.As(err, &s):
		for _, e := range s.errors {
			lines = append(lines, Lines(e)...)
		}
	case errors.As(err, &problems):
		for _, p := range problems {
			lines = append(lines, p.Error())
		}
	default:
		lines = []string{err.Error()}
	}
	return lines
}
