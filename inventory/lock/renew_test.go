package lock

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"brine/bundle/cluster"
)

// A lock counts as one that could not be renewed only by what both clocks say: a wall clock
// that is set is none.
func TestAClockThatIsSetIsNoPause(t *testing.T) {
	for name, c := range map[string]struct{ late, ahead, want time.Duration }{
		"in time":                                 {late: -time.Second},
		"the wall clock is ahead":                 {late: -time.Second, ahead: time.Hour},
		"the wall clock is behind":                {late: -time.Second, ahead: -time.Hour},
		"the server did not answer":               {late: time.Minute, want: time.Minute},
		"it did not, and the wall clock is ahead": {late: time.Minute, ahead: time.Hour, want: time.Minute},
	} {
		client, err := cluster.New(&rest.Config{Host: "https://nowhere.invalid"}, cluster.Options{Wall: func() time.Time { return time.Now().Add(c.ahead) }})
		if err != nil {
			t.Fatal(err)
		}
		l := newLock(client, "default", "shop")
		l.changed = make(chan struct{})
		now := time.Now()
		l.until = moment{monotonic: now.Add(-c.late), wall: now.Add(-c.late).Round(0)}
		l.renewed(nil, l.now())
		if got := l.Paused().Round(time.Second); got != c.want {
			t.Errorf("%s: paused for %s, want %s", name, got, c.want)
		}
		client.Close()
	}
}
