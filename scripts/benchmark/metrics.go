package main

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var (
	requestTotal = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
	label        = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// requests are how many the server has counted so far, by verb. What the
// control plane itself keeps asking for (leases, events, nodes, its own
// discovery) is left out; what its controllers do about the objects is in.
func (s *server) requests() (map[string]int, error) {
	q, err := http.NewRequest(http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.client.Do(q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the server's metrics: %s", answer.Status)
	}
	counts := map[string]int{}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := requestTotal.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(m[1], -1) {
			labels[l[1]] = l[2]
		}
		switch labels["resource"] {
		case "leases", "events", "nodes", "endpointslices", "tokenreviews", "subjectaccessreviews", "":
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("read the server's metrics: %w", err)
		}
		counts[strings.ToLower(labels["verb"])] += int(n)
	}
	return counts, lines.Err()
}

// since is what was counted between two readings.
func since(before, after map[string]int) map[string]int {
	more := map[string]int{}
	for verb, n := range after {
		if d := n - before[verb]; d > 0 {
			more[verb] = d
		}
	}
	return more
}
