// Package simulator runs brine, unchanged, in a world where the API server, the network,
// the time and the other actors are simulated and picked by a seed. An oracle judges what
// the server stored. Tests use it; it is no part of the product.
package simulator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/jsontree"
	"brine/scripts/simulator/apiserver"
)

// World is one simulated world. All of it lives in one bubble of testing/synctest.
type World struct {
	targets map[string]int // of the rollbacks since the last apply, by inventory
	applies map[string][]applied
	server  *apiserver.Server
	rand    *rand.Rand
	mood    // of the step
	around  surroundings
	script  []string
	plan    *savedPlan // the last one
	// By inventory, what is in the Secret of its plan, and the digest of the last plan that a
	// preview told.
	inSecret map[string]*savedPlan
	approved map[string]string
	notAdded map[bundle.ID]bool // what repairs said only looks like a member
	halfDone []*step            // the commands about inventories that did not end
	served   int                // requests of the step
	trial    trial
	at       string   // the step
	events   int      // disturbances of the step, so far
	all      []string // disturbances of the history: step:number
	cached   []string // reads of the step that a cache may answer

	mu      sync.Mutex
	waiting []*pending
	news    chan struct{}
}

// trial is a history: that of a seed, or of these scenes, without some of the disturbances
// that happen, which are named SCENE:NUMBER.
type trial struct {
	seed    uint64
	scenes  []scene // nil: those of the seed
	without []string
}

// happens says whether the next disturbance happens; shrinking leaves some out.
func (w *World) happens() bool {
	w.events++
	key := fmt.Sprintf("%s:%d", w.at, w.events)
	if slices.Contains(w.trial.without, key) {
		return false
	}
	w.all = append(w.all, key)
	return true
}

// pending is a request that waits to be served.
type pending struct {
	process *Process
	request *http.Request
	key     string
	done    chan struct{}
	answer  *http.Response
	err     error
}

// Process is one process of brine.
type Process struct {
	world  *World
	name   string
	lock   string // NAMESPACE/NAME of its inventory
	dead   bool
	denied []string // the rights that it lacks
	// suspended is for how long its machine was: what its wall clock is ahead.
	suspended atomic.Int64
	kill      context.CancelCauseFunc
	ended     chan struct{}
	over      bool
	// requests is how many were served.
	requests int
	faulty   int
	lists    sync.Map // *jsontree.Shared: what the objects of each list share
}

func newWorld(of trial) *World {
	server := apiserver.New()
	if hasGates(of.seed) {
		server.ServeAdmission()
	}
	return &World{trial: of, server: server, rand: rand.New(rand.NewPCG(of.seed, of.seed^0x9e3779b97f4a7c15)), news: make(chan struct{}, 1), targets: map[string]int{}, applies: map[string][]applied{}, inSecret: map[string]*savedPlan{}, notAdded: map[bundle.ID]bool{}, approved: map[string]string{}}
}

var errKilled = errors.New("the process was killed")

// RoundTrip parks the request until the world serves it.
func (p *Process) RoundTrip(r *http.Request) (*http.Response, error) {
	w := p.world
	q := r.URL.Query()
	q.Del("timeoutSeconds") // client-go picks it by chance
	one := &pending{process: p, request: r, key: p.name + " " + r.Method + " " + r.URL.Path + "?" + q.Encode(), done: make(chan struct{})}
	if r.Method == http.MethodPost && r.GetBody != nil { // the path does not say which object
		if body, err := r.GetBody(); err == nil {
			text, _ := io.ReadAll(body)
			one.key += string(text)
		}
	}
	w.mu.Lock()
	w.noteCached(r)
	if p.dead {
		w.mu.Unlock()
		return nil, errKilled
	}
	w.waiting = append(w.waiting, one)
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
	select {
	case <-one.done:
		return one.answer, one.err
	case <-r.Context().Done():
		w.drop(func(other *pending) bool { return other == one })
		return nil, r.Context().Err() //nolint:wrapcheck // a transport
	}
}

func (w *World) drop(match func(*pending) bool) []*pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	var dropped []*pending
	w.waiting = slices.DeleteFunc(w.waiting, func(p *pending) bool {
		if match(p) {
			dropped = append(dropped, p)
			return true
		}
		return false
	})
	return dropped
}

