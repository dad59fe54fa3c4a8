package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// onePrograms are the commands about one program of a cluster that runs.
var onePrograms = map[string]func(*cluster, string) error{
	"stop":   func(c *cluster, name string) error { return c.signal(name, syscall.SIGKILL) },
	"pause":  func(c *cluster, name string) error { return c.signal(name, syscall.SIGSTOP) },
	"resume": func(c *cluster, name string) error { return c.signal(name, syscall.SIGCONT) },
	"start": func(c *cluster, name string) error {
		if err := c.signal(name, syscall.SIGKILL); err != nil {
			return err
		}
		_, err := start(c, name, arguments(c, name))
		return err
	},
}

func one(o options, run func(*cluster, string) error) error {
	keepDescriptors()
	held, err := lock(o.dir)
	if err != nil {
		return err
	}
	defer held.Close()
	c, err := load(o.dir)
	if err != nil {
		return err
	}
	if !slices.Contains(c.programs(), o.program) {
		return fmt.Errorf("there is no program %q, but %s", o.program, strings.Join(c.programs(), ", "))
	}
	return run(c, o.program)
}

// signal sends a signal to a program, and waits until it is gone if it kills.
func (c *cluster) signal(name string, signal syscall.Signal) error {
	found, err := processes(c.Dir)
	if err != nil {
		return err
	}
	for _, p := range found {
		if p.name != name {
			continue
		}
		fd, ok := send(p.pid, c.Dir, signal)
		if !ok {
			continue
		}
		if signal != syscall.SIGKILL {
			return nil
		}
		return awaitEnd(fd)
	}
	return nil
}
