package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

var errNotUp = errors.New("not up")

// status prints what runs; it changes nothing, so it takes no lock.
func status(dir string, out io.Writer) error {
	c, err := load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: no cluster in %s", errNotUp, dir)
	} else if err != nil {
		return err
	}
	found, err := processes(dir)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "kubeconfig\t%s\n", c.path("kubeconfig"))
	fmt.Fprintf(w, "server\t%s\n", c.server())
	fmt.Fprintf(w, "version\t%s\n", c.version())
	fmt.Fprintf(w, "nodes\t%d\n", c.Nodes)
	if c.Audit {
		fmt.Fprintf(w, "audit log\t%s\n", c.path("audit.log"))
	}
	for _, name := range c.programs() {
		fmt.Fprintln(w, describe(name, c.port(name), found))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if !c.running() {
		return fmt.Errorf("%w: a process is missing", errNotUp)
	}
	if err := c.waitReady(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNotUp, err)
	}
	return nil
}

// version is the API server's; of one that does not answer, nothing is known.
func (c *cluster) version() string {
	client, err := c.client()
	if err != nil {
		return "unknown"
	}
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return "unknown"
	}
	return info.GitVersion
}

func (c *cluster) port(name string) int {
	switch program(name) {
	case "etcd":
		return c.Ports.Etcd
	case "kwok":
		return c.Ports.Kwok
	case "balancer":
		return c.Ports.APIServer
	case "kube-apiserver":
		if i := slices.Index(c.servers(), name); len(c.Ports.Servers) > 0 {
			return c.Ports.Servers[i]
		}
		return c.Ports.APIServer
	}
	return 0
}

func describe(name string, port int, found []process) string {
	for _, p := range found {
		if p.name != name {
			continue
		}
		line := fmt.Sprintf("%s\tpid %d\t%s", name, p.pid, residentSize(p.pid))
		if port != 0 {
			line += fmt.Sprintf("\tport %d", port)
		}
		return line
	}
	return name + "\tdoes not run"
}

// residentSize is as /proc says it, with its unit.
func residentSize(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(size)
		}
	}
	return "gone"
}
