package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markdown is the whole report.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmark\n\n%s. raw is a bare loop of parallel requests at its best concurrency.\n\n![time over count](results.svg)\n\n", r.loads())
	b.WriteString(r.budgets())
	for _, delay := range of(r, mixedWorks, func(x result) int { return x.Delay }) {
		for _, work := range mixedWorks {
			b.WriteString(r.times(work, delay))
		}
	}
	b.WriteString(r.platform())
	b.WriteString(r.large())
	b.WriteString(r.starts())
	b.WriteString(r.costs())
	b.WriteString(r.requests())
	b.WriteString(r.failures())
	return b.String()
}

// section is what the README shows: the largest differences, then the goals.
func (r *report) section() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured by `scripts/bench`: %s. raw is a bare loop of parallel requests at its best concurrency.\n\n", r.loads())
	delays := of(r, mixedWorks, func(x result) int { return x.Delay })
	for _, delay := range delays {
		for _, work := range []string{first, unchanged} {
			b.WriteString(r.times(work, delay))
		}
	}
	b.WriteString(r.platform())
	b.WriteString(r.costs())
	b.WriteString(r.large())
	b.WriteString(r.budgets())
	return strings.TrimSpace(b.String()) + "\n"
}

func table(b *strings.Builder, head []string, rows [][]string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n")
}

func wire(delay int) string {
	if delay == 0 {
		return "on one machine"
	}
	return fmt.Sprintf("at %d ms round trip", delay)
}

