package bundle

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled when it is asked for first: a command needs
// few of all that there are.
func Pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// Once reads each key once, for whoever asks first. The others wait on a channel: on a
// sync.Once a simulation in virtual time (testing/synctest) could not see that they wait.
type Once[K comparable, V any] struct {
	mu   sync.Mutex
	read map[K]*reading[V]
}

type reading[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// Get is what read returned for the key.
func (o *Once[K, V]) Get(key K, read func() (V, error)) (V, error) {
	o.mu.Lock()
	r, known := o.read[key]
	if !known {
		r = &reading[V]{done: make(chan struct{})}
		if o.read == nil {
			o.read = map[K]*reading[V]{}
		}
		o.read[key] = r
	}
	o.mu.Unlock()
	if !known {
		defer close(r.done)
		r.value, r.err = read()
		return r.value, r.err
	}
	<-r.done
	return r.value, r.err
}