// start starts a process.
func (w *World) start(ctx context.Context, name, inventory string, force bool, denied []string, do func(context.Context, *cluster.Client)) *Process {
	p := &Process{world: w, name: name, lock: home + "/" + inventory, denied: denied, ended: make(chan struct{})}
	ctx, p.kill = context.WithCancelCause(ctx)
	client, err := cluster.New(&rest.Config{Host: "https://simulated", Transport: p}, cluster.Options{
		UserAgent: "brine", ForceConflicts: force, RetryFor: 20 * time.Second, Jitter: func(most time.Duration) time.Duration { return most / 2 },
		Wall:   func() time.Time { return time.Now().Add(time.Duration(p.suspended.Load())) },
		Listed: func(s *jsontree.Shared) { p.lists.Store(s, true) },
	})
	if err != nil {
		panic(err)
	}
	go func() {
		defer close(p.ended)
		do(ctx, client)
		w.mu.Lock()
		p.over = true
		w.mu.Unlock()
		select {
		case w.news <- struct{}{}:
		default:
		}
	}()
	return p
}

// killNow ends a process as SIGKILL does: nothing that it sends arrives any more.
func (w *World) killNow(p *Process) {
	w.note("%s is killed", p.name)
	w.mu.Lock()
	p.dead = true
	w.mu.Unlock()
	for _, one := range w.drop(func(one *pending) bool { return one.process == p }) {
		one.err = errKilled
		close(one.done)
	}
	p.kill(errKilled)
}

func (w *World) note(format string, args ...any) {
	w.script = append(w.script, fmt.Sprintf("%s after %d writes: ", time.Now().Format("15:04:05.000"), len(w.server.Log))+fmt.Sprintf(format, args...))
}

// limit is how long, in simulated time, processes may take.
const limit = time.Hour

// run serves requests until all processes have ended. False: one did not in an hour.
func (w *World) run(processes ...*Process) bool {
	begin := time.Now()
	for time.Since(begin) < limit {
		synctest.Wait()
		w.mu.Lock()
		running := slices.ContainsFunc(processes, func(p *Process) bool { return !p.over })
		waiting := slices.Clone(w.waiting)
		w.mu.Unlock()
		if !running {
			return true
		}
		if len(waiting) == 0 {
			tick := 500 * time.Millisecond
			switch changed := w.server.Step(); {
			case !changed && w.server.Waits:
				tick = 5 * time.Second
			case !changed:
				tick = limit // nobody has anything to do
			}
			if w.server.Release() > 0 {
				tick = min(tick, 200*time.Millisecond)
			}
			select {
			case <-w.news:
			case <-time.After(tick):
			}
			continue
		}
		w.server.Release()
		slices.SortStableFunc(waiting, func(a, b *pending) int { return cmp.Compare(a.key, b.key) })
		one := waiting[w.rand.IntN(len(waiting))]
		if w.rand.Float64() < w.people && w.happens() {
			w.somebodyActs()
		}
		if w.people > 0 && w.rand.IntN(5) == 0 && w.happens() {
			w.somebodyIsFaster(one.request)
		}
		if w.rand.Float64() < w.cuts && w.happens() {
			w.note("all watches are cut")
			w.server.CutWatches(w.outage != nil && w.outage.mood == watchGone)
		}
		if w.rand.IntN(4) == 0 {
			w.server.Step()
		}
		time.Sleep(time.Duration(1+w.rand.IntN(4)) * time.Millisecond)
		if w.pace > 0 {
			time.Sleep(time.Duration(w.rand.Int64N(int64(w.pace))))
		}
		w.serveOne(one)
	}
	return false
}

// noteCached notes a read that an API server may answer with what it has cached. Only a watch
// that begins may send one: nothing but readiness is decided by what watches say.
func (w *World) noteCached(r *http.Request) {
	q := r.URL.Query()
	_, ok := apiserver.Parse(r.URL.Path)
	if ok && r.Method == http.MethodGet && q.Has("resourceVersion") && !q.Has("watch") && !bytes.Contains(debug.Stack(), []byte("cache.(*Reflector)")) {
		w.cached = append(w.cached, r.URL.Path+"?"+r.URL.RawQuery)
	}
}