// times is a table of one work: counts down, tools across, each with its ratio
// to raw.
func (r *report) times(work string, delay int) string {
	tools := r.toolsOf([]string{work})
	var rows [][]string
	for _, count := range of(r, []string{work}, func(x result) int { return x.Count }) {
		row, raw := []string{fmt.Sprint(count)}, r.cell("raw", work, count, delay)
		any := false
		for _, tool := range tools {
			c := r.cell(tool, work, count, delay)
			row = append(row, showTime(c, raw))
			any = any || c != nil
		}
		if any {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s, %s** (times raw; CPU; peak memory)\n\n", work, wire(delay))
	table(&b, append([]string{"objects"}, tools...), rows)
	return b.String()
}

func showTime(c, raw *cell) string {
	if c == nil {
		return ""
	}
	if c.failed != "" {
		return "fails"
	}
	text := seconds(c.seconds)
	switch {
	case raw == c || raw != nil && c.parallel > 0:
		return fmt.Sprintf("%s (%d at a time)", text, c.parallel)
	case raw != nil && raw.failed == "":
		text += fmt.Sprintf(" (%.2gx", c.seconds/raw.seconds)
	default:
		text += " ("
	}
	return strings.Replace(text+fmt.Sprintf("; %s; %.0f MB)", seconds(c.cpu), c.memory), "(; ", "(", 1)
}

func seconds(s float64) string {
	if s < 10 {
		return fmt.Sprintf("%.2f s", s)
	}
	return fmt.Sprintf("%.1f s", s)
}

func (r *report) platform() string {
	tools := r.toolsOf(platformWorks)
	if len(tools) == 0 {
		return ""
	}
	var rows [][]string
	for _, work := range platformWorks {
		row := []string{work}
		for _, tool := range tools {
			row = append(row, showTime(r.cell(tool, work, 0, 0), nil))
		}
		ours, peer := r.cell("brine", work, 0, 0), r.cell("kapp", work, 0, 0)
		if ours != nil && peer != nil && ours.failed == "" && peer.failed == "" {
			row = append(row, fmt.Sprintf("%.2f of the time, %.2f of the memory", ours.seconds/peer.seconds, ours.memory/peer.memory))
		} else {
			row = append(row, "")
		}
		bound, requests, server := "", 0, ""
		if ours != nil {
			for _, number := range ours.sent {
				requests += number
			}
			if cpu, ok := ours.costs[serverCPU]; ok {
				server = seconds(float64(cpu) / 1000)
			}
			if ours.toBound > 0 {
				bound = fmt.Sprintf("%.2f", ours.toBound)
			}
		}
		rows = append(rows, append(row, bound, fmt.Sprint(requests), server))
	}
	var b strings.Builder
	b.WriteString("**The real platform: 101 objects, two releases, until all is ready** (CPU; peak memory). The bound is the longest chain of objects that need each other, with the server's answers and the time until they were ready, and no time of a client. kube-apiserver's is processor time\n\n")
	table(&b, append(append([]string{"work"}, tools...), "brine to kapp", "brine to its bound", "requests of brine", "kube-apiserver with brine"), rows)
	return b.String()
}

func (r *report) starts() string {
	var rows [][]string
	tools := r.toolsOf(startWorks)
	for _, work := range startWorks {
		row, any := []string{work}, false
		for _, tool := range tools {
			var c *cell
			for _, count := range []int{0, 5, 223} {
				if c == nil {
					c = r.cell(tool, work, count, 0)
				}
			}
			any = any || c != nil
			row = append(row, showTime(c, nil))
		}
		if any {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("**Starting** (CPU; peak memory)\n\n")
	table(&b, append([]string{"work"}, tools...), rows)
	return b.String()
}

// requests are those that the server counted, of the last run of each cell.
func (r *report) requests() string {
	var rows [][]string
	for _, delay := range of(r, mixedWorks, func(x result) int { return x.Delay })[:min(1, len(of(r, mixedWorks, func(x result) int { return x.Delay })))] {
		for _, work := range mixedWorks {
			for _, count := range of(r, []string{work}, func(x result) int { return x.Count }) {
				for _, tool := range r.toolsOf([]string{work}) {
					c := r.cell(tool, work, count, delay)
					if c == nil {
						continue
					}
					var parts []string
					for _, verb := range slices.Sorted(maps.Keys(c.requests)) {
						parts = append(parts, fmt.Sprintf("%s %d", strings.ToUpper(verb), c.requests[verb]))
					}
					rows = append(rows, []string{work, fmt.Sprint(count), tool, strings.Join(parts, ", ")})
				}
			}
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("**Requests, as the server counted them** (its controllers' own, about the same objects, are among them: two for a new namespace, and what empties one)\n\n")
	table(&b, []string{"work", "objects", "tool", "requests by verb (APPLY is a server-side apply's PATCH)"}, rows)
	return b.String()
}

// costs is what the server had to do, and what was on the wire, of 1000 objects.
func (r *report) costs() string {
	var rows [][]string
	for _, work := range mixedWorks {
		for _, tool := range r.toolsOf(mixedWorks) {
			c := r.cell(tool, work, few, 0)
			if c == nil || c.failed != "" || len(c.costs) == 0 {
				continue
			}
			row := []string{work, tool, seconds(float64(c.costs[serverCPU]) / 1000), seconds(float64(c.costs[etcdCPU]) / 1000), fmt.Sprint(c.costs[etcdWrites])}
			for _, bytes := range []int{c.costs[bytesSent], c.costs[bytesRead], int(c.wire.Sent), int(c.wire.Received)} {
				row = append(row, fmt.Sprintf("%d KB", bytes/1000))
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**What the server has to do, %d objects** (processor time of kube-apiserver and etcd; writes to etcd; bodies of requests; answers to GET and LIST, compressed; what the tool's process sent and received, with headers and TLS). What the controllers do at the same time is in all but the last two: it is the same for each tool, but a tool that takes longer has more of it\n\n", few)
	table(&b, []string{"work", "tool", "kube-apiserver", "etcd", "writes", "bodies", "answers", "sent", "received"}, rows)
	return b.String()
}

func (r *report) failures() string {
	var b strings.Builder
	said := map[string]bool{}
	for _, x := range r.Results {
		line := fmt.Sprintf("- %s, %s, %d objects, %s: exit code %d: `%s`\n", x.Tool, x.Work, x.Count, wire(x.Delay), x.Exit, strings.ReplaceAll(lastLine(x.Said), "`", "'"))
		if x.Exit != 0 && !said[line] {
			said[line] = true
			b.WriteString(line)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "**What failed**\n\n" + b.String()
}
