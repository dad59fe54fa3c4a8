package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	defaultNodes = 3
	// defaultPort and the range below stay under Linux' ephemeral ports: a
	// cluster that was killed finds its port again, not some client's socket.
	defaultPort = 26443
	lowestPort  = 20000
	highestPort = 32000
)

// cluster is what a directory says about its cluster; cluster.json holds it.
type cluster struct {
	Dir   string `json:"-"`
	Nodes int    `json:"nodes"`
	Audit bool   `json:"audit"`
	Fixed bool   `json:"fixedPort"` // the port was asked for
	// Kubernetes is the program of another version of Kubernetes; "" is this one.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Balance is how the balancer before several API servers does its work.
	Balance string            `json:"balance,omitempty"`
	Ports   ports             `json:"ports"`
	Tokens  map[string]string `json:"tokens"`
}

// ports holds every port there is: the controller manager and the scheduler
// serve nothing, and etcd's peer port is one that nobody needs to know.
type ports struct {
	APIServer int `json:"apiserver"`
	Etcd      int `json:"etcd"`
	Kwok      int `json:"kwok"`
	// Servers are those of several API servers; APIServer is the balancer's then.
	Servers []int `json:"servers,omitempty"`
}

func (p *ports) equal(q *ports) bool {
	return p.APIServer == q.APIServer && p.Etcd == q.Etcd && p.Kwok == q.Kwok && slices.Equal(p.Servers, q.Servers)
}

func (c *cluster) path(name string) string { return filepath.Join(c.Dir, name) }
func (c *cluster) log(name string) string  { return c.path(name + ".log") }
func (c *cluster) server() string          { return fmt.Sprintf("https://127.0.0.1:%d", c.Ports.APIServer) }

// direct is the address of the first API server, past the balancer: Kubernetes'
// own controllers talk to the server on their node.
func (c *cluster) direct() string {
	if len(c.Ports.Servers) == 0 {
		return c.server()
	}
	return fmt.Sprintf("https://127.0.0.1:%d", c.Ports.Servers[0])
}

func (c *cluster) etcd() string { return fmt.Sprintf("http://127.0.0.1:%d", c.Ports.Etcd) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// load gives fs.ErrNotExist where there is no cluster.
func load(dir string) (*cluster, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cluster.json"))
	if err != nil {
		return nil, err
	}
	c := &cluster{Dir: dir}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.path("cluster.json"), err)
	}
	return c, nil
}

func (c *cluster) save() error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.path("cluster.json"), text, 0o600)
}

// create writes what a cluster keeps for life. cluster.json comes last: without
// it, the next up starts over.
func create(dir string) (*cluster, error) {
	c := &cluster{Dir: dir, Nodes: defaultNodes}
	if err := writePKI(c); err != nil {
		return nil, err
	}
	if err := writeTokens(c); err != nil {
		return nil, err
	}
	return c, c.save()
}

// lock holds the directory for this process, making it if need be. Up and down
// may race, so the directory that was locked may be gone again by then.
func lock(dir string) (*os.File, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		held, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		ours, err := held.Stat()
		if err != nil {
			return nil, err
		}
		if now, err := os.Stat(dir); err == nil && os.SameFile(ours, now) {
			return held, nil
		}
		held.Close()
	}
}

// down removes a directory only if it is empty or a cluster's own.
func down(dir string) error {
	if !exists(dir) {
		return killAll(dir)
	}
	held, err := lock(dir)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := killAll(dir); err != nil {
		return err
	}
	if err := checkOwn(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// checkOwn refuses a directory with files in it that no cluster put there, so a
// wrong --dir costs nobody their home.
func checkOwn(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case "ca.key", "cluster.json": // the first and the last file of create
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s holds something else than a cluster", dir)
	}
	return nil
}
