package run

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle/cluster/answers"
	"brine/bundle/report"
	"brine/inventory/store"
)

// ExitCode is what an error that ended a run early stands for.
func ExitCode(err error) int {
	var s *report.Stop
	switch {
	case err == nil:
		return report.ExitOK
	case errors.As(err, &s):
		return s.Code
	case errors.Is(err, store.ErrNoRevision):
		return report.ExitBadBundle
	case errors.Is(err, store.ErrLocked), errors.Is(err, store.ErrTaken), errors.Is(err, store.ErrLockLost), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotLast):
		return report.ExitLocked
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), answers.Unreachable(err), answers.Misdirected(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, report.ErrTimeout):
		return report.ExitUnreachable
	}
	return report.ExitFailed
}

// Refuse is the result of a run that could not begin.
func Refuse(ctx context.Context, o Options, code int, err error, emit func(report.Event)) *report.Result {
	return report.New(o.Header, emit).Finish(ctx, code, err, map[string]int{})
}
