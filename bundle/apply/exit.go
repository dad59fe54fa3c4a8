package apply

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/inventory"
)

// ExitCode is what an error that ended a run early stands for.
func ExitCode(err error) int {
	var s *report.Stop
	switch {
	case err == nil:
		return report.ExitOK
	case errors.As(err, &s):
		return s.Code
	case errors.Is(err, inventory.ErrLocked), errors.Is(err, inventory.ErrTaken), errors.Is(err, inventory.ErrLockLost), errors.Is(err, inventory.ErrConflict):
		return report.ExitLocked
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), cluster.Unreachable(err), cluster.Misdirected(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, report.ErrTimeout):
		return report.ExitUnreachable
	}
	return report.ExitFailed
}
