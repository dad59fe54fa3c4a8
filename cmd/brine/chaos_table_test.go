package main_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// chaosTally counts what was tried and what survived.
type chaosTally struct {
	commands []chaosCommand
	hows     []disturbance

	mu    sync.Mutex
	cells map[[2]string][2]int
	lost  []string // the places that did not survive, each with its first error
}

// add counts, and writes the table: whoever interrupts hours of it has that.
func (c *chaosTally) add(command, how string, place int, survived bool, complaint string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !survived {
		c.lost = append(c.lost, fmt.Sprintf("%s/%s/%d: %s", command, how, place, complaint))
	}
	cell := c.cells[[2]string{command, how}]
	cell[0]++
	if survived {
		cell[1]++
	}
	c.cells[[2]string{command, how}] = cell
	if path := os.Getenv("BRINE_TEST_CHAOS_TABLE"); path != "" {
		return os.WriteFile(path, []byte(c.table()), 0o600)
	}
	return nil
}

// table is Markdown: "survived of tried".
func (c *chaosTally) table() string {
	commands, hows := c.commands, c.hows
	var b strings.Builder
	b.WriteString("| at one request |")
	for i := range commands {
		fmt.Fprintf(&b, " %s |", commands[i].name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(commands)) + "\n")
	tried, survived := 0, 0
	for i := range hows {
		row, some := "| "+hows[i].name+" |", false
		for j := range commands {
			cell, ok := c.cells[[2]string{commands[j].name, hows[i].name}]
			if !ok {
				row += " |"
				continue
			}
			some = true
			tried, survived = tried+cell[0], survived+cell[1]
			row += fmt.Sprintf(" %d of %d |", cell[1], cell[0])
		}
		if some {
			b.WriteString(row + "\n")
		}
	}
	fmt.Fprintf(&b, "\n%d places tried, %d survived.\n", tried, survived)
	for _, line := range c.lost {
		fmt.Fprintf(&b, "\n- %s\n", line)
	}
	return b.String()
}
