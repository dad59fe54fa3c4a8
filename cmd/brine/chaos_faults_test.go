package main_test

import (
	"net/http"

	"brine/bundle/cluster/clustertest"
)

// disturbance is what happens at one request.
type disturbance struct {
	name string
	fits func(clustertest.Request) bool // nil: every request
	// fault is what the proxy does with the request.
	fault clustertest.Action
	kill  bool // kill -9, as the request arrives, or with CutAfter when it is done
	// actor does what somebody else does, before or after the request.
	actor func(*trial) (*deed, error)
	flags []string // of the commands that have them: apply and rollback
	pages int      // the server's page size
	user  bool     // brine runs as a user whose rights can be taken away
	alone bool     // others on the cluster would notice it
	bound []string // flags of every command: how long it waits
	exits []int    // that the disturbed run may end with, beside 0
}

func faults() []disturbance {
	watch := func(r clustertest.Request) bool { return r.Query.Has("watch") }
	ask := func(r clustertest.Request) bool { return !watch(r) }
	continued := func(r clustertest.Request) bool { return r.Query.Has("continue") }
	status := func(code int, message string) clustertest.Action {
		return clustertest.Action{Status: code, Message: message}
	}
	busy := status(http.StatusTooManyRequests, "too many requests")
	busy.RetryAfter = 1
	late := status(http.StatusGatewayTimeout, "the request did not finish in time")
	late.Acted = true
	day := status(http.StatusServiceUnavailable, "the server is currently unable to handle the request")
	day.RetryAfter = 24 * 60 * 60
	page := func(code int, text string) clustertest.Action { return clustertest.Action{Status: code, Page: &text} }
	moved := page(http.StatusFound, "")
	moved.Location = "https://127.0.0.1:1/login"
	// What a lying proxy answers is never an absence: the run may end with an error, and
	// has forgotten nothing.
	lied := []int{1, 4, 5, 6}
	soon := []string{"--request-timeout=2s", "--retry-timeout=5s"}
	return []disturbance{
		{name: "kill -9 before the server acts", kill: true, fault: clustertest.Action{CutBefore: true}},
		{name: "kill -9 after the server acted", kill: true, fault: clustertest.Action{CutAfter: true}},
		{name: "connection cut before the server acts", fits: ask, fault: clustertest.Action{CutBefore: true}},
		{name: "connection cut after the server acted", fits: ask, fault: clustertest.Action{CutAfter: true}},
		{name: "429 with Retry-After", fits: ask, fault: busy},
		{name: "409", fits: ask, fault: status(http.StatusConflict, "the object has been modified; please apply your changes to the latest version and try again")},
		{name: "500", fits: ask, fault: status(http.StatusInternalServerError, "failed calling webhook: connection refused")},
		{name: "503", fits: ask, fault: status(http.StatusServiceUnavailable, "the server is currently unable to handle the request")},
		{name: "504 before the server acts", fits: ask, fault: status(http.StatusGatewayTimeout, "the request did not finish in time")},
		{name: "504 after the server acted", fits: ask, fault: late},
		{name: "503 with Retry-After of a day", fits: ask, fault: day, exits: lied, bound: []string{"--retry-timeout=2s"}},
		{name: "401 in the middle", fits: ask, fault: status(http.StatusUnauthorized, "Unauthorized"), exits: lied},
		{name: "plain 404 of a proxy", fits: ask, fault: page(http.StatusNotFound, "404 page not found\n"), exits: lied},
		{name: "HTML 200", fits: ask, fault: page(http.StatusOK, "<html><body>Please log in</body></html>"), exits: lied},
		{name: "HTML 502", fits: ask, fault: page(http.StatusBadGateway, "<html><body>Bad Gateway</body></html>"), exits: lied},
		{name: "redirect to a closed port", fits: ask, fault: moved, exits: lied},
		{name: "empty 200", fits: ask, fault: page(http.StatusOK, ""), exits: lied},
		{name: "half an answer", fits: ask, fault: clustertest.Action{Half: true}, exits: lied},
		{name: "silence", fits: ask, fault: clustertest.Action{Silent: true}, exits: lied, bound: soon},
		{name: "watch silent", fits: watch, fault: clustertest.Action{Silent: true}, exits: lied, bound: soon},
		{name: "watch refused", fits: watch, fault: status(http.StatusServiceUnavailable, "the server is currently unable to handle the request")},
		{name: "watch cut", fits: watch, fault: clustertest.Action{CutAfter: true}},
		{name: "watch too old (410)", fits: watch, fault: status(http.StatusGone, "too old resource version")},
		{name: "page expired (410)", fits: continued, pages: 1, fault: status(http.StatusGone, "the provided continue parameter is too old")},
	}
}
