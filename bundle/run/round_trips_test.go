package run_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

// rounds holds back requests until no other one comes, then lets all of them go: the
// number of rounds is the longest chain of requests that wait for each other's answers.
type rounds struct {
	mu      sync.Mutex
	quiet   time.Duration
	timer   *time.Timer
	held    chan struct{}
	current []string
	all     []string // what went in each round
}

func (r *rounds) hold(q clustertest.Request) clustertest.Action {
	if q.Query.Get("watch") != "" {
		return clustertest.Action{}
	}
	r.mu.Lock()
	if r.held == nil {
		r.held = make(chan struct{})
		r.timer = time.AfterFunc(r.quiet, r.release)
	}
	r.timer.Reset(r.quiet)
	r.current = append(r.current, q.Method+" "+q.Path[strings.LastIndex(q.Path, "/")+1:])
	held := r.held
	r.mu.Unlock()
	<-held
	return clustertest.Action{}
}

func (r *rounds) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil { // the timer went off, and was set again before this came
		return
	}
	close(r.held)
	r.all = append(r.all, strings.Join(r.current, ", "))
	r.held, r.current = nil, nil
}

func (r *rounds) rounds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// The round trips that a run waits for, one after the other. A slow machine may send
// what belongs together too late, so the least of some tries counts.
func TestRoundTrips(t *testing.T) {
	text := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.ServiceAccount("c"), clitest.Role("Role", "d"))
	for name, c := range map[string]struct {
		before string
		run    func(*clitest.Fixture)
		want   int
	}{
		// Discovery and the lock; the inventory's parts; the objects; the lock; the inventory;
		// the objects; the revision and the fingerprints; the inventory; the lock.
		"first apply": {run: func(s *clitest.Fixture) { s.Apply(text).Want(t, 0) }, want: 9},
		"unchanged":   {before: text, run: func(s *clitest.Fixture) { s.Apply(text).Want(t, 0) }, want: 3},
		"changed":     {before: text, run: func(s *clitest.Fixture) { s.Apply(strings.ReplaceAll(text, "value", "other")).Want(t, 0) }, want: 9}, // the inventory says that it begins
		"preview":     {run: func(s *clitest.Fixture) { s.Preview(text).Want(t, 0) }, want: 4},
		"destroy":     {before: text, run: func(s *clitest.Fixture) { s.Destroy().Want(t, 0) }, want: 11}, // with who owns them, before the first DELETE; the last but one asks who made the namespace
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			direct := *s
			p := s.Proxied()
			var least []string
			for try := range 5 {
				if c.before != "" {
					direct.Apply(c.before).Want(t, 0)
				}
				r := &rounds{quiet: time.Duration(try+1) * 150 * time.Millisecond}
				p.Intercept(r.hold)
				c.run(s)
				direct.Destroy()
				if all := r.rounds(); least == nil || len(all) < len(least) {
					least = all
				}
				if len(least) <= c.want {
					break
				}
			}
			if len(least) != c.want {
				t.Errorf("%d round trips, want %d:\n%s", len(least), c.want, strings.Join(least, "\n"))
			}
		})
	}
}
