package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// trace is what brine's result says of the time of a run.
type trace struct {
	Objects []*traced `json:"objects"`
	Summary struct {
		Requests map[string]int `json:"requests"`
	} `json:"summary"`
}

type traced struct {
	name
	Action    string  `json:"action"`
	StartedAt float64 `json:"startedAt"`
	ActedAt   float64 `json:"actedAt"`
	ReadyAt   float64 `json:"readyAt"`
	Needs     []struct {
		name
		Want string `json:"want"`
	} `json:"needs"`

	answered, end float64 // at the earliest
	known         bool
}

type name struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// readTrace reads the file of a result: its bound, and brine's requests by verb.
func readTrace(file string) (bound float64, requests map[string]int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, nil, fmt.Errorf("read the trace: %w", err)
	}
	var t trace
	if err := json.Unmarshal(text, &t); err != nil {
		return 0, nil, fmt.Errorf("read the trace: %w", err)
	}
	return t.bound(), t.Summary.Requests, nil
}

// bound is the least time that the run could have taken, with the answers that the
// server gave and the time that the objects took until they were ready: the longest
// chain of objects that need each other. A client that takes no time itself, and sends
// every request at once, needs as long.
func (t trace) bound() float64 {
	byName := map[name]*traced{}
	for _, o := range t.Objects {
		byName[o.name] = o
	}
	applied := 0.0
	for _, o := range t.Objects {
		if !o.deleted() {
			o.earliest(byName, 0)
			applied = max(applied, o.end)
		}
	}
	whole := applied
	for _, o := range t.Objects {
		if o.deleted() { // deletions begin when all else is done
			o.earliest(byName, applied)
			whole = max(whole, o.end)
		}
	}
	return whole
}

func (o *traced) deleted() bool { return o.Action == "pruned" || o.Action == "detached" }

func (o *traced) earliest(byName map[name]*traced, begin float64) {
	if o.known {
		return
	}
	o.known = true // the graph has no cycles
	for _, n := range o.Needs {
		if on := byName[n.name]; on != nil && on.deleted() == o.deleted() {
			on.earliest(byName, begin)
			if n.Want == "applied" {
				begin = max(begin, on.answered)
			} else {
				begin = max(begin, on.end)
			}
		}
	}
	o.answered = begin + max(0, o.ActedAt-o.StartedAt)
	o.end = o.answered + max(0, o.ReadyAt-max(o.ActedAt, o.StartedAt))
	if o.StartedAt == 0 { // unchanged: it was only waited for, from the beginning
		o.answered, o.end = begin, begin
	}
}
