package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var (
	metric = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? (\S+)$`)
	label  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// What a work costs the server, as counts names it.
const (
	serverCPU  = "cpu" // ms of kube-apiserver's processor time
	etcdCPU    = "etcd's cpu"
	etcdWrites = "etcd" // of kube-apiserver to etcd
	bytesSent  = "sent" // bodies of requests
	bytesRead  = "read" // answers to GET and LIST, compressed where they were sent so
)

// counts is what the server has counted so far: requests by verb, and what they cost.
// What the control plane itself keeps asking for (leases, events, nodes, its own
// discovery) is left out, but for processor time; what its controllers do about the
// objects is in.
func (s *server) counts() (requests, costs map[string]int, err error) {
	requests, costs = map[string]int{}, map[string]int{}
	etcd := map[string]int{}
	err = errors.Join(s.metrics(s.url, requests, costs), s.metrics(s.etcd, map[string]int{}, etcd))
	costs[etcdCPU] = etcd[serverCPU]
	return requests, costs, err
}

// metrics reads the metrics of a server of the control plane.
func (s *server) metrics(url string, requests, costs map[string]int) error {
	q, err := http.NewRequest(http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.client.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("read the metrics of %s: %s", url, answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := count(lines.Text(), requests, costs); err != nil {
			return fmt.Errorf("read the metrics of %s: %w", url, err)
		}
	}
	return lines.Err()
}

// count adds one line of the metrics.
func count(line string, requests, costs map[string]int) error {
	m := metric.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	labels := map[string]string{}
	for _, l := range label.FindAllStringSubmatch(m[2], -1) {
		labels[l[1]] = l[2]
	}
	n, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return err
	}
	if m[1] == "process_cpu_seconds_total" {
		costs[serverCPU] += int(n * 1000)
	}
	switch labels["resource"] {
	case "leases", "events", "nodes", "endpoints", "endpointslices", "ipaddresses", "tokenreviews", "subjectaccessreviews", "":
		return nil
	}
	switch m[1] {
	case "apiserver_request_total":
		requests[strings.ToLower(labels["verb"])] += int(n)
	case "apiserver_request_body_size_bytes_sum":
		costs[bytesSent] += int(n)
	case "apiserver_response_sizes_sum":
		costs[bytesRead] += int(n)
	case "etcd_request_duration_seconds_count":
		if op := labels["operation"]; op == "create" || op == "update" || op == "delete" {
			costs[etcdWrites] += int(n)
		}
	}
	return nil
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
