package simulator

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/scripts/simulator/apiserver"
)

// What happens to a request instead of a plain answer.

// outage is a while in which some requests get an answer of their own.
type outage struct {
	mood     string
	from, to int           // of the step's requests
	resource string        // is not served
	process  *Process      // of which nothing arrives, or which stands still
	lasts    time.Duration // that is, since its first request in the while
	began    time.Time
	told     bool
	answers  bool // an answer of it is on its way
}

// The outages.
const (
	unserved  = "a kind is not served"
	noRights  = "rights taken away"
	cutOff    = "nothing arrives"
	watchCut  = "watches cut"
	watchGone = "watches too old"
	restarts  = "an API server restarts"
	stopped   = "process stands still"
	suspended = "machine is suspended"
)

// befalls says whether a request is one that the outage answers.
func (o *outage) befalls(w *World, one *pending) bool {
	if o == nil || w.served < o.from || w.served >= o.to && !slices.Contains([]string{cutOff, stopped, suspended}, o.mood) {
		return false
	}
	switch o.mood {
	case noRights:
		return one.request.Method != http.MethodGet
	case suspended:
		return one.process == o.process && one.request.Method != http.MethodGet && w.server.Holders[o.process.lock] == o.process.name
	case cutOff, stopped:
		if o.began.IsZero() {
			o.began = time.Now()
		}
		return one.process == o.process && time.Since(o.began) < o.lasts
	}
	return true
}

// fault is what may happen to a request instead of a plain answer.
type fault string

// The faults.
const (
	killBefore, killAfter       fault = "kill before", "kill after"
	cutBefore, cutAfter         fault = "cut before", "cut after"
	silent                      fault = "no answer"
	tooMany, broken, away, late fault = "429", "500", "503", "504 after"
	plain404, html200, empty    fault = "plain 404", "HTML 200", "empty 200"
	halfBody, moved, forbidden  fault = "half of the answer", "302", "403"
	tomorrow                    fault = "429 with Retry-After of a day"
	stalled                     fault = "renewals of the lock have no answer"
)

var allFaults = []fault{killBefore, killAfter, cutBefore, cutAfter, silent, tooMany, broken, away, late, plain404, html200, empty, halfBody, moved, forbidden, tomorrow, stalled}

func (w *World) serveOne(one *pending) {
	if len(w.drop(func(p *pending) bool { return p == one })) == 0 {
		return // it was given up
	}
	defer func() {
		select {
		case <-one.done:
		default:
		}
	}()
	r, actor := one.request, one.process.name
	one.process.requests++
	refuse := func(code int, body string) *http.Response {
		return apiserver.Answer(r, code, "text/html", io.NopCloser(strings.NewReader(body)))
	}
	reply := func(response *http.Response, err error) {
		one.answer, one.err = response, err
		close(one.done)
	}
	w.served++
	if w.server.Away = ""; w.outage.befalls(w, one) {
		if !w.outage.told {
			if w.outage.told = true; !w.happens() {
				w.outage = nil
			}
		}
	}
	befalls := w.outage.befalls(w, one)
	if befalls {
		one.process.faulty++
		w.note("%s: %s %s: %s", actor, r.Method, r.URL.Path, w.outage.mood)
	}
	if befalls && w.outage.mood == suspended && w.suspend(one, reply) {
		return
	}
	sent, err := readBody(r)
	if err != nil { // what holds a write back stops it here, too
		reply(nil, err)
		return
	}
	serve := func() *http.Response {
		if sent != nil {
			r.Body = io.NopCloser(bytes.NewReader(sent))
		}
		if w.server.Lag = 0; len(w.behind) > 0 {
			w.server.Lag = w.behind[w.rand.IntN(len(w.behind))]
		}
		return w.server.Serve(r, actor)
	}
	if befalls && w.outage != nil && w.during(one, serve, reply) {
		return
	}
	if err := one.process.lacks(r); err != nil {
		reply(apiserver.AnswerError(r, err), nil)
		return
	}
	f := w.pick(r)
	if f == "" {
		reply(serve(), nil)
		return
	}
	one.process.faulty++
	w.note("%s: %s %s: %s", actor, r.Method, r.URL.Path, f)
	switch f {
	case killBefore, killAfter:
		if f == killAfter {
			serve()
		}
		w.killNow(one.process)
		reply(nil, errKilled)
	case cutBefore, cutAfter:
		if f == cutAfter {
			serve()
		}
		reply(nil, syscall.ECONNRESET)
	case silent, stalled:
		w.silence(one, reply)
	case tooMany:
		response := refuse(http.StatusTooManyRequests, "")
		response.Header.Set("Retry-After", "1")
		reply(response, nil)
	case tomorrow:
		response := refuse(http.StatusTooManyRequests, "")
		response.Header.Set("Retry-After", "86400")
		reply(response, nil)
	case halfBody:
		response := serve()
		if r.URL.Query().Get("watch") == "" {
			text, _ := io.ReadAll(response.Body)
			response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text[:len(text)/2]), cutReader{}))
		}
		reply(response, nil)
	case moved:
		response := refuse(http.StatusFound, "")
		response.Header.Set("Location", "https://simulated/login")
		reply(response, nil)
	case forbidden:
		reply(apiserver.AnswerError(r, apierrors.NewForbidden(schema.GroupResource{Resource: path.Base(r.URL.Path)}, "", errors.New("no right"+quoted(r, sent)))), nil)
	case broken:
		reply(refuse(http.StatusInternalServerError, ""), nil)
	case away:
		reply(refuse(http.StatusServiceUnavailable, ""), nil)
	case late:
		serve()
		reply(refuse(http.StatusGatewayTimeout, ""), nil)
	case plain404:
		reply(refuse(http.StatusNotFound, "404 page not found\n"), nil)
	case html200:
		reply(refuse(http.StatusOK, "<html>log in</html>"), nil)
	case empty:
		reply(refuse(http.StatusOK, ""), nil)
	}
}

