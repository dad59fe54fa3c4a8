package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle/report"
	"brine/cmd/brine/profile"
)

func TestEveryCommandHasATimeout(t *testing.T) {
	short := map[string]bool{"status": true, "history": true, "history show": true, "get": true, "rbac": true, "images": true, "inventory list": true, "inventory orphans": true}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "brine ")
		if cmd.RunE == nil || name == "version" {
			return
		}
		want := "10m0s"
		if short[name] {
			want = "1m0s"
		}
		f := cmd.Flags().Lookup("timeout")
		if f == nil || f.DefValue != want || !strings.Contains(f.Usage, report.Grace.String()) {
			t.Errorf("%s: --timeout is %+v, want %s", name, f, want)
		}
		delete(short, name)
	}
	walk(newRoot(Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, &profile.Profile{}))
	if len(short) > 0 {
		t.Errorf("no such commands: %v", short)
	}
}

// Whatever holds a command up, it ends within the grace.
func TestACommandThatHangsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, report.ErrTimeout)
		defer cancel()
		hang := make(chan struct{})
		begin := time.Now()
		err := inTime(ctx, func() error { <-hang; return nil })
		if took := time.Since(begin); took != time.Minute+report.Grace || endOf(err).code != report.ExitUnreachable || !errors.Is(err, report.ErrTimeout) {
			t.Errorf("after %s: %v", took, err)
		}
		close(hang)
	})
}
