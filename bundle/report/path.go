package report

import (
	"cmp"
	"slices"

	"brine/bundle"
)

// Wait is a reason why an object was not ready, and for how long.
type Wait struct {
	Reason  string  `json:"reason"`
	Seconds float64 `json:"seconds"`
}

// Path is the critical path of a run: the chain of objects, each of which could only
// begin when the one before had come so far, down to the last that was settled. What
// is shorter elsewhere does not make the run shorter.
type Path struct {
	// Seconds are from the beginning of the run to the end of the path.
	Seconds float64    `json:"seconds"`
	Steps   []PathStep `json:"steps"`
	// Longest is the index in Steps of the one that took longest.
	Longest int `json:"longest"`
}

// PathStep is one object on the path. Times are seconds since the run began.
type PathStep struct {
	bundle.Reference
	// From is when all that it needs was there; Until when the next one could begin.
	From  float64 `json:"from"`
	Until float64 `json:"until"`
	// Queued, Request and Waiting are what the time went into: until the request was
	// sent, until the server had answered, until the object was ready or gone.
	Queued  float64 `json:"queued"`
	Request float64 `json:"request"`
	Waiting float64 `json:"waiting"`
	// Reason is why the object was not ready for the longest part of Waiting.
	Reason string `json:"reason,omitempty"`
}

// End is when nothing more was to be done about an object.
func (o *ObjectResult) End() float64 { return max(o.StartedAt, o.ActedAt, o.ReadyAt) }

// LongestWait is the reason that kept the object from being ready for longest.
func (o *ObjectResult) LongestWait() Wait {
	if len(o.Waits) == 0 {
		return Wait{}
	}
	return slices.MaxFunc(o.Waits, func(a, b Wait) int { return cmp.Compare(a.Seconds, b.Seconds) })
}

// criticalPath goes back from the object that was settled last; nil where no request
// was sent, nor anything waited for.
func criticalPath(objects []*ObjectResult) *Path {
	byID := map[bundle.ID]*ObjectResult{}
	var last *ObjectResult
	for _, o := range objects {
		byID[o.ID()] = o
		if o.timed() && (last == nil || o.End() > last.End()) {
			last = o
		}
	}
	if last == nil {
		return nil
	}
	p := &Path{Seconds: last.End()}
	for o, until := last, last.End(); o != nil && len(p.Steps) <= len(objects); {
		p.Steps = append(p.Steps, stepOf(o, until))
		if o.After == nil {
			break
		}
		until = o.QueuedAt
		o = byID[o.After.ID()]
	}
	slices.Reverse(p.Steps)
	for i, s := range p.Steps {
		if l := p.Steps[p.Longest]; s.Until-s.From > l.Until-l.From {
			p.Longest = i
		}
	}
	return p
}

// timed: a request was sent for the object, or it was waited for.
func (o *ObjectResult) timed() bool { return o.StartedAt > 0 || len(o.Waits) > 0 }

func stepOf(o *ObjectResult, until float64) PathStep {
	s := PathStep{Reference: bundle.ReferTo(o.ID()), From: o.QueuedAt, Until: until}
	sent, answered := o.QueuedAt, o.QueuedAt
	if o.StartedAt > 0 {
		sent = o.StartedAt
		answered = max(sent, o.ActedAt)
	}
	s.Queued = milliseconds(sent - s.From)
	s.Request = milliseconds(min(answered, until) - sent)
	if s.Waiting = milliseconds(until - answered); s.Waiting <= 0 {
		s.Waiting = 0
	} else {
		s.Reason = o.LongestWait().Reason
	}
	return s
}

// milliseconds cuts off what the subtraction of rounded seconds leaves.
func milliseconds(seconds float64) float64 { return float64(int(seconds*1000+0.5)) / 1000 }
