package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	bootTimeout  = 3 * time.Minute // other builds and tests may have the machine
	bootAttempts = 5
)

// The failures that a second attempt can mend. (kwok 0.8.0 rarely panics while it starts.)
var (
	errPortTaken = errors.New("a port was taken")
	errPanic     = errors.New("panic")
)

// up makes the cluster in o.dir run as o asks. A cluster that was killed goes
// on with its data; fresh starts without it.
func up(o options, fresh bool) (*cluster, error) {
	keepDescriptors()
	held, err := lock(o.dir)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	ctx, cancel := context.WithTimeout(context.Background(), bootTimeout)
	defer cancel()

	c, err := loadOrCreate(o.dir)
	if err != nil {
		return nil, err
	}
	changed := c.adopt(o)
	if !fresh && !changed && c.running() && c.waitReady(ctx) == nil {
		return c, nil
	}
	if err := killAll(c.Dir); err != nil {
		return nil, err
	}
	if fresh {
		if err := c.clear(); err != nil {
			return nil, err
		}
	}
	return c, c.boot(ctx)
}

func loadOrCreate(dir string) (*cluster, error) {
	c, err := load(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	if err := checkOwn(dir); err != nil {
		return nil, err
	}
	return create(dir)
}

// adopt takes over what was asked for, and says whether that is news.
func (c *cluster) adopt(o options) (changed bool) {
	before := *c
	if o.nodes != nil {
		c.Nodes = *o.nodes
	}
	if o.audit != nil {
		c.Audit = *o.audit
	}
	if o.kubernetes != nil {
		c.Kubernetes = *o.kubernetes
	}
	if o.apiservers != nil && max(*o.apiservers, 1) != max(len(c.Ports.Servers), 1) {
		c.Ports.Servers = nil
		if *o.apiservers > 1 {
			c.Ports.Servers = make([]int, *o.apiservers)
		}
	}
	if o.balance != nil {
		c.Balance = *o.balance
	}
	if o.port != nil && *o.port != 0 {
		c.Ports.APIServer, c.Fixed = *o.port, true
	}
	if o.port != nil && *o.port == 0 && c.Fixed {
		c.Ports.APIServer, c.Fixed = 0, false
	}
	return c.Nodes != before.Nodes || c.Audit != before.Audit || !c.Ports.equal(&before.Ports) ||
		c.Kubernetes != before.Kubernetes || c.Balance != before.Balance
}

// clear removes what the cluster came to hold.
func (c *cluster) clear() error {
	return errors.Join(os.RemoveAll(c.path("etcd")), os.RemoveAll(c.path("audit.log")))
}

// boot starts everything and waits. The ports are the old ones while they are
// free, as kubeconfigs may be in use elsewhere.
func (c *cluster) boot(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		if err := c.choosePorts(); err != nil {
			return err
		}
		err := c.start(ctx)
		if err == nil {
			return nil
		}
		if stop := killAll(c.Dir); stop != nil {
			return errors.Join(err, stop)
		}
		if attempt == bootAttempts || !errors.Is(err, errPortTaken) && !errors.Is(err, errPanic) {
			return err
		}
		progress("%v; trying again", err)
	}
}

func (c *cluster) choosePorts() error {
	all := []*int{&c.Ports.APIServer, &c.Ports.Etcd, &c.Ports.Kwok}
	for i := range c.Ports.Servers {
		all = append(all, &c.Ports.Servers[i])
	}
	for _, port := range all {
		if *port != 0 && becomesFree(*port) {
			continue
		}
		if port == &c.Ports.APIServer && c.Fixed {
			return fmt.Errorf("port %d is in use; --port chooses another", *port)
		}
		for *port = randomPort(); !isFree(*port); *port = randomPort() {
		}
	}
	if err := writeKubeconfigs(c); err != nil {
		return err
	}
	return c.save()
}

func randomPort() int {
	return lowestPort + rand.IntN(highestPort-lowestPort)
}

// becomesFree gives a process that someone else killed the time to end.
func becomesFree(port int) bool {
	for range 20 {
		if isFree(port) {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// start brings up etcd and the API server, and when that answers the rest:
// controllers that find no server sleep for a second or more.
func (c *cluster) start(ctx context.Context) error {
	if err := writeConfigs(c); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, stage := range []struct {
		programs []string
		wait     func(context.Context) error
	}{
		{append([]string{"etcd"}, c.servers()...), c.waitServing},
		{[]string{"kube-controller-manager", "kube-scheduler", "kwok"}, c.seedAndWait},
	} {
		for _, name := range stage.programs {
			ended, err := start(c, name, arguments(c, name))
			if err != nil {
				return fmt.Errorf("start %s: %w", name, err)
			}
			go func() {
				select {
				case <-ended:
					cancel(c.whyEnded(name))
				case <-ctx.Done():
				}
			}()
		}
		if err := stage.wait(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return err
		}
	}
	return nil
}

// whyEnded reads the reason from the end of the log, or from where a panic begins.
func (c *cluster) whyEnded(name string) error {
	text, _ := os.ReadFile(c.log(name))
	if strings.Contains(string(text), "address already in use") {
		return fmt.Errorf("%s: %w", name, errPortTaken)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if at := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	}); at >= 0 {
		return fmt.Errorf("%s ended by a %w:\n%s", name, errPanic, strings.Join(lines[at:min(len(lines), at+20)], "\n"))
	}
	return fmt.Errorf("%s ended:\n%s", name, strings.Join(lines[max(0, len(lines)-10):], "\n"))
}

// running says whether every program of the cluster is there.
func (c *cluster) running() bool {
	found, err := processes(c.Dir)
	if err != nil {
		return false
	}
	missing := map[string]bool{}
	for _, name := range c.programs() {
		missing[name] = true
	}
	for _, p := range found {
		delete(missing, p.name)
	}
	return len(missing) == 0
}
