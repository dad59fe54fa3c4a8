package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sample() *report {
	r := &report{Machine: "2 cores"}
	add := func(tool, work string, count, parallel, exit int, seconds ...float64) {
		for i, s := range seconds {
			r.Results = append(r.Results, result{Tool: tool, Work: work, Count: count, Parallel: parallel, Run: i + 1, usage: usage{Seconds: s, Exit: exit}})
		}
	}
	add("raw", first, 1000, 8, 0, 3, 1, 2)
	add("raw", first, 1000, 16, 0, 1.5, 1, 9)
	add("brine", first, 1000, 0, 0, 1.8, 1.8, 5)
	add("kapp", first, 1000, 0, 0, 6, 6, 6)
	add("helm", first, 1000, 0, 1, 0.1, 0.1, 0.1)
	return r
}

func TestReport(t *testing.T) {
	text := sample().markdown()
	for _, want := range []string{
		"| first apply of 1000, on one machine | 1.05 x raw | 1.20 | **missed** | kapp 4.0 |",
		"| 1000 | 1.50 s (16 at a time) | 1.80 s (1.2x; 0.00 s; 0 MB) | 6.00 s (4x; 0.00 s; 0 MB) | fails |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	r := &report{Machine: "2 cores", Results: []result{{Tool: "brine", Work: seeNewer, Run: 1, Costs: map[string]int{serverCPU: 720}, usage: usage{Seconds: 0.64, CPU: 0.48}}}}
	if want := "dry run of the newer release is 0.60 s: 0.72 s of processor time of kube-apiserver, and 0.48 s of brine's, on 2 cores."; !strings.Contains(r.budgets(), want) {
		t.Errorf("no %q in\n%s", want, r.budgets())
	}
	if picture := sample().picture(); !strings.Contains(picture, ">brine</text>") || strings.Contains(picture, "NaN") || strings.Contains(picture, ">helm<") {
		t.Errorf("picture:\n%s", picture)
	}
}

// What was run less often than the rest is said to have been: only generated
// bundles are, the real platform and the five objects are not.
func TestLoads(t *testing.T) {
	r := &report{Machine: "2 cores"}
	for run := 1; run <= 3; run++ {
		r.Results = append(r.Results,
			result{Tool: "brine", Work: first, Count: few, Run: run, Load: float64(run)},
			result{Tool: "kapp", Work: "five objects, start to end", Count: 5, Run: run, Load: 1})
	}
	r.Results = append(r.Results, result{Tool: "kapp", Work: first, Count: few, Run: 1, Load: 1}, result{Tool: "brine", Work: first, Count: many, Run: 2, Load: 1})
	want := "; 2 cores; medians of 3 runs; of 1 for generated bundles with other tools; of 2 for more than 1000 objects; load average 1.0 to 3.0"
	if got := r.loads(); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
	r.Results = []result{{Tool: "brine", Work: scaleFirst, Count: many, Run: 1, Load: 3}}
	if got, want := r.loads(), "; 2 cores; a single run, no medians"; !strings.HasSuffix(got, want) {
		t.Errorf("of large bundles alone: got %q, want it to end in %q", got, want)
	}
}

func TestReplaceSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(path, []byte("a\n"+sectionBegin+"\nold\n"+sectionEnd+"\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceSection(path, sectionBegin, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := "a\n" + sectionBegin + "\nnew\n" + sectionEnd + "\nb\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if err := os.WriteFile(path, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if replaceSection(path, sectionBegin, "new\n") == nil {
		t.Error("no error without the markers")
	}
}

// Each object of a bundle is the same as YAML and as raw's request.
func TestGenerate(t *testing.T) {
	b, err := generate(t.TempDir(), 200)
	if err != nil {
		t.Fatal(err)
	}
	namespaces, others, err := readRequests(b.requests)
	if err != nil || len(namespaces) != 2 || len(others) != 198 {
		t.Fatal(len(namespaces), len(others), err)
	}
	if got := len(collections(namespaces, others)); got != 5 {
		t.Errorf("%d kinds, want 5", got)
	}
	for _, r := range others {
		if !json.Valid(r.Body) {
			t.Errorf("%s", r.Body)
		}
	}
}

// The Services of large bundles have no address, in the YAML and in raw's request.
func TestHeadless(t *testing.T) {
	for i := range 100 {
		text, r := headless(i, 4)
		service := strings.Contains(text, "kind: Service\n")
		if got := strings.Contains(text, "\n  clusterIP: None\n"); got != service {
			t.Errorf("object %d: %t\n%s", i, got, text)
		}
		if got := strings.Contains(string(r.Body), `"clusterIP":"None"`); got != service || !json.Valid(r.Body) {
			t.Errorf("object %d: %t\n%s", i, got, r.Body)
		}
	}
}

// The proxy keeps the order of bytes, takes half a round trip each way, and
// does not wait for an answer before it takes more.
func TestDelay(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		c, err := echo.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	proxy, err := delay(echo.Addr().String(), 40*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	c, err := net.Dial("tcp", proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begin := time.Now()
	sent := strings.Repeat("0123456789", 10000)
	go func() {
		for part := 0; part < len(sent); part += 1000 {
			_, _ = c.Write([]byte(sent[part : part+1000]))
		}
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != sent {
		t.Fatalf("%v, or other bytes", err)
	}
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("it took %v, less than a round trip", took)
	}
}

func TestCount(t *testing.T) {
	requests, costs := map[string]int{}, map[string]int{}
	for _, line := range []string{
		`# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.`,
		`process_cpu_seconds_total 1.25`,
		`apiserver_request_total{code="200",resource="configmaps",verb="APPLY"} 3`,
		`apiserver_request_total{code="200",resource="leases",verb="PUT"} 9`, // the control plane's own
		`apiserver_request_body_size_bytes_sum{group="",resource="configmaps",verb="patch"} 504939`,
		`apiserver_response_sizes_sum{resource="configmaps",verb="LIST"} 1.675033e+06`,
		`etcd_request_duration_seconds_count{group="",operation="create",resource="configmaps"} 4`,
		`etcd_request_duration_seconds_count{group="",operation="update",resource="services"} 2`,
		`etcd_request_duration_seconds_count{group="",operation="get",resource="services"} 7`, // no write
		`etcd_request_duration_seconds_bucket{group="",operation="create",resource="configmaps",le="0.005"} 28`,
	} {
		if err := count(line, requests, costs); err != nil {
			t.Error(err)
		}
	}
	if want := map[string]int{"apply": 3}; !maps.Equal(requests, want) {
		t.Errorf("requests: %v, want %v", requests, want)
	}
	if want := map[string]int{serverCPU: 1250, etcdWrites: 6, bytesSent: 504939, bytesRead: 1675033}; !maps.Equal(costs, want) {
		t.Errorf("costs: %v, want %v", costs, want)
	}
}

// What is recorded is the medians of the best: the picture of them is that of all results.
func TestRecordedPicture(t *testing.T) {
	r := sample()
	r.Commit, r.Versions, r.Time = "0123abc", map[string]string{"kapp": "v0.65.0"}, time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	root := t.TempDir()
	folder := filepath.Join(root, "scripts", "benchmark")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("a\n"+recordBegin+"\nold\n"+sectionEnd+"\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.record(root); err != nil {
		t.Fatal(err)
	}
	recorded, err := readReport(filepath.Join(folder, recordedFile))
	if err != nil || len(recorded.Results) != 4 {
		t.Fatal(err, recorded)
	}
	picture, line := r.speed()
	again, _ := recorded.speed()
	if again != picture {
		t.Errorf("of the medians:\n%s\nof all:\n%s", again, picture)
	}
	if err := xml.Unmarshal([]byte(picture), &struct{ XMLName xml.Name }{}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{">1.50 s<", ">1.80 s<", ">6.00 s<", ">fails<", "brine 0123abc, kapp v0.65.0", "2 cores; medians of 3 runs", "prefers-color-scheme:dark"} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %q in\n%s", want, picture)
		}
	}
	want := "[![Seconds for 1000 objects on one machine, less is better. first apply: raw 1.50 s, brine 1.80 s, kapp 6.00 s, helm fails](scripts/benchmark/speed.svg)](scripts/benchmark/README.md)\n"
	if line != want {
		t.Errorf("got %q, want %q", line, want)
	}
	if text, err := os.ReadFile(filepath.Join(root, "README.md")); err != nil || string(text) != "a\n"+recordBegin+"\n"+want+sectionEnd+"\nb\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// The picture in the repository is that of the figures beside it, and the README shows it
// as soon as there are any.
func TestPictureOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), recordBegin+"\n")
	shown, _, ok := strings.Cut(rest, sectionEnd)
	if !ok || strings.TrimSpace(shown) == "" {
		t.Fatalf("README.md has nothing between %q and %q", recordBegin, sectionEnd)
	}
	r, err := readReport(recordedFile)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(pictureFile); err == nil || strings.Contains(shown, pictureFile) {
			t.Errorf("a picture without %s", recordedFile)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	picture, line := r.speed()
	if stored, err := os.ReadFile(pictureFile); err != nil || string(stored) != picture || shown != line {
		t.Errorf("%s and the README are not of %s: run scripts/bench --redraw (%v)", pictureFile, recordedFile, err)
	}
}