// during answers what an outage befalls; false: it is answered as if there was none.
func (w *World) during(one *pending, serve func() *http.Response, reply func(*http.Response, error)) bool {
	r, o := one.request, w.outage
	switch o.mood {
	case unserved:
		w.server.Away = o.resource
	case noRights:
		reply(apiserver.AnswerError(r, apierrors.NewForbidden(schema.GroupResource{Resource: path.Base(r.URL.Path)}, "", errors.New("no right"))), nil)
		return true
	case cutOff:
		w.silence(one, reply)
		return true
	case restarts:
		return w.restarting(one, reply)
	case stopped: // the answer to what it sent last is there when it goes on; what it would send is not
		if r.Method != http.MethodGet && !o.answers {
			o.answers = true
			response := serve()
			time.AfterFunc(time.Until(o.began.Add(o.lasts)), func() { reply(response, nil) })
			return true
		}
		w.silence(one, reply)
		return true
	}
	return false
}

// restarting is one of two API servers that ends with all its connections, is not there for a
// while, and then knows no rights yet.
func (w *World) restarting(one *pending, reply func(*http.Response, error)) bool {
	if o := w.outage; !o.answers {
		o.answers = true
		w.server.CutWatches(false)
	}
	r, third := one.request, (w.outage.to-w.outage.from)/3
	switch passed := w.served - w.outage.from; {
	case w.rand.IntN(2) == 0: // the other one
		return false
	case passed < third:
		reply(nil, syscall.ECONNRESET)
	case passed < 2*third:
		reply(nil, syscall.ECONNREFUSED)
	default:
		reply(apiserver.AnswerError(r, apierrors.NewForbidden(schema.GroupResource{Resource: path.Base(r.URL.Path)}, "", errors.New("no roles are known yet"))), nil)
	}
	return true
}

// suspend suspends the machine of a process: its wall clock is ahead when it goes on, and its
// lock was taken meanwhile. True: the request went with its connection; else it goes out then.
func (w *World) suspend(one *pending, reply func(*http.Response, error)) bool {
	one.process.suspended.Add(int64(w.outage.lasts))
	w.somebodyTakesTheLock(path.Base(one.process.lock))
	w.outage = nil
	gone := w.rand.IntN(2) == 0
	if gone {
		reply(nil, syscall.ECONNRESET)
	}
	return gone
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body) //nolint:wrapcheck // a transport
}

// quoted is the value of a Secret that a refused write sends: webhooks and policies quote
// what they refuse.
func quoted(r *http.Request, sent []byte) string {
	if !strings.Contains(r.URL.Path, "/secrets/") {
		return ""
	}
	if at := bytes.Index(sent, []byte(canary)); at >= 0 {
		return ": denied the password " + string(sent[at:min(len(sent), at+len(canary)+2)])
	}
	return ""
}

// silence never answers, until whatever is between ends the connection.
func (w *World) silence(one *pending, reply func(*http.Response, error)) {
	if one.request.URL.Query().Get("watch") != "" {
		reply(nil, syscall.ECONNRESET)
		return
	}
	go func() {
		select {
		case <-one.request.Context().Done():
		case <-time.After(2 * time.Minute):
		}
		reply(nil, syscall.ECONNRESET)
	}()
}

// pick chooses the fault of a request; "" is none. Writes get more of them: what is
// around them is where guards stand.
func (w *World) pick(r *http.Request) fault {
	rate := w.rate
	if r.Method != http.MethodGet {
		rate *= 3
	}
	if r.Header.Get("Content-Type") == string(types.JSONPatchType) { // there are few
		rate *= 2
	}
	if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/namespaces/"+home+"/") && (home == "default" || keepsBooks(home, path.Base(r.URL.Path))) { // the inventory, its lock, its revisions
		rate *= 2
	}
	if w.aim != "" {
		rate = 0
		if w.aim.meets(r) {
			rate = w.rate
		}
	}
	if slices.Contains(w.faults, stalled) {
		rate = 0
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/leases/") {
			rate = 0.8
		}
	}
	if len(w.faults) == 0 || w.rand.Float64() >= rate {
		return ""
	}
	f := w.faults[w.rand.IntN(len(w.faults))]
	if !w.happens() {
		return ""
	}
	return f
}

// cutReader is where a connection was cut.
type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
